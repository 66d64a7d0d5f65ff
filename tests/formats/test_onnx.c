/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX models: what is hostile, what is large, and what lies in other files.  Real ones: tests/oracle/checkpoints_onnx.py. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/error.h"
#include "formats/archive.h"
#include "formats/made_protobuf.h"
#include "formats/scratch.h"

static tm_memory memory;
static scratch files;
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

/* ------------------------------------------------------------------------------------------------------ making ---- */

static void put_model(gguf_maker *maker, gguf_maker *graph) {
  put_natural(maker, 1, 8);
  put_message(maker, 7, graph);
}

/* Elements of "w" whose data are said to be elsewhere. */
static gguf_maker external_elements(uint64_t count, uint64_t type, const char *location, const char *offset, const char *length) {
  const char *const entries[] = { "location", location, "offset", offset, "length", length };
  gguf_maker tensor = { NULL, 0, 0 };
  put_natural(&tensor, 1, count);
  put_natural(&tensor, 2, type);
  put_word(&tensor, 8, "w");
  for (int i = 0; i < 6; i += 2) {
    gguf_maker entry = { NULL, 0, 0 };
    if (entries[i + 1] == NULL) continue;
    put_word(&entry, 1, entries[i]);
    put_word(&entry, 2, entries[i + 1]);
    put_message(&tensor, 13, &entry);
  }
  put_natural(&tensor, 14, 1);
  return tensor;
}

/* Four f32. */
static gguf_maker external_tensor(const char *location, const char *offset, const char *length) {
  return external_elements(4, 1, location, offset, length);
}

static const char *write_external(scratch *folder, const char *name, const char *location, const char *offset, const char *length) {
  gguf_maker tensor = external_tensor(location, offset, length), graph = { NULL, 0, 0 }, model = { NULL, 0, 0 };
  put_message(&graph, 5, &tensor);
  put_model(&model, &graph);
  const char *path = scratch_write(folder, name, model.bytes, model.size);
  free(model.bytes);
  assert_non_null(path);
  return path;
}

static tm_status open_path(const char *path, tm_archive **out_archive) {
  *out_archive = NULL;
  error = (tm_error)TM_ERROR_INIT;
  return tm_archive_open(&memory, NULL, path, out_archive, &error);
}

static void expect_refused(const char *path, tm_status status, const char *text) {
  tm_archive *archive;
  const tm_status got = open_path(path, &archive);
  if (got != status || strstr(error.text, text) == NULL) fail_msg("status %d, not \"%s\": %s", got, text, error.text);
}

static void expect_first_byte(const char *path, unsigned char wanted) {
  tm_archive *archive;
  unsigned char byte = 0;
  if (open_path(path, &archive) != TM_OK) fail_msg("%s", error.text);
  assert_int_equal(tm_archive_file_count(archive), 2);
  assert_int_equal(tm_archive_tensor_at(archive, 0)->file_index, 1);
  assert_int_equal(tm_archive_read(archive, 0, 0, &byte, 1, NULL), TM_OK);
  assert_int_equal(byte, wanted);
  tm_archive_close(archive);
}

/* ------------------------------------------------------------------------------------------------ other files ---- */

static void data_beside_the_model(void **state) {
  (void)state;
  unsigned char data[64];
  for (unsigned char i = 0; i < sizeof data; i++) data[i] = i;
  assert_non_null(scratch_write(&files, "w.bin", data, sizeof data));
  expect_first_byte(write_external(&files, "a.onnx", "w.bin", NULL, NULL), 0);
  expect_first_byte(write_external(&files, "a.onnx", "w.bin", "48", "16"), 48);
  expect_first_byte(write_external(&files, "a.onnx", "./w.bin", "5", NULL), 5);
}

