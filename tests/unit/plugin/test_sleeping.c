/* SPDX-License-Identifier: Apache-2.0 */
/* With a state folder plugins are tried once and then listed from what is kept; they are loaded when an answer could matter. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

#include "api/context.h"
#include "base/clock.h"
#include "formats/scratch.h"
#include "plugin/wake.h"
#include "plugin_case.h"

#define CULPRIT(name) ZOO_FOLDER "/culprits/" name ".so"
#define DIARY CULPRIT("diary")

typedef struct state_case {
  scratch     folder;
  char        state[512];
  char        diary[512];
  char        devices[512];
  const char *paths[8];
  uint32_t    path_count;
  tm_setting  settings[3];
} state_case;

static int begin(void **state) {
  static state_case c;
  memset(&c, 0, sizeof c);
  assert_true(scratch_init(&c.folder));
  snprintf(c.state, sizeof c.state, "%s/state", c.folder.folder);
  snprintf(c.diary, sizeof c.diary, "%s/diary", c.folder.folder);
  snprintf(c.devices, sizeof c.devices, "%s/devices", c.folder.folder);
  c.settings[0] = (tm_setting){ "zoo_diary", "diary", c.diary };
  c.settings[1] = (tm_setting){ "zoo_diary", "devices", c.devices };
  c.settings[2] = (tm_setting){ "zoo_diary", "delay_ms", "0" };
  c.paths[0] = DIARY;
  c.path_count = 1;
  assert_non_null(scratch_write(&c.folder, "devices", "..", 2));
  *state = &c;
  return 0;
}

static void remove_records(state_case *c) {
  scratch records;
  snprintf(records.folder, sizeof records.folder, "%.240s/backends", c->state);
  scratch_deinit(&records);
}

static int end(void **state) {
  state_case *c = *state;
  scratch inner;
  remove_records(c);
  snprintf(inner.folder, sizeof inner.folder, "%.250s", c->state);
  scratch_deinit(&inner);
  scratch_deinit(&c->folder);
  return 0;
}

static tm_context_options options_of(const state_case *c) {
  tm_context_options options = options_with(c->paths, c->path_count);
  options.state_folder = c->state;
  options.settings = c->settings;
  options.setting_count = 3;
  return options;
}

static tm_context *open_case(const state_case *c) {
  const tm_context_options options = options_of(c);
  return open_context(&options);
}

/* How often it was initialized, here or in a trial. */
static int inits(const state_case *c) {
  uint64_t bytes = 0;
  unsigned char *text = scratch_slurp(c->diary, &bytes);
  free(text);
  return text == NULL ? 0 : (int)(bytes / strlen("init\n"));
}

/* From now on nothing can be tried any more: what works, works without a process. */
static void forbid_processes(void) { assert_int_equal(setenv("TENSORMORPH_PROBE", "/nonexistent/probe", 1), 0); }
static void allow_processes(void) { assert_int_equal(unsetenv("TENSORMORPH_PROBE"), 0); }

/* ---- listing ---- */

static void the_second_start_runs_nothing(void **state) {
  const state_case *c = *state;
  tm_context *context = open_case(c);
  assert_int_equal(inits(c), 1);        /* the trial's */
  expect_state(context, "zoo_diary", TM_BACKEND_READY, "");
  assert_int_equal(backend_of(context, "zoo_diary").device_count, 2);
  tm_context_destroy(context);
  forbid_processes();
  context = open_case(c);
  allow_processes();
  assert_int_equal(inits(c), 1);
  assert_int_equal(backend_of(context, "zoo_diary").device_count, 2);
  const uint32_t second = device_of(context, "zoo_diary:1");
  assert_int_equal(describe_device(context, "zoo_diary:1").opened, 0);
  assert_int_equal(run_on(context, TM_OP_ADD, second).device, second);
  assert_int_equal(inits(c), 2);
  assert_int_equal(describe_device(context, "zoo_diary:1").opened, 1);
  tm_context_destroy(context);
}

