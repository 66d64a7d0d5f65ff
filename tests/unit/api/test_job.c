/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: they start at once, can be watched, waited for, cancelled and destroyed at any moment, and say how they ended. */
#define _GNU_SOURCE
#include "api_case.h"

#include <math.h>
#include <pthread.h>
#include <time.h>

#define MS UINT64_C(1000000)
#define FOREVER UINT64_MAX

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

static int by_number(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

typedef struct fixture {
  scratch        files;
  counting_heap  heap;
  tm_context    *context;
  tm_checkpoint *checkpoint;
  char           path[1024];
} fixture;

/* With `slow` only the scalar reference computes, on one thread. */
static void open_fixture(fixture *f, const char *header, uint64_t data_bytes, uint64_t file_bytes, bool slow) {
  static const char *const cpu[] = { "cpu" };
  memset(f, 0, sizeof *f);
  assert_true(scratch_init(&f->files));
  snprintf(f->path, sizeof f->path, "%s", write_checkpoint(&f->files, "model.safetensors", header, data_bytes, file_bytes));
  tm_context_options options = options_with(&f->heap);
  if (slow) {
    options.thread_count = 1;
    options.excluded_devices = cpu;
    options.excluded_device_count = 1;
  }
  tm_error error = { .struct_size = sizeof error };
  if (tm_context_create(&options, &f->context, &error) != TM_OK) fail_msg("%s", error.text);
  if (tm_checkpoint_open(f->context, f->path, 0, &f->checkpoint, &error) != TM_OK) fail_msg("%s", error.text);
}

static void close_fixture(fixture *f) {
  tm_checkpoint_close(f->checkpoint);
  tm_context_destroy(f->context);
  heap_is_empty(&f->heap);
  scratch_deinit(&f->files);
}

/* A hole of 4 GiB that reads as zeros: longer than any test waits. */
#define HUGE_BYTES UINT64_C(4294967296)
#define HUGE_HEADER                                                                     \
  "{\"small\":{\"dtype\":\"U8\",\"shape\":[16],\"data_offsets\":[0,16]},"               \
  "\"huge\":{\"dtype\":\"BF16\",\"shape\":[2147483640],\"data_offsets\":[16,4294967296]}}"

static void open_huge(fixture *f) { open_fixture(f, HUGE_HEADER, 16, 8 + strlen(HUGE_HEADER) + HUGE_BYTES, true); }

static tm_job *start(fixture *f, const tm_stats_options *options) {
  tm_job *job = NULL;
  tm_error error = { .struct_size = sizeof error };
  if (tm_job_start_stats(f->context, &f->checkpoint, 1, options, &job, &error) != TM_OK) fail_msg("%s", error.text);
  return job;
}

static uint32_t column(const tm_job *job, const char *name) {
  uint32_t count = 0;
  const tm_column *columns = tm_job_columns(job, &count);
  assert_true(count <= 32);
  for (uint32_t i = 0; i < count; i++)
    if (strcmp(columns[i].name, name) == 0) return i;
  fail_msg("no column %s", name);
  return 0;
}

/* ---- rows ---- */

static void rows_hold_the_figures(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, TWO_TENSORS, TWO_TENSORS_BYTES, 0, false);
  tm_job *job = start(&f, NULL);
  assert_int_equal(tm_job_wait(job, FOREVER, NULL), TM_OK);
  assert_int_equal(tm_job_wait(job, 0, NULL), TM_OK);
  assert_int_equal(tm_job_row_count(job), 2);
  tm_cell cells[32];
  assert_int_equal(tm_job_row(job, 0, cells), TM_OK);
  assert_string_equal(cells[column(job, "file")].text, f.path);
  assert_string_equal(cells[column(job, "name")].text, "w");
  assert_string_equal(cells[column(job, "dtype")].text, "u8");
  assert_int_equal(cells[column(job, "shape")].count, 2);
  assert_int_equal(cells[column(job, "shape")].shape[1], 8);
  assert_int_equal(cells[column(job, "count")].count, 32);
  assert_int_equal(cells[column(job, "zero")].count, 1);
  assert_true(cells[column(job, "max")].number == 31);
  assert_true(cells[column(job, "mean")].number == 15.5);
  assert_true(fabs(cells[column(job, "std")].number - sqrt((32.0 * 32 - 1) / 12)) < 1e-12);
  assert_int_equal(tm_job_row(job, 2, cells), TM_END);
  tm_progress progress = { .struct_size = sizeof progress };
  tm_job_progress(job, &progress);
  assert_int_equal(progress.finished, 1);
  assert_int_equal(progress.bytes_done, TWO_TENSORS_BYTES);
  assert_int_equal(progress.bytes_total, TWO_TENSORS_BYTES);
  assert_int_equal(progress.items_done, 2);
  tm_device_usage usage = { .struct_size = sizeof usage };
  uint64_t bytes = 0;
  for (uint32_t i = 0; tm_job_device_usage(job, i, &usage) == TM_OK; i++) bytes += usage.bytes;
  assert_int_equal(bytes, TWO_TENSORS_BYTES);
  tm_job_destroy(job);
  tm_job_destroy(NULL);
  close_fixture(&f);
}