static void data_that_is_not_there(void **state) {
  (void)state;
  unsigned char data[64] = { 0 };
  assert_non_null(scratch_write(&files, "w.bin", data, sizeof data));
  expect_refused(write_external(&files, "a.onnx", "gone.bin", NULL, NULL), TM_ERROR_NOT_FOUND,
                 "the data of tensor \"w\" are in \"gone.bin\", which is missing");
  expect_refused(write_external(&files, "a.onnx", NULL, "0", "16"), TM_ERROR_CORRUPT, "does not say in which file");
  expect_refused(write_external(&files, "a.onnx", "w.bin", "0", "15"), TM_ERROR_CORRUPT, "need 16 bytes, its external data have 15");
  expect_refused(write_external(&files, "a.onnx", "w.bin", "49", "16"), TM_ERROR_CORRUPT,
                 "but the model declares data up to 65 (1 byte is missing): 1 of 1 tensors is incomplete");
  expect_refused(write_external(&files, "a.onnx", "w.bin", "1000", NULL), TM_ERROR_CORRUPT, "w.bin: the file ends at offset 64");
  expect_refused(write_external(&files, "a.onnx", "w.bin", "18446744073709551615", NULL), TM_ERROR_CORRUPT, "beyond any file");
  expect_refused(write_external(&files, "a.onnx", "w.bin", "18446744073709551616", NULL), TM_ERROR_CORRUPT, "a number is expected");
  expect_refused(write_external(&files, "a.onnx", "w.bin", "-1", NULL), TM_ERROR_CORRUPT, "a number is expected");
  expect_refused(write_external(&files, "a.onnx", "w.bin", "", NULL), TM_ERROR_CORRUPT, "a number is expected");
  expect_refused(write_external(&files, "a.onnx", ".", NULL, NULL), TM_ERROR_CORRUPT, "in \".\", which is a folder");
  static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 16\n";
  assert_non_null(scratch_write(&files, "w.bin", pointer, sizeof pointer - 1));
  expect_refused(write_external(&files, "a.onnx", "w.bin", "0", "16"), TM_ERROR_CORRUPT, "w.bin: is not a model file, but a Git LFS pointer");
}

/* ------------------------------------------------------------------------------------------------------ truncated ---- */

static gguf_maker make_three(void) {
  gguf_maker graph = { NULL, 0, 0 }, model = { NULL, 0, 0 };
  for (int i = 0; i < 3; i++) {
    gguf_maker tensor = { NULL, 0, 0 };
    const char name[] = { (char)('a' + i), '\0' };
    unsigned char data[64] = { 0 };
    put_natural(&tensor, 1, i == 1 ? 64 : 16);
    put_natural(&tensor, 2, i == 1 ? 7 : 1);            /* the second is numbers of one byte each */
    put_word(&tensor, 8, name);
    put_blob(&tensor, i == 1 ? 7 : 9, data, 64);
    put_message(&graph, 5, &tensor);
  }
  put_model(&model, &graph);
  return model;
}

/* The download stopped in the data of the first, second or third tensor: those before it are whole, it is listed, the rest is unknown. */
static void truncated_models_open_when_asked(void **state) {
  (void)state;
  const tm_archive_options options = { .allow_incomplete = true };
  gguf_maker model = make_three();
  tm_archive *archive;
  for (uint64_t cut = 0; cut < 3; cut++) {
    const uint64_t size = model.size - (2 - cut) * (64 + 11) - 10;
    assert_int_equal(tm_archive_open_bytes(&memory, NULL, "x.onnx", model.bytes, size, &archive, &error), TM_ERROR_CORRUPT);
    assert_non_null(strstr(error.text, "inside its structure: truncated"));
    if (tm_archive_open_bytes(&memory, &options, "x.onnx", model.bytes, size, &archive, &error) != TM_OK) fail_msg("%s", error.text);
    assert_int_equal(tm_archive_tensor_count(archive), cut + 1);
    assert_int_equal(tm_archive_incomplete_count(archive), 1);
    assert_int_equal(tm_archive_tensor_at(archive, cut)->flags, TM_ARCHIVE_TENSOR_INCOMPLETE);
    assert_non_null(strstr(tm_archive_note_at(archive, 0), "what comes after is not listed"));
    unsigned char byte;
    assert_int_equal(tm_archive_read(archive, cut, 63, &byte, 1, NULL), TM_ERROR_CORRUPT);
    assert_null(tm_archive_mapped(archive, cut));
    for (uint64_t i = 0; i < cut; i++) assert_int_equal(tm_archive_read(archive, i, 63, &byte, 1, NULL), TM_OK);
    tm_archive_close(archive);
  }
  free(model.bytes);
}

