/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TM_OP_STATS: superblocks go to the host's threads; each thread keeps counts, extremes and exact sums of its own in the
 * workspace, and those are joined at the end.  Joining is exact, so it does not matter which thread had which superblock.
 */
#include "cpu_blocks.h"
#include "cpu_stats.h"

#include <string.h>

#include "cpu_kernel.h"

typedef struct lane_result {
  cpu_stats_state state;
  uint64_t        sum[TM_SUM_WORDS], squares[TM_SUM_WORDS];
} lane_result;

typedef struct stats_job {
  cpu_stats_fn         function;
  const unsigned char *data;
  uint64_t             element_count;
  uint64_t             superblock_bytes;
  lane_result         *lanes;
} stats_job;

static void start(lane_result *result) {
  memset(result, 0, sizeof *result);
  result->state.min = HUGE_VAL;
  result->state.max = -HUGE_VAL;
}

static void run_range(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const stats_job *job = argument;
  lane_result *result = &job->lanes[lane];
  for (uint64_t s = begin; s < end; ++s) {
    const uint64_t left = job->element_count - s * TM_SUM_SUPERBLOCK;
    const uint64_t count = left < TM_SUM_SUPERBLOCK ? left : TM_SUM_SUPERBLOCK;
    memset(result->state.sum, 0, sizeof result->state.sum);
    memset(result->state.squares, 0, sizeof result->state.squares);
    job->function(job->data + s * job->superblock_bytes, count, &result->state);
    tm_sum_add(result->sum, tm_sum_of_lanes(result->state.sum));
    tm_sum_add(result->squares, tm_sum_of_lanes(result->state.squares));
  }
}

static void join(lane_result *all, const lane_result *part) {
  all->state.nan += part->state.nan;
  all->state.pos_inf += part->state.pos_inf;
  all->state.neg_inf += part->state.neg_inf;
  all->state.zero += part->state.zero;
  all->state.subnormal += part->state.subnormal;
  if (part->state.min <= part->state.max) {
    cpu_stats_extreme(&all->state, part->state.min);
    cpu_stats_extreme(&all->state, part->state.max);
  }
  tm_sum_combine(all->sum, part->sum);
  tm_sum_combine(all->squares, part->squares);
}

/* A zero extreme is +0, whatever signs the zeros had. */
static uint64_t extreme_bits(double value) {
  const double unsigned_zero = value + 0.0;
  uint64_t bits;
  memcpy(&bits, &unsigned_zero, sizeof bits);
  return bits;
}

static void store(const lane_result *all, uint64_t count, unsigned char *out) {
  const cpu_stats_state *state = &all->state;
  uint64_t words[TM_STATS_WORDS] = {
    [TM_STATS_COUNT] = count,
    [TM_STATS_NAN] = state->nan,
    [TM_STATS_POS_INF] = state->pos_inf,
    [TM_STATS_NEG_INF] = state->neg_inf,
    [TM_STATS_ZERO] = state->zero,
    [TM_STATS_SUBNORMAL] = state->subnormal,
    [TM_STATS_MIN] = extreme_bits(state->min),
    [TM_STATS_MAX] = extreme_bits(state->max),
  };
  const double abs_max = -state->min > state->max ? -state->min : state->max;
  words[TM_STATS_ABS_MAX] = state->min <= state->max ? extreme_bits(abs_max) : 0;
  memcpy(words + TM_STATS_SUM, all->sum, sizeof all->sum);
  memcpy(words + TM_STATS_SUM_SQUARES, all->squares, sizeof all->squares);
  memcpy(out, words, sizeof words);
}

static void run_stats(const cpu_call *call, cpu_stats_fn function, uint64_t superblock_bytes) {
  const uint64_t count = call->operation->operands[0].element_count;
  const uint64_t superblocks = count / TM_SUM_SUPERBLOCK + (count % TM_SUM_SUPERBLOCK != 0);
  const uint32_t lanes = call->host->lane_count;
  const stats_job job = { function, call->pointers[0], count, superblock_bytes, call->workspace };
  for (uint32_t i = 0; i < lanes; ++i) start(&job.lanes[i]);
  /* A few superblocks a part keep a thread in one page range; a small tensor is still spread over all threads. */
  const uint64_t share = superblocks / (4 * (uint64_t)lanes);
  const uint64_t grain = share < 1 ? 1 : share > 8 ? 8 : share;
  if (superblocks <= 1) {
    run_range((void *)(uintptr_t)&job, 0, superblocks, 0);
  } else {
    call->host->parallel_for(call->host->context, superblocks, grain, run_range, (void *)(uintptr_t)&job);
  }
  for (uint32_t i = 1; i < lanes; ++i) join(&job.lanes[0], &job.lanes[i]);
  store(&job.lanes[0], count, call->pointers[1]);
}

