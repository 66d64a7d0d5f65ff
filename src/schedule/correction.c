/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/correction.h"

#include <string.h>

#include "base/checked.h"
#include "base/log2_fixed.h"
#include "plugin/answer.h"
#include "schedule/correction_table.h"

/* One nat: more, and a declaration says nothing. */
#define UNTRUSTED_VARIANCE (UINT64_C(8525) << TM_VARIANCE_BITS)
#define UNTRUSTED_SAMPLES 8u
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
static const tm_belief declared = { 0, 0 };

static void levels_of(const tm_correction_key *key, tm_correction_entry_key out_keys[LEVELS]) {
  out_keys[0] = (tm_correction_entry_key){ TM_CORRECTION_DEVICE, key->device, 0 };
  out_keys[1] = (tm_correction_entry_key){ TM_CORRECTION_CLASS, key->device, (uint64_t)key->op_class };
  out_keys[2] = (tm_correction_entry_key){ TM_CORRECTION_BUCKET, key->device, key->bucket };
}

typedef const tm_correction_state *(*state_fn)(const tm_correction_entry *entry);
static const tm_correction_state *live_of(const tm_correction_entry *entry) { return &entry->node.live; }
static const tm_correction_state *told_of(const tm_correction_entry *entry) { return &entry->node.told; }

/* What the device's other classes tell of this one.  The device's own entry does not: it knows how often, not in what. */
static tm_class_prior prior_of(tm_correction *correction, const tm_correction_key *key, state_fn state_of) {
  const tm_correction_state *others[TM_CLASS_COUNT];
  uint32_t count = 0;
  for (uint64_t i = 0; i < TM_CLASS_COUNT; i++) {
    const tm_correction_entry_key other = { TM_CORRECTION_CLASS, key->device, i };
    const tm_correction_entry *entry = i == (uint64_t)key->op_class ? NULL : tm_correction_entry_find(correction, &other);
    if (entry != NULL) others[count++] = state_of(entry);
  }
  return tm_class_prior_of(others, count);
}

static tm_correction_entry_key work_of(const tm_correction_key *key) {
  return (tm_correction_entry_key){ TM_CORRECTION_WORK, key->device, (uint64_t)key->op_class };
}

/* What the device's rate in this class makes of the core's count of work, as a factor of what was declared. */
static tm_belief by_work(const tm_correction_state *state, const tm_correction_key *key) {
  tm_belief belief = tm_belief_refine(declared, state, TM_SPREAD_DEVICE);
  belief.mean += key->work_factor;
  belief.variance += (uint64_t)TM_SPREAD_CLASS << TM_VARIANCE_BITS;     /* one operation and size beside another */
  return belief;
}

/* ---- the same operation at another size ---- */

#define MOST_STEPS 4            /* doublings of the work that one size is told from another over */

/* The measured bucket of this operation and formats that is nearest in size; NULL: none is near. */
static const tm_correction_entry *find_neighbour(tm_correction *correction, const tm_correction_key *key, uint32_t *out_steps) {
  const uint64_t operation = key->bucket & ~UINT64_C(0xff);
  const int32_t size = (int32_t)(key->bucket & 0xff);
  for (int32_t steps = 1; steps <= MOST_STEPS; steps++)
    for (int32_t side = -steps; side <= steps; side += 2 * steps) {
      if (size + side < 0 || size + side > 63) continue;
      const tm_correction_entry_key near = { TM_CORRECTION_BUCKET, key->device, operation | (uint64_t)(size + side) };
      const tm_correction_entry *entry = tm_correction_entry_find(correction, &near);
      if (entry == NULL || entry->node.told.weight == 0 || entry->told_work_factor == TM_NO_WORK_FACTOR) continue;
      *out_steps = (uint32_t)steps;
      return entry;
    }
  return NULL;
}

