/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/list_schedule.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "solver/time_order.h"

tm_status tm_list_schedule_init(tm_list_schedule *schedule, const tm_problem_index *index, tm_arena *arena, tm_error *error) {
  const tm_solver_problem *problem = index->problem;
  const uint64_t ops = problem->op_count, most_copies = (uint64_t)index->edge_count + problem->value_count;
  memset(schedule, 0, sizeof *schedule);
  schedule->index = index;
  TM_TRY(tm_gap_list_init(&schedule->resources, problem->resource_count, ops, arena, error));
  TM_TRY(tm_gap_list_init(&schedule->links, problem->link_count, most_copies, arena, error));
  schedule->labels = tm_arena_alloc(arena, ops * sizeof *schedule->labels);
  schedule->order = tm_arena_alloc(arena, ops * sizeof *schedule->order);
  schedule->start_ns = tm_arena_alloc(arena, ops * sizeof *schedule->start_ns);
  schedule->end_ns = tm_arena_alloc(arena, ops * sizeof *schedule->end_ns);
  schedule->arrivals = tm_arena_alloc(arena, most_copies * sizeof *schedule->arrivals);
  schedule->values = tm_arena_alloc(arena, problem->value_count * sizeof *schedule->values);
  schedule->missing = tm_arena_alloc(arena, ops * sizeof *schedule->missing);
  schedule->ready = tm_arena_alloc(arena, ops * sizeof *schedule->ready);
  schedule->pending_end_ns = tm_arena_calloc(arena, problem->link_count, sizeof *schedule->pending_end_ns);
  schedule->pending_trial = tm_arena_calloc(arena, problem->link_count, sizeof *schedule->pending_trial);
  if (schedule->labels == NULL || schedule->order == NULL || schedule->start_ns == NULL || schedule->end_ns == NULL ||
      schedule->arrivals == NULL || schedule->values == NULL || schedule->missing == NULL || schedule->ready == NULL ||
      schedule->pending_end_ns == NULL || schedule->pending_trial == NULL) {
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to schedule");
  }
  return TM_OK;
}

/* ---- the heap of those that could go next ---- */

static bool is_more_urgent(const tm_list_rule *rule, uint32_t a, uint32_t b) {
  return rule->urgency[a] != rule->urgency[b] ? rule->urgency[a] > rule->urgency[b] : a < b;
}

