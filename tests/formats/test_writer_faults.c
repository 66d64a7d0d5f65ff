/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer that is killed, or that the system refuses something, at each step that touches the folder and at random moments.
 * The functions of the system that it uses are replaced here, so that a step can be the last one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "formats/checkpoint_recovery.h"
#include "formats/scratch.h"
#include "formats/written_model.h"

/* -------------------------------------------------------------------------------------------------- faulty system ---- */

typedef enum step { STEP_RENAME, STEP_UNLINK, STEP_SYNC, STEP_SYNC_PIECE, STEP_ROOM, STEP_WRITE } step;

static uint64_t steps_left;     /* until a fault; 0: none comes */
static bool     dies;           /* the fault is a SIGKILL */
static step     faulty_step;    /* else this kind of step fails, from that one on */
static int      faulty_number;
static bool     has_failed;

static bool fails(step kind) {
  if (steps_left == 0 || (!dies && kind != faulty_step)) return false;
  if (steps_left > 1) {
    steps_left--;
    return false;
  }
  if (dies) (void)kill(getpid(), SIGKILL);
  errno = faulty_number;
  has_failed = true;
  return true;
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
  return fails(STEP_RENAME) ? -1 : (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, 0);
}

int unlinkat(int folder, const char *name, int flags) {
  return fails(STEP_UNLINK) ? -1 : (int)syscall(SYS_unlinkat, folder, name, flags);
}

/* The disk itself is not waited for: what a kill leaves does not depend on it. */
int fsync(int file) {
  (void)file;
  return fails(STEP_SYNC) ? -1 : 0;
}

static tm_checkpoint_writer *cancelled_while_synced;

int sync_file_range(int file, off_t offset, off_t bytes, unsigned flags) {
  (void)file, (void)offset, (void)bytes, (void)flags;
  if (cancelled_while_synced != NULL) tm_checkpoint_writer_cancel(cancelled_while_synced);
  return fails(STEP_SYNC_PIECE) ? -1 : 0;
}

int fallocate(int file, int mode, off_t offset, off_t bytes) {
  return fails(STEP_ROOM) ? -1 : (int)syscall(SYS_fallocate, file, mode, offset, bytes);
}

ssize_t pwrite(int file, const void *data, size_t bytes, off_t offset) {
  return fails(STEP_WRITE) ? -1 : (ssize_t)syscall(SYS_pwrite64, file, data, bytes, offset);
}

/* What others do between the opening of a file and its lock; once, unless it says so again. */
static void (*before_lock)(void);

int flock(int file, int operation) {
  void (*const meanwhile)(void) = before_lock;
  before_lock = NULL;
  if (meanwhile != NULL) meanwhile();
  return (int)syscall(SYS_flock, file, operation);
}

static void fault_never(void) { steps_left = 0; }

static void fault_at(step kind, uint64_t count, int number) {
  faulty_step = kind;
  faulty_number = number;
  dies = has_failed = false;
  steps_left = count;
}

/* -------------------------------------------------------------------------------------------------------- a folder ---- */

static tm_memory memory;
static scratch files;
static tm_error error;

static int set_up(void **state) {
  (void)state;
  tm_memory_init(&memory, 0);
  error = (tm_error)TM_ERROR_INIT;
  fault_never();
  return scratch_init(&files) ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  fault_never();
  scratch_deinit(&files);
  return memory.used_bytes == 0 ? 0 : -1;
}

#define OLD 1
#define NEW 2

typedef struct change {
  const char *text;
  uint64_t    old_shard_bytes;  /* 0: one file */
  uint64_t    new_shard_bytes;
} change;

static const change changes[] = {
  { "one file by another", 0, 0 },
  { "a set by one of the same names", SHARDS_OF_TWO, SHARDS_OF_TWO },
  { "a set by one of other names", SHARDS_OF_TWO, SHARDS_OF_THREE },
  { "one file by a set", 0, SHARDS_OF_TWO },
  { "a set by one file", SHARDS_OF_TWO, 0 },
};

static const char *single_path(void) { return scratch_path(&files, "m.safetensors"); }

static void write_old(const change *one) {
  if (model_write(&memory, TM_WRITE_SAFETENSORS, single_path(), one->old_shard_bytes, OLD, &error) != TM_OK)
    fail_msg("%s", error.text);
}

/* The last byte of a file, which is its last tensor's: which model it is of. */
static int content_of_file(const char *path) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fseek(file, -1, SEEK_END), 0);
  const int content = fgetc(file);
  (void)fclose(file);
  return content;
}

