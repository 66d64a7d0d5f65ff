/* SPDX-License-Identifier: Apache-2.0 */
/* What plans promise beside numbers: nothing is asked in the steady state, kernels are prepared beside runs, and errors say what.
 */
#include "unit/execute/lazy_case.h"

static lazy_case machine;

static void open_machine(lazy_control first) {
  memset(&machine, 0, sizeof machine);
  for (uint32_t i = 0; i < LAZY_COUNT; i++) machine.controls[i].cost_ns = 1000000000;
  machine.controls[0] = first;
  lazy_case_open(&machine);
}

/* ---- the steady state ---- */

static void two_hundred_steps_ask_nothing(void **state) {
  (void)state;
  plan_case one;
  plan_oracle oracle;
  const tm_plan_options options = LAZY_OPTIONS;
  open_machine((lazy_control){ .cost_ns = 10 });
  plan_case_build(&one, machine.context, 77, 30);
  one.plan = lazy_plan(one.graph, &options);
  plan_oracle_init(&oracle, &one);
  for (uint64_t run = 0; run < 6; run++) (void)plan_case_run(&one, &oracle, 0, run + 1);
  const uint64_t buffers = atomic_load(&machine.controls[0].calls[LAZY_BUFFER_CREATE]);
  const uint64_t queries = atomic_load(&machine.controls[0].queries);
  for (uint32_t run = 0; run < 200; run++) {
    tm_plan_report report = { .struct_size = sizeof report };
    assert_int_equal(tm_plan_run(one.plan, one.inputs, PLAN_INPUTS, one.outputs, PLAN_OUTPUTS, &report, NULL), TM_OK);
    assert_int_equal(report.replayed, 1);
    assert_int_equal(report.query_count, 0);
    assert_int_equal(report.prepare_count, 0);
    assert_int_equal(report.plan_count, 0);
  }
  assert_int_equal(atomic_load(&machine.controls[0].calls[LAZY_BUFFER_CREATE]), buffers);
  assert_int_equal(atomic_load(&machine.controls[0].queries), queries);
  tm_plan_description description = { .struct_size = sizeof description };
  tm_plan_describe(one.plan, &description);
  assert_int_equal(description.run_count, 206);
  assert_int_equal(description.plan_count, 1);
  assert_true(description.replay_count >= 200 && description.step_count == 30 && description.predicted_ns > 0);
  plan_oracle_deinit(&oracle, &one);
  plan_case_destroy(&one);
  lazy_case_close(&machine);
}

/* Bytes of its own do not grow with runs. */
static void runs_keep_nothing(void **state) {
  (void)state;
  plan_case one;
  const tm_plan_options options = LAZY_OPTIONS;
  open_machine((lazy_control){ .cost_ns = 10, .is_host = 1, .is_prompt = 1 });
  plan_case_build(&one, machine.context, 78, 30);
  one.plan = lazy_plan(one.graph, &options);
  tm_memory_usage before = { .struct_size = sizeof before }, after = { .struct_size = sizeof after };
  for (uint32_t run = 0; run < 300; run++) {
    if (run == 100) tm_context_memory_usage(machine.context, &before);
    assert_int_equal(tm_plan_run(one.plan, one.inputs, PLAN_INPUTS, one.outputs, PLAN_OUTPUTS, NULL, NULL), TM_OK);
  }
  tm_context_memory_usage(machine.context, &after);
  assert_int_equal(before.used_bytes, after.used_bytes);
  plan_case_destroy(&one);
  lazy_case_close(&machine);
}

/* ---- preparing ---- */

static uint32_t device_of_step(tm_plan *plan, uint32_t step, bool alternate) {
  tm_plan_step_description one = { .struct_size = sizeof one };
  assert_int_equal(tm_plan_step_describe(plan, step, &one), TM_OK);
  return alternate ? one.alternate : one.device;
}

