/* SPDX-License-Identifier: Apache-2.0 */
/* Models in several GGUF files: opened from any part and from their folder, and what does not belong together. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/error.h"
#include "formats/archive.h"
#include "formats/made_gguf.h"
#include "formats/scratch.h"
#include "formats/shard_name.h"

static tm_memory memory;
static scratch files;           /* of one test */
static tm_error error;

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

typedef struct part {
  uint64_t    number, count, total;
  const char *tensor;
  const char *owner;            /* a metadata value of its own; NULL: none */
} part;

static void put_number_key(gguf_maker *maker, const char *key, uint32_t type, uint64_t number, uint32_t bytes) {
  put_key(maker, key, type);
  put_number(maker, number, bytes);
}

static const char *write_part(const char *name, const part *p) {
  gguf_maker maker = gguf_begin(3, 1, p->owner == NULL ? 3 : 4);
  const uint64_t dims[] = { 8 };
  put_number_key(&maker, "split.no", 2, p->number, 2);
  put_number_key(&maker, "split.count", 2, p->count, 2);
  put_number_key(&maker, "split.tensors.count", 5, p->total, 4);
  if (p->owner != NULL) {
    put_key(&maker, "owner", 8);
    put_text(&maker, p->owner);
  }
  put_tensor(&maker, p->tensor, 1, dims, 0, 0);
  put_data(&maker, 32, 32);
  const char *path = scratch_write(&files, name, maker.bytes, maker.size);
  free(maker.bytes);
  assert_non_null(path);
  return path;
}

static void write_three(void) {
  static const part parts[] = { { 0, 3, 3, "a", "first" }, { 1, 3, 3, "b", NULL }, { 2, 3, 3, "c", NULL } };
  write_part("m-00001-of-00003.gguf", &parts[0]);
  write_part("m-00002-of-00003.gguf", &parts[1]);
  write_part("m-00003-of-00003.gguf", &parts[2]);
}

static tm_status open_path(const char *path, const tm_archive_options *options, tm_archive **out_archive) {
  *out_archive = NULL;
  error = (tm_error)TM_ERROR_INIT;
  return tm_archive_open(&memory, options, path, out_archive, &error);
}

static void expect_refused(const char *path, tm_status status, const char *text) {
  tm_archive *archive;
  const tm_status got = open_path(path, NULL, &archive);
  if (got != status || strstr(error.text, text) == NULL) fail_msg("status %d, not \"%s\": %s", got, text, error.text);
  assert_null(archive);
}

static void expect_whole(const char *path) {
  tm_archive *archive;
  uint64_t number = 9;
  if (open_path(path, NULL, &archive) != TM_OK) fail_msg("%s: %s", path, error.text);
  assert_int_equal(tm_archive_file_count(archive), 3);
  assert_int_equal(tm_archive_tensor_count(archive), 3);
  assert_string_equal(tm_archive_tensor_at(archive, 1)->name.data, "b");
  assert_int_equal(tm_archive_tensor_at(archive, 2)->file_index, 2);
  assert_int_equal(tm_archive_metadata_count(archive), 4);              /* those of the first */
  assert_true(tm_metadata_as_u64(&tm_archive_metadata_find(archive, "split.no")->value, &number));
  assert_int_equal(number, 0);
  assert_null(tm_archive_note_at(archive, 0));
  tm_archive_close(archive);
}

static void any_part_opens_all(void **state) {
  (void)state;
  write_three();
  expect_whole(scratch_path(&files, "m-00001-of-00003.gguf"));
  expect_whole(scratch_path(&files, "m-00002-of-00003.gguf"));
  expect_whole(scratch_path(&files, "m-00003-of-00003.gguf"));
  expect_whole(files.folder);
  assert_non_null(scratch_write(&files, "m-00001-of-00003.gguf.sha256", "x", 1));        /* between the parts' names */
  const part other = { 0, 1, 1, "x", NULL };
  write_part("mmproj.gguf", &other);
  expect_refused(files.folder, TM_ERROR_NOT_FOUND, "holds 2 model files and no index that says which belong together; name one of "
                                                   "them: m-00001-of-00003.gguf mmproj.gguf");
}

