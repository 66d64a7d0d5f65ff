/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The additive optimum against every plan there is, on random graphs: labels that read and write in different memories,
 * values read by several, wanted ones, homes, one-way and missing links, operations that cannot.
 * TM_NIGHTLY=1 tries ten times as many.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "solver/assignment.h"
#include "solver/elimination.h"
#include "unit/solver/solver_case.h"

#define CASES 100000u
#define MARGINAL_CASES 4000u
#define BUDGET_CASES 10000u
#define ENTRIES_CASES 3000u
#define COMMON_CASES 20000u
#define NODE_CASES 12000u
#define SHARED_CASES 10000u

static const case_limits small = { .most_ops = 9, .most_labels = 4, .most_memories = 4, .never_percent = 6, .most_cost = 20 };

static uint64_t case_count(uint64_t usual) { return getenv("TM_NIGHTLY") != NULL ? 10 * usual : usual; }

static void every_optimum_is_found(void **state) {
  (void)state;
  solver_case c;
  tm_memory memory;
  tm_memory_init(&memory, 0);
  const tm_assignment_options options = { .without_marginals = true };
  uint64_t impossible = 0;
  for (uint64_t seed = 1; seed <= case_count(CASES); seed++) {
    draw_case(&c, seed, &small);
    const uint64_t least = least_total(&c.problem, TM_SOLVER_NONE, 0);
    tm_assignment found;
    const tm_status status = tm_assignment_solve(&c.problem, seed % 2 == 0 ? &options : NULL, &memory, &found, NULL);
    if (status != (least == TM_SOLVER_NEVER ? TM_ERROR_NO_DEVICE : TM_OK))
      fail_msg("case %llu: status %d", (unsigned long long)seed, status);
    impossible += status != TM_OK;
    if (status != TM_OK) continue;
    if (found.total_ns != least || found.bound_ns != least || !found.is_exact || plan_total(&c.problem, found.labels) != least)
      fail_msg("case %llu: %llu (bound %llu), the least is %llu", (unsigned long long)seed, (unsigned long long)found.total_ns,
               (unsigned long long)found.bound_ns, (unsigned long long)least);
    tm_assignment_deinit(&found);
  }
  printf("%llu graphs, %llu without any plan\n", (unsigned long long)case_count(CASES), (unsigned long long)impossible);
  assert_true(impossible > 100 && impossible < case_count(CASES) / 2);
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}

static void marginals_are_the_optima_with_a_label_forced(void **state) {
  (void)state;
  solver_case c;
  tm_memory memory;
  tm_memory_init(&memory, 0);
  for (uint64_t seed = 1; seed <= case_count(MARGINAL_CASES); seed++) {
    draw_case(&c, seed + 1000000, &small);
    tm_assignment found;
    if (tm_assignment_solve(&c.problem, NULL, &memory, &found, NULL) != TM_OK) continue;
    assert_true(found.marginals_are_exact);
    for (uint32_t op = 0; op < c.problem.op_count; op++) {
      for (uint32_t i = 0; i < c.ops[op].label_count; i++) {
        const uint32_t label = c.ops[op].first_label + i;
        const uint64_t least = least_total(&c.problem, op, label);
        if (found.min_marginals[label] != least)
          fail_msg("case %llu, operation %u, label %u: %llu, the least is %llu", (unsigned long long)seed, op, label,
                   (unsigned long long)found.min_marginals[label], (unsigned long long)least);
      }
      assert_int_equal(found.min_marginals[found.labels[op]], found.total_ns);
    }
    tm_assignment_deinit(&found);
  }
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}

