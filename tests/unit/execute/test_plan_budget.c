/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan takes in any one memory stays within its limit, copies of constants included, which stay there for all runs. */
#include <inttypes.h>

#include "sanitized.h"
#include "unit/execute/lazy_case.h"

#define WEIGHTS 8u
#define MATRIX_BYTES (PLAN_CELLS * sizeof(float))

typedef struct chain_case {
  tm_graph  *graph;
  tm_tensor *weights[WEIGHTS];
  tm_tensor *input;
  tm_tensor *output;
  float      expected[PLAN_CELLS];
} chain_case;

static lazy_case machine;

/* The memory of the first two devices is their own. */
static void open_machine(uint32_t is_prompt, const uint64_t *costs_ns) {
  memset(&machine, 0, sizeof machine);
  for (uint32_t i = 0; i < LAZY_COUNT; i++)
    machine.controls[i] = (lazy_control){ .cost_ns = costs_ns[i], .is_prompt = is_prompt, .is_host = i == 2 };
  lazy_case_open(&machine);
}

static void chain_open(chain_case *one) {
  uint32_t value, weight;
  memset(one, 0, sizeof *one);
  assert_int_equal(tm_graph_create(machine.context, &one->graph, NULL), TM_OK);
  assert_int_equal(tm_graph_input(one->graph, "x", &plan_matrix, &value, NULL), TM_OK);
  one->input = plan_tensor(machine.context, 5);
  one->output = plan_tensor(machine.context, 0);
  memcpy(one->expected, tm_tensor_data(one->input), sizeof one->expected);
  for (uint32_t i = 0; i < WEIGHTS; i++) {
    char name[8];
    snprintf(name, sizeof name, "w%u", i);
    one->weights[i] = plan_tensor(machine.context, 100 + i);
    assert_int_equal(tm_graph_constant(one->graph, name, one->weights[i], &weight, NULL), TM_OK);
    value = plan_add_node(one->graph, TM_OP_ADD, value, weight);
    const float *w = tm_tensor_data(one->weights[i]);
    for (uint32_t k = 0; k < PLAN_CELLS; k++) one->expected[k] += w[k];
  }
  assert_int_equal(tm_graph_output(one->graph, "y", value, NULL), TM_OK);
}

static void chain_close(chain_case *one) {
  tm_graph_destroy(one->graph);
  tm_tensor_destroy(one->output);
  tm_tensor_destroy(one->input);
  for (uint32_t i = 0; i < WEIGHTS; i++) tm_tensor_destroy(one->weights[i]);
}

static uint64_t most_bytes_of(const tm_plan *plan) {
  tm_plan_memory_description memory = { .struct_size = sizeof memory };
  uint64_t bytes = 0;
  for (uint32_t i = 0; tm_plan_memory_describe(plan, i, &memory) == TM_OK; i++)
    if (memory.bytes > bytes) bytes = memory.bytes;
  return bytes;
}

static uint32_t count_on(tm_plan *plan, const char *device) {
  tm_plan_step_description step = { .struct_size = sizeof step };
  uint32_t count = 0;
  for (uint32_t i = 0; tm_plan_step_describe(plan, i, &step) == TM_OK; i++) count += strcmp(step.device_name, device) == 0;
  return count;
}

static void expect_right(const chain_case *one, tm_plan *plan) {
  tm_error error = TM_ERROR_INIT;
  for (uint32_t run = 0; run < 6; run++) {
    if (tm_plan_run(plan, &one->input, 1, &one->output, 1, NULL, &error) != TM_OK) fail_msg("%s", error.text);
    assert_memory_equal(tm_tensor_data(one->output), one->expected, sizeof one->expected);
  }
}

