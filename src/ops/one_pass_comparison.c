/* SPDX-License-Identifier: Apache-2.0 */
/* How far two tensors of equal dims are apart; all sums in the canonical order (canonical_sum.h) of their formats. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "ops/element_reader.h"
#include "ops/one_pass.h"
#include "tensormorph/canonical_sum.h"

/* How elements of one side are read. */
typedef struct side_reader {
  tm_operand        operand;
  tm_operand        bits_operand;
  tm_element_reader values;
  tm_element_reader bits;               /* of bool, in which bits say more than the value */
  bool              has_integers, is_bool;
} side_reader;

typedef struct side_values {
  double  values[TM_SUM_BLOCK];
  double  rests[TM_SUM_BLOCK];          /* what the values lack of integers that f64 does not hold */
  int64_t integers[TM_SUM_BLOCK];       /* the bits, where has_integers */
} side_values;

/* How a block of pairs reaches the sums. */
typedef enum sum_order { ORDER_LANES, ORDER_CHAINS, ORDER_EXACT } sum_order;

typedef struct comparison_state {
  sum_order     order;
  bool          products_are_exact;
  uint64_t      equal, nonfinite;
  double        max_abs, max_rel;
  tm_sum_stream squared, dot, norm_a, norm_b;
} comparison_state;

static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* ---- reading ---- */

static void init_side(side_reader *side, const tm_operand *operand, const void *pointer) {
  *side = (side_reader){ .operand = *operand, .bits_operand = *operand, .is_bool = operand->format == TM_FORMAT_BOOL };
  tm_element_reader_init(&side->values, &side->operand, pointer);
  side->has_integers = side->values.codec->decode_integer != NULL;
  side->bits_operand.format = TM_FORMAT_U8;
  if (side->is_bool) tm_element_reader_init(&side->bits, &side->bits_operand, pointer);
}

/* Modulo 2^64, as integers wrap. */
static uint64_t wrapped(double whole) {
  if (whole < 0) return 0 - (uint64_t)-whole;
  return whole < 0x1p64 ? (uint64_t)whole : 0;
}

static void read_side(side_reader *side, uint64_t count, side_values *out) {
  double unused[TM_SUM_BLOCK];
  tm_element_reader_next(&side->values, count, out->values, side->has_integers ? out->integers : NULL);
  for (uint64_t i = 0; i < count; ++i)
    out->rests[i] = side->has_integers ? (double)(int64_t)((uint64_t)out->integers[i] - wrapped(out->values[i])) : 0;
  if (side->is_bool) tm_element_reader_next(&side->bits, count, unused, out->integers);
}

/* ---- counting and adding ---- */

/* Floats decode to f64 without loss, NaN payloads included, so equal f64 bits are equal bits. */
static uint64_t count_equal_bits(const side_values *a, const side_values *b, uint64_t count, bool have_integers) {
  uint64_t equal = 0;
  for (uint64_t i = 0; i < count; ++i)
    equal += have_integers ? a->integers[i] == b->integers[i] : bits_of(a->values[i]) == bits_of(b->values[i]);
  return equal;
}

