/* SPDX-License-Identifier: Apache-2.0 */
/* Replaced files: whole or as before, with the mode that they had, in the place that a link leads to, and nothing beside. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/replaced_file.h"
#include "formats/scratch.h"

#define NOBODY 65534u

typedef struct file_case {
  scratch folder;
  char    path[1024];
  char    other[1024];
} file_case;

static int begin(void **state) {
  static file_case c;
  memset(&c, 0, sizeof c);
  assert_true(scratch_init(&c.folder));
  snprintf(c.path, sizeof c.path, "%s", scratch_path(&c.folder, "file"));
  snprintf(c.other, sizeof c.other, "%s", scratch_path(&c.folder, "other"));
  (void)umask(022);
  *state = &c;
  return 0;
}

static uint32_t count_entries(const char *path) {
  uint32_t count = 0;
  DIR *folder = opendir(path);
  assert_non_null(folder);
  while (readdir(folder) != NULL) count++;
  (void)closedir(folder);
  return count - 2;
}

static int end(void **state) {
  file_case *c = *state;
  scratch_deinit(&c->folder);
  return 0;
}

static void replace(const char *path, const char *content) {
  tm_error error = TM_ERROR_INIT;
  if (tm_file_replace(path, content, strlen(content), &error) != TM_OK) fail_msg("%s", error.text);
}

static void refuses(const char *path, int number, const char *part) {
  tm_error error = TM_ERROR_INIT;
  assert_int_equal(tm_file_replace(path, "new", 3, &error), TM_ERROR_IO);
  if (strstr(error.text, part) == NULL) fail_msg("%s: expected %s", error.text, part);
  assert_int_equal(error.native_code, number);
}

static void expect(const char *path, const char *content, mode_t mode) {
  struct stat found;
  assert_int_equal(lstat(path, &found), 0);
  assert_true(S_ISREG(found.st_mode));
  assert_int_equal(found.st_mode & 07777, mode);
  uint64_t bytes = 0;
  unsigned char *read = scratch_slurp(path, &bytes);
  assert_non_null(read);
  assert_int_equal(bytes, strlen(content));
  assert_memory_equal(read, content, bytes);
  free(read);
}

static void expect_link(const char *path, const char *target) {
  char found[1024] = "";
  assert_true(readlink(path, found, sizeof found - 1) > 0);
  assert_string_equal(found, target);
}

static void a_new_file_has_the_mode_of_the_mask(void **state) {
  file_case *c = *state;
  replace(c->path, "one");
  expect(c->path, "one", 0644);
  (void)umask(077);
  replace(c->other, "two");
  expect(c->other, "two", 0600);
  assert_int_equal(count_entries(c->folder.folder), 2);
}

static void a_file_keeps_its_mode(void **state) {
  file_case *c = *state;
  static const mode_t modes[] = { 0600, 0640, 0644, 0660, 0666, 0700, 0755, 0777, 0200 };
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
    for (mode_t mask = 0; mask <= 077; mask += 077) {
      replace(c->path, "old");
      assert_int_equal(chmod(c->path, modes[i]), 0);
      (void)umask(mask);
      replace(c->path, "newer");
      struct stat found;
      assert_int_equal(stat(c->path, &found), 0);
      assert_int_equal(found.st_mode & 07777, modes[i]);
      assert_int_equal(chmod(c->path, 0600), 0);
      expect(c->path, "newer", 0600);
    }
  }
  assert_int_equal(count_entries(c->folder.folder), 1);
}

/* Relative and absolute ones, one after the other, and with folders in between. */
static void a_link_stays_and_its_target_is_replaced(void **state) {
  file_case *c = *state;
  char folder[1024], inside[1100], back[1100];
  snprintf(folder, sizeof folder, "%s", scratch_path(&c->folder, "deep"));
  snprintf(inside, sizeof inside, "%s/target", folder);
  snprintf(back, sizeof back, "%s/back", folder);
  assert_int_equal(mkdir(folder, 0755), 0);
  replace(inside, "old");
  assert_int_equal(chmod(inside, 0600), 0);
  assert_int_equal(symlink("deep/target", c->path), 0);
  replace(c->path, "new");
  expect_link(c->path, "deep/target");
  expect(inside, "new", 0600);
  assert_int_equal(symlink(c->path, c->other), 0);
  replace(c->other, "newer");
  expect_link(c->other, c->path);
  expect(inside, "newer", 0600);
  assert_int_equal(symlink("../file", back), 0);
  replace(back, "newest");
  expect_link(back, "../file");
  expect(inside, "newest", 0600);
  assert_int_equal(count_entries(folder), 2);
  assert_int_equal(count_entries(c->folder.folder), 3);
  assert_true(unlink(inside) == 0 && unlink(back) == 0);
}

static void a_link_to_what_is_not_there_makes_it(void **state) {
  file_case *c = *state;
  assert_int_equal(symlink("other", c->path), 0);
  replace(c->path, "new");
  expect_link(c->path, "other");
  expect(c->other, "new", 0644);
}

