/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept from one process to the next: it comes back, whoever else writes, and whatever befell the file. */
#define _GNU_SOURCE
#include "fakes/fake_case.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "api/context.h"
#include "base/error.h"
#include "formats/scratch.h"

static fake_control controls[2];
static char         last_log[1024];
static uint32_t     log_count;

static void keep_log(void *context, uint32_t level, const char *message) {
  (void)context, (void)level;
  snprintf(last_log, sizeof last_log, "%s", message);
  log_count += strstr(message, "learned") != NULL;
}

static tm_context *open_context(const scratch *files) {
  char path[512];
  tm_context *context = NULL;
  tm_error error = { .struct_size = sizeof error };
  snprintf(path, sizeof path, "%s/tests/fakes/fake_a.so", TM_BINARY_DIR);
  memset(&controls[0].uuid, 7, sizeof controls[0].uuid);
  const char *paths[] = { path }, *excluded[] = { "cpu" };
  const tm_named_pointer pointers[] = { { "fake_a", FAKE_CONTROL_KEY, &controls[0] } };
  const tm_context_options options = {
    .struct_size = sizeof options, .thread_count = 1, .plugin_path_count = 1, .plugin_paths = paths,
    .excluded_devices = excluded, .excluded_device_count = 1, .pointers = pointers, .pointer_count = 1,
    .state_folder = files->folder, .log = keep_log,
  };
  log_count = 0;
  if (tm_context_create(&options, &context, &error) != TM_OK) fail_msg("%s", error.text);
  return context;
}

static uint32_t device_of(const tm_context *context, const char *name) {
  for (uint32_t i = 0; i < context->inventory->device_count; i++)
    if (strcmp(context->inventory->devices[i]->name, name) == 0) return i;
  fail_msg("no %s", name);
  return 0;
}

static tm_correction_key key_of(uint32_t device) { return (tm_correction_key){ device, TM_CLASS_ELEMENTWISE, 0x1200, 0 }; }

static void learn(tm_context *context, uint64_t ratio, int times) {
  const tm_correction_key key = key_of(device_of(context, "fake_a:0"));
  for (int i = 0; i < times; i++) tm_correction_learn(&context->correction, &key, NULL, 1000000, 1000000 * ratio);
}

static tm_correction_estimate known(tm_context *context) {
  const tm_correction_key key = key_of(device_of(context, "fake_a:0"));
  return tm_correction_look(&context->correction, &key);
}

static void close_all(scratch *files) {
  (void)rmdir(scratch_path(files, "backends"));
  char command[1100];
  snprintf(command, sizeof command, "rm -rf '%s'", files->folder);
  if (system(command) != 0) fail();
}

static void assert_is_about_eight(tm_context *context) {
  const tm_correction_estimate estimate = known(context);
  assert_in_range(estimate.factor >> 24, (3 << 8) - 40, (3 << 8) + 40);
}

static void what_was_learned_comes_back(void **state) {
  (void)state;
  scratch files;
  assert_true(scratch_init(&files));
  for (uint64_t round = 0; round < 3; round++) {
    tm_context *context = open_context(&files);
    assert_int_equal(known(context).bucket_samples, round * 10);
    if (round != 0) assert_is_about_eight(context);
    learn(context, 8, 10);
    tm_context_destroy(context);
    assert_int_equal(log_count, 0);
  }
  close_all(&files);
}

static void saving_twice_writes_once(void **state) {
  (void)state;
  scratch files;
  assert_true(scratch_init(&files));
  tm_context *context = open_context(&files);
  learn(context, 8, 10);
  for (int i = 0; i < 3; i++) assert_int_equal(tm_profile_save(&context->profile, NULL), TM_OK);
  tm_context_destroy(context);
  context = open_context(&files);
  assert_int_equal(known(context).bucket_samples, 10);
  tm_context_destroy(context);
  close_all(&files);
}