static void patterns_choose(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, TWO_TENSORS, TWO_TENSORS_BYTES, 0, false);
  static const char *const weights[] = { "*.weight" }, *const mistyped[] = { "v.wieght" };
  tm_stats_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .include = weights, .include_count = 1 };
  tm_job *job = start(&f, &options);
  assert_int_equal(tm_job_wait(job, FOREVER, NULL), TM_OK);
  tm_cell cells[32];
  assert_int_equal(tm_job_row_count(job), 1);
  assert_int_equal(tm_job_row(job, 0, cells), TM_OK);
  assert_string_equal(cells[column(job, "name")].text, "v.weight");
  tm_job_destroy(job);
  options = (tm_stats_options){ .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .exclude = weights, .exclude_count = 1 };
  job = start(&f, &options);
  assert_int_equal(tm_job_wait(job, FOREVER, NULL), TM_OK);
  assert_int_equal(tm_job_row_count(job), 1);
  tm_job_destroy(job);
  options.exclude = mistyped;
  tm_error error = { .struct_size = sizeof error };
  job = start(&f, &options);
  assert_int_equal(tm_job_wait(job, FOREVER, &error), TM_ERROR_NOT_FOUND);
  assert_non_null(strstr(error.text, "v.weight"));
  assert_int_equal(tm_job_row_count(job), 0);
  tm_progress progress = { .struct_size = sizeof progress };
  tm_job_progress(job, &progress);
  assert_int_equal(progress.finished, 1);
  assert_int_equal(progress.items_total, 0);
  tm_job_destroy(job);
  close_fixture(&f);
}

static void patterns_are_the_callers_again_at_once(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, TWO_TENSORS, TWO_TENSORS_BYTES, 0, false);
  for (int i = 0; i < 50; i++) {
    char pattern[] = "*.weight";
    const char *patterns[] = { pattern };
    tm_stats_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .include = patterns, .include_count = 1 };
    tm_job *job = start(&f, &options);
    memset(pattern, 'x', sizeof pattern - 1);
    patterns[0] = NULL;
    assert_int_equal(tm_job_wait(job, FOREVER, NULL), TM_OK);
    assert_int_equal(tm_job_row_count(job), 1);
    tm_job_destroy(job);
  }
  close_fixture(&f);
}

/* A header of `count` tensors of no elements, named t0, t1, ...; the caller frees it. */
static char *header_of_many(uint64_t count) {
  char *header = malloc((size_t)(count * 80 + 2));
  assert_non_null(header);
  size_t used = 1;
  header[0] = '{';
  for (uint64_t i = 0; i < count; i++)
    used += (size_t)snprintf(header + used, 80, "%s\"t%llu\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}", i == 0 ? "" : ",",
                             (unsigned long long)i);
  memcpy(header + used, "}", 2);
  return header;
}

/* Medians, because this machine may have other things to do: starting must not look at the tensors, and choosing among
   them must be cancelled like everything else. */
