/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packing for the blocked matmul: eight lines side by side, k by k, widened or decoded to f32.  Lines that are dense
 * along k are read eight elements at a time and transposed in registers.
 */
#include "cpu_matmul.h"
#include "cpu_matmul_decode.h"

typedef struct lines8 {
  __m256 line[8];
} lines8;

/* line[i] lane j becomes line[j] lane i. */
CPU_INLINE_AVX2 lines8 transpose(lines8 in) {
  const __m256 a0 = _mm256_unpacklo_ps(in.line[0], in.line[1]), a1 = _mm256_unpackhi_ps(in.line[0], in.line[1]);
  const __m256 a2 = _mm256_unpacklo_ps(in.line[2], in.line[3]), a3 = _mm256_unpackhi_ps(in.line[2], in.line[3]);
  const __m256 a4 = _mm256_unpacklo_ps(in.line[4], in.line[5]), a5 = _mm256_unpackhi_ps(in.line[4], in.line[5]);
  const __m256 a6 = _mm256_unpacklo_ps(in.line[6], in.line[7]), a7 = _mm256_unpackhi_ps(in.line[6], in.line[7]);
  const __m256 b0 = _mm256_shuffle_ps(a0, a2, 0x44), b1 = _mm256_shuffle_ps(a0, a2, 0xee);
  const __m256 b2 = _mm256_shuffle_ps(a1, a3, 0x44), b3 = _mm256_shuffle_ps(a1, a3, 0xee);
  const __m256 b4 = _mm256_shuffle_ps(a4, a6, 0x44), b5 = _mm256_shuffle_ps(a4, a6, 0xee);
  const __m256 b6 = _mm256_shuffle_ps(a5, a7, 0x44), b7 = _mm256_shuffle_ps(a5, a7, 0xee);
  return (lines8){ {
      _mm256_permute2f128_ps(b0, b4, 0x20), _mm256_permute2f128_ps(b1, b5, 0x20),
      _mm256_permute2f128_ps(b2, b6, 0x20), _mm256_permute2f128_ps(b3, b7, 0x20),
      _mm256_permute2f128_ps(b0, b4, 0x31), _mm256_permute2f128_ps(b1, b5, 0x31),
      _mm256_permute2f128_ps(b2, b6, 0x31), _mm256_permute2f128_ps(b3, b7, 0x31) } };
}

/* Exactly `keep` values, 8, 6 or 4: what lies behind them may belong to a panel that another thread is packing. */
CPU_INLINE_AVX2 void put(float *to, __m256 v, uint32_t keep) {
  if (keep == 8) {
    _mm256_storeu_ps(to, v);
  } else {
    _mm_storeu_ps(to, _mm256_castps256_ps128(v));
    if (keep == 6) _mm_storel_pi((__m64 *)(void *)(to + 4), _mm256_extractf128_ps(v, 1));
  }
}

/* Loops over vectors would keep them in memory, so what is done to all eight is written out. */
#define FOR_8(X, ...)                                                                                                 \
  X(0, __VA_ARGS__) X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__)                                             \
  X(4, __VA_ARGS__) X(5, __VA_ARGS__) X(6, __VA_ARGS__) X(7, __VA_ARGS__)
#define PUT(i, KEEP) put(to + (i) * step, out.line[i], KEEP);

CPU_INLINE_AVX2 void put_transposed(lines8 in, float *to, uint64_t step, uint32_t keep) {
  const lines8 out = transpose(in);
  if (keep == 8) {
    FOR_8(PUT, 8)
  } else if (keep == 4) {
    FOR_8(PUT, 4)
  } else {
    FOR_8(PUT, 6)
  }
}

/* Only `count` k of them. */
CPU_INLINE_AVX2 void put_some(lines8 in, uint64_t count, float *to, uint64_t step, uint32_t keep) {
  const lines8 out = transpose(in);
  for (uint64_t i = 0; i < count; i++) put(to + i * step, out.line[i], keep);
}

static inline const char *element(const cpu_matrix *matrix, uint64_t line, uint64_t k) {
  return (const char *)matrix->base + (int64_t)line * matrix->line_bytes + (int64_t)k * matrix->k_bytes;
}

static inline uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Packs one to eight lines beside others: `keep` values for each k, `step` values apart; beyond `lines` anything. */
typedef void (*pack_group_fn)(const cpu_matrix *matrix, uint64_t lines, uint64_t depth, float *to, uint64_t step, uint32_t keep);

CPU_AVX2 static void put_zeros(uint64_t depth, float *to, uint64_t step, uint32_t keep) {
  for (uint64_t k = 0; k < depth; k++) put(to + k * step, _mm256_setzero_ps(), keep);
}

