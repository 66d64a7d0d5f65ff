/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The WebGPU backend when its implementation fails.  Its functions are handed in, as an application would, with a few of
 * them replaced: they take note of the callbacks of a device, break the text of shaders, keep answers back, and list every
 * adapter many times.
 */
#include "webgpu/webgpu_scheduled.h"
#include "webgpu/webgpu_subject.h"

#include "native_library.h"
#include "webgpu_adapters.h"
#include "webgpu_api.h"

static struct {
  void           *library;
  wapi_lost_call  lost;
  wapi_error_call uncaptured;
  bool            breaks_shaders;
  bool            fails_submit;
  bool            keeps_scopes;
  bool            has_many_adapters;
  wapi_scope_call kept_scopes[2];
  uint32_t        kept_count;
  uint64_t        asked_times;          /* for the time */
  uint32_t        event_count;
  uint64_t        event_epoch;
} fault;

static native_function real(const char *name) { return native_library_find(fault.library, name); }

static wapi_future request_device(wapi_adapter adapter, const wapi_device_descriptor *descriptor, wapi_device_call call) {
  wapi_future (*original)(wapi_adapter, const wapi_device_descriptor *, wapi_device_call) = NULL;
  const native_function function = real("wgpuAdapterRequestDevice");
  memcpy(&original, &function, sizeof original);
  fault.lost = descriptor->lost;
  fault.uncaptured = descriptor->uncaptured;
  return original(adapter, descriptor, call);
}

static wapi_shader_module create_shader(wapi_device device, const wapi_label *descriptor) {
  wapi_shader_module (*original)(wapi_device, const wapi_label *) = NULL;
  const native_function function = real("wgpuDeviceCreateShaderModule");
  memcpy(&original, &function, sizeof original);
  if (!fault.breaks_shaders) return original(device, descriptor);
  static const char text[] = "fn run() {}\n\nfn broken( {}\n";
  wapi_wgsl_source source = { .chain = { .type = WAPI_SOURCE_WGSL }, .code = { text, sizeof text - 1 } };
  const wapi_label broken = { .next = &source.chain };
  return original(device, &broken);
}

static void drop_scope(wapi_enum status, wapi_enum type, wapi_string message, void *a, void *b) {
  (void)status, (void)type, (void)message, (void)a, (void)b;
}

static void submit(wapi_queue queue, size_t count, const wapi_command_buffer *commands) {
  static const char text[] = "out of luck";
  void (*original)(wapi_queue, size_t, const wapi_command_buffer *) = NULL;
  const native_function function = real("wgpuQueueSubmit");
  memcpy(&original, &function, sizeof original);
  if (!fault.fails_submit) original(queue, count, commands);
  else fault.uncaptured.function(NULL, WAPI_ERROR_VALIDATION, (wapi_string){ text, sizeof text - 1 }, fault.uncaptured.a,
                                 fault.uncaptured.b);
}

static wapi_future pop_scope(wapi_device device, wapi_scope_call call) {
  wapi_future (*original)(wapi_device, wapi_scope_call) = NULL;
  const native_function function = real("wgpuDevicePopErrorScope");
  memcpy(&original, &function, sizeof original);
  if (!fault.keeps_scopes) return original(device, call);
  assert_true(fault.kept_count < 2);
  fault.kept_scopes[fault.kept_count++] = call;
  const wapi_scope_call nobody = { .mode = call.mode, .function = drop_scope };
  return original(device, nobody);
}

#define TIMES 20u

/* Each adapter, again and again. */
static size_t enumerate(wapi_instance instance, const wapi_enumerate_options *options, wapi_adapter *handles) {
  size_t (*original)(wapi_instance, const wapi_enumerate_options *, wapi_adapter *) = NULL;
  const native_function function = real("wgpuInstanceEnumerateAdapters");
  memcpy(&original, &function, sizeof original);
  if (!fault.has_many_adapters) return original(instance, options, handles);
  size_t count = 0;
  for (uint32_t i = 0; i < TIMES; i++) count += original(instance, options, handles == NULL ? NULL : handles + count);
  return count;
}