static void expect_same_description(tm_context *a, tm_context *b) {
  tm_backend_description x = { .struct_size = sizeof x }, y = { .struct_size = sizeof y };
  tm_device_description d = { .struct_size = sizeof d }, e = { .struct_size = sizeof e };
  tm_option_description o = { .struct_size = sizeof o }, p = { .struct_size = sizeof p };
  tm_memory_description m = { .struct_size = sizeof m }, n = { .struct_size = sizeof n };
  for (uint32_t i = 0; tm_backend_describe(a, i, &x) == TM_OK; i++) {
    assert_int_equal(tm_backend_describe(b, i, &y), TM_OK);
    assert_string_equal(x.name, y.name);
    assert_string_equal(x.version, y.version);
    assert_string_equal(x.vendor, y.vendor);
    assert_string_equal(x.build_id, y.build_id);
    assert_string_equal(x.origin, y.origin);
    assert_string_equal(x.reason, y.reason);
    assert_int_equal(x.state, y.state);
    assert_int_equal(x.device_count, y.device_count);
    assert_int_equal(x.option_count, y.option_count);
    for (uint32_t k = 0; tm_backend_option_describe(a, i, k, &o) == TM_OK; k++) {
      assert_int_equal(tm_backend_option_describe(b, i, k, &p), TM_OK);
      assert_string_equal(o.name, p.name);
      assert_string_equal(o.value, p.value);
      assert_string_equal(o.default_value, p.default_value);
      assert_string_equal(o.help, p.help);
      assert_int_equal(o.type, p.type);
    }
  }
  assert_int_equal(tm_backend_describe(b, UINT32_MAX, &y), TM_END);
  for (uint32_t i = 0; tm_device_describe(a, i, &d) == TM_OK; i++) {
    assert_int_equal(tm_device_describe(b, i, &e), TM_OK);
    assert_string_equal(d.name, e.name);
    assert_string_equal(d.description, e.description);
    assert_string_equal(d.driver_version, e.driver_version);
    assert_string_equal(d.uuid, e.uuid);
    assert_string_equal(d.resource, e.resource);
    assert_int_equal(d.state, e.state);
    assert_int_equal(d.queue_count, e.queue_count);
    assert_int_equal(d.epoch, e.epoch);
    assert_int_equal(d.memory_count, e.memory_count);
    assert_int_equal(tm_device_memory_describe(a, i, 0, &m), TM_OK);
    assert_int_equal(tm_device_memory_describe(b, i, 0, &n), TM_OK);
    assert_string_equal(m.name, n.name);
    assert_int_equal(m.is_host, n.is_host);
    assert_int_equal(m.alignment, n.alignment);
    assert_int_equal(m.offset_granule, n.offset_granule);
    assert_int_equal(m.largest_buffer_bytes, n.largest_buffer_bytes);
  }
}

static void asleep_or_not_the_list_is_the_same(void **state) {
  state_case *c = *state;
  c->paths[1] = ZOO("two_queues");
  c->paths[2] = ZOO("device_endless_names");
  c->paths[3] = ZOO("null");
  c->paths[4] = ZOO("wrong_magic");
  c->paths[5] = ZOO("device_absurd_memory");
  c->paths[6] = ZOO("namesake");
  c->path_count = 7;
  tm_context_options options = options_of(c);
  options.state_folder = NULL;
  tm_context *awake = open_context(&options);
  for (int i = 0; i < 2; i++) {
    tm_context *asleep = open_case(c);
    expect_same_description(awake, asleep);
    tm_context_destroy(asleep);
  }
  tm_context_destroy(awake);
}

static void users_mistakes_are_found_in_a_sleeping_one(void **state) {
  state_case *c = *state;
  tm_context_destroy(open_case(c));
  c->settings[2].name = "delay_m";
  tm_context_options options = options_of(c);
  tm_context *context = NULL;
  tm_error error = TM_ERROR_INIT;
  for (int i = 0; i < 2; i++) {
    assert_int_equal(tm_context_create(&options, &context, &error), TM_ERROR_ARGUMENT);
    assert_non_null(strstr(error.text, "did you mean 'delay_ms'"));
  }
}

/* ---- when it wakes ---- */

static tm_tensor *wide_vector(tm_context *context) {
  const uint64_t count = 1 << 20;
  tm_tensor *tensor = NULL;
  assert_int_equal(tm_tensor_create(context, TM_FORMAT_F32, 1, &count, &tensor, NULL), TM_OK);
  return tensor;
}

/* Little work does not wake it; as much as waking costs does, and then it takes part. */
static void work_that_is_worth_it_wakes_it(void **state) {
  state_case *c = *state;
  c->settings[2].value = "30";
  tm_context *context = open_case(c);
  assert_int_equal(inits(c), 1);
  assert_int_not_equal(run_on(context, TM_OP_NEG, TM_ANY_DEVICE).device, device_of(context, "zoo_diary:0"));
  assert_int_equal(inits(c), 1);
  tm_tensor *x = wide_vector(context), *y = wide_vector(context);
  tm_run_report report = { .struct_size = sizeof report };
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .report = &report };
  int runs = 0;
  for (; runs < 20000 && inits(c) == 1; runs++) assert_int_equal(tm_run(context, TM_OP_NEG, NULL, 0, &x, 1, &y, 1, &options, NULL), TM_OK);
  assert_int_equal(inits(c), 2);
  assert_true(runs > 1);
  const uint32_t first = device_of(context, "zoo_diary:0");             /* it asks for a nanosecond */
  assert_true(report.device == first || report.device == first + 1);
  tm_tensor_destroy(y);
  tm_tensor_destroy(x);
  tm_context_destroy(context);
}

