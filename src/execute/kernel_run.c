/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/kernel_run.h"

#include "base/clock.h"
#include "base/error.h"
#include "execute/trial_operands.h"
#include "schedule/exploration.h"

/* Every run is measured until this many, then one in so many: the estimate is settled, and the clock is not free. */
#define MEASURE_ALL_RUNS 32u
#define MEASURE_ONE_IN 16u
/* A device's first launches, and the first run of whatever needs a set-up, pay for things that happen once. */
#define WARM_UP_LAUNCHES 8u

/* Runs that a device proves itself with are handed to another thread; on a busy machine only next to this it is nothing. */
#define LONG_RUN_NS UINT64_C(20000000)

/* One such run may have been held up; the next is measured to see.  After two the device is in doubt, whatever it runs, and
   so many runs are measured: enough for each of a few kinds to be known anew. */
#define SURPRISE_HALVES 3u      /* more than so many halves of what was expected, or less than that turned over */
#define SURPRISE_NS UINT64_C(10000)     /* and off by so much: clocks and caches make less than that */
#define DOUBTED_RUNS 64u

static bool is_in_doubt(tm_plan_candidate *candidate) {
  _Atomic uint32_t *left = &candidate->device->doubted_runs;
  uint32_t runs = atomic_load_explicit(left, memory_order_relaxed);
  if (runs != 0) (void)atomic_compare_exchange_strong(left, &runs, runs - 1);
  return runs != 0 || atomic_load_explicit(&candidate->surprises, memory_order_relaxed) != 0;
}

/* How many runs this one stands for; 0: it is not measured. */
static uint64_t measured_runs(tm_plan_candidate *candidate, uint64_t runs) {
  if (runs < MEASURE_ALL_RUNS) return 1;
  if (runs % MEASURE_ONE_IN == 0) return MEASURE_ONE_IN;
  return is_in_doubt(candidate) ? 1 : 0;
}

static void note_surprise(tm_plan_candidate *candidate, uint64_t taken_ns, uint64_t expected_ns) {
  const bool is_long = taken_ns / SURPRISE_HALVES > expected_ns / 2 && taken_ns - expected_ns > SURPRISE_NS;
  const bool is_short = taken_ns / 2 < expected_ns / SURPRISE_HALVES && expected_ns - taken_ns > SURPRISE_NS;
  const int32_t before = atomic_load_explicit(&candidate->surprises, memory_order_relaxed);
  int32_t now = 0;
  if (is_long) now = before > 0 ? before + 1 : 1;
  else if (is_short) now = before < 0 ? before - 1 : -1;
  const bool is_twice = now > 1 || now < -1;
  if (is_twice) atomic_store(&candidate->device->doubted_runs, DOUBTED_RUNS);
  atomic_store_explicit(&candidate->surprises, is_twice ? 0 : now, memory_order_relaxed);
}

static bool is_warm(const tm_plan_candidate *candidate, uint64_t runs) {
  if (runs > 0) return true;
  return candidate->answer.setup_ns == 0 && atomic_load(&candidate->device->launch_count) > WARM_UP_LAUNCHES;
}

void tm_kernel_run_learn(const tm_runner *runner, tm_placement *placement, tm_plan_candidate *candidate, const tm_kernel_run *run) {
  tm_correction *correction = runner->table->market.correction;
  const uint64_t copy_ns = run->copies.in_ns + run->copies.out_ns;
  const uint64_t kernel_ns = run->taken_ns > copy_ns ? run->taken_ns - copy_ns : 0;
  if (run->is_first) atomic_store(&candidate->first_ns, kernel_ns);
  else if (atomic_load_explicit(&candidate->first_ns, memory_order_relaxed) != 0)
    tm_candidate_learn_setup(&runner->table->market, candidate, kernel_ns);
  const uint64_t expected_ns = tm_placement_expect(placement, candidate);
  const bool is_news = run->is_early && run->taken_ns < expected_ns / 2;
  if (run->run_count == 0 && !is_news) {
    tm_exploration_settle(runner->table, candidate, run->taken_ns);
    return;
  }
  if (atomic_load_explicit(&candidate->runs, memory_order_relaxed) > MEASURE_ALL_RUNS)
    note_surprise(candidate, run->taken_ns, expected_ns);
  tm_placement_learn(runner->table, placement, candidate, kernel_ns, is_news ? 1 : run->run_count);
  atomic_store_explicit(&candidate->alone_ns, 0, memory_order_relaxed);
  if (is_news) return;
  tm_correction_learn_copy(correction, candidate->basis.link_in, run->copies.in_bytes, run->copies.in_ns);
  tm_correction_learn_copy(correction, candidate->basis.link_out, run->copies.out_bytes, run->copies.out_ns);
}

