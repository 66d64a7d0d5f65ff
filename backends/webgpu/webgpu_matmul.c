/* SPDX-License-Identifier: Apache-2.0 */
#include "webgpu_matmul.h"

#include "webgpu_elementwise.h"

#define TILE_COLUMNS  4u
#define BLOCK_TILES   8u                        /* side by side in a workgroup */
#define MOST_BATCHES  6u                        /* axes */
#define LARGEST_COUNT UINT64_C(0x7fffffff)

int webgpu_matmul_make(const tm_operation *operation, webgpu_matmul *out_matmul) {
  const tm_matmul_attributes *attributes = operation->attributes;
  const tm_operand *a = &operation->operands[0], *b = &operation->operands[1], *y = &operation->operands[operation->input_count];
  const uint32_t rank = y->rank;
  if (rank < 2 || a->rank != rank || b->rank != rank || attributes->transpose_a > 1 || attributes->transpose_b > 1) return 0;
  const kernel_product p = kernel_product_of(operation);
  for (uint32_t i = 0; i + 2 < rank; ++i) {
    if (a->dims[i] != y->dims[i] || b->dims[i] != y->dims[i]) return 0;
  }
  if (b->dims[p.k_axis[1]] != p.depth || a->dims[p.line_axis[0]] != p.rows || b->dims[p.line_axis[1]] != p.columns) return 0;
  *out_matmul = (webgpu_matmul){ .shape = p, .tile_rows = 4 };
  return 1;
}

/* ---- predicates ---- */

/* Blocks are read in place, also from bytes that are no multiple of a word. */
static uint32_t refuses_operand(const webgpu_matmul *matmul, const tm_operand *operand, uint32_t index) {
  if (kernel_block_bytes(operand->format) == 0) {
    const uint32_t bytes = kernel_element_bytes(operand->format);
    return bytes == 0 ? TM_REASON_FORMAT : webgpu_refuses_steps(operand, bytes > 4 ? 4 : bytes);
  }
  if (index != WEBGPU_MATMUL_B || matmul->shape.k_axis[1] != operand->rank - 1) return TM_REASON_LAYOUT;
  return webgpu_refuses_steps(operand, 2);
}

uint32_t webgpu_refuses_matmul(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand) {
  webgpu_matmul m;
  (void)limits;
  *out_operand = TM_NO_OPERAND;
  if (!webgpu_matmul_make(operation, &m)) return TM_REASON_SHAPE;
  const double lines = (double)m.shape.batch_count * (double)(m.shape.rows > m.shape.columns ? m.shape.rows : m.shape.columns);
  if (lines * (double)(m.shape.depth + 4) > (double)LARGEST_COUNT) return TM_REASON_SIZE;
  if ((double)m.shape.batch_count * (double)m.shape.rows * (double)m.shape.columns > (double)LARGEST_COUNT) return TM_REASON_SIZE;
  for (uint32_t i = 0; i < 3; ++i) {
    *out_operand = i < 2 ? i : operation->input_count;
    const uint32_t reasons = refuses_operand(&m, &operation->operands[*out_operand], i);
    if (reasons != 0) return reasons;
  }
  *out_operand = TM_NO_OPERAND;
  return 0;
}

/* ---- splitting ---- */

static uint64_t magnitude(int64_t stride) { return stride < 0 ? (uint64_t)-stride : (uint64_t)stride; }

/* Halves the axis that the too large operand has outermost; parts are asked about anew. */
int webgpu_split_matmul(const webgpu_limits *limits, const tm_operation *operation, tm_change *out_change) {
  webgpu_matmul m;
  const uint64_t room = limits->binding_bytes - 2 * limits->offset_alignment;
  if (!webgpu_matmul_make(operation, &m)) return 0;
  for (uint32_t i = 0; i < 3; ++i) {
    const uint32_t index = i < 2 ? i : operation->input_count;
    const tm_operand *operand = &operation->operands[index];
    if (operand->byte_count <= room) continue;
    for (uint32_t axis = 0; axis < operand->rank; ++axis) {
      const uint64_t extent = operand->dims[axis], stride = magnitude(operand->strides_bytes[axis]);
      if (extent < 2 || stride == 0 || (i < 2 && axis == m.shape.k_axis[i])) continue;
      const uint64_t fitting = room / stride;
      const uint64_t most = fitting == 0 ? 1 : fitting >= extent ? extent - 1 : fitting;
      *out_change = (tm_change){ .kind = TM_CHANGE_SPLIT_ABOVE, .operand = index, .axis = axis, .value = most };
      return 1;
    }
  }
  return 0;
}

/* ---- text ---- */

