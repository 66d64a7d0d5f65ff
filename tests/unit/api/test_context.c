/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: options of any size, allocators, limits, logs; and that what is created is given back. */
#define _GNU_SOURCE
#include "api_case.h"

static void defaults_are_enough(void **state) {
  (void)state;
  tm_context *context = NULL;
  assert_int_equal(tm_context_create(NULL, &context, NULL), TM_OK);
  tm_memory_usage usage = { .struct_size = sizeof usage };
  tm_context_memory_usage(context, &usage);
  assert_true(usage.used_bytes > 0);
  assert_true(usage.peak_bytes >= usage.used_bytes);
  assert_int_equal(usage.limit_bytes, 0);
  tm_context_destroy(context);
  tm_context_destroy(NULL);
}

/* As an application was built years ago, or will be in years. */
typedef struct longer_options {
  tm_context_options known;
  uint64_t           newer;
} longer_options;

static void options_of_other_versions(void **state) {
  (void)state;
  tm_context *context = NULL;
  tm_error error = { .struct_size = sizeof error };
  const uint32_t shortest[2] = { sizeof shortest, TM_CONTEXT_REPRODUCIBLE };
  assert_int_equal(tm_context_create((const tm_context_options *)(const void *)shortest, &context, &error), TM_OK);
  tm_context_destroy(context);
  longer_options longer = { .known = { .struct_size = sizeof longer }, .newer = 0 };
  assert_int_equal(tm_context_create(&longer.known, &context, &error), TM_OK);
  tm_context_destroy(context);
  longer.newer = 1;
  context = NULL;
  assert_int_equal(tm_context_create(&longer.known, &context, &error), TM_ERROR_ARGUMENT);
  assert_null(context);
  assert_int_equal(error.code, TM_ERROR_ARGUMENT);
  const uint32_t sizes[] = { 0, 4, 1u << 20 };
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    const tm_context_options options = { .struct_size = sizes[i] };
    assert_int_equal(tm_context_create(&options, &context, &error), TM_ERROR_ARGUMENT);
    assert_non_null(strstr(error.text, "struct_size"));
  }
}

static void wrong_options_are_refused_with_a_reason(void **state) {
  (void)state;
  static const char *const nowhere[] = { "nowhere" };
  static const tm_setting wrong_setting = { "nowhere", "x", "1" };
  counting_heap heap = { 0 };
  const tm_context_options wrong[] = {
    { .struct_size = sizeof(tm_context_options), .flags = 0x80000000u },
    { .struct_size = sizeof(tm_context_options), .thread_count = 100000 },
    { .struct_size = sizeof(tm_context_options), .worst_numerics_plus_one = 77 },
    { .struct_size = sizeof(tm_context_options), .alloc = counting_alloc, .allocator_context = &heap },
    { .struct_size = sizeof(tm_context_options), .devices = nowhere, .device_count = 1 },
    { .struct_size = sizeof(tm_context_options), .excluded_devices = nowhere, .excluded_device_count = 1 },
    { .struct_size = sizeof(tm_context_options), .settings = &wrong_setting, .setting_count = 1 },
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    tm_error error = { .struct_size = sizeof error };
    tm_context *context = NULL;
    assert_int_equal(tm_context_create(&wrong[i], &context, &error), TM_ERROR_ARGUMENT);
    assert_null(context);
    assert_int_equal(error.code, TM_ERROR_ARGUMENT);
    assert_true(strlen(error.text) > 10);
  }
}

