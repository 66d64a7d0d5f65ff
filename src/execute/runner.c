/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/runner.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "execute/staging.h"
#include "execute/trial_operands.h"
#include "plugin/device.h"

/* Every run is measured until this many, then one in so many: the estimate is settled, and the clock is not free. */
#define MEASURE_ALL_RUNS 32u
#define MEASURE_ONE_IN 16u
/* A device's first launches, and the first run of whatever needs a set-up, pay for things that happen once. */
#define WARM_UP_LAUNCHES 8u
#define MOST_TRIES 512u
#define MOST_ASKS 3u            /* answers that keep going stale are as good as none */

/* ---- one candidate, operands as it wants them ---- */

/* Aligned and padded like a buffer of the device's memory. */
static tm_scratch_block take_workspace(const tm_runner *runner, const tm_plan_candidate *candidate, tm_binding *out_binding) {
  const tm_memory_space *space = &candidate->device->memories[0];
  const uint64_t slack = space->alignment > TM_SCRATCH_ALIGNMENT ? space->alignment : 0;
  const uint64_t bytes = candidate->answer.workspace_bytes;
  const tm_scratch_block block = tm_scratch_take(runner->scratch, bytes + slack + space->store_granule - 1);
  const uintptr_t start = ((uintptr_t)block.memory + space->alignment - 1) & ~((uintptr_t)space->alignment - 1);
  *out_binding = (tm_binding){ (tm_buffer *)start, 0, bytes };
  return block;
}

static tm_status run_in_place(const tm_runner *runner, tm_plan_candidate *candidate, tm_kernel *kernel, void *const *pointers,
                              tm_device_use *use, tm_error *error) {
  const tm_operation *operation = &candidate->operation;
  uint32_t count = operation->input_count + operation->output_count;
  tm_binding bindings[TM_MAX_OPERANDS + 1];
  for (uint32_t i = 0; i < count; i++) bindings[i] = (tm_binding){ pointers[i], 0, candidate->operands[i].byte_count };
  tm_scratch_block workspace = { NULL, 0 };
  if (candidate->answer.workspace_bytes != 0) {
    workspace = take_workspace(runner, candidate, &bindings[count]);
    if (workspace.memory == NULL)
      return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a workspace of %llu bytes",
                     (unsigned long long)candidate->answer.workspace_bytes);
    count++;
  }
  const tm_status status = tm_device_run(use, kernel, bindings, count, error);
  if (!use->is_abandoned) tm_scratch_give(runner->scratch, workspace);
  return status;
}

/* How many runs this one stands for; 0: it is not measured. */
static uint64_t measured_runs(uint64_t runs) {
  if (runs < MEASURE_ALL_RUNS) return 1;
  return runs % MEASURE_ONE_IN == 0 ? MEASURE_ONE_IN : 0;
}

/* Operands lie where the application has them: on a device that is particular about it they may have to be moved first.
   One that writes whole units must not reach beyond an output that it shares memory with. */
static bool works_in_place(const tm_plan_candidate *candidate, void *const *pointers) {
  const tm_memory_space *space = &candidate->device->memories[0];
  if (!candidate->device->is_host_memory) return false;
  const tm_operation *operation = &candidate->operation;
  for (uint32_t i = 0; i < operation->input_count + operation->output_count; i++) {
    const tm_operand *operand = &candidate->operands[i];
    const bool is_whole = (operand->flags & TM_OPERAND_CONTIGUOUS) != 0 && operand->byte_count % space->store_granule == 0 &&
                          (uintptr_t)pointers[i] % space->store_granule == 0;
    if (operand->byte_count != 0 && (uintptr_t)pointers[i] % space->alignment != 0) return false;
    if (i >= operation->input_count && space->store_granule > 1 && !is_whole) return false;
  }
  return true;
}

static bool is_warm(const tm_plan_candidate *candidate, uint64_t runs) {
  if (runs > 0) return true;
  return candidate->answer.setup_ns == 0 && atomic_load(&candidate->device->launch_count) > WARM_UP_LAUNCHES;
}

/* One run of a kernel, as far as it was measured. */
typedef struct kernel_run {
  uint64_t run_count;           /* runs that this one stands for; 0: nothing is to be learned from it */
  uint64_t taken_ns;            /* copies included */
  uint64_t copy_ns;
} kernel_run;