/* `values` are packed for each line. */
static void pack_groups(pack_group_fn pack, const cpu_matrix *matrix, uint64_t lines, uint64_t depth, uint64_t values, float *to,
                        uint64_t step) {
  for (uint64_t first = 0; first < step; first += 8) {
    const uint32_t keep = (uint32_t)least(step - first, 8);
    if (first < lines) {
      const cpu_matrix from = { element(matrix, first, 0), matrix->line_bytes, matrix->k_bytes };
      pack(&from, least(lines - first, 8), depth, to + first, step, keep);
    } else {
      put_zeros(values, to + first, step, keep);
    }
  }
}

/* Where eight lines begin; one that is not there is the last one again, because what comes of it is dropped. */
typedef struct starts8 {
  const char *line[8];
} starts8;

static inline starts8 starts_of(const cpu_matrix *matrix, uint64_t lines) {
  starts8 starts;
  for (uint64_t i = 0; i < 8; i++) starts.line[i] = element(matrix, least(i, lines - 1), 0);
  return starts;
}

/* Eight lines of a k; and bytes of one that comes later, because short rows far apart are not what the hardware reads
   ahead. */
#define ROWS_AHEAD 8
#define COPY(at, T) _mm256_storeu_ps(to + i + (at), load_##T(p, i + (at)));
#define ASK(byte)   _mm_prefetch(p + ROWS_AHEAD * matrix->k_bytes + (byte), _MM_HINT_T0);

