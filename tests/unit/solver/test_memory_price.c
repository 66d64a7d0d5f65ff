/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans within budgets of memory, against all plans that fit on random graphs.  What fits is decided here by walking from
 * operation to operation with the values in hand, as an executor would.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "solver/memory_price.h"
#include "unit/solver/solver_case.h"

#define CASES 20000u

/* Has the value, from operation `op` on, any reader that this holds for? */
typedef struct reading {
  const tm_solver_problem *problem;
  const uint32_t          *labels;
} reading;

static bool reads(const reading *r, uint32_t op, uint32_t value, uint32_t memory) {
  const tm_solver_op *row = &r->problem->ops[op];
  if (r->problem->labels[r->labels[op]].input_memory != memory) return false;
  for (uint32_t i = 0; i < row->input_count; i++) {
    if (r->problem->inputs[row->first_input + i] == value) return true;
  }
  return false;
}

static bool reads_later(const reading *r, uint32_t op, uint32_t value, uint32_t memory) {
  for (; op < r->problem->op_count; op++) {
    if (reads(r, op, value, memory)) return true;
  }
  return false;
}

/* Bytes in a memory while `op` runs, from what an executor holds: has[value][memory], its inputs already copied. */
static uint64_t bytes_held(const reading *r, uint32_t op, bool has[CASE_VALUES][CASE_MEMORIES], uint32_t memory) {
  const tm_solver_label *label = &r->problem->labels[r->labels[op]];
  uint64_t bytes = label->output_memory == memory ? label->workspace_bytes : 0;
  for (uint32_t v = 0; v < r->problem->value_count; v++)
    if (has[v][memory] && !tm_solver_is_lent(r->problem, v, memory)) bytes += r->problem->values[v].bytes;
  return bytes;
}

/* Whether the copy in `memory` is needed after `op`. */
static bool is_kept(const reading *r, uint32_t op, uint32_t value, uint32_t memory, uint32_t source, const bool *has) {
  const uint32_t wanted = r->problem->values[value].wanted;
  if (tm_solver_is_kept(r->problem, value) && memory != source) return true;
  if (memory == source && tm_solver_has_trait(r->problem, value, TM_SOLVER_STAYS)) return true;
  if (memory == wanted || reads_later(r, op + 1, value, memory)) return true;
  for (uint32_t m = 0; m < r->problem->memory_count && memory == source; m++) {
    if (m != source && m != wanted && !has[m] && reads_later(r, op + 1, value, m)) return true;
  }
  return false;
}

/* The peaks of a plan; peaks[memory]. */
static void find_peaks(const tm_solver_problem *p, const uint32_t *labels, uint64_t *peaks) {
  const reading r = { p, labels };
  bool has[CASE_VALUES][CASE_MEMORIES] = { { false } };
  uint32_t sources[CASE_VALUES] = { 0 };
  memset(peaks, 0, CASE_MEMORIES * sizeof *peaks);
  for (uint32_t op = 0; op < p->op_count; op++) {
    for (uint32_t v = 0; v < p->value_count; v++) {
      const bool is_home = p->values[v].producer == TM_SOLVER_NONE;
      bool is_used = p->values[v].wanted != TM_SOLVER_NONE || tm_solver_has_trait(p, v, TM_SOLVER_STAYS);
      for (uint32_t m = 0; m < p->memory_count && is_home; m++) is_used = is_used || reads_later(&r, 0, v, m);
      if (is_home ? op == 0 && is_used : p->values[v].producer == op) {
        sources[v] = is_home ? p->values[v].home : p->labels[labels[op]].output_memory;
        has[v][sources[v]] = true;
        if (p->values[v].wanted != TM_SOLVER_NONE) has[v][p->values[v].wanted] = true;
        for (uint32_t m = 0; m < p->memory_count; m++) has[v][m] = has[v][m] || (tm_solver_is_kept(p, v) && reads_later(&r, 0, v, m));
      }
      for (uint32_t m = 0; m < p->memory_count; m++) has[v][m] = has[v][m] || reads(&r, op, v, m);
    }
    for (uint32_t m = 0; m < p->memory_count; m++) {
      const uint64_t bytes = bytes_held(&r, op, has, m);
      if (bytes > peaks[m]) peaks[m] = bytes;
    }
    for (uint32_t v = 0; v < p->value_count; v++) {
      bool now[CASE_MEMORIES];
      memcpy(now, has[v], sizeof now);
      for (uint32_t m = 0; m < p->memory_count; m++) has[v][m] = has[v][m] && is_kept(&r, op, v, m, sources[v], now);
    }
  }
}

