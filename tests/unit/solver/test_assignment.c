/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must not change an assignment, or only in one direction; values that everybody reads; sums at the limit; input that
 * breaks the rules; too little memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "solver/memory_price.h"
#include "unit/solver/solver_case.h"

#define CASES 2000u

static const case_limits medium = { .most_ops = 14, .most_labels = 4, .most_memories = 4, .never_percent = 4, .most_cost = 25 };

static tm_status solve(const tm_solver_problem *problem, tm_assignment *out) {
  static tm_memory memory;
  if (memory.alloc == NULL) tm_memory_init(&memory, 0);
  return tm_assignment_solve(problem, NULL, &memory, out, NULL);
}

/* Calls `check` with problems that have a plan, and its solution. */
static void for_each_case(uint64_t first_seed, void (*check)(solver_case *c, const tm_assignment *found)) {
  static solver_case c;
  uint32_t checked = 0;
  for (uint64_t seed = first_seed; seed < first_seed + CASES; seed++) {
    draw_case(&c, seed, &medium);
    tm_assignment found;
    if (solve(&c.problem, &found) != TM_OK) continue;
    check(&c, &found);
    tm_assignment_deinit(&found);
    checked++;
  }
  assert_true(checked > CASES / 2);
}

static void scaled_costs(solver_case *c, const tm_assignment *found) {
  for (uint32_t i = 0; i < c->problem.label_count; i++)
    c->labels[i].cost_ns *= c->labels[i].cost_ns == TM_SOLVER_NEVER ? 1 : 1000003;
  for (uint32_t i = 0; i < CASE_CLASSES * c->problem.memory_count * c->problem.memory_count; i++)
    c->copy_ns[i] *= c->copy_ns[i] == TM_SOLVER_NEVER ? 1 : 1000003;
  tm_assignment scaled;
  assert_int_equal(solve(&c->problem, &scaled), TM_OK);
  assert_int_equal(scaled.total_ns, found->total_ns * 1000003);
  assert_memory_equal(scaled.labels, found->labels, c->problem.op_count * sizeof *found->labels);
  tm_assignment_deinit(&scaled);
}
static void scaling_changes_no_plan(void **state) {
  (void)state;
  for_each_case(11000000, scaled_costs);
}

/* Labels in another order and memories under other numbers: the same ranks are chosen. */
static void renumbered(solver_case *c, const tm_assignment *found) {
  static solver_case other;
  const uint32_t memories = c->problem.memory_count, turn = draw(c, memories);
  uint32_t new_memory[CASE_MEMORIES];
  for (uint32_t m = 0; m < memories; m++) new_memory[m] = memories - 1 - (m + turn) % memories;
  other = *c;
  tm_solver_problem p = c->problem;
  p.labels = other.labels;
  p.values = other.values;
  p.copy_ns = other.copy_ns;
  for (uint32_t op = 0; op < p.op_count; op++) {
    const uint32_t first = c->ops[op].first_label, count = c->ops[op].label_count, shift = draw(c, count);
    for (uint32_t i = 0; i < count; i++) {
      tm_solver_label *label = &other.labels[first + (i + shift) % count];
      *label = c->labels[first + i];
      label->input_memory = new_memory[label->input_memory];
      label->output_memory = new_memory[label->output_memory];
    }
  }
  for (uint32_t v = 0; v < p.value_count; v++) {
    if (other.values[v].home != TM_SOLVER_NONE) other.values[v].home = new_memory[other.values[v].home];
    if (other.values[v].wanted != TM_SOLVER_NONE) other.values[v].wanted = new_memory[other.values[v].wanted];
  }
  for (uint32_t i = 0; i < CASE_CLASSES * memories * memories; i++)
    other.copy_ns[(i / memories / memories * memories + new_memory[i / memories % memories]) * memories +
                  new_memory[i % memories]] = c->copy_ns[i];
  tm_assignment again;
  assert_int_equal(solve(&p, &again), TM_OK);
  assert_int_equal(again.total_ns, found->total_ns);
  for (uint32_t op = 0; op < p.op_count; op++) {
    assert_int_equal(other.labels[again.labels[op]].rank, c->labels[found->labels[op]].rank);
    for (uint32_t i = c->ops[op].first_label; i < c->ops[op].first_label + c->ops[op].label_count; i++) {
      for (uint32_t k = c->ops[op].first_label; k < c->ops[op].first_label + c->ops[op].label_count; k++) {
        if (other.labels[k].rank == c->labels[i].rank) assert_int_equal(again.min_marginals[k], found->min_marginals[i]);
      }
    }
  }
  tm_assignment_deinit(&again);
}
static void numbers_decide_nothing(void **state) {
  (void)state;
  for_each_case(12000000, renumbered);
}

