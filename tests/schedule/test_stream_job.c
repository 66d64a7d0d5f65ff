/* SPDX-License-Identifier: Apache-2.0 */
/* The statistics and the check of one checkpoint, and its comparison with another, by the reference alone, by the host's cores
   alone, and by both of two silicons at once: the same rows, in the same order, bit for bit. */
#include <stdbool.h>

#include "fakes/picky_case.h"
#include "sanitized.h"

#define MOST_CELLS 4096u
#define MANY(elements) ((elements) / TM_WHOLE_OR_THREADED(1, 4))        /* some of several tiles even so */

static const struct { const char *name, *type; uint64_t elements; uint32_t bytes; } tensors[] = {
  { "empty", "F32", 0, 4 },       { "one", "F32", 1, 4 },           { "large", "F32", MANY(3000000), 4 }, { "short", "BF16", 40000, 2 },
  { "half", "F16", MANY(2000000) + 1, 2 },  { "bytes", "U8", 100000, 1 },     { "wide", "F64", MANY(500000), 8 },   { "odd", "F32", 32769, 4 },
};
#define TENSORS (sizeof tensors / sizeof tensors[0])

static void write_checkpoint(const char *path, uint64_t seed) {
  char header[2048] = "{";
  size_t length = 1;
  uint64_t offset = 0, random = seed;
  for (size_t i = 0; i < TENSORS; i++) {
    const uint64_t end = offset + tensors[i].elements * tensors[i].bytes;
    length += (size_t)snprintf(header + length, sizeof header - length, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%llu],\"data_offsets\":[%llu,%llu]}",
                               i == 0 ? "" : ",", tensors[i].name, tensors[i].type, (unsigned long long)tensors[i].elements,
                               (unsigned long long)offset, (unsigned long long)end);
    offset = end;
  }
  header[length++] = '}';
  while (length % 8 != 0) header[length++] = ' ';
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  const uint64_t header_bytes = length;
  assert_int_equal(fwrite(&header_bytes, 8, 1, file), 1);
  assert_int_equal(fwrite(header, 1, length, file), length);
  uint64_t block[512];
  for (uint64_t left = offset; left != 0;) {            /* any bits: also what is not finite */
    const uint64_t bytes = left < sizeof block ? left : sizeof block;
    for (size_t i = 0; i < 512; i++) block[i] = picky_random(&random) << 31 ^ picky_random(&random) ^ picky_random(&random) << 50;
    assert_int_equal(fwrite(block, 1, bytes, file), bytes);
    left -= bytes;
  }
  assert_int_equal(fclose(file), 0);
}

/* Runs the job and keeps what can be compared of each cell. */
static uint64_t rows_of(tm_context *context, const char *path, uint64_t *out_values) {
  tm_error error = { .struct_size = sizeof error };
  tm_checkpoint *checkpoint = NULL;
  tm_job *job = NULL;
  if (tm_checkpoint_open(context, path, 0, &checkpoint, &error) != TM_OK ||
      tm_job_start_stats(context, &checkpoint, 1, NULL, &job, &error) != TM_OK || tm_job_wait(job, UINT64_MAX, &error) != TM_OK)
    fail_msg("%s", error.text);
  uint32_t columns = 0;
  (void)tm_job_columns(job, &columns);
  tm_cell cells[32];
  uint64_t count = 0;
  assert_int_equal(tm_job_row_count(job), TENSORS);
  for (uint64_t row = 0; tm_job_row(job, row, cells) == TM_OK; row++) {
    assert_string_equal(cells[1].text, tensors[row].name);
    for (uint32_t i = 0; i < columns; i++, count++) {
      out_values[count] = cells[i].count;
      if (cells[i].type == TM_COLUMN_NUMBER && cells[i].defined) memcpy(&out_values[count], &cells[i].number, sizeof(double));
    }
  }
  tm_job_destroy(job);
  tm_checkpoint_close(checkpoint);
  return count;
}

#define FINDINGS TM_WHOLE_OR_THREADED(6u, 7u)   /* that these bits happen to have */

