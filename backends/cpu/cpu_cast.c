/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TM_OP_CAST between the formats that checkpoints come in.  Sixteen elements a step; every value is rounded once, and a
 * NaN becomes quiet and keeps its sign and what fits of its payload, as the processor's own conversions do.
 */
#include <math.h>

#include "cpu_convert.h"

#define STEP 16

/* One step, all formats: reads STEP elements, writes STEP elements. */
typedef void (*step_fn)(const unsigned char *from, unsigned char *to, cpu_store_kind kind, int saturate);

CPU_INLINE void put(unsigned char *to, __m256i v, cpu_store_kind kind) {
  cpu_put((float *)(void *)to, _mm256_castsi256_ps(v), kind);
}
CPU_INLINE void put_half(unsigned char *to, __m128i v, cpu_store_kind kind) {
  if (kind == CPU_STORE_STREAMED) _mm_stream_si128((__m128i *)(void *)to, v);
  else _mm_storeu_si128((__m128i_u *)(void *)to, v);
}
CPU_INLINE void put_two(unsigned char *to, __m256 low, __m256 high, cpu_store_kind kind) {
  cpu_put((float *)(void *)to, low, kind);
  cpu_put((float *)(void *)(to + 32), high, kind);
}

/* Finite values beyond `largest` become it. */
CPU_INLINE __m256 saturate_ps(__m256 x, float largest) {
  const __m256 limit = _mm256_set1_ps(largest), sign = _mm256_set1_ps(-0.0f), magnitude = _mm256_andnot_ps(sign, x);
  const __m256 finite = _mm256_cmp_ps(magnitude, _mm256_set1_ps(HUGE_VALF), _CMP_LT_OQ);
  const __m256 limited = _mm256_or_ps(_mm256_min_ps(limit, magnitude), _mm256_and_ps(sign, x));
  return _mm256_blendv_ps(x, limited, finite);
}

/* ---- to f32 ---- */

CPU_INLINE void bf16_to_f32(const unsigned char *from, unsigned char *to, cpu_store_kind kind, int saturate) {
  (void)saturate;
  put_two(to, cpu_quiet_ps(cpu_widen_bf16(cpu_load128(from))), cpu_quiet_ps(cpu_widen_bf16(cpu_load128(from + 16))), kind);
}

CPU_INLINE void f16_to_f32(const unsigned char *from, unsigned char *to, cpu_store_kind kind, int saturate) {
  (void)saturate;
  put_two(to, _mm256_cvtph_ps(cpu_load128(from)), _mm256_cvtph_ps(cpu_load128(from + 16)), kind);
}

CPU_INLINE __m128 narrow_f64(__m256d x, int saturate) {
  const __m256d limit = _mm256_set1_pd(0x1.fffffep127), sign = _mm256_set1_pd(-0.0), magnitude = _mm256_andnot_pd(sign, x);
  const __m256d finite = _mm256_cmp_pd(magnitude, _mm256_set1_pd(HUGE_VAL), _CMP_LT_OQ);
  const __m256d limited = _mm256_or_pd(_mm256_min_pd(limit, magnitude), _mm256_and_pd(sign, x));
  return _mm256_cvtpd_ps(saturate ? _mm256_blendv_pd(x, limited, finite) : x);
}
CPU_INLINE void f64_to_f32(const unsigned char *from, unsigned char *to, cpu_store_kind kind, int saturate) {
  const __m128 a = narrow_f64(cpu_load_pd(from), saturate), b = narrow_f64(cpu_load_pd(from + 32), saturate);
  const __m128 c = narrow_f64(cpu_load_pd(from + 64), saturate), d = narrow_f64(cpu_load_pd(from + 96), saturate);
  put_two(to, _mm256_set_m128(b, a), _mm256_set_m128(d, c), kind);
}

/* e5m2 is the upper half of an f16. */
CPU_INLINE void f8_e5m2_to_f32(const unsigned char *from, unsigned char *to, cpu_store_kind kind, int saturate) {
  (void)saturate;
  const __m256i wide = _mm256_slli_epi16(_mm256_cvtepu8_epi16(cpu_load128(from)), 8);
  put_two(to, _mm256_cvtph_ps(_mm256_castsi256_si128(wide)), _mm256_cvtph_ps(_mm256_extracti128_si256(wide, 1)), kind);
}

CPU_INLINE void f8_e4m3fn_to_f32(const unsigned char *from, unsigned char *to, cpu_store_kind kind, int saturate) {
  (void)saturate;
  const __m128i bytes = cpu_load128(from);
  put_two(to, cpu_widen_e4m3(bytes), cpu_widen_e4m3(_mm_unpackhi_epi64(bytes, bytes)), kind);
}

