/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TM_OP_COMPARE_TENSORS: superblocks go to the host's threads as in cpu_stats.c; within one, blocks of 512 pairs are
 * compared by their bytes, decoded where they must be, and added by the kernels of an instruction set.
 */
#include "cpu_compare.h"

#include <string.h>

#include "cpu_decode.h"

#define BLOCK TM_SUM_BLOCK

typedef struct lane_result {
  cpu_compare_state state;
  uint64_t          words[4][TM_SUM_WORDS];     /* of the four sums, superblock by superblock */
} lane_result;

typedef struct compare_job {
  const cpu_compare_kernels *kernels;
  const cpu_compare_format  *formats[2];
  const unsigned char       *data[2];
  uint64_t                   count;
  lane_result               *lanes;
} compare_job;

/* ---- one block ---- */

static uint64_t bytes_of(const cpu_compare_format *f, uint64_t elements) { return elements / f->elements * f->bytes; }

/* From the first pair that differs on there are three sums. */
static void unfold(cpu_compare_state *state) {
  if (!state->is_alike) return;
  memcpy(state->lanes.dot, state->lanes.norm_a, sizeof state->lanes.dot);
  memcpy(state->lanes.norm_b, state->lanes.norm_a, sizeof state->lanes.norm_b);
  state->is_alike = 0;
}

static int fits_f32(const cpu_compare_format *f) { return f->to_f32 != NULL || f->format == TM_FORMAT_F32; }

static const void *as_f32(const cpu_compare_format *f, const unsigned char *data, float *buffer) {
  if (f->to_f32 == NULL) return data;
  f->to_f32(data, buffer);
  return buffer;
}

static const void *as_f64(const cpu_compare_format *f, const unsigned char *data, double *buffer) {
  float narrow[BLOCK];
  if (f->format == TM_FORMAT_F64) return data;
  if (f->to_f64 != NULL) f->to_f64(data, buffer);
  else cpu_compare_widen(as_f32(f, data, narrow), buffer);
  return buffer;
}

static void add_equal_f32(const compare_job *job, const unsigned char *data, cpu_compare_state *state) {
  float buffer[BLOCK], masked[BLOCK], same[BLOCK];
  const void *a = as_f32(job->formats[0], data, buffer);
  if (job->kernels->add_equal_f32(a, 0, state)) return;
  state->nonfinite += cpu_compare_mask_f32(a, a, masked, same);
  job->kernels->add_equal_f32(masked, 1, state);
}

static void add_equal_f64(const compare_job *job, const unsigned char *data, cpu_compare_state *state) {
  double buffer[BLOCK], masked[BLOCK], same[BLOCK];
  const void *a = as_f64(job->formats[0], data, buffer);
  if (job->kernels->add_equal_f64(a, 0, state)) return;
  state->nonfinite += cpu_compare_mask_f64(a, a, masked, same);
  job->kernels->add_equal_f64(masked, 1, state);
}

static uint64_t count_equal_bytes(const unsigned char *a, const unsigned char *b) {
  uint64_t equal = 0;
  for (int i = 0; i < BLOCK; ++i) equal += a[i] == b[i];
  return equal;
}

/* Of two floats of 16 bits or less. */
static int are_short(const compare_job *job) { return job->formats[0]->is_short_float && job->formats[1]->is_short_float; }

static int add_f16(const compare_job *job, const unsigned char *a, const unsigned char *b, cpu_compare_state *state) {
  if (cpu_compare_add_equal_f16(a, b, state)) return 1;
  unfold(state);
  return job->kernels->add_f16(a, b, state);
}

/* Two of one format, as long as nothing is special about the block. */
static int add_same_short(const compare_job *job, const unsigned char *a, const unsigned char *b, cpu_compare_state *state) {
  const cpu_compare_format *f = job->formats[0];
  unsigned char wide[2][2 * BLOCK];
  if (f->format == TM_FORMAT_F16) return add_f16(job, a, b, state);
  if (f->to_f16 != NULL) {
    f->to_f16(a, wide[0]);
    f->to_f16(b, wide[1]);
    return add_f16(job, wide[0], wide[1], state);
  }
  if (cpu_compare_add_equal_bf16(a, b, state)) return 1;
  unfold(state);
  return job->kernels->add_bf16(a, b, state);
}

