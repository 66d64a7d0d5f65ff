/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work on a device with memory of its own that never ends, in a replay: whatever it was (a copy of an input, a step, a copy of
 * an output), the run goes on elsewhere from what survived, and nothing of the application's can be touched any more.
 */
#include "unit/execute/lazy_case.h"

#define CAPACITY 32u
#define WIDTH 8u

static lazy_case machine;
static lazy_heap heap;
static uint32_t machine_is_alone;

typedef struct hang_case {
  tm_graph  *graph;
  tm_plan   *plan;
  tm_tensor *inputs[2];         /* a row, and where it goes */
  tm_tensor *output;            /* the state after that, plus the state that nobody changes, negated */
  uint32_t   states[2];
  float      expected[CAPACITY * WIDTH];
} hang_case;

/* The first does the steps, the second keeps the state that is written in place; the third could do anything. */
static void open_machine(void) {
  memset(&machine, 0, sizeof machine);
  machine.controls[0] = (lazy_control){ .cost_ns = 10, .refused_op = TM_OP_UPDATE };
  machine.controls[1] = (lazy_control){ .cost_ns = 100000, .aliases = 1 };
  machine.controls[2] = (lazy_control){ .cost_ns = 1000000000, .is_host = 1 };
  machine.patience_ns = 400000000;
  machine.heap = &heap;
  machine.is_alone = machine_is_alone;
  lazy_case_open(&machine);
}

static tm_tensor *tensor_of(uint32_t format, uint32_t rank, const uint64_t *dims) {
  tm_tensor *tensor = NULL;
  assert_int_equal(tm_tensor_create(machine.context, format, rank, dims, &tensor, NULL), TM_OK);
  return tensor;
}

static void write_state(hang_case *one, uint32_t which, const float *content) {
  const uint64_t dims[] = { CAPACITY, WIDTH };
  tm_tensor *tensor = tensor_of(TM_FORMAT_F32, 2, dims);
  float *elements = tm_tensor_data(tensor);
  for (uint32_t i = 0; i < CAPACITY * WIDTH; i++) elements[i] = content == NULL ? 1000 : content[i];
  assert_int_equal(tm_plan_state_write(one->plan, one->states[which], tensor, NULL), TM_OK);
  tm_tensor_destroy(tensor);
}

static void hang_open(hang_case *one) {
  const tm_operand cache = { .format = TM_FORMAT_F32, .rank = 2, .dims = { CAPACITY, WIDTH } };
  const tm_operand row = { .format = TM_FORMAT_F32, .rank = 2, .dims = { 1, WIDTH } }, place = { .format = TM_FORMAT_I32 };
  const tm_plan_options options = LAZY_OPTIONS;
  uint32_t values[3], updated, sum, negated;
  memset(one, 0, sizeof *one);
  open_machine();
  assert_int_equal(tm_graph_create(machine.context, &one->graph, NULL), TM_OK);
  assert_int_equal(tm_graph_state(one->graph, "cache", &cache, &values[0], NULL), TM_OK);
  assert_int_equal(tm_graph_state(one->graph, "bias", &cache, &one->states[1], NULL), TM_OK);
  assert_int_equal(tm_graph_input(one->graph, "row", &row, &values[1], NULL), TM_OK);
  assert_int_equal(tm_graph_input(one->graph, "place", &place, &values[2], NULL), TM_OK);
  assert_int_equal(tm_graph_node(one->graph, "write", TM_OP_UPDATE, NULL, 0, values, 3, NULL, 1, &updated, NULL), TM_OK);
  const uint32_t both[] = { updated, one->states[1] };
  assert_int_equal(tm_graph_node(one->graph, "sum", TM_OP_ADD, NULL, 0, both, 2, NULL, 1, &sum, NULL), TM_OK);
  assert_int_equal(tm_graph_node(one->graph, "read", TM_OP_NEG, NULL, 0, &sum, 1, NULL, 1, &negated, NULL), TM_OK);
  assert_int_equal(tm_graph_carry(one->graph, values[0], updated, NULL), TM_OK);
  assert_int_equal(tm_graph_output(one->graph, "y", negated, NULL), TM_OK);
  one->states[0] = values[0];
  one->plan = lazy_plan(one->graph, &options);
  one->inputs[0] = tensor_of(TM_FORMAT_F32, 2, row.dims);
  one->inputs[1] = tensor_of(TM_FORMAT_I32, 0, NULL);
  one->output = tensor_of(TM_FORMAT_F32, 2, cache.dims);
  write_state(one, 1, NULL);
}