/* As it was chosen, though that took more than one try: nothing else would be chosen now. */
static void expect_explained(const tm_plan *plan) {
  tm_plan_explanation *explanation = NULL;
  tm_plan_summary summary = { .struct_size = sizeof summary };
  tm_plan_description description = { .struct_size = sizeof description };
  assert_int_equal(tm_plan_explain(plan, &explanation, NULL), TM_OK);
  tm_plan_explanation_summarize(explanation, &summary);
  tm_plan_describe(plan, &description);
  assert_int_equal(summary.is_current, 1);
  assert_int_equal(summary.total_ns, description.predicted_ns);
  tm_plan_explanation_destroy(explanation);
}

/* With room for so many matrices, and nothing learned; how many nodes are on the fast device then. */
static uint32_t try_room(uint32_t is_prompt, uint64_t matrices) {
  chain_case one;
  tm_plan_options options = LAZY_OPTIONS;
  open_machine(is_prompt, (const uint64_t[]){ 1000, 500000000, 500000000 });
  chain_open(&one);
  options.max_memory_bytes = matrices * MATRIX_BYTES;
  tm_plan *plan = lazy_plan(one.graph, &options);
  if (matrices != 0 && most_bytes_of(plan) > options.max_memory_bytes)
    fail_msg("%llu bytes, of %llu", (unsigned long long)most_bytes_of(plan), (unsigned long long)options.max_memory_bytes);
  const uint32_t count = count_on(plan, "lazy_a:0");
  expect_right(&one, plan);
  tm_plan_destroy(plan);
  chain_close(&one);
  lazy_case_close(&machine);
  return count;
}

static void try_rooms(uint32_t is_prompt) {
  uint32_t last = 0;
  assert_int_equal(try_room(is_prompt, 0), WEIGHTS);
  assert_int_equal(try_room(is_prompt, WEIGHTS + 2), WEIGHTS);
  for (uint64_t matrices = 4; matrices < WEIGHTS + 2; matrices++) {
    const uint32_t count = try_room(is_prompt, matrices);
    assert_true(count < WEIGHTS && count >= last);
    last = count;
  }
  assert_true(last != 0);
}

static void weights_that_stay_on_a_device_count(void **state) {
  (void)state;
  try_rooms(1);
}

static void where_devices_work_at_the_same_time_too(void **state) {
  (void)state;
  try_rooms(0);
}

/* What the application has in memory anyway is nothing that the plan takes. */
static void the_applications_own_do_not_count(void **state) {
  (void)state;
  chain_case one;
  tm_plan_options options = LAZY_OPTIONS;
  open_machine(1, (const uint64_t[]){ 500000000, 500000000, 1000 });
  chain_open(&one);
  options.max_memory_bytes = 4 * MATRIX_BYTES;
  tm_plan *plan = lazy_plan(one.graph, &options);
  assert_int_equal(count_on(plan, "lazy_c:0"), WEIGHTS);
  expect_right(&one, plan);
  tm_plan_destroy(plan);
  chain_close(&one);
  lazy_case_close(&machine);
}

/* ---- what counts ---- */

/* An input, a state and an output: add(x, s), or what `carry` says. */
static tm_graph *open_state_graph(uint32_t carries_input, uint32_t has_node) {
  tm_graph *graph = NULL;
  uint32_t x, s, y;
  assert_int_equal(tm_graph_create(machine.context, &graph, NULL), TM_OK);
  assert_int_equal(tm_graph_input(graph, "x", &plan_matrix, &x, NULL), TM_OK);
  assert_int_equal(tm_graph_state(graph, "s", &plan_matrix, &s, NULL), TM_OK);
  if (carries_input != 0) assert_int_equal(tm_graph_carry(graph, s, x, NULL), TM_OK);
  if (has_node != 0) y = plan_add_node(graph, TM_OP_ADD, x, s);
  if (has_node != 0) assert_int_equal(tm_graph_output(graph, "y", y, NULL), TM_OK);
  return graph;
}

