/* SPDX-License-Identifier: Apache-2.0 */
/* Plugin files of every kind: which are refused, with what reason, and that the others do not notice. */
#define _GNU_SOURCE
#include <sys/stat.h>
#include <unistd.h>

#include "api/context.h"
#include "formats/scratch.h"
#include "plugin/trial_pause.h"
#include "plugin_case.h"

typedef struct refusal {
  const char *path;
  uint32_t    state;
  const char *reason;
} refusal;

static const refusal refusals[] = {
  { ZOO("null"), TM_BACKEND_UNAVAILABLE, "no device" },
  { ZOO("constructor_aborts"), TM_BACKEND_REFUSED, "signal 6" },
  { ZOO("constructor_leaves"), TM_BACKEND_REFUSED, "exit code 3" },
  { ZOO("query_aborts"), TM_BACKEND_REFUSED, "signal 6" },
  { ZOO("null_header"), TM_BACKEND_REFUSED, "does not serve" },
  { ZOO("wrong_magic"), TM_BACKEND_REFUSED, "magic number 0000000000001111" },
  { ZOO("wrong_size"), TM_BACKEND_REFUSED, "header size 40" },
  { ZOO("wrong_major"), TM_BACKEND_REFUSED, "version 7." },
  { ZOO("wrong_minor"), TM_BACKEND_REFUSED, "version 0.0" },
  { ZOO("wrong_flags"), TM_BACKEND_REFUSED, "flags 0x13" },
  { ZOO("wrong_fingerprint"), TM_BACKEND_REFUSED, "fingerprint 0000000000000001" },
  { ZOO("wrong_name"), TM_BACKEND_REFUSED, "lower_snake" },
  { ZOO("endless_version"), TM_BACKEND_REFUSED, "version is no sound string" },
  { ZOO("endless_traits"), TM_BACKEND_REFUSED, "18446744073709551615 traits" },
  { ZOO("other_trait"), TM_BACKEND_REFUSED, "offers no tensormorph.accelerator-backend" },
  { ZOO("no_launch"), TM_BACKEND_REFUSED, "mandatory function 'launch'" },
  { ZOO("outside_launch"), TM_BACKEND_REFUSED, "'launch' lies outside" },
  { ZOO("short_table"), TM_BACKEND_REFUSED, "size of 8 bytes" },
  { ZOO("short_option"), TM_BACKEND_REFUSED, "option 0 is not sound" },
  { ZOO("no_entry"), TM_BACKEND_REFUSED, "does not export tm_plugin_query" },
  { ZOO("foreign_entry"), TM_BACKEND_REFUSED, "does not export tm_plugin_query itself" },
  { ZOO("reference_name"), TM_BACKEND_REFUSED, "name" },
  { ZOO("device_all_ones"), TM_BACKEND_REFUSED, "4294967295 memories" },
  { ZOO("device_no_list"), TM_BACKEND_REFUSED, "no memory" },
  { ZOO("device_null_memory"), TM_BACKEND_REFUSED, "memory 0 is not sound" },
  { ZOO("device_no_memory"), TM_BACKEND_REFUSED, "no memory" },
  { ZOO("device_strange_status"), TM_BACKEND_REFUSED, "which it may not" },
  { ZOO("device_absurd_memory"), TM_BACKEND_REFUSED, "granule" },
  { ZOO("device_short_memory"), TM_BACKEND_REFUSED, "memory 0 is not sound" },
  { ZOO("device_huge_alignment"), TM_BACKEND_REFUSED, "alignment of 4194304 bytes" },
  { ZOO("device_odd_alignment"), TM_BACKEND_REFUSED, "alignment of 48 bytes" },
  { ZOO("executable_stack"), TM_BACKEND_REFUSED, "executable stack" },
  { "/nonexistent/plugin.so", TM_BACKEND_REFUSED, "No such file" },
  { TM_BINARY_DIR, TM_BACKEND_REFUSED, "folder" },
  { TM_SOURCE_DIR "/LICENSE", TM_BACKEND_REFUSED, "no ELF header" },
  { "", TM_BACKEND_REFUSED, "No such file" },
};
#define REFUSALS (sizeof refusals / sizeof refusals[0])