/* Whoever takes all shards that lie there never gets those of two models. */
static void expect_shards_of_one_model(const char *text) {
  int content = 0;
  DIR *folder = opendir(files.folder);
  assert_non_null(folder);
  for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
    if (strstr(entry->d_name, "-of-") == NULL || strstr(entry->d_name, ".part") != NULL) continue;
    const int found = content_of_file(scratch_path(&files, entry->d_name));
    if (content != 0 && found != content) fail_msg("%s: shards of two models lie there", text);
    content = found;
  }
  (void)closedir(folder);
}

/* OLD, NEW or 0; both may stand there only where one is a file and the other a set. */
static int expect_one_model(const change *one, const char *when) {
  expect_shards_of_one_model(one->text);
  const int in_file = model_content(&memory, single_path(), &error);
  const int in_set = model_content(&memory, scratch_path(&files, "m.safetensors.index.json"), &error);
  if (in_file == MODEL_MIXED || in_set == MODEL_MIXED) fail_msg("%s: mixed %s", one->text, when);
  if (in_file != 0 && in_set != 0 && in_file == in_set) fail_msg("%s: twice %s", one->text, when);
  return in_file == NEW || in_set == NEW ? NEW : in_file == OLD || in_set == OLD ? OLD : 0;
}

/* What the folder as a whole means. */
static int content_of_folder(tm_error *told) {
  *told = (tm_error)TM_ERROR_INIT;
  return model_content(&memory, files.folder, told);
}

static void expect_clean(const char *text) {
  if (count_entries(files.folder, ".part") != 0 || count_entries(files.folder, ".whole") != 0) fail_msg("%s: parts are left", text);
}

static void expect_recovered(const change *one) {
  uint64_t removed, completed;
  if (tm_checkpoint_recover(&memory, single_path(), &removed, &completed, &error) != TM_OK)
    fail_msg("%s: %s", one->text, error.text);
  expect_clean(one->text);
}

static void empty_folder(void) {
  scratch_deinit(&files);
  assert_true(scratch_init(&files));
}

/* ---------------------------------------------------------------------------------------------------- killed writers ---- */

/* A process of its own writes NEW and dies before its step of that number.  false: it came to its end. */
static bool write_and_die(const change *one, uint64_t step_number) {
  int how = 0;
  const pid_t child = fork();
  if (child == 0) {
    dies = true;
    steps_left = step_number;
    tm_error failure = TM_ERROR_INIT;
    const tm_status status = model_write(&memory, TM_WRITE_SAFETENSORS, single_path(), one->new_shard_bytes, NEW, &failure);
    _exit(status == TM_OK ? 0 : 1);
  }
  assert_true(child > 0 && waitpid(child, &how, 0) == child);
  if (WIFSIGNALED(how)) return true;
  if (WEXITSTATUS(how) != 0) fail_msg("%s: the writer failed", one->text);
  return false;
}

/* What is there says which model counts, or that its writer was interrupted; a recovery makes the latter whole. */
static bool seen_new, seen_interrupted;
static void check_after_kill(const change *one) {
  const int before = expect_one_model(one, "after a kill");
  tm_error told;
  const int meant = content_of_folder(&told);
  const bool is_interrupted = meant == 0;
  if (meant != 0 && meant != before) fail_msg("%s: the folder means another one", one->text);
  if (is_interrupted) {
    if (strstr(told.text, "a complete checkpoint was being put in its place here") == NULL)
      fail_msg("%s: the reader is not told: %s", one->text, told.text);
    seen_interrupted = true;
  }
  expect_recovered(one);
  const int after = expect_one_model(one, "after a recovery");
  if (after == 0 || (before == NEW && after != NEW) || (is_interrupted && after != NEW)) fail_msg("%s: lost", one->text);
  if (content_of_folder(&told) != after) fail_msg("%s: recovered, but the folder means another one", one->text);
  seen_new = seen_new || after == NEW;
}

static void killed_at_each_step(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
    uint64_t number = 1;
    seen_new = seen_interrupted = false;
    for (;; number++) {
      empty_folder();
      write_old(&changes[i]);
      if (!write_and_die(&changes[i], number)) break;
      check_after_kill(&changes[i]);
    }
    assert_int_equal(expect_one_model(&changes[i], "in the end"), NEW);
    expect_clean(changes[i].text);
    assert_true(number > 5);
    assert_true(seen_new);
    assert_int_equal(seen_interrupted, changes[i].old_shard_bytes != 0 || changes[i].new_shard_bytes != 0);
  }
}

