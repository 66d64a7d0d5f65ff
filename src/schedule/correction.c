/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/correction.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

/* Prior spreads of ln(measured / declared): of a device, of a class given the device, of a bucket given the class; and the
   noise of one measurement.  With n measurements of mean m and w = n*s^2 / (n*s^2 + noise^2) a level's estimate is
   above + w * (m - above), and its variance (1-w)*s^2 + (1-w)^2 * (variance above). */
#define DEVICE_SPREAD 2.0
#define CLASS_SPREAD 0.5
#define BUCKET_SPREAD 0.35
#define NOISE 0.2
#define HOPE 2.5                /* standard deviations that a guess may be too pessimistic */

#define LARGEST_WEIGHT 64u      /* older measurements fade */
#define CLIP 1.0                /* one measurement is believed to be off a settled mean by no more than this */
#define FIRST_CLIP 1.5          /* and off what was expected, while little was seen: a preempted run is no slow device */
#define SETTLED 3u
#define LARGE_RESIDUAL (2 * NOISE)
#define DRIFT_LENGTH 5          /* so many large residuals of one sign in a row: the device changed, start over */
#define WORTH_TELLING 0.1       /* a tenth: what is chosen and what is explained must not drift apart further */
#define LARGEST_LN 14.0         /* a factor of a million: beyond it the declared number carries no information */

#define FIRST_BUCKETS 256u
#define MOST_BUCKETS 65536u

/* The prior for copies to a memory that is not the host's. */
#define COPY_LATENCY_NS UINT64_C(10000)
#define LONGEST_COPY_NS 1e15
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

/* What a level and those above it say. */
typedef struct belief {
  double mean;
  double variance;
} belief;

static belief refine(belief above, const tm_correction_node *node, double spread) {
  const double information = node->weight * spread * spread;
  const double weight = information / (information + NOISE * NOISE);
  return (belief){ .mean = above.mean + weight * (node->mean - above.mean),
                   .variance = (1 - weight) * spread * spread + (1 - weight) * (1 - weight) * above.variance };
}

static double clip(double value, double limit) { return fmax(-limit, fmin(limit, value)); }

/* Counts large residuals of one sign; true when there were so many in a row that the device must have changed. */
static bool has_drifted(tm_correction_node *node, double residual) {
  const int sign = residual > LARGE_RESIDUAL ? 1 : residual < -LARGE_RESIDUAL ? -1 : 0;
  node->drift = sign == 0 || (node->drift > 0) != (sign > 0) ? sign : node->drift + sign;
  return node->drift >= DRIFT_LENGTH || node->drift <= -DRIFT_LENGTH;
}

/* `above` is what the levels above expect. */
static void learn(tm_correction_node *node, double x, double above) {
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
}

/* Whether placements should be told of the estimate. */
static bool is_news(tm_correction_node *node, double estimate) {
  if (fabs(estimate - node->published) <= WORTH_TELLING) return false;
  node->published = estimate;
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

static const belief declared = { 0, 0 };

/* Under the lock.  Each level learns against what those above expected before this measurement. */
static bool learn_levels(tm_correction_node *const levels[3], double x) {
  static const double spreads[3] = { DEVICE_SPREAD, CLASS_SPREAD, BUCKET_SPREAD };
  belief before = declared, after = declared;
  bool tell = false;
  for (int i = 0; i < 3 && levels[i] != NULL; i++) {
    const double expected = before.mean;
    before = refine(before, levels[i], spreads[i]);
    learn(levels[i], x, expected);
    after = refine(after, levels[i], spreads[i]);
    tell |= is_news(levels[i], after.mean);
  }
  return tell;
}

void tm_correction_learn(tm_correction *correction, const tm_correction_key *key, uint64_t declared_ns, uint64_t measured_ns) {
  const double x = ln_ratio(measured_ns, declared_ns);
  tm_mutex_lock(&correction->lock);
  tm_correction_bucket *bucket = find_or_add(correction, key->device, key->bucket);
  tm_correction_node *const levels[3] = { &correction->devices[key->device], class_node(correction, key),
                                          bucket == NULL ? NULL : &bucket->node };
  const bool tell = learn_levels(levels, x);
  tm_mutex_unlock(&correction->lock);
  if (tell) atomic_fetch_add(&correction->generation, 1);
}

tm_correction_estimate tm_correction_look(tm_correction *correction, const tm_correction_key *key) {
  tm_mutex_lock(&correction->lock);
  const tm_correction_node *device = &correction->devices[key->device];
  const tm_correction_node *class = class_node(correction, key);
  const tm_correction_bucket *bucket = find(correction->buckets, correction->bucket_capacity, key->device, key->bucket);
  const belief at_class = refine(refine(declared, device, DEVICE_SPREAD), class, CLASS_SPREAD);
  const belief estimate = refine(at_class, &bucket->node, BUCKET_SPREAD);
  tm_correction_estimate result = { .samples = class->samples != 0 ? class->samples : device->samples,
                                    .bucket_samples = bucket->node.samples };
  if (result.bucket_samples != 0) result.samples = result.bucket_samples;
  tm_mutex_unlock(&correction->lock);
  result.factor = exp(estimate.mean);
  result.least_factor = exp(estimate.mean - HOPE * sqrt(estimate.variance));
  return result;
}

static uint64_t prior_copy_ns(uint64_t bytes) { return COPY_LATENCY_NS + bytes / COPY_BYTES_PER_NS; }

void tm_correction_learn_copy(tm_correction *correction, uint32_t device, uint64_t bytes, uint64_t measured_ns) {
  tm_mutex_lock(&correction->lock);
  tm_correction_node *node = &correction->copies[device];
  learn(node, ln_ratio(measured_ns, prior_copy_ns(bytes)), 0);
  const bool tell = is_news(node, refine(declared, node, DEVICE_SPREAD).mean);
  tm_mutex_unlock(&correction->lock);
  if (tell) atomic_fetch_add(&correction->generation, 1);
}

uint64_t tm_correction_copy_ns(tm_correction *correction, uint32_t device, uint64_t bytes) {
  tm_mutex_lock(&correction->lock);
  const belief estimate = refine(declared, &correction->copies[device], DEVICE_SPREAD);
  tm_mutex_unlock(&correction->lock);
  return (uint64_t)fmin((double)prior_copy_ns(bytes) * exp(estimate.mean), LONGEST_COPY_NS);
}
