/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention: a softmax over the keys' scores weighs the values.  A unit is one head of one token of y.  Scores, exponentials
 * and sums are f64, keys ascending; each result is rounded once.
 */
#include <math.h>

#include "base/checked.h"
#include "base/error.h"
#include "ops/op_check.h"
#include "ops/op_measure.h"
#include "ops/op_rows.h"
#include "ops/walk.h"
#include "tensor/shape.h"

#define Q 0u
#define K 1u
#define V 2u
#define LENGTH 3u
#define MASK 4u
#define NOT_LOADED UINT64_MAX

/* Addresses of one head of one token, and what the keys are read with. */
typedef struct head {
  tm_element_stream q, k, v, y, mask;
  const char       *q_address, *k_address, *v_address, *mask_address;    /* of key 0; no mask: NULL */
  char             *y_address;
  int64_t           k_step_bytes, v_step_bytes, mask_step_bytes;          /* from key to key */
  bool              is_bool_mask;
  uint64_t          key_count, dim, value_dim;
  double            scale;
  uint64_t          loaded;                                               /* the run of q in `run`, or NOT_LOADED */
  double            run[TM_RUN];
} head;

static const double *q_run(head *h, uint64_t at, uint64_t n) {
  if (h->loaded != at) tm_stream_load(&h->q, h->q_address + (int64_t)at * h->q.step_bytes, n, h->run);
  h->loaded = at;
  return h->run;
}

static double product_with_key(head *h, uint64_t key) {
  const char *address = h->k_address + (int64_t)key * h->k_step_bytes;
  double values[TM_RUN];
  double sum = 0;
  for (uint64_t at = 0, n; at < h->dim; at += n) {
    n = tm_min_u64(TM_RUN, h->dim - at);
    const double *q = q_run(h, at, n);
    tm_stream_load(&h->k, address + (int64_t)at * h->k.step_bytes, n, values);
    for (uint64_t i = 0; i < n; i++) sum += q[i] * values[i];
  }
  return sum;
}

/* False: the key takes no part. */
static bool score_of(head *h, uint64_t key, double *out_score) {
  double mask = 0;
  if (h->mask_address != NULL) {
    tm_stream_load(&h->mask, h->mask_address + (int64_t)key * h->mask_step_bytes, 1, &mask);
    if (h->is_bool_mask ? mask == 0 : mask == -(double)INFINITY) return false;
    if (h->is_bool_mask) mask = 0;
  }
  *out_score = product_with_key(h, key) * h->scale + mask;
  return true;
}

/* NaN is passed over here: it comes back through its exponential.  False: there is no key. */
static bool largest_score(head *h, double *out_largest) {
  bool any = false;
  double score;
  *out_largest = -(double)INFINITY;
  for (uint64_t key = 0; key < h->key_count; key++) {
    if (!score_of(h, key, &score)) continue;
    any = true;
    if (score > *out_largest) *out_largest = score;
  }
  return any;
}

/* Elements [at, at + n) of y. */
static void weigh_values(head *h, double largest, uint64_t at, uint64_t n) {
  double sums[TM_RUN] = { 0 }, values[TM_RUN];
  double total = 0, score;
  for (uint64_t key = 0; key < h->key_count; key++) {
    if (!score_of(h, key, &score)) continue;
    const double weight = exp(score - largest);
    const char *address = h->v_address + (int64_t)key * h->v_step_bytes + (int64_t)at * h->v.step_bytes;
    total += weight;
    tm_stream_load(&h->v, address, n, values);
    for (uint64_t i = 0; i < n; i++) sums[i] += weight * values[i];
  }
  for (uint64_t i = 0; i < n; i++) sums[i] /= total;
  tm_stream_store(&h->y, sums, n, h->y_address + (int64_t)at * h->y.step_bytes);
}