static void add_short(const compare_job *job, const unsigned char *data_a, const unsigned char *data_b, cpu_compare_state *state) {
  const cpu_compare_format *f = job->formats[0], *g = job->formats[1];
  float a[BLOCK], b[BLOCK];
  if (f == g && add_same_short(job, data_a, data_b, state)) return;
  f->to_f32(data_a, a);
  if (f == g && job->kernels->same_bytes(data_a, data_b, bytes_of(f, BLOCK))) {
    cpu_compare_add_equal_chains(a, state);
    return;
  }
  unfold(state);
  g->to_f32(data_b, b);
  state->equal += f == g ? cpu_compare_count_same(a, b) : cpu_compare_count_f32(a, b);
  cpu_compare_add_chains(a, b, state);
}

/* The kernels count equal bits of what is decoded. */
static void add_f32(const compare_job *job, const unsigned char *data_a, const unsigned char *data_b, cpu_compare_state *state) {
  float buffer_a[BLOCK], buffer_b[BLOCK], masked_a[BLOCK], masked_b[BLOCK];
  const void *a = as_f32(job->formats[0], data_a, buffer_a), *b = as_f32(job->formats[1], data_b, buffer_b);
  const uint64_t equal = state->equal;
  if (!job->kernels->add_f32(a, b, 0, state)) {
    state->nonfinite += cpu_compare_mask_f32(a, b, masked_a, masked_b);
    job->kernels->add_f32(masked_a, masked_b, 1, state);
  }
  if (job->formats[0] != job->formats[1] && state->equal - equal != BLOCK) state->equal = equal + cpu_compare_count_f32(a, b);
  if (job->formats[0] == job->formats[1] && job->formats[0]->format == TM_FORMAT_BOOL)
    state->equal = equal + count_equal_bytes(data_a, data_b);
}

static void add_f64(const compare_job *job, const unsigned char *data_a, const unsigned char *data_b, cpu_compare_state *state) {
  double buffer_a[BLOCK], buffer_b[BLOCK], masked_a[BLOCK], masked_b[BLOCK];
  const void *a = as_f64(job->formats[0], data_a, buffer_a), *b = as_f64(job->formats[1], data_b, buffer_b);
  const uint64_t equal = state->equal;
  if (job->formats[0]->is_wide_integer || job->formats[1]->is_wide_integer) {
    cpu_compare_add_wide(job->formats, data_a, data_b, a, b, state);
    return;
  }
  if (!job->kernels->add_f64(a, b, 0, state)) {
    state->nonfinite += cpu_compare_mask_f64(a, b, masked_a, masked_b);
    job->kernels->add_f64(masked_a, masked_b, 1, state);
  }
  if (job->formats[0] != job->formats[1] && state->equal - equal != BLOCK) state->equal = equal + cpu_compare_count_f64(a, b);
}

static void add_block(const compare_job *job, const unsigned char *a, const unsigned char *b, cpu_compare_state *state) {
  const cpu_compare_format *const *f = job->formats;
  const int narrow = fits_f32(f[0]) && fits_f32(f[1]);
  if (are_short(job)) {
    add_short(job, a, b, state);
  } else if (f[0] == f[1] && job->kernels->same_bytes(a, b, bytes_of(f[0], BLOCK))) {
    if (narrow) add_equal_f32(job, a, state);
    else add_equal_f64(job, a, state);
  } else {
    unfold(state);
    if (narrow) add_f32(job, a, b, state);
    else add_f64(job, a, b, state);
  }
}

/* ---- superblocks and threads ---- */

/* A copy of a block's first elements, filled up with zeros: blocks of scale 0, and of integers that make it +0 and not -0. */
static void fill_up(const cpu_compare_format *f, const unsigned char *data, uint64_t count, unsigned char *out) {
  const uint64_t begin = bytes_of(f, count), end = bytes_of(f, BLOCK);
  memset(out, f->zero_byte, end);
  memcpy(out, data, begin);
  for (uint64_t at = begin; at < end && f->has_quants; at += f->bytes) memset(out + at, 0, CPU_SCALE_BYTES);
}

/* Only the count of equal bits notices the zeros. */
static void add_short_block(const compare_job *job, const unsigned char *a, const unsigned char *b, uint64_t count,
                            cpu_compare_state *state) {
  unsigned char filled[2][BLOCK * sizeof(double)];
  fill_up(job->formats[0], a, count, filled[0]);
  fill_up(job->formats[1], b, count, filled[1]);
  add_block(job, filled[0], filled[1], state);
  state->equal -= BLOCK - count;
}

