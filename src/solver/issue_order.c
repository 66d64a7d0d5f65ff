/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/issue_order.h"

#include <stdbool.h>
#include <stdlib.h>

/* When an operation's turn is.  Those of one moment go by `is_late`, then by their places: what the thread does itself keeps it,
   so all that needs no waiting for that goes before. */
typedef struct turn {
  uint64_t at_ns;
  uint32_t is_late;             /* of the thread, or not before something of the thread at the same moment */
  uint32_t place;               /* in the plan's order */
  uint32_t op;
  uint32_t reserved;
} turn;

typedef struct issue {
  const tm_solver_problem *problem;
  const tm_event_model    *model;
  const tm_issue_rules    *rules;
  turn     *turns;              /* [place], then sorted */
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

static int compare(const void *left, const void *right) {
  const turn *a = left, *b = right;
  if (a->at_ns != b->at_ns) return a->at_ns < b->at_ns ? -1 : 1;
  if (a->is_late != b->is_late) return a->is_late < b->is_late ? -1 : 1;
  return a->place < b->place ? -1 : a->place > b->place;
}

static void find_turns(issue *s) {
  bool is_sorted = true;
  for (uint32_t place = 0; place < s->problem->op_count; place++) {
    const uint32_t op = s->model->order[place];
    turn one = find_turn(s, op);
    one.place = place;
    one.op = op;
    s->turns[place] = s->turn_of[op] = s->last[resource_of(s, op)] = one;
    is_sorted = is_sorted && (place == 0 || compare(&s->turns[place - 1], &one) < 0);
  }
  if (!is_sorted) qsort(s->turns, s->problem->op_count, sizeof *s->turns, compare);
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
  s.turns = tm_arena_alloc(&arena, ops * sizeof *s.turns);
  s.turn_of = tm_arena_alloc(&arena, ops * sizeof *s.turn_of);
  s.stack = tm_arena_alloc(&arena, ops * sizeof *s.stack);
  s.is_out = tm_arena_calloc(&arena, ops, sizeof *s.is_out);
  s.next_before = tm_arena_calloc(&arena, ops, sizeof *s.next_before);
  s.last = tm_arena_calloc(&arena, problem->resource_count, sizeof *s.last);
  const bool has_memory = s.turns != NULL && s.turn_of != NULL && s.stack != NULL && s.is_out != NULL && s.next_before != NULL &&
                          s.last != NULL;
  if (has_memory) {
    find_turns(&s);
    for (uint32_t i = 0; i < problem->op_count; i++)
      if (!s.is_out[s.turns[i].op]) hand_out(&s, s.turns[i].op);
  }
  tm_arena_deinit(&arena);
  return has_memory ? TM_OK : tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for an order");
}