/* The next writer of the same name needs no recovery before it. */
static void the_next_writer_cleans_up(void **state) {
  (void)state;
  const change *one = &changes[2];
  for (uint64_t number = 1;; number++) {
    empty_folder();
    write_old(one);
    const bool is_killed = write_and_die(one, number);
    if (model_write(&memory, TM_WRITE_SAFETENSORS, single_path(), one->new_shard_bytes, 3, &error) != TM_OK)
      fail_msg("after step %llu: %s", (unsigned long long)number, error.text);
    assert_int_equal(model_content(&memory, files.folder, &error), 3);
    expect_clean("the next writer");
    assert_int_equal(count_entries(files.folder, "-of-"), 2);
    if (!is_killed) break;
  }
}

/* Shards that no index names any more stand in the way as well. */
static void strays_are_never_mixed_with_new_shards(void **state) {
  (void)state;
  const change *one = &changes[1];
  bool is_killed = true;
  for (uint64_t number = 1; is_killed; number++) {
    empty_folder();
    write_old(one);
    assert_int_equal(unlink(scratch_path(&files, "m.safetensors.index.json")), 0);
    is_killed = write_and_die(one, number);
    expect_shards_of_one_model("strays");
    expect_recovered(one);
    expect_shards_of_one_model("strays, recovered");
  }
  assert_int_equal(model_content(&memory, files.folder, &error), NEW);
}

static void run_for_ever(const change *one) {
  tm_error failure = TM_ERROR_INIT;
  for (unsigned char content = NEW;; content ^= OLD ^ NEW)
    if (model_write(&memory, TM_WRITE_SAFETENSORS, single_path(), one->new_shard_bytes, content, &failure) != TM_OK) _exit(1);
}

/* TM_NIGHTLY: 200 of them. */
static void killed_at_random_moments(void **state) {
  (void)state;
  const int rounds = getenv("TM_NIGHTLY") != NULL ? 200 : 8;
  uint32_t seed = (uint32_t)time(NULL) ^ (uint32_t)getpid();
  print_message("seed %u\n", seed);
  for (int round = 0; round < rounds; round++) {
    const change *one = &changes[1 + round % 2];
    seed = seed * 1664525u + 1013904223u;
    int how = 0;
    const pid_t child = fork();
    if (child == 0) run_for_ever(one);
    const struct timespec pause = { 0, (long)(seed >> 8) % 40000000 };
    (void)nanosleep(&pause, NULL);
    assert_true(kill(child, SIGKILL) == 0 && waitpid(child, &how, 0) == child && WIFSIGNALED(how));
    expect_shards_of_one_model("at random");
    const int before = model_content(&memory, files.folder, &error);
    if (before == MODEL_MIXED) fail_msg("mixed in round %d", round);
    expect_recovered(one);
    const int after = model_content(&memory, files.folder, &error);
    if (after == MODEL_MIXED || (before != 0 && after == 0)) fail_msg("lost in round %d", round);
  }
}

/* ------------------------------------------------------------------------------------------------------- refusals ---- */

typedef struct refusal {
  step kind;
  int  number;
} refusal;

static const refusal refusals[] = { { STEP_ROOM, ENOSPC }, { STEP_ROOM, EDQUOT }, { STEP_WRITE, ENOSPC }, { STEP_WRITE, EIO },
                                    { STEP_SYNC, EIO },
                                      { STEP_SYNC_PIECE, EIO } };

/* Before the moment that decides, a refusal leaves what was there and nothing else; afterwards a recovery completes the new set. */
static void refused_at_each_step(void **state) {
  (void)state;
  const size_t count = sizeof refusals / sizeof refusals[0];
  for (size_t i = 0; i < 2 * count; i++) {
    const change *one = &changes[i < count ? 2 : 4];
    const refusal *now = &refusals[i % count];
    for (uint64_t number = 1;; number++) {
      empty_folder();
      write_old(one);
      fault_at(now->kind, number, now->number);
      error = (tm_error)TM_ERROR_INIT;
      const tm_status status = model_write(&memory, TM_WRITE_SAFETENSORS, single_path(), one->new_shard_bytes, NEW, &error);
      fault_never();
      if (!has_failed) break;
      assert_int_equal(status, TM_ERROR_IO);
      assert_int_equal(error.native_code, now->number);
      if (strstr(error.text, "all of it is written") != NULL) expect_recovered(one);
      else assert_int_equal(expect_one_model(one, "after a refusal"), OLD);
      expect_clean("a refusal");
      assert_true(expect_one_model(one, "in the end") != 0);
    }
  }
}

