/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TM_OP_DEQUANTIZE, and TM_OP_QUANTIZE of q8_0 and q4_0, block by block.  Quantizing repeats the reference encoder's f32
 * arithmetic operation by operation, so its bytes are the same.
 */
#include <math.h>

#include "cpu_blocks.h"
#include "cpu_convert.h"

#define ELEMENTS CPU_QUANT_ELEMENTS

/* ---- dequantize ---- */

CPU_INLINE void put_narrow(unsigned char *to, const float *values, int is_f16, cpu_store_kind kind) {
  for (uint32_t i = 0; i < ELEMENTS; i += 16) {
    const __m256 low = cpu_load_ps(values + i), high = cpu_load_ps(values + i + 8);
    const __m256i v = is_f16 ? cpu_narrow_f16(low, high) : cpu_narrow_bf16(low, high);
    cpu_put((float *)(void *)(to + 2 * i), _mm256_castsi256_ps(v), kind);
  }
}

typedef enum target { TO_F32, TO_F16, TO_BF16 } target;

CPU_INLINE void dequantize(int is_q4, target t, const unsigned char *from, unsigned char *to, uint64_t blocks, cpu_store_kind kind) {
  const uint64_t from_bytes = is_q4 ? CPU_Q4_0_BYTES : CPU_Q8_0_BYTES, to_bytes = ELEMENTS * (t == TO_F32 ? 4 : 2);
  for (; blocks > 0; --blocks, from += from_bytes, to += to_bytes) {
    float values[ELEMENTS];
    float *decoded = t == TO_F32 ? (float *)(void *)to : values;
    CPU_PREFETCH(from);
    if (is_q4) cpu_decode_q4_0(from, decoded, t == TO_F32 ? kind : CPU_STORE_PLAIN);
    else cpu_decode_q8_0(from, decoded, t == TO_F32 ? kind : CPU_STORE_PLAIN);
    if (t != TO_F32) put_narrow(to, values, t == TO_F16, kind);
  }
}

#define DEQUANTIZE(name, is_q4, target, target_bytes)                                                                     \
  static CPU_AVX2 void blocks_##name(const unsigned char *from, unsigned char *to, uint64_t units, cpu_store_kind kind) { \
    if (kind == CPU_STORE_STREAMED) dequantize(is_q4, target, from, to, units, CPU_STORE_STREAMED);                       \
    else dequantize(is_q4, target, from, to, units, CPU_STORE_PLAIN);                                                     \
  }                                                                                                                       \
  static void run_##name(const cpu_call *call) {                                                                          \
    cpu_convert(call, blocks_##name,                                                                                      \
                (cpu_convert_shape){ ELEMENTS, is_q4 ? CPU_Q4_0_BYTES : CPU_Q8_0_BYTES, ELEMENTS * target_bytes });        \
  }

DEQUANTIZE(q8_0_to_f32, 0, TO_F32, 4)
DEQUANTIZE(q4_0_to_f32, 1, TO_F32, 4)
DEQUANTIZE(q8_0_to_f16, 0, TO_F16, 2)
DEQUANTIZE(q4_0_to_f16, 1, TO_F16, 2)
DEQUANTIZE(q8_0_to_bf16, 0, TO_BF16, 2)
DEQUANTIZE(q4_0_to_bf16, 1, TO_BF16, 2)

#define READ_BLOCKS(id, name, elements, bytes, ps)                                                          \
  static void run_##name##_to_f32(const cpu_call *call) {                                                   \
    cpu_convert(call, cpu_dequantize_##name, (cpu_convert_shape){ elements, bytes, (elements) * 4u });       \
  }                                                                                                         \
  static uint64_t cost_of_##name(const tm_operation *operation, uint32_t lanes) { return cpu_convert_cost_ns(operation, 1e6 / (ps), lanes); }
CPU_READ_BLOCKS(READ_BLOCKS)

/* ---- quantize ---- */

/* Scalars, not an array: gcc 12 keeps an array of vectors on the stack. */
typedef struct block_values {
  __m256 a, b, c, d;
} block_values;

typedef enum source { FROM_F32, FROM_F16, FROM_BF16 } source;

CPU_INLINE __m256 load_values(source s, const unsigned char *from, int quarter) {
  if (s == FROM_F32) return cpu_load_ps(from + 32 * quarter);
  return s == FROM_F16 ? _mm256_cvtph_ps(cpu_load128(from + 16 * quarter)) : cpu_widen_bf16(cpu_load128(from + 16 * quarter));
}
CPU_INLINE block_values load_block(source s, const unsigned char *from) {
  return (block_values){ load_values(s, from, 0), load_values(s, from, 1), load_values(s, from, 2), load_values(s, from, 3) };
}

CPU_INLINE __m256 absolute(__m256 x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x); }
CPU_INLINE __m256i magnitude_bits(__m256 x) { return _mm256_castps_si256(absolute(x)); }