static void who_asks_for_the_same_bits_wakes_it(void **state) {
  state_case *c = *state;
  c->settings[2].value = "30";
  tm_context *context = open_case(c);
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .run_to_run = 1 };
  tm_error error = TM_ERROR_INIT;
  assert_int_equal(run_checked(context, TM_OP_NEG, &options, &error), TM_OK);
  assert_int_equal(inits(c), 2);
  tm_context_destroy(context);
}

static void a_question_to_it_wakes_it(void **state) {
  state_case *c = *state;
  c->settings[2].value = "30";
  tm_context *context = open_case(c);
  tm_support support = { .struct_size = sizeof support };
  assert_int_equal(tm_support_query(context, device_of(context, "zoo_diary:0"), TM_OP_NEG, TM_FORMAT_F32, &support), TM_OK);
  assert_int_equal(support.level, TM_LEVEL_NATIVE);
  assert_int_equal(inits(c), 2);
  tm_context_destroy(context);
}

static void *run_many(void *argument) {
  tm_context *context = argument;
  tm_support support = { .struct_size = sizeof support };
  tm_device_description device = { .struct_size = sizeof device };
  for (uint32_t i = 0; i < 40; i++) {
    (void)run_on(context, TM_OP_NEG, TM_ANY_DEVICE);
    (void)tm_device_describe(context, i % 3, &device);
    (void)backend_of(context, "zoo_diary");
    if (i == 20) (void)tm_support_query(context, device_of(context, "zoo_diary:1"), TM_OP_ADD, TM_FORMAT_F32, &support);
  }
  return NULL;
}

static void many_threads_wake_it_once(void **state) {
  const state_case *c = *state;
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  tm_context *context = open_case(c);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, run_many, context), 0);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  assert_int_equal(inits(c), 2);
  expect_state(context, "zoo_diary", TM_BACKEND_READY, "");
  tm_context_destroy(context);
}

static void *wake_for_it(void *argument) {
  (void)tm_inventory_wake_worth(argument, UINT64_MAX, NULL);
  return NULL;
}

static void what_waking_costs_is_counted_once(void **state) {
  state_case *c = *state;
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  c->settings[2].value = "200";
  static const char *const only[] = { "zoo_diary" };
  tm_context_options options = options_of(c);
  options.devices = only;
  options.device_count = 1;
  tm_context_destroy(open_context(&options));
  tm_context *context = open_context(&options);
  tm_inventory *inventory = context->inventory;
  const uint64_t price = atomic_load(&inventory->next_wake_ns);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, wake_for_it, inventory), 0);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  assert_int_equal(inits(c), 2);
  assert_int_equal(atomic_load(&inventory->woken_ns), price);
  assert_true(atomic_load(&inventory->next_wake_ns) == UINT64_MAX);
  tm_context_destroy(context);
}

static void who_wants_to_go_wakes_nobody(void **state) {
  const state_case *c = *state;
  static const _Atomic uint32_t cancelled = 1;
  tm_context_destroy(open_case(c));
  tm_context *context = open_case(c);
  assert_int_not_equal(atomic_load(&context->inventory->asleep_count), 0);
  assert_false(tm_inventory_wake_all(context->inventory, &cancelled));
  tm_context_destroy(context);
  assert_int_equal(inits(c), 1);
}

/* ---- what is kept, and for how long ---- */

static void what_changed_meanwhile_is_noticed(void **state) {
  state_case *c = *state;
  tm_context_destroy(open_case(c));
  assert_non_null(scratch_write(&c->folder, "devices", "...", 3));
  tm_context *context = open_case(c);
  assert_int_equal(backend_of(context, "zoo_diary").device_count, 2);
  tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT };
  options.device_plus_one = device_of(context, "zoo_diary:0") + 1;
  tm_error error = TM_ERROR_INIT;
  assert_int_equal(run_checked(context, TM_OP_NEG, &options, &error), TM_ERROR_NO_DEVICE);
  assert_non_null(strstr(error.text, "not what it was"));
  expect_state(context, "zoo_diary", TM_BACKEND_REFUSED, "not what it was");
  assert_int_equal(run_on(context, TM_OP_NEG, TM_ANY_DEVICE).fell_back, 0);
  tm_context_destroy(context);
  context = open_case(c);
  assert_int_equal(backend_of(context, "zoo_diary").device_count, 3);
  assert_int_equal(run_on(context, TM_OP_NEG, device_of(context, "zoo_diary:2")).fell_back, 0);
  tm_context_destroy(context);
}