static void learn(const tm_runner *runner, tm_placement *placement, tm_plan_candidate *candidate, const kernel_run *run) {
  const uint64_t kernel_ns = run->taken_ns > run->copy_ns ? run->taken_ns - run->copy_ns : 1;
  tm_placement_learn(runner->table, placement, candidate, kernel_ns, run->run_count);
  if (run->copy_ns != 0 && candidate->basis.copied_bytes != 0)
    tm_correction_learn_copy(runner->table->market.correction, candidate->device->index, candidate->basis.copied_bytes, run->copy_ns);
}

/* *out_abandoned: it never came back, and may still use what `pointers` name. */
static tm_status run_once(const tm_runner *runner, tm_plan_candidate *candidate, tm_kernel *kernel, void *const *pointers,
                          uint64_t *out_copy_ns, bool *out_abandoned, tm_error *error) {
  tm_device_use use = tm_device_use_begin(candidate->device);
  use.trial = candidate->trial;
  use.cancelled = runner->cancelled;
  use.expected_ns = candidate->answer.cost_ns;
  const tm_status status = works_in_place(candidate, pointers)
                               ? run_in_place(runner, candidate, kernel, pointers, &use, error)
                               : tm_staging_run(candidate, kernel, pointers, &use, out_copy_ns, error);
  *out_abandoned = use.is_abandoned;
  tm_device_use_end(&use);
  return status;
}

/* As long as it has to prove itself, in memory that nobody else has a use for. */
static tm_status run_on_trial(const tm_runner *runner, tm_plan_candidate *candidate, tm_kernel *kernel, void *const *pointers,
                              uint64_t *out_copy_ns, tm_error *error) {
  tm_trial_operands own;
  bool is_abandoned = false;
  const bool is_own = tm_trial_is_watched(candidate->trial) &&
                      tm_trial_operands_init(&own, runner->table->memory, candidate, pointers);
  const tm_status status = run_once(runner, candidate, kernel, is_own ? own.pointers : pointers, out_copy_ns, &is_abandoned, error);
  if (status == TM_OK) tm_trial_pass(candidate->trial);
  if (is_own && status == TM_OK) tm_trial_operands_collect(&own, candidate, pointers);
  if (is_own && !is_abandoned) tm_trial_operands_deinit(&own);
  if (!is_own && is_abandoned) atomic_store(&candidate->holds_operands, true);
  return status;
}

static tm_status run_proven(const tm_runner *runner, tm_plan_candidate *candidate, tm_kernel *kernel, void *const *pointers,
                            uint64_t *out_copy_ns, tm_error *error) {
  bool is_abandoned = false;
  const tm_status status = run_once(runner, candidate, kernel, pointers, out_copy_ns, &is_abandoned, error);
  if (is_abandoned) atomic_store(&candidate->holds_operands, true);
  return status;
}

static tm_status run_kernel(const tm_runner *runner, tm_plan_candidate *candidate, tm_kernel *kernel, void *const *pointers, bool is_timed,
                            kernel_run *out_run, tm_error *error) {
  const uint64_t runs = atomic_fetch_add_explicit(&candidate->runs, 1, memory_order_relaxed);
  const uint64_t run_count = measured_runs(runs);
  const bool measure = is_timed || run_count != 0;
  const uint64_t begin = measure ? tm_now_ns() : 0;
  uint64_t copy_ns = 0;
  const bool is_proven = tm_trial_is_over(candidate->trial);
  if (is_proven)
    TM_TRY(run_proven(runner, candidate, kernel, pointers, &copy_ns, error));
  else
    TM_TRY(run_on_trial(runner, candidate, kernel, pointers, &copy_ns, error));
  const bool is_telling = run_count != 0 && is_proven && is_warm(candidate, runs);
  *out_run = (kernel_run){ is_telling ? run_count : 0, measure ? tm_now_ns() - begin : 0, copy_ns };
  return TM_OK;
}

/* ---- lowerings: steps before and after, in scratch memory ---- */

/* A step that nobody could run is not the fault of the device that it was made for. */
static tm_status step_failure(tm_status status) { return status == TM_ERROR_NO_MEMORY ? status : TM_ERROR_PREDECESSOR; }

