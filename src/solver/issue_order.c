/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/issue_order.h"

#include <stdbool.h>
#include <string.h>

#include "solver/time_order.h"

/* When an operation's turn is.  Those of one moment go by `is_late`, then by their places in the plan's order: what the thread does
   itself keeps it, so all that needs no waiting for that goes before. */
typedef struct turn {
  uint64_t at_ns;
  uint32_t is_late;             /* of the thread, or not before something of the thread at the same moment */
  uint32_t reserved;
} turn;

typedef struct issue {
  const tm_solver_problem *problem;
  const tm_event_model    *model;
  const tm_issue_rules    *rules;
  uint64_t *at_ns;              /* [place] */
  uint32_t *places;             /* as their turns come */
  turn     *turn_of;            /* [op] */
  turn     *last;               /* [resource]: of what comes last there so far */
  uint8_t  *is_out;             /* [op] */
  uint32_t *next_before;        /* [op]: of befores, what was not found handed out yet */
  uint32_t *stack;
  uint32_t *out;
  uint32_t  out_count;
} issue;

static uint32_t resource_of(const issue *s, uint32_t op) { return s->problem->labels[s->model->labels[op]].resource; }

static turn later(turn a, turn b) {
  if (a.at_ns != b.at_ns) return a.at_ns > b.at_ns ? a : b;
  return a.is_late >= b.is_late ? a : b;
}

/* When what an operation of another resource makes is there. */
static turn end_of(const issue *s, uint32_t op) {
  turn end = s->turn_of[op];
  if (s->model->op_end_ns[op] == end.at_ns) return end;
  return (turn){ .at_ns = s->model->op_end_ns[op] };
}

/* The copy that leaves a queue of its own before the operation can be handed out; NULL: there is none.  What enters one comes in
   its turn there. */
static const tm_event_copy *awaited_copy(const issue *s, uint32_t value, uint32_t op) {
  if (s->problem->copy_queues == NULL) return NULL;
  const uint32_t c = tm_event_model_copy(s->model, value, s->problem->labels[s->model->labels[op]].input_memory);
  if (c == TM_SOLVER_NONE || s->problem->copy_queues[s->model->copies[c].from] == TM_SOLVER_NONE) return NULL;
  return &s->model->copies[c];
}

/* What the own resource makes need not be there: it comes to its turn there, too. */
static turn find_turn(const issue *s, uint32_t op) {
  const tm_solver_op *one = &s->problem->ops[op];
  const uint32_t resource = resource_of(s, op);
  if (resource == s->rules->thread_resource) return (turn){ .at_ns = s->model->op_start_ns[op], .is_late = 1 };
  turn found = s->last[resource];
  for (uint32_t i = one->first_input; i < one->first_input + one->input_count; i++) {
    const uint32_t producer = s->problem->values[s->problem->inputs[i]].producer;
    if (producer == TM_SOLVER_NONE) continue;
    const tm_event_copy *copy = awaited_copy(s, s->problem->inputs[i], op);
    turn there = resource_of(s, producer) == resource ? s->turn_of[producer] : end_of(s, producer);
    if (copy != NULL) there = (turn){ .at_ns = copy->end_ns };
    found = later(found, there);
  }
  return found;
}

static void find_turns(issue *s) {
  uint32_t *late = s->stack, early_count = 0, late_count = 0;
  for (uint32_t place = 0; place < s->problem->op_count; place++) {
    const uint32_t op = s->model->order[place];
    const turn one = find_turn(s, op);
    s->turn_of[op] = s->last[resource_of(s, op)] = one;
    s->at_ns[place] = one.at_ns;
    if (one.is_late != 0) late[late_count++] = place; else s->places[early_count++] = place;
  }
  if (late_count != 0) memcpy(s->places + early_count, late, late_count * sizeof *late);
  tm_time_order_sort(s->places, s->stack, s->problem->op_count, s->at_ns);
}

/* ---- nothing before what it needs ---- */

static uint32_t before_of(const issue *s, uint32_t op) {
  if (s->rules->first_before == NULL) return TM_SOLVER_NONE;
  const uint32_t *befores = &s->rules->befores[s->rules->first_before[op]];
  const uint32_t count = s->rules->first_before[op + 1] - s->rules->first_before[op];
  uint32_t *next = &s->next_before[op];
  while (*next < count && s->is_out[befores[*next]]) ++*next;
  return *next < count ? befores[*next] : TM_SOLVER_NONE;
}

static uint32_t needed_by(const issue *s, uint32_t op) {
  const tm_solver_op *one = &s->problem->ops[op];
  for (uint32_t i = one->first_input; i < one->first_input + one->input_count; i++) {
    const uint32_t producer = s->problem->values[s->problem->inputs[i]].producer;
    if (producer != TM_SOLVER_NONE && !s->is_out[producer]) return producer;
  }
  return before_of(s, op);
}

/* Who is needed has a lower number, so this ends. */
static void hand_out(issue *s, uint32_t op) {
  uint32_t depth = 0;
  s->stack[depth++] = op;
  while (depth != 0) {
    const uint32_t top = s->stack[depth - 1], needed = needed_by(s, top);
    if (needed != TM_SOLVER_NONE) {
      s->stack[depth++] = needed;
      continue;
    }
    s->is_out[top] = 1;
    s->out[s->out_count++] = top;
    depth--;
  }
}

tm_status tm_issue_order_make(const tm_event_model *model, const tm_issue_rules *rules, tm_memory *memory, uint32_t *out_order,
                              tm_error *error) {
  const tm_solver_problem *problem = model->index->problem;
  const uint64_t ops = problem->op_count;
  tm_arena arena;
  tm_arena_init(&arena, memory);
  issue s = { .problem = problem, .model = model, .rules = rules, .out = out_order };
  s.at_ns = tm_arena_alloc(&arena, ops * sizeof *s.at_ns);
  s.places = tm_arena_alloc(&arena, ops * sizeof *s.places);
  s.turn_of = tm_arena_alloc(&arena, ops * sizeof *s.turn_of);
  s.stack = tm_arena_alloc(&arena, ops * sizeof *s.stack);
  s.is_out = tm_arena_calloc(&arena, ops, sizeof *s.is_out);
  s.next_before = tm_arena_calloc(&arena, ops, sizeof *s.next_before);
  s.last = tm_arena_calloc(&arena, problem->resource_count, sizeof *s.last);
  const bool has_memory = s.at_ns != NULL && s.places != NULL && s.turn_of != NULL && s.stack != NULL && s.is_out != NULL &&
                          s.next_before != NULL && s.last != NULL;
  if (has_memory) {
    find_turns(&s);
    for (uint32_t i = 0; i < problem->op_count; i++) {
      const uint32_t op = model->order[s.places[i]];
      if (!s.is_out[op]) hand_out(&s, op);
    }
  }
  tm_arena_deinit(&arena);
  return has_memory ? TM_OK : tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for an order");
}