static void add_superblock(const compare_job *job, uint64_t begin, uint64_t count, cpu_compare_state *state) {
  const unsigned char *a = job->data[0] + bytes_of(job->formats[0], begin), *b = job->data[1] + bytes_of(job->formats[1], begin);
  memset(&state->lanes, 0, sizeof state->lanes);
  state->is_alike = 1;
  for (; count >= BLOCK; count -= BLOCK) {
    add_block(job, a, b, state);
    a += bytes_of(job->formats[0], BLOCK);
    b += bytes_of(job->formats[1], BLOCK);
  }
  if (count > 0) add_short_block(job, a, b, count, state);
  unfold(state);
}

/* Of one block format on both sides. */
static void add_quants(const compare_job *job, uint64_t begin, uint64_t count, lane_result *result) {
  const cpu_compare_format *f = job->formats[0];
  const unsigned char *a = job->data[0] + bytes_of(f, begin), *b = job->data[1] + bytes_of(f, begin);
  const uint64_t whole = count / BLOCK * BLOCK, rest = count - whole;
  unsigned char filled[2][BLOCK * sizeof(double)];
  cpu_compare_add_quants(job->kernels, f, a, b, whole / BLOCK, &result->state, result->words);
  if (rest == 0) return;
  fill_up(f, a + bytes_of(f, whole), rest, filled[0]);
  fill_up(f, b + bytes_of(f, whole), rest, filled[1]);
  cpu_compare_add_quants(job->kernels, f, filled[0], filled[1], 1, &result->state, result->words);
  result->state.equal -= BLOCK - rest;
}

static void add_part(const compare_job *job, uint64_t begin, uint64_t count, lane_result *result) {
  const cpu_compare_lanes *lanes = &result->state.lanes;
  const double *const sums[] = { lanes->squared, lanes->dot, lanes->norm_a, lanes->norm_b };
  if (job->formats[0] == job->formats[1] && job->formats[0]->has_quants) {
    add_quants(job, begin, count, result);
    return;
  }
  add_superblock(job, begin, count, &result->state);
  for (int i = 0; i < 4; ++i) tm_sum_add(result->words[i], tm_sum_of_lanes(sums[i]));
}

static void run_range(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const compare_job *job = argument;
  for (uint64_t s = begin; s < end; ++s) {
    const uint64_t first = s * TM_SUM_SUPERBLOCK, left = job->count - first;
    add_part(job, first, left < TM_SUM_SUPERBLOCK ? left : TM_SUM_SUPERBLOCK, &job->lanes[lane]);
  }
}

static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static void join(lane_result *all, const lane_result *part) {
  all->state.equal += part->state.equal;
  all->state.nonfinite += part->state.nonfinite;
  if (part->state.max_abs > all->state.max_abs) all->state.max_abs = part->state.max_abs;
  if (part->state.max_rel > all->state.max_rel) all->state.max_rel = part->state.max_rel;
  for (int i = 0; i < 4; ++i) tm_sum_combine(all->words[i], part->words[i]);
}

static void store(const lane_result *all, uint64_t count, void *out) {
  uint64_t words[TM_COMPARISON_WORDS] = {
    [TM_COMPARISON_COUNT] = count,
    [TM_COMPARISON_EQUAL_BITS] = all->state.equal,
    [TM_COMPARISON_NONFINITE] = all->state.nonfinite,
    [TM_COMPARISON_MAX_ABS] = bits_of(all->state.max_abs),
    [TM_COMPARISON_MAX_REL] = bits_of(all->state.max_rel),
  };
  static const size_t places[] = { TM_COMPARISON_SUM_SQUARED, TM_COMPARISON_DOT, TM_COMPARISON_NORM_A, TM_COMPARISON_NORM_B };
  for (int i = 0; i < 4; ++i) memcpy(words + places[i], all->words[i], sizeof all->words[i]);
  memcpy(out, words, sizeof words);
}

