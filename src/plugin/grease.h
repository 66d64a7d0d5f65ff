/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grease.h - what a later host might send, sent today by developer builds, so that no backend comes to rely on its absence:
 * facts that nobody knows, and structs that are longer than they are now, with zeros at their end.
 */
#ifndef TM_PLUGIN_GREASE_H
#define TM_PLUGIN_GREASE_H

#include <string.h>

#include "tensormorph/plugin.h"

#ifdef TM_GREASE
#define TM_GREASE_OPERATION_FACT 0x8000u
#define TM_GREASE_OPERAND_FACT   0x80000000u
#define TM_GREASE_TAIL 16u

/* Room for the greased copy of one argument, as long as the call. */
typedef struct tm_grease {
  struct { tm_operation operation; unsigned char tail[TM_GREASE_TAIL]; } operation;
  struct { tm_launch launch; unsigned char tail[TM_GREASE_TAIL]; } launch;
  struct { tm_transfer transfer; unsigned char tail[TM_GREASE_TAIL]; } transfer;
  tm_operand operands[TM_MAX_OPERANDS];
} tm_grease;

static inline const tm_operation *tm_grease_operation(tm_grease *grease, const tm_operation *operation) {
  const uint32_t count = operation->input_count + operation->output_count;
  memset(&grease->operation, 0, sizeof grease->operation);
  grease->operation.operation = *operation;
  grease->operation.operation.struct_size += TM_GREASE_TAIL;
  grease->operation.operation.flags |= TM_GREASE_OPERATION_FACT;
  memcpy(grease->operands, operation->operands, count * sizeof *grease->operands);
  for (uint32_t i = 0; i < count; i++) grease->operands[i].flags |= TM_GREASE_OPERAND_FACT;
  grease->operation.operation.operands = grease->operands;
  return &grease->operation.operation;
}

static inline const tm_launch *tm_grease_launch(tm_grease *grease, const tm_launch *launch) {
  memset(&grease->launch, 0, sizeof grease->launch);
  grease->launch.launch = *launch;
  grease->launch.launch.struct_size += TM_GREASE_TAIL;
  return &grease->launch.launch;
}

static inline const tm_transfer *tm_grease_transfer(tm_grease *grease, const tm_transfer *transfer) {
  memset(&grease->transfer, 0, sizeof grease->transfer);
  grease->transfer.transfer = *transfer;
  grease->transfer.transfer.struct_size += TM_GREASE_TAIL;
  return &grease->transfer.transfer;
}
#else
typedef struct tm_grease {
  char nothing;
} tm_grease;

static inline const tm_operation *tm_grease_operation(tm_grease *grease, const tm_operation *operation) {
  (void)grease;
  return operation;
}

static inline const tm_launch *tm_grease_launch(tm_grease *grease, const tm_launch *launch) {
  (void)grease;
  return launch;
}

static inline const tm_transfer *tm_grease_transfer(tm_grease *grease, const tm_transfer *transfer) {
  (void)grease;
  return transfer;
}
#endif

#endif