/* Every process learns and saves at once with the others; nothing is lost, also when journals are merged meanwhile. */
static void processes_lose_nothing_to_each_other(void **state) {
  (void)state;
  enum { PROCESSES = 4, ROUNDS = 6 };
  scratch files;
  assert_true(scratch_init(&files));
  for (int p = 0; p < PROCESSES; p++) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child != 0) continue;
    tm_context *context = open_context(&files);
    for (int i = 0; i < ROUNDS; i++) {
      learn(context, 8, 5);
      if (tm_profile_save(&context->profile, NULL) != TM_OK) _exit(1);
      if (i == 3 && tm_profile_file_compact(&context->profile.file, NULL, NULL, NULL) != TM_OK) _exit(2);
    }
    tm_context_destroy(context);
    _exit(0);
  }
  for (int p = 0; p < PROCESSES; p++) {
    int status = 0;
    assert_true(wait(&status) > 0);
    assert_int_equal(status, 0);
  }
  tm_context *context = open_context(&files);
  assert_int_equal(known(context).bucket_samples, PROCESSES * ROUNDS * 5);
  assert_is_about_eight(context);
  tm_context_destroy(context);
  close_all(&files);
}

/* ---- files that were damaged ---- */

static char *read_file(scratch *files, const char *name, size_t *out_bytes) {
  FILE *file = fopen(scratch_path(files, name), "rb");
  if (file == NULL) return NULL;
  char *data = malloc(1 << 20);
  assert_non_null(data);
  *out_bytes = fread(data, 1, 1 << 20, file);
  (void)fclose(file);
  return data;
}

