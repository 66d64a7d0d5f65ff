/* SPDX-License-Identifier: Apache-2.0 */
/* When everything runs: by hand on small plans, by its rules on random ones, and what cannot be is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/error.h"
#include "random_problem.h"
#include "solver/timeline.h"

#define RANDOM_PLANS 20000u

#define NONE TM_SOLVER_NONE

static tm_status simulate(const problem_builder *builder, const uint32_t *labels, const uint32_t *order, tm_memory *memory,
                          tm_timeline *out_timeline, tm_error *error) {
  tm_memory_init(memory, 0);
  return tm_timeline_simulate(&builder->problem, labels, order, memory, out_timeline, error);
}

static void close_timeline(tm_timeline *timeline, const tm_memory *memory, problem_builder *builder) {
  tm_timeline_deinit(timeline);
  assert_int_equal(memory->used_bytes, 0);
  builder_deinit(builder);
}

/* ---- by hand ---- */

/* Two devices with a memory each.  Operation 0 on the first makes two values; both readers are on the second, and the copies
   share a link: the one that the order needs first goes first, though its number is higher. */
static void test_link_serves_need(void **state) {
  (void)state;
  problem_builder builder;
  tm_memory memory;
  tm_timeline timeline;
  builder_init(&builder, 2, 2, 2, 16);
  builder_copies(&builder, 0, 10);
  builder_copies(&builder, 1, 4);
  builder_link(&builder, 0, 1, 0);
  builder_op(&builder);
  builder_label(&builder, (tm_solver_label){ 5, 0, 0, 0, 0, 0 });
  builder_value(&builder, 100, 0, NONE, NONE, 0);
  builder_value(&builder, 40, 0, NONE, NONE, 1);
  for (uint32_t v = 0; v < 2; v++) {
    builder_op(&builder);
    builder_label(&builder, (tm_solver_label){ 3, 1, 1, 1, 1, 0 });
    builder_input(&builder, v);
  }
  static const uint32_t labels[] = { 0, 1, 2 }, order[] = { 0, 2, 1 };
  assert_int_equal(simulate(&builder, labels, order, &memory, &timeline, NULL), TM_OK);
  assert_int_equal(timeline.op_start_ns[2], 9);         /* 5 + 4 */
  assert_int_equal(timeline.op_start_ns[1], 19);        /* 5 + 4 + 10 */
  assert_int_equal(timeline.makespan_ns, 22);
  assert_int_equal(timeline.additive_ns, 25);
  assert_int_equal(timeline.link_bytes[0], 140);
  assert_int_equal(timeline.copied_bytes, 140);
  assert_int_equal(timeline.switch_count, 2);
  assert_int_equal(timeline.busy_ns[0], 5);
  assert_int_equal(timeline.busy_ns[1], 6);
  assert_int_equal(timeline.peak_bytes[0], 140);
  assert_int_equal(timeline.peak_bytes[1], 140);        /* the first is in use while the second arrives */
  assert_int_equal(timeline.critical_count, 4);         /* operation, copy, copy, operation */
  assert_true(!timeline.critical[0].is_copy && timeline.critical[1].is_copy && timeline.critical[2].is_copy);
  assert_int_equal(timeline.critical[3].number, 1);
  close_timeline(&timeline, &memory, &builder);
}

/* The first device gets its copies in turn: y comes no sooner than what the first operation made has left, though the link is
   free; and the second operation's other input must be there before y sets out. */
