/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canonical_sum.h - sums of floating-point numbers whose bits do not depend on threads, instruction sets or machines.
 * For backends that claim TM_NUMERICS_N0 on sums, and for whoever reads the words of a result.  Static functions only;
 * C11 and C++17.
 *
 * THE CANONICAL ORDER.  The terms form a sequence: for a whole tensor its elements in row-major order of their index,
 * whatever the strides; for a reduction, the reduced elements of one output in that order.
 *
 *   1. Every 32,768 terms are a superblock, 64 blocks of 512; the last one may be shorter.
 *   2. A superblock has 16 lanes of f64 that start at +0.  The term with index i within the superblock is added to lane
 *      i mod 16, by ascending i.  A term is the decoded value converted to f64; a product of two values is added by one
 *      fused multiply-add.  (The product of two f32 or narrower floats is exact in f64, so there a plain multiplication
 *      and addition gives the same bits.)  An excluded term adds nothing and still takes its index.
 *   3. With v[j] = (lane[j] + lane[j+4]) + (lane[j+8] + lane[j+12]) for j = 0..3, the superblock's sum is
 *      (v[0] + v[2]) + (v[1] + v[3]).
 *   4. The superblocks' sums are added exactly: tm_sum_add.  So any split at a multiple of 32,768 terms gives equal bits.
 *   5. The result is the exact sum rounded once to f64 (to nearest, ties to even): tm_sum_read.  A superblock's sum that
 *      is infinite or NaN leaves a mark that decides the result.
 *
 * TM_OP_STATS has two exceptions to step 2, because f64 lanes are too slow where a tensor is read at 8 or 16 bits an
 * element.  Both concern the sum of the values and the sum of their squares alike:
 *
 *   f16, bf16, f8: a block in which the largest finite magnitude lies in [2^-50, 2^60) has 32 chains of f32 that start
 *     at +0.  The value with index i within the block is added to chain i mod 32, by ascending i, in f32 (squares by a
 *     fused multiply-add).  Then, for l = 0..15, chain[l] + chain[l+16], added in f32, is added to lane l.  Other blocks
 *     go by step 2.
 *   q8_0, q4_0: a block of 32 elements is one term: its scale times the sum of its 32 integers (a sum of squares: the
 *     scale squared times the sum of their squares; both are exact in f64).  It is added to lane (number of the
 *     32-element block within the superblock) mod 16.  A block with a scale that is not finite adds nothing.
 *
 * TM_OP_COMPARE_TENSORS has two as well, for the sums of a^2, b^2, a b and d^2, d = a - b.  A pair of which a value is not finite
 * counts as two zeros:
 *
 *   two floats of 16 bits or less (f16, bf16, f8, of one format or two): d is rounded to f32.  In a block in which the
 *     largest |a| lies in [2^-50, 2^60), a^2 goes by chains as above, each product added by a fused multiply-add in f32; and
 *     b^2 likewise by the largest |b|, d^2 by the largest |d|, a b by both |a| and |b|.  But d^2 is rounded to f32 before it
 *     is added.  Other sums of a block go by step 2.
 *   both q8_0, or both q4_0: no order.  Every term is added exactly, with d not rounded (it fits f64).
 */
#ifndef TENSORMORPH_CANONICAL_SUM_H
#define TENSORMORPH_CANONICAL_SUM_H

#include <math.h>
#include <string.h>

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TM_SUM_LANES          16
#define TM_SUM_BLOCK          512
#define TM_SUM_SUPERBLOCK     32768
#define TM_SUM_CHAINS         32
#define TM_SUM_CHAIN_SMALLEST 0x1p-50   /* chains are used from this magnitude on ... */
#define TM_SUM_CHAIN_LIMIT    0x1p+60   /* ... to below this one */

/* ------------------------------------------------------------------------------------------- the exact accumulator ---- */

/* Digits are words 1..68.  Each is kept in [0, 2^32), the last one signed, so an accumulator is always a result. */
#define TM_SUM_LAST_DIGIT  (TM_SUM_WORDS - 1)
#define TM_SUM_DIGIT_MASK  UINT64_C(0xffffffff)
#define TM_SUM_LOWEST_BIT  1088         /* bit 0 of the first digit weighs 2^-1088 */

static inline void tm_sum_init(uint64_t *words) { memset(words, 0, TM_SUM_WORDS * sizeof *words); }

