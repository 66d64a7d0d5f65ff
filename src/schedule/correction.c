/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/correction.h"

#include <string.h>

#include "base/checked.h"
#include "base/log2_fixed.h"
#include "plugin/answer.h"
#include "schedule/correction_table.h"

#define HOPE_HALVES 5           /* half standard deviations that a guess may be too pessimistic */

tm_status tm_correction_init(tm_correction *correction, tm_memory *memory) {
  memset(correction, 0, sizeof *correction);
  correction->first_changed = TM_NO_ENTRY;
  atomic_init(&correction->generation, 1);
  if (!tm_correction_table_init(correction, memory)) return TM_ERROR_NO_MEMORY;
  if (tm_mutex_init(&correction->lock) != TM_OK) {
    tm_correction_table_deinit(correction, memory);
    return TM_ERROR_NO_MEMORY;
  }
  correction->memory = memory;
  return TM_OK;
}

void tm_correction_deinit(tm_correction *correction) {
  if (correction->memory == NULL) return;
  tm_correction_table_deinit(correction, correction->memory);
  tm_mutex_deinit(&correction->lock);
}

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + UINT64_C(0x9e3779b97f4a7c15) + (hash << 6) + (hash >> 2);
  return hash * UINT64_C(0xff51afd7ed558ccd);
}

static uint32_t size_of(const tm_work *work) {
  const uint64_t size = tm_max_u64(1, tm_max_u64(work->flops, work->read_bytes + work->written_bytes));
  return 63u - (uint32_t)__builtin_clzll(size);
}

/* The size stands in the lowest byte, so that it can be told from the number. */
uint64_t tm_correction_bucket_of(const tm_operation *operation, const tm_work *work) {
  uint64_t hash = operation->op;
  const uint32_t count = operation->input_count + operation->output_count;
  for (uint32_t i = 0; i < count; i++) hash = mix(hash, operation->operands[i].format);
  hash = mix(hash, operation->flags & TM_OPERATION_ALL_CONTIGUOUS);
  return (mix(hash, 0) & ~UINT64_C(0xff)) | size_of(work);
}

/* ---- the time of an operation ---- */

#define LEVELS 3
static const uint32_t spreads[LEVELS] = { TM_SPREAD_DEVICE, TM_SPREAD_CLASS, TM_SPREAD_BUCKET };
static const tm_belief declared = { 0, 0 };

static void levels_of(const tm_correction_key *key, tm_correction_entry_key out_keys[LEVELS]) {
  out_keys[0] = (tm_correction_entry_key){ TM_CORRECTION_DEVICE, key->device, 0 };
  out_keys[1] = (tm_correction_entry_key){ TM_CORRECTION_CLASS, key->device, (uint64_t)key->op_class };
  out_keys[2] = (tm_correction_entry_key){ TM_CORRECTION_BUCKET, key->device, key->bucket };
}

/* Each level learns against what those above expected before this measurement. */
static bool learn_levels(tm_correction *correction, const tm_correction_entry_key keys[LEVELS], int64_t x) {
  tm_belief before = declared, after = declared;
  bool tell = false;
  for (uint32_t i = 0; i < LEVELS; i++) {
    tm_correction_entry *entry = tm_correction_entry_add(correction, &keys[i]);
    if (entry == NULL) break;
    const int64_t expected = before.mean;
    before = tm_belief_refine(before, &entry->node.live, spreads[i]);
    tm_correction_node_learn(&entry->node, x, expected);
    after = tm_belief_refine(after, &entry->node.live, spreads[i]);
    tell |= tm_correction_entry_changed(correction, entry, after.mean);
  }
  return tell;
}

static void name_bucket(tm_correction *correction, const tm_correction_entry_key *key, const tm_operation *operation) {
  tm_correction_entry *entry = tm_correction_entry_find(correction, key);
  if (entry == NULL || entry->work.op != TM_OP_NONE) return;
  entry->work = tm_work_kind_of(operation);
  entry->size_log2 = (uint32_t)(key->key & 0xff);
}

void tm_correction_learn(tm_correction *correction, const tm_correction_key *key, const tm_operation *operation,
                         uint64_t declared_ns, uint64_t measured_ns) {
  if (measured_ns == 0) return;
  tm_correction_entry_key keys[LEVELS];
  levels_of(key, keys);
  tm_mutex_lock(&correction->lock);
  const bool tell = learn_levels(correction, keys, tm_log2_of_ratio(measured_ns, declared_ns));
  if (operation != NULL) name_bucket(correction, &keys[LEVELS - 1], operation);
  tm_correction_tell(correction, tell);
  tm_mutex_unlock(&correction->lock);
}