/* The folder "inner" holds the model; what it must not reach lies beside that folder. */
static void data_outside_the_folder(void **state) {
  (void)state;
  static const char *const places[] = { "../secret", "x/../../secret", "/etc/hostname", "..", "link", "outward/secret", "" };
  unsigned char data[64] = { 9 };
  scratch inner;
  char target[1100];
  assert_true(scratch_init(&inner));
  assert_non_null(scratch_write(&files, "secret", data, sizeof data));
  (void)snprintf(target, sizeof target, "%s/secret", files.folder);
  assert_int_equal(symlink(target, scratch_path(&inner, "link")), 0);
  assert_int_equal(symlink(files.folder, scratch_path(&inner, "outward")), 0);
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
    expect_refused(write_external(&inner, "a.onnx", places[i], NULL, NULL), TM_ERROR_CORRUPT,
                   places[i][0] == '\0' ? "does not say in which file" : "leads out of the model's folder");
  scratch_deinit(&inner);
}

/* Links that stay inside, and the way that caches keep models: all files as links into one other folder. */
static void data_behind_links(void **state) {
  (void)state;
  unsigned char data[64] = { 7 };
  scratch snapshot;
  char target[1100];
  assert_true(scratch_init(&snapshot));
  assert_non_null(scratch_write(&snapshot, "real.bin", data, sizeof data));
  assert_int_equal(symlink("real.bin", scratch_path(&snapshot, "link.bin")), 0);
  expect_first_byte(write_external(&snapshot, "a.onnx", "link.bin", NULL, NULL), 7);
  assert_non_null(scratch_write(&files, "0123", data, sizeof data));
  write_external(&files, "4567", "model.data", NULL, NULL);
  (void)snprintf(target, sizeof target, "%s/0123", files.folder);
  assert_int_equal(symlink(target, scratch_path(&snapshot, "model.data")), 0);
  (void)snprintf(target, sizeof target, "%s/4567", files.folder);
  assert_int_equal(symlink(target, scratch_path(&snapshot, "model.onnx")), 0);
  expect_first_byte(scratch_path(&snapshot, "model.onnx"), 7);
  scratch_deinit(&snapshot);
}

/* As exporters write tied weights. */
static void tensors_may_share_external_data(void **state) {
  (void)state;
  gguf_maker graph = { NULL, 0, 0 }, model = { NULL, 0, 0 };
  unsigned char data[16] = { 3 };
  tm_archive *archive;
  for (int i = 0; i < 2; i++) {
    gguf_maker tensor = external_tensor("w.bin", "0", "16");
    put_word(&tensor, 8, i == 0 ? "a" : "b");           /* the last name counts */
    put_message(&graph, 5, &tensor);
  }
  put_model(&model, &graph);
  assert_non_null(scratch_write(&files, "w.bin", data, sizeof data));
  assert_int_equal(open_path(scratch_write(&files, "tied.onnx", model.bytes, model.size), &archive), TM_OK);
  assert_int_equal(tm_archive_tensor_count(archive), 2);
  assert_int_equal(tm_archive_file_count(archive), 2);
  tm_archive_close(archive);
  assert_int_equal(tm_archive_open_bytes(&memory, NULL, "x", model.bytes, model.size, &archive, &error), TM_ERROR_ARGUMENT);
  assert_non_null(strstr(error.text, "cannot be found from memory"));
  free(model.bytes);
}

/* ------------------------------------------------------------------------------------------------------- large ---- */

