/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A larger quotient |a - b| / max(|a|, |b|) is looked for in 16 bits, without arithmetic on floats.  The integers that
 * two positive floats are, as bits, differ by k: then their ratio is at most that of 1.0 and the float k places above it, but for
 * subnormal numbers, and at least that of a float k places below a power of two and this power.  So while no quotient has reached 1,
 * only pairs further apart than some k can be beyond the best one; and from 1 on only pairs of opposite signs whose magnitudes are
 * near, which are far apart in the circle of 16 bits.  Either way a pair is passed over if |x - y| is at most `near` there.
 *
 * That is coarse: k places are half as much at the upper end of a power of two.  Below 1/4 f32 tells two quotients apart.  They are
 * fractions of whole units of the smaller number, of which the larger one has at most 2^12; so two of them are at least 2^-24 apart,
 * and there is none above the best one up to the next number of f32, which is at most 2^-26 away.  Pairs with quotients of up to
 * 1/2 have exact differences, and those of others are rounded too little to matter.
 */
#include <math.h>

#include "cpu_compare.h"

typedef struct half_format {
  int      fraction_bits;
  uint16_t one, smallest_normal;
  uint16_t most_apart;          /* so far that differences of same signs are exact and opposite signs are not taken for same ones */
} half_format;

static const half_format half_formats[] = {
  { 7, 0x3f80, 0x0080, 12 << 7 },
  { 10, 0x3c00, 0x0400, 0x3ff },
};

/* Of a float k places above 1.0 and 1.0. */
static double quotient_above_one(const half_format *f, uint32_t k) {
  const uint32_t bits = (UINT32_C(127) << 23) + (k << (23 - f->fraction_bits));
  float ratio;
  memcpy(&ratio, &bits, sizeof ratio);
  return ((double)ratio - 1) / (double)ratio;
}

static uint32_t near_below_one(const half_format *f, double best) {
  uint32_t low = 0, high = f->most_apart;
  while (low < high) {
    const uint32_t middle = (low + high + 1) / 2;
    if (quotient_above_one(f, middle) <= best) low = middle;
    else high = middle - 1;
  }
  return low;
}

/* Opposite magnitudes k places apart, k < 2^fraction_bits, have a quotient of at most 2 - k / 2^(fraction_bits + 1); and 2^n times as
   far apart, of 1 + 2^-n, which of n = 24 is 1 because a - b is rounded. */
static uint32_t opposite_from_one(const half_format *f, double best) {
  int n = 1;
  if (best >= 1.5) return (uint32_t)ceil(ldexp(2 - best, f->fraction_bits + 1));
  while (n < 24 && 1 + ldexp(1, -n) > best) n++;
  return (uint32_t)n << f->fraction_bits;
}

/* The least number of f32 that is not below the best quotient. */
static float threshold_of(double best) {
  const float nearest = (float)best;
  if (best >= 0.25) return INFINITY;
  return (double)nearest < best ? nextafterf(nearest, 1) : nearest;
}

void cpu_compare_open_window(int is_f16, cpu_compare_state *state) {
  const half_format *f = &half_formats[is_f16];
  const double best = state->max_rel;
  const uint32_t near = best < 1 ? near_below_one(f, best) : 0x8000u - opposite_from_one(f, best);
  state->window = (cpu_compare_window){
    .best = best,
    .near = (uint16_t)near,
    .small = (uint16_t)(best < 1 ? 2 * (f->smallest_normal + near) : 0),
    .threshold = threshold_of(best),
  };
}
