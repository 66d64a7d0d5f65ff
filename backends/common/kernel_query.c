/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernel_row.h"

/* A plan that moves no more than this in a microsecond is bound by its launch. */
#define SHARE_OF_PEAK 0.3

/* The plan is that of the row that was judged last. */
typedef struct question {
  const kernel_device *device;
  kernel_plan         *plan;
} question;

static u32 lacks(const void *context, const void *row, const tm_operation *operation) {
  const kernel_device *device = ((const question *)context)->device;
  const u32 needs = ((const kernel_row *)row)->needs;
  if (operation->input_count == 0 || operation->input_count >= KERNEL_MOST_BUFFERS || operation->output_count != 1)
    return TM_REASON_OPERATION;
  if ((needs & KERNEL_NEEDS_F64) != 0 && !device->has_f64) return TM_REASON_FORMAT;
  return (needs & KERNEL_NEEDS_DENORMALS) == 0 || device->has_denormals ? 0 : TM_REASON_FORMAT;
}

static kernel_closeness closeness(const void *context, const void *row) {
  const kernel_device *device = ((const question *)context)->device;
  const kernel_row *own = row;
  kernel_closeness c = { own->numerics, TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE, own->numerics_bound };
  if ((own->needs & KERNEL_DIVIDES_IN_F32) != 0 && !device->has_exact_divide) {
    c.numerics = TM_NUMERICS_N1;
    c.bound = own->inexact_bound;
  }
  if ((own->needs & KERNEL_MAY_OVERFLOW) != 0) c.flags &= ~TM_NUMERICS_KEEPS_NONFINITE;
  if ((own->needs & KERNEL_ROUNDS_IN_F32) == 0 || device->has_denormals) return c;
  c.flags |= TM_NUMERICS_FLUSHES;
  if (c.numerics == TM_NUMERICS_N0) {
    c.numerics = TM_NUMERICS_N1;
    c.bound = 1;
  }
  return c;
}

static int is_broken(const void *context, const void *row) {
  return (((const question *)context)->device->broken_programs >> ((const kernel_row *)row)->program & 1u) != 0;
}

static u32 refuses(const void *context, const void *row, const tm_operation *operation, u32 *out_operand) {
  kernel_plan *plan = ((const question *)context)->plan;
  const kernel_row *own = row;
  memset(plan, 0, sizeof *plan);
  return own->plan(operation, own->kernels, plan, out_operand);
}

static int exceeds(const void *context, const void *row, const tm_operation *operation, u32 *out_operand) {
  const question *q = context;
  const u32 count = operation->input_count + operation->output_count;
  (void)row;
  for (u32 i = 0; i < count; i++) {
    if (operation->operands[i].byte_count <= q->device->largest_buffer_bytes) continue;
    *out_operand = i;
    return 1;
  }
  return q->plan->workspace_bytes > q->device->largest_buffer_bytes;
}

/* The outermost axis that has a length, with as many of its elements as fit a buffer. */
static int split(const void *context, const void *row, const tm_operation *operation, u32 index, tm_change *out_change) {
  const kernel_device *device = ((const question *)context)->device;
  (void)row;
  if (index == TM_NO_OPERAND) return 0;
  const tm_operand *operand = &operation->operands[index];
  u32 axis = 0;
  while (axis + 1 < operand->rank && operand->dims[axis] <= 1) axis++;
  if (operand->rank == 0 || operand->dims[axis] <= 1) return 0;
  const u64 bytes_each = operand->byte_count / operand->dims[axis] + 1;
  u64 value = device->largest_buffer_bytes / bytes_each;
  if (axis + 1 == operand->rank && value > PART_ELEMENTS) value -= value % PART_ELEMENTS;
  *out_change = (tm_change){ TM_CHANGE_SPLIT_ABOVE, index, axis, 0, value };
  return value != 0;
}

static u64 nanoseconds(double ns) { return ns < 9e14 ? (u64)ns : UINT64_C(900000000000000); }

/* Equal where one compiled program serves both, as kernel_options_print makes them. */
static u64 setup_key(const kernel_device *device, const kernel_row *row, const kernel_plan *plan, u32 op) {
  const u32 words[] = { row->program, op, plan->parameters.op, plan->parameters.formats[0], plan->parameters.formats[1],
                        plan->parameters.formats[2], plan->parameters.formats[3] };
  u64 hash = UINT64_C(0xcbf29ce484222325);
  if (!kernel_row_is_special(device, row)) return row->program + 1u;
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) hash = (hash ^ words[i]) * UINT64_C(0x100000001b3);
  return hash | UINT64_C(1) << 63;
}

static void price(const void *context, const void *row, const tm_operation *operation, tm_answer *answer) {
  const kernel_device *device = ((const question *)context)->device;
  const kernel_plan *plan = ((const question *)context)->plan;
  const kernel_program program = ((const kernel_row *)row)->program;
  const double bytes = (double)plan->workspace_bytes + kernel_operand_bytes(operation);
  const double rate = kernel_programs[program].real_is_f64 ? device->f64_flops_per_ns : device->flops_per_ns;
  const double compute = plan->flops / (rate * SHARE_OF_PEAK), memory = bytes / (device->bytes_per_ns * SHARE_OF_PEAK);
  answer->flags = TM_ANSWER_GUESSED;
  answer->launch_ns = (u64)device->launch_ns * (plan->dispatch_count > 1 ? 2 : 1);
  answer->cost_ns = answer->launch_ns + nanoseconds(compute > memory ? compute : memory);
  answer->spread_ns = answer->cost_ns / 2;
  answer->setup_ns = device->setup_ns;
  answer->setup_key = setup_key(device, row, plan, operation->op);
  answer->moved_bytes = (u64)bytes;
  answer->workspace_bytes = plan->workspace_bytes;
}

static const kernel_judge judge = {
  .tables = kernel_row_tables,
  .row_bytes = sizeof(kernel_row),
  .lacks_text = "the device has no f64 arithmetic or no subnormal f32 numbers, which the kernel needs",
  .exceeds_text = "an operand or the workspace is larger than a buffer of the device may be",
  .lacks = lacks,
  .closeness = closeness,
  .is_broken = is_broken,
  .refuses = refuses,
  .exceeds = exceeds,
  .split = split,
  .price = price,
};

const kernel_row *kernel_row_find(const kernel_device *device, const tm_operation *operation, kernel_plan *out_plan) {
  return kernel_judge_find(&judge, &(question){ device, out_plan }, operation);
}

void kernel_query_answer(const kernel_device *device, const tm_operation *operation, tm_answer *out_answer) {
  kernel_plan plan;
  kernel_judge_answer(&judge, &(question){ device, &plan }, device->epoch, operation, out_answer);
}
