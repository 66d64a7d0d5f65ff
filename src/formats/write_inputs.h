/* SPDX-License-Identifier: Apache-2.0 */
/* write_inputs.h - files that are read, and so must not be written over, by whatever name they are reached. */
#ifndef TM_FORMATS_WRITE_INPUTS_H
#define TM_FORMATS_WRITE_INPUTS_H

#include <stdint.h>

#include "base/arena.h"
#include "tensormorph/types.h"

struct tm_write_input;

typedef struct tm_write_inputs {
  tm_memory             *memory;
  struct tm_write_input *items;         /* sorted */
  uint64_t               count;
  uint64_t               capacity;
} tm_write_inputs;

/* Paths that lead nowhere are no inputs.   TM_ERROR_NO_MEMORY */
tm_status tm_write_inputs_init(tm_write_inputs *inputs, tm_memory *memory, const char *const *paths, uint64_t count,
                               tm_error *error);
void      tm_write_inputs_deinit(tm_write_inputs *inputs);

/* TM_ERROR_ARGUMENT: what FOLDER/NAME is or leads to is an input; TM_ERROR_NO_MEMORY */
tm_status tm_write_inputs_check(const tm_write_inputs *inputs, tm_arena *arena, const char *folder, const char *name,
                                tm_error *error);

#endif