static void the_alternate_works_until_all_is_prepared(void **state) {
  (void)state;
  plan_case one;
  plan_oracle oracle;
  tm_plan_options options = LAZY_OPTIONS;
  options.wait_for_prepare = 0;
  options.repeats = 1000000;
  open_machine((lazy_control){ .cost_ns = 10, .setup_ns = 50000000 });
  atomic_store(&machine.controls[0].holds_prepare, 1);
  plan_case_build(&one, machine.context, 79, 12);
  one.plan = lazy_plan(one.graph, &options);
  assert_int_equal(device_of_step(one.plan, 0, false), device_of(machine.context, "lazy_a:0"));
  assert_int_not_equal(device_of_step(one.plan, 0, true), device_of(machine.context, "lazy_a:0"));
  plan_oracle_init(&oracle, &one);
  for (uint64_t run = 0; run < 3; run++) assert_int_equal(plan_case_run(&one, &oracle, 0, run + 1).replayed, 0);
  assert_int_equal(atomic_load(&machine.controls[0].calls[LAZY_LAUNCH]), 0);
  atomic_store(&machine.controls[0].holds_prepare, 0);
  uint32_t replayed = 0;
  for (uint64_t run = 3; run < 2000 && !replayed; run++) replayed = plan_case_run(&one, &oracle, 0, run + 1).replayed;
  assert_true(replayed);
  assert_true(atomic_load(&machine.controls[0].calls[LAZY_LAUNCH]) > 0);
  plan_oracle_deinit(&oracle, &one);
  plan_case_destroy(&one);
  lazy_case_close(&machine);
}

static void a_plan_may_go_while_kernels_are_prepared(void **state) {
  (void)state;
  plan_case one;
  tm_plan_options options = LAZY_OPTIONS;
  options.wait_for_prepare = 0;
  options.repeats = 1000000;
  open_machine((lazy_control){ .cost_ns = 10, .setup_ns = 50000000 });
  plan_case_build(&one, machine.context, 79, 12);
  one.plan = lazy_plan(one.graph, &options);
  plan_case_destroy(&one);
  lazy_case_close(&machine);
}

static void what_cannot_be_prepared_goes_elsewhere(void **state) {
  (void)state;
  plan_case one;
  plan_oracle oracle;
  const tm_plan_options options = LAZY_OPTIONS;
  open_machine((lazy_control){ .cost_ns = 10 });
  machine.controls[0].first = 1;
  machine.controls[0].last = UINT64_MAX;
  machine.controls[0].status = TM_ERROR_INTERNAL;
  atomic_store(&machine.controls[0].function, LAZY_PREPARE);
  plan_case_build(&one, machine.context, 80, 12);
  one.plan = lazy_plan(one.graph, &options);
  plan_oracle_init(&oracle, &one);
  for (uint64_t run = 0; run < 10; run++) (void)plan_case_run(&one, &oracle, 0, run + 1);
  assert_int_equal(atomic_load(&machine.controls[0].calls[LAZY_LAUNCH]), 0);
  plan_oracle_deinit(&oracle, &one);
  plan_case_destroy(&one);
  lazy_case_close(&machine);
}

/* ---- a device changes ---- */

static void answers_that_may_have_changed_are_asked_for_again(void **state) {
  (void)state;
  plan_case one;
  plan_oracle oracle;
  const tm_plan_options options = LAZY_OPTIONS;
  open_machine((lazy_control){ .cost_ns = 10 });
  plan_case_build(&one, machine.context, 88, 12);
  one.plan = lazy_plan(one.graph, &options);
  plan_oracle_init(&oracle, &one);
  for (uint64_t run = 0; run < 6; run++) (void)plan_case_run(&one, &oracle, 0, run + 1);
  const tm_host *host = machine.controls[0].host;
  machine.controls[0].refused_op = TM_OP_ADD;
  host->device_event(host->context, 0, TM_EVENT_EPOCH_MOVED, 7);
  const tm_plan_report report = plan_case_run(&one, &oracle, 0, 7);
  assert_int_equal(report.plan_count, 1);
  assert_true(report.query_count > 0);
  for (uint64_t run = 7; run < 14; run++) assert_int_equal(plan_case_run(&one, &oracle, 0, run + 1).plan_count, 0);
  plan_oracle_deinit(&oracle, &one);
  plan_case_destroy(&one);
  lazy_case_close(&machine);
}

static void without_room_runs_go_node_by_node(void **state) {
  (void)state;
  plan_case one;
  plan_oracle oracle;
  const tm_plan_options options = LAZY_OPTIONS;
  open_machine((lazy_control){ .cost_ns = 10 });
  plan_case_build(&one, machine.context, 89, 12);
  one.plan = lazy_plan(one.graph, &options);
  plan_oracle_init(&oracle, &one);
  for (uint64_t run = 0; run < 4; run++) (void)plan_case_run(&one, &oracle, 0, run + 1);
  machine.controls[0].first = 1;
  machine.controls[0].last = UINT64_MAX;
  machine.controls[0].status = TM_ERROR_NO_MEMORY;
  atomic_store(&machine.controls[0].function, LAZY_BUFFER_CREATE);
  for (uint64_t run = 4; run < 30; run++) (void)plan_case_run(&one, &oracle, 0, run + 1);
  plan_oracle_deinit(&oracle, &one);
  plan_case_destroy(&one);
  lazy_case_close(&machine);
}

