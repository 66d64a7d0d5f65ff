/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One order for all resources: possible, faithful to the order of each, and in it a thread that waits where it must is done when
 * the timeline says so.  The walk here shares nothing with the library but the problem's own structs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "solver/issue_order.h"
#include "unit/solver/problem_builder.h"
#include "unit/solver/solver_case.h"

#define CASES 5000u

static tm_memory memory;

static void expect_possible(const tm_solver_problem *p, const tm_issue_rules *rules, const uint32_t *order, uint64_t seed) {
  bool is_done[CASE_OPS] = { false };
  for (uint32_t place = 0; place < p->op_count; place++) {
    const uint32_t op = order[place];
    if (op >= p->op_count || is_done[op]) fail_msg("case %llu: no permutation", (unsigned long long)seed);
    for (uint32_t i = 0; i < p->ops[op].input_count; i++) {
      const uint32_t producer = p->values[p->inputs[p->ops[op].first_input + i]].producer;
      if (producer != TM_SOLVER_NONE && !is_done[producer]) fail_msg("case %llu: %u too soon", (unsigned long long)seed, op);
    }
    for (uint32_t i = rules->first_before == NULL ? 0 : rules->first_before[op];
         rules->first_before != NULL && i < rules->first_before[op + 1]; i++)
      if (!is_done[rules->befores[i]]) fail_msg("case %llu: %u is not behind %u", (unsigned long long)seed, op, rules->befores[i]);
    is_done[op] = true;
  }
}

/* When all is over if one thread hands it out in that order, and waits for what another resource makes. */
static uint64_t walk(const tm_solver_problem *p, const uint32_t *labels, const uint32_t *order, uint32_t thread_resource) {
  uint64_t thread_ns = 0, free_ns[8] = { 0 }, end_ns[CASE_OPS] = { 0 }, last_ns = 0;
  for (uint32_t place = 0; place < p->op_count; place++) {
    const uint32_t op = order[place];
    const tm_solver_label *label = &p->labels[labels[op]];
    for (uint32_t i = 0; i < p->ops[op].input_count; i++) {
      const uint32_t producer = p->values[p->inputs[p->ops[op].first_input + i]].producer;
      if (producer == TM_SOLVER_NONE || p->labels[labels[producer]].resource == label->resource) continue;
      if (end_ns[producer] > thread_ns) thread_ns = end_ns[producer];
    }
    const uint64_t begin_ns = free_ns[label->resource] > thread_ns ? free_ns[label->resource] : thread_ns;
    end_ns[op] = free_ns[label->resource] = begin_ns + label->cost_ns;
    if (label->resource == thread_resource) thread_ns = end_ns[op];
    if (end_ns[op] > last_ns) last_ns = end_ns[op];
  }
  return last_ns;
}

static void find_order(const tm_solver_problem *p, const uint32_t *labels, const uint32_t *order, const tm_issue_rules *rules,
                       uint32_t *out_order, uint64_t *out_makespan_ns) {
  tm_arena arena;
  tm_problem_index index;
  tm_event_model model;
  tm_arena_init(&arena, &memory);
  assert_int_equal(tm_problem_index_make(p, &arena, &index, NULL), TM_OK);
  assert_int_equal(tm_event_model_init(&model, &index, &arena, NULL), TM_OK);
  tm_event_model_run(&model, labels, order);
  assert_int_equal(tm_issue_order_make(&model, rules, &memory, out_order, NULL), TM_OK);
  *out_makespan_ns = model.makespan_ns;
  tm_arena_deinit(&arena);
}

static bool draw_plan(solver_case *c, uint64_t seed, uint32_t *labels, uint32_t *order) {
  const case_limits limits = { .most_ops = 18, .most_labels = 3, .most_memories = 1, .never_percent = 0, .most_cost = 30 };
  draw_case(c, seed, &limits);
  for (uint32_t op = 0; op < c->problem.op_count; op++) {
    labels[op] = c->ops[op].first_label + draw(c, c->ops[op].label_count);
    order[op] = op;
  }
  return c->problem.op_count > 1;
}

/* Resources keep the order that they had. */
static void expect_faithful(const solver_case *c, const uint32_t *labels, const uint32_t *order, uint64_t seed) {
  for (uint32_t resource = 0; resource < c->problem.resource_count; resource++) {
    uint32_t last = 0;
    for (uint32_t place = 0; place < c->problem.op_count; place++) {
      if (c->labels[labels[order[place]]].resource != resource) continue;
      if (order[place] < last) fail_msg("case %llu: resource %u has another order", (unsigned long long)seed, resource);
      last = order[place];
    }
  }
}