/* A copy of the last operation's labels, each dearer or of a later rank than its original, behind the originals. */
static void dominated(solver_case *c, const tm_assignment *found) {
  tm_solver_op *row = &c->ops[c->problem.op_count - 1];
  const uint32_t count = row->label_count;
  for (uint32_t i = 0; i < count; i++) {
    tm_solver_label label = c->labels[row->first_label + i];
    label.rank += 100;
    if (label.cost_ns != TM_SOLVER_NEVER) label.cost_ns += draw(c, 3);
    c->labels[c->problem.label_count++] = label;
    row->label_count++;
  }
  tm_assignment again;
  assert_int_equal(solve(&c->problem, &again), TM_OK);
  assert_int_equal(again.total_ns, found->total_ns);
  assert_memory_equal(again.labels, found->labels, c->problem.op_count * sizeof *found->labels);
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t original = row->first_label + i, copy = original + count;
    if (c->labels[copy].cost_ns == TM_SOLVER_NEVER || found->min_marginals[original] == TM_SOLVER_NEVER) continue;
    assert_int_equal(again.min_marginals[copy],
                     found->min_marginals[original] + c->labels[copy].cost_ns - c->labels[original].cost_ns);
  }
  tm_assignment_deinit(&again);
}
static void a_dominated_label_changes_nothing(void **state) {
  (void)state;
  for_each_case(13000000, dominated);
}

static void cheaper_link(solver_case *c, const tm_assignment *found) {
  for (int i = 0; i < 4; i++) {
    uint64_t *copy = &c->copy_ns[draw(c, CASE_CLASSES * c->problem.memory_count * c->problem.memory_count)];
    *copy = *copy == TM_SOLVER_NEVER ? 20 : *copy / 2;
    const uint32_t at = (uint32_t)(copy - c->copy_ns) % (c->problem.memory_count * c->problem.memory_count);
    if (at / c->problem.memory_count == at % c->problem.memory_count) *copy = 0;
  }
  tm_assignment again;
  assert_int_equal(solve(&c->problem, &again), TM_OK);
  assert_true(again.total_ns <= found->total_ns);
  tm_assignment_deinit(&again);
}
static void a_cheaper_link_never_costs(void **state) {
  (void)state;
  for_each_case(14000000, cheaper_link);
}

/* The same graph once more beside itself. */
static void doubled(solver_case *c, const tm_assignment *found) {
  tm_solver_problem *p = &c->problem;
  const uint32_t ops = p->op_count, labels = p->label_count, values = p->value_count, inputs = p->input_count;
  if (2 * ops > CASE_OPS || 2 * labels > CASE_LABELS || 2 * values > CASE_VALUES || 2 * inputs > CASE_INPUTS) return;
  for (uint32_t i = 0; i < ops; i++) {
    c->ops[ops + i] = c->ops[i];
    c->ops[ops + i].first_label += labels;
    c->ops[ops + i].first_input += inputs;
  }
  memcpy(c->labels + labels, c->labels, labels * sizeof *c->labels);
  for (uint32_t i = 0; i < values; i++) {
    c->values[values + i] = c->values[i];
    if (c->values[i].producer != TM_SOLVER_NONE) c->values[values + i].producer += ops;
  }
  for (uint32_t i = 0; i < inputs; i++) c->inputs[inputs + i] = c->inputs[i] + values;
  p->op_count *= 2;
  p->label_count *= 2;
  p->value_count *= 2;
  p->input_count *= 2;
  tm_assignment again;
  assert_int_equal(solve(p, &again), TM_OK);
  assert_int_equal(again.total_ns, 2 * found->total_ns);
  for (uint32_t i = 0; i < ops; i++) {
    assert_int_equal(again.labels[i], found->labels[i]);
    assert_int_equal(again.labels[ops + i], found->labels[i] + labels);
  }
  for (uint32_t i = 0; i < labels; i++)
    assert_int_equal(again.min_marginals[i], plain_add(found->min_marginals[i], found->total_ns));
  tm_assignment_deinit(&again);
}
static void twice_the_graph_costs_twice(void **state) {
  (void)state;
  for_each_case(15000000, doubled);
}