static const tm_correction_state *told_of(tm_correction *correction, const tm_correction_entry_key *key) {
  static const tm_correction_state nothing;
  const tm_correction_entry *entry = tm_correction_entry_find(correction, key);
  return entry == NULL ? &nothing : &entry->node.told;
}

tm_correction_estimate tm_correction_look(tm_correction *correction, const tm_correction_key *key) {
  tm_correction_entry_key keys[LEVELS];
  uint64_t samples[LEVELS];
  tm_belief belief = declared;
  levels_of(key, keys);
  tm_mutex_lock(&correction->lock);
  for (uint32_t i = 0; i < LEVELS; i++) {
    const tm_correction_state *state = told_of(correction, &keys[i]);
    belief = tm_belief_refine(belief, state, spreads[i]);
    samples[i] = state->samples;
  }
  tm_mutex_unlock(&correction->lock);
  const int64_t spread = (int64_t)tm_square_root(belief.variance) << 16;
  return (tm_correction_estimate){ .factor = belief.mean, .least_factor = belief.mean - spread * HOPE_HALVES / 2, .spread = spread,
                                   .samples = samples[2] != 0 ? samples[2] : samples[1] != 0 ? samples[1] : samples[0],
                                   .bucket_samples = samples[2], .device_samples = samples[0] };
}

tm_correction_honesty tm_correction_honesty_of(tm_correction *correction, uint32_t device) {
  const tm_correction_entry_key key = { TM_CORRECTION_DEVICE, device, 0 };
  tm_correction_honesty honesty = { 0, 0, 0 };
  tm_mutex_lock(&correction->lock);
  const tm_correction_entry *entry = tm_correction_entry_find(correction, &key);
  if (entry != NULL)
    honesty = (tm_correction_honesty){ entry->node.live.mean, (int64_t)tm_square_root(entry->node.live.variance) << 16,
                                       entry->node.live.samples };
  tm_mutex_unlock(&correction->lock);
  return honesty;
}

/* ---- what is paid once ---- */

#define SETUP_UNIT_NS UINT64_C(1000000)

void tm_correction_learn_setup(tm_correction *correction, uint32_t device, uint64_t key, uint64_t declared_ns, uint64_t measured_ns) {
  const tm_correction_entry_key at_device = { TM_CORRECTION_SETUP_DEVICE, device, 0 }, itself = { TM_CORRECTION_SETUP, device, key };
  if (measured_ns == 0) return;
  tm_mutex_lock(&correction->lock);
  tm_correction_entry *entry = declared_ns == 0 ? NULL : tm_correction_entry_add(correction, &at_device);
  bool tell = false;
  if (entry != NULL) {
    tm_correction_node_learn(&entry->node, tm_log2_of_ratio(measured_ns, declared_ns), 0);
    tell = tm_correction_entry_changed(correction, entry, entry->node.live.mean);
  }
  entry = tm_correction_entry_add(correction, &itself);
  if (entry != NULL) {
    const int64_t x = tm_log2_of_ratio(measured_ns, SETUP_UNIT_NS);
    tm_correction_node_learn(&entry->node, x, declared_ns == 0 ? x : tm_log2_of_ratio(declared_ns, SETUP_UNIT_NS));
    tell |= tm_correction_entry_changed(correction, entry, entry->node.live.mean);
  }
  tm_correction_tell(correction, tell);
  tm_mutex_unlock(&correction->lock);
}

uint64_t tm_correction_setup_ns(tm_correction *correction, uint32_t device, uint64_t key, uint64_t declared_ns) {
  const tm_correction_entry_key at_device = { TM_CORRECTION_SETUP_DEVICE, device, 0 }, itself = { TM_CORRECTION_SETUP, device, key };
  tm_mutex_lock(&correction->lock);
  const tm_correction_state *own = told_of(correction, &itself);
  const bool is_known = own->weight != 0;
  const int64_t log2 = is_known ? own->mean : tm_belief_refine(declared, told_of(correction, &at_device), TM_SPREAD_DEVICE).mean;
  tm_mutex_unlock(&correction->lock);
  return tm_log2_multiply(is_known ? SETUP_UNIT_NS : declared_ns, log2, TM_LARGEST_COST_NS);
}
