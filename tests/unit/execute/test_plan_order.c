/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which a plan's nodes run, on devices that work at the same time and take on a virtual clock what they declare:
 * a run takes what the plan says, and less than in the order in which nodes were added.
 */
#include "api/plans.h"
#include "execute/plan_file.h"
#include "unit/execute/lazy_case.h"

static _Atomic uint64_t clock_ns;

static void open_machine(lazy_case *machine, const lazy_control *controls) {
  memset(machine, 0, sizeof *machine);
  for (uint32_t i = 0; i < LAZY_COUNT; i++) {
    machine->controls[i] = controls[i];
    machine->controls[i].clock_ns = &clock_ns;
  }
  lazy_case_open(machine);
}

static uint64_t predicted_ns(const tm_plan *plan) {
  tm_plan_description description = { .struct_size = sizeof description };
  tm_plan_describe(plan, &description);
  return description.predicted_ns;
}

static bool keeps_order(const tm_plan *plan) {
  for (uint32_t i = 0; i < plan->program.step_count; i++)
    if (plan->program.steps[i].node != i) return false;
  return true;
}

/* The same labels as nodes come. */
static tm_status choose_alike(void *context, tm_graph_problem *problem, tm_memory *memory, tm_graph_choice *out_choice,
                              tm_error *error) {
  const tm_plan *plan = context;
  uint32_t labels[PLAN_MOST_VALUES];
  for (uint32_t i = 0; i < plan->program.step_count; i++) labels[plan->program.steps[i].node] = plan->program.steps[i].label;
  return tm_graph_choice_pin(problem, memory, labels, NULL, plan->program.state_memory, out_choice, error);
}

static tm_plan *plan_in_node_order(tm_graph *graph, const tm_plan_options *options, tm_plan *like) {
  tm_error error = TM_ERROR_INIT;
  tm_plan_options known;
  tm_plan *plan = NULL;
  assert_int_equal(tm_plan_options_read(options, &known, &error), TM_OK);
  if (tm_plan_make(graph, &known, choose_alike, like, &plan, &error) != TM_OK) fail_msg("no plan: %s", error.text);
  return plan;
}

/* ---- one graph ---- */

/* The short one is on the way to the other device, and was added after the long one. */
typedef struct fork_case {
  tm_graph  *graph;
  tm_plan   *plan;
  tm_tensor *inputs[2];
  tm_tensor *outputs[2];
} fork_case;

static const uint64_t fork_dims[2] = { 1000, 100 };

static void fork_open(fork_case *one, lazy_case *machine) {
  const lazy_control controls[LAZY_COUNT] = { { .element_cost_ns = 100, .is_host = 1, .refused_op = TM_OP_RELU },
                                              { .element_cost_ns = 1000, .is_host = 1, .refused_op = TM_OP_NEG },
                                              { .cost_ns = 1000000000, .is_host = 1 } };
  uint32_t inputs[2], values[3];
  open_machine(machine, controls);
  memset(one, 0, sizeof *one);
  assert_int_equal(tm_graph_create(machine->context, &one->graph, NULL), TM_OK);
  for (uint32_t i = 0; i < 2; i++) {
    const tm_operand layout = { .format = TM_FORMAT_F32, .rank = 1, .dims = { fork_dims[i] } };
    assert_int_equal(tm_graph_input(one->graph, i == 0 ? "long" : "short", &layout, &inputs[i], NULL), TM_OK);
    assert_int_equal(tm_tensor_create(machine->context, TM_FORMAT_F32, 1, &fork_dims[i], &one->inputs[i], NULL), TM_OK);
    assert_int_equal(tm_tensor_create(machine->context, TM_FORMAT_F32, 1, &fork_dims[i], &one->outputs[i], NULL), TM_OK);
    float *data = tm_tensor_data(one->inputs[i]);
    for (uint64_t k = 0; k < fork_dims[i]; k++) data[k] = (float)k - 50;
    values[i] = plan_add_node(one->graph, TM_OP_NEG, inputs[i], 0);
  }
  values[2] = plan_add_node(one->graph, TM_OP_RELU, values[1], 0);
  assert_int_equal(tm_graph_output(one->graph, "a", values[0], NULL), TM_OK);
  assert_int_equal(tm_graph_output(one->graph, "b", values[2], NULL), TM_OK);
}