CPU_INLINE void i8_to_f32(const unsigned char *from, unsigned char *to, cpu_store_kind kind, int saturate) {
  (void)saturate;
  const __m128i v = cpu_load128(from);
  put_two(to, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(v)), _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(v, v))), kind);
}
CPU_INLINE void u8_to_f32(const unsigned char *from, unsigned char *to, cpu_store_kind kind, int saturate) {
  (void)saturate;
  const __m128i v = cpu_load128(from);
  put_two(to, _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(v)), _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_unpackhi_epi64(v, v))), kind);
}
CPU_INLINE void i16_to_f32(const unsigned char *from, unsigned char *to, cpu_store_kind kind, int saturate) {
  (void)saturate;
  put_two(to, _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(cpu_load128(from))), _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(cpu_load128(from + 16))), kind);
}
CPU_INLINE void i32_to_f32(const unsigned char *from, unsigned char *to, cpu_store_kind kind, int saturate) {
  (void)saturate;
  put_two(to, _mm256_cvtepi32_ps(cpu_load(from)), _mm256_cvtepi32_ps(cpu_load(from + 32)), kind);
}

/* ---- from f32 ---- */

CPU_INLINE void put_bf16(unsigned char *to, __m256 low, __m256 high, cpu_store_kind kind, int saturate) {
  if (saturate) {
    low = saturate_ps(low, 0x1.fep127f);
    high = saturate_ps(high, 0x1.fep127f);
  }
  put(to, cpu_narrow_bf16(low, high), kind);
}
CPU_INLINE void put_f16(unsigned char *to, __m256 low, __m256 high, cpu_store_kind kind, int saturate) {
  if (saturate) {
    low = saturate_ps(low, 65504.0f);
    high = saturate_ps(high, 65504.0f);
  }
  put(to, cpu_narrow_f16(low, high), kind);
}

CPU_INLINE void f32_to_bf16(const unsigned char *from, unsigned char *to, cpu_store_kind kind, int saturate) {
  put_bf16(to, cpu_load_ps(from), cpu_load_ps(from + 32), kind, saturate);
}
CPU_INLINE void f32_to_f16(const unsigned char *from, unsigned char *to, cpu_store_kind kind, int saturate) {
  put_f16(to, cpu_load_ps(from), cpu_load_ps(from + 32), kind, saturate);
}
/* Both narrow formats fit into f32, so there is one rounding here too. */
CPU_INLINE void f16_to_bf16(const unsigned char *from, unsigned char *to, cpu_store_kind kind, int saturate) {
  put_bf16(to, _mm256_cvtph_ps(cpu_load128(from)), _mm256_cvtph_ps(cpu_load128(from + 16)), kind, saturate);
}
CPU_INLINE void bf16_to_f16(const unsigned char *from, unsigned char *to, cpu_store_kind kind, int saturate) {
  put_f16(to, cpu_widen_bf16(cpu_load128(from)), cpu_widen_bf16(cpu_load128(from + 16)), kind, saturate);
}
CPU_INLINE void f32_to_f64(const unsigned char *from, unsigned char *to, cpu_store_kind kind, int saturate) {
  (void)saturate;
  for (int i = 0; i < 4; ++i) {
    put(to + 32 * i, _mm256_castpd_si256(_mm256_cvtps_pd(_mm_loadu_ps((const float *)(const void *)(from + 16 * i)))), kind);
  }
}

/* Towards zero; NaN gives 0, and too large a value, for which the processor has but one answer, the largest. */
CPU_INLINE __m256i truncate(__m256 x, float low, float high) {
  const __m256 number = _mm256_and_ps(x, _mm256_cmp_ps(x, x, _CMP_ORD_Q));
  const __m256 limited = _mm256_min_ps(_mm256_max_ps(number, _mm256_set1_ps(low)), _mm256_set1_ps(high));
  return _mm256_cvttps_epi32(limited);
}
CPU_INLINE __m256i to_i32(__m256 x) {
  const __m256i over = _mm256_castps_si256(_mm256_cmp_ps(x, _mm256_set1_ps(0x1p31f), _CMP_GE_OQ));
  return _mm256_blendv_epi8(truncate(x, -0x1p31f, 0x1p31f), _mm256_set1_epi32(INT32_MAX), over);
}
CPU_INLINE void f32_to_i32(const unsigned char *from, unsigned char *to, cpu_store_kind kind, int saturate) {
  (void)saturate;
  put(to, to_i32(cpu_load_ps(from)), kind);
  put(to + 32, to_i32(cpu_load_ps(from + 32)), kind);
}
CPU_INLINE void f32_to_i8(const unsigned char *from, unsigned char *to, cpu_store_kind kind, int saturate) {
  (void)saturate;
  const __m256i words = _mm256_permute4x64_epi64(
      _mm256_packs_epi32(truncate(cpu_load_ps(from), -128.0f, 127.0f), truncate(cpu_load_ps(from + 32), -128.0f, 127.0f)), 0xd8);
  put_half(to, _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)), kind);
}
CPU_INLINE void f32_to_u8(const unsigned char *from, unsigned char *to, cpu_store_kind kind, int saturate) {
  (void)saturate;
  const __m256i words = _mm256_permute4x64_epi64(
      _mm256_packs_epi32(truncate(cpu_load_ps(from), 0.0f, 255.0f), truncate(cpu_load_ps(from + 32), 0.0f, 255.0f)), 0xd8);
  put_half(to, _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)), kind);
}