/* The one says what the other does: whether there is a plan, and what it takes. */
static tm_status try_limit(tm_graph *graph, const tm_plan_options *options, tm_plan **out_plan) {
  tm_plan_explanation *explanation = NULL;
  tm_explained_memory told = { .struct_size = sizeof told };
  tm_plan_memory_description taken = { .struct_size = sizeof taken };
  tm_plan_summary summary = { .struct_size = sizeof summary };
  tm_plan_description plan = { .struct_size = sizeof plan };
  tm_error error = TM_ERROR_INIT, other = TM_ERROR_INIT;
  const tm_status explained = tm_graph_explain(graph, options, &explanation, &error);
  const tm_status status = tm_plan_create(graph, options, out_plan, &other);
  if (explained != status) fail_msg("explained %d %s, planned %d %s", explained, error.text, status, other.text);
  if (status != TM_OK) return status;
  for (uint32_t i = 0; tm_plan_memory_describe(*out_plan, i, &taken) == TM_OK; i++) {
    assert_int_equal(tm_plan_explanation_memory(explanation, i, &told), TM_OK);
    assert_int_equal(told.peak_bytes, taken.bytes);
    assert_true(options->max_memory_bytes == 0 || taken.bytes <= options->max_memory_bytes);
  }
  tm_plan_explanation_summarize(explanation, &summary);
  tm_plan_describe(*out_plan, &plan);
  assert_int_equal(summary.total_ns, plan.predicted_ns);
  tm_plan_explanation_destroy(explanation);
  return TM_OK;
}

/* The least limit that a plan keeps to, in bytes. */
static uint64_t least_limit(tm_graph *graph) {
  tm_plan_options options = LAZY_OPTIONS;
  uint64_t least = 0;
  for (uint64_t bytes = 8 * MATRIX_BYTES; bytes != 0; bytes -= MATRIX_BYTES / 2) {
    tm_plan *plan = NULL;
    options.max_memory_bytes = bytes;
    if (try_limit(graph, &options, &plan) != TM_OK) break;
    tm_plan_destroy(plan);
    least = bytes;
  }
  return least;
}

/* Inputs and outputs are the application's; a state is the plan's, read or not, and once more where it is set aside. */
static void states_count_and_inputs_do_not(void **state) {
  (void)state;
  static const struct {
    uint32_t carries_input, has_node, matrices;
  } rows[] = { { 0, 1, 1 }, { 1, 1, 2 }, { 0, 0, 1 }, { 1, 0, 2 } };
  open_machine(1, (const uint64_t[]){ 500000000, 500000000, 1000 });
  for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    tm_graph *graph = open_state_graph(rows[i].carries_input, rows[i].has_node);
    assert_int_equal(least_limit(graph), rows[i].matrices * MATRIX_BYTES);
    tm_graph_destroy(graph);
  }
  lazy_case_close(&machine);
}

/* A device that works on its own is given copies of what the application gives, and a state that no run changes stays beside it. */
static void what_is_kept_beside_a_device_counts(void **state) {
  (void)state;
  tm_plan_memory_description memory = { .struct_size = sizeof memory };
  const tm_plan_options options = LAZY_OPTIONS;
  tm_plan *plan = NULL;
  open_machine(0, (const uint64_t[]){ 1000, 500000000, 500000000 });
  tm_graph *graph = open_state_graph(0, 1);
  assert_int_equal(tm_plan_create(graph, &options, &plan, NULL), TM_OK);
  assert_int_equal(tm_plan_memory_describe(plan, 0, &memory), TM_OK);
  assert_string_equal(memory.name, "host");
  assert_int_equal(memory.bytes, 3 * MATRIX_BYTES);
  tm_plan_destroy(plan);
  tm_graph_destroy(graph);
  lazy_case_close(&machine);
}