static void another_setting_or_variable_is_tried_anew(void **state) {
  state_case *c = *state;
  tm_context_destroy(open_case(c));
  assert_int_equal(inits(c), 1);
  c->settings[2].value = "1";
  tm_context_destroy(open_case(c));
  assert_int_equal(inits(c), 2);
  assert_int_equal(setenv("NOBODY_LOOKS_AT_THIS", "7", 1), 0);
  tm_context_destroy(open_case(c));
  assert_int_equal(inits(c), 2);
  assert_int_equal(setenv("ZOO_DRIVER", "7", 1), 0);
  tm_context_destroy(open_case(c));
  assert_int_equal(inits(c), 3);
  assert_int_equal(setenv("ZOO_DRIVER", "8", 1), 0);
  tm_context_destroy(open_case(c));
  assert_int_equal(inits(c), 4);
  assert_int_equal(unsetenv("ZOO_DRIVER"), 0);
  assert_int_equal(unsetenv("NOBODY_LOOKS_AT_THIS"), 0);
  tm_context_destroy(open_case(c));
  c->settings[2].value = "0";
  tm_context_destroy(open_case(c));
  assert_int_equal(inits(c), 4);        /* all of them are still known */
}

static void another_file_is_tried_anew(void **state) {
  state_case *c = *state;
  uint64_t bytes = 0;
  unsigned char *content = scratch_slurp(DIARY, &bytes);
  assert_non_null(content);
  char path[1024];
  snprintf(path, sizeof path, "%s", scratch_write(&c->folder, "copy.so", content, bytes));
  free(content);
  assert_int_equal(chmod(path, 0755), 0);
  c->paths[0] = path;
  tm_context_destroy(open_case(c));
  tm_context_destroy(open_case(c));
  assert_int_equal(inits(c), 1);
  const struct timespec times[2] = { { 1000, 7 }, { 1000, 7 } };
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
  tm_context *context = open_case(c);
  assert_int_equal(inits(c), 2);
  assert_int_equal(utimensat(AT_FDCWD, path, (const struct timespec[2]){ { 2000, 7 }, { 2000, 7 } }, 0), 0);
  tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT };
  options.device_plus_one = device_of(context, "zoo_diary:0") + 1;
  tm_error error = TM_ERROR_INIT;
  assert_int_equal(run_checked(context, TM_OP_NEG, &options, &error), TM_ERROR_NO_DEVICE);
  expect_state(context, "zoo_diary", TM_BACKEND_REFUSED, "another one");
  tm_context_destroy(context);
}

/* Written over in place, with its size, and its times put back. */
/* What the manifest says decides whether a record is about the same. */
static void another_manifest_is_read_anew(void **state) {
  state_case *c = *state;
  uint64_t bytes = 0;
  unsigned char *content = scratch_slurp(DIARY, &bytes);
  const char *copy = scratch_write(&c->folder, "diary.so", content, bytes);
  free(content);
  char path[1024];
  snprintf(path, sizeof path, "%s", copy);
  assert_int_equal(chmod(path, 0755), 0);
  c->paths[0] = path;
  static const struct { const char *manifest; uint32_t state; const char *words; int inits; } steps[] = {
    { "{\"schema\": 1, \"name\": \"zoo_diary\"}", TM_BACKEND_READY, "", 1 },
    { "{\"schema\": 1, \"name\": \"zoo_diary\"}", TM_BACKEND_READY, "", 1 },
    { "{\"schema\": 1, \"name\": \"somebody_else\"}", TM_BACKEND_REFUSED, "somebody_else", 2 },
    { "{\"schema\": 1, \"name\": \"zoo_diary\", \"architecture\": \"abacus\"}", TM_BACKEND_REFUSED, "abacus", 2 },
    { "{\"schema\": 1, \"name\": \"zoo_diary\"}", TM_BACKEND_READY, "", 2 },
  };
  for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
    assert_non_null(scratch_write(&c->folder, "diary.json", steps[i].manifest, strlen(steps[i].manifest)));
    tm_context *context = open_case(c);
    expect_state(context, path, steps[i].state, steps[i].words);
    assert_int_equal(inits(c), steps[i].inits);
    tm_context_destroy(context);
  }
}

