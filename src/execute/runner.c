/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/runner.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/reason_list.h"
#include "execute/lowered_run.h"
#include "execute/sampled_check.h"
#include "execute/tile_trial.h"
#include "plugin/device.h"
#include "plugin/left_out.h"
#include "schedule/exploration.h"

#define MOST_TRIES 512u
#define MOST_ASKS 3u            /* answers that keep going stale are as good as none */

/* One call, whichever candidate it tries. */
typedef struct call {
  const tm_runner *runner;
  tm_placement    *placement;
  void *const     *pointers;
  const uint64_t  *origins;
  tm_run_outcome  *outcome;             /* NULL: not wanted */
} call;

/* ---- trying one after the other ---- */

static const uint64_t no_origins[TM_MAX_OPERANDS];

static tm_status run_lowered(const call *c, tm_plan_candidate *candidate, tm_kernel *kernel, tm_kernel_run *out_run,
                             tm_error *error) {
  static tm_status (*const programs[])(const tm_lowered_run *run) = { [TM_LOWERING_CHANGED] = tm_lowered_run_changed,
                                                                      [TM_LOWERING_QUANTIZED] = tm_lowered_run_quantized,
                                                                      [TM_LOWERING_SPLIT] = tm_lowered_run_split };
  tm_request whole = c->placement->request;
  tm_request_set_apart(&whole);
  tm_operation operation = tm_request_operation(&whole);
  tm_op_normalize(&operation, whole.operands);
  const tm_lowered_run run = { c->runner, &whole, candidate, kernel, c->pointers, c->origins == NULL ? no_origins : c->origins,
                               c->outcome, out_run, error };
  return programs[candidate->lowering->kind](&run);
}

static tm_status run_one(const call *c, tm_plan_candidate *candidate, tm_kernel *kernel, tm_kernel_run *out_run, tm_error *error) {
  const bool is_timed = c->outcome != NULL;
  if (candidate->lowering == NULL) {
    TM_TRY(tm_kernel_run_once(c->runner, candidate, kernel, c->pointers, NULL, is_timed, out_run, error));
    if (is_timed) c->outcome->measured_ns = out_run->taken_ns;
    return TM_OK;
  }
  const tm_clock *clock = &candidate->device->backend->inventory->clock;
  const uint64_t begin = is_timed ? tm_clock_now(clock) : 0;
  TM_TRY(run_lowered(c, candidate, kernel, out_run, error));
  if (is_timed) c->outcome->measured_ns = tm_clock_since(clock, begin);
  return TM_OK;
}

/* ---- is it right? ---- */

/* What a lowering is of, as its kernel alone cannot be looked at: what that works on may be packed. */
static tm_status check_lowered(const call *c, tm_checked_run *run, tm_error *error) {
  tm_request whole = c->placement->request;
  tm_request_set_apart(&whole);
  tm_operation operation = tm_request_operation(&whole);
  tm_op_normalize(&operation, whole.operands);
  run->operation = &operation;
  return tm_sampled_check(c->runner, run, error);
}

/* Runs that nobody measured are accounted for by the next that is. */
static tm_status check_result(const call *c, tm_plan_candidate *candidate, const tm_kernel_run *run, tm_error *error) {
  if (run->taken_ns == 0 || !tm_sampled_check_is_for(candidate)) return TM_OK;
  tm_checked_run what = { .candidate = candidate, .operation = &candidate->operation, .pointers = c->pointers,
                          .taken_ns = run->taken_ns, .run_count = c->outcome == NULL && run->run_count != 0 ? run->run_count : 1 };
  return candidate->lowering == NULL ? tm_sampled_check(c->runner, &what, error) : check_lowered(c, &what, error);
}

