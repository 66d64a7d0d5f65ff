/* SPDX-License-Identifier: Apache-2.0 */
/* Broken promises and crashes are remembered in the folder for state: by the next context, for one build, until forgiven. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/kept_file.h"
#include "fakes/faulty_case.h"
#include "formats/scratch.h"

static const fault_plan broken_launch = { .function = FAULT_LAUNCH, .first = 1, .last = 1, .kind = FAULT_STATUS,
                                          .status = TM_ERROR_INTERNAL };

static uint32_t count_violations(tm_context *context) {
  tm_violation_description found = { .struct_size = sizeof found };
  uint32_t count = 0;
  while (tm_violation_describe(context, count, &found) == TM_OK) count++;
  return count;
}

static tm_violation_description violation_at(tm_context *context, uint32_t index) {
  tm_violation_description found = { .struct_size = sizeof found };
  assert_int_equal(tm_violation_describe(context, index, &found), TM_OK);
  return found;
}

/* Leaves one broken promise about `add` in the folder. */
static void break_a_promise(const char *folder) {
  faulty_case one = { .plan = broken_launch, .state_folder = folder };
  faulty_case_open(&one);
  assert_false(faulty_case_runs_there(&one, TM_OP_ADD));
  const tm_violation_description found = violation_at(one.context, 0);
  assert_int_equal(found.op, TM_OP_ADD);
  assert_string_equal(found.op_name, "add");
  assert_string_equal(found.formats, "f32,f32,f32");
  assert_int_equal(found.count, 1);
  assert_int_equal(found.remembered, 0);
  assert_string_equal(found.device_name, "faulty:0");
  tm_context_destroy(one.context);
}

static bool has_file(const scratch *files, const char *prefix) {
  DIR *folder = opendir(files->folder);
  bool found = false;
  assert_non_null(folder);
  for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
    found |= strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
  closedir(folder);
  return found;
}

static void a_broken_promise_is_remembered_and_forgiven(void **state) {
  (void)state;
  scratch files;
  assert_true(scratch_init(&files));
  break_a_promise(files.folder);
  faulty_case next = { .state_folder = files.folder };
  faulty_case_open(&next);
  assert_int_equal(count_violations(next.context), 1);
  const tm_violation_description found = violation_at(next.context, 0);
  tm_device_description device = { .struct_size = sizeof device };
  assert_int_equal(tm_device_describe(next.context, found.device, &device), TM_OK);
  assert_true(found.count != 0 && device.violation_count == found.count);
  assert_int_equal(found.remembered, 1);
  assert_int_equal(found.count, 1);
  assert_non_null(strstr(found.reason, "internal error"));
  assert_false(faulty_case_runs_there(&next, TM_OP_ADD));
  assert_true(faulty_case_runs_there(&next, TM_OP_NEG));

  uint32_t count = 9;
  tm_error error = TM_ERROR_INIT;
  assert_int_equal(tm_context_forgive(next.context, "faulty:7", &count, &error), TM_ERROR_NOT_FOUND);
  assert_non_null(strstr(error.text, "faulty:7"));
  assert_int_equal(count, 9);
  assert_int_equal(tm_context_forgive(next.context, "reference", &count, NULL), TM_OK);
  assert_int_equal(count, 0);
  assert_int_equal(tm_context_forgive(next.context, "faulty:0", &count, NULL), TM_OK);
  assert_int_equal(count, 1);
  assert_int_equal(count_violations(next.context), 0);
  assert_true(faulty_case_runs_there(&next, TM_OP_ADD));
  tm_context_destroy(next.context);

  faulty_case third = { .state_folder = files.folder };
  faulty_case_open(&third);
  assert_int_equal(count_violations(third.context), 0);
  assert_true(faulty_case_runs_there(&third, TM_OP_ADD));
  tm_context_destroy(third.context);
  scratch_deinit(&files);
}

/* Also of a backend that is not loaded, by its name. */
static void who_is_not_there_can_be_forgiven(void **state) {
  (void)state;
  scratch files;
  assert_true(scratch_init(&files));
  break_a_promise(files.folder);
  const tm_context_options options = { .struct_size = sizeof options, .thread_count = 1, .state_folder = files.folder };
  tm_context *context = open_context(&options);
  assert_int_equal(count_violations(context), 0);
  uint32_t count = 0;
  assert_int_equal(tm_context_forgive(context, "faulty", &count, NULL), TM_OK);
  assert_int_equal(count, 1);
  assert_int_equal(tm_context_forgive(context, "faulty", &count, NULL), TM_ERROR_NOT_FOUND);
  tm_context_destroy(context);
  scratch_deinit(&files);
}