/* The same of a check: most values are any bits, so nearly every tensor has findings. */
static uint64_t findings_of(tm_context *context, const char *path, uint64_t *out_values) {
  tm_error error = { .struct_size = sizeof error };
  tm_job *job = NULL;
  if (tm_job_start_check(context, &path, 1, NULL, &job, &error) != TM_OK || tm_job_wait(job, UINT64_MAX, &error) != TM_OK)
    fail_msg("%s", error.text);
  uint32_t columns = 0;
  (void)tm_job_columns(job, &columns);
  tm_cell cells[32];
  uint64_t count = 0;
  assert_int_equal(tm_job_row_count(job), FINDINGS);
  for (uint64_t row = 0; tm_job_row(job, row, cells) == TM_OK; row++) {
    for (uint32_t i = 0; i < columns; i++, count++) {
      out_values[count] = cells[i].count;
      if (cells[i].type == TM_COLUMN_SHAPE && cells[i].defined && cells[i].count != 0) out_values[count] = cells[i].shape[0];
    }
  }
  tm_job_destroy(job);
  return count;
}

#define OTHER_PATH "test_stream_job_b.safetensors"

/* The same of a comparison, without what would take the reference longest. */
static uint64_t differences_of(tm_context *context, const char *path, uint64_t *out_values) {
  static const char *const exclude[] = { "half", "wide" };
  const tm_diff_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .exclude = exclude, .exclude_count = 2 };
  tm_error error = { .struct_size = sizeof error };
  tm_checkpoint *a = NULL, *b = NULL;
  tm_job *job = NULL;
  if (tm_checkpoint_open(context, path, 0, &a, &error) != TM_OK || tm_checkpoint_open(context, OTHER_PATH, 0, &b, &error) != TM_OK ||
      tm_job_start_diff(context, a, b, &options, &job, &error) != TM_OK || tm_job_wait(job, UINT64_MAX, &error) != TM_OK)
    fail_msg("%s", error.text);
  uint32_t columns = 0;
  (void)tm_job_columns(job, &columns);
  tm_cell cells[32];
  uint64_t count = 0;
  assert_int_equal(tm_job_row_count(job), TENSORS - 2);
  for (uint64_t row = 0; tm_job_row(job, row, cells) == TM_OK; row++) {
    assert_string_equal(cells[0].text, cells[8].count == 0 ? "identical" : "changed");
    for (uint32_t i = 0; i < columns; i++, count++) {
      out_values[count] = cells[i].count;
      if (cells[i].type == TM_COLUMN_NUMBER && cells[i].defined) memcpy(&out_values[count], &cells[i].number, sizeof(double));
    }
  }
  tm_job_destroy(job);
  tm_checkpoint_close(b);
  tm_checkpoint_close(a);
  return count;
}

typedef uint64_t (*rows_fn)(tm_context *context, const char *path, uint64_t *out_values);

static uint64_t rows_with(rows_fn rows, const char *path, bool with_cpu, bool is_mapped, picky_control *helper,
                          uint64_t *out_values) {
  static char plugin[512];
  snprintf(plugin, sizeof plugin, "%s/tests/fakes/picky.so", TM_BINARY_DIR);
  const char *paths[] = { plugin }, *excluded[] = { "cpu" };
  const tm_named_pointer pointer = { "picky", PICKY_CONTROL_KEY, helper };
  const tm_context_options options = {
    .struct_size = sizeof options, .flags = is_mapped ? TM_CONTEXT_MAP_FILES : 0, .thread_count = 1,
    .worst_numerics_plus_one = 1 + TM_NUMERICS_N0, .excluded_devices = excluded, .excluded_device_count = !with_cpu,
    .plugin_paths = paths, .plugin_path_count = helper != NULL, .pointers = &pointer, .pointer_count = helper != NULL };
  tm_error error = { .struct_size = sizeof error };
  tm_context *context = NULL;
  if (tm_context_create(&options, &context, &error) != TM_OK) fail_msg("%s", error.text);
  const uint64_t count = rows(context, path, out_values);
  tm_context_destroy(context);
  return count;
}

/* One run with this helper: the rows are the expected ones.  Returns what the helper launched. */
static uint64_t launches_of(rows_fn rows, const char *path, bool with_cpu, bool is_mapped, uint32_t kind,
                            const uint64_t *expected, uint64_t count) {
  static uint64_t found[MOST_CELLS];
  picky_control helper = { .cost_ns = 1000, .has_own_memory = kind != 0 };
  if (kind == 2) helper.capacity_bytes = 1;
  assert_int_equal(rows_with(rows, path, with_cpu, is_mapped, &helper, found), count);
  assert_memory_equal(found, expected, count * sizeof *found);
  assert_int_equal(atomic_load(&helper.complaints), 0);
  return atomic_load(&helper.launches);
}