/* What the device failed at in the tile; a broken promise was noted then, and of what else it may fail at the whole will tell. */
static tm_status fail_tile(const call *c, const tm_plan_candidate *candidate, bool broke_promise, tm_status status, const char *text,
                           tm_error *error) {
  if (broke_promise && c->outcome != NULL) c->outcome->fell_back = 1;
  if (broke_promise) return tm_fail(error, TM_ERROR_PREDECESSOR, "%s", text);
  const bool is_passed_on = status == TM_ERROR_CANCELLED || !tm_device_is_usable(candidate->device);
  return is_passed_on ? tm_fail(error, status, "%s", text) : TM_OK;
}

/* A first look at little, where all of it could not be afforded.   TM_ERROR_PREDECESSOR: it was wrong, and that was noted.
   TM_ERROR_DEVICE_LOST, TM_ERROR_CANCELLED */
static tm_status check_tile(const call *c, tm_plan_candidate *candidate, tm_error *error) {
  tm_request tile;
  if (!tm_sampled_check_cut(candidate, &c->placement->request, &tile)) return TM_OK;
  const uint64_t bytes = tile.operands[tile.input_count].byte_count, broken = atomic_load(&candidate->device->violation_count);
  tm_scratch_block block = tm_scratch_take(c->runner->scratch, bytes);
  if (block.memory == NULL) return TM_OK;
  void *pointers[TM_MAX_OPERANDS];
  memcpy(pointers, c->pointers, tile.input_count * sizeof *pointers);
  pointers[tile.input_count] = block.memory;
  tm_runner strict = *c->runner;
  strict.is_strict = true;
  strict.denied = NULL;
  tm_last_word last = { .is_held = false };
  strict.last_word = &last;
  tm_error own = TM_ERROR_INIT;
  const tm_status status = tm_runner_run_from(&strict, &tile, pointers, NULL, NULL, &own);
  if (last.is_held) atomic_store(&candidate->holds_operands, true);
  else tm_scratch_give(c->runner->scratch, block);
  if (status == TM_OK) return TM_OK;
  const char *text = last.note[0] == '\0' || last.is_held ? own.text : last.note;
  return fail_tile(c, candidate, atomic_load(&candidate->device->violation_count) != broken, status, text, error);
}

/* One try.  measured_ns counts neither what happens once, opening and preparing, nor what is learned from it. */
static tm_status run_candidate(const call *c, tm_plan_candidate *candidate, tm_error *error) {
  tm_kernel *kernel = NULL;
  const bool has_kernel = candidate->lowering == NULL || !candidate->lowering->has_inner;
  if (has_kernel) TM_TRY(tm_placement_kernel(c->placement, candidate, c->runner->cancelled, &kernel, error));
  const uint64_t expected_ns = c->outcome != NULL ? tm_placement_expect(c->placement, candidate) : 0;
  const bool is_watched = has_kernel && tm_trial_is_watched(candidate->trial);
  tm_kernel_run run = { .run_count = 0 };
  if (is_watched) TM_TRY(check_tile(c, candidate, error));
  TM_TRY(run_one(c, candidate, kernel, &run, error));
  if (has_kernel) TM_TRY(check_result(c, candidate, &run, error));
  if (atomic_load_explicit(&candidate->lacks, memory_order_relaxed) != 0) atomic_store(&candidate->lacks, 0);
  if ((candidate->setup_count | candidate->constant_ns) != 0)
    tm_placement_pay(c->runner->table, c->placement, candidate, c->pointers, c->origins);
  if (run.taken_ns != 0 && (c->placement->request.flags & TM_REQUEST_UNMEASURED) == 0)
    tm_kernel_run_learn(c->runner, c->placement, candidate, &run);
  if (c->outcome == NULL) return TM_OK;
  c->outcome->expected_ns = expected_ns;
  c->outcome->device = candidate->device->index;
  c->outcome->watched |= is_watched;
  c->outcome->trial = has_kernel ? candidate->trial : NULL;
  c->outcome->level = candidate->answer.level;
  c->outcome->numerics = candidate->answer.numerics;
  return TM_OK;
}

/* What is kept for speed is given up before a device is.  One that keeps lacking memory comes last for a while, and so does
   a lowering whose steps fail, or that the numbers are no good for. */