static void another_file_of_the_same_age_is_tried_anew(void **state) {
  state_case *c = *state;
  uint64_t bytes = 0;
  const struct timespec times[2] = { { 1000, 7 }, { 1000, 7 } };
  unsigned char *content = scratch_slurp(DIARY, &bytes);
  char path[1024];
  snprintf(path, sizeof path, "%s", scratch_write(&c->folder, "copy.so", content, bytes));
  assert_int_equal(chmod(path, 0755), 0);
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
  c->paths[0] = path;
  tm_context_destroy(open_case(c));
  assert_int_equal(inits(c), 1);
  (void)thrd_sleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
  FILE *file = fopen(path, "r+b");
  assert_non_null(file);
  assert_int_equal(fwrite(content, 1, bytes, file), bytes);
  assert_int_equal(fclose(file), 0);
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
  tm_context_destroy(open_case(c));
  assert_int_equal(inits(c), 2);
  free(content);
}

static void each_record(const state_case *c, void (*spoil)(const char *path)) {
  char folder[600], path[900];
  snprintf(folder, sizeof folder, "%s/backends", c->state);
  DIR *records = opendir(folder);
  assert_non_null(records);
  int count = 0;
  for (const struct dirent *entry = readdir(records); entry != NULL; entry = readdir(records)) {
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    spoil(path);
    count++;
  }
  closedir(records);
  assert_true(count > 0);
}

static void cut(const char *path) { assert_int_equal(truncate(path, 30), 0); }
static void empty(const char *path) { assert_int_equal(truncate(path, 0), 0); }
static void turn_a_bit(const char *path) {
  FILE *file = fopen(path, "r+b");
  assert_non_null(file);
  assert_int_equal(fseek(file, 12, SEEK_SET), 0);
  const int byte = fgetc(file);
  if (byte != EOF) {            /* the list of variables that nobody asked for is short */
    assert_int_equal(fseek(file, 12, SEEK_SET), 0);
    assert_int_equal(fputc(byte ^ 1, file), byte ^ 1);
  }
  assert_int_equal(fclose(file), 0);
}

static void a_damaged_record_is_none(void **state) {
  const state_case *c = *state;
  static void (*const spoilers[])(const char *) = { cut, empty, turn_a_bit };
  tm_context_destroy(open_case(c));
  for (int i = 0; i < 3; i++) {
    each_record(c, spoilers[i]);
    tm_context *context = open_case(c);
    assert_int_equal(inits(c), 2 + i);
    assert_int_equal(backend_of(context, "zoo_diary").device_count, 2);
    tm_context_destroy(context);
  }
}

static void a_folder_that_cannot_be_used_is_said(void **state) {
  state_case *c = *state;
  static log_lines lines;
  snprintf(c->state, sizeof c->state, "%s", c->devices);        /* a file */
  tm_context_options options = options_of(c);
  options.log = keep_line;
  options.log_context = &lines;
  tm_context *context = open_context(&options);
  assert_non_null(strstr(lines.text, "cannot be used; nothing is kept"));
  assert_int_equal(inits(c), 2);        /* tried, and loaded at once */
  assert_int_equal(run_on(context, TM_OP_NEG, device_of(context, "zoo_diary:0")).fell_back, 0);
  tm_context_destroy(context);
}

/* ---- what trials find ---- */

typedef struct finding {
  const char *path;
  const char *words;
} finding;

static void harm_is_found_in_the_trial(void **state) {
  state_case *c = *state;
  static const finding findings[] = {
    { CULPRIT("aborts_in_init"), "init ends the process with signal 6" },
    { CULPRIT("aborts_in_device_info"), "device_info(0) ends the process with signal 6" },
    { CULPRIT("aborts_in_query"), "ends the process with signal 6" },
    { CULPRIT("aborts_in_open"), "open(0) ends the process with signal 6" },
    { CULPRIT("aborts_in_prepare"), "prepare of copy f32 on device 0 ends the process with signal 6" },
    { CULPRIT("aborts_in_launch"), "launch of copy f32 on device 0 ends the process with signal 6" },
    { ZOO("sly/keeps_the_operation"), "launch of copy f32 on device 0 ends the process with" },
    { CULPRIT("aborts_in_release"), "release of copy f32 on device 0 ends the process with signal 6" },
    { CULPRIT("aborts_in_close"), "close ends the process with signal 6" },
    { CULPRIT("aborts_in_shutdown"), "shutdown ends the process with signal 6" },
    { CULPRIT("aborts_at_the_end"), "it crashed when the process ended: signal 6" },
    { CULPRIT("leaves_at_the_end"), "when the process ended it made its exit code 0" },
  };
  enum { COUNT = sizeof findings / sizeof findings[0] };
  const char *paths[COUNT + 1] = { ZOO("honest") };
  for (int i = 0; i < COUNT; i++) paths[i + 1] = findings[i].path;
  tm_context_options options = options_with(paths, COUNT + 1);
  options.state_folder = c->state;
  for (int round = 0; round < 2; round++) {
    if (round == 1) forbid_processes();
    tm_context *context = open_context(&options);
    for (int i = 0; i < COUNT; i++) expect_state(context, findings[i].path, TM_BACKEND_REFUSED, findings[i].words);
    expect_honest_unharmed(context);
    tm_context_destroy(context);
  }
  allow_processes();
}