static void lists_with_holes_are_refused(void **state) {
  (void)state;
  static const char *const hole[] = { "reference", NULL };
  static const tm_setting settings[][2] = {
    { { "reference", "x", "1" }, { NULL, "x", "1" } }, { { NULL, NULL, NULL } }, { { "reference", NULL, "1" } }, { { "reference", "x", NULL } }
  };
  static const tm_named_pointer pointers[] = { { NULL, "x", NULL }, { "reference", NULL, NULL } };
#define OPTIONS .struct_size = sizeof(tm_context_options)
  const tm_context_options wrong[] = {
    { OPTIONS, .devices = NULL, .device_count = 1 },
    { OPTIONS, .devices = hole, .device_count = 2 },
    { OPTIONS, .devices = hole + 1, .device_count = 1 },
    { OPTIONS, .excluded_devices = NULL, .excluded_device_count = 1 },
    { OPTIONS, .excluded_devices = hole, .excluded_device_count = 2 },
    { OPTIONS, .plugin_paths = NULL, .plugin_path_count = 1 },
    { OPTIONS, .plugin_paths = hole + 1, .plugin_path_count = 1 },
    { OPTIONS, .settings = NULL, .setting_count = 1 },
    { OPTIONS, .settings = settings[0] + 1, .setting_count = 1 },
    { OPTIONS, .settings = settings[1], .setting_count = 1 },
    { OPTIONS, .settings = settings[2], .setting_count = 1 },
    { OPTIONS, .settings = settings[3], .setting_count = 1 },
    { OPTIONS, .pointers = NULL, .pointer_count = 1 },
    { OPTIONS, .pointers = pointers, .pointer_count = 1 },
    { OPTIONS, .pointers = pointers + 1, .pointer_count = 1 },
  };
#undef OPTIONS
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    tm_error error = { .struct_size = sizeof error };
    tm_context *context = NULL;
    assert_int_equal(tm_context_create(&wrong[i], &context, &error), TM_ERROR_ARGUMENT);
    assert_null(context);
    assert_non_null(strstr(error.text, "context options"));
  }
}