static tm_status try_candidate(const call *c, tm_plan_candidate *candidate, tm_error *error) {
  tm_status status = run_candidate(c, candidate, error);
  if (status == TM_ERROR_PREDECESSOR && candidate->lowering != NULL) tm_placement_demote(c->placement, candidate);
  if (status != TM_ERROR_NO_MEMORY) return status;
  const bool was_tried_twice = candidate->lowering != NULL && candidate->lowering->has_inner;    /* by what is inside */
  if (!was_tried_twice) {
    tm_memory_reclaim(c->runner->table->memory);
    status = run_candidate(c, candidate, error);
  }
  if (status == TM_ERROR_NO_MEMORY) tm_placement_demote(c->placement, candidate);
  return status;
}

/* Lack of resources, a moved epoch and what others did are no broken promise; anything else is. */
static bool is_forgivable(tm_status status) {
  return status == TM_ERROR_NO_MEMORY || status == TM_BUSY || status == TM_STALE || status == TM_ERROR_DEVICE_LOST ||
         status == TM_ERROR_CANCELLED || status == TM_ERROR_PREDECESSOR;
}

/* What went wrong so far in one call. */
typedef struct failures {
  uint32_t tried[MOST_TRIES];
  uint32_t tried_count;
  uint32_t retries;
  bool     broke_promise;
  bool     lacked_memory;
  char     note[TM_RUN_NOTE_BYTES];     /* the last one */
} failures;

/* Each run begins with none; so only what is read before it is written is cleared. */
static void begin_without(failures *failed) {
  failed->tried_count = failed->retries = 0;
  failed->broke_promise = failed->lacked_memory = false;
  failed->note[0] = '\0';
}

void tm_runner_note_device(const tm_runner *runner, tm_device_slot *device, tm_status status, const tm_error *error,
                           char out_note[TM_RUN_NOTE_BYTES]) {
  snprintf(out_note, TM_RUN_NOTE_BYTES, "%s: %s%s%.180s", device->name, tm_status_name(status), error->text[0] == '\0' ? "" : ": ",
           error->text);
  if (status != TM_ERROR_DEVICE_LOST) return;
  tm_inventory_retire(device, TM_DEVICE_LOST);
  tm_kept_drop(runner->kept, device);
}

void tm_runner_note_failure(const tm_runner *runner, tm_plan_candidate *candidate, tm_status status, const tm_error *error,
                            char out_note[TM_RUN_NOTE_BYTES]) {
  tm_runner_note_device(runner, candidate->device, status, error, out_note);
  if (!is_forgivable(status))
    tm_health_record_violation(runner->table->market.health, candidate->device, &candidate->operation, out_note);
}

static void note_failure(const tm_runner *runner, tm_plan_candidate *candidate, tm_status status, const tm_error *error, failures *failed) {
  tm_runner_note_failure(runner, candidate, status, error, failed->note);
  if (status == TM_ERROR_NO_MEMORY) failed->lacked_memory = true;
  if (!is_forgivable(status)) failed->broke_promise = true;
}

static bool is_cancelled(const tm_runner *runner) { return runner->cancelled != NULL && atomic_load(runner->cancelled) != 0; }

tm_status tm_runner_told_status(const tm_runner *runner, tm_status status) {
  const bool is_theirs = status == TM_ERROR_NO_MEMORY || status == TM_ERROR_DEVICE_LOST;
  return is_theirs || (status == TM_ERROR_CANCELLED && is_cancelled(runner)) ? status : TM_ERROR_INTERNAL;
}

/* Why nobody else is to be tried; TM_OK: somebody is. */
static tm_status last_word(const tm_runner *runner, const tm_plan_candidate *candidate, tm_status status, const failures *failed,
                           tm_error *error) {
  const bool is_held = atomic_load(&candidate->holds_operands);
  if (!is_held && !runner->is_strict) return TM_OK;
  if (runner->last_word != NULL) {
    runner->last_word->is_held |= is_held;
    memcpy(runner->last_word->note, failed->note, sizeof failed->note);
  }
  if (is_held) return tm_fail(error, TM_ERROR_INTERNAL, "%s; it may still use the operands", failed->note);
  return tm_fail(error, tm_runner_told_status(runner, status), "%s; nobody else is asked, as this is strict", failed->note);
}

