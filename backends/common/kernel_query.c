/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row is judged in stages: operation, what the device has, formats, attributes, numerics and demands, shape, size.  The row
 * that came furthest explains the refusal.
 */
#include <string.h>

#include "kernel_row.h"

#define KNOWN_VERSION 1u
#define KNOWN_DEMANDS TM_OPERATION_RUN_TO_RUN
/* A plan that moves no more than this in a microsecond is bound by its launch. */
#define SHARE_OF_PEAK 0.3

typedef enum stage {
  STAGE_OPERATION, STAGE_FORMATS, STAGE_DEVICE, STAGE_COMPILER, STAGE_ATTRIBUTES, STAGE_NUMERICS, STAGE_PLAN, STAGE_SIZE, STAGE_YES
} stage;

typedef struct verdict {
  const kernel_row *row;
  stage             reached;
  u32               matched;            /* leading operands whose formats fit */
  u32               reasons;
  u32               operand;
  kernel_plan       plan;
} verdict;

/* How well a row is kept on a device. */
typedef struct closeness {
  u32    numerics;
  u32    flags;
  double bound;
} closeness;

static const char *const stage_text[] = {
  [STAGE_OPERATION]  = "no kernel for this operation",
  [STAGE_FORMATS]    = "no kernel for these formats",
  [STAGE_DEVICE]     = "the device has no f64 arithmetic or no subnormal f32 numbers, which the kernel needs",
  [STAGE_COMPILER]   = "the device's compiler refused the kernel",
  [STAGE_ATTRIBUTES] = "an attribute that the kernel does not know",
  [STAGE_NUMERICS]   = "the kernel is less exact than the caller asks for",
  [STAGE_PLAN]       = "the kernel does not take this shape or layout",
  [STAGE_SIZE]       = "an operand or the workspace is larger than a buffer of the device may be",
};

int kernel_rest_is_zero(const void *data, uint64_t known, uint64_t size) {
  const unsigned char *bytes = data;
  for (uint64_t i = known; i < size; i++)
    if (bytes[i] != 0) return 0;
  return 1;
}

/* ---- formats ---- */

static u64 bit_of(u32 format) {
  u32 elements, bytes;
  if (format == TM_FORMAT_Q4_0) return KERNEL_Q4_0_BIT;
  if (format == TM_FORMAT_Q8_0) return KERNEL_Q8_0_BIT;
  if (!kernel_block_size(format, &elements, &bytes)) return 0;
  return format < 32 ? KERNEL_FORMAT_BIT(format) : KERNEL_OTHER_BIT;
}

/* The number of leading operands whose formats fit; all of them if the row takes the operation's formats. */
static u32 matching_formats(const kernel_row *row, const tm_operation *operation) {
  const u32 count = operation->input_count + operation->output_count;
  for (u32 i = 0; i < count && i < 4; i++) {
    const u32 format = operation->operands[i].format;
    const int fits = row->formats[i] != 0 ? (row->formats[i] & bit_of(format)) != 0 : format == operation->operands[0].format;
    if (!fits) return i;
  }
  return count <= 4 ? count : 4;
}

/* ---- judging ---- */

static closeness closeness_on(const kernel_device *device, const kernel_row *row) {
  closeness c = { row->numerics, TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE, row->bound };
  if ((row->needs & KERNEL_DIVIDES_IN_F32) != 0 && !device->has_exact_divide) {
    c.numerics = TM_NUMERICS_N1;
    c.bound = row->inexact_bound;
  }
  if ((row->needs & KERNEL_MAY_OVERFLOW) != 0) c.flags &= ~TM_NUMERICS_KEEPS_NONFINITE;
  if ((row->needs & KERNEL_ROUNDS_IN_F32) == 0 || device->has_denormals) return c;
  c.flags |= TM_NUMERICS_FLUSHES;
  if (c.numerics == TM_NUMERICS_N0) {
    c.numerics = TM_NUMERICS_N1;
    c.bound = 1;
  }
  return c;
}

static int device_can(const kernel_device *device, const kernel_row *row) {
  if ((row->needs & KERNEL_NEEDS_F64) != 0 && !device->has_f64) return 0;
  return (row->needs & KERNEL_NEEDS_DENORMALS) == 0 || device->has_denormals;
}

static u32 check_size(const kernel_device *device, const tm_operation *operation, const kernel_plan *plan, u32 *out_operand) {
  const u32 count = operation->input_count + operation->output_count;
  for (u32 i = 0; i < count; i++) {
    if (operation->operands[i].byte_count <= device->largest_buffer_bytes) continue;
    *out_operand = i;
    return TM_REASON_SIZE;
  }
  return plan->workspace_bytes <= device->largest_buffer_bytes ? 0 : TM_REASON_SIZE;
}