static void where_a_link_leads_is_said(void **state) {
  file_case *c = *state;
  assert_int_equal(symlink("gone/target", c->path), 0);
  refuses(c->path, ENOENT, "/gone/target, where it links to, cannot be written: ");
  expect_link(c->path, "gone/target");
  assert_int_equal(symlink("other", c->other), 0);
  refuses(c->other, ELOOP, "cannot be written");
  assert_int_equal(unlink(c->other), 0);
  assert_int_equal(mkdir(c->other, 0755), 0);
  assert_int_equal(unlink(c->path), 0);
  assert_int_equal(symlink("other", c->path), 0);
  refuses(c->path, EISDIR, "/other, where it links to, cannot be written: ");
  refuses(c->other, EISDIR, "cannot be written");
  refuses("/dev/null", EINVAL, "cannot be written");
  assert_int_equal(count_entries(c->folder.folder), 2);
}

/* Root may write everything, so it becomes somebody else for this. */
static void what_cannot_be_written_stays(void **state) {
  file_case *c = *state;
  char folder[1024], inside[1100];
  snprintf(folder, sizeof folder, "%s", scratch_path(&c->folder, "deep"));
  snprintf(inside, sizeof inside, "%s/target", folder);
  assert_int_equal(mkdir(folder, 0755), 0);
  replace(inside, "old");
  replace(c->other, "old");
  assert_int_equal(chmod(c->other, 0444), 0);
  assert_int_equal(symlink("deep/target", c->path), 0);
  assert_int_equal(chmod(folder, 0555), 0);
  const bool is_root = geteuid() == 0;
  if (is_root) assert_int_equal(chmod(c->folder.folder, 0777), 0);
  if (is_root) assert_int_equal(seteuid(NOBODY), 0);
  refuses(c->other, EACCES, "other: cannot be written: ");
  refuses(c->path, EACCES, "/deep/target, where it links to, cannot be written: ");
  if (is_root) assert_int_equal(seteuid(0), 0);
  assert_int_equal(chmod(folder, 0755), 0);
  expect(c->other, "old", 0444);
  expect(inside, "old", 0644);
  expect_link(c->path, "deep/target");
  assert_int_equal(count_entries(folder), 1);
  assert_int_equal(unlink(inside), 0);
}

/* As the system does where it protects links. */
static void a_strangers_link_in_a_shared_folder_is_not_followed(void **state) {
  file_case *c = *state;
  replace(c->other, "old");
  assert_int_equal(symlink("other", c->path), 0);
  assert_int_equal(chmod(c->folder.folder, 01777), 0);
  replace(c->path, "new");
  expect(c->other, "new", 0644);
  if (geteuid() == 0) {
    assert_int_equal(lchown(c->path, NOBODY, NOBODY), 0);
    refuses(c->path, EACCES, "file: cannot be written: ");
    expect(c->other, "new", 0644);
    assert_int_equal(chmod(c->folder.folder, 0777), 0);
    replace(c->path, "newer");
    expect(c->other, "newer", 0644);
  } else {
    print_message("only root can make a stranger's link: refusing one is not tried\n");
  }
  expect_link(c->path, "other");
}

/* What root replaces stays its owner's. */
static void a_file_keeps_its_owner(void **state) {
  file_case *c = *state;
  replace(c->path, "old");
  const bool is_root = geteuid() == 0;
  if (is_root) assert_int_equal(chown(c->path, NOBODY, NOBODY), 0);
  else print_message("only root can give a file to somebody else: it keeps its own owner here\n");
  replace(c->path, "new");
  struct stat found;
  assert_int_equal(stat(c->path, &found), 0);
  assert_int_equal(found.st_uid, is_root ? NOBODY : geteuid());
  assert_int_equal(found.st_gid, is_root ? NOBODY : getegid());
}

static void there_must_be_a_path(void **state) {
  (void)state;
  char longest[5000];
  memset(longest, 'n', sizeof longest);
  longest[sizeof longest - 1] = '\0';
  assert_int_equal(tm_file_replace(NULL, "new", 3, NULL), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_file_replace("", "new", 3, NULL), TM_ERROR_ARGUMENT);
  refuses(longest, ENAMETOOLONG, "cannot be written");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_new_file_has_the_mode_of_the_mask, begin, end),
    cmocka_unit_test_setup_teardown(a_file_keeps_its_mode, begin, end),
    cmocka_unit_test_setup_teardown(a_link_stays_and_its_target_is_replaced, begin, end),
    cmocka_unit_test_setup_teardown(a_link_to_what_is_not_there_makes_it, begin, end),
    cmocka_unit_test_setup_teardown(where_a_link_leads_is_said, begin, end),
    cmocka_unit_test_setup_teardown(what_cannot_be_written_stays, begin, end),
    cmocka_unit_test_setup_teardown(a_strangers_link_in_a_shared_folder_is_not_followed, begin, end),
    cmocka_unit_test_setup_teardown(a_file_keeps_its_owner, begin, end),
    cmocka_unit_test(there_must_be_a_path),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