/* A trial that takes its time, in a context of its own: all of them wait at once. */
typedef struct slow_trial {
  const char *path;
  uint32_t    state;            /* expected */
  const char *words;
  const char *folder;           /* of the state */
  pthread_t   thread;
  tm_context *context;
} slow_trial;

static void *try_slowly(void *argument) {
  slow_trial *one = argument;
  tm_context_options options = options_with(&one->path, 1);
  options.state_folder = one->folder;
  if (tm_context_create(&options, &one->context, NULL) != TM_OK) one->context = NULL;
  return NULL;
}

static bool is_of(const tm_backend_description *backend, const char *path) { return strcmp(backend->origin, path) == 0; }

static void expect_outcome(const slow_trial *one) {
  tm_backend_description found = { .struct_size = sizeof found };
  if (one->context == NULL) fail_msg("%s: no context", one->path);
  for (uint32_t i = 0; tm_backend_describe(one->context, i, &found) == TM_OK && !is_of(&found, one->path);) i++;
  if (!is_of(&found, one->path) || found.state != one->state || strstr(found.reason, one->words) == NULL)
    fail_msg("%s is in state %u because '%s'; expected state %u because '%s'", one->path, found.state, found.reason, one->state, one->words);
}

static void try_together(state_case *c, slow_trial *trials, size_t count) {
  for (size_t i = 0; i < count; i++) {
    trials[i].folder = c->state;
    assert_int_equal(pthread_create(&trials[i].thread, NULL, try_slowly, &trials[i]), 0);
  }
  for (size_t i = 0; i < count; i++) assert_int_equal(pthread_join(trials[i].thread, NULL), 0);
  for (size_t i = 0; i < count; i++) expect_outcome(&trials[i]);
  for (size_t i = 0; i < count; i++) tm_context_destroy(trials[i].context);
}

static void hangs_are_found_in_the_trial(void **state) {
  static slow_trial trials[] = {
    { .path = CULPRIT("hangs_in_init"), .state = TM_BACKEND_REFUSED, .words = "init did not end within 5 s" },
    { .path = CULPRIT("hangs_in_device_info"), .state = TM_BACKEND_REFUSED, .words = "device_info(0) did not end within 5 s" },
    { .path = CULPRIT("hangs_in_query"), .state = TM_BACKEND_REFUSED,
      .words = "query of copy on device 0 did not end" },
    { .path = CULPRIT("hangs_at_the_end"), .state = TM_BACKEND_REFUSED,
      .words = "it keeps the process from ending: it did not end within 5 s" },
    { .path = CULPRIT("hangs_in_a_handler"), .state = TM_BACKEND_REFUSED,
      .words = "it keeps the process from ending: it did not end within 5 s" },
  };
  try_together(*state, trials, sizeof trials / sizeof trials[0]);
}

/* A step that is declared to be slow is waited for; one that is not takes too long. */
static void who_declares_its_slowness_gets_time(void **state) {
  static slow_trial trials[] = {
    { .path = CULPRIT("slow_to_open_declared"), .state = TM_BACKEND_READY, .words = "" },
    { .path = CULPRIT("slow_to_open_undeclared"), .state = TM_BACKEND_REFUSED, .words = "open(0) did not end within 5 s" },
    { .path = CULPRIT("slow_to_prepare_declared"), .state = TM_BACKEND_READY, .words = "" },
    { .path = CULPRIT("slow_to_prepare_undeclared"), .state = TM_BACKEND_REFUSED, .words = "device 0 did not end within 5 s" },
  };
  try_together(*state, trials, sizeof trials / sizeof trials[0]);
}

/* A trial by this script instead of the probe. */
static void try_with(state_case *c, const char *script) {
  const char *path = scratch_write(&c->folder, "probe", script, strlen(script));
  assert_int_equal(chmod(path, 0755), 0);
  assert_int_equal(setenv("TENSORMORPH_PROBE", path, 1), 0);
}

