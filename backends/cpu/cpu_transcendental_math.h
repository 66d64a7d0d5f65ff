/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_transcendental_math.h - functions of four f64 each, exact to 1e-11, which is what results that are rounded to
 * f32 or less need: computing in f64 makes reduction, cancellation, overflow and subnormal results a matter of course.
 *
 * The polynomials minimize the largest relative error (Remez exchange in 50-digit arithmetic); the error is said at
 * each.  NaN goes through everywhere: x86's min and max give their second operand when one is NaN.
 */
#ifndef CPU_TRANSCENDENTAL_MATH_H
#define CPU_TRANSCENDENTAL_MATH_H

#include <math.h>

#include "cpu_vector_avx2.h"

#define NEXT(x, coefficient) sum = _mm256_fmadd_pd(sum, x, _mm256_set1_pd(coefficient));

/* Arguments of exp beyond this give f64 values that are 0 or Inf in every shorter format, even times or over such a
   value. */
#define EXP_LIMIT 708.0

CPU_INLINE_AVX2 __m256d clamp_symmetric(__m256d x, double limit) {
  return _mm256_min_pd(_mm256_set1_pd(limit), _mm256_max_pd(_mm256_set1_pd(-limit), x));
}
CPU_INLINE_AVX2 __m256d sign_of(__m256d x) { return _mm256_and_pd(x, _mm256_set1_pd(-0.0)); }
CPU_INLINE_AVX2 __m256d magnitude_of(__m256d x) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), x); }

/* (e^r - 1) / r for |r| <= log(2) / 2; 4.5e-12. */
CPU_INLINE_AVX2 __m256d expm1_quotient(__m256d r) {
  __m256d sum = _mm256_set1_pd(0x1.a01a758da241fp-16);
  NEXT(r, 0x1.a17d99a992d8fp-13) NEXT(r, 0x1.6c175ad6c9d2ep-10) NEXT(r, 0x1.1110a664b279bp-7)
  NEXT(r, 0x1.555554f30505fp-5) NEXT(r, 0x1.5555557e3fa53p-3) NEXT(r, 0x1.000000001a8e5p-1)
  NEXT(r, 0x1.fffffffff635ap-1)
  return sum;
}

/* e^x = power + power * rest, where power is a power of two and rest = e^r - 1. */
typedef struct split_exp {
  __m256d power, rest;
} split_exp;

/* Adding 1.5 * 2^52 rounds to an integer and leaves that integer in the low bits, from where it is moved to the
   exponent. */
CPU_INLINE_AVX2 split_exp split(__m256d x) {
  const __m256d rounder = _mm256_set1_pd(0x1.8p52);
  const __m256d in_range = clamp_symmetric(x, EXP_LIMIT);
  const __m256d shifted = _mm256_fmadd_pd(in_range, _mm256_set1_pd(0x1.71547652b82fep0), rounder);
  const __m256d n = _mm256_sub_pd(shifted, rounder);
  const __m256d r = _mm256_fnmadd_pd(n, _mm256_set1_pd(0x1.62e42fefa39efp-1), in_range);
  const __m256i exponent = _mm256_slli_epi64(_mm256_castpd_si256(shifted), 52);
  const __m256i one = _mm256_castpd_si256(_mm256_set1_pd(1.0));
  return (split_exp){ _mm256_castsi256_pd(_mm256_add_epi64(exponent, one)), _mm256_mul_pd(r, expm1_quotient(r)) };
}

CPU_INLINE_AVX2 __m256d exp_pd(__m256d x) {
  const split_exp e = split(x);
  return _mm256_fmadd_pd(e.power, e.rest, e.power);
}

/* 2 * atanh(sqrt(y)) / sqrt(y) for sqrt(y) up to (sqrt(2) - 1) / (sqrt(2) + 1); 4.2e-12. */
CPU_INLINE_AVX2 __m256d atanh_quotient(__m256d y) {
  __m256d sum = _mm256_set1_pd(0x1.e3b04d418a03dp-3);
  NEXT(y, 0x1.2432bbe12a40ep-2) NEXT(y, 0x1.999a9ca197e25p-2) NEXT(y, 0x1.555554dac5f76p-1)
  NEXT(y, 0x1.0000000004a23p+1)
  return sum;
}

/* x = 2^e * m with m from sqrt(1/2) to sqrt(2); log(m) = 2 * atanh((m - 1) / (m + 1)).  x came from a shorter
   format, so it is never subnormal here.  The exponent is counted from 1024 up to keep it positive. */