static void test_copies_wait_their_turn(void **state) {
  (void)state;
  problem_builder builder;
  tm_memory memory;
  tm_timeline timeline;
  const uint32_t queues[] = { NONE, 0 };
  builder_init(&builder, 2, 2, 1, 16);
  builder_copies(&builder, 0, 3);
  builder_link(&builder, 0, 1, 0);
  builder_link(&builder, 1, 0, 0);
  builder.problem.copy_queues = queues;
  const uint32_t x = builder_value(&builder, 8, NONE, 0, NONE, 0), y = builder_value(&builder, 8, NONE, 0, NONE, 0);
  builder_op(&builder);
  builder_label(&builder, (tm_solver_label){ 10, 1, 1, 0, 0, 0 });
  builder_input(&builder, x);
  const uint32_t a = builder_value(&builder, 8, 0, NONE, NONE, 0);
  builder_op(&builder);
  builder_label(&builder, (tm_solver_label){ 5, 0, 0, 1, 1, 0 });
  builder_input(&builder, a);
  const uint32_t b = builder_value(&builder, 8, 1, NONE, NONE, 0);
  builder_op(&builder);
  builder_label(&builder, (tm_solver_label){ 4, 1, 1, 0, 0, 0 });
  builder_input(&builder, y);
  builder_op(&builder);
  builder_label(&builder, (tm_solver_label){ 2, 1, 1, 0, 0, 0 });
  builder_input(&builder, y);
  builder_input(&builder, b);
  static const uint32_t labels[] = { 0, 1, 2, 3 }, order[] = { 0, 1, 2, 3 }, last_first[] = { 0, 1, 3, 2 };
  assert_int_equal(simulate(&builder, labels, order, &memory, &timeline, NULL), TM_OK);
  assert_int_equal(timeline.op_start_ns[0], 3);         /* x came */
  assert_int_equal(timeline.op_start_ns[1], 16);        /* a left */
  assert_int_equal(timeline.op_start_ns[2], 19);        /* y came */
  assert_int_equal(timeline.op_start_ns[3], 26);        /* b came; from 21 on it had to wait for the operation before */
  assert_int_equal(timeline.makespan_ns, 28);
  assert_int_equal(timeline.additive_ns, 10 + 5 + 4 + 2 + 4 * 3);
  assert_int_equal(timeline.critical_count, 7);
  tm_timeline_deinit(&timeline);
  assert_int_equal(tm_timeline_simulate(&builder.problem, labels, last_first, &memory, &timeline, NULL), TM_OK);
  assert_int_equal(timeline.op_start_ns[3], 27);        /* from 21 on y, then b */
  assert_int_equal(timeline.makespan_ns, 33);
  close_timeline(&timeline, &memory, &builder);
}

/* Two memories of one queue: what leaves one of them for the other comes behind what the reader's other input waits for, and does
   not have to be there before that sets out. */
static void test_two_memories_of_one_queue(void **state) {
  (void)state;
  for (uint64_t copy_ns = 0; copy_ns <= 3; copy_ns += 3) {
    problem_builder builder;
    tm_memory memory;
    tm_timeline timeline;
    const uint32_t queues[] = { NONE, 0, 0 };
    builder_init(&builder, 3, 1, 1, 16);
    builder_copies(&builder, 0, copy_ns);
    builder.problem.copy_queues = queues;
    const uint32_t x = builder_value(&builder, 8, NONE, 0, NONE, 0), y = builder_value(&builder, 8, NONE, 2, NONE, 0);
    builder_op(&builder);
    builder_label(&builder, (tm_solver_label){ 10, 1, 1, 0, 0, 0 });
    builder_input(&builder, x);
    builder_input(&builder, y);
    static const uint32_t labels[] = { 0 }, order[] = { 0 };
    assert_int_equal(simulate(&builder, labels, order, &memory, &timeline, NULL), TM_OK);
    assert_int_equal(timeline.op_start_ns[0], 2 * copy_ns);
    assert_int_equal(timeline.makespan_ns, 2 * copy_ns + 10);
    assert_int_equal(timeline.critical_count, copy_ns == 0 ? 2 : 3);      /* who waits for a copy of no time waits for either */
    close_timeline(&timeline, &memory, &builder);
  }
}

/* A value from the start is copied from time 0, once for both readers; what is wanted elsewhere counts for the end. */
static void test_home_and_wanted(void **state) {
  (void)state;
  problem_builder builder;
  tm_memory memory;
  tm_timeline timeline;
  builder_init(&builder, 2, 1, 1, 16);
  builder_copies(&builder, 0, 7);
  builder_value(&builder, 10, NONE, 0, NONE, 0);
  for (uint32_t o = 0; o < 2; o++) {
    builder_op(&builder);
    builder_label(&builder, (tm_solver_label){ 2, 1, 1, 0, 0, 5 });
    builder_input(&builder, 0);
  }
  builder_value(&builder, 3, 1, NONE, 0, 0);
  static const uint32_t labels[] = { 0, 1 }, order[] = { 0, 1 };
  assert_int_equal(simulate(&builder, labels, order, &memory, &timeline, NULL), TM_OK);
  assert_int_equal(timeline.copy_count, 2);
  assert_int_equal(timeline.copies[0].start_ns, 0);
  assert_int_equal(timeline.op_start_ns[0], 7);
  assert_int_equal(timeline.op_start_ns[1], 9);
  assert_int_equal(timeline.copies[1].start_ns, 11);
  assert_int_equal(timeline.makespan_ns, 18);
  assert_int_equal(timeline.peak_bytes[0], 13);         /* what was there stays; the result arrives */
  assert_int_equal(timeline.peak_bytes[1], 18);         /* 10, workspace 5, result 3 */
  close_timeline(&timeline, &memory, &builder);
}