/* What is too large for sums is named. */
static void what_is_too_large_is_named(void **state) {
  (void)state;
  const tm_operand large = { .format = TM_FORMAT_U8, .rank = 1, .dims = { (UINT64_C(1) << 62) + 1 } };
  tm_plan_options options = LAZY_OPTIONS;
  tm_graph *graph = NULL;
  tm_plan *plan = NULL;
  tm_error error = TM_ERROR_INIT;
  uint32_t x, y;
  options.max_memory_bytes = 1000;
  open_machine(1, (const uint64_t[]){ 500000000, 500000000, 1000 });
  assert_int_equal(tm_graph_create(machine.context, &graph, NULL), TM_OK);
  assert_int_equal(tm_graph_input(graph, "enormous", &large, &x, NULL), TM_OK);
  assert_int_equal(tm_graph_input(graph, "small", &plan_matrix, &y, NULL), TM_OK);
  assert_int_equal(tm_graph_output(graph, "y", plan_add_node(graph, TM_OP_NEG, y, y), NULL), TM_OK);
  assert_int_equal(tm_plan_create(graph, &options, &plan, &error), TM_ERROR_ARGUMENT);
  assert_non_null(strstr(error.text, "enormous"));
  tm_graph_destroy(graph);
  lazy_case_close(&machine);
}

/* A chain whose every node writes in place of what it reads takes one matrix. */
static void what_is_written_in_place_counts_once(void **state) {
  (void)state;
  tm_graph *graph = NULL;
  uint32_t value, output;
  memset(&machine, 0, sizeof machine);
  for (uint32_t i = 0; i < LAZY_COUNT; i++)
    machine.controls[i] = (lazy_control){ .cost_ns = i == 2 ? 1000 : 500000000, .is_prompt = 1, .is_host = i == 2, .aliases = 1 };
  lazy_case_open(&machine);
  assert_int_equal(tm_graph_create(machine.context, &graph, NULL), TM_OK);
  assert_int_equal(tm_graph_input(graph, "x", &plan_matrix, &value, NULL), TM_OK);
  for (uint32_t i = 0; i < 6; i++) value = plan_add_node(graph, TM_OP_NEG, value, value);
  output = plan_add_node(graph, TM_OP_MATMUL, value, value);
  assert_int_equal(tm_graph_output(graph, "y", output, NULL), TM_OK);
  assert_int_equal(least_limit(graph), MATRIX_BYTES);
  tm_graph_destroy(graph);
  lazy_case_close(&machine);
}

/* Ever less room, until there is no plan. */
static void any_graph_keeps_to_its_limit(void **state) {
  (void)state;
  const uint64_t seeds = getenv("TM_NIGHTLY") != NULL ? 100 : TM_WHOLE_OR_PART(3, 1);        /* more with TM_NIGHTLY=1 */
  uint32_t plans = 0, over = 0;
  for (uint64_t seed = 1; seed <= seeds; seed++) {
    for (uint64_t matrices = 14; matrices != 0; matrices--) {
      plan_case one;
      tm_plan_options options = LAZY_OPTIONS;
      memset(&machine, 0, sizeof machine);
      for (uint32_t i = 0; i < LAZY_COUNT; i++)
        machine.controls[i] = (lazy_control){ .cost_spread_ns = 10000000, .cost_seed = seed, .is_prompt = seed % 2, .is_host = i == 2,
                                              .aliases = 1 };
      lazy_case_open(&machine);
      plan_case_build(&one, machine.context, seed, 24);
      options.max_memory_bytes = matrices * MATRIX_BYTES;
      const tm_status status = try_limit(one.graph, &options, &one.plan);
      assert_true(status == TM_OK || status == TM_ERROR_LIMIT);
      plans += status == TM_OK;
      if (status == TM_OK && matrices <= 8 && matrices % 2 == 0) expect_explained(one.plan);    /* less room, more tries */
      over += status == TM_OK && most_bytes_of(one.plan) > options.max_memory_bytes;
      plan_case_destroy(&one);
      lazy_case_close(&machine);
      if (status != TM_OK) break;
    }
  }
  print_message("%u plans, %u over their limit\n", plans, over);
  assert_true(plans > seeds);
  assert_int_equal(over, 0);
}

/* ---- more room ---- */

/* A plan that was made keeps to its limit, and can be explained. */
static void expect_kept(const tm_plan *plan, uint64_t bytes) {
  if (most_bytes_of(plan) > bytes) fail_msg("%" PRIu64 " bytes, of %" PRIu64, most_bytes_of(plan), bytes);
  expect_explained(plan);
}