/* With too few entries the bound is below the optimum and the plan is not; so are the marginals. */
static void a_small_budget_brackets_the_optimum(void **state) {
  (void)state;
  solver_case c;
  tm_memory memory;
  tm_memory_init(&memory, 0);
  const case_limits dense = { .most_ops = 14, .most_labels = 4, .most_memories = 4, .never_percent = 1, .most_cost = 20 };
  uint64_t exact = 0, bracketed = 0, unfound = 0;
  for (uint64_t seed = 1; seed <= case_count(BUDGET_CASES); seed++) {
    draw_case(&c, seed + 2000000, &dense);
    const tm_assignment_options options = { .most_entries = 1 + draw(&c, 100) };
    const uint64_t least = least_total(&c.problem, TM_SOLVER_NONE, 0);
    tm_assignment found;
    const tm_status status = tm_assignment_solve(&c.problem, &options, &memory, &found, NULL);
    if (status == TM_ERROR_NO_DEVICE) assert_true(least == TM_SOLVER_NEVER);
    if (status == TM_ERROR_LIMIT) unfound++;
    if (status != TM_OK) continue;
    if (!(found.bound_ns <= least && least <= found.total_ns) || plan_total(&c.problem, found.labels) != found.total_ns ||
        found.is_exact != (found.bound_ns == found.total_ns))
      fail_msg("case %llu: bound %llu, optimum %llu, total %llu", (unsigned long long)seed, (unsigned long long)found.bound_ns,
               (unsigned long long)least, (unsigned long long)found.total_ns);
    exact += found.is_exact;
    bracketed += !found.is_exact;
    for (uint32_t op = 0; op < c.problem.op_count && seed % 20 == 0; op++) {
      const uint32_t label = c.ops[op].first_label + draw(&c, c.ops[op].label_count);
      assert_true(found.min_marginals[label] <= least_total(&c.problem, op, label));
    }
    tm_assignment_deinit(&found);
  }
  printf("small budgets: %llu proven, %llu bracketed, %llu without a plan\n", (unsigned long long)exact,
         (unsigned long long)bracketed, (unsigned long long)unfound);
  assert_true(exact > 100 && bracketed > 100 && unfound * 50 < exact + bracketed);
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}

/* The budget holds, or the tables are the coarsest that there are. */
static void table_entries_keep_to_the_budget(void **state) {
  (void)state;
  solver_case c;
  tm_memory memory;
  tm_memory_init(&memory, 0);
  const case_limits dense = { .most_ops = 12, .most_labels = 6, .most_memories = 4, .never_percent = 0, .most_cost = 50 };
  uint32_t within = 0, beyond = 0;
  for (uint64_t seed = 1; seed <= case_count(ENTRIES_CASES); seed++) {
    draw_case(&c, seed + 4000000, &dense);
    const tm_assignment_options least = { .most_entries = 1 }, few = { .most_entries = UINT64_C(4) << seed % 8 };
    tm_assignment coarsest, found;
    if (tm_assignment_solve(&c.problem, &least, &memory, &coarsest, NULL) != TM_OK) continue;
    if (tm_assignment_solve(&c.problem, &few, &memory, &found, NULL) == TM_OK) {
      const bool is_within = found.table_entries <= few.most_entries;
      if (!is_within && found.table_entries != coarsest.table_entries)
        fail_msg("case %llu: %llu entries of %llu, the coarsest take %llu", (unsigned long long)seed,
                 (unsigned long long)found.table_entries, (unsigned long long)few.most_entries,
                 (unsigned long long)coarsest.table_entries);
      within += is_within;
      beyond += !is_within;
      tm_assignment_deinit(&found);
    }
    tm_assignment_deinit(&coarsest);
  }
  printf("table entries: %u within the budget, %u with the coarsest tables\n", within, beyond);
  assert_true(within > 100 && beyond > 100);
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}