/* Of one thread, or of all: what it took, however busy the machine is with other things. */
static uint64_t spent_ns(clockid_t whose) {
  struct timespec time;
  (void)clock_gettime(whose, &time);
  return (uint64_t)time.tv_sec * 1000 * MS + (uint64_t)time.tv_nsec;
}

static uint64_t spend_on_job(fixture *f, const tm_stats_options *options, bool is_cancelled, uint64_t *out_start_ns) {
  const uint64_t begin = spent_ns(CLOCK_PROCESS_CPUTIME_ID), own = spent_ns(CLOCK_THREAD_CPUTIME_ID);
  tm_job *job = start(f, options);
  *out_start_ns = spent_ns(CLOCK_THREAD_CPUTIME_ID) - own;
  if (is_cancelled) tm_job_cancel(job);
  (void)tm_job_wait(job, FOREVER, NULL);
  tm_job_destroy(job);
  return spent_ns(CLOCK_PROCESS_CPUTIME_ID) - begin;
}

/* Neither looks at every tensor. */
static void starting_and_cancelling_take_no_longer_with_more_tensors(void **state) {
  (void)state;
  static const char *const last[] = { "*[!0-9]999999", "t*[5-9]" };
  char *header = header_of_many(300000);
  fixture f;
  open_fixture(&f, header, 0, 0, false);
  free(header);
  const tm_stats_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .include = last, .include_count = 2 };
  uint64_t starts[9], cancels[9], start_ns;
  const uint64_t whole_ns = spend_on_job(&f, NULL, false, &start_ns);
  for (int i = 0; i < 9; i++) cancels[i] = spend_on_job(&f, i % 2 == 0 ? NULL : &options, true, &starts[i]);
  qsort(starts, 9, sizeof starts[0], by_number);
  qsort(cancels, 9, sizeof cancels[0], by_number);
  if (starts[4] > whole_ns / 4) fail_msg("starting took %llu of %llu ns", (unsigned long long)starts[4], (unsigned long long)whole_ns);
  if (cancels[4] > whole_ns / 2) fail_msg("cancelled %llu of %llu ns", (unsigned long long)cancels[4], (unsigned long long)whole_ns);
  close_fixture(&f);
}

static void wrong_calls_are_refused(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, TWO_TENSORS, TWO_TENSORS_BYTES, 0, false);
  tm_job *job = NULL;
  tm_checkpoint *const none[] = { NULL };
  static const char *const hole[] = { "*", NULL };
  const tm_stats_options wrong[] = {
    { .struct_size = 0, .worst_numerics = TM_NUMERICS_DEFAULT },
    { .struct_size = sizeof wrong[0], .worst_numerics = 8 },
    { .struct_size = sizeof wrong[0], .worst_numerics = TM_NUMERICS_DEFAULT, .include_count = 1 },
    { .struct_size = sizeof wrong[0], .worst_numerics = TM_NUMERICS_DEFAULT, .exclude_count = 1 },
    { .struct_size = sizeof wrong[0], .worst_numerics = TM_NUMERICS_DEFAULT, .include = hole, .include_count = 2 },
    { .struct_size = sizeof wrong[0], .worst_numerics = TM_NUMERICS_DEFAULT, .exclude = hole, .exclude_count = 2 },
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    assert_int_equal(tm_job_start_stats(f.context, &f.checkpoint, 1, &wrong[i], &job, NULL), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_job_start_stats(f.context, NULL, 1, NULL, &job, NULL), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_job_start_stats(f.context, &f.checkpoint, 0, NULL, &job, NULL), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_job_start_stats(f.context, none, 1, NULL, &job, NULL), TM_ERROR_ARGUMENT);
  assert_null(job);
  const uint32_t shortest[2] = { sizeof shortest, TM_NUMERICS_N0 };
  job = start(&f, (const tm_stats_options *)(const void *)shortest);
  assert_int_equal(tm_job_wait(job, FOREVER, NULL), TM_OK);
  tm_job_destroy(job);
  close_fixture(&f);
}

