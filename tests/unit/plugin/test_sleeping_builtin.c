/* SPDX-License-Identifier: Apache-2.0 */
/* A built-in whose init takes long is listed from what is kept of it, like a file; one that is quick is started each time.
   The list of built-ins is this test's own. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <time.h>

#include "formats/scratch.h"
#include "plugin/builtin_plugins.h"
#include "plugin_case.h"
#include "tensormorph/plugin.h"

static _Atomic int slow_inits, quick_inits;

static const tm_memory_space host_memory = {
  .struct_size = sizeof host_memory, .flags = TM_MEMORY_HOST_POINTER, .identity = TM_HOST_MEMORY, .alignment = 1,
  .offset_granule = 1, .store_granule = 1, .name = TM_STRING("host memory"),
};
static const tm_memory_space *const memories[] = { &host_memory };

static tm_status slow_init(const tm_host *host, tm_backend **out_backend) {
  (void)host;
  *out_backend = NULL;
  atomic_fetch_add(&slow_inits, 1);
  return nanosleep(&(struct timespec){ .tv_nsec = 40000000 }, NULL) == 0 ? TM_OK : TM_ERROR_INTERNAL;
}

static tm_status quick_init(const tm_host *host, tm_backend **out_backend) {
  (void)host;
  *out_backend = NULL;
  atomic_fetch_add(&quick_inits, 1);
  return TM_OK;
}

static tm_status one_device(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  (void)backend;
  if (index != 0) return TM_END;
  out_info->flags = TM_DEVICE_SYNCHRONOUS;
  out_info->name = (tm_string)TM_STRING("a built-in \\ with a \n name");
  out_info->memory_count = 1;
  out_info->memories = memories;
  return TM_OK;
}

static tm_status refuse_all(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                            tm_answer *const *out_answers) {
  (void)backend, (void)index, (void)operations;
  for (uint32_t i = 0; i < count; i++) out_answers[i]->reasons = TM_REASON_OPERATION;
  return TM_OK;
}

static tm_status no_prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  (void)device, (void)operation, (void)answer, (void)out_kernel;
  return TM_ERROR_ARGUMENT;
}

static tm_status no_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  (void)device, (void)launch, (void)out_ticket;
  return TM_ERROR_ARGUMENT;
}

static const tm_option mood = { .struct_size = sizeof mood, .type = TM_OPTION_TEXT, .name = TM_STRING("mood"),
                                .default_value = TM_STRING("good"), .help = TM_STRING("Nothing depends on it.") };
static const tm_option *const options[] = { &mood };

#define TABLE(init_fn) { .struct_size = sizeof(tm_accelerator_backend_plugin), .option_count = 1, .options = options, .init = init_fn, \
                         .device_info = one_device, .query = refuse_all, .prepare = no_prepare, .launch = no_launch }
static const tm_accelerator_backend_plugin slow_table = TABLE(slow_init), quick_table = TABLE(quick_init);
static const tm_trait slow_traits[] = { { TM_STRING(TM_TRAIT_ACCELERATOR_BACKEND), 1, 0, &slow_table } };
static const tm_trait quick_traits[] = { { TM_STRING(TM_TRAIT_ACCELERATOR_BACKEND), 1, 0, &quick_table } };
#define HEADER(name, traits) { TM_PLUGIN_MAGIC, sizeof(tm_plugin_header), TM_ABI_MAJOR, TM_ABI_MINOR, TM_BUILD_FLAGS,               \
                               TM_LAYOUT_FINGERPRINT, TM_STRING(name), TM_STRING("1"), TM_STRING("test"), TM_STRING("build " name), \
                               1, traits }
static const tm_plugin_header slow_header = HEADER("slow_built_in", slow_traits);
static const tm_plugin_header quick_header = HEADER("quick_built_in", quick_traits);

static const tm_plugin_header *query_slow(uint32_t major, uint32_t minor) { (void)major, (void)minor; return &slow_header; }
static const tm_plugin_header *query_quick(uint32_t major, uint32_t minor) { (void)major, (void)minor; return &quick_header; }

const tm_builtin_plugin tm_builtin_plugins[] = { { "quick_built_in", query_quick }, { "slow_built_in", query_slow } };
const uint32_t tm_builtin_plugin_count = 2;

static char folder_of_state[512];
static scratch folder;

static int begin(void **state) {
  (void)state;
  atomic_store(&slow_inits, 0);
  atomic_store(&quick_inits, 0);
  assert_true(scratch_init(&folder));
  snprintf(folder_of_state, sizeof folder_of_state, "%s/state", folder.folder);
  return 0;
}

static int end(void **state) {
  (void)state;
  scratch inner;
  snprintf(inner.folder, sizeof inner.folder, "%.240s/backends", folder_of_state);
  scratch_deinit(&inner);
  snprintf(inner.folder, sizeof inner.folder, "%.250s", folder_of_state);
  scratch_deinit(&inner);
  scratch_deinit(&folder);
  return 0;
}

static tm_context *open_with(const char *value) {
  static tm_setting setting;
  setting = (tm_setting){ "slow_built_in", "mood", value };
  const tm_context_options context_options = { .struct_size = sizeof context_options, .state_folder = folder_of_state,
                                               .settings = &setting, .setting_count = value != NULL };
  return open_context(&context_options);
}

static void a_slow_one_sleeps_from_the_second_time_on(void **state) {
  (void)state;
  tm_context *first = open_with(NULL);
  assert_int_equal(atomic_load(&slow_inits), 1);
  tm_context *second = open_with(NULL);
  assert_int_equal(atomic_load(&slow_inits), 1);
  assert_int_equal(atomic_load(&quick_inits), 2);
  assert_string_equal(describe_device(first, "slow_built_in:0").description, describe_device(second, "slow_built_in:0").description);
  assert_string_equal(describe_device(first, "slow_built_in:0").uuid, describe_device(second, "slow_built_in:0").uuid);
  tm_support support = { .struct_size = sizeof support };
  assert_int_equal(tm_support_query(second, device_of(second, "slow_built_in:0"), TM_OP_NEG, TM_FORMAT_F32, &support), TM_OK);
  assert_int_equal(atomic_load(&slow_inits), 2);
  expect_state(second, "slow_built_in", TM_BACKEND_READY, "");
  tm_context_destroy(second);
  tm_context_destroy(first);
}

static void each_setting_is_its_own(void **state) {
  (void)state;
  tm_context_destroy(open_with("bad"));
  tm_context_destroy(open_with("worse"));
  assert_int_equal(atomic_load(&slow_inits), 2);
  tm_context *context = open_with("bad");
  assert_int_equal(atomic_load(&slow_inits), 2);
  tm_option_description option = { .struct_size = sizeof option };
  assert_int_equal(tm_backend_option_describe(context, 1, 0, &option), TM_OK);
  assert_string_equal(option.value, "bad");
  assert_string_equal(option.default_value, "good");
  tm_context_destroy(context);
}

/* What a pointer leads to no record can have seen. */
static void one_with_pointers_never_sleeps(void **state) {
  (void)state;
  const tm_named_pointer pointer = { "slow_built_in", "device", &folder };
  tm_context_destroy(open_with(NULL));
  const tm_context_options context_options = { .struct_size = sizeof context_options, .state_folder = folder_of_state,
                                               .pointers = &pointer, .pointer_count = 1 };
  tm_context_destroy(open_context(&context_options));
  assert_int_equal(atomic_load(&slow_inits), 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_slow_one_sleeps_from_the_second_time_on, begin, end),
    cmocka_unit_test_setup_teardown(each_setting_is_its_own, begin, end),
    cmocka_unit_test_setup_teardown(one_with_pointers_never_sleeps, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
