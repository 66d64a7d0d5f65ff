/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The WebGPU backend when its implementation fails.  Its functions are handed in, as an application would, with a few of
 * them replaced: they take note of the callbacks of a device, and break the text of shaders.
 */
#include "webgpu/webgpu_subject.h"

#include "native_library.h"
#include "webgpu_api.h"

static struct {
  void           *library;
  wapi_lost_call  lost;
  wapi_error_call uncaptured;
  bool            breaks_shaders;
  bool            fails_submit;
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

static void submit(wapi_queue queue, size_t count, const wapi_command_buffer *commands) {
  static const char text[] = "out of luck";
  void (*original)(wapi_queue, size_t, const wapi_command_buffer *) = NULL;
  const native_function function = real("wgpuQueueSubmit");
  memcpy(&original, &function, sizeof original);
  if (!fault.fails_submit) original(queue, count, commands);
  else fault.uncaptured.function(NULL, WAPI_ERROR_VALIDATION, (wapi_string){ text, sizeof text - 1 }, fault.uncaptured.a,
                                 fault.uncaptured.b);
}

static native_function proc_address(wapi_string name) {
  char text[80];
  native_function function = NULL;
  wapi_future (*replaced_request)(wapi_adapter, const wapi_device_descriptor *, wapi_device_call) = request_device;
  wapi_shader_module (*replaced_shader)(wapi_device, const wapi_label *) = create_shader;
  void (*replaced_submit)(wapi_queue, size_t, const wapi_command_buffer *) = submit;
  assert_true(name.length < sizeof text);
  memcpy(text, name.data, name.length);
  text[name.length] = '\0';
  if (strcmp(text, "wgpuAdapterRequestDevice") == 0) memcpy(&function, &replaced_request, sizeof function);
  else if (strcmp(text, "wgpuDeviceCreateShaderModule") == 0) memcpy(&function, &replaced_shader, sizeof function);
  else if (strcmp(text, "wgpuQueueSubmit") == 0) memcpy(&function, &replaced_submit, sizeof function);
  else function = real(text);
  return function;
}

static void on_event(void *context, uint32_t index, uint32_t event, uint64_t epoch) {
  (void)context, (void)index;
  fault.event_count += event == TM_EVENT_DEVICE_LOST;
  fault.event_epoch = epoch;
}

static bool open_with_faults(subject *s) {
  static char setting[64];
  const char *file = getenv("TENSORMORPH_WEBGPU_LIBRARY"), *reason = NULL;
  native_function (*function)(wapi_string) = proc_address;
  uintptr_t address = 0;
  memset(&fault, 0, sizeof fault);
  fault.library = file == NULL ? NULL : native_library_open(file, &reason);
  if (fault.library == NULL) {
    print_message("skipped: TENSORMORPH_WEBGPU_LIBRARY names no library: %s\n", reason == NULL ? "it is not set" : reason);
    return false;
  }
  memcpy(&address, &function, sizeof address);
  snprintf(setting, sizeof setting, "proc_address=%#llx", (unsigned long long)address);
  const subject_settings settings = { .words = { setting }, .count = 1 };
  if (!webgpu_subject_is_open(s, &settings)) return false;
  s->services.device_event = on_event;
  return true;
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

static void a_broken_shader_is_shown_with_its_line(void **state) {
  (void)state;
  subject s;
  addition a;
  if (!open_with_faults(&s)) skip();
  fault.breaks_shaders = true;
  addition_ask(&a, &s, TM_OP_ADD, 64);
  assert_int_equal(s.table.prepare(s.device, &a.operation, &a.answer, &a.kernel), TM_ERROR_INTERNAL);
  assert_non_null(strstr(s.text, "webgpu_add"));
  assert_non_null(strstr(s.text, ":3:"));
  fault.breaks_shaders = false;
  assert_int_equal(s.table.prepare(s.device, &a.operation, &a.answer, &a.kernel), TM_OK);
  s.table.release(s.device, a.kernel);
  webgpu_subject_close(&s);
}

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
    cmocka_unit_test(a_broken_shader_is_shown_with_its_line),
    cmocka_unit_test(an_error_fails_the_queue_until_cancelled),
    cmocka_unit_test(a_lost_device_fails_what_is_pending),
    cmocka_unit_test(a_late_loss_touches_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