/* More memory: the plan for less is still one, so nothing proven for more exceeds it. */
static void roomier(solver_case *c, const tm_assignment *found) {
  tm_memory memory;
  tm_memory_init(&memory, 0);
  c->problem.budgets = c->budgets;
  for (uint32_t m = 0; m < c->problem.memory_count; m++) c->budgets[m] = 15 + draw(c, 30);
  tm_assignment_within tight, roomy;
  if (tm_assignment_solve_within(&c->problem, NULL, &memory, &tight, NULL) != TM_OK) return;
  for (uint32_t m = 0; m < c->problem.memory_count; m++) c->budgets[m] += draw(c, 20);
  assert_int_equal(tm_assignment_solve_within(&c->problem, NULL, &memory, &roomy, NULL), TM_OK);
  assert_true(roomy.assignment.bound_ns <= tight.assignment.total_ns && found->total_ns <= roomy.assignment.total_ns);
  tm_assignment_within_deinit(&tight);
  tm_assignment_within_deinit(&roomy);
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}
static void more_memory_never_costs(void **state) {
  (void)state;
  for_each_case(16000000, roomier);
}

/* ---- A mask that every operation of a long chain reads. ---- */

#define CHAIN 300u
#define CHAIN_MEMORIES 3u
#define CHAINS 40u

typedef struct chain {
  tm_solver_problem problem;
  tm_solver_op      ops[CHAIN];
  tm_solver_label   labels[CHAIN * CHAIN_MEMORIES];
  tm_solver_value   values[CHAIN + 3];
  uint32_t          inputs[CHAIN * 4];
  uint64_t          copy_ns[2 * CHAIN_MEMORIES * CHAIN_MEMORIES];
} chain;

/* `are_made`: the first operations make the masks beside what they make for the chain. */
static void draw_chain(chain *one, solver_case *random, uint32_t masks, bool are_made) {
  memset(one, 0, sizeof *one);
  one->problem = (tm_solver_problem){.ops = one->ops,
                                     .labels = one->labels,
                                     .values = one->values,
                                     .inputs = one->inputs,
                                     .copy_ns = one->copy_ns,
                                     .op_count = CHAIN,
                                     .label_count = CHAIN * CHAIN_MEMORIES,
                                     .value_count = masks,
                                     .memory_count = CHAIN_MEMORIES,
                                     .resource_count = 1,
                                     .size_class_count = 2};
  for (uint32_t i = 0; i < 2 * CHAIN_MEMORIES * CHAIN_MEMORIES; i++) {
    const bool is_same = i / CHAIN_MEMORIES % CHAIN_MEMORIES == i % CHAIN_MEMORIES;
    one->copy_ns[i] = is_same ? 0 : (i < CHAIN_MEMORIES * CHAIN_MEMORIES ? 10 : 150) + draw(random, 30);
  }
  for (uint32_t m = 0; m < masks; m++) {
    const uint32_t producer = are_made ? m : TM_SOLVER_NONE, home = are_made ? TM_SOLVER_NONE : 0;
    one->values[m] = (tm_solver_value){ 1, producer, home, TM_SOLVER_NONE, 1 };
  }
  for (uint32_t op = 0; op < CHAIN; op++) {
    one->ops[op] = (tm_solver_op){ op * CHAIN_MEMORIES, CHAIN_MEMORIES, one->problem.input_count, 0 };
    for (uint32_t m = 0; m < masks; m++) {
      if (draw_percent(random, 70) && (!are_made || op > m)) one->inputs[one->problem.input_count++] = m;
    }
    if (op > 0) one->inputs[one->problem.input_count++] = masks + op - 1;
    if (op > 1 && draw_percent(random, 40)) one->inputs[one->problem.input_count++] = masks + op - 2;
    one->ops[op].input_count = one->problem.input_count - one->ops[op].first_input;
    for (uint32_t m = 0; m < CHAIN_MEMORIES; m++)
      one->labels[op * CHAIN_MEMORIES + m] = (tm_solver_label){ (m == 0 ? 8 : 0) + draw(random, 30), m, m, 0, m, 0 };
    one->values[one->problem.value_count++] = (tm_solver_value){ 1, op, TM_SOLVER_NONE, TM_SOLVER_NONE, 0 };
  }
}

/* What was found with few entries against the whole truth. */
static void assert_brackets(const tm_solver_problem *problem, const tm_assignment *whole, const tm_assignment *apart) {
  assert_true(apart->bound_ns <= whole->total_ns && whole->total_ns <= apart->total_ns);
  assert_true(apart->is_exact == (apart->bound_ns == apart->total_ns));
  for (uint32_t i = 0; i < problem->label_count; i++) assert_true(apart->min_marginals[i] <= whole->min_marginals[i]);
}

