/* SPDX-License-Identifier: Apache-2.0 */
/*
 * solver_case.h - small random placement problems, and their best plans found by trying all of them.  The search here
 * shares nothing with the library but the problem's own structs.
 */
#ifndef SOLVER_CASE_H
#define SOLVER_CASE_H

#include <stdbool.h>
#include <string.h>

#include "solver/problem.h"

#define CASE_OPS      20u
#define CASE_LABELS   160u
#define CASE_VALUES   100u
#define CASE_INPUTS   120u
#define CASE_MEMORIES 5u
#define CASE_CLASSES  3u

typedef struct solver_case {
  tm_solver_problem problem;
  tm_solver_op      ops[CASE_OPS];
  tm_solver_label   labels[CASE_LABELS];
  tm_solver_value   values[CASE_VALUES];
  uint32_t          inputs[CASE_INPUTS];
  uint64_t          copy_ns[CASE_CLASSES * CASE_MEMORIES * CASE_MEMORIES];
  uint64_t          budgets[CASE_MEMORIES];
  uint64_t          random;
} solver_case;

/* What a random problem may have. */
typedef struct case_limits {
  uint32_t most_ops;
  uint32_t most_labels;         /* of an operation */
  uint32_t most_memories;
  uint32_t never_percent;
  uint32_t most_cost;
} case_limits;

static inline uint32_t draw(solver_case *c, uint32_t below) {
  c->random ^= c->random << 13;
  c->random ^= c->random >> 7;
  c->random ^= c->random << 17;
  return (uint32_t)((c->random * UINT64_C(2685821657736338717)) >> 33) % below;
}

static inline bool draw_percent(solver_case *c, uint32_t percent) { return draw(c, 100) < percent; }

static inline void draw_copies(solver_case *c, const case_limits *limits) {
  const uint32_t memories = c->problem.memory_count;
  const uint32_t most = 1 + draw(c, limits->most_cost);
  for (uint32_t i = 0; i < CASE_CLASSES * memories * memories; i++) {
    const bool is_same = i / memories % memories == i % memories;
    c->copy_ns[i] = is_same || draw_percent(c, 10) ? 0 : draw_percent(c, limits->never_percent) ? TM_SOLVER_NEVER : draw(c, most);
  }
}

static inline void draw_labels(solver_case *c, uint32_t op, const case_limits *limits) {
  tm_solver_op *row = &c->ops[op];
  row->first_label = c->problem.label_count;
  row->label_count = 1 + draw(c, limits->most_labels);
  for (uint32_t i = 0; i < row->label_count; i++) {
    const uint32_t memory = draw(c, c->problem.memory_count);
    c->labels[c->problem.label_count++] = (tm_solver_label){
        .cost_ns = draw_percent(c, limits->never_percent) ? TM_SOLVER_NEVER : draw(c, limits->most_cost),
        .input_memory = memory,
        .output_memory = draw_percent(c, 75) ? memory : draw(c, c->problem.memory_count),
        .resource = draw(c, c->problem.resource_count),
        .rank = i,
        .workspace_bytes = draw(c, 4)};
  }
}

static inline void draw_value(solver_case *c, uint32_t producer, uint32_t home) {
  c->values[c->problem.value_count++] = (tm_solver_value){
    .bytes = 1 + draw(c, 9), .producer = producer, .home = home, .size_class = draw(c, CASE_CLASSES),
    .wanted = draw_percent(c, 15) ? draw(c, c->problem.memory_count) : TM_SOLVER_NONE };
}

static inline void draw_inputs(solver_case *c, uint32_t op) {
  tm_solver_op *row = &c->ops[op];
  row->first_input = c->problem.input_count;
  const uint32_t known = c->problem.value_count;
  uint32_t wish = draw(c, 4);
  for (uint32_t i = 0; i < wish && known != 0; i++) {
    const uint32_t recent = known < 4 ? known : 4;
    const uint32_t value = draw_percent(c, 60) ? known - 1 - draw(c, recent) : draw(c, known);
    bool is_there = false;
    for (uint32_t k = row->first_input; k < c->problem.input_count; k++) is_there = is_there || c->inputs[k] == value;
    if (!is_there) c->inputs[c->problem.input_count++] = value;
  }
  row->input_count = c->problem.input_count - row->first_input;
}

static inline void draw_case(solver_case *c, uint64_t seed, const case_limits *limits) {
  memset(c, 0, sizeof *c);
  c->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
  for (int i = 0; i < 4; i++) draw(c, 2);
  c->problem = (tm_solver_problem){.ops = c->ops,
                                   .labels = c->labels,
                                   .values = c->values,
                                   .inputs = c->inputs,
                                   .copy_ns = c->copy_ns,
                                   .resource_count = 3,
                                   .size_class_count = CASE_CLASSES,
                                   .memory_count = 1 + draw(c, limits->most_memories)};
  draw_copies(c, limits);
  for (uint32_t homes = draw(c, 4); homes != 0; homes--) draw_value(c, TM_SOLVER_NONE, draw(c, c->problem.memory_count));
  const uint32_t ops = 1 + draw(c, limits->most_ops);
  for (uint32_t op = 0; op < ops; op++) {
    draw_labels(c, op, limits);
    draw_inputs(c, op);
    for (uint32_t outputs = draw(c, 8) == 0 ? draw(c, 3) : 1; outputs != 0; outputs--) draw_value(c, op, TM_SOLVER_NONE);
    c->problem.op_count++;
  }
}

