/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/problem_check.h"

#include <stdbool.h>

static bool is_cost(uint64_t ns) { return ns <= TM_SOLVER_MOST_NS || ns == TM_SOLVER_NEVER; }

static tm_status check_arrays(const tm_solver_problem *p, tm_error *error) {
  if (p->memory_count == 0 || p->memory_count > TM_SOLVER_MOST_MEMORIES)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%u memories; between 1 and %u are possible", p->memory_count,
                   TM_SOLVER_MOST_MEMORIES);
  if (p->size_class_count > TM_SOLVER_MOST_SIZE_CLASSES)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%u size classes; at most %u are possible", p->size_class_count,
                   TM_SOLVER_MOST_SIZE_CLASSES);
  if ((p->op_count != 0 && p->ops == NULL) || (p->label_count != 0 && p->labels == NULL) ||
      (p->value_count != 0 && p->values == NULL) || (p->input_count != 0 && p->inputs == NULL) ||
      (p->size_class_count != 0 && p->copy_ns == NULL))
    return tm_fail(error, TM_ERROR_ARGUMENT, "a table that has rows is missing");
  if (p->op_count == TM_SOLVER_NONE || p->value_count == TM_SOLVER_NONE || p->label_count == TM_SOLVER_NONE)
    return tm_fail(error, TM_ERROR_ARGUMENT, "too many rows: the last number means none");
  return TM_OK;
}

static tm_status check_copies(const tm_solver_problem *p, tm_error *error) {
  const uint64_t memories = p->memory_count, square = memories * memories;
  for (uint64_t i = 0; i < square * p->size_class_count; i++) {
    const uint64_t from = i % square / memories, to = i % memories;
    if (!is_cost(p->copy_ns[i]) || (from == to && p->copy_ns[i] != 0))
      return tm_fail(error, TM_ERROR_ARGUMENT, "a copy of size class %u from memory %u to %u cannot cost %llu ns",
                     (unsigned)(i / square), (unsigned)from, (unsigned)to, (unsigned long long)p->copy_ns[i]);
  }
  for (uint64_t i = 0; p->links != NULL && i < square; i++) {
    if (p->links[i] != TM_SOLVER_NONE && p->links[i] >= p->link_count)
      return tm_fail(error, TM_ERROR_ARGUMENT, "there is no link %u", p->links[i]);
  }
  for (uint64_t i = 0; p->copy_queues != NULL && i < memories; i++) {
    if (p->copy_queues[i] != TM_SOLVER_NONE && p->copy_queues[i] >= p->resource_count)
      return tm_fail(error, TM_ERROR_ARGUMENT, "copies of memory %u wait for a resource that does not exist", (unsigned)i);
  }
  return TM_OK;
}

static tm_status check_labels(const tm_solver_problem *p, tm_error *error) {
  for (uint32_t i = 0; i < p->label_count; i++) {
    const tm_solver_label *label = &p->labels[i];
    if (!is_cost(label->cost_ns))
      return tm_fail(error, TM_ERROR_ARGUMENT, "label %u cannot cost %llu ns", i, (unsigned long long)label->cost_ns);
    if (label->input_memory >= p->memory_count || label->output_memory >= p->memory_count || label->resource >= p->resource_count)
      return tm_fail(error, TM_ERROR_ARGUMENT, "label %u names a memory or a resource that does not exist", i);
  }
  return TM_OK;
}

static tm_status check_values(const tm_solver_problem *p, tm_error *error) {
  for (uint32_t i = 0; i < p->value_count; i++) {
    const tm_solver_value *value = &p->values[i];
    const bool is_made = value->producer != TM_SOLVER_NONE;
    if (is_made ? value->producer >= p->op_count || value->home != TM_SOLVER_NONE : value->home >= p->memory_count)
      return tm_fail(error, TM_ERROR_ARGUMENT, "value %u needs either a producer that exists or a home that exists", i);
    if ((value->wanted != TM_SOLVER_NONE && value->wanted >= p->memory_count) || value->size_class >= p->size_class_count)
      return tm_fail(error, TM_ERROR_ARGUMENT, "value %u names a memory or a size class that does not exist", i);
  }
  return TM_OK;
}

static bool is_range(uint32_t first, uint32_t count, uint32_t end) { return first <= end && count <= end - first; }

/* `readers` holds, for each value, the last operation that was seen reading it. */
static tm_status check_inputs(const tm_solver_problem *p, uint32_t op, uint32_t *readers, tm_error *error) {
  for (uint32_t i = 0; i < p->ops[op].input_count; i++) {
    const uint32_t value = p->inputs[p->ops[op].first_input + i];
    if (value >= p->value_count)
      return tm_fail(error, TM_ERROR_ARGUMENT, "operation %u reads value %u, which does not exist", op, value);
    if (p->values[value].producer != TM_SOLVER_NONE && p->values[value].producer >= op)
      return tm_fail(error, TM_ERROR_ARGUMENT, "operation %u reads value %u before it is made", op, value);
    if (readers[value] == op + 1) return tm_fail(error, TM_ERROR_ARGUMENT, "operation %u reads value %u twice", op, value);
    readers[value] = op + 1;
  }
  return TM_OK;
}

static tm_status check_ops(const tm_solver_problem *p, uint32_t *readers, unsigned char *is_taken, tm_error *error) {
  for (uint32_t op = 0; op < p->op_count; op++) {
    const tm_solver_op *row = &p->ops[op];
    if (row->label_count == 0 || !is_range(row->first_label, row->label_count, p->label_count) ||
        !is_range(row->first_input, row->input_count, p->input_count))
      return tm_fail(error, TM_ERROR_ARGUMENT,
                     "operation %u has no labels, or its labels or inputs lie outside of their tables", op);
    for (uint32_t i = row->first_label; i < row->first_label + row->label_count; i++) {
      if (is_taken[i]) return tm_fail(error, TM_ERROR_ARGUMENT, "operation %u shares label %u with another", op, i);
      is_taken[i] = 1;
    }
    TM_TRY(check_inputs(p, op, readers, error));
  }
  return TM_OK;
}

tm_status tm_problem_check(const tm_solver_problem *p, tm_memory *memory, tm_error *error) {
  if (p == NULL || memory == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "there is no problem, or no memory to solve it in");
  TM_TRY(check_arrays(p, error));
  TM_TRY(check_copies(p, error));
  TM_TRY(check_labels(p, error));
  TM_TRY(check_values(p, error));
  uint32_t *readers = tm_memory_calloc(memory, p->value_count, sizeof *readers);
  unsigned char *is_taken = tm_memory_calloc(memory, p->label_count, 1);
  const tm_status status = readers == NULL || is_taken == NULL
                               ? tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to check a problem in")
                               : check_ops(p, readers, is_taken, error);
  tm_memory_free(memory, is_taken, p->label_count);
  tm_memory_free(memory, readers, p->value_count * sizeof *readers);
  return status;
}