static void another_build_starts_afresh(void **state) {
  (void)state;
  scratch files;
  assert_true(scratch_init(&files));
  break_a_promise(files.folder);
  faulty_case mended = { .state_folder = files.folder, .file = TM_BINARY_DIR "/tests/fakes/faulty_rebuilt.so" };
  faulty_case_open(&mended);
  assert_int_equal(count_violations(mended.context), 0);
  assert_true(faulty_case_runs_there(&mended, TM_OP_ADD));
  tm_context_destroy(mended.context);
  faulty_case old = { .state_folder = files.folder };
  faulty_case_open(&old);
  assert_int_equal(count_violations(old.context), 0);   /* dropped when the other build was seen */
  tm_context_destroy(old.context);
  scratch_deinit(&files);
}

/* ---- files that are not as they were left ---- */

static uint32_t occurrences(const char *text, const char *words) {
  uint32_t count = 0;
  for (const char *at = strstr(text, words); at != NULL; at = strstr(at + 1, words)) count++;
  return count;
}

static void damaged_content_is_ignored_with_one_line(void **state) {
  (void)state;
  for (int damage = 0; damage < 4; damage++) {
    scratch files;
    assert_true(scratch_init(&files));
    break_a_promise(files.folder);
    FILE *file = fopen(scratch_path(&files, "health"), "r+b");
    assert_non_null(file);
    if (damage == 0) assert_int_equal(fseek(file, 50, SEEK_SET), 0);
    if (damage <= 1) (void)fputs("x", file);
    if (damage == 2) assert_int_equal(ftruncate(fileno(file), 60), 0);
    if (damage == 3) assert_int_equal(ftruncate(fileno(file), INT64_C(1) << 30), 0);
    fclose(file);
    faulty_case next = { .state_folder = files.folder };
    faulty_case_open(&next);
    assert_int_equal(count_violations(next.context), 0);
    assert_int_equal(occurrences(next.lines.text, "ignored"), 1);
    assert_true(faulty_case_runs_there(&next, TM_OP_ADD));
    tm_context_destroy(next.context);
    faulty_case third = { .plan = broken_launch, .state_folder = files.folder };
    faulty_case_open(&third);                           /* it was written anew */
    assert_int_equal(occurrences(third.lines.text, "ignored"), 0);
    tm_context_destroy(third.context);
    scratch_deinit(&files);
  }
}

static void without_a_folder_only_the_memory_is_short(void **state) {
  (void)state;
  scratch files;
  assert_true(scratch_init(&files));
  assert_non_null(scratch_write(&files, "no-folder", "x", 1));
  static char folder[512];
  snprintf(folder, sizeof folder, "%s/no-folder/deep", files.folder);
  faulty_case one = { .plan = broken_launch, .state_folder = folder };
  faulty_case_open(&one);
  assert_false(faulty_case_runs_there(&one, TM_OP_ADD));
  assert_int_equal(count_violations(one.context), 1);
  assert_int_equal(occurrences(one.lines.text, "nothing is kept"), 1);  /* that is all there is to say of it */
  assert_int_equal(occurrences(one.lines.text, "not remembered"), 0);
  assert_int_equal(occurrences(one.lines.text, "go unnoticed"), 0);
  tm_context_destroy(one.context);
  scratch_deinit(&files);
}

static void the_folder_is_made(void **state) {
  (void)state;
  scratch files;
  assert_true(scratch_init(&files));
  scratch deep;
  snprintf(deep.folder, sizeof deep.folder, "%.200s/state", files.folder);
  break_a_promise(deep.folder);
  assert_true(has_file(&deep, "health"));
  assert_false(has_file(&deep, "running-"));
  scratch_deinit(&deep);
  scratch_deinit(&files);
}

