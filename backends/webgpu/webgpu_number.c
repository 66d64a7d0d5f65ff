/* SPDX-License-Identifier: Apache-2.0 */
#include "webgpu_number.h"

int webgpu_number_sign(uint32_t format) {
  switch (format) {
    case TM_FORMAT_I8:
    case TM_FORMAT_I16:
    case TM_FORMAT_I32:
    case TM_FORMAT_I64: return 1;
    case TM_FORMAT_U8:
    case TM_FORMAT_U16:
    case TM_FORMAT_U32:
    case TM_FORMAT_U64: return -1;
    default: return 0;
  }
}

void webgpu_say_result(webgpu_plan *plan, uint32_t format) {
  static const struct { uint32_t fraction_bits, exponents; } shapes[] = {
    [TM_FORMAT_F64] = { 52, 0x7ff }, [TM_FORMAT_F32] = { 23, 0xff }, [TM_FORMAT_F16] = { 10, 0x1f }, [TM_FORMAT_BF16] = { 7, 0xff },
  };
  webgpu_say(plan, "const Y_BYTES = %uu;\nconst Y_FRACTION_BITS = %uu;\nconst Y_EXPONENTS = %uu;\n", kernel_element_bytes(format),
             shapes[format].fraction_bits, shapes[format].exponents);
}
