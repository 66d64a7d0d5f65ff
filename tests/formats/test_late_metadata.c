/* SPDX-License-Identifier: Apache-2.0 */
/* A text among the metadata whose length is known when a checkpoint is planned, and its content when the tensors are written. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "formats/scratch.h"
#include "formats/written_model.h"

static tm_memory memory;
static scratch files;
static tm_error error;

static int set_up(void **state) {
  (void)state;
  tm_memory_init(&memory, 0);
  error = (tm_error)TM_ERROR_INIT;
  return scratch_init(&files) ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  scratch_deinit(&files);
  return memory.used_bytes == 0 ? 0 : -1;
}

static tm_metadata entry(const char *key, const char *text) {
  return (tm_metadata){ .key = { key, strlen(key) }, .value = { .type = TM_METADATA_STRING, .count = 1, .data = text,
                                                                .bytes = strlen(text) } };
}

static tm_string text_of(const char *text) { return (tm_string){ text, strlen(text) }; }

static tm_checkpoint_writer *plan(uint32_t format, const char *path, uint64_t shard_bytes, const char *late) {
  static const uint64_t dims[2] = { 32, 32 };
  tm_write_tensor tensors[MODEL_TENSORS];
  const tm_metadata metadata[] = { entry("before", "\"one\""), entry("late", late == NULL ? "" : late), entry("after", "two") };
  tm_checkpoint_writer *writer = NULL;
  for (uint32_t i = 0; i < MODEL_TENSORS; i++)
    tensors[i] = (tm_write_tensor){ .name = { model_names[i], 1 }, .dims = dims, .rank = 2, .format = TM_FORMAT_F32 };
  const tm_write_request request = { .format = format, .path = path, .shard_bytes = shard_bytes, .tensors = tensors,
                                     .tensor_count = MODEL_TENSORS, .metadata = metadata, .metadata_count = 3,
                                     .late = late == NULL ? NULL : &metadata[1] };
  if (tm_checkpoint_writer_create(&memory, &request, &writer, &error) != TM_OK) fail_msg("%s", error.text);
  return writer;
}

static void expect_texts(const char *path, const char *late) {
  tm_archive *archive = NULL;
  tm_archive_options options = { .is_alone = true };
  tm_string text;
  if (tm_archive_open(&memory, &options, path, &archive, &error) != TM_OK) fail_msg("%s", error.text);
  assert_true(tm_metadata_as_string(&tm_archive_metadata_find(archive, "late")->value, &text));
  assert_int_equal(text.length, strlen(late));
  assert_memory_equal(text.data, late, text.length);
  assert_true(tm_metadata_as_string(&tm_archive_metadata_find(archive, "before")->value, &text));
  assert_string_equal(text.data, "\"one\"");
  assert_true(tm_metadata_as_string(&tm_archive_metadata_find(archive, "after")->value, &text) && strcmp(text.data, "two") == 0);
  tm_archive_close(archive);
}

static void it_stands_in_every_file(void **state) {
  static const char first[] = "{\"hash\":\"0000\"}", second[] = "{\"hash\":\"1f9c\"}";
  static const char *const names[][3] = { { "m.safetensors" }, { "m.gguf" },
                                          { "s-00001-of-00003.safetensors", "s-00002-of-00003.safetensors",
                                            "s-00003-of-00003.safetensors" } };
  (void)state;
  for (uint32_t i = 0; i < 3; i++) {
    char path[1024];
    (void)snprintf(path, sizeof path, "%s", scratch_path(&files, i == 2 ? "s.safetensors" : names[i][0]));
    tm_checkpoint_writer *writer = plan(i == 1 ? TM_WRITE_GGUF : TM_WRITE_SAFETENSORS, path, i == 2 ? SHARDS_OF_TWO + 200 : 0,
                                        first);
    assert_int_equal(tm_checkpoint_writer_begin(writer, &error), TM_OK);
    assert_int_equal(model_fill(writer, 7, &error), TM_OK);
    if (tm_checkpoint_writer_replace_late(writer, text_of(second), &error) != TM_OK) fail_msg("%s", error.text);
    assert_int_equal(tm_checkpoint_writer_finish(writer, &error), TM_OK);
    tm_checkpoint_writer_destroy(writer);
    for (uint32_t n = 0; n < 3 && names[i][n] != NULL; n++) expect_texts(scratch_path(&files, names[i][n]), second);
    (void)snprintf(path, sizeof path, "%s", scratch_path(&files, i == 2 ? "s.safetensors.index.json" : names[i][0]));
    assert_int_equal(model_content(&memory, path, &error), 7);
  }
}

static void only_as_long_as_it_was(void **state) {
  (void)state;
  for (uint32_t format = TM_WRITE_SAFETENSORS; format <= TM_WRITE_GGUF; format++) {
    tm_checkpoint_writer *writer = plan(format, scratch_path(&files, format == TM_WRITE_GGUF ? "m.gguf" : "m.safetensors"), 0,
                                        "12345");
    assert_int_equal(tm_checkpoint_writer_replace_late(writer, text_of("54321"), &error), TM_ERROR_ARGUMENT);
    assert_int_equal(tm_checkpoint_writer_begin(writer, &error), TM_OK);
    assert_int_equal(tm_checkpoint_writer_replace_late(writer, text_of("1234"), &error), TM_ERROR_ARGUMENT);
    assert_int_equal(tm_checkpoint_writer_replace_late(writer, text_of("123456"), &error), TM_ERROR_ARGUMENT);
    if (format == TM_WRITE_SAFETENSORS)         /* a quote takes two bytes there */
      assert_int_equal(tm_checkpoint_writer_replace_late(writer, text_of("12\"45"), &error), TM_ERROR_ARGUMENT);
    assert_int_equal(tm_checkpoint_writer_replace_late(writer, text_of("54321"), &error), TM_OK);
    tm_checkpoint_writer_destroy(writer);
    writer = plan(format, scratch_path(&files, format == TM_WRITE_GGUF ? "m.gguf" : "m.safetensors"), 0, NULL);
    assert_int_equal(tm_checkpoint_writer_begin(writer, &error), TM_OK);
    assert_int_equal(tm_checkpoint_writer_replace_late(writer, text_of("54321"), &error), TM_ERROR_ARGUMENT);
    tm_checkpoint_writer_destroy(writer);
  }
}

static void what_is_abandoned_leaves_nothing(void **state) {
  (void)state;
  char path[1024];
  (void)snprintf(path, sizeof path, "%s", scratch_path(&files, "m.safetensors"));
  tm_checkpoint_writer *writer = plan(TM_WRITE_SAFETENSORS, path, 0, "12345");
  assert_int_equal(tm_checkpoint_writer_begin(writer, &error), TM_OK);
  tm_checkpoint_writer_abandon(writer);
  tm_write_file file;
  assert_true(tm_checkpoint_writer_file_at(writer, 0, &file));
  assert_int_equal(model_fill(writer, 7, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_checkpoint_writer_finish(writer, &error), TM_ERROR_ARGUMENT);
  DIR *folder = opendir(files.folder);
  uint32_t count = 0;
  for (const struct dirent *found = readdir(folder); found != NULL; found = readdir(folder)) count += found->d_name[0] != '.';
  closedir(folder);
  assert_int_equal(count, 0);
  tm_checkpoint_writer_destroy(writer);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(it_stands_in_every_file, set_up, tear_down),
    cmocka_unit_test_setup_teardown(only_as_long_as_it_was, set_up, tear_down),
    cmocka_unit_test_setup_teardown(what_is_abandoned_leaves_nothing, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