static void attend(head *h) {
  static const double zeros[TM_RUN] = { 0 };
  double largest;
  const bool any = largest_score(h, &largest);
  for (uint64_t at = 0, n; at < h->value_dim; at += n) {
    n = tm_min_u64(TM_RUN, h->value_dim - at);
    if (any) weigh_values(h, largest, at, n);
    else tm_stream_store(&h->y, zeros, n, h->y_address + (int64_t)at * h->y.step_bytes);
  }
}

/* ---- where things lie ---- */

/* Axes counted from the last: tokens, heads and dim of q and y; keys, heads and dim of k and v. */
static uint64_t extent(const tm_operand *x, uint32_t from_last) { return x->dims[x->rank - 1 - from_last]; }
static int64_t stride(const tm_operand *x, uint32_t from_last) { return x->strides_bytes[x->rank - 1 - from_last]; }

static uint64_t batch_count(const tm_operation *operation) {
  const tm_operand *q = &operation->operands[Q];
  return q->rank == 4 ? q->dims[0] : 1;
}

static int64_t batch_bytes(const tm_operand *x, uint64_t batch) { return x->rank == 4 ? (int64_t)batch * x->strides_bytes[0] : 0; }

static uint64_t length_of(const tm_operation *operation, const void *pointer) {
  const tm_element_stream stream = tm_stream_along(&operation->operands[LENGTH], 0);
  const uint64_t capacity = extent(&operation->operands[K], 2);
  int64_t length;
  tm_stream_load_integer(&stream, pointer, 1, &length);
  return length < 0 ? 0 : tm_min_u64((uint64_t)length, capacity);
}

/* Keys that token `token` of `tokens` may see. */
static uint64_t keys_for(const tm_attention_attributes *attributes, uint64_t length, uint64_t tokens, uint64_t token) {
  const uint64_t after = attributes->causal ? tokens - 1 - token : 0;
  return after < length ? length - after : 0;
}

static double scale_of(const tm_operation *operation) {
  const tm_attention_attributes *attributes = operation->attributes;
  const uint64_t dim = extent(&operation->operands[Q], 0);
  if (attributes->scale != 0) return attributes->scale;
  return dim == 0 ? 1 : 1 / sqrt((double)dim);
}

static head head_of_operands(const tm_operation *operation) {
  const tm_operand *q = &operation->operands[Q], *k = &operation->operands[K], *v = &operation->operands[V];
  const tm_operand *y = tm_output_of(operation);
  head h = { .dim = extent(q, 0), .value_dim = extent(v, 0), .scale = scale_of(operation) };
  h.q = tm_stream_along(q, q->rank - 1);
  h.k = tm_stream_along(k, k->rank - 1);
  h.v = tm_stream_along(v, v->rank - 1);
  h.y = tm_stream_along(y, y->rank - 1);
  h.k_step_bytes = stride(k, 2);
  h.v_step_bytes = stride(v, 2);
  if (operation->input_count <= MASK) return h;
  const tm_operand *mask = &operation->operands[MASK];
  h.mask = tm_stream_along(mask, TM_MAX_RANK);
  h.mask_step_bytes = extent(mask, 0) == 1 ? 0 : stride(mask, 0);
  h.is_bool_mask = mask->format == TM_FORMAT_BOOL;
  return h;
}

/* Along one of the mask's axes: an extent of 1 stands for all. */
static int64_t mask_bytes(const tm_operand *mask, uint32_t from_last, uint64_t index) {
  return mask->rank > from_last && extent(mask, from_last) != 1 ? (int64_t)index * stride(mask, from_last) : 0;
}