/* Two labels of one resource never overlap, whatever their memories and ranks. */
static void test_equal_resources(void **state) {
  (void)state;
  problem_builder builder;
  tm_memory memory;
  tm_timeline timeline;
  builder_init(&builder, 2, 1, 1, 16);
  for (uint32_t o = 0; o < 2; o++) {
    builder_op(&builder);
    builder_label(&builder, (tm_solver_label){ 5, o, o, 0, o, 0 });
  }
  static const uint32_t labels[] = { 0, 1 }, order[] = { 1, 0 };
  assert_int_equal(simulate(&builder, labels, order, &memory, &timeline, NULL), TM_OK);
  assert_int_equal(timeline.op_start_ns[1], 0);
  assert_int_equal(timeline.op_start_ns[0], 5);
  assert_int_equal(timeline.makespan_ns, 10);
  close_timeline(&timeline, &memory, &builder);
}

static void test_nothing(void **state) {
  (void)state;
  const tm_solver_problem problem = { .memory_count = 1 };
  tm_memory memory;
  tm_timeline timeline;
  tm_memory_init(&memory, 0);
  assert_int_equal(tm_timeline_simulate(&problem, NULL, NULL, &memory, &timeline, NULL), TM_OK);
  assert_int_equal(timeline.makespan_ns, 0);
  assert_int_equal(timeline.critical_count, 0);
  tm_timeline_deinit(&timeline);
  assert_int_equal(memory.used_bytes, 0);
}

/* Two operations with one list of inputs between them, and no table of links. */
static void test_shared_inputs(void **state) {
  (void)state;
  problem_builder builder;
  tm_memory memory;
  tm_timeline timeline;
  builder_init(&builder, 2, 2, 1, 16);
  builder_copies(&builder, 0, 7);
  builder.problem.links = NULL;
  builder_value(&builder, 10, NONE, 0, NONE, 0);
  for (uint32_t o = 0; o < 2; o++) {
    builder_op(&builder);
    builder_label(&builder, (tm_solver_label){ 2 + o, 1, 1, o, 0, 0 });
  }
  builder.problem.input_count = builder.ops[0].input_count = builder.ops[1].input_count = 1;
  static const uint32_t labels[] = { 0, 1 }, order[] = { 0, 1 };
  assert_int_equal(simulate(&builder, labels, order, &memory, &timeline, NULL), TM_OK);
  assert_int_equal(timeline.copy_count, 1);
  assert_int_equal(timeline.op_start_ns[0], 7);
  assert_int_equal(timeline.op_start_ns[1], 7);
  assert_int_equal(timeline.makespan_ns, 10);
  close_timeline(&timeline, &memory, &builder);
}

/* Sums beyond TM_SOLVER_MOST_NS stay there, and bytes beyond what can be counted do. */
static void test_saturation(void **state) {
  (void)state;
  problem_builder builder;
  tm_memory memory;
  tm_timeline timeline;
  builder_init(&builder, 1, 1, 1, 16);
  for (uint32_t o = 0; o < 3; o++) {
    builder_op(&builder);
    builder_label(&builder, (tm_solver_label){ TM_SOLVER_MOST_NS - 1, 0, 0, 0, 0, 0 });
    builder_value(&builder, UINT64_MAX - 1, o, NONE, NONE, 0);
    if (o > 0) builder_input(&builder, o - 1);
  }
  static const uint32_t labels[] = { 0, 1, 2 }, order[] = { 0, 1, 2 };
  assert_int_equal(simulate(&builder, labels, order, &memory, &timeline, NULL), TM_OK);
  assert_int_equal(timeline.makespan_ns, TM_SOLVER_MOST_NS);
  assert_int_equal(timeline.additive_ns, TM_SOLVER_MOST_NS);
  assert_int_equal(timeline.peak_bytes[0], UINT64_MAX);
  close_timeline(&timeline, &memory, &builder);
}

/* ---- the rules, on random plans ---- */

typedef struct checked_plan {
  const tm_solver_problem *problem;
  const tm_timeline *timeline;
  const uint32_t *labels;
  const uint32_t *order;
} checked_plan;

static uint32_t source_of(const checked_plan *plan, uint32_t v) {
  const tm_solver_value *value = &plan->problem->values[v];
  return value->producer == NONE ? value->home : plan->problem->labels[plan->labels[value->producer]].output_memory;
}

static uint64_t made_at(const checked_plan *plan, uint32_t v) {
  const uint32_t producer = plan->problem->values[v].producer;
  return producer == NONE ? 0 : plan->timeline->op_end_ns[producer];
}