static native_function proc_address(wapi_string name) {
  char text[80];
  native_function function = NULL;
  wapi_future (*replaced_request)(wapi_adapter, const wapi_device_descriptor *, wapi_device_call) = request_device;
  wapi_shader_module (*replaced_shader)(wapi_device, const wapi_label *) = create_shader;
  void (*replaced_submit)(wapi_queue, size_t, const wapi_command_buffer *) = submit;
  wapi_future (*replaced_pop)(wapi_device, wapi_scope_call) = pop_scope;
  size_t (*replaced_list)(wapi_instance, const wapi_enumerate_options *, wapi_adapter *) = enumerate;
  assert_true(name.length < sizeof text);
  memcpy(text, name.data, name.length);
  text[name.length] = '\0';
  if (strcmp(text, "wgpuAdapterRequestDevice") == 0) memcpy(&function, &replaced_request, sizeof function);
  else if (strcmp(text, "wgpuDeviceCreateShaderModule") == 0) memcpy(&function, &replaced_shader, sizeof function);
  else if (strcmp(text, "wgpuQueueSubmit") == 0) memcpy(&function, &replaced_submit, sizeof function);
  else if (strcmp(text, "wgpuDevicePopErrorScope") == 0) memcpy(&function, &replaced_pop, sizeof function);
  else if (strcmp(text, "wgpuInstanceEnumerateAdapters") == 0) memcpy(&function, &replaced_list, sizeof function);
  else function = real(text);
  return function;
}

static void on_event(void *context, uint32_t index, uint32_t event, uint64_t epoch) {
  (void)context, (void)index;
  fault.event_count += event == TM_EVENT_DEVICE_LOST;
  fault.event_epoch = epoch;
}

/* The address of proc_address; 0 and a message where there is no implementation. */
static uintptr_t make_faults(void) {
  const char *file = getenv("TENSORMORPH_WEBGPU_LIBRARY"), *reason = NULL;
  native_function (*function)(wapi_string) = proc_address;
  uintptr_t address = 0;
  memset(&fault, 0, sizeof fault);
  fault.library = file == NULL ? NULL : native_library_open(file, &reason);
  if (fault.library == NULL) {
    print_message("skipped: TENSORMORPH_WEBGPU_LIBRARY names no library: %s\n", reason == NULL ? "it is not set" : reason);
    return 0;
  }
  memcpy(&address, &function, sizeof address);
  return address;
}

static bool open_subject(subject *s, uintptr_t address) {
  static char setting[64];
  snprintf(setting, sizeof setting, "proc_address=%#llx", (unsigned long long)address);
  const subject_settings settings = { .words = { setting }, .count = 1 };
  if (!webgpu_subject_is_open(s, &settings)) return false;
  s->services.device_event = on_event;
  return true;
}

static bool open_with_faults(subject *s) {
  const uintptr_t address = make_faults();
  return address != 0 && open_subject(s, address);
}

static wapi_string say(const char *text) { return (wapi_string){ text, strlen(text) }; }

/* ---- cases ---- */

typedef struct scene {
  subject    s;
  addition   add;
  tm_buffer *buffers[3];
} scene;

static bool scene_open(scene *c) {
  if (!open_with_faults(&c->s)) return false;
  addition_prepare(&c->add, &c->s, 64);
  for (int i = 0; i < 3; i++) c->buffers[i] = make_buffer(&c->s, 256);
  return true;
}

static void scene_close(scene *c) {
  c->s.table.release(c->s.device, c->add.kernel);
  for (int i = 0; i < 3; i++) drop_buffer(&c->s, c->buffers[i], 256);
  webgpu_subject_close(&c->s);
}

static tm_status scene_launch(scene *c, tm_ticket *out_ticket) {
  const tm_binding bindings[] = { { c->buffers[0], 0, 256 }, { c->buffers[1], 0, 256 }, { c->buffers[2], 0, 256 } };
  return launch(&c->s, 0, &c->add, bindings, NULL, 0, out_ticket);
}

static tm_status outcome(scene *c, const tm_ticket *ticket) { return c->s.table.wait(c->s.device, ticket, 1, TM_WAIT_FOREVER); }

