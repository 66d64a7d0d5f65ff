/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/plan_budget.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"

#define MEMORY_NAME_BYTES 96u

/* Whoever chooses knows what each node needs, not how values come to lie beside each other, or in each other's place: what was
   chosen within budgets takes more than they say, or less.  So whether there is a plan is asked of one sequence of choices in which
   the limit has no say: each depends on what those before it take, and the first that keeps to the limit is proof.  Who allows more
   comes no further than who allows less, and meets what was proof for that one.  It has two parts: equal budgets, and near the least
   that those lead to unequal ones.  A limit that nothing keeps to costs both.  Only then is the limit itself a budget, in search
   of what takes less time. */
#define MOST_CHOICES   12u              /* of the sequence, of a small graph and of a large one */
#define LEAST_CHOICES  5u
#define CHOICES_WORK   3000u            /* times nodes */
#define VARIED_CHOICES 28u              /* of its second part, of a small graph; none of a large one */
#define VARIED_WORK    6000u
#define LIMIT_CHOICES  4u               /* within the limit itself */
#define MOST_RAISES    2u
#define VARIED_RAISES  1u
#define VARIED_CUTS    2u
/* Steps smaller than this part of what is known are not worth a choice. */
#define PRECISION      64u

typedef struct fitter {
  tm_plan               *plan;
  const tm_plan_request *request;
  uint32_t               memory_count;
  uint64_t               limit;
  uint64_t              *budgets;       /* [memory]: to choose within; the problem's own */
  uint64_t              *proven;        /* [memory]: what is chosen within them keeps to the limit */
  uint64_t               bytes;         /* by the program at hand, which waits if that takes more than the limit otherwise */
  uint64_t               least_bytes;   /* of the sequence */
  uint32_t               least_memory;
  uint32_t               choices_left;
} fitter;

static void fill(fitter *f, uint64_t bytes) {
  for (uint32_t i = 0; i < f->memory_count; i++) f->budgets[i] = bytes;
}

static tm_status choose(fitter *f, tm_memory_shortage *out_lack, tm_error *error) {
  uint32_t memory;
  f->choices_left--;
  TM_TRY(tm_plan_choose_and_build(f->plan, f->request, f->limit, out_lack, error));
  f->bytes = tm_plan_program_bytes(&f->plan->program, &memory);
  if (f->bytes >= f->least_bytes) return TM_OK;
  f->least_bytes = f->bytes;
  f->least_memory = memory;
  return TM_OK;
}

/* With more room where some is lacking: what is written in place of something else needs less than it seems to. */
static tm_status choose_within(fitter *f, uint64_t bytes, bool *out_is_raised, tm_error *error) {
  tm_memory_shortage lack;
  fill(f, bytes);
  tm_status status = choose(f, &lack, error);
  *out_is_raised = false;
  for (uint32_t i = 0; i < MOST_RAISES && status == TM_ERROR_LIMIT && f->choices_left != 0; i++) {
    if (lack.needed_bytes <= f->budgets[lack.memory]) break;
    f->budgets[lack.memory] = lack.needed_bytes;
    *out_is_raised = true;
    status = choose(f, &lack, error);
  }
  return status;
}

/* The sequence: between what leaves no choice and what leaves one.  TM_OK: the program at hand keeps to the limit. */
static tm_status descend(fitter *f, tm_error *error) {
  tm_memory_shortage lack;
  uint64_t low = 0;
  fill(f, UINT64_MAX);
  TM_TRY(choose(f, &lack, error));
  uint64_t high = f->bytes;
  while (f->bytes > f->limit && f->choices_left != 0 && (high - low) / 2 > high / PRECISION) {
    const uint64_t middle = low + (high - low) / 2;
    bool is_raised;
    const tm_status status = choose_within(f, middle, &is_raised, error);
    if (status != TM_OK && status != TM_ERROR_LIMIT) return status;
    if (status == TM_ERROR_LIMIT || (is_raised && f->bytes > middle)) low = middle;
    else high = middle;
    if (status == TM_OK && f->bytes > low) high = tm_min_u64(high, f->bytes);
  }
  return f->bytes > f->limit ? TM_ERROR_LIMIT : TM_OK;
}

/* Less where the program at hand takes too much. */
static void tighten(fitter *f, uint64_t limit) {
  for (uint32_t i = 0; i < f->memory_count; i++) {
    const uint64_t bytes = f->plan->program.memory_bytes[i];
    if (bytes > limit) f->budgets[i] -= tm_min_u64(f->budgets[i], bytes - limit);
  }
}