/* The cores may be through with so short a stream before the helper's thread has begun; the reference is not. */
static void compare_everybody(rows_fn rows) {
  static uint64_t expected[MOST_CELLS], found[MOST_CELLS];
  const char *path = "test_stream_job.safetensors";
  write_checkpoint(path, 3);
  const uint64_t count = rows_with(rows, path, false, true, NULL, expected);
  for (int mapped = 0; mapped < 2; mapped++) {
    assert_int_equal(rows_with(rows, path, true, mapped, NULL, found), count);
    assert_memory_equal(found, expected, count * sizeof *found);
    /* The other silicon is cheap, cheap with memory of its own, and has no memory to work in. */
    for (uint32_t kind = 0; kind < 3; kind++) {
      (void)launches_of(rows, path, true, mapped, kind, expected, count);
      const uint64_t launches = launches_of(rows, path, false, mapped, kind, expected, count);
      if (kind != 2) assert_true(launches != 0);
    }
  }
  remove(path);
}

static void rows_do_not_depend_on_who_computed(void **state) {
  (void)state;
  compare_everybody(rows_of);
}

static void findings_do_not_depend_on_who_computed(void **state) {
  (void)state;
  compare_everybody(findings_of);
}

static void differences_do_not_depend_on_who_computed(void **state) {
  (void)state;
  write_checkpoint(OTHER_PATH, 5);
  compare_everybody(differences_of);
  remove(OTHER_PATH);
}

static tm_status start_stats(tm_context *context, const char *path, tm_checkpoint **out_checkpoint, tm_job **out_job,
                             tm_error *error) {
  const tm_status status = tm_checkpoint_open(context, path, 0, out_checkpoint, error);
  return status == TM_OK ? tm_job_start_stats(context, out_checkpoint, 1, NULL, out_job, error) : status;
}

static tm_status start_check(tm_context *context, const char *path, tm_checkpoint **out_checkpoint, tm_job **out_job,
                             tm_error *error) {
  (void)out_checkpoint;
  return tm_job_start_check(context, &path, 1, NULL, out_job, error);
}

/* With itself, as far as the cores are quick at it. */
static tm_status start_diff(tm_context *context, const char *path, tm_checkpoint **out_checkpoint, tm_job **out_job, tm_error *error) {
  static const char *const include[] = { "large", "short" };
  const tm_diff_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .include = include, .include_count = 2 };
  const tm_status status = tm_checkpoint_open(context, path, 0, out_checkpoint, error);
  return status == TM_OK ? tm_job_start_diff(context, *out_checkpoint, *out_checkpoint, &options, out_job, error) : status;
}

typedef tm_status (*start_fn)(tm_context *context, const char *path, tm_checkpoint **out_checkpoint, tm_job **out_job,
                              tm_error *error);

/* What one limit is enough for, a larger one is, too: a tile must not grow until it does not fit.  TM_NIGHTLY=1 takes
   smaller steps. */
static void grow_memory(start_fn start) {
  const char *path = "test_stream_job.safetensors";
  const uint64_t part = getenv("TM_NIGHTLY") != NULL ? 8 : TM_WHOLE_OR_THREADED(3, 1);
  bool was_enough = false;
  write_checkpoint(path, 3);
  for (uint64_t limit = UINT64_C(1) << 19; limit < UINT64_C(64) << 20; limit += limit / part) {
    const tm_context_options options = { .struct_size = sizeof options, .thread_count = 2, .max_memory_bytes = limit };
    tm_error error = { .struct_size = sizeof error };
    tm_context *context = NULL;
    tm_checkpoint *checkpoint = NULL;
    tm_job *job = NULL;
    if (tm_context_create(&options, &context, &error) != TM_OK) continue;
    tm_status status = start(context, path, &checkpoint, &job, &error);
    if (status == TM_OK) status = tm_job_wait(job, UINT64_MAX, &error);
    if (status != TM_OK && was_enough) fail_msg("%llu bytes are not enough: %s", (unsigned long long)limit, error.text);
    was_enough |= status == TM_OK;
    tm_job_destroy(job);
    tm_checkpoint_close(checkpoint);
    tm_context_destroy(context);
  }
  assert_true(was_enough);
  remove(path);
}

static void more_memory_is_never_worse(void **state) {
  (void)state;
  grow_memory(start_stats);
  grow_memory(start_check);
  grow_memory(start_diff);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(rows_do_not_depend_on_who_computed),
                                      cmocka_unit_test(findings_do_not_depend_on_who_computed),
                                      cmocka_unit_test(differences_do_not_depend_on_who_computed),
                                      cmocka_unit_test(more_memory_is_never_worse) };
  return cmocka_run_group_tests_name("stream_job", tests, NULL, NULL);
}
