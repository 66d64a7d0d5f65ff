/* SPDX-License-Identifier: Apache-2.0 */
/*
 * q8_0 and q4_0 against themselves, without lanes.  A product of two elements is a product of two scales times a small
 * integer, and as long as all scales of a superblock are of similar size, every sum of such products is a whole number of
 * units (as the smallest scale's last place squared) of at most 2^53.  Then no addition rounds, the order is of no account,
 * and sums of a block are made of its integers; (a - b)^2 is a^2 + b^2 - 2ab.  Whether it was so is seen at the end of the
 * superblock: if not, it is done again by lanes.
 *
 * The differences themselves are looked at in f32, in which values are exact, and differences too unless a pair of scales
 * is more than 32 times apart.
 */
#include <math.h>
#include <string.h>

#include "cpu_block_sums.h"
#include "cpu_compare.h"
#include "cpu_decode.h"

#define BLOCK    TM_SUM_BLOCK
#define ELEMENTS CPU_QUANT_ELEMENTS
#define QUANTS   CPU_COMPARE_QUANTS

/* ---- what there is in 512 elements ---- */

CPU_INLINE void unpack_nibbles(const unsigned char *data, unsigned char *out) {
  const __m128i mask = _mm_set1_epi8(15), eight = _mm_set1_epi8(8);
  for (int i = 0; i < QUANTS; ++i, data += CPU_Q4_0_BYTES, out += ELEMENTS) {
    const __m128i nibbles = cpu_load128(data + CPU_SCALE_BYTES);
    _mm_storeu_si128((__m128i_u *)(void *)out, _mm_sub_epi8(_mm_and_si128(nibbles, mask), eight));
    _mm_storeu_si128((__m128i_u *)(void *)(out + 16), _mm_sub_epi8(_mm_and_si128(_mm_srli_epi16(nibbles, 4), mask), eight));
  }
}

/* Returns 0 if a scale is not finite. */
CPU_INLINE int read_quants(const unsigned char *data, uint32_t block_bytes, cpu_compare_quants *out) {
  const uint32_t half = QUANTS / 2;
  const __m128i low = cpu_load_scales(data, block_bytes), high = cpu_load_scales(data + half * block_bytes, block_bytes);
  const __m256i bits = _mm256_set_m128i(high, low);
  cpu_store(out->bits, bits);
  _mm256_storeu_ps(out->scales, _mm256_cvtph_ps(low));
  _mm256_storeu_ps(out->scales + half, _mm256_cvtph_ps(high));
  out->integers = data + CPU_SCALE_BYTES;
  out->stride = block_bytes;
  if (block_bytes == CPU_Q4_0_BYTES) {
    unpack_nibbles(data, out->unpacked);
    out->integers = out->unpacked;
    out->stride = ELEMENTS;
  }
  const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi16(0x7fff));
  return !cpu_any(_mm256_cmpgt_epi16(magnitude, _mm256_set1_epi16(0x7bff)));
}

/* ---- sums ---- */

/* Sums of neighbouring products.  The sign of the first factor has gone to the second one, which must not be -128. */
CPU_INLINE __m256i products(__m256i magnitude, __m256i other) {
  return _mm256_madd_epi16(_mm256_maddubs_epi16(magnitude, other), _mm256_set1_epi16(1));
}

CPU_INLINE __m256d low_half(__m256 x) { return _mm256_cvtps_pd(_mm256_castps256_ps128(x)); }
CPU_INLINE __m256d high_half(__m256 x) { return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)); }

CPU_INLINE void add_scaled(double *total, __m256 scales_a, __m256 scales_b, __m256i sums) {
  const __m256d low = _mm256_mul_pd(low_half(scales_a), low_half(scales_b));
  const __m256d high = _mm256_mul_pd(high_half(scales_a), high_half(scales_b));
  _mm256_storeu_pd(total, _mm256_fmadd_pd(low, _mm256_cvtepi32_pd(_mm256_castsi256_si128(sums)), cpu_load_pd(total)));
  _mm256_storeu_pd(total + 4, _mm256_fmadd_pd(high, _mm256_cvtepi32_pd(_mm256_extracti128_si256(sums, 1)), cpu_load_pd(total + 4)));
}

/* The smallest scale that is not zero; less 1, by which zero becomes the largest number. */
CPU_INLINE void note_scales(const cpu_compare_quants *q, uint16_t *smallest) {
  const __m256i magnitude = _mm256_and_si256(cpu_load(q->bits), _mm256_set1_epi16(0x7fff));
  const __m256i below = _mm256_sub_epi16(magnitude, _mm256_set1_epi16(1));
  cpu_store(smallest, _mm256_min_epu16(cpu_load(smallest), below));
}

