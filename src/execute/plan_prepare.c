/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/plan_prepare.h"

#include "base/error.h"

/* What takes longer than this is not waited for. */
#define QUICK_NS UINT64_C(200000)

static tm_plan_candidate *candidate_of(const tm_plan *plan, const tm_plan_step *step) {
  return &plan->program.problem.placements[step->placement]->candidates[step->candidate];
}

static bool has_kernel(const tm_plan_candidate *candidate) {
  return candidate->lowering == NULL || !candidate->lowering->has_inner;
}

static bool is_prepared(const tm_plan_candidate *candidate) {
  return !has_kernel(candidate) || atomic_load_explicit(&candidate->is_prepared, memory_order_acquire);
}

static bool is_quick(const tm_plan_candidate *candidate) {
  const bool opens = !atomic_load(&candidate->device->is_open) && candidate->device->info.open_ns > QUICK_NS;
  return candidate->answer.setup_ns <= QUICK_NS && !opens;
}

/* One that cannot be prepared stays as it is: who runs it finds that out, and goes on to the next best. */
static void prepare(tm_plan *plan, const tm_plan_step *step) {
  tm_kernel *kernel;
  (void)tm_placement_kernel(plan->program.problem.placements[step->placement], candidate_of(plan, step), NULL, &kernel, NULL);
}

static void *prepare_all(void *argument) {
  tm_plan *plan = argument;
  for (uint32_t i = 0; i < plan->program.step_count && atomic_load(&plan->stop_preparing) == 0; i++)
    if (!is_prepared(candidate_of(plan, &plan->program.steps[i]))) prepare(plan, &plan->program.steps[i]);
  atomic_store(&plan->is_preparing, 0);
  return NULL;
}

void tm_plan_prepare_start(tm_plan *plan) {
  bool is_all = true;
  for (uint32_t i = 0; i < plan->program.step_count; i++) {
    const tm_plan_step *step = &plan->program.steps[i];
    const tm_plan_candidate *candidate = candidate_of(plan, step);
    if (is_prepared(candidate)) continue;
    if (plan->waits_for_prepare || step->alternate == TM_PLAN_NONE || is_quick(candidate)) prepare(plan, step);
    else is_all = false;
  }
  if (is_all) return;
  atomic_store(&plan->stop_preparing, 0);
  atomic_store(&plan->is_preparing, 1);
  plan->has_preparer = tm_thread_start(&plan->preparer, prepare_all, plan, NULL) == TM_OK;
  if (!plan->has_preparer) (void)prepare_all(plan);     /* the system has no thread to spare */
}

void tm_plan_prepare_stop(tm_plan *plan) {
  if (!plan->has_preparer) return;
  atomic_store(&plan->stop_preparing, 1);
  tm_thread_join(&plan->preparer);
  plan->has_preparer = false;
}

bool tm_plan_is_ready(const tm_plan *plan) {
  if (atomic_load(&plan->is_preparing) != 0) return false;
  for (uint32_t i = 0; i < plan->program.step_count; i++) {
    const tm_plan_candidate *candidate = candidate_of(plan, &plan->program.steps[i]);
    if (!is_prepared(candidate)) return false;
    if (plan->program.steps[i].is_direct && !tm_trial_is_over(candidate->trial)) return false;
  }
  return true;
}
