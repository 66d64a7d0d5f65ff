/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/problem_index.h"

#include "base/checked.h"
#include "base/error.h"

/* More resources or links than this are a mistake, and would cost memory that no array of the caller's stands for. */
#define MOST_QUEUES (UINT32_C(1) << 20)

#define WRONG(...) tm_fail(error, TM_ERROR_ARGUMENT, __VA_ARGS__)

static bool is_cost(uint64_t cost) { return cost <= TM_SOLVER_MOST_NS || cost == TM_SOLVER_NEVER; }

static bool is_within(uint32_t first, uint32_t count, uint32_t all) { return first <= all && count <= all - first; }

static tm_status check_arrays(const tm_solver_problem *problem, tm_error *error) {
  const bool lacks_copies = problem->size_class_count != 0 && problem->memory_count != 0 && problem->copy_ns == NULL;
  if ((problem->op_count != 0 && problem->ops == NULL) || (problem->label_count != 0 && problem->labels == NULL) ||
      (problem->value_count != 0 && problem->values == NULL) || (problem->input_count != 0 && problem->inputs == NULL) ||
      (problem->memory_count != 0 && problem->links == NULL) || lacks_copies) {
    return WRONG("a placement problem lacks one of its arrays");
  }
  if (problem->op_count == TM_SOLVER_NONE || problem->value_count == TM_SOLVER_NONE ||
      problem->input_count >= TM_SOLVER_NONE - problem->value_count || problem->resource_count > MOST_QUEUES ||
      problem->link_count > MOST_QUEUES) {
    return WRONG("a placement problem is too large");
  }
  return TM_OK;
}

static tm_status check_labels(const tm_solver_problem *problem, tm_error *error) {
  for (uint32_t l = 0; l < problem->label_count; l++) {
    const tm_solver_label *label = &problem->labels[l];
    if (!is_cost(label->cost_ns)) return WRONG("label %u costs more than anything may", l);
    if (label->input_memory >= problem->memory_count || label->output_memory >= problem->memory_count) {
      return WRONG("label %u uses a memory that is not there", l);
    }
    if (label->resource >= problem->resource_count) return WRONG("label %u uses a resource that is not there", l);
  }
  return TM_OK;
}

static tm_status check_values(const tm_solver_problem *problem, tm_error *error) {
  for (uint32_t v = 0; v < problem->value_count; v++) {
    const tm_solver_value *value = &problem->values[v];
    const bool is_made = value->producer != TM_SOLVER_NONE;
    if (is_made && value->producer >= problem->op_count) return WRONG("value %u is made by no operation", v);
    if (is_made ? value->home != TM_SOLVER_NONE : value->home >= problem->memory_count) {
      return WRONG("value %u must be either made or there from the start", v);
    }
    if (value->wanted != TM_SOLVER_NONE && value->wanted >= problem->memory_count) {
      return WRONG("value %u is wanted in a memory that is not there", v);
    }
    if (value->size_class >= problem->size_class_count) return WRONG("value %u has no size class", v);
  }
  return TM_OK;
}

static tm_status check_copies(const tm_solver_problem *problem, tm_error *error) {
  const uint64_t memories = problem->memory_count;
  for (uint64_t pair = 0; pair < memories * memories; pair++) {
    const uint32_t link = problem->links[pair];
    if (link != TM_SOLVER_NONE && link >= problem->link_count) return WRONG("a copy uses a link that is not there");
  }
  uint64_t count;
  if (!tm_checked_mul(memories * memories, problem->size_class_count, &count)) {
    return WRONG("a placement problem is too large");
  }
  const uint64_t *copy_ns = problem->copy_ns;
  for (uint32_t class = 0; class < problem->size_class_count; class++, copy_ns += memories * memories) {
    for (uint64_t pair = 0; pair < memories * memories; pair++) {
      if (!is_cost(copy_ns[pair])) return WRONG("a copy of size class %u costs more than anything may", class);
      const bool stays = pair / memories == pair % memories;
      if (stays && copy_ns[pair] != 0) return WRONG("staying where it is costs size class %u something", class);
    }
  }
  return TM_OK;
}

typedef struct seen_places {
  uint8_t  *labels;             /* some operation has it */
  uint8_t  *inputs;             /* this place of the array is in some operation's list */
  uint32_t *readers;            /* [value]: the last operation that read it */
} seen_places;

static tm_status check_op_labels(const tm_solver_problem *problem, uint32_t o, seen_places *seen, tm_error *error) {
  const tm_solver_op *op = &problem->ops[o];
  if (op->label_count == 0) return WRONG("operation %u has no label", o);
  if (!is_within(op->first_label, op->label_count, problem->label_count)) return WRONG("operation %u has labels that are not there", o);
  for (uint32_t l = op->first_label; l < op->first_label + op->label_count; l++) {
    if (seen->labels[l]) return WRONG("label %u belongs to two operations", l);
    seen->labels[l] = 1;
  }
  return TM_OK;
}

static tm_status check_op_inputs(const tm_solver_problem *problem, uint32_t o, seen_places *seen, tm_error *error) {
  const tm_solver_op *op = &problem->ops[o];
  if (!is_within(op->first_input, op->input_count, problem->input_count)) return WRONG("operation %u has inputs that are not there", o);
  for (uint32_t i = op->first_input; i < op->first_input + op->input_count; i++) {
    const uint32_t v = problem->inputs[i];
    if (seen->inputs[i]) return WRONG("operation %u shares its list of inputs", o);
    seen->inputs[i] = 1;
    if (v >= problem->value_count) return WRONG("operation %u reads a value that is not there", o);
    if (problem->values[v].producer != TM_SOLVER_NONE && problem->values[v].producer >= o) {
      return WRONG("operation %u reads value %u before it is made", o, v);
    }
    if (seen->readers[v] == o) return WRONG("operation %u reads value %u twice", o, v);
    seen->readers[v] = o;
  }
  return TM_OK;
}

