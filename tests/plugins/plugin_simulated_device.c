/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated device itself: its memory, its order, its clock, and who may have it. */
#include "../../plugins/simulator/sim_device.h"
#include "plugin_subject.h"

#define LOCK "lock_folder=" TM_SCRATCH "/simulated_device"
#define SLOW_FILE TM_SCRATCH "/slow.json"
#define MILLISECOND UINT64_C(1000000)

static const char *const npu[] = { NPU, LOCK, NULL };
static const char *const gpu_like[] = { GPU_LIKE, LOCK, NULL };
static const char *const slow[] = { "device_file=" SLOW_FILE, "real_time=1", NULL };

/* Two queues, and 20 ms a launch. */
static const char slow_device[] =
    "{\"name\": \"slow\", \"queues\": 2, \"memory\": {\"bytes\": 1000000}, \"link\": {\"bytes_per_second\": 1e12},"
    "\"operations\": [{\"names\": [\"copy\"], \"formats\": [\"f32\"], \"flops_per_second\": 1e12, \"bytes_per_second\": 1e12,"
    "\"launch_ns\": 20000000}]}";

static int write_slow_device(void **state) {
  FILE *file = fopen(SLOW_FILE, "w");
  (void)state;
  if (file == NULL) return -1;
  const int failed = fputs(slow_device, file) < 0;
  return fclose(file) != 0 || failed ? -1 : 0;
}

/* ---- memory ---- */

static void test_memory_ends_at_its_cap(void **state) {
  (void)state;
  enum { COUNT = 8 };
  const uint64_t part = UINT64_C(64) << 20, total = UINT64_C(256) << 20;
  tm_buffer *buffers[COUNT] = { NULL };
  tm_memory_stats stats = { .struct_size = sizeof stats };
  subject s;
  int count = 0;
  assert_int_equal(plugin_open(&s, SIMULATOR, npu), TM_OK);
  assert_int_equal(s.info.flags, TM_DEVICE_EXCLUSIVE_PROCESS);
  assert_int_equal(s.space.total_bytes, total);
  while (count < COUNT && s.table.buffer_create(s.device, 0, part, &buffers[count]) == TM_OK) count++;
  assert_int_equal(count, total / part);
  assert_int_equal(s.table.buffer_create(s.device, 0, 1, &buffers[count]), TM_ERROR_NO_MEMORY);
  assert_int_equal(s.table.memory_stats(s.device, 0, &stats), TM_OK);
  assert_int_equal(stats.free_bytes, 0);
  s.table.buffer_destroy(s.device, 0, buffers[--count], part, 0);
  assert_int_equal(s.table.buffer_create(s.device, 0, 1, &buffers[count]), TM_OK);
  assert_int_equal(s.table.memory_stats(s.device, 0, &stats), TM_OK);
  assert_int_equal(stats.used_bytes, 3 * part + 64);
  for (int i = 0; i <= count; i++) s.table.buffer_destroy(s.device, 0, buffers[i], 0, 0);
  assert_int_equal(s.table.buffer_create(s.device, 0, total, &buffers[0]), TM_ERROR_NO_MEMORY);
  assert_int_equal(s.table.buffer_create(s.device, 1, 64, &buffers[0]), TM_ERROR_NO_MEMORY);
  assert_int_equal(s.table.buffer_create(s.device, 0, UINT64_MAX, &buffers[0]), TM_ERROR_NO_MEMORY);
  subject_close(&s);
}

static void test_bindings_and_transfers_are_checked(void **state) {
  (void)state;
  subject s;
  float x[32] = { 1 };
  tm_buffer *buffer = NULL;
  tm_ticket ticket = { 0, 0, 0 };
  assert_int_equal(plugin_open(&s, SIMULATOR, slow), TM_OK);
  assert_int_equal(subject_buffer(&s, x, sizeof x, &buffer), TM_OK);
  tm_transfer transfer = { .struct_size = sizeof transfer, .source = buffer, .host = x, .bytes = sizeof x + 1 };
  assert_int_equal(s.table.download(s.device, &transfer, &ticket), TM_ERROR_ARGUMENT);
  transfer.bytes = sizeof x;
  transfer.source_offset = UINT64_MAX;
  assert_int_equal(s.table.download(s.device, &transfer, &ticket), TM_ERROR_ARGUMENT);
  transfer.source_offset = 0;
  transfer.queue = 2;
  assert_int_equal(s.table.download(s.device, &transfer, &ticket), TM_ERROR_ARGUMENT);
  const tm_ticket never = { 1, 0, 99 };
  transfer = (tm_transfer){ .struct_size = sizeof transfer, .source = buffer, .host = x, .bytes = 4, .waits = &never,
                            .wait_count = 1 };
  assert_int_equal(s.table.download(s.device, &transfer, &ticket), TM_ERROR_ARGUMENT);
  assert_int_equal(s.table.wait(s.device, &never, 1, TM_WAIT_FOREVER), TM_ERROR_ARGUMENT);
  s.table.buffer_destroy(s.device, 0, buffer, sizeof x, 0);
  subject_close(&s);
}