/* What that size's rate makes of the core's count of this one's work. */
static tm_belief by_neighbour(const tm_correction_entry *neighbour, uint32_t steps, const tm_correction_key *key) {
  const uint64_t spread = TM_SPREAD_BUCKET + (uint64_t)steps * TM_SPREAD_BUCKET / 4;
  return (tm_belief){ neighbour->node.told.mean - neighbour->told_work_factor + key->work_factor, spread << TM_VARIANCE_BITS };
}

static int64_t distance(int64_t a, int64_t b) { return a > b ? a - b : b - a; }

/* A measurement that is far from what the levels above expect is no outlier if it is what the work comes to. */
static int64_t nearer(tm_correction *correction, const tm_correction_key *key, int64_t x, int64_t expected) {
  const tm_correction_entry_key work = work_of(key);
  const tm_correction_entry *entry = tm_correction_entry_find(correction, &work);
  if (entry == NULL || entry->node.live.weight == 0) return expected;
  const int64_t other = by_work(&entry->node.live, key).mean;
  return distance(x, other) < distance(x, expected) ? other : expected;
}

static bool is_surprised(tm_correction *correction, const tm_correction_key *key, int64_t x) {
  const tm_correction_entry_key bucket = { TM_CORRECTION_BUCKET, key->device, key->bucket };
  const tm_correction_entry *entry = tm_correction_entry_find(correction, &bucket);
  return entry != NULL && tm_correction_state_is_surprised(&entry->node.live, x);
}

/* How far the entry's measurements may be from what is above it. */
static uint32_t spread_at(uint32_t level, const tm_class_prior *prior) {
  return level == 0 ? TM_SPREAD_DEVICE : level == 1 ? prior->spread : TM_SPREAD_BUCKET;
}

/* Each level learns against what those above expected before this measurement.  What is measured varies with what runs, so
   only a bucket can tell that the device changed. */
static bool learn_levels(tm_correction *correction, const tm_correction_key *key, int64_t x, bool is_surprise) {
  tm_correction_entry_key keys[LEVELS];
  const tm_class_prior prior = prior_of(correction, key, live_of);
  tm_belief before = declared, after = declared;
  bool tell = false;
  levels_of(key, keys);
  for (uint32_t i = 0; i < LEVELS; i++) {
    tm_correction_entry *entry = tm_correction_entry_add(correction, &keys[i]);
    if (entry == NULL) break;
    if (i == 1) before = after = prior.belief;
    const uint32_t spread = spread_at(i, &prior);
    const int64_t expected = i + 1 < LEVELS ? before.mean : nearer(correction, key, x, before.mean);
    before = tm_belief_refine(before, &entry->node.live, spread);
    tm_correction_node_learn(&entry->node, x, expected, is_surprise || i + 1 == LEVELS);
    after = tm_belief_refine(after, &entry->node.live, spread);
    tell |= tm_correction_entry_changed(correction, entry, after.mean);
  }
  return tell;
}

/* Nothing is known before the first; and nothing is told of it that is not told anyway. */
static void learn_work(tm_correction *correction, const tm_correction_key *key, int64_t x, bool is_surprise) {
  const tm_correction_entry_key work = work_of(key);
  tm_correction_entry *entry = tm_correction_entry_add(correction, &work);
  if (entry == NULL) return;
  tm_correction_node_learn(&entry->node, x, x, is_surprise);
  (void)tm_correction_entry_changed(correction, entry, entry->node.live.mean);
}

static void name_bucket(tm_correction *correction, const tm_correction_key *key, const tm_operation *operation) {
  const tm_correction_entry_key bucket = { TM_CORRECTION_BUCKET, key->device, key->bucket };
  tm_correction_entry *entry = tm_correction_entry_find(correction, &bucket);
  if (entry == NULL || entry->work.op != TM_OP_NONE) return;
  entry->work = tm_work_kind_of(operation);
  entry->size_log2 = (uint32_t)(key->bucket & 0xff);
}