/* Returns the smallest integers seen. */
CPU_INLINE __m256i sum_group(const cpu_compare_quants *a, const cpu_compare_quants *b, int group, cpu_compare_totals *totals) {
  __m256i dot[CPU_BLOCK_GROUP], norm_a[CPU_BLOCK_GROUP], norm_b[CPU_BLOCK_GROUP], smallest = _mm256_setzero_si256();
  const unsigned char *from_a = a->integers + (uint64_t)group * a->stride, *from_b = b->integers + (uint64_t)group * b->stride;
  for (int i = 0; i < CPU_BLOCK_GROUP; ++i, from_a += a->stride, from_b += b->stride) {
    CPU_COMPARE_PREFETCH(from_a);
    CPU_COMPARE_PREFETCH(from_b);
    const __m256i x = cpu_load(from_a), y = cpu_load(from_b), size_x = _mm256_abs_epi8(x), size_y = _mm256_abs_epi8(y);
    dot[i] = products(size_x, _mm256_sign_epi8(y, x));
    norm_a[i] = products(size_x, size_x);
    norm_b[i] = products(size_y, size_y);
    smallest = _mm256_min_epi8(smallest, _mm256_min_epi8(x, y));
  }
  const __m256 scales_a = cpu_load_ps(a->scales + group), scales_b = cpu_load_ps(b->scales + group);
  add_scaled(totals->dot, scales_a, scales_b, cpu_sum_each(dot));
  add_scaled(totals->norm_a, scales_a, scales_a, cpu_sum_each(norm_a));
  add_scaled(totals->norm_b, scales_b, scales_b, cpu_sum_each(norm_b));
  return smallest;
}

CPU_INLINE __m256i sum_equal_group(const cpu_compare_quants *a, int group, cpu_compare_totals *totals) {
  __m256i norm[CPU_BLOCK_GROUP], smallest = _mm256_setzero_si256();
  const unsigned char *from = a->integers + (uint64_t)group * a->stride;
  for (int i = 0; i < CPU_BLOCK_GROUP; ++i, from += a->stride) {
    const __m256i x = cpu_load(from), size = _mm256_abs_epi8(x);
    norm[i] = products(size, size);
    smallest = _mm256_min_epi8(smallest, x);
  }
  const __m256 scales = cpu_load_ps(a->scales + group);
  add_scaled(totals->same, scales, scales, cpu_sum_each(norm));
  return smallest;
}

CPU_INLINE int has_lowest(__m256i smallest) { return cpu_any(_mm256_cmpeq_epi8(smallest, _mm256_set1_epi8(INT8_MIN))); }

CPU_AVX2 int cpu_compare_add_equal_quants(const unsigned char *data, uint32_t block_bytes, cpu_compare_totals *totals) {
  cpu_compare_quants a;
  if (!read_quants(data, block_bytes, &a)) return 0;
  note_scales(&a, totals->smallest_a);
  note_scales(&a, totals->smallest_b);
  const __m256i low = sum_equal_group(&a, 0, totals), high = sum_equal_group(&a, CPU_BLOCK_GROUP, totals);
  return !has_lowest(_mm256_min_epi8(low, high));
}

/* ---- differences ---- */

/* Whether differences are exact in f32: no pair of scales with exponents more than 5 apart, unless one is zero. */
CPU_INLINE int has_exact_differences(const cpu_compare_quants *a, const cpu_compare_quants *b) {
  const __m256i mask = _mm256_set1_epi16(0x7fff), one = _mm256_set1_epi16(1), zero = _mm256_setzero_si256();
  const __m256i x = _mm256_and_si256(cpu_load(a->bits), mask), y = _mm256_and_si256(cpu_load(b->bits), mask);
  const __m256i exponent_x = _mm256_max_epi16(_mm256_srli_epi16(x, 10), one);
  const __m256i exponent_y = _mm256_max_epi16(_mm256_srli_epi16(y, 10), one);
  const __m256i apart = _mm256_cmpgt_epi16(_mm256_abs_epi16(_mm256_sub_epi16(exponent_x, exponent_y)), _mm256_set1_epi16(5));
  const __m256i either_zero = _mm256_or_si256(_mm256_cmpeq_epi16(x, zero), _mm256_cmpeq_epi16(y, zero));
  return !cpu_any(_mm256_andnot_si256(either_zero, apart));
}

static float rounded_down(double value) {
  float nearest = (float)value;
  uint32_t bits;
  if (!((double)nearest > value)) return nearest;
  memcpy(&bits, &nearest, sizeof bits);
  bits--;
  memcpy(&nearest, &bits, sizeof bits);
  return nearest;
}