static void say_next(const tm_runner *runner, const failures *failed) {
  tm_log_write(&runner->table->market.inventory->log, TM_LOG_WARNING, "%s; trying the next best", failed->note);
}

/* A device that broke a promise gets no second try within the call, however it would go about it. */
static void give_up_device(const tm_placement *placement, const tm_device_slot *device, failures *failed) {
  for (uint32_t i = 0; i < placement->candidate_count && failed->tried_count < MOST_TRIES; i++)
    if (placement->candidates[i].device == device) failed->tried[failed->tried_count++] = i;
}

/* Nobody could even be asked: what became of those that there are. */
static void list_backends(const tm_inventory *inventory, tm_reason_list *list) {
  for (uint32_t i = 0; i < inventory->backend_count; i++) {
    const tm_backend_slot *backend = inventory->backends[i];
    if (atomic_load(&backend->state) == TM_BACKEND_QUARANTINED) tm_reason_list_add(list, backend->name, backend->stuck_reason);
    else if (backend->reason[0] != '\0') tm_reason_list_add(list, backend->name, backend->reason);
  }
}

static bool is_denied(const tm_runner *runner, const tm_placement *placement, uint32_t index) {
  return runner->denied != NULL && runner->denied[placement->candidates[index].device->index] != 0;
}

/* Broke its promise since it was asked, in this run or another one. */
static bool is_quarantined(const tm_runner *runner, const tm_plan_candidate *candidate, char out_reason[TM_HEALTH_REASON_BYTES]) {
  return atomic_load(&candidate->device->violation_count) != 0 &&
         tm_health_is_quarantined(runner->table->market.health, candidate->device, &candidate->operation, out_reason);
}

static tm_status nobody(const tm_runner *runner, const tm_placement *placement, const failures *failed, tm_error *error) {
  char reason[TM_HEALTH_REASON_BYTES], left_out[TM_LEFT_OUT_BYTES] = "";
  if (failed->lacked_memory) return tm_fail(error, TM_ERROR_NO_MEMORY, "%s", failed->note);
  const tm_op_row *row = tm_op_find(placement->request.op);
  tm_reason_list list = { .used = 0 };
  for (uint32_t i = 0; i < placement->candidate_count; i++) {
    const tm_plan_candidate *candidate = &placement->candidates[i];
    const bool is_silent = candidate->reason[0] == '\0' || tm_candidate_can_run(candidate);
    const char *what = is_quarantined(runner, candidate, reason) ? reason : is_silent ? "failed" : candidate->reason;
    tm_reason_list_add(&list, candidate->device->name, is_denied(runner, placement, i) ? "not allowed" : what);
  }
  if (placement->candidate_count == 0) list_backends(runner->table->market.inventory, &list);
  else tm_left_out_describe(runner->table->market.inventory, left_out);
  tm_reason_list_end(&list);
  return tm_fail(error, TM_ERROR_NO_DEVICE, "no device can run %s as asked: %s%s%.180s%s", row == NULL ? "it" : row->name,
                 list.text, failed->note[0] == '\0' ? "" : "; last failure: ", failed->note, left_out);
}

static bool is_out(const tm_runner *runner, const tm_plan_candidate *candidate) {
  char reason[TM_HEALTH_REASON_BYTES];
  return !tm_device_is_usable(candidate->device) || is_quarantined(runner, candidate, reason);
}

/* What must not be used, or is not to be asked any more, counts as tried. */
static void leave_out(const tm_runner *runner, const tm_placement *placement, failures *failed) {
  for (uint32_t i = 0; i < placement->candidate_count && failed->tried_count < MOST_TRIES; i++)
    if (is_denied(runner, placement, i) || is_out(runner, &placement->candidates[i])) failed->tried[failed->tried_count++] = i;
}