/* The largest magnitude; an infinity or a NaN if there is one, and then which one does not matter: see odd_magnitude. */
CPU_INLINE float largest_magnitude(const block_values *v) {
  const __m256i most = _mm256_max_epi32(_mm256_max_epi32(magnitude_bits(v->a), magnitude_bits(v->b)),
                                        _mm256_max_epi32(magnitude_bits(v->c), magnitude_bits(v->d)));
  __m128i half = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
  half = _mm_max_epi32(half, _mm_unpackhi_epi64(half, half));
  half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 1));
  return _mm_cvtss_f32(_mm_castsi128_ps(half));
}

CPU_INLINE void store_block(const block_values *v, float *to) {
  _mm256_storeu_ps(to, v->a);
  _mm256_storeu_ps(to + 8, v->b);
  _mm256_storeu_ps(to + 16, v->c);
  _mm256_storeu_ps(to + 24, v->d);
}

/* Of a block that is not finite: the magnitude of its first NaN, else infinity. */
static __attribute__((noinline)) CPU_AVX2 float odd_magnitude(const block_values *v) {
  float values[ELEMENTS];
  store_block(v, values);
  for (uint32_t i = 0; i < ELEMENTS; ++i) {
    if (values[i] != values[i]) return fabsf(values[i]);
  }
  return HUGE_VALF;
}

CPU_INLINE void store_scale(unsigned char *to, float scale) {
  const uint16_t bits = _cvtss_sh(scale, _MM_FROUND_TO_NEAREST_INT);
  memcpy(to, &bits, sizeof bits);
}

/* Four vectors of small integers as 32 bytes, in order. */
CPU_INLINE __m256i pack_bytes(__m256i a, __m256i b, __m256i c, __m256i d) {
  const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* To nearest, halves away from zero.  The part behind the point is exact, so nothing is rounded twice.  A quotient that is
   NaN, of a zero and a scale without a finite inverse, gives 0. */
CPU_INLINE __m256i round_quant(__m256 x, __m256 inverse) {
  const __m256 sign = _mm256_set1_ps(-0.0f), product = _mm256_mul_ps(x, inverse);
  const __m256 number = _mm256_and_ps(product, _mm256_cmp_ps(product, product, _CMP_ORD_Q));
  const __m256 t = _mm256_max_ps(_mm256_min_ps(number, _mm256_set1_ps(127.0f)), _mm256_set1_ps(-128.0f));
  const __m256 whole = _mm256_round_ps(t, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  const __m256 away = _mm256_cmp_ps(absolute(_mm256_sub_ps(t, whole)), _mm256_set1_ps(0.5f), _CMP_GE_OQ);
  const __m256 one = _mm256_or_ps(_mm256_set1_ps(1.0f), _mm256_and_ps(sign, t));
  return _mm256_cvtps_epi32(_mm256_add_ps(whole, _mm256_and_ps(away, one)));
}

CPU_INLINE void encode_q8_0(const block_values *v, unsigned char *to) {
  float largest = largest_magnitude(v);
  const int finite = largest < HUGE_VALF;
  if (!finite) largest = odd_magnitude(v);
  const float d = largest / 127.0f, inverse = d != 0.0f && finite ? 1.0f / d : 0.0f;
  const __m256 factor = _mm256_set1_ps(inverse);
  store_scale(to, d);
  cpu_store(to + 2, finite ? pack_bytes(round_quant(v->a, factor), round_quant(v->b, factor), round_quant(v->c, factor),
                                        round_quant(v->d, factor))
                           : _mm256_setzero_si256());
}

CPU_INLINE uint32_t where_equal(__m256 x, __m256 magnitude) {
  return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(absolute(x), magnitude, _CMP_EQ_OQ));
}

/* The first value of the largest magnitude; of zeros +0. */
CPU_INLINE float signed_extreme(const block_values *v, float largest) {
  float values[ELEMENTS];
  if (largest == 0.0f || largest != largest) return largest;
  const __m256 wanted = _mm256_set1_ps(largest);
  const uint32_t found = where_equal(v->a, wanted) | where_equal(v->b, wanted) << 8 | where_equal(v->c, wanted) << 16 |
                         where_equal(v->d, wanted) << 24;
  store_block(v, values);
  return values[__builtin_ctz(found)];
}

CPU_INLINE __m256i nibble_quant(__m256 x, __m256 inverse) {
  const __m256 shifted = _mm256_add_ps(_mm256_mul_ps(x, inverse), _mm256_set1_ps(8.5f));
  return _mm256_cvttps_epi32(_mm256_min_ps(_mm256_max_ps(shifted, _mm256_setzero_ps()), _mm256_set1_ps(15.0f)));
}

CPU_INLINE void encode_q4_0(const block_values *v, unsigned char *to) {
  float largest = largest_magnitude(v);
  if (!(largest < HUGE_VALF)) largest = odd_magnitude(v);
  const float d = signed_extreme(v, largest) / -8.0f, inverse = d != 0.0f ? 1.0f / d : 0.0f;
  const __m256 factor = _mm256_set1_ps(inverse);
  const __m256i quants = fabsf(d) < HUGE_VALF ? pack_bytes(nibble_quant(v->a, factor), nibble_quant(v->b, factor),
                                                           nibble_quant(v->c, factor), nibble_quant(v->d, factor))
                                              : _mm256_set1_epi8(8);
  store_scale(to, d);
  const __m128i high = _mm_slli_epi16(_mm256_extracti128_si256(quants, 1), 4);
  _mm_storeu_si128((__m128i_u *)(void *)(to + 2), _mm_or_si128(_mm256_castsi256_si128(quants), high));
}

CPU_INLINE void quantize(source s, int is_q4, const unsigned char *from, unsigned char *to, uint64_t blocks) {
  const uint64_t from_bytes = ELEMENTS * (s == FROM_F32 ? 4 : 2), to_bytes = is_q4 ? CPU_Q4_0_BYTES : CPU_Q8_0_BYTES;
  for (; blocks > 0; --blocks, from += from_bytes, to += to_bytes) {
    CPU_PREFETCH(from);
    CPU_PREFETCH(from + 64);
    const block_values values = load_block(s, from);
    if (is_q4) encode_q4_0(&values, to);
    else encode_q8_0(&values, to);
  }
}

/* Blocks of 18 and 34 bytes are never aligned, so all stores are plain ones. */
#define QUANTIZE(name, source, source_bytes, is_q4)                                                                       \
  static CPU_AVX2 void blocks_##name(const unsigned char *from, unsigned char *to, uint64_t units, cpu_store_kind kind) { \
    (void)kind;                                                                                                           \
    quantize(source, is_q4, from, to, units);                                                                             \
  }                                                                                                                       \
  static void run_##name(const cpu_call *call) {                                                                          \
    cpu_convert(call, blocks_##name,                                                                                      \
                (cpu_convert_shape){ ELEMENTS, ELEMENTS * source_bytes, is_q4 ? CPU_Q4_0_BYTES : CPU_Q8_0_BYTES });        \
  }