/* What happened to a step happened to the whole. */
static void merge_outcome(const tm_run_outcome *step, tm_run_outcome *outcome) {
  if (outcome == NULL || step->retries == 0) return;
  outcome->retries += step->retries;
  outcome->fell_back |= step->fell_back;
  memcpy(outcome->note, step->note, sizeof outcome->note);
}

static tm_status run_steps(const tm_runner *runner, const tm_placement *placement, const tm_plan_candidate *candidate, bool outputs,
                           void *const *original, void *const *changed, tm_run_outcome *outcome, tm_error *error) {
  const tm_operation whole = tm_request_operation(&placement->request);
  tm_operand normal[TM_MAX_OPERANDS];
  memcpy(normal, placement->request.operands, sizeof normal);
  tm_operation operation = whole;
  operation.operands = normal;
  tm_op_normalize(&operation, normal);
  for (uint32_t i = 0; i < candidate->lowering.step_count; i++) {
    const tm_lowering_step *step = &candidate->lowering.steps[i];
    if ((step->operand >= whole.input_count) != outputs) continue;
    tm_request request;
    tm_lowering_request(step, &normal[step->operand], outputs, &request);
    void *pair[2] = { original[step->operand], changed[step->operand] };
    if (outputs) {
      pair[0] = changed[step->operand];
      pair[1] = original[step->operand];
    }
    tm_run_outcome step_outcome;
    const tm_status status = tm_runner_run(runner, &request, pair, outcome == NULL ? NULL : &step_outcome, error);
    if (status != TM_OK) return step_failure(status);
    if (outcome != NULL) merge_outcome(&step_outcome, outcome);
  }
  return TM_OK;
}

static tm_status run_lowered(const tm_runner *runner, tm_placement *placement, tm_plan_candidate *candidate, tm_kernel *kernel,
                             void *const *pointers, kernel_run *out_run, tm_run_outcome *outcome, tm_error *error) {
  const tm_lowering *lowering = &candidate->lowering;
  const uint32_t count = candidate->operation.input_count + candidate->operation.output_count;
  tm_scratch_block blocks[TM_MAX_CHANGES];
  void *changed[TM_MAX_OPERANDS];
  memcpy(changed, pointers, count * sizeof *changed);
  memset(blocks, 0, sizeof blocks);
  tm_status status = TM_OK;
  for (uint32_t i = 0; status == TM_OK && i < lowering->step_count; i++) {
    blocks[i] = tm_scratch_take(runner->scratch, lowering->steps[i].changed.byte_count);
    if (blocks[i].memory == NULL) status = tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for an intermediate tensor");
    changed[lowering->steps[i].operand] = blocks[i].memory;
  }
  if (status == TM_OK) status = run_steps(runner, placement, candidate, false, pointers, changed, outcome, error);
  if (status == TM_OK) status = run_kernel(runner, candidate, kernel, changed, false, out_run, error);
  if (status == TM_OK) status = run_steps(runner, placement, candidate, true, pointers, changed, outcome, error);
  for (uint32_t i = 0; i < lowering->step_count && !atomic_load(&candidate->holds_operands); i++) tm_scratch_give(runner->scratch, blocks[i]);
  return status;
}

/* ---- trying one after the other ---- */

/* One try.  measured_ns counts neither what happens once, opening and preparing, nor what is learned from it. */
static tm_status run_candidate(const tm_runner *runner, tm_placement *placement, tm_plan_candidate *candidate, void *const *pointers,
                               tm_run_outcome *outcome, tm_error *error) {
  tm_kernel *kernel = NULL;
  TM_TRY(tm_placement_kernel(placement, candidate, &kernel, error));
  const uint64_t expected_ns = outcome != NULL ? tm_placement_expect(placement, candidate) : 0;
  const bool is_watched = tm_trial_is_watched(candidate->trial);
  kernel_run run;
  if (candidate->lowering.step_count == 0) {
    TM_TRY(run_kernel(runner, candidate, kernel, pointers, outcome != NULL, &run, error));
    if (outcome != NULL) outcome->measured_ns = run.taken_ns;
  } else {
    const uint64_t begin = outcome != NULL ? tm_now_ns() : 0;
    TM_TRY(run_lowered(runner, placement, candidate, kernel, pointers, &run, outcome, error));
    if (outcome != NULL) outcome->measured_ns = tm_now_ns() - begin;
  }
  if (atomic_load_explicit(&candidate->lacks, memory_order_relaxed) != 0) atomic_store(&candidate->lacks, 0);
  if (run.run_count != 0 && (placement->request.flags & TM_REQUEST_UNMEASURED) == 0) learn(runner, placement, candidate, &run);
  if (outcome == NULL) return TM_OK;
  outcome->expected_ns = expected_ns;
  outcome->device = candidate->device->index;
  outcome->watched = is_watched;
  outcome->level = candidate->answer.level;
  outcome->numerics = candidate->answer.numerics;
  return TM_OK;
}