static void a_file_in_the_way_is_told_and_recovered(void **state) {
  (void)state;
  write_old(&changes[2]);
  fault_at(STEP_RENAME, 3, EACCES);
  assert_int_equal(model_write(&memory, TM_WRITE_SAFETENSORS, single_path(), SHARDS_OF_THREE, NEW, &error), TM_ERROR_IO);
  fault_never();
  assert_non_null(strstr(error.text, "all of it is written, but not all in its place"));
  assert_int_equal(expect_one_model(&changes[2], "in between"), 0);
  expect_recovered(&changes[2]);
  assert_int_equal(expect_one_model(&changes[2], "in the end"), NEW);
}

/* Whoever opens the folder would go on to find the old weights. */
static void an_index_that_stays_is_told_and_recovered(void **state) {
  (void)state;
  tm_error told;
  write_old(&changes[4]);
  fault_at(STEP_UNLINK, 4, EPERM);              /* after the three shards */
  assert_int_equal(model_write(&memory, TM_WRITE_SAFETENSORS, single_path(), 0, NEW, &error), TM_ERROR_IO);
  fault_never();
  assert_int_equal(error.native_code, EPERM);
  assert_non_null(strstr(error.text, "all of it is written, but not all in its place, where there still is "));
  assert_non_null(strstr(error.text, "m.safetensors.index.json; once the cause is gone"));
  assert_int_equal(content_of_folder(&told), 0);
  assert_non_null(strstr(told.text, "a complete checkpoint was being put in its place here"));
  expect_recovered(&changes[4]);
  assert_int_equal(content_of_folder(&told), NEW);
  assert_int_equal(count_entries(files.folder, ""), 1);
}

static void a_file_system_without_reservation_is_written_to(void **state) {
  (void)state;
  fault_at(STEP_ROOM, 1, EOPNOTSUPP);
  if (model_write(&memory, TM_WRITE_SAFETENSORS, single_path(), SHARDS_OF_TWO, NEW, &error) != TM_OK) fail_msg("%s", error.text);
  fault_never();
  assert_int_equal(model_content(&memory, files.folder, &error), NEW);
}

/* What the disk is waited for can be long; whoever has waited enough gets back what was there. */
static void cancelled_while_it_goes_to_the_disk(void **state) {
  (void)state;
  tm_checkpoint_writer *writer = NULL;
  write_old(&changes[2]);
  assert_int_equal(model_plan(&memory, TM_WRITE_SAFETENSORS, single_path(), SHARDS_OF_THREE, &writer, &error), TM_OK);
  assert_int_equal(tm_checkpoint_writer_begin(writer, &error), TM_OK);
  assert_int_equal(model_fill(writer, NEW, &error), TM_OK);
  cancelled_while_synced = writer;
  assert_int_equal(tm_checkpoint_writer_finish(writer, &error), TM_ERROR_CANCELLED);
  cancelled_while_synced = NULL;
  tm_checkpoint_writer_destroy(writer);
  expect_clean("cancelled");
  assert_int_equal(expect_one_model(&changes[2], "in the end"), OLD);
}

/* In a process of its own, since a limit does not go back up. */
static int write_within_a_limit(void) {
  const struct rlimit limit = { 6000, 6000 };
  tm_error failure = TM_ERROR_INIT;
  tm_checkpoint_writer *writer = NULL;
  if (model_plan(&memory, TM_WRITE_SAFETENSORS, single_path(), 0, &writer, &failure) != TM_OK) return 2;
  if (tm_checkpoint_writer_begin(writer, &failure) != TM_OK) return 3;
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 4;
  if (model_fill(writer, NEW, &failure) != TM_ERROR_IO || failure.native_code != EFBIG) return 5;
  if (tm_checkpoint_writer_finish(writer, &failure) != TM_ERROR_IO || failure.native_code != EFBIG) return 6;
  tm_checkpoint_writer_destroy(writer);
  if (model_write(&memory, TM_WRITE_SAFETENSORS, single_path(), 0, NEW, &failure) != TM_ERROR_IO) return 7;
  return strstr(failure.text, "ulimit -f") != NULL ? 0 : 8;
}

static void a_limit_is_an_error_and_no_signal(void **state) {
  (void)state;
  int how = 0;
  const pid_t child = fork();
  if (child == 0) _exit(write_within_a_limit());
  assert_true(child > 0 && waitpid(child, &how, 0) == child);
  assert_true(WIFEXITED(how));
  assert_int_equal(WEXITSTATUS(how), 0);
  assert_int_equal(count_entries(files.folder, ""), 0);
}

