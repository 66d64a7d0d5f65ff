/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/memory_price.h"

#include <string.h>

#include "base/checked.h"
#include "solver/fitting.h"

#define MOST_SOLVES 14u
#define MOST_TOLLS  32u
#define MIB_DIGITS  20u
#define MOST_PRICE  (UINT64_C(1) << 43) /* ns for a MiB: times a MiB it fits 64 bits */

/* A price for being in a memory at an operation, between one that was too low and one that was enough. */
typedef struct toll {
  uint32_t memory;
  uint32_t op;
  uint64_t price;
  uint64_t too_low;
  uint64_t enough;              /* UINT64_MAX: not known yet */
} toll;

typedef struct pricing {
  const tm_solver_problem     *problem;
  const tm_assignment_options *options;
  tm_memory       *memory;
  tm_flow          flow;
  tm_occupancy     occupancy;
  tm_fitting       fitting;
  tm_solver_label *labels;      /* the problem's, with tolls */
  toll             tolls[MOST_TOLLS];
  uint32_t         toll_count;
  uint64_t         base_ns;     /* what an unpriced best plan costs */
  uint64_t         bound_ns;
  uint64_t         best_ns;     /* of plans that fit; TM_SOLVER_NEVER: none yet */
  uint32_t        *best;
  uint64_t        *prices;      /* of the bound */
  uint32_t        *nearest;     /* the plan that exceeds least */
  uint64_t         nearest_bytes;
} pricing;

/* Rounded down, so that what plans pay is never more than the price says. */
static uint64_t toll_on(uint64_t bytes, uint64_t price) {
  uint64_t whole;
  if (!tm_checked_mul(bytes >> MIB_DIGITS, price, &whole)) return TM_SOLVER_MOST_NS;
  return tm_solver_add(whole, (bytes & ((1u << MIB_DIGITS) - 1)) * price >> MIB_DIGITS);
}

static bool is_lent(const pricing *s, uint32_t value, const toll *t) { return tm_solver_is_lent(s->problem, value, t->memory); }

/* Whether the value is in the memory at this operation whatever the plan. */
static bool is_always_there(const pricing *s, uint32_t value, const toll *t) {
  const tm_solver_value *row = &s->problem->values[value];
  const bool is_home = row->producer == TM_SOLVER_NONE;
  const uint32_t first = s->flow.first_reader[value];
  if (is_lent(s, value, t)) return false;
  if (row->home == t->memory && tm_solver_has_trait(s->problem, value, TM_SOLVER_STAYS)) return true;
  if (row->wanted == t->memory && (is_home || row->producer <= t->op)) return true;
  if (row->wanted != TM_SOLVER_NONE && row->wanted != row->home) return false;
  return is_home && row->home == t->memory && first < s->flow.first_reader[value + 1] && s->flow.readers[first] >= t->op;
}

/* Whether the value, made in the memory, is certain to be there still. */
static bool is_still_there(const pricing *s, uint32_t value, const toll *t) {
  const uint32_t producer = s->problem->values[value].producer, first = s->flow.first_reader[value];
  if (producer == TM_SOLVER_NONE || producer > t->op || is_lent(s, value, t)) return false;
  if (producer == t->op) return true;
  return s->problem->values[value].wanted == TM_SOLVER_NONE && first < s->flow.first_reader[value + 1] &&
         s->flow.readers[first] >= t->op;
}

/* Whether a copy in the memory, if there is any, is there at every operation: then each reader owes a share of it. */
static bool is_kept_copy(const pricing *s, uint32_t value, const toll *t) {
  const tm_solver_value *row = &s->problem->values[value];
  return tm_solver_is_kept(s->problem, value) && row->home != t->memory && row->wanted != t->memory &&
         s->flow.first_reader[value] < s->flow.first_reader[value + 1];
}

static void charge(pricing *s, uint32_t op, const toll *t, uint64_t bytes, bool is_input) {
  const tm_solver_op *row = &s->problem->ops[op];
  for (uint32_t i = row->first_label; i < row->first_label + row->label_count; i++) {
    tm_solver_label *label = &s->labels[i];
    if ((is_input ? label->input_memory : label->output_memory) == t->memory)
      label->cost_ns = tm_solver_add(label->cost_ns, toll_on(bytes, t->price));
  }
}