/* Every value with several readers decided apart: by proof, or together with the others where there is none. */
static void common_values_keep_the_optimum(void **state) {
  (void)state;
  solver_case c;
  tm_memory memory;
  tm_memory_init(&memory, 0);
  const tm_assignment_options together = { .common_readers = UINT32_MAX, .without_marginals = true };
  const tm_assignment_options apart = { .common_readers = 1, .without_marginals = true };
  uint32_t smaller = 0;
  for (uint64_t seed = 1; seed <= case_count(COMMON_CASES); seed++) {
    draw_case(&c, seed + 5000000, &small);
    const uint64_t least = least_total(&c.problem, TM_SOLVER_NONE, 0);
    tm_assignment found, other;
    const tm_status status = tm_assignment_solve(&c.problem, &apart, &memory, &found, NULL);
    assert_int_equal(status, least == TM_SOLVER_NEVER ? TM_ERROR_NO_DEVICE : TM_OK);
    if (status != TM_OK) continue;
    if (found.total_ns != least || found.bound_ns != least || !found.is_exact || plan_total(&c.problem, found.labels) != least)
      fail_msg("case %llu: %llu (bound %llu), the least is %llu", (unsigned long long)seed, (unsigned long long)found.total_ns,
               (unsigned long long)found.bound_ns, (unsigned long long)least);
    assert_int_equal(tm_assignment_solve(&c.problem, &together, &memory, &other, NULL), TM_OK);
    smaller += found.table_entries < other.table_entries;
    tm_assignment_deinit(&found);
    tm_assignment_deinit(&other);
  }
  printf("common values: %u of %llu graphs took fewer table entries\n", smaller, (unsigned long long)case_count(COMMON_CASES));
  assert_true(smaller > 1000);
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}

/* Where everything together does not fit, common values apart may; marginals are then exact, or lower bounds, and say so. */
static void common_values_bound_marginals(void **state) {
  (void)state;
  solver_case c;
  tm_memory memory;
  tm_memory_init(&memory, 0);
  uint32_t exact = 0, bounds = 0;
  for (uint64_t seed = 1; seed <= case_count(MARGINAL_CASES); seed++) {
    draw_case(&c, seed + 6000000, &small);
    const tm_assignment_options tight = { .common_readers = 1, .most_entries = 20 + draw(&c, 120) };
    tm_assignment found;
    if (tm_assignment_solve(&c.problem, &tight, &memory, &found, NULL) != TM_OK) continue;
    exact += found.marginals_are_exact;
    bounds += !found.marginals_are_exact;
    for (uint32_t op = 0; op < c.problem.op_count; op++) {
      const uint32_t label = c.ops[op].first_label + draw(&c, c.ops[op].label_count);
      const uint64_t least = least_total(&c.problem, op, label), told = found.min_marginals[label];
      if (told > least || (found.marginals_are_exact && told != least))
        fail_msg("case %llu, operation %u, label %u: %llu, the least is %llu", (unsigned long long)seed, op, label,
                 (unsigned long long)told, (unsigned long long)least);
      if (found.is_exact && found.marginals_are_exact) assert_int_equal(found.min_marginals[found.labels[op]], found.total_ns);
    }
    tm_assignment_deinit(&found);
  }
  printf("common values: marginals of %u graphs are exact, of %u bounds\n", exact, bounds);
  assert_true(exact > 1000 && bounds > 100);
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}

/* Whatever ran out, table entries or nodes of a search or both: there is a plan, it costs what is said, and nothing costs less
   than the bound. */
static void out_of_nodes_the_bound_holds(void **state) {
  (void)state;
  solver_case c;
  tm_memory memory;
  tm_memory_init(&memory, 0);
  const case_limits dense = { .most_ops = 12, .most_labels = 4, .most_memories = 4, .never_percent = 2, .most_cost = 20 };
  uint32_t open = 0, closed_with_more = 0, without_plan = 0;
  for (uint64_t seed = 1; seed <= case_count(NODE_CASES); seed++) {
    draw_case(&c, seed + 7000000, &dense);
    tm_assignment_options options = { .most_entries = 1 + draw(&c, 200), .most_nodes = 1 + draw(&c, 4), .without_marginals = true };
    options.common_readers = seed % 2 == 0 ? 1 : UINT32_MAX;
    const uint64_t least = least_total(&c.problem, TM_SOLVER_NONE, 0);
    tm_assignment found, more;
    const tm_status status = tm_assignment_solve(&c.problem, &options, &memory, &found, NULL);
    assert_true(status == TM_OK || status == TM_ERROR_LIMIT || (status == TM_ERROR_NO_DEVICE && least == TM_SOLVER_NEVER));
    without_plan += status == TM_ERROR_LIMIT && least != TM_SOLVER_NEVER;
    if (status != TM_OK) continue;
    if (found.bound_ns > least || least > found.total_ns || plan_total(&c.problem, found.labels) != found.total_ns ||
        found.is_exact != (found.bound_ns == found.total_ns))
      fail_msg("case %llu: bound %llu, optimum %llu, total %llu", (unsigned long long)seed, (unsigned long long)found.bound_ns,
               (unsigned long long)least, (unsigned long long)found.total_ns);
    options.most_nodes = 0;
    assert_int_equal(tm_assignment_solve(&c.problem, &options, &memory, &more, NULL), TM_OK);
    assert_true(more.bound_ns >= found.bound_ns || more.is_exact);
    open += !found.is_exact;
    closed_with_more += !found.is_exact && more.is_exact;
    tm_assignment_deinit(&found);
    tm_assignment_deinit(&more);
  }
  printf("few nodes: %u graphs with a gap, which more close for %u; %u without a plan\n", open, closed_with_more, without_plan);
  assert_true(open > 50 && closed_with_more > 10 && without_plan * 50 < case_count(NODE_CASES));
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}