QUANTIZE(f32_to_q8_0, FROM_F32, 4, 0)
QUANTIZE(f16_to_q8_0, FROM_F16, 2, 0)
QUANTIZE(bf16_to_q8_0, FROM_BF16, 2, 0)
QUANTIZE(f32_to_q4_0, FROM_F32, 4, 1)
QUANTIZE(f16_to_q4_0, FROM_F16, 2, 1)
QUANTIZE(bf16_to_q4_0, FROM_BF16, 2, 1)

/* ---- rows ---- */

#define DECODED_PER_US 13000.0
#define ENCODED_PER_US 2000.0

static uint64_t dequantize_cost_ns(const tm_operation *operation, uint32_t lanes) {
  return cpu_convert_cost_ns(operation, DECODED_PER_US, lanes);
}
static uint64_t quantize_cost_ns(const tm_operation *operation, uint32_t lanes) {
  return cpu_convert_cost_ns(operation, ENCODED_PER_US, lanes);
}

#define ROW(which, cost, from_id, to_id, lower, text)                                                               \
  { .op = TM_OP_##which, .formats = { TM_FORMAT_##from_id, TM_FORMAT_##to_id }, .isa = CPU_ISA_AVX2,                \
    .level = TM_LEVEL_NATIVE, .numerics = TM_NUMERICS_N0,                                                           \
    .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE, .name = "cpu_" text "_" #lower "__avx2", \
    .cost_ns = cost, .run = run_##lower }
#define DEQUANTIZE_ROW(from_id, to_id, lower) ROW(DEQUANTIZE, dequantize_cost_ns, from_id, to_id, lower, "dequantize")
#define QUANTIZE_ROW(from_id, to_id, lower)   ROW(QUANTIZE, quantize_cost_ns, from_id, to_id, lower, "quantize")

#define READ_BLOCKS_ROW(id, name, elements, bytes, ps) ROW(DEQUANTIZE, cost_of_##name, id, F32, name##_to_f32, "dequantize"),

static const cpu_row rows[] = {
  DEQUANTIZE_ROW(Q8_0, F32, q8_0_to_f32),   DEQUANTIZE_ROW(Q4_0, F32, q4_0_to_f32),   DEQUANTIZE_ROW(Q8_0, F16, q8_0_to_f16),
  DEQUANTIZE_ROW(Q4_0, F16, q4_0_to_f16),   DEQUANTIZE_ROW(Q8_0, BF16, q8_0_to_bf16), DEQUANTIZE_ROW(Q4_0, BF16, q4_0_to_bf16),
  QUANTIZE_ROW(F32, Q8_0, f32_to_q8_0),     QUANTIZE_ROW(F16, Q8_0, f16_to_q8_0),     QUANTIZE_ROW(BF16, Q8_0, bf16_to_q8_0),
  QUANTIZE_ROW(F32, Q4_0, f32_to_q4_0),     QUANTIZE_ROW(F16, Q4_0, f16_to_q4_0),     QUANTIZE_ROW(BF16, Q4_0, bf16_to_q4_0),
  CPU_READ_BLOCKS(READ_BLOCKS_ROW)
};

const kernel_row_table cpu_rows_quantize = { rows, sizeof rows / sizeof rows[0] };
