/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of one tensor, block by block of the canonical order (canonical_sum.h). */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "ops/element_reader.h"
#include "ops/one_pass.h"
#include "tensormorph/canonical_sum.h"

/* How a block of elements reaches the lanes. */
typedef enum sum_order { ORDER_LANES, ORDER_CHAINS, ORDER_GROUPS } sum_order;

typedef struct stats_format {
  uint32_t  format;
  sum_order order;
  double    smallest_normal;    /* 0 where there are no subnormals */
  bool      squares_are_exact;  /* in f64: then a plain multiplication and addition is what a fused operation does */
} stats_format;

/* Formats that are not listed go through lanes and have no subnormals: the integers. */
static const stats_format stats_formats[] = {
  { TM_FORMAT_F64, ORDER_LANES, 0x1p-1022, false },    { TM_FORMAT_F32, ORDER_LANES, 0x1p-126, true },
  { TM_FORMAT_F16, ORDER_CHAINS, 0x1p-14, true },      { TM_FORMAT_BF16, ORDER_CHAINS, 0x1p-126, true },
  { TM_FORMAT_F8_E4M3FN, ORDER_CHAINS, 0x1p-6, true }, { TM_FORMAT_F8_E5M2, ORDER_CHAINS, 0x1p-14, true },
  { TM_FORMAT_Q8_0, ORDER_GROUPS, 0, true },           { TM_FORMAT_Q4_0, ORDER_GROUPS, 0, true },
};

#define GROUP_ELEMENTS 32u

typedef struct stats_state {
  stats_format  format;
  uint64_t      words[TM_STATS_SUM];    /* the counts */
  double        min, max, abs_max;
  tm_sum_stream sum, squares;
} stats_state;

static stats_format find_format(uint32_t format) {
  for (size_t i = 0; i < sizeof stats_formats / sizeof stats_formats[0]; ++i) {
    if (stats_formats[i].format == format) return stats_formats[i];
  }
  return (stats_format){ format, ORDER_LANES, 0, false };
}

static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* Counts the block and puts +0, which adds nothing, in the place of what is excluded.  Returns the largest magnitude. */
static double classify_block(stats_state *state, double *values, uint64_t count) {
  double largest = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const double x = values[i], magnitude = fabs(x);
    if (!(magnitude < INFINITY)) {
      state->words[isnan(x) ? TM_STATS_NAN : x > 0 ? TM_STATS_POS_INF : TM_STATS_NEG_INF]++;
      values[i] = 0;
      continue;
    }
    if (magnitude < state->format.smallest_normal || magnitude == 0) {
      state->words[magnitude == 0 ? TM_STATS_ZERO : TM_STATS_SUBNORMAL]++;
    }
    if (x < state->min) state->min = x;
    if (x > state->max) state->max = x;
    if (magnitude > largest) largest = magnitude;
  }
  if (largest > state->abs_max) state->abs_max = largest;
  state->words[TM_STATS_COUNT] += count;
  return largest;
}

static void sum_by_lanes(stats_state *state, const double *values, uint64_t count) {
  double *sum = state->sum.lanes, *squares = state->squares.lanes;
  const bool exact = state->format.squares_are_exact;
  for (uint64_t i = 0; i < count; ++i) sum[i % TM_SUM_LANES] += values[i];
  for (uint64_t i = 0; i < count && exact; ++i) squares[i % TM_SUM_LANES] += values[i] * values[i];
  for (uint64_t i = 0; i < count && !exact; ++i) {
    squares[i % TM_SUM_LANES] = fma(values[i], values[i], squares[i % TM_SUM_LANES]);
  }
}

static void sum_by_chains(stats_state *state, const double *values, uint64_t count) {
  float sum[TM_SUM_CHAINS] = { 0 }, squares[TM_SUM_CHAINS] = { 0 };
  for (uint64_t i = 0; i < count; ++i) {
    const float x = (float)values[i];
    sum[i % TM_SUM_CHAINS] += x;
    squares[i % TM_SUM_CHAINS] = fmaf(x, x, squares[i % TM_SUM_CHAINS]);
  }
  for (int l = 0; l < TM_SUM_LANES; ++l) {
    const float sum_pair = sum[l] + sum[l + TM_SUM_LANES];
    const float squares_pair = squares[l] + squares[l + TM_SUM_LANES];
    state->sum.lanes[l] += (double)sum_pair;
    state->squares.lanes[l] += (double)squares_pair;
  }
}