/* To another file system, where the parts lie, too. */
static int write_through_a_link(void) {
  scratch elsewhere;
  tm_error failure = TM_ERROR_INIT;
  if (!scratch_init(&elsewhere) || symlink(single_path(), scratch_path(&elsewhere, "link.safetensors")) != 0) return 9;
  const tm_status status = model_write(&memory, TM_WRITE_SAFETENSORS, scratch_path(&elsewhere, "link.safetensors"), 0, 3, &failure);
  const uint32_t entries = count_entries(elsewhere.folder, "");
  scratch_deinit(&elsewhere);
  if (status != TM_OK || entries != 1) return 10;
  return model_content(&memory, single_path(), &failure) == 3 ? 0 : 11;
}

#define CANNOT 77
/* A file system of 64 KiB of its own; 77: the system does not give one. */
static int write_to_a_small_disk(void) {
  tm_error failure = TM_ERROR_INIT;
  if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
      mount("none", files.folder, "tmpfs", 0, "size=64k") != 0)
    return CANNOT;
  if (model_write(&memory, TM_WRITE_SAFETENSORS, single_path(), 0, OLD, &failure) != TM_OK) return 2;
  const char *other = scratch_path(&files, "filler");
  const int filler = open(other, O_CREAT | O_WRONLY, 0600);
  if (filler < 0 || fallocate(filler, 0, 0, 24576) != 0 || close(filler) != 0) return 3;
  if (model_write(&memory, TM_WRITE_SAFETENSORS, single_path(), 0, NEW, &failure) != TM_ERROR_IO) return 4;
  if (strstr(failure.text, "free") == NULL) return 5;
  if (model_content(&memory, single_path(), &failure) != OLD || count_entries(files.folder, ".part") != 0) return 6;
  if (unlink(scratch_path(&files, "filler")) != 0) return 7;
  if (model_write(&memory, TM_WRITE_SAFETENSORS, single_path(), 0, NEW, &failure) != TM_OK) return 8;
  return write_through_a_link();
}

static void a_full_disk_leaves_what_was_there(void **state) {
  (void)state;
  int how = 0;
  const pid_t child = fork();
  if (child == 0) _exit(write_to_a_small_disk());
  assert_true(child > 0 && waitpid(child, &how, 0) == child && WIFEXITED(how));
  if (WEXITSTATUS(how) == CANNOT) {
    print_message("skipped: this system does not let the test mount a small file system\n");
    skip();
  }
  assert_int_equal(WEXITSTATUS(how), 0);
}

/* -------------------------------------------------------------------------------------------------------- company ---- */

static void two_writers_of_one_name_are_one_too_many(void **state) {
  (void)state;
  tm_checkpoint_writer *first = NULL;
  for (size_t i = 0; i < 2; i++) {
    assert_int_equal(model_plan(&memory, TM_WRITE_SAFETENSORS, single_path(), i == 0 ? 0 : SHARDS_OF_TWO, &first, &error), TM_OK);
    assert_int_equal(tm_checkpoint_writer_begin(first, &error), TM_OK);
    assert_int_equal(model_write(&memory, TM_WRITE_SAFETENSORS, single_path(), SHARDS_OF_THREE, OLD, &error), TM_BUSY);
    assert_non_null(strstr(error.text, "somebody is writing this right now"));
    assert_int_equal(model_write(&memory, TM_WRITE_SAFETENSORS, single_path(), 0, OLD, &error), TM_BUSY);
    assert_int_equal(model_write(&memory, TM_WRITE_SAFETENSORS, scratch_path(&files, "other.safetensors"), 0, OLD, &error), TM_OK);
    assert_int_equal(model_fill(first, NEW, &error), TM_OK);
    assert_int_equal(tm_checkpoint_writer_finish(first, &error), TM_OK);
    tm_checkpoint_writer_destroy(first);
    assert_int_equal(expect_one_model(&changes[0], "in the end"), NEW);
  }
}

static int held = -1;

