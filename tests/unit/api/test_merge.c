/* SPDX-License-Identifier: Apache-2.0 */
/* Merging: wrong calls, cancelling, no memory at any moment, inputs that change, and what is left of it: nothing. */
#define _GNU_SOURCE
#include "api_case.h"

#include <dirent.h>
#include <math.h>
#include <sys/file.h>

#define FOREVER UINT64_MAX
#define MODELS 2

typedef struct fixture {
  scratch        files;
  counting_heap  heap;
  tm_context    *context;
  tm_checkpoint *models[MODELS];
  char           paths[MODELS][1024];
  char           out[1024];
} fixture;

static void open_fixture(fixture *f, const char *header, uint64_t data_bytes, uint64_t file_bytes, uint32_t flags, bool slow) {
  static const char *const cpu[] = { "cpu" };
  memset(f, 0, sizeof *f);
  assert_true(scratch_init(&f->files));
  tm_context_options options = options_with(&f->heap);
  options.flags = flags;
  if (slow) {
    options.thread_count = 1;
    options.excluded_devices = cpu;
    options.excluded_device_count = 1;
  }
  tm_error error = { .struct_size = sizeof error };
  if (tm_context_create(&options, &f->context, &error) != TM_OK) fail_msg("%s", error.text);
  for (uint32_t i = 0; i < MODELS; i++) {
    char name[32];
    (void)snprintf(name, sizeof name, "model%u.safetensors", i);
    (void)snprintf(f->paths[i], sizeof f->paths[i], "%s", write_checkpoint(&f->files, name, header, data_bytes, file_bytes));
    if (tm_checkpoint_open(f->context, f->paths[i], 0, &f->models[i], &error) != TM_OK) fail_msg("%s", error.text);
  }
  (void)snprintf(f->out, sizeof f->out, "%s", scratch_path(&f->files, "out.safetensors"));
}

static void close_fixture(fixture *f) {
  for (uint32_t i = 0; i < MODELS; i++) tm_checkpoint_close(f->models[i]);
  tm_context_destroy(f->context);
  heap_is_empty(&f->heap);
  scratch_deinit(&f->files);
}

/* Files in the folder beside the models. */
static uint32_t others(const fixture *f) {
  DIR *folder = opendir(f->files.folder);
  uint32_t count = 0;
  for (const struct dirent *found = readdir(folder); found != NULL; found = readdir(folder))
    count += found->d_name[0] != '.' && strncmp(found->d_name, "model", 5) != 0;
  closedir(folder);
  return count;
}

static tm_merge_options options_of(const fixture *f, uint32_t method) {
  return (tm_merge_options){ .struct_size = sizeof(tm_merge_options), .method = method, .models = f->models,
                             .model_count = MODELS };
}

/* The last model is the base of those methods that have one. */
static tm_merge_options whole_options_of(const fixture *f, uint32_t method) {
  static const tm_merge_rule half = { .what = TM_MERGE_SET_DENSITY, .model = TM_MERGE_EVERY_MODEL, .value = 0.5 };
  tm_merge_options options = options_of(f, method);
  if (method == TM_MERGE_LINEAR || method == TM_MERGE_SLERP) return options;
  options.base = f->models[--options.model_count];
  options.rules = &half;
  options.rule_count = method == TM_MERGE_TASK ? 0 : 1;
  return options;
}

static tm_merge_plan *plan_of(const fixture *f, uint32_t method) {
  const tm_merge_options options = options_of(f, method);
  tm_error error = { .struct_size = sizeof error };
  tm_merge_plan *plan = NULL;
  if (tm_merge_plan_create(f->context, &options, f->out, &plan, &error) != TM_OK) fail_msg("%s", error.text);
  return plan;
}

static tm_job *start(tm_merge_plan *plan) {
  tm_error error = { .struct_size = sizeof error };
  tm_job *job = NULL;
  if (tm_job_start_merge(plan, NULL, &job, &error) != TM_OK) fail_msg("%s", error.text);
  return job;
}