CPU_AVX2 int cpu_compare_add_quants(const cpu_compare_kernels *kernels, const unsigned char *data_a, const unsigned char *data_b,
                                    uint32_t block_bytes, cpu_compare_state *state, cpu_compare_totals *totals) {
  cpu_compare_quants a, b;
  if (!read_quants(data_a, block_bytes, &a) || !read_quants(data_b, block_bytes, &b)) return 0;
  note_scales(&a, totals->smallest_a);
  note_scales(&b, totals->smallest_b);
  const __m256i low = sum_group(&a, &b, 0, totals), high = sum_group(&a, &b, CPU_BLOCK_GROUP, totals);
  if (has_lowest(_mm256_min_epi8(low, high))) return 0;
  const int is_beyond = kernels->compare_quants(&a, &b, rounded_down(state->max_abs), rounded_down(state->max_rel), &state->equal);
  if (is_beyond || !has_exact_differences(&a, &b)) {
    float wide_a[BLOCK], wide_b[BLOCK];
    const cpu_compare_format *format = cpu_compare_format_find(block_bytes == CPU_Q8_0_BYTES ? TM_FORMAT_Q8_0 : TM_FORMAT_Q4_0);
    format->to_f32(data_a, wide_a);
    format->to_f32(data_b, wide_b);
    cpu_compare_find_largest(wide_a, wide_b, state);
  }
  return 1;
}

CPU_INLINE __m256 decode_eight(const unsigned char *integers, __m256 scale) {
  return cpu_times_bytes(scale, _mm_loadl_epi64((const __m128i_u *)(const void *)integers));
}

CPU_AVX2 int cpu_compare_quants_avx2(const cpu_compare_quants *a, const cpu_compare_quants *b, float max_abs, float max_rel,
                                     uint64_t *equal) {
  const __m256 sign = _mm256_set1_ps(-0.0f), abs = _mm256_set1_ps(max_abs), rel = _mm256_set1_ps(max_rel);
  __m256 more = _mm256_setzero_ps();
  __m256i same = _mm256_setzero_si256();
  for (uint32_t i = 0; i < QUANTS; ++i) {
    const unsigned char *from_a = a->integers + (uint64_t)i * a->stride, *from_b = b->integers + (uint64_t)i * b->stride;
    const __m256 scale_a = _mm256_set1_ps(a->scales[i]), scale_b = _mm256_set1_ps(b->scales[i]);
    for (uint32_t k = 0; k < ELEMENTS; k += 8) {
      const __m256 x = decode_eight(from_a + k, scale_a), y = decode_eight(from_b + k, scale_b);
      const __m256 distance = _mm256_andnot_ps(sign, _mm256_sub_ps(x, y));
      const __m256 larger = _mm256_max_ps(_mm256_andnot_ps(sign, x), _mm256_andnot_ps(sign, y));
      more = _mm256_or_ps(more, _mm256_or_ps(_mm256_sub_ps(abs, distance), _mm256_fmsub_ps(larger, rel, distance)));
      same = _mm256_sub_epi32(same, _mm256_cmpeq_epi32(_mm256_castps_si256(x), _mm256_castps_si256(y)));
    }
  }
  *equal += cpu_sum_epi32(same);
  return _mm256_movemask_ps(more) != 0;
}

/* ---- the end of a superblock ---- */

static CPU_AVX2 double total_of(const double *parts) {
  double total = 0;
  for (int i = 0; i < CPU_BLOCK_GROUP; ++i) total += parts[i];
  return total;
}

void cpu_compare_start_totals(cpu_compare_totals *totals) {
  memset(totals, 0, sizeof *totals);
  memset(totals->smallest_a, 0xff, sizeof totals->smallest_a);
  memset(totals->smallest_b, 0xff, sizeof totals->smallest_b);
}

/* What the smallest scale's last place weighs; of zeros only a large number, and no sum is above zero. */
static double unit_of(const uint16_t *below) {
  uint16_t smallest = UINT16_MAX;
  for (size_t i = 0; i < QUANTS; ++i) smallest = below[i] < smallest ? below[i] : smallest;
  const int exponent = (smallest + 1) >> 10;
  return ldexp(1, (exponent > 0 ? exponent : 1) - 25);
}

/* With units u and v of both sides and w the smaller one: norms of at most 2^53 u^2 and 2^53 v^2 have been summed exactly, and
   so have products, whose partial sums are at most the root of the norms' product.  A sum of squared differences of at most
   2^53 w^2 is exact by lanes, and so is (a^2 - ab) + (b^2 - ab) if both halves are below that.  What had to be rounded on its
   way is not below: rounding keeps the order. */
int cpu_compare_end_totals(const cpu_compare_totals *totals, double out_sums[4]) {
  const double u = unit_of(totals->smallest_a), v = unit_of(totals->smallest_b), w = u < v ? u : v, limit = 0x1p53 * w * w;
  const double same = total_of(totals->same), dot = total_of(totals->dot) + same;
  const double norm_a = total_of(totals->norm_a) + same, norm_b = total_of(totals->norm_b) + same;
  const double rest_a = norm_a - dot, rest_b = norm_b - dot, squared = rest_a + rest_b;
  if (!(norm_a < 0x1p53 * u * u) || !(norm_b < 0x1p53 * v * v)) return 0;
  if (!(fabs(rest_a) < limit) || !(fabs(rest_b) < limit) || !(squared < limit)) return 0;
  out_sums[0] = squared;
  out_sums[1] = dot;
  out_sums[2] = norm_a;
  out_sums[3] = norm_b;
  return 1;
}