static void charge_readers(pricing *s, uint32_t value, const toll *t) {
  const uint32_t first = s->flow.first_reader[value], end = s->flow.first_reader[value + 1];
  for (uint32_t i = first; i < end; i++) charge(s, s->flow.readers[i], t, s->problem->values[value].bytes / (end - first), true);
}

/* Adds a toll to all labels that are certain to owe it, and returns the bytes that are there without anybody's choice. */
static uint64_t charge_toll(pricing *s, const toll *t) {
  const tm_solver_problem *p = s->problem;
  const tm_solver_op *row = &p->ops[t->op];
  uint64_t always = 0;
  for (uint32_t v = 0; v < p->value_count; v++) {
    if (is_always_there(s, v, t)) always += p->values[v].bytes;
    else if (is_still_there(s, v, t)) charge(s, p->values[v].producer, t, p->values[v].bytes, false);
    else if (is_kept_copy(s, v, t)) charge_readers(s, v, t);
  }
  for (uint32_t i = 0; i < row->input_count; i++) {
    const uint32_t value = p->inputs[row->first_input + i];
    const uint32_t producer = p->values[value].producer;
    const bool is_producers = producer != TM_SOLVER_NONE && is_still_there(s, value, t);
    const bool is_paid = is_producers || is_lent(s, value, t) || is_kept_copy(s, value, t);
    if (!is_always_there(s, value, t) && !is_paid) charge(s, t->op, t, p->values[value].bytes, true);
  }
  for (uint32_t i = row->first_label; i < row->first_label + row->label_count; i++) {
    tm_solver_label *label = &s->labels[i];
    if (label->output_memory == t->memory)
      label->cost_ns = tm_solver_add(label->cost_ns, toll_on(label->workspace_bytes, t->price));
  }
  return always;
}

/* What the budgets give back of the tolls, rounded up. */
static uint64_t allowance(const pricing *s, const toll *t, uint64_t always) {
  const uint64_t budget = tm_occupancy_budget(s->problem, t->memory);
  return budget <= always ? 0 : tm_solver_add(toll_on(budget - always, t->price), 1);
}

static void keep_if_better(pricing *s, const uint32_t *labels) {
  tm_occupancy_weigh(&s->occupancy, labels);
  const uint64_t bytes = s->occupancy.excess_bytes, ops = s->problem->op_count;
  if (bytes == 0 && s->occupancy.total_ns < s->best_ns) {
    s->best_ns = s->occupancy.total_ns;
    memcpy(s->best, labels, ops * sizeof *labels);
  }
  if (bytes == 0 || bytes >= s->nearest_bytes) return;
  s->nearest_bytes = bytes;
  memcpy(s->nearest, labels, ops * sizeof *labels);
}

static void keep_bound(pricing *s, uint64_t bound, uint64_t allowed) {
  const uint64_t proven = bound >= TM_SOLVER_MOST_NS || bound <= allowed ? 0 : bound - allowed;
  if (proven <= s->bound_ns) return;
  s->bound_ns = proven;
  memset(s->prices, 0, s->problem->memory_count * sizeof *s->prices);
  for (uint32_t i = 0; i < s->toll_count; i++) s->prices[s->tolls[i].memory] += s->tolls[i].price;
}

/* One solve with the tolls as they are. */
static tm_status solve_priced(pricing *s, tm_error *error) {
  tm_solver_problem priced = *s->problem;
  tm_assignment_options options = { .without_marginals = true, .most_entries = s->options == NULL ? 0 : s->options->most_entries };
  uint64_t allowed = 0;
  priced.labels = s->labels;
  memcpy(s->labels, s->problem->labels, s->problem->label_count * sizeof *s->labels);
  for (uint32_t i = 0; i < s->toll_count; i++) {
    const uint64_t always = charge_toll(s, &s->tolls[i]);
    allowed = tm_solver_add(allowed, allowance(s, &s->tolls[i], always));
  }
  tm_assignment found;
  TM_TRY(tm_assignment_solve(&priced, &options, s->memory, &found, error));
  keep_if_better(s, found.labels);
  keep_bound(s, found.bound_ns, allowed);
  tm_assignment_deinit(&found);
  return TM_OK;
}