static void place(head *h, const tm_operation *operation, void *const *pointers, uint64_t unit) {
  const tm_operand *operands = operation->operands, *y = tm_output_of(operation);
  const uint64_t heads = extent(y, 1), tokens = extent(y, 2);
  const uint64_t own = unit % heads, token = unit / heads % tokens, batch = unit / heads / tokens;
  const uint64_t shared = own / (heads / extent(&operands[K], 1));
  h->q_address = (const char *)pointers[Q] + batch_bytes(&operands[Q], batch) + (int64_t)token * stride(&operands[Q], 2) +
                 (int64_t)own * stride(&operands[Q], 1);
  h->k_address = (const char *)pointers[K] + batch_bytes(&operands[K], batch) + (int64_t)shared * stride(&operands[K], 1);
  h->v_address = (const char *)pointers[V] + batch_bytes(&operands[V], batch) + (int64_t)shared * stride(&operands[V], 1);
  h->y_address = (char *)pointers[operation->input_count] + batch_bytes(y, batch) + (int64_t)token * stride(y, 2) +
                 (int64_t)own * stride(y, 1);
  h->key_count = keys_for(operation->attributes, length_of(operation, pointers[LENGTH]), tokens, token);
  h->loaded = NOT_LOADED;
  if (operation->input_count <= MASK) return;
  const tm_operand *mask = &operands[MASK];
  h->mask_address = (const char *)pointers[MASK] + mask_bytes(mask, 1, token) + mask_bytes(mask, 2, own) + mask_bytes(mask, 3, batch);
}

static void reference(const tm_operation *operation, void *const *pointers, uint64_t begin, uint64_t end) {
  head h = head_of_operands(operation);
  for (uint64_t unit = begin; unit < end; unit++) {
    place(&h, operation, pointers, unit);
    attend(&h);
  }
}

/* ---- shapes ---- */

static tm_status require_ranks(const tm_operation *operation, tm_error *error) {
  static const char *const names[] = { "q", "k", "v" };
  const uint32_t rank = operation->operands[Q].rank;
  if (rank != 3 && rank != 4)
    return tm_fail(error, TM_ERROR_ARGUMENT, "attention: q has rank %u, expected 3: tokens, heads, dim; or 4: a batch before them",
                   (unsigned)rank);
  for (uint32_t i = K; i <= V; i++)
    if (operation->operands[i].rank != rank)
      return tm_fail(error, TM_ERROR_ARGUMENT, "attention: %s has rank %u, expected %u as q has", names[i],
                     (unsigned)operation->operands[i].rank, (unsigned)rank);
  return TM_OK;
}

static tm_status require_cache(const tm_operation *operation, tm_error *error) {
  const tm_operand *q = &operation->operands[Q], *k = &operation->operands[K], *v = &operation->operands[V];
  tm_operand expected = *k;
  expected.dims[q->rank - 1] = extent(q, 0);
  if (q->rank == 4) expected.dims[0] = q->dims[0];
  TM_TRY(tm_require_dims(operation, K, k->rank, expected.dims, error));
  expected.dims[q->rank - 1] = extent(v, 0);
  TM_TRY(tm_require_dims(operation, V, v->rank, expected.dims, error));
  const uint64_t heads = extent(q, 1), shared = extent(k, 1);
  if (shared == 0 ? heads == 0 : heads % shared == 0) return TM_OK;
  return tm_fail(error, TM_ERROR_ARGUMENT, "attention: q has %llu heads, expected a multiple of %llu, those of k and v",
                 (unsigned long long)heads, (unsigned long long)shared);
}

static tm_status require_mask(const tm_operation *operation, tm_error *error) {
  const tm_operand *q = &operation->operands[Q], *mask = &operation->operands[MASK];
  const uint64_t axes[] = { batch_count(operation), extent(q, 1), extent(q, 2), extent(&operation->operands[K], 2) };
  TM_TRY(tm_require_format(operation, MASK, TM_SET_FLOAT | TM_SET_BOOL, error));
  bool fits = mask->rank >= 2 && mask->rank <= q->rank;
  for (uint32_t i = 0; fits && i < mask->rank; i++) fits = extent(mask, i) == 1 || extent(mask, i) == axes[3 - i];
  if (fits) return TM_OK;
  tm_operand whole = { .rank = q->rank };
  for (uint32_t i = 0; i < q->rank; i++) whole.dims[i] = axes[4 - q->rank + i];
  char found[96], expected[96];
  tm_format_dims(mask, found, sizeof found);
  tm_format_dims(&whole, expected, sizeof expected);
  return tm_fail(error, TM_ERROR_ARGUMENT, "attention: mask has shape %s, expected at least two of the last axes of %s, each whole or 1",
                 found, expected);
}