#define THREE                                                                                 \
  "{\"w\":{\"dtype\":\"F32\",\"shape\":[64,40],\"data_offsets\":[0,10240]},"                  \
  "\"h\":{\"dtype\":\"BF16\",\"shape\":[30],\"data_offsets\":[10240,10300]},"                 \
  "\"i\":{\"dtype\":\"I32\",\"shape\":[4],\"data_offsets\":[10300,10316]}}"
#define THREE_BYTES 10316u

/* ---- plans ---- */

static void a_plan_says_what_will_be(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, THREE, THREE_BYTES, 0, 0, false);
  tm_merge_plan *plan = plan_of(&f, TM_MERGE_LINEAR);
  tm_merge_description d = { .struct_size = sizeof d };
  tm_merge_plan_describe(plan, &d);
  assert_int_equal(d.method, TM_MERGE_LINEAR);
  assert_int_equal(d.tensor_count, 3);
  assert_int_equal(d.merged_count, 2);
  assert_int_equal(d.copied_count, 1);
  assert_int_equal(d.problem_count, 0);
  assert_int_equal(d.read_bytes, 2 * 10300 + 16);
  assert_int_equal(d.written_bytes, THREE_BYTES);
  assert_true(d.file_bytes > THREE_BYTES && d.memory_bytes != 0);
  assert_int_equal(d.writer_format, TM_WRITER_SAFETENSORS);
  tm_writer_file_description file = { .struct_size = sizeof file };
  assert_int_equal(tm_merge_plan_file(plan, 0, &file), TM_OK);
  assert_string_equal(file.path, f.out);
  assert_int_equal(file.replaces, 0);
  assert_int_equal(file.bytes, d.file_bytes);
  assert_int_equal(tm_merge_plan_file(plan, 1, &file), TM_END);
  tm_cell cells[16];
  uint32_t count = 0;
  assert_non_null(tm_merge_plan_columns(plan, &count));
  assert_int_equal(count, 9);
  assert_int_equal(tm_merge_plan_row_count(plan), 3);
  assert_int_equal(tm_merge_plan_row(plan, 2, cells), TM_OK);
  assert_string_equal(cells[0].text, "i");
  assert_string_equal(cells[1].text, "copy");
  assert_int_equal(tm_merge_plan_row(plan, 3, cells), TM_END);
  tm_merge_part_description part = { .struct_size = sizeof part };
  assert_int_equal(tm_merge_plan_part(plan, 0, 1, &part), TM_OK);
  assert_true(part.weight == 0.5 && isnan(part.density) && isnan(part.scale) && isnan(part.angle));
  assert_string_equal(part.name, part.model == 0 ? "model0.safetensors" : "model1.safetensors");
  assert_int_equal(tm_merge_plan_part(plan, 0, 2, &part), TM_END);
  assert_int_equal(tm_merge_plan_part(plan, 2, 0, &part), TM_OK);
  assert_true(part.weight == 1);
  assert_int_equal(tm_merge_plan_part(plan, 2, 1, &part), TM_END);
  assert_int_equal(tm_merge_plan_part(plan, 3, 0, &part), TM_END);
  assert_non_null(strstr(tm_merge_plan_provenance(plan), "\"method\":\"linear\""));
  assert_int_equal(others(&f), 0);
  tm_merge_plan_destroy(plan);
  tm_merge_plan_destroy(NULL);
  close_fixture(&f);
}