static uint64_t raised(const pricing *s, const toll *t, uint64_t over_bytes) {
  if (t->enough != UINT64_MAX) return t->too_low + (t->enough - t->too_low) / 2;
  const uint64_t first = (s->base_ns >> 6) / ((over_bytes >> MIB_DIGITS) + 1) + 1;
  return tm_min_u64(MOST_PRICE, t->price == 0 ? first : t->price * 4);
}

/* Moves each price to the middle of what is known of it. */
static bool adjust(pricing *s) {
  const uint64_t stride = (uint64_t)s->problem->op_count + 1;
  bool is_changed = false;
  for (uint32_t i = 0; i < s->toll_count; i++) {
    toll *t = &s->tolls[i];
    const uint64_t before = t->price, used = s->occupancy.used_bytes[t->memory * stride + t->op];
    const uint64_t budget = tm_occupancy_budget(s->problem, t->memory);
    if (used > budget) {
      t->too_low = t->price;
      if (t->enough <= t->price) t->enough = UINT64_MAX;
      t->price = raised(s, t, used - budget);
    } else {
      t->enough = t->price;
      t->price = t->too_low + (t->enough - t->too_low) / 2;
    }
    is_changed = is_changed || t->price != before;
  }
  return is_changed;
}

/* Tolls where the plan at hand has its peaks over a budget. */
static bool add_tolls(pricing *s) {
  bool is_added = false;
  for (uint32_t m = 0; m < s->problem->memory_count && s->toll_count < MOST_TOLLS; m++) {
    const uint64_t budget = tm_occupancy_budget(s->problem, m);
    if (s->occupancy.peak_bytes[m] <= budget) continue;
    toll new_toll = { m, s->occupancy.peak_op[m], 0, 0, UINT64_MAX };
    bool is_there = false;
    for (uint32_t i = 0; i < s->toll_count; i++) is_there = is_there || (s->tolls[i].memory == m && s->tolls[i].op == new_toll.op);
    if (is_there) continue;
    new_toll.price = raised(s, &new_toll, s->occupancy.peak_bytes[m] - budget);
    s->tolls[s->toll_count++] = new_toll;
    is_added = true;
  }
  return is_added;
}

/* The plan at hand is the unpriced optimum's. */
static tm_status raise_prices(pricing *s, uint32_t *solve_count, tm_error *error) {
  while (*solve_count < MOST_SOLVES && s->bound_ns < s->best_ns) {
    const bool is_adjusted = adjust(s), is_added = add_tolls(s);
    if (!is_adjusted && !is_added) break;
    TM_TRY(solve_priced(s, error));
    ++*solve_count;
  }
  return TM_OK;
}

static tm_status fail_unfit(pricing *s, tm_memory_shortage *out_shortage, tm_error *error) {
  tm_occupancy_weigh(&s->occupancy, s->nearest);
  for (uint32_t m = 0; m < s->problem->memory_count; m++) {
    const uint64_t peak = s->occupancy.peak_bytes[m], budget = tm_occupancy_budget(s->problem, m);
    if (peak <= budget) continue;
    *out_shortage = (tm_memory_shortage){ m, s->occupancy.peak_op[m], peak, budget };
    return tm_fail(error, TM_ERROR_LIMIT,
                     "no plan that fits was found: the nearest one needs %llu bytes of memory %u at operation %u and may use %llu",
                     (unsigned long long)peak, m, s->occupancy.peak_op[m], (unsigned long long)budget);
  }
  return tm_fail(error, TM_ERROR_LIMIT, "no plan that fits the budgets was found");
}

/* Plans that do not need prices, and what can be mended about the plan that nearly fits. */
static void find_plans(pricing *s) {
  for (uint32_t m = 0; m < s->problem->memory_count; m++) {
    tm_fitting_single(&s->fitting, m);
    keep_if_better(s, s->fitting.labels);
  }
  for (uint32_t turn = 0; turn < 2; turn++) {
    const uint32_t *start = turn == 0 ? s->nearest : s->best;
    if (turn == 0 ? s->nearest_bytes == UINT64_MAX : s->best_ns == TM_SOLVER_NEVER) continue;
    memcpy(s->fitting.labels, start, s->problem->op_count * sizeof *start);
    tm_fitting_improve(&s->fitting);
    keep_if_better(s, s->fitting.labels);
  }
}