/* Of two formats nothing but the values can be equal: 0 and -0 are, and one NaN and another. */
static uint64_t count_equal_values(const side_values *a, const side_values *b, uint64_t count) {
  uint64_t equal = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const bool are_nan = isnan(a->values[i]) && isnan(b->values[i]);
    equal += are_nan || (a->values[i] == b->values[i] && a->rests[i] == b->rests[i]);
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
static void subtract(comparison_state *state, const side_values *one, const side_values *other, uint64_t count, double *out) {
  for (uint64_t i = 0; i < count; ++i) {
    const double a = one->values[i], b = other->values[i], larger = fmax(fabs(a), fabs(b));
    const float in_f32 = (float)a - (float)b;
    out[i] = state->order == ORDER_CHAINS ? (double)in_f32 : (a - b) + (one->rests[i] - other->rests[i]);
    if (fabs(out[i]) > state->max_abs) state->max_abs = fabs(out[i]);
    if (larger > 0 && fabs(out[i]) / larger > state->max_rel) state->max_rel = fabs(out[i]) / larger;
  }
}

static bool allows_chains(const double *values, uint64_t count) {
  double largest = 0;
  for (uint64_t i = 0; i < count; ++i) largest = fmax(largest, fabs(values[i]));
  return largest >= TM_SUM_CHAIN_SMALLEST && largest < TM_SUM_CHAIN_LIMIT;
}

/* By chains of f32 if `has_chains`; squares are rounded before they are added, products of two values are not. */
static void add_short_products(tm_sum_stream *stream, const double *x, const double *y, uint64_t count, bool has_chains,
                               bool is_rounded) {
  float chains[TM_SUM_CHAINS] = { 0 };
  for (uint64_t i = 0; i < count && has_chains; ++i) {
    const float left = (float)x[i], right = (float)y[i], product = left * right;
    float *chain = &chains[i % TM_SUM_CHAINS];
    *chain = is_rounded ? *chain + product : fmaf(left, right, *chain);
  }
  for (int l = 0; l < TM_SUM_LANES && has_chains; ++l) {
    const float pair = chains[l] + chains[l + TM_SUM_LANES];
    stream->lanes[l] += (double)pair;
  }
  if (has_chains) tm_sum_stream_skip(stream, count);
  else add_products(stream, x, y, count, true);
}

/* In no order: a product's rounded value and what that lacks. */
static void add_exactly(tm_sum_stream *stream, const double *x, const double *y, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    const double product = x[i] * y[i];
    tm_sum_add(stream->words, product);
    tm_sum_add(stream->words, fma(x[i], y[i], -product));
  }
}

static void add_sums(comparison_state *state, const double *differences, const double *a, const double *b, uint64_t count) {
  if (state->order == ORDER_EXACT) {
    add_exactly(&state->squared, differences, differences, count);
    add_exactly(&state->dot, a, b, count);
    add_exactly(&state->norm_a, a, a, count);
    add_exactly(&state->norm_b, b, b, count);
  } else if (state->order == ORDER_CHAINS) {
    const bool chains_a = allows_chains(a, count), chains_b = allows_chains(b, count);
    add_short_products(&state->squared, differences, differences, count, allows_chains(differences, count), true);
    add_short_products(&state->dot, a, b, count, chains_a && chains_b, false);
    add_short_products(&state->norm_a, a, a, count, chains_a, false);
    add_short_products(&state->norm_b, b, b, count, chains_b, false);
  } else {
    add_products(&state->squared, differences, differences, count, false);
    add_products(&state->dot, a, b, count, state->products_are_exact);
    add_products(&state->norm_a, a, a, count, state->products_are_exact);
    add_products(&state->norm_b, b, b, count, state->products_are_exact);
  }
}

static void add_block(comparison_state *state, side_values *one, side_values *other, uint64_t count) {
  double differences[TM_SUM_BLOCK], *a = one->values, *b = other->values;
  for (uint64_t i = 0; i < count; ++i) {
    if (isfinite(a[i]) && isfinite(b[i])) continue;
    state->nonfinite++;
    a[i] = b[i] = one->rests[i] = other->rests[i] = 0;
  }
  subtract(state, one, other, count, differences);
  add_sums(state, differences, a, b, count);
}

static bool is_short_float(const tm_format_info *info) { return info->kind == TM_KIND_FLOAT && info->block_bytes <= 2; }

static sum_order order_of(const tm_format_info *a, const tm_format_info *b) {
  if (a == b && a->kind == TM_KIND_BLOCK && a->has_arithmetic) return ORDER_EXACT;
  return is_short_float(a) && is_short_float(b) ? ORDER_CHAINS : ORDER_LANES;
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
  side_values one, other;
  comparison_state state;
  memset(&state, 0, sizeof state);
  side_reader a_reader, b_reader;
  init_side(&a_reader, a, a_pointer);
  init_side(&b_reader, b, b_pointer);
  state.order = order_of(a_reader.values.info, b_reader.values.info);
  state.products_are_exact = has_exact_products(a_reader.values.info) && has_exact_products(b_reader.values.info);
  for (uint64_t left = a->element_count; left > 0;) {
    const uint64_t count = tm_min_u64(left, TM_SUM_BLOCK);
    read_side(&a_reader, count, &one);
    read_side(&b_reader, count, &other);
    state.equal += a->format != b->format ? count_equal_values(&one, &other, count)
                                          : count_equal_bits(&one, &other, count, a_reader.has_integers);
    add_block(&state, &one, &other, count);
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