/* The one copy of the value there. */
static const tm_timeline_copy *copy_to(const checked_plan *plan, uint32_t v, uint32_t to) {
  const tm_timeline_copy *found = NULL;
  for (uint32_t c = 0; c < plan->timeline->copy_count; c++) {
    const tm_timeline_copy *copy = &plan->timeline->copies[c];
    if (copy->value != v || copy->to != to) continue;
    assert_null(found);
    found = copy;
  }
  return found;
}

static uint64_t there_at(const checked_plan *plan, uint32_t v, uint32_t memory) {
  if (source_of(plan, v) == memory) {
    assert_null(copy_to(plan, v, memory));
    return made_at(plan, v);
  }
  const tm_timeline_copy *copy = copy_to(plan, v, memory);
  assert_non_null(copy);
  return copy->end_ns;
}

/* An operation starts when its inputs are there and those before it on its resource are over: no sooner and no later. */
static void check_ops(const checked_plan *plan) {
  const tm_solver_problem *problem = plan->problem;
  uint64_t free_ns[3] = { 0 }, busy_ns[3] = { 0 };
  for (uint32_t place = 0; place < problem->op_count; place++) {
    const uint32_t o = plan->order[place];
    const tm_solver_op *op = &problem->ops[o];
    const tm_solver_label *label = &problem->labels[plan->labels[o]];
    uint64_t start_ns = free_ns[label->resource];
    for (uint32_t i = 0; i < op->input_count; i++) {
      const uint64_t there_ns = there_at(plan, problem->inputs[op->first_input + i], label->input_memory);
      if (there_ns > start_ns) start_ns = there_ns;
    }
    assert_int_equal(plan->timeline->op_start_ns[o], start_ns);
    assert_int_equal(plan->timeline->op_end_ns[o], start_ns + label->cost_ns);
    assert_true(start_ns + label->cost_ns <= plan->timeline->makespan_ns);
    free_ns[label->resource] = start_ns + label->cost_ns;
    busy_ns[label->resource] += label->cost_ns;
  }
  for (uint32_t r = 0; r < problem->resource_count; r++) assert_int_equal(plan->timeline->busy_ns[r], busy_ns[r]);
}

/* Copies are needed, start once the value is made, take what they cost, and share a link without overlapping; a link is never
   idle while one waits. */
static void check_copies(const checked_plan *plan) {
  const tm_timeline *timeline = plan->timeline;
  uint64_t link_bytes[2] = { 0 };
  for (uint32_t c = 0; c < timeline->copy_count; c++) {
    const tm_timeline_copy *copy = &timeline->copies[c];
    const uint64_t made_ns = made_at(plan, copy->value);
    uint64_t waited_ns = 0;
    assert_int_equal(copy->from, source_of(plan, copy->value));
    assert_int_not_equal(copy->from, copy->to);
    assert_int_equal(copy->end_ns - copy->start_ns, tm_solver_copy_ns(plan->problem, copy->value, copy->from, copy->to));
    assert_true(copy->start_ns >= made_ns && copy->end_ns <= timeline->makespan_ns);
    assert_int_equal(copy->link, plan->problem->links[copy->from * plan->problem->memory_count + copy->to]);
    for (uint32_t other = 0; other < timeline->copy_count && copy->link != NONE; other++) {
      const tm_timeline_copy *next = &timeline->copies[other];
      if (other == c || next->link != copy->link) continue;
      assert_true(next->end_ns <= copy->start_ns || next->start_ns >= copy->end_ns);
      const uint64_t from_ns = next->start_ns > made_ns ? next->start_ns : made_ns;
      if (next->end_ns <= copy->start_ns && next->end_ns > from_ns) waited_ns += next->end_ns - from_ns;
    }
    assert_int_equal(copy->start_ns, made_ns + waited_ns);
    if (copy->link != NONE) link_bytes[copy->link] += plan->problem->values[copy->value].bytes;
  }
  for (uint32_t link = 0; link < timeline->link_count; link++) assert_int_equal(timeline->link_bytes[link], link_bytes[link]);
}

