/* SPDX-License-Identifier: Apache-2.0 */
/* States that are written in place, row by row: nothing as large as they are is copied, and a failure does them no harm. */
#include "execute/plan.h"
#include "unit/execute/lazy_case.h"

#define CAPACITY 32u
#define WIDTH 8u

typedef struct rows_case {
  tm_graph  *graph;
  tm_plan   *plan;
  tm_tensor *inputs[2];         /* a row, and where it goes */
  tm_tensor *output;            /* the state after that, negated */
  uint32_t   state;
  float      expected[CAPACITY * WIDTH];
} rows_case;

static lazy_case machine;
static uint64_t patience_ns;
static lazy_heap heap;
static lazy_heap *own_heap;

static void open_machine(lazy_control first, lazy_control second) {
  memset(&machine, 0, sizeof machine);
  machine.controls[0] = first;
  machine.controls[1] = second;
  machine.controls[2] = (lazy_control){ .cost_ns = 1000000000, .is_host = 1 };
  machine.patience_ns = patience_ns;
  machine.heap = own_heap;
  lazy_case_open(&machine);
}

static void rows_open(rows_case *one, tm_context *context, const tm_plan_options *options) {
  const tm_operand cache = { .format = TM_FORMAT_F32, .rank = 2, .dims = { CAPACITY, WIDTH } };
  const tm_operand row = { .format = TM_FORMAT_F32, .rank = 2, .dims = { 1, WIDTH } }, place = { .format = TM_FORMAT_I32 };
  uint32_t values[3], updated, negated;
  memset(one, 0, sizeof *one);
  assert_int_equal(tm_graph_create(context, &one->graph, NULL), TM_OK);
  assert_int_equal(tm_graph_state(one->graph, "cache", &cache, &values[0], NULL), TM_OK);
  assert_int_equal(tm_graph_input(one->graph, "row", &row, &values[1], NULL), TM_OK);
  assert_int_equal(tm_graph_input(one->graph, "place", &place, &values[2], NULL), TM_OK);
  assert_int_equal(tm_graph_node(one->graph, "write", TM_OP_UPDATE, NULL, 0, values, 3, NULL, 1, &updated, NULL), TM_OK);
  assert_int_equal(tm_graph_node(one->graph, "read", TM_OP_NEG, NULL, 0, &updated, 1, NULL, 1, &negated, NULL), TM_OK);
  assert_int_equal(tm_graph_carry(one->graph, values[0], updated, NULL), TM_OK);
  assert_int_equal(tm_graph_output(one->graph, "y", negated, NULL), TM_OK);
  one->state = values[0];
  one->plan = lazy_plan(one->graph, options);
  assert_int_equal(tm_tensor_create(context, TM_FORMAT_F32, 2, row.dims, &one->inputs[0], NULL), TM_OK);
  assert_int_equal(tm_tensor_create(context, TM_FORMAT_I32, 0, NULL, &one->inputs[1], NULL), TM_OK);
  assert_int_equal(tm_tensor_create(context, TM_FORMAT_F32, 2, cache.dims, &one->output, NULL), TM_OK);
}

static void rows_close(rows_case *one) {
  tm_plan_destroy(one->plan);
  tm_graph_destroy(one->graph);
  tm_tensor_destroy(one->output);
  for (uint32_t i = 0; i < 2; i++) tm_tensor_destroy(one->inputs[i]);
}

static tm_status rows_run(rows_case *one, uint32_t step, tm_plan_report *report, tm_error *error) {
  float *row = tm_tensor_data(one->inputs[0]);
  const int32_t place = (int32_t)(step * 5 % CAPACITY);
  memcpy(tm_tensor_data(one->inputs[1]), &place, sizeof place);
  for (uint32_t i = 0; i < WIDTH; i++) row[i] = (float)(step * WIDTH + i + 1);
  const tm_status status = tm_plan_run(one->plan, one->inputs, 2, &one->output, 1, report, error);
  if (status != TM_OK) return status;
  memcpy(one->expected + (uint32_t)place * WIDTH, row, WIDTH * sizeof *row);
  const float *y = tm_tensor_data(one->output);
  for (uint32_t i = 0; i < CAPACITY * WIDTH; i++)
    if (y[i] != -one->expected[i]) fail_msg("step %u: y[%u] is %g, expected %g", step, i, (double)y[i], (double)-one->expected[i]);
  return TM_OK;
}

static uint64_t bytes_in(const rows_case *one, uint32_t device) {
  tm_plan_memory_description memory = { .struct_size = sizeof memory };
  for (uint32_t i = 0; tm_plan_memory_describe(one->plan, i, &memory) == TM_OK; i++)
    if (memory.device == device) return memory.bytes;
  return 0;
}

