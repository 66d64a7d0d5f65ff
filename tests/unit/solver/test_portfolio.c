/* SPDX-License-Identifier: Apache-2.0 */
/* The portfolio on random problems of every kind: what it says is so, it loses to none of its plans, and nothing but what a
   problem means decides.  Its distance from the optimum is test_portfolio_regret's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/error.h"
#include "random_problem.h"
#include "solver/assignment.h"
#include "solver/portfolio.h"
#include "solver/timeline.h"

#define RANDOM_PROBLEMS 1500u
#define MOST_BRUTE_OPS  5u

#define NONE TM_SOLVER_NONE

static tm_status solve(const tm_solver_problem *problem, tm_memory *memory, tm_portfolio *out_portfolio, tm_error *error) {
  tm_memory_init(memory, 0);
  return tm_portfolio_solve(problem, NULL, 0, NULL, memory, out_portfolio, error);
}

static void close_portfolio(tm_portfolio *portfolio, const tm_memory *memory) {
  tm_portfolio_deinit(portfolio);
  assert_int_equal(memory->used_bytes, 0);
}

static tm_status makespan_of(const tm_solver_problem *problem, const uint32_t *labels, const uint32_t *order,
                             uint64_t *out_makespan_ns) {
  tm_memory memory;
  tm_timeline timeline;
  tm_memory_init(&memory, 0);
  const tm_status status = tm_timeline_simulate(problem, labels, order, &memory, &timeline, NULL);
  if (status != TM_OK) return status;
  *out_makespan_ns = timeline.makespan_ns;
  tm_timeline_deinit(&timeline);
  return TM_OK;
}

/* ---- against everything there is ---- */

typedef struct exhaustive_search {
  const tm_solver_problem *problem;
  uint32_t labels[MOST_BRUTE_OPS];
  uint32_t order[MOST_BRUTE_OPS];
  bool     is_done[MOST_BRUTE_OPS];
  uint64_t best_ns;
} exhaustive_search;

static void try_orders(exhaustive_search *search, uint32_t place) {
  uint64_t makespan_ns;
  if (place == search->problem->op_count) {
    const tm_status status = makespan_of(search->problem, search->labels, search->order, &makespan_ns);
    if (status == TM_OK && makespan_ns < search->best_ns) search->best_ns = makespan_ns;
    return;
  }
  for (uint32_t o = 0; o < search->problem->op_count; o++) {
    if (!random_is_ready(search->problem, search->is_done, o)) continue;
    search->is_done[o] = true;
    search->order[place] = o;
    try_orders(search, place + 1);
    search->is_done[o] = false;
  }
}

static void try_labels(exhaustive_search *search, uint32_t o) {
  if (o == search->problem->op_count) {
    try_orders(search, 0);
    return;
  }
  for (uint32_t l = 0; l < search->problem->ops[o].label_count; l++) {
    search->labels[o] = search->problem->ops[o].first_label + l;
    try_labels(search, o + 1);
  }
}

static void test_exhaustive(void **state) {
  (void)state;
  uint32_t looked_at = 0, optimal = 0, missed = 0;
  for (uint64_t seed = 1; looked_at < 300; seed++) {
    problem_builder builder;
    tm_memory memory;
    tm_portfolio portfolio;
    random_problem(seed, &builder);
    if (builder.problem.op_count < 2 || builder.problem.op_count > 4) {
      builder_deinit(&builder);
      continue;
    }
    exhaustive_search search = { .problem = &builder.problem, .best_ns = UINT64_MAX };
    try_labels(&search, 0);
    if (solve(&builder.problem, &memory, &portfolio, NULL) == TM_OK) {
      assert_true(portfolio.makespan_ns >= search.best_ns && portfolio.bound_ns <= search.best_ns);
      optimal += portfolio.makespan_ns == search.best_ns;
      close_portfolio(&portfolio, &memory);
    } else {
      missed += search.best_ns != UINT64_MAX;
    }
    looked_at++;
    builder_deinit(&builder);
  }
  print_message("%u of %u small problems solved to the optimum, %u not solved though they could be\n", optimal, looked_at, missed);
  assert_int_equal(missed, 0);
  assert_true(optimal >= looked_at * 7 / 10);
}