/* Decided apart by proof, as is usual for values of so many readers. */
static void assert_proven_apart(const tm_solver_problem *problem, const tm_assignment *whole, tm_memory *memory) {
  const tm_assignment_options usual = { .without_marginals = true };
  tm_assignment apart;
  assert_int_equal(tm_assignment_solve(problem, &usual, memory, &apart, NULL), TM_OK);
  assert_true(apart.is_exact && apart.total_ns == whole->total_ns && apart.table_entries < whole->table_entries / 2);
  tm_assignment_deinit(&apart);
}

/* Decided with the others, and taken apart for want of entries, what everybody reads is still decided exactly. */
static void what_everybody_reads_stays_exact(void **state) {
  (void)state;
  static chain one;
  static solver_case random;
  random.random = 42;
  tm_memory memory;
  tm_memory_init(&memory, 0);
  uint32_t exact = 0, cheaper = 0;
  double gaps = 0;
  for (uint32_t i = 0; i < CHAINS; i++) {
    draw_chain(&one, &random, 1 + i % 3, false);
    tm_assignment whole, apart;
    tm_assignment_options options = { .common_readers = UINT32_MAX }, few = options;
    assert_int_equal(tm_assignment_solve(&one.problem, &options, &memory, &whole, NULL), TM_OK);
    assert_true(whole.is_exact && whole.marginals_are_exact);
    assert_proven_apart(&one.problem, &whole, &memory);
    options.most_entries = whole.table_entries / 2;
    few.most_entries = whole.table_entries / (3 + i % 10);
    assert_int_equal(tm_assignment_solve(&one.problem, &few, &memory, &apart, NULL), TM_OK);
    assert_brackets(&one.problem, &whole, &apart);
    gaps += 1 - (double)apart.bound_ns / (double)apart.total_ns;
    tm_assignment_deinit(&apart);
    assert_int_equal(tm_assignment_solve(&one.problem, &options, &memory, &apart, NULL), TM_OK);
    assert_brackets(&one.problem, &whole, &apart);
    exact += apart.is_exact;
    cheaper += apart.table_entries <= options.most_entries;
    tm_assignment_deinit(&whole);
    tm_assignment_deinit(&apart);
  }
  printf("%u of %u chains proven with half of the entries; mean gap with a few %.4f\n", exact, CHAINS, gaps / CHAINS);
  assert_true(exact >= CHAINS * 9 / 10 && cheaper == CHAINS && gaps / CHAINS < 0.1);
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}

/* What an operation makes for all others costs more or less to copy, as it is placed. */
static void what_is_made_for_everybody_stays_exact(void **state) {
  (void)state;
  static chain one;
  static solver_case random;
  random.random = 43;
  tm_memory memory;
  tm_memory_init(&memory, 0);
  const tm_assignment_options together = { .common_readers = UINT32_MAX };
  for (uint32_t i = 0; i < CHAINS / 2; i++) {
    tm_assignment whole;
    draw_chain(&one, &random, 1 + i % 2, true);
    assert_int_equal(tm_assignment_solve(&one.problem, &together, &memory, &whole, NULL), TM_OK);
    assert_true(whole.is_exact);
    assert_proven_apart(&one.problem, &whole, &memory);
    tm_assignment_deinit(&whole);
  }
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}

/* Neither is there room for tables over all of it, nor can a search decide: a plan near its bound comes without more ado. */
static void a_plan_near_its_bound_is_good_enough(void **state) {
  (void)state;
  static chain one;
  static solver_case random;
  random.random = 44;
  tm_memory memory;
  tm_memory_init(&memory, 0);
  uint32_t near = 0;
  for (uint32_t i = 0; i < CHAINS; i++) {
    tm_assignment whole, found;
    draw_chain(&one, &random, 2, true);
    for (uint32_t l = 0; l < one.problem.label_count; l++) one.labels[l].cost_ns += 1000;
    const tm_assignment_options together = { .common_readers = UINT32_MAX, .without_marginals = true };
    assert_int_equal(tm_assignment_solve(&one.problem, &together, &memory, &whole, NULL), TM_OK);
    const tm_assignment_options tight = { .without_marginals = true, .most_nodes = 1, .most_entries = whole.table_entries / 2 };
    assert_int_equal(tm_assignment_solve(&one.problem, &tight, &memory, &found, NULL), TM_OK);
    assert_int_equal(found.total_ns, plan_total(&one.problem, found.labels));
    assert_true(found.bound_ns <= whole.total_ns && whole.total_ns <= found.total_ns);
    assert_true(found.is_exact == (found.bound_ns == found.total_ns));
    near += !found.is_exact && found.total_ns - found.bound_ns <= found.total_ns / 1000 && found.table_entries < tight.most_entries;
    tm_assignment_deinit(&whole);
    tm_assignment_deinit(&found);
  }
  printf("%u of %u chains near their bounds\n", near, CHAINS);
  assert_true(near != 0);
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}

