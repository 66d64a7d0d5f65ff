/* SPDX-License-Identifier: Apache-2.0 */
/* TM_OP_MAGNITUDES: bits of a block's magnitudes, then one counter each; a row of counters for every thread. */
#include "cpu_merge.h"

#define BLOCK CPU_MERGE_BLOCK
#define PART_BLOCKS 64u
#define NAN_BITS 0x7fc00000
#define LOW_MASK ((1u << TM_MAGNITUDE_LOW_BITS) - 1)

typedef struct magnitude_job {
  cpu_merge inputs;             /* x and the base */
  tm_magnitudes_attributes attributes;
  uint64_t *words;              /* TM_MAGNITUDE_BINS of each lane */
} magnitude_job;

static CPU_AVX2 void make_bits(const double *x, const double *base, uint32_t *out_bits) {
  for (uint32_t i = 0; i < BLOCK; i += 4) {
    const __m256d a = cpu_load_pd(x + i), b = cpu_load_pd(base + i);
    const __m256d d = _mm256_and_pd(_mm256_sub_pd(a, b), _mm256_cmp_pd(a, b, _CMP_NEQ_UQ));
    const __m128 f = _mm256_cvtpd_ps(d), is_nan = _mm_cmpunord_ps(f, f);
    const __m128 magnitude = _mm_andnot_ps(_mm_set1_ps(-0.0f), f);
    _mm_storeu_ps((float *)(void *)(out_bits + i), _mm_blendv_ps(magnitude, _mm_castsi128_ps(_mm_set1_epi32(NAN_BITS)), is_nan));
  }
}

static void count_block(const magnitude_job *job, const uint32_t *bits, uint64_t count, uint64_t *words) {
  if (!job->attributes.within) {
    for (uint64_t i = 0; i < count; ++i) words[bits[i] >> TM_MAGNITUDE_LOW_BITS]++;
    return;
  }
  for (uint64_t i = 0; i < count; ++i) {
    if (bits[i] >> TM_MAGNITUDE_LOW_BITS == job->attributes.upper) words[bits[i] & LOW_MASK]++;
  }
}

static void run_parts(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const magnitude_job *job = argument;
  const uint64_t part = (uint64_t)PART_BLOCKS * BLOCK, total = job->inputs.count;
  const uint64_t stop = end * part < total ? end * part : total;
  double x[BLOCK], base[BLOCK];
  uint32_t bits[BLOCK];
  for (uint64_t at = begin * part; at < stop; at += BLOCK) {
    const uint64_t count = stop - at < BLOCK ? stop - at : BLOCK;
    cpu_merge_load_wide(&job->inputs, 0, at, count, x);
    cpu_merge_load_wide(&job->inputs, 1, at, count, base);
    make_bits(x, base, bits);
    count_block(job, bits, count, job->words + (uint64_t)lane * TM_MAGNITUDE_BINS);
  }
}

static uint32_t lanes_for(uint64_t count, uint32_t lanes) { return count <= (uint64_t)PART_BLOCKS * BLOCK ? 1 : lanes; }

static void run(const cpu_call *call) {
  const tm_operand *operands = call->operation->operands;
  const tm_magnitudes_attributes *attributes = call->operation->attributes;
  magnitude_job job = {
    .inputs = { .input_count = 2, .count = operands[0].element_count, .data = { call->pointers[0], call->pointers[1] },
                .sources = { cpu_merge_source_find(operands[0].format), cpu_merge_source_find(operands[1].format) } },
    .attributes = *attributes,
    .words = call->workspace,
  };
  const uint32_t lanes = lanes_for(job.inputs.count, call->host->lane_count);
  const uint64_t part = (uint64_t)PART_BLOCKS * BLOCK, parts = job.inputs.count / part + (job.inputs.count % part != 0);
  memset(job.words, 0, (size_t)lanes * TM_MAGNITUDE_BINS * sizeof *job.words);
  if (lanes == 1) run_parts(&job, 0, parts, 0);
  else call->host->parallel_for(call->host->context, parts, 1, run_parts, &job);
  for (uint32_t lane = 1; lane < lanes; ++lane) {
    for (uint32_t i = 0; i < TM_MAGNITUDE_BINS; ++i) job.words[i] += job.words[(uint64_t)lane * TM_MAGNITUDE_BINS + i];
  }
  memcpy(call->pointers[2], job.words, TM_MAGNITUDE_BINS * sizeof *job.words);
}

/* ---- the row ---- */

#define PAIRS_PER_US 500.0      /* of one core */
#define BINS_NS 8000.0          /* to clear them, for each thread, and as long again to write them */

static uint32_t refuses(const tm_operation *operation, uint32_t *out_operand) {
  for (uint32_t i = 0; i < 2; ++i) {
    *out_operand = i;
    if (cpu_merge_source_find(operation->operands[i].format) == NULL) return TM_REASON_FORMAT;
  }
  return kernel_refuses_strided(operation, out_operand);
}

static uint64_t cost_ns(const tm_operation *operation, uint32_t lanes) {
  const uint64_t count = operation->operands[0].element_count;
  const uint32_t busy = lanes_for(count, lanes);
  return (uint64_t)(BINS_NS * (busy + 1)) + cpu_cost_ns((double)count, PAIRS_PER_US, kernel_operand_bytes(operation), busy);
}

static uint64_t workspace_bytes(const tm_operation *operation, uint32_t lanes) {
  return (uint64_t)lanes_for(operation->operands[0].element_count, lanes) * TM_MAGNITUDE_BINS * sizeof(uint64_t);
}

static const cpu_row rows[] = {
  {
    .op = TM_OP_MAGNITUDES,
    .attribute_bytes = sizeof(tm_magnitudes_attributes),
    .formats = { TM_FORMAT_NONE, TM_FORMAT_NONE, TM_FORMAT_U64 },
    .isa = CPU_ISA_AVX2,
    .level = TM_LEVEL_NATIVE,
    .numerics = TM_NUMERICS_N0,
    .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE,
    .name = "cpu_magnitudes__avx2",
    .refuses = refuses,
    .cost_ns = cost_ns,
    .workspace_bytes = workspace_bytes,
    .run = run,
  },
};

const kernel_row_table cpu_rows_magnitudes = { rows, sizeof rows / sizeof rows[0] };
