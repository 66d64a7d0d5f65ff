/* SPDX-License-Identifier: Apache-2.0 */
/* The formats that merging kernels read, a block of CPU_MERGE_BLOCK elements at a time. */
#include "cpu_blocks.h"
#include "cpu_merge.h"

static CPU_AVX2 void decode_f32(const unsigned char *data, float *to) { memcpy(to, data, CPU_MERGE_BLOCK * sizeof *to); }

static CPU_AVX2 void decode_bf16(const unsigned char *data, float *to) {
  for (uint32_t i = 0; i < CPU_MERGE_BLOCK; i += 8) _mm256_storeu_ps(to + i, cpu_widen_bf16(cpu_load128(data + 2 * i)));
}

static CPU_AVX2 void decode_f16(const unsigned char *data, float *to) {
  for (uint32_t i = 0; i < CPU_MERGE_BLOCK; i += 8) _mm256_storeu_ps(to + i, _mm256_cvtph_ps(cpu_load128(data + 2 * i)));
}

CPU_INLINE __m128i load_eight_bytes(const unsigned char *data) {
  return _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i_u *)(const void *)data));
}

/* e5m2 is the upper half of an f16. */
static CPU_AVX2 void decode_e5m2(const unsigned char *data, float *to) {
  for (uint32_t i = 0; i < CPU_MERGE_BLOCK; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_slli_epi16(load_eight_bytes(data + i), 8)));
}

/* e4m3fn as an f16 of the same bits is too small by the difference of the biases; its one NaN is put there by hand. */
static CPU_AVX2 void decode_e4m3fn(const unsigned char *data, float *to) {
  for (uint32_t i = 0; i < CPU_MERGE_BLOCK; i += 8) {
    const __m128i v = load_eight_bytes(data + i), magnitude = _mm_and_si128(v, _mm_set1_epi16(0x7f));
    const __m128i sign = _mm_slli_epi16(_mm_xor_si128(v, magnitude), 8);
    const __m128i is_nan = _mm_cmpeq_epi16(magnitude, _mm_set1_epi16(0x7f));
    const __m128i finite = _mm_or_si128(_mm_slli_epi16(magnitude, 7), sign);
    const __m128i half = _mm_or_si128(finite, _mm_and_si128(is_nan, _mm_set1_epi16(0x7e00)));
    _mm256_storeu_ps(to + i, _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(256)));
  }
}

static CPU_AVX2 void decode_q8_0(const unsigned char *data, float *to) {
  for (uint32_t i = 0; i < CPU_MERGE_BLOCK; i += CPU_QUANT_ELEMENTS, data += CPU_Q8_0_BYTES)
    cpu_decode_q8_0(data, to + i, CPU_STORE_PLAIN);
}

static CPU_AVX2 void decode_q4_0(const unsigned char *data, float *to) {
  for (uint32_t i = 0; i < CPU_MERGE_BLOCK; i += CPU_QUANT_ELEMENTS, data += CPU_Q4_0_BYTES)
    cpu_decode_q4_0(data, to + i, CPU_STORE_PLAIN);
}

#define READ_BLOCKS(id, name, elements, bytes, ps) { TM_FORMAT_##id, bytes, elements, cpu_decode_##name },

static const cpu_merge_source sources[] = {
  { TM_FORMAT_F32, 4, 1, decode_f32 },
  { TM_FORMAT_BF16, 2, 1, decode_bf16 },
  { TM_FORMAT_F16, 2, 1, decode_f16 },
  { TM_FORMAT_F64, 8, 1, NULL },
  { TM_FORMAT_Q8_0, CPU_Q8_0_BYTES, CPU_QUANT_ELEMENTS, decode_q8_0 },
  { TM_FORMAT_Q4_0, CPU_Q4_0_BYTES, CPU_QUANT_ELEMENTS, decode_q4_0 },
  { TM_FORMAT_F8_E4M3FN, 1, 1, decode_e4m3fn },
  { TM_FORMAT_F8_E5M2, 1, 1, decode_e5m2 },
  CPU_READ_BLOCKS(READ_BLOCKS)
};
_Static_assert(CPU_MERGE_BLOCK == CPU_BLOCKS_RUN, "both decode as much at a time");

const cpu_merge_source *cpu_merge_source_find(uint32_t format) {
  for (size_t i = 0; i < sizeof sources / sizeof sources[0]; ++i) {
    if (sources[i].format == format) return &sources[i];
  }
  return NULL;
}

/* A short block, filled up with zeros. */
static const unsigned char *pad(const cpu_merge_source *source, const unsigned char *data, uint64_t count, unsigned char *room) {
  const size_t bytes = (size_t)(count / source->elements * source->bytes);
  memcpy(room, data, bytes);
  memset(room + bytes, 0, CPU_MERGE_BLOCK * sizeof(double) - bytes);
  return room;
}

const float *cpu_merge_load(const cpu_merge *m, uint32_t input, uint64_t first, uint64_t count, float *room) {
  unsigned char padded[CPU_MERGE_BLOCK * sizeof(double)];
  const cpu_merge_source *source = m->sources[input];
  const unsigned char *data = cpu_merge_at(m, input, first);
  if (count < CPU_MERGE_BLOCK) data = pad(source, data, count, padded);
  else if (source->format == TM_FORMAT_F32 && (uintptr_t)data % sizeof(float) == 0) return (const float *)(const void *)data;
  source->decode(data, room);
  return room;
}

static CPU_AVX2 void widen(const float *from, double *to) {
  for (uint32_t i = 0; i < CPU_MERGE_BLOCK; i += 4) _mm256_storeu_pd(to + i, _mm256_cvtps_pd(_mm_loadu_ps(from + i)));
}

void cpu_merge_load_wide(const cpu_merge *m, uint32_t input, uint64_t first, uint64_t count, double *out_values) {
  float room[CPU_MERGE_BLOCK];
  if (!cpu_merge_is_wide(m, input)) {
    widen(cpu_merge_load(m, input, first, count, room), out_values);
    return;
  }
  memcpy(out_values, cpu_merge_at(m, input, first), (size_t)count * sizeof *out_values);
  for (uint64_t i = count; i < CPU_MERGE_BLOCK; ++i) out_values[i] = 0;
}