/* ---- Thousands of operations that read from anywhere before them. ---- */

#define TANGLE 5000u
#define TANGLE_INPUTS 4u

/* `labels` a number for each operation, in as many memories. */
static void draw_tangle(tm_solver_problem *p, uint32_t labels, solver_case *random) {
  tm_solver_op *ops = calloc(TANGLE, sizeof *ops);
  tm_solver_label *rows = calloc((size_t)TANGLE * labels, sizeof *rows);
  tm_solver_value *values = calloc(TANGLE, sizeof *values);
  uint32_t *inputs = calloc((size_t)TANGLE * TANGLE_INPUTS, sizeof *inputs);
  uint64_t *copies = calloc((size_t)labels * labels, sizeof *copies);
  assert_true(ops != NULL && rows != NULL && values != NULL && inputs != NULL && copies != NULL);
  *p = (tm_solver_problem){ .ops = ops, .labels = rows, .values = values, .inputs = inputs, .copy_ns = copies,
                            .op_count = TANGLE, .label_count = TANGLE * labels, .value_count = TANGLE, .input_count = TANGLE * TANGLE_INPUTS,
                            .memory_count = labels, .resource_count = 1, .size_class_count = 1 };
  for (uint32_t i = 0; i < labels * labels; i++) copies[i] = i / labels == i % labels ? 0 : 20 + draw(random, 30);
  for (uint32_t op = 0; op < TANGLE; op++) {
    ops[op] = (tm_solver_op){ op * labels, labels, op * TANGLE_INPUTS, op < TANGLE_INPUTS ? 0 : TANGLE_INPUTS };
    for (uint32_t i = 0; i < TANGLE_INPUTS && op >= TANGLE_INPUTS; i++)
      inputs[op * TANGLE_INPUTS + i] = i * (op / TANGLE_INPUTS) + draw(random, op / TANGLE_INPUTS);
    for (uint32_t m = 0; m < labels; m++) rows[op * labels + m] = (tm_solver_label){ draw(random, 100), m, m, 0, m, 0 };
    values[op] = (tm_solver_value){ 1, op, TM_SOLVER_NONE, TM_SOLVER_NONE, 0 };
  }
}

static void free_tangle(tm_solver_problem *p) {
  free((void *)(uintptr_t)p->ops);
  free((void *)(uintptr_t)p->labels);
  free((void *)(uintptr_t)p->values);
  free((void *)(uintptr_t)p->inputs);
  free((void *)(uintptr_t)p->copy_ns);
}

/* No order keeps their tables small.  Time, memory and what is told stay within bounds all the same. */
static void a_tangle_is_given_a_plan_and_a_bound(void **state) {
  (void)state;
  static solver_case random;
  random.random = 4242;
  for (uint32_t labels = 3; labels <= 24; labels *= 8) {
    tm_solver_problem p;
    tm_memory memory;
    tm_assignment found;
    tm_memory_init(&memory, 0);
    draw_tangle(&p, labels, &random);
    const tm_assignment_options options = { .most_entries = UINT64_C(1) << 20, .without_marginals = true };
    assert_int_equal(tm_assignment_solve(&p, &options, &memory, &found, NULL), TM_OK);
    uint64_t least = 0, total = 0;
    for (uint32_t op = 0; op < TANGLE; op++) {
      uint64_t cheapest = TM_SOLVER_NEVER;
      for (uint32_t m = 0; m < labels; m++)
        cheapest = p.labels[op * labels + m].cost_ns < cheapest ? p.labels[op * labels + m].cost_ns : cheapest;
      least += cheapest;
      total += p.labels[found.labels[op]].cost_ns;
    }
    printf("%u labels: bound %llu, total %llu, %llu entries, %llu MB\n", labels, (unsigned long long)found.bound_ns,
           (unsigned long long)found.total_ns, (unsigned long long)found.table_entries,
           (unsigned long long)atomic_load(&memory.peak_bytes) >> 20);
    assert_true(found.bound_ns >= least && found.bound_ns <= found.total_ns && total <= found.total_ns);
    assert_true(found.table_entries <= 8 * options.most_entries);
    assert_true(atomic_load(&memory.peak_bytes) < UINT64_C(256) << 20);
    tm_assignment_deinit(&found);
    free_tangle(&p);
    assert_int_equal(atomic_load(&memory.used_bytes), 0);
  }
}

/* ---- The numbers of docs/backend-selection.md, in us. ---- */