static void an_error_is_written_as_far_as_it_reaches(void **state) {
  (void)state;
  const tm_context_options options = { .struct_size = sizeof options, .flags = 0x80000000u };
  tm_context *context = NULL;
  tm_error error;
  memset(&error, 0x55, sizeof error);
  error.struct_size = (uint32_t)(offsetof(tm_error, text) + 12);
  assert_int_equal(tm_context_create(&options, &context, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(error.code, TM_ERROR_ARGUMENT);
  assert_int_equal(strlen(error.text), 11);
  assert_int_equal(error.text[12], 0x55);
  error.struct_size = 8;
  error.code = 7;
  assert_int_equal(tm_context_create(&options, &context, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(error.code, 7);
  assert_int_equal(tm_context_create(&options, &context, NULL), TM_ERROR_ARGUMENT);
}

static void out_structs_are_filled_as_far_as_they_reach(void **state) {
  (void)state;
  tm_context *context = NULL;
  assert_int_equal(tm_context_create(NULL, &context, NULL), TM_OK);
  tm_device_description description;
  memset(&description, 0x55, sizeof description);
  description.struct_size = offsetof(tm_device_description, description);
  assert_int_equal(tm_device_describe(context, 0, &description), TM_OK);
  assert_int_equal(description.struct_size, offsetof(tm_device_description, description));
  assert_non_null(description.name);
  assert_int_equal(description.queue_count, 0x55555555);
  struct { tm_memory_usage known; uint64_t newer; } longer = { { .struct_size = sizeof longer }, 99 };
  tm_context_memory_usage(context, &longer.known);
  assert_true(longer.known.used_bytes > 0);
  assert_int_equal(longer.newer, 99);
  tm_context_destroy(context);
}

static void every_byte_comes_from_the_allocator_and_goes_back(void **state) {
  (void)state;
  counting_heap heap = { 0 };
  const tm_context_options options = options_with(&heap);
  tm_context *context = NULL;
  assert_int_equal(tm_context_create(&options, &context, NULL), TM_OK);
  assert_true(atomic_load(&heap.live_bytes) > 0);
  tm_context_destroy(context);
  heap_is_empty(&heap);
}

static void creation_survives_every_failed_allocation(void **state) {
  (void)state;
  uint64_t failures = 0;
  for (uint64_t n = 1;; n++) {
    counting_heap heap = { .fail_at = n };
    const tm_context_options options = options_with(&heap);
    tm_context *context = NULL;
    tm_error error = { .struct_size = sizeof error };
    const tm_status status = tm_context_create(&options, &context, &error);
    if (status == TM_OK) tm_context_destroy(context);
    else assert_null(context);
    heap_is_empty(&heap);
    if (status != TM_OK) failures++;
    if (status != TM_OK && error.text[0] == '\0') fail_msg("allocation %llu: no text", (unsigned long long)n);
    if (status != TM_OK && status != TM_ERROR_NO_MEMORY) fail_msg("allocation %llu: %d %s", (unsigned long long)n, status, error.text);
    if (n > atomic_load(&heap.calls)) break;
  }
  assert_true(failures > 5);
}

static void a_limit_too_small_for_a_context_says_so(void **state) {
  (void)state;
  counting_heap heap = { 0 };
  tm_context_options options = options_with(&heap);
  options.max_memory_bytes = 20000;
  tm_context *context = NULL;
  tm_error error = { .struct_size = sizeof error };
  assert_int_equal(tm_context_create(&options, &context, &error), TM_ERROR_NO_MEMORY);
  assert_null(context);
  heap_is_empty(&heap);
}

typedef struct line_count {
  _Atomic uint32_t lines;
} line_count;

static void count_line(void *context, uint32_t level, const char *message) {
  line_count *count = context;
  assert_in_range(level, 0, 3);
  assert_true(strlen(message) > 0);
  atomic_fetch_add(&count->lines, 1);
}

static void the_log_is_the_applications(void **state) {
  (void)state;
  line_count count = { 0 };
  setenv("TENSORMORPH_PLUGIN_PATH", "relative/folder", 1);
  const tm_context_options options = { .struct_size = sizeof options, .flags = TM_CONTEXT_LOAD_PLUGINS, .log = count_line, .log_context = &count };
  tm_context *context = NULL;
  assert_int_equal(tm_context_create(&options, &context, NULL), TM_OK);
  tm_context_destroy(context);
  unsetenv("TENSORMORPH_PLUGIN_PATH");
  assert_true(atomic_load(&count.lines) > 0);
}

static void contexts_know_nothing_of_each_other(void **state) {
  (void)state;
  counting_heap heaps[2] = { { 0 } };
  tm_context *contexts[2] = { NULL, NULL };
  for (int i = 0; i < 2; i++) {
    const tm_context_options options = options_with(&heaps[i]);
    assert_int_equal(tm_context_create(&options, &contexts[i], NULL), TM_OK);
  }
  const uint64_t dims[] = { 1000 }, before = atomic_load(&heaps[1].live_bytes);
  tm_tensor *tensor = NULL;
  assert_int_equal(tm_tensor_create(contexts[0], TM_FORMAT_F32, 1, dims, &tensor, NULL), TM_OK);
  assert_int_equal(atomic_load(&heaps[1].live_bytes), before);
  tm_tensor_destroy(tensor);
  tm_context_destroy(contexts[0]);
  heap_is_empty(&heaps[0]);
  assert_int_equal(tm_tensor_create(contexts[1], TM_FORMAT_F32, 1, dims, &tensor, NULL), TM_OK);
  tm_tensor_destroy(tensor);
  tm_context_destroy(contexts[1]);
  heap_is_empty(&heaps[1]);
}

static void what_there_is_can_be_listed(void **state) {
  (void)state;
  tm_context *context = NULL;
  assert_int_equal(tm_context_create(NULL, &context, NULL), TM_OK);
  tm_backend_description backend = { .struct_size = sizeof backend };
  uint32_t backends = 0, devices = 0;
  for (; tm_backend_describe(context, backends, &backend) == TM_OK; backends++) {
    assert_true(strlen(backend.name) > 0);
    assert_non_null(backend.reason);
    tm_option_description option = { .struct_size = sizeof option };
    uint32_t options = 0;
    for (; tm_backend_option_describe(context, backends, options, &option) == TM_OK; options++)
      assert_true(option.name != NULL && option.value != NULL && option.default_value != NULL && option.help != NULL);
    assert_int_equal(options, backend.option_count);
  }
  tm_device_description device = { .struct_size = sizeof device };
  for (; tm_device_describe(context, devices, &device) == TM_OK; devices++) {
    assert_int_equal(strlen(device.uuid), 32);
    assert_true(device.backend < backends);
    tm_memory_description memory = { .struct_size = sizeof memory };
    for (uint32_t i = 0; i < device.memory_count; i++) assert_int_equal(tm_device_memory_describe(context, devices, i, &memory), TM_OK);
    assert_int_equal(tm_device_memory_describe(context, devices, device.memory_count, &memory), TM_END);
  }
  assert_true(backends >= 2 && devices >= 1);
  assert_int_equal(tm_device_describe(context, devices, &device), TM_END);
  assert_int_equal(tm_device_memory_describe(context, devices, 0, &(tm_memory_description){ .struct_size = sizeof(tm_memory_description) }), TM_END);
  assert_int_equal(tm_backend_describe(context, UINT32_MAX, &backend), TM_END);
  tm_context_destroy(context);
}

static void formats_and_operations_can_be_listed(void **state) {
  (void)state;
  tm_format_description format = { .struct_size = sizeof format };
  uint32_t formats = 0, operations = 0;
  for (; tm_format_describe(formats, &format) == TM_OK; formats++) {
    assert_int_equal(tm_format_lookup(format.name), format.format);
    assert_string_equal(tm_format_name(format.format), format.name);
  }
  tm_op_description operation = { .struct_size = sizeof operation };
  for (; tm_op_describe(operations, &operation) == TM_OK; operations++) assert_int_equal(tm_op_lookup(operation.name), operation.op);
  assert_true(formats > 30 && operations > 30);
  assert_int_equal(tm_format_lookup("BF16"), TM_FORMAT_BF16);
  assert_int_equal(tm_format_lookup("no such"), TM_FORMAT_NONE);
  assert_int_equal(tm_op_lookup("no such"), TM_OP_NONE);
  assert_string_equal(tm_format_name(54321), "unknown");
  assert_string_equal(tm_status_text(TM_OK), "ok");
  assert_non_null(tm_status_text(-12345));
  assert_true(strlen(tm_version()) >= 5);
}

static void support_is_answered_by_example(void **state) {
  (void)state;
  tm_context *context = NULL;
  assert_int_equal(tm_context_create(NULL, &context, NULL), TM_OK);
  tm_support support = { .struct_size = sizeof support };
  assert_int_equal(tm_support_query(context, 0, TM_OP_ADD, TM_FORMAT_F32, &support), TM_OK);
  assert_int_equal(tm_support_query(context, 0, TM_OP_ADD, TM_FORMAT_C64, &support), TM_UNSUPPORTED);
  assert_int_equal(tm_support_query(context, 0, 4242, TM_FORMAT_F32, &support), TM_UNSUPPORTED);
  assert_int_equal(tm_support_query(context, 10000, TM_OP_ADD, TM_FORMAT_F32, &support), TM_END);
  tm_context_destroy(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(defaults_are_enough),
    cmocka_unit_test(options_of_other_versions),
    cmocka_unit_test(wrong_options_are_refused_with_a_reason),
    cmocka_unit_test(lists_with_holes_are_refused),
    cmocka_unit_test(an_error_is_written_as_far_as_it_reaches),
    cmocka_unit_test(out_structs_are_filled_as_far_as_they_reach),
    cmocka_unit_test(every_byte_comes_from_the_allocator_and_goes_back),
    cmocka_unit_test(creation_survives_every_failed_allocation),
    cmocka_unit_test(a_limit_too_small_for_a_context_says_so),
    cmocka_unit_test(the_log_is_the_applications),
    cmocka_unit_test(contexts_know_nothing_of_each_other),
    cmocka_unit_test(what_there_is_can_be_listed),
    cmocka_unit_test(formats_and_operations_can_be_listed),
    cmocka_unit_test(support_is_answered_by_example),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
