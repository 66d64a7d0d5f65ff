/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu_merge.h"

#include "cpu_round_odd.h"

#define SETTINGS 1u
#define PART_BLOCKS 16u         /* what a thread takes at a time: 32 KiB of f32 */
#define STREAMED_BYTES (UINT64_C(16) << 20)     /* outputs from here on would only push useful data out of the caches */
#define STREAM_ALIGNMENT 16u

/* ---- results ---- */

static CPU_AVX2 void block_to_f64(unsigned char *to, const double *from, cpu_store_kind kind) {
  for (uint32_t i = 0; i < CPU_MERGE_BLOCK; i += 4)
    cpu_put((float *)(void *)(to + 8 * i), _mm256_castpd_ps(cpu_load_pd(from + i)), kind);
}

static CPU_AVX2 void block_to_f32(unsigned char *to, const double *from, cpu_store_kind kind) {
  for (uint32_t i = 0; i < CPU_MERGE_BLOCK; i += 8)
    cpu_put((float *)(void *)(to + 4 * i), round_to_f32(cpu_load_pd(from + i), cpu_load_pd(from + i + 4)), kind);
}

#define BLOCK_TO_HALF(T)                                                                                                \
  static CPU_AVX2 void block_to_##T(unsigned char *to, const double *from, cpu_store_kind kind) {                       \
    for (uint32_t i = 0; i < CPU_MERGE_BLOCK; i += 16) {                                                             \
      const __m128i low = round_to_##T(cpu_load_pd(from + i), cpu_load_pd(from + i + 4));                            \
      const __m128i high = round_to_##T(cpu_load_pd(from + i + 8), cpu_load_pd(from + i + 12));                      \
      cpu_put((float *)(void *)(to + 2 * i), _mm256_castsi256_ps(_mm256_set_m128i(high, low)), kind);                \
    }                                                                                                                \
  }
BLOCK_TO_HALF(bf16)
BLOCK_TO_HALF(f16)

#define BLOCK_TO_BYTES(T)                                                                                               \
  CPU_INLINE __m128i sixteen_##T(const double *from) {                                                                  \
    const __m128i low = round_to_##T(cpu_load_pd(from), cpu_load_pd(from + 4));                                         \
    return _mm_packus_epi16(low, round_to_##T(cpu_load_pd(from + 8), cpu_load_pd(from + 12)));                          \
  }                                                                                                                     \
  static CPU_AVX2 void block_to_##T(unsigned char *to, const double *from, cpu_store_kind kind) {                       \
    for (uint32_t i = 0; i < CPU_MERGE_BLOCK; i += 32) {                                                                \
      const __m256i bytes = _mm256_set_m128i(sixteen_##T(from + i + 16), sixteen_##T(from + i));                        \
      cpu_put((float *)(void *)(to + i), _mm256_castsi256_ps(bytes), kind);                                             \
    }                                                                                                                   \
  }
BLOCK_TO_BYTES(f8_e4m3fn)
BLOCK_TO_BYTES(f8_e5m2)

typedef struct target {
  uint32_t format;
  uint32_t bytes;
  void   (*store)(unsigned char *to, const double *from, cpu_store_kind kind);
} target;

static const target targets[] = {
  { TM_FORMAT_F32, 4, block_to_f32 },
  { TM_FORMAT_BF16, 2, block_to_bf16 },
  { TM_FORMAT_F16, 2, block_to_f16 },
  { TM_FORMAT_F64, 8, block_to_f64 },
  { TM_FORMAT_F8_E4M3FN, 1, block_to_f8_e4m3fn },
  { TM_FORMAT_F8_E5M2, 1, block_to_f8_e5m2 },
};

static const target *find_target(uint32_t format) {
  for (size_t i = 0; i < sizeof targets / sizeof targets[0]; ++i) {
    if (targets[i].format == format) return &targets[i];
  }
  return NULL;
}