/* ---- the last device ---- */

static void fail_all(tm_status status, lazy_function function) {
  for (uint32_t i = 0; i < LAZY_COUNT; i++) {
    atomic_store(&machine.controls[i].first, 1);
    atomic_store(&machine.controls[i].last, UINT64_MAX);
    atomic_store(&machine.controls[i].status, status);
    atomic_store(&machine.controls[i].function, function);
    for (uint32_t k = 0; k < LAZY_FUNCTIONS; k++) atomic_store(&machine.controls[i].calls[k], 0);
  }
}

static void the_error_of_the_last_device_names_them_all(void **state) {
  (void)state;
  plan_case one;
  const tm_plan_options options = LAZY_OPTIONS;
  tm_error error = TM_ERROR_INIT;
  open_machine((lazy_control){ .cost_ns = 10, .is_host = 1 });
  plan_case_build(&one, machine.context, 81, 12);
  one.plan = lazy_plan(one.graph, &options);
  for (uint32_t run = 0; run < 6; run++)
    assert_int_equal(tm_plan_run(one.plan, one.inputs, PLAN_INPUTS, one.outputs, PLAN_OUTPUTS, NULL, NULL), TM_OK);
  fail_all(TM_ERROR_DEVICE_LOST, LAZY_LAUNCH);
  for (uint32_t run = 0; run < 3; run++) {
    error.text[0] = '\0';
    const tm_status status = tm_plan_run(one.plan, one.inputs, PLAN_INPUTS, one.outputs, PLAN_OUTPUTS, NULL, &error);
    if (status == TM_ERROR_DEVICE_LOST) {       /* a state lay there */
      assert_non_null(strstr(error.text, "state 's"));
      assert_int_equal(tm_plan_state_reset(one.plan, TM_NO_VALUE, NULL), TM_OK);
      continue;
    }
    assert_int_equal(status, TM_ERROR_NO_DEVICE);
    for (uint32_t i = 0; i < LAZY_COUNT; i++)
      if (strstr(error.text, lazy_names[i]) == NULL) fail_msg("'%s' does not name %s", error.text, lazy_names[i]);
    assert_null(strstr(error.text, "reference:0 (failed"));
  }
  plan_case_destroy(&one);
  lazy_case_close(&machine);
}

static void strict_plans_say_what_the_device_said(void **state) {
  (void)state;
  plan_case one;
  tm_plan_options options = LAZY_OPTIONS;
  tm_error error = TM_ERROR_INIT;
  options.on_failure = TM_ON_FAILURE_STRICT;
  open_machine((lazy_control){ .cost_ns = 10 });
  plan_case_build(&one, machine.context, 82, 12);
  one.plan = lazy_plan(one.graph, &options);
  for (uint32_t run = 0; run < 6; run++)
    assert_int_equal(tm_plan_run(one.plan, one.inputs, PLAN_INPUTS, one.outputs, PLAN_OUTPUTS, NULL, NULL), TM_OK);
  fail_all(TM_ERROR_INTERNAL, LAZY_WORK);
  assert_int_equal(tm_plan_run(one.plan, one.inputs, PLAN_INPUTS, one.outputs, PLAN_OUTPUTS, NULL, &error), TM_ERROR_INTERNAL);
  assert_non_null(strstr(error.text, "lazy_a:0"));
  plan_case_destroy(&one);
  lazy_case_close(&machine);
}

/* Who is not allowed is told so, whatever it would say to the question. */
static void who_is_not_allowed_is_told_so(void **state) {
  (void)state;
  plan_case one;
  tm_plan_options options = LAZY_OPTIONS;
  tm_error error = TM_ERROR_INIT;
  open_machine((lazy_control){ .cost_ns = 10 });
  for (uint32_t i = 0; i < LAZY_COUNT; i++) machine.controls[i].refused_op = TM_OP_TANH;
  plan_case_build(&one, machine.context, 82, 6);
  options.device_count = 1;
  assert_int_equal(tm_plan_create(one.graph, &options, &one.plan, &error), TM_ERROR_NO_DEVICE);
  assert_null(strstr(error.text, "lazy_a:0 (not allowed"));
  for (uint32_t i = 1; i < LAZY_COUNT + 2; i++) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "%s:0 (not allowed for this plan)", i < LAZY_COUNT ? lazy_names[i] : i == LAZY_COUNT ? "cpu" : "reference");
    if (strstr(error.text, wanted) == NULL) fail_msg("'%s' is without '%s'", error.text, wanted);
  }
  plan_case_destroy(&one);
  lazy_case_close(&machine);
}