static void a_part_alone(void **state) {
  (void)state;
  const tm_archive_options options = { .is_alone = true };
  tm_archive *archive;
  write_three();
  assert_int_equal(open_path(scratch_path(&files, "m-00002-of-00003.gguf"), &options, &archive), TM_OK);
  assert_int_equal(tm_archive_file_count(archive), 1);
  assert_int_equal(tm_archive_metadata_count(archive), 3);
  tm_archive_close(archive);
}

static void from_memory(void **state) {
  (void)state;
  uint64_t size = 0;
  tm_archive *archive;
  write_three();
  unsigned char *bytes = scratch_slurp(scratch_path(&files, "m-00002-of-00003.gguf"), &size);
  assert_int_equal(tm_archive_open_bytes(&memory, NULL, "x", bytes, size, &archive, NULL), TM_OK);
  assert_int_equal(tm_archive_tensor_count(archive), 1);
  assert_non_null(strstr(tm_archive_note_at(archive, 0), "one part of a model"));
  tm_archive_close(archive);
  free(bytes);
}

static void missing_parts_are_named(void **state) {
  (void)state;
  write_three();
  assert_int_equal(unlink(scratch_path(&files, "m-00002-of-00003.gguf")), 0);
  expect_refused(scratch_path(&files, "m-00003-of-00003.gguf"), TM_ERROR_NOT_FOUND,
                 "is part 3 of a model in 3 files, of which 1 is missing beside it: \"m-00002-of-00003.gguf\"");
  assert_int_equal(unlink(scratch_path(&files, "m-00001-of-00003.gguf")), 0);
  expect_refused(files.folder, TM_ERROR_NOT_FOUND, "2 are missing beside it: \"m-00001-of-00003.gguf\", \"m-00002-of-00003.gguf\"");
}

