/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/correction.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

/* Prior spreads of ln(measured / declared): of a device, of a class given the device, of a bucket given the class; and the
   noise of one measurement.  A shrunk estimate is above + n*s^2 / (n*s^2 + noise^2) * (mean - above). */
#define DEVICE_SPREAD 1.0
#define CLASS_SPREAD 0.5
#define BUCKET_SPREAD 0.35
#define NOISE 0.2

#define LARGEST_WEIGHT 64u      /* older measurements fade */
#define CLIP 1.0                /* one measurement is believed to be off a settled mean by no more than this */
#define FIRST_CLIP 1.5          /* and off what was expected, while little was seen: a preempted run is no slow device */
#define SETTLED 3u
#define LARGE_RESIDUAL (2 * NOISE)
#define DRIFT_LENGTH 5          /* so many large residuals of one sign in a row: the device changed, start over */
#define WORTH_TELLING 0.22      /* a factor of 1.25 */
#define LARGEST_LN 14.0         /* a factor of a million: beyond it the declared number carries no information */

#define FIRST_BUCKETS 256u
#define MOST_BUCKETS 65536u

/* The prior for copies to a memory that is not the host's. */
#define COPY_LATENCY_NS UINT64_C(10000)
#define COPY_BYTES_PER_NS UINT64_C(6)

struct tm_correction_bucket {
  uint64_t key;
  uint32_t device;
  uint32_t used;
  tm_correction_node node;
};

tm_status tm_correction_init(tm_correction *correction, tm_memory *memory, uint32_t device_count) {
  memset(correction, 0, sizeof *correction);
  correction->memory = memory;
  correction->device_count = device_count;
  correction->bucket_capacity = FIRST_BUCKETS;
  correction->devices = tm_memory_calloc(memory, device_count, sizeof(tm_correction_node));
  correction->classes = tm_memory_calloc(memory, (uint64_t)device_count * TM_CLASS_COUNT, sizeof(tm_correction_node));
  correction->copies = tm_memory_calloc(memory, device_count, sizeof(tm_correction_node));
  correction->buckets = tm_memory_calloc(memory, correction->bucket_capacity, sizeof(tm_correction_bucket));
  atomic_init(&correction->generation, 1);
  const bool whole = correction->devices != NULL && correction->classes != NULL && correction->copies != NULL &&
                     correction->buckets != NULL && tm_mutex_init(&correction->lock) == TM_OK;
  if (whole) return TM_OK;
  correction->memory = NULL;
  tm_memory_free(memory, correction->devices, device_count * sizeof(tm_correction_node));
  tm_memory_free(memory, correction->classes, (uint64_t)device_count * TM_CLASS_COUNT * sizeof(tm_correction_node));
  tm_memory_free(memory, correction->copies, device_count * sizeof(tm_correction_node));
  tm_memory_free(memory, correction->buckets, FIRST_BUCKETS * sizeof(tm_correction_bucket));
  return TM_ERROR_NO_MEMORY;
}

void tm_correction_deinit(tm_correction *correction) {
  tm_memory *memory = correction->memory;
  if (memory == NULL) return;
  const uint64_t devices = correction->device_count;
  tm_memory_free(memory, correction->devices, devices * sizeof(tm_correction_node));
  tm_memory_free(memory, correction->classes, devices * TM_CLASS_COUNT * sizeof(tm_correction_node));
  tm_memory_free(memory, correction->copies, devices * sizeof(tm_correction_node));
  tm_memory_free(memory, correction->buckets, correction->bucket_capacity * sizeof(tm_correction_bucket));
  tm_mutex_deinit(&correction->lock);
}

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + UINT64_C(0x9e3779b97f4a7c15) + (hash << 6) + (hash >> 2);
  return hash * UINT64_C(0xff51afd7ed558ccd);
}

uint64_t tm_correction_bucket_of(const tm_operation *operation, const tm_work *work) {
  uint64_t hash = operation->op;
  const uint32_t count = operation->input_count + operation->output_count;
  for (uint32_t i = 0; i < count; i++) hash = mix(hash, operation->operands[i].format);
  hash = mix(hash, operation->flags & TM_OPERATION_ALL_CONTIGUOUS);
  const uint64_t size = tm_max_u64(1, tm_max_u64(work->flops, work->read_bytes + work->written_bytes));
  return mix(hash, 63u - (uint64_t)__builtin_clzll(size));
}

/* ---- nodes ---- */

static double shrink(double above, const tm_correction_node *node, double spread) {
  const double information = node->weight * spread * spread;
  return above + information / (information + NOISE * NOISE) * (node->mean - above);
}

static double clip(double value, double limit) { return fmax(-limit, fmin(limit, value)); }

/* Counts large residuals of one sign; true when there were so many in a row that the device must have changed. */
static bool has_drifted(tm_correction_node *node, double residual) {
  const int sign = residual > LARGE_RESIDUAL ? 1 : residual < -LARGE_RESIDUAL ? -1 : 0;
  node->drift = sign == 0 || (node->drift > 0) != (sign > 0) ? sign : node->drift + sign;
  return node->drift >= DRIFT_LENGTH || node->drift <= -DRIFT_LENGTH;
}