unsigned char *cpu_merge_place(const cpu_merge *m, uint64_t first, uint64_t count, unsigned char *room) {
  return count < CPU_MERGE_BLOCK ? room : m->y + first * find_target(m->y_format)->bytes;
}

void cpu_merge_put(const cpu_merge *m, uint64_t first, uint64_t count, const unsigned char *room) {
  const uint32_t bytes = find_target(m->y_format)->bytes;
  if (count < CPU_MERGE_BLOCK) memcpy(m->y + first * bytes, room, (size_t)count * bytes);
}

void cpu_merge_store(const cpu_merge *m, uint64_t first, uint64_t count, const double *values) {
  _Alignas(32) unsigned char room[CPU_MERGE_BLOCK * sizeof(double)];
  find_target(m->y_format)->store(cpu_merge_place(m, first, count, room), values, m->store);
  cpu_merge_put(m, first, count, room);
}

/* ---- threads ---- */

static void run_parts(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const cpu_merge *m = argument;
  const uint64_t part = (uint64_t)PART_BLOCKS * CPU_MERGE_BLOCK;
  const uint64_t stop = end * part < m->count ? end * part : m->count;
  (void)lane;
  for (uint64_t at = begin * part; at < stop; at += CPU_MERGE_BLOCK)
    m->function(m, at, stop - at < CPU_MERGE_BLOCK ? stop - at : CPU_MERGE_BLOCK);
  if (m->store == CPU_STORE_STREAMED) _mm_sfence();
}

static void take_inputs(cpu_merge *m, const cpu_call *call) {
  const tm_operation *operation = call->operation;
  for (uint32_t i = 0; i < operation->input_count; ++i) {
    if (i == SETTINGS) continue;
    m->sources[m->input_count] = cpu_merge_source_find(operation->operands[i].format);
    m->data[m->input_count++] = call->pointers[i];
  }
}

void cpu_merge_run(const cpu_call *call, cpu_merge_fn function) {
  const tm_operation *operation = call->operation;
  const tm_operand *y = &operation->operands[operation->input_count];
  cpu_merge m = {
    .attributes = operation->attributes,
    .y_format = y->format,
    .y = call->pointers[operation->input_count],
    .function = function,
    .count = y->element_count,
  };
  const int is_aligned = (uintptr_t)m.y % STREAM_ALIGNMENT == 0;
  m.store = is_aligned && y->byte_count >= STREAMED_BYTES ? CPU_STORE_STREAMED : CPU_STORE_PLAIN;
  take_inputs(&m, call);
  memcpy(m.settings.words, call->pointers[SETTINGS], (size_t)operation->operands[SETTINGS].byte_count);
  const uint64_t part = (uint64_t)PART_BLOCKS * CPU_MERGE_BLOCK, parts = m.count / part + (m.count % part != 0);
  if (parts <= 1) run_parts(&m, 0, parts, 0);
  else call->host->parallel_for(call->host->context, parts, parts >= 64 ? 4 : 1, run_parts, &m);
}

/* ---- the row ---- */

uint32_t cpu_merge_refuses(const tm_operation *operation, uint32_t *out_operand) {
  for (uint32_t i = 0; i < operation->input_count; ++i) {
    *out_operand = i;
    if (i != SETTINGS && cpu_merge_source_find(operation->operands[i].format) == NULL) return TM_REASON_FORMAT;
  }
  *out_operand = operation->input_count;
  if (find_target(operation->operands[operation->input_count].format) == NULL) return TM_REASON_FORMAT;
  return kernel_refuses_strided(operation, out_operand);
}

uint64_t cpu_merge_cost_ns(const tm_operation *operation, double elements_per_us, uint32_t lanes) {
  const uint64_t count = operation->operands[0].element_count;
  const double work = (double)count * (operation->input_count - 1);
  const uint32_t busy = count <= PART_BLOCKS * CPU_MERGE_BLOCK ? 1 : lanes;
  return 100 + cpu_cost_ns(work, elements_per_us, kernel_operand_bytes(operation), busy);
}
