/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/plan_budget.h"

#include "base/checked.h"
#include "base/error.h"

#define MEMORY_NAME_BYTES 96u

/* Whoever chooses knows what each node needs, not how values come to lie beside each other, or in each other's place: what was
   chosen within budgets takes more than they say, or less.  So there is a search for budgets whose choice keeps to a target:
   between those whose choice takes too much, and those within which there is no choice. */
#define MOST_TRIES  12u
/* Choices in all in search for the plan that takes least, of a small graph and of a large one. */
#define MOST_STEPS  96u
#define LEAST_STEPS 24u
#define STEPS_WORK  200000u     /* times nodes */
/* Steps smaller than this part of what is known are not worth a choice. */
#define PRECISION   512u

typedef struct fitter {
  tm_plan               *plan;
  const tm_plan_request *request;
  uint32_t               memory_count;
  uint64_t              *budgets;       /* [memory]: to choose within; the problem's own */
  uint64_t              *high;          /* [memory]: their choice takes too much */
  uint64_t              *low;           /* [memory]: they leave no choice */
  uint64_t               built_bytes;   /* by the program at hand */
  uint32_t               built_memory;
  uint64_t               least_bytes;   /* of plans that were built; UINT64_MAX: none was */
  uint32_t               least_memory;
  uint32_t               tries_left;
} fitter;

static void fill(fitter *f, uint64_t *budgets, uint64_t bytes) {
  for (uint32_t i = 0; i < f->memory_count; i++) budgets[i] = bytes;
}

static void copy(const fitter *f, const uint64_t *from, uint64_t *to) {
  for (uint32_t i = 0; i < f->memory_count; i++) to[i] = from[i];
}

static tm_status try_budgets(fitter *f, uint64_t target, tm_memory_shortage *out_lack, tm_error *error) {
  f->tries_left--;
  TM_TRY(tm_plan_choose_and_build(f->plan, f->request, target, out_lack, error));
  f->built_bytes = tm_plan_program_bytes(&f->plan->program, &f->built_memory);
  if (f->built_bytes >= f->least_bytes) return TM_OK;
  f->least_bytes = f->built_bytes;
  f->least_memory = f->built_memory;
  return TM_OK;
}

/* With more room where some is lacking, until there is something to build. */
static tm_status try_first(fitter *f, uint64_t target, tm_error *error) {
  tm_memory_shortage lack;
  tm_status status = try_budgets(f, target, &lack, error);
  while (status == TM_ERROR_LIMIT && lack.needed_bytes > f->budgets[lack.memory] && f->tries_left != 0) {
    f->budgets[lack.memory] = lack.needed_bytes;
    status = try_budgets(f, target, &lack, error);
  }
  return status;
}

/* Below `high`, whose program is at hand, by what it takes too much; UINT64_MAX stands for any budget. */
static void tighten(fitter *f, uint64_t target) {
  for (uint32_t i = 0; i < f->memory_count; i++) {
    const uint64_t bytes = f->plan->program.memory_bytes[i], known = tm_min_u64(f->high[i], bytes);
    if (bytes > target) f->budgets[i] = known - tm_min_u64(known, bytes - target);
  }
}

/* Between the two.  False: there is nothing more to try. */
static bool halve(fitter *f) {
  bool is_new = false;
  for (uint32_t i = 0; i < f->memory_count; i++) {
    const uint64_t room = f->high[i] - f->low[i];
    f->budgets[i] = f->low[i] + room / 2;
    is_new |= room / 2 > f->high[i] / PRECISION;
  }
  return is_new;
}

/* The program at hand takes too much: another one.  TM_ERROR_LIMIT: none was found. */
static tm_status try_less(fitter *f, uint64_t target, bool *has_low, tm_error *error) {
  tm_memory_shortage lack;
  copy(f, f->budgets, f->high);
  if (!*has_low) tighten(f, target);
  else if (!halve(f)) return TM_ERROR_LIMIT;
  while (f->tries_left != 0) {
    const tm_status status = try_budgets(f, target, &lack, error);
    if (status != TM_ERROR_LIMIT) return status;
    copy(f, f->budgets, f->low);
    *has_low = true;
    if (!halve(f)) break;
  }
  return TM_ERROR_LIMIT;
}