/* Whether there is a plan within so many bytes; if not, what the nearest one is said to take. */
static bool is_planned(tm_graph *graph, uint64_t bytes, uint64_t *out_nearest) {
  tm_plan_options options = LAZY_OPTIONS;
  tm_error error = TM_ERROR_INIT;
  tm_plan *plan = NULL;
  options.max_memory_bytes = bytes;
  const tm_status status = tm_plan_create(graph, &options, &plan, &error);
  if (status == TM_OK) expect_kept(plan, bytes);
  tm_plan_destroy(plan);
  if (status == TM_OK) return true;
  const char *said = strstr(error.text, "the nearest one takes ");
  assert_int_equal(status, TM_ERROR_LIMIT);
  if (said == NULL || sscanf(said, "the nearest one takes %" SCNu64, out_nearest) != 1) fail_msg("%s", error.text);
  return false;
}

/* Nothing below what was refused is planned, and nothing that is named as nearest is refused. */
static void expect_more_is_enough(tm_graph *graph, uint64_t most, uint64_t step, uint64_t seed) {
  uint64_t refused = 0, nearest = 0, ignored;
  for (uint64_t bytes = most; bytes != 0; bytes -= bytes < step ? bytes : step) {
    if (is_planned(graph, bytes, &nearest)) {
      if (refused != 0)
        fail_msg("seed %" PRIu64 ": planned within %" PRIu64 " bytes, but not within %" PRIu64, seed, bytes, refused);
      continue;
    }
    if (nearest <= bytes) fail_msg("seed %" PRIu64 ": %" PRIu64 " bytes are near %" PRIu64, seed, nearest, bytes);
    if (refused == 0 && !is_planned(graph, nearest, &ignored)) fail_msg("seed %" PRIu64 ": not within %" PRIu64, seed, nearest);
    refused = bytes;
  }
}

/* What works in host memory wants a workspace beside what lies there anyway, or takes longer without. */
static void open_roomy_machine(uint32_t op, uint64_t workspace_bytes, uint64_t seed) {
  memset(&machine, 0, sizeof machine);
  for (uint32_t i = 0; i < LAZY_COUNT; i++)
    machine.controls[i] = (lazy_control){ .cost_ns = i == 2 ? 10000 : 300000, .cost_spread_ns = seed == 0 ? 0 : 10000000,
                                          .cost_seed = seed, .is_prompt = 1, .is_host = i != 0, .aliases = seed != 0,
                                          .workspace_op = i == 2 ? op : 0, .workspace_bytes = workspace_bytes };
  lazy_case_open(&machine);
}

static void a_workspace_in_the_way_is_done_without(void **state) {
  (void)state;
  tm_graph *graph = NULL;
  uint32_t x, s;
  open_roomy_machine(TM_OP_MATMUL, MATRIX_BYTES + 64, 0);
  assert_int_equal(tm_graph_create(machine.context, &graph, NULL), TM_OK);
  assert_int_equal(tm_graph_input(graph, "x", &plan_matrix, &x, NULL), TM_OK);
  assert_int_equal(tm_graph_state(graph, "s", &plan_matrix, &s, NULL), TM_OK);
  const uint32_t product = plan_add_node(graph, TM_OP_MATMUL, x, x);
  assert_int_equal(tm_graph_output(graph, "y", plan_add_node(graph, TM_OP_NEG, product, product), NULL), TM_OK);
  (void)plan_add_node(graph, TM_OP_ABS, x, x);
  assert_int_equal(tm_graph_carry(graph, s, product, NULL), TM_OK);
  expect_more_is_enough(graph, 6 * MATRIX_BYTES, MATRIX_BYTES / 32, 0);
  tm_graph_destroy(graph);
  lazy_case_close(&machine);
}