static void the_guides_example_is_true(void **state) {
  (void)state;
  static const tm_solver_op ops[] = { { 0, 2, 0, 1 }, { 2, 2, 1, 1 }, { 4, 2, 2, 2 } };
  static const uint32_t inputs[] = { 0, 1, 1, 2 };
  static const tm_solver_label labels[] = { { 10, 0, 0, 0, 0, 0 }, { 4, 1, 1, 1, 1, 0 },  { 2, 0, 0, 0, 0, 0 },
                                            { 6, 1, 1, 1, 1, 0 },  { 30, 0, 0, 0, 0, 0 }, { 5, 1, 1, 1, 1, 0 } };
  static const tm_solver_value values[] = { { 1, TM_SOLVER_NONE, 0, TM_SOLVER_NONE, 0 },
                                            { 1, 0, TM_SOLVER_NONE, TM_SOLVER_NONE, 0 },
                                            { 1, 1, TM_SOLVER_NONE, TM_SOLVER_NONE, 0 },
                                            { 1, 2, TM_SOLVER_NONE, 0, 0 } };
  static const uint64_t copies[] = { 0, 3, 3, 0 };
  const tm_solver_problem p = { .ops = ops, .labels = labels, .values = values, .inputs = inputs, .copy_ns = copies, .op_count = 3,
                                .label_count = 6, .value_count = 4, .input_count = 4, .memory_count = 2, .resource_count = 2,
                                .size_class_count = 1 };
  static const uint32_t greedy[] = { 1, 2, 5 }, best[] = { 1, 3, 5 };
  static const uint64_t totals[] = { 26, 21, 23, 21, 42, 21 };
  tm_assignment found;
  assert_int_equal(solve(&p, &found), TM_OK);
  assert_int_equal(found.total_ns, 21);
  assert_memory_equal(found.labels, best, sizeof best);
  assert_int_equal(plan_total(&p, greedy), 23);
  for (uint32_t i = 0; i < 6; i++) assert_int_equal(found.min_marginals[i], totals[i]);
  tm_assignment_deinit(&found);
}

/* ---- Limits, rules, memory. ---- */

static void sums_stop_at_the_limit(void **state) {
  (void)state;
  static solver_case c;
  const case_limits limits = { .most_ops = 9, .most_labels = 4, .most_memories = 4, .never_percent = 10, .most_cost = 4 };
  for (uint64_t seed = 1; seed < 3000; seed++) {
    draw_case(&c, seed + 17000000, &limits);
    const uint64_t unit = TM_SOLVER_MOST_NS / 4 - draw(&c, 2);
    for (uint32_t i = 0; i < c.problem.label_count; i++) c.labels[i].cost_ns *= c.labels[i].cost_ns == TM_SOLVER_NEVER ? 1 : unit;
    for (uint32_t i = 0; i < CASE_CLASSES * c.problem.memory_count * c.problem.memory_count; i++)
      c.copy_ns[i] *= c.copy_ns[i] == TM_SOLVER_NEVER ? 1 : unit;
    tm_assignment found;
    if (solve(&c.problem, &found) != TM_OK) continue;
    assert_true(found.total_ns <= TM_SOLVER_MOST_NS && found.is_exact);
    for (uint32_t op = 0; op < c.problem.op_count; op++) {
      const uint32_t label = c.ops[op].first_label + draw(&c, c.ops[op].label_count);
      const uint64_t least = least_total(&c.problem, op, label);
      const uint64_t expected = least == TM_SOLVER_NEVER || least < TM_SOLVER_MOST_NS ? least : TM_SOLVER_MOST_NS;
      assert_int_equal(found.min_marginals[label], expected);
    }
    tm_assignment apart;
    const tm_assignment_options options = { .common_readers = 1, .without_marginals = true };
    assert_int_equal(tm_assignment_solve(&c.problem, &options, found.memory, &apart, NULL), TM_OK);
    assert_int_equal(apart.total_ns, found.total_ns);
    assert_true(apart.is_exact && apart.bound_ns == apart.total_ns);
    tm_assignment_deinit(&apart);
    tm_assignment_deinit(&found);
  }
}

