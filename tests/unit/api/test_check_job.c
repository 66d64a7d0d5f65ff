/* SPDX-License-Identifier: Apache-2.0 */
/* The check job: its rows, wrong calls, cancelling, no memory at any moment, and the same rows for any number of threads. */
#define _GNU_SOURCE
#include "api_case.h"

#include <math.h>

#define FOREVER UINT64_MAX

typedef struct fixture {
  scratch       files;
  counting_heap heap;
  tm_context   *context;
} fixture;

static void open_fixture(fixture *f, uint32_t threads, uint32_t flags) {
  memset(f, 0, sizeof *f);
  assert_true(scratch_init(&f->files));
  tm_context_options options = options_with(&f->heap);
  options.thread_count = threads;
  options.flags = flags;
  tm_error error = { .struct_size = sizeof error };
  if (tm_context_create(&options, &f->context, &error) != TM_OK) fail_msg("%s", error.text);
}

static void close_fixture(fixture *f) {
  tm_context_destroy(f->context);
  heap_is_empty(&f->heap);
  scratch_deinit(&f->files);
}

/* "name.safetensors" in the fixture's folder. */
static void path_of(fixture *f, const char *name, char *out, size_t capacity) {
  snprintf(out, capacity, "%s", scratch_path(&f->files, name));
}

static void write_file(fixture *f, const char *name, const char *header, const void *data, size_t bytes) {
  const uint64_t length = strlen(header);
  unsigned char *whole = malloc(8 + length + bytes);
  assert_non_null(whole);
  for (int i = 0; i < 8; i++) whole[i] = (unsigned char)(length >> (8 * i));
  memcpy(whole + 8, header, length);
  memcpy(whole + 8 + length, data, bytes);
  assert_non_null(scratch_write(&f->files, name, whole, 8 + length + bytes));
  free(whole);
}

static tm_job *start(fixture *f, const char *const *paths, uint32_t count) {
  tm_job *job = NULL;
  tm_error error = { .struct_size = sizeof error };
  if (tm_job_start_check(f->context, paths, count, NULL, &job, &error) != TM_OK) fail_msg("%s", error.text);
  return job;
}

static uint32_t column(const tm_job *job, const char *name) {
  uint32_t count = 0;
  const tm_column *columns = tm_job_columns(job, &count);
  for (uint32_t i = 0; i < count; i++)
    if (strcmp(columns[i].name, name) == 0) return i;
  fail_msg("no column %s", name);
  return 0;
}

/* "kind tensor kind tensor ..." */
static void list_rows(const tm_job *job, char *out, size_t capacity) {
  tm_cell cells[32];
  const uint32_t kind = column(job, "kind"), tensor = column(job, "tensor");
  out[0] = '\0';
  for (uint64_t i = 0; tm_job_row(job, i, cells) == TM_OK; i++) {
    const size_t used = strlen(out);
    snprintf(out + used, capacity - used, "%s%s %s", i == 0 ? "" : ", ", cells[kind].text,
             cells[tensor].defined ? cells[tensor].text : "-");
  }
}

/* ---- one file of each kind ---- */

#define VALUES 16
#define HEADER                                                                                                          \
  "{\"bad\":{\"dtype\":\"F32\",\"shape\":[4,2,2],\"data_offsets\":[0,64]},"                                             \
  "\"same\":{\"dtype\":\"F32\",\"shape\":[16],\"data_offsets\":[64,128]},"                                              \
  "\"zero\":{\"dtype\":\"I32\",\"shape\":[4],\"data_offsets\":[128,144]}}"

typedef struct three_files {
  char model[1024], stranger[1024], index[1024], folder[1024];
} three_files;

static void write_files(fixture *f, three_files *out) {
  float values[2 * VALUES + 4] = { 0 };
  for (int i = 0; i < VALUES; i++) values[i] = values[VALUES + i] = (float)i;
  values[6] = values[VALUES + 6] = NAN;
  values[13] = values[VALUES + 13] = INFINITY;
  write_file(f, "model.safetensors", HEADER, values, sizeof values);
  assert_non_null(scratch_write(&f->files, "page.safetensors", "<!DOCTYPE html><html>no</html>", 30));
  write_file(f, "s-1.safetensors", "{\"c\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", values + 1, 8);
  static const char index[] = "{\"weight_map\":{\"b\":\"s-1.safetensors\",\"d\":\"s-2.safetensors\",\"m\":\"model.safetensors\","
                              "\"p\":\"page.safetensors\"}}";
  assert_non_null(scratch_write(&f->files, "x.json", index, sizeof index - 1));
  path_of(f, "model.safetensors", out->model, sizeof out->model);
  path_of(f, "page.safetensors", out->stranger, sizeof out->stranger);
  path_of(f, "x.json", out->index, sizeof out->index);
  snprintf(out->folder, sizeof out->folder, "%s", f->files.folder);
}