/* What a device says is not what the caller did wrong, and need not be a status at all; before there are replays and after. */
static void what_a_device_says_is_no_word_of_the_library(void **state) {
  (void)state;
  static const tm_status said[] = { -77, 77, TM_ERROR_ARGUMENT, TM_ERROR_CANCELLED, TM_ERROR_NO_DEVICE, TM_ERROR_DEVICE_LOST };
  static const lazy_function functions[] = { LAZY_LAUNCH, LAZY_WORK, LAZY_UPLOAD, LAZY_PREPARE };
  for (uint32_t i = 0; i < sizeof said / sizeof *said; i++) {
    for (uint32_t k = 0; k < 2 * sizeof functions / sizeof *functions; k++) {
      plan_case one;
      tm_plan_options options = LAZY_OPTIONS;
      tm_error error = TM_ERROR_INIT;
      if (said[i] > 0 && functions[k % 4] == LAZY_WORK) continue;      /* then it may still be at work, and things stay */
      options.on_failure = TM_ON_FAILURE_STRICT;
      options.wait_for_prepare = k % 4 != 3;
      open_machine((lazy_control){ .cost_ns = 10 });
      plan_case_build(&one, machine.context, 82, 6);
      if (functions[k % 4] == LAZY_PREPARE) fail_all(said[i], LAZY_PREPARE);
      one.plan = lazy_plan(one.graph, &options);
      for (uint32_t run = 0; run < 6 && k >= 4 && k % 4 != 3; run++)
        assert_int_equal(tm_plan_run(one.plan, one.inputs, PLAN_INPUTS, one.outputs, PLAN_OUTPUTS, NULL, NULL), TM_OK);
      fail_all(said[i], functions[k % 4]);
      const tm_status status = tm_plan_run(one.plan, one.inputs, PLAN_INPUTS, one.outputs, PLAN_OUTPUTS, NULL, &error);
      if (status != TM_OK && status != (said[i] == TM_ERROR_DEVICE_LOST ? said[i] : TM_ERROR_INTERNAL))
        fail_msg("%d in function %u: %d %s", said[i], functions[k % 4], status, error.text);
      if (functions[k % 4] == LAZY_LAUNCH) assert_int_not_equal(status, TM_OK);
      plan_case_destroy(&one);
      lazy_case_close(&machine);
    }
  }
}

static uint64_t count_launches(void) {
  uint64_t count = 0;
  for (uint32_t i = 0; i < LAZY_COUNT; i++) count += atomic_load(&machine.controls[i].calls[LAZY_LAUNCH]);
  return count;
}

/* Each device is asked once for one kind of work, however many nodes are of it, runs there are, and ways to go about it. */
static void a_broken_promise_is_asked_for_once(void **state) {
  (void)state;
  for (uint32_t strict = 0; strict < 2; strict++) {
    for (uint32_t warm = 0; warm < 2; warm++) {
      tm_graph *graph = NULL;
      tm_plan *plan = NULL;
      tm_error error = TM_ERROR_INIT;
      tm_plan_options options = LAZY_OPTIONS;
      uint32_t value;
      options.on_failure = strict;
      open_machine((lazy_control){ .cost_ns = 10 });
      tm_tensor *input = plan_tensor(machine.context, 5), *output = plan_tensor(machine.context, 0);
      assert_int_equal(tm_graph_create(machine.context, &graph, NULL), TM_OK);
      assert_int_equal(tm_graph_input(graph, "x", &plan_matrix, &value, NULL), TM_OK);
      for (uint32_t i = 0; i < 3; i++) value = plan_add_node(graph, TM_OP_NEG, value, value);
      assert_int_equal(tm_graph_output(graph, "y", value, NULL), TM_OK);
      plan = lazy_plan(graph, &options);
      for (uint32_t run = 0; run < 6 && warm != 0; run++)
        assert_int_equal(tm_plan_run(plan, &input, 1, &output, 1, NULL, NULL), TM_OK);
      fail_all(TM_ERROR_INTERNAL, LAZY_LAUNCH);
      for (uint32_t run = 0; run < 6; run++) {
        const tm_status status = tm_plan_run(plan, &input, 1, &output, 1, NULL, &error);
        assert_true(status == TM_ERROR_INTERNAL || status == TM_ERROR_NO_DEVICE);
      }
      assert_int_equal(count_launches(), LAZY_COUNT);
      tm_plan_destroy(plan);
      tm_graph_destroy(graph);
      tm_tensor_destroy(output);
      tm_tensor_destroy(input);
      lazy_case_close(&machine);
    }
  }
}