/* ---- order ---- */

typedef struct copies {
  subject    s;
  tm_kernel *kernel;
  tm_buffer *buffers[2];
} copies;

static tm_kernel *prepare_copy(subject *s, uint64_t count) {
  tm_operand operands[2];
  tm_kernel *kernel = NULL;
  tm_operation operation = { .struct_size = sizeof operation, .op = TM_OP_COPY, .version = 1, .input_count = 1, .output_count = 1,
                             .operands = operands };
  for (int i = 0; i < 2; i++) {
    assert_int_equal(tm_operand_contiguous(TM_FORMAT_F32, 1, &count, &operands[i], NULL), TM_OK);
    operands[i].alignment = 64;
  }
  tm_op_normalize(&operation, operands);
  const tm_answer answer = subject_ask(s, &operation);
  assert_int_equal(answer.level, TM_LEVEL_NATIVE);
  assert_int_equal(s->table.prepare(s->device, &operation, &answer, &kernel), TM_OK);
  return kernel;
}

static void copies_begin(copies *c, const char *const *device) {
  float x[16];
  for (int i = 0; i < 16; i++) x[i] = (float)i;
  assert_int_equal(plugin_open(&c->s, SIMULATOR, device), TM_OK);
  c->kernel = prepare_copy(&c->s, 16);
  for (int i = 0; i < 2; i++) assert_int_equal(subject_buffer(&c->s, x, sizeof x, &c->buffers[i]), TM_OK);
}

static void copies_end(copies *c) {
  for (int i = 0; i < 2; i++) c->s.table.buffer_destroy(c->s.device, 0, c->buffers[i], 64, 0);
  c->s.table.release(c->s.device, c->kernel);
  subject_close(&c->s);
}

static tm_status launch(copies *c, uint32_t queue, const tm_ticket *after, tm_ticket *out_ticket) {
  const tm_binding bindings[] = { { c->buffers[0], 0, 64 }, { c->buffers[1], 0, 64 } };
  const tm_launch one = { .struct_size = sizeof one, .queue = queue, .kernel = c->kernel, .bindings = bindings, .binding_count = 2,
                          .waits = after, .wait_count = after != NULL };
  return c->s.table.launch(c->s.device, &one, out_ticket);
}

static tm_status wait(copies *c, tm_ticket ticket, uint64_t timeout_ns) {
  return c->s.table.wait(c->s.device, &ticket, 1, timeout_ns);
}

static void test_work_takes_its_time_and_keeps_its_order(void **state) {
  (void)state;
  copies c;
  tm_ticket first, second, other;
  copies_begin(&c, slow);
  const uint64_t start = c.s.services.now_ns(c.s.services.context);
  assert_int_equal(launch(&c, 0, NULL, &first), TM_OK);
  assert_int_equal(launch(&c, 0, NULL, &second), TM_OK);
  assert_int_equal(launch(&c, 1, &second, &other), TM_OK);
  assert_int_equal(second.value, first.value + 1);
  assert_int_equal(wait(&c, other, TM_WAIT_POLL), TM_PENDING);
  assert_int_equal(wait(&c, other, MILLISECOND), TM_PENDING);
  assert_int_equal(wait(&c, other, TM_WAIT_FOREVER), TM_OK);
  assert_true(c.s.services.now_ns(c.s.services.context) - start >= 60 * MILLISECOND);
  assert_int_equal(wait(&c, first, TM_WAIT_POLL), TM_OK);
  assert_int_equal(wait(&c, second, TM_WAIT_POLL), TM_OK);
  copies_end(&c);
}

