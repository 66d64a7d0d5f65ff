/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TM_OP_UPDATE of dense operands, seen as [outer, axis, inner bytes].  The state is copied where y lies apart from it; then
 * the rows go to their places, in order, so that the later of two counts.
 */
#include <string.h>

#include "cpu_kernel.h"

#define PART_BYTES 65536u       /* at least so many for a thread */

typedef struct update_job {
  const unsigned char *state, *rows, *start;
  unsigned char       *y;
  uint64_t             extent, row_count, inner_bytes;
  int                  is_wide;         /* start is i64 */
  int                  is_list;         /* one index a row */
} update_job;

static int64_t start_at(const update_job *job, uint64_t row) {
  int32_t narrow;
  int64_t wide;
  if (job->is_wide) {
    memcpy(&wide, job->start + 8 * row, sizeof wide);
    return wide;
  }
  memcpy(&narrow, job->start + 4 * row, sizeof narrow);
  return narrow;
}

/* False where the row goes nowhere. */
static int place_of(const update_job *job, uint64_t row, uint64_t *out_place) {
  int64_t place;
  if (job->is_list) place = start_at(job, row);
  else if (__builtin_add_overflow(start_at(job, 0), (int64_t)row, &place)) return 0;
  *out_place = (uint64_t)place;
  return place >= 0 && (uint64_t)place < job->extent;
}

static void copy_range(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const update_job *job = argument;
  (void)lane;
  memcpy(job->y + begin, job->state + begin, end - begin);
}

static void place_range(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const update_job *job = argument;
  uint64_t place;
  (void)lane;
  for (uint64_t outer = begin; outer < end; ++outer) {
    for (uint64_t row = 0; row < job->row_count; ++row) {
      if (!place_of(job, row, &place)) continue;
      memcpy(job->y + (outer * job->extent + place) * job->inner_bytes, job->rows + (outer * job->row_count + row) * job->inner_bytes,
             job->inner_bytes);
    }
  }
}

static void run_update(const cpu_call *call) {
  const tm_operand *operands = call->operation->operands;
  const uint32_t axis = ((const tm_axis_attributes *)call->operation->attributes)->axis;
  uint64_t outer = 1;
  if (operands[3].element_count == 0) return;   /* strides of what is empty say nothing */
  for (uint32_t i = 0; i < axis; ++i) outer *= operands[0].dims[i];
  update_job job = {
    .state = call->pointers[0],
    .rows = call->pointers[1],
    .start = call->pointers[2],
    .y = call->pointers[3],
    .extent = operands[0].dims[axis],
    .row_count = operands[1].dims[axis],
    .inner_bytes = operands[0].byte_count / (outer * operands[0].dims[axis]),
    .is_wide = operands[2].format == TM_FORMAT_I64,
    .is_list = operands[2].rank != 0,
  };
  const uint64_t slice = job.row_count * job.inner_bytes;
  if (job.y != job.state) call->host->parallel_for(call->host->context, operands[3].byte_count, PART_BYTES, copy_range, &job);
  call->host->parallel_for(call->host->context, outer, PART_BYTES / (slice + 1) + 1, place_range, &job);
}

static uint64_t cost_ns(const tm_operation *operation, uint32_t lanes) {
  const tm_operand *operands = operation->operands;
  const int is_in_place = (operands[3].flags & TM_OPERAND_IN_PLACE) != 0;
  const double kept = is_in_place ? 0 : 2 * (double)operands[3].byte_count, rows = 2 * (double)operands[1].byte_count;
  return 40 + cpu_cost_ns((double)operands[2].element_count, 200.0, kept + rows, kept + rows <= PART_BYTES ? 1 : lanes);
}

static const cpu_row rows[] = {
  { .op = TM_OP_UPDATE,
    .formats = { TM_FORMAT_NONE, KERNEL_SAME, KERNEL_FORMAT_BIT(TM_FORMAT_I32) | KERNEL_FORMAT_BIT(TM_FORMAT_I64), KERNEL_SAME },
    .attribute_bytes = sizeof(tm_axis_attributes), .isa = CPU_ISA_AVX2, .level = TM_LEVEL_NATIVE, .numerics = TM_NUMERICS_N0,
    .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE, .alias_mask = 0x1, .name = "cpu_update",
    .cost_ns = cost_ns, .run = run_update },
};

const kernel_row_table cpu_rows_update = { rows, sizeof rows / sizeof rows[0] };