static void bad_ones_are_refused_by_reason(void **state) {
  (void)state;
  const char *paths[REFUSALS + 1];
  for (size_t i = 0; i < REFUSALS; i++) paths[i] = refusals[i].path;
  paths[REFUSALS] = ZOO("honest");
  const tm_context_options options = options_with(paths, REFUSALS + 1);
  tm_context *context = open_context(&options);
  for (size_t i = 0; i < REFUSALS; i++) expect_state(context, refusals[i].path, refusals[i].state, refusals[i].reason);
  expect_honest_unharmed(context);
  expect_state(context, "reference", TM_BACKEND_READY, "");
  tm_context_destroy(context);
}

static void a_hanging_constructor_is_given_up(void **state) {
  (void)state;
  const char *paths[] = { ZOO("constructor_hangs"), ZOO("honest") };
  const tm_context_options options = options_with(paths, 2);
  tm_context *context = open_context(&options);
  expect_state(context, ZOO("constructor_hangs"), TM_BACKEND_REFUSED, "did not end within");
  expect_honest_unharmed(context);
  tm_context_destroy(context);
}

static void unusual_ones_are_accepted(void **state) {
  (void)state;
  const char *paths[] = { ZOO("greased"), ZOO("old"), ZOO("device_endless_names"), ZOO("two_queues"), ZOO("newer_minor"), ZOO("honest") };
  const tm_context_options options = options_with(paths, 6);
  tm_context *context = open_context(&options);
  static const char *const devices[] = { "zoo_greased:0", "zoo_old:0", "zoo_device_endless_names:0", "zoo_two_queues:0",
                                         "zoo_newer_minor:0" };
  for (size_t i = 0; i < 5; i++) {
    const uint32_t device = device_of(context, devices[i]);
    assert_int_not_equal(device, TM_ANY_DEVICE);
    assert_int_equal(run_on(context, TM_OP_NEG, device).device, device);
    assert_int_equal(run_on(context, TM_OP_ADD, device).fell_back, 0);
  }
  assert_string_equal(describe_device(context, "zoo_device_endless_names:0").description, "");
  expect_honest_unharmed(context);
  tm_context_destroy(context);
}

static void endless_devices_are_cut(void **state) {
  (void)state;
  const char *paths[] = { ZOO("device_endless_devices"), ZOO("honest") };
  static log_lines lines;
  tm_context_options options = options_with(paths, 2);
  options.log = keep_line;
  options.log_context = &lines;
  tm_context *context = open_context(&options);
  assert_int_equal(backend_of(context, "zoo_device_endless_devices").device_count, 256);
  assert_non_null(strstr(lines.text, "only its first 256 devices"));
  expect_honest_unharmed(context);
  tm_context_destroy(context);
}

/* Its events come from another thread while the lists of backends and devices still grow. */
static void events_may_come_at_any_time(void **state) {
  (void)state;
  const char *paths[] = { ZOO("eager"), ZOO("device_endless_devices"), ZOO("honest") };
  const tm_context_options options = options_with(paths, 3);
  tm_context *context = open_context(&options);
  assert_int_equal(run_on(context, TM_OP_NEG, device_of(context, "zoo_eager:0")).fell_back, 0);
  expect_honest_unharmed(context);
  tm_context_destroy(context);
}

/* ---- files that look like plugins ---- */

typedef struct file_case {
  scratch        folder;
  unsigned char *honest;
  uint64_t       honest_bytes;
} file_case;

static void file_case_begin(file_case *c) {
  assert_true(scratch_init(&c->folder));
  c->honest = scratch_slurp(ZOO("honest"), &c->honest_bytes);
  assert_non_null(c->honest);
}

static void file_case_end(file_case *c) {
  free(c->honest);
  scratch_deinit(&c->folder);
}

static void expect_file_refused(const char *path, const char *reason) {
  const char *paths[] = { path, ZOO("honest") };
  const tm_context_options options = options_with(paths, 2);
  tm_context *context = open_context(&options);
  expect_state(context, path, TM_BACKEND_REFUSED, reason);
  expect_honest_unharmed(context);
  tm_context_destroy(context);
}