static void note_work(tm_correction *correction, const tm_correction_key *key) {
  const tm_correction_entry_key bucket = { TM_CORRECTION_BUCKET, key->device, key->bucket };
  tm_correction_entry *entry = tm_correction_entry_find(correction, &bucket);
  if (entry != NULL) entry->work_factor = key->work_factor;
}

void tm_correction_learn(tm_correction *correction, const tm_correction_key *key, const tm_operation *operation,
                         uint64_t declared_ns, uint64_t measured_ns) {
  if (measured_ns == 0) return;
  tm_mutex_lock(&correction->lock);
  const int64_t x = tm_log2_of_ratio(measured_ns, declared_ns);
  const bool is_surprise = is_surprised(correction, key, x);
  const bool tell = learn_levels(correction, key, x, is_surprise);
  learn_work(correction, key, x - key->work_factor, is_surprise);
  note_work(correction, key);
  if (operation != NULL) name_bucket(correction, key, operation);
  tm_correction_tell(correction, tell);
  tm_mutex_unlock(&correction->lock);
}

static const tm_correction_state *told_at(tm_correction *correction, const tm_correction_entry_key *key) {
  static const tm_correction_state nothing;
  const tm_correction_entry *entry = tm_correction_entry_find(correction, key);
  return entry == NULL ? &nothing : told_of(entry);
}

static int64_t spread_of(uint64_t variance) { return (int64_t)tm_square_root(variance) << 16; }
static int64_t hope_of(int64_t mean, int64_t spread) { return mean - spread * HOPE_HALVES / 2; }

/* Its declarations are off by ever other factors, so that none of them says anything of the next. */
static bool is_beyond_measure(const tm_correction_state *device) {
  return device->samples >= UNTRUSTED_SAMPLES && device->variance > UNTRUSTED_VARIANCE;
}

/* What the work comes to at rates that were measured; false: there are none. */
typedef struct work_view {
  tm_belief belief;
  bool      is_there;
  bool      is_near;            /* measured with this very operation, at another size */
} work_view;

static work_view view_work(tm_correction *correction, const tm_correction_key *key) {
  const tm_correction_entry_key class_key = work_of(key);
  const tm_correction_state *rate = told_at(correction, &class_key);
  uint32_t steps = 0;
  const tm_correction_entry *neighbour = find_neighbour(correction, key, &steps);
  if (neighbour != NULL) return (work_view){ by_neighbour(neighbour, steps, key), true, true };
  return (work_view){ by_work(rate, key), rate->weight != 0, false };
}

/* What little was measured is drawn towards the explanation that foresaw it, rather than to the one that is usually right. */
static tm_belief choose_prior(const tm_belief *levels, const work_view *work, const tm_correction_state *bucket) {
  if (bucket->samples == 0 || !work->is_there) return *levels;
  return distance(bucket->mean, work->belief.mean) < distance(bucket->mean, levels->mean) ? work->belief : *levels;
}

/* Of a try: one size tells more of another than devices' rates in a class do of its operations. */
static int64_t expect_of_try(const tm_belief *levels, const work_view *work) {
  if (!work->is_near) return (levels->mean + work->belief.mean) / 2;
  return levels->mean / 4 + work->belief.mean / 4 * 3;
}

