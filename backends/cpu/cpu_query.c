/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu_query.h"

#include "cpu_memory_cost.h"

uint64_t cpu_cost_ns(double units, double units_per_us, double bytes, uint32_t lanes) {
  const double compute = units * 1000.0 / (units_per_us * lanes);
  const double memory = cpu_move_ns(bytes, lanes);
  const double work = compute > memory ? compute : memory;
  const double ns = lanes > 1 && work > CPU_WAKE_NS ? work + CPU_WAKE_NS : work;
  return cpu_whole_ns(ns);
}

uint64_t cpu_workspace_bytes(const cpu_offer *offer, const cpu_row *row, const tm_operation *operation) {
  const uint64_t bytes = row->workspace_bytes != NULL ? row->workspace_bytes(operation, offer->lanes) : 0;
  return bytes != 0 ? bytes + CPU_WORKSPACE_ALIGNMENT : 0;
}

static uint32_t lacks(const void *context, const void *row, const tm_operation *operation) {
  const cpu_offer *offer = context;
  (void)operation;
  return (((const cpu_row *)row)->isa & ~offer->isa) != 0 ? TM_REASON_OPERATION : 0;
}

static uint32_t refuses(const void *context, const void *row, const tm_operation *operation, uint32_t *out_operand) {
  const cpu_row *own = row;
  (void)context;
  return own->refuses != NULL ? own->refuses(operation, out_operand) : kernel_refuses_strided(operation, out_operand);
}

static void price(const void *context, const void *row, const tm_operation *operation, tm_answer *answer) {
  const cpu_offer *offer = context;
  const cpu_row *own = row;
  answer->launch_ns = CPU_LAUNCH_NS;
  answer->cost_ns = CPU_LAUNCH_NS + own->cost_ns(operation, offer->lanes);
  answer->spread_ns = answer->cost_ns / 4;
  answer->workspace_bytes = cpu_workspace_bytes(offer, own, operation);
}

static const kernel_judge judge = {
  .tables = cpu_row_tables,
  .row_bytes = sizeof(cpu_row),
  .lacks_text = "the kernel needs AVX2, FMA and F16C, which the processor lacks or the option isa excludes",
  .lacks = lacks,
  .refuses = refuses,
  .price = price,
};

const cpu_row *cpu_row_find(const cpu_offer *offer, const tm_operation *operation) {
  return kernel_judge_find(&judge, offer, operation);
}

void cpu_query_answer(const cpu_offer *offer, const tm_operation *operation, tm_answer *out_answer) {
  kernel_judge_answer(&judge, offer, offer->epoch, operation, out_answer);
}