static void truncated_objects_are_refused(void **state) {
  (void)state;
  file_case c;
  file_case_begin(&c);
  const uint64_t lengths[] = { 1, 4, 16, 63, 64, 100, c.honest_bytes / 4, c.honest_bytes / 2, c.honest_bytes - 4096,
                               c.honest_bytes - 1 };
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
    expect_file_refused(scratch_write(&c.folder, "short.so", c.honest, lengths[i]), lengths[i] < 4 ? "no ELF header" : "truncated");
  expect_file_refused(scratch_write(&c.folder, "empty.so", c.honest, 0), "empty file");
  file_case_end(&c);
}

static void other_architectures_are_refused(void **state) {
  (void)state;
  file_case c;
  file_case_begin(&c);
  const uint64_t machine_offset = 18, type_offset = 16, order_offset = 5;
  c.honest[machine_offset] ^= 0x55;
  expect_file_refused(scratch_write(&c.folder, "other.so", c.honest, c.honest_bytes), "another architecture");
  c.honest[machine_offset] ^= 0x55;
  c.honest[order_offset] ^= 3;          /* ELFDATA2LSB, ELFDATA2MSB */
  expect_file_refused(scratch_write(&c.folder, "order.so", c.honest, c.honest_bytes), "of the other order of bytes");
  c.honest[order_offset] ^= 3;
  c.honest[type_offset] = 2;            /* ET_EXEC */
  expect_file_refused(scratch_write(&c.folder, "program.so", c.honest, c.honest_bytes), "no shared object");
  file_case_end(&c);
}

static void files_of_everybody_are_refused(void **state) {
  (void)state;
  file_case c;
  file_case_begin(&c);
  const char *path = scratch_write(&c.folder, "open.so", c.honest, c.honest_bytes);
  assert_int_equal(chmod(path, 0666), 0);
  expect_file_refused(path, "writable by everybody");
  path = scratch_path(&c.folder, "pipe.so");
  assert_int_equal(mkfifo(path, 0600), 0);
  expect_file_refused(path, "not a regular file");
  file_case_end(&c);
}

static void one_file_is_loaded_once(void **state) {
  (void)state;
  file_case c;
  file_case_begin(&c);
  char original[1024], soft[1024], hard[1024];
  snprintf(original, sizeof original, "%s", scratch_write(&c.folder, "original.so", c.honest, c.honest_bytes));
  snprintf(soft, sizeof soft, "%s", scratch_path(&c.folder, "soft.so"));
  snprintf(hard, sizeof hard, "%s", scratch_path(&c.folder, "hard.so"));
  assert_int_equal(chmod(original, 0755), 0);
  assert_int_equal(symlink(original, soft), 0);
  assert_int_equal(link(original, hard), 0);
  const char *paths[] = { original, soft, hard, original };
  const tm_context_options options = options_with(paths, 4);
  tm_context *context = open_context(&options);
  expect_honest_unharmed(context);
  expect_state(context, soft, TM_BACKEND_REFUSED, "loaded already");
  expect_state(context, hard, TM_BACKEND_REFUSED, "loaded already");
  tm_context_destroy(context);
  file_case_end(&c);
}

/* Both are used; settings and exclusions mean the one whose whole name they give. */
static void of_one_name_all_are_loaded(void **state) {
  (void)state;
  const char *paths[] = { ZOO("honest"), ZOO("namesake") };
  const tm_setting settings[] = { { "zoo_honest", "gear", "3" }, { "zoo_honest~2", "gear", "7" } };
  tm_context_options options = options_with(paths, 2);
  options.settings = settings;
  options.setting_count = 2;
  tm_context *context = open_context(&options);
  expect_honest_unharmed(context);
  expect_state(context, ZOO("namesake"), TM_BACKEND_READY, "");
  assert_string_equal(backend_of(context, ZOO("namesake")).name, "zoo_honest~2");
  const uint32_t second = device_of(context, "zoo_honest~2:0");
  assert_int_not_equal(second, TM_ANY_DEVICE);
  assert_int_equal(run_on(context, TM_OP_NEG, second).device, second);
  tm_option_description option = { .struct_size = sizeof option };
  assert_int_equal(tm_backend_option_describe(context, 0, 0, &option), TM_OK);
  assert_string_equal(option.value, "3");
  assert_int_equal(tm_backend_option_describe(context, 1, 0, &option), TM_OK);
  assert_string_equal(option.value, "7");
  tm_context_destroy(context);
}