static void a_plan_is_carried_out_once(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, THREE, THREE_BYTES, 0, 0, false);
  tm_merge_plan *plan = plan_of(&f, TM_MERGE_LINEAR);
  tm_job *second = NULL;
  const tm_merge_job_options wrong = { .struct_size = sizeof wrong, .reserved = 1 };
  assert_int_equal(tm_job_start_merge(plan, &wrong, &second, NULL), TM_ERROR_ARGUMENT);
  tm_job *job = start(plan);
  assert_int_equal(tm_job_start_merge(plan, NULL, &second, NULL), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_job_wait(job, FOREVER, NULL), TM_OK);
  tm_progress progress = { .struct_size = sizeof progress };
  tm_job_progress(job, &progress);
  assert_int_equal(progress.bytes_done, progress.bytes_total);
  assert_int_equal(progress.bytes_total, 2 * 10300 + 16);
  assert_int_equal(progress.items_done, 3);
  assert_int_equal(tm_job_start_merge(plan, NULL, &second, NULL), TM_ERROR_ARGUMENT);
  tm_job_destroy(job);
  tm_merge_plan_destroy(plan);
  assert_int_equal(others(&f), 1);
  close_fixture(&f);
}

/* A living writer of the same holds the lock of what it writes. */
static void who_else_writes_it_is_told(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, THREE, THREE_BYTES, 0, 0, false);
  tm_error error = { .struct_size = sizeof error };
  const int other = open(scratch_path(&f.files, "out.safetensors.0123456789ab.part"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  assert_true(other >= 0);
  assert_int_equal(flock(other, LOCK_EX | LOCK_NB), 0);
  tm_merge_plan *plan = plan_of(&f, TM_MERGE_LINEAR);
  tm_job *job = start(plan);
  assert_int_equal(tm_job_wait(job, FOREVER, &error), TM_BUSY);
  assert_int_equal(error.code, TM_BUSY);
  assert_non_null(strstr(error.text, "somebody is writing this right now"));
  tm_job_destroy(job);
  tm_merge_plan_destroy(plan);
  assert_int_equal(close(other), 0);
  assert_int_equal(others(&f), 1);
  close_fixture(&f);
}

static void wrong_calls_are_refused(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, THREE, THREE_BYTES, 0, 0, false);
  tm_merge_plan *plan = NULL;
  tm_checkpoint *hole[] = { f.models[0], NULL };
  tm_merge_options wrong[7];
  for (uint32_t i = 0; i < 7; i++) wrong[i] = options_of(&f, TM_MERGE_LINEAR);
  wrong[0].models = NULL;
  wrong[1].models = hole;
  wrong[2].rule_count = 1;
  wrong[3].flags = 0x80;
  wrong[4].writer_format = 3;
  wrong[5].struct_size = 4;
  wrong[6].reserved = 1;
  for (uint32_t i = 0; i < 7; i++) {
    tm_error error = { .struct_size = sizeof error };
    assert_int_equal(tm_merge_plan_create(f.context, &wrong[i], f.out, &plan, &error), TM_ERROR_ARGUMENT);
    assert_true(error.text[0] != '\0');
  }
  const tm_merge_options options = options_of(&f, TM_MERGE_LINEAR);
  assert_int_equal(tm_merge_plan_create(f.context, NULL, f.out, &plan, NULL), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_merge_plan_create(f.context, &options, NULL, &plan, NULL), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_merge_plan_create(f.context, &options, "", &plan, NULL), TM_ERROR_ARGUMENT);
  assert_int_equal(others(&f), 0);
  close_fixture(&f);
}