/* A tensor of 6 GiB in the model itself, in a file with a hole: more than protobuf's libraries can load. */
static void a_model_beyond_2_gib(void **state) {
  (void)state;
  const uint64_t bytes = UINT64_C(6) << 30;
  gguf_maker tensor = { NULL, 0, 0 }, model = { NULL, 0, 0 };
  tm_archive *archive;
  unsigned char byte = 1;
  put_natural(&tensor, 1, bytes);
  put_natural(&tensor, 2, 2);
  put_word(&tensor, 8, "w");
  put_varint(&tensor, 9 << 3 | 2);
  put_varint(&tensor, bytes);
  put_natural(&model, 1, 8);
  put_varint(&model, 7 << 3 | 2);
  put_varint(&model, 1 + 5 + tensor.size + bytes);
  put_varint(&model, 5 << 3 | 2);
  put_varint(&model, tensor.size + bytes);
  put_bytes(&model, tensor.bytes, tensor.size);
  const char *path = scratch_write_sparse(&files, "large.onnx", model.bytes, model.size, model.size + bytes);
  if (open_path(path, &archive) != TM_OK) fail_msg("%s", error.text);
  assert_int_equal(tm_archive_tensor_at(archive, 0)->bytes, bytes);
  assert_int_equal(tm_archive_read(archive, 0, bytes - 1, &byte, 1, NULL), TM_OK);
  assert_int_equal(byte, 0);
  assert_true(memory.peak_bytes < 8 << 20);
  tm_archive_close(archive);
  free(tensor.bytes);
  free(model.bytes);
}

static gguf_maker make_numbers(uint64_t count) {
  gguf_maker numbers = { NULL, 0, 0 }, tensor = { NULL, 0, 0 }, graph = { NULL, 0, 0 }, model = { NULL, 0, 0 };
  for (uint64_t i = 0; i < count; i++) put_varint(&numbers, i % 3 == 0 ? (uint64_t)-(int64_t)i : i * i);
  put_natural(&tensor, 1, count);
  put_natural(&tensor, 2, 7);
  put_word(&tensor, 8, "n");
  put_message(&tensor, 7, &numbers);
  put_message(&graph, 5, &tensor);
  put_model(&model, &graph);
  return model;
}

/* Any part of a long list of numbers of varying length, without holding the list. */
static void numbers_of_varying_length(void **state) {
  (void)state;
  const uint64_t count = 200001;
  gguf_maker model = make_numbers(count);
  tm_archive *archive = NULL;
  tm_memory own;
  int64_t numbers[100];
  tm_memory_init(&own, 0);
  assert_int_equal(tm_archive_open_bytes(&own, NULL, "x", model.bytes, model.size, &archive, NULL), TM_OK);
  assert_true(own.used_bytes < 64 << 10);
  assert_null(tm_archive_mapped(archive, 0));
  for (uint64_t first = 0; first + 100 <= count; first += 997) {
    assert_int_equal(tm_archive_read(archive, 0, 8 * first, numbers, sizeof numbers, NULL), TM_OK);
    for (uint64_t i = 0; i < 100; i++)
      assert_true(numbers[i] == ((first + i) % 3 == 0 ? -(int64_t)(first + i) : (int64_t)((first + i) * (first + i))));
  }
  tm_archive_close(archive);
  free(model.bytes);
}

/* The structure around the data is bounded; the data are not. */
typedef enum way { RAW, NUMBERS, EXTERNAL, WAYS } way;

static const char *write_packed(const unsigned char *data, uint64_t bytes, uint64_t type, uint64_t count, way how) {
  gguf_maker tensor = { NULL, 0, 0 }, graph = { NULL, 0, 0 }, model = { NULL, 0, 0 }, numbers = { NULL, 0, 0 };
  if (how == EXTERNAL) {
    tensor = external_elements(count, type, "w.bin", "0", NULL);
    assert_non_null(scratch_write(&files, "w.bin", data, bytes));
  } else {
    put_natural(&tensor, 1, count);
    put_natural(&tensor, 2, type);
    put_word(&tensor, 8, "w");
  }
  for (uint64_t i = 0; i < bytes; i++) put_varint(&numbers, data[i]);
  if (how == RAW) put_blob(&tensor, 9, data, bytes);
  if (how == NUMBERS) put_message(&tensor, 5, &numbers);
  free(numbers.bytes);
  put_message(&graph, 5, &tensor);
  put_model(&model, &graph);
  const char *path = scratch_write(&files, "a.onnx", model.bytes, model.size);
  free(model.bytes);
  return path;
}