/* It is loaded first, and takes nothing from the built-in: neither its name nor what is said of that. */
static void a_built_in_keeps_its_name(void **state) {
  (void)state;
  const char *paths[] = { ZOO("builtin_name") };
  static const char *const names[] = { "cpu" };
  const tm_setting settings[] = { { "cpu~2", "gear", "7" } };
  tm_context_options options = options_with(paths, 1);
  options.settings = settings;
  options.setting_count = 1;
  options.excluded_devices = names;
  options.excluded_device_count = 1;
  tm_context *context = open_context(&options);
  tm_option_description option = { .struct_size = sizeof option };
  expect_state(context, ZOO("builtin_name"), TM_BACKEND_READY, "");
  assert_string_equal(backend_of(context, ZOO("builtin_name")).name, "cpu~2");
  assert_int_equal(backend_of(context, "cpu").state, TM_BACKEND_EXCLUDED);
  assert_int_equal(tm_backend_option_describe(context, 0, 0, &option), TM_OK);
  assert_string_equal(option.value, "7");
  tm_context_destroy(context);
}

static void one_of_a_name_can_be_excluded(void **state) {
  (void)state;
  const char *paths[] = { ZOO("honest"), ZOO("namesake") };
  static const char *const names[] = { "zoo_honest", "zoo_honest~2", "zoo_honest~2:0" };
  tm_context_options options = options_with(paths, 2);
  options.excluded_devices = &names[0];
  options.excluded_device_count = 1;
  tm_context *context = open_context(&options);
  expect_state(context, ZOO("honest"), TM_BACKEND_EXCLUDED, "by request");
  expect_state(context, ZOO("namesake"), TM_BACKEND_READY, "");
  assert_string_equal(backend_of(context, ZOO("namesake")).name, "zoo_honest~2");
  tm_context_destroy(context);
  options.excluded_devices = &names[1];
  context = open_context(&options);
  expect_state(context, ZOO("honest"), TM_BACKEND_READY, "");
  expect_state(context, ZOO("namesake"), TM_BACKEND_EXCLUDED, "by request");
  tm_context_destroy(context);
  options.excluded_device_count = 0;
  options.devices = &names[2];
  options.device_count = 1;
  context = open_context(&options);
  expect_state(context, ZOO("honest"), TM_BACKEND_EXCLUDED, "not among");
  assert_int_equal(describe_device(context, "zoo_honest~2:0").state, TM_DEVICE_READY);
  tm_context_destroy(context);
}

/* ---- what the trial found ---- */

/* A program that asks it about a thousand operations would wait for minutes. */
static void slow_questions_are_noted(void **state) {
  (void)state;
  file_case c;
  file_case_begin(&c);
  const char *paths[] = { ZOO("careless/ponders") };
  tm_context_options options = options_with(paths, 1);
  options.state_folder = scratch_path(&c.folder, "state");
  tm_context *context = open_context(&options);
  const char *note = backend_of(context, "zoo_ponders").note;
  if (strstr(note, " took 1") == NULL || strstr(note, " ms for a question") == NULL) fail_msg("'%s'", note);
  /* So slow that not all that it claims was found, which is no secret. */
  if (strstr(note, "did not run every kind that it claims on device 0") == NULL) fail_msg("'%s'", note);
  tm_context_destroy(context);
  file_case_end(&c);
}

/* Listed from a record they are those that were listed first, and awake they are, too. */
static void twins_are_kept_apart(void **state) {
  (void)state;
  file_case c;
  file_case_begin(&c);
  const char *paths[] = { ZOO("careless/twins") };
  char uuids[2][2][40];
  tm_context_options options = options_with(paths, 1);
  options.state_folder = scratch_path(&c.folder, "state");
  for (int start = 0; start < 2; start++) {
    tm_context *context = open_context(&options);
    assert_non_null(strstr(backend_of(context, "zoo_twins").note, "zoo_twins:0 says that it is the same device as zoo_twins:1 (one uuid)"));
    for (int i = 0; i < 2; i++)
      snprintf(uuids[start][i], sizeof uuids[start][i], "%s", describe_device(context, i == 0 ? "zoo_twins:0" : "zoo_twins:1").uuid);
    if (start == 1) assert_int_equal(run_on(context, TM_OP_NEG, device_of(context, "zoo_twins:1")).fell_back, 0);
    tm_context_destroy(context);
    assert_string_not_equal(uuids[start][0], uuids[start][1]);
    assert_string_equal(uuids[start][0], uuids[0][0]);
    assert_string_equal(uuids[start][1], uuids[0][1]);
  }
  file_case_end(&c);
}