/* ---- what must hold ---- */

static void check_claims(const tm_solver_problem *problem, const tm_portfolio *portfolio) {
  uint64_t makespan_ns;
  assert_int_equal(makespan_of(problem, portfolio->labels, portfolio->order, &makespan_ns), TM_OK);
  assert_int_equal(portfolio->makespan_ns, makespan_ns);
  assert_true(portfolio->bound_ns <= makespan_ns);
  assert_true(portfolio->best < portfolio->plan_count);
  assert_int_equal(portfolio->plans[portfolio->best].makespan_ns, makespan_ns);
  for (uint32_t i = 0; i < portfolio->plan_count; i++) {
    assert_true(portfolio->plans[i].makespan_ns >= makespan_ns);
    assert_true(portfolio->plans[i].additive_ns >= portfolio->plans[i].makespan_ns);
  }
}

/* All on one device wherever that is possible, in the order of the problem. */
static void check_single_devices(const tm_solver_problem *problem, const tm_portfolio *portfolio) {
  for (uint32_t rank = 0; rank < 40; rank += 10) {
    uint32_t labels[RANDOM_MOST_OPS], order[RANDOM_MOST_OPS], found = 0;
    uint64_t makespan_ns;
    for (uint32_t o = 0; o < problem->op_count; o++) {
      uint64_t least = TM_SOLVER_NEVER;
      for (uint32_t i = 0; i < problem->ops[o].label_count; i++) {
        const uint32_t l = problem->ops[o].first_label + i;
        if (problem->labels[l].rank != rank || problem->labels[l].cost_ns >= least) continue;
        if (problem->labels[l].input_memory != problem->labels[l].output_memory) continue;
        least = problem->labels[l].cost_ns;
        labels[o] = l;
      }
      found += least != TM_SOLVER_NEVER;
      order[o] = o;
    }
    if (found != problem->op_count || makespan_of(problem, labels, order, &makespan_ns) != TM_OK) continue;
    assert_true(portfolio->makespan_ns <= makespan_ns);
  }
}

static void test_claims(void **state) {
  (void)state;
  uint32_t solved = 0;
  for (uint64_t seed = 1; seed <= RANDOM_PROBLEMS; seed++) {
    problem_builder builder;
    tm_memory memory;
    tm_portfolio portfolio;
    random_problem(seed, &builder);
    if (solve(&builder.problem, &memory, &portfolio, NULL) == TM_OK) {
      check_claims(&builder.problem, &portfolio);
      check_single_devices(&builder.problem, &portfolio);
      close_portfolio(&portfolio, &memory);
      solved++;
    }
    builder_deinit(&builder);
  }
  assert_true(solved > RANDOM_PROBLEMS / 2);
}

static void test_larger_problems(void **state) {
  (void)state;
  uint32_t solved = 0;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    problem_builder builder;
    tm_memory memory;
    tm_portfolio portfolio;
    random_problem_sized(seed, 700, &builder);
    if (solve(&builder.problem, &memory, &portfolio, NULL) == TM_OK) {
      check_claims(&builder.problem, &portfolio);
      close_portfolio(&portfolio, &memory);
      solved++;
    }
    builder_deinit(&builder);
  }
  assert_true(solved > 20);
}

/* The additive optimum as a seed: both add up the same, no plan adds up to less, and the portfolio is no later than it.  They
   agree on what can be done at all. */
