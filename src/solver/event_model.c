/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/event_model.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"

#define NONE_BYTE 0xff                  /* TM_SOLVER_NONE is made of these */
/* Bits of link_state. */
#define LINK_IS_BUSY 1u
#define LINK_IS_DUE  2u                 /* in links_due */

tm_status tm_event_model_init(tm_event_model *model, const tm_problem_index *index, tm_arena *arena, tm_error *error) {
  const tm_solver_problem *problem = index->problem;
  const uint64_t ops = problem->op_count, values = problem->value_count, edges = index->edge_count;
  const uint64_t jobs = problem->copy_queues == NULL ? ops : ops + edges + values;
  memset(model, 0, sizeof *model);
  model->index = index;
  uint32_t **const numbers[] = { &model->op_before, &model->job_before, &model->job_next, &model->op_missing, &model->edge_op,
                                 &model->edge_next, &model->value_first_copy, &model->value_first_waiter, &model->resource_head,
                                 &model->resource_tail, &model->link_waiting, &model->link_last, &model->links_due };
  const uint64_t counts[] = { ops, jobs, jobs, ops, edges, edges, values, values, problem->resource_count,
                              problem->resource_count, problem->link_count, problem->link_count, problem->link_count };
  bool is_complete = true;
  for (uint32_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    *numbers[i] = tm_arena_alloc(arena, counts[i] * sizeof **numbers[i]);
    is_complete = is_complete && *numbers[i] != NULL;
  }
  model->op_start_ns = tm_arena_alloc(arena, ops * sizeof *model->op_start_ns);
  model->op_end_ns = tm_arena_alloc(arena, ops * sizeof *model->op_end_ns);
  model->copies = tm_arena_alloc(arena, (edges + values) * sizeof *model->copies);
  model->link_state = tm_arena_alloc(arena, problem->link_count);
  model->events = tm_arena_alloc(arena, (ops + edges + values) * sizeof *model->events);
  model->resource_end_ns = tm_arena_alloc(arena, problem->resource_count * sizeof *model->resource_end_ns);
  if (!is_complete || model->op_start_ns == NULL || model->op_end_ns == NULL || model->copies == NULL || model->link_state == NULL ||
      model->resource_end_ns == NULL || model->events == NULL) {
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to judge plans");
  }
  for (uint32_t o = 0; o < ops; o++) {
    for (uint32_t i = 0; i < problem->ops[o].input_count; i++) model->edge_op[index->first_edge[o] + i] = o;
  }
  return TM_OK;
}

/* ---- what is to come: a heap ---- */

static bool is_sooner(const tm_event *a, const tm_event *b) {
  return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->number < b->number;
}