static void mixed_parts_are_named(void **state) {
  (void)state;
  static const struct { part second; tm_status status; const char *text; } cases[] = {
    { { 2, 3, 3, "b", NULL }, TM_ERROR_CORRUPT, "m-00002-of-00003.gguf: its name says part 2, but its split.no 2 says part 3" },
    { { 0, 3, 3, "b", NULL }, TM_ERROR_CORRUPT, "its split.no 0 says part 1: a part has the wrong name or is there twice" },
    { { 5, 3, 3, "b", NULL }, TM_ERROR_CORRUPT, "m-00002-of-00003.gguf: its split.no 5 is not below its split.count 3" },
    { { 1, 4, 3, "b", NULL }, TM_ERROR_CORRUPT, "m-00002-of-00003.gguf: says split.count 4" },
    { { 1, 3, 5, "b", NULL }, TM_ERROR_CORRUPT, "says split.tensors.count 5" },
    { { 1, 3, 3, "a", NULL }, TM_ERROR_CORRUPT, "tensor \"a\" is also in" },
    { { 0, 0, 0, "b", NULL }, TM_ERROR_CORRUPT, "says split.count 0" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    write_three();
    write_part("m-00002-of-00003.gguf", &cases[i].second);
    expect_refused(scratch_path(&files, "m-00001-of-00003.gguf"), cases[i].status, cases[i].text);
  }
  write_three();
  assert_non_null(scratch_write(&files, "m-00002-of-00003.gguf", "version https://git-lfs.github.com/spec/v1\n", 43));
  expect_refused(scratch_path(&files, "m-00001-of-00003.gguf"), TM_ERROR_CORRUPT, "m-00002-of-00003.gguf: is not a model file, but a Git LFS");
}

static void names_and_totals(void **state) {
  (void)state;
  static const part lone = { 1, 3, 3, "b", NULL }, few = { 0, 1, 7, "b", NULL }, beyond = { 2, 2, 2, "b", NULL };
  tm_archive *archive;
  expect_refused(write_part("blob", &lone), TM_ERROR_CORRUPT, "has no name like NAME-00001-of-00003.gguf");
  expect_refused(write_part("m-00002-of-00004.gguf", &lone), TM_ERROR_CORRUPT, "its name says one of 4 files, but its split.count is 3");
  expect_refused(write_part("p-00001-of-00002.gguf", &beyond), TM_ERROR_CORRUPT, "its split.no 2 is not below its split.count 2");
  static const part parts[] = { { 0, 2, 7, "a", NULL }, { 1, 2, 7, "b", NULL } };
  write_part("n-00001-of-00002.gguf", &parts[0]);
  expect_refused(write_part("n-00002-of-00002.gguf", &parts[1]), TM_ERROR_CORRUPT, "should have 7 tensors (split.tensors.count), but its 2 files hold 2");
  assert_int_equal(open_path(write_part("one.gguf", &few), NULL, &archive), TM_OK);     /* a set of one is none */
  tm_archive_close(archive);
}

static void contradictions_are_noted(void **state) {
  (void)state;
  static const part second = { 1, 3, 3, "b", "another" };
  tm_archive *archive;
  write_three();
  write_part("m-00002-of-00003.gguf", &second);
  assert_int_equal(open_path(files.folder, NULL, &archive), TM_OK);
  assert_non_null(strstr(tm_archive_note_at(archive, 0), "says another \"owner\" than the first file"));
  tm_archive_close(archive);
}

static void names_are_taken_apart(void **state) {
  (void)state;
  static const struct { const char *path; bool ok; } cases[] = {
    { "a/m-00002-of-00005.gguf", true }, { "m-00000-of-00005.gguf", false }, { "m-00006-of-00005.gguf", false },
    { "m-0002-of-0005.gguf", false }, { "m-000002-of-000005.gguf", false }, { "m-00002-of-00005", false }, { "-00001-of-00001.gguf", true },
    { "00001-of-00001.gguf", false }, { "m-00002_of_00005.gguf", false }, { "m-00002-of-00005.gguf/x", false }, { "", false },
  };
  static const char *const beyond[] = { "m-00006-of-00005.gguf", "a/m-00001-of-00000.safetensors" };
  for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++) {
    tm_error why = TM_ERROR_INIT;
    assert_int_equal(tm_shard_name_check(beyond[i], beyond[i], &why), TM_ERROR_CORRUPT);
    assert_non_null(strstr(why.text, beyond[i]));
  }
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    if (strstr(cases[i].path, "00006") == NULL) assert_int_equal(tm_shard_name_check(cases[i].path, cases[i].path, NULL), TM_OK);
  tm_shard_name name;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    if (tm_shard_name_parse(cases[i].path, &name) != cases[i].ok) fail_msg("%s", cases[i].path);
  tm_arena arena;
  tm_arena_init(&arena, &memory);
  assert_true(tm_shard_name_parse("a/m-00002-of-00005.gguf", &name));
  assert_int_equal(name.number, 2);
  assert_string_equal(tm_shard_name_path(&arena, &name, 5), "a/m-00005-of-00005.gguf");
  tm_arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(any_part_opens_all, set_up, tear_down), cmocka_unit_test_setup_teardown(a_part_alone, set_up, tear_down),
    cmocka_unit_test_setup_teardown(from_memory, set_up, tear_down), cmocka_unit_test_setup_teardown(missing_parts_are_named, set_up, tear_down),
    cmocka_unit_test_setup_teardown(mixed_parts_are_named, set_up, tear_down), cmocka_unit_test_setup_teardown(names_and_totals, set_up, tear_down),
    cmocka_unit_test_setup_teardown(contradictions_are_noted, set_up, tear_down),
    cmocka_unit_test_setup_teardown(names_are_taken_apart, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