/* ---- several at once ---- */

typedef struct runner_thread {
  tm_thread  thread;
  plan_case *shared;            /* its graph; inputs are only read */
  tm_plan   *plan;
  tm_tensor *outputs[PLAN_OUTPUTS];
  uint32_t   failures;
} runner_thread;

static void *run_often(void *argument) {
  runner_thread *one = argument;
  for (uint32_t i = 0; i < 60; i++) {
    if (tm_plan_run(one->plan, one->shared->inputs, PLAN_INPUTS, one->outputs, PLAN_OUTPUTS, NULL, NULL) != TM_OK) one->failures++;
    tm_plan *other = NULL;
    const tm_plan_options options = LAZY_OPTIONS;
    if (i % 20 == 0 && tm_plan_create(one->shared->graph, &options, &other, NULL) != TM_OK) one->failures++;
    tm_plan_destroy(other);
  }
  return NULL;
}

static void plans_of_one_graph_run_side_by_side(void **state) {
  (void)state;
  plan_case one;
  runner_thread threads[3];
  const tm_plan_options options = LAZY_OPTIONS;
  open_machine((lazy_control){ .cost_ns = 10 });
  plan_case_build(&one, machine.context, 91, 25);
  memset(threads, 0, sizeof threads);
  for (uint32_t i = 0; i < 3; i++) {
    threads[i].shared = &one;
    threads[i].plan = lazy_plan(one.graph, &options);
    for (uint32_t k = 0; k < PLAN_OUTPUTS; k++) threads[i].outputs[k] = plan_tensor(machine.context, 0);
  }
  for (uint32_t i = 0; i < 3; i++) assert_int_equal(tm_thread_start(&threads[i].thread, run_often, &threads[i], NULL), TM_OK);
  for (uint32_t i = 0; i < 3; i++) tm_thread_join(&threads[i].thread);
  for (uint32_t i = 0; i < 3; i++) {
    assert_int_equal(threads[i].failures, 0);
    for (uint32_t k = 0; k < PLAN_OUTPUTS; k++) {
      plan_expect_equal(threads[i].outputs[k], threads[0].outputs[k], 0, "an output", k);
      if (i != 0) tm_tensor_destroy(threads[i].outputs[k]);
    }
    tm_plan_destroy(threads[i].plan);
  }
  for (uint32_t k = 0; k < PLAN_OUTPUTS; k++) tm_tensor_destroy(threads[0].outputs[k]);
  plan_case_destroy(&one);
  lazy_case_close(&machine);
}

/* ---- what may be asked for ---- */

static void one_resource_stays_on_one(void **state) {
  (void)state;
  plan_case one;
  tm_plan_options options = LAZY_OPTIONS;
  options.one_resource = 1;
  memset(&machine, 0, sizeof machine);
  for (uint32_t i = 0; i < LAZY_COUNT; i++) machine.controls[i].cost_spread_ns = 10000000;
  lazy_case_open(&machine);
  plan_case_build(&one, machine.context, 83, 30);
  one.plan = lazy_plan(one.graph, &options);
  for (uint32_t i = 1; i < 30; i++) assert_int_equal(device_of_step(one.plan, i, false), device_of_step(one.plan, 0, false));
  plan_case_destroy(&one);
  lazy_case_close(&machine);
}

static uint64_t bytes_of(const tm_plan *plan) {
  tm_plan_memory_description memory = { .struct_size = sizeof memory };
  uint64_t bytes = 0;
  for (uint32_t i = 0; tm_plan_memory_describe(plan, i, &memory) == TM_OK; i++) bytes += memory.bytes;
  return bytes;
}

static void weights_count(void **state) {
  (void)state;
  uint32_t less = 0;
  for (uint64_t seed = 90; seed < 100; seed++) {
    plan_case one;
    tm_plan_options options = LAZY_OPTIONS;
    memset(&machine, 0, sizeof machine);
    for (uint32_t i = 0; i < LAZY_COUNT; i++) machine.controls[i].cost_spread_ns = 10000;
    lazy_case_open(&machine);
    plan_case_build(&one, machine.context, seed, 30);
    one.plan = lazy_plan(one.graph, &options);
    options.memory_permille = 1000;
    tm_plan *small = lazy_plan(one.graph, &options);
    less += bytes_of(small) < bytes_of(one.plan);
    tm_plan_destroy(small);
    plan_case_destroy(&one);
    lazy_case_close(&machine);
  }
  assert_true(less > 0);
}