/* Everything that does not need the shapes; advances v->reached as far as it gets. */
static int judge_kind(const kernel_device *device, const kernel_row *row, const tm_operation *operation, verdict *v) {
  const u32 count = operation->input_count + operation->output_count;
  v->reached = STAGE_FORMATS;
  v->reasons = TM_REASON_FORMAT;
  v->matched = matching_formats(row, operation);
  v->operand = v->matched;
  if (v->matched < count) return 0;
  v->operand = TM_NO_OPERAND;
  v->reached = STAGE_DEVICE;
  if (!device_can(device, row)) return 0;
  v->reached = STAGE_COMPILER;
  v->reasons = TM_REASON_RESOURCES;
  if ((device->broken_programs >> row->program & 1u) != 0) return 0;
  v->reached = STAGE_ATTRIBUTES;
  v->reasons = TM_REASON_ATTRIBUTE;
  if (operation->attribute_bytes < row->attribute_bytes) return 0;
  if (!kernel_rest_is_zero(operation->attributes, row->attribute_bytes, operation->attribute_bytes)) return 0;
  v->reached = STAGE_NUMERICS;
  v->reasons = TM_REASON_NUMERICS;
  return closeness_on(device, row).numerics <= operation->worst_numerics;
}

static void judge(const kernel_device *device, const kernel_row *row, const tm_operation *operation, verdict *v) {
  memset(v, 0, sizeof *v);
  v->row = row;
  if (!judge_kind(device, row, operation, v)) return;
  v->reached = STAGE_PLAN;
  v->reasons = row->plan(operation, row->kernels, &v->plan, &v->operand);
  if (v->reasons != 0) return;
  v->reached = STAGE_SIZE;
  v->reasons = check_size(device, operation, &v->plan, &v->operand);
  if (v->reasons == 0) v->reached = STAGE_YES;
}

/* Stops at the first yes. */
static void find_best(const kernel_device *device, const tm_operation *operation, verdict *best) {
  memset(best, 0, sizeof *best);
  best->reasons = TM_REASON_OPERATION;
  best->operand = TM_NO_OPERAND;
  for (size_t i = 0; i < kernel_row_count && best->reached != STAGE_YES; i++) {
    verdict next;
    if (kernel_rows[i].op != operation->op) continue;
    judge(device, &kernel_rows[i], operation, &next);
    if (next.reached > best->reached || (next.reached == best->reached && next.matched > best->matched)) *best = next;
  }
}

/* Of a struct newer than this code, or asking for what it does not know. */
static u32 foreign_reasons(const tm_operation *operation) {
  if (operation->struct_size < sizeof *operation) return TM_REASON_OPERATION;
  if (!kernel_rest_is_zero(operation, sizeof *operation, operation->struct_size)) return TM_REASON_DEMAND;
  if (operation->input_count == 0 || operation->input_count >= TM_MAX_OPERANDS) return TM_REASON_OPERATION;
  if (operation->output_count != 1) return TM_REASON_OPERATION;
  if ((operation->flags & ~(TM_OPERATION_FACTS | KNOWN_DEMANDS)) != 0) return TM_REASON_DEMAND;
  return operation->version == KNOWN_VERSION ? 0 : TM_REASON_OPERATION;
}

const kernel_row *kernel_row_find(const kernel_device *device, const tm_operation *operation, kernel_plan *out_plan) {
  verdict best;
  if (foreign_reasons(operation) != 0) return NULL;
  find_best(device, operation, &best);
  if (best.reached != STAGE_YES) return NULL;
  *out_plan = best.plan;
  return best.row;
}

/* ---- refusals ---- */

/* The outermost axis that has a length, with as many of its elements as fit a buffer. */
static void propose_split(const kernel_device *device, const tm_operation *operation, u32 index, tm_answer *answer) {
  const tm_operand *operand = &operation->operands[index];
  u32 axis = 0;
  while (axis + 1 < operand->rank && operand->dims[axis] <= 1) axis++;
  if (operand->rank == 0 || operand->dims[axis] <= 1) return;
  const u64 bytes_each = operand->byte_count / operand->dims[axis] + 1;
  u64 value = device->largest_buffer_bytes / bytes_each;
  if (axis + 1 == operand->rank && value > PART_ELEMENTS) value -= value % PART_ELEMENTS;
  if (value == 0) return;
  answer->changes[answer->change_count++] = (tm_change){ TM_CHANGE_SPLIT_ABOVE, index, axis, 0, value };
}