tm_correction_estimate tm_correction_look(tm_correction *correction, const tm_correction_key *key) {
  tm_correction_entry_key keys[LEVELS];
  uint64_t samples[LEVELS];
  levels_of(key, keys);
  tm_mutex_lock(&correction->lock);
  const work_view work = view_work(correction, key);
  const tm_class_prior prior = prior_of(correction, key, told_of);
  tm_belief belief = prior.belief;
  for (uint32_t i = 0; i < LEVELS; i++) {
    const tm_correction_state *state = told_at(correction, &keys[i]);
    if (i + 1 == LEVELS) belief = choose_prior(&belief, &work, state);
    if (i != 0) belief = tm_belief_refine(belief, state, spread_at(i, &prior));
    samples[i] = state->samples;
  }
  const bool has_work = samples[2] == 0 && work.is_there;
  if (has_work && is_beyond_measure(told_at(correction, &keys[0]))) belief = work.belief;
  tm_mutex_unlock(&correction->lock);
  const int64_t spread = spread_of(belief.variance);
  const int64_t hope = hope_of(belief.mean, spread), other_hope = hope_of(work.belief.mean, spread_of(work.belief.variance));
  const bool is_hopeful = has_work && other_hope < hope;
  return (tm_correction_estimate){ .factor = belief.mean, .least_factor = is_hopeful ? other_hope : hope,
                                   .try_factor = is_hopeful ? expect_of_try(&belief, &work) : belief.mean, .spread = spread,
                                   .samples = samples[2] != 0 ? samples[2] : samples[1] != 0 ? samples[1] : samples[0],
                                   .bucket_samples = samples[2], .device_samples = samples[0] };
}

tm_correction_honesty tm_correction_honesty_of(tm_correction *correction, uint32_t device) {
  const tm_correction_entry_key key = { TM_CORRECTION_DEVICE, device, 0 };
  tm_correction_honesty honesty = { 0, 0, 0 };
  tm_mutex_lock(&correction->lock);
  const tm_correction_entry *entry = tm_correction_entry_find(correction, &key);
  if (entry != NULL)
    honesty = (tm_correction_honesty){ entry->node.live.mean, spread_of(entry->node.live.variance), entry->node.live.samples };
  tm_mutex_unlock(&correction->lock);
  return honesty;
}

/* ---- what is paid once ---- */

void tm_correction_learn_setup(tm_correction *correction, uint32_t device, uint64_t key, uint64_t declared_ns, uint64_t measured_ns,
                               uint64_t shortest_ns) {
  const tm_correction_entry_key at_device = { TM_CORRECTION_SETUP_DEVICE, device, 0 }, itself = { TM_CORRECTION_SETUP, device, key };
  if (measured_ns == 0) return;
  tm_mutex_lock(&correction->lock);
  tm_correction_entry *entry = declared_ns == 0 ? NULL : tm_correction_entry_add(correction, &at_device);
  bool tell = false;
  if (entry != NULL) {
    tm_correction_node_learn(&entry->node, tm_log2_of_ratio(measured_ns, declared_ns), 0, false);
    tell = tm_correction_entry_changed(correction, entry, entry->node.live.mean);
  }
  const bool is_long = declared_ns != 0 || measured_ns >= shortest_ns;
  entry = is_long ? tm_correction_entry_add(correction, &itself) : tm_correction_entry_find(correction, &itself);
  if (entry != NULL) {
    const int64_t x = tm_log2_of_ratio(measured_ns, TM_SETUP_UNIT_NS);
    tm_correction_node_learn(&entry->node, x, declared_ns == 0 ? x : tm_log2_of_ratio(declared_ns, TM_SETUP_UNIT_NS), true);
    tell |= tm_correction_entry_changed(correction, entry, entry->node.live.mean);
  }
  tm_correction_tell(correction, tell);
  tm_mutex_unlock(&correction->lock);
}

uint64_t tm_correction_setup_ns(tm_correction *correction, uint32_t device, uint64_t key, uint64_t declared_ns) {
  const tm_correction_entry_key at_device = { TM_CORRECTION_SETUP_DEVICE, device, 0 }, itself = { TM_CORRECTION_SETUP, device, key };
  tm_mutex_lock(&correction->lock);
  const tm_correction_state *own = told_at(correction, &itself);
  const bool is_known = own->samples >= (declared_ns == 0 ? 2 : 1);
  const int64_t log2 = is_known ? own->mean : tm_belief_refine(declared, told_at(correction, &at_device), TM_SPREAD_DEVICE).mean;
  tm_mutex_unlock(&correction->lock);
  return tm_log2_multiply(is_known ? TM_SETUP_UNIT_NS : declared_ns, log2, TM_LARGEST_COST_NS);
}