static void types_without_arithmetic_get_a_row_and_a_note(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, "{\"c\":{\"dtype\":\"C64\",\"shape\":[2],\"data_offsets\":[0,16]},\"w\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[16,20]}}",
               20, 0, false);
  tm_job *job = start(&f, NULL);
  assert_int_equal(tm_job_wait(job, FOREVER, NULL), TM_OK);
  assert_int_equal(tm_job_row_count(job), 2);
  tm_cell cells[32];
  assert_int_equal(tm_job_row(job, 0, cells), TM_OK);
  assert_int_equal(cells[column(job, "count")].count, 2);
  assert_int_equal(cells[column(job, "mean")].defined, 0);
  assert_int_equal(cells[column(job, "nan")].defined, 0);
  const char *note = NULL;
  assert_int_equal(tm_job_note(job, 0, &note), TM_OK);
  assert_non_null(strstr(note, "c64"));
  assert_int_equal(tm_job_note(job, 1, &note), TM_END);
  tm_job_destroy(job);
  close_fixture(&f);
}

static void empty_tensors_have_no_mean(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, "{\"e\":{\"dtype\":\"F32\",\"shape\":[0,4],\"data_offsets\":[0,0]},\"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4,
               0, false);
  tm_job *job = start(&f, NULL);
  assert_int_equal(tm_job_wait(job, FOREVER, NULL), TM_OK);
  tm_cell cells[32];
  assert_int_equal(tm_job_row(job, 0, cells), TM_OK);
  assert_int_equal(cells[column(job, "count")].count, 0);
  assert_int_equal(cells[column(job, "nan")].defined, 1);
  assert_int_equal(cells[column(job, "mean")].defined, 0);
  assert_int_equal(tm_job_row(job, 1, cells), TM_OK);
  assert_int_equal(cells[column(job, "count")].count, 1);
  assert_int_equal(cells[column(job, "shape")].count, 0);
  tm_job_destroy(job);
  close_fixture(&f);
}

/* ---- while it runs ---- */

static void it_starts_at_once_and_can_be_watched(void **state) {
  (void)state;
  fixture f;
  open_huge(&f);
  tm_job *job = start(&f, NULL);
  assert_int_equal(tm_job_wait(job, 0, NULL), TM_PENDING);
  const uint64_t waited = now_ns();
  assert_int_equal(tm_job_wait(job, 20 * MS, NULL), TM_PENDING);
  assert_true(now_ns() - waited >= 20 * MS);
  while (tm_job_row_count(job) == 0) (void)tm_job_wait(job, MS, NULL);
  tm_cell cells[32];
  assert_int_equal(tm_job_row(job, 0, cells), TM_OK);           /* the first row, while the second is computed */
  assert_string_equal(cells[column(job, "name")].text, "small");
  tm_progress progress = { .struct_size = sizeof progress };
  do {
    tm_job_progress(job, &progress);
  } while (progress.bytes_done <= 16);
  assert_int_equal(progress.finished, 0);
  assert_int_equal(progress.bytes_total, HUGE_BYTES);
  assert_int_equal(progress.items_total, 2);
  tm_job_destroy(job);          /* in the middle */
  close_fixture(&f);
}

/* In work, not in time: what is begun is ended, and nothing more. */
static void cancelling_takes_a_moment(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    fixture f;
    open_huge(&f);
    tm_job *job = start(&f, NULL);
    tm_progress progress = { .struct_size = sizeof progress };
    do {
      tm_job_progress(job, &progress);
      (void)tm_job_wait(job, MS, NULL);
    } while (progress.bytes_done <= 16);
    tm_job_cancel(job);
    tm_job_progress(job, &progress);
    const uint64_t done_before = progress.bytes_done;
    tm_error error = { .struct_size = sizeof error };
    assert_int_equal(tm_job_wait(job, FOREVER, &error), TM_ERROR_CANCELLED);
    tm_job_progress(job, &progress);
    print_message("%llu bytes after it was cancelled\n", (unsigned long long)(progress.bytes_done - done_before));
    assert_true(progress.bytes_done - done_before < HUGE_BYTES / 64);
    assert_int_equal(error.code, TM_ERROR_CANCELLED);
    assert_true(strlen(error.text) > 0);
    assert_int_equal(tm_job_row_count(job), 1);
    tm_job_destroy(job);
    close_fixture(&f);
  }
}