static void options_that_mean_nothing_are_refused(void **state) {
  (void)state;
  plan_case one;
  tm_error error = TM_ERROR_INIT;
  open_machine((lazy_control){ .cost_ns = 10 });
  plan_case_build(&one, machine.context, 84, 5);
  static const char *const nobody[] = { "lazy_z" };
  const struct { tm_plan_options options; tm_status status; const char *words;
  } rows[] = {
    { { .struct_size = sizeof(tm_plan_options), .worst_numerics = 17 }, TM_ERROR_ARGUMENT, "17" },
    { { .struct_size = sizeof(tm_plan_options), .worst_numerics = 0, .on_failure = 9 }, TM_ERROR_ARGUMENT, "9" },
    { { .struct_size = sizeof(tm_plan_options), .worst_numerics = 0, .devices = nobody, .device_count = 1 },
      TM_ERROR_ARGUMENT,
      "lazy_z" },
    { { .struct_size = sizeof(tm_plan_options), .worst_numerics = 0, .device_count = 1 }, TM_ERROR_ARGUMENT, "devices" },
    { { .struct_size = sizeof(tm_plan_options), .latency_permille = 1001 }, TM_ERROR_ARGUMENT, "1001" },
    { { .struct_size = sizeof(tm_plan_options), .reserved = 7 }, TM_ERROR_ARGUMENT, "`reserved` is 7" },
    { { .struct_size = 1 }, TM_ERROR_ARGUMENT, "struct_size" },
    { { .struct_size = sizeof(tm_plan_options), .worst_numerics = 0, .max_memory_bytes = 1 }, TM_ERROR_LIMIT,
      "1 are allowed in any one memory; allow more (max_memory_bytes)" },
  };
  for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    tm_plan *plan = NULL;
    error.text[0] = '\0';
    const tm_status status = tm_plan_create(one.graph, &rows[i].options, &plan, &error);
    if (status != rows[i].status || strstr(error.text, rows[i].words) == NULL)
      fail_msg("row %u: %d '%s'", i, (int)status, error.text);
  }
  static const char *const all[] = { "lazy_a", "lazy_b", "lazy_c", "cpu", "reference" };
  const tm_plan_options none = {
    .struct_size = sizeof none, .worst_numerics = TM_NUMERICS_N0, .excluded_devices = all, .excluded_device_count = 5
  };
  assert_int_equal(tm_plan_create(one.graph, &none, &one.plan, &error), TM_ERROR_NO_DEVICE);
  assert_non_null(strstr(error.text, "node 0"));
  assert_non_null(strstr(error.text, "lazy_b:0 (not allowed"));
  plan_case_destroy(&one);
  lazy_case_close(&machine);
}

