/* SPDX-License-Identifier: Apache-2.0 */
/* What changes its type on the way from one format to another, and what is refused because it cannot. */
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

static const char *path_of(const char *name, char out_path[1024]) {
  (void)snprintf(out_path, 1024, "%s/%s", files.folder, name);
  return out_path;
}

/* Safetensors holds it as text; a reader of GGUF wants the number. */
static void an_alignment_comes_back_from_text(void **state) {
  (void)state;
  static const struct { const char *text; uint64_t alignment; } cases[] = {
    { "64", 64 }, { "1", 1 }, { "4096", 4096 }, { "", 0 }, { "0", 0 }, { "33", 0 }, { "-8", 0 }, { "64 ", 0 }, { "0x40", 0 },
    { "4294967296", 0 }, { "18446744073709551680", 0 },
  };
  char path[1024];
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const tm_metadata entry = { .key = { "general.alignment", 17 },
                                .value = { .type = TM_METADATA_STRING, .count = 1, .data = cases[i].text,
                                           .bytes = strlen(cases[i].text) } };
    tm_checkpoint_writer *writer = NULL;
    uint64_t number = 0;
    const tm_write_request request = { .format = TM_WRITE_GGUF, .path = path_of("m.gguf", path), .metadata = &entry,
                                       .metadata_count = 1 };
    const tm_status status = tm_checkpoint_writer_create(&memory, &request, &writer, &error);
    if (status != (cases[i].alignment != 0 ? TM_OK : TM_ERROR_ARGUMENT)) fail_msg("\"%s\": %d", cases[i].text, status);
    if (status != TM_OK) continue;
    assert_int_equal(tm_checkpoint_writer_begin(writer, &error), TM_OK);
    assert_int_equal(tm_checkpoint_writer_finish(writer, &error), TM_OK);
    tm_checkpoint_writer_destroy(writer);
    tm_archive *written = NULL;
    if (tm_archive_open(&memory, NULL, path, &written, &error) != TM_OK) fail_msg("%s", error.text);
    const tm_metadata_value *value = &tm_archive_metadata_find(written, "general.alignment")->value;
    assert_int_equal(value->type, TM_METADATA_U32);
    assert_true(tm_metadata_as_u64(value, &number) && number == cases[i].alignment);
    tm_archive_close(written);
  }
}

static void types_without_numbers_are_named(void **state) {
  (void)state;
  static const uint64_t four[1] = { 4 };
  static const struct { const char *type; uint64_t bytes; bool is_own; uint32_t kind; const char *text; } cases[] = {
    { "F32", 16, false, TM_WRITE_SAFETENSORS, NULL },
    { "F32", 16, false, TM_WRITE_GGUF, NULL },
    { "F32", 3, false, TM_WRITE_SAFETENSORS, "4 elements of F32 are not 3 bytes" },
    { "F32", 3, true, TM_WRITE_SAFETENSORS, "4 elements of F32 are not 3 bytes" },
    { "F32", 0, false, TM_WRITE_GGUF, "4 elements of F32 are not 0 bytes" },
    { "F8_NEXT_YEAR", 5, true, TM_WRITE_SAFETENSORS, NULL },
    { "F8_NEXT_YEAR", 0, true, TM_WRITE_SAFETENSORS, "(F8_NEXT_YEAR): it has elements, but no bytes" },
    { "gguf type 99", 0, false, TM_WRITE_SAFETENSORS, "(gguf type 99): safetensors has no such type" },
    { "FLOAT8E4M3FNUZ", 4, false, TM_WRITE_SAFETENSORS, "(FLOAT8E4M3FNUZ): safetensors has no such type" },
    { "<c16", 64, false, TM_WRITE_SAFETENSORS, "(<c16): safetensors has no such type" },
    { "<c16", 64, true, TM_WRITE_GGUF, "(<c16): GGUF has no such type" },
  };
  char path[1024];
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tm_checkpoint_writer *writer = NULL;
    const tm_write_tensor tensor = { .name = { "t", 1 }, .dims = four, .rank = 1, .type_name = cases[i].type,
                                     .bytes = cases[i].bytes, .is_own_type = cases[i].is_own };
    const tm_write_request request = { .format = cases[i].kind, .tensors = &tensor, .tensor_count = 1,
                                       .path = path_of(cases[i].kind == TM_WRITE_GGUF ? "m.gguf" : "m.safetensors", path) };
    const tm_status status = tm_checkpoint_writer_create(&memory, &request, &writer, &error);
    if (status != (cases[i].text == NULL ? TM_OK : TM_ERROR_ARGUMENT) ||
        (status != TM_OK && strstr(error.text, cases[i].text) == NULL))
      fail_msg("%zu: %d %s", i, status, error.text);
    tm_checkpoint_writer_destroy(writer);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(an_alignment_comes_back_from_text, set_up, tear_down),
    cmocka_unit_test_setup_teardown(types_without_numbers_are_named, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