/* What is kept for speed is given up before a device is; one that keeps lacking memory comes last for a while. */
static tm_status try_candidate(const tm_runner *runner, tm_placement *placement, tm_plan_candidate *candidate, void *const *pointers,
                               tm_run_outcome *outcome, tm_error *error) {
  tm_status status = run_candidate(runner, placement, candidate, pointers, outcome, error);
  if (status != TM_ERROR_NO_MEMORY) return status;
  tm_memory_reclaim(runner->table->memory);
  status = run_candidate(runner, placement, candidate, pointers, outcome, error);
  if (status == TM_ERROR_NO_MEMORY) tm_placement_demote(placement, candidate);
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
  char     note[256];           /* the last one */
} failures;

static void note_failure(const tm_runner *runner, tm_plan_candidate *candidate, tm_status status, const tm_error *error, failures *failed) {
  snprintf(failed->note, sizeof failed->note, "%s: %s%s%.180s", candidate->device->name, tm_status_name(status),
           error->text[0] == '\0' ? "" : ": ", error->text);
  if (status == TM_ERROR_DEVICE_LOST) tm_inventory_retire(candidate->device, TM_DEVICE_LOST);
  if (status == TM_ERROR_NO_MEMORY) failed->lacked_memory = true;
  if (!is_forgivable(status)) {
    failed->broke_promise = true;
    tm_health_record_violation(runner->table->market.health, candidate->device, &candidate->operation, failed->note);
  }
  tm_log_write(&runner->table->market.inventory->log, TM_LOG_WARNING, "%s; trying the next best", failed->note);
}

/* Why nobody else is to be tried; TM_OK: somebody is. */
static tm_status last_word(const tm_runner *runner, const tm_plan_candidate *candidate, tm_status status, const failures *failed,
                           tm_error *error) {
  const bool is_cancelled = runner->cancelled != NULL && atomic_load(runner->cancelled) != 0;
  if (status == TM_ERROR_CANCELLED && is_cancelled) return tm_fail(error, status, "cancelled");
  if (atomic_load(&candidate->holds_operands))
    return tm_fail(error, TM_ERROR_INTERNAL, "%s; it may still use the operands", failed->note);
  if (!runner->is_strict) return TM_OK;
  return tm_fail(error, status < 0 ? status : TM_ERROR_INTERNAL, "%s; nobody else is asked, as this is strict", failed->note);
}

/* A device that broke a promise gets no second try within the call, however it would go about it. */
static void give_up_device(const tm_placement *placement, const tm_device_slot *device, failures *failed) {
  for (uint32_t i = 0; i < placement->candidate_count && failed->tried_count < MOST_TRIES; i++)
    if (placement->candidates[i].device == device) failed->tried[failed->tried_count++] = i;
}

/* "a:0 (reason), b:0 (reason)", as far as there is room. */
typedef struct name_list {
  char   text[760];
  size_t used;
} name_list;

static void list_add(name_list *list, const char *name, const char *reason) {
  if (list->used >= sizeof list->text) return;
  const int length = snprintf(list->text + list->used, sizeof list->text - list->used, "%s%s (%s)", list->used == 0 ? "" : ", ",
                              name, reason);
  list->used += length < 0 ? 0 : (size_t)length;
}

/* Nobody could even be asked: what became of those that there are. */
static void list_backends(const tm_inventory *inventory, name_list *list) {
  for (uint32_t i = 0; i < inventory->backend_count; i++) {
    const tm_backend_slot *backend = inventory->backends[i];
    if (atomic_load(&backend->state) == TM_BACKEND_QUARANTINED) list_add(list, backend->name, backend->stuck_reason);
    else if (backend->reason[0] != '\0') list_add(list, backend->name, backend->reason);
  }
}