/* The way after the first failure: the next best, until one runs or none is left. */
static tm_status fall_back(const call *c, uint32_t index, tm_status status, tm_error *last, tm_error *error) {
  tm_placement *placement = c->placement;
  failures failed = { .tried_count = 0 };
  leave_out(c->runner, placement, &failed);
  while (failed.tried_count < MOST_TRIES) {
    const tm_plan_candidate *candidate = &placement->candidates[index];
    if (is_cancelled(c->runner) && status == TM_ERROR_CANCELLED) return tm_fail(error, status, "cancelled");
    note_failure(c->runner, &placement->candidates[index], status, last, &failed);
    TM_TRY(last_word(c->runner, candidate, status, &failed, error));
    if (is_cancelled(c->runner)) return tm_fail(error, TM_ERROR_CANCELLED, "cancelled");
    say_next(c->runner, &failed);
    if (!is_forgivable(status)) give_up_device(placement, candidate->device, &failed);
    if (failed.tried_count < MOST_TRIES) failed.tried[failed.tried_count++] = index;
    failed.retries++;
    index = tm_placement_next(placement, failed.tried, failed.tried_count);
    if (index >= placement->candidate_count) break;
    last->text[0] = '\0';
    status = try_candidate(c, &placement->candidates[index], last);
    if (status != TM_OK) continue;
    if (c->outcome != NULL) {
      c->outcome->retries += failed.retries;
      c->outcome->fell_back |= failed.broke_promise;
      memcpy(c->outcome->note, failed.note, sizeof c->outcome->note);
    }
    return TM_OK;
  }
  return nobody(c->runner, placement, &failed, error);
}

static uint32_t next_allowed(const tm_runner *runner, tm_placement *placement) {
  failures failed = { .tried_count = 0 };
  leave_out(runner, placement, &failed);
  return tm_placement_next(placement, failed.tried, failed.tried_count);
}

static uint32_t choose(const call *c) {
  const tm_choice_site site = { c->pointers, c->origins, c->runner->repeats };
  return tm_placement_choose(c->runner->table, c->placement, &site);
}

/* What a device failed at in its first tile is told of like any other failure. */
static void note_tile(const call *c, bool broke_promise, const tm_error *error) {
  if (c->outcome == NULL) return;
  c->outcome->retries++;
  c->outcome->fell_back |= broke_promise;
  snprintf(c->outcome->note, sizeof c->outcome->note, "a first tile: %.200s", error->text);
}

/* A first tile for a device of which nothing is known; *inout_index is chosen anew after it, and *failed says what was wrong.   TM_ERROR_CANCELLED,
   TM_ERROR_INTERNAL (it hung, and may still use the operands) */
static tm_status try_tile(const call *c, uint32_t *inout_index, failures *failed, tm_error *error) {
  const uint32_t index = *inout_index;
  uint64_t tiles;
  if (index >= c->placement->candidate_count || is_denied(c->runner, c->placement, index)) return TM_OK;
  tm_plan_candidate *candidate = &c->placement->candidates[index];
  if (atomic_load_explicit(&candidate->is_device_known, memory_order_relaxed) || c->runner->is_strict) return TM_OK;
  if (!tm_exploration_wants_tile(c->runner->table, c->placement, index, &tiles)) return TM_OK;
  const tm_clock *clock = &candidate->device->backend->inventory->clock;
  const uint64_t begin = tm_clock_now(clock), broken = atomic_load(&candidate->device->violation_count);
  tm_error own = TM_ERROR_INIT;
  const tm_status status = tm_tile_trial_run(c->runner, &c->placement->request, candidate->device, tiles, c->pointers, &own);
  tm_exploration_settle(c->runner->table, candidate, tm_clock_since(clock, begin));
  tm_placement_refresh(c->runner->table, c->placement);
  *inout_index = choose(c);
  if (status == TM_ERROR_NO_DEVICE) {
    note_tile(c, atomic_load(&candidate->device->violation_count) != broken, &own);
    snprintf(failed->note, sizeof failed->note, "a first tile: %.200s", own.text);
    leave_out(c->runner, c->placement, failed);
    give_up_device(c->placement, candidate->device, failed);
    *inout_index = tm_placement_next(c->placement, failed->tried, failed->tried_count);
  }
  if (status == TM_ERROR_INTERNAL && c->runner->last_word != NULL) c->runner->last_word->is_held = true;
  if (status == TM_ERROR_CANCELLED || status == TM_ERROR_INTERNAL) return tm_fail(error, status, "%s", own.text);
  return TM_OK;
}

