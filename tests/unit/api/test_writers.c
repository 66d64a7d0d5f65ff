/* SPDX-License-Identifier: Apache-2.0 */
/* Writers as the application sees them: planned, asked, filled, finished, and what of a caller's mistakes they say. */
#define _GNU_SOURCE
#include "api_case.h"

static scratch files;
static tm_context *context;
static tm_error error;

static int set_up(void **state) {
  (void)state;
  const tm_context_options options = { .struct_size = sizeof options, .thread_count = 1 };
  error = (tm_error){ .struct_size = sizeof error };
  return scratch_init(&files) && tm_context_create(&options, &context, NULL) == TM_OK ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  tm_context_destroy(context);
  scratch_deinit(&files);
  return 0;
}

static const uint64_t dims[2] = { 2, 3 };
static const tm_writer_tensor two[] = {
  { .name = "w", .name_length = 1, .dims = dims, .rank = 2, .format = TM_FORMAT_F32 },
  { .name = "b", .name_length = 1, .dims = dims + 1, .rank = 1, .format = TM_FORMAT_F32 },
};
static const float values[6] = { 1, 2, 3, 4, 5, 6 };

static tm_writer_options plain_options(uint64_t shard_bytes) {
  return (tm_writer_options){ .struct_size = sizeof(tm_writer_options), .format = TM_WRITER_SAFETENSORS, .tensors = two,
                              .tensor_count = 2, .shard_bytes = shard_bytes };
}

static void write_it(const char *name, const tm_writer_options *options) {
  tm_writer *writer = NULL;
  if (tm_writer_create(context, scratch_path(&files, name), options, &writer, &error) != TM_OK) fail_msg("%s", error.text);
  if (tm_writer_begin(writer, &error) != TM_OK) fail_msg("%s", error.text);
  uint64_t bytes = 0;
  for (uint64_t i = 0; tm_writer_tensor_bytes(writer, i, &bytes) == TM_OK; i++)
    assert_int_equal(tm_writer_write(writer, i, 0, values, bytes, &error), TM_OK);
  if (tm_writer_finish(writer, &error) != TM_OK) fail_msg("%s", error.text);
  tm_writer_destroy(writer);
}

static void a_plan_says_what_will_happen(void **state) {
  (void)state;
  tm_writer *writer = NULL;
  tm_writer_options options = plain_options(0);
  write_it("m.safetensors", &options);
  options = plain_options(1);
  assert_int_equal(tm_writer_create(context, scratch_path(&files, "m.safetensors"), &options, &writer, &error), TM_OK);
  tm_writer_description plan = { .struct_size = sizeof plan };
  tm_writer_describe(writer, &plan);
  assert_int_equal(plan.format, TM_WRITER_SAFETENSORS);
  assert_int_equal(plan.file_count, 3);
  assert_int_equal(plan.tensor_count, 2);
  assert_int_equal(plan.tensor_bytes, 36);
  assert_int_equal(plan.removal_count, 1);
  assert_true(plan.free_bytes > plan.file_bytes && plan.file_bytes > 36);
  tm_writer_file_description file = { .struct_size = sizeof file };
  assert_int_equal(tm_writer_file(writer, 2, &file), TM_OK);
  assert_string_equal(file.path, scratch_path(&files, "m.safetensors.index.json"));
  assert_int_equal(file.replaces, 0);
  assert_int_equal(tm_writer_file(writer, 3, &file), TM_END);
  const char *text = NULL;
  assert_int_equal(tm_writer_removal(writer, 0, &text), TM_OK);
  assert_string_equal(text, scratch_path(&files, "m.safetensors"));
  assert_int_equal(tm_writer_removal(writer, 1, &text), TM_END);
  assert_int_equal(tm_writer_note(writer, 0, &text), TM_END);
  uint64_t bytes = 0;
  assert_int_equal(tm_writer_tensor_bytes(writer, 1, &bytes), TM_OK);
  assert_int_equal(bytes, 12);
  assert_int_equal(tm_writer_tensor_bytes(writer, 2, &bytes), TM_END);
  tm_writer_destroy(writer);
  write_it("m.safetensors", &options);
  assert_int_not_equal(access(scratch_path(&files, "m.safetensors"), F_OK), 0);
}