static void a_cancel_after_the_end_changes_nothing(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, TWO_TENSORS, TWO_TENSORS_BYTES, 0, false);
  tm_job *job = start(&f, NULL);
  assert_int_equal(tm_job_wait(job, FOREVER, NULL), TM_OK);
  tm_job_cancel(job);
  assert_int_equal(tm_job_wait(job, FOREVER, NULL), TM_OK);
  tm_job_destroy(job);
  close_fixture(&f);
}

typedef struct ending {
  pthread_t       starter;
  tm_job        **job;          /* where the starter keeps it */
  _Atomic uint32_t calls;
  _Atomic uint32_t on_starter;
  _Atomic uint32_t other_job;
  _Atomic uint32_t rows;
} ending;

static void on_complete(void *complete_context, tm_job *job) {
  ending *seen = complete_context;
  atomic_fetch_add(&seen->calls, 1);
  if (pthread_equal(pthread_self(), seen->starter)) atomic_store(&seen->on_starter, 1);
  if (*seen->job != job) atomic_store(&seen->other_job, 1);
  tm_progress progress = { .struct_size = sizeof progress };
  tm_job_progress(job, &progress);
  atomic_store(&seen->rows, progress.finished ? (uint32_t)tm_job_row_count(job) : 0);
}

static void completion_is_told_once_on_the_jobs_own_thread(void **state) {
  (void)state;
  for (int i = 0; i < 20; i++) {
    fixture f;
    open_fixture(&f, TWO_TENSORS, TWO_TENSORS_BYTES, 0, false);
    tm_job *job = NULL;
    ending seen = { .starter = pthread_self(), .job = &job };
    tm_stats_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT };
    options.complete = on_complete;
    options.complete_context = &seen;
    assert_int_equal(tm_job_start_stats(f.context, &f.checkpoint, 1, &options, &job, NULL), TM_OK);
    assert_int_equal(tm_job_wait(job, FOREVER, NULL), TM_OK);
    tm_job *kept = job;
    tm_job_destroy(kept);
    assert_int_equal(atomic_load(&seen.calls), 1);
    assert_int_equal(atomic_load(&seen.on_starter), 0);
    assert_int_equal(atomic_load(&seen.other_job), 0);
    assert_int_equal(atomic_load(&seen.rows), 2);
    close_fixture(&f);
  }
}

static void a_file_that_shrinks_meanwhile_ends_the_job(void **state) {
  (void)state;
  fixture f;
  open_huge(&f);
  tm_job *job = start(&f, NULL);
  while (tm_job_row_count(job) == 0) (void)tm_job_wait(job, MS, NULL);
  assert_int_equal(truncate(f.path, 10000), 0);
  tm_error error = { .struct_size = sizeof error };
  assert_int_equal(tm_job_wait(job, FOREVER, &error), TM_ERROR_CHANGED);
  assert_non_null(strstr(error.text, "huge"));
  assert_non_null(strstr(error.text, "model.safetensors"));
  assert_non_null(strstr(error.text, "offset"));
  tm_job_destroy(job);
  close_fixture(&f);
}

static void a_file_that_was_rewritten_ends_the_job(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, TWO_TENSORS, TWO_TENSORS_BYTES, 0, false);
  FILE *file = fopen(f.path, "r+b");
  assert_non_null(file);
  (void)fseek(file, -1, SEEK_END);
  (void)fputc(99, file);
  (void)fclose(file);
  const struct timespec later[2] = { { 1, 0 }, { 1, 0 } };      /* clocks of files may be coarse */
  assert_int_equal(utimensat(AT_FDCWD, f.path, later, 0), 0);
  tm_job *job = start(&f, NULL);
  assert_int_equal(tm_job_wait(job, FOREVER, NULL), TM_ERROR_CHANGED);
  assert_int_equal(tm_job_row_count(job), 0);
  tm_job_destroy(job);
  close_fixture(&f);
}