/* `above` is what the levels above expect.  Returns whether placements should be told. */
static bool learn(tm_correction_node *node, double x, double above) {
  if (node->weight == 0) node->mean = above;
  double residual = x - node->mean;
  if (node->weight >= SETTLED && has_drifted(node, residual)) {
    node->weight = 0;
    node->drift = 0;
    node->mean = x;
    residual = 0;
  }
  residual = clip(residual, node->weight < SETTLED ? FIRST_CLIP : CLIP);
  node->samples++;
  if (node->weight < LARGEST_WEIGHT) node->weight++;
  node->mean += residual / node->weight;
  if (fabs(node->mean - node->published) <= WORTH_TELLING) return false;
  node->published = node->mean;
  return true;
}

/* ---- buckets: open addressing, doubled at three quarters ---- */

static tm_correction_bucket *find(tm_correction_bucket *buckets, uint32_t capacity, uint32_t device, uint64_t key) {
  for (uint64_t i = mix(key, device);; i++) {
    tm_correction_bucket *bucket = &buckets[i & (capacity - 1)];
    if (bucket->used == 0 || (bucket->key == key && bucket->device == device)) return bucket;
  }
}

static bool grow(tm_correction *correction) {
  const uint32_t capacity = correction->bucket_capacity * 2;
  if (capacity > MOST_BUCKETS) return false;
  tm_correction_bucket *larger = tm_memory_calloc(correction->memory, capacity, sizeof *larger);
  if (larger == NULL) return false;
  for (uint32_t i = 0; i < correction->bucket_capacity; i++) {
    const tm_correction_bucket *old = &correction->buckets[i];
    if (old->used != 0) *find(larger, capacity, old->device, old->key) = *old;
  }
  tm_memory_free(correction->memory, correction->buckets, correction->bucket_capacity * sizeof *larger);
  correction->buckets = larger;
  correction->bucket_capacity = capacity;
  return true;
}

/* NULL when the table is full: then the class alone corrects. */
static tm_correction_bucket *find_or_add(tm_correction *correction, uint32_t device, uint64_t key) {
  tm_correction_bucket *bucket = find(correction->buckets, correction->bucket_capacity, device, key);
  if (bucket->used != 0) return bucket;
  if (correction->bucket_count >= correction->bucket_capacity / 4 * 3) {
    if (!grow(correction)) return NULL;
    bucket = find(correction->buckets, correction->bucket_capacity, device, key);
  }
  bucket->used = 1;
  bucket->key = key;
  bucket->device = device;
  correction->bucket_count++;
  return bucket;
}

static tm_correction_node *class_node(tm_correction *correction, const tm_correction_key *key) {
  return &correction->classes[(uint64_t)key->device * TM_CLASS_COUNT + (uint64_t)key->op_class];
}

static double ln_ratio(uint64_t measured_ns, uint64_t declared_ns) {
  const double x = log((double)tm_max_u64(1, measured_ns) / (double)tm_max_u64(1, declared_ns));
  return clip(x, LARGEST_LN);
}

void tm_correction_learn(tm_correction *correction, const tm_correction_key *key, uint64_t declared_ns, uint64_t measured_ns) {
  const double x = ln_ratio(measured_ns, declared_ns);
  tm_mutex_lock(&correction->lock);
  tm_correction_node *device = &correction->devices[key->device];
  tm_correction_node *class = class_node(correction, key);
  tm_correction_bucket *bucket = find_or_add(correction, key->device, key->bucket);
  double above = shrink(0, device, DEVICE_SPREAD);
  bool tell = learn(device, x, 0);
  tell |= learn(class, x, above);
  above = shrink(above, class, CLASS_SPREAD);
  if (bucket != NULL) tell |= learn(&bucket->node, x, above);
  tm_mutex_unlock(&correction->lock);
  if (tell) atomic_fetch_add(&correction->generation, 1);
}

double tm_correction_factor(tm_correction *correction, const tm_correction_key *key, uint64_t *out_samples) {
  tm_mutex_lock(&correction->lock);
  const tm_correction_node *device = &correction->devices[key->device];
  const tm_correction_node *class = class_node(correction, key);
  const tm_correction_bucket *bucket = find(correction->buckets, correction->bucket_capacity, key->device, key->bucket);
  double estimate = shrink(0, device, DEVICE_SPREAD);
  estimate = shrink(estimate, class, CLASS_SPREAD);
  uint64_t samples = class->samples != 0 ? class->samples : device->samples;
  if (bucket->used != 0) {
    estimate = shrink(estimate, &bucket->node, BUCKET_SPREAD);
    samples = bucket->node.samples;
  }
  tm_mutex_unlock(&correction->lock);
  *out_samples = samples;
  return exp(estimate);
}

static uint64_t prior_copy_ns(uint64_t bytes) { return COPY_LATENCY_NS + bytes / COPY_BYTES_PER_NS; }

void tm_correction_learn_copy(tm_correction *correction, uint32_t device, uint64_t bytes, uint64_t measured_ns) {
  tm_mutex_lock(&correction->lock);
  const bool tell = learn(&correction->copies[device], ln_ratio(measured_ns, prior_copy_ns(bytes)), 0);
  tm_mutex_unlock(&correction->lock);
  if (tell) atomic_fetch_add(&correction->generation, 1);
}

uint64_t tm_correction_copy_ns(tm_correction *correction, uint32_t device, uint64_t bytes) {
  tm_mutex_lock(&correction->lock);
  const double estimate = shrink(0, &correction->copies[device], DEVICE_SPREAD);
  tm_mutex_unlock(&correction->lock);
  return (uint64_t)((double)prior_copy_ns(bytes) * exp(estimate));
}