static void check_wanted(const checked_plan *plan) {
  uint32_t needed = 0;
  for (uint32_t v = 0; v < plan->problem->value_count; v++) {
    bool needs[RANDOM_MOST_MEMORIES] = { false };
    const uint32_t wanted = plan->problem->values[v].wanted;
    if (wanted != NONE) needs[wanted] = true;
    if (wanted != NONE) assert_true(there_at(plan, v, wanted) <= plan->timeline->makespan_ns);
    for (uint32_t o = 0; o < plan->problem->op_count; o++) {
      const tm_solver_op *op = &plan->problem->ops[o];
      for (uint32_t i = 0; i < op->input_count; i++) {
        if (plan->problem->inputs[op->first_input + i] == v) needs[plan->problem->labels[plan->labels[o]].input_memory] = true;
      }
    }
    for (uint32_t m = 0; m < plan->problem->memory_count; m++) needed += needs[m] && m != source_of(plan, v);
  }
  assert_int_equal(plan->timeline->copy_count, needed);
}

/* The chain begins at 0 without a gap; so it is as long as the plan, and no longer than everything in a row. */
static void check_critical(const checked_plan *plan) {
  const tm_timeline *timeline = plan->timeline;
  uint64_t now_ns = 0, sum = 0;
  for (uint32_t i = 0; i < timeline->critical_count; i++) {
    const tm_timeline_step step = timeline->critical[i];
    const uint64_t start_ns = step.is_copy ? timeline->copies[step.number].start_ns : timeline->op_start_ns[step.number];
    assert_int_equal(start_ns, now_ns);
    now_ns = step.is_copy ? timeline->copies[step.number].end_ns : timeline->op_end_ns[step.number];
  }
  assert_int_equal(now_ns, timeline->makespan_ns);
  for (uint32_t o = 0; o < plan->problem->op_count; o++) sum += timeline->op_end_ns[o] - timeline->op_start_ns[o];
  for (uint32_t c = 0; c < timeline->copy_count; c++) sum += timeline->copies[c].end_ns - timeline->copies[c].start_ns;
  assert_int_equal(timeline->additive_ns, sum);
  assert_true(timeline->makespan_ns <= sum);
}

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Is there room taken for the value in the memory at `now_ns`?  An end at that moment counts only for what takes no time. */
static bool is_resident(const checked_plan *plan, uint32_t v, uint32_t memory, uint64_t now_ns) {
  const tm_solver_value *value = &plan->problem->values[v];
  const bool is_source = source_of(plan, v) == memory;
  const tm_timeline_copy *copy = is_source ? NULL : copy_to(plan, v, memory);
  if (!is_source && copy == NULL) return false;
  if (is_source && value->producer == NONE) return true;
  const uint64_t from_ns = is_source ? plan->timeline->op_start_ns[value->producer] : copy->start_ns;
  uint64_t until_ns = is_source ? plan->timeline->op_end_ns[value->producer] : copy->end_ns;
  for (uint32_t c = 0; is_source && c < plan->timeline->copy_count; c++) {
    if (plan->timeline->copies[c].value == v) until_ns = later(until_ns, plan->timeline->copies[c].end_ns);
  }
  for (uint32_t o = 0; o < plan->problem->op_count; o++) {
    const tm_solver_op *op = &plan->problem->ops[o];
    if (plan->problem->labels[plan->labels[o]].input_memory != memory) continue;
    for (uint32_t i = 0; i < op->input_count; i++) {
      if (plan->problem->inputs[op->first_input + i] == v) until_ns = later(until_ns, plan->timeline->op_end_ns[o]);
    }
  }
  if (value->wanted == memory) return now_ns >= from_ns;
  return now_ns >= from_ns && (now_ns < until_ns || (now_ns == from_ns && from_ns == until_ns));
}

static uint64_t used_at(const checked_plan *plan, uint32_t memory, uint64_t now_ns) {
  uint64_t used = 0;
  for (uint32_t v = 0; v < plan->problem->value_count; v++) {
    if (is_resident(plan, v, memory, now_ns)) used += plan->problem->values[v].bytes;
  }
  for (uint32_t o = 0; o < plan->problem->op_count; o++) {
    const tm_solver_label *label = &plan->problem->labels[plan->labels[o]];
    const uint64_t start_ns = plan->timeline->op_start_ns[o], end_ns = plan->timeline->op_end_ns[o];
    const bool runs = start_ns <= now_ns && (now_ns < end_ns || (now_ns == start_ns && start_ns == end_ns));
    if (label->output_memory == memory && runs) used += label->workspace_bytes;
  }
  return used;
}

static void check_peaks(const checked_plan *plan) {
  for (uint32_t m = 0; m < plan->problem->memory_count; m++) {
    uint64_t peak = used_at(plan, m, 0);
    for (uint32_t o = 0; o < plan->problem->op_count; o++) peak = later(peak, used_at(plan, m, plan->timeline->op_start_ns[o]));
    for (uint32_t c = 0; c < plan->timeline->copy_count; c++) {
      peak = later(peak, used_at(plan, m, plan->timeline->copies[c].start_ns));
    }
    assert_int_equal(plan->timeline->peak_bytes[m], peak);
  }
}

