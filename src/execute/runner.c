/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/runner.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "execute/staging.h"
#include "plugin/device.h"

/* Every run is measured until this many, then one in so many: the estimate is settled, and the clock is not free. */
#define MEASURE_ALL_RUNS 32u
#define MEASURE_ONE_IN 16u

/* ---- one candidate, operands as it wants them ---- */

static tm_status run_in_place(const tm_runner *runner, tm_plan_candidate *candidate, tm_kernel *kernel, void *const *pointers,
                              tm_error *error) {
  const tm_operation *operation = &candidate->operation;
  uint32_t count = operation->input_count + operation->output_count;
  tm_binding bindings[TM_MAX_OPERANDS + 1];
  for (uint32_t i = 0; i < count; i++) bindings[i] = (tm_binding){ pointers[i], 0, candidate->operands[i].byte_count };
  tm_scratch_block workspace = { NULL, 0 };
  if (candidate->answer.workspace_bytes != 0) {
    workspace = tm_scratch_take(runner->scratch, candidate->answer.workspace_bytes);
    if (workspace.memory == NULL)
      return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a workspace of %llu bytes",
                     (unsigned long long)candidate->answer.workspace_bytes);
    bindings[count++] = (tm_binding){ workspace.memory, 0, candidate->answer.workspace_bytes };
  }
  const uint32_t queue = tm_device_queue_acquire(candidate->device);
  const tm_status status = tm_device_run(candidate->device, queue, kernel, bindings, count, error);
  tm_device_queue_release(candidate->device, queue);
  tm_scratch_give(runner->scratch, workspace);
  return status;
}

static bool should_measure(uint64_t runs) { return runs < MEASURE_ALL_RUNS || runs % MEASURE_ONE_IN == 0; }

/* A device that writes whole units must not reach beyond an output that it shares memory with. */
static bool works_in_place(const tm_plan_candidate *candidate, void *const *pointers) {
  const tm_device_slot *device = candidate->device;
  const uint32_t granule = device->memories[0].store_granule;
  if (!device->is_host_memory) return false;
  const tm_operation *operation = &candidate->operation;
  for (uint32_t i = operation->input_count; granule > 1 && i < operation->input_count + operation->output_count; i++) {
    const tm_operand *output = &candidate->operands[i];
    const bool whole = (output->flags & TM_OPERAND_CONTIGUOUS) != 0 && output->byte_count % granule == 0 &&
                       (uintptr_t)pointers[i] % granule == 0;
    if (!whole) return false;
  }
  return true;
}

static tm_status run_kernel(const tm_runner *runner, tm_placement *placement, tm_plan_candidate *candidate, void *const *pointers,
                            tm_error *error) {
  tm_kernel *kernel = NULL;
  TM_TRY(tm_placement_kernel(placement, candidate, &kernel, error));
  const uint64_t runs = atomic_fetch_add_explicit(&candidate->runs, 1, memory_order_relaxed);
  const bool measure = should_measure(runs);
  const uint64_t begin = measure ? tm_now_ns() : 0;
  uint64_t copy_ns = 0;
  if (works_in_place(candidate, pointers))
    TM_TRY(run_in_place(runner, candidate, kernel, pointers, error));
  else
    TM_TRY(tm_staging_run(candidate, kernel, pointers, &copy_ns, error));
  if (!measure || runs == 0) return TM_OK;      /* the first run pays for what happens once */
  const uint64_t taken = tm_now_ns() - begin;
  tm_placement_learn(runner->table, candidate, taken > copy_ns ? taken - copy_ns : 1);
  if (copy_ns != 0)
    tm_correction_learn_copy(runner->table->market.correction, candidate->device->index, candidate->copied_bytes, copy_ns);
  return TM_OK;
}

/* ---- lowerings: steps before and after, in scratch memory ---- */

static tm_status run_steps(const tm_runner *runner, const tm_placement *placement, const tm_plan_candidate *candidate,
                           bool outputs, void *const *original, void *const *changed, tm_error *error) {
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
    TM_TRY(tm_runner_run(runner, &request, pair, NULL, error));
  }
  return TM_OK;
}

static tm_status run_lowered(const tm_runner *runner, tm_placement *placement, tm_plan_candidate *candidate, void *const *pointers,
                             tm_error *error) {
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
  if (status == TM_OK) status = run_steps(runner, placement, candidate, false, pointers, changed, error);
  if (status == TM_OK) status = run_kernel(runner, placement, candidate, changed, error);
  if (status == TM_OK) status = run_steps(runner, placement, candidate, true, pointers, changed, error);
  for (uint32_t i = 0; i < lowering->step_count; i++) tm_scratch_give(runner->scratch, blocks[i]);
  return status;
}

/* ---- trying one after the other ---- */

static tm_status try_candidate(const tm_runner *runner, tm_placement *placement, tm_plan_candidate *candidate,
                               void *const *pointers, tm_error *error) {
  if (candidate->lowering.step_count != 0) return run_lowered(runner, placement, candidate, pointers, error);
  return run_kernel(runner, placement, candidate, pointers, error);
}