static void say_bits(webgpu_plan *plan, const char *name, uint32_t format) {
  const char *conversion = webgpu_float_name(format);
  if (conversion != NULL) webgpu_say(plan, "fn %s_bits(raw: u32) -> u32 { return bits_from_%s(raw); }\n", name, conversion);
  else webgpu_say(plan, "fn %s_bits(raw: u32) -> u32 { return bitcast<u32>(extractBits(bitcast<i32>(raw), 0u, 8u)); }\n", name);
}

/* Elements one by one. */
static void say_loose_quad(webgpu_plan *plan, const char *name, uint32_t input, uint32_t bytes) {
  static const char *const element[] = {
    [1] = "(x%u[e >> 2u] >> ((e & 3u) * 8u)) & 0xffu", [2] = "(x%u[e >> 1u] >> ((e & 1u) * 16u)) & 0xffffu", [4] = "x%u[e]",
  };
  webgpu_say(plan, "fn %s_one(e: u32) -> u32 { return %s_bits(", name, name);
  webgpu_say(plan, element[bytes], input);
  webgpu_say(plan, "); }\nfn %s_quad(at: u32, k: u32) -> vec4<u32> {\n", name);
  webgpu_say(plan, "  let s = u32(p.%s_step.y);\n  let e = at + k * s;\n", name);
  webgpu_say(plan, "  return vec4<u32>(%s_one(e), %s_one(e + s), %s_one(e + 2u * s), %s_one(e + 3u * s));\n}\n", name, name, name,
             name);
}

/* Whole words, where elements along k lie side by side from a word's beginning on. */
static void say_dense_quad(webgpu_plan *plan, const char *name, uint32_t input, uint32_t bytes) {
  webgpu_say(plan, "fn %s_quad(at: u32, k: u32) -> vec4<u32> {\n  let i = (at + k) / %uu;\n", name, 4 / bytes);
  if (bytes == 2) {
    webgpu_say(plan, "  let one = x%u[i];\n  let two = x%u[i + 1u];\n", input, input);
    webgpu_say(plan, "  return vec4<u32>(%s_bits(one & 0xffffu), %s_bits(one >> 16u), ", name, name);
    webgpu_say(plan, "%s_bits(two & 0xffffu), %s_bits(two >> 16u));\n}\n", name, name);
  } else {
    webgpu_say(plan, "  let one = x%u[i];\n", input);
    webgpu_say(plan, "  return vec4<u32>(%s_bits(one), %s_bits(one >> 8u), %s_bits(one >> 16u), %s_bits(one >> 24u));\n}\n",
               name, name, name, name);
  }
}

/* b in blocks along k: webgpu_block.wgsl. */
static void say_block_quad(webgpu_plan *plan, uint32_t block_bytes) {
  webgpu_say(plan, "const BLOCK_BYTES = %uu;\nfn block_word(i: u32) -> u32 { return x1[i]; }\n", block_bytes);
  webgpu_say(plan, "fn b_quad(at: u32, k: u32) -> vec4<u32> { return block_quad(at + k / 32u * %uu, k %% 32u); }\n", block_bytes);
}

static int is_dense(const webgpu_limits *limits, const tm_operand *operand, uint32_t k_axis) {
  const uint32_t bytes = kernel_element_bytes(operand->format);
  if (bytes >= 4 || operand->strides_bytes[k_axis] != (int64_t)bytes || webgpu_first_byte(limits, operand) % 4 != 0) return 0;
  for (uint32_t i = 0; i < operand->rank; ++i) {
    if (i != k_axis && operand->dims[i] > 1 && operand->strides_bytes[i] % 4 != 0) return 0;
  }
  return 1;
}

void webgpu_say_matmul(const webgpu_limits *limits, const tm_operation *operation, const webgpu_matmul *matmul, webgpu_plan *plan) {
  static const char *const names[] = { "a", "b" };
  webgpu_say(plan, "const TILE_ROWS = %uu;\n", matmul->tile_rows);
  uint32_t binding = 1;
  for (uint32_t i = 0; i < operation->input_count; ++i) {
    webgpu_say(plan, "@group(0) @binding(%u) var<storage, read> x%u: array<u32>;\n", binding++, i);
  }
  webgpu_say(plan, "@group(0) @binding(%u) var<storage, read_write> y: array<atomic<u32>>;\n", binding++);
  webgpu_say(plan, "@group(0) @binding(%u) var<storage, read_write> w: array<u32>;\n", binding);
  for (uint32_t i = 0; i < 2; ++i) {
    const tm_operand *operand = &operation->operands[i];
    if (kernel_block_bytes(operand->format) != 0) {
      say_block_quad(plan, kernel_block_bytes(operand->format));
      continue;
    }
    const uint32_t bytes = kernel_element_bytes(operand->format);
    say_bits(plan, names[i], operand->format);
    if (is_dense(limits, operand, matmul->shape.k_axis[i])) say_dense_quad(plan, names[i], i, bytes);
    else say_loose_quad(plan, names[i], i, bytes);
  }
}

