/* SPDX-License-Identifier: Apache-2.0 */
/* What many small runs at once take reaches the price of one, on a virtual clock. */
#include <stdlib.h>

#include "api/context.h"
#include "base/error.h"
#include "execute/batch.h"
#include "fakes/fake_case.h"
#include "fakes/idle_devices.h"

#define RUN_NS 10000u

typedef struct world {
  fake_case        one;
  _Atomic uint64_t clock_ns;
  _Atomic uint64_t times;       /* what the first device takes longer now */
  tm_request       request;
} world;

static uint64_t virtual_now(void *context) { return atomic_load(&((world *)context)->clock_ns); }

static uint64_t virtual_ns(const fake_control *control, uint32_t op, uint64_t elements, uint64_t launch) {
  (void)op, (void)elements, (void)launch;
  const world *w = control->user;
  return control == &w->one.controls[0] ? RUN_NS * atomic_load(&w->times) : 4 * RUN_NS;
}

static uint64_t declared_ns(const fake_control *control, uint32_t op, uint64_t elements) {
  (void)op, (void)elements;
  const world *w = control->user;
  return control == &w->one.controls[0] ? RUN_NS : 4 * RUN_NS;
}

static void open_world(world *w) {
  memset(w, 0, sizeof *w);
  atomic_store(&w->clock_ns, 1000);
  atomic_store(&w->times, 1);
  for (uint32_t i = 0; i < 2; i++) {
    fake_control *control = &w->one.controls[i];
    memset(&control->uuid, (int)i + 1, sizeof control->uuid);
    control->is_asynchronous = 1;
    control->clock_ns = &w->clock_ns;
    control->virtual_ns = virtual_ns;
    control->declared_ns = declared_ns;
    control->user = w;
  }
  fake_case_open(&w->one, "ab", "reference");
  allow_idle_devices(w->one.context);
  w->one.context->inventory->clock = (tm_clock){ virtual_now, w };
  w->request = (tm_request){ .op = TM_OP_NEG, .version = 1, .only_device = TM_ANY_DEVICE, .input_count = 1, .output_count = 1,
                             .worst_numerics = TM_NUMERICS_N0 };
  for (uint32_t i = 0; i < 2; i++)
    w->request.operands[i] = (tm_operand){ .format = TM_FORMAT_F32, .rank = 1, .dims = { FAKE_ELEMENTS }, .strides_bytes = { 4 },
                                           .element_count = FAKE_ELEMENTS, .byte_count = 4 * FAKE_ELEMENTS,
                                           .flags = TM_OPERAND_CONTIGUOUS, .alignment = 4 };
}

static uint32_t run_alone(world *w) {
  tm_run_outcome outcome;
  tm_error error = TM_ERROR_INIT;
  void *const pointers[2] = { tm_tensor_data(w->one.x), tm_tensor_data(w->one.y) };
  if (tm_runner_run(&w->one.context->runner, &w->request, pointers, &outcome, &error) != TM_OK) fail_msg("%s", error.text);
  return outcome.device;
}

/* As many as a stream would; false: the request is not for a batch now. */
static bool run_many(world *w, tm_batch *batch, uint32_t count) {
  void *const pointers[1] = { tm_tensor_data(w->one.x) };
  tm_error error = TM_ERROR_INIT;
  for (uint32_t i = 0; i < count; i++) {
    if (!tm_batch_add(batch, &w->request)) break;
    tm_batch_put(batch, i, pointers);
  }
  const bool has_any = batch->count != 0;
  if (has_any && tm_batch_run(batch, &error) != TM_OK) fail_msg("%s", error.text);
  return has_any;
}

/* Runs in batches where they can; the device at the end. */
static uint32_t stream(world *w, uint32_t batches) {
  static tm_batch batch;
  uint32_t device = TM_ANY_DEVICE;
  tm_batch_init(&batch, &w->one.context->runner);
  for (uint32_t i = 0; i < batches; i++) {
    if (run_many(w, &batch, 16)) device = batch.device->index;
    else device = run_alone(w);
    tm_batch_clear(&batch);
  }
  tm_batch_deinit(&batch);
  return device;
}

static void expect_on(const world *w, uint32_t device, const char *name) {
  assert_string_equal(fake_device_name(&w->one, device), name);
}

static void a_device_that_slows_down_loses_its_batches(void **state) {
  static world w;
  (void)state;
  open_world(&w);
  for (uint32_t i = 0; i < 40; i++) (void)run_alone(&w);
  expect_on(&w, stream(&w, 10), "fake_a:0");
  atomic_store(&w.times, 20);
  expect_on(&w, stream(&w, 30), "fake_b:0");
  fake_case_close(&w.one);
}

/* One batch that was held up is forgotten: later ones say that nothing has changed. */
static void one_that_was_held_up_keeps_them(void **state) {
  static world w;
  (void)state;
  open_world(&w);
  for (uint32_t i = 0; i < 40; i++) (void)run_alone(&w);
  for (uint32_t i = 0; i < 30; i++) {
    atomic_store(&w.times, i % 10 == 9 ? 3 : 1);
    (void)stream(&w, 1);
  }
  atomic_store(&w.times, 1);
  expect_on(&w, stream(&w, 10), "fake_a:0");
  const uint64_t begin_ns = atomic_load(&w.clock_ns);
  expect_on(&w, run_alone(&w), "fake_a:0");
  assert_true(atomic_load(&w.clock_ns) - begin_ns <= RUN_NS);
  fake_case_close(&w.one);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_device_that_slows_down_loses_its_batches),
    cmocka_unit_test(one_that_was_held_up_keeps_them),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
