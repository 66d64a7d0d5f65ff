/* SPDX-License-Identifier: Apache-2.0 */
/* The diff job: wrong calls, cancelling, files that change, no memory at any moment, and many names. */
#define _GNU_SOURCE
#include "api_case.h"

#define FOREVER UINT64_MAX

typedef struct fixture {
  scratch        files;
  counting_heap  heap;
  tm_context    *context;
  tm_checkpoint *a;
  tm_checkpoint *b;
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
  tm_checkpoint_close(f->a);
  tm_checkpoint_close(f->b);
  tm_context_destroy(f->context);
  heap_is_empty(&f->heap);
  scratch_deinit(&f->files);
}

static tm_checkpoint *open_checkpoint(fixture *f, const char *name) {
  tm_checkpoint *checkpoint = NULL;
  tm_error error = { .struct_size = sizeof error };
  if (tm_checkpoint_open(f->context, scratch_path(&f->files, name), 0, &checkpoint, &error) != TM_OK) fail_msg("%s", error.text);
  return checkpoint;
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

static tm_job *start(fixture *f) {
  tm_job *job = NULL;
  tm_error error = { .struct_size = sizeof error };
  if (tm_job_start_diff(f->context, f->a, f->b, NULL, &job, &error) != TM_OK) fail_msg("%s", error.text);
  return job;
}

/* "verdict name other_name, ..." */
static void list_rows(const tm_job *job, char *out, size_t capacity) {
  tm_cell cells[32];
  out[0] = '\0';
  for (uint64_t i = 0; tm_job_row(job, i, cells) == TM_OK; i++) {
    const size_t used = strlen(out);
    snprintf(out + used, capacity - used, "%s%s %s %s", i == 0 ? "" : ", ", cells[0].text, cells[1].defined ? cells[1].text : "-",
             cells[2].defined ? cells[2].text : "-");
  }
}

/* ---- one of each kind ---- */

#define VALUES 48
#define HEADER_A                                                                                                        \
  "{\"same\":{\"dtype\":\"F32\",\"shape\":[48],\"data_offsets\":[0,192]},"                                              \
  "\"turned\":{\"dtype\":\"F32\",\"shape\":[6,8],\"data_offsets\":[192,384]},"                                          \
  "\"old\":{\"dtype\":\"F32\",\"shape\":[12,4],\"data_offsets\":[384,576]},"                                            \
  "\"odd\":{\"dtype\":\"F8_E8M0\",\"shape\":[192],\"data_offsets\":[576,768]},"                                         \
  "\"gone\":{\"dtype\":\"F32\",\"shape\":[48],\"data_offsets\":[768,960]}}"
#define HEADER_B                                                                                                        \
  "{\"same\":{\"dtype\":\"F32\",\"shape\":[48],\"data_offsets\":[0,192]},"                                              \
  "\"flipped\":{\"dtype\":\"F32\",\"shape\":[8,6],\"data_offsets\":[192,384]},"                                         \
  "\"new\":{\"dtype\":\"F64\",\"shape\":[12,4],\"data_offsets\":[384,768]},"                                            \
  "\"odd\":{\"dtype\":\"F8_E8M0\",\"shape\":[192],\"data_offsets\":[768,960]},"                                         \
  "\"twin\":{\"dtype\":\"F32\",\"shape\":[48],\"data_offsets\":[960,1152]},"                                            \
  "\"twins\":{\"dtype\":\"F32\",\"shape\":[48],\"data_offsets\":[1152,1344]}}"

static void write_pair(fixture *f) {
  float a[5 * VALUES], b[7 * VALUES];
  double wide[VALUES];
  for (int i = 0; i < 5 * VALUES; i++) a[i] = (float)(i * i % 1009) / 7;
  memcpy(b, a, sizeof b / 7);
  for (int i = 0; i < 6; i++)
    for (int j = 0; j < 8; j++) b[VALUES + 6 * j + i] = a[VALUES + 8 * i + j];
  for (int i = 0; i < VALUES; i++) wide[i] = a[2 * VALUES + i];
  memcpy(b + 2 * VALUES, wide, sizeof wide);
  memcpy(b + 4 * VALUES, a + 3 * VALUES, sizeof b / 7);
  memcpy(b + 5 * VALUES, a, sizeof b / 7);
  memcpy(b + 6 * VALUES, a, sizeof b / 7);
  write_file(f, "a.safetensors", HEADER_A, a, sizeof a);
  write_file(f, "b.safetensors", HEADER_B, b, sizeof b);
  f->a = open_checkpoint(f, "a.safetensors");
  f->b = open_checkpoint(f, "b.safetensors");
}

#define EXPECTED                                                                                                        \
  "identical same same, identical odd odd, tied same twin, tied same twins, retyped old new, transposed turned flipped, removed gone -"

static void one_of_each_kind(void **state) {
  (void)state;
  static const uint32_t threads[] = { 1, 2, 5 }, flags[] = { 0, TM_CONTEXT_MAP_FILES };
  for (int i = 0; i < 6; i++) {
    fixture f;
    char found[2048];
    open_fixture(&f, threads[i % 3], flags[i / 3]);
    write_pair(&f);
    tm_job *job = start(&f);
    assert_int_equal(tm_job_wait(job, FOREVER, NULL), TM_OK);
    list_rows(job, found, sizeof found);
    assert_string_equal(found, EXPECTED);
    tm_progress progress = { .struct_size = sizeof progress };
    tm_job_progress(job, &progress);
    assert_int_equal(progress.bytes_total, 5 * 192 + 7 * 192);
    assert_int_equal(progress.bytes_done, 4 * 192 + 7 * 192);           /* nobody had to read what is gone */
    assert_true(progress.items_done == progress.items_total && progress.items_total == 11);
    tm_job_destroy(job);
    close_fixture(&f);
  }
}

/* ---- what is told of those that stay alone ---- */

/* `t` could be u or v, until it turns out to be the transpose of w. */
static void who_found_a_counterpart_is_not_ambiguous(void **state) {
  (void)state;
  fixture f;
  char found[256];
  const char *note = NULL;
  static const float a[6] = { 1, 2, 3, 4, 5, 6 }, b[18] = { 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 4, 2, 5, 3, 6 };
  open_fixture(&f, 2, 0);
  write_file(&f, "a.safetensors", "{\"t\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}", a, sizeof a);
  write_file(&f, "b.safetensors", "{\"u\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
                                  "\"v\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[24,48]},"
                                  "\"w\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[48,72]}}", b, sizeof b);
  f.a = open_checkpoint(&f, "a.safetensors");
  f.b = open_checkpoint(&f, "b.safetensors");
  tm_job *job = start(&f);
  assert_int_equal(tm_job_wait(job, FOREVER, NULL), TM_OK);
  list_rows(job, found, sizeof found);
  assert_string_equal(found, "transposed t w, added - u, added - v");
  assert_int_equal(tm_job_note(job, 0, &note), TM_OK);
  assert_non_null(strstr(note, "2 tensors under other names"));
  tm_job_destroy(job);
  close_fixture(&f);
}

/* ---- axes in reverse order ---- */

#define LINES 150000u
#define EQUAL 9                 /* the column */

/* [2, LINES, 2] against its reverse: each tile takes a part of the lines only. */
static void many_lines_in_reverse_order(void **state) {
  (void)state;
  char header[128], found[256];
  unsigned char *a = malloc(4 * LINES), *b = malloc(4 * LINES);
  assert_non_null(a);
  assert_non_null(b);
  for (uint32_t i = 0; i < 4 * LINES; i++) a[i] = (unsigned char)(i * UINT32_C(2654435761) >> 24);
  for (uint32_t i = 0; i < 4 * LINES; i++) b[(i % 2 * LINES + i / 2 % LINES) * 2 + i / 2 / LINES] = a[i];
  snprintf(header, sizeof header, "{\"t\":{\"dtype\":\"U8\",\"shape\":[2,%u,2],\"data_offsets\":[0,%u]}}", LINES, 4 * LINES);
  for (int differs = 0; differs < 2; differs++) {
    for (uint32_t flags = 0; flags <= TM_CONTEXT_MAP_FILES; flags += TM_CONTEXT_MAP_FILES) {
      fixture f;
      open_fixture(&f, 2, flags);
      b[3 * LINES] ^= (unsigned char)differs;
      write_file(&f, "a.safetensors", header, a, 4 * LINES);
      write_file(&f, "b.safetensors", header, b, 4 * LINES);
      b[3 * LINES] ^= (unsigned char)differs;
      f.a = open_checkpoint(&f, "a.safetensors");
      f.b = open_checkpoint(&f, "b.safetensors");
      tm_job *job = start(&f);
      assert_int_equal(tm_job_wait(job, FOREVER, NULL), TM_OK);
      list_rows(job, found, sizeof found);
      assert_string_equal(found, "transposed t t");
      tm_cell cells[32];
      assert_int_equal(tm_job_row(job, 0, cells), TM_OK);
      assert_int_equal(cells[EQUAL].count, 4 * LINES - (unsigned)differs);
      tm_job_destroy(job);
      close_fixture(&f);
    }
  }
  free(a);
  free(b);
}

/* ---- what does not go well ---- */

static void no_memory_at_any_moment(void **state) {
  (void)state;
  for (int mapped = 0; mapped < 2; mapped++) {
    fixture f;
    char found[2048];
    open_fixture(&f, 2, mapped != 0 ? TM_CONTEXT_MAP_FILES : 0);
    write_pair(&f);
    bool is_whole = false;
    for (uint64_t k = 1; !is_whole; k++) {
      tm_job *job = NULL;
      const uint64_t at = atomic_load(&f.heap.calls) + k;
      f.heap.fail_at = at;
      const tm_status started = tm_job_start_diff(f.context, f.a, f.b, NULL, &job, NULL);
      const tm_status ended = started == TM_OK ? tm_job_wait(job, FOREVER, NULL) : started;
      assert_true(ended == TM_OK || ended == TM_ERROR_NO_MEMORY);
      if (ended == TM_OK) list_rows(job, found, sizeof found);
      if (ended == TM_OK) assert_string_equal(found, EXPECTED);         /* without memory nothing is told that is not so */
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
  write_pair(&f);
  tm_job *job = NULL;
  static const char *const hole[] = { "*", NULL };
  const tm_diff_options wrong[] = {
    { .struct_size = 0 },
    { .struct_size = sizeof wrong[0], .flags = 2 },
    { .struct_size = sizeof wrong[0], .worst_numerics = 77 },
    { .struct_size = sizeof wrong[0], .reserved = 1 },
    { .struct_size = sizeof wrong[0], .include_count = 1 },
    { .struct_size = sizeof wrong[0], .exclude = hole, .exclude_count = 2 },
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    assert_int_equal(tm_job_start_diff(f.context, f.a, f.b, &wrong[i], &job, NULL), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_job_start_diff(f.context, NULL, f.b, NULL, &job, NULL), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_job_start_diff(f.context, f.a, NULL, NULL, &job, NULL), TM_ERROR_ARGUMENT);
  assert_null(job);
  close_fixture(&f);
}

/* ---- long work ---- */

/* Holes of 64 GiB that read as zeros: values that devices compare, bytes that the library does, content that has to be read
   whole, as bytes and as values. */
#define HUGE_BYTES UINT64_C(68719476736)
typedef struct long_case {
  const char *a, *b;
  bool        reads_both;       /* at once */
} long_case;
static const long_case long_cases[] = {
  { "{\"a\":{\"dtype\":\"BF16\",\"shape\":[34359738368],\"data_offsets\":[0,68719476736]}}",
    "{\"a\":{\"dtype\":\"F16\",\"shape\":[34359738368],\"data_offsets\":[0,68719476736]}}", true },
  { "{\"a\":{\"dtype\":\"C64\",\"shape\":[8589934592],\"data_offsets\":[0,68719476736]}}",
    "{\"a\":{\"dtype\":\"C64\",\"shape\":[8589934592],\"data_offsets\":[0,68719476736]}}", true },
  { "{\"a\":{\"dtype\":\"BF16\",\"shape\":[34359738368],\"data_offsets\":[0,68719476736]}}",
    "{\"b\":{\"dtype\":\"BF16\",\"shape\":[34359738368],\"data_offsets\":[0,68719476736]}}", false },
  { "{\"a\":{\"dtype\":\"BF16\",\"shape\":[34359738368],\"data_offsets\":[0,68719476736]}}",
    "{\"b\":{\"dtype\":\"F16\",\"shape\":[34359738368],\"data_offsets\":[0,68719476736]}}", false },
};
#define LONG_CASES (sizeof long_cases / sizeof long_cases[0])

static void write_long_case(fixture *f, const long_case *one) {
  assert_non_null(write_checkpoint(&f->files, "a.safetensors", one->a, 0, 8 + strlen(one->a) + HUGE_BYTES));
  assert_non_null(write_checkpoint(&f->files, "b.safetensors", one->b, 0, 8 + strlen(one->b) + HUGE_BYTES));
  f->a = open_checkpoint(f, "a.safetensors");
  f->b = open_checkpoint(f, "b.safetensors");
}

/* Until it is at work, which can be seen from outside whatever it does. */
static void wait_for_work(const tm_job *job) {
  tm_progress progress = { .struct_size = sizeof progress };
  do {
    tm_job_progress(job, &progress);
  } while (progress.bytes_done == 0 && !progress.finished);
  assert_int_equal(progress.finished, 0);
}

static uint64_t bytes_done(const tm_job *job) {
  tm_progress progress = { .struct_size = sizeof progress };
  tm_job_progress(job, &progress);
  return progress.bytes_done;
}

/* What is under way is brought to an end, and nothing is begun: a few tiles of 32 MiB at most. */
#define MOST_BYTES_AFTER_CANCEL (UINT64_C(16) << 25)

static void it_can_be_cancelled(void **state) {
  (void)state;
  for (size_t i = 0; i < 2 * LONG_CASES; i++) {
    fixture f;
    open_fixture(&f, 2, i < LONG_CASES ? 0 : TM_CONTEXT_MAP_FILES);
    write_long_case(&f, &long_cases[i % LONG_CASES]);
    tm_job *job = start(&f);
    wait_for_work(job);
    tm_job_cancel(job);
    const uint64_t before = bytes_done(job);
    assert_int_equal(tm_job_wait(job, FOREVER, NULL), TM_ERROR_CANCELLED);
    assert_true(bytes_done(job) - before <= MOST_BYTES_AFTER_CANCEL);
    tm_job_destroy(job);
    close_fixture(&f);
  }
}

/* Mapped or read, on the side that is being read: it ends soon, says of which tensor, and tells nothing of it. */
static void a_file_that_shrinks_ends_it(void **state) {
  (void)state;
  for (size_t i = 0; i < 4 * LONG_CASES; i++) {
    fixture f;
    tm_error error = { .struct_size = sizeof error };
    const long_case *one = &long_cases[i / 2 % LONG_CASES];
    const bool is_b = i % 2 != 0;
    if (is_b && !one->reads_both) continue;         /* all of a is read first */
    open_fixture(&f, 2, i < 2 * LONG_CASES ? 0 : TM_CONTEXT_MAP_FILES);
    write_long_case(&f, one);
    tm_job *job = start(&f);
    wait_for_work(job);
    assert_int_equal(truncate(scratch_path(&f.files, is_b ? "b.safetensors" : "a.safetensors"), 10000), 0);
    assert_int_equal(tm_job_wait(job, FOREVER, &error), TM_ERROR_CHANGED);
    assert_non_null(strstr(error.text, "tensor '"));
    assert_int_equal(tm_job_row_count(job), 0);
    tm_job_destroy(job);
    close_fixture(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_of_each_kind),
    cmocka_unit_test(who_found_a_counterpart_is_not_ambiguous),
    cmocka_unit_test(many_lines_in_reverse_order),
    cmocka_unit_test(no_memory_at_any_moment),
    cmocka_unit_test(wrong_calls_are_refused),
    cmocka_unit_test(it_can_be_cancelled),
    cmocka_unit_test(a_file_that_shrinks_ends_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