/* What stands behind the last element of 2 or 4 bits is no part of the tensor, however it is read. */
static void bits_behind_the_last_element(void **state) {
  (void)state;
  static const unsigned char data[] = { 0x8f, 0xff, 0xf9 };
  static const struct { uint64_t type, count; unsigned char last; } cases[] = {
    { 21, 6, 0xf9 }, { 21, 5, 0x09 }, { 22, 5, 0x09 }, { 23, 5, 0x09 }, { 25, 9, 0x01 }, { 26, 11, 0x39 }, { 25, 12, 0xf9 } };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    for (way how = RAW; how < WAYS; how++) {
      tm_archive *archive;
      unsigned char whole[3], last = 0xaa, middle[2];
      if (open_path(write_packed(data, 3, cases[i].type, cases[i].count, how), &archive) != TM_OK) fail_msg("%s", error.text);
      assert_int_equal(tm_archive_tensor_at(archive, 0)->bytes, 3);
      assert_int_equal(tm_archive_read(archive, 0, 0, whole, 3, NULL), TM_OK);
      assert_int_equal(tm_archive_read(archive, 0, 2, &last, 1, NULL), TM_OK);
      assert_int_equal(tm_archive_read(archive, 0, 0, middle, 2, NULL), TM_OK);
      assert_true(whole[0] == 0x8f && whole[1] == 0xff && middle[0] == 0x8f && middle[1] == 0xff);
      assert_int_equal(whole[2], cases[i].last);
      assert_int_equal(last, cases[i].last);
      tm_archive_close(archive);
    }
  }
}

static const char *write_number(uint64_t type, uint64_t number) {
  gguf_maker tensor = { NULL, 0, 0 }, graph = { NULL, 0, 0 }, model = { NULL, 0, 0 }, numbers = { NULL, 0, 0 };
  put_natural(&tensor, 1, 1);
  put_natural(&tensor, 2, type);
  put_word(&tensor, 8, "w");
  put_varint(&numbers, number);
  put_message(&tensor, 5, &numbers);
  put_message(&graph, 5, &tensor);
  put_model(&model, &graph);
  const char *path = scratch_write(&files, "a.onnx", model.bytes, model.size);
  free(numbers.bytes);
  free(model.bytes);
  return path;
}

/* A number that its type does not hold is no other number; bits of a narrow type may come with a sign or without. */
static void numbers_beyond_their_type(void **state) {
  (void)state;
  static const struct { uint64_t type; int64_t number; bool is_held; } cases[] = {
    { 10, 65535, true },  { 10, 70000, false }, { 10, -1, true },       { 10, -32768, true }, { 10, -32769, false },
    { 2, 255, true },     { 2, 256, false },    { 3, -128, true },      { 3, -129, false },   { 5, 40000, true },
    { 5, 65536, false },  { 6, -1, true },      { 6, INT64_C(1) << 32, false }, { 16, 65536, false }, { 9, 1, true },
    { 10, INT64_C(0xffffffff), true }, { 3, INT64_C(0xffffff80), true }, { 3, INT64_C(0xffffff7f), false },
    { 6, INT32_MIN, true }, { 6, (int64_t)INT32_MIN - 1, false } };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const char *path = write_number(cases[i].type, (uint64_t)cases[i].number);
    tm_archive *archive;
    if (!cases[i].is_held) {
      expect_refused(path, TM_ERROR_CORRUPT, "does not hold");
      continue;
    }
    if (open_path(path, &archive) != TM_OK) fail_msg("%lld: %s", (long long)cases[i].number, error.text);
    tm_archive_close(archive);
  }
}