/* What is in force as a program runs holds in the trial: inputs may be pages of a file that nobody can write to. */
static void who_writes_to_inputs_is_found_out_in_the_trial(void **state) {
  (void)state;
  file_case c;
  file_case_begin(&c);
  const char *paths[] = { ZOO("honest"), ZOO("sly/touches_inputs") };
  tm_context_options options = options_with(paths, 2);
  options.state_folder = scratch_path(&c.folder, "state");
  tm_context *context = open_context(&options);
  expect_state(context, paths[1], TM_BACKEND_REFUSED, "launch of copy f32 on device 0 ends the process");
  expect_honest_unharmed(context);
  tm_context_destroy(context);
  file_case_end(&c);
}

/* In one context with somebody who does no harm. */
static void a_hang_in_the_trial_is_nobody_elses(void **state) {
  (void)state;
  file_case c;
  file_case_begin(&c);
  const char *paths[] = { ZOO("honest"), ZOO("culprits/hangs_in_launch") };
  tm_context_options options = options_with(paths, 2);
  options.state_folder = scratch_path(&c.folder, "state");
  tm_context *context = open_context(&options);
  expect_state(context, paths[1], TM_BACKEND_REFUSED, "launch of copy f32 on device 0 did not end");
  assert_true(backend_of(context, paths[1]).trial_ms >= 4000);
  expect_honest_unharmed(context);
  /* Once it may have been slow; were it so again, it would cost every program these seconds. */
  tm_trial_pause_keep(context->inventory->backends[1], "it hung again");
  tm_context_destroy(context);
  context = open_context(&options);
  expect_state(context, paths[1], TM_BACKEND_REFUSED, "it hung again; so it was 2 times, and it is not tried again for 10 minutes");
  assert_int_equal(backend_of(context, paths[1]).trial_ms, 0);
  assert_int_equal(tm_context_forgive(context, backend_of(context, paths[1]).name, NULL, NULL), TM_OK);
  char *record = NULL;
  uint64_t length = 0;
  assert_false(tm_trial_pause_find(context->inventory, context->inventory->backends[1]->record, &record, &length));
  tm_context_destroy(context);
  file_case_end(&c);
}

/* ---- the search path ---- */

static void only_absolute_folders_are_searched(void **state) {
  (void)state;
  file_case c;
  file_case_begin(&c);
  const char *path = scratch_write(&c.folder, "found.so", c.honest, c.honest_bytes);
  assert_int_equal(chmod(path, 0755), 0);
  assert_non_null(scratch_write(&c.folder, "ignored.txt", "text", 4));
  char before[4096], value[2048];
  assert_non_null(getcwd(before, sizeof before));
  assert_int_equal(chdir(c.folder.folder), 0);
  tm_context_options options = { .struct_size = sizeof options, .flags = TM_CONTEXT_LOAD_PLUGINS };
  static const char *const not_searched[] = { "", ".", ":", "./", "../zoo:.", "/nonexistent/folder" };
  for (size_t i = 0; i < sizeof not_searched / sizeof not_searched[0]; i++) {
    assert_int_equal(setenv("TENSORMORPH_PLUGIN_PATH", not_searched[i], 1), 0);
    tm_context *context = open_context(&options);
    tm_backend_description found = { .struct_size = sizeof found };
    for (uint32_t b = 0; tm_backend_describe(context, b, &found) == TM_OK; b++) assert_string_not_equal(found.name, "zoo_honest");
    tm_context_destroy(context);
  }
  snprintf(value, sizeof value, ".:%s::relative", c.folder.folder);
  assert_int_equal(setenv("TENSORMORPH_PLUGIN_PATH", value, 1), 0);
  tm_context *context = open_context(&options);
  expect_honest_unharmed(context);
  tm_context_destroy(context);
  options.flags = 0;                    /* the library by itself searches nothing */
  context = open_context(&options);
  assert_int_equal(device_of(context, "zoo_honest:0"), TM_ANY_DEVICE);
  tm_context_destroy(context);
  assert_int_equal(unsetenv("TENSORMORPH_PLUGIN_PATH"), 0);
  assert_int_equal(chdir(before), 0);
  file_case_end(&c);
}