static void hold(const char *name) {
  held = open(scratch_path(&files, name), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  assert_true(held >= 0);
  assert_int_equal(syscall(SYS_flock, held, LOCK_EX | LOCK_NB), 0);
}

/* Whoever removes the leader of a complete set has no set. */
static void what_is_said_of_a_held_leader_loses_nothing(void **state) {
  (void)state;
  hold("m.safetensors.index.json.0123456789ab.whole");
  assert_int_equal(model_write(&memory, TM_WRITE_SAFETENSORS, single_path(), SHARDS_OF_TWO, NEW, &error), TM_BUSY);
  assert_non_null(strstr(error.text, "m.safetensors.index.json.0123456789ab.whole: "));
  assert_non_null(strstr(error.text, "try again in a moment, and do not remove this file"));
  assert_null(strstr(error.text, "if nobody is"));
  assert_int_equal(close(held), 0);
}

static uint32_t looks_left;
static void let_go_in_the_end(void) {
  if (--looks_left == 0) assert_int_equal(close(held), 0);
  else before_lock = let_go_in_the_end;
}

/* A process that is being killed has its locks a little longer. */
static void a_lock_that_is_let_go_soon_is_waited_for(void **state) {
  (void)state;
  static const char *const leaders[] = { "m.safetensors.0123456789ab.part", "m.safetensors.index.json.0123456789ab.whole" };
  for (size_t i = 0; i < 2; i++) {
    hold(leaders[i]);
    looks_left = 3;
    before_lock = let_go_in_the_end;
    uint64_t removed, completed;
    if (tm_checkpoint_recover(&memory, single_path(), &removed, &completed, &error) != TM_OK) fail_msg("%s", error.text);
    assert_int_equal(looks_left, 0);
    assert_int_equal(i == 0 ? removed : completed, 1);
    expect_clean(leaders[i]);
  }
}

/* Whoever was refused once may begin when the other has given up; what that has finished is told by a new plan only. */
static void a_busy_name_may_be_tried_again(void **state) {
  (void)state;
  tm_checkpoint_writer *first = NULL, *second = NULL;
  assert_int_equal(model_plan(&memory, TM_WRITE_SAFETENSORS, single_path(), SHARDS_OF_TWO, &first, &error), TM_OK);
  assert_int_equal(model_plan(&memory, TM_WRITE_SAFETENSORS, single_path(), SHARDS_OF_THREE, &second, &error), TM_OK);
  assert_int_equal(tm_checkpoint_writer_begin(first, &error), TM_OK);
  assert_int_equal(tm_checkpoint_writer_begin(second, &error), TM_BUSY);
  tm_checkpoint_writer_destroy(first);
  assert_int_equal(tm_checkpoint_writer_begin(second, &error), TM_OK);
  assert_int_equal(model_fill(second, NEW, &error), TM_OK);
  assert_int_equal(tm_checkpoint_writer_finish(second, &error), TM_OK);
  tm_checkpoint_writer_destroy(second);
  assert_int_equal(model_content(&memory, files.folder, &error), NEW);
  assert_int_equal(count_entries(files.folder, "-of-00003"), 0);
}

static tm_status status_meanwhile;
static void recover_meanwhile(void) {
  tm_error told = TM_ERROR_INIT;
  status_meanwhile = tm_checkpoint_recover(&memory, single_path(), NULL, NULL, &told);
}

/* Two recover at once, and one has done all between the other's look at the folder and its lock. */
static void what_somebody_else_completed_stays(void **state) {
  (void)state;
  static const size_t sets[] = { 1, 4 };
  for (size_t i = 0; i < 2; i++) {
    const change *one = &changes[sets[i]];
    for (uint64_t number = 1;; number++) {
      tm_error told;
      empty_folder();
      write_old(one);
      if (!write_and_die(one, number)) break;
      const bool is_whole = count_entries(files.folder, ".whole") != 0;
      before_lock = recover_meanwhile;
      status_meanwhile = TM_OK;
      expect_recovered(one);
      before_lock = NULL;
      assert_int_equal(status_meanwhile, TM_OK);
      const int after = content_of_folder(&told);
      if (after == 0 || after == MODEL_MIXED || (is_whole && after != NEW)) fail_msg("%s: lost: %s", one->text, told.text);
    }
  }
}

/* Locks taken by a recovery that finds a leader in the moment in which it is made. */
#define MOST_TAKEN 32u
static struct {
  int  descriptor;
  char path[1024];
} taken[MOST_TAKEN];
static uint32_t taken_count;
static bool     takes_all;

static bool is_taken(const char *path) {
  for (uint32_t i = 0; i < taken_count; i++)
    if (strcmp(taken[i].path, path) == 0) return true;
  return false;
}

static void remove_the_taken(void) {
  before_lock = NULL;
  for (uint32_t i = 0; i < taken_count; i++) {
    assert_int_equal(unlink(taken[i].path), 0);
    assert_int_equal(close(taken[i].descriptor), 0);
  }
  taken_count = 0;
}

static void take_the_new_leader(void) {
  DIR *folder = opendir(files.folder);
  assert_non_null(folder);
  for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
    const char *path = scratch_path(&files, entry->d_name);
    if (strstr(entry->d_name, ".part") == NULL || is_taken(path)) continue;
    assert_true(taken_count < MOST_TAKEN);
    (void)snprintf(taken[taken_count].path, sizeof taken[0].path, "%s", path);
    taken[taken_count].descriptor = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(syscall(SYS_flock, taken[taken_count++].descriptor, LOCK_EX | LOCK_NB), 0);
  }
  (void)closedir(folder);
  before_lock = takes_all ? take_the_new_leader : remove_the_taken;
}