static uint64_t fork_run(const fork_case *one, tm_plan *plan) {
  tm_error error = TM_ERROR_INIT;
  const uint64_t begin_ns = atomic_load(&clock_ns);
  for (uint32_t i = 0; i < 2; i++) memset(tm_tensor_data(one->outputs[i]), 0, fork_dims[i] * sizeof(float));
  if (tm_plan_run(plan, one->inputs, 2, one->outputs, 2, NULL, &error) != TM_OK) fail_msg("%s", error.text);
  const uint64_t taken_ns = atomic_load(&clock_ns) - begin_ns;
  const float *a = tm_tensor_data(one->outputs[0]), *b = tm_tensor_data(one->outputs[1]);
  for (uint64_t k = 0; k < fork_dims[0]; k++) assert_true(a[k] == 50 - (float)k);
  for (uint64_t k = 0; k < fork_dims[1]; k++) assert_true(b[k] == (k < 50 ? 50 - (float)k : 0));
  return taken_ns;
}

/* The first replay is measured step by step; the next one is not. */
static uint64_t fork_replay(const fork_case *one, tm_plan *plan) {
  uint64_t taken_ns = 0;
  for (uint32_t run = 0; run < 8; run++) taken_ns = fork_run(one, plan);
  return taken_ns;
}

static void fork_close(fork_case *one, lazy_case *machine) {
  tm_plan_destroy(one->plan);
  tm_graph_destroy(one->graph);
  for (uint32_t i = 0; i < 2; i++) {
    tm_tensor_destroy(one->outputs[i]);
    tm_tensor_destroy(one->inputs[i]);
  }
  lazy_case_close(machine);
}

static void what_others_wait_for_goes_first(void **state) {
  (void)state;
  static lazy_case machine;
  fork_case one;
  const tm_plan_options options = LAZY_OPTIONS;
  fork_open(&one, &machine);
  one.plan = lazy_plan(one.graph, &options);
  tm_plan *in_node_order = plan_in_node_order(one.graph, &options, one.plan);
  tm_plan_step_description step = { .struct_size = sizeof step };
  const uint32_t nodes[] = { 1, 0, 2 };
  for (uint32_t i = 0; i < 3; i++) {
    assert_int_equal(tm_plan_step_describe(one.plan, i, &step), TM_OK);
    assert_int_equal(step.node, nodes[i]);
  }
  const uint64_t taken_ns = fork_replay(&one, one.plan), in_node_order_ns = fork_replay(&one, in_node_order);
  print_message("%llu ns, in the order of nodes %llu ns\n", (unsigned long long)taken_ns, (unsigned long long)in_node_order_ns);
  assert_int_equal(taken_ns, predicted_ns(one.plan));
  assert_int_equal(in_node_order_ns, predicted_ns(in_node_order));
  assert_true(taken_ns < in_node_order_ns * 6 / 10);
  uint32_t different;
  assert_int_equal(tm_plan_compare(one.plan, in_node_order, &different, NULL), TM_OK);
  assert_int_equal(different, 0);
  tm_plan_destroy(in_node_order);
  fork_close(&one, &machine);
}

static void an_explanation_tells_the_same_times(void **state) {
  (void)state;
  static lazy_case machine;
  fork_case one;
  const tm_plan_options options = LAZY_OPTIONS;
  fork_open(&one, &machine);
  one.plan = lazy_plan(one.graph, &options);
  tm_plan_explanation *explanation = NULL;
  assert_int_equal(tm_plan_explain(one.plan, &explanation, NULL), TM_OK);
  tm_node_explanation nodes[2] = { { .struct_size = sizeof *nodes }, { .struct_size = sizeof *nodes } };
  for (uint32_t i = 0; i < 2; i++) assert_int_equal(tm_plan_explanation_node(explanation, i, &nodes[i]), TM_OK);
  assert_int_equal(nodes[1].start_ns, 0);
  assert_int_equal(nodes[0].start_ns, nodes[1].end_ns);
  tm_plan_summary summary = { .struct_size = sizeof summary };
  tm_plan_explanation_summarize(explanation, &summary);
  assert_int_equal(summary.total_ns, predicted_ns(one.plan));
  assert_int_equal(summary.is_current, 1);
  tm_plan_explanation_destroy(explanation);
  fork_close(&one, &machine);
}

/* ---- files ---- */

#define PLAN_PATH TM_BINARY_DIR "/tests/plan_order.plan"

static void a_file_keeps_the_order(void **state) {
  (void)state;
  static lazy_case machine;
  fork_case one;
  const tm_plan_options options = LAZY_OPTIONS;
  tm_error error = TM_ERROR_INIT;
  tm_plan *loaded = NULL;
  uint8_t digests[2][TM_PLAN_DIGEST_BYTES];
  uint32_t different;
  fork_open(&one, &machine);
  one.plan = lazy_plan(one.graph, &options);
  assert_int_equal(tm_plan_save(one.plan, PLAN_PATH, NULL), TM_OK);
  if (tm_plan_load(one.graph, PLAN_PATH, &options, &loaded, &error) != TM_OK) fail_msg("%s", error.text);
  (void)remove(PLAN_PATH);
  tm_plan_digest(one.plan, digests[0]);
  tm_plan_digest(loaded, digests[1]);
  assert_memory_equal(digests[0], digests[1], sizeof digests[0]);
  assert_int_equal(tm_plan_compare(one.plan, loaded, &different, NULL), TM_END);
  assert_int_equal(predicted_ns(loaded), predicted_ns(one.plan));
  assert_int_equal(fork_replay(&one, loaded), predicted_ns(one.plan));
  tm_plan_destroy(loaded);
  fork_close(&one, &machine);
}