static void who_cannot_run_is_named(void **state) {
  (void)state;
  static solver_case c;
  tm_memory memory;
  tm_assignment found;
  tm_memory_init(&memory, 0);
  for (uint64_t seed = 18000000; seed < 18000300; seed++) {
    draw_case(&c, seed, &medium);
    const uint32_t op = draw(&c, c.problem.op_count);
    for (uint32_t i = 0; i < c.problem.label_count; i++) c.labels[i].cost_ns = 1;
    for (uint32_t i = 0; i < c.ops[op].label_count; i++) c.labels[c.ops[op].first_label + i].cost_ns = TM_SOLVER_NEVER;
    tm_error error = TM_ERROR_INIT;
    char name[32];
    (void)snprintf(name, sizeof name, "operation %u ", op);
    assert_int_equal(tm_assignment_solve(&c.problem, NULL, &memory, &found, &error), TM_ERROR_NO_DEVICE);
    assert_non_null(strstr(error.text, name));
  }
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}

typedef void (*spoiler)(solver_case *c);
static void spoil_first_label(solver_case *c) { c->ops[1].first_label = UINT32_MAX; }
static void spoil_label_count(solver_case *c) { c->ops[0].label_count = 0; }
static void spoil_shared_labels(solver_case *c) { c->ops[1].first_label = c->ops[0].first_label; }
static void spoil_input_count(solver_case *c) { c->ops[1].input_count = UINT32_MAX; }
static void spoil_input(solver_case *c) { c->inputs[0] = UINT32_MAX; }
static void spoil_twice(solver_case *c) { c->inputs[1] = c->inputs[0]; }
static void spoil_order(solver_case *c) { c->values[0].producer = 1; }
static void spoil_producer(solver_case *c) { c->values[1].producer = 7; }
static void spoil_home(solver_case *c) { c->values[0].home = 2; }
static void spoil_two_sources(solver_case *c) { c->values[1].home = 0; }
static void spoil_wanted(solver_case *c) { c->values[1].wanted = 2; }
static void spoil_class(solver_case *c) { c->values[1].size_class = 3; }
static void spoil_cost(solver_case *c) { c->labels[0].cost_ns = UINT64_C(1) << 63; }
static void spoil_cost_by_one(solver_case *c) { c->labels[0].cost_ns = TM_SOLVER_MOST_NS + 1; }
static void spoil_memory(solver_case *c) { c->labels[1].output_memory = 2; }
static void spoil_resource(solver_case *c) { c->labels[1].resource = 3; }
static void spoil_copy(solver_case *c) { c->copy_ns[1] = TM_SOLVER_NEVER - 1; }
static void spoil_same(solver_case *c) { c->copy_ns[0] = 1; }
static void spoil_memories(solver_case *c) { c->problem.memory_count = 0; }
static void spoil_many_memories(solver_case *c) { c->problem.memory_count = UINT32_MAX; }
static void spoil_ops(solver_case *c) { c->problem.ops = NULL; }
static void spoil_labels(solver_case *c) { c->problem.labels = NULL; }
static void spoil_copies(solver_case *c) { c->problem.copy_ns = NULL; }
static void spoil_classes(solver_case *c) { c->problem.size_class_count = UINT32_MAX; }

/* Two operations in two memories; the second reads a value with a home and what the first made. */
static void sound_case(solver_case *c) {
  memset(c, 0, sizeof *c);
  c->problem = (tm_solver_problem){.ops = c->ops,
                                   .labels = c->labels,
                                   .values = c->values,
                                   .inputs = c->inputs,
                                   .copy_ns = c->copy_ns,
                                   .op_count = 2,
                                   .label_count = 4,
                                   .value_count = 3,
                                   .input_count = 2,
                                   .memory_count = 2,
                                   .resource_count = 3,
                                   .size_class_count = 3};
  c->ops[0] = (tm_solver_op){ 0, 2, 0, 0 };
  c->ops[1] = (tm_solver_op){ 2, 2, 0, 2 };
  for (uint32_t i = 0; i < 4; i++) c->labels[i] = (tm_solver_label){ 5 - i, i % 2, i % 2, i % 2, i, 0 };
  c->values[0] = (tm_solver_value){ 1, TM_SOLVER_NONE, 0, TM_SOLVER_NONE, 0 };
  c->values[1] = (tm_solver_value){ 1, 0, TM_SOLVER_NONE, TM_SOLVER_NONE, 1 };
  c->values[2] = (tm_solver_value){ 1, 1, TM_SOLVER_NONE, 0, 2 };
  c->inputs[1] = 1;
  for (uint32_t i = 0; i < 3; i++) c->copy_ns[4 * i + 1] = c->copy_ns[4 * i + 2] = 2;
}