static void several_jobs_run_side_by_side(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, TWO_TENSORS, TWO_TENSORS_BYTES, 0, false);
  tm_job *jobs[8];
  for (int i = 0; i < 8; i++) jobs[i] = start(&f, NULL);
  for (int i = 0; i < 8; i++) assert_int_equal(tm_job_wait(jobs[i], FOREVER, NULL), TM_OK);
  for (int i = 0; i < 8; i++) {
    assert_int_equal(tm_job_row_count(jobs[i]), 2);
    tm_job_destroy(jobs[i]);
  }
  close_fixture(&f);
}

/* Beyond one chunk of rows, so that a reader of the first rows sees them stay. */
static void many_rows_stay_where_they_are(void **state) {
  (void)state;
  enum { COUNT = 1000 };
  char *header = malloc(COUNT * 80);
  assert_non_null(header);
  size_t used = 0;
  for (int i = 0; i < COUNT; i++)
    used += (size_t)snprintf(header + used, 80, "%s\"t%04d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}", i == 0 ? "{" : ",", i, i, i + 1);
  snprintf(header + used, 80, "}");
  fixture f;
  open_fixture(&f, header, COUNT, 0, false);
  tm_job *job = start(&f, NULL);
  tm_cell first[32], cells[32];
  while (tm_job_row(job, 0, first) != TM_OK) (void)tm_job_wait(job, MS, NULL);
  const char *name = first[column(job, "name")].text;
  assert_int_equal(tm_job_wait(job, FOREVER, NULL), TM_OK);
  assert_int_equal(tm_job_row_count(job), COUNT);
  assert_string_equal(name, "t0000");
  for (uint64_t i = 0; i < COUNT; i++) {
    char expected[16];
    snprintf(expected, sizeof expected, "t%04d", (int)i);
    assert_int_equal(tm_job_row(job, i, cells), TM_OK);
    assert_string_equal(cells[column(job, "name")].text, expected);
  }
  tm_job_destroy(job);
  close_fixture(&f);
  free(header);
}

/* ---- when memory ends ---- */

static void every_allocation_may_fail(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, TWO_TENSORS, TWO_TENSORS_BYTES, 0, false);
  uint64_t failures = 0;
  for (uint64_t n = 1;; n++) {
    atomic_store(&f.heap.calls, 0);
    f.heap.fail_from = n;
    tm_job *job = NULL;
    tm_error error = { .struct_size = sizeof error };
    tm_status status = tm_job_start_stats(f.context, &f.checkpoint, 1, NULL, &job, &error);
    if (status == TM_OK) status = tm_job_wait(job, FOREVER, &error);
    else assert_null(job);
    tm_job_destroy(job);
    f.heap.fail_from = 0;
    if (status == TM_OK) break;
    if (status != TM_ERROR_NO_MEMORY) fail_msg("allocation %llu: %d %s", (unsigned long long)n, status, error.text);
    failures++;
  }
  assert_true(failures > 5);
  tm_job *job = start(&f, NULL);
  assert_int_equal(tm_job_wait(job, FOREVER, NULL), TM_OK);
  tm_job_destroy(job);
  close_fixture(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(rows_hold_the_figures),
    cmocka_unit_test(patterns_choose),
    cmocka_unit_test(patterns_are_the_callers_again_at_once),
    cmocka_unit_test(starting_and_cancelling_take_no_longer_with_more_tensors),
    cmocka_unit_test(wrong_calls_are_refused),
    cmocka_unit_test(types_without_arithmetic_get_a_row_and_a_note),
    cmocka_unit_test(empty_tensors_have_no_mean),
    cmocka_unit_test(it_starts_at_once_and_can_be_watched),
    cmocka_unit_test(cancelling_takes_a_moment),
    cmocka_unit_test(a_cancel_after_the_end_changes_nothing),
    cmocka_unit_test(completion_is_told_once_on_the_jobs_own_thread),
    cmocka_unit_test(a_file_that_shrinks_meanwhile_ends_the_job),
    cmocka_unit_test(a_file_that_was_rewritten_ends_the_job),
    cmocka_unit_test(several_jobs_run_side_by_side),
    cmocka_unit_test(many_rows_stay_where_they_are),
    cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