/* value / 2^32, rounded down, of a two's complement number. */
static inline uint64_t tm_sum_carry(uint64_t value) {
  return (value >> 32) | (value >> 63 != 0 ? ~TM_SUM_DIGIT_MASK : 0);
}

/* Adds the `count` digits of `parts` (two's complement, below 2^62 in magnitude) at digit `first`, and carries upwards. */
static inline void tm_sum_add_digits(uint64_t *words, int first, const uint64_t *parts, int count) {
  uint64_t carry = 0;
  for (int i = 0; first + i <= TM_SUM_LAST_DIGIT; ++i) {
    if (i >= count && carry == 0) return;
    const uint64_t value = words[first + i] + carry + (i < count ? parts[i] : 0);
    if (first + i == TM_SUM_LAST_DIGIT) {
      words[first + i] = value;
    } else {
      words[first + i] = value & TM_SUM_DIGIT_MASK;
      carry = tm_sum_carry(value);
    }
  }
}

/* Adds one number exactly.  An infinity or a NaN leaves its mark in word 0 instead. */
static inline void tm_sum_add(uint64_t *words, double number) {
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  const int negative = (int)(bits >> 63);
  const int exponent = (int)(bits >> 52 & 0x7ff);
  const uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
  if (exponent == 0x7ff) {
    words[0] |= fraction != 0 ? TM_SUM_SAW_NAN : negative ? TM_SUM_SAW_NEGATIVE_INFINITY : TM_SUM_SAW_POSITIVE_INFINITY;
    return;
  }
  /* The unit of an f64 weighs 2^(exponent - 1075), of a subnormal one as of the smallest normal one. */
  const uint64_t integer = fraction | (exponent != 0 ? UINT64_C(1) << 52 : 0);
  const int position = (exponent != 0 ? exponent : 1) - 1075 + TM_SUM_LOWEST_BIT;
  const int shift = position % 32;
  const uint64_t low = integer << shift;
  const uint64_t high = shift != 0 ? integer >> (64 - shift) : 0;
  uint64_t parts[3] = { low & TM_SUM_DIGIT_MASK, low >> 32, high };
  for (int i = 0; i < 3 && negative; ++i) parts[i] = ~parts[i] + 1;
  tm_sum_add_digits(words, 1 + position / 32, parts, 3);
}

/* Adds another accumulator exactly; `part` may come from anywhere as long as its digits are below 2^62 in magnitude. */
static inline void tm_sum_combine(uint64_t *words, const uint64_t *part) {
  words[0] |= part[0];
  tm_sum_add_digits(words, 1, part + 1, TM_SUM_LAST_DIGIT);
}

/* The magnitude as 32-bit digits, the least significant first, into 69 entries; returns 1 if the number is negative. */
static inline int tm_sum_magnitude(const uint64_t *words, uint32_t *out_digits) {
  const int negative = (int)(words[TM_SUM_LAST_DIGIT] >> 63);
  uint64_t carry = negative ? 1 : 0;
  for (int i = 0; i <= TM_SUM_LAST_DIGIT; ++i) {
    const uint64_t digit = i < TM_SUM_LAST_DIGIT ? words[1 + i] : tm_sum_carry(words[TM_SUM_LAST_DIGIT]);
    const uint64_t value = ((negative ? ~digit : digit) & TM_SUM_DIGIT_MASK) + carry;
    out_digits[i] = (uint32_t)(value & TM_SUM_DIGIT_MASK);
    carry = value >> 32;
  }
  return negative;
}