/* Devices that work at the same time, in memory of their own beside the host's; limits that are no multiples of a matrix. */
static void any_limit_is_kept_and_explained(void **state) {
  (void)state;
  const bool is_long = getenv("TM_NIGHTLY") != NULL;     /* more with TM_NIGHTLY=1 */
  for (uint64_t seed = 22; seed < (is_long ? 122 : 42); seed += is_long ? 1 : TM_WHOLE_OR_PART(4, 16)) {
    plan_case one;
    memset(&machine, 0, sizeof machine);
    for (uint32_t i = 0; i < LAZY_COUNT; i++)
      machine.controls[i] = (lazy_control){ .cost_spread_ns = 10000000, .cost_seed = seed, .is_prompt = i == 2 || seed % 4 < 2,
                                            .is_host = i == 2, .aliases = seed % 2, .workspace_op = i == 2 ? 0 : TM_OP_ADD,
                                            .workspace_bytes = MATRIX_BYTES / 8 * (seed % 16) };
    lazy_case_open(&machine);
    plan_case_build(&one, machine.context, seed, 12);
    expect_more_is_enough(one.graph, 8 * MATRIX_BYTES, MATRIX_BYTES * 5 / 11, seed);
    plan_case_destroy(&one);
    lazy_case_close(&machine);
  }
}

/* Plans that are known to be there, in which one memory has to do with less than the others. */
static void what_lies_unequally_is_found(void **state) {
  (void)state;
  static const struct {
    uint64_t seed, bytes;
  } rows[] = { { 2, 1024 }, { 6, 1024 }, { 10, 768 }, { 14, 1024 }, { 19, 1024 }, { 20, 1024 }, { 22, 1024 }, { 27, 1024 } };
  for (uint32_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    const uint64_t seed = rows[r].seed;
    uint64_t nearest = 0;
    plan_case one;
    memset(&machine, 0, sizeof machine);
    for (uint32_t i = 0; i < LAZY_COUNT; i++)
      machine.controls[i] = (lazy_control){ .cost_spread_ns = 10000000, .cost_seed = seed, .is_prompt = 1, .aliases = seed / 2 % 2 };
    lazy_case_open(&machine);
    plan_case_build(&one, machine.context, seed, 12);
    if (!is_planned(one.graph, rows[r].bytes, &nearest))
      fail_msg("seed %" PRIu64 ": not within %" PRIu64 " bytes, but %" PRIu64, seed, rows[r].bytes, nearest);
    plan_case_destroy(&one);
    lazy_case_close(&machine);
  }
}

static void more_room_never_refuses(void **state) {
  (void)state;
  const uint64_t seeds = getenv("TM_NIGHTLY") != NULL ? 100 : TM_WHOLE_OR_PART(3, 1);        /* more with TM_NIGHTLY=1 */
  for (uint64_t seed = 1; seed <= seeds; seed++) {
    plan_case one;
    open_roomy_machine(seed % 2 == 0 ? TM_OP_ADD : TM_OP_MUL, MATRIX_BYTES / 2 * (seed % 4 + 1), seed);
    plan_case_build(&one, machine.context, seed, 12);
    expect_more_is_enough(one.graph, 10 * MATRIX_BYTES, MATRIX_BYTES / 2, seed);
    plan_case_destroy(&one);
    lazy_case_close(&machine);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(weights_that_stay_on_a_device_count),
    cmocka_unit_test(where_devices_work_at_the_same_time_too),
    cmocka_unit_test(the_applications_own_do_not_count),
    cmocka_unit_test(states_count_and_inputs_do_not),
    cmocka_unit_test(what_is_kept_beside_a_device_counts),
    cmocka_unit_test(what_is_too_large_is_named),
    cmocka_unit_test(what_is_written_in_place_counts_once),
    cmocka_unit_test(any_graph_keeps_to_its_limit),
    cmocka_unit_test(a_workspace_in_the_way_is_done_without),
    cmocka_unit_test(what_lies_unequally_is_found),
    cmocka_unit_test(more_room_never_refuses),
    cmocka_unit_test(any_limit_is_kept_and_explained),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