static void inputs_and_outputs_that_do_not_fit_are_refused(void **state) {
  (void)state;
  plan_case one;
  tm_error error = TM_ERROR_INIT;
  open_machine((lazy_control){ .cost_ns = 10 });
  plan_case_build(&one, machine.context, 85, 5);
  one.plan = lazy_plan(one.graph, NULL);
  tm_tensor *other = vector_of(machine.context, 9, 0, 1);
  tm_tensor *wrong[PLAN_INPUTS] = { one.inputs[0], other }, *none[PLAN_INPUTS] = { one.inputs[0], NULL };
  tm_tensor *same[PLAN_OUTPUTS] = { one.outputs[0], one.outputs[0], one.outputs[2] };
  tm_tensor *input[PLAN_OUTPUTS] = { one.outputs[0], one.inputs[0], one.outputs[2] };
  assert_int_equal(tm_plan_run(one.plan, one.inputs, 1, one.outputs, PLAN_OUTPUTS, NULL, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_plan_run(one.plan, wrong, PLAN_INPUTS, one.outputs, PLAN_OUTPUTS, NULL, &error), TM_ERROR_ARGUMENT);
  assert_non_null(strstr(error.text, "[9]"));
  assert_int_equal(tm_plan_run(one.plan, none, PLAN_INPUTS, one.outputs, PLAN_OUTPUTS, NULL, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_plan_run(one.plan, NULL, PLAN_INPUTS, one.outputs, PLAN_OUTPUTS, NULL, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_plan_run(one.plan, one.inputs, PLAN_INPUTS, same, PLAN_OUTPUTS, NULL, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_plan_run(one.plan, one.inputs, PLAN_INPUTS, input, PLAN_OUTPUTS, NULL, &error), TM_ERROR_ARGUMENT);
  tm_tensor *beside[PLAN_OUTPUTS] = { one.outputs[0], one.constant, one.outputs[2] };
  assert_int_equal(tm_plan_run(one.plan, one.inputs, PLAN_INPUTS, beside, PLAN_OUTPUTS, NULL, &error), TM_ERROR_ARGUMENT);
  assert_non_null(strstr(error.text, "constant 'w'"));
  assert_int_equal(tm_plan_state_read(one.plan, 0, one.outputs[0], &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_plan_state_read(one.plan, 4000, one.outputs[0], &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_plan_state_read(one.plan, one.states[0], other, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_plan_state_reset(one.plan, 0, &error), TM_ERROR_ARGUMENT);
  tm_plan_step_description step = { .struct_size = sizeof step };
  tm_plan_memory_description memory = { .struct_size = sizeof memory };
  assert_int_equal(tm_plan_step_describe(one.plan, 5, &step), TM_END);
  assert_int_equal(tm_plan_memory_describe(one.plan, 0, &memory), TM_OK);
  assert_string_equal(memory.name, "host");
  assert_int_equal(tm_plan_memory_describe(one.plan, 99, &memory), TM_END);
  uint32_t value;
  assert_int_equal(tm_graph_input(one.graph, "late", &plan_matrix, &value, &error), TM_ERROR_ARGUMENT);
  tm_tensor_destroy(other);
  plan_case_destroy(&one);
  lazy_case_close(&machine);
}

/* Memory that is not aligned, or arranged otherwise than the graph says. */
static void tensors_of_any_arrangement_will_do(void **state) {
  (void)state;
  plan_case one;
  plan_oracle oracle;
  static float input[PLAN_CELLS + 1], output[4 * PLAN_CELLS];
  const tm_plan_options options = LAZY_OPTIONS;
  const tm_operand columns = {
    .format = TM_FORMAT_F32, .rank = 2, .dims = { PLAN_SIDE, PLAN_SIDE }, .strides_bytes = { 8, 16 * PLAN_SIDE }
  };
  open_machine((lazy_control){ .cost_ns = 10 });
  plan_case_build(&one, machine.context, 86, 20);
  one.plan = lazy_plan(one.graph, &options);
  tm_tensor *odd = NULL, *spread = NULL, *usual = one.outputs[0];
  assert_int_equal(tm_tensor_wrap(machine.context, &plan_matrix, input + 1, sizeof input - sizeof *input, &odd, NULL), TM_OK);
  assert_int_equal(tm_tensor_wrap(machine.context, &columns, output, sizeof output, &spread, NULL), TM_OK);
  tm_tensor_destroy(one.inputs[0]);
  one.inputs[0] = odd;
  plan_oracle_init(&oracle, &one);
  for (uint32_t run = 0; run < 8; run++) {
    for (uint32_t i = 0; i < 4 * PLAN_CELLS; i++) output[i] = 12345;
    plan_fill(one.inputs[0], run + 5);
    one.outputs[0] = spread;
    assert_int_equal(tm_plan_run(one.plan, one.inputs, PLAN_INPUTS, one.outputs, PLAN_OUTPUTS, NULL, NULL), TM_OK);
    one.outputs[0] = usual;
    plan_copy(spread, usual);
    plan_oracle_run(&oracle, &one);
    tm_graph_output_description first = { .struct_size = sizeof first };
    assert_int_equal(tm_graph_output_describe(one.graph, 0, &first), TM_OK);
    plan_expect_equal(usual, oracle.values[first.value], 0, "y0", run);
    for (uint32_t i = 1; i < 4 * PLAN_CELLS; i += 2) assert_true(output[i] == 12345);
    plan_oracle_carry(&oracle, &one);
  }
  plan_oracle_deinit(&oracle, &one);
  tm_tensor_destroy(spread);
  plan_case_destroy(&one);
  lazy_case_close(&machine);
}

static void states_are_written_read_and_reset(void **state) {
  (void)state;
  plan_case one;
  plan_oracle oracle;
  const tm_plan_options options = LAZY_OPTIONS;
  open_machine((lazy_control){ .cost_ns = 10, .aliases = 1 });
  plan_case_build(&one, machine.context, 87, 20);
  one.plan = lazy_plan(one.graph, &options);
  plan_oracle_init(&oracle, &one);
  tm_tensor *tensor = plan_tensor(machine.context, 11);
  for (uint32_t run = 0; run < 20; run++) {
    (void)plan_case_run(&one, &oracle, 0, run + 1);
    if (run % 3 == 0) {
      assert_int_equal(tm_plan_state_write(one.plan, one.states[run % 2], tensor, NULL), TM_OK);
      plan_copy(tensor, oracle.states[run % 2]);
    }
    if (run % 7 == 6) {
      assert_int_equal(tm_plan_state_reset(one.plan, TM_NO_VALUE, NULL), TM_OK);
      plan_oracle_deinit(&oracle, &one);
      plan_oracle_init(&oracle, &one);
    }
    tm_tensor *found = plan_tensor(machine.context, 0);
    assert_int_equal(tm_plan_state_read(one.plan, one.states[1], found, NULL), TM_OK);
    plan_expect_equal(found, oracle.states[1], 0, "a state", run);
    tm_tensor_destroy(found);
  }
  tm_tensor_destroy(tensor);
  plan_oracle_deinit(&oracle, &one);
  plan_case_destroy(&one);
  lazy_case_close(&machine);
}

/* ---- odd graphs ---- */

static void a_graph_without_nodes_passes_things_on(void **state) {
  (void)state;
  tm_graph *graph = NULL;
  uint32_t x, s;
  open_machine((lazy_control){ .cost_ns = 10 });
  assert_int_equal(tm_graph_create(machine.context, &graph, NULL), TM_OK);
  assert_int_equal(tm_graph_input(graph, "x", &plan_matrix, &x, NULL), TM_OK);
  assert_int_equal(tm_graph_state(graph, "s", &plan_matrix, &s, NULL), TM_OK);
  assert_int_equal(tm_graph_carry(graph, s, x, NULL), TM_OK);
  assert_int_equal(tm_graph_output(graph, "before", s, NULL), TM_OK);
  assert_int_equal(tm_graph_output(graph, "now", x, NULL), TM_OK);
  tm_plan *plan = lazy_plan(graph, NULL);
  tm_tensor *input = plan_tensor(machine.context, 1), *last = plan_tensor(machine.context, 0);
  tm_tensor *outputs[2] = { plan_tensor(machine.context, 3), plan_tensor(machine.context, 4) };
  for (uint64_t run = 0; run < 5; run++) {
    plan_copy(input, last);
    if (run == 0) memset(tm_tensor_data(last), 0, PLAN_CELLS * sizeof(float));
    if (run != 0) plan_fill(input, run + 40);
    assert_int_equal(tm_plan_run(plan, &input, 1, outputs, 2, NULL, NULL), TM_OK);
    plan_expect_equal(outputs[0], last, 0, "before", run);
    plan_expect_equal(outputs[1], input, 0, "now", run);
  }
  tm_plan_destroy(plan);
  plan = NULL;
  tm_graph_destroy(graph);
  assert_int_equal(tm_graph_create(machine.context, &graph, NULL), TM_OK);
  plan = lazy_plan(graph, NULL);
  assert_int_equal(tm_plan_run(plan, NULL, 0, NULL, 0, NULL, NULL), TM_OK);
  tm_plan_destroy(plan);
  tm_graph_destroy(graph);
  for (uint32_t i = 0; i < 2; i++) tm_tensor_destroy(outputs[i]);
  tm_tensor_destroy(last);
  tm_tensor_destroy(input);
  lazy_case_close(&machine);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(two_hundred_steps_ask_nothing),
    cmocka_unit_test(runs_keep_nothing),
    cmocka_unit_test(the_alternate_works_until_all_is_prepared),
    cmocka_unit_test(a_plan_may_go_while_kernels_are_prepared),
    cmocka_unit_test(what_cannot_be_prepared_goes_elsewhere),
    cmocka_unit_test(answers_that_may_have_changed_are_asked_for_again),
    cmocka_unit_test(without_room_runs_go_node_by_node),
    cmocka_unit_test(the_error_of_the_last_device_names_them_all),
    cmocka_unit_test(strict_plans_say_what_the_device_said),
    cmocka_unit_test(who_is_not_allowed_is_told_so),
    cmocka_unit_test(what_a_device_says_is_no_word_of_the_library),
    cmocka_unit_test(a_broken_promise_is_asked_for_once),
    cmocka_unit_test(plans_of_one_graph_run_side_by_side),
    cmocka_unit_test(one_resource_stays_on_one),
    cmocka_unit_test(weights_count),
    cmocka_unit_test(options_that_mean_nothing_are_refused),
    cmocka_unit_test(inputs_and_outputs_that_do_not_fit_are_refused),
    cmocka_unit_test(tensors_of_any_arrangement_will_do),
    cmocka_unit_test(states_are_written_read_and_reset),
    cmocka_unit_test(a_graph_without_nodes_passes_things_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