static inline double tm_sum_from_bits(uint64_t bits) {
  double number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

/* Rounds a magnitude to the bits of an f64 without its sign. */
static inline uint64_t tm_sum_round(const uint32_t *digits) {
  int top = TM_SUM_LAST_DIGIT;
  while (top > 0 && digits[top] == 0) top--;
  if (digits[top] == 0) return 0;
  int lead = 31;
  while ((digits[top] >> lead & 1u) == 0) lead--;
  /* The 64 bits from the leading one downwards, and whether anything lies below them. */
  uint64_t window = (uint64_t)digits[top] << (63 - lead);
  uint64_t below = 0;
  for (int i = 1; i <= top; ++i) {
    const int place = 63 - lead - 32 * i;       /* where bit 0 of this digit falls in the window */
    const uint64_t digit = digits[top - i];
    if (place >= 0) window |= digit << place;
    else if (place > -32) { window |= digit >> -place; below |= digit & ((UINT64_C(1) << -place) - 1); }
    else below |= digit;
  }
  const int exponent = top * 32 + lead - TM_SUM_LOWEST_BIT;     /* the leading one weighs 2^exponent */
  if (exponent > 1023) return UINT64_C(0x7ff) << 52;
  const int precision = exponent >= -1022 ? 53 : exponent + 1075;
  if (precision < 0) return 0;
  uint64_t kept = precision > 0 ? window >> (64 - precision) : 0;
  const uint64_t rest = window << precision;
  const uint64_t half = UINT64_C(1) << 63;
  if (rest > half || (rest == half && (below != 0 || (kept & 1u) != 0))) kept++;
  /* A carry out of the fraction moves into the exponent by itself, up to infinity. */
  return exponent >= -1022 ? ((uint64_t)(exponent + 1022) << 52) + kept : kept;
}

/* The sum, rounded once; infinite or NaN by the marks.  Zero is +0. */
static inline double tm_sum_read(const uint64_t *words) {
  const uint64_t infinities = TM_SUM_SAW_POSITIVE_INFINITY | TM_SUM_SAW_NEGATIVE_INFINITY;
  if ((words[0] & TM_SUM_SAW_NAN) != 0 || (words[0] & infinities) == infinities) {
    return tm_sum_from_bits(UINT64_C(0x7ff8) << 48);
  }
  if ((words[0] & infinities) != 0) {
    return tm_sum_from_bits(words[0] & TM_SUM_SAW_NEGATIVE_INFINITY ? UINT64_C(0xfff) << 52 : UINT64_C(0x7ff) << 52);
  }
  uint32_t digits[TM_SUM_LAST_DIGIT + 1];
  const int negative = tm_sum_magnitude(words, digits);
  return tm_sum_from_bits(tm_sum_round(digits) | (negative ? UINT64_C(1) << 63 : 0));
}

/* ---------------------------------------------------------------------------------------------- the canonical order ---- */

/* Step 3: the lanes of a superblock become one number. */
static inline double tm_sum_of_lanes(const double *lanes) {
  double v[4];
  for (int j = 0; j < 4; ++j) v[j] = (lanes[j] + lanes[j + 4]) + (lanes[j + 8] + lanes[j + 12]);
  return (v[0] + v[2]) + (v[1] + v[3]);
}

/* A sequence of terms on its way into an accumulator, one at a time; the plain form of the order above. */
typedef struct tm_sum_stream {
  double   lanes[TM_SUM_LANES];
  uint64_t position;            /* index of the next term */
  uint64_t words[TM_SUM_WORDS]; /* of the superblocks that are complete */
} tm_sum_stream;

static inline void tm_sum_stream_init(tm_sum_stream *stream) { memset(stream, 0, sizeof *stream); }

/* Ends the running superblock; the next term starts a new one.  Call it once after the last term, then read `words`. */
static inline void tm_sum_stream_finish(tm_sum_stream *stream) {
  tm_sum_add(stream->words, tm_sum_of_lanes(stream->lanes));
  memset(stream->lanes, 0, sizeof stream->lanes);
}

/* Passes over `count` terms that add nothing; they must not reach beyond the running superblock. */
static inline void tm_sum_stream_skip(tm_sum_stream *stream, uint64_t count) {
  stream->position += count;
  if (stream->position % TM_SUM_SUPERBLOCK == 0) tm_sum_stream_finish(stream);
}

static inline void tm_sum_stream_add(tm_sum_stream *stream, double term) {
  stream->lanes[stream->position % TM_SUM_LANES] += term;
  tm_sum_stream_skip(stream, 1);
}

/* Adds the term a * b. */
static inline void tm_sum_stream_add_product(tm_sum_stream *stream, double a, double b) {
  double *lane = &stream->lanes[stream->position % TM_SUM_LANES];
  *lane = fma(a, b, *lane);
  tm_sum_stream_skip(stream, 1);
}

/* tm_sum_stream_finish and tm_sum_read in one. */
static inline double tm_sum_stream_result(tm_sum_stream *stream) {
  tm_sum_stream_finish(stream);
  return tm_sum_read(stream->words);
}

#ifdef __cplusplus
}
#endif

#endif /* TENSORMORPH_CANONICAL_SUM_H */