static uint64_t workspace_bytes(const tm_operation *operation, uint32_t lanes) {
  (void)operation;
  return (uint64_t)lanes * sizeof(lane_result);
}

#define FIXED_NS 560u           /* joining and storing the words */

/* The rate is in elements a microsecond that one core gets through where memory does not limit it. */
static uint64_t cost(const tm_operation *operation, uint32_t lanes, double rate) {
  const uint64_t count = operation->operands[0].element_count;
  const uint32_t busy = count <= TM_SUM_SUPERBLOCK ? 1 : lanes;
  return FIXED_NS + cpu_cost_ns((double)count, rate, kernel_operand_bytes(operation), busy);
}

#define KERNEL(name, bytes, rate)                                                                        \
  static void run_##name(const cpu_call *call) { run_stats(call, cpu_stats_##name, (bytes)); }           \
  static uint64_t cost_##name(const tm_operation *operation, uint32_t lanes) { return cost(operation, lanes, (rate)); }
KERNEL(f64, TM_SUM_SUPERBLOCK * 8u, 3800.0)
KERNEL(f32, TM_SUM_SUPERBLOCK * 4u, 9200.0)
KERNEL(bf16, TM_SUM_SUPERBLOCK * 2u, 15000.0)
KERNEL(f16, TM_SUM_SUPERBLOCK * 2u, 15000.0)
KERNEL(f8_e4m3fn, TM_SUM_SUPERBLOCK, 4000.0)
KERNEL(f8_e5m2, TM_SUM_SUPERBLOCK, 8000.0)
KERNEL(i8, TM_SUM_SUPERBLOCK, 26000.0)
KERNEL(u8, TM_SUM_SUPERBLOCK, 26000.0)
KERNEL(q8_0, TM_SUM_SUPERBLOCK / 32 * 34u, 14000.0)
KERNEL(q4_0, TM_SUM_SUPERBLOCK / 32 * 18u, 13000.0)

#define READ_BLOCKS_KERNEL(id, name, elements, bytes, ps)                                                       \
  static void cpu_stats_##name(const unsigned char *data, uint64_t count, cpu_stats_state *state) {             \
    cpu_stats_decoded(cpu_decode_##name, (elements), (bytes), data, count, state);                               \
  }                                                                                                              \
  KERNEL(name, TM_SUM_SUPERBLOCK / (elements) * (bytes), 1e6 / (110 + (ps)))
CPU_READ_BLOCKS(READ_BLOCKS_KERNEL)

#define ROW(id, lower)                                                                                             \
  { .op = TM_OP_STATS, .formats = { TM_FORMAT_##id, TM_FORMAT_U64 }, .isa = CPU_ISA_AVX2, .level = TM_LEVEL_NATIVE, \
    .numerics = TM_NUMERICS_N0, .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE,             \
    .name = "cpu_stats_" #lower "__avx2", .cost_ns = cost_##lower, .workspace_bytes = workspace_bytes, .run = run_##lower }

static const cpu_row rows[] = {
  ROW(F32, f32),
  ROW(BF16, bf16),
  ROW(F16, f16),
  ROW(F64, f64),
  ROW(F8_E4M3FN, f8_e4m3fn),
  ROW(F8_E5M2, f8_e5m2),
  ROW(I8, i8),
  ROW(U8, u8),
  ROW(Q8_0, q8_0),
  ROW(Q4_0, q4_0),
#define READ_BLOCKS_ROW(id, name, elements, bytes, ps) ROW(id, name),
  CPU_READ_BLOCKS(READ_BLOCKS_ROW)
};

const kernel_row_table cpu_rows_stats = { rows, sizeof rows / sizeof rows[0] };