static void the_limit_is_for_structure(void **state) {
  (void)state;
  gguf_maker model = make_numbers(5000);
  tm_archive *archive = NULL;
  const tm_archive_options enough = { .max_header_bytes = 60 }, little = { .max_header_bytes = 10 };
  assert_int_equal(tm_archive_open_bytes(&memory, &enough, "x", model.bytes, model.size, &archive, NULL), TM_OK);
  tm_archive_close(archive);
  assert_int_equal(tm_archive_open_bytes(&memory, &little, "x", model.bytes, model.size, &archive, &error), TM_ERROR_LIMIT);
  assert_non_null(strstr(error.text, "max_header_bytes"));
  free(model.bytes);
}

/* Texts, each shorter than the limit, that are longer together. */
static void long_texts_count_together(void **state) {
  (void)state;
  const uint64_t text_bytes = 400000;
  gguf_maker model = { NULL, 0, 0 };
  tm_archive *archive = NULL;
  const tm_archive_options enough = { .max_header_bytes = 3000000 }, little = { .max_header_bytes = 1500000 };
  char *text = malloc((size_t)text_bytes);
  memset(text, 'x', (size_t)text_bytes);
  gguf_maker graph = { NULL, 0, 0 };
  put_word(&graph, 2, "g");
  put_model(&model, &graph);
  for (int i = 0; i < 5; i++) {
    gguf_maker entry = { NULL, 0, 0 };
    char key[8];
    (void)snprintf(key, sizeof key, "k%d", i);
    put_word(&entry, 1, key);
    put_blob(&entry, 2, text, text_bytes);
    put_message(&model, 14, &entry);
  }
  assert_int_equal(tm_archive_open_bytes(&memory, &enough, "x", model.bytes, model.size, &archive, &error), TM_OK);
  tm_archive_close(archive);
  assert_int_equal(tm_archive_open_bytes(&memory, &little, "x", model.bytes, model.size, &archive, &error), TM_ERROR_LIMIT);
  assert_non_null(strstr(error.text, "max_header_bytes"));
  free(text);
  free(model.bytes);
}

/* A long name around many short ones: what the names take together is bounded, too. */
static void long_names_around_short_ones(void **state) {
  (void)state;
  const uint64_t label_bytes = 60000, count = 20000;
  gguf_maker inner = { NULL, 0, 0 }, attribute = { NULL, 0, 0 }, node = { NULL, 0, 0 }, graph = { NULL, 0, 0 }, model = { NULL, 0, 0 };
  char *label = malloc((size_t)label_bytes);
  tm_archive *archive = NULL;
  tm_memory own;
  memset(label, 'x', (size_t)label_bytes);
  for (uint64_t i = 0; i < count; i++) {
    gguf_maker tensor = { NULL, 0, 0 };
    char name[16];
    (void)snprintf(name, sizeof name, "%d", (int)i);
    put_natural(&tensor, 2, 2);
    put_word(&tensor, 8, name);
    put_blob(&tensor, 9, "x", 1);
    put_message(&inner, 5, &tensor);
  }
  put_word(&attribute, 1, "body");
  put_message(&attribute, 6, &inner);
  put_blob(&node, 2, label, label_bytes);
  put_message(&node, 5, &attribute);
  put_message(&graph, 1, &node);
  put_model(&model, &graph);
  tm_memory_init(&own, 0);
  assert_int_equal(tm_archive_open_bytes(&own, NULL, "x", model.bytes, model.size, &archive, &error), TM_ERROR_LIMIT);
  assert_true(own.peak_bytes < 300 << 20);
  free(label);
  free(model.bytes);
}

static void put_function(gguf_maker *model, const char *domain, const char *overload) {
  gguf_maker tensor = { NULL, 0, 0 }, attribute = { NULL, 0, 0 }, node = { NULL, 0, 0 }, function = { NULL, 0, 0 };
  put_natural(&tensor, 2, 2);
  put_blob(&tensor, 9, "x", 1);
  put_word(&attribute, 1, "value");
  put_message(&attribute, 5, &tensor);
  put_word(&node, 2, "c");
  put_word(&node, 4, "Constant");
  put_message(&node, 5, &attribute);
  put_word(&function, 1, "f");
  put_message(&function, 7, &node);
  put_word(&function, 10, domain);
  put_word(&function, 13, overload);
  put_message(model, 25, &function);
}