/* Of the same build and device under another name: kept for whoever has it, and held against nobody else. */
static void what_another_name_broke_is_not_held_against_this_one(void **state) {
  (void)state;
  scratch files;
  uint64_t bytes = 0;
  assert_true(scratch_init(&files));
  break_a_promise(files.folder);
  tm_memory memory;
  char *text = NULL;
  tm_memory_init(&memory, 0);
  assert_int_equal(tm_kept_file_read(&memory, scratch_path(&files, "health"), 4096, &text, &bytes, NULL), TM_OK);
  char *name = memmem(text, bytes, "faulty", 6);
  assert_non_null(name);
  memcpy(name, "others", 6);
  assert_int_equal(tm_kept_file_replace(files.path, text, bytes, NULL), TM_OK);
  tm_memory_free(&memory, text, bytes);
  for (int time = 0; time < 2; time++) {
    faulty_case next = { .state_folder = files.folder };
    faulty_case_open(&next);
    assert_int_equal(count_violations(next.context), 0);
    assert_true(faulty_case_runs_there(&next, TM_OP_ADD));
    tm_context_destroy(next.context);
  }
  assert_int_equal(tm_kept_file_read(&memory, scratch_path(&files, "health"), 4096, &text, &bytes, NULL), TM_OK);
  assert_non_null(memmem(text, bytes, "others", 6));
  tm_memory_free(&memory, text, bytes);
  scratch_deinit(&files);
}

/* It said yes to the operation, so its argument is its own affair, and no mistake of the caller's. */
static void an_argument_that_was_accepted_is_a_promise(void **state) {
  (void)state;
  static const fault_function functions[] = { FAULT_PREPARE, FAULT_LAUNCH };
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    faulty_case one = { .plan = { .function = functions[i], .first = 1, .last = 1, .kind = FAULT_STATUS, .status = TM_ERROR_ARGUMENT } };
    faulty_case_open(&one);
    assert_false(faulty_case_runs_there(&one, TM_OP_ADD));
    assert_int_equal(count_violations(one.context), 1);
    assert_int_equal(violation_at(one.context, 0).op, TM_OP_ADD);
    tm_context_destroy(one.context);
  }
}

/* ---- crashes ---- */

/* A process of its own runs `add` until it crashes at that call, or ends well. */
static int run_mapped_in_child(const char *folder, uint32_t flags, fault_function function, uint64_t crash_at, int runs) {
  const pid_t child = fork();
  if (child == 0) {
    faulty_case one = { .plan = { .function = function, .first = crash_at, .last = crash_at, .kind = FAULT_CRASH },
                        .state_folder = folder,
                        .flags = flags };
    (void)signal(SIGABRT, SIG_DFL);
    faulty_case_open(&one);
    for (int i = 0; i < runs; i++) (void)faulty_case_runs_there(&one, TM_OP_ADD);
    tm_context_destroy(one.context);
    _exit(0);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  return status;
}

static int run_in_child(const char *folder, fault_function function, uint64_t crash_at, int runs) {
  return run_mapped_in_child(folder, 0, function, crash_at, runs);
}

/* Whoever ended the process: it is held against nobody, and what was under way may be tried again. */
static void one_end_is_not_held_against_anybody(void **state) {
  (void)state;
  static const fault_function functions[] = { FAULT_OPEN, FAULT_QUERY, FAULT_PREPARE, FAULT_LAUNCH };
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    scratch files;
    assert_true(scratch_init(&files));
    assert_true(WIFSIGNALED(run_in_child(files.folder, functions[i], 1, 2)));
    faulty_case next = { .state_folder = files.folder };
    faulty_case_open(&next);
    assert_false(has_file(&files, "running-"));
    assert_int_equal(count_violations(next.context), 0);
    assert_int_equal(describe_device(next.context, "faulty:0").state, TM_DEVICE_READY);
    assert_true(faulty_case_runs_there(&next, TM_OP_ADD));
    uint32_t count = 9;
    (void)tm_context_forgive(next.context, "faulty:0", &count, NULL);
    assert_int_equal(count, 0);
    tm_context_destroy(next.context);
    scratch_deinit(&files);
  }
}

/* The promise is what counts, and what is told of. */
static void a_suspect_that_breaks_a_promise_is_known_for_that(void **state) {
  (void)state;
  scratch files;
  assert_true(scratch_init(&files));
  assert_true(WIFSIGNALED(run_in_child(files.folder, FAULT_LAUNCH, 1, 2)));
  break_a_promise(files.folder);
  faulty_case next = { .state_folder = files.folder };
  faulty_case_open(&next);
  assert_int_equal(count_violations(next.context), 1);
  const tm_violation_description found = violation_at(next.context, 0);
  assert_int_equal(found.count, 1);
  assert_non_null(strstr(found.reason, "internal error"));
  tm_context_destroy(next.context);
  scratch_deinit(&files);
}