static void push_ready(tm_list_schedule *schedule, const tm_list_rule *rule, uint32_t o) {
  uint32_t *heap = schedule->ready, at = schedule->ready_count++;
  while (at != 0 && is_more_urgent(rule, o, heap[(at - 1) / 2])) {
    heap[at] = heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  heap[at] = o;
}

static uint32_t pop_ready(tm_list_schedule *schedule, const tm_list_rule *rule) {
  uint32_t *heap = schedule->ready;
  const uint32_t first = heap[0], last = heap[--schedule->ready_count], count = schedule->ready_count;
  uint32_t at = 0;
  for (uint32_t child = 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count && is_more_urgent(rule, heap[child + 1], heap[child])) child++;
    if (!is_more_urgent(rule, heap[child], last)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = last;
  return first;
}

/* ---- trying a label ---- */

/* Labels that read the same memory find the same there. */
typedef struct inputs_trial {
  uint64_t ready_ns;            /* TM_SOLVER_NEVER: not possible */
  uint64_t moved_bytes;
  uint32_t memory;              /* TM_SOLVER_NONE: none was tried yet */
} inputs_trial;

typedef struct label_trial {
  uint64_t score_ns;            /* what labels are compared by; TM_SOLVER_NEVER: not possible */
  uint64_t moved_bytes;
} label_trial;

static const tm_list_arrival *find_arrival(const tm_list_schedule *schedule, uint32_t value, uint32_t memory) {
  uint32_t arrival = schedule->values[value].first_arrival;
  while (arrival != TM_SOLVER_NONE && schedule->arrivals[arrival].memory != memory) arrival = schedule->arrivals[arrival].next;
  return arrival == TM_SOLVER_NONE ? NULL : &schedule->arrivals[arrival];
}

/* When a copy that is not booked yet would be there.  Copies of one trial do not see each other's bookings; they go one after
   the other on a link. */
static uint64_t try_copy(tm_list_schedule *schedule, uint32_t value, uint32_t to) {
  const tm_solver_problem *problem = schedule->index->problem;
  const tm_list_value *made = &schedule->values[value];
  const uint64_t copy_ns = tm_solver_copy_ns(problem, value, made->memory, to);
  const uint32_t link = tm_problem_link(problem, made->memory, to);
  uint64_t start_ns = made->made_ns;
  if (link == TM_SOLVER_NONE || copy_ns == TM_SOLVER_NEVER) return tm_solver_add(start_ns, copy_ns);
  if (schedule->pending_trial[link] == schedule->trial_count) start_ns = tm_max_u64(start_ns, schedule->pending_end_ns[link]);
  start_ns = tm_gap_list_find(&schedule->links, link, start_ns, copy_ns);
  schedule->pending_trial[link] = schedule->trial_count;
  schedule->pending_end_ns[link] = tm_solver_add(start_ns, copy_ns);
  return schedule->pending_end_ns[link];
}

static uint64_t try_input(tm_list_schedule *schedule, uint32_t value, uint32_t to, uint64_t *moved_bytes) {
  const tm_list_value *made = &schedule->values[value];
  if (made->memory == to) return made->made_ns;
  const tm_list_arrival *arrival = find_arrival(schedule, value, to);
  if (arrival != NULL) return arrival->time_ns;
  if (!tm_checked_add(*moved_bytes, schedule->index->problem->values[value].bytes, moved_bytes)) *moved_bytes = UINT64_MAX;
  return try_copy(schedule, value, to);
}

static inputs_trial try_inputs(tm_list_schedule *schedule, uint32_t o, uint32_t memory) {
  const tm_solver_problem *problem = schedule->index->problem;
  const tm_solver_op *op = &problem->ops[o];
  inputs_trial inputs = { 0, 0, memory };
  schedule->trial_count++;
  for (uint32_t i = op->first_input; i < op->first_input + op->input_count && inputs.ready_ns != TM_SOLVER_NEVER; i++) {
    const uint64_t there_ns = try_input(schedule, problem->inputs[i], memory, &inputs.moved_bytes);
    inputs.ready_ns = tm_max_u64(inputs.ready_ns, there_ns);
  }
  return inputs;
}

/* `inputs`: of the label of this operation that was tried before. */
static label_trial try_label(tm_list_schedule *schedule, const tm_list_rule *rule, uint32_t o, uint32_t l, inputs_trial *inputs) {
  const tm_solver_label *label = &schedule->index->problem->labels[l];
  label_trial result = { TM_SOLVER_NEVER, 0 };
  if (label->cost_ns == TM_SOLVER_NEVER || rule->viable[l] == TM_SOLVER_NEVER) return result;
  if (inputs->memory != label->input_memory) *inputs = try_inputs(schedule, o, label->input_memory);
  if (inputs->ready_ns == TM_SOLVER_NEVER) return result;
  result.moved_bytes = inputs->moved_bytes;
  const uint64_t start_ns = tm_gap_list_find(&schedule->resources, label->resource, inputs->ready_ns, label->cost_ns);
  result.score_ns = tm_solver_add(start_ns, label->cost_ns);
  if (rule->outlook_ns != NULL) result.score_ns = tm_solver_add(result.score_ns, rule->outlook_ns[l]);
  return result;
}

static bool is_better(const tm_solver_problem *problem, uint32_t l, const label_trial *a, uint32_t best, const label_trial *b) {
  if (a->score_ns != b->score_ns) return a->score_ns < b->score_ns;
  if (a->score_ns == TM_SOLVER_NEVER) return false;
  if (a->moved_bytes != b->moved_bytes) return a->moved_bytes < b->moved_bytes;
  return tm_label_goes_first(problem, l, best);
}

/* TM_SOLVER_NONE: none is possible. */
static uint32_t choose_label(tm_list_schedule *schedule, const tm_list_rule *rule, uint32_t o) {
  const tm_solver_problem *problem = schedule->index->problem;
  const tm_solver_op *op = &problem->ops[o];
  inputs_trial inputs = { 0, 0, TM_SOLVER_NONE };
  if (rule->forced != NULL && rule->forced[o] != TM_SOLVER_NONE) {
    const label_trial only = try_label(schedule, rule, o, rule->forced[o], &inputs);
    if (only.score_ns != TM_SOLVER_NEVER) return rule->forced[o];
  }
  uint32_t best = TM_SOLVER_NONE;
  label_trial best_trial = { TM_SOLVER_NEVER, 0 };
  for (uint32_t l = op->first_label; l < op->first_label + op->label_count; l++) {
    const label_trial other = try_label(schedule, rule, o, l, &inputs);
    if (other.score_ns == TM_SOLVER_NEVER) continue;
    if (best != TM_SOLVER_NONE && !is_better(problem, l, &other, best, &best_trial)) continue;
    best = l;
    best_trial = other;
  }
  return best;
}

/* ---- booking it ---- */

static uint64_t book_input(tm_list_schedule *schedule, uint32_t value, uint32_t to) {
  const tm_solver_problem *problem = schedule->index->problem;
  tm_list_value *made = &schedule->values[value];
  if (made->memory == to) return made->made_ns;
  const tm_list_arrival *known = find_arrival(schedule, value, to);
  if (known != NULL) return known->time_ns;
  const uint64_t copy_ns = tm_solver_copy_ns(problem, value, made->memory, to);
  const uint32_t link = tm_problem_link(problem, made->memory, to);
  uint64_t start_ns = made->made_ns;
  if (link != TM_SOLVER_NONE) {
    start_ns = tm_gap_list_find(&schedule->links, link, start_ns, copy_ns);
    tm_gap_list_book(&schedule->links, link, start_ns, copy_ns);
  }
  const uint64_t there_ns = tm_solver_add(start_ns, copy_ns);
  const uint32_t arrival = schedule->arrival_count++;
  schedule->arrivals[arrival] = (tm_list_arrival){ there_ns, to, made->first_arrival };
  made->first_arrival = arrival;
  return there_ns;
}

static void place(tm_list_schedule *schedule, uint32_t o, uint32_t l) {
  const tm_solver_problem *problem = schedule->index->problem;
  const tm_solver_op *op = &problem->ops[o];
  const tm_solver_label *label = &problem->labels[l];
  uint64_t ready_ns = 0;
  schedule->labels[o] = l;
  for (uint32_t i = op->first_input; i < op->first_input + op->input_count; i++) {
    ready_ns = tm_max_u64(ready_ns, book_input(schedule, problem->inputs[i], label->input_memory));
  }
  const uint64_t start_ns = tm_gap_list_find(&schedule->resources, label->resource, ready_ns, label->cost_ns);
  tm_gap_list_book(&schedule->resources, label->resource, start_ns, label->cost_ns);
  schedule->start_ns[o] = start_ns;
  schedule->end_ns[o] = tm_solver_add(start_ns, label->cost_ns);
}

static void make_outputs(tm_list_schedule *schedule, const tm_list_rule *rule, uint32_t o) {
  const tm_problem_index *index = schedule->index;
  const tm_list_value made = { schedule->end_ns[o], index->problem->labels[schedule->labels[o]].output_memory, TM_SOLVER_NONE };
  for (uint32_t i = index->flow.first_output[o]; i < index->flow.first_output[o + 1]; i++) {
    const uint32_t v = index->flow.outputs[i];
    schedule->values[v] = made;
    for (uint32_t use = index->flow.first_reader[v]; use < index->flow.first_reader[v + 1]; use++) {
      if (--schedule->missing[index->flow.readers[use]] == 0) push_ready(schedule, rule, index->flow.readers[use]);
    }
  }
}

static void clear(tm_list_schedule *schedule, const tm_list_rule *rule) {
  const tm_solver_problem *problem = schedule->index->problem;
  tm_gap_list_clear(&schedule->resources);
  tm_gap_list_clear(&schedule->links);
  schedule->arrival_count = 0;
  schedule->ready_count = 0;
  for (uint32_t v = 0; v < problem->value_count; v++)
    schedule->values[v] = (tm_list_value){ 0, problem->values[v].home, TM_SOLVER_NONE };
  for (uint32_t o = 0; o < problem->op_count; o++) {
    const tm_solver_op *op = &problem->ops[o];
    schedule->missing[o] = 0;
    for (uint32_t i = op->first_input; i < op->first_input + op->input_count; i++) {
      if (problem->values[problem->inputs[i]].producer != TM_SOLVER_NONE) schedule->missing[o]++;
    }
    if (schedule->missing[o] == 0) push_ready(schedule, rule, o);
  }
}

/* Before what it feeds even if nothing takes time: who starts and ends at the same moment goes by number, which is a possible
   order in itself. */
static void put_in_order(tm_list_schedule *schedule) {
  const uint32_t op_count = schedule->index->problem->op_count;
  for (uint32_t o = 0; o < op_count; o++) schedule->order[o] = o;
  tm_time_order_sort(schedule->order, schedule->ready, op_count, schedule->start_ns);
  for (uint32_t first = 0, end; first < op_count; first = end) {
    for (end = first + 1; end < op_count && schedule->start_ns[schedule->order[end]] == schedule->start_ns[schedule->order[first]];) end++;
    tm_time_order_sort(schedule->order + first, schedule->ready, end - first, schedule->end_ns);
  }
}

bool tm_list_schedule_run(tm_list_schedule *schedule, const tm_list_rule *rule) {
  clear(schedule, rule);
  while (schedule->ready_count != 0) {
    const uint32_t o = pop_ready(schedule, rule);
    const uint32_t label = choose_label(schedule, rule, o);
    if (label == TM_SOLVER_NONE) return false;
    place(schedule, o, label);
    make_outputs(schedule, rule, o);
  }
  put_in_order(schedule);
  return true;
}