/* Afterwards the program keeps to the target, or TM_ERROR_LIMIT. */
static tm_status fit(fitter *f, uint64_t target, tm_error *error) {
  const uint32_t others = f->tries_left <= MOST_TRIES ? 0 : f->tries_left - MOST_TRIES;
  bool has_low = false;
  f->tries_left -= others;
  fill(f, f->budgets, target);
  tm_status status = f->tries_left == 0 ? TM_ERROR_LIMIT : try_first(f, target, error);
  while (status == TM_OK && f->built_bytes > target)
    status = f->tries_left == 0 ? TM_ERROR_LIMIT : try_less(f, target, &has_low, error);
  f->tries_left += others;
  return status;
}

/* Ever less, from whatever there is, until it is within the limit, or nothing takes less.  The limit has no say in what is tried,
   so that whoever allows more finds what was found with less. */
static tm_status descend(fitter *f, uint64_t limit, tm_error *error) {
  tm_memory_shortage lack;
  uint64_t refused = 0;
  fill(f, f->budgets, UINT64_MAX);
  TM_TRY(try_budgets(f, UINT64_MAX, &lack, error));
  while (f->least_bytes > limit && f->tries_left != 0) {
    const uint64_t room = f->least_bytes - refused;
    const uint64_t step = room / 2 > f->least_bytes / PRECISION ? room / 2 : 1;
    const uint64_t target = f->least_bytes - step;
    const tm_status status = fit(f, target, error);
    if (status != TM_OK && status != TM_ERROR_LIMIT) return status;
    if (status == TM_ERROR_LIMIT && step == 1) break;
    if (status == TM_ERROR_LIMIT) refused = target;
  }
  return f->least_bytes > limit ? TM_ERROR_LIMIT : TM_OK;
}

static tm_status fail_unfit(const fitter *f, tm_error *error) {
  char where[MEMORY_NAME_BYTES];
  const tm_graph_problem *problem = &f->plan->program.problem;
  const tm_device_slot *device = problem->memories[f->least_memory];
  tm_graph_problem_name_memory(problem, f->least_memory, where, sizeof where);
  return tm_fail(error, TM_ERROR_LIMIT,
                 "no plan keeps to the memory that is allowed: the nearest one takes %llu bytes of %s, and %llu are allowed in any "
                 "one memory; allow more (max_memory_bytes)%s%s",
                 (unsigned long long)f->least_bytes, where, (unsigned long long)f->plan->policy.most_bytes,
                 device == NULL ? "" : ", or do without ", device == NULL ? "" : device->name);
}

static tm_status search(fitter *f, tm_error *error) {
  const uint64_t limit = f->plan->policy.most_bytes;
  f->tries_left = MOST_TRIES;
  const tm_status status = fit(f, limit, error);
  if (status != TM_ERROR_LIMIT) return status;
  f->least_bytes = UINT64_MAX;
  const uint64_t affordable = STEPS_WORK / (f->plan->graph->node_count + UINT64_C(1));
  f->tries_left = (uint32_t)tm_max_u64(LEAST_STEPS, tm_min_u64(MOST_STEPS, affordable));
  const tm_status found = descend(f, limit, error);
  return found == TM_ERROR_LIMIT && f->least_bytes != UINT64_MAX ? fail_unfit(f, error) : found;
}

tm_status tm_plan_place_within(tm_plan *plan, const tm_plan_request *request, tm_error *error) {
  const tm_solver_problem *solver = &plan->program.problem.solver;
  const uint64_t limit = plan->policy.most_bytes == 0 ? UINT64_MAX : plan->policy.most_bytes;
  tm_memory_shortage lack;
  if (solver->budgets == NULL || (request != NULL && request->choose != NULL))
    return tm_plan_choose_and_build(plan, request, limit, &lack, error);
  fitter f = { .plan = plan, .request = request, .memory_count = solver->memory_count, .least_bytes = UINT64_MAX };
  const uint64_t bytes = (uint64_t)f.memory_count * 2 * sizeof *f.high;
  f.budgets = (uint64_t *)(uintptr_t)solver->budgets;
  f.high = tm_memory_alloc(plan->memory, bytes, 0);
  if (f.high == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a plan");
  f.low = f.high + f.memory_count;
  const tm_status status = search(&f, error);
  tm_memory_free(plan->memory, f.high, bytes);
  return status;
}