/* All values of a group are multiples of its scale, so f64 adds them exactly in any order. */
static void sum_by_groups(stats_state *state, const double *values, uint64_t count) {
  const uint64_t first_group = state->sum.position / GROUP_ELEMENTS;
  for (uint64_t g = 0; g * GROUP_ELEMENTS < count; ++g) {
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < GROUP_ELEMENTS; ++i) {
      const double x = values[g * GROUP_ELEMENTS + i];
      sum += x;
      squares += x * x;
    }
    state->sum.lanes[(first_group + g) % TM_SUM_LANES] += sum;
    state->squares.lanes[(first_group + g) % TM_SUM_LANES] += squares;
  }
}

static void add_block(stats_state *state, double *values, uint64_t count) {
  const double largest = classify_block(state, values, count);
  if (state->format.order == ORDER_GROUPS) {
    sum_by_groups(state, values, count);
  } else if (state->format.order == ORDER_CHAINS && largest >= TM_SUM_CHAIN_SMALLEST && largest < TM_SUM_CHAIN_LIMIT) {
    sum_by_chains(state, values, count);
  } else {
    sum_by_lanes(state, values, count);
  }
  tm_sum_stream_skip(&state->sum, count);
  tm_sum_stream_skip(&state->squares, count);
}

/* -0 counts as +0 in extremes, so a zero is printed as one. */
static uint64_t extreme_bits(double value) { return bits_of(value + 0.0); }

void tm_stats_compute(const tm_operand *x, const void *pointer, uint64_t *out_words) {
  double values[TM_SUM_BLOCK];
  stats_state state = { .format = find_format(x->format), .min = INFINITY, .max = -INFINITY };
  tm_element_reader reader;
  tm_element_reader_init(&reader, x, pointer);
  for (uint64_t left = x->element_count; left > 0;) {
    const uint64_t count = tm_min_u64(left, TM_SUM_BLOCK);
    tm_element_reader_next(&reader, count, values, NULL);
    add_block(&state, values, count);
    left -= count;
  }
  tm_sum_stream_finish(&state.sum);
  tm_sum_stream_finish(&state.squares);
  memcpy(out_words, state.words, sizeof state.words);
  out_words[TM_STATS_MIN] = extreme_bits(state.min);
  out_words[TM_STATS_MAX] = extreme_bits(state.max);
  out_words[TM_STATS_ABS_MAX] = extreme_bits(state.abs_max);
  memcpy(out_words + TM_STATS_SUM, state.sum.words, sizeof state.sum.words);
  memcpy(out_words + TM_STATS_SUM_SQUARES, state.squares.words, sizeof state.squares.words);
}

void tm_stats_combine(uint64_t *words, const uint64_t *part) {
  for (int i = 0; i < TM_STATS_MIN; ++i) words[i] += part[i];
  if (tm_sum_from_bits(part[TM_STATS_MIN]) < tm_sum_from_bits(words[TM_STATS_MIN])) words[TM_STATS_MIN] = part[TM_STATS_MIN];
  if (tm_sum_from_bits(part[TM_STATS_MAX]) > tm_sum_from_bits(words[TM_STATS_MAX])) words[TM_STATS_MAX] = part[TM_STATS_MAX];
  if (part[TM_STATS_ABS_MAX] > words[TM_STATS_ABS_MAX]) words[TM_STATS_ABS_MAX] = part[TM_STATS_ABS_MAX];
  tm_sum_combine(words + TM_STATS_SUM, part + TM_STATS_SUM);
  tm_sum_combine(words + TM_STATS_SUM_SQUARES, part + TM_STATS_SUM_SQUARES);
}
