/* SPDX-License-Identifier: Apache-2.0 */
/* A merge by the reference alone, by the host's cores alone, and by both of two silicons at once: the same file, byte for byte. */
#define _GNU_SOURCE
#include <stdbool.h>

#include "fakes/picky_case.h"
#include "formats/scratch.h"
#include "sanitized.h"

#define SOURCES 3u              /* the last one is the base */

static const struct { const char *name, *type; uint64_t elements; uint32_t bytes; } tensors[] = {
  { "empty", "F32", 0, 4 }, { "one", "F32", 1, 4 }, { "large", "F32", 700000 / TM_WHOLE_OR_THREADED(1, 4), 4 }, { "short", "BF16", 40000, 2 },
  { "half", "F16", 100001, 2 }, { "bytes", "U8", 1000, 1 }, { "wide", "F64", 50000, 8 }, { "odd", "F32", 32769, 4 },
};
#define TENSORS (sizeof tensors / sizeof tensors[0])

static scratch files;
static char paths[SOURCES][1024];

/* Numbers of all sizes, some equal in all models, none infinite or NaN: of those bits may differ. */
static void fill(unsigned char *bytes, uint64_t elements, uint32_t width, uint64_t *random) {
  static const unsigned char exponents[9] = { 0, 0, 0x3c, 0, 0x3f, 0, 0, 0, 0x3f };
  for (uint64_t i = 0; i < elements; i++) {
    const uint64_t number = picky_random(random) << 31 ^ picky_random(random);
    memcpy(bytes + i * width, &number, width);
    if (width > 1) bytes[(i + 1) * width - 1] = (unsigned char)(exponents[width] | (number & 0x80));
    if (i % 5 == 0) memset(bytes + i * width, width > 1 ? 0x31 : 7, width);
  }
}

static void write_checkpoint(uint32_t source) {
  char header[2048] = "{", name[32];
  size_t length = 1;
  uint64_t offset = 0, random = 3 + source;
  for (size_t i = 0; i < TENSORS; i++) {
    const uint64_t end = offset + tensors[i].elements * tensors[i].bytes;
    length += (size_t)snprintf(header + length, sizeof header - length,
                               "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%llu],\"data_offsets\":[%llu,%llu]}", i == 0 ? "" : ",",
                               tensors[i].name, tensors[i].type, (unsigned long long)tensors[i].elements,
                               (unsigned long long)offset, (unsigned long long)end);
    offset = end;
  }
  header[length++] = '}';
  while (length % 8 != 0) header[length++] = ' ';
  unsigned char *bytes = calloc(1, 8 + length + offset);
  assert_non_null(bytes);
  for (uint32_t i = 0; i < 4; i++) bytes[i] = (unsigned char)(length >> (8 * i));
  memcpy(bytes + 8, header, length);
  unsigned char *data = bytes + 8 + length;
  for (size_t i = 0; i < TENSORS; i++) {
    if (strcmp(tensors[i].name, "bytes") != 0) fill(data, tensors[i].elements, tensors[i].bytes, &random);
    data += tensors[i].elements * tensors[i].bytes;
  }
  (void)snprintf(name, sizeof name, "model%u.safetensors", source);
  assert_non_null(scratch_write(&files, name, bytes, 8 + length + offset));
  (void)snprintf(paths[source], sizeof paths[source], "%s", scratch_path(&files, name));
  free(bytes);
}

