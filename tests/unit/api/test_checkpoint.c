/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints as the application sees them: listed, read, loaded with and without a copy, and changed under its hands. */
#define _GNU_SOURCE
#include "api_case.h"

typedef struct fixture {
  scratch     files;
  char        path[1024];
  tm_context *context;
} fixture;

static void open_fixture(fixture *f, uint32_t flags) {
  assert_true(scratch_init(&f->files));
  snprintf(f->path, sizeof f->path, "%s", write_checkpoint(&f->files, "two.safetensors", TWO_TENSORS, TWO_TENSORS_BYTES, 0));
  const tm_context_options options = { .struct_size = sizeof options, .flags = flags, .thread_count = 1 };
  assert_int_equal(tm_context_create(&options, &f->context, NULL), TM_OK);
}

static void close_fixture(fixture *f) {
  tm_context_destroy(f->context);
  scratch_deinit(&f->files);
}

static tm_checkpoint *open_checkpoint(fixture *f) {
  tm_checkpoint *checkpoint = NULL;
  tm_error error = { .struct_size = sizeof error };
  if (tm_checkpoint_open(f->context, f->path, 0, &checkpoint, &error) != TM_OK) fail_msg("%s", error.text);
  return checkpoint;
}

static void what_is_in_it_is_listed(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, 0);
  tm_checkpoint *checkpoint = open_checkpoint(&f);
  tm_checkpoint_description description = { .struct_size = sizeof description };
  tm_checkpoint_describe(checkpoint, &description);
  assert_string_equal(description.path, f.path);
  assert_string_equal(description.format, "safetensors");
  assert_int_equal(description.tensor_count, 2);
  assert_int_equal(description.tensor_bytes, TWO_TENSORS_BYTES);
  assert_int_equal(description.file_count, 1);
  assert_int_equal(description.incomplete_count, 0);
  tm_file_description file = { .struct_size = sizeof file };
  assert_int_equal(tm_checkpoint_file(checkpoint, 0, &file), TM_OK);
  assert_int_equal(file.bytes, description.file_bytes);
  assert_int_equal(file.mapped, 0);
  assert_int_equal(tm_checkpoint_file(checkpoint, 1, &file), TM_END);
  tm_tensor_description tensor = { .struct_size = sizeof tensor };
  assert_int_equal(tm_checkpoint_tensor(checkpoint, 1, &tensor), TM_OK);
  assert_string_equal(tensor.name, "v.weight");
  assert_int_equal(tensor.format, TM_FORMAT_I32);
  assert_int_equal(tensor.rank, 1);
  assert_int_equal(tensor.dims[0], 4);
  assert_int_equal(tm_checkpoint_tensor(checkpoint, 2, &tensor), TM_END);
  uint64_t index = 77;
  assert_int_equal(tm_checkpoint_find(checkpoint, "w", &index), TM_OK);
  assert_int_equal(index, 0);
  assert_int_equal(tm_checkpoint_find(checkpoint, "nowhere", &index), TM_ERROR_NOT_FOUND);
  assert_int_equal(index, 0);
  tm_metadata_description entry = { .struct_size = sizeof entry };
  assert_int_equal(tm_checkpoint_metadata(checkpoint, 0, &entry), TM_OK);
  assert_memory_equal(entry.key, "made_by", 7);
  assert_memory_equal(entry.value, "a test", 6);
  assert_int_equal(entry.value_length, 6);
  assert_int_equal(tm_checkpoint_metadata(checkpoint, 1, &entry), TM_END);
  tm_checkpoint_close(checkpoint);
  tm_checkpoint_close(NULL);
  close_fixture(&f);
}

static uint64_t count_files(tm_context *context, const char *path, uint32_t flags) {
  tm_checkpoint *checkpoint = NULL;
  tm_checkpoint_description description = { .struct_size = sizeof description };
  if (tm_checkpoint_open(context, path, flags, &checkpoint, NULL) != TM_OK) return 0;
  tm_checkpoint_describe(checkpoint, &description);
  tm_checkpoint_close(checkpoint);
  return description.file_count;
}