/* Whoever has copies in its queue: everything comes to its turn, and nothing before what it needs. */
static void check_runs(const checked_plan *plan) {
  const tm_solver_problem *problem = plan->problem;
  for (uint32_t o = 0; o < problem->op_count; o++) {
    const tm_solver_op *op = &problem->ops[o];
    const tm_solver_label *label = &problem->labels[plan->labels[o]];
    assert_int_equal(plan->timeline->op_end_ns[o], plan->timeline->op_start_ns[o] + label->cost_ns);
    for (uint32_t i = op->first_input; i < op->first_input + op->input_count; i++)
      assert_true(there_at(plan, problem->inputs[i], label->input_memory) <= plan->timeline->op_start_ns[o]);
  }
  for (uint32_t c = 0; c < plan->timeline->copy_count; c++)
    assert_true(plan->timeline->copies[c].start_ns >= made_at(plan, plan->timeline->copies[c].value));
}

static void test_random_queues(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= RANDOM_PLANS; seed++) {
    problem_builder builder;
    tm_memory memory;
    tm_timeline timeline;
    uint64_t random = seed;
    uint32_t labels[RANDOM_MOST_OPS], order[RANDOM_MOST_OPS], queues[RANDOM_MOST_MEMORIES];
    random_problem(seed, &builder);
    random_choice(&builder.problem, &random, labels);
    random_order(&builder.problem, &random, order);
    for (uint32_t m = 0; m < builder.problem.memory_count; m++)
      queues[m] = builder_below(&random, 3) == 0 ? NONE : builder_below(&random, builder.problem.resource_count);
    builder.problem.copy_queues = queues;
    if (simulate(&builder, labels, order, &memory, &timeline, NULL) == TM_OK) {
      const checked_plan plan = { &builder.problem, &timeline, labels, order };
      check_runs(&plan);
      check_wanted(&plan);
      check_critical(&plan);
      tm_timeline_deinit(&timeline);
    }
    assert_int_equal(memory.used_bytes, 0);
    builder_deinit(&builder);
  }
}

/* ---- with links and without ---- */

/* A way that no copy of the plan takes and that leaves no queue; false: there is none. */
static bool find_free_way(const tm_solver_problem *problem, const tm_timeline *timeline, uint32_t *out_from, uint32_t *out_to) {
  for (uint32_t way = 0; way < problem->memory_count * problem->memory_count; way++) {
    const uint32_t from = way / problem->memory_count, to = way % problem->memory_count;
    bool is_free = from != to && problem->copy_ns[way] != TM_SOLVER_NEVER;
    if (problem->copy_queues != NULL && problem->copy_queues[from] != NONE) is_free = false;
    for (uint32_t c = 0; c < timeline->copy_count; c++)
      if (timeline->copies[c].from == from && timeline->copies[c].to == to) is_free = false;
    if (!is_free) continue;
    *out_from = from;
    *out_to = to;
    return true;
  }
  return false;
}

static void check_same_times(const tm_timeline *one, const tm_timeline *other) {
  for (uint32_t o = 0; o < one->op_count; o++) {
    assert_int_equal(one->op_start_ns[o], other->op_start_ns[o]);
    assert_int_equal(one->op_end_ns[o], other->op_end_ns[o]);
  }
  for (uint32_t c = 0; c < one->copy_count; c++) {
    assert_int_equal(one->copies[c].value, other->copies[c].value);
    assert_int_equal(one->copies[c].start_ns, other->copies[c].start_ns);
    assert_int_equal(one->copies[c].end_ns, other->copies[c].end_ns);
  }
}

/* Where no link carries anything all is timed in its turn, and else as it happens: a copy on a link of its own that nobody waits
   for makes no difference. */