static void write_file(scratch *files, const char *name, const char *data, size_t bytes) {
  FILE *file = fopen(scratch_path(files, name), "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, bytes, file), bytes);
  assert_int_equal(fclose(file), 0);
}

static void make_known(scratch *files, bool as_snapshot) {
  assert_true(scratch_init(files));
  tm_context *context = open_context(files);
  learn(context, 8, 10);
  assert_int_equal(tm_profile_save(&context->profile, NULL), TM_OK);
  if (as_snapshot) assert_int_equal(tm_profile_file_compact(&context->profile.file, NULL, NULL, NULL), TM_OK);
  tm_context_destroy(context);
}

/* Wherever it is cut or hit, what is whole counts, one line says so, and the next save mends it. */
static void damage_costs_only_what_it_hits(void **state) {
  (void)state;
  static const char *const names[] = { "profile.journal", "profile" };
  for (int which = 0; which < 2; which++) {
    scratch files;
    size_t bytes = 0;
    make_known(&files, which == 1);
    char *data = read_file(&files, names[which], &bytes);
    assert_non_null(data);
    assert_in_range(bytes, 100, 100000);
    for (size_t at = 0; at < bytes; at += bytes / 40 + 1) {
      write_file(&files, names[which], data, at);
      tm_context *context = open_context(&files);
      assert_true(known(context).bucket_samples <= 10);
      assert_true(log_count <= 1);
      tm_context_destroy(context);
      data[at] ^= 0x40;
      write_file(&files, names[which], data, bytes);
      data[at] ^= 0x40;
      context = open_context(&files);
      assert_int_equal(log_count, 1);
      learn(context, 8, 3);
      assert_int_equal(tm_profile_save(&context->profile, NULL), TM_OK);
      tm_context_destroy(context);
      context = open_context(&files);
      assert_int_equal(log_count, 0);
      assert_true(known(context).bucket_samples >= 3);
      tm_context_destroy(context);
    }
    free(data);
    close_all(&files);
  }
}

static void foreign_content_is_no_profile(void **state) {
  (void)state;
  static const char *const contents[] = { "hello\n", "\n\n\n", "{ \"json\": true }", "\177ELF" };
  for (size_t i = 0; i < sizeof contents / sizeof contents[0]; i++) {
    scratch files;
    assert_true(scratch_init(&files));
    write_file(&files, "profile", contents[i], strlen(contents[i]));
    tm_context *context = open_context(&files);
    assert_int_equal(log_count, 1);
    assert_int_equal(known(context).samples, 0);
    learn(context, 8, 10);
    tm_context_destroy(context);
    context = open_context(&files);
    assert_int_equal(known(context).bucket_samples, 10);
    tm_context_destroy(context);
    close_all(&files);
  }
}

/* A folder in the place of the file, or nobody may write there: nothing is kept, both are said once, and that is all. */
static void what_cannot_be_written_is_no_error(void **state) {
  (void)state;
  scratch files;
  assert_true(scratch_init(&files));
  assert_int_equal(mkdir(scratch_path(&files, "profile.journal"), 0700), 0);
  tm_context *context = open_context(&files);
  learn(context, 8, 10);
  assert_in_range(known(context).bucket_samples, 4, 10);
  for (int i = 0; i < 2; i++) assert_int_equal(tm_profile_save(&context->profile, NULL), TM_ERROR_IO);
  tm_context_destroy(context);
  assert_int_equal(log_count, 2);
  close_all(&files);
}

/* ---- saves that fail for a while ---- */

typedef struct obstacle {
  void (*raise)(scratch *files);
  void (*clear)(scratch *files);
} obstacle;

static void put_journal_folder(scratch *files) { assert_int_equal(mkdir(scratch_path(files, "profile.journal"), 0700), 0); }
static void drop_journal_folder(scratch *files) { assert_int_equal(rmdir(scratch_path(files, "profile.journal")), 0); }

static void put_lock_folder(scratch *files) {
  (void)unlink(scratch_path(files, "profile.lock"));
  assert_int_equal(mkdir(scratch_path(files, "profile.lock"), 0700), 0);
}

static void drop_lock_folder(scratch *files) { assert_int_equal(rmdir(scratch_path(files, "profile.lock")), 0); }

static void limit_files(rlim_t bytes) {
  struct rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
  limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* The disk is full in the midst of the second line: the header and the first would count. */
static void put_limit(scratch *files) {
  (void)files;
  (void)signal(SIGXFSZ, SIG_IGN);
  limit_files(400);
}

static void drop_limit(scratch *files) {
  (void)files;
  limit_files(RLIM_INFINITY);
}

static const obstacle obstacles[] = { { put_journal_folder, drop_journal_folder }, { put_lock_folder, drop_lock_folder },
                                      { put_limit, drop_limit } };

/* Whatever stood in the way, and however often: what could not be written is written with the next save, once. */
static void what_could_not_be_written_is_written_later(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof obstacles / sizeof obstacles[0]; i++) {
    scratch files;
    tm_error error = { .struct_size = sizeof error };
    assert_true(scratch_init(&files));
    tm_context *context = open_context(&files);
    for (int round = 0; round < 2; round++) {
      learn(context, 8, 5);
      if (round == 0) obstacles[i].raise(&files);
      for (int again = 0; again < 2; again++) {
        const tm_status status = tm_context_save_profile(context, &error);
        if (status != TM_ERROR_IO) fail_msg("obstacle %zu, round %d: %d", i, round, status);
      }
    }
    assert_int_equal(log_count, i == 0 ? 2 : 1);
    obstacles[i].clear(&files);
    assert_int_equal(tm_context_save_profile(context, &error), TM_OK);
    tm_context *other = open_context(&files);
    assert_int_equal(log_count, 0);
    assert_int_equal(known(other).bucket_samples, 10);
    assert_is_about_eight(other);
    tm_context_destroy(other);
    tm_context_destroy(context);
    close_all(&files);
  }
}

/* A disk that takes nothing is not asked at every run. */
static void a_save_that_failed_is_not_due_at_once(void **state) {
  (void)state;
  scratch files;
  assert_true(scratch_init(&files));
  tm_context *context = open_context(&files);
  put_journal_folder(&files);
  learn(context, 8, 5000);
  assert_int_equal(tm_profile_save(&context->profile, NULL), TM_ERROR_IO);
  drop_journal_folder(&files);
  tm_profile_save_if_due(&context->profile);
  assert_false(access(scratch_path(&files, "profile.journal"), F_OK) == 0);
  learn(context, 8, 5000);
  tm_profile_save_if_due(&context->profile);
  assert_true(access(scratch_path(&files, "profile.journal"), F_OK) == 0);
  tm_context_destroy(context);
  close_all(&files);
}

/* A later version's file is not ours to change. */
static void a_later_version_is_left_alone(void **state) {
  (void)state;
  scratch files;
  size_t bytes = 0;
  assert_true(scratch_init(&files));
  char line[TM_PROFILE_LINE_BYTES];
  const tm_profile_record header = { .kind = TM_PROFILE_HEADER, .version = TM_PROFILE_VERSION + 1, .generation = 4 };
  const uint64_t length = tm_profile_record_print(&header, line);
  write_file(&files, "profile", line, length);
  tm_context *context = open_context(&files);
  assert_int_equal(log_count, 1);
  learn(context, 8, 10);
  assert_int_equal(tm_profile_save(&context->profile, NULL), TM_UNSUPPORTED);
  tm_context_destroy(context);
  char *data = read_file(&files, "profile", &bytes);
  assert_int_equal(bytes, length);
  assert_memory_equal(data, line, length);
  assert_null(read_file(&files, "profile.journal", &bytes));
  free(data);
  close_all(&files);
}

/* A journal that was merged already does not count again. */
static void a_merged_journal_counts_once(void **state) {
  (void)state;
  scratch files;
  size_t bytes = 0;
  make_known(&files, false);
  char *journal = read_file(&files, "profile.journal", &bytes);
  tm_context *context = open_context(&files);
  assert_int_equal(tm_profile_file_compact(&context->profile.file, NULL, NULL, NULL), TM_OK);
  tm_context_destroy(context);
  write_file(&files, "profile.journal", journal, bytes);        /* as if the process had ended before it removed it */
  context = open_context(&files);
  assert_int_equal(known(context).bucket_samples, 10);
  learn(context, 8, 5);
  tm_context_destroy(context);
  context = open_context(&files);
  assert_int_equal(known(context).bucket_samples, 15);
  tm_context_destroy(context);
  free(journal);
  close_all(&files);
}

/* ---- whom it is about ---- */

typedef struct change {
  void (*apply)(tm_profile_device *device);
  int  verdict;                 /* 0 as before, 1 with less weight, 2 not at all */
} change;

static void other_driver(tm_profile_device *device) { tm_profile_device_set(device->driver, "another"); }
static void other_threads(tm_profile_device *device) { device->thread_count += 3; }
static void other_build(tm_profile_device *device) { tm_profile_device_set(device->build_id, "another"); }
static void other_abi(tm_profile_device *device) { device->abi++; }
static void other_name(tm_profile_device *device) { tm_profile_device_set(device->backend, "another"); }
static void other_uuid(tm_profile_device *device) { device->uuid[0] = device->uuid[0] == '1' ? '2' : '1'; }
static void other_formulas(tm_profile_device *device) { device->cost_model_id++; }
static void none_other(tm_profile_device *device) { (void)device; }

typedef struct rewriting {
  void     (*apply)(tm_profile_device *device);
  uint64_t fingerprint;
  char     text[1 << 16];
  uint64_t used;
} rewriting;

static void rewrite(void *context, const tm_profile_record *record) {
  rewriting *r = context;
  tm_profile_record changed = *record;
  if (record->kind == TM_PROFILE_DEVICE) {
    r->apply(&changed.device);
    changed.fingerprint = r->fingerprint = tm_profile_device_fingerprint(&changed.device);
  } else if (record->kind == TM_PROFILE_ENTRY) {
    changed.fingerprint = r->fingerprint;
  }
  r->used += tm_profile_record_print(&changed, r->text + r->used);
}

static void knowledge_counts_as_far_as_it_fits(void **state) {
  (void)state;
  static const change changes[] = { { none_other, 0 }, { other_driver, 1 }, { other_threads, 1 }, { other_build, 1 }, { other_abi, 1 },
                                    { other_name, 2 }, { other_uuid, 2 }, { other_formulas, 2 } };
  static rewriting r;
  int64_t spreads[3] = { 0, 0, 0 };
  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
    scratch files;
    size_t bytes = 0;
    make_known(&files, false);
    char *journal = read_file(&files, "profile.journal", &bytes);
    r = (rewriting){ .apply = changes[i].apply };
    (void)tm_profile_text_read(journal, bytes, rewrite, &r);
    write_file(&files, "profile.journal", r.text, r.used);
    tm_context *context = open_context(&files);
    const tm_correction_estimate estimate = known(context);
    if (changes[i].verdict == 2) assert_int_equal(estimate.samples, 0);
    else if (changes[i].verdict == 0) assert_is_about_eight(context);
    else assert_in_range(estimate.factor >> 24, (2 << 8) + 128, (3 << 8) + 40);
    if (changes[i].verdict == 1) assert_true(estimate.spread > spreads[0]);
    else spreads[changes[i].verdict] = estimate.spread;
    tm_context_destroy(context);
    free(journal);
    close_all(&files);
  }
}

