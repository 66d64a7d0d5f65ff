/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_plan.h - an operation as launches of kernels: parameters, which bindings each launch takes, and how many groups.
 * Made from the operation alone, the same in query and in prepare.
 */
#ifndef KERNEL_PLAN_H
#define KERNEL_PLAN_H

#include "kernel_operand.h"
#include "kernel_types.h"

#define KERNEL_MOST_DISPATCHES 2
#define KERNEL_MOST_BUFFERS 6
/* Kernels loop where there is more work than this many groups. */
#define KERNEL_MOST_GROUPS 1048576u

typedef struct kernel_dispatch {
  const char *kernel;
  u64         group_count;
  u32         buffer_count;
  u32         buffers[KERNEL_MOST_BUFFERS];     /* indices into tm_launch.bindings */
} kernel_dispatch;

typedef struct kernel_plan {
  kernel_parameters parameters;         /* offsets are the launch's: parameters.offsets[slots[binding]] = its offset */
  u32               slots[KERNEL_BINDINGS];
  u32               binding_count;      /* operands and, if there are bytes, the workspace */
  u32               dispatch_count;     /* 0: there is nothing to do */
  kernel_dispatch   dispatches[KERNEL_MOST_DISPATCHES];
  u64               workspace_bytes;
  double            flops;              /* of the whole operation, as far as they decide its time */
} kernel_plan;

/* Fills a plan that is all zero.  0, or TM_REASON_* and the operand they are about. */
typedef u32 (*kernel_plan_fn)(const tm_operation *operation, const char *const *kernels, kernel_plan *out_plan, u32 *out_operand);

u32 kernel_plan_elementwise(const tm_operation *operation, const char *const *kernels, kernel_plan *out_plan, u32 *out_operand);
u32 kernel_plan_move(const tm_operation *operation, const char *const *kernels, kernel_plan *out_plan, u32 *out_operand);
u32 kernel_plan_gather(const tm_operation *operation, const char *const *kernels, kernel_plan *out_plan, u32 *out_operand);
u32 kernel_plan_merge(const tm_operation *operation, const char *const *kernels, kernel_plan *out_plan, u32 *out_operand);
u32 kernel_plan_dequantize(const tm_operation *operation, const char *const *kernels, kernel_plan *out_plan, u32 *out_operand);
u32 kernel_plan_reduce(const tm_operation *operation, const char *const *kernels, kernel_plan *out_plan, u32 *out_operand);
u32 kernel_plan_one_pass(const tm_operation *operation, const char *const *kernels, kernel_plan *out_plan, u32 *out_operand);
u32 kernel_plan_normalize(const tm_operation *operation, const char *const *kernels, kernel_plan *out_plan, u32 *out_operand);
u32 kernel_plan_rope(const tm_operation *operation, const char *const *kernels, kernel_plan *out_plan, u32 *out_operand);
u32 kernel_plan_update(const tm_operation *operation, const char *const *kernels, kernel_plan *out_plan, u32 *out_operand);
u32 kernel_plan_attention(const tm_operation *operation, const char *const *kernels, kernel_plan *out_plan, u32 *out_operand);
u32 kernel_plan_matmul(const tm_operation *operation, const char *const *kernels, kernel_plan *out_plan, u32 *out_operand);

#endif