/* The least sum where values are shared out, with tables of so many entries at most (0: no limit). */
static uint64_t shared_out_total(const tm_solver_problem *problem, uint64_t most_table_entries, tm_memory *memory) {
  const tm_factor_rules rules = { .is_shared_out = true };
  const tm_elimination_limits limits = { .most_entries = UINT64_MAX, .most_table_entries = most_table_entries };
  tm_choices choices;
  tm_flow flow;
  tm_factor_graph graph;
  tm_elimination_order order;
  tm_elimination elimination;
  tm_arena arena;
  tm_arena_init(&arena, memory);
  uint64_t total = TM_SOLVER_NEVER;
  tm_status status = tm_choices_init(&choices, problem, &arena, NULL);
  if (status == TM_OK) status = tm_flow_init(&flow, problem, &arena, NULL);
  if (status == TM_OK) status = tm_factor_graph_init(&graph, problem, &choices, &flow, rules, &arena, NULL);
  if (status == TM_OK) status = tm_elimination_order_init(&order, &graph, &limits, &arena, NULL);
  if (status == TM_OK) status = tm_elimination_init(&elimination, &graph, &order, &arena, NULL);
  if (status == TM_OK) total = elimination.total_ns;
  tm_arena_deinit(&arena);
  return total;
}

/* What large graphs have for a bound (assignment.c) where nothing else fits. */
static void shared_out_nobody_pays_more_than_is_owed(void **state) {
  (void)state;
  solver_case c;
  tm_memory memory;
  tm_memory_init(&memory, 0);
  uint32_t tight = 0, loose = 0;
  for (uint64_t seed = 1; seed <= case_count(SHARED_CASES); seed++) {
    draw_case(&c, seed + 8000000, &small);
    const uint64_t least = least_total(&c.problem, TM_SOLVER_NONE, 0);
    const uint64_t whole = shared_out_total(&c.problem, 0, &memory), split = shared_out_total(&c.problem, 1 + seed % 64, &memory);
    if (split > whole || whole > least)
      fail_msg("case %llu: %llu and %llu, the least is %llu", (unsigned long long)seed, (unsigned long long)split,
               (unsigned long long)whole, (unsigned long long)least);
    tight += whole == least;
    loose += split < least;
  }
  printf("shared out: %u of %llu bounds are the optimum, %u with small tables are below\n", tight,
         (unsigned long long)case_count(SHARED_CASES), loose);
  assert_true(tight > SHARED_CASES / 4 && loose > 100);
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_optimum_is_found),
    cmocka_unit_test(marginals_are_the_optima_with_a_label_forced),
    cmocka_unit_test(a_small_budget_brackets_the_optimum),
    cmocka_unit_test(table_entries_keep_to_the_budget),
    cmocka_unit_test(common_values_keep_the_optimum),
    cmocka_unit_test(common_values_bound_marginals),
    cmocka_unit_test(out_of_nodes_the_bound_holds),
    cmocka_unit_test(shared_out_nobody_pays_more_than_is_owed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
