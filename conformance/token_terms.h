/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_terms.h - the terms that class N2 is measured with, for operations over tokens (their text in types.h).  All
 * operands are dense, floats are f64, integers i64, and a mask is a float.
 */
#ifndef CONFORMANCE_TOKEN_TERMS_H
#define CONFORMANCE_TOKEN_TERMS_H

#include <math.h>
#include <stdint.h>

#include "tensormorph/plugin.h"

#define ATTENTION_LARGEST_SCORE 4096.0

/* |a| + |b| of the pair; an element that does not turn is its own only term. */
static inline void rope_terms(const tm_operation *operation, const double *x, double *out_terms) {
  const tm_rope_attributes *attributes = operation->attributes;
  const tm_operand *like = &operation->operands[0];
  const uint64_t dim = like->dims[like->rank - 1];
  const uint64_t count = attributes->rotary_dims != 0 ? attributes->rotary_dims : dim;
  for (uint64_t i = 0; i < like->element_count; i++) {
    const uint64_t at = i % dim, half = count / 2;
    const uint64_t other = attributes->layout == TM_ROPE_PAIRS ? at ^ 1 : at < half ? at + half : at - half;
    out_terms[i] = fabs(x[i]) + (at < count ? fabs(x[i - at + other]) : 0);
  }
}

/* One head of one token. */
typedef struct attention_head {
  const double *q, *k, *v, *mask;       /* of key 0; no mask: NULL */
  uint64_t      dim, width, key_count, key_step, value_step, mask_step;
  double        scale;
} attention_head;

/* The score, and in *out_size the magnitudes that it is made of; false: the key takes no part. */
static inline int attention_score(const attention_head *h, uint64_t key, double *out_score, double *out_size) {
  const double mask = h->mask != NULL ? h->mask[key * h->mask_step] : 0;
  double score = 0, size = 0;
  if (mask == -HUGE_VAL) return 0;
  for (uint64_t i = 0; i < h->dim; i++) {
    score += h->q[i] * h->k[key * h->key_step + i];
    size += fabs(h->q[i] * h->k[key * h->key_step + i]);
  }
  *out_score = score * h->scale + mask;
  *out_size = size * fabs(h->scale) + fabs(mask);
  return 1;
}

static inline void attention_head_terms(const attention_head *h, double *out_terms) {
  double largest = -HUGE_VAL, total = 0, score, size, most = 0;
  for (uint64_t i = 0; i < h->width; i++) out_terms[i] = 0;
  for (uint64_t key = 0; key < h->key_count; key++) {
    if (!attention_score(h, key, &score, &size)) continue;
    largest = fmax(largest, score);
    most = size <= most ? most : size;          /* NaN stays */
  }
  for (uint64_t key = 0; key < h->key_count; key++)
    if (attention_score(h, key, &score, &size)) total += exp(score - largest);
  for (uint64_t key = 0; key < h->key_count; key++) {
    if (!attention_score(h, key, &score, &size)) continue;
    const double weight = exp(score - largest) / total + 0x1p-64;
    for (uint64_t i = 0; i < h->width; i++) out_terms[i] += weight * fabs(h->v[key * h->value_step + i]) * (1 + 2 * most);
  }
  for (uint64_t i = 0; i < h->width; i++)
    if (!(most <= ATTENTION_LARGEST_SCORE)) out_terms[i] = HUGE_VAL;
}

/* Keys that a token may see, by the length that stands at `length`. */
static inline uint64_t attention_key_count(const tm_operation *operation, const int64_t *length, uint64_t token) {
  const tm_attention_attributes *attributes = operation->attributes;
  const tm_operand *q = &operation->operands[0], *k = &operation->operands[1];
  const int64_t capacity = (int64_t)k->dims[k->rank - 3];
  const int64_t valid = *length < 0 ? 0 : *length > capacity ? capacity : *length;
  const int64_t seen = attributes->causal ? valid - (int64_t)(q->dims[q->rank - 3] - 1 - token) : valid;
  return seen < 0 ? 0 : (uint64_t)seen;
}

/* Index of the mask's first key, for an index on each of the axes batch, head and token. */
static inline uint64_t attention_mask_index(const tm_operand *mask, const uint64_t *at) {
  uint64_t index = 0;
  for (uint32_t i = 0; i < mask->rank; i++) {
    const uint32_t axis = 4 - mask->rank + i;
    index = index * mask->dims[i] + (axis < 3 && mask->dims[i] != 1 ? at[axis] : 0);
  }
  return index;
}

static inline void attention_terms(const tm_operation *operation, void *const *pointers, double *out_terms) {
  const tm_attention_attributes *attributes = operation->attributes;
  const tm_operand *q = &operation->operands[0], *k = &operation->operands[1], *v = &operation->operands[2];
  const tm_operand *mask = operation->input_count > 4 ? &operation->operands[4] : NULL;
  const uint32_t rank = q->rank;
  const uint64_t tokens = q->dims[rank - 3], heads = q->dims[rank - 2], shared = k->dims[rank - 2], capacity = k->dims[rank - 3];
  attention_head h = { .dim = q->dims[rank - 1], .width = v->dims[rank - 1] };
  h.scale = attributes->scale != 0 ? attributes->scale : 1 / sqrt((double)h.dim);
  h.key_step = shared * h.dim;
  h.value_step = shared * h.width;
  h.mask_step = mask != NULL && mask->dims[mask->rank - 1] != 1;
  const uint64_t units = h.width == 0 ? 0 : operation->operands[operation->input_count].element_count / h.width;
  for (uint64_t unit = 0; unit < units; unit++) {
    const uint64_t at[] = { unit / heads / tokens, unit % heads, unit / heads % tokens };
    const uint64_t own = at[1] / (heads / shared);
    h.q = (const double *)pointers[0] + unit * h.dim;
    h.k = (const double *)pointers[1] + (at[0] * capacity * shared + own) * h.dim;
    h.v = (const double *)pointers[2] + (at[0] * capacity * shared + own) * h.width;
    h.key_count = attention_key_count(operation, pointers[3], at[2]);
    if (mask != NULL) h.mask = (const double *)pointers[4] + attention_mask_index(mask, at);
    attention_head_terms(&h, out_terms + unit * h.width);
  }
}

#endif