/* ---- passes ---- */

static uint64_t row_blocks_of(const webgpu_limits *limits, const webgpu_matmul *m) {
  const uint64_t rows = limits->workgroup_size / BLOCK_TILES * m->tile_rows;
  return (m->shape.rows + rows - 1) / rows;
}

static uint64_t column_blocks_of(const webgpu_matmul *m) {
  return (m->shape.columns + BLOCK_TILES * TILE_COLUMNS - 1) / (BLOCK_TILES * TILE_COLUMNS);
}

uint64_t webgpu_matmul_blocks(const webgpu_limits *limits, const webgpu_matmul *matmul) {
  return matmul->shape.batch_count * row_blocks_of(limits, matmul) * column_blocks_of(matmul);
}

/* What the shaders count places in: elements, bytes of b in blocks and of y. */
static int64_t unit_of(const tm_operand *operand, int is_output) {
  const uint32_t bytes = kernel_element_bytes(operand->format);
  return is_output || bytes == 0 ? 1 : (int64_t)bytes;
}

static uint32_t step_of(const tm_operand *operand, uint32_t axis, int64_t unit) {
  return (uint32_t)(operand->strides_bytes[axis] / unit);
}

static void put_batches(const tm_operation *operation, const int64_t *units, webgpu_pass *pass) {
  const tm_operand *y = &operation->operands[operation->input_count];
  for (uint32_t i = 0; i < MOST_BATCHES; ++i) {
    const int is_there = i + 2 < y->rank;
    const uint32_t axis = is_there ? y->rank - 3 - i : 0;
    webgpu_put(pass, is_there ? (uint32_t)y->dims[axis] : 1);
    webgpu_put(pass, is_there ? step_of(&operation->operands[0], axis, units[0]) : 0);
    webgpu_put(pass, is_there ? step_of(&operation->operands[1], axis, units[1]) : 0);
    webgpu_put(pass, is_there ? step_of(y, axis, units[2]) : 0);
  }
}

static uint32_t bits_of_count(uint64_t count) {
  uint32_t bits = 0;
  while (bits < 63 && UINT64_C(1) << bits < count) bits++;
  return bits;
}

webgpu_pass *webgpu_add_matmul_pass(const webgpu_limits *limits, const tm_operation *operation, const webgpu_matmul *matmul,
                                    const char *entry, uint64_t workgroups, uint64_t scan_count, webgpu_plan *plan) {
  const tm_operand *a = &operation->operands[0], *b = &operation->operands[1], *y = &operation->operands[operation->input_count];
  const int64_t units[3] = { unit_of(a, 0), unit_of(b, 0), unit_of(y, 1) };
  webgpu_pass *pass = webgpu_add_pass(limits, plan, entry, workgroups * limits->workgroup_size);
  if (pass == NULL) return NULL;
  const uint64_t counts[] = { matmul->shape.rows, matmul->shape.columns, matmul->shape.depth, webgpu_matmul_blocks(limits, matmul),
                              row_blocks_of(limits, matmul), column_blocks_of(matmul), y->rank - 2, scan_count };
  for (uint32_t i = 0; i < 8; ++i) webgpu_put(pass, (uint32_t)counts[i]);
  webgpu_put(pass, (uint32_t)(webgpu_first_byte(limits, a) / (uint64_t)units[0]));
  webgpu_put(pass, (uint32_t)(webgpu_first_byte(limits, b) / (uint64_t)units[1]));
  webgpu_put(pass, webgpu_first_byte(limits, y));
  webgpu_put(pass, 0);
  webgpu_put(pass, step_of(a, matmul->shape.line_axis[0], units[0]));
  webgpu_put(pass, step_of(a, matmul->shape.k_axis[0], units[0]));
  webgpu_put(pass, step_of(b, matmul->shape.line_axis[1], units[1]));
  webgpu_put(pass, step_of(b, matmul->shape.k_axis[1], units[1]));
  webgpu_put(pass, step_of(y, y->rank - 2, units[2]));
  webgpu_put(pass, step_of(y, y->rank - 1, units[2]));
  webgpu_put(pass, bits_of_count(matmul->shape.depth));
  webgpu_put(pass, 0);
  put_batches(operation, units, pass);
  return pass;
}