static void the_second_crash_is_known_at_the_next_start(void **state) {
  (void)state;
  for (uint64_t crash_at = 1; crash_at <= 4; crash_at++) {      /* watched, and the first that is not */
    scratch files;
    assert_true(scratch_init(&files));
    for (int i = 0; i < 2; i++) {
      const int status = run_in_child(files.folder, FAULT_LAUNCH, crash_at, 6);
      assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
      assert_true(has_file(&files, "running-"));
    }
    faulty_case next = { .state_folder = files.folder };
    faulty_case_open(&next);
    assert_false(has_file(&files, "running-"));
    assert_int_equal(count_violations(next.context), 1);
    const tm_violation_description found = violation_at(next.context, 0);
    assert_int_equal(found.op, TM_OP_ADD);
    assert_int_equal(found.remembered, 1);
    assert_non_null(strstr(found.reason, "ended while they were in launch"));
    assert_false(faulty_case_runs_there(&next, TM_OP_ADD));
    assert_true(faulty_case_runs_there(&next, TM_OP_NEG));
    tm_context_destroy(next.context);
    assert_false(has_file(&files, "running-"));
    scratch_deinit(&files);
  }
}

/* Whoever is killed is mostly at work in what is compiled in: that says nothing of it. */
static void what_is_compiled_in_is_not_suspected(void **state) {
  (void)state;
  scratch files;
  assert_true(scratch_init(&files));
  static const char *const own[] = { "cpu" };
  const tm_context_options options = { .struct_size = sizeof options, .devices = own, .device_count = 1, .thread_count = 1,
                                       .state_folder = files.folder };
  tm_context *context = open_context(&options);
  tm_tensor *x = vector_of(context, 100, 1, 2), *y = vector_of(context, 100, 0, 0);
  const tm_run_options run = { .struct_size = sizeof run, .worst_numerics = TM_NUMERICS_DEFAULT,
                               .device_plus_one = device_of(context, "cpu:0") + 1 };
  assert_int_equal(tm_run(context, TM_OP_NEG, NULL, 0, &x, 1, &y, 1, &run, NULL), TM_OK);
  assert_false(has_file(&files, "running-"));
  tm_tensor_destroy(x);
  tm_tensor_destroy(y);
  tm_context_destroy(context);
  scratch_deinit(&files);
}

/* Before any run; one that crashes as such is not used at all. */
static void a_crash_in_any_call_is_known(void **state) {
  (void)state;
  static const fault_function functions[] = { FAULT_OPEN, FAULT_QUERY, FAULT_PREPARE };
  static const char *const names[] = { "in open", "in query", "in prepare" };
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    scratch files;
    assert_true(scratch_init(&files));
    for (int time = 0; time < 2; time++) assert_true(WIFSIGNALED(run_in_child(files.folder, functions[i], 1, 2)));
    faulty_case next = { .state_folder = files.folder };
    faulty_case_open(&next);
    assert_int_equal(count_violations(next.context), 1);
    const tm_violation_description found = violation_at(next.context, 0);
    const bool is_whole = functions[i] == FAULT_OPEN;
    assert_int_equal(found.op, is_whole ? TM_OP_NONE : TM_OP_ADD);
    assert_non_null(strstr(found.reason, names[i]));
    const tm_device_description device = describe_device(next.context, "faulty:0");
    assert_int_equal(device.state, is_whole ? TM_DEVICE_QUARANTINED : TM_DEVICE_READY);
    if (is_whole) assert_string_equal(device.reason, found.reason);
    assert_false(faulty_case_runs_there(&next, TM_OP_ADD));
    tm_context_destroy(next.context);
    scratch_deinit(&files);
  }
}

static int run_mapped(const char *folder, uint64_t crash_at, int runs) {
  return run_mapped_in_child(folder, TM_CONTEXT_MAP_FILES, FAULT_LAUNCH, crash_at, runs);
}

