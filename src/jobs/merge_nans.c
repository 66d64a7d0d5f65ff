/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/merge_nans.h"

#include <stddef.h>

#include "tensormorph/types.h"

/* What is above `largest` without its sign is NaN. */
#define UNIFY(name, type, sign, largest, quiet)                                                                                    \
  static void name(uint64_t elements, void *data) {                                                                                \
    type *values = data;                                                                                                           \
    for (uint64_t i = 0; i < elements; i++) {                                                                                      \
      const type value = values[i];                                                                                                \
      values[i] = (type)(value & (type)~(type)(sign)) > (largest) ? (quiet) : value;                                               \
    }                                                                                                                              \
  }

UNIFY(unify_f64, uint64_t, UINT64_C(1) << 63, UINT64_C(0x7ff0000000000000), UINT64_C(0x7ff8000000000000))
UNIFY(unify_f32, uint32_t, UINT32_C(1) << 31, UINT32_C(0x7f800000), UINT32_C(0x7fc00000))
UNIFY(unify_f16, uint16_t, 0x8000, 0x7c00, 0x7e00)
UNIFY(unify_bf16, uint16_t, 0x8000, 0x7f80, 0x7fc0)
UNIFY(unify_e4m3fn, uint8_t, 0x80, 0x7e, 0x7f)
UNIFY(unify_e5m2, uint8_t, 0x80, 0x7c, 0x7e)

static const struct {
  uint32_t format;
  void (*unify)(uint64_t elements, void *data);
} rows[] = {
  { TM_FORMAT_F64, unify_f64 },   { TM_FORMAT_F32, unify_f32 },           { TM_FORMAT_F16, unify_f16 },
  { TM_FORMAT_BF16, unify_bf16 }, { TM_FORMAT_F8_E4M3FN, unify_e4m3fn }, { TM_FORMAT_F8_E5M2, unify_e5m2 },
};

void tm_merge_nans_unify(uint32_t format, uint64_t elements, void *data) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (rows[i].format == format) rows[i].unify(elements, data);
}