static tm_status allocate(pricing *s, tm_arena *arena, tm_assignment_within *out, tm_error *error) {
  const tm_solver_problem *p = s->problem;
  TM_TRY(tm_flow_init(&s->flow, p, arena, error));
  TM_TRY(tm_occupancy_init(&s->occupancy, p, &s->flow, arena, error));
  TM_TRY(tm_fitting_init(&s->fitting, p, &s->flow, &s->occupancy, arena, error));
  s->labels = tm_arena_alloc(arena, p->label_count * sizeof *s->labels);
  s->best = tm_arena_alloc(arena, p->op_count * sizeof *s->best);
  s->nearest = tm_arena_alloc(arena, p->op_count * sizeof *s->nearest);
  s->prices = out->prices = tm_memory_calloc(s->memory, p->memory_count, sizeof *out->prices);
  out->peak_bytes = tm_memory_calloc(s->memory, p->memory_count, sizeof *out->peak_bytes);
  out->memory_count = p->memory_count;
  if (s->labels == NULL || s->best == NULL || s->nearest == NULL || out->prices == NULL || out->peak_bytes == NULL)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for budgets of %u operations", p->op_count);
  return TM_OK;
}

static tm_status fit(pricing *s, tm_assignment_within *out, tm_error *error) {
  const tm_solver_problem *p = s->problem;
  tm_assignment *result = &out->assignment;
  s->base_ns = result->total_ns;
  s->bound_ns = result->bound_ns;
  s->best_ns = TM_SOLVER_NEVER;
  s->nearest_bytes = UINT64_MAX;
  out->solve_count = 1;
  if (p->op_count == 0) return TM_OK;
  keep_if_better(s, result->labels);
  if (s->best_ns == TM_SOLVER_NEVER) {
    result->marginals_are_exact = false;
    TM_TRY(raise_prices(s, &out->solve_count, error));
    find_plans(s);
    if (s->best_ns == TM_SOLVER_NEVER) return fail_unfit(s, &out->shortage, error);
    memcpy(result->labels, s->best, p->op_count * sizeof *s->best);
    result->total_ns = s->best_ns;
    result->bound_ns = tm_min_u64(s->bound_ns, s->best_ns);
    result->is_exact = result->bound_ns == result->total_ns;
  }
  tm_occupancy_weigh(&s->occupancy, result->labels);
  memcpy(out->peak_bytes, s->occupancy.peak_bytes, p->memory_count * sizeof *out->peak_bytes);
  return TM_OK;
}

tm_status tm_assignment_solve_within(const tm_solver_problem *problem, const tm_assignment_options *options, tm_memory *memory,
                                     tm_assignment_within *out, tm_error *error) {
  if (out == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "there is no place for the assignment");
  tm_assignment_within result = { .memory_count = 0 };
  out->shortage = result.shortage;
  TM_TRY(tm_assignment_solve(problem, options, memory, &result.assignment, error));
  tm_arena arena;
  tm_arena_init(&arena, memory);
  pricing s = { .problem = problem, .options = options, .memory = memory };
  tm_status status = allocate(&s, &arena, &result, error);
  if (status == TM_OK) status = fit(&s, &result, error);
  tm_arena_deinit(&arena);
  if (status == TM_OK) {
    *out = result;
  } else {
    out->shortage = result.shortage;
    tm_assignment_within_deinit(&result);
  }
  return status;
}

void tm_assignment_within_deinit(tm_assignment_within *within) {
  if (within == NULL) return;
  tm_memory_free(within->assignment.memory, within->peak_bytes, within->memory_count * sizeof(uint64_t));
  tm_memory_free(within->assignment.memory, within->prices, within->memory_count * sizeof(uint64_t));
  tm_assignment_deinit(&within->assignment);
  within->peak_bytes = within->prices = NULL;
}