/* Whatever it does at that moment: the last that it looks at is each tensor, and all bytes of what is equal. */
static void planning_ends_when_it_is_wanted_no_more(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, THREE, THREE_BYTES, 0, 0, false);
  uint64_t cancelled_count = 0, whole_count = 0;
  for (uint64_t k = 0; whole_count == 0; k++) {
    tm_merge_options options = options_of(&f, TM_MERGE_LINEAR);
    tm_error error = { .struct_size = sizeof error };
    tm_merge_plan *plan = NULL;
    const uint64_t calls = atomic_load(&f.heap.calls);
    options.cancelled = &f.heap.cancelled;
    f.heap.cancelled = k == 0;
    f.heap.cancel_at = k == 0 ? 0 : calls + k;
    const tm_status status = tm_merge_plan_create(f.context, &options, f.out, &plan, &error);
    assert_true(status == TM_OK || status == TM_ERROR_CANCELLED);
    if (status == TM_ERROR_CANCELLED) assert_string_equal(error.text, "cancelled");
    cancelled_count += status == TM_ERROR_CANCELLED;
    whole_count += atomic_load(&f.heap.calls) < calls + k;      /* it came too late */
    f.heap.cancelled = 0;
    if (status == TM_OK) {
      f.heap.cancelled = 1;     /* which is nothing to the job */
      tm_job *job = start(plan);
      assert_int_equal(tm_job_wait(job, FOREVER, NULL), TM_OK);
      tm_job_destroy(job);
      assert_int_equal(unlink(f.out), 0);
    }
    tm_merge_plan_destroy(plan);
    assert_true(k < 5000);
  }
  f.heap.cancel_at = 0;
  assert_true(cancelled_count >= 4);    /* at once, and as long as there are tensors to come */
  assert_int_equal(others(&f), 0);
  close_fixture(&f);
}

/* ---- what does not go well ---- */

/* Through all that a plan and its job allocate. */
static void no_memory_at_any_moment(void **state) {
  (void)state;
  for (uint32_t method = TM_MERGE_LINEAR; method <= TM_MERGE_DARE; method++) {
    fixture f;
    open_fixture(&f, THREE, THREE_BYTES, 0, 0, false);
    bool is_whole = false;
    for (uint64_t k = 1; !is_whole; k++) {
      const tm_merge_options options = whole_options_of(&f, method);
      const uint64_t at = atomic_load(&f.heap.calls) + k;
      tm_merge_plan *plan = NULL;
      tm_job *job = NULL;
      f.heap.fail_at = at;
      tm_status status = tm_merge_plan_create(f.context, &options, f.out, &plan, NULL);
      if (status == TM_OK) status = tm_job_start_merge(plan, NULL, &job, NULL);
      if (status == TM_OK) status = tm_job_wait(job, FOREVER, NULL);
      assert_true(status == TM_OK || status == TM_ERROR_NO_MEMORY);
      assert_int_equal(others(&f), status == TM_OK);
      is_whole = atomic_load(&f.heap.calls) < at;
      if (is_whole) assert_int_equal(status, TM_OK);
      tm_job_destroy(job);
      tm_merge_plan_destroy(plan);
      (void)unlink(f.out);
      assert_true(k < 5000);
    }
    f.heap.fail_at = 0;
    close_fixture(&f);
  }
}

/* Changed after it was opened: what is there stays. */
static void an_input_that_changes_ends_it(void **state) {
  static const char old[] = "what was there";
  (void)state;
  for (uint32_t flags = 0; flags <= TM_CONTEXT_MAP_FILES; flags += TM_CONTEXT_MAP_FILES) {
    for (int shrinks = 0; shrinks < 2; shrinks++) {
      fixture f;
      open_fixture(&f, THREE, THREE_BYTES, 0, flags, false);
      assert_non_null(scratch_write(&f.files, "out.safetensors", old, sizeof old));
      tm_merge_plan *plan = plan_of(&f, TM_MERGE_LINEAR);
      if (shrinks != 0) assert_int_equal(truncate(f.paths[1], 9000), 0);
      else assert_non_null(write_checkpoint(&f.files, "model1.safetensors", THREE, THREE_BYTES, 20000));
      tm_job *job = start(plan);
      tm_error error = { .struct_size = sizeof error };
      assert_int_equal(tm_job_wait(job, FOREVER, &error), TM_ERROR_CHANGED);
      assert_non_null(strstr(error.text, "model1.safetensors"));
      tm_job_destroy(job);
      tm_merge_plan_destroy(plan);
      uint64_t size = 0;
      unsigned char *found = scratch_slurp(f.out, &size);
      assert_int_equal(size, sizeof old);
      assert_memory_equal(found, old, size);
      free(found);
      assert_int_equal(others(&f), 1);
      close_fixture(&f);
    }
  }
}

