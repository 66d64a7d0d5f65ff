/* SPDX-License-Identifier: Apache-2.0 */
/* What a process was doing when it ended: told apart by backend, build, device and kind of work; also of a file that is damaged. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "formats/scratch.h"
#include "plugin/crash_marks.h"

#define MOST 256

typedef struct found {
  uint32_t count;
  char     lines[MOST][160];
} found;

static void note(void *context, const tm_found_mark *mark) {
  found *all = context;
  char formats[96];
  tm_work_kind_formats(&mark->kind, formats, sizeof formats);
  assert_true(all->count < MOST);
  snprintf(all->lines[all->count++], sizeof all->lines[0], "%s %s %s %s %u(%s)", mark->backend, mark->build_id, mark->uuid, mark->call,
           mark->kind.op, formats);
}

static tm_memory memory;

static void collect(const scratch *files, found *all) {
  all->count = 0;
  tm_crash_marks_collect(&memory, files->folder, note, all);
}

/* Ends without a word while `body` had marks. */
static void die_after(const scratch *files, void (*body)(tm_crash_marks *marks)) {
  const pid_t child = fork();
  if (child == 0) {
    tm_crash_marks *marks = NULL;
    tm_error error = { .struct_size = sizeof error };
    if (tm_crash_marks_open(&memory, files->folder, true, (tm_log){ NULL, NULL }, &marks, &error) != TM_OK) _exit(1);
    body(marks);
    _exit(0);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static tm_backend_slot first_backend = { .name = "first", .build_id = "same build" };
static tm_backend_slot second_backend = { .name = "second", .build_id = "same build" };
static const tm_device_slot first = { .backend = &first_backend, .uuid_text = "same-device" };
static const tm_device_slot second = { .backend = &second_backend, .uuid_text = "same-device" };
static const tm_work_kind neg = { .op = TM_OP_NEG, .format_count = 2, .formats = { TM_FORMAT_F32, TM_FORMAT_F32 } };
static const tm_work_kind half_neg = { .op = TM_OP_NEG, .format_count = 2, .formats = { TM_FORMAT_F16, TM_FORMAT_F16 } };

static void mark_both(tm_crash_marks *marks) {
  (void)tm_crash_marks_set(marks, &first, "launch", &neg);
  (void)tm_crash_marks_set(marks, &second, "launch", &neg);
  (void)tm_crash_marks_set(marks, &second, "launch", &neg);
  tm_crash_marks_clear(marks, tm_crash_marks_set(marks, &first, "prepare", &half_neg));
}

/* One build under two names: what one did is not the other's. */
static void a_name_tells_them_apart(void **state) {
  const scratch *files = *state;
  found all;
  die_after(files, mark_both);
  collect(files, &all);
  assert_int_equal(all.count, 2);
  assert_non_null(strstr(all.lines[0], "first same build same-device launch "));
  assert_non_null(strstr(all.lines[1], "second same build same-device launch "));
  collect(files, &all);
  assert_int_equal(all.count, 0);
}

static void count_lasting(tm_crash_marks *marks) {
  tm_lasting_mark *a = tm_crash_marks_last(marks, &first, &neg), *b = tm_crash_marks_last(marks, &second, &neg);
  tm_lasting_mark *c = tm_crash_marks_last(marks, &first, &half_neg);
  for (int i = 0; i < 1000; i++) {
    tm_lasting_mark_enter(a);
    tm_lasting_mark_enter(c);
    tm_lasting_mark_leave(a);
    tm_lasting_mark_leave(c);
  }
  tm_lasting_mark_enter(b);
  tm_lasting_mark_enter(b);
  tm_lasting_mark_leave(b);
  tm_lasting_mark_enter(c);
  for (int i = 0; i < 100; i++) {       /* more than there is room for */
    tm_lasting_mark *more = tm_crash_marks_last(marks, &first, &neg);
    tm_lasting_mark_enter(more);
    tm_lasting_mark_leave(more);
  }
}

static void only_what_is_under_way_is_found(void **state) {
  const scratch *files = *state;
  found all;
  die_after(files, count_lasting);
  collect(files, &all);
  assert_int_equal(all.count, 2);
  assert_non_null(strstr(all.lines[0], "second same build same-device a run after its trial"));
  assert_non_null(strstr(all.lines[1], "first same build same-device a run after its trial"));
  assert_non_null(strstr(all.lines[1], "(f16,f16)"));
}

/* Anything may stand in the file. */
static void a_damaged_file_tells_nothing(void **state) {
  scratch *files = *state;
  static unsigned char bytes[131072];
  found all;
  uint64_t seed = 1;
  for (uint32_t round = 0; round < 24; round++) {
    for (size_t i = 0; i < sizeof bytes; i++) {
      seed = seed * UINT64_C(6364136223846793005) + 1;
      bytes[i] = round == 0 ? 0 : round == 1 ? 0xff : round == 2 ? '\t' : (unsigned char)(seed >> 56);
    }
    const uint64_t count = round < 4 ? sizeof bytes : sizeof bytes / (round - 2) - 3 * (round & 1);
    assert_non_null(scratch_write(files, "running-1-0", bytes, count));
    collect(files, &all);
    assert_int_equal(all.count, 0);
  }
}

static int begin(void **state) {
  static scratch files;
  tm_memory_init(&memory, 0);
  if (!scratch_init(&files)) return -1;
  *state = &files;
  return 0;
}

static int end(void **state) {
  scratch_deinit(*state);
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_name_tells_them_apart, begin, end),
    cmocka_unit_test_setup_teardown(only_what_is_under_way_is_found, begin, end),
    cmocka_unit_test_setup_teardown(a_damaged_file_tells_nothing, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
