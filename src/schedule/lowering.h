/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lowering.h - doing to operands what a backend asked for, so that it can run an operation: an answer's changes become
 * steps (copy, cast, dequantize) before the operation on its inputs and after it on its outputs.
 */
#ifndef TM_SCHEDULE_LOWERING_H
#define TM_SCHEDULE_LOWERING_H

#include "schedule/request.h"

/* One step: operand `operand` as the caller has it <-> `changed`, by operation `op`; inputs before, outputs after. */
typedef struct tm_lowering_step {
  uint32_t   op;                        /* TM_OP_COPY, TM_OP_CAST or TM_OP_DEQUANTIZE */
  uint32_t   operand;
  tm_operand changed;                   /* dense */
} tm_lowering_step;

typedef struct tm_lowering {
  uint32_t step_count;
  bool     rounds_output;               /* results are rounded a second time, to the caller's format */
  bool     loses_bits;                  /* an operand passes through a format that does not hold its values */
  tm_lowering_step steps[TM_MAX_CHANGES];
} tm_lowering;

/* Reads the changes of `answer` as steps and applies them to `operands` (those of `operation`).  False when there are none,
   when one is of a kind that is not lowered, or when the operation would mean something else with them. */
bool tm_lowering_make(const tm_operation *operation, const tm_answer *answer, tm_operand *operands, tm_lowering *out_lowering);

/* The request that carries out one step, of an input (caller's -> changed) or an output (changed -> caller's). */
void tm_lowering_request(const tm_lowering_step *step, const tm_operand *original, bool is_output, tm_request *out_request);

/* "contiguous(a), cast(b, f32)" */
void tm_lowering_describe(const tm_lowering *lowering, uint32_t input_count, char *text, uint64_t capacity);

#endif