/* What hangs stays for ever, the context's lists included. */
static void hang_close(hang_case *one) {
  tm_plan_destroy(one->plan);
  tm_graph_destroy(one->graph);
  tm_tensor_destroy(one->output);
  for (uint32_t i = 0; i < 2; i++) tm_tensor_destroy(one->inputs[i]);
  tm_context_destroy(machine.context);
}

static tm_status try_run(hang_case *one, uint32_t step, tm_plan_report *report, tm_error *error) {
  float *row = tm_tensor_data(one->inputs[0]);
  const int32_t place = (int32_t)(step * 5 % CAPACITY);
  memcpy(tm_tensor_data(one->inputs[1]), &place, sizeof place);
  for (uint32_t i = 0; i < WIDTH; i++) row[i] = (float)(step * WIDTH + i + 1);
  const tm_status status = tm_plan_run(one->plan, one->inputs, 2, &one->output, 1, report, error);
  if (status != TM_OK) return status;
  memcpy(one->expected + (uint32_t)place * WIDTH, row, WIDTH * sizeof *row);
  const float *y = tm_tensor_data(one->output);
  for (uint32_t i = 0; i < CAPACITY * WIDTH; i++)
    if (y[i] != -one->expected[i] - 1000) fail_msg("step %u: y[%u] is %g", step, i, (double)y[i]);
  return TM_OK;
}

static void run(hang_case *one, uint32_t step, tm_plan_report *report) {
  tm_error error = TM_ERROR_INIT;
  if (try_run(one, step, report, &error) != TM_OK) fail_msg("step %u: %s", step, error.text);
}

static void hang_at(uint32_t device, uint64_t call) {
  lazy_control *control = &machine.controls[device];
  for (uint32_t i = 0; i < LAZY_FUNCTIONS; i++) atomic_store(&control->calls[i], 0);
  atomic_store(&control->first, call);
  atomic_store(&control->last, call);
  atomic_store(&control->status, TM_PENDING);
  atomic_store(&control->function, LAZY_WORK);
}

/* The state that is written has its home where it is read: that copy comes first, and if it hangs there is no other. */
static void expect_lost(hang_case *one) {
  tm_error error = TM_ERROR_INIT;
  assert_int_equal(try_run(one, 8, NULL, &error), TM_ERROR_DEVICE_LOST);
  assert_non_null(strstr(error.text, "state 'cache'"));
  write_state(one, 0, one->expected);
}

static void the_run_goes_on_elsewhere(void **state) {
  (void)state;
  for (uint64_t call = 1; call <= 5; call += 2) {       /* the cache comes (and goes back), a step (another), the output comes */
    hang_case one;
    tm_plan_report report = { .struct_size = sizeof report };
    hang_open(&one);
    for (uint32_t step = 0; step < 8; step++) run(&one, step, &report);
    assert_int_equal(report.replayed, 1);
    hang_at(0, call);
    if (call == 1) expect_lost(&one);
    run(&one, 8, &report);
    assert_int_equal(report.retries, call == 1 ? 0 : 1);
    assert_true(call == 1 || strstr(report.note, "did not finish") != NULL);
    assert_int_equal(atomic_load(&machine.controls[0].calls[LAZY_WORK]), call);
    for (uint32_t step = 9; step < 14; step++) run(&one, step, NULL);
    hang_close(&one);
  }
}

/* ---- tensors too large to be copied once more ---- */

#define LARGE (UINT64_C(2) << 20)