static void test_copy_apart(void **state) {
  (void)state;
  uint32_t compared = 0;
  for (uint64_t seed = 1; seed <= RANDOM_PLANS; seed++) {
    problem_builder builder;
    tm_memory memory;
    tm_timeline without, with;
    uint64_t random = seed;
    uint32_t labels[RANDOM_MOST_OPS], order[RANDOM_MOST_OPS], queues[RANDOM_MOST_MEMORIES], from, to;
    random_problem(seed, &builder);
    random_choice(&builder.problem, &random, labels);
    random_order(&builder.problem, &random, order);
    for (uint32_t m = 0; m < builder.problem.memory_count; m++)
      queues[m] = builder_below(&random, 2) == 0 ? NONE : builder_below(&random, builder.problem.resource_count);
    if (seed % 2 == 0) builder.problem.copy_queues = queues;
    builder.problem.links = NULL;
    builder.problem.link_count = 0;
    if (simulate(&builder, labels, order, &memory, &without, NULL) == TM_OK) {
      if (find_free_way(&builder.problem, &without, &from, &to)) {
        memset(builder.links, 0xff, (size_t)builder.problem.memory_count * builder.problem.memory_count * sizeof *builder.links);
        builder_link(&builder, from, to, 0);
        builder.problem.links = builder.links;
        builder_value(&builder, 1, NONE, from, to, 0);
        assert_int_equal(tm_timeline_simulate(&builder.problem, labels, order, &memory, &with, NULL), TM_OK);
        assert_int_equal(with.copy_count, without.copy_count + 1);
        check_same_times(&without, &with);
        compared++;
        tm_timeline_deinit(&with);
      }
      tm_timeline_deinit(&without);
    }
    assert_int_equal(memory.used_bytes, 0);
    builder_deinit(&builder);
  }
  assert_true(compared > RANDOM_PLANS / 10);
}

static void test_random_plans(void **state) {
  (void)state;
  uint32_t possible = 0;
  for (uint64_t seed = 1; seed <= RANDOM_PLANS; seed++) {
    problem_builder builder;
    tm_memory memory;
    tm_timeline timeline;
    uint64_t random = seed;
    uint32_t labels[RANDOM_MOST_OPS], order[RANDOM_MOST_OPS];
    random_problem(seed, &builder);
    random_choice(&builder.problem, &random, labels);
    random_order(&builder.problem, &random, order);
    if (simulate(&builder, labels, order, &memory, &timeline, NULL) != TM_OK) {
      assert_int_equal(memory.used_bytes, 0);
      builder_deinit(&builder);
      continue;
    }
    const checked_plan plan = { &builder.problem, &timeline, labels, order };
    check_ops(&plan);
    check_copies(&plan);
    check_wanted(&plan);
    check_critical(&plan);
    if (seed % 4 == 0) check_peaks(&plan);
    close_timeline(&timeline, &memory, &builder);
    possible++;
  }
  print_message("%u of %u random plans were possible\n", possible, RANDOM_PLANS);
  assert_true(possible > RANDOM_PLANS / 4);
}

/* ---- what cannot be ---- */

typedef enum harm_kind {
  NO_HARM, LABEL_OF_ANOTHER, LABEL_NEVER, COPY_NEVER, ORDER_TWICE, ORDER_OUTSIDE, ORDER_BACKWARDS, COST_TOO_HIGH, MEMORY_OUTSIDE,
  RESOURCE_OUTSIDE, PRODUCER_OUTSIDE, HOME_AND_PRODUCER, NO_HOME, CLASS_OUTSIDE, WANTED_OUTSIDE, WANTED_UNREACHABLE,
  STAYING_COSTS, COPY_TOO_HIGH, LINK_OUTSIDE, NO_LABELS, LABELS_OUTSIDE, LABELS_SHARED, INPUTS_OUTSIDE, INPUT_OUTSIDE,
  INPUT_TWICE, INPUT_TOO_EARLY, NO_ARRAY, NO_MEMORIES, TOO_MANY_RESOURCES, TOO_MANY_LINKS, HARMS
} harm_kind;