static void files_of_each_kind(void **state) {
  (void)state;
  static const uint32_t threads[] = { 1, 2, 5 }, flags[] = { 0, TM_CONTEXT_MAP_FILES };
  for (int i = 0; i < 6; i++) {
    fixture f;
    three_files files;
    char found[2048];
    open_fixture(&f, threads[i % 3], flags[i / 3]);
    write_files(&f, &files);
    const char *const paths[] = { files.stranger, files.model };
    tm_job *job = start(&f, paths, 2);
    assert_int_equal(tm_job_wait(job, FOREVER, NULL), TM_OK);
    list_rows(job, found, sizeof found);
    assert_string_equal(found, "structure -, nan bad, inf bad, nan same, inf same, zero zero, tied same");
    tm_cell cells[32];
    assert_int_equal(tm_job_row(job, 1, cells), TM_OK);
    const tm_cell *first = &cells[column(job, "first")], *slices = &cells[column(job, "slices")];
    assert_int_equal(first->count, 3);
    assert_int_equal(first->shape[0] * 100 + first->shape[1] * 10 + first->shape[2], 110);
    assert_int_equal(slices->count, 1);
    assert_int_equal(slices->shape[0], 1);
    tm_progress progress = { .struct_size = sizeof progress };
    tm_job_progress(job, &progress);
    assert_int_equal(progress.bytes_done, 144);
    assert_int_equal(progress.bytes_total, 144);
    assert_int_equal(progress.items_done, 3);
    tm_job_destroy(job);
    close_fixture(&f);
  }
}

static void a_set_that_does_not_agree(void **state) {
  (void)state;
  fixture f;
  three_files files;
  char found[2048];
  open_fixture(&f, 2, TM_CONTEXT_MAP_FILES);
  write_files(&f, &files);
  const char *const paths[] = { files.index };
  tm_job *job = start(&f, paths, 1);
  assert_int_equal(tm_job_wait(job, FOREVER, NULL), TM_OK);
  list_rows(job, found, sizeof found);
  assert_string_equal(found, "unindexed_tensor bad, unindexed_tensor same, unindexed_tensor zero, structure -, unindexed_tensor c, "
                             "missing_shard -, missing_tensor b, missing_tensor m, nan bad, inf bad, nan same, inf same, zero zero, "
                             "tied same");
  tm_job_destroy(job);
  close_fixture(&f);
}

/* ---- what does not go well ---- */

static void no_memory_at_any_moment(void **state) {
  (void)state;
  for (int mapped = 0; mapped < 2; mapped++) {
    fixture f;
    three_files files;
    open_fixture(&f, 2, mapped != 0 ? TM_CONTEXT_MAP_FILES : 0);
    write_files(&f, &files);
    const char *const paths[] = { files.stranger, files.index, files.model, files.folder };
    char expected[4096], found[4096];
    static const char first[] = "{\"weight_map\":{\"c\":\"s-1.safetensors\",\"q\":\"./z.safetensors\"}}";
    static const char second[] = "{\"weight_map\":{\"bad\":\"model.safetensors\"}}";
    assert_non_null(scratch_write(&f.files, "first.safetensors.index.json", first, sizeof first - 1));
    assert_non_null(scratch_write(&f.files, "second.safetensors.index.json", second, sizeof second - 1));
    tm_job *undisturbed = start(&f, paths, 4);
    assert_int_equal(tm_job_wait(undisturbed, FOREVER, NULL), TM_OK);
    list_rows(undisturbed, expected, sizeof expected);
    tm_job_destroy(undisturbed);
    bool is_whole = false;
    for (uint64_t k = 1; !is_whole; k++) {
      tm_job *job = NULL;
      const uint64_t at = atomic_load(&f.heap.calls) + k;
      f.heap.fail_at = at;
      const tm_status started = tm_job_start_check(f.context, paths, 4, NULL, &job, NULL);
      const tm_status ended = started == TM_OK ? tm_job_wait(job, FOREVER, NULL) : started;
      assert_true(ended == TM_OK || ended == TM_ERROR_NO_MEMORY);
      if (ended == TM_OK) list_rows(job, found, sizeof found);
      if (ended == TM_OK) assert_string_equal(found, expected);         /* without memory nothing is told that is not so */
      tm_job_destroy(job);
      is_whole = atomic_load(&f.heap.calls) < at;
      if (is_whole) assert_int_equal(ended, TM_OK);
      assert_true(k < 5000);
    }
    f.heap.fail_at = 0;
    close_fixture(&f);
  }
}