/* As if somebody had changed it. */
static void expect_refused(fork_case *one, const uint32_t *nodes, const char *words) {
  tm_plan_file_step steps[3] = { { .node = nodes[0] }, { .node = nodes[1] }, { .node = nodes[2] } };
  tm_plan_file_device device = { .name = TM_STRING("nobody"), .backend = TM_STRING("nobody"), .build_id = TM_STRING("none") };
  tm_plan_file file = { .devices = &device, .steps = steps, .device_count = 1, .step_count = 3, .state_device = TM_PLAN_NONE };
  tm_graph_choice choice;
  tm_error error = TM_ERROR_INIT;
  assert_int_equal(tm_plan_file_choose(&file, &one->plan->program.problem, one->plan->memory, &choice, &error), TM_ERROR_CORRUPT);
  if (strstr(error.text, words) == NULL) fail_msg("'%s' does not say '%s'", error.text, words);
}

static void an_order_that_cannot_be_is_refused(void **state) {
  (void)state;
  static lazy_case machine;
  fork_case one;
  const tm_plan_options options = LAZY_OPTIONS;
  fork_open(&one, &machine);
  one.plan = lazy_plan(one.graph, &options);
  expect_refused(&one, (const uint32_t[]){ 0, 0, 2 }, "as another one is");
  expect_refused(&one, (const uint32_t[]){ 0, 2, 1 }, "comes before node 1");
  fork_close(&one, &machine);
}

/* ---- any graph ---- */

typedef struct totals {
  uint64_t predicted_ns, taken_ns, node_order_ns;
  uint32_t reordered, copies;
  bool     has_far_state;       /* what it then is may have to be set aside, and is there later than was expected */
} totals;

/* What the plan expects of a copy to or from the one memory that is not the host's. */
static uint64_t expected_copy_ns(const void *context, uint64_t bytes, uint32_t is_upload) {
  const tm_solver_problem *solver = context;
  const uint32_t own = 1;
  for (uint32_t i = 0; i < solver->value_count; i++)
    if (solver->values[i].bytes == bytes && !tm_solver_is_kept(solver, i))
      return tm_solver_copy_ns(solver, i, is_upload ? TM_HOST_SPACE : own, is_upload ? own : TM_HOST_SPACE);
  return 0;
}

static uint32_t count_copies(const tm_plan *plan) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < plan->program.action_count; i++)
    count += plan->program.actions[i].kind == TM_ACTION_UPLOAD || plan->program.actions[i].kind == TM_ACTION_DOWNLOAD;
  return count;
}

static uint64_t replay_ns(plan_case *one, plan_oracle *oracle, tm_plan *plan, uint64_t seed) {
  uint64_t taken_ns = 0;
  tm_plan *const own = one->plan;
  one->plan = plan;
  for (uint64_t run = 0; run < 7; run++) {
    const uint64_t begin_ns = atomic_load(&clock_ns);
    (void)plan_case_run(one, oracle, 0, seed * 100 + run);
    taken_ns = atomic_load(&clock_ns) - begin_ns;
  }
  one->plan = own;
  return taken_ns;
}

static void try_graph(const lazy_control *controls, uint64_t seed, bool has_copies, totals *sum) {
  static lazy_case machine;
  lazy_control seeded[LAZY_COUNT];
  plan_case one;
  plan_oracle oracle;
  tm_plan_options options = LAZY_OPTIONS;
  options.repeats = UINT64_C(1) << 40;  /* what is paid once counts for nothing */
  memcpy(seeded, controls, sizeof seeded);
  for (uint32_t i = 0; i < LAZY_COUNT; i++) {
    if (seeded[i].cost_spread_ns == 0) seeded[i].cost_spread_ns = 1000000;
    seeded[i].cost_seed = seed;
  }
  open_machine(&machine, seeded);
  plan_case_build(&one, machine.context, seed, 24);
  one.plan = lazy_plan(one.graph, &options);
  tm_plan *in_node_order = plan_in_node_order(one.graph, &options, one.plan);
  if (has_copies) {
    machine.controls[0].copy_context = &one.plan->program.problem.solver;
    machine.controls[0].copy_ns = expected_copy_ns;
  }
  sum->copies += count_copies(one.plan);
  sum->has_far_state = one.plan->program.state_memory != TM_HOST_SPACE;
  plan_oracle_init(&oracle, &one);
  sum->predicted_ns += predicted_ns(one.plan);
  sum->taken_ns += replay_ns(&one, &oracle, one.plan, seed);
  plan_oracle_deinit(&oracle, &one);
  plan_oracle_init(&oracle, &one);
  sum->node_order_ns += replay_ns(&one, &oracle, in_node_order, seed);
  sum->reordered += !keeps_order(one.plan);
  plan_oracle_deinit(&oracle, &one);
  tm_plan_destroy(in_node_order);
  plan_case_destroy(&one);
  lazy_case_close(&machine);
}