static void a_part_opens_the_whole_unless_asked_alone(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, 0);
  static const char other[] = "\2\0\0\0\0\0\0\0{}", index[] = "{\"weight_map\":{\"w\":\"two.safetensors\",\"v.weight\":\"two.safetensors\"}}";
  assert_non_null(scratch_write(&f.files, "other.safetensors", other, sizeof other - 1));
  assert_int_equal(count_files(f.context, f.path, 0), 1);
  assert_non_null(scratch_write(&f.files, "m.safetensors.index.json", index, sizeof index - 1));
  assert_int_equal(count_files(f.context, f.path, 0), 1);
  assert_int_equal(count_files(f.context, f.files.folder, 0), 1);
  static const char wide[] = "{\"weight_map\":{\"w\":\"two.safetensors\",\"v.weight\":\"two.safetensors\",\"x\":\"x.safetensors\"}}";
  static const char last[] = "\x35\0\0\0\0\0\0\0{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}x";
  assert_non_null(scratch_write(&f.files, "x.safetensors", last, sizeof last - 1));
  assert_non_null(scratch_write(&f.files, "m.safetensors.index.json", wide, sizeof wide - 1));
  assert_int_equal(count_files(f.context, f.path, 0), 2);
  assert_int_equal(count_files(f.context, f.path, TM_CHECKPOINT_ALONE), 1);
  assert_int_equal(count_files(f.context, f.path, TM_CHECKPOINT_ALONE | TM_CHECKPOINT_ALLOW_INCOMPLETE), 1);
  assert_int_equal(count_files(f.context, f.path, 0x4), 0);
  close_fixture(&f);
}

/* A big-endian array is read, never mapped. */
static void other_forms_are_turned(void **state) {
  (void)state;
  static const char array[] = "\x93NUMPY\1\0\x37\0{'descr': '>u2', 'fortran_order': False, 'shape': (2,)}\1\2\3\4";
  fixture f;
  open_fixture(&f, TM_CONTEXT_MAP_FILES);
  tm_checkpoint *checkpoint = NULL;
  tm_tensor *tensor = NULL;
  assert_int_equal(tm_checkpoint_open(f.context, scratch_write(&f.files, "n.npy", array, sizeof array - 1), 0, &checkpoint, NULL), TM_OK);
  assert_int_equal(tm_checkpoint_load(checkpoint, 0, &tensor, NULL), TM_OK);
  assert_memory_equal(tm_tensor_data(tensor), "\2\1\4\3", 4);
  tm_tensor_destroy(tensor);
  tm_checkpoint_close(checkpoint);
  close_fixture(&f);
}

static void bytes_are_read_within_a_tensor_only(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, 0);
  tm_checkpoint *checkpoint = open_checkpoint(&f);
  unsigned char bytes[40];
  memset(bytes, 0x55, sizeof bytes);
  assert_int_equal(tm_checkpoint_read(checkpoint, 0, 30, bytes, 2, NULL), TM_OK);
  assert_int_equal(bytes[0], 30);
  assert_int_equal(bytes[1], 31);
  assert_int_equal(bytes[2], 0x55);
  assert_int_equal(tm_checkpoint_read(checkpoint, 0, 30, bytes, 3, NULL), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_checkpoint_read(checkpoint, 0, UINT64_MAX, bytes, 2, NULL), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_checkpoint_read(checkpoint, 2, 0, bytes, 1, NULL), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_checkpoint_read(checkpoint, 0, 32, bytes, 0, NULL), TM_OK);
  tm_checkpoint_close(checkpoint);
  close_fixture(&f);
}

