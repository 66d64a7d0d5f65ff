/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/kernel_run.h"

#include "base/clock.h"
#include "base/error.h"

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

tm_status tm_kernel_run_once(const tm_runner *runner, tm_plan_candidate *candidate, tm_kernel *kernel, void *const *pointers,
                             const tm_resident *residents, bool is_timed, tm_kernel_run *out_run, tm_error *error) {
  const uint64_t runs = atomic_fetch_add_explicit(&candidate->runs, 1, memory_order_relaxed);
  const uint64_t run_count = measured_runs(runs);
  const bool measure = is_timed || run_count != 0;
  const uint64_t begin = measure ? tm_now_ns() : 0;
  const tm_launch_site site = { candidate->device, kernel,   &candidate->operation, candidate->answer.workspace_bytes,
                                pointers,          residents };
  uint64_t copy_ns = 0;
  TM_TRY(tm_launcher_run(runner->scratch, &site, &copy_ns, error));
  *out_run =
      (tm_kernel_run){ run_count != 0 && is_warm(candidate, runs) ? run_count : 0, measure ? tm_now_ns() - begin : 0, copy_ns };
  return TM_OK;
}