/* Dense, as the host would make it. */
static void densify(tm_operand *operand) {
  u32 elements = 1, bytes = 1;
  (void)kernel_block_size(operand->format, &elements, &bytes);
  int64_t stride = bytes;
  for (u32 axis = operand->rank; axis-- > 0;) {
    operand->strides_bytes[axis] = stride;
    const u64 steps = axis + 1 == operand->rank ? operand->dims[axis] / elements : operand->dims[axis];
    if (steps > 1) stride *= (int64_t)steps;
  }
  operand->byte_count = operand->element_count / elements * bytes;
  operand->flags |= TM_OPERAND_CONTIGUOUS;
}

/* Strides that break a word's alignment are gone in a dense copy; that is tried before it is proposed. */
static void propose_dense(const kernel_device *device, const kernel_row *row, const tm_operation *operation, tm_answer *answer) {
  tm_operand changed[TM_MAX_OPERANDS];
  tm_operation then = *operation;
  verdict again;
  const u32 count = operation->input_count + operation->output_count;
  then.operands = changed;
  for (u32 i = 0; i < count; i++) {
    changed[i] = operation->operands[i];
    if ((changed[i].flags & TM_OPERAND_CONTIGUOUS) != 0) continue;
    densify(&changed[i]);
    if (answer->change_count < TM_MAX_CHANGES)
      answer->changes[answer->change_count++] = (tm_change){ TM_CHANGE_CONTIGUOUS, i, 0, 0, 0 };
  }
  judge(device, row, &then, &again);
  if (again.reached == STAGE_YES) return;
  answer->change_count = 0;
  memset(answer->changes, 0, sizeof answer->changes);
}

static void refuse(const kernel_device *device, const verdict *best, const tm_operation *operation, tm_answer *answer) {
  answer->reasons = best->reasons;
  answer->operand = best->operand;
  answer->text = (tm_string){ stage_text[best->reached], strlen(stage_text[best->reached]) };
  if (best->reached == STAGE_SIZE && best->operand != TM_NO_OPERAND) propose_split(device, operation, best->operand, answer);
  if (best->reached == STAGE_PLAN && best->reasons == TM_REASON_LAYOUT) propose_dense(device, best->row, operation, answer);
}

/* ---- a yes ---- */

static u64 nanoseconds(double ns) { return ns < 9e14 ? (u64)ns : UINT64_C(900000000000000); }

static void set_cost(const kernel_device *device, const verdict *best, const tm_operation *operation, tm_answer *answer) {
  double bytes = (double)best->plan.workspace_bytes;
  for (u32 i = 0; i < operation->input_count + operation->output_count; i++) bytes += (double)operation->operands[i].byte_count;
  const double rate = kernel_programs[best->row->program].real_is_f64 ? device->f64_flops_per_ns : device->flops_per_ns;
  const double compute = best->plan.flops / (rate * SHARE_OF_PEAK), memory = bytes / (device->bytes_per_ns * SHARE_OF_PEAK);
  answer->launch_ns = (u64)device->launch_ns * (best->plan.dispatch_count > 1 ? 2 : 1);
  answer->cost_ns = answer->launch_ns + nanoseconds(compute > memory ? compute : memory);
  answer->spread_ns = answer->cost_ns / 2;
  answer->setup_ns = device->setup_ns;
  answer->setup_key = best->row->program + 1u;
  answer->moved_bytes = (u64)bytes;
}

static void accept(const kernel_device *device, const verdict *best, const tm_operation *operation, tm_answer *answer) {
  const closeness c = closeness_on(device, best->row);
  answer->level = TM_LEVEL_NATIVE;
  answer->numerics = c.numerics;
  answer->numerics_flags = c.flags;
  answer->numerics_bound = c.bound;
  answer->growth = best->row->growth;
  answer->accumulator = best->row->accumulator;
  answer->flags = TM_ANSWER_GUESSED;
  answer->operand = TM_NO_OPERAND;
  answer->text = (tm_string){ best->row->kernels[0], strlen(best->row->kernels[0]) };
  answer->workspace_bytes = best->plan.workspace_bytes;
  set_cost(device, best, operation, answer);
}

void kernel_query_answer(const kernel_device *device, const tm_operation *operation, tm_answer *out_answer) {
  tm_answer answer = { .struct_size = out_answer->struct_size, .operand = TM_NO_OPERAND, .epoch = device->epoch };
  verdict best;
  memset(&best, 0, sizeof best);
  best.operand = TM_NO_OPERAND;
  best.reasons = foreign_reasons(operation);
  if (best.reasons == 0) find_best(device, operation, &best);
  if (best.reached == STAGE_YES) accept(device, &best, operation, &answer);
  else refuse(device, &best, operation, &answer);
  memcpy(out_answer, &answer, sizeof answer < answer.struct_size ? sizeof answer : answer.struct_size);
}