/* Slow once, short of memory once: the next start tries it again. */
static void what_may_pass_is_not_kept(void **state) {
  state_case *c = *state;
  static const finding findings[] = {
    { "#!/bin/sh\nexec sleep 60\n", "did not end within 5 s" },
    { "#!/bin/sh\nexec yes\n", "did not end within 5 s" },        /* a flood says nothing */
    { "#!/bin/sh\nkill -9 $$\n", "signal 9" },
    { "#!/bin/sh\nkill -15 $$\n", "signal 15" },
    { "#!/bin/sh\nprintf '7:trouble\\n9:no memory\\n'\n", "no memory" },
  };
  tm_context_options options = options_of(c);
  options.setting_count = 0;
  for (size_t i = 0; i < sizeof findings / sizeof findings[0]; i++) {
    try_with(c, findings[i].path);
    tm_context *context = open_context(&options);
    allow_processes();
    expect_state(context, DIARY, TM_BACKEND_REFUSED, findings[i].words);
    tm_context_destroy(context);
    context = open_context(&options);
    expect_state(context, "zoo_diary", TM_BACKEND_READY, "");
    assert_int_equal(tm_context_forgive(context, "zoo_diary", NULL, NULL), TM_OK);
    tm_context_destroy(context);
  }
}

/* What does harm is, until it is forgiven; under whatever settings it was found. */
static void a_kept_refusal_can_be_forgiven(void **state) {
  state_case *c = *state;
  uint32_t count = 0;
  char script[512];
  snprintf(script, sizeof script, "#!/bin/sh\ncase $2 in *diary.so) kill -11 $$; esac\nexec %s/libexec/tensormorph/tensormorph-probe \"$@\"\n",
           TM_BINARY_DIR);
  c->paths[1] = ZOO("honest");
  c->path_count = 2;
  c->settings[0] = (tm_setting){ "zoo_honest", "gear", "2" };
  tm_context_options options = options_of(c);
  options.setting_count = 0;
  for (options.setting_count = 0; options.setting_count < 2; options.setting_count++) {
    try_with(c, script);
    tm_context_destroy(open_context(&options));
    allow_processes();
    tm_context *context = open_context(&options);
    expect_state(context, DIARY, TM_BACKEND_REFUSED, "signal 11");
    tm_context_destroy(context);
  }
  options.setting_count = 1;
  tm_context *context = open_context(&options);
  assert_int_equal(tm_context_forgive(context, "diary", &count, NULL), TM_OK);
  assert_int_equal(count, 1);
  tm_context_destroy(context);
  for (options.setting_count = 0; options.setting_count < 2; options.setting_count++) {
    context = open_context(&options);
    expect_state(context, "zoo_diary", TM_BACKEND_READY, "");
    tm_context_destroy(context);
  }
}

/* Its other operations are used; a backend is not thrown away for one bad kernel. */
static void wrong_results_cost_the_operation(void **state) {
  state_case *c = *state;
  const char *paths[] = { ZOO("wrong"), CULPRIT("refuses_in_launch") };
  device_name name;
  tm_context_options options = options_with(paths, 2);
  options.state_folder = c->state;
  tm_context *context = open_context(&options);
  const tm_run_options run_options = { .struct_size = sizeof run_options, .worst_numerics = TM_NUMERICS_DEFAULT,
                                       .device_plus_one = device_of(context, device_name_of(context, paths[0], &name)) + 1 };
  tm_error error = TM_ERROR_INIT;
  assert_int_equal(run_checked(context, TM_OP_NEG, &run_options, &error), TM_ERROR_NO_DEVICE);
  assert_non_null(strstr(error.text, "other bits than the reference for neg f32"));
  tm_support support = { .struct_size = sizeof support };
  char refuser[128];
  snprintf(refuser, sizeof refuser, "%s:0", backend_of(context, paths[1]).name);
  assert_int_equal(tm_support_query(context, device_of(context, refuser), TM_OP_NEG, TM_FORMAT_F32, &support), TM_OK);
  assert_int_equal(support.level, TM_LEVEL_REFUSED);
  assert_int_equal(run_on(context, TM_OP_NEG, TM_ANY_DEVICE).fell_back, 0);
  assert_int_equal(describe_device(context, refuser).violation_count, 0);
  tm_context_destroy(context);
}

static void trespassing_is_noted(void **state) {
  state_case *c = *state;
  const char *paths[] = { CULPRIT("trespasser"), ZOO("honest"), ZOO("float_mode") };
  tm_context_options options = options_with(paths, 3);
  options.state_folder = c->state;
  tm_context *context = open_context(&options);
  static const char *const words[] = { "left 1 thread behind", "handler of signal 12", "the environment", "the working directory",
                                       "the locale" };
  const char *note = backend_of(context, "zoo_trespasser").note;
  expect_state(context, "zoo_trespasser", TM_BACKEND_READY, "");
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (strstr(note, words[i]) == NULL) fail_msg("'%s' does not say '%s'", note, words[i]);
  assert_string_equal(backend_of(context, "zoo_honest").note, "");
  assert_string_equal(backend_of(context, "zoo_float_mode").note, "in its trial it changed the floating-point mode");
  tm_context_destroy(context);
}