/* Without its lock a writer's files would be taken for a dead one's. */
static void a_lock_that_somebody_else_has_is_not_done_without(void **state) {
  (void)state;
  for (size_t i = 0; i < 2; i++) {
    tm_checkpoint_writer *writer = NULL;
    empty_folder();
    assert_int_equal(model_plan(&memory, TM_WRITE_SAFETENSORS, single_path(), i == 0 ? 0 : SHARDS_OF_TWO, &writer, &error), TM_OK);
    takes_all = true;
    before_lock = take_the_new_leader;
    assert_int_equal(tm_checkpoint_writer_begin(writer, &error), TM_BUSY);
    assert_true(taken_count > 1);
    remove_the_taken();
    assert_int_equal(count_entries(files.folder, ""), 0);
    takes_all = false;
    before_lock = take_the_new_leader;
    if (tm_checkpoint_writer_begin(writer, &error) != TM_OK) fail_msg("%s", error.text);
    assert_int_equal(taken_count, 0);
    assert_int_equal(tm_checkpoint_recover(&memory, single_path(), NULL, NULL, &error), TM_BUSY);
    assert_int_equal(model_fill(writer, NEW, &error), TM_OK);
    assert_int_equal(tm_checkpoint_writer_finish(writer, &error), TM_OK);
    tm_checkpoint_writer_destroy(writer);
    assert_int_equal(model_content(&memory, files.folder, &error), NEW);
    expect_clean("begun at once");
  }
}

static void write_a_set_meanwhile(void) {
  tm_error told = TM_ERROR_INIT;
  status_meanwhile = model_write(&memory, TM_WRITE_SAFETENSORS, single_path(), SHARDS_OF_TWO, OLD, &told);
}

/* Another writer came and went after this one had looked around, and before its lock. */
static void what_came_in_the_last_moment_stays(void **state) {
  (void)state;
  static const uint64_t own_shards[] = { 0, SHARDS_OF_TWO, SHARDS_OF_THREE };
  for (size_t i = 0; i < sizeof own_shards / sizeof own_shards[0]; i++) {
    tm_checkpoint_writer *writer = NULL;
    empty_folder();
    assert_int_equal(model_plan(&memory, TM_WRITE_SAFETENSORS, single_path(), own_shards[i], &writer, &error), TM_OK);
    before_lock = write_a_set_meanwhile;
    assert_int_equal(tm_checkpoint_writer_begin(writer, &error), TM_ERROR_IO);
    assert_int_equal(status_meanwhile, TM_OK);
    assert_int_equal(error.native_code, EEXIST);
    tm_checkpoint_writer_destroy(writer);
    assert_int_equal(model_content(&memory, files.folder, &error), OLD);
    expect_clean("finished meanwhile");
  }
}

/* -------------------------------------------------------------------------------------------- others' files ---- */

#define NOBODY 65534
/* Returns 0, CANNOT, or which step went wrong. */
static int write_as_nobody(const change *one) {
  tm_error failure = TM_ERROR_INIT;
  tm_checkpoint_writer *early = NULL, *late = NULL;
  if (seteuid(NOBODY) != 0 || access(files.folder, F_OK) != 0 || faccessat(AT_FDCWD, files.folder, W_OK, AT_EACCESS) != 0)
    return CANNOT;
  if (model_plan(&memory, TM_WRITE_SAFETENSORS, single_path(), one->new_shard_bytes, &early, &failure) != TM_OK) return 2;
  if (seteuid(0) != 0 || chmod(files.folder, 01777) != 0 || seteuid(NOBODY) != 0) return CANNOT;
  if (tm_checkpoint_writer_begin(early, &failure) != TM_ERROR_IO || failure.native_code != EPERM) return 3;
  if (strstr(failure.text, "cannot be removed or replaced") == NULL) return 4;
  tm_checkpoint_writer_destroy(early);
  failure = (tm_error)TM_ERROR_INIT;
  if (model_plan(&memory, TM_WRITE_SAFETENSORS, single_path(), one->new_shard_bytes, &late, &failure) != TM_ERROR_IO) return 5;
  return failure.native_code == EPERM ? 0 : 6;
}