static void manifests_that_are_no_files_are_refused(void **state) {
  (void)state;
  file_case c;
  char manifest[512];
  file_case_begin(&c);
  const char *path = scratch_write(&c.folder, "found.so", c.honest, c.honest_bytes);
  assert_int_equal(chmod(path, 0755), 0);
  snprintf(manifest, sizeof manifest, "%.480s/found.json", c.folder.folder);
  assert_int_equal(mkfifo(manifest, 0600), 0);
  expect_file_refused(path, "found.json: is a pipe, not a regular file");
  assert_int_equal(unlink(manifest), 0);
  assert_int_equal(symlink("nowhere.json", manifest), 0);
  expect_file_refused(path, "found.json: manifest: it is a link to a file that is not there");
  file_case_end(&c);
}

/* ---- want of memory ---- */

typedef struct failing_heap {
  uint64_t calls;
  uint64_t fails_at;
} failing_heap;

static void *failing_alloc(void *context, uint64_t bytes, uint64_t alignment) {
  failing_heap *heap = context;
  void *memory = NULL;
  if (++heap->calls == heap->fails_at) return NULL;
  return posix_memalign(&memory, (size_t)(alignment < sizeof(void *) ? sizeof(void *) : alignment), (size_t)bytes) == 0 ? memory : NULL;
}

static void failing_free(void *context, void *memory, uint64_t bytes) {
  (void)context;
  (void)bytes;
  free(memory);
}

static void want_of_memory_is_said_in_words(void **state) {
  (void)state;
  const char *paths[] = { ZOO("honest") };
  for (uint64_t n = 1; n < 40; n++) {
    failing_heap heap = { .fails_at = n };
    tm_context_options options = options_with(paths, 1);
    options.alloc = failing_alloc;
    options.free = failing_free;
    options.allocator_context = &heap;
    options.thread_count = 1;
    tm_context *context = NULL;
    tm_error error = TM_ERROR_INIT;
    const tm_status status = tm_context_create(&options, &context, &error);
    if (status != TM_OK && error.text[0] == '\0') fail_msg("allocation %u: status %d without a word", (unsigned)n, status);
    tm_context_destroy(context);
  }
}

static void folders_of_everybody_are_not_searched(void **state) {
  (void)state;
  static const struct { mode_t mode; uint32_t backend_state; const char *reason; } rows[] = {
    { 0777, TM_BACKEND_REFUSED, "everybody may write to it" }, { 01777, TM_BACKEND_REFUSED, "everybody may write to it" },
    { 0702, TM_BACKEND_REFUSED, "everybody may write to it" }, { 0770, TM_BACKEND_READY, "" }, { 0755, TM_BACKEND_READY, "" },
  };
  file_case c;
  file_case_begin(&c);
  const char *path = scratch_write(&c.folder, "found.so", c.honest, c.honest_bytes);
  assert_int_equal(chmod(path, 0755), 0);
  assert_int_equal(setenv("TENSORMORPH_PLUGIN_PATH", c.folder.folder, 1), 0);
  const tm_context_options options = { .struct_size = sizeof options, .flags = TM_CONTEXT_LOAD_PLUGINS };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    assert_int_equal(chmod(c.folder.folder, rows[i].mode), 0);
    tm_context *context = open_context(&options);
    expect_state(context, path, rows[i].backend_state, rows[i].reason);
    tm_context_destroy(context);
  }
  assert_int_equal(unsetenv("TENSORMORPH_PLUGIN_PATH"), 0);
  file_case_end(&c);
}

/* ---- the user's words ---- */