static void test_a_full_queue_is_busy_and_a_cancelled_one_usable(void **state) {
  (void)state;
  copies c;
  tm_ticket first, last = { 0, 0, 0 };
  copies_begin(&c, slow);
  assert_int_equal(launch(&c, 0, NULL, &first), TM_OK);
  tm_status status = TM_OK;
  while (status == TM_OK) status = launch(&c, 0, NULL, &last);
  assert_int_equal(status, TM_BUSY);
  assert_true(last.value - first.value < 100);
  do status = c.s.table.cancel(c.s.device, 0);
  while (status == TM_BUSY);
  assert_int_equal(status, TM_OK);
  assert_int_equal(wait(&c, last, TM_WAIT_FOREVER), TM_ERROR_CANCELLED);
  assert_int_equal(wait(&c, last, TM_WAIT_POLL), TM_ERROR_CANCELLED);
  assert_int_equal(launch(&c, 0, NULL, &last), TM_OK);
  assert_int_equal(wait(&c, last, TM_WAIT_FOREVER), TM_OK);
  copies_end(&c);
}

/* ---- the clock ---- */

static const sim_clock *clock_of(subject *s) {
  const sim_clock *clock = s->table.get_extension(s->backend, (tm_string)TM_STRING(SIM_CLOCK_EXTENSION), 1);
  assert_non_null(clock);
  assert_null(s->table.get_extension(s->backend, (tm_string)TM_STRING(SIM_CLOCK_EXTENSION), 2));
  assert_null(s->table.get_extension(s->backend, (tm_string)TM_STRING("vendor.other"), 1));
  return clock;
}

static void test_set_up_is_paid_once_on_the_virtual_clock(void **state) {
  (void)state;
  subject s;
  assert_int_equal(plugin_open(&s, SIMULATOR, gpu_like), TM_OK);
  const sim_clock *clock = clock_of(&s);
  const uint64_t start = clock->now_ns(s.device);
  tm_kernel *first = prepare_copy(&s, 16), *second = prepare_copy(&s, 32);
  assert_int_equal(clock->now_ns(s.device) - start, 5 * MILLISECOND);
  s.table.release(s.device, first);
  s.table.release(s.device, second);
  subject_close(&s);
}

static void test_work_moves_the_clock_by_its_price(void **state) {
  (void)state;
  copies c;
  tm_ticket ticket;
  copies_begin(&c, gpu_like);
  const sim_clock *clock = clock_of(&c.s);
  const uint64_t start = clock->now_ns(c.s.device);
  for (int i = 0; i < 10; i++) assert_int_equal(launch(&c, 1, NULL, &ticket), TM_OK);
  assert_int_equal(wait(&c, ticket, TM_WAIT_FOREVER), TM_OK);
  assert_int_equal(clock->queue_ns(c.s.device, 1) - start, 10 * 6000);
  assert_int_equal(clock->queue_ns(c.s.device, 99), 0);
  copies_end(&c);
}

/* ---- one at a time ---- */

static void test_one_opening_at_a_time(void **state) {
  (void)state;
  subject first, second;
  assert_int_equal(plugin_open(&first, SIMULATOR, npu), TM_OK);
  assert_int_equal(plugin_open(&second, SIMULATOR, npu), TM_BUSY);
  assert_non_null(strstr(second.text, "another process has it"));
  subject_close(&first);
  assert_int_equal(plugin_open(&second, SIMULATOR, npu), TM_OK);
  subject_close(&second);
}

static void test_no_place_for_a_lock(void **state) {
  (void)state;
  static const char *const nowhere[] = { NPU, "lock_folder=/nonexistent/folder", NULL };
  subject s;
  assert_int_equal(plugin_open(&s, SIMULATOR, nowhere), TM_ERROR_DEVICE_LOST);
  assert_non_null(strstr(s.text, "/nonexistent/folder"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_memory_ends_at_its_cap),
    cmocka_unit_test(test_bindings_and_transfers_are_checked),
    cmocka_unit_test(test_work_takes_its_time_and_keeps_its_order),
    cmocka_unit_test(test_a_full_queue_is_busy_and_a_cancelled_one_usable),
    cmocka_unit_test(test_set_up_is_paid_once_on_the_virtual_clock),
    cmocka_unit_test(test_work_moves_the_clock_by_its_price),
    cmocka_unit_test(test_one_opening_at_a_time),
    cmocka_unit_test(test_no_place_for_a_lock),
  };
  return cmocka_run_group_tests(tests, write_slow_device, NULL);
}