static void a_thread_that_waits_is_in_nobodys_way(void **state) {
  (void)state;
  static solver_case c;
  uint32_t labels[CASE_OPS], order[CASE_OPS], found[CASE_OPS], sooner = 0;
  const tm_issue_rules rules = { .thread_resource = TM_SOLVER_NONE };
  for (uint64_t seed = 1; seed <= CASES; seed++) {
    uint64_t makespan_ns;
    if (!draw_plan(&c, seed, labels, order)) continue;
    find_order(&c.problem, labels, order, &rules, found, &makespan_ns);
    expect_possible(&c.problem, &rules, found, seed);
    expect_faithful(&c, labels, found, seed);
    const uint64_t walked_ns = walk(&c.problem, labels, found, TM_SOLVER_NONE);
    if (walked_ns != makespan_ns)
      fail_msg("case %llu: over after %llu ns, not %llu", (unsigned long long)seed, (unsigned long long)walked_ns,
               (unsigned long long)makespan_ns);
    sooner += walked_ns < walk(&c.problem, labels, order, TM_SOLVER_NONE);
  }
  print_message("over sooner than as they come: %u of %u\n", sooner, CASES);
  assert_true(sooner > CASES / 10);
}

static void one_resource_may_be_the_thread(void **state) {
  (void)state;
  static solver_case c;
  uint32_t labels[CASE_OPS], order[CASE_OPS], found[CASE_OPS];
  const tm_issue_rules rules = { .thread_resource = 2 };
  uint64_t walked_ns = 0, plain_ns = 0, least_ns = 0;
  for (uint64_t seed = 1; seed <= CASES; seed++) {
    uint64_t makespan_ns;
    if (!draw_plan(&c, seed + CASES, labels, order)) continue;
    find_order(&c.problem, labels, order, &rules, found, &makespan_ns);
    expect_possible(&c.problem, &rules, found, seed);
    expect_faithful(&c, labels, found, seed);
    walked_ns += walk(&c.problem, labels, found, 2);
    plain_ns += walk(&c.problem, labels, order, 2);
    least_ns += makespan_ns;
  }
  print_message("%llu ns, as they come %llu, by their timelines %llu\n", (unsigned long long)walked_ns,
                (unsigned long long)plain_ns, (unsigned long long)least_ns);
  assert_true(walked_ns < plain_ns && walked_ns >= least_ns);
}

/* Some operations come before others although those read nothing of theirs. */
static void rules_hold(void **state) {
  (void)state;
  static solver_case c;
  uint32_t labels[CASE_OPS], order[CASE_OPS], found[CASE_OPS], first_before[CASE_OPS + 1], befores[CASE_OPS * 3];
  for (uint64_t seed = 1; seed <= CASES; seed++) {
    uint64_t makespan_ns;
    uint32_t count = 0;
    if (!draw_plan(&c, seed + 2 * CASES, labels, order)) continue;
    for (uint32_t op = 0; op < c.problem.op_count; op++) {
      first_before[op] = count;
      for (uint32_t i = op == 0 ? 0 : draw(&c, 3); i > 0; i--) befores[count++] = draw(&c, op);
      first_before[op + 1] = count;
    }
    const tm_issue_rules rules = { .thread_resource = TM_SOLVER_NONE, .first_before = first_before, .befores = befores };
    find_order(&c.problem, labels, order, &rules, found, &makespan_ns);
    expect_possible(&c.problem, &rules, found, seed);
  }
}

/* A chain as long as can be that is the wrong way round: the first to be handed out needs all others. */
static void long_chains_end(void **state) {
  (void)state;
  enum { OPS = 20000 };
  problem_builder builder;
  uint32_t *labels = calloc(OPS, sizeof *labels), *order = calloc(OPS, sizeof *order), *found = calloc(OPS, sizeof *found);
  uint32_t *first_before = calloc(OPS + 1, sizeof *first_before), *befores = calloc(OPS, sizeof *befores);
  builder_init(&builder, 1, 2, 1, OPS);
  for (uint32_t op = 0; op < OPS; op++) {
    (void)builder_op(&builder);
    labels[op] = builder_label(&builder, (tm_solver_label){ .cost_ns = op == OPS - 1 ? 0 : 1, .resource = op == OPS - 1 });
    order[op] = op;
    first_before[op + 1] = op;
    if (op != 0) befores[op - 1] = op - 1;
  }
  const tm_issue_rules rules = { .thread_resource = TM_SOLVER_NONE, .first_before = first_before, .befores = befores };
  uint64_t makespan_ns;
  order[0] = OPS - 1;
  for (uint32_t i = 1; i < OPS; i++) order[i] = i - 1;
  find_order(&builder.problem, labels, order, &rules, found, &makespan_ns);
  for (uint32_t op = 0; op < OPS; op++) assert_int_equal(found[op], op);
  builder_deinit(&builder);
  free(labels), free(order), free(found), free(first_before), free(befores);
}

static void nothing_stays_behind(void **state) {
  (void)state;
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_thread_that_waits_is_in_nobodys_way),
    cmocka_unit_test(one_resource_may_be_the_thread),
    cmocka_unit_test(rules_hold),
    cmocka_unit_test(long_chains_end),
    cmocka_unit_test(nothing_stays_behind),
  };
  tm_memory_init(&memory, 0);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