static void merge(tm_context *context, uint32_t method, const char *out) {
  const tm_merge_rule density = { .what = TM_MERGE_SET_DENSITY, .model = TM_MERGE_EVERY_MODEL, .value = 0.3 };
  tm_error error = { .struct_size = sizeof error };
  tm_checkpoint *checkpoints[SOURCES];
  tm_merge_plan *plan = NULL;
  tm_job *job = NULL;
  for (uint32_t i = 0; i < SOURCES; i++)
    if (tm_checkpoint_open(context, paths[i], 0, &checkpoints[i], &error) != TM_OK) fail_msg("%s", error.text);
  const bool has_base = method != TM_MERGE_LINEAR && method != TM_MERGE_SLERP;
  const tm_merge_options options = { .struct_size = sizeof options, .method = method, .models = checkpoints, .model_count = 2,
                                     .base = has_base ? checkpoints[2] : NULL, .rules = &density, .rule_count = 1, .seed = 5 };
  if (tm_merge_plan_create(context, &options, out, &plan, &error) != TM_OK || tm_job_start_merge(plan, NULL, &job,
                                                                                                 &error) != TM_OK ||
      tm_job_wait(job, UINT64_MAX, &error) != TM_OK)
    fail_msg("%s", error.text);
  assert_int_equal(tm_job_row_count(job), TENSORS);
  tm_job_destroy(job);
  tm_merge_plan_destroy(plan);
  for (uint32_t i = 0; i < SOURCES; i++) tm_checkpoint_close(checkpoints[i]);
}

/* The file that comes of it, for the caller to free. */
static unsigned char *merge_with(uint32_t method, bool with_cpu, bool is_mapped, picky_control *helper, uint64_t *out_size) {
  static char plugin[512];
  (void)snprintf(plugin, sizeof plugin, "%s/tests/fakes/picky.so", TM_BINARY_DIR);
  const char *plugins[] = { plugin }, *excluded[] = { "cpu" };
  const tm_named_pointer pointer = { "picky", PICKY_CONTROL_KEY, helper };
  const tm_context_options options = {
    .struct_size = sizeof options, .flags = is_mapped ? TM_CONTEXT_MAP_FILES : 0, .thread_count = 1,
    .excluded_devices = excluded, .excluded_device_count = !with_cpu, .plugin_paths = plugins, .plugin_path_count = helper != NULL,
    .pointers = &pointer, .pointer_count = helper != NULL };
  tm_error error = { .struct_size = sizeof error };
  tm_context *context = NULL;
  char out[1024];
  (void)snprintf(out, sizeof out, "%s", scratch_path(&files, "out.safetensors"));
  if (tm_context_create(&options, &context, &error) != TM_OK) fail_msg("%s", error.text);
  merge(context, method, out);
  tm_context_destroy(context);
  unsigned char *bytes = scratch_slurp(out, out_size);
  assert_non_null(bytes);
  return bytes;
}

static void expect(uint32_t method, bool with_cpu, bool is_mapped, picky_control *helper, const unsigned char *wanted,
                   uint64_t size) {
  uint64_t found_size = 0;
  unsigned char *found = merge_with(method, with_cpu, is_mapped, helper, &found_size);
  assert_int_equal(found_size, size);
  assert_memory_equal(found, wanted, size);
  free(found);
}

/* The other silicon is cheap, cheap with memory of its own, and has no memory to work in. */
static uint64_t expect_with_helpers(uint32_t method, bool with_cpu, bool is_mapped, const unsigned char *wanted, uint64_t size) {
  uint64_t launches = 0;
  for (uint32_t kind = 0; kind < 3; kind++) {
    picky_control helper = { .cost_ns = 1000, .has_own_memory = kind != 0 };
    if (kind == 2) helper.capacity_bytes = 1;
    expect(method, with_cpu, is_mapped, &helper, wanted, size);
    assert_int_equal(atomic_load(&helper.complaints), 0);
    launches += atomic_load(&helper.launches);
  }
  return launches;
}

static void the_same_file_whoever_computes(void **state) {
  uint64_t launches = 0;
  (void)state;
  for (uint32_t method = TM_MERGE_LINEAR; method <= TM_MERGE_DARE; method++) {
    const bool is_mapped = method % 2 == 0;
    uint64_t size = 0;
    unsigned char *wanted = merge_with(method, false, true, NULL, &size);
    expect(method, true, is_mapped, NULL, wanted, size);
    (void)expect_with_helpers(method, true, !is_mapped, wanted, size);
    launches += expect_with_helpers(method, false, is_mapped, wanted, size);
    free(wanted);
  }
  assert_true(launches != 0);
}

static int set_up(void **state) {
  (void)state;
  if (!scratch_init(&files)) return -1;
  for (uint32_t i = 0; i < SOURCES; i++) write_checkpoint(i);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  scratch_deinit(&files);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(the_same_file_whoever_computes) };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