CPU_INLINE_AVX2 __m256d log_pd(__m256d x) {
  const __m256i root_half = _mm256_set1_epi64x(0x3fe6a09e667f3bcd), bias = _mm256_set1_epi64x(INT64_C(1024) << 52);
  const __m256i bits = _mm256_castpd_si256(x);
  const __m256i e = _mm256_srli_epi64(_mm256_add_epi64(_mm256_sub_epi64(bits, root_half), bias), 52);
  const __m256d m = _mm256_castsi256_pd(_mm256_add_epi64(_mm256_sub_epi64(bits, _mm256_slli_epi64(e, 52)), bias));
  const __m256i shifted = _mm256_or_si256(e, _mm256_castpd_si256(_mm256_set1_pd(0x1p52)));
  const __m256d exponent = _mm256_sub_pd(_mm256_castsi256_pd(shifted), _mm256_set1_pd(0x1p52 + 1024.0));
  const __m256d one = _mm256_set1_pd(1.0);
  const __m256d s = _mm256_div_pd(_mm256_sub_pd(m, one), _mm256_add_pd(m, one));
  const __m256d log_m = _mm256_mul_pd(s, atanh_quotient(_mm256_mul_pd(s, s)));
  const __m256d regular = _mm256_fmadd_pd(exponent, _mm256_set1_pd(0x1.62e42fefa39efp-1), log_m);
  const __m256d infinity = _mm256_set1_pd(HUGE_VAL);
  const __m256d negative = _mm256_cmp_pd(x, _mm256_setzero_pd(), _CMP_LT_OQ);
  const __m256d or_itself = _mm256_blendv_pd(regular, x, _mm256_cmp_pd(x, infinity, _CMP_NLT_UQ));
  const __m256d is_zero = _mm256_cmp_pd(x, _mm256_setzero_pd(), _CMP_EQ_OQ);
  const __m256d or_pole = _mm256_blendv_pd(or_itself, _mm256_set1_pd(-HUGE_VAL), is_zero);
  return _mm256_or_pd(or_pole, negative);
}

/* With t = e^(-2|x|): (1 - t) / (1 + t), where t - 1 is computed as such, so that small x keep their digits. */
CPU_INLINE_AVX2 __m256d tanh_pd(__m256d x) {
  const split_exp e = split(_mm256_mul_pd(_mm256_set1_pd(-2.0), magnitude_of(x)));
  const __m256d t_minus_1 = _mm256_fmadd_pd(e.power, e.rest, _mm256_sub_pd(e.power, _mm256_set1_pd(1.0)));
  const __m256d quotient = _mm256_div_pd(t_minus_1, _mm256_add_pd(_mm256_set1_pd(2.0), t_minus_1));
  return _mm256_or_pd(magnitude_of(quotient), sign_of(x));
}

CPU_INLINE_AVX2 __m256d one_plus_exp_minus(__m256d x) {
  return _mm256_add_pd(_mm256_set1_pd(1.0), exp_pd(_mm256_xor_pd(x, _mm256_set1_pd(-0.0))));
}

CPU_INLINE_AVX2 __m256d sigmoid_pd(__m256d x) { return _mm256_div_pd(_mm256_set1_pd(1.0), one_plus_exp_minus(x)); }

/* x times something that vanishes as x falls: -Inf * 0 is NaN. */
CPU_INLINE_AVX2 __m256d nan_at_minus_infinity(__m256d x, __m256d y) {
  return _mm256_or_pd(y, _mm256_cmp_pd(x, _mm256_set1_pd(-HUGE_VAL), _CMP_EQ_OQ));
}

CPU_INLINE_AVX2 __m256d silu_pd(__m256d x) {
  return nan_at_minus_infinity(x, _mm256_div_pd(x, one_plus_exp_minus(x)));
}

/* The tanh form of gelu is x * sigmoid(2 * sqrt(2 / pi) * (x + 0.044715 * x^3)). */
CPU_INLINE_AVX2 __m256d gelu_tanh_pd(__m256d x) {
  const double twice_root = 1.59576912160573071176;
  const __m256d square = _mm256_mul_pd(x, x);
  const __m256d slope = _mm256_fmadd_pd(square, _mm256_set1_pd(0.044715 * twice_root), _mm256_set1_pd(twice_root));
  return nan_at_minus_infinity(x, _mm256_div_pd(x, one_plus_exp_minus(_mm256_mul_pd(x, slope))));
}