/* A compiler that refuses makes answers stale: the next ones leave the kernel out, and other kernels stay. */
static void a_broken_shader_is_shown_and_no_longer_offered(void **state) {
  (void)state;
  subject s;
  addition a, b;
  if (!open_with_faults(&s)) skip();
  fault.breaks_shaders = true;
  addition_ask(&a, &s, TM_OP_ADD, 64);
  addition_ask(&b, &s, TM_OP_MUL, 64);
  const tm_answer first = a.answer;
  assert_int_equal(s.table.prepare(s.device, &a.operation, &a.answer, &a.kernel), TM_STALE);
  assert_non_null(strstr(s.text, "webgpu_add"));
  assert_non_null(strstr(s.text, ":3:"));
  assert_non_null(strstr(s.logged, "webgpu_add"));
  fault.breaks_shaders = false;
  assert_int_equal(fault.event_count, 0);
  assert_int_equal(fault.event_epoch, first.epoch + 1);
  addition_ask(&a, &s, TM_OP_ADD, 64);
  assert_int_equal(a.answer.level, TM_LEVEL_REFUSED);
  assert_int_equal(a.answer.reasons, TM_REASON_RESOURCES);
  assert_int_equal(a.answer.epoch, fault.event_epoch);
  assert_int_equal(s.table.prepare(s.device, &a.operation, &first, &a.kernel), TM_STALE);
  assert_int_equal(s.table.prepare(s.device, &b.operation, &b.answer, &b.kernel), TM_STALE);
  addition_ask(&b, &s, TM_OP_MUL, 64);
  assert_int_equal(b.answer.level, TM_LEVEL_NATIVE);
  assert_int_equal(s.table.prepare(s.device, &b.operation, &b.answer, &b.kernel), TM_OK);
  s.table.release(s.device, b.kernel);
  webgpu_subject_close(&s);
}

/* On the device alone if asked. */
static tm_status run_scheduled(scheduled *c, uint32_t op, uint32_t format, bool only_there, tm_run_report *out_report) {
  const uint64_t count = 1 << 18;
  tm_tensor *tensors[3];
  for (int i = 0; i < 3; i++) assert_int_equal(tm_tensor_create(c->context, format, 1, &count, &tensors[i], &c->error), TM_OK);
  *out_report = (tm_run_report){ .struct_size = sizeof *out_report };
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N0, .report = out_report,
                                   .device_plus_one = only_there ? c->device + 1 : 0 };
  const tm_status status = tm_run(c->context, op, NULL, 0, tensors, op == TM_OP_NEG ? 1 : 2, &tensors[2], 1, &options, &c->error);
  for (int i = 0; i < 3; i++) tm_tensor_destroy(tensors[i]);
  return status;
}

/* Through the scheduler: every result comes from somebody else, and nothing is held against the device. */
static void broken_shaders_cost_the_device_nothing(void **state) {
  (void)state;
  static const uint32_t ops[] = { TM_OP_ADD, TM_OP_SUB, TM_OP_MUL, TM_OP_DIV, TM_OP_ADD, TM_OP_SUB, TM_OP_MUL, TM_OP_DIV };
  const uintptr_t address = make_faults();
  scheduled c;
  tm_run_report report;
  if (address == 0) skip();
  if (!scheduled_open(&c, NULL, NULL, (void *)address)) skip();
  fault.breaks_shaders = true;
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
    const uint32_t format = i < 4 ? TM_FORMAT_F32 : TM_FORMAT_I32;
    assert_int_equal(run_scheduled(&c, ops[i], format, true, &report), TM_ERROR_NO_DEVICE);
    if (run_scheduled(&c, ops[i], format, false, &report) != TM_OK) fail_msg("%s", c.error.text);
    assert_int_not_equal(report.device, c.device);
    assert_int_equal(report.fell_back, 0);
  }
  fault.breaks_shaders = false;
  scheduled_describe(&c);
  assert_int_equal(c.description.violation_count, 0);
  assert_int_equal(c.description.state, TM_DEVICE_READY);
  assert_true(c.description.epoch > 1);
  if (run_scheduled(&c, TM_OP_NEG, TM_FORMAT_F32, true, &report) != TM_OK) fail_msg("%s", c.error.text);
  assert_int_equal(report.device, c.device);
  tm_context_destroy(c.context);
}

/* ---- answers that do not come ---- */

static uint64_t hasty_now(void *context) {
  (void)context;
  return ++fault.asked_times * UINT64_C(100000000);
}

