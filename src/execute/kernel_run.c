/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/kernel_run.h"

#include "base/clock.h"
#include "base/error.h"
#include "execute/trial_operands.h"

/* Every run is measured until this many, then one in so many: the estimate is settled, and the clock is not free. */
#define MEASURE_ALL_RUNS 32u
#define MEASURE_ONE_IN 16u
/* A device's first launches, and the first run of whatever needs a set-up, pay for things that happen once. */
#define WARM_UP_LAUNCHES 8u

/* How many runs this one stands for; 0: it is not measured. */
static uint64_t measured_runs(uint64_t runs) {
  if (runs < MEASURE_ALL_RUNS) return 1;
  return runs % MEASURE_ONE_IN == 0 ? MEASURE_ONE_IN : 0;
}

static bool is_warm(const tm_plan_candidate *candidate, uint64_t runs) {
  if (runs > 0) return true;
  return candidate->answer.setup_ns == 0 && atomic_load(&candidate->device->launch_count) > WARM_UP_LAUNCHES;
}

void tm_kernel_run_learn(const tm_runner *runner, tm_placement *placement, tm_plan_candidate *candidate, const tm_kernel_run *run) {
  const uint64_t kernel_ns = run->taken_ns > run->copy_ns ? run->taken_ns - run->copy_ns : 1;
  tm_placement_learn(runner->table, placement, candidate, kernel_ns, run->run_count);
  if (run->copy_ns != 0 && candidate->basis.copied_bytes != 0)
    tm_correction_learn_copy(runner->table->market.correction, candidate->device->index, candidate->basis.copied_bytes,
                             run->copy_ns);
}

/* One run, whatever candidate, kernel and operands. */
typedef struct kernel_call {
  const tm_runner   *runner;
  tm_plan_candidate *candidate;
  tm_kernel         *kernel;
  const tm_resident *residents;
  uint64_t           copy_ns;
} kernel_call;

/* *out_abandoned: it never came back, and may still use what `pointers` name. */
static tm_status run_once(kernel_call *c, void *const *pointers, bool *out_abandoned, tm_error *error) {
  tm_plan_candidate *candidate = c->candidate;
  tm_device_use use = tm_device_use_begin(candidate->device);
  use.trial = candidate->trial;
  use.cancelled = c->runner->cancelled;
  use.expected_ns = candidate->answer.cost_ns;
  const tm_launch_site site = { candidate->device, c->kernel, &candidate->operation, candidate->answer.workspace_bytes, pointers,
                                c->residents, &use };
  const tm_status status = tm_launcher_run(c->runner->scratch, &site, &c->copy_ns, error);
  *out_abandoned = use.is_abandoned;
  tm_device_use_end(&use);
  return status;
}

/* As long as it has to prove itself, in memory that nobody else has a use for. */
static tm_status run_on_trial(kernel_call *c, void *const *pointers, tm_error *error) {
  tm_plan_candidate *candidate = c->candidate;
  tm_trial_operands own;
  bool is_abandoned = false;
  const bool is_own = tm_trial_is_watched(candidate->trial) &&
                      tm_trial_operands_init(&own, c->runner->table->memory, candidate, pointers, c->residents);
  const tm_status status = run_once(c, is_own ? own.pointers : pointers, &is_abandoned, error);
  if (status == TM_OK) tm_trial_pass(candidate->trial);
  if (is_own && status == TM_OK) tm_trial_operands_collect(&own, candidate, pointers);
  if (is_own && !is_abandoned) tm_trial_operands_deinit(&own);
  if (!is_own && is_abandoned) atomic_store(&candidate->holds_operands, true);
  return status;
}

static tm_status run_proven(kernel_call *c, void *const *pointers, tm_error *error) {
  bool is_abandoned = false;
  const tm_status status = run_once(c, pointers, &is_abandoned, error);
  if (is_abandoned) atomic_store(&c->candidate->holds_operands, true);
  return status;
}

tm_status tm_kernel_run_once(const tm_runner *runner, tm_plan_candidate *candidate, tm_kernel *kernel, void *const *pointers,
                             const tm_resident *residents, bool is_timed, tm_kernel_run *out_run, tm_error *error) {
  const uint64_t runs = atomic_fetch_add_explicit(&candidate->runs, 1, memory_order_relaxed);
  const uint64_t run_count = measured_runs(runs);
  const bool measure = is_timed || run_count != 0;
  const uint64_t begin = measure ? tm_now_ns() : 0;
  const bool is_proven = tm_trial_is_over(candidate->trial);
  kernel_call c = { runner, candidate, kernel, residents, 0 };
  TM_TRY(is_proven ? run_proven(&c, pointers, error) : run_on_trial(&c, pointers, error));
  const bool is_telling = run_count != 0 && is_proven && is_warm(candidate, runs);
  *out_run = (tm_kernel_run){ is_telling ? run_count : 0, measure ? tm_now_ns() - begin : 0, c.copy_ns };
  return TM_OK;
}