/* erf(x) / x for x = sqrt(8 * (z + 1)), |z| <= 1; 9.4e-12. */
CPU_INLINE_AVX2 __m256d erf_quotient(__m256d z) {
  __m256d sum = _mm256_set1_pd(0x1.94bc9a9a36135p-17);
  NEXT(z, -0x1.30dd5a4db7723p-15) NEXT(z, 0x1.35d1a4c8c2daep-15) NEXT(z, -0x1.3697dbb5da381p-14)
  NEXT(z, 0x1.2ceba89de6e34p-12) NEXT(z, -0x1.5f1b5629dbf5ap-11) NEXT(z, 0x1.5136196631017p-10)
  NEXT(z, -0x1.4c22f5e835752p-9) NEXT(z, 0x1.3e2ba6fc42cdap-8) NEXT(z, -0x1.1ab69a28c4737p-7)
  NEXT(z, 0x1.d637aeb958caep-7) NEXT(z, -0x1.7019b6468ed54p-6) NEXT(z, 0x1.0ed4a941042b2p-5)
  NEXT(z, -0x1.76eadab0a7e32p-5) NEXT(z, 0x1.ea980eb87150ap-5) NEXT(z, -0x1.3215b9a0ff4f2p-4)
  NEXT(z, 0x1.717efb12889e0p-4) NEXT(z, -0x1.b92e9727aa4c0p-4) NEXT(z, 0x1.0dabaf0c1e551p-3)
  NEXT(z, -0x1.69a0ccd7e1f40p-3) NEXT(z, 0x1.6a040781a0842p-2)
  return sum;
}

/* erf(4) is 1 in f32. */
CPU_INLINE_AVX2 __m256d erf_pd(__m256d x) {
  const __m256d in_range = clamp_symmetric(x, 4.0);
  const __m256d z = _mm256_fmsub_pd(_mm256_mul_pd(in_range, in_range), _mm256_set1_pd(0.125), _mm256_set1_pd(1.0));
  return _mm256_mul_pd(in_range, erf_quotient(z));
}

/* Phi(-t) * e^(t^2 / 2) for t = 4 * (1 + z) / (1 - z) from 0 to 15; 3.8e-12. */
CPU_INLINE_AVX2 __m256d scaled_tail(__m256d z) {
  __m256d sum = _mm256_set1_pd(-0x1.2d09971581261p-20);
  NEXT(z, -0x1.f11d17cd53d61p-19) NEXT(z, 0x1.59175d310a867p-18) NEXT(z, 0x1.dd37fdcc3d06fp-16)
  NEXT(z, -0x1.806467a34f190p-15) NEXT(z, -0x1.887ebf2e633bcp-13) NEXT(z, 0x1.4ef51c17ada64p-11)
  NEXT(z, 0x1.0a1bae653801fp-11) NEXT(z, -0x1.1644edf1c8f1cp-7) NEXT(z, 0x1.f9b05f102a934p-6)
  NEXT(z, -0x1.25b6aa77813a9p-4) NEXT(z, 0x1.fd751a1f70910p-4) NEXT(z, -0x1.5cf97b0b25aa2p-3)
  NEXT(z, 0x1.82b4bb8c96386p-4)
  return sum;
}

/* x * Phi(x).  Beyond |x| = 15 the tail is 0 in f32, whatever it is multiplied with; the clamp only keeps it finite. */
CPU_INLINE_AVX2 __m256d gelu_pd(__m256d x) {
  const __m256d four = _mm256_set1_pd(4.0), one = _mm256_set1_pd(1.0);
  const __m256d t = _mm256_min_pd(_mm256_set1_pd(37.0), magnitude_of(x));
  const __m256d z = _mm256_div_pd(_mm256_sub_pd(t, four), _mm256_add_pd(t, four));
  const __m256d tail = _mm256_mul_pd(exp_pd(_mm256_mul_pd(_mm256_mul_pd(t, t), _mm256_set1_pd(-0.5))), scaled_tail(z));
  const __m256d phi = _mm256_blendv_pd(_mm256_sub_pd(one, tail), tail, x);
  return nan_at_minus_infinity(x, _mm256_mul_pd(x, phi));
}

/* A function of f64, applied to eight f32. */
#define CPU_EACH_HALF(function, v)                                                                                    \
  _mm256_set_m128(_mm256_cvtpd_ps(function(high_half(v))), _mm256_cvtpd_ps(function(low_half(v))))

#endif