static void test_additive_seed(void **state) {
  (void)state;
  uint32_t solved = 0, later = 0;
  for (uint64_t seed = 1; seed <= RANDOM_PROBLEMS; seed++) {
    problem_builder builder;
    tm_memory memory;
    tm_assignment assignment;
    tm_portfolio portfolio;
    random_problem(seed, &builder);
    tm_memory_init(&memory, 0);
    const tm_status status = tm_assignment_solve(&builder.problem, NULL, &memory, &assignment, NULL);
    if (status != TM_OK) {
      assert_int_equal(tm_portfolio_solve(&builder.problem, NULL, 0, NULL, &memory, &portfolio, NULL), TM_ERROR_NO_DEVICE);
      builder_deinit(&builder);
      continue;
    }
    const tm_portfolio_seed additive = { "additive", assignment.labels };
    assert_int_equal(tm_portfolio_solve(&builder.problem, &additive, 1, NULL, &memory, &portfolio, NULL), TM_OK);
    check_claims(&builder.problem, &portfolio);
    assert_int_equal(portfolio.plans[0].additive_ns, assignment.total_ns);
    for (uint32_t i = 1; i < portfolio.plan_count; i++) assert_true(portfolio.plans[i].additive_ns >= assignment.bound_ns);
    later += portfolio.makespan_ns < portfolio.plans[0].makespan_ns;
    solved++;
    tm_assignment_deinit(&assignment);
    close_portfolio(&portfolio, &memory);
    builder_deinit(&builder);
  }
  print_message("the additive optimum was not the soonest for %u of %u problems\n", later, solved);
  assert_true(solved > RANDOM_PROBLEMS / 2 && later > 0);
}

/* ---- metamorphic ---- */

/* What is changed of a problem, and what that may do. */
typedef enum change { SCALED, LABELS_REVERSED, COPIES_HALVED, DOMINATED_ADDED, CHANGES } change;

static void scale(problem_builder *builder) {
  const uint32_t pairs = builder->problem.memory_count * builder->problem.memory_count;
  for (uint32_t l = 0; l < builder->problem.label_count; l++) {
    if (builder->labels[l].cost_ns != TM_SOLVER_NEVER) builder->labels[l].cost_ns *= 7;
  }
  for (uint32_t i = 0; i < pairs * RANDOM_CLASSES; i++) {
    if (builder->copy_ns[i] != TM_SOLVER_NEVER) builder->copy_ns[i] *= 7;
  }
}

static void reverse_labels(problem_builder *builder) {
  for (uint32_t o = 0; o < builder->problem.op_count; o++) {
    const tm_solver_op *op = &builder->ops[o];
    for (uint32_t i = 0; i < op->label_count / 2; i++) {
      tm_solver_label *a = &builder->labels[op->first_label + i];
      tm_solver_label *b = &builder->labels[op->first_label + op->label_count - 1 - i];
      const tm_solver_label kept = *a;
      *a = *b;
      *b = kept;
    }
  }
}

static void halve_copies(problem_builder *builder) {
  const uint32_t pairs = builder->problem.memory_count * builder->problem.memory_count;
  for (uint32_t i = 0; i < pairs * RANDOM_CLASSES; i++) {
    if (builder->copy_ns[i] != TM_SOLVER_NEVER) builder->copy_ns[i] /= 2;
  }
}

/* A label that costs more than one that is otherwise equal, as the last operation's last. */
static void add_dominated(problem_builder *builder) {
  tm_solver_op *last = &builder->ops[builder->problem.op_count - 1];
  tm_solver_label label = builder->labels[last->first_label];
  if (label.cost_ns != TM_SOLVER_NEVER) label.cost_ns += 1;
  builder_label(builder, label);
}

static void make_change(problem_builder *builder, change change_kind) {
  switch (change_kind) {
    case SCALED: scale(builder); break;
    case LABELS_REVERSED: reverse_labels(builder); break;
    case COPIES_HALVED: halve_copies(builder); break;
    case DOMINATED_ADDED: add_dominated(builder); break;
    default: break;
  }
}

static void check_change(const tm_solver_problem *problem, const tm_portfolio *before, const tm_solver_problem *changed,
                         const tm_portfolio *after, change change_kind) {
  const uint64_t factor = change_kind == SCALED ? 7 : 1;
  if (change_kind == COPIES_HALVED) {
    assert_true(after->bound_ns <= before->bound_ns);
    return;
  }
  if (change_kind == SCALED) {
    assert_true(after->bound_ns >= before->bound_ns && after->bound_ns <= before->bound_ns * factor);
  } else {
    assert_int_equal(after->bound_ns, before->bound_ns);
  }
  assert_int_equal(after->makespan_ns, before->makespan_ns * factor);
  for (uint32_t o = 0; o < problem->op_count; o++) {
    const tm_solver_label *a = &problem->labels[before->labels[o]], *b = &changed->labels[after->labels[o]];
    assert_int_equal(a->rank, b->rank);
    assert_int_equal(a->cost_ns * factor, b->cost_ns);
    assert_int_equal(after->order[o], before->order[o]);
  }
}