/* x -> neg -> exp -> y, where the device does not come back from a piece of work: the copy there, a step, or the copy back. */
static tm_status run_large(uint64_t call, tm_plan_report *report, tm_error *error) {
  const tm_operand vector = { .format = TM_FORMAT_F32, .rank = 1, .dims = { LARGE } };
  const tm_plan_options options = LAZY_OPTIONS;
  uint32_t x, negated, y;
  tm_graph *graph = NULL;
  open_machine();
  assert_int_equal(tm_graph_create(machine.context, &graph, NULL), TM_OK);
  assert_int_equal(tm_graph_input(graph, "x", &vector, &x, NULL), TM_OK);
  assert_int_equal(tm_graph_node(graph, "neg", TM_OP_NEG, NULL, 0, &x, 1, NULL, 1, &negated, NULL), TM_OK);
  assert_int_equal(tm_graph_node(graph, "abs", TM_OP_ABS, NULL, 0, &negated, 1, NULL, 1, &y, NULL), TM_OK);
  assert_int_equal(tm_graph_output(graph, "y", y, NULL), TM_OK);
  tm_plan *plan = lazy_plan(graph, &options);
  tm_tensor *input = tensor_of(TM_FORMAT_F32, 1, vector.dims), *output = tensor_of(TM_FORMAT_F32, 1, vector.dims);
  float *elements = tm_tensor_data(input);
  for (uint64_t i = 0; i < LARGE; i++) elements[i] = (float)i;
  for (uint32_t i = 0; i < 5; i++) assert_int_equal(tm_plan_run(plan, &input, 1, &output, 1, report, error), TM_OK);
  assert_int_equal(report->replayed, 1);
  hang_at(0, call);
  memset(tm_tensor_data(output), 0, LARGE * sizeof *elements);
  const tm_status status = tm_plan_run(plan, &input, 1, &output, 1, report, error);
  assert_int_equal(atomic_load(&machine.controls[0].calls[LAZY_WORK]), call);
  if (status == TM_OK) assert_memory_equal(tm_tensor_data(output), elements, LARGE * sizeof *elements);
  tm_plan_destroy(plan);
  tm_graph_destroy(graph);
  tm_tensor_destroy(output);
  tm_tensor_destroy(input);
  tm_context_destroy(machine.context);
  return status;
}

static void large_ones_must_not_be_under_way(void **state) {
  (void)state;
  for (uint64_t call = 3; call <= 4; call++) {
    const bool is_copy = call == 4;
    tm_plan_report report = { .struct_size = sizeof report };
    tm_error error = TM_ERROR_INIT;
    assert_int_equal(run_large(call, &report, &error), is_copy ? TM_ERROR_INTERNAL : TM_OK);
    if (is_copy) assert_non_null(strstr(error.text, "inputs and outputs"));
    else assert_int_equal(report.retries, 1);
  }
}

/* ---- without a plan ---- */

/* The copies to the device, the step, the copy back: all apart.  One that hangs while the other device is there is made good
   wherever nothing of the caller's is under way. */
static void single_runs_likewise(void **state) {
  (void)state;
  for (uint64_t call = 2; call <= 3; call++) {
    const uint64_t dims[] = { WIDTH };
    const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N0, .run_to_run = 1 };
    tm_error error = TM_ERROR_INIT;
    machine_is_alone = 1;
    open_machine();
    tm_tensor *x = tensor_of(TM_FORMAT_F32, 1, dims), *y = tensor_of(TM_FORMAT_F32, 1, dims);
    float *elements = tm_tensor_data(x);
    for (uint32_t i = 0; i < WIDTH; i++) elements[i] = (float)i;
    for (uint32_t i = 0; i < 6; i++) assert_int_equal(tm_run(machine.context, TM_OP_NEG, NULL, 0, &x, 1, &y, 1, &options, &error), TM_OK);
    hang_at(0, call);
    const tm_status status = tm_run(machine.context, TM_OP_NEG, NULL, 0, &x, 1, &y, 1, &options, &error);
    assert_int_equal(atomic_load(&machine.controls[0].calls[LAZY_WORK]), call);
    assert_int_equal(status, call == 2 ? TM_OK : TM_ERROR_INTERNAL);
    const float *results = tm_tensor_data(y);
    for (uint32_t i = 0; i < WIDTH; i++) assert_true(results[i] == -elements[i]);
    tm_tensor_destroy(x);
    tm_tensor_destroy(y);
    tm_context_destroy(machine.context);
    machine_is_alone = 0;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_run_goes_on_elsewhere),
    cmocka_unit_test(large_ones_must_not_be_under_way),
    cmocka_unit_test(single_runs_likewise),
  };
  assert_int_equal(tm_mutex_init(&heap.lock), TM_OK);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