static void functions_of_one_name(void **state) {
  (void)state;
  static const char *const names[] = { "a.f:c", "b.f:c", "a.f.2:c" };
  gguf_maker model = { NULL, 0, 0 };
  tm_archive *archive = NULL;
  put_natural(&model, 1, 8);
  put_function(&model, "a", "");
  put_function(&model, "b", "");
  put_function(&model, "a", "2");
  assert_int_equal(tm_archive_open_bytes(&memory, NULL, "x.onnx", model.bytes, model.size, &archive, &error), TM_OK);
  for (uint64_t i = 0; i < 3; i++) assert_string_equal(tm_archive_tensor_at(archive, i)->name.data, names[i]);
  tm_archive_close(archive);
  free(model.bytes);
}

/* The model as a message has no end of its own: it is the file that is too short. */
static void a_field_that_claims_more_than_there_is(void **state) {
  (void)state;
  gguf_maker model = { NULL, 0, 0 }, inner = { NULL, 0, 0 };
  scratch folder;
  assert_true(scratch_init(&folder));
  put_natural(&model, 1, 8);
  put_varint(&model, 7 << 3 | 2);
  put_varint(&model, UINT64_MAX);
  expect_refused(scratch_write(&folder, "a.onnx", model.bytes, model.size), TM_ERROR_CORRUPT,
                 "claims 18446744073709551615 bytes, but the file ends at offset 13");
  model.size = 0;
  put_natural(&model, 1, 8);
  put_varint(&inner, 5 << 3 | 2);
  put_varint(&inner, 100);
  put_message(&model, 7, &inner);
  expect_refused(scratch_write(&folder, "a.onnx", model.bytes, model.size), TM_ERROR_CORRUPT,
                 "claims 100 bytes, but its message ends at offset 6");
  scratch_deinit(&folder);
  free(model.bytes);
}

static void many_initializers(void **state) {
  (void)state;
  const uint64_t count = getenv("TM_NIGHTLY") != NULL ? 1000000 : 100000;
  gguf_maker graph = { NULL, 0, 0 }, model = { NULL, 0, 0 };
  tm_archive *archive = NULL;
  char name[64];
  for (uint64_t i = 0; i < count; i++) {
    gguf_maker tensor = { NULL, 0, 0 };
    (void)snprintf(name, sizeof name, "layers.%llu.weight", (unsigned long long)i);
    put_natural(&tensor, 2, 2);
    put_word(&tensor, 8, name);
    put_blob(&tensor, 9, "x", 1);
    put_message(&graph, 5, &tensor);
  }
  put_model(&model, &graph);
  assert_int_equal(tm_archive_open_bytes(&memory, NULL, "x", model.bytes, model.size, &archive, NULL), TM_OK);
  assert_int_equal(tm_archive_tensor_count(archive), count);
  tm_archive_close(archive);
  free(model.bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(data_beside_the_model), cmocka_unit_test(data_that_is_not_there), 
    cmocka_unit_test(truncated_models_open_when_asked), cmocka_unit_test(data_outside_the_folder),
    cmocka_unit_test(data_behind_links), cmocka_unit_test(tensors_may_share_external_data), cmocka_unit_test(a_model_beyond_2_gib),
    cmocka_unit_test(numbers_of_varying_length), cmocka_unit_test(numbers_beyond_their_type),
    cmocka_unit_test(the_limit_is_for_structure), cmocka_unit_test(many_initializers),
    cmocka_unit_test(bits_behind_the_last_element),
    cmocka_unit_test(a_field_that_claims_more_than_there_is), cmocka_unit_test(long_texts_count_together),
    cmocka_unit_test(long_names_around_short_ones), cmocka_unit_test(functions_of_one_name),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