static void try_runs(rows_case *one, uint32_t first, uint32_t count) {
  tm_error error = TM_ERROR_INIT;
  for (uint32_t step = first; step < first + count; step++)
    if (rows_run(one, step, NULL, &error) != TM_OK) fail_msg("step %u: %s", step, error.text);
}

static void in_host_memory_they_are_not_copied(void **state) {
  (void)state;
  rows_case one;
  const tm_plan_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N0, .wait_for_prepare = 1 };
  open_machine((lazy_control){ .cost_ns = 1000000000 }, (lazy_control){ .cost_ns = 1000000000 });
  rows_open(&one, machine.context, &options);
  try_runs(&one, 0, 40);
  assert_true(bytes_in(&one, TM_ANY_DEVICE) < 2 * CAPACITY * WIDTH * sizeof(float));      /* the state, and no second one */
  rows_close(&one);
  lazy_case_close(&machine);
}

static void in_a_device_they_stay_there(void **state) {
  (void)state;
  rows_case one;
  const tm_plan_options options = LAZY_OPTIONS;
  open_machine((lazy_control){ .cost_ns = 10, .aliases = 1 }, (lazy_control){ .cost_ns = 1000000000 });
  rows_open(&one, machine.context, &options);
  try_runs(&one, 0, 8);
  const uint64_t uploads = atomic_load(&machine.controls[0].calls[LAZY_UPLOAD]);
  try_runs(&one, 8, 10);
  assert_int_equal(atomic_load(&machine.controls[0].calls[LAZY_UPLOAD]) - uploads, 20);   /* row and place, ten times */
  assert_int_equal(atomic_load(&machine.controls[0].places), 18);       /* each write was told of where it goes, and went there */
  rows_close(&one);
  lazy_case_close(&machine);
}

/* The second launch of a run is the read: the write has happened. */
static void fail_at(uint32_t device, lazy_function function, uint64_t call, tm_status status) {
  lazy_control *control = &machine.controls[device];
  for (uint32_t i = 0; i < LAZY_FUNCTIONS; i++) atomic_store(&control->calls[i], 0);
  atomic_store(&control->first, call);
  atomic_store(&control->last, call);
  atomic_store(&control->status, status);
  atomic_store(&control->function, function);
}

static void a_state_in_host_memory_survives(void **state) {
  (void)state;
  for (uint64_t call = 1; call <= 6; call++) {
    for (uint32_t lost = 0; lost < 2; lost++) {
      rows_case one;
      const tm_plan_options options = LAZY_OPTIONS;
      open_machine((lazy_control){ .cost_ns = 10, .is_host = 1, .aliases = 1 }, (lazy_control){ .cost_ns = 100000, .aliases = 1 });
      rows_open(&one, machine.context, &options);
      try_runs(&one, 0, 8);
      fail_at(0, LAZY_WORK, call, lost ? TM_ERROR_DEVICE_LOST : TM_ERROR_INTERNAL);
      try_runs(&one, 8, 12);
      tm_plan_description description = { .struct_size = sizeof description };
      tm_plan_describe(one.plan, &description);
      assert_true(description.failure_count >= 1);
      rows_close(&one);
      lazy_case_close(&machine);
    }
  }
}

static void one_that_is_lost_is_named_and_can_be_written(void **state) {
  (void)state;
  rows_case one;
  tm_error error = TM_ERROR_INIT;
  const tm_plan_options options = LAZY_OPTIONS;
  open_machine((lazy_control){ .cost_ns = 10, .aliases = 1 }, (lazy_control){ .cost_ns = 100000, .aliases = 1 });
  rows_open(&one, machine.context, &options);
  try_runs(&one, 0, 8);
  fail_at(0, LAZY_LAUNCH, 2, TM_ERROR_DEVICE_LOST);
  assert_int_equal(rows_run(&one, 8, NULL, &error), TM_ERROR_DEVICE_LOST);
  assert_non_null(strstr(error.text, "state 'cache'"));
  assert_int_equal(rows_run(&one, 8, NULL, &error), TM_ERROR_DEVICE_LOST);
  tm_tensor *kept = NULL;
  const uint64_t dims[] = { CAPACITY, WIDTH };
  assert_int_equal(tm_tensor_create(machine.context, TM_FORMAT_F32, 2, dims, &kept, NULL), TM_OK);
  assert_int_equal(tm_plan_state_read(one.plan, one.state, kept, &error), TM_ERROR_DEVICE_LOST);
  memcpy(tm_tensor_data(kept), one.expected, sizeof one.expected);
  assert_int_equal(tm_plan_state_write(one.plan, one.state, kept, NULL), TM_OK);
  try_runs(&one, 8, 12);
  tm_tensor_destroy(kept);
  rows_close(&one);
  lazy_case_close(&machine);
}