static void tensors_are_loaded_or_mapped(void **state) {
  (void)state;
  for (uint32_t mapped = 0; mapped < 2; mapped++) {
    fixture f;
    open_fixture(&f, mapped ? TM_CONTEXT_MAP_FILES : 0);
    tm_checkpoint *checkpoint = open_checkpoint(&f);
    tm_tensor *tensor = NULL, *row = NULL;
    assert_int_equal(tm_checkpoint_load(checkpoint, 0, &tensor, NULL), TM_OK);
    const tm_operand *operand = tm_tensor_operand(tensor);
    assert_int_equal(operand->format, TM_FORMAT_U8);
    assert_true((operand->flags & TM_OPERAND_CONSTANT) != 0);
    assert_int_equal(((const unsigned char *)tm_tensor_data(tensor))[31], 31);
    const tm_operand second_row = { .format = TM_FORMAT_U8, .rank = 1, .dims = { 8 } };
    assert_int_equal(tm_tensor_view(tensor, &second_row, 8, &row, NULL), TM_OK);
    assert_int_equal(((const unsigned char *)tm_tensor_data(row))[0], 8);
    assert_true((tm_tensor_operand(row)->flags & TM_OPERAND_CONSTANT) != 0);
    const uint64_t dims[] = { 8 };
    tm_tensor *other = NULL;
    assert_int_equal(tm_tensor_create(f.context, TM_FORMAT_U8, 1, dims, &other, NULL), TM_OK);
    assert_int_equal(tm_run(f.context, TM_OP_COPY, NULL, 0, &row, 1, &other, 1, NULL, NULL), TM_OK);
    assert_int_equal(((const unsigned char *)tm_tensor_data(other))[7], 15);
    tm_error error = { .struct_size = sizeof error };
    const tm_status written = tm_run(f.context, TM_OP_COPY, NULL, 0, &other, 1, &row, 1, NULL, &error);
    assert_int_equal(written, TM_ERROR_ARGUMENT);     /* weights are constants, wherever they lie */
    tm_tensor *none = NULL;
    assert_int_equal(tm_checkpoint_load(checkpoint, 2, &none, NULL), TM_ERROR_ARGUMENT);
    assert_null(none);
    tm_tensor_destroy(other);
    tm_tensor_destroy(row);
    tm_tensor_destroy(tensor);
    tm_checkpoint_close(checkpoint);
    close_fixture(&f);
  }
}

static void a_changed_file_is_noticed(void **state) {
  (void)state;
  for (uint32_t mapped = 0; mapped < 2; mapped++) {
    fixture f;
    open_fixture(&f, mapped ? TM_CONTEXT_MAP_FILES : 0);
    tm_checkpoint *checkpoint = open_checkpoint(&f);
    tm_tensor *tensor = NULL;
    assert_int_equal(tm_checkpoint_load(checkpoint, 0, &tensor, NULL), TM_OK);
    assert_int_equal(tm_checkpoint_verify(checkpoint, NULL), TM_OK);
    assert_int_equal(truncate(f.path, 100), 0);
    tm_error error = { .struct_size = sizeof error };
    assert_int_equal(tm_checkpoint_verify(checkpoint, &error), TM_ERROR_CHANGED);
    assert_non_null(strstr(error.text, "two.safetensors"));
    unsigned char byte;
    const tm_status read = tm_checkpoint_read(checkpoint, 1, 8, &byte, 1, &error);
    assert_int_equal(read, TM_ERROR_CHANGED);
    const uint64_t dims[] = { 4, 8 };
    tm_tensor *other = NULL;
    assert_int_equal(tm_tensor_create(f.context, TM_FORMAT_U8, 2, dims, &other, NULL), TM_OK);
    const tm_status run = tm_run(f.context, TM_OP_COPY, NULL, 0, &tensor, 1, &other, 1, NULL, &error);
    assert_int_equal(run, mapped ? TM_ERROR_CHANGED : TM_OK);   /* a copy is what it was when it was made */
    tm_tensor_destroy(other);
    tm_tensor_destroy(tensor);
    tm_checkpoint_close(checkpoint);
    close_fixture(&f);
  }
}