/* ---- All plans, one after the other. ---- */

typedef struct exhaustion {
  const tm_solver_problem *problem;
  uint32_t forced_op, forced_label;     /* TM_SOLVER_NONE: none */
  uint64_t least;
  uint32_t where[CASE_VALUES];          /* memory in which the value was made, or its home */
  bool     is_in[CASE_VALUES][CASE_MEMORIES];
  uint32_t labels[CASE_OPS];
  /* Called for each whole plan that is not dearer than the least; false: this one does not count. */
  bool   (*accepts)(const struct exhaustion *all, const void *context);
  const void *context;
} exhaustion;

static inline uint64_t plain_copy(const tm_solver_problem *p, uint32_t value, uint32_t from, uint32_t to) {
  return p->copy_ns[(p->values[value].size_class * p->memory_count + from) * p->memory_count + to];
}

/* The cost of bringing a value to a memory, remembering that it is there then. */
static inline uint64_t bring(exhaustion *all, uint32_t value, uint32_t to) {
  if (all->is_in[value][to]) return 0;
  all->is_in[value][to] = true;
  return plain_copy(all->problem, value, all->where[value], to);
}

static inline uint64_t make(exhaustion *all, uint32_t value, uint32_t memory) {
  memset(all->is_in[value], 0, sizeof all->is_in[value]);
  all->where[value] = memory;
  all->is_in[value][memory] = true;
  const uint32_t wanted = all->problem->values[value].wanted;
  return wanted == TM_SOLVER_NONE ? 0 : bring(all, value, wanted);
}

static inline uint64_t plain_add(uint64_t a, uint64_t b) {
  return a == TM_SOLVER_NEVER || b == TM_SOLVER_NEVER ? TM_SOLVER_NEVER : a + b;
}

static inline void try_op(exhaustion *all, uint32_t op, uint64_t cost);

static inline void try_label(exhaustion *all, uint32_t op, uint32_t label, uint64_t cost) {
  const tm_solver_problem *p = all->problem;
  const tm_solver_label *row = &p->labels[label];
  bool new_in[CASE_INPUTS];
  cost = plain_add(cost, row->cost_ns);
  for (uint32_t i = 0; i < p->ops[op].input_count; i++) {
    const uint32_t value = p->inputs[p->ops[op].first_input + i];
    new_in[i] = !all->is_in[value][row->input_memory];
    cost = plain_add(cost, bring(all, value, row->input_memory));
  }
  for (uint32_t v = 0; v < p->value_count; v++) {
    if (p->values[v].producer == op) cost = plain_add(cost, make(all, v, row->output_memory));
  }
  all->labels[op] = label;
  try_op(all, op + 1, cost);
  for (uint32_t i = 0; i < p->ops[op].input_count; i++) {
    if (new_in[i]) all->is_in[p->inputs[p->ops[op].first_input + i]][row->input_memory] = false;
  }
}

static inline void try_op(exhaustion *all, uint32_t op, uint64_t cost) {
  const tm_solver_problem *p = all->problem;
  if (cost >= all->least) return;
  if (op == p->op_count) {
    if (all->accepts == NULL || all->accepts(all, all->context)) all->least = cost;
    return;
  }
  for (uint32_t i = 0; i < p->ops[op].label_count; i++) {
    const uint32_t label = p->ops[op].first_label + i;
    if (op != all->forced_op || label == all->forced_label) try_label(all, op, label, cost);
  }
}

static inline void exhaust(exhaustion *all) {
  uint64_t cost = 0;
  all->least = TM_SOLVER_NEVER;
  for (uint32_t v = 0; v < all->problem->value_count; v++) {
    if (all->problem->values[v].producer == TM_SOLVER_NONE) cost = plain_add(cost, make(all, v, all->problem->values[v].home));
  }
  try_op(all, 0, cost);
}

/* The least total of all plans, or of those with this label on this operation; TM_SOLVER_NEVER if there is none. */
static inline uint64_t least_total(const tm_solver_problem *problem, uint32_t forced_op, uint32_t forced_label) {
  exhaustion all = { .problem = problem, .forced_op = forced_op, .forced_label = forced_label };
  exhaust(&all);
  return all.least;
}

/* What one plan costs, added up from scratch. */
static inline uint64_t plan_total(const tm_solver_problem *p, const uint32_t *labels) {
  uint64_t total = 0;
  for (uint32_t op = 0; op < p->op_count; op++) total = plain_add(total, p->labels[labels[op]].cost_ns);
  for (uint32_t v = 0; v < p->value_count; v++) {
    const tm_solver_value *value = &p->values[v];
    const uint32_t from = value->producer == TM_SOLVER_NONE ? value->home : p->labels[labels[value->producer]].output_memory;
    for (uint32_t m = 0; m < p->memory_count; m++) {
      bool is_needed = m == value->wanted;
      for (uint32_t op = 0; op < p->op_count && !is_needed; op++) {
        for (uint32_t i = 0; i < p->ops[op].input_count; i++)
          is_needed = is_needed || (p->inputs[p->ops[op].first_input + i] == v && p->labels[labels[op]].input_memory == m);
      }
      if (is_needed && m != from) total = plain_add(total, plain_copy(p, v, from, m));
    }
  }
  return total;
}

#endif