static void run(const cpu_call *call, const cpu_compare_kernels *kernels) {
  const tm_operand *operands = call->operation->operands;
  const uint64_t count = operands[0].element_count;
  const uint64_t superblocks = count / TM_SUM_SUPERBLOCK + (count % TM_SUM_SUPERBLOCK != 0);
  compare_job job = {
    .kernels = kernels,
    .formats = { cpu_compare_format_find(operands[0].format), cpu_compare_format_find(operands[1].format) },
    .data = { call->pointers[0], call->pointers[1] },
    .count = count,
    .lanes = call->workspace,
  };
  const uint32_t lanes = call->host->lane_count;
  memset(job.lanes, 0, lanes * sizeof *job.lanes);
  if (superblocks <= 1) run_range(&job, 0, superblocks, 0);
  else call->host->parallel_for(call->host->context, superblocks, 1, run_range, &job);
  for (uint32_t i = 1; i < lanes; ++i) join(&job.lanes[0], &job.lanes[i]);
  store(&job.lanes[0], count, call->pointers[2]);
}

/* ---- the row ---- */

static uint32_t refuses(const tm_operation *operation, uint32_t *out_operand) {
  for (uint32_t i = 0; i < 2; ++i) {
    *out_operand = i;
    if (cpu_compare_format_find(operation->operands[i].format) == NULL) return TM_REASON_FORMAT;
  }
  return kernel_refuses_strided(operation, out_operand);
}

static int has_vnni(void) { return __builtin_cpu_supports("avx512vnni"); }

/* Picoseconds a pair where memory does not limit it and all pairs differ. */
typedef struct pair_cost {
  uint32_t f32, short_floats, quants;
} pair_cost;

#define AVX2_COST   ((pair_cost){ 460, 220, 230 })
#define AVX512_COST ((pair_cost){ 360, 160, 190 })
#define VNNI_COST   ((pair_cost){ 360, 160, 130 })
#define F64_PS   550u
#define WIDEN_PS 100u

static uint32_t pair_ps(const tm_operation *operation, pair_cost c) {
  const cpu_compare_format *a = cpu_compare_format_find(operation->operands[0].format);
  const cpu_compare_format *b = cpu_compare_format_find(operation->operands[1].format);
  const uint32_t decoding = a->decode_ps + b->decode_ps;
  if (a == b && a->has_quants) return c.quants;
  if (a == b && a->is_short_float) return c.short_floats + (a->to_f16 != NULL ? decoding : 0);
  return fits_f32(a) && fits_f32(b) ? c.f32 + decoding : F64_PS + decoding + (fits_f32(a) || fits_f32(b) ? WIDEN_PS : 0);
}

static uint64_t cost(const tm_operation *operation, uint32_t lanes, pair_cost c) {
  const uint64_t count = operation->operands[0].element_count;
  const uint32_t busy = count <= TM_SUM_SUPERBLOCK ? 1 : lanes;
  return 950 + cpu_cost_ns((double)count, 1e6 / pair_ps(operation, c), kernel_operand_bytes(operation), busy);
}

static uint64_t cost_avx2(const tm_operation *operation, uint32_t lanes) { return cost(operation, lanes, AVX2_COST); }
static uint64_t cost_avx512(const tm_operation *operation, uint32_t lanes) {
  return cost(operation, lanes, has_vnni() ? VNNI_COST : AVX512_COST);
}

static uint64_t workspace_bytes(const tm_operation *operation, uint32_t lanes) {
  (void)operation;
  return (uint64_t)lanes * sizeof(lane_result);
}

static void run_avx2(const cpu_call *call) { run(call, &cpu_compare_avx2); }
static void run_avx512(const cpu_call *call) { run(call, has_vnni() ? &cpu_compare_vnni : &cpu_compare_avx512); }

#define ROW(set, suffix)                                                                                                     \
  { .op = TM_OP_COMPARE_TENSORS, .formats = { TM_FORMAT_NONE, TM_FORMAT_NONE, TM_FORMAT_U64 }, .isa = (set),                 \
    .level = TM_LEVEL_NATIVE, .numerics = TM_NUMERICS_N0,                                                                    \
    .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE, .name = "cpu_compare_tensors__" #suffix,         \
    .refuses = refuses, .cost_ns = cost_##suffix, .workspace_bytes = workspace_bytes, .run = run_##suffix }

static const cpu_row rows[] = {
  ROW(CPU_ISA_AVX2 | CPU_ISA_AVX512, avx512),
  ROW(CPU_ISA_AVX2, avx2),
};

const kernel_row_table cpu_rows_compare_tensors = { rows, sizeof rows / sizeof rows[0] };
