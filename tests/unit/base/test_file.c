/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/folder.h"
#include "formats/scratch.h"

/* Stands in front of the C library's: reads come back short and interrupted when a test asks for it. */
static size_t longest_read = SIZE_MAX;
static int interruptions;
static uint64_t read_calls;

ssize_t pread(int descriptor, void *data, size_t bytes, off_t offset) {
  read_calls++;
  if (interruptions > 0) {
    interruptions--;
    errno = EINTR;
    return -1;
  }
  return syscall(SYS_pread64, descriptor, data, bytes < longest_read ? bytes : longest_read, offset);
}

static tm_memory memory;
static scratch files;

static int set_up(void **state) {
  (void)state;
  tm_memory_init(&memory, 0);
  return scratch_init(&files) ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  scratch_deinit(&files);
  return memory.used_bytes == 0 ? 0 : -1;
}

static tm_status open_error(const char *path, tm_error *error) {
  tm_file *file = NULL;
  *error = (tm_error)TM_ERROR_INIT;
  const tm_status status = tm_file_open(&memory, path, 0, &file, error);
  assert_null(file);
  return status;
}

static void refusals(void **state) {
  (void)state;
  tm_error error;
  assert_int_equal(open_error("", &error), TM_ERROR_ARGUMENT);
  assert_int_equal(open_error(NULL, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(open_error(scratch_path(&files, "missing"), &error), TM_ERROR_NOT_FOUND);
  assert_int_equal(error.native_code, ENOENT);
  assert_non_null(strstr(error.text, "missing"));
  assert_int_equal(open_error(files.folder, &error), TM_ERROR_IO);
  assert_non_null(strstr(error.text, "directory"));
  const char *fifo = scratch_path(&files, "fifo");
  assert_int_equal(mkfifo(fifo, 0600), 0);
  assert_int_equal(open_error(fifo, &error), TM_ERROR_IO);
  assert_non_null(strstr(error.text, "pipe"));
  assert_int_equal(open_error("/dev/null", &error), TM_ERROR_IO);
  assert_non_null(strstr(error.text, "character device"));
}

/* Root may read every file, so root becomes somebody else for a moment. */
static void unreadable(void **state) {
  (void)state;
  tm_error error;
  const bool is_root = geteuid() == 0;
  const char *path = scratch_write(&files, "secret", "x", 1);
  assert_int_equal(chmod(path, 0), 0);
  if (is_root && seteuid(65534) != 0) {
    print_message("skipped: root cannot become another user here\n");
    skip();
  }
  const tm_status status = open_error(path, &error);
  if (is_root) assert_int_equal(seteuid(0), 0);
  assert_int_equal(status, TM_ERROR_IO);
  assert_int_equal(error.native_code, EACCES);
  assert_non_null(strstr(error.text, "ermission"));
}

static void messages_are_printable(void **state) {
  (void)state;
  tm_error error;
  char path[2000];
  memset(path, 'd', sizeof path);
  memcpy(path + sizeof path - 20, "/the\x1b" "end\n", 10);
  path[sizeof path - 1] = '\0';
  assert_int_not_equal(open_error(path, &error), TM_OK);
  assert_null(strchr(error.text, '\x1b'));
  assert_null(strchr(error.text, '\n'));
  assert_non_null(strstr(error.text, "the\\x1bend\\n"));
  assert_true(strlen(error.text) < 500);
}

static tm_file *open_bytes(const char *name, const void *bytes, uint64_t count, uint32_t flags) {
  tm_file *file = NULL;
  const char *path = scratch_write(&files, name, bytes, count);
  assert_non_null(path);
  assert_int_equal(tm_file_open(&memory, path, flags, &file, NULL), TM_OK);
  return file;
}

static void reads_exactly(void **state) {
  (void)state;
  char bytes[10000], back[10000];
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)(i * 7 + i / 256);
  tm_file *file = open_bytes("data", bytes, sizeof bytes, 0);
  assert_int_equal(tm_file_size(file), sizeof bytes);
  assert_null(tm_file_bytes(file));
  longest_read = 999;
  interruptions = 3;
  read_calls = 0;
  assert_int_equal(tm_file_read(file, 1, back, sizeof back - 1, NULL), TM_OK);
  longest_read = SIZE_MAX;
  assert_memory_equal(back, bytes + 1, sizeof back - 1);
  assert_int_equal(read_calls, 3 + 11);
  assert_int_equal(tm_file_read(file, sizeof bytes, back, 0, NULL), TM_OK);
  assert_int_equal(tm_file_read(file, sizeof bytes, back, 1, NULL), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_file_read(file, UINT64_MAX, back, 2, NULL), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_file_check_unchanged(file, NULL), TM_OK);
  tm_file_close(file);
}

static void truncation_is_named(void **state) {
  (void)state;
  char bytes[1000] = { 0 };
  tm_error error = TM_ERROR_INIT;
  tm_file *file = open_bytes("shrinks", bytes, sizeof bytes, 0);
  assert_int_equal(truncate(tm_file_path(file), 300), 0);
  assert_int_equal(tm_file_read(file, 0, bytes, 300, NULL), TM_OK);
  assert_int_equal(tm_file_read(file, 100, bytes, 900, &error), TM_ERROR_CHANGED);
  assert_non_null(strstr(error.text, "expected 900 bytes at offset 100, found 200"));
  assert_non_null(strstr(error.text, "shrinks"));
  assert_int_equal(tm_file_check_unchanged(file, &error), TM_ERROR_CHANGED);
  assert_non_null(strstr(error.text, "ends at offset 300"));
  tm_file_close(file);
}

static void rewriting_is_noticed(void **state) {
  (void)state;
  tm_error error = TM_ERROR_INIT;
  tm_file *file = open_bytes("rewritten", "0123456789", 10, 0);
  const struct timespec times[2] = { { 1000, 0 }, { 1000, 1 } };
  assert_int_equal(utimensat(AT_FDCWD, tm_file_path(file), times, 0), 0);
  assert_int_equal(tm_file_check_unchanged(file, &error), TM_ERROR_CHANGED);
  assert_non_null(strstr(error.text, "written"));
  tm_file_close(file);
}

static void parked_files_read_on(void **state) {
  (void)state;
  char back[10];
  tm_error error = TM_ERROR_INIT;
  tm_file *file = open_bytes("parked", "0123456789", 10, 0);
  tm_file_park(file);
  tm_file_park(file);
  assert_int_equal(tm_file_read(file, 2, back, 3, NULL), TM_OK);
  assert_memory_equal(back, "234", 3);
  assert_int_equal(tm_file_check_unchanged(file, NULL), TM_OK);
  char path[1024];
  (void)snprintf(path, sizeof path, "%s", tm_file_path(file));
  assert_non_null(scratch_write(&files, "other", "0123456789", 10));
  assert_int_equal(rename(files.path, path), 0);
  assert_int_equal(tm_file_read(file, 2, back, 3, &error), TM_ERROR_CHANGED);
  assert_non_null(strstr(error.text, "taken its place"));
  assert_int_equal(unlink(path), 0);
  assert_int_equal(tm_file_check_unchanged(file, &error), TM_ERROR_CHANGED);
  assert_non_null(strstr(error.text, "gone"));
  tm_file_close(file);
}

static void buffers_stand_in(void **state) {
  (void)state;
  char back[4];
  tm_file *file = NULL;
  assert_int_equal(tm_file_wrap(&memory, "buffer", "0123456789", 10, &file, NULL), TM_OK);
  assert_int_equal(tm_file_size(file), 10);
  assert_memory_equal(tm_file_bytes(file), "0123456789", 10);
  assert_int_equal(tm_file_read(file, 6, back, 4, NULL), TM_OK);
  assert_memory_equal(back, "6789", 4);
  assert_int_equal(tm_file_read(file, 7, back, 4, NULL), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_file_check_unchanged(file, NULL), TM_OK);
  assert_string_equal(tm_file_label(file), "buffer");
  tm_file_close(file);
}

static void memory_may_run_out(void **state) {
  (void)state;
  const char *path = scratch_write(&files, "small", "x", 1);
  tm_memory little;
  for (uint64_t limit = 1; limit < 1024; limit++) {
    tm_file *file = NULL;
    tm_memory_init(&little, limit);
    const tm_status status = tm_file_open(&little, path, 0, &file, NULL);
    assert_true(status == TM_OK || status == TM_ERROR_NO_MEMORY);
    tm_file_close(file);
    assert_int_equal(little.used_bytes, 0);
  }
}

static void folders(void **state) {
  (void)state;
  tm_arena arena;
  tm_arena_init(&arena, &memory);
  const char **names;
  uint64_t count;
  scratch inner;
  assert_true(scratch_init(&inner));
  for (int i = 99; i >= 10; i--) {
    char name[8];
    (void)snprintf(name, sizeof name, "f%d", i);
    assert_non_null(scratch_write(&inner, name, "", 0));
  }
  assert_int_equal(tm_folder_list(&arena, inner.folder, &names, &count, NULL), TM_OK);
  assert_int_equal(count, 90);
  assert_string_equal(names[0], "f10");
  assert_string_equal(names[89], "f99");
  assert_true(tm_path_is_folder(inner.folder));
  assert_false(tm_path_is_folder(scratch_path(&inner, "f10")));
  assert_int_equal(tm_folder_list(&arena, inner.path, &names, &count, NULL), TM_ERROR_IO);
  scratch_deinit(&inner);
  assert_string_equal(tm_path_join(&arena, "a/b", 3, "c"), "a/b/c");
  assert_string_equal(tm_path_join(&arena, "/", 1, "c"), "/c");
  assert_string_equal(tm_path_join(&arena, "", 0, "c"), "c");
  assert_int_equal(tm_path_folder_length("a/b/c"), 3);
  assert_int_equal(tm_path_folder_length("/c"), 1);
  assert_int_equal(tm_path_folder_length("c"), 0);
  tm_arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(refusals), cmocka_unit_test(unreadable), cmocka_unit_test(messages_are_printable),
    cmocka_unit_test(reads_exactly), cmocka_unit_test(truncation_is_named), cmocka_unit_test(rewriting_is_noticed),
    cmocka_unit_test(parked_files_read_on), cmocka_unit_test(buffers_stand_in), cmocka_unit_test(memory_may_run_out),
    cmocka_unit_test(folders),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