/* In a folder where names belong to those who made them; better now than after hours of writing. */
static void what_may_not_be_removed_is_refused_before(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
    int how = 0;
    empty_folder();
    write_old(&changes[i]);
    DIR *folder = opendir(files.folder);
    assert_non_null(folder);
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
      if (entry->d_name[0] != '.') assert_int_equal(chmod(scratch_path(&files, entry->d_name), 0666), 0);
    (void)closedir(folder);
    assert_int_equal(chmod(files.folder, 0777), 0);
    const pid_t child = fork();
    if (child == 0) _exit(geteuid() == 0 && chown(files.folder, 0, 0) == 0 ? write_as_nobody(&changes[i]) : CANNOT);
    assert_true(child > 0 && waitpid(child, &how, 0) == child && WIFEXITED(how));
    if (WEXITSTATUS(how) == CANNOT) {
      print_message("skipped: only the superuser can write in another one's name, and only where that one can reach\n");
      skip();
    }
    if (WEXITSTATUS(how) != 0) fail_msg("%s: step %d", changes[i].text, WEXITSTATUS(how));
    assert_int_equal(expect_one_model(&changes[i], "after a refusal"), OLD);
    expect_clean(changes[i].text);
  }
}

static void strangers_are_left_alone(void **state) {
  (void)state;
  static const char *const names[] = { "m.safetensors.part", "m.safetensors.0123456789ab.part.txt",
                                       "m.safetensors.0123456789aB.part",
                                       "n.safetensors.0123456789ab.part", "m-00001-of-00002.safetensors" };
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) assert_non_null(scratch_write(&files, names[i], "x", 1));
  assert_int_equal(model_write(&memory, TM_WRITE_SAFETENSORS, single_path(), 0, NEW, &error), TM_OK);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) assert_int_equal(access(scratch_path(&files, names[i]), F_OK), 0);
}

/* In a folder of everybody's anybody could plant what looks like a set on its way. */
static void what_others_plant_is_not_believed(void **state) {
  (void)state;
  static const char *const planted[] = { "m.safetensors.index.json.0123456789ab.whole",
                                         "m-00001-of-00002.safetensors.0123456789ab.part" };
  if (geteuid() != 0) {
    print_message("skipped: only the superuser can make a file of somebody else's\n");
    skip();
  }
  assert_int_equal(chmod(files.folder, 01777), 0);
  write_old(&changes[1]);
  for (size_t i = 0; i < 2; i++) {
    assert_non_null(scratch_write(&files, planted[i], "{}", 2));
    assert_int_equal(chown(scratch_path(&files, planted[i]), 65534, 65534), 0);
  }
  uint64_t removed = 0, completed = 0;
  assert_int_equal(tm_checkpoint_recover(&memory, single_path(), &removed, &completed, &error), TM_OK);
  assert_true(removed == 0 && completed == 0);
  assert_int_equal(expect_one_model(&changes[1], "beside what was planted"), OLD);
  for (size_t i = 0; i < 2; i++) assert_int_equal(chown(scratch_path(&files, planted[i]), geteuid(), getegid()), 0);
  assert_int_equal(tm_checkpoint_recover(&memory, single_path(), &removed, &completed, &error), TM_OK);
  assert_int_equal(completed, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(killed_at_each_step, set_up, tear_down),
    cmocka_unit_test_setup_teardown(the_next_writer_cleans_up, set_up, tear_down),
    cmocka_unit_test_setup_teardown(strays_are_never_mixed_with_new_shards, set_up, tear_down),
    cmocka_unit_test_setup_teardown(killed_at_random_moments, set_up, tear_down),
    cmocka_unit_test_setup_teardown(refused_at_each_step, set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_file_in_the_way_is_told_and_recovered, set_up, tear_down),
    cmocka_unit_test_setup_teardown(an_index_that_stays_is_told_and_recovered, set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_file_system_without_reservation_is_written_to, set_up, tear_down),
    cmocka_unit_test_setup_teardown(cancelled_while_it_goes_to_the_disk, set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_limit_is_an_error_and_no_signal, set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_full_disk_leaves_what_was_there, set_up, tear_down),
    cmocka_unit_test_setup_teardown(two_writers_of_one_name_are_one_too_many, set_up, tear_down),
    cmocka_unit_test_setup_teardown(what_is_said_of_a_held_leader_loses_nothing, set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_lock_that_is_let_go_soon_is_waited_for, set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_busy_name_may_be_tried_again, set_up, tear_down),
    cmocka_unit_test_setup_teardown(what_somebody_else_completed_stays, set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_lock_that_somebody_else_has_is_not_done_without, set_up, tear_down),
    cmocka_unit_test_setup_teardown(what_came_in_the_last_moment_stays, set_up, tear_down),
    cmocka_unit_test_setup_teardown(what_may_not_be_removed_is_refused_before, set_up, tear_down),
    cmocka_unit_test_setup_teardown(strangers_are_left_alone, set_up, tear_down),
    cmocka_unit_test_setup_teardown(what_others_plant_is_not_believed, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