/* The device counts as lost after some seconds; an answer that comes after all is nobody's. */
static void a_scope_that_is_not_answered_loses_the_device(void **state) {
  (void)state;
  subject s;
  addition a;
  if (!open_with_faults(&s)) skip();
  addition_ask(&a, &s, TM_OP_ADD, 64);
  uint64_t (*const now_ns)(void *) = s.services.now_ns;
  s.services.now_ns = hasty_now;
  fault.keeps_scopes = true;
  assert_int_equal(s.table.prepare(s.device, &a.operation, &a.answer, &a.kernel), TM_ERROR_DEVICE_LOST);
  assert_non_null(strstr(s.text, "was not answered"));
  assert_true(fault.asked_times < 1000);
  fault.keeps_scopes = false;
  s.services.now_ns = now_ns;
  assert_int_equal(fault.kept_count, 2);
  assert_int_equal(s.table.prepare(s.device, &a.operation, &a.answer, &a.kernel), TM_ERROR_DEVICE_LOST);
  for (uint32_t i = 0; i < 2; i++) {
    const wapi_scope_call *call = &fault.kept_scopes[i];
    call->function(WAPI_SUCCESS, WAPI_ERROR_VALIDATION, say("late"), call->a, call->b);
  }
  s.table.close(s.device);
  assert_int_equal(s.table.open(s.backend, 0, &s.device), TM_OK);
  addition_prepare(&a, &s, 64);
  s.table.release(s.device, a.kernel);
  webgpu_subject_close(&s);
}

/* ---- full queues ---- */

#define DOWNLOADS 60u                   /* too few for a queue to start them by itself; of two queues, too many to be kept */

static tm_status download_soon(subject *s, const tm_transfer *transfer, tm_ticket *out_ticket) {
  tm_status status = TM_BUSY;
  while (status == TM_BUSY) status = s->table.download(s->device, transfer, out_ticket);
  return status;
}

static void downloads_that_fill_the_device_are_started(void **state) {
  (void)state;
  subject s;
  static uint32_t words[2 * DOWNLOADS];
  if (!webgpu_subject_is_open(&s, NULL)) skip();
  tm_buffer *buffer = make_buffer(&s, sizeof words);
  uint32_t expected[2 * DOWNLOADS];
  for (uint32_t i = 0; i < 2 * DOWNLOADS; i++) expected[i] = 7 * i + 1;
  memset(words, 0, sizeof words);
  write_all(&s, buffer, expected, sizeof expected);
  tm_ticket last[2];
  for (uint32_t i = 0; i < 2 * DOWNLOADS; i++) {
    const tm_transfer part = { .struct_size = sizeof part, .queue = i / DOWNLOADS, .source = buffer, .source_offset = 4 * i,
                               .host = &words[i], .bytes = 4 };
    const tm_status status = download_soon(&s, &part, &last[i / DOWNLOADS]);
    if (status != TM_OK) fail_msg("download %u gave %d", i, status);
  }
  assert_int_equal(s.table.wait(s.device, last, 2, TM_WAIT_FOREVER), TM_OK);
  assert_memory_equal(words, expected, sizeof words);
  drop_buffer(&s, buffer, sizeof words);
  webgpu_subject_close(&s);
}

/* ---- many adapters ---- */

static void adapters_beyond_the_limit_are_told_of(void **state) {
  (void)state;
  subject s;
  const uintptr_t address = make_faults();
  if (address == 0) skip();
  fault.has_many_adapters = true;
  if (!open_subject(&s, address)) skip();
  tm_device_info info = { .struct_size = sizeof info };
  uint32_t count = 0;
  while (s.table.device_info(s.backend, count, &info) == TM_OK) count++;
  assert_int_equal(count, WEBGPU_MOST_ADAPTERS);
  assert_non_null(strstr(s.logged, "more adapters"));
  s.table.close(s.device);
  assert_int_equal(s.table.open(s.backend, WEBGPU_MOST_ADAPTERS - 1, &s.device), TM_OK);
  webgpu_subject_close(&s);
}

/* ---- errors ---- */

