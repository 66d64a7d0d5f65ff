/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu_convert.h"

#define PART_BYTES      (UINT64_C(64) << 10)    /* of output: a part is worth a thread's while and fits its cache */
#define STREAMED_BYTES  (UINT64_C(16) << 20)    /* outputs from here on would only push useful data out of the caches */
#define STREAM_ALIGNMENT 16u

typedef struct convert_job {
  cpu_convert_fn       function;
  cpu_convert_shape    shape;
  const unsigned char *from;
  unsigned char       *to;
  uint64_t             units;
  uint64_t             part_units;
  cpu_store_kind       kind;
} convert_job;

/* Units in front of the first one whose output is aligned; all of them if none is. */
static uint64_t units_to_alignment(const convert_job *job, uint64_t begin, uint64_t units) {
  uintptr_t at = (uintptr_t)job->to + begin * job->shape.to_bytes;
  for (uint64_t i = 0; i < STREAM_ALIGNMENT && i < units; ++i, at += job->shape.to_bytes) {
    if (at % STREAM_ALIGNMENT == 0) return i;
  }
  return units;
}

static void convert_units(const convert_job *job, uint64_t begin, uint64_t units, cpu_store_kind kind) {
  if (units > 0) job->function(job->from + begin * job->shape.from_bytes, job->to + begin * job->shape.to_bytes, units, kind);
}

static void convert_range(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const convert_job *job = argument;
  (void)lane;
  const uint64_t first = begin * job->part_units;
  const uint64_t last = end * job->part_units < job->units ? end * job->part_units : job->units;
  if (job->kind == CPU_STORE_PLAIN) {
    convert_units(job, first, last - first, CPU_STORE_PLAIN);
    return;
  }
  const uint64_t head = units_to_alignment(job, first, last - first);
  convert_units(job, first, head, CPU_STORE_PLAIN);
  convert_units(job, first + head, last - first - head, CPU_STORE_STREAMED);
  _mm_sfence();
}

void cpu_convert(const cpu_call *call, cpu_convert_fn function, cpu_convert_shape shape) {
  const tm_operand *x = &call->operation->operands[0];
  const uint64_t units = x->element_count / shape.unit_elements + (x->element_count % shape.unit_elements != 0);
  const uint64_t part_units = PART_BYTES / shape.to_bytes;
  convert_job job = {
    .function = function,
    .shape = shape,
    .from = call->pointers[0],
    .to = call->pointers[1],
    .units = units,
    .part_units = part_units,
    .kind = call->operation->operands[1].byte_count >= STREAMED_BYTES ? CPU_STORE_STREAMED : CPU_STORE_PLAIN,
  };
  const uint64_t parts = units / part_units + (units % part_units != 0);
  if (parts <= 1) convert_range(&job, 0, parts, 0);
  else call->host->parallel_for(call->host->context, parts, parts >= 64 ? 4 : 1, convert_range, &job);
}

uint64_t cpu_convert_cost_ns(const tm_operation *operation, double elements_per_us, uint32_t lanes) {
  const tm_operand *operands = operation->operands;
  const uint32_t busy = operands[1].byte_count <= PART_BYTES ? 1 : lanes;
  return cpu_cost_ns((double)operands[0].element_count, elements_per_us, kernel_operand_bytes(operation), busy);
}
