/* SPDX-License-Identifier: Apache-2.0 */
/* Kept files: whole or not there, damage is told, and a folder that others can write to is none. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/kept_file.h"
#include "formats/scratch.h"

typedef struct file_case {
  scratch   folder;
  tm_memory memory;
  char      path[1024];
} file_case;

static int begin(void **state) {
  static file_case c;
  memset(&c, 0, sizeof c);
  assert_true(scratch_init(&c.folder));
  tm_memory_init(&c.memory, 0);
  snprintf(c.path, sizeof c.path, "%s", scratch_path(&c.folder, "kept"));
  *state = &c;
  return 0;
}

static int end(void **state) {
  file_case *c = *state;
  scratch_deinit(&c->folder);
  assert_int_equal(atomic_load(&c->memory.used_bytes), 0);
  return 0;
}

static void expect(file_case *c, const char *content) {
  char *data = NULL;
  uint64_t bytes = 0;
  tm_error error = TM_ERROR_INIT;
  if (tm_kept_file_read(&c->memory, c->path, 1000, &data, &bytes, &error) != TM_OK) fail_msg("%s", error.text);
  assert_int_equal(bytes, strlen(content));
  assert_memory_equal(data, content, bytes);
  tm_memory_free(&c->memory, data, bytes);
}

static void expect_status(file_case *c, uint64_t most_bytes, tm_status expected) {
  char *data = NULL;
  uint64_t bytes = 0;
  assert_int_equal(tm_kept_file_read(&c->memory, c->path, most_bytes, &data, &bytes, NULL), expected);
  assert_null(data);
}

static void what_was_written_is_read(void **state) {
  file_case *c = *state;
  expect_status(c, 1000, TM_ERROR_NOT_FOUND);
  static const char *const contents[] = { "one\n", "another that is longer", "" };
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(tm_kept_file_replace(c->path, contents[i], strlen(contents[i]), NULL), TM_OK);
    expect(c, contents[i]);
  }
  tm_kept_file_remove(c->path);
  expect_status(c, 1000, TM_ERROR_NOT_FOUND);
}

static void the_limit_is_on_the_content(void **state) {
  file_case *c = *state;
  assert_int_equal(tm_kept_file_replace(c->path, "12345", 5, NULL), TM_OK);
  expect_status(c, 4, TM_ERROR_LIMIT);
  char *data = NULL;
  uint64_t bytes = 0;
  assert_int_equal(tm_kept_file_read(&c->memory, c->path, 5, &data, &bytes, NULL), TM_OK);
  tm_memory_free(&c->memory, data, bytes);
}

static void any_damage_is_told(void **state) {
  file_case *c = *state;
  assert_int_equal(tm_kept_file_replace(c->path, "content", 7, NULL), TM_OK);
  uint64_t bytes = 0;
  unsigned char *good = scratch_slurp(c->path, &bytes);
  for (uint64_t i = 0; i < bytes; i++) {
    good[i] ^= 1;
    assert_non_null(scratch_write(&c->folder, "kept", good, bytes));
    expect_status(c, 1000, TM_ERROR_CORRUPT);
    good[i] ^= 1;
    assert_non_null(scratch_write(&c->folder, "kept", good, i));
    expect_status(c, 1000, TM_ERROR_CORRUPT);
  }
  free(good);
  tm_kept_file_remove(c->path);
  assert_int_equal(mkfifo(c->path, 0600), 0);
  expect_status(c, 1000, TM_ERROR_CORRUPT);
}

/* A process that ends while it writes leaves its half behind; somebody else may be writing now. */
static void what_was_left_half_written_goes(void **state) {
  file_case *c = *state;
  static const char *const names[] = { "old", "now" };
  char paths[2][1100];
  for (int i = 0; i < 2; i++) {
    snprintf(paths[i], sizeof paths[i], "%s.new-%sabc", c->path, names[i]);
    FILE *file = fopen(paths[i], "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
  }
  const struct timespec long_ago[] = { { 1000, 0 }, { 1000, 0 } };
  assert_int_equal(utimensat(AT_FDCWD, paths[0], long_ago, 0), 0);
  assert_int_equal(tm_kept_file_replace(c->path, "content", 7, NULL), TM_OK);
  assert_int_not_equal(access(paths[0], F_OK), 0);
  assert_int_equal(access(paths[1], F_OK), 0);
  assert_int_equal(unlink(paths[1]), 0);
  expect(c, "content");
}

/* Somebody else's link must not lead out of the folder, neither for reading nor for writing. */
static void links_are_not_followed(void **state) {
  file_case *c = *state;
  char other[1024];
  snprintf(other, sizeof other, "%s", scratch_path(&c->folder, "other"));
  assert_int_equal(tm_kept_file_replace(other, "other", 5, NULL), TM_OK);
  assert_int_equal(symlink(other, c->path), 0);
  expect_status(c, 1000, TM_ERROR_IO);
  assert_int_equal(tm_kept_file_replace(c->path, "own", 3, NULL), TM_OK);
  expect(c, "own");
  snprintf(c->path, sizeof c->path, "%s", other);
  expect(c, "other");
}

static void a_failure_leaves_nothing(void **state) {
  file_case *c = *state;
  assert_int_equal(mkdir(c->path, 0700), 0);
  tm_error error = TM_ERROR_INIT;
  assert_int_equal(tm_kept_file_replace(c->path, "x", 1, &error), TM_ERROR_IO);
  assert_non_null(strstr(error.text, "cannot be written"));
  assert_int_equal(rmdir(c->path), 0);
  assert_int_equal(tm_kept_folder_remove(c->folder.folder, "kept"), 0);
}

static void files_are_removed_by_their_beginning(void **state) {
  file_case *c = *state;
  static const char *const names[] = { "aa-1", "aa-2", "ab-1" };
  for (size_t i = 0; i < 3; i++) assert_non_null(scratch_write(&c->folder, names[i], "x", 1));
  assert_int_equal(tm_kept_folder_remove(c->folder.folder, "aa"), 2);
  assert_int_equal(access(scratch_path(&c->folder, "ab-1"), F_OK), 0);
  assert_int_equal(tm_kept_folder_remove("/nonexistent", "aa"), 0);
}

/* ---- folders ---- */

static void folders_are_made_for_their_owner(void **state) {
  file_case *c = *state;
  char deep[600];
  struct stat found;
  snprintf(deep, sizeof deep, "%s/a/b", c->folder.folder);
  assert_int_equal(tm_kept_folder_make(deep, NULL), TM_OK);
  assert_int_equal(tm_kept_folder_make(deep, NULL), TM_OK);
  assert_int_equal(stat(deep, &found), 0);
  assert_int_equal(found.st_mode & 077, 0);
  assert_int_equal(rmdir(deep), 0);
  *strrchr(deep, '/') = '\0';
  assert_int_equal(rmdir(deep), 0);
  assert_int_equal(tm_kept_folder_make("", NULL), TM_ERROR_IO);
  assert_non_null(scratch_write(&c->folder, "kept", "x", 1));
  assert_int_equal(tm_kept_folder_make(c->path, NULL), TM_ERROR_IO);
}

static void what_others_can_write_to_is_refused(void **state) {
  file_case *c = *state;
  tm_error error = TM_ERROR_INIT;
  assert_int_equal(mkdir(c->path, 0700), 0);
  assert_int_equal(chmod(c->path, 01777), 0);
  assert_int_equal(tm_kept_folder_make(c->path, &error), TM_ERROR_IO);
  assert_non_null(strstr(error.text, "anybody may write"));
  assert_int_equal(chmod(c->path, 0700), 0);
  if (geteuid() == 0) {         /* only the superuser can give a folder away */
    assert_int_equal(chown(c->path, 65534, 65534), 0);
    error = (tm_error)TM_ERROR_INIT;
    assert_int_equal(tm_kept_folder_make(c->path, &error), TM_ERROR_IO);
    assert_non_null(strstr(error.text, "somebody else's"));
  }
  assert_int_equal(rmdir(c->path), 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void) {
  const struct CMUnitTest tests[] = {
    CASE(what_was_written_is_read), CASE(the_limit_is_on_the_content), CASE(any_damage_is_told), CASE(links_are_not_followed),
    CASE(what_was_left_half_written_goes),
    CASE(a_failure_leaves_nothing), CASE(files_are_removed_by_their_beginning), CASE(folders_are_made_for_their_owner),
    CASE(what_others_can_write_to_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
