/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/critical_moves.h"

#include <string.h>

#include "base/error.h"
#include "solver/critical_path.h"

/* How far back in the order an operation may overtake. */
#define LONGEST_OVERTAKING 1024u

/* Comparing so many labels takes about as long as placing an operation. */
#define LABELS_A_STEP 16u

typedef struct move_state {
  tm_plan_judge  *judge;
  tm_judged_plan *plan;         /* the best so far */
  tm_judged_plan  trial;
  uint64_t  bound_ns;
  uint64_t  last_step;
  uint32_t *path;               /* operations of the critical path */
  uint32_t  path_count;
  uint32_t *places;             /* [op]: where it is in the plan's order */
  uint32_t *before;             /* [op]: who had its resource before */
  uint8_t  *must_move;          /* [op] */
  tm_timeline_step *steps;
} move_state;

static tm_status init(move_state *mover, tm_arena *arena, tm_error *error) {
  const tm_solver_problem *problem = mover->judge->index.problem;
  const uint64_t ops = problem->op_count;
  const uint64_t most_steps = ops + mover->judge->index.edge_count + problem->value_count;
  TM_TRY(tm_judged_plan_init(&mover->trial, problem->op_count, arena, error));
  mover->path = tm_arena_alloc(arena, ops * sizeof *mover->path);
  mover->places = tm_arena_alloc(arena, ops * sizeof *mover->places);
  mover->before = tm_arena_alloc(arena, ops * sizeof *mover->before);
  mover->must_move = tm_arena_calloc(arena, ops, sizeof *mover->must_move);
  mover->steps = tm_arena_alloc(arena, most_steps * sizeof *mover->steps);
  const bool is_complete = mover->path != NULL && mover->places != NULL && mover->before != NULL && mover->must_move != NULL &&
                           mover->steps != NULL;
  return is_complete ? TM_OK : tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to improve a plan");
}

static void find_path(move_state *mover) {
  tm_plan_judge *judge = mover->judge;
  const uint32_t op_count = judge->index.problem->op_count;
  tm_plan_judge_run(judge, mover->plan);
  const uint32_t step_count = tm_critical_path_find(&judge->model, mover->steps);
  mover->path_count = 0;
  for (uint32_t i = 0; i < step_count; i++) {
    if (!mover->steps[i].is_copy) mover->path[mover->path_count++] = mover->steps[i].number;
  }
  for (uint32_t place = 0; place < op_count; place++) mover->places[mover->plan->order[place]] = place;
  memcpy(mover->before, judge->model.op_before, op_count * sizeof *mover->before);
}

/* ---- trying ---- */

static bool is_spent(const move_state *mover) {
  const bool is_perfect = mover->plan->makespan_ns == mover->bound_ns && mover->plan->excess_bytes == 0;
  return is_perfect || mover->judge->step_count >= mover->last_step;
}

static bool keep_if_better(move_state *mover) {
  tm_plan_judge_run(mover->judge, &mover->trial);
  if (!tm_plan_judge_prefers(mover->judge, &mover->trial, mover->plan)) return false;
  tm_judged_plan_copy(mover->plan, &mover->trial, mover->judge->index.problem->op_count);
  return true;
}

static void begin_trial(move_state *mover) {
  tm_judged_plan_copy(&mover->trial, mover->plan, mover->judge->index.problem->op_count);
}

/* The trial has other labels than the plan: in the plan's order, and in the one that suits them. */
static bool try_labels(move_state *mover) {
  if (tm_problem_index_check_labels(&mover->judge->index, mover->trial.labels, NULL) != TM_OK) {
    mover->judge->step_count += mover->judge->index.problem->op_count;
    return false;
  }
  if (keep_if_better(mover)) return true;
  return tm_plan_judge_order(mover->judge, &mover->trial) && keep_if_better(mover);
}

/* The operation's labels in an order that does not come from their places: the one after `previous`; TM_SOLVER_NONE begins and
   ends it. */
static uint32_t next_label(const move_state *mover, uint32_t o, uint32_t previous) {
  const tm_solver_problem *problem = mover->judge->index.problem;
  const tm_solver_op *op = &problem->ops[o];
  uint32_t next = TM_SOLVER_NONE;
  for (uint32_t l = op->first_label; l < op->first_label + op->label_count; l++) {
    if (mover->judge->ranks.outlook_ns[l] == TM_SOLVER_NEVER) continue;
    if (previous != TM_SOLVER_NONE && !tm_label_goes_first(problem, previous, l)) continue;
    if (next == TM_SOLVER_NONE || tm_label_goes_first(problem, l, next)) next = l;
  }
  mover->judge->step_count += op->label_count / LABELS_A_STEP;
  return next;
}