/* ---- for people ---- */

static void export_import_and_reset(void **state) {
  (void)state;
  scratch files, other;
  uint64_t count = 0;
  char path[600];
  make_known(&files, false);
  tm_context *context = open_context(&files);
  snprintf(path, sizeof path, "%s/exported", files.folder);
  assert_int_equal(tm_profile_export(&context->profile, path, NULL), TM_OK);
  tm_context_destroy(context);
  assert_true(scratch_init(&other));
  context = open_context(&other);
  assert_int_equal(tm_profile_import(&context->profile, path, &count, NULL), TM_OK);
  assert_in_range(count, 3, 8);
  assert_int_equal(known(context).bucket_samples, 10);
  tm_context_destroy(context);
  context = open_context(&other);
  assert_int_equal(known(context).bucket_samples, 10);
  for (int again = 0; again < 2; again++) {     /* evidence does not become more by being read twice */
    assert_int_equal(tm_profile_import(&context->profile, path, &count, NULL), TM_OK);
    assert_int_equal(known(context).bucket_samples, 10);
    assert_int_equal(tm_profile_export(&context->profile, path, NULL), TM_OK);
  }
  assert_int_equal(tm_profile_reset(&context->profile, "nobody", &count, NULL), TM_ERROR_NOT_FOUND);
  assert_int_equal(known(context).bucket_samples, 10);
  assert_int_equal(tm_profile_reset(&context->profile, "fake_a", &count, NULL), TM_OK);
  assert_int_equal(known(context).samples, 0);
  tm_context_destroy(context);
  context = open_context(&other);
  assert_int_equal(known(context).samples, 0);
  assert_int_equal(tm_profile_import(&context->profile, scratch_path(&other, "missing"), &count, NULL), TM_ERROR_NOT_FOUND);
  assert_int_equal(tm_profile_import(&context->profile, "/etc/passwd", &count, NULL), TM_ERROR_CORRUPT);
  assert_int_equal(tm_profile_import(&context->profile, path, &count, NULL), TM_OK);
  assert_int_equal(tm_profile_reset(&context->profile, NULL, &count, NULL), TM_OK);
  assert_int_equal(known(context).samples, 0);
  tm_context_destroy(context);
  close_all(&files);
  close_all(&other);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_was_learned_comes_back),
    cmocka_unit_test(saving_twice_writes_once),
    cmocka_unit_test(processes_lose_nothing_to_each_other),
    cmocka_unit_test(damage_costs_only_what_it_hits),
    cmocka_unit_test(foreign_content_is_no_profile),
    cmocka_unit_test(what_cannot_be_written_is_no_error),
    cmocka_unit_test(what_could_not_be_written_is_written_later),
    cmocka_unit_test(a_save_that_failed_is_not_due_at_once),
    cmocka_unit_test(a_later_version_is_left_alone),
    cmocka_unit_test(a_merged_journal_counts_once),
    cmocka_unit_test(knowledge_counts_as_far_as_it_fits),
    cmocka_unit_test(export_import_and_reset),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
