/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies from one memory to another: latency + bytes / rate, both corrected by what was measured.  A measurement tells of
 * that part of the two which takes more of its time; what neither explains is left to the size's own factor.
 */
#include "base/checked.h"
#include "base/log2_fixed.h"
#include "plugin/answer.h"
#include "schedule/correction_table.h"

/* Of the prior for copies to a memory that is not the host's, and from it. */
#define COPY_BYTES_PER_NS UINT64_C(6)
#define LARGEST_COPY_BYTES (UINT64_C(1) << 50)

static const tm_belief unknown = { 0, 0 };

static uint64_t rate_ns(uint64_t bytes) { return tm_min_u64(bytes, LARGEST_COPY_BYTES) / COPY_BYTES_PER_NS; }
static uint64_t size_key(uint64_t bytes) { return 63u - (uint64_t)__builtin_clzll(tm_max_u64(1, bytes)); }

/* Latency and rate, each corrected. */
typedef struct copy_parts {
  uint64_t latency_ns;
  uint64_t rate_ns;
} copy_parts;

static copy_parts parts_of(const tm_correction_state *latency, const tm_correction_state *rate, uint64_t bytes) {
  const int64_t latency_log2 = tm_belief_refine(unknown, latency, TM_SPREAD_DEVICE).mean;
  const int64_t rate_log2 = tm_belief_refine(unknown, rate, TM_SPREAD_DEVICE).mean;
  return (copy_parts){ tm_log2_multiply(TM_COPY_LATENCY_NS, latency_log2, TM_LARGEST_COST_NS),
                       tm_log2_multiply(rate_ns(bytes), rate_log2, TM_LARGEST_COST_NS) };
}

static bool learn_part(tm_correction *correction, tm_correction_entry *entry, uint64_t measured_ns, uint64_t prior_ns) {
  tm_correction_node_learn(&entry->node, tm_log2_of_ratio(measured_ns, prior_ns), 0, true);
  return tm_correction_entry_changed(correction, entry, entry->node.live.mean);
}

/* The larger part is what was measured, less the other one. */
static bool learn_larger_part(tm_correction *correction, uint32_t link, uint64_t bytes, uint64_t measured_ns, copy_parts parts) {
  const bool is_latency = parts.latency_ns > parts.rate_ns;
  const uint64_t other_ns = is_latency ? parts.rate_ns : parts.latency_ns;
  const uint64_t rest_ns = measured_ns > other_ns ? measured_ns - other_ns : 1;
  const tm_correction_entry_key key = { is_latency ? TM_CORRECTION_LATENCY : TM_CORRECTION_RATE, link, 0 };
  tm_correction_entry *entry = tm_correction_entry_add(correction, &key);
  return entry != NULL && learn_part(correction, entry, rest_ns, is_latency ? TM_COPY_LATENCY_NS : rate_ns(bytes));
}

static bool learn_size(tm_correction *correction, uint32_t link, uint64_t bytes, uint64_t measured_ns, copy_parts parts) {
  const tm_correction_entry_key key = { TM_CORRECTION_COPY, link, size_key(bytes) };
  tm_correction_entry *entry = tm_correction_entry_add(correction, &key);
  return entry != NULL && learn_part(correction, entry, measured_ns, parts.latency_ns + parts.rate_ns);
}

typedef const tm_correction_state *(*state_of_fn)(const tm_correction_entry *entry);
static const tm_correction_state *live_of(const tm_correction_entry *entry) { return &entry->node.live; }
static const tm_correction_state *told_of(const tm_correction_entry *entry) { return &entry->node.told; }

static const tm_correction_state *find(tm_correction *correction, uint32_t kind, uint32_t link, uint64_t key, state_of_fn state_of) {
  static const tm_correction_state nothing;
  const tm_correction_entry *entry = tm_correction_entry_find(correction, &(tm_correction_entry_key){ kind, link, key });
  return entry == NULL ? &nothing : state_of(entry);
}

static copy_parts find_parts(tm_correction *correction, uint32_t link, uint64_t bytes, state_of_fn state_of) {
  return parts_of(find(correction, TM_CORRECTION_LATENCY, link, 0, state_of), find(correction, TM_CORRECTION_RATE, link, 0, state_of),
                  bytes);
}

void tm_correction_learn_copy(tm_correction *correction, uint32_t link, uint64_t bytes, uint64_t measured_ns) {
  if (measured_ns == 0 || bytes == 0 || link == TM_NO_LINK) return;
  tm_mutex_lock(&correction->lock);
  bool tell = learn_larger_part(correction, link, bytes, measured_ns, find_parts(correction, link, bytes, live_of));
  tell |= learn_size(correction, link, bytes, measured_ns, find_parts(correction, link, bytes, live_of));
  tm_correction_tell(correction, tell);
  tm_mutex_unlock(&correction->lock);
}

uint64_t tm_correction_copy_ns(tm_correction *correction, uint32_t link, uint64_t bytes) {
  if (bytes == 0) return 0;
  if (link == TM_NO_LINK) return TM_COPY_LATENCY_NS + rate_ns(bytes);
  tm_mutex_lock(&correction->lock);
  const copy_parts parts = find_parts(correction, link, bytes, told_of);
  const tm_correction_state *size = find(correction, TM_CORRECTION_COPY, link, size_key(bytes), told_of);
  const int64_t log2 = tm_belief_refine(unknown, size, TM_SPREAD_CLASS).mean;
  tm_mutex_unlock(&correction->lock);
  return tm_log2_multiply(tm_min_u64(parts.latency_ns + parts.rate_ns, TM_LARGEST_COST_NS), log2, TM_LARGEST_COST_NS);
}
