/* SPDX-License-Identifier: Apache-2.0 */
/* Prices of moving one operation against whole plans added up from scratch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "solver/move_price.h"
#include "unit/solver/solver_case.h"

#define CASES 4000u

static const case_limits limits = { .most_ops = 14, .most_labels = 4, .most_memories = 4, .never_percent = 6, .most_cost = 25 };

/* A plan that can be, or false. */
static bool draw_plan(solver_case *c, uint32_t *labels) {
  for (uint32_t turn = 0; turn < 8; turn++) {
    for (uint32_t op = 0; op < c->problem.op_count; op++) labels[op] = c->ops[op].first_label + draw(c, c->ops[op].label_count);
    if (plan_total(&c->problem, labels) != TM_SOLVER_NEVER) return true;
  }
  return false;
}

static void prices_differ_as_totals_do(void **state) {
  (void)state;
  static solver_case c;
  tm_memory memory;
  tm_memory_init(&memory, 0);
  uint32_t moves = 0, impossible = 0;
  for (uint64_t seed = 1; seed <= CASES; seed++) {
    uint32_t labels[CASE_OPS];
    uint64_t prices[CASE_LABELS];
    draw_case(&c, seed + 21000000, &limits);
    if (!draw_plan(&c, labels)) continue;
    const uint64_t total = plan_total(&c.problem, labels);
    assert_int_equal(tm_move_prices_find(&c.problem, labels, &memory, prices, NULL), TM_OK);
    for (uint32_t op = 0; op < c.problem.op_count; op++) {
      const uint32_t chosen = labels[op];
      for (uint32_t i = c.ops[op].first_label; i < c.ops[op].first_label + c.ops[op].label_count; i++) {
        labels[op] = i;
        const uint64_t moved = plan_total(&c.problem, labels);
        if (moved == TM_SOLVER_NEVER) assert_true(prices[i] == TM_SOLVER_NEVER);
        else assert_int_equal(moved - total, prices[i] - prices[chosen]);
        moves += moved != TM_SOLVER_NEVER;
        impossible += moved == TM_SOLVER_NEVER;
      }
      labels[op] = chosen;
    }
  }
  assert_true(moves > CASES && impossible > CASES / 10);
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}

static void too_little_memory_is_told(void **state) {
  (void)state;
  static solver_case c;
  uint32_t labels[CASE_OPS];
  uint64_t prices[CASE_LABELS];
  draw_case(&c, 21000001, &limits);
  for (uint32_t op = 0; op < c.problem.op_count; op++) labels[op] = c.ops[op].first_label;
  tm_memory memory;
  tm_memory_init(&memory, 64);
  assert_int_equal(tm_move_prices_find(&c.problem, labels, &memory, prices, NULL), TM_ERROR_NO_MEMORY);
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(prices_differ_as_totals_do),
    cmocka_unit_test(too_little_memory_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