/* ---- where nothing can be tried ---- */

static void without_trials_only_named_files_are_loaded(void **state) {
  state_case *c = *state;
  static log_lines lines;
  const char *paths[] = { ZOO("honest") };
  uint64_t bytes = 0;
  unsigned char *content = scratch_slurp(ZOO("old"), &bytes);
  const char *found = scratch_write(&c->folder, "found.so", content, bytes);
  free(content);
  assert_int_equal(chmod(found, 0755), 0);
  tm_context_options options = options_with(paths, 1);
  options.flags = TM_CONTEXT_LOAD_PLUGINS;
  options.state_folder = c->state;
  options.log = keep_line;
  options.log_context = &lines;
  assert_int_equal(setenv("TENSORMORPH_PLUGIN_PATH", c->folder.folder, 1), 0);
  forbid_processes();
  tm_context *context = open_context(&options);
  allow_processes();
  assert_int_equal(unsetenv("TENSORMORPH_PLUGIN_PATH"), 0);
  expect_honest_unharmed(context);
  assert_non_null(strstr(lines.text, "honest.so is loaded without a trial"));
  const tm_backend_description honest = backend_of(context, ZOO("honest"));
  assert_int_equal(honest.is_untried, 1);
  assert_non_null(strstr(honest.note, "loaded without a trial: "));
  assert_int_equal(backend_of(context, "reference").is_untried, 0);
  expect_state(context, "found", TM_BACKEND_REFUSED, "/nonexistent/probe");
  tm_context_destroy(context);
}

/* Instead of the C library's. */
static bool no_pipes;
int pipe2(int ends[2], int flags) {
  if (!no_pipes) return (int)syscall(SYS_pipe2, ends, flags);
  errno = EMFILE;
  return -1;
}

static void nothing_is_loaded_untried_for_want_of_descriptors(void **state) {
  state_case *c = *state;
  uint64_t bytes = 0;
  unsigned char *content = scratch_slurp(ZOO("honest"), &bytes);
  const char *found = scratch_write(&c->folder, "found.so", content, bytes);
  free(content);
  assert_int_equal(chmod(found, 0755), 0);
  tm_context_options options = options_of(c);
  options.flags = TM_CONTEXT_LOAD_PLUGINS;
  options.setting_count = 0;
  assert_int_equal(setenv("TENSORMORPH_PLUGIN_PATH", c->folder.folder, 1), 0);
  no_pipes = true;
  tm_context *context = open_context(&options);
  no_pipes = false;
  expect_state(context, "found", TM_BACKEND_REFUSED, "pipe");
  expect_state(context, DIARY, TM_BACKEND_REFUSED, "pipe");
  tm_context_destroy(context);
  context = open_context(&options);
  expect_state(context, "zoo_honest", TM_BACKEND_READY, "");
  expect_state(context, "zoo_diary", TM_BACKEND_READY, "");
  tm_context_destroy(context);
  assert_int_equal(unsetenv("TENSORMORPH_PLUGIN_PATH"), 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void) {
  const struct CMUnitTest tests[] = {
    CASE(the_second_start_runs_nothing),
    CASE(asleep_or_not_the_list_is_the_same),
    CASE(users_mistakes_are_found_in_a_sleeping_one),
    CASE(work_that_is_worth_it_wakes_it),
    CASE(who_asks_for_the_same_bits_wakes_it),
    CASE(a_question_to_it_wakes_it),
    CASE(many_threads_wake_it_once),
    CASE(what_waking_costs_is_counted_once),
    CASE(who_wants_to_go_wakes_nobody),
    CASE(what_changed_meanwhile_is_noticed),
    CASE(another_setting_or_variable_is_tried_anew),
    CASE(another_file_is_tried_anew),
    CASE(another_manifest_is_read_anew),
    CASE(another_file_of_the_same_age_is_tried_anew),
    CASE(a_damaged_record_is_none),
    CASE(a_folder_that_cannot_be_used_is_said),
    CASE(harm_is_found_in_the_trial),
    CASE(hangs_are_found_in_the_trial),
    CASE(who_declares_its_slowness_gets_time),
    CASE(what_may_pass_is_not_kept),
    CASE(a_kept_refusal_can_be_forgiven),
    CASE(wrong_results_cost_the_operation),
    CASE(trespassing_is_noted),
    CASE(without_trials_only_named_files_are_loaded),
    CASE(nothing_is_loaded_untried_for_want_of_descriptors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
