/* SPDX-License-Identifier: Apache-2.0 */
/* How far two tensors of equal dims are apart; all sums in the canonical order (canonical_sum.h), step 2 without exception. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "ops/element_reader.h"
#include "ops/one_pass.h"
#include "tensormorph/canonical_sum.h"

typedef struct pair_values {
  double  a[TM_SUM_BLOCK], b[TM_SUM_BLOCK];
  int64_t a_integers[TM_SUM_BLOCK], b_integers[TM_SUM_BLOCK];
} pair_values;

typedef struct comparison_state {
  uint64_t      equal, nonfinite;
  double        max_abs, max_rel;
  tm_sum_stream squared, dot, norm_a, norm_b;
} comparison_state;

static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* Floats decode to f64 without loss, NaN payloads included, so equal f64 bits are equal bits.  Integers of one format are
   compared as such; of two formats nothing but their values can be. */
static uint64_t count_equal(const pair_values *pair, uint64_t count, int as_integers) {
  uint64_t equal = 0;
  for (uint64_t i = 0; i < count; ++i) {
    equal += as_integers ? pair->a_integers[i] == pair->b_integers[i] : bits_of(pair->a[i]) == bits_of(pair->b[i]);
  }
  return equal;
}

/* Adds the products to the lanes.  Where a product is exact in f64, adding it is what a fused operation does, for less. */
static void add_products(tm_sum_stream *stream, const double *x, const double *y, uint64_t count, bool are_exact) {
  double *lanes = stream->lanes;
  for (uint64_t i = 0; i < count && are_exact; ++i) lanes[i % TM_SUM_LANES] += x[i] * y[i];
  for (uint64_t i = 0; i < count && !are_exact; ++i) lanes[i % TM_SUM_LANES] = fma(x[i], y[i], lanes[i % TM_SUM_LANES]);
  tm_sum_stream_skip(stream, count);
}

/* The difference of two finite f64 may overflow; it then counts as infinite. */
static void add_block(comparison_state *state, pair_values *pair, uint64_t count, bool products_are_exact) {
  double differences[TM_SUM_BLOCK];
  for (uint64_t i = 0; i < count; ++i) {
    if (!isfinite(pair->a[i]) || !isfinite(pair->b[i])) {
      state->nonfinite++;
      pair->a[i] = pair->b[i] = 0;
    }
    differences[i] = pair->a[i] - pair->b[i];
    const double distance = fabs(differences[i]), larger = fmax(fabs(pair->a[i]), fabs(pair->b[i]));
    if (distance > state->max_abs) state->max_abs = distance;
    if (larger > 0 && distance / larger > state->max_rel) state->max_rel = distance / larger;
  }
  add_products(&state->squared, differences, differences, count, false);
  add_products(&state->dot, pair->a, pair->b, count, products_are_exact);
  add_products(&state->norm_a, pair->a, pair->a, count, products_are_exact);
  add_products(&state->norm_b, pair->b, pair->b, count, products_are_exact);
}

/* Floats of at most 24 bits of precision, and integers of at most 16. */
static bool has_exact_products(const tm_format_info *info) {
  return info->kind == TM_KIND_FLOAT ? info->block_bytes <= 4 : info->kind == TM_KIND_BLOCK || info->block_bytes <= 2;
}

static void store(comparison_state *state, uint64_t count, uint64_t *out_words) {
  static const size_t places[] = { TM_COMPARISON_SUM_SQUARED, TM_COMPARISON_DOT, TM_COMPARISON_NORM_A, TM_COMPARISON_NORM_B };
  tm_sum_stream *streams[] = { &state->squared, &state->dot, &state->norm_a, &state->norm_b };
  out_words[TM_COMPARISON_COUNT] = count;
  out_words[TM_COMPARISON_EQUAL_BITS] = state->equal;
  out_words[TM_COMPARISON_NONFINITE] = state->nonfinite;
  out_words[TM_COMPARISON_MAX_ABS] = bits_of(state->max_abs);
  out_words[TM_COMPARISON_MAX_REL] = bits_of(state->max_rel);
  for (int i = 0; i < 4; ++i) {
    tm_sum_stream_finish(streams[i]);
    memcpy(out_words + places[i], streams[i]->words, sizeof streams[i]->words);
  }
}

void tm_comparison_compute(const tm_operand *a, const void *a_pointer, const tm_operand *b, const void *b_pointer,
                           uint64_t *out_words) {
  pair_values pair;
  comparison_state state;
  memset(&state, 0, sizeof state);
  tm_element_reader a_reader, b_reader;
  tm_element_reader_init(&a_reader, a, a_pointer);
  tm_element_reader_init(&b_reader, b, b_pointer);
  const int as_integers = a->format == b->format && a_reader.codec->decode_integer != NULL;
  const bool exact = has_exact_products(a_reader.info) && has_exact_products(b_reader.info);
  for (uint64_t left = a->element_count; left > 0;) {
    const uint64_t count = tm_min_u64(left, TM_SUM_BLOCK);
    tm_element_reader_next(&a_reader, count, pair.a, as_integers ? pair.a_integers : NULL);
    tm_element_reader_next(&b_reader, count, pair.b, as_integers ? pair.b_integers : NULL);
    state.equal += count_equal(&pair, count, as_integers);
    add_block(&state, &pair, count, exact);
    left -= count;
  }
  store(&state, a->element_count, out_words);
}

void tm_comparison_combine(uint64_t *words, const uint64_t *part) {
  for (int i = 0; i < TM_COMPARISON_MAX_ABS; ++i) words[i] += part[i];
  /* Bits of numbers that are not negative stand in the order of the numbers. */
  words[TM_COMPARISON_MAX_ABS] = tm_max_u64(words[TM_COMPARISON_MAX_ABS], part[TM_COMPARISON_MAX_ABS]);
  words[TM_COMPARISON_MAX_REL] = tm_max_u64(words[TM_COMPARISON_MAX_REL], part[TM_COMPARISON_MAX_REL]);
  for (int i = TM_COMPARISON_SUM_SQUARED; i < TM_COMPARISON_WORDS; i += TM_SUM_WORDS) tm_sum_combine(words + i, part + i);
}
