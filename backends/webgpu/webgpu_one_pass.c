/* SPDX-License-Identifier: Apache-2.0 */
#include "webgpu_one_pass.h"

#include "webgpu_elementwise.h"
#include "webgpu_number.h"

#define SUPERBLOCK    32768u
#define MOST_SUPERBLOCKS (WEBGPU_MOST_TURNS / 6)        /* an invocation of the last pass makes five digits and a figure */

uint64_t webgpu_superblocks_of(const tm_operand *x) { return x->element_count == 0 ? 1 : (x->element_count - 1) / SUPERBLOCK + 1; }

uint32_t webgpu_refuses_one_pass(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand) {
  (void)limits;
  const uint32_t reasons = kernel_refuses_strided(operation, out_operand);
  if (reasons != 0) return reasons;
  return operation->operands[0].element_count > (uint64_t)MOST_SUPERBLOCKS * SUPERBLOCK ? TM_REASON_SIZE : 0;
}

/* `inner`: elements inside one step of the axis.  Parts of so many steps are whole superblocks; where an axis is shorter than
   that, the host takes dense rows for one long row. */
static uint64_t granule_of(uint64_t inner) {
  uint64_t granule = SUPERBLOCK;
  while (granule > 1 && inner % 2 == 0) {
    granule /= 2;
    inner /= 2;
  }
  return granule;
}

int webgpu_split_one_pass(const webgpu_limits *limits, const tm_operation *operation, tm_change *out_change) {
  const tm_operand *x = &operation->operands[0];
  uint64_t largest = 0, inner = x->element_count;
  for (uint32_t i = 0; i < operation->input_count; ++i) {
    if (operation->operands[i].byte_count > largest) largest = operation->operands[i].byte_count;
  }
  const uint64_t parts = largest / (limits->binding_bytes - limits->offset_alignment) + 1;
  for (uint32_t axis = 0; axis < x->rank; ++axis) {
    inner /= x->dims[axis];
    if (x->dims[axis] == 1) continue;
    const uint64_t granule = granule_of(inner), fitting = x->dims[axis] / parts, least = (SUPERBLOCK + inner - 1) / inner;
    const uint64_t most = fitting >= granule ? fitting / granule * granule : fitting > least ? fitting : least;
    *out_change = (tm_change){ .kind = TM_CHANGE_SPLIT_ABOVE, .operand = 0, .axis = axis, .value = most };
    return most < x->dims[axis];
  }
  return 0;
}

void webgpu_say_values(webgpu_plan *plan, uint32_t input, uint32_t format) {
  static const char *const raw[] = {
    [1] = "(x%u[e >> 2u] >> ((e & 3u) * 8u)) & 0xffu", [2] = "(x%u[e >> 1u] >> ((e & 1u) * 16u)) & 0xffffu", [4] = "x%u[e]",
  };
  const char name = input == 0 ? 'x' : 'z';
  const uint32_t bytes = kernel_element_bytes(format);
  if (bytes == 0) {
    webgpu_say(plan, "const BLOCK_BYTES = %uu;\n", format == TM_FORMAT_Q8_0 ? 34u : 18u);
    webgpu_say(plan, "fn block_word(i: u32) -> u32 { return x%u[i]; }\n", input);
    webgpu_say(plan, "fn %c_value(e: u32) -> u32 { return block_quad(e / 32u * BLOCK_BYTES, e & 28u)[e & 3u]; }\n", name);
    return;
  }
  webgpu_say(plan, "fn %c_raw(e: u32) -> u32 { return ", name);
  webgpu_say(plan, raw[bytes], input);
  webgpu_say(plan, "; }\nfn %c_value(e: u32) -> u32 { return ", name);
  if (webgpu_float_name(format) != NULL) webgpu_say(plan, "bits_from_%s(%c_raw(e)); }\n", webgpu_float_name(format), name);
  else if (webgpu_number_sign(format) < 0) webgpu_say(plan, "bitcast<u32>(f32(%c_raw(e))); }\n", name);
  else webgpu_say(plan, "bitcast<u32>(f32(extractBits(bitcast<i32>(%c_raw(e)), 0u, %uu))); }\n", name, 8 * bytes);
}
