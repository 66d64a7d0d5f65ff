/* SPDX-License-Identifier: Apache-2.0 */
/* bench_inputs.h - tensors for a measurement: operands of the right format, filled with ordinary numbers. */
#ifndef TM_CLI_BENCH_INPUTS_H
#define TM_CLI_BENCH_INPUTS_H

#include "op_request.h"

typedef struct tm_bench_inputs {
  tm_tensor *inputs[TM_MAX_OPERANDS];
  tm_tensor *owners[TM_MAX_OPERANDS];   /* of the memory of constant inputs; NULL: the input has its own */
  tm_tensor *outputs[TM_MAX_OPERANDS];
} tm_bench_inputs;

/*
 * Creates all operands of the request.  Floats are spread evenly over [-1, 1), integers over 0..99, so that no kernel
 * gets a fast or slow path from unusual values; packed and block formats are made by the library's own cast and
 * quantize.   TM_ERROR_NO_MEMORY, TM_ERROR_NO_DEVICE (nobody can make the format)
 */
tm_status tm_bench_inputs_create(tm_context *context, const tm_op_request *request, tm_bench_inputs *out_inputs,
                                 tm_error *error);
/* What is NULL is left alone. */
void      tm_bench_inputs_destroy(tm_bench_inputs *inputs);

#endif