/* Is there a label that does the same with the same means and is in nothing worse? */
static bool is_dominated(const move_state *mover, uint32_t o, uint32_t l) {
  const tm_solver_problem *problem = mover->judge->index.problem;
  const tm_solver_label *label = &problem->labels[l];
  const tm_solver_op *op = &problem->ops[o];
  for (uint32_t i = op->first_label; i < op->first_label + op->label_count; i++) {
    const tm_solver_label *other = &problem->labels[i];
    const bool is_same = other->input_memory == label->input_memory && other->output_memory == label->output_memory &&
                         other->resource == label->resource;
    if (!is_same || other->cost_ns > label->cost_ns || other->workspace_bytes > label->workspace_bytes) continue;
    const bool is_less = other->cost_ns < label->cost_ns || other->workspace_bytes < label->workspace_bytes;
    if (is_less || (i != l && tm_label_goes_first(problem, i, l))) return true;
  }
  return false;
}

static bool try_other_labels(move_state *mover, uint32_t o) {
  for (uint32_t l = next_label(mover, o, TM_SOLVER_NONE); l != TM_SOLVER_NONE && !is_spent(mover); l = next_label(mover, o, l)) {
    if (l == mover->plan->labels[o] || is_dominated(mover, o, l)) continue;
    begin_trial(mover);
    mover->trial.labels[o] = l;
    if (try_labels(mover)) return true;
  }
  return false;
}

/* The group's cheapest label for the operation; its present one if there is none. */
static uint32_t label_on(const move_state *mover, uint32_t o, uint32_t group) {
  const tm_plan_judge *judge = mover->judge;
  const tm_solver_op *op = &judge->index.problem->ops[o];
  uint32_t best = TM_SOLVER_NONE;
  for (uint32_t l = op->first_label; l < op->first_label + op->label_count; l++) {
    if (judge->groups.of_label[l] != group || judge->ranks.outlook_ns[l] == TM_SOLVER_NEVER) continue;
    if (best == TM_SOLVER_NONE || tm_label_goes_first(judge->index.problem, l, best)) best = l;
  }
  return best == TM_SOLVER_NONE ? mover->plan->labels[o] : best;
}

/* path[first ... last] to one device together. */
static bool try_run(move_state *mover, uint32_t first, uint32_t last) {
  const tm_plan_judge *judge = mover->judge;
  for (uint32_t group = 0; group < judge->groups.count && !is_spent(mover); group++) {
    begin_trial(mover);
    bool differs = false;
    for (uint32_t i = first; i <= last; i++) {
      const uint32_t o = mover->path[i], label = label_on(mover, o, group);
      differs = differs || label != mover->plan->labels[o];
      mover->trial.labels[o] = label;
    }
    if (differs && try_labels(mover)) return true;
  }
  return false;
}

static bool feeds_mover(const move_state *mover, uint32_t o) {
  const tm_problem_index *index = &mover->judge->index;
  for (uint32_t i = index->flow.first_output[o]; i < index->flow.first_output[o + 1]; i++) {
    const uint32_t v = index->flow.outputs[i];
    for (uint32_t use = index->flow.first_reader[v]; use < index->flow.first_reader[v + 1]; use++) {
      if (mover->must_move[index->flow.readers[use]]) return true;
    }
  }
  return false;
}

static bool reads_mover(const move_state *mover, uint32_t o) {
  const tm_solver_problem *problem = mover->judge->index.problem;
  const tm_solver_op *op = &problem->ops[o];
  for (uint32_t i = op->first_input; i < op->first_input + op->input_count; i++) {
    const uint32_t producer = problem->values[problem->inputs[i]].producer;
    if (producer != TM_SOLVER_NONE && mover->must_move[producer]) return true;
  }
  return false;
}

static bool is_related(const move_state *mover, uint32_t o, bool is_forward) {
  return is_forward ? reads_mover(mover, o) : feeds_mover(mover, o);
}