static bool fits(const exhaustion *all, const void *context) {
  (void)context;
  uint64_t peaks[CASE_MEMORIES];
  find_peaks(all->problem, all->labels, peaks);
  for (uint32_t m = 0; m < all->problem->memory_count; m++) {
    if (peaks[m] > all->problem->budgets[m]) return false;
  }
  return true;
}

/* Around what the best plan without budgets takes; false if there is none. */
static bool draw_budgets(solver_case *c, tm_memory *memory) {
  tm_assignment free_plan;
  uint64_t peaks[CASE_MEMORIES];
  if (tm_assignment_solve(&c->problem, NULL, memory, &free_plan, NULL) != TM_OK) return false;
  find_peaks(&c->problem, free_plan.labels, peaks);
  tm_assignment_deinit(&free_plan);
  for (uint32_t m = 0; m < c->problem.memory_count; m++)
    c->budgets[m] = draw_percent(c, 30) ? UINT64_MAX : peaks[m] * (60 + draw(c, 50)) / 100 + draw(c, 12);
  c->problem.budgets = c->budgets;
  return true;
}

/* As graphs have them: constants, inputs, states; outputs and what is between. */
static uint8_t draw_traits(solver_case *c, const tm_solver_value *value) {
  static const uint8_t given[] = { 0, TM_SOLVER_KEPT | TM_SOLVER_LENT, TM_SOLVER_LENT, TM_SOLVER_STAYS };
  if (value->producer == TM_SOLVER_NONE) return given[draw(c, 4)];
  return value->wanted != TM_SOLVER_NONE && draw_percent(c, 50) ? TM_SOLVER_LENT : 0;
}

static void plans_fit_and_the_bound_holds(void **state) {
  (void)state;
  const case_limits limits = { .most_ops = 7, .most_labels = 3, .most_memories = 3, .never_percent = 4, .most_cost = 30 };
  const uint64_t cases = getenv("TM_NIGHTLY") != NULL ? 20 * CASES : CASES;
  solver_case c;
  uint8_t traits[CASE_VALUES];
  tm_memory memory;
  tm_memory_init(&memory, 0);
  uint64_t free_cases = 0, priced = 0, best = 0, unfit = 0, missed = 0, proven = 0;
  double gap = 0;
  for (uint64_t seed = 1; seed <= cases; seed++) {
    draw_case(&c, seed + 3000000, &limits);
    c.problem.traits = traits;
    for (uint32_t v = 0; v < c.problem.value_count; v++) traits[v] = draw_traits(&c, &c.values[v]);
    if (!draw_budgets(&c, &memory)) continue;
    exhaustion all = { .problem = &c.problem, .forced_op = TM_SOLVER_NONE, .accepts = fits };
    exhaust(&all);
    tm_assignment_within found;
    const tm_status status = tm_assignment_solve_within(&c.problem, NULL, &memory, &found, NULL);
    if (status == TM_OK) {
      uint64_t peaks[CASE_MEMORIES];
      find_peaks(&c.problem, found.assignment.labels, peaks);
      for (uint32_t m = 0; m < c.problem.memory_count; m++) {
        if (peaks[m] > c.budgets[m] || peaks[m] != found.peak_bytes[m])
          fail_msg("case %llu: %llu bytes of memory %u, said to be %llu of %llu", (unsigned long long)seed,
                   (unsigned long long)peaks[m], m, (unsigned long long)found.peak_bytes[m],
                   (unsigned long long)c.budgets[m]);
      }
      if (!(found.assignment.bound_ns <= all.least && all.least <= found.assignment.total_ns) ||
          plan_total(&c.problem, found.assignment.labels) != found.assignment.total_ns)
        fail_msg("case %llu: bound %llu, optimum %llu, total %llu", (unsigned long long)seed,
                 (unsigned long long)found.assignment.bound_ns, (unsigned long long)all.least,
                 (unsigned long long)found.assignment.total_ns);
      free_cases += found.solve_count == 1;
      priced += found.solve_count > 1;
      if (found.solve_count > 1) {
        best += found.assignment.total_ns == all.least;
        proven += found.assignment.is_exact;
        gap += found.assignment.total_ns == 0 ? 0 : 1 - (double)found.assignment.bound_ns / (double)found.assignment.total_ns;
      }
      tm_assignment_within_deinit(&found);
    } else if (status == TM_ERROR_LIMIT) {
      unfit++;
      missed += all.least != TM_SOLVER_NEVER;
    } else {
      assert_int_equal(status, TM_ERROR_NO_DEVICE);
      assert_true(all.least == TM_SOLVER_NEVER);
    }
  }
  printf(
      "%llu in nobody's way, %llu priced (best found %llu, proven %llu, mean gap %.3f), %llu refused, of which %llu "
      "had a plan\n",
      (unsigned long long)free_cases, (unsigned long long)priced, (unsigned long long)best, (unsigned long long)proven,
      gap / (double)priced, (unsigned long long)unfit, (unsigned long long)missed);
  assert_true(priced > cases / 20 && best * 10 > priced * 9 && missed * 20 < priced);
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}

