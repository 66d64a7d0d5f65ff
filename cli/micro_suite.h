/* SPDX-License-Identifier: Apache-2.0 */
/*
 * micro_suite.h - a fixed set of small operations that tells what a device is worth: copies of a few sizes, one operation
 * element by element, one reduction and one matrix product for each format.  All through the library, as any application
 * would: what it measures is learned, and kept.
 */
#ifndef TM_CLI_MICRO_SUITE_H
#define TM_CLI_MICRO_SUITE_H

#include "op_request.h"

/* The request at `index`; false past the last. */
bool tm_micro_suite_request(uint32_t index, tm_op_request *out_request);
uint32_t tm_micro_suite_count(void);
/* "matmul f32 256x256, f32 256x256" */
void tm_micro_suite_describe(const tm_op_request *request, char *out, size_t capacity);

typedef struct tm_micro_result {
  bool     can_run;             /* the device itself, as it is or with its operands changed first */
  uint64_t run_count;
  uint64_t declared_ns;
  uint64_t copy_ns;             /* expected of copies, as it is known now */
  uint64_t measured_ns;         /* the median, copies included */
  double   correction;          /* of what was declared, as it is known now */
  uint64_t sample_count;
  char     reason[240];         /* why it cannot, or what failed; "" if nothing did */
} tm_micro_result;

/* Runs it on the device again and again for so long, at least as often as it takes to learn something. */
void tm_micro_suite_run(tm_context *context, const tm_op_request *request, uint32_t device, uint64_t budget_ns, tm_micro_result *out_result);

#endif
