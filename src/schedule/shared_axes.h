/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared_axes.h - which axes of an operation's operands are one: M of a and of y, K of a and of b.  What is padded, cut
 * or merged on one operand must be so on all of them.
 */
#ifndef TM_SCHEDULE_SHARED_AXES_H
#define TM_SCHEDULE_SHARED_AXES_H

#include "ops/op_table.h"

#define TM_NO_AXIS (-1)

typedef enum tm_axis_role {
  TM_AXIS_INDEPENDENT,          /* a part of the output depends on its own part of the inputs alone */
  TM_AXIS_SUMMED,               /* results over parts add up to the whole */
  TM_AXIS_COUPLED               /* everything along it belongs together */
} tm_axis_role;

typedef struct tm_shared_axes {
  tm_axis_role role;
  int32_t      axes[TM_MAX_OPERANDS];   /* inputs, then outputs; TM_NO_AXIS: the operand has none, or repeats along it */
} tm_shared_axes;

/* `operation` is normalized.  False when it is not known what the axis means. */
bool tm_shared_axes_find(const tm_operation *operation, uint32_t operand, uint32_t axis, tm_shared_axes *out_shared);

#endif
