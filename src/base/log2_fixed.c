/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log2_fixed.h"

#include "base/checked.h"

#define FRACTION_BITS 32
#define MANTISSA_BITS 31        /* 1.0 as a mantissa is 2^31 */
#define LARGEST_VALUE_BITS 52

/* Each squaring of the mantissa gives the next bit of the logarithm. */
static int64_t log2_of(uint64_t value) {
  const int whole = 63 - __builtin_clzll(value);
  uint64_t mantissa = whole > MANTISSA_BITS ? value >> (whole - MANTISSA_BITS) : value << (MANTISSA_BITS - whole);
  int64_t log2 = (int64_t)whole;
  for (int bit = 0; bit < FRACTION_BITS; bit++) {
    mantissa = mantissa * mantissa >> MANTISSA_BITS;
    log2 *= 2;
    if (mantissa >> (MANTISSA_BITS + 1) == 0) continue;
    mantissa >>= 1;
    log2++;
  }
  return log2;
}

int64_t tm_log2_of_ratio(uint64_t numerator, uint64_t denominator) {
  return log2_of(tm_max_u64(1, numerator)) - log2_of(tm_max_u64(1, denominator));
}

/* 2^(2^-k) * 2^31 for k = 1..32 */
static const uint32_t roots[FRACTION_BITS] = {
  0xb504f334u, 0x9837f052u, 0x8b95c1e4u, 0x85aac368u, 0x82cd8699u, 0x8164d1f4u, 0x80b1ed50u, 0x8058d7d3u,
  0x802c6437u, 0x8016302fu, 0x800b179du, 0x80058bafu, 0x8002c5d0u, 0x800162e6u, 0x8000b173u, 0x800058b9u,
  0x80002c5du, 0x8000162eu, 0x80000b17u, 0x8000058cu, 0x800002c6u, 0x80000163u, 0x800000b1u, 0x80000059u,
  0x8000002cu, 0x80000016u, 0x8000000bu, 0x80000006u, 0x80000003u, 0x80000001u, 0x80000001u, 0x80000000u,
};

/* 2^fraction as a mantissa. */
static uint64_t exp2_of(uint32_t fraction) {
  uint64_t mantissa = UINT64_C(1) << MANTISSA_BITS;
  for (int k = 0; k < FRACTION_BITS; k++)
    if ((fraction >> (FRACTION_BITS - 1 - k) & 1u) != 0) mantissa = mantissa * roots[k] >> MANTISSA_BITS;
  return mantissa;
}

uint64_t tm_log2_multiply(uint64_t value, int64_t log2, uint64_t most) {
  if (value == 0) return 0;
  const int lift = LARGEST_VALUE_BITS - (63 - __builtin_clzll(value));  /* all bits that there is room for */
  const uint32_t fraction = (uint32_t)((uint64_t)log2 & UINT32_MAX);
  const uint64_t lifted = value << lift, mantissa = exp2_of(fraction), low_bits = (UINT64_C(1) << MANTISSA_BITS) - 1;
  const uint64_t product = (lifted >> MANTISSA_BITS) * mantissa + ((lifted & low_bits) * mantissa >> MANTISSA_BITS);
  const int64_t whole = (log2 < INT64_MIN / 2 ? INT64_MIN / 2 : log2 - (int64_t)fraction) / TM_LOG2_ONE - lift;
  if (whole < 0) return whole <= -64 ? 0 : tm_min_u64(product >> -whole, most);
  return whole >= 64 || product > most >> whole ? most : product << whole;
}

int64_t tm_fraction_of(int64_t value, int64_t numerator, int64_t denominator) {
  return value / denominator * numerator + value % denominator * numerator / denominator;
}

uint64_t tm_square_root(uint64_t value) {
  uint64_t root = 0;
  for (uint64_t bit = UINT64_C(1) << 31; bit != 0; bit >>= 1)
    if ((root + bit) * (root + bit) <= value) root += bit;
  return root;
}