static void broken_rules_are_refused(void **state) {
  (void)state;
  static const spoiler spoilers[] = {
      spoil_first_label, spoil_label_count,   spoil_shared_labels, spoil_input_count, spoil_input,  spoil_twice,
      spoil_order,       spoil_producer,      spoil_home,          spoil_two_sources, spoil_wanted, spoil_class,
      spoil_cost,        spoil_cost_by_one,   spoil_memory,        spoil_resource,    spoil_copy,   spoil_same,
      spoil_memories,    spoil_many_memories, spoil_ops,           spoil_labels,      spoil_copies, spoil_classes,
  };
  static solver_case c;
  tm_memory memory;
  tm_assignment found;
  tm_assignment_within within;
  tm_memory_init(&memory, 0);
  sound_case(&c);
  assert_int_equal(tm_assignment_solve(&c.problem, NULL, &memory, &found, NULL), TM_OK);
  tm_assignment_deinit(&found);
  for (size_t i = 0; i < sizeof spoilers / sizeof spoilers[0]; i++) {
    sound_case(&c);
    spoilers[i](&c);
    tm_error error = TM_ERROR_INIT;
    if (tm_assignment_solve(&c.problem, NULL, &memory, &found, &error) != TM_ERROR_ARGUMENT || error.text[0] == '\0')
      fail_msg("rule %zu", i);
    assert_int_equal(tm_assignment_solve_within(&c.problem, NULL, &memory, &within, NULL), TM_ERROR_ARGUMENT);
  }
  sound_case(&c);
  const tm_assignment_options options = { .most_entries = UINT64_MAX };
  assert_int_equal(tm_assignment_solve(&c.problem, &options, &memory, &found, NULL), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_assignment_solve(NULL, NULL, &memory, &found, NULL), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_assignment_solve(&c.problem, NULL, NULL, &found, NULL), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_assignment_solve(&c.problem, NULL, &memory, NULL, NULL), TM_ERROR_ARGUMENT);
  c.values[0].bytes = c.values[1].bytes = UINT64_MAX;
  assert_int_equal(tm_assignment_solve_within(&c.problem, NULL, &memory, &within, NULL), TM_ERROR_ARGUMENT);
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}

static void nothing_to_place_is_placed(void **state) {
  (void)state;
  tm_memory memory;
  tm_assignment_within found;
  tm_memory_init(&memory, 0);
  const tm_solver_problem empty = { .memory_count = 1 };
  assert_int_equal(tm_assignment_solve_within(&empty, NULL, &memory, &found, NULL), TM_OK);
  assert_true(found.assignment.total_ns == 0 && found.assignment.bound_ns == 0 && found.assignment.is_exact);
  tm_assignment_within_deinit(&found);
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}

static void too_little_memory_is_an_error(void **state) {
  (void)state;
  static solver_case c;
  static const case_limits limits = { .most_ops = 14, .most_labels = 4, .most_memories = 4, .never_percent = 0, .most_cost = 25 };
  draw_case(&c, 19000001, &limits);
  c.problem.budgets = c.budgets;
  for (uint32_t m = 0; m < c.problem.memory_count; m++) c.budgets[m] = m == 0 ? UINT64_MAX : 1;
  uint32_t refused = 0;
  for (uint64_t limit = 1; limit < UINT64_C(1) << 22; limit += limit / 64 + 16) {
    tm_memory memory;
    tm_assignment_within found;
    tm_memory_init(&memory, limit);
    const tm_status status = tm_assignment_solve_within(&c.problem, NULL, &memory, &found, NULL);
    if (status == TM_OK) tm_assignment_within_deinit(&found);
    assert_true(status == TM_OK || status == TM_ERROR_NO_MEMORY || status == TM_ERROR_LIMIT);
    assert_int_equal(atomic_load(&memory.used_bytes), 0);
    refused += status == TM_ERROR_NO_MEMORY;
  }
  assert_true(refused > 50);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(scaling_changes_no_plan),
    cmocka_unit_test(numbers_decide_nothing),
    cmocka_unit_test(a_dominated_label_changes_nothing),
    cmocka_unit_test(a_cheaper_link_never_costs),
    cmocka_unit_test(twice_the_graph_costs_twice),
    cmocka_unit_test(more_memory_never_costs),
    cmocka_unit_test(what_everybody_reads_stays_exact),
    cmocka_unit_test(what_is_made_for_everybody_stays_exact),
    cmocka_unit_test(a_plan_near_its_bound_is_good_enough),
    cmocka_unit_test(a_tangle_is_given_a_plan_and_a_bound),
    cmocka_unit_test(the_guides_example_is_true),
    cmocka_unit_test(sums_stop_at_the_limit),
    cmocka_unit_test(who_cannot_run_is_named),
    cmocka_unit_test(broken_rules_are_refused),
    cmocka_unit_test(nothing_to_place_is_placed),
    cmocka_unit_test(too_little_memory_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