/* An error that comes unasked fails the work at hand, and what comes after it, until the queue is cancelled. */
static void an_error_fails_the_queue_until_cancelled(void **state) {
  (void)state;
  scene c;
  tm_ticket good, bad, later, again;
  if (!scene_open(&c)) skip();
  assert_int_equal(scene_launch(&c, &good), TM_OK);
  assert_int_equal(outcome(&c, &good), TM_OK);
  assert_int_equal(scene_launch(&c, &bad), TM_OK);
  fault.fails_submit = true;
  assert_int_equal(outcome(&c, &bad), TM_ERROR_INTERNAL);
  assert_non_null(strstr(c.s.text, "out of luck"));
  fault.fails_submit = false;
  assert_int_equal(scene_launch(&c, &later), TM_OK);
  assert_int_equal(outcome(&c, &later), TM_ERROR_PREDECESSOR);
  assert_int_equal(outcome(&c, &bad), TM_ERROR_INTERNAL);
  assert_int_equal(outcome(&c, &good), TM_OK);
  assert_int_equal(c.s.table.cancel(c.s.device, 0), TM_OK);
  assert_int_equal(scene_launch(&c, &again), TM_OK);
  assert_int_equal(outcome(&c, &again), TM_OK);
  scene_close(&c);
}

static void a_lost_device_fails_what_is_pending(void **state) {
  (void)state;
  scene c;
  tm_ticket before, pending, after;
  unsigned char host[256], untouched[256];
  if (!scene_open(&c)) skip();
  memset(host, 0x5a, sizeof host);
  memset(untouched, 0x5a, sizeof untouched);
  assert_int_equal(scene_launch(&c, &before), TM_OK);
  assert_int_equal(outcome(&c, &before), TM_OK);
  assert_int_equal(scene_launch(&c, &pending), TM_OK);
  const tm_transfer transfer = { .struct_size = sizeof transfer, .source = c.buffers[2], .host = host, .bytes = sizeof host };
  tm_ticket download = put(&c.s, c.s.table.download, &transfer);
  fault.lost.function(NULL, 1, say("somebody pulled the card"), fault.lost.a, fault.lost.b);
  assert_int_equal(outcome(&c, &pending), TM_ERROR_DEVICE_LOST);
  assert_non_null(strstr(c.s.text, "somebody pulled the card"));
  assert_int_equal(outcome(&c, &download), TM_ERROR_DEVICE_LOST);
  assert_int_equal(outcome(&c, &before), TM_OK);
  assert_memory_equal(host, untouched, sizeof host);
  assert_int_equal(scene_launch(&c, &after), TM_ERROR_DEVICE_LOST);
  assert_int_equal(fault.event_count, 1);
  assert_int_equal(fault.event_epoch, c.s.info.epoch + 1);
  addition again;
  addition_ask(&again, &c.s, TM_OP_ADD, 64);
  assert_int_equal(again.answer.epoch, fault.event_epoch);
  scene_close(&c);
}

/* Not every implementation tells the loss at once. */
static void a_late_loss_touches_nothing(void **state) {
  (void)state;
  scene c;
  if (!scene_open(&c)) skip();
  c.s.table.release(c.s.device, c.add.kernel);
  for (int i = 0; i < 3; i++) drop_buffer(&c.s, c.buffers[i], 256);
  c.s.table.close(c.s.device);
  fault.lost.function(NULL, 2, say("closed"), fault.lost.a, fault.lost.b);
  fault.uncaptured.function(NULL, WAPI_ERROR_VALIDATION, say("late"), fault.uncaptured.a, fault.uncaptured.b);
  assert_int_equal(c.s.table.open(c.s.backend, 0, &c.s.device), TM_OK);
  addition_prepare(&c.add, &c.s, 64);
  for (int i = 0; i < 3; i++) c.buffers[i] = make_buffer(&c.s, 256);
  tm_ticket ticket;
  assert_int_equal(scene_launch(&c, &ticket), TM_OK);
  assert_int_equal(outcome(&c, &ticket), TM_OK);
  assert_int_equal(fault.event_count, 0);
  scene_close(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_broken_shader_is_shown_and_no_longer_offered),
    cmocka_unit_test(broken_shaders_cost_the_device_nothing),
    cmocka_unit_test(a_scope_that_is_not_answered_loses_the_device),
    cmocka_unit_test(downloads_that_fill_the_device_are_started),
    cmocka_unit_test(adapters_beyond_the_limit_are_told_of),
    cmocka_unit_test(an_error_fails_the_queue_until_cancelled),
    cmocka_unit_test(a_lost_device_fails_what_is_pending),
    cmocka_unit_test(a_late_loss_touches_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