#define HUGE_BYTES UINT64_C(268435456)
#define HUGE_HEADER "{\"huge\":{\"dtype\":\"BF16\",\"shape\":[134217728],\"data_offsets\":[0,268435456]}}"

/* A few pieces of the 512 MiB that both models have: what lanes have in hand may come in after the cancel, no more. */
#define IN_HAND_BYTES UINT64_C(16777216)

static void wait_for_bytes(tm_job *job, tm_progress *out_progress) {
  *out_progress = (tm_progress){ .struct_size = sizeof *out_progress };
  for (tm_job_progress(job, out_progress); out_progress->bytes_done == 0 && !out_progress->finished; usleep(200))
    tm_job_progress(job, out_progress);
  assert_int_equal(out_progress->finished, 0);
}

static void little_is_done_after_a_cancel(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, HUGE_HEADER, 0, 8 + strlen(HUGE_HEADER) + HUGE_BYTES, 0, true);
  for (uint32_t i = 0; i < 5; i++) {
    tm_merge_plan *plan = plan_of(&f, i % 2 == 0 ? TM_MERGE_LINEAR : TM_MERGE_SLERP);
    tm_job *job = start(plan);
    tm_progress before, after = { .struct_size = sizeof after };
    wait_for_bytes(job, &before);
    tm_job_cancel(job);
    tm_job_progress(job, &before);
    assert_int_equal(tm_job_wait(job, FOREVER, NULL), TM_ERROR_CANCELLED);
    tm_job_progress(job, &after);
    assert_true(after.bytes_done - before.bytes_done <= IN_HAND_BYTES);
    assert_true(after.bytes_done < after.bytes_total);
    assert_int_equal(others(&f), 0);
    tm_job_destroy(job);
    tm_merge_plan_destroy(plan);
  }
  close_fixture(&f);
}

/* While it is read, mapped or not, and looked at first or computed at once. */
static void an_input_that_shrinks_meanwhile_ends_it(void **state) {
  (void)state;
  for (uint32_t i = 0; i < 4; i++) {
    fixture f;
    open_fixture(&f, HUGE_HEADER, 0, 8 + strlen(HUGE_HEADER) + HUGE_BYTES, i < 2 ? 0 : TM_CONTEXT_MAP_FILES, true);
    tm_merge_plan *plan = plan_of(&f, i % 2 == 0 ? TM_MERGE_LINEAR : TM_MERGE_SLERP);
    tm_job *job = start(plan);
    tm_progress progress;
    wait_for_bytes(job, &progress);
    assert_int_equal(truncate(f.paths[1], 10000), 0);
    tm_error error = { .struct_size = sizeof error };
    assert_int_equal(tm_job_wait(job, FOREVER, &error), TM_ERROR_CHANGED);
    assert_non_null(strstr(error.text, "model1.safetensors"));
    tm_job_progress(job, &progress);
    assert_true(progress.bytes_done < progress.bytes_total);
    assert_int_equal(others(&f), 0);
    tm_job_destroy(job);
    tm_merge_plan_destroy(plan);
    close_fixture(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_plan_says_what_will_be),
    cmocka_unit_test(a_plan_is_carried_out_once),
    cmocka_unit_test(who_else_writes_it_is_told),
    cmocka_unit_test(wrong_calls_are_refused),
    cmocka_unit_test(planning_ends_when_it_is_wanted_no_more),
    cmocka_unit_test(no_memory_at_any_moment),
    cmocka_unit_test(an_input_that_changes_ends_it),
    cmocka_unit_test(little_is_done_after_a_cancel),
    cmocka_unit_test(an_input_that_shrinks_meanwhile_ends_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