static tm_status check_ops(const tm_solver_problem *problem, tm_arena *arena, tm_error *error) {
  seen_places seen = { tm_arena_calloc(arena, problem->label_count, sizeof *seen.labels),
                tm_arena_calloc(arena, problem->input_count, sizeof *seen.inputs),
                tm_arena_alloc(arena, (uint64_t)problem->value_count * sizeof *seen.readers) };
  if (seen.labels == NULL || seen.inputs == NULL || seen.readers == NULL) {
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to check a placement problem");
  }
  for (uint32_t v = 0; v < problem->value_count; v++) seen.readers[v] = TM_SOLVER_NONE;
  for (uint32_t o = 0; o < problem->op_count; o++) {
    TM_TRY(check_op_labels(problem, o, &seen, error));
    TM_TRY(check_op_inputs(problem, o, &seen, error));
  }
  return TM_OK;
}

/* ---- the ways back ---- */

/* Turns the number of things of each i into where those of i end; filling from the back then leaves where they begin. */
static void accumulate(uint32_t *counts, uint32_t count) {
  for (uint32_t i = 1; i <= count; i++) counts[i] += counts[i - 1];
}

static void fill_outputs(const tm_solver_problem *problem, uint32_t *first, uint32_t *outputs) {
  for (uint32_t v = 0; v < problem->value_count; v++) {
    if (problem->values[v].producer != TM_SOLVER_NONE) first[problem->values[v].producer]++;
  }
  accumulate(first, problem->op_count);
  for (uint32_t v = problem->value_count; v-- > 0;) {
    if (problem->values[v].producer != TM_SOLVER_NONE) outputs[--first[problem->values[v].producer]] = v;
  }
}

static void fill_uses(const tm_solver_problem *problem, uint32_t *first, uint32_t *uses) {
  for (uint32_t o = 0; o < problem->op_count; o++) {
    const tm_solver_op *op = &problem->ops[o];
    for (uint32_t i = 0; i < op->input_count; i++) first[problem->inputs[op->first_input + i]]++;
  }
  accumulate(first, problem->value_count);
  for (uint32_t o = problem->op_count; o-- > 0;) {
    const tm_solver_op *op = &problem->ops[o];
    for (uint32_t i = 0; i < op->input_count; i++) uses[--first[problem->inputs[op->first_input + i]]] = o;
  }
}

tm_status tm_problem_index_make(const tm_solver_problem *problem, tm_arena *arena, tm_problem_index *out_index,
                                tm_error *error) {
  TM_TRY(check_arrays(problem, error));
  TM_TRY(check_labels(problem, error));
  TM_TRY(check_values(problem, error));
  TM_TRY(check_copies(problem, error));
  TM_TRY(check_ops(problem, arena, error));
  uint32_t *first_output = tm_arena_calloc(arena, (uint64_t)problem->op_count + 1, sizeof *first_output);
  uint32_t *outputs = tm_arena_alloc(arena, (uint64_t)problem->value_count * sizeof *outputs);
  uint32_t *first_use = tm_arena_calloc(arena, (uint64_t)problem->value_count + 1, sizeof *first_use);
  uint32_t *uses = tm_arena_alloc(arena, (uint64_t)problem->input_count * sizeof *uses);
  if (first_output == NULL || outputs == NULL || first_use == NULL || uses == NULL) {
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to index a placement problem");
  }
  fill_outputs(problem, first_output, outputs);
  fill_uses(problem, first_use, uses);
  *out_index = (tm_problem_index){ problem, first_output, outputs, first_use, uses };
  return TM_OK;
}

/* ---- a choice of labels ---- */

static tm_status check_ways(const tm_solver_problem *problem, const uint32_t *labels, uint32_t o, tm_error *error) {
  const tm_solver_op *op = &problem->ops[o];
  const uint32_t to = problem->labels[labels[o]].input_memory;
  for (uint32_t i = op->first_input; i < op->first_input + op->input_count; i++) {
    const uint32_t v = problem->inputs[i];
    if (tm_solver_copy_ns(problem, v, tm_problem_source(problem, labels, v), to) == TM_SOLVER_NEVER) {
      return WRONG("value %u has no way to where operation %u reads it", v, o);
    }
  }
  return TM_OK;
}

tm_status tm_problem_index_check_labels(const tm_problem_index *index, const uint32_t *labels, tm_error *error) {
  const tm_solver_problem *problem = index->problem;
  for (uint32_t o = 0; o < problem->op_count; o++) {
    const tm_solver_op *op = &problem->ops[o];
    if (labels[o] < op->first_label || labels[o] - op->first_label >= op->label_count) {
      return WRONG("operation %u is given a label that is not its own", o);
    }
    if (problem->labels[labels[o]].cost_ns == TM_SOLVER_NEVER) return WRONG("operation %u cannot run as it is told to", o);
    TM_TRY(check_ways(problem, labels, o, error));
  }
  for (uint32_t v = 0; v < problem->value_count; v++) {
    const uint32_t wanted = problem->values[v].wanted;
    if (wanted == TM_SOLVER_NONE) continue;
    if (tm_solver_copy_ns(problem, v, tm_problem_source(problem, labels, v), wanted) == TM_SOLVER_NEVER) {
      return WRONG("value %u has no way to where it is wanted", v);
    }
  }
  return TM_OK;
}