static tm_status infer(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  const tm_attention_attributes *attributes = operation->attributes;
  const tm_operand *q = &operation->operands[Q];
  TM_TRY(tm_require_switch(operation, "causal", attributes->causal, error));
  TM_TRY(tm_require_reserved(operation, attributes->reserved, error));
  if (!isfinite(attributes->scale))
    return tm_fail(error, TM_ERROR_ARGUMENT, "attention: scale is %g, expected a finite number, or 0 for 1 / sqrt(dim)",
                   attributes->scale);
  for (uint32_t i = Q; i <= V; i++) TM_TRY(tm_require_format(operation, i, TM_SET_FLOAT, error));
  TM_TRY(require_ranks(operation, error));
  TM_TRY(require_cache(operation, error));
  TM_TRY(tm_require_index_format(operation, LENGTH, error));
  TM_TRY(tm_require_dims(operation, LENGTH, 0, NULL, error));
  if (operation->input_count > MASK) TM_TRY(require_mask(operation, error));
  TM_TRY(tm_choose_format(operation, q->format, TM_SET_FLOAT, out_outputs, error));
  uint64_t dims[TM_MAX_RANK];
  for (uint32_t i = 0; i < q->rank; i++) dims[i] = q->dims[i];
  dims[q->rank - 1] = extent(&operation->operands[V], 0);
  return tm_make_output(operation, q->rank, dims, out_outputs, error);
}

static uint64_t units(const tm_operation *operation) {
  const tm_operand *y = tm_output_of(operation);
  return y->element_count == 0 ? 0 : y->element_count / extent(y, 0);
}

/* As if all keys up to the capacity were there: how many there are is known only when it runs. */
static void work(const tm_operation *operation, tm_work *out_work) {
  const tm_operand *k = &operation->operands[K];
  uint64_t each = 0, sum = 0;
  if (!tm_checked_add(extent(k, 0), extent(&operation->operands[V], 0), &sum) ||
      !tm_checked_add(tm_saturating_mul(sum, 2), 16, &each))
    each = UINT64_MAX;
  tm_work_of(operation, tm_saturating_mul(tm_saturating_mul(units(operation), extent(k, 2)), each), out_work);
}

/* A batch stands for itself; so do tokens that see the same keys. */
static uint32_t splittable(const tm_operation *operation) {
  const tm_attention_attributes *attributes = operation->attributes;
  const uint32_t batch = operation->operands[Q].rank - 3;
  return (batch != 0 ? 1u : 0u) | (attributes->causal ? 0u : 1u << batch);
}

const tm_op_row tm_op_rows_attention[] = {
    {.op = TM_OP_ATTENTION,
     .version = 1,
     .name = "attention",
     .summary = "values weighed by a softmax over their keys' products with q; heads may share keys; y: q's format or any float",
     .op_class = TM_CLASS_ATTENTION,
     .input_min = 4,
     .input_max = 5,
     .output_count = 1,
     .attribute_bytes = sizeof(tm_attention_attributes),
     .default_numerics = TM_NUMERICS_N2,
     .combine = TM_COMBINE_CONCATENATE,
     .pad_value = (double)NAN,
     .infer = infer,
     .check = tm_check_outputs,
     .work = work,
     .splittable = splittable,
     .units = units,
     .reference = reference,
     .input_names = {"q", "k", "v", "length", "mask"}},
};
TM_OP_ROWS_COUNT(attention);