static void wrong_calls_are_refused(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, 1, 0);
  tm_job *job = NULL;
  const char *const paths[] = { "a", NULL };
  static const char *const hole[] = { "*", NULL };
  const tm_check_options wrong[] = {
    { .struct_size = 0 },
    { .struct_size = sizeof wrong[0], .reserved = 1 },
    { .struct_size = sizeof wrong[0], .include_count = 1 },
    { .struct_size = sizeof wrong[0], .exclude_count = 1 },
    { .struct_size = sizeof wrong[0], .include = hole, .include_count = 2 },
    { .struct_size = sizeof wrong[0], .exclude = hole, .exclude_count = 2 },
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    assert_int_equal(tm_job_start_check(f.context, paths, 1, &wrong[i], &job, NULL), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_job_start_check(f.context, NULL, 1, NULL, &job, NULL), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_job_start_check(f.context, paths, 0, NULL, &job, NULL), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_job_start_check(f.context, paths, 2, NULL, &job, NULL), TM_ERROR_ARGUMENT);
  assert_null(job);
  close_fixture(&f);
}

static void patterns_that_match_nothing_end_it(void **state) {
  (void)state;
  fixture f;
  three_files files;
  open_fixture(&f, 2, 0);
  write_files(&f, &files);
  static const char *const include[] = { "zeroo" };
  const char *const paths[] = { files.model };
  const tm_check_options options = { .struct_size = sizeof options, .include = include, .include_count = 1 };
  tm_job *job = NULL;
  tm_error error = { .struct_size = sizeof error };
  assert_int_equal(tm_job_start_check(f.context, paths, 1, &options, &job, NULL), TM_OK);
  assert_int_equal(tm_job_wait(job, FOREVER, &error), TM_ERROR_NOT_FOUND);
  assert_non_null(strstr(error.text, "zero"));
  assert_int_equal(tm_job_row_count(job), 0);
  tm_job_destroy(job);
  close_fixture(&f);
}

/* Holes of 64 GiB that read as zeros: one that devices count, two that the library compares. */
#define ONE "{\"a\":{\"dtype\":\"BF16\",\"shape\":[34359738368],\"data_offsets\":[0,68719476736]}}"
#define TWO                                                                                   \
  "{\"a\":{\"dtype\":\"I32\",\"shape\":[8589934592],\"data_offsets\":[0,34359738368]},"       \
  "\"b\":{\"dtype\":\"I32\",\"shape\":[8589934592],\"data_offsets\":[34359738368,68719476736]}}"

static void it_can_be_cancelled(void **state) {
  (void)state;
  static const char *const headers[] = { ONE, TWO };
  for (int i = 0; i < 4; i++) {
    fixture f;
    char path[1024];
    open_fixture(&f, 2, i < 2 ? 0 : TM_CONTEXT_MAP_FILES);
    const char *header = headers[i % 2];
    assert_non_null(write_checkpoint(&f.files, "huge.safetensors", header, 0, 8 + strlen(header) + UINT64_C(68719476736)));
    path_of(&f, "huge.safetensors", path, sizeof path);
    const char *const paths[] = { path };
    tm_job *job = start(&f, paths, 1);
    tm_progress progress = { .struct_size = sizeof progress };
    do {
      tm_job_progress(job, &progress);
    } while (progress.bytes_done == 0 && !progress.finished);
    assert_int_equal(progress.finished, 0);
    tm_job_cancel(job);
    assert_int_equal(tm_job_wait(job, FOREVER, NULL), TM_ERROR_CANCELLED);
    tm_job_destroy(job);
    close_fixture(&f);
  }
}

/* Mapped or read, counted by devices or looked at by the library: trouble is told once, and the job ends well and soon. */
static void a_file_that_shrinks_is_trouble(void **state) {
  (void)state;
  static const char *const headers[] = { ONE, TWO };
  for (int i = 0; i < 4; i++) {
    fixture f;
    char path[1024], found[2048];
    open_fixture(&f, 2, i < 2 ? 0 : TM_CONTEXT_MAP_FILES);
    const char *header = headers[i % 2];
    assert_non_null(write_checkpoint(&f.files, "huge.safetensors", header, 0, 8 + strlen(header) + UINT64_C(68719476736)));
    path_of(&f, "huge.safetensors", path, sizeof path);
    const char *const paths[] = { path };
    tm_job *job = start(&f, paths, 1);
    tm_progress progress = { .struct_size = sizeof progress };
    do {
      tm_job_progress(job, &progress);
    } while (progress.bytes_done == 0 && !progress.finished);
    assert_int_equal(truncate(path, 10000), 0);
    assert_int_equal(tm_job_wait(job, FOREVER, NULL), TM_OK);
    list_rows(job, found, sizeof found);
    assert_string_equal(found, "changed a");
    tm_job_progress(job, &progress);
    assert_true(progress.bytes_done < progress.bytes_total);
    assert_true(progress.items_done < progress.items_total);
    tm_job_destroy(job);
    close_fixture(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(files_of_each_kind),
    cmocka_unit_test(a_set_that_does_not_agree),
    cmocka_unit_test(no_memory_at_any_moment),
    cmocka_unit_test(wrong_calls_are_refused),
    cmocka_unit_test(patterns_that_match_nothing_end_it),
    cmocka_unit_test(it_can_be_cancelled),
    cmocka_unit_test(a_file_that_shrinks_is_trouble),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