/* Lack of resources and a moved epoch are no broken promise; anything else is. */
static bool is_forgivable(tm_status status) {
  return status == TM_ERROR_NO_MEMORY || status == TM_BUSY || status == TM_STALE || status == TM_ERROR_DEVICE_LOST ||
         status == TM_ERROR_CANCELLED;
}

static void note_failure(const tm_runner *runner, tm_plan_candidate *candidate, tm_status status, const tm_error *error,
                         tm_run_outcome *outcome) {
  char text[256];
  snprintf(text, sizeof text, "%s: %s%s%.180s", candidate->device->name, tm_status_name(status), error->text[0] == '\0' ? "" : ": ",
           error->text);
  if (status == TM_ERROR_DEVICE_LOST) tm_inventory_retire(candidate->device, TM_DEVICE_LOST);
  if (!is_forgivable(status)) {
    outcome->fell_back = 1;
    tm_health_record_violation(runner->table->market.health, candidate->device, &candidate->operation, text);
  }
  outcome->retries++;
  memcpy(outcome->note, text, sizeof outcome->note);
  tm_log_write(&runner->table->market.inventory->log, TM_LOG_WARNING, "%s; trying the next best", text);
}

static tm_status nobody(const tm_placement *placement, const tm_run_outcome *outcome, tm_error *error) {
  const tm_op_row *row = tm_op_find(placement->request.op);
  char list[800] = "";
  for (uint32_t i = 0; i < placement->candidate_count; i++) {
    const tm_plan_candidate *candidate = &placement->candidates[i];
    const size_t used = strlen(list);
    snprintf(list + used, sizeof list - used, "%s%s (%s)", used == 0 ? "" : ", ", candidate->device->name,
             candidate->reason[0] == '\0' ? "failed" : candidate->reason);
  }
  return tm_fail(error, TM_ERROR_NO_DEVICE, "no device can run %s as asked: %s%s%.200s", row == NULL ? "it" : row->name,
                 list[0] == '\0' ? "there is none" : list, outcome->note[0] == '\0' ? "" : "; last failure: ", outcome->note);
}

static void report(tm_placement *placement, const tm_plan_candidate *candidate, tm_run_outcome *outcome) {
  tm_mutex_lock(&placement->lock);
  outcome->expected_ns = candidate->total_ns;
  tm_mutex_unlock(&placement->lock);
  outcome->device = candidate->device->index;
  outcome->level = candidate->answer.level;
  outcome->numerics = candidate->answer.numerics;
}

/* The way when the first choice failed: the next best, until one runs or none is left. */
static tm_status fall_back(const tm_runner *runner, tm_placement *placement, void *const *pointers, tm_status status,
                           tm_run_outcome *outcome, uint32_t *inout_candidate, tm_error *last, tm_error *error) {
  const uint32_t count = placement->candidate_count;
  bool *tried = tm_memory_calloc(runner->table->memory, count, sizeof *tried);
  if (tried == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for another try; %.800s", last->text);
  while (status != TM_OK) {
    note_failure(runner, &placement->candidates[*inout_candidate], status, last, outcome);
    tried[*inout_candidate] = true;
    *inout_candidate = tm_placement_next(placement, tried);
    if (*inout_candidate >= count) break;
    last->text[0] = '\0';
    status = try_candidate(runner, placement, &placement->candidates[*inout_candidate], pointers, last);
  }
  tm_memory_free(runner->table->memory, tried, count * sizeof *tried);
  if (status == TM_OK) return TM_OK;
  if (status == TM_ERROR_NO_MEMORY) return tm_fail(error, status, "%.900s", last->text);
  return nobody(placement, outcome, error);
}

tm_status tm_runner_run(const tm_runner *runner, const tm_request *request, void *const *pointers, tm_run_outcome *out_outcome,
                        tm_error *error) {
  tm_placement *placement = NULL;
  TM_TRY(tm_placement_acquire(runner->table, request, &placement, error));
  tm_run_outcome outcome;
  memset(&outcome, 0, sizeof outcome);
  tm_error own = TM_ERROR_INIT;
  const uint64_t begin = out_outcome != NULL ? tm_now_ns() : 0;
  uint32_t chosen = atomic_load(&placement->chosen);
  tm_status status = TM_ERROR_NO_DEVICE;
  if (chosen >= placement->candidate_count) {
    status = nobody(placement, &outcome, error);
  } else {
    status = try_candidate(runner, placement, &placement->candidates[chosen], pointers, &own);
    if (status != TM_OK) status = fall_back(runner, placement, pointers, status, &outcome, &chosen, &own, error);
  }
  if (out_outcome != NULL) {
    if (status == TM_OK) report(placement, &placement->candidates[chosen], &outcome);
    outcome.measured_ns = tm_now_ns() - begin;
    *out_outcome = outcome;
  }
  tm_placement_release(runner->table, placement);
  return status;
}
