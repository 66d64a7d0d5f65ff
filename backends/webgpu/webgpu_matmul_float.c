/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul of floats in f32.  WGSL rounds a product and a sum to either neighbour: a sum of n terms meets n products and n - 1
 * additions, so n eps of the terms in all, in whatever order a dot product adds them.  Subnormal operands and large ones
 * take other ways (webgpu_matmul_float.wgsl), so that nothing but the result may be flushed.
 */
#include "webgpu_matmul.h"
#include "webgpu_number.h"
#include "webgpu_shaders.h"
#include "webgpu_work.h"

#define BOUND          1.25
#define MOST_SCANS     1024u    /* workgroups, each leaves SCAN_BYTES */
#define TILE_OUTPUTS   16u
#define OVERHEAD_TURNS 64u      /* besides those along k */
#define SCAN_BYTES     16u
#define SCAN_GRANULE   65536u   /* elements for one workgroup */
#define FEW_ROWS       4u       /* which tiles would not fill */
#define PART_DEPTH     64u      /* at least, of a sum that is made in parts */
#define MOST_PARTS     32u
#define ENOUGH_OUTPUTS 65536u   /* to have no use for parts */

static const char *const tile_shaders[] = { webgpu_wgsl_bits, webgpu_wgsl_wide, webgpu_wgsl_matmul, webgpu_wgsl_matmul_float,
                                            webgpu_wgsl_matmul_float_tile, webgpu_wgsl_matmul_float_vector, 0 };

static const char *const block_shaders[] = { webgpu_wgsl_bits, webgpu_wgsl_wide, webgpu_wgsl_block, webgpu_wgsl_matmul,
                                             webgpu_wgsl_matmul_float, webgpu_wgsl_matmul_float_tile,
                                             webgpu_wgsl_matmul_float_vector, 0 };

static uint64_t scans_of(const webgpu_matmul *m) {
  const uint64_t elements = m->shape.batch_count * (m->shape.rows + m->shape.columns) * m->shape.depth;
  const uint64_t scans = elements / SCAN_GRANULE + 1;
  return scans < MOST_SCANS ? scans : MOST_SCANS;
}

/* How often an invocation repeats for `items`. */
static uint64_t repeats_of(const webgpu_limits *limits, uint64_t items) {
  return items / ((uint64_t)limits->workgroup_count * limits->workgroup_size) + 1;
}

static uint64_t outputs_of(const webgpu_matmul *m) { return m->shape.batch_count * m->shape.rows * m->shape.columns; }

/* Also where a tile, with a sum for each of its outputs if they must be exact, would take too many turns. */
static int goes_without_tiles(const webgpu_limits *limits, const webgpu_matmul *m) {
  const uint64_t repeats = repeats_of(limits, webgpu_matmul_blocks(limits, m) * limits->workgroup_size);
  return m->shape.rows < FEW_ROWS || (TILE_OUTPUTS * (m->shape.depth / 4) + OVERHEAD_TURNS) * repeats > WEBGPU_MOST_TURNS;
}

static uint64_t parts_of(const webgpu_matmul *m) {
  const uint64_t parts = outputs_of(m) >= ENOUGH_OUTPUTS ? 1 : m->shape.depth / PART_DEPTH;
  return parts == 0 ? 1 : parts < MOST_PARTS ? parts : MOST_PARTS;
}

static int has_too_many_turns(const webgpu_limits *limits, const webgpu_matmul *m) {
  if (!goes_without_tiles(limits, m)) return 0;
  const uint64_t most = (m->shape.depth / 4 + MOST_PARTS + OVERHEAD_TURNS) * repeats_of(limits, outputs_of(m));
  const uint64_t part = (m->shape.depth / 4 / parts_of(m) + OVERHEAD_TURNS) * repeats_of(limits, outputs_of(m) * parts_of(m));
  return most > WEBGPU_MOST_TURNS || part > WEBGPU_MOST_TURNS;
}

static uint32_t refuses(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand) {
  webgpu_matmul m;
  const uint32_t reasons = webgpu_refuses_matmul(limits, operation, out_operand);
  if (reasons != 0) return reasons;
  return webgpu_matmul_make(operation, &m) && has_too_many_turns(limits, &m) ? TM_REASON_SIZE : 0;
}

