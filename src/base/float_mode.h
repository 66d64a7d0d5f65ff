/* SPDX-License-Identifier: Apache-2.0 */
/* float_mode.h - keeping the floating-point control modes (rounding, flushing, traps) as they were around foreign code. */
#ifndef TM_BASE_FLOAT_MODE_H
#define TM_BASE_FLOAT_MODE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tm_float_mode {
  uint64_t opaque[2];
} tm_float_mode;

void tm_float_mode_save(tm_float_mode *out_mode);
/* Puts it back if it differs. */
void tm_float_mode_restore(const tm_float_mode *mode);
/* Whether numbers are rounded to nearest and subnormal ones kept, as all results are defined by. */
bool tm_float_mode_is_usual(void);

#endif