static void excluded_ones_are_not_loaded(void **state) {
  (void)state;
  /* It would take five seconds to find out that it hangs. */
  const char *paths[] = { ZOO("constructor_hangs"), ZOO("honest") };
  static const char *const excluded[] = { "constructor_hangs", "zoo_honest:0" };
  tm_context_options options = options_with(paths, 2);
  options.excluded_devices = excluded;
  options.excluded_device_count = 2;
  tm_context *context = open_context(&options);
  expect_state(context, ZOO("constructor_hangs"), TM_BACKEND_EXCLUDED, "by request");
  assert_int_equal(describe_device(context, "zoo_honest:0").state, TM_DEVICE_EXCLUDED);
  const tm_run_report report = run_on(context, TM_OP_NEG, TM_ANY_DEVICE);
  assert_int_not_equal(report.device, device_of(context, "zoo_honest:0"));
  tm_context_destroy(context);
}

typedef struct wrong_word {
  tm_setting  setting;          /* backend NULL: none */
  const char *device;           /* NULL: none */
  const char *text;
} wrong_word;

static void slips_get_a_suggestion(void **state) {
  (void)state;
  static const wrong_word words[] = {
    { { "zoo_honest", "geer", "2" }, NULL, "did you mean 'gear'" },
    { { "zoo_honest", "gear", "two" }, NULL, "expected an integer, found 'two'" },
    { { "zoo_honest", "lights", "on" }, NULL, "expected 0 or 1, found 'on'" },
    { { "zoo_honset", "gear", "2" }, NULL, "did you mean 'zoo_honest'" },
    { { NULL, NULL, NULL }, "zoo_honest:1", "did you mean 'zoo_honest:0'" },
    { { NULL, NULL, NULL }, "something_else", "there are: " },
  };
  const char *paths[] = { ZOO("honest") };
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    tm_context_options options = options_with(paths, 1);
    options.settings = &words[i].setting;
    options.setting_count = words[i].setting.backend != NULL;
    options.devices = &words[i].device;
    options.device_count = words[i].device != NULL;
    tm_context *context = NULL;
    tm_error error = TM_ERROR_INIT;
    assert_int_equal(tm_context_create(&options, &context, &error), TM_ERROR_ARGUMENT);
    assert_null(context);
    if (strstr(error.text, words[i].text) == NULL) fail_msg("'%s' does not say '%s'", error.text, words[i].text);
  }
}

static void settings_reach_the_backend(void **state) {
  (void)state;
  const char *paths[] = { ZOO("honest") };
  const tm_setting settings[] = { { "zoo_honest", "gear", "-4" }, { "zoo_honest", "lights", "1" } };
  tm_context_options options = options_with(paths, 1);
  options.settings = settings;
  options.setting_count = 2;
  tm_context *context = open_context(&options);
  tm_option_description option = { .struct_size = sizeof option };
  assert_int_equal(tm_backend_option_describe(context, 0, 0, &option), TM_OK);
  assert_string_equal(option.value, "-4");
  assert_string_equal(option.default_value, "1");
  tm_context_destroy(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(bad_ones_are_refused_by_reason),
    cmocka_unit_test(a_hanging_constructor_is_given_up),
    cmocka_unit_test(unusual_ones_are_accepted),
    cmocka_unit_test(endless_devices_are_cut),
    cmocka_unit_test(events_may_come_at_any_time),
    cmocka_unit_test(truncated_objects_are_refused),
    cmocka_unit_test(other_architectures_are_refused),
    cmocka_unit_test(files_of_everybody_are_refused),
    cmocka_unit_test(one_file_is_loaded_once),
    cmocka_unit_test(of_one_name_all_are_loaded),
    cmocka_unit_test(a_built_in_keeps_its_name),
    cmocka_unit_test(one_of_a_name_can_be_excluded),
    cmocka_unit_test(slow_questions_are_noted),
    cmocka_unit_test(twins_are_kept_apart),
    cmocka_unit_test(who_writes_to_inputs_is_found_out_in_the_trial),
    cmocka_unit_test(a_hang_in_the_trial_is_nobody_elses),
    cmocka_unit_test(only_absolute_folders_are_searched),
    cmocka_unit_test(manifests_that_are_no_files_are_refused),
    cmocka_unit_test(want_of_memory_is_said_in_words),
    cmocka_unit_test(folders_of_everybody_are_not_searched),
    cmocka_unit_test(excluded_ones_are_not_loaded),
    cmocka_unit_test(slips_get_a_suggestion),
    cmocka_unit_test(settings_reach_the_backend),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