/* One launch, with what it works on. */
typedef struct launching {
  const tm_runner   *runner;
  tm_plan_candidate *candidate;
  tm_kernel         *kernel;
  const tm_resident *residents;
  tm_copy_times      copies;
  uint64_t           taken_ns;          /* from inputs given to outputs there; 0: not measured */
  bool               is_measured;
  bool               is_own;            /* what it works on is in memory of the library's own */
  bool               is_abandoned;      /* it never came back, and may still use what it was given */
  bool               is_left;           /* the same until it has ended: its caller had to go */
} launching;

static tm_status launch(launching *l, void *const *pointers, tm_error *error) {
  const tm_launch_site site = { .device = l->candidate->device, .kernel = l->kernel, .operation = &l->candidate->operation,
                                .workspace_bytes = l->candidate->answer.workspace_bytes, .pointers = pointers,
                                .residents = l->residents, .alias_mask = l->candidate->promise.alias_mask };
  tm_device_use use = tm_device_use_begin(l->candidate->device, l->runner->cancelled);
  use.trial = l->candidate->trial;
  use.expected_ns = l->candidate->answer.cost_ns;
  use.has_own_operands = l->is_own;
  const tm_clock *clock = &l->candidate->device->backend->inventory->clock;
  const uint64_t begin = l->is_measured ? tm_clock_now(clock) : 0;
  const tm_status status = tm_launcher_run(l->runner->scratch, &site, &use, &l->copies, error);
  if (l->is_measured) l->taken_ns = tm_clock_since(clock, begin);
  l->is_abandoned = use.is_abandoned && !use.is_apart;
  l->is_left = use.queue_is_left;
  tm_device_use_end(&use);
  return status;
}

/* As long as it has to prove itself, in memory that nobody else has a use for. */
static tm_status launch_on_trial(launching *l, void *const *pointers, tm_error *error) {
  tm_trial_operands own;
  tm_plan_candidate *candidate = l->candidate;
  l->is_own = tm_trial_is_watched(candidate->trial) &&
                      tm_trial_operands_init(&own, l->runner->table->memory, candidate, pointers);
  const tm_status status = launch(l, l->is_own ? own.pointers : pointers, error);
  if (status == TM_OK) tm_trial_pass(candidate->trial);
  if (l->is_own && status == TM_OK) tm_trial_operands_collect(&own, candidate, pointers);
  if (l->is_own && l->is_left) tm_trial_operands_leave(&own, candidate->device);
  else if (l->is_own && !l->is_abandoned) tm_trial_operands_deinit(&own);
  if (!l->is_own && l->is_abandoned) atomic_store(&candidate->holds_operands, true);
  return status;
}

static tm_status launch_proven(launching *l, void *const *pointers, tm_error *error) {
  const tm_status status = launch(l, pointers, error);
  if (l->is_abandoned) atomic_store(&l->candidate->holds_operands, true);
  return status;
}

tm_status tm_kernel_run_once(const tm_runner *runner, tm_plan_candidate *candidate, tm_kernel *kernel, void *const *pointers,
                             const tm_resident *residents, bool is_timed, tm_kernel_run *out_run, tm_error *error) {
  const uint64_t runs = atomic_fetch_add_explicit(&candidate->runs, 1, memory_order_relaxed);
  const uint64_t run_count = measured_runs(candidate, runs);
  launching l = { .runner = runner, .candidate = candidate, .kernel = kernel, .residents = residents,
                  .is_measured = is_timed || run_count != 0 };
  const bool is_proven = tm_trial_is_over(candidate->trial);
  TM_TRY((is_proven ? launch_proven : launch_on_trial)(&l, pointers, error));
  const bool is_telling = run_count != 0 && is_warm(candidate, runs) && (is_proven || l.taken_ns >= LONG_RUN_NS);
  *out_run = (tm_kernel_run){ .run_count = is_telling ? run_count : 0, .is_first = runs == 0, .is_early = run_count != 0 && !is_telling,
                              .taken_ns = l.taken_ns, .copies = l.copies };
  return TM_OK;
}