static void push_event(tm_event_model *model, uint64_t time_ns, uint64_t number) {
  const tm_event event = { time_ns, number };
  uint32_t at = model->event_count++;
  while (at != 0 && is_sooner(&event, &model->events[(at - 1) / 2])) {
    model->events[at] = model->events[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  model->events[at] = event;
}

static tm_event pop_event(tm_event_model *model) {
  tm_event *events = model->events;
  const tm_event first = events[0], last = events[--model->event_count];
  uint32_t at = 0;
  for (uint32_t child = 1; child < model->event_count; child = 2 * at + 1) {
    if (child + 1 < model->event_count && is_sooner(&events[child + 1], &events[child])) child++;
    if (!is_sooner(&events[child], &last)) break;
    events[at] = events[child];
    at = child;
  }
  events[at] = last;
  return first;
}

/* ---- copies that wait for a link: a leftist heap a link, by number ---- */

static uint32_t distance(const tm_event_model *model, uint32_t copy) {
  return copy == TM_SOLVER_NONE ? 0 : model->copies[copy].heap_distance;
}

/* Calls itself no deeper than the logarithm of what waits: only along `near`. */
static uint32_t merge(tm_event_model *model, uint32_t a, uint32_t b) {
  if (a == TM_SOLVER_NONE) return b;
  if (b == TM_SOLVER_NONE) return a;
  const uint32_t top = a < b ? a : b;
  tm_event_copy *copy = &model->copies[top];
  copy->heap_near = merge(model, copy->heap_near, a < b ? b : a);
  if (distance(model, copy->heap_far) < distance(model, copy->heap_near)) {
    const uint32_t near = copy->heap_near;
    copy->heap_near = copy->heap_far;
    copy->heap_far = near;
  }
  copy->heap_distance = 1 + distance(model, copy->heap_near);
  return top;
}

/* ---- before the clock starts ---- */

static void clear(tm_event_model *model) {
  const tm_solver_problem *problem = model->index->problem;
  const size_t resources = (size_t)problem->resource_count * sizeof(uint32_t);
  memset(model->value_first_copy, NONE_BYTE, (size_t)problem->value_count * sizeof(uint32_t));
  memset(model->resource_head, NONE_BYTE, resources);
  memset(model->resource_tail, NONE_BYTE, resources);
  memset(model->resource_end_ns, 0, problem->resource_count * sizeof *model->resource_end_ns);
  model->makespan_ns = model->additive_ns = model->copied_bytes = 0;
  model->switch_count = model->copy_count = model->carried_count = model->event_count = model->due_count = 0;
}

static void clear_links(tm_event_model *model) {
  const tm_solver_problem *problem = model->index->problem;
  const size_t links = (size_t)problem->link_count * sizeof(uint32_t);
  memset(model->value_first_waiter, NONE_BYTE, (size_t)problem->value_count * sizeof(uint32_t));
  memset(model->link_waiting, NONE_BYTE, links);
  memset(model->link_last, NONE_BYTE, links);
  memset(model->link_state, 0, problem->link_count);
}

uint32_t tm_event_model_copy(const tm_event_model *model, uint32_t value, uint32_t memory) {
  uint32_t copy = model->value_first_copy[value];
  while (copy != TM_SOLVER_NONE && model->copies[copy].to != memory) copy = model->copies[copy].next_of_value;
  return copy;
}

static uint32_t queue_of(const tm_solver_problem *problem, uint32_t memory) {
  return problem->copy_queues == NULL ? TM_SOLVER_NONE : problem->copy_queues[memory];
}

static uint32_t resource_of(const tm_event_model *model, uint32_t o) {
  return model->index->problem->labels[model->labels[o]].resource;
}

/* Only where whoever makes or reads it has that very queue is there a place for it; `reader` TM_SOLVER_NONE: the end. */
static void give_queue(tm_event_model *model, tm_event_copy *copy, uint32_t reader) {
  const tm_solver_problem *problem = model->index->problem;
  const uint32_t producer = problem->values[copy->value].producer;
  const uint32_t leaves = queue_of(problem, copy->from), enters = queue_of(problem, copy->to);
  if (tm_solver_is_kept(problem, copy->value)) return;
  if (leaves != TM_SOLVER_NONE) {
    if (producer != TM_SOLVER_NONE && resource_of(model, producer) != leaves) return;
    copy->queue = leaves;
    copy->owner = producer == TM_SOLVER_NONE ? reader : TM_SOLVER_NONE;
  } else if (enters != TM_SOLVER_NONE && reader != TM_SOLVER_NONE && resource_of(model, reader) == enters) {
    copy->queue = enters;
    copy->owner = reader;
    copy->is_gated = 1;
  }
}

static uint32_t need_copy(tm_event_model *model, uint32_t value, uint32_t from, uint32_t to, uint32_t reader) {
  const tm_solver_problem *problem = model->index->problem;
  const uint32_t known = tm_event_model_copy(model, value, to);
  if (known != TM_SOLVER_NONE) return known;
  const uint32_t number = model->copy_count++;
  const uint32_t link = tm_problem_link(problem, from, to);
  model->copies[number] = (tm_event_copy){ 0, 0, value, from, to, link, TM_SOLVER_NONE, model->value_first_copy[value],
                                           TM_SOLVER_NONE, TM_SOLVER_NONE, TM_SOLVER_NONE, 1, TM_SOLVER_NONE, TM_SOLVER_NONE, 0 };
  give_queue(model, &model->copies[number], reader);
  model->carried_count += link != TM_SOLVER_NONE && model->copies[number].queue == TM_SOLVER_NONE;
  model->value_first_copy[value] = number;
  model->additive_ns = tm_solver_add(model->additive_ns, tm_solver_copy_ns(problem, value, from, to));
  if (!tm_checked_add(model->copied_bytes, problem->values[value].bytes, &model->copied_bytes)) {
    model->copied_bytes = UINT64_MAX;
  }
  return number;
}

/* What an input of a reader waits for: the value where it is made, or its copy.  What comes in the reader's own queue, even from
   another memory of it, is there in turn; only for the first reader something may have to be there before it can set out. */
static uint32_t *list_to_join(tm_event_model *model, uint32_t o, uint32_t value, uint32_t from, uint32_t to) {
  const uint32_t producer = model->index->problem->values[value].producer;
  uint32_t *at_source = producer == TM_SOLVER_NONE ? NULL : &model->value_first_waiter[value];
  if (from == to) return at_source;
  tm_event_copy *copy = &model->copies[tm_event_model_copy(model, value, to)];
  if (copy->queue != resource_of(model, o)) return &copy->first_waiter;
  return copy->is_gated != 0 && copy->owner == o ? at_source : NULL;
}

static void await_input(tm_event_model *model, uint32_t o, uint32_t i) {
  const tm_solver_problem *problem = model->index->problem;
  const tm_solver_label *label = &problem->labels[model->labels[o]];
  const uint32_t value = problem->inputs[problem->ops[o].first_input + i], edge = model->index->first_edge[o] + i;
  const uint32_t from = tm_problem_source(problem, model->labels, value);
  uint32_t *list = list_to_join(model, o, value, from, label->input_memory);
  if (list == NULL) return;
  model->edge_next[edge] = *list;
  *list = edge;
  model->op_missing[o]++;
}

/* ---- queues ---- */

static void join_queue(tm_event_model *model, uint32_t resource, uint32_t job) {
  const uint32_t tail = model->resource_tail[resource];
  model->job_before[job] = tail;
  model->job_next[job] = TM_SOLVER_NONE;
  if (tail == TM_SOLVER_NONE) {
    model->resource_head[resource] = job;
  } else {
    model->job_next[tail] = job;
  }
  model->resource_tail[resource] = job;
}

static void join_copy(tm_event_model *model, uint32_t copy) {
  join_queue(model, model->copies[copy].queue, model->index->problem->op_count + copy);
}

static void join_op(tm_event_model *model, uint32_t o) {
  const uint32_t op_count = model->index->problem->op_count;
  const tm_solver_label *label = &model->index->problem->labels[model->labels[o]];
  join_queue(model, label->resource, o);
  uint32_t before = model->job_before[o];
  while (before != TM_SOLVER_NONE && before >= op_count) before = model->job_before[before];
  model->op_before[o] = before;
  model->additive_ns = tm_solver_add(model->additive_ns, label->cost_ns);
}

/* What was made elsewhere first, for all of it is waited before anything sets out. */
static void join_arrivals(tm_event_model *model, uint32_t o) {
  const tm_solver_problem *problem = model->index->problem;
  const tm_solver_op *op = &problem->ops[o];
  for (uint32_t i = op->first_input; i < op->first_input + op->input_count; i++) {
    const uint32_t copy = tm_event_model_copy(model, problem->inputs[i], problem->labels[model->labels[o]].input_memory);
    if (copy != TM_SOLVER_NONE && model->copies[copy].queue != TM_SOLVER_NONE && model->copies[copy].owner == o)
      join_copy(model, copy);
  }
}

static void join_departures(tm_event_model *model, uint32_t value) {
  for (uint32_t c = model->value_first_copy[value]; c != TM_SOLVER_NONE; c = model->copies[c].next_of_value)
    if (model->copies[c].queue != TM_SOLVER_NONE && model->copies[c].owner == TM_SOLVER_NONE) join_copy(model, c);
}

static void join_all(tm_event_model *model) {
  const tm_problem_index *index = model->index;
  const bool has_queues = index->problem->copy_queues != NULL && model->copy_count != 0;
  for (uint32_t place = 0; place < index->problem->op_count; place++) {
    const uint32_t o = model->order[place];
    if (has_queues) join_arrivals(model, o);
    join_op(model, o);
    for (uint32_t i = index->flow.first_output[o]; has_queues && i < index->flow.first_output[o + 1]; i++)
      join_departures(model, index->flow.outputs[i]);
  }
  for (uint32_t v = 0; has_queues && v < index->problem->value_count; v++)
    if (index->problem->values[v].producer == TM_SOLVER_NONE) join_departures(model, v);
}

static void make_copies_for(tm_event_model *model, uint32_t o) {
  const tm_solver_problem *problem = model->index->problem;
  const tm_solver_op *op = &problem->ops[o];
  const tm_solver_label *label = &problem->labels[model->labels[o]];
  for (uint32_t i = op->first_input; i < op->first_input + op->input_count; i++) {
    const tm_solver_value *value = &problem->values[problem->inputs[i]];
    const tm_solver_label *maker = value->producer == TM_SOLVER_NONE ? NULL : &problem->labels[model->labels[value->producer]];
    const uint32_t from = maker == NULL ? value->home : maker->output_memory;
    if (maker != NULL && maker->rank != label->rank) model->switch_count++;
    if (from != label->input_memory) (void)need_copy(model, problem->inputs[i], from, label->input_memory, o);
  }
}

static void make_copies(tm_event_model *model) {
  const tm_solver_problem *problem = model->index->problem;
  for (uint32_t place = 0; place < problem->op_count; place++) make_copies_for(model, model->order[place]);
  for (uint32_t v = 0; v < problem->value_count; v++) {
    const uint32_t wanted = problem->values[v].wanted;
    const uint32_t from = wanted == TM_SOLVER_NONE ? wanted : tm_problem_source(problem, model->labels, v);
    if (from != wanted) (void)need_copy(model, v, from, wanted, TM_SOLVER_NONE);
  }
}

static void prepare(tm_event_model *model) {
  const tm_solver_problem *problem = model->index->problem;
  clear_links(model);
  for (uint32_t place = 0; place < problem->op_count; place++) {
    const uint32_t o = model->order[place];
    model->op_missing[o] = 0;
    for (uint32_t i = 0; i < problem->ops[o].input_count; i++) await_input(model, o, i);
  }
  join_all(model);
}

/* ---- without links: everything in its turn ---- */

/* Nobody has to choose then: all that a job waits for comes before it, in its queue or in the order. */
static void pass_copy(tm_event_model *model, uint32_t number, uint64_t ready_ns) {
  const tm_solver_problem *problem = model->index->problem;
  tm_event_copy *copy = &model->copies[number];
  copy->start_ns = ready_ns;
  if (copy->queue != TM_SOLVER_NONE) copy->start_ns = tm_max_u64(ready_ns, model->resource_end_ns[copy->queue]);
  copy->end_ns = tm_solver_add(copy->start_ns, tm_solver_copy_ns(problem, copy->value, copy->from, copy->to));
  model->makespan_ns = tm_max_u64(model->makespan_ns, copy->end_ns);
  if (copy->queue == TM_SOLVER_NONE) return;
  model->resource_end_ns[copy->queue] = copy->end_ns;
  join_copy(model, number);
}

static uint64_t made_ns(const tm_event_model *model, uint32_t value) {
  const uint32_t producer = model->index->problem->values[value].producer;
  return producer == TM_SOLVER_NONE ? 0 : model->op_end_ns[producer];
}

static bool comes_before(const tm_event_copy *copy, uint32_t o) { return copy->queue != TM_SOLVER_NONE && copy->owner == o; }

/* When all is there that an operation needs and does not find in its own queue.  What comes in other queues right before it comes
   now. */
static uint64_t gather_inputs(tm_event_model *model, uint32_t o, const tm_solver_label *label) {
  const tm_solver_problem *problem = model->index->problem;
  const uint32_t *inputs = problem->inputs + problem->ops[o].first_input;
  uint64_t ready_ns = 0;
  for (uint32_t i = 0; i < problem->ops[o].input_count; i++) {
    const uint32_t number = tm_event_model_copy(model, inputs[i], label->input_memory);
    const tm_event_copy *copy = number == TM_SOLVER_NONE ? NULL : &model->copies[number];
    const bool is_elsewhere = copy != NULL && copy->queue != label->resource;
    if (is_elsewhere && comes_before(copy, o)) pass_copy(model, number, 0);
    if (is_elsewhere) ready_ns = tm_max_u64(ready_ns, copy->end_ns);
    else if (copy == NULL || (copy->is_gated != 0 && copy->owner == o)) ready_ns = tm_max_u64(ready_ns, made_ns(model, inputs[i]));
  }
  for (uint32_t i = 0; i < problem->ops[o].input_count; i++) {
    const uint32_t number = tm_event_model_copy(model, inputs[i], label->input_memory);
    const tm_event_copy *copy = number == TM_SOLVER_NONE ? NULL : &model->copies[number];
    if (copy == NULL || copy->queue != label->resource || !comes_before(copy, o)) continue;
    pass_copy(model, number, copy->is_gated != 0 ? ready_ns : 0);
  }
  return ready_ns;
}

static void pass_op(tm_event_model *model, uint32_t o) {
  const tm_solver_label *label = &model->index->problem->labels[model->labels[o]];
  const uint64_t ready_ns = gather_inputs(model, o, label);
  model->op_start_ns[o] = tm_max_u64(ready_ns, model->resource_end_ns[label->resource]);
  model->op_end_ns[o] = tm_solver_add(model->op_start_ns[o], label->cost_ns);
  model->resource_end_ns[label->resource] = model->op_end_ns[o];
  model->makespan_ns = tm_max_u64(model->makespan_ns, model->op_end_ns[o]);
  join_op(model, o);
}

/* Copies of a value that nobody in particular has to wait for: behind its maker in the queue, or at once where there is none. */
static void pass_departures(tm_event_model *model, uint32_t value, bool in_queue) {
  for (uint32_t c = model->value_first_copy[value]; c != TM_SOLVER_NONE; c = model->copies[c].next_of_value) {
    const tm_event_copy *copy = &model->copies[c];
    const bool is_in_queue = copy->queue != TM_SOLVER_NONE;
    if (is_in_queue == in_queue && (!is_in_queue || copy->owner == TM_SOLVER_NONE))
      pass_copy(model, c, is_in_queue ? 0 : made_ns(model, value));
  }
}

static void pass_given(tm_event_model *model, bool in_queue) {
  const tm_solver_problem *problem = model->index->problem;
  for (uint32_t v = 0; v < problem->value_count; v++)
    if (problem->values[v].producer == TM_SOLVER_NONE) pass_departures(model, v, in_queue);
}

static void pass_all(tm_event_model *model) {
  const tm_problem_index *index = model->index;
  pass_given(model, false);
  for (uint32_t place = 0; place < index->problem->op_count; place++) {
    const uint32_t o = model->order[place];
    pass_op(model, o);
    for (uint32_t i = index->flow.first_output[o]; i < index->flow.first_output[o + 1]; i++) {
      pass_departures(model, index->flow.outputs[i], true);
      pass_departures(model, index->flow.outputs[i], false);
    }
  }
  pass_given(model, true);
}

static bool wants_copies(const tm_event_model *model) {
  const tm_solver_problem *problem = model->index->problem;
  for (uint32_t v = 0; v < problem->value_count; v++) {
    const uint32_t wanted = problem->values[v].wanted;
    if (wanted != TM_SOLVER_NONE && tm_problem_source(problem, model->labels, v) != wanted) return true;
  }
  return false;
}

/* When all is there that an operation reads.  TM_SOLVER_NEVER: not without a copy. */
static uint64_t find_inputs(tm_event_model *model, uint32_t o, const tm_solver_label *label) {
  const tm_solver_problem *problem = model->index->problem;
  const uint32_t *inputs = problem->inputs + problem->ops[o].first_input;
  uint64_t ready_ns = 0;
  for (uint32_t i = 0, count = problem->ops[o].input_count; i < count; i++) {
    const tm_solver_value *value = &problem->values[inputs[i]];
    const tm_solver_label *maker = value->producer == TM_SOLVER_NONE ? NULL : &problem->labels[model->labels[value->producer]];
    if ((maker == NULL ? value->home : maker->output_memory) != label->input_memory) return TM_SOLVER_NEVER;
    if (maker == NULL) continue;
    model->switch_count += maker->rank != label->rank;
    ready_ns = tm_max_u64(ready_ns, model->op_end_ns[value->producer]);
  }
  return ready_ns;
}

/* All there is to do where nothing is copied; false: something is. */
static bool pass_ops(tm_event_model *model) {
  const uint32_t op_count = model->index->problem->op_count;
  if (wants_copies(model)) return false;
  for (uint32_t place = 0; place < op_count; place++) {
    const uint32_t o = model->order[place];
    const tm_solver_label *label = &model->index->problem->labels[model->labels[o]];
    const uint64_t ready_ns = find_inputs(model, o, label);
    if (ready_ns == TM_SOLVER_NEVER) return false;
    const uint64_t start_ns = tm_max_u64(ready_ns, model->resource_end_ns[label->resource]);
    const uint64_t end_ns = tm_solver_add(start_ns, label->cost_ns);
    model->op_start_ns[o] = start_ns;
    model->op_end_ns[o] = model->resource_end_ns[label->resource] = end_ns;
    model->makespan_ns = tm_max_u64(model->makespan_ns, end_ns);
    model->additive_ns = tm_solver_add(model->additive_ns, label->cost_ns);
    model->op_before[o] = model->job_before[o] = model->resource_tail[label->resource];
    model->resource_tail[label->resource] = o;
  }
  return true;
}

/* ---- while it runs ---- */

static void start_op(tm_event_model *model, uint32_t o, uint64_t now_ns) {
  model->op_start_ns[o] = now_ns;
  model->op_end_ns[o] = tm_solver_add(now_ns, model->index->problem->labels[model->labels[o]].cost_ns);
  push_event(model, model->op_end_ns[o], o);
}

static void start_copy(tm_event_model *model, uint32_t number, uint64_t now_ns) {
  const tm_solver_problem *problem = model->index->problem;
  tm_event_copy *copy = &model->copies[number];
  copy->start_ns = now_ns;
  copy->end_ns = tm_solver_add(now_ns, tm_solver_copy_ns(problem, copy->value, copy->from, copy->to));
  push_event(model, copy->end_ns, (uint64_t)problem->op_count + number);
}

/* Whoever is first in a queue, if nothing keeps it; called once for each reason that goes. */
static void start_head(tm_event_model *model, uint32_t resource, uint64_t now_ns) {
  const uint32_t op_count = model->index->problem->op_count, head = model->resource_head[resource];
  if (head == TM_SOLVER_NONE) return;
  const tm_event_copy *copy = head < op_count ? NULL : &model->copies[head - op_count];
  if (copy == NULL) {
    if (model->op_missing[head] == 0) start_op(model, head, now_ns);
  } else if (copy->is_gated == 0 || model->op_missing[copy->owner] == 0) {
    start_copy(model, head - op_count, now_ns);
  }
}

/* Is the first of the queue what waits for the operation's inputs? */
static bool is_head_of(const tm_event_model *model, uint32_t o, uint32_t resource) {
  const uint32_t op_count = model->index->problem->op_count, head = model->resource_head[resource];
  if (head == o) return true;
  return head != TM_SOLVER_NONE && head >= op_count && model->copies[head - op_count].is_gated != 0 &&
         model->copies[head - op_count].owner == o;
}

static void leave_queue(tm_event_model *model, uint32_t resource, uint32_t job, uint64_t now_ns) {
  model->resource_head[resource] = model->job_next[job];
  start_head(model, resource, now_ns);
}

/* The links choose only when all that happens at one time has happened. */
static void call_link(tm_event_model *model, uint32_t link) {
  if ((model->link_state[link] & LINK_IS_DUE) != 0) return;
  model->link_state[link] |= LINK_IS_DUE;
  model->links_due[model->due_count++] = link;
}

static void request_copies(tm_event_model *model, uint32_t value, uint64_t now_ns) {
  for (uint32_t c = model->value_first_copy[value]; c != TM_SOLVER_NONE; c = model->copies[c].next_of_value) {
    const uint32_t link = model->copies[c].link;
    if (model->copies[c].queue != TM_SOLVER_NONE) continue;
    if (link == TM_SOLVER_NONE) {
      start_copy(model, c, now_ns);
    } else {
      model->link_waiting[link] = merge(model, model->link_waiting[link], c);
      call_link(model, link);
    }
  }
}

static void release_waiters(tm_event_model *model, uint32_t first, uint64_t now_ns) {
  for (uint32_t edge = first; edge != TM_SOLVER_NONE; edge = model->edge_next[edge]) {
    const uint32_t o = model->edge_op[edge];
    const uint32_t resource = resource_of(model, o);
    if (--model->op_missing[o] == 0 && is_head_of(model, o, resource)) start_head(model, resource, now_ns);
  }
}

static void finish_op(tm_event_model *model, uint32_t o, uint64_t now_ns) {
  const tm_problem_index *index = model->index;
  leave_queue(model, resource_of(model, o), o, now_ns);
  for (uint32_t i = index->flow.first_output[o]; i < index->flow.first_output[o + 1]; i++) {
    release_waiters(model, model->value_first_waiter[index->flow.outputs[i]], now_ns);
    request_copies(model, index->flow.outputs[i], now_ns);
  }
}

static void finish_copy(tm_event_model *model, uint32_t number, uint64_t now_ns) {
  const tm_event_copy *copy = &model->copies[number];
  if (copy->queue != TM_SOLVER_NONE) {
    leave_queue(model, copy->queue, model->index->problem->op_count + number, now_ns);
  } else if (copy->link != TM_SOLVER_NONE) {
    model->link_state[copy->link] &= (uint8_t)~LINK_IS_BUSY;
    call_link(model, copy->link);
  }
  release_waiters(model, copy->first_waiter, now_ns);
}

static void serve_link(tm_event_model *model, uint32_t link, uint64_t now_ns) {
  const uint32_t number = model->link_waiting[link];
  model->link_state[link] &= (uint8_t)~LINK_IS_DUE;
  if (number == TM_SOLVER_NONE || (model->link_state[link] & LINK_IS_BUSY) != 0) return;
  tm_event_copy *copy = &model->copies[number];
  model->link_waiting[link] = merge(model, copy->heap_near, copy->heap_far);
  copy->before = model->link_last[link];
  model->link_last[link] = number;
  model->link_state[link] |= LINK_IS_BUSY;
  start_copy(model, number, now_ns);
}

static void serve_links(tm_event_model *model, uint64_t now_ns) {
  while (model->due_count != 0) serve_link(model, model->links_due[--model->due_count], now_ns);
}

static void start_all(tm_event_model *model) {
  const tm_solver_problem *problem = model->index->problem;
  for (uint32_t r = 0; r < problem->resource_count; r++) start_head(model, r, 0);
  for (uint32_t v = 0; v < problem->value_count; v++) {
    if (problem->values[v].producer == TM_SOLVER_NONE) request_copies(model, v, 0);
  }
  serve_links(model, 0);
}

void tm_event_model_run(tm_event_model *model, const uint32_t *labels, const uint32_t *order) {
  const uint32_t op_count = model->index->problem->op_count;
  model->labels = labels;
  model->order = order;
  clear(model);
  if (pass_ops(model)) return;
  clear(model);
  make_copies(model);
  if (model->carried_count == 0) {
    pass_all(model);
    return;
  }
  prepare(model);
  start_all(model);
  while (model->event_count != 0) {
    const uint64_t now_ns = model->events[0].time_ns;
    while (model->event_count != 0 && model->events[0].time_ns == now_ns) {
      const uint64_t number = pop_event(model).number;
      if (number < op_count) {
        finish_op(model, (uint32_t)number, now_ns);
      } else {
        finish_copy(model, (uint32_t)(number - op_count), now_ns);
      }
    }
    model->makespan_ns = now_ns;
    serve_links(model, now_ns);
  }
}