static void test_changes(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= RANDOM_PROBLEMS; seed++) {
    problem_builder builder, changed;
    tm_memory memory, changed_memory;
    tm_portfolio before, after;
    const change change_kind = (change)(seed % CHANGES);
    random_problem(seed, &builder);
    random_problem(seed, &changed);
    make_change(&changed, change_kind);
    const tm_status status = solve(&builder.problem, &memory, &before, NULL);
    assert_int_equal(solve(&changed.problem, &changed_memory, &after, NULL), status);
    if (status == TM_OK) {
      check_change(&builder.problem, &before, &changed.problem, &after, change_kind);
      close_portfolio(&before, &memory);
      close_portfolio(&after, &changed_memory);
    }
    builder_deinit(&builder);
    builder_deinit(&changed);
  }
}

/* ---- every compiler ---- */

#define DIGEST UINT64_C(1103972899935937929)

static uint64_t mix(uint64_t digest, uint64_t number) { return (digest ^ number) * UINT64_C(1099511628211); }

/* One digest of many plans, whoever compiled this.  It is another one only when a method changes: then take the new one, after
   a look that two compilers print the same. */
static void test_digest(void **state) {
  (void)state;
  uint64_t digest = UINT64_C(1469598103934665603);
  for (uint64_t seed = 1; seed <= 300; seed++) {
    problem_builder builder;
    tm_memory memory;
    tm_portfolio portfolio;
    random_problem_sized(seed, seed % 10 == 0 ? 100 : RANDOM_MOST_OPS, &builder);
    if (solve(&builder.problem, &memory, &portfolio, NULL) == TM_OK) {
      for (uint32_t o = 0; o < portfolio.op_count; o++) digest = mix(mix(digest, portfolio.labels[o]), portfolio.order[o]);
      for (uint32_t i = 0; i < portfolio.plan_count; i++) digest = mix(digest, portfolio.plans[i].makespan_ns);
      digest = mix(digest, portfolio.bound_ns);
      close_portfolio(&portfolio, &memory);
    }
    builder_deinit(&builder);
  }
  print_message("digest %llu\n", (unsigned long long)digest);
  assert_true(digest == DIGEST);
}

/* ---- seeds, budgets, sizes ---- */

/* Chains of operations that two devices run equally fast; a copy takes `copy_ns`. */
static void make_chains(problem_builder *builder, uint32_t chain_count, uint32_t length, uint64_t copy_ns) {
  builder_init(builder, 2, 2, 1, 2 * chain_count * length + 2);
  builder_copies(builder, 0, copy_ns);
  for (uint32_t chain = 0; chain < chain_count; chain++) {
    for (uint32_t i = 0; i < length; i++) {
      const uint32_t op = builder_op(builder);
      for (uint32_t d = 0; d < 2; d++) builder_label(builder, (tm_solver_label){ 10, d, d, d, d, 0 });
      if (i > 0) builder_input(builder, builder->problem.value_count - 1);
      builder_value(builder, 64, op, NONE, NONE, 0);
    }
  }
}

static void test_two_chains(void **state) {
  (void)state;
  problem_builder builder;
  tm_memory memory;
  tm_portfolio portfolio;
  make_chains(&builder, 2, 8, 1000);
  assert_int_equal(solve(&builder.problem, &memory, &portfolio, NULL), TM_OK);
  assert_int_equal(portfolio.makespan_ns, 80);
  assert_int_equal(portfolio.bound_ns, 80);
  assert_int_equal(portfolio.plans[portfolio.best].copied_bytes, 0);
  close_portfolio(&portfolio, &memory);
  builder_deinit(&builder);
}