/* The candidate, and the others if it fails.  TM_STALE only if `may_be_stale`: then the devices are asked again. */
static tm_status run_first(const call *c, uint32_t index, bool may_be_stale, tm_error *error) {
  tm_error own;
  own.struct_size = sizeof own;
  own.text[0] = '\0';
  const tm_status status = try_candidate(c, &c->placement->candidates[index], &own);
  if (status == TM_OK || (status == TM_STALE && may_be_stale)) return status;
  return fall_back(c, index, status, &own, error);
}

static tm_status run_best(const call *c, bool may_be_stale, tm_error *error) {
  tm_placement *placement = c->placement;
  uint32_t index = choose(c);
  failures first;
  begin_without(&first);
  TM_TRY(try_tile(c, &index, &first, error));
  if (index < placement->candidate_count && is_denied(c->runner, placement, index)) index = next_allowed(c->runner, placement);
  if (index >= placement->candidate_count) return nobody(c->runner, placement, &first, error);
  return run_first(c, index, may_be_stale, error);
}

tm_status tm_runner_run_candidate(const tm_runner *runner, tm_placement *placement, uint32_t index, void *const *pointers,
                                  const uint64_t *origins, tm_run_outcome *out_outcome, tm_error *error) {
  tm_run_outcome outcome;
  memset(&outcome, 0, sizeof outcome);
  const call c = { runner, placement, pointers, origins, &outcome };
  if (is_out(runner, &placement->candidates[index])) {
    index = next_allowed(runner, placement);
    if (index >= placement->candidate_count) return nobody(runner, placement, &(failures){ .tried_count = 0 }, error);
  }
  const tm_status status = run_first(&c, index, true, error);
  if (status == TM_STALE) {             /* what was answered holds no more: whoever placed it has to ask again */
    atomic_fetch_add(&runner->table->market.inventory->generation, 1);
    tm_request again = placement->request;
    tm_request_set_apart(&again);
    TM_TRY(tm_runner_run_from(runner, &again, pointers, origins, &outcome, error));
    outcome.retries++;
  } else if (status != TM_OK) {
    return status;
  }
  *out_outcome = outcome;
  return TM_OK;
}

tm_status tm_runner_run_from(const tm_runner *runner, const tm_request *request, void *const *pointers, const uint64_t *origins,
                             tm_run_outcome *out_outcome, tm_error *error) {
  tm_run_outcome outcome;
  if (out_outcome != NULL) memset(&outcome, 0, sizeof outcome);
  tm_status status = TM_STALE;
  for (uint32_t ask = 1; status == TM_STALE; ask++) {
    tm_placement *placement = NULL;
    TM_TRY(tm_placement_acquire(runner->table, request, runner->cancelled, &placement, error));
    const call c = { runner, placement, pointers, origins, out_outcome == NULL ? NULL : &outcome };
    status = run_best(&c, ask < MOST_ASKS, error);
    tm_placement_release(runner->table, placement);
    if (status == TM_STALE) atomic_fetch_add(&runner->table->market.inventory->generation, 1);
  }
  if (status == TM_OK && out_outcome != NULL) *out_outcome = outcome;
  return status;
}

tm_status tm_runner_run(const tm_runner *runner, const tm_request *request, void *const *pointers, tm_run_outcome *out_outcome,
                        tm_error *error) {
  return tm_runner_run_from(runner, request, pointers, NULL, out_outcome, error);
}