#define LOAD(i, T)      .line[i] = load_##T(at.line[i], k),
#define LOAD_PART(i, T) .line[i] = load_part_##T(at.line[i], k, depth - k),
/* pack_T for a plain format T of `BYTES` bytes. */
#define DEFINE_PACK(T, BYTES)                                                                                         \
  CPU_AVX2 static void pack_dense_k_##T(const cpu_matrix *matrix, uint64_t lines, uint64_t depth, float *to,          \
                                        uint64_t step, uint32_t keep) {                                               \
    const starts8 at = starts_of(matrix, lines);                                                                      \
    uint64_t k = 0;                                                                                                   \
    for (; k + 8 <= depth; k += 8) put_transposed((lines8){ FOR_8(LOAD, T) }, to + k * step, step, keep);             \
    if (k < depth) put_some((lines8){ FOR_8(LOAD_PART, T) }, depth - k, to + k * step, step, keep);                   \
  }                                                                                                                   \
  CPU_AVX2 static void pack_dense_lines_##T(const cpu_matrix *matrix, uint64_t lines, uint64_t depth, float *to,      \
                                            uint64_t step) {                                                          \
    for (uint64_t k = 0; k < depth; k++, to += step) {                                                                \
      const char *p = element(matrix, 0, k);                                                                          \
      uint64_t i = 0;                                                                                                 \
      for (; i + 32 <= lines; i += 32) {                                                                              \
        ASK(0) ASK(64) COPY(0, T) COPY(8, T) COPY(16, T) COPY(24, T)                                                  \
      }                                                                                                               \
      for (; i + 8 <= lines; i += 8) COPY(0, T)                                                                       \
      if (i < lines) put(to + i, load_part_##T(p, i, lines - i), (uint32_t)least(step - i, 8));                       \
      for (i = (lines + 7) / 8 * 8; i < step; i += 8) put(to + i, _mm256_setzero_ps(), (uint32_t)least(step - i, 8)); \
    }                                                                                                                 \
  }                                                                                                                   \
  CPU_AVX2 static void pack_strided_##T(const cpu_matrix *matrix, uint64_t lines, uint64_t depth, float *to,          \
                                        uint64_t step, uint32_t keep) {                                               \
    for (uint64_t k = 0; k < depth; k++)                                                                              \
      for (uint32_t i = 0; i < keep; i++)                                                                             \
        to[k * step + i] = i < lines ? _mm256_cvtss_f32(load_part_##T(element(matrix, i, k), 0, 1)) : 0.0f;           \
  }                                                                                                                   \
  static void pack_##T(const cpu_matrix *matrix, uint64_t lines, uint64_t depth, void *to, uint64_t step) {           \
    if (matrix->k_bytes == BYTES)                                                                                     \
      pack_groups(pack_dense_k_##T, matrix, lines, depth, depth, to, step);                                           \
    else if (matrix->line_bytes == BYTES)                                                                             \
      pack_dense_lines_##T(matrix, lines, depth, to, step);                                                           \
    else                                                                                                              \
      pack_groups(pack_strided_##T, matrix, lines, depth, depth, to, step);                                           \
  }                                                                                                                   \
  const cpu_matmul_format cpu_matmul_##T = { pack_##T, 1, BYTES, 0.25 };

DEFINE_PACK(f32, 4)
DEFINE_PACK(bf16, 2)
DEFINE_PACK(f16, 2)

#define DECODE(i, T, PART) .line[i] = decode_##T(at.line[i] + block, PART),
#define PUT_PART(T, PART)  put_transposed((lines8){ FOR_8(DECODE, T, PART) }, to + (k + 8 * (PART)) * step, step, keep);
#define DEFINE_PACK_BLOCKS(T, BYTES)                                                                                  \
  CPU_AVX2 static void pack_group_##T(const cpu_matrix *matrix, uint64_t lines, uint64_t depth, float *to, uint64_t step,\
                                      uint32_t keep) {                                                                \
    const starts8 at = starts_of(matrix, lines);                                                                      \
    for (uint64_t k = 0; k < depth; k += 32) {                                                                        \
      const uint64_t block = k / 32 * (BYTES);                                                                        \
      PUT_PART(T, 0) PUT_PART(T, 1) PUT_PART(T, 2) PUT_PART(T, 3)                                                     \
    }                                                                                                                 \
  }                                                                                                                   \
  static void pack_##T(const cpu_matrix *matrix, uint64_t lines, uint64_t depth, void *to, uint64_t step) {           \
    pack_groups(pack_group_##T, matrix, lines, depth, depth, to, step);                                               \
  }                                                                                                                   \
  const cpu_matmul_format cpu_matmul_##T = { pack_##T, 32, BYTES, 0.35 };

DEFINE_PACK_BLOCKS(q8_0, 34)
DEFINE_PACK_BLOCKS(q4_0, 18)

/* f64 stays f64.  Its products are rare enough for a plain loop. */
static void pack_f64(const cpu_matrix *matrix, uint64_t lines, uint64_t depth, void *packed, uint64_t step) {
  double *to = packed;
  for (uint64_t k = 0; k < depth; k++, to += step) {
    if (matrix->line_bytes == sizeof(double))
      memcpy(to, element(matrix, 0, k), lines * sizeof(double));
    else
      for (uint64_t i = 0; i < lines; i++) memcpy(&to[i], element(matrix, i, k), sizeof(double));
    memset(to + lines, 0, (step - lines) * sizeof(double));
  }
}
const cpu_matmul_format cpu_matmul_f64 = { pack_f64, 1, 8, 0.42 };

/* i8: two k make one packed value, each widened to 16 bits; an odd last k is paired with zero. */
CPU_INLINE_AVX2 __m256 load_along_i8(const char *p, uint64_t count) {
  const __m128i bytes = count == 16 ? _mm_loadu_si128((const __m128i *)(const void *)p) : load_part_bytes(p, count);
  return _mm256_castsi256_ps(_mm256_cvtepi8_epi16(bytes));
}

CPU_AVX2 static void pack_dense_k_i8(const cpu_matrix *matrix, uint64_t lines, uint64_t depth, float *to, uint64_t step,
                                     uint32_t keep) {
  for (uint64_t k = 0; k < depth; k += 16) {
    const uint64_t count = depth - k < 16 ? depth - k : 16;
    lines8 in;
    for (uint64_t i = 0; i < 8; i++) {
      in.line[i] = i < lines ? load_along_i8(element(matrix, i, k), count) : _mm256_setzero_ps();
    }
    put_some(in, (count + 1) / 2, to + k / 2 * step, step, keep);
  }
}

CPU_AVX2 static void pack_strided_i8(const cpu_matrix *matrix, uint64_t lines, uint64_t depth, float *to, uint64_t step,
                                     uint32_t keep) {
  for (uint64_t k = 0; k < depth; k += 2) {
    int16_t pairs[16] = { 0 };
    for (uint64_t i = 0; i < lines; i++) {
      pairs[2 * i] = *(const int8_t *)element(matrix, i, k);
      if (k + 1 < depth) pairs[2 * i + 1] = *(const int8_t *)element(matrix, i, k + 1);
    }
    put(to + k / 2 * step, _mm256_loadu_ps((const float *)(const void *)pairs), keep);
  }
}

CPU_INLINE_AVX2 __m128i load_lines_i8(const char *p, uint64_t lines) {
  return _mm_cvtepi8_epi16(load_part_bytes(p, lines));
}

CPU_AVX2 static void pack_dense_lines_i8(const cpu_matrix *matrix, uint64_t lines, uint64_t depth, float *to,
                                         uint64_t step, uint32_t keep) {
  for (uint64_t k = 0; k < depth; k += 2) {
    const __m128i first = load_lines_i8(element(matrix, 0, k), lines);
    const __m128i second = k + 1 < depth ? load_lines_i8(element(matrix, 0, k + 1), lines) : _mm_setzero_si128();
    const __m256i pairs = _mm256_set_m128i(_mm_unpackhi_epi16(first, second), _mm_unpacklo_epi16(first, second));
    put(to + k / 2 * step, _mm256_castsi256_ps(pairs), keep);
  }
}

static void pack_i8(const cpu_matrix *matrix, uint64_t lines, uint64_t depth, void *to, uint64_t step) {
  const pack_group_fn across = matrix->line_bytes == 1 ? pack_dense_lines_i8 : pack_strided_i8;
  const pack_group_fn pack = matrix->k_bytes == 1 ? pack_dense_k_i8 : across;
  pack_groups(pack, matrix, lines, depth, (depth + 1) / 2, to, step);
}
const cpu_matmul_format cpu_matmul_i8 = { pack_i8, 1, 1, 0.25 };