static uint32_t count_at_next_start(const scratch *files) {
  faulty_case next = { .state_folder = files->folder };
  faulty_case_open(&next);
  const uint32_t count = count_violations(next.context);
  if (count != 0) {
    assert_int_equal(count, 1);
    assert_int_equal(violation_at(next.context, 0).op, TM_OP_ADD);
    assert_non_null(strstr(violation_at(next.context, 0).reason, "ended while they were in a run after its trial"));
    assert_false(faulty_case_runs_there(&next, TM_OP_ADD));
    assert_true(faulty_case_runs_there(&next, TM_OP_NEG));
  }
  tm_context_destroy(next.context);
  assert_false(has_file(files, "running-"));
  return count;
}

/* Where files may be mapped: long after it proved itself, too. */
static void a_late_crash_is_known_at_the_next_start(void **state) {
  (void)state;
  static const uint64_t numbers[] = { 5, 40 };
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    scratch files;
    assert_true(scratch_init(&files));
    for (uint32_t time = 0; time < 2; time++) {
      const int status = run_mapped(files.folder, numbers[i], 50);
      assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
      assert_true(has_file(&files, "running-"));
      assert_int_equal(count_at_next_start(&files), time);
    }
    scratch_deinit(&files);
  }
}

/* Killed between runs, or ended well: nothing is under way. */
static void only_what_was_under_way_is_suspected(void **state) {
  (void)state;
  scratch files;
  assert_true(scratch_init(&files));
  for (int time = 0; time < 2; time++) {
    const pid_t child = fork();
    if (child == 0) {
      faulty_case one = { .state_folder = files.folder, .flags = TM_CONTEXT_MAP_FILES };
      faulty_case_open(&one);
      for (int i = 0; i < 9; i++) (void)faulty_case_runs_there(&one, TM_OP_ADD);
      (void)raise(SIGKILL);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_true(has_file(&files, "running-"));
    assert_int_equal(count_at_next_start(&files), 0);
  }
  scratch_deinit(&files);
}

/* Two that were ended from outside, with any number of good ones between them, are no proof. */
static void a_process_that_ends_well_acquits(void **state) {
  (void)state;
  scratch files;
  assert_true(scratch_init(&files));
  for (int time = 0; time < 3; time++) {
    assert_true(WIFSIGNALED(run_mapped(files.folder, 6, 9)));
    assert_int_equal(run_mapped(files.folder, 0, 9), 0);
    assert_int_equal(count_at_next_start(&files), 0);
  }
  scratch_deinit(&files);
}

static uint32_t cut_file(DIR *folder, const char *name) {
  const int descriptor = openat(dirfd(folder), name, O_WRONLY | O_CLOEXEC);
  const bool done = descriptor >= 0 && ftruncate(descriptor, 0) == 0;
  if (descriptor >= 0) (void)close(descriptor);
  return done;
}

/* Its file may be cut by anybody: then nothing is known, and nothing ends. */
static void a_file_that_is_cut_ends_nobody(void **state) {
  (void)state;
  scratch files;
  assert_true(scratch_init(&files));
  faulty_case one = { .state_folder = files.folder, .flags = TM_CONTEXT_MAP_FILES };
  faulty_case_open(&one);
  for (int i = 0; i < 9; i++) assert_true(faulty_case_runs_there(&one, TM_OP_ADD));
  DIR *folder = opendir(files.folder);
  assert_non_null(folder);
  uint32_t cut = 0;
  for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
    if (strncmp(entry->d_name, "running-", 8) == 0) cut += cut_file(folder, entry->d_name);
  closedir(folder);
  assert_int_equal(cut, 1);
  for (int i = 0; i < 9; i++) assert_true(faulty_case_runs_there(&one, TM_OP_ADD));
  assert_true(faulty_case_runs_there(&one, TM_OP_NEG));
  tm_context_destroy(one.context);
  assert_false(has_file(&files, "running-"));
  scratch_deinit(&files);
}

/* Where they may not be, later crashes are not laid at its door. */
static void who_has_proved_itself_is_not_suspected(void **state) {
  (void)state;
  scratch files;
  assert_true(scratch_init(&files));
  assert_true(WIFSIGNALED(run_in_child(files.folder, FAULT_LAUNCH, 5, 6)));
  const int status = run_in_child(files.folder, FAULT_LAUNCH, 0, 2);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  faulty_case next = { .state_folder = files.folder };
  faulty_case_open(&next);
  assert_int_equal(count_violations(next.context), 0);
  tm_context_destroy(next.context);
  assert_false(has_file(&files, "running-"));
  scratch_deinit(&files);
}

/* ---- several at once ---- */

static void who_still_runs_has_not_crashed(void **state) {
  (void)state;
  scratch files;
  assert_true(scratch_init(&files));
  faulty_case first = { .state_folder = files.folder };
  faulty_case_open(&first);
  assert_true(faulty_case_runs_there(&first, TM_OP_ADD));
  assert_true(has_file(&files, "running-"));
  const tm_context_options options = { .struct_size = sizeof options, .thread_count = 1, .state_folder = files.folder };
  tm_context *second = open_context(&options);
  assert_true(has_file(&files, "running-"));
  assert_int_equal(count_violations(second), 0);
  tm_context_destroy(second);
  tm_context_destroy(first.context);
  assert_false(has_file(&files, "running-"));
  scratch_deinit(&files);
}

/* As many as a device may break promises before it is not asked at all. */
#define PROCESSES 4

/* Each breaks a promise about another kind of work; none is lost. */
static void processes_do_not_overwrite_each_other(void **state) {
  (void)state;
  static const uint32_t ops[PROCESSES] = { TM_OP_NEG, TM_OP_ABS, TM_OP_SILU, TM_OP_TANH };
  scratch files;
  assert_true(scratch_init(&files));
  pid_t children[PROCESSES];
  for (int i = 0; i < PROCESSES; i++) {
    children[i] = fork();
    if (children[i] != 0) continue;
    faulty_case one = { .plan = broken_launch, .state_folder = files.folder };
    faulty_case_open(&one);
    const uint64_t count = 100;
    tm_tensor *x = NULL, *y = NULL;
    (void)tm_tensor_create(one.context, TM_FORMAT_F32, 1, &count, &x, NULL);
    (void)tm_tensor_create(one.context, TM_FORMAT_F32, 1, &count, &y, NULL);
    const tm_status status = tm_run(one.context, ops[i], NULL, 0, &x, 1, &y, 1, NULL, NULL);
    _exit(status == TM_OK && count_violations(one.context) >= 1 ? 0 : 1);
  }
  for (int i = 0; i < PROCESSES; i++) {
    int status = 0;
    assert_int_equal(waitpid(children[i], &status, 0), children[i]);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
  }
  faulty_case next = { .state_folder = files.folder };
  faulty_case_open(&next);
  assert_int_equal(count_violations(next.context), PROCESSES);
  assert_int_equal(describe_device(next.context, "faulty:0").state, TM_DEVICE_QUARANTINED);
  uint32_t count = 0;
  assert_int_equal(tm_context_forgive(next.context, "faulty", &count, NULL), TM_OK);
  assert_int_equal(count, PROCESSES);
  assert_int_equal(describe_device(next.context, "faulty:0").state, TM_DEVICE_READY);
  tm_context_destroy(next.context);
  scratch_deinit(&files);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_end_is_not_held_against_anybody),
    cmocka_unit_test(a_suspect_that_breaks_a_promise_is_known_for_that),
    cmocka_unit_test(the_second_crash_is_known_at_the_next_start),
    cmocka_unit_test(what_is_compiled_in_is_not_suspected),
    cmocka_unit_test(a_crash_in_any_call_is_known),
    cmocka_unit_test(a_late_crash_is_known_at_the_next_start),
    cmocka_unit_test(only_what_was_under_way_is_suspected),
    cmocka_unit_test(a_process_that_ends_well_acquits),
    cmocka_unit_test(a_file_that_is_cut_ends_nobody),
    cmocka_unit_test(who_has_proved_itself_is_not_suspected),
    cmocka_unit_test(processes_do_not_overwrite_each_other),
    cmocka_unit_test(a_broken_promise_is_remembered_and_forgiven),
    cmocka_unit_test(an_argument_that_was_accepted_is_a_promise),
    cmocka_unit_test(what_another_name_broke_is_not_held_against_this_one),
    cmocka_unit_test(who_is_not_there_can_be_forgiven),
    cmocka_unit_test(another_build_starts_afresh),
    cmocka_unit_test(damaged_content_is_ignored_with_one_line),
    cmocka_unit_test(without_a_folder_only_the_memory_is_short),
    cmocka_unit_test(the_folder_is_made),
    cmocka_unit_test(who_still_runs_has_not_crashed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