/* Marks in must_move the operation and all of its device that it depends on (or that depend on it) within the device. */
static void mark_relatives(move_state *mover, uint32_t o, bool is_forward) {
  const tm_problem_index *index = &mover->judge->index;
  const tm_solver_problem *problem = index->problem;
  const uint32_t rank = problem->labels[mover->plan->labels[o]].rank;
  const uint32_t count = is_forward ? problem->op_count - o : o + 1;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t at = is_forward ? o + i : o - i;
    if (at != o && (problem->labels[mover->plan->labels[at]].rank != rank || !is_related(mover, at, is_forward))) continue;
    mover->must_move[at] = 1;
  }
}

/* The operation and its relatives to another device together. */
static bool try_relatives(move_state *mover, uint32_t o, bool is_forward) {
  const tm_plan_judge *judge = mover->judge;
  const uint32_t op_count = judge->index.problem->op_count, own = judge->groups.of_label[mover->plan->labels[o]];
  for (uint32_t group = 0; group < judge->groups.count && !is_spent(mover); group++) {
    if (group == own) continue;
    begin_trial(mover);
    memset(mover->must_move, 0, op_count);
    mark_relatives(mover, o, is_forward);
    for (uint32_t at = 0; at < op_count; at++) {
      if (mover->must_move[at]) mover->trial.labels[at] = label_on(mover, at, group);
    }
    memset(mover->must_move, 0, op_count);
    if (try_labels(mover)) return true;
  }
  return false;
}

/* Marks what must go ahead of place `first` so that the operation at place `last` can; false: the one at `first` itself. */
static bool mark_window(move_state *mover, uint32_t first, uint32_t last) {
  const uint32_t *order = mover->plan->order;
  mover->must_move[order[last]] = 1;
  for (uint32_t place = last; place-- > first;) mover->must_move[order[place]] = feeds_mover(mover, order[place]);
  return !mover->must_move[order[first]];
}

static void arrange_window(move_state *mover, uint32_t first, uint32_t last) {
  const uint32_t *order = mover->plan->order;
  uint32_t place = first;
  for (uint32_t moves = 2; moves-- > 0;) {
    for (uint32_t i = first; i <= last; i++) {
      if (mover->must_move[order[i]] == moves) mover->trial.order[place++] = order[i];
    }
  }
}

static bool try_overtaking(move_state *mover, uint32_t o) {
  const uint32_t before = mover->before[o];
  if (before == TM_SOLVER_NONE) return false;
  const uint32_t first = mover->places[before], last = mover->places[o];
  if (last - first > LONGEST_OVERTAKING) return false;
  const bool can_overtake = mark_window(mover, first, last);
  if (can_overtake) {
    begin_trial(mover);
    arrange_window(mover, first, last);
  }
  for (uint32_t i = first; i <= last; i++) mover->must_move[mover->plan->order[i]] = 0;
  return can_overtake && keep_if_better(mover);
}

/* ---- rounds ---- */

static bool try_one_move(move_state *mover) {
  for (uint32_t i = 0; i < mover->path_count && !is_spent(mover); i++) {
    if (try_overtaking(mover, mover->path[i]) || try_other_labels(mover, mover->path[i])) return true;
  }
  for (uint32_t i = 0; i < mover->path_count && !is_spent(mover); i++) {
    if (try_relatives(mover, mover->path[i], true) || try_relatives(mover, mover->path[i], false)) return true;
  }
  for (uint32_t length = 2; length <= mover->path_count; length = length < 4 ? length + 1 : length * 2) {
    for (uint32_t i = 0; i + length <= mover->path_count && !is_spent(mover); i++) {
      if (try_run(mover, i, i + length - 1)) return true;
    }
  }
  return mover->path_count > 2 && !is_spent(mover) && try_run(mover, 0, mover->path_count - 1);
}

tm_status tm_critical_moves_improve(tm_plan_judge *judge, tm_judged_plan *plan, uint64_t bound_ns, uint64_t last_step,
                                    tm_arena *arena, bool *out_has_moved, tm_error *error) {
  move_state mover = { .judge = judge, .plan = plan, .bound_ns = bound_ns, .last_step = last_step };
  TM_TRY(init(&mover, arena, error));
  *out_has_moved = false;
  while (!is_spent(&mover)) {
    find_path(&mover);
    if (!try_one_move(&mover)) break;
    *out_has_moved = true;
  }
  return TM_OK;
}