static void metadata_are_kept_and_added(void **state) {
  (void)state;
  static const unsigned char number[8] = { 7 };
  const tm_writer_metadata first[] = {
    { .key = "kept", .key_length = 4, .type = TM_VALUE_STRING, .data = "as it was", .bytes = 9 },
    { .key = "changed", .key_length = 7, .type = TM_VALUE_STRING, .data = "old", .bytes = 3 },
  };
  const tm_writer_metadata second[] = {
    { .key = "changed", .key_length = 7, .type = TM_VALUE_STRING, .data = "new", .bytes = 3 },
    { .key = "count", .key_length = 5, .type = TM_VALUE_U64, .data = number, .bytes = 8 },
  };
  tm_writer_options options = plain_options(0);
  options.metadata = first;
  options.metadata_count = 2;
  write_it("m.safetensors", &options);
  tm_checkpoint *source = NULL;
  assert_int_equal(tm_checkpoint_open(context, scratch_path(&files, "m.safetensors"), 0, &source, &error), TM_OK);
  options.format = TM_WRITER_GGUF;
  options.metadata = second;
  options.metadata_from = source;
  write_it("m.gguf", &options);
  tm_checkpoint *written = NULL;
  assert_int_equal(tm_checkpoint_open(context, scratch_path(&files, "m.gguf"), 0, &written, &error), TM_OK);
  static const char *const wanted[3][2] = { { "kept", "as it was" }, { "changed", "new" }, { "count", "7" } };
  for (uint64_t i = 0; i < 3; i++) {
    tm_metadata_description entry = { .struct_size = sizeof entry };
    assert_int_equal(tm_checkpoint_metadata(written, i, &entry), TM_OK);
    assert_string_equal(entry.key, wanted[i][0]);
    assert_string_equal(entry.value, wanted[i][1]);
  }
  tm_checkpoint_close(written);
  tm_checkpoint_close(source);
}

static void inputs_are_never_written_over(void **state) {
  (void)state;
  tm_writer *writer = NULL;
  tm_writer_options options = plain_options(1);
  write_it("m.safetensors", &options);
  static const char *const ways[] = { "m.safetensors.index.json", "", "m-00002-of-00002.safetensors" };
  for (size_t i = 0; i < 3; i++) {
    tm_checkpoint *source = NULL;
    const tm_checkpoint *inputs[1];
    assert_int_equal(tm_checkpoint_open(context, scratch_path(&files, ways[i]), 0, &source, &error), TM_OK);
    inputs[0] = source;
    for (int how = 0; how < 2; how++) {
      options = plain_options(how == 0 ? 1 : 0);
      options.inputs = how == 0 ? inputs : NULL;
      options.input_count = how == 0 ? 1 : 0;
      options.metadata_from = how == 0 ? NULL : source;
      assert_int_equal(tm_writer_create(context, scratch_path(&files, "m.safetensors"), &options, &writer, &error),
                       TM_ERROR_ARGUMENT);
      assert_non_null(strstr(error.text, "is an input too"));
    }
    tm_checkpoint_close(source);
  }
}

static void expect_refused(const tm_writer_options *options, const char *text) {
  tm_writer *writer = NULL;
  assert_int_equal(tm_writer_create(context, scratch_path(&files, "m.safetensors"), options, &writer, &error), TM_ERROR_ARGUMENT);
  if (strstr(error.text, text) == NULL) fail_msg("not \"%s\": %s", text, error.text);
  assert_null(writer);
}

static void write_bytes(const char *name, const void *header, size_t header_bytes, size_t data_bytes) {
  unsigned char bytes[256] = { 0 };
  memcpy(bytes, header, header_bytes);
  assert_non_null(scratch_write(&files, name, bytes, header_bytes + data_bytes));
}

static tm_writer_tensor tensor_of(const tm_checkpoint *checkpoint) {
  tm_tensor_description found = { .struct_size = sizeof found };
  assert_int_equal(tm_checkpoint_tensor(checkpoint, 0, &found), TM_OK);
  return (tm_writer_tensor){ .name = found.name, .name_length = found.name_length, .dims = found.dims, .rank = found.rank,
                             .format = found.format, .type_name = found.type_name, .bytes = found.bytes };
}

/* From a safetensors file to another one; what another format calls a type means nothing there. */
static void names_of_types_pass_on_where_they_are_from(void **state) {
  (void)state;
  static const char next[] = "\x40\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F8_NEXT_YEAR\",\"shape\":[3],\"data_offsets\":[0,4]}}    ";
  static const char text[] = "\x93NUMPY\1\0\x3c\0{'descr':'<U2','fortran_order':False,'shape':(4,)}              ";
  tm_checkpoint *own = NULL, *foreign = NULL;
  tm_writer *writer = NULL;
  write_bytes("next.safetensors", next, 8 + 0x40, 4);
  write_bytes("text.npy", text, 10 + 0x3c, 32);
  if (tm_checkpoint_open(context, scratch_path(&files, "next.safetensors"), 0, &own, &error) != TM_OK) fail_msg("%s", error.text);
  if (tm_checkpoint_open(context, scratch_path(&files, "text.npy"), 0, &foreign, &error) != TM_OK) fail_msg("%s", error.text);
  const tm_checkpoint *const both[2] = { foreign, own };
  const tm_writer_tensor tensors[2] = { tensor_of(own), tensor_of(foreign) };
  tm_writer_options options = { .struct_size = sizeof options, .format = TM_WRITER_SAFETENSORS, .tensors = tensors,
                                .tensor_count = 1, .metadata_from = own };
  assert_int_equal(tm_writer_create(context, scratch_path(&files, "m.safetensors"), &options, &writer, &error), TM_OK);
  tm_writer_destroy(writer);
  writer = NULL;
  options.metadata_from = foreign;
  expect_refused(&options, "(F8_NEXT_YEAR): safetensors has no such type");
  options.inputs = both;
  options.input_count = 2;
  assert_int_equal(tm_writer_create(context, scratch_path(&files, "m.safetensors"), &options, &writer, &error), TM_OK);
  tm_writer_destroy(writer);
  options.tensor_count = 2;
  expect_refused(&options, "(<U2): safetensors has no such type");
  options.metadata_from = NULL;
  options.input_count = 0;
  expect_refused(&options, "(F8_NEXT_YEAR): safetensors has no such type, and this version cannot change it to one (and 1 more");
  tm_checkpoint_close(own);
  tm_checkpoint_close(foreign);
}