static void test_seeds(void **state) {
  (void)state;
  problem_builder builder;
  tm_memory memory;
  tm_portfolio portfolio;
  tm_error error = TM_ERROR_INIT;
  uint32_t labels[6];
  make_chains(&builder, 2, 3, 1000);
  for (uint32_t o = 0; o < 6; o++) labels[o] = 2 * o + (o / 3);
  const tm_portfolio_seed seed = { "apart", labels };
  const tm_portfolio_options options = { 0 };
  tm_memory_init(&memory, 0);
  assert_int_equal(tm_portfolio_solve(&builder.problem, &seed, 1, &options, &memory, &portfolio, &error), TM_OK);
  assert_string_equal(portfolio.plans[0].name, "apart");
  assert_int_equal(portfolio.plans[0].makespan_ns, 30);
  assert_int_equal(portfolio.plans[0].additive_ns, 60);
  assert_int_equal(portfolio.plans[0].rank, NONE);
  assert_int_equal(portfolio.makespan_ns, 30);
  close_portfolio(&portfolio, &memory);
  labels[5] = 0;
  assert_int_equal(tm_portfolio_solve(&builder.problem, &seed, 1, &options, &memory, &portfolio, &error), TM_ERROR_ARGUMENT);
  assert_non_null(strstr(error.text, "operation 5"));
  assert_int_equal(tm_portfolio_solve(&builder.problem, NULL, 1, &options, &memory, &portfolio, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(memory.used_bytes, 0);
  builder_deinit(&builder);
}

/* One device is better than others at everything, so that often nothing can beat the cheapest sum: then it alone is looked at, and
   what comes out is what comes out of looking at all. */
static void test_only_best(void **state) {
  (void)state;
  const tm_portfolio_options only_best = { .move_steps = TM_PORTFOLIO_MOVE_STEPS, .with_lists = true, .only_best = true };
  const tm_portfolio_options all_plans = { .move_steps = TM_PORTFOLIO_MOVE_STEPS, .with_lists = true };
  uint32_t alone = 0, others = 0;
  for (uint64_t seed = 1; seed <= RANDOM_PROBLEMS; seed++) {
    problem_builder builder;
    tm_memory memory;
    tm_assignment assignment;
    tm_portfolio one, all;
    random_problem(seed, &builder);
    const size_t bytes = builder.problem.op_count * sizeof(uint32_t);
    for (uint32_t i = 0; i < builder.problem.label_count && seed % 2 == 0; i++)
      if (builder.labels[i].rank != 0 && builder.labels[i].cost_ns != TM_SOLVER_NEVER) builder.labels[i].cost_ns += 1000;
    tm_memory_init(&memory, 0);
    if (tm_assignment_solve(&builder.problem, NULL, &memory, &assignment, NULL) == TM_OK) {
      const tm_portfolio_seed cheapest = { "additive", assignment.labels };
      assert_int_equal(tm_portfolio_solve(&builder.problem, &cheapest, 1, &all_plans, &memory, &all, NULL), TM_OK);
      assert_int_equal(tm_portfolio_solve(&builder.problem, &cheapest, 1, &only_best, &memory, &one, NULL), TM_OK);
      assert_memory_equal(one.labels, all.labels, bytes);
      assert_memory_equal(one.order, all.order, bytes);
      assert_int_equal(one.makespan_ns, all.makespan_ns);
      assert_int_equal(one.bound_ns, all.bound_ns);
      assert_string_equal(one.plans[one.best].name, all.plans[all.best].name);
      alone += one.plan_count == 1;
      others += one.plan_count > 1;
      tm_portfolio_deinit(&one);
      tm_portfolio_deinit(&all);
      tm_assignment_deinit(&assignment);
    }
    assert_int_equal(memory.used_bytes, 0);
    builder_deinit(&builder);
  }
  print_message("nothing can beat %u cheapest sums, something might %u\n", alone, others);
  assert_true(alone > RANDOM_PROBLEMS / 100 && others > RANDOM_PROBLEMS / 10);
}

/* The fast device's memory is too small for the value: the slow one's plan is taken, and how far each is beyond is told. */
static void test_budgets(void **state) {
  (void)state;
  problem_builder builder;
  tm_memory memory;
  tm_portfolio portfolio;
  static const uint64_t budgets[] = { 100, 1000 };
  builder_init(&builder, 2, 2, 1, 16);
  builder_op(&builder);
  builder_label(&builder, (tm_solver_label){ 10, 0, 0, 0, 0, 30 });
  builder_label(&builder, (tm_solver_label){ 90, 1, 1, 1, 1, 30 });
  builder_value(&builder, 80, 0, NONE, NONE, 0);
  assert_int_equal(solve(&builder.problem, &memory, &portfolio, NULL), TM_OK);
  assert_int_equal(portfolio.makespan_ns, 10);
  close_portfolio(&portfolio, &memory);
  builder.problem.budgets = budgets;
  assert_int_equal(solve(&builder.problem, &memory, &portfolio, NULL), TM_OK);
  assert_int_equal(portfolio.makespan_ns, 90);
  assert_int_equal(portfolio.plans[portfolio.best].excess_bytes, 0);
  assert_string_equal(portfolio.plans[0].name, "heft");
  assert_int_equal(portfolio.plans[0].excess_bytes, 10);
  close_portfolio(&portfolio, &memory);
  builder_deinit(&builder);
}

static void test_many_operations(void **state) {
  (void)state;
  problem_builder builder;
  tm_memory memory;
  tm_portfolio portfolio;
  make_chains(&builder, 2, TM_PORTFOLIO_MOST_OPS / 2 + 1, 5);
  assert_int_equal(solve(&builder.problem, &memory, &portfolio, NULL), TM_OK);
  assert_true(portfolio.is_reduced);
  assert_int_equal(portfolio.plan_count, 3);            /* heft and both devices */
  assert_int_equal(portfolio.makespan_ns, 10 * (TM_PORTFOLIO_MOST_OPS / 2 + 1));
  close_portfolio(&portfolio, &memory);
  builder_deinit(&builder);
}

/* ---- what cannot be ---- */

static void test_impossible(void **state) {
  (void)state;
  problem_builder builder;
  tm_memory memory;
  tm_portfolio portfolio;
  tm_error error = TM_ERROR_INIT;
  make_chains(&builder, 1, 4, 5);
  builder.labels[4].cost_ns = builder.labels[5].cost_ns = TM_SOLVER_NEVER;
  assert_int_equal(solve(&builder.problem, &memory, &portfolio, &error), TM_ERROR_NO_DEVICE);
  assert_non_null(strstr(error.text, "operation 2"));
  builder.labels[4].cost_ns = TM_SOLVER_MOST_NS + 1;
  assert_int_equal(solve(&builder.problem, &memory, &portfolio, &error), TM_ERROR_ARGUMENT);
  builder.labels[4].cost_ns = TM_SOLVER_MOST_NS;        /* as much as may be, four times in a row */
  for (uint32_t l = 0; l < 8; l++) builder.labels[l].cost_ns = TM_SOLVER_MOST_NS;
  assert_int_equal(solve(&builder.problem, &memory, &portfolio, &error), TM_OK);
  assert_int_equal(portfolio.makespan_ns, TM_SOLVER_MOST_NS);
  assert_true(portfolio.bound_ns <= portfolio.makespan_ns);
  close_portfolio(&portfolio, &memory);
  builder_deinit(&builder);
}

static uint32_t nasty_number(uint64_t *state) {
  static const uint32_t numbers[] = { 0, 1, 2, 3, 7, 100, INT32_MAX, UINT32_MAX - 1, UINT32_MAX };
  return numbers[builder_below(state, (uint32_t)(sizeof numbers / sizeof numbers[0]))];
}

static uint64_t nasty_cost(uint64_t *state) {
  static const uint64_t costs[] = { 0, 1, TM_SOLVER_MOST_NS - 1, TM_SOLVER_MOST_NS, TM_SOLVER_MOST_NS + 1, INT64_MAX,
                                    UINT64_C(1) << 63, UINT64_MAX - 1, TM_SOLVER_NEVER };
  return costs[builder_below(state, (uint32_t)(sizeof costs / sizeof costs[0]))];
}

/* One number of the problem becomes another one; the lengths of its arrays stay true. */
static void spoil(problem_builder *builder, uint64_t *state) {
  const tm_solver_problem *problem = &builder->problem;
  tm_solver_op *op = &builder->ops[builder_below(state, problem->op_count)];
  tm_solver_label *label = &builder->labels[builder_below(state, problem->label_count)];
  tm_solver_value *value = &builder->values[problem->value_count == 0 ? 0 : builder_below(state, problem->value_count)];
  uint32_t *const numbers[] = { &op->first_label, &op->label_count, &op->first_input, &op->input_count, &label->input_memory,
                                &label->output_memory, &label->resource, &label->rank, &value->producer, &value->home,
                                &value->wanted, &value->size_class, &builder->links[0], &builder->problem.resource_count,
                                &builder->problem.link_count, &builder->inputs[0] };
  uint64_t *const costs[] = { &label->cost_ns, &label->workspace_bytes, &value->bytes,
                              &builder->copy_ns[builder_below(state, problem->memory_count * problem->memory_count)] };
  const uint32_t which = builder_below(state, 20);
  if (which < 16) *numbers[which] = nasty_number(state); else *costs[which - 16] = nasty_cost(state);
}

/* Whatever numbers a problem holds, it is solved soundly or refused. */
static void test_spoiled(void **state) {
  (void)state;
  uint32_t solved = 0, refused = 0;
  for (uint64_t seed = 1; seed <= RANDOM_PROBLEMS * 2; seed++) {
    problem_builder builder;
    tm_memory memory;
    tm_portfolio portfolio;
    uint64_t random = seed;
    random_problem(seed, &builder);
    for (uint32_t i = 1 + builder_below(&random, 2); i > 0; i--) spoil(&builder, &random);
    tm_memory_init(&memory, UINT64_C(1) << 28);
    const tm_status status = tm_portfolio_solve(&builder.problem, NULL, 0, NULL, &memory, &portfolio, NULL);
    assert_true(status == TM_OK || status == TM_ERROR_ARGUMENT || status == TM_ERROR_NO_DEVICE);
    if (status == TM_OK) {
      check_claims(&builder.problem, &portfolio);
      tm_portfolio_deinit(&portfolio);
    }
    solved += status == TM_OK;
    refused += status == TM_ERROR_ARGUMENT;
    assert_int_equal(memory.used_bytes, 0);
    builder_deinit(&builder);
  }
  assert_true(solved > RANDOM_PROBLEMS / 4 && refused > RANDOM_PROBLEMS / 4);
}

static void test_nothing(void **state) {
  (void)state;
  const tm_solver_problem problem = { .memory_count = 1 };
  tm_memory memory;
  tm_portfolio portfolio;
  assert_int_equal(solve(&problem, &memory, &portfolio, NULL), TM_OK);
  assert_int_equal(portfolio.makespan_ns, 0);
  assert_true(portfolio.plan_count > 0);
  close_portfolio(&portfolio, &memory);
}

static void test_no_memory(void **state) {
  (void)state;
  problem_builder builder;
  bool was_done = false;
  make_chains(&builder, 2, 5, 5);
  for (uint64_t limit = 64; limit < 256 * 1024; limit += 1024) {
    tm_memory memory;
    tm_portfolio portfolio = { 0 };
    tm_memory_init(&memory, limit);
    const tm_status status = tm_portfolio_solve(&builder.problem, NULL, 0, NULL, &memory, &portfolio, NULL);
    assert_true(status == TM_OK || status == TM_ERROR_NO_MEMORY);
    was_done = status == TM_OK;
    close_portfolio(&portfolio, &memory);
  }
  assert_true(was_done);
  builder_deinit(&builder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_exhaustive), cmocka_unit_test(test_claims), cmocka_unit_test(test_larger_problems),
    cmocka_unit_test(test_additive_seed), cmocka_unit_test(test_changes), cmocka_unit_test(test_digest),
    cmocka_unit_test(test_two_chains), cmocka_unit_test(test_seeds), cmocka_unit_test(test_only_best), cmocka_unit_test(test_budgets),
    cmocka_unit_test(test_many_operations),
    cmocka_unit_test(test_impossible), cmocka_unit_test(test_spoiled), cmocka_unit_test(test_nothing),
    cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