/* ---- rows ---- */

/* The last elements go through a full step on copies. */
CPU_INLINE void run_steps(step_fn step, uint32_t from_bytes, uint32_t to_bytes, const unsigned char *from, unsigned char *to,
                          uint64_t count, cpu_store_kind kind, int saturate) {
  for (; count >= STEP; count -= STEP, from += STEP * from_bytes, to += STEP * to_bytes) {
    CPU_PREFETCH(from);
    step(from, to, kind, saturate);
  }
  if (count == 0) return;
  unsigned char in[STEP * 8] = { 0 }, out[STEP * 8];
  memcpy(in, from, count * from_bytes);
  step(in, out, CPU_STORE_PLAIN, saturate);
  memcpy(to, out, count * to_bytes);
}

/* Only formats with a limit below f32's look at the attribute; for all others both forms are one. */
#define CAST(name, from_bytes, to_bytes)                                                                                    \
  static CPU_AVX2 void plain_##name(const unsigned char *from, unsigned char *to, uint64_t count, cpu_store_kind kind) {    \
    if (kind == CPU_STORE_STREAMED) run_steps(name, from_bytes, to_bytes, from, to, count, CPU_STORE_STREAMED, 0);          \
    else run_steps(name, from_bytes, to_bytes, from, to, count, CPU_STORE_PLAIN, 0);                                        \
  }                                                                                                                         \
  static CPU_AVX2 void saturating_##name(const unsigned char *from, unsigned char *to, uint64_t count, cpu_store_kind kind) { \
    if (kind == CPU_STORE_STREAMED) run_steps(name, from_bytes, to_bytes, from, to, count, CPU_STORE_STREAMED, 1);          \
    else run_steps(name, from_bytes, to_bytes, from, to, count, CPU_STORE_PLAIN, 1);                                        \
  }                                                                                                                         \
  static void run_##name(const cpu_call *call) {                                                                            \
    const tm_cast_attributes *attributes = call->operation->attributes;                                                     \
    cpu_convert(call, attributes->saturate ? saturating_##name : plain_##name, (cpu_convert_shape){ 1, from_bytes, to_bytes }); \
  }

CAST(bf16_to_f32, 2, 4)
CAST(f16_to_f32, 2, 4)
CAST(f64_to_f32, 8, 4)
CAST(f8_e4m3fn_to_f32, 1, 4)
CAST(f8_e5m2_to_f32, 1, 4)
CAST(i8_to_f32, 1, 4)
CAST(u8_to_f32, 1, 4)
CAST(i16_to_f32, 2, 4)
CAST(i32_to_f32, 4, 4)
CAST(f32_to_bf16, 4, 2)
CAST(f32_to_f16, 4, 2)
CAST(f32_to_f64, 4, 8)
CAST(f32_to_i8, 4, 1)
CAST(f32_to_u8, 4, 1)
CAST(f32_to_i32, 4, 4)
CAST(f16_to_bf16, 2, 2)
CAST(bf16_to_f16, 2, 2)

#define ELEMENTS_PER_US 10000.0

static uint64_t cost_ns(const tm_operation *operation, uint32_t lanes) { return cpu_convert_cost_ns(operation, ELEMENTS_PER_US, lanes); }

#define ROW(from_id, to_id, lower)                                                                                     \
  { .op = TM_OP_CAST, .formats = { TM_FORMAT_##from_id, TM_FORMAT_##to_id }, .attribute_bytes = sizeof(tm_cast_attributes), \
    .isa = CPU_ISA_AVX2, .level = TM_LEVEL_NATIVE, .numerics = TM_NUMERICS_N0,                                          \
    .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE, .name = "cpu_cast_" #lower "__avx2",        \
    .cost_ns = cost_ns, .run = run_##lower }

static const cpu_row rows[] = {
  ROW(BF16, F32, bf16_to_f32),
  ROW(F16, F32, f16_to_f32),
  ROW(F64, F32, f64_to_f32),
  ROW(F8_E4M3FN, F32, f8_e4m3fn_to_f32),
  ROW(F8_E5M2, F32, f8_e5m2_to_f32),
  ROW(I8, F32, i8_to_f32),
  ROW(U8, F32, u8_to_f32),
  ROW(I16, F32, i16_to_f32),
  ROW(I32, F32, i32_to_f32),
  ROW(F32, BF16, f32_to_bf16),
  ROW(F32, F16, f32_to_f16),
  ROW(F32, F64, f32_to_f64),
  ROW(F32, I8, f32_to_i8),
  ROW(F32, U8, f32_to_u8),
  ROW(F32, I32, f32_to_i32),
  ROW(F16, BF16, f16_to_bf16),
  ROW(BF16, F16, bf16_to_f16),
};

const kernel_row_table cpu_rows_cast = { rows, sizeof rows / sizeof rows[0] };