static totals try_graphs(const lazy_control *controls, const char *what, bool has_copies, bool is_exact) {
  const uint64_t count = getenv("TM_NIGHTLY") != NULL ? 300 : 20;       /* more with TM_NIGHTLY=1 */
  totals all = { 0 };
  uint64_t far = 0;
  for (uint64_t seed = 1; seed <= count; seed++) {
    totals one = { 0 };
    try_graph(controls, seed, has_copies, &one);
    far += one.has_far_state;
    if (is_exact && !one.has_far_state && one.taken_ns != one.predicted_ns)
      fail_msg("seed %llu: it took %llu ns, and %llu were predicted", (unsigned long long)seed, (unsigned long long)one.taken_ns,
               (unsigned long long)one.predicted_ns);
    all.predicted_ns += one.predicted_ns;
    all.taken_ns += one.taken_ns;
    all.node_order_ns += one.node_order_ns;
    all.reordered += one.reordered;
    all.copies += one.copies;
  }
  assert_true(!is_exact || far < count / 2);
  print_message("%s: %llu us predicted, %llu taken, %llu in the order of nodes; %u of %llu plans reordered\n", what,
                (unsigned long long)all.predicted_ns / 1000, (unsigned long long)all.taken_ns / 1000,
                (unsigned long long)all.node_order_ns / 1000, all.reordered, (unsigned long long)count);
  return all;
}

static void a_run_takes_what_was_predicted(void **state) {
  (void)state;
  const lazy_control controls[LAZY_COUNT] = { { .is_host = 1 }, { .is_host = 1 }, { .is_host = 1 } };
  const totals all = try_graphs(controls, "three that are waited for", false, true);
  assert_true(all.reordered != 0 && all.taken_ns < all.node_order_ns);
}

/* A device gets its copies in turn with its work, and so the plan has it. */
static void copies_take_their_turn(void **state) {
  (void)state;
  const lazy_control controls[LAZY_COUNT] = { { .cost_spread_ns = 20000 },
                                              { .is_host = 1, .cost_spread_ns = 20000 },
                                              { .is_host = 1, .cost_spread_ns = 20000 } };
  const totals all = try_graphs(controls, "one has memory of its own", true, true);
  print_message("%u copies\n", all.copies);   /* each takes as long as an operation or so */
  assert_true(all.copies != 0 && all.reordered != 0);
}

/* What works within its calls keeps the thread from handing out anything else. */
static void beside_one_that_works_within_its_calls(void **state) {
  (void)state;
  const lazy_control controls[LAZY_COUNT] = { { .is_host = 1 }, { .is_host = 1 }, { .is_host = 1, .is_prompt = 1 } };
  const totals all = try_graphs(controls, "one works within its calls", false, false);
  assert_true(all.reordered != 0 && all.taken_ns < all.node_order_ns);
}

static void in_memory_of_their_own(void **state) {
  (void)state;
  const lazy_control controls[LAZY_COUNT] = { { .aliases = 1 }, { .aliases = 1 }, { .is_host = 1, .aliases = 1 } };
  const totals all = try_graphs(controls, "memory of their own", false, false);
  assert_true(all.reordered != 0 && all.taken_ns <= all.node_order_ns);
}

static void where_nothing_overlaps_nodes_keep_their_order(void **state) {
  (void)state;
  const lazy_control controls[LAZY_COUNT] = { { .is_host = 1, .is_prompt = 1 },
                                              { .is_host = 1, .is_prompt = 1 },
                                              { .is_host = 1, .is_prompt = 1 } };
  const totals all = try_graphs(controls, "all within their calls", false, true);
  assert_int_equal(all.reordered, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_others_wait_for_goes_first),
    cmocka_unit_test(an_explanation_tells_the_same_times),
    cmocka_unit_test(a_file_keeps_the_order),
    cmocka_unit_test(an_order_that_cannot_be_is_refused),
    cmocka_unit_test(a_run_takes_what_was_predicted),
    cmocka_unit_test(copies_take_their_turn),
    cmocka_unit_test(beside_one_that_works_within_its_calls),
    cmocka_unit_test(in_memory_of_their_own),
    cmocka_unit_test(where_nothing_overlaps_nodes_keep_their_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
