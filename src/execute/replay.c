/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/replay.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "execute/careful_replay.h"
#include "execute/plan_loop.h"
#include "execute/plan_memory.h"
#include "execute/plan_stage.h"
#include "execute/recovery.h"

#define FIRST_PAUSE_RUNS 4u
#define MOST_DOUBLINGS 8u

static tm_status check_states(const tm_plan *plan, tm_error *error) {
  for (uint64_t i = 0; i < plan->graph->states.count; i++) {
    if (plan->states[i].health == TM_STATE_FINE) continue;
    char name[TM_GRAPH_LABEL_CAPACITY];
    tm_graph_name_value(plan->graph, plan->states[i].value, name, sizeof name);
    return tm_fail(error, TM_ERROR_DEVICE_LOST, "%s was lost in an earlier run; write or reset it first", name);
  }
  return TM_OK;
}

static bool are_usable(const tm_plan *plan) {
  const tm_plan_program *program = &plan->program;
  for (uint32_t i = 0; i < program->problem.place_count; i++)
    if (program->queues[i].is_used && !tm_device_is_usable(program->problem.places[i].device)) return false;
  return true;
}

static tm_status run_careful(tm_plan *plan, tm_plan_outcome *outcome, tm_error *error) {
  tm_careful_replay replay;
  TM_TRY(tm_careful_replay_init(&replay, plan, error));
  const tm_status status = tm_careful_replay_run(&replay, outcome, error);
  tm_careful_replay_deinit(&replay);
  return status;
}

/* Where nobody knows whose work it was, the run that makes good for it finds out. */
static void blame(tm_plan *plan, const tm_loop_failure *failure, tm_plan_outcome *outcome) {
  const tm_plan_action *action = &plan->program.actions[failure->blamed];
  tm_plan_program *program = &plan->program;
  if (action->kind == TM_ACTION_LAUNCH || action->kind == TM_ACTION_ENQUEUE) {
    const tm_plan_step *step = &program->steps[action->step];
    tm_placement *placement = program->problem.placements[step->placement];
    tm_runner_note_failure(&plan->runner, &placement->candidates[step->candidate], failure->status, &failure->error, outcome->note);
    if (failure->status == TM_ERROR_NO_MEMORY || failure->status == TM_BUSY)
      tm_placement_demote(placement, &placement->candidates[step->candidate]);
  } else if (action->place != TM_PLAN_NONE) {
    tm_runner_note_device(&plan->runner, program->problem.places[action->place].device, failure->status, &failure->error,
                          outcome->note);
  }
}

static tm_status make_good(tm_plan *plan, const tm_loop_failure *failure, tm_plan_outcome *outcome, tm_error *error) {
  plan->must_replace = 1;
  if (failure->is_abandoned) TM_TRY(tm_plan_states_renew(plan, error));
  if (failure->is_held)
    return tm_fail(error, TM_ERROR_INTERNAL, "%s; it may still use inputs and outputs", failure->error.text);
  const bool is_final = plan->program.actions[failure->action].kind == TM_ACTION_CAREFUL && failure->status != TM_ERROR_NO_MEMORY;
  blame(plan, failure, outcome);
  if (is_final || plan->runner.is_strict) {
    tm_plan_states_take_in(plan);
    return tm_fail(error, is_final ? failure->status : tm_runner_told_status(&plan->runner, failure->status), "%s",
                   is_final ? failure->error.text : outcome->note);
  }
  tm_log_write(&plan->runner.table->market.inventory->log, TM_LOG_WARNING,
               "%s; the rest of the graph is run again from what is left", outcome->note);
  outcome->retries++;
  outcome->fell_back = 1;
  TM_TRY(tm_plan_recover(plan, failure->action, outcome, error));
  plan->counters.failures++;
  return TM_OK;
}

static tm_status run_bound(tm_plan *plan, tm_plan_outcome *outcome, tm_error *error) {
  tm_loop_failure failure;
  tm_plan_point(plan);
  tm_plan_stage_inputs(plan);
  const bool is_measured = plan->counters.plain_runs % TM_PLAN_MEASURE_ONE_IN == 0;
  const tm_status status = is_measured ? tm_plan_loop_measured(plan, outcome, &failure)
                                       : tm_plan_loop_plain(plan, outcome, &failure);
  plan->counters.plain_runs++;
  outcome->was_plain = 1;
  if (status != TM_OK) return make_good(plan, &failure, outcome, error);
  tm_plan_stage_outputs(plan);
  return TM_OK;
}

/* Where there is no room for all of it at once, runs go node by node, and it is tried again ever more rarely. */
static void bind(tm_plan *plan) {
  tm_error error = TM_ERROR_INIT;
  if (plan->runs_until_bind != 0) {
    plan->runs_until_bind--;
    return;
  }
  const tm_status status = tm_plan_bind(plan, &error);
  if (status != TM_OK)
    tm_log_write(&plan->runner.table->market.inventory->log, TM_LOG_WARNING, "a plan cannot be replayed: %s", error.text);
  plan->runs_until_bind = status == TM_OK ? 0 : FIRST_PAUSE_RUNS << plan->bind_failures;
  plan->bind_failures = status == TM_OK ? 0 : plan->bind_failures + (plan->bind_failures < MOST_DOUBLINGS);
}

static tm_status run(tm_plan *plan, tm_plan_outcome *outcome, tm_error *error) {
  TM_TRY(check_states(plan, error));
  if (plan->must_replace || !are_usable(plan) || tm_plan_epochs(plan) != plan->program.generation)
    TM_TRY(tm_plan_place(plan, NULL, error));
  if (!plan->program.is_bound && tm_plan_is_ready(plan)) bind(plan);
  else if (plan->program.is_bound && tm_plan_states_put_out(plan, NULL) != TM_OK) tm_plan_unbind(plan);
  TM_TRY(check_states(plan, error));
  return plan->program.is_bound ? run_bound(plan, outcome, error) : run_careful(plan, outcome, error);
}

tm_status tm_plan_replay(tm_plan *plan, tm_plan_outcome *out_outcome, tm_error *error) {
  const tm_inventory *inventory = plan->runner.table->market.inventory;
  const uint64_t begin_ns = tm_now_ns(), plans = plan->counters.plans;
  const uint64_t queries = atomic_load(&inventory->query_count), prepares = atomic_load(&inventory->prepare_count);
  tm_plan_outcome *outcome = out_outcome;
  memset(outcome, 0, offsetof(tm_plan_outcome, note) + 1);
  const tm_status status = run(plan, outcome, error);
  outcome->measured_ns = tm_now_ns() - begin_ns;
  plan->recent[plan->counters.runs++ % TM_PLAN_RECENT_RUNS] =
      (tm_plan_recent){ .measured_ns = status == TM_OK ? outcome->measured_ns : 0, .was_plain = outcome->was_plain };
  outcome->query_count = atomic_load(&inventory->query_count) - queries;
  outcome->prepare_count = atomic_load(&inventory->prepare_count) - prepares;
  outcome->plan_count = plan->counters.plans - plans;
  return status;
}