static void a_callers_mistakes_are_told(void **state) {
  (void)state;
  static const tm_writer_tensor nameless[] = { { .name_length = 1, .dims = dims, .rank = 1, .format = TM_FORMAT_F32 } };
  static const tm_checkpoint *const hole[1] = { NULL };
  expect_refused(NULL, "no options");
  tm_writer_options options = plain_options(0);
  options.struct_size = 0;
  expect_refused(&options, "struct_size");
  options = plain_options(0);
  options.format = 77;
  expect_refused(&options, "there is no format 77");
  options = plain_options(0);
  options.tensors = NULL;
  expect_refused(&options, "counted but not given");
  options.tensors = nameless;
  options.tensor_count = 1;
  expect_refused(&options, "has no name or no dims");
  options = plain_options(0);
  options.metadata_count = 1;
  expect_refused(&options, "counted but not given");
  options = plain_options(0);
  options.input_count = 1;
  expect_refused(&options, "counted but not given");
  options.inputs = hole;
  expect_refused(&options, "is missing");
  options = plain_options(0);
  options.reserved = 1;
  expect_refused(&options, "`reserved` is 1");
  tm_writer *writer = NULL;
  options = plain_options(0);
  assert_int_equal(tm_writer_create(context, NULL, &options, &writer, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_writer_create(context, scratch_path(&files, "m.safetensors"), &options, &writer, NULL), TM_OK);
  assert_int_equal(tm_writer_write(writer, 0, 0, values, 4, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_writer_begin(writer, &error), TM_OK);
  assert_int_equal(tm_writer_write(writer, 0, 0, NULL, 4, &error), TM_ERROR_ARGUMENT);
  tm_writer_cancel(writer);
  assert_int_equal(tm_writer_write(writer, 0, 0, values, 4, &error), TM_ERROR_CANCELLED);
  tm_writer_destroy(writer);
  tm_writer_destroy(NULL);
}

static void recovery_of_nothing_is_nothing(void **state) {
  (void)state;
  uint64_t removed = 7, completed = 7;
  assert_int_equal(tm_writer_recover(context, scratch_path(&files, "m.safetensors"), &removed, &completed, &error), TM_OK);
  assert_true(removed == 0 && completed == 0);
  assert_non_null(scratch_write(&files, "m.safetensors.0123456789ab.part", "x", 1));
  assert_non_null(scratch_write(&files, "m-1-of-2.safetensors.0123456789ab.part", "x", 1));
  assert_int_equal(tm_writer_recover(context, scratch_path(&files, "m.safetensors.index.json"), &removed, NULL, &error), TM_OK);
  assert_int_equal(removed, 2);
  assert_int_equal(tm_writer_recover(context, NULL, NULL, NULL, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_writer_recover(context, files.folder, NULL, NULL, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_writer_recover(context, scratch_path(&files, "no/m.safetensors"), NULL, NULL, &error), TM_ERROR_NOT_FOUND);
}

static void it_is_counted_and_given_back(void **state) {
  (void)state;
  counting_heap heap = { 0 };
  const tm_context_options options = options_with(&heap);
  tm_context *counted = NULL;
  tm_writer *writer = NULL;
  const tm_writer_options wanted = plain_options(1);
  assert_int_equal(tm_context_create(&options, &counted, NULL), TM_OK);
  const uint64_t before = heap.live_bytes;
  tm_status status = TM_ERROR_NO_MEMORY;
  for (uint64_t at = 1; status == TM_ERROR_NO_MEMORY; at++) {
    heap.calls = 0;
    heap.fail_at = at;
    status = tm_writer_create(counted, scratch_path(&files, "m.safetensors"), &wanted, &writer, NULL);
    if (status == TM_OK) status = tm_writer_begin(writer, NULL);
    tm_writer_destroy(writer);
    writer = NULL;
    assert_int_equal(heap.live_bytes, before);
  }
  assert_int_equal(status, TM_OK);
  heap.fail_at = 0;
  tm_context_destroy(counted);
  heap_is_empty(&heap);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_plan_says_what_will_happen, set_up, tear_down),
    cmocka_unit_test_setup_teardown(metadata_are_kept_and_added, set_up, tear_down),
    cmocka_unit_test_setup_teardown(inputs_are_never_written_over, set_up, tear_down),
    cmocka_unit_test_setup_teardown(names_of_types_pass_on_where_they_are_from, set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_callers_mistakes_are_told, set_up, tear_down),
    cmocka_unit_test_setup_teardown(recovery_of_nothing_is_nothing, set_up, tear_down),
    cmocka_unit_test_setup_teardown(it_is_counted_and_given_back, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