/* From the budgets at hand on: more where some is lacking, less where what was chosen takes as much as the least so far. */
static tm_status vary(fitter *f, tm_error *error) {
  uint32_t raises = VARIED_RAISES, cuts = VARIED_CUTS;
  while (f->choices_left != 0) {
    const uint64_t least = f->least_bytes;
    tm_memory_shortage lack;
    const tm_status status = choose(f, &lack, error);
    if (status != TM_OK && status != TM_ERROR_LIMIT) return status;
    if (status == TM_OK && f->bytes <= f->limit) return TM_OK;
    if (status == TM_ERROR_LIMIT) {
      if (raises-- == 0 || lack.needed_bytes <= f->budgets[lack.memory]) break;
      f->budgets[lack.memory] = lack.needed_bytes;
    } else {
      if (f->least_bytes < least) cuts = VARIED_CUTS + 1;
      if (cuts-- == 0) break;
      tighten(f, f->least_bytes - 1);
    }
  }
  return TM_ERROR_LIMIT;
}

/* The sequence's second part: near the least of the first each memory in turn has to do with less than the others, as equal budgets
   leave out what lies unequally.  TM_OK: the program at hand keeps to the limit. */
static tm_status descend_unequally(fitter *f, tm_error *error) {
  static const uint32_t sixteenths[] = { 12, 8, 4, 14, 10, 6, 2, 0 };
  tm_status status = TM_ERROR_LIMIT;
  for (size_t i = 0; i < sizeof sixteenths / sizeof sixteenths[0]; i++)
    for (uint32_t m = 0; m < f->memory_count && f->choices_left != 0 && status == TM_ERROR_LIMIT; m++) {
      fill(f, f->least_bytes - 1);
      f->budgets[m] = f->least_bytes / 16 * sixteenths[i];
      status = vary(f, error);
    }
  return status;
}

/* There is a plan: the one that the limit allows, unless that takes longer.  The budgets are those of the program at hand. */
static tm_status settle(fitter *f, tm_error *error) {
  const uint64_t proven_ns = f->plan->program.total_ns;
  tm_memory_shortage lack;
  bool is_raised;
  memcpy(f->proven, f->budgets, f->memory_count * sizeof *f->proven);
  f->choices_left = LIMIT_CHOICES;
  tm_status status = choose_within(f, f->limit, &is_raised, error);
  while (status == TM_OK && f->bytes > f->limit && f->choices_left != 0) {
    tighten(f, f->limit);
    status = choose(f, &lack, error);
  }
  if (status != TM_OK && status != TM_ERROR_LIMIT) return status;
  if (status == TM_OK && f->bytes <= f->limit && f->plan->program.total_ns <= proven_ns) return TM_OK;
  memcpy(f->budgets, f->proven, f->memory_count * sizeof *f->proven);
  return choose(f, &lack, error);
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
  const uint64_t affordable = CHOICES_WORK / (f->plan->graph->node_count + UINT64_C(1));
  f->choices_left = (uint32_t)tm_max_u64(LEAST_CHOICES, tm_min_u64(MOST_CHOICES, affordable));
  tm_status status = descend(f, error);
  f->choices_left = (uint32_t)tm_min_u64(VARIED_CHOICES, VARIED_WORK / (f->plan->graph->node_count + UINT64_C(1)));
  if (status == TM_ERROR_LIMIT && f->least_bytes != 0 && f->least_bytes != UINT64_MAX) status = descend_unequally(f, error);
  return status == TM_OK ? settle(f, error) : status;
}

static tm_status place_free(fitter *f, tm_error *error) {
  tm_memory_shortage lack;
  return choose(f, &lack, error);
}

static tm_status place_limited(fitter *f, tm_error *error) {
  const uint64_t bytes = f->memory_count * sizeof *f->proven;
  f->budgets = (uint64_t *)(uintptr_t)f->plan->program.problem.solver.budgets;
  f->proven = tm_memory_alloc(f->plan->memory, bytes, 0);
  if (f->proven == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a plan");
  const tm_status status = search(f, error);
  tm_memory_free(f->plan->memory, f->proven, bytes);
  return status;
}

/* Whatever was tried: what is returned keeps to the limit. */
tm_status tm_plan_place_within(tm_plan *plan, const tm_plan_request *request, tm_error *error) {
  const tm_solver_problem *solver = &plan->program.problem.solver;
  const bool is_given = request != NULL && request->choose != NULL;
  fitter f = { .plan = plan, .request = request, .memory_count = solver->memory_count, .least_bytes = UINT64_MAX };
  f.limit = plan->policy.most_bytes == 0 ? UINT64_MAX : plan->policy.most_bytes;
  const tm_status status = solver->budgets == NULL || is_given ? place_free(&f, error) : place_limited(&f, error);
  const bool is_over = status == TM_OK ? f.bytes > f.limit : status == TM_ERROR_LIMIT && f.least_bytes != UINT64_MAX;
  return is_over ? fail_unfit(&f, error) : status;
}