static void wrong_files_are_refused(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, 0);
  tm_checkpoint *checkpoint = NULL;
  tm_error error = { .struct_size = sizeof error };
  assert_int_equal(tm_checkpoint_open(f.context, NULL, 0, &checkpoint, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_checkpoint_open(f.context, "", 0, &checkpoint, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_checkpoint_open(f.context, f.path, 0x80u, &checkpoint, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_checkpoint_open(f.context, scratch_path(&f.files, "none.safetensors"), 0, &checkpoint, &error), TM_ERROR_NOT_FOUND);
  assert_true(strlen(error.text) > 10);
  const char *cut = scratch_write(&f.files, "cut.safetensors", "\x40\0\0\0\0\0\0\0{", 9);
  assert_int_equal(tm_checkpoint_open(f.context, cut, 0, &checkpoint, &error), TM_ERROR_CORRUPT);
  assert_null(checkpoint);
  close_fixture(&f);
}

static void a_header_limit_names_its_option(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, 0);
  const tm_context_options options = { .struct_size = sizeof options, .max_header_bytes = 50 };
  tm_context *context = NULL;
  tm_checkpoint *checkpoint = NULL;
  tm_error error = { .struct_size = sizeof error };
  assert_int_equal(tm_context_create(&options, &context, NULL), TM_OK);
  assert_int_equal(tm_checkpoint_open(context, f.path, 0, &checkpoint, &error), TM_ERROR_LIMIT);
  assert_non_null(strstr(error.text, "max"));
  tm_context_destroy(context);
  close_fixture(&f);
}

/* Opens, describes, reads metadata, loads; whatever fails, nothing is left. */
static tm_status work(tm_context *context, const char *path, tm_error *error) {
  tm_checkpoint *checkpoint = NULL;
  tm_tensor *tensor = NULL;
  tm_status status = tm_checkpoint_open(context, path, 0, &checkpoint, error);
  tm_metadata_description entry = { .struct_size = sizeof entry };
  if (status == TM_OK) status = tm_checkpoint_metadata(checkpoint, 0, &entry);
  if (status == TM_OK) status = tm_checkpoint_load(checkpoint, 0, &tensor, error);
  tm_tensor_destroy(tensor);
  tm_checkpoint_close(checkpoint);
  return status;
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, 0);
  counting_heap heap = { 0 };
  const tm_context_options options = options_with(&heap);
  tm_context *context = NULL;
  assert_int_equal(tm_context_create(&options, &context, NULL), TM_OK);
  const uint64_t base = atomic_load(&heap.live_bytes);
  uint64_t failures = 0;
  for (uint64_t n = 1;; n++) {
    atomic_store(&heap.calls, 0);
    heap.fail_from = n;
    tm_error error = { .struct_size = sizeof error };
    const tm_status status = work(context, f.path, &error);
    if (status == TM_OK) break;
    if (status != TM_ERROR_NO_MEMORY) fail_msg("allocation %llu: %d %s", (unsigned long long)n, status, error.text);
    assert_int_equal(atomic_load(&heap.live_bytes), base);
    failures++;
  }
  assert_true(failures > 5);
  heap.fail_from = 0;
  tm_context_destroy(context);
  heap_is_empty(&heap);
  close_fixture(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_in_it_is_listed),
    cmocka_unit_test(a_part_opens_the_whole_unless_asked_alone),
    cmocka_unit_test(other_forms_are_turned),
    cmocka_unit_test(bytes_are_read_within_a_tensor_only),
    cmocka_unit_test(tensors_are_loaded_or_mapped),
    cmocka_unit_test(a_changed_file_is_noticed),
    cmocka_unit_test(wrong_files_are_refused),
    cmocka_unit_test(a_header_limit_names_its_option),
    cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