/* Work that never ends: what it may still use is told, and if that is nothing of the application's, somebody else does it. */
static void a_device_that_never_comes_back_is_left_behind(void **state) {
  (void)state;
  patience_ns = 400000000;
  own_heap = &heap;
  assert_int_equal(tm_mutex_init(&heap.lock), TM_OK);
  for (uint64_t call = 1; call <= 5; call += 2) {
    rows_case one;
    tm_error error = TM_ERROR_INIT;
    const tm_plan_options options = LAZY_OPTIONS;
    open_machine((lazy_control){ .cost_ns = 10, .is_host = 1, .aliases = 1 }, (lazy_control){ .cost_ns = 100000, .aliases = 1 });
    rows_open(&one, machine.context, &options);
    try_runs(&one, 0, 8);
    fail_at(0, LAZY_WORK, call, TM_PENDING);
    tm_status status = TM_OK;
    uint32_t step = 8;
    while (status == TM_OK && step < 14) status = rows_run(&one, step++, NULL, &error);
    assert_int_equal(status, TM_ERROR_INTERNAL);        /* it works in the application's own memory */
    assert_non_null(strstr(error.text, "inputs and outputs"));
    try_runs(&one, step - 1, 5);
    rows_close(&one);
    tm_context_destroy(machine.context);
  }
}

/* Two read the state as it was, and would come after the write were it only for what they take; so it would have to be copied. */
static void who_reads_the_old_one_comes_first(void **state) {
  (void)state;
  const tm_operand cache = { .format = TM_FORMAT_F32, .rank = 2, .dims = { CAPACITY, WIDTH } };
  const tm_operand row = { .format = TM_FORMAT_F32, .rank = 2, .dims = { 1, WIDTH } }, place = { .format = TM_FORMAT_I32 };
  const tm_plan_options options = LAZY_OPTIONS;
  uint32_t values[3], before, sum, updated, after;
  tm_graph *graph = NULL;
  open_machine((lazy_control){ .cost_ns = 1000, .is_host = 1, .aliases = 1, .refused_op = TM_OP_EXP },
               (lazy_control){ .cost_ns = 3000, .is_host = 1, .aliases = 1, .refused_op = TM_OP_UPDATE });
  assert_int_equal(tm_graph_create(machine.context, &graph, NULL), TM_OK);
  assert_int_equal(tm_graph_state(graph, "cache", &cache, &values[0], NULL), TM_OK);
  assert_int_equal(tm_graph_input(graph, "row", &row, &values[1], NULL), TM_OK);
  assert_int_equal(tm_graph_input(graph, "place", &place, &values[2], NULL), TM_OK);
  assert_int_equal(tm_graph_node(graph, "old", TM_OP_NEG, NULL, 0, values, 1, NULL, 1, &before, NULL), TM_OK);
  const uint32_t both[2] = { before, values[0] };
  assert_int_equal(tm_graph_node(graph, "sum", TM_OP_ADD, NULL, 0, both, 2, NULL, 1, &sum, NULL), TM_OK);
  assert_int_equal(tm_graph_node(graph, "write", TM_OP_UPDATE, NULL, 0, values, 3, NULL, 1, &updated, NULL), TM_OK);
  assert_int_equal(tm_graph_node(graph, "new", TM_OP_EXP, NULL, 0, &updated, 1, NULL, 1, &after, NULL), TM_OK);
  for (uint32_t i = 0; i < 2; i++)      /* much depends on the write: it is what is wanted first */
    assert_int_equal(tm_graph_node(graph, NULL, TM_OP_EXP, NULL, 0, &after, 1, NULL, 1, &after, NULL), TM_OK);
  assert_int_equal(tm_graph_carry(graph, values[0], updated, NULL), TM_OK);
  assert_int_equal(tm_graph_output(graph, "s", sum, NULL), TM_OK);
  assert_int_equal(tm_graph_output(graph, "y", after, NULL), TM_OK);
  tm_plan *plan = lazy_plan(graph, &options);
  uint32_t write = 0, last_reader = 0;
  tm_plan_step_description step = { .struct_size = sizeof step };
  for (uint32_t i = 0; tm_plan_step_describe(plan, i, &step) == TM_OK; i++) {
    if (step.node <= 1) last_reader = i;
    if (step.node == 2) write = i;
  }
  assert_true(write > last_reader);
  assert_int_equal(plan->program.roots[updated], values[0]);    /* it is written where the state lies */
  tm_plan_destroy(plan);
  tm_graph_destroy(graph);
  lazy_case_close(&machine);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(in_host_memory_they_are_not_copied),
    cmocka_unit_test(in_a_device_they_stay_there),
    cmocka_unit_test(who_reads_the_old_one_comes_first),
    cmocka_unit_test(a_state_in_host_memory_survives),
    cmocka_unit_test(one_that_is_lost_is_named_and_can_be_written),
    cmocka_unit_test(a_device_that_never_comes_back_is_left_behind),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