/* One value, read in every memory by an operation that can run nowhere else. */
static void spread_value(solver_case *c, uint32_t memories, uint64_t bytes) {
  *c = (solver_case){ .problem = { .op_count = memories, .label_count = memories, .value_count = 1, .input_count = memories,
                                   .memory_count = memories, .resource_count = 1, .size_class_count = 1 } };
  c->problem.ops = c->ops, c->problem.labels = c->labels, c->problem.values = c->values, c->problem.inputs = c->inputs;
  c->problem.copy_ns = c->copy_ns, c->problem.budgets = c->budgets;
  for (uint32_t i = 0; i < memories; i++) {
    c->ops[i] = (tm_solver_op){ i, 1, i, 1 };
    c->labels[i] = (tm_solver_label){ .cost_ns = 1, .input_memory = i, .output_memory = i };
  }
  c->values[0] = (tm_solver_value){ .bytes = bytes, .producer = TM_SOLVER_NONE, .home = 0, .wanted = TM_SOLVER_NONE };
}

/* What all memories together have too much is more than 64 bits count: four times 2^62, and five times. */
static void an_excess_over_all_memories_does_not_wrap(void **state) {
  (void)state;
  static solver_case c;
  tm_memory memory;
  tm_memory_init(&memory, 0);
  for (uint32_t memories = 1; memories <= CASE_MEMORIES; memories++) {
    for (uint64_t less = 0; less < 2; less++) {
      spread_value(&c, memories, (UINT64_C(1) << 62) - less);
      tm_assignment_within found;
      tm_error error = TM_ERROR_INIT;
      assert_int_equal(tm_assignment_solve_within(&c.problem, NULL, &memory, &found, &error), TM_ERROR_LIMIT);
      char expected[160];
      snprintf(expected, sizeof expected,
               "no plan that fits was found: the nearest one needs %llu bytes of memory 0 at operation 0 and may use 0",
               (unsigned long long)c.values[0].bytes);
      assert_string_equal(error.text, expected);
      for (uint32_t m = 0; m < memories; m++) c.budgets[m] = c.values[0].bytes;
      assert_int_equal(tm_assignment_solve_within(&c.problem, NULL, &memory, &found, &error), TM_OK);
      for (uint32_t m = 0; m < memories; m++) assert_int_equal(found.peak_bytes[m], c.values[0].bytes);
      tm_assignment_within_deinit(&found);
    }
  }
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(plans_fit_and_the_bound_holds),
    cmocka_unit_test(an_excess_over_all_memories_does_not_wrap),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