static uint64_t workspace_bytes(const webgpu_limits *limits, const tm_operation *operation) {
  webgpu_matmul m;
  if (!webgpu_matmul_make(operation, &m)) return 0;
  return goes_without_tiles(limits, &m) ? outputs_of(&m) * parts_of(&m) * sizeof(float) : scans_of(&m) * SCAN_BYTES;
}

static uint64_t cost_ns(const webgpu_limits *limits, const tm_operation *operation) {
  webgpu_matmul m;
  if (!webgpu_matmul_make(operation, &m)) return 0;
  const double products = (double)m.shape.batch_count * (double)m.shape.rows * (double)m.shape.columns * (double)m.shape.depth;
  return webgpu_work_ns(limits, WEBGPU_WORK_PRODUCT, products, 2 * kernel_operand_bytes(operation));
}

static void add_vector_passes(const webgpu_limits *limits, const tm_operation *operation, const webgpu_matmul *m,
                              webgpu_plan *plan) {
  const uint64_t group = limits->workgroup_size, outputs = outputs_of(m), items[2] = { outputs * parts_of(m), outputs };
  static const char *const entries[2] = { "parts", "sums" };
  for (uint32_t i = 0; i < 2; ++i) {
    webgpu_pass *pass = webgpu_add_matmul_pass(limits, operation, m, entries[i], (items[i] + group - 1) / group, parts_of(m), plan);
    if (pass != NULL) pass->parameters[WEBGPU_MATMUL_BLOCKS] = (uint32_t)outputs;
  }
}

static void plan(const webgpu_row *row, const webgpu_limits *limits, const tm_operation *operation, webgpu_plan *out_plan) {
  webgpu_matmul m;
  (void)row;
  if (!webgpu_matmul_make(operation, &m)) return;
  webgpu_say_matmul(limits, operation, &m, out_plan);
  webgpu_say_result(out_plan, operation->operands[2].format);
  webgpu_say(out_plan, "const PARTS_FIRST = %s;\n", m.shape.k_axis[1] == operation->operands[1].rank - 1 ? "true" : "false");
  if (goes_without_tiles(limits, &m)) {
    add_vector_passes(limits, operation, &m, out_plan);
    return;
  }
  webgpu_add_matmul_pass(limits, operation, &m, "scan", scans_of(&m), 0, out_plan);
  webgpu_add_matmul_pass(limits, operation, &m, "multiply", webgpu_matmul_blocks(limits, &m), scans_of(&m), out_plan);
}

#define ROW(A, a, B, b, Y, y, SHADERS)                                                                                          \
  { .op = TM_OP_MATMUL, .formats = { TM_FORMAT_##A, TM_FORMAT_##B, TM_FORMAT_##Y },                                     \
    .attribute_bytes = sizeof(tm_matmul_attributes), .level = TM_LEVEL_NATIVE, .numerics = TM_NUMERICS_N2,              \
    .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE | TM_NUMERICS_FLUSHES,                       \
    .growth = TM_GROWTH_LINEAR, .accumulator = TM_FORMAT_F32, .numerics_bound = BOUND,                                  \
    .name = "webgpu_matmul_" #a "_" #b "_" #y, .shaders = SHADERS, .refuses = refuses,               \
    .split = webgpu_split_matmul, .cost_ns = cost_ns, .workspace_bytes = workspace_bytes, .plan = plan },
#define ROWS_Y(A, a, B, b, SHADERS)                                                                                     \
  ROW(A, a, B, b, F32, f32, SHADERS) ROW(A, a, B, b, F16, f16, SHADERS) ROW(A, a, B, b, BF16, bf16, SHADERS)
#define ROWS(A, a)                                                                                                      \
  ROWS_Y(A, a, F32, f32, tile_shaders) ROWS_Y(A, a, F16, f16, tile_shaders) ROWS_Y(A, a, BF16, bf16, tile_shaders)      \
  ROWS_Y(A, a, Q8_0, q8_0, block_shaders) ROWS_Y(A, a, Q4_0, q4_0, block_shaders)

static const webgpu_row rows[] = { ROWS(F32, f32) ROWS(F16, f16) ROWS(BF16, bf16) };

const kernel_row_table webgpu_rows_matmul_float = { rows, sizeof rows / sizeof rows[0] };