static void do_harm(problem_builder *builder, uint32_t *labels, uint32_t *order, harm_kind harm) {
  switch (harm) {
    case LABEL_OF_ANOTHER: labels[1] = 0; break;
    case LABEL_NEVER: builder->labels[0].cost_ns = TM_SOLVER_NEVER; break;
    case COPY_NEVER: builder_copy(builder, 0, 0, 1, TM_SOLVER_NEVER); break;
    case ORDER_TWICE: order[1] = 0; break;
    case ORDER_OUTSIDE: order[1] = 2; break;
    case ORDER_BACKWARDS: order[0] = 1; order[1] = 0; break;
    case COST_TOO_HIGH: builder->labels[1].cost_ns = TM_SOLVER_MOST_NS + 1; break;
    case MEMORY_OUTSIDE: builder->labels[1].input_memory = 2; break;
    case RESOURCE_OUTSIDE: builder->labels[1].resource = 2; break;
    case PRODUCER_OUTSIDE: builder->values[1].producer = 2; break;
    case HOME_AND_PRODUCER: builder->values[1].home = 0; break;
    case NO_HOME: builder->values[0].home = NONE; break;
    case CLASS_OUTSIDE: builder->values[1].size_class = 1; break;
    case WANTED_OUTSIDE: builder->values[1].wanted = 2; break;
    case WANTED_UNREACHABLE: builder->values[0].wanted = 1; builder_copy(builder, 0, 0, 1, TM_SOLVER_NEVER); break;
    case STAYING_COSTS: builder_copy(builder, 0, 1, 1, 1); break;
    case COPY_TOO_HIGH: builder_copy(builder, 0, 1, 0, UINT64_MAX - 1); break;
    case LINK_OUTSIDE: builder->links[1] = 7; break;
    case NO_LABELS: builder->ops[1].label_count = 0; break;
    case LABELS_OUTSIDE: builder->ops[1].first_label = UINT32_MAX; break;
    case LABELS_SHARED: builder->ops[1].first_label = 0; break;
    case INPUTS_OUTSIDE: builder->ops[1].input_count = UINT32_MAX; break;
    case INPUT_OUTSIDE: builder->inputs[1] = 3; break;
    case INPUT_TWICE: builder->inputs[2] = 1; break;
    case INPUT_TOO_EARLY: builder->inputs[0] = 2; break;
    case NO_ARRAY: builder->problem.copy_ns = NULL; break;
    case NO_MEMORIES: builder->problem.memory_count = 0; break;
    case TOO_MANY_RESOURCES: builder->problem.resource_count = UINT32_MAX; break;
    case TOO_MANY_LINKS: builder->problem.link_count = UINT32_MAX; break;
    default: break;
  }
}

/* Value 0 is there from the start, operation 0 reads it and makes value 1, operation 1 reads both elsewhere and makes 2. */
static void test_harm(void **state) {
  (void)state;
  for (int harm = NO_HARM; harm < HARMS; harm++) {
    problem_builder builder;
    tm_memory memory;
    tm_timeline timeline;
    tm_error error = TM_ERROR_INIT;
    uint32_t labels[] = { 0, 1 }, order[] = { 0, 1 };
    builder_init(&builder, 2, 2, 1, 16);
    builder_copies(&builder, 0, 3);
    builder_value(&builder, 8, NONE, 0, NONE, 0);
    for (uint32_t o = 0; o < 2; o++) {
      builder_op(&builder);
      builder_label(&builder, (tm_solver_label){ 2, o, o, o, o, 0 });
      for (uint32_t v = 0; v <= o; v++) builder_input(&builder, o - v);
      builder_value(&builder, 8, o, NONE, NONE, 0);
    }
    do_harm(&builder, labels, order, (harm_kind)harm);
    memset(&timeline, 0, sizeof timeline);
    const tm_status expected = harm == NO_HARM ? TM_OK : TM_ERROR_ARGUMENT;
    if (simulate(&builder, labels, order, &memory, &timeline, &error) != expected) fail_msg("harm %d", harm);
    if (harm != NO_HARM) assert_int_not_equal(error.text[0], 0);
    close_timeline(&timeline, &memory, &builder);
  }
}

/* With every amount of memory it is either done or there was none; nothing is lost.  A little more may be too little again: an arena
   then gets a larger block first. */
static void test_no_memory(void **state) {
  (void)state;
  problem_builder builder;
  bool was_done = false;
  uint32_t labels[RANDOM_MOST_OPS], order[RANDOM_MOST_OPS];
  random_problem(3, &builder);
  for (uint32_t o = 0; o < builder.problem.op_count; o++) {
    labels[o] = builder.problem.ops[o].first_label;
    order[o] = o;
  }
  for (uint64_t limit = 64; limit < 64 * 1024; limit += 512) {
    tm_memory memory;
    tm_timeline timeline = { 0 };
    tm_memory_init(&memory, limit);
    const tm_status status = tm_timeline_simulate(&builder.problem, labels, order, &memory, &timeline, NULL);
    assert_true(status == TM_OK || status == TM_ERROR_NO_MEMORY);
    was_done = status == TM_OK;
    tm_timeline_deinit(&timeline);
    assert_int_equal(memory.used_bytes, 0);
  }
  assert_true(was_done);
  builder_deinit(&builder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_link_serves_need), cmocka_unit_test(test_copies_wait_their_turn), cmocka_unit_test(test_home_and_wanted),
    cmocka_unit_test(test_equal_resources), cmocka_unit_test(test_two_memories_of_one_queue), cmocka_unit_test(test_random_queues),
    cmocka_unit_test(test_nothing), cmocka_unit_test(test_shared_inputs), cmocka_unit_test(test_saturation),
    cmocka_unit_test(test_random_plans), cmocka_unit_test(test_copy_apart), cmocka_unit_test(test_harm), cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