static tm_status nobody(const tm_runner *runner, const tm_placement *placement, const failures *failed, tm_error *error) {
  if (failed->lacked_memory) return tm_fail(error, TM_ERROR_NO_MEMORY, "%s", failed->note);
  const tm_op_row *row = tm_op_find(placement->request.op);
  name_list list = { .used = 0 };
  for (uint32_t i = 0; i < placement->candidate_count; i++) {
    const tm_plan_candidate *candidate = &placement->candidates[i];
    const bool is_silent = candidate->reason[0] == '\0' || tm_candidate_can_run(candidate);
    list_add(&list, candidate->device->name, is_silent ? "failed" : candidate->reason);
  }
  if (placement->candidate_count == 0) list_backends(runner->table->market.inventory, &list);
  return tm_fail(error, TM_ERROR_NO_DEVICE, "no device can run %s as asked: %s%s%.180s", row == NULL ? "it" : row->name,
                 list.text, failed->note[0] == '\0' ? "" : "; last failure: ", failed->note);
}

/* The way after the first failure: the next best, until one runs or none is left. */
static tm_status fall_back(const tm_runner *runner, tm_placement *placement, uint32_t index, tm_status status, void *const *pointers,
                           tm_run_outcome *outcome, tm_error *last, tm_error *error) {
  failures failed = { .tried_count = 0 };
  while (failed.tried_count < MOST_TRIES) {
    const tm_plan_candidate *candidate = &placement->candidates[index];
    note_failure(runner, &placement->candidates[index], status, last, &failed);
    TM_TRY(last_word(runner, candidate, status, &failed, error));
    if (!is_forgivable(status)) give_up_device(placement, candidate->device, &failed);
    if (failed.tried_count < MOST_TRIES) failed.tried[failed.tried_count++] = index;
    failed.retries++;
    index = tm_placement_next(placement, failed.tried, failed.tried_count);
    if (index >= placement->candidate_count) break;
    last->text[0] = '\0';
    status = try_candidate(runner, placement, &placement->candidates[index], pointers, outcome, last);
    if (status != TM_OK) continue;
    if (outcome != NULL) {
      outcome->retries += failed.retries;
      outcome->fell_back |= failed.broke_promise;
      memcpy(outcome->note, failed.note, sizeof outcome->note);
    }
    return TM_OK;
  }
  return nobody(runner, placement, &failed, error);
}

/* TM_STALE only if `may_be_stale`: then the devices are asked again. */
static tm_status run_best(const tm_runner *runner, tm_placement *placement, bool may_be_stale, void *const *pointers,
                          tm_run_outcome *outcome, tm_error *error) {
  const uint32_t index = tm_placement_choose(placement);
  if (index >= placement->candidate_count) return nobody(runner, placement, &(failures){ .tried_count = 0 }, error);
  tm_error own;
  own.struct_size = sizeof own;
  own.text[0] = '\0';
  const tm_status status = try_candidate(runner, placement, &placement->candidates[index], pointers, outcome, &own);
  if (status == TM_OK || (status == TM_STALE && may_be_stale)) return status;
  return fall_back(runner, placement, index, status, pointers, outcome, &own, error);
}

tm_status tm_runner_run(const tm_runner *runner, const tm_request *request, void *const *pointers, tm_run_outcome *out_outcome,
                        tm_error *error) {
  tm_run_outcome outcome;
  if (out_outcome != NULL) memset(&outcome, 0, sizeof outcome);
  tm_status status = TM_STALE;
  for (uint32_t ask = 1; status == TM_STALE; ask++) {
    tm_placement *placement = NULL;
    TM_TRY(tm_placement_acquire(runner->table, request, &placement, error));
    status = run_best(runner, placement, ask < MOST_ASKS, pointers, out_outcome == NULL ? NULL : &outcome, error);
    tm_placement_release(runner->table, placement);
    if (status == TM_STALE) atomic_fetch_add(&runner->table->market.inventory->generation, 1);
  }
  if (status == TM_OK && out_outcome != NULL) *out_outcome = outcome;
  return status;
}
