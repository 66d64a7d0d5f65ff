/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "formats/made_gguf.h"
#include "formats/made_safetensors.h"
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

/* ----------------------------------------------------------------------------------------------------- round trips ---- */

/* All tensors of a source, in its order, with its metadata. */
static tm_status copy_archive(const tm_archive *source, uint32_t format, const char *path, uint64_t shard_bytes) {
  const uint64_t count = tm_archive_tensor_count(source), keys = tm_archive_metadata_count(source);
  tm_write_tensor *tensors = calloc((size_t)count + 1, sizeof *tensors);
  tm_metadata *metadata = calloc((size_t)keys + 1, sizeof *metadata);
  tm_checkpoint_writer *writer = NULL;
  const bool is_safetensors = strcmp(tm_archive_format_name(source), "safetensors") == 0;
  for (uint64_t i = 0; i < count; i++) {
    const tm_archive_tensor *tensor = tm_archive_tensor_at(source, i);
    tensors[i] = (tm_write_tensor){ tensor->name, tensor->dims, tensor->rank, tensor->format, tensor->type_name, tensor->bytes,
                                    is_safetensors };
  }
  for (uint64_t i = 0; i < keys; i++) metadata[i] = *tm_archive_metadata_at(source, i);
  const tm_write_request request = { .format = format, .path = path, .shard_bytes = shard_bytes, .tensors = tensors,
                                     .tensor_count = count, .metadata = metadata, .metadata_count = keys };
  tm_status status = tm_checkpoint_writer_create(&memory, &request, &writer, &error);
  free(tensors);
  free(metadata);
  if (status == TM_OK) status = tm_checkpoint_writer_begin(writer, &error);
  for (uint64_t i = 0; i < count && status == TM_OK; i++) {
    const uint64_t bytes = tm_archive_tensor_at(source, i)->bytes;
    unsigned char *data = malloc((size_t)bytes + 1);
    status = tm_archive_read(source, i, 0, data, bytes, &error);
    if (status == TM_OK) status = tm_checkpoint_writer_write(writer, i, 0, data, bytes, &error);
    free(data);
  }
  if (status == TM_OK) status = tm_checkpoint_writer_finish(writer, &error);
  tm_checkpoint_writer_destroy(writer);
  return status;
}

static tm_archive *open_bytes(const void *bytes, uint64_t count) {
  tm_archive *archive = NULL;
  if (tm_archive_open_bytes(&memory, NULL, "made", bytes, count, &archive, &error) != TM_OK) fail_msg("%s", error.text);
  return archive;
}

static tm_archive *open_path(const char *path) {
  tm_archive *archive = NULL;
  if (tm_archive_open(&memory, NULL, path, &archive, &error) != TM_OK) fail_msg("%s", error.text);
  return archive;
}

static void expect_same_bytes(const void *bytes, uint64_t count, const char *path) {
  uint64_t size = 0;
  unsigned char *found = scratch_slurp(path, &size);
  assert_non_null(found);
  assert_int_equal(size, count);
  assert_memory_equal(found, bytes, count);
  free(found);
}

static void safetensors_comes_out_as_it_was(void **state) {
  (void)state;
  static const char header[] =
      "{\"__metadata__\":{\"format\":\"pt\",\"\\u0001\\\"q\":\"a\\\\b\"},"
      "\"w\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
      "\"\xc3\xa4\":{\"dtype\":\"F8_NEXT_YEAR\",\"shape\":[3],\"data_offsets\":[16,20]},"
      "\"none\":{\"dtype\":\"BF16\",\"shape\":[2,0],\"data_offsets\":[20,20]},"
      "\"s\":{\"dtype\":\"F4\",\"shape\":[4],\"data_offsets\":[20,22]}}";
  char path[1024], padded[sizeof header + 8];
  (void)snprintf(padded, sizeof padded, "%-*s", (int)((sizeof header - 1 + 7) / 8 * 8), header);
  made_file made = make_safetensors(padded, strlen(padded), 22);
  tm_archive *source = open_bytes(made.bytes, made.size);
  assert_int_equal(copy_archive(source, TM_WRITE_SAFETENSORS, path_of("m.safetensors", path), 0), TM_OK);
  expect_same_bytes(made.bytes, made.size, path);
  assert_int_equal(copy_archive(source, TM_WRITE_SAFETENSORS, path_of("big.safetensors", path), 100000), TM_OK);
  expect_same_bytes(made.bytes, made.size, path);
  tm_archive_close(source);
  free(made.bytes);
}

/* Every type of value, a nested list, an alignment of its own, an odd tensor before another. */
static gguf_maker make_rich_gguf(uint64_t alignment) {
  static const uint64_t one[1] = { 3 }, two[2] = { 32, 2 };
  gguf_maker maker = gguf_begin(3, 3, 16);
  for (uint32_t type = 0; type < 13; type++) {
    char key[16];
    (void)snprintf(key, sizeof key, "key.%u", type);
    put_key(&maker, key, type);
    if (type == TM_METADATA_STRING) {
      put_u64(&maker, 4);
      put_bytes(&maker, "a\0\xff\n", 4);
    } else if (type == TM_METADATA_ARRAY) {
      put_u32(&maker, TM_METADATA_ARRAY);
      put_u64(&maker, 2);
      put_u32(&maker, TM_METADATA_STRING);
      put_u64(&maker, 1);
      put_text(&maker, "inner");
      put_u32(&maker, TM_METADATA_U16);
      put_u64(&maker, 2);
      put_number(&maker, 0x0201, 2);
      put_number(&maker, 0x0403, 2);
    } else {
      put_number(&maker, 0x0807060504030201u + type, tm_metadata_type_bytes(type));
    }
  }
  put_key(&maker, "general.alignment", TM_METADATA_U32);
  put_u32(&maker, alignment);
  put_key(&maker, "", TM_METADATA_STRING);
  put_text(&maker, "");
  put_key(&maker, "no elements", TM_METADATA_ARRAY);
  put_u32(&maker, TM_METADATA_STRING);
  put_u64(&maker, 0);
  const uint64_t first = (3 + alignment - 1) / alignment * alignment;
  const uint64_t second = first + (68 + alignment - 1) / alignment * alignment;
  put_tensor(&maker, "odd", 1, one, 24, 0);
  put_tensor(&maker, "quantized", 2, two, 8, first);
  put_tensor(&maker, "scalar", 0, NULL, 28, second);
  while (maker.size % alignment != 0) put_number(&maker, 0, 1);
  const uint64_t data = maker.size;
  const uint64_t offsets[3] = { 0, first, second }, sizes[3] = { 3, 68, 8 };
  for (int i = 0; i < 3; i++) {
    while (maker.size < data + offsets[i]) put_number(&maker, 0, 1);
    for (uint64_t k = 0; k < sizes[i]; k++) put_number(&maker, k + 1, 1);
  }
  while (maker.size % alignment != 0) put_number(&maker, 0, 1);
  return maker;
}

static void gguf_comes_out_as_it_was(void **state) {
  (void)state;
  static const uint64_t alignments[] = { 32, 8, 24, 4096, 1 };
  char path[1024];
  for (size_t i = 0; i < sizeof alignments / sizeof alignments[0]; i++) {
    gguf_maker maker = make_rich_gguf(alignments[i]);
    tm_archive *source = open_bytes(maker.bytes, maker.size);
    if (copy_archive(source, TM_WRITE_GGUF, path_of("m.gguf", path), 0) != TM_OK) fail_msg("%s", error.text);
    expect_same_bytes(maker.bytes, maker.size, path);
    tm_archive_close(source);
    free(maker.bytes);
  }
}

static void split_keys_and_repeated_keys_are_left_out(void **state) {
  (void)state;
  char path[1024];
  gguf_maker maker = gguf_begin(3, 0, 5);
  put_key(&maker, "a", TM_METADATA_U32);
  put_u32(&maker, 1);
  put_key(&maker, "a", TM_METADATA_U32);
  put_u32(&maker, 1);
  put_key(&maker, "split.no", TM_METADATA_U16);
  put_number(&maker, 0, 2);
  put_key(&maker, "split.count", TM_METADATA_U16);
  put_number(&maker, 1, 2);
  put_key(&maker, "split.tensors.count", TM_METADATA_I32);
  put_u32(&maker, 0);
  tm_archive *source = open_bytes(maker.bytes, maker.size);
  assert_int_equal(copy_archive(source, TM_WRITE_GGUF, path_of("m.gguf", path), 0), TM_OK);
  tm_archive_close(source);
  free(maker.bytes);
  tm_archive *written = open_path(path);
  assert_int_equal(tm_archive_metadata_count(written), 1);
  assert_non_null(tm_archive_metadata_find(written, "a"));
  tm_archive_close(written);
}

static void sets_hold_all_and_obey_the_limit(void **state) {
  (void)state;
  static const uint64_t limits[] = { 1, SHARDS_OF_TWO, SHARDS_OF_THREE, 20000 };
  static const uint32_t counts[] = { 6, 3, 2, 2 };
  char path[1024];
  for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
    tm_checkpoint_writer *writer = NULL;
    tm_write_file file;
    assert_int_equal(model_plan(&memory, TM_WRITE_SAFETENSORS, path_of("m.safetensors", path), limits[i], &writer, &error), TM_OK);
    for (uint64_t k = 0; tm_checkpoint_writer_file_at(writer, k, &file); k++)
      assert_true(file.bytes <= limits[i] || limits[i] == 1);
    tm_checkpoint_writer_destroy(writer);
    assert_int_equal(model_write(&memory, TM_WRITE_SAFETENSORS, path, limits[i], (unsigned char)(i + 1), &error), TM_OK);
    assert_int_equal(model_content(&memory, files.folder, &error), i + 1);
    assert_int_equal(count_entries(files.folder, "-of-"), counts[i]);
    assert_int_equal(count_entries(files.folder, ""), counts[i] + 1);
  }
  tm_archive *set = open_path(files.folder);
  assert_null(tm_archive_note_at(set, 0));              /* total_size is right */
  tm_archive_close(set);
  assert_int_equal(model_write(&memory, TM_WRITE_SAFETENSORS, path, 0, 9, &error), TM_OK);
  assert_int_equal(count_entries(files.folder, ""), 1);
  assert_int_equal(model_content(&memory, files.folder, &error), 9);
}

/* More shards than a process may hold open. */
static void a_set_of_many_shards(void **state) {
  (void)state;
  enum { COUNT = 100 };
  static const uint64_t dims[1] = { 5 };
  char path[1024], names[COUNT][8];
  tm_write_tensor tensors[COUNT];
  tm_checkpoint_writer *writer = NULL;
  for (int i = 0; i < COUNT; i++) {
    (void)snprintf(names[i], sizeof names[i], "t%d", i);
    tensors[i] = (tm_write_tensor){ .name = { names[i], strlen(names[i]) }, .dims = dims, .rank = 1, .format = TM_FORMAT_U8 };
  }
  const tm_write_request request = { .format = TM_WRITE_SAFETENSORS, .path = path_of("m.safetensors", path), .shard_bytes = 1,
                                     .tensors = tensors, .tensor_count = COUNT };
  assert_int_equal(tm_checkpoint_writer_create(&memory, &request, &writer, &error), TM_OK);
  assert_int_equal(tm_checkpoint_writer_begin(writer, &error), TM_OK);
  for (uint64_t i = COUNT; i > 0; i--) {
    const unsigned char bytes[5] = { (unsigned char)i, 1, 2, 3, 4 };
    assert_int_equal(tm_checkpoint_writer_write(writer, i - 1, 2, bytes + 2, 3, &error), TM_OK);
    assert_int_equal(tm_checkpoint_writer_write(writer, i - 1, 0, bytes, 2, &error), TM_OK);
  }
  if (tm_checkpoint_writer_finish(writer, &error) != TM_OK) fail_msg("%s", error.text);
  tm_checkpoint_writer_destroy(writer);
  tm_archive *set = open_path(files.folder);
  assert_int_equal(tm_archive_file_count(set), COUNT);
  for (uint64_t i = 0; i < COUNT; i++) {
    unsigned char bytes[5];
    assert_int_equal(tm_archive_read(set, i, 0, bytes, 5, &error), TM_OK);
    assert_int_equal(bytes[0], i + 1);
    assert_int_equal(bytes[4], 4);
  }
  tm_archive_close(set);
}

/* ----------------------------------------------------------------------------------------------------- any tensors ---- */

typedef struct random_model {
  tm_write_tensor tensors[12];
  uint64_t        dims[12][3];
  char            names[12][8];
  uint64_t        count;
} random_model;

static uint32_t random_state;
static uint32_t random_below(uint32_t bound) {
  random_state = random_state * 1664525u + 1013904223u;
  return (random_state >> 8) % bound;
}

static void make_random_model(random_model *model) {
  static const uint32_t kinds[] = { TM_FORMAT_U8, TM_FORMAT_BF16, TM_FORMAT_F32, TM_FORMAT_F64, TM_FORMAT_F8_E4M3FN,
                                    TM_FORMAT_C64 };
  model->count = random_below(13);
  for (uint64_t i = 0; i < model->count; i++) {
    (void)snprintf(model->names[i], sizeof model->names[i], "t%u", (unsigned)i);
    for (int k = 0; k < 3; k++) model->dims[i][k] = random_below(8);
    model->tensors[i] = (tm_write_tensor){ .name = { model->names[i], strlen(model->names[i]) }, .dims = model->dims[i],
                                           .rank = random_below(4), .format = kinds[random_below(6)] };
  }
}

static unsigned char byte_of(uint64_t tensor, uint64_t at) { return (unsigned char)(tensor * 31 + at * 7 + 1); }

/* In pieces of at most 17 bytes: those at odd places first, then the others. */
static void write_in_pieces(tm_checkpoint_writer *writer, uint64_t tensor, uint64_t bytes) {
  for (uint64_t parity = 0; parity < 2; parity++) {
    for (uint64_t begin = 17 * (1 - parity); begin < bytes; begin += 34) {
      unsigned char piece[17];
      const uint64_t count = bytes - begin < 17 ? bytes - begin : 17;
      for (uint64_t i = 0; i < count; i++) piece[i] = byte_of(tensor, begin + i);
      if (tm_checkpoint_writer_write(writer, tensor, begin, piece, count, &error) != TM_OK) fail_msg("%s", error.text);
    }
  }
}

static void expect_random_model(const random_model *model, const tm_archive *archive) {
  assert_int_equal(tm_archive_tensor_count(archive), model->count);
  for (uint64_t i = 0; i < model->count; i++) {
    uint64_t at;
    unsigned char bytes[8 * 8 * 8 * 8];
    assert_true(tm_archive_find(archive, model->names[i], strlen(model->names[i]), &at));
    const tm_archive_tensor *found = tm_archive_tensor_at(archive, at);
    assert_int_equal(found->format, model->tensors[i].format);
    assert_int_equal(found->rank, model->tensors[i].rank);
    assert_memory_equal(found->dims, model->dims[i], found->rank * sizeof(uint64_t));
    if (found->element_count != 0) assert_int_equal(found->offset % (found->bytes / found->element_count), 0);
    assert_int_equal(tm_archive_read(archive, at, 0, bytes, found->bytes, &error), TM_OK);
    for (uint64_t k = 0; k < found->bytes; k++) assert_int_equal(bytes[k], byte_of(i, k));
  }
}

static void any_tensors_in_any_pieces(void **state) {
  (void)state;
  char path[1024];
  random_state = 1;
  for (int round = 0; round < 60; round++) {
    random_model model;
    tm_checkpoint_writer *writer = NULL;
    uint64_t file, offset, bytes;
    make_random_model(&model);
    const tm_write_request request = { .format = TM_WRITE_SAFETENSORS, .path = path_of("m.safetensors", path),
                                       .tensors = model.tensors,
                                       .tensor_count = model.count, .shard_bytes = round % 3 == 0 ? 0 : 1 + random_below(3000) };
    if (tm_checkpoint_writer_create(&memory, &request, &writer, &error) != TM_OK) fail_msg("round %d: %s", round, error.text);
    assert_int_equal(tm_checkpoint_writer_begin(writer, &error), TM_OK);
    for (uint64_t i = 0; tm_checkpoint_writer_place(writer, i, &file, &offset, &bytes); i++) write_in_pieces(writer, i, bytes);
    if (tm_checkpoint_writer_finish(writer, &error) != TM_OK) fail_msg("round %d: %s", round, error.text);
    tm_checkpoint_writer_destroy(writer);
    tm_archive *written = open_path(files.folder);      /* which holds nothing else */
    expect_random_model(&model, written);
    tm_archive_close(written);
  }
}

static void wide_elements_are_aligned(void **state) {
  (void)state;
  static const uint64_t three[1] = { 3 };
  static const unsigned char bytes[24] = { 0 };
  char path[1024];
  const tm_write_tensor tensors[] = {
    { .name = { "bytes", 5 }, .dims = three, .rank = 1, .format = TM_FORMAT_U8 },
    { .name = { "halves", 6 }, .dims = three, .rank = 1, .format = TM_FORMAT_F16 },
    { .name = { "doubles", 7 }, .dims = three, .rank = 1, .format = TM_FORMAT_F64 },
    { .name = { "floats", 6 }, .dims = three, .rank = 1, .format = TM_FORMAT_F32 },
  };
  static const uint64_t sizes[] = { 3, 6, 24, 12 };
  tm_checkpoint_writer *writer = NULL;
  const tm_write_request request = { .format = TM_WRITE_SAFETENSORS, .path = path_of("m.safetensors", path), .tensors = tensors,
                                     .tensor_count = 4 };
  assert_int_equal(tm_checkpoint_writer_create(&memory, &request, &writer, &error), TM_OK);
  assert_int_equal(tm_checkpoint_writer_begin(writer, &error), TM_OK);
  for (uint64_t i = 0; i < 4; i++) assert_int_equal(tm_checkpoint_writer_write(writer, i, 0, bytes, sizes[i], &error), TM_OK);
  assert_int_equal(tm_checkpoint_writer_finish(writer, &error), TM_OK);
  tm_checkpoint_writer_destroy(writer);
  tm_archive *written = open_path(path);
  const tm_archive_tensor *first = tm_archive_tensor_at(written, 0), *last = tm_archive_tensor_at(written, 3);
  assert_string_equal(first->name.data, "doubles");
  assert_int_equal(first->offset % 8, 0);
  assert_string_equal(last->name.data, "bytes");
  tm_archive_close(written);
}

/* -------------------------------------------------------------------------------------------------------- metadata ---- */

static tm_metadata text_entry(const char *key, const char *text) {
  return (tm_metadata){ .key = { key, strlen(key) }, .value = { .type = TM_METADATA_STRING, .count = 1, .data = text,
                                                                .bytes = strlen(text) } };
}

static void metadata_change_format(void **state) {
  (void)state;
  static const unsigned char number[4] = { 0, 0, 0xc0, 0xbf }, list[2] = { 1, 2 };
  const tm_metadata metadata[] = {
    text_entry("a", "first"),
    { .key = { "f", 1 }, .value = { .type = TM_METADATA_F32, .count = 1, .data = number, .bytes = 4 } },
    { .key = { "l", 1 }, .value = { .type = TM_METADATA_ARRAY, .element_type = TM_METADATA_U8, .count = 2, .data = list,
                                    .bytes = 2 } },
    text_entry("a", "second"),
  };
  char path[1024];
  tm_string text;
  for (uint32_t format = TM_WRITE_SAFETENSORS; format <= TM_WRITE_GGUF; format++) {
    tm_checkpoint_writer *writer = NULL;
    const bool is_gguf = format == TM_WRITE_GGUF;
    const tm_write_request request = { .format = format, .path = path_of(is_gguf ? "m.gguf" : "m.safetensors", path),
                                       .metadata = metadata, .metadata_count = 4 };
    assert_int_equal(tm_checkpoint_writer_create(&memory, &request, &writer, &error), TM_OK);
    assert_non_null(strstr(tm_checkpoint_writer_note_at(writer, 0), "\"a\" was given more than once"));
    if (!is_gguf) assert_non_null(strstr(tm_checkpoint_writer_note_at(writer, 1), "1 of 3 metadata entries cannot be kept"));
    assert_null(tm_checkpoint_writer_note_at(writer, is_gguf ? 1 : 2));
    assert_int_equal(tm_checkpoint_writer_begin(writer, &error), TM_OK);
    assert_int_equal(tm_checkpoint_writer_finish(writer, &error), TM_OK);
    tm_checkpoint_writer_destroy(writer);
    tm_archive *written = open_path(path);
    assert_int_equal(tm_archive_metadata_count(written), is_gguf ? 3 : 2);
    assert_true(tm_metadata_as_string(&tm_archive_metadata_find(written, "a")->value, &text));
    assert_string_equal(text.data, "second");
    double value = 0;
    if (is_gguf) assert_true(tm_metadata_as_f64(&tm_archive_metadata_find(written, "f")->value, &value) && value == -1.5);
    else assert_true(tm_metadata_as_string(&tm_archive_metadata_find(written, "f")->value, &text) && strcmp(text.data,
                                                                                                            "-1.5") == 0);
    tm_archive_close(written);
  }
}

static void unsound_metadata_are_refused(void **state) {
  (void)state;
  static const unsigned char bytes[16] = { 9, 0 };
  static const tm_metadata_value values[] = {
    { .type = TM_METADATA_U32, .count = 1, .data = bytes, .bytes = 3 },
    { .type = 13, .count = 1, .data = bytes, .bytes = 4 },
    { .type = TM_METADATA_ARRAY, .element_type = TM_METADATA_U32, .count = 2, .data = bytes, .bytes = 7 },
    { .type = TM_METADATA_ARRAY, .element_type = TM_METADATA_U32, .count = 1, .data = bytes, .bytes = 8 },
    { .type = TM_METADATA_ARRAY, .element_type = TM_METADATA_STRING, .count = 1, .data = bytes, .bytes = 16 },
    { .type = TM_METADATA_ARRAY, .element_type = 99, .count = 0, .data = bytes, .bytes = 0 },
    { .type = TM_METADATA_STRING, .count = 1, .data = NULL, .bytes = 4 },
  };
  char path[1024];
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    const tm_metadata entry = { .key = { "k", 1 }, .value = values[i] };
    tm_checkpoint_writer *writer = NULL;
    const tm_write_request request = { .format = TM_WRITE_GGUF, .path = path_of("m.gguf", path), .metadata = &entry,
                                       .metadata_count = 1 };
    assert_int_equal(tm_checkpoint_writer_create(&memory, &request, &writer, &error), TM_ERROR_ARGUMENT);
    assert_non_null(strstr(error.text, "does not have the bytes of its type"));
  }
}

/* -------------------------------------------------------------------------------------------------------- refusals ---- */

typedef struct tensor_case {
  const char *text;
  const char *name;
  uint64_t    dims[5];
  uint32_t    rank;
  uint32_t    kind;             /* TM_WRITE_* */
  uint32_t    format;
} tensor_case;

static void tensors_that_do_not_fit_are_refused(void **state) {
  (void)state;
  static const tensor_case cases[] = {
    { "safetensors has no such type", "t", { 32 }, 1, TM_WRITE_SAFETENSORS, TM_FORMAT_Q8_0 },
    { "GGUF has no such type", "t", { 32 }, 1, TM_WRITE_GGUF, TM_FORMAT_BOOL },
    { "its name is not UTF-8", "\xff", { 32 }, 1, TM_WRITE_SAFETENSORS, TM_FORMAT_F32 },
    { "uses this name for the metadata", "__metadata__", { 32 }, 1, TM_WRITE_SAFETENSORS, TM_FORMAT_F32 },
    { "at most 4 axes", "t", { 1, 1, 1, 1, 1 }, 5, TM_WRITE_GGUF, TM_FORMAT_F32 },
    { "no multiple of the type's block", "t", { 32, 16 }, 2, TM_WRITE_GGUF, TM_FORMAT_Q8_0 },
    { "do not fill whole blocks", "t", { 31 }, 1, TM_WRITE_GGUF, TM_FORMAT_Q8_0 },
    { "do not fill whole blocks", "t", { 3 }, 1, TM_WRITE_SAFETENSORS, TM_FORMAT_F4_E2M1 },
    { "too many axes or elements", "t", { UINT64_MAX, 2 }, 2, TM_WRITE_GGUF, TM_FORMAT_F32 },
    { "do not fill whole blocks of 1, or need too many bytes", "t", { UINT64_MAX / 2 }, 1, TM_WRITE_GGUF, TM_FORMAT_F32 },
    { "more bytes than a file can have", "t", { UINT64_MAX / 8 }, 1, TM_WRITE_SAFETENSORS, TM_FORMAT_F32 },
    { "unknown format (4095)", "t", { 1 }, 1, TM_WRITE_SAFETENSORS, 4095 },
    { "two tensors are called \"twice\"", "twice", { 1 }, 1, TM_WRITE_SAFETENSORS, TM_FORMAT_F32 },
  };
  char path[1024];
  static const uint64_t one[1] = { 1 };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const tensor_case *it = &cases[i];
    tm_checkpoint_writer *writer = NULL;
    const tm_write_tensor tensors[] = { { .name = { "twice", 5 }, .dims = one, .rank = 1, .format = TM_FORMAT_F32 },
                                        { .name = { it->name, strlen(it->name) }, .dims = it->dims, .rank = it->rank,
                                          .format = it->format } };
    const tm_write_request request = { .format = it->kind, .path = path_of(it->kind == TM_WRITE_GGUF ? "m.gguf" : "m.safetensors",
                                                                           path),
                                       .tensors = tensors, .tensor_count = 2 };
    const tm_status status = tm_checkpoint_writer_create(&memory, &request, &writer, &error);
    if (status != TM_ERROR_ARGUMENT || strstr(error.text, it->text) == NULL)
      fail_msg("not \"%s\" but %d: %s", it->text, status, error.text);
  }
}

static void expect_plan_refused(const char *path, uint64_t shard_bytes, tm_status status, const char *text) {
  tm_checkpoint_writer *writer = NULL;
  error = (tm_error)TM_ERROR_INIT;
  const tm_status got = model_plan(&memory, TM_WRITE_SAFETENSORS, path, shard_bytes, &writer, &error);
  if (got != status || strstr(error.text, text) == NULL)
    fail_msg("%s: not \"%s\" but %d: %s", path == NULL ? "NULL" : path, text, got, error.text);
  assert_null(writer);
}

static void paths_that_cannot_be_written_are_refused(void **state) {
  (void)state;
  char path[1024], other[1024], name[260];
  expect_plan_refused(NULL, 0, TM_ERROR_ARGUMENT, "no path");
  expect_plan_refused("", 0, TM_ERROR_ARGUMENT, "no path");
  expect_plan_refused(files.folder, 0, TM_ERROR_ARGUMENT, "is a folder");
  expect_plan_refused(path_of("none/m.safetensors", path), 0, TM_ERROR_NOT_FOUND, "the folder to write to cannot be opened");
  expect_plan_refused(path_of("none/", path), 0, TM_ERROR_ARGUMENT, "is a folder");
  expect_plan_refused(path_of("m.gguf", path), 0, TM_ERROR_ARGUMENT, "is the name of a .gguf file");
  expect_plan_refused(path_of("m.safetensors.index.json", path), 0, TM_ERROR_ARGUMENT, "is the name of an index");
  assert_int_equal(mkfifo(path_of("pipe", path), 0600), 0);
  expect_plan_refused(path, 0, TM_ERROR_IO, "it is a pipe");
  memset(name, 'n', sizeof name);
  name[240] = '\0';
  expect_plan_refused(path_of(name, path), 0, TM_ERROR_IO, "is too long: 255 bytes are allowed");
  assert_int_equal(symlink("loop", path_of("loop", path)), 0);
  expect_plan_refused(path, 0, TM_ERROR_IO, "cannot be written to");
  assert_int_equal(symlink("a.safetensors", path_of("link.safetensors", path)), 0);
  expect_plan_refused(path, SHARDS_OF_TWO, TM_ERROR_ARGUMENT, "is not written through links");
  assert_int_equal(symlink("a", path_of("m-00002-of-00003.safetensors", other)), 0);
  expect_plan_refused(path_of("m.safetensors", path), SHARDS_OF_TWO, TM_ERROR_IO, "it is a link");
  assert_int_equal(unlink(other), 0);
  assert_int_equal(mkdir(other, 0700), 0);
  expect_plan_refused(path, SHARDS_OF_TWO, TM_ERROR_IO, "it is a folder");
}

static void a_folder_that_may_not_be_written_to(void **state) {
  (void)state;
  char path[1024];
  if (geteuid() == 0) {
    print_message("skipped: the superuser may write anywhere\n");
    skip();
  }
  assert_int_equal(chmod(files.folder, 0500), 0);
  expect_plan_refused(path_of("m.safetensors", path), 0, TM_ERROR_IO, "the folder cannot be written to");
  assert_int_equal(chmod(files.folder, 0700), 0);
}

static void a_link_is_followed_and_stays(void **state) {
  (void)state;
  char path[1024], place[1024];
  struct stat status;
  assert_int_equal(symlink("place.safetensors", path_of("m.safetensors", path)), 0);
  for (unsigned char content = 1; content < 3; content++) {
    assert_int_equal(model_write(&memory, TM_WRITE_SAFETENSORS, path, 0, content, &error), TM_OK);
    assert_int_equal(lstat(path, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(model_content(&memory, path_of("place.safetensors", place), &error), content);
    assert_int_equal(chmod(place, 0640), 0);
  }
  assert_int_equal(stat(place, &status), 0);
  assert_int_equal(status.st_mode & 0777, 0640);
  assert_int_equal(count_entries(files.folder, ""), 2);
}

/* ---------------------------------------------------------------------------------------------------------- inputs ---- */

static void expect_input_refused(const char *target, uint64_t shard_bytes, const char *input) {
  static const uint64_t dims[1] = { 4 };
  char path[1024], input_path[1024];
  const tm_write_tensor tensors[] = { { .name = { "a", 1 }, .dims = dims, .rank = 1, .format = TM_FORMAT_F32 },
                                      { .name = { "b", 1 }, .dims = dims, .rank = 1, .format = TM_FORMAT_F32 } };
  const char *inputs[2] = { "/nowhere/at/all", path_of(input, input_path) };
  tm_checkpoint_writer *writer = NULL;
  const tm_write_request request = { .format = TM_WRITE_SAFETENSORS, .path = path_of(target, path), .shard_bytes = shard_bytes,
                                     .tensors = tensors, .tensor_count = 2, .input_paths = inputs, .input_count = 2 };
  const tm_status status = tm_checkpoint_writer_create(&memory, &request, &writer, &error);
  if (status != TM_ERROR_ARGUMENT || strstr(error.text, "is an input too") == NULL)
    fail_msg("%s from %s: %d %s", target, input, status, error.text);
}

static void an_output_that_is_an_input_is_refused(void **state) {
  (void)state;
  char path[1024], other[1024];
  assert_int_equal(model_write(&memory, TM_WRITE_SAFETENSORS, path_of("one.safetensors", path), 0, 1, &error), TM_OK);
  assert_int_equal(symlink("one.safetensors", path_of("soft.safetensors", other)), 0);
  assert_int_equal(link(path, path_of("hard.safetensors", other)), 0);
  assert_int_equal(symlink(".", path_of("here", other)), 0);
  static const char *const same[] = { "one.safetensors", "soft.safetensors", "hard.safetensors", "here/one.safetensors" };
  for (size_t i = 0; i < 4; i++)
    for (size_t k = 0; k < 4; k++) expect_input_refused(same[i], 0, same[k]);
  expect_input_refused("one.safetensors", 1, "soft.safetensors");       /* a set: the single file would go */
  assert_int_equal(model_write(&memory, TM_WRITE_SAFETENSORS, path_of("set.safetensors", path), SHARDS_OF_TWO, 1, &error), TM_OK);
  expect_input_refused("set.safetensors", 1, "set-00003-of-00003.safetensors");
  expect_input_refused("set.safetensors", 0, "set-00002-of-00003.safetensors");
  expect_input_refused("set.safetensors", 1, "set.safetensors.index.json");
  expect_input_refused("set-00001-of-00003.safetensors", 0, "set-00001-of-00003.safetensors");
  assert_int_equal(count_entries(files.folder, ".part"), 0);
  assert_int_equal(model_content(&memory, path_of("one.safetensors", path), &error), 1);
  assert_int_equal(model_content(&memory, path_of("set.safetensors.index.json", path), &error), 1);
}

static void a_whole_checkpoint_is_no_part_by_its_name(void **state) {
  (void)state;
  char path[1024];
  /* The last ones are of no set, but for those who count from 0; the reader refuses what is beyond all. */
  static const char *const parts[] = { "m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors", "m-00003-of-00002.safetensors",
                                       "m-00002-of-00001.safetensors", "m-00000-of-00002.safetensors", "m-00001-of-00000.safetensors" };
  enum { PARTS = sizeof parts / sizeof parts[0] };
  for (size_t i = 0; i < PARTS; i++) {
    assert_int_equal(model_write(&memory, TM_WRITE_SAFETENSORS, path_of(parts[i], path), 0, 1, &error), TM_ERROR_ARGUMENT);
    assert_non_null(strstr(error.text, "by its name part"));
  }
  assert_int_equal(count_entries(files.folder, ""), 0);
  assert_int_equal(model_write(&memory, TM_WRITE_SAFETENSORS, path_of("m-00001-of-00001.safetensors", path), 0, 1, &error), TM_OK);
  for (size_t i = 0; i < PARTS; i++) {
    assert_int_equal(model_write(&memory, TM_WRITE_SAFETENSORS, path_of(parts[i], path), SHARDS_OF_TWO, 1, &error), TM_ERROR_ARGUMENT);
    assert_non_null(strstr(error.text, "but it would be a set"));
    if (i == 0) assert_non_null(strstr(error.text, "m-00001-of-00002.safetensors: by its name part 1 of 2, but it would be a set"));
  }
  assert_int_equal(count_entries(files.folder, ""), 1);
}

/* It came between the plan and the beginning. */
static void an_input_is_looked_for_again(void **state) {
  (void)state;
  char path[1024], input[1024];
  const char *inputs[1] = { input };
  tm_checkpoint_writer *writer = NULL;
  assert_non_null(scratch_write(&files, "input", "x", 1));
  (void)path_of("input", input);
  const tm_write_request request = { .format = TM_WRITE_SAFETENSORS, .path = path_of("m.safetensors", path), .input_paths = inputs,
                                     .input_count = 1 };
  assert_int_equal(tm_checkpoint_writer_create(&memory, &request, &writer, &error), TM_OK);
  assert_int_equal(link(input, path), 0);
  assert_int_equal(tm_checkpoint_writer_begin(writer, &error), TM_ERROR_ARGUMENT);
  assert_non_null(strstr(error.text, "is an input too"));
  tm_checkpoint_writer_destroy(writer);
  assert_int_equal(count_entries(files.folder, ""), 2);
}

/* --------------------------------------------------------------------------------------------------------- writing ---- */

static void pieces_are_held_against_each_other(void **state) {
  (void)state;
  char path[1024];
  static const unsigned char bytes[MODEL_TENSOR_BYTES] = { 0 };
  tm_checkpoint_writer *writer = NULL;
  assert_int_equal(model_plan(&memory, TM_WRITE_SAFETENSORS, path_of("m.safetensors", path), 0, &writer, &error), TM_OK);
  assert_int_equal(tm_checkpoint_writer_write(writer, 0, 0, bytes, 1, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_checkpoint_writer_finish(writer, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(count_entries(files.folder, ""), 0);
  assert_int_equal(tm_checkpoint_writer_begin(writer, &error), TM_OK);
  assert_int_equal(tm_checkpoint_writer_begin(writer, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_checkpoint_writer_write(writer, MODEL_TENSORS, 0, bytes, 1, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_checkpoint_writer_write(writer, 0, 1, bytes, MODEL_TENSOR_BYTES, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_checkpoint_writer_write(writer, 0, UINT64_MAX, bytes, 2, &error), TM_ERROR_ARGUMENT);
  for (uint64_t i = 1; i < MODEL_TENSORS; i++)
    assert_int_equal(tm_checkpoint_writer_write(writer, i, 0, bytes, MODEL_TENSOR_BYTES, &error), TM_OK);
  static const uint64_t pieces[][2] = { { 10, 20 }, { 30, 40 }, { 0, 10 }, { 50, 60 }, { 20, 30 }, { 45, 46 } };
  static const uint64_t overlaps[][2] = { { 0, 1 }, { 39, 41 }, { 5, 35 }, { 40, 51 }, { 45, 46 }, { 41, 100 }, { 59, 60 } };
  for (size_t i = 0; i < 6; i++)
    assert_int_equal(tm_checkpoint_writer_write(writer, 0, pieces[i][0], bytes, pieces[i][1] - pieces[i][0], &error), TM_OK);
  for (size_t i = 0; i < 7; i++)
    assert_int_equal(tm_checkpoint_writer_write(writer, 0, overlaps[i][0], bytes, overlaps[i][1] - overlaps[i][0], &error),
                     TM_ERROR_ARGUMENT);
  assert_int_equal(tm_checkpoint_writer_finish(writer, &error), TM_ERROR_ARGUMENT);
  assert_non_null(strstr(error.text, "\"a\", 51 of 4096 bytes"));
  static const uint64_t rest[][2] = { { 40, 45 }, { 46, 50 }, { 60, MODEL_TENSOR_BYTES } };
  for (size_t i = 0; i < 3; i++)
    assert_int_equal(tm_checkpoint_writer_write(writer, 0, rest[i][0], bytes, rest[i][1] - rest[i][0], &error), TM_OK);
  assert_int_equal(tm_checkpoint_writer_finish(writer, &error), TM_OK);
  assert_int_equal(tm_checkpoint_writer_finish(writer, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_checkpoint_writer_write(writer, 0, 0, bytes, 0, &error), TM_ERROR_ARGUMENT);
  tm_checkpoint_writer_destroy(writer);
}

static void given_up_or_cancelled_nothing_is_left(void **state) {
  (void)state;
  char path[1024];
  assert_int_equal(model_write(&memory, TM_WRITE_SAFETENSORS, path_of("m.safetensors", path), SHARDS_OF_TWO, 1, &error), TM_OK);
  for (int how = 0; how < 3; how++) {
    tm_checkpoint_writer *writer = NULL;
    assert_int_equal(model_plan(&memory, TM_WRITE_SAFETENSORS, path, SHARDS_OF_THREE, &writer, &error), TM_OK);
    assert_int_equal(tm_checkpoint_writer_begin(writer, &error), TM_OK);
    assert_true(count_entries(files.folder, ".part") == 3);
    if (how == 1) tm_checkpoint_writer_cancel(writer);
    assert_int_equal(model_fill(writer, 2, &error), how == 1 ? TM_ERROR_CANCELLED : TM_OK);
    if (how == 2) tm_checkpoint_writer_cancel(writer);
    if (how == 2) assert_int_equal(tm_checkpoint_writer_finish(writer, &error), TM_ERROR_CANCELLED);
    tm_checkpoint_writer_destroy(writer);
    assert_int_equal(count_entries(files.folder, ".part"), 0);
    assert_int_equal(model_content(&memory, files.folder, &error), 1);
  }
}

#define WRITING_THREADS 4
#define PIECE_BYTES 256u

typedef struct crew {
  tm_checkpoint_writer *writer;
  _Atomic uint64_t      next;
  _Atomic uint64_t      failures;
} crew;

/* Each takes the next piece, whatever tensor it is of. */
static void *write_pieces(void *argument) {
  crew *all = argument;
  const uint64_t pieces_a_tensor = MODEL_TENSOR_BYTES / PIECE_BYTES;
  for (;;) {
    unsigned char bytes[PIECE_BYTES];
    const uint64_t piece = all->next++;
    if (piece >= MODEL_TENSORS * pieces_a_tensor) return NULL;
    memset(bytes, 7, sizeof bytes);
    all->failures += tm_checkpoint_writer_write(all->writer, piece % MODEL_TENSORS, piece / MODEL_TENSORS * PIECE_BYTES, bytes,
                                                sizeof bytes, NULL) != TM_OK;
  }
}

static void threads_write_together(void **state) {
  (void)state;
  char path[1024];
  pthread_t threads[WRITING_THREADS];
  crew all = { 0 };
  assert_int_equal(model_plan(&memory, TM_WRITE_SAFETENSORS, path_of("m.safetensors", path), SHARDS_OF_TWO, &all.writer, &error),
                   TM_OK);
  assert_int_equal(tm_checkpoint_writer_begin(all.writer, &error), TM_OK);
  for (int i = 0; i < WRITING_THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, write_pieces, &all), 0);
  for (int i = 0; i < WRITING_THREADS; i++) (void)pthread_join(threads[i], NULL);
  assert_int_equal(all.failures, 0);
  assert_int_equal(tm_checkpoint_writer_finish(all.writer, &error), TM_OK);
  tm_checkpoint_writer_destroy(all.writer);
  assert_int_equal(model_content(&memory, files.folder, &error), 7);
}

/* The folder may be renamed, and the working directory may change, while it is written. */
static void folders_may_move(void **state) {
  (void)state;
  char path[1024], moved[1024];
  tm_checkpoint_writer *writer = NULL;
  assert_int_equal(mkdir(path_of("before", path), 0700), 0);
  assert_int_equal(model_plan(&memory, TM_WRITE_SAFETENSORS, path_of("before/m.safetensors", path), SHARDS_OF_TWO, &writer,
                              &error), TM_OK);
  assert_int_equal(tm_checkpoint_writer_begin(writer, &error), TM_OK);
  assert_int_equal(rename(path_of("before", path), path_of("after", moved)), 0);
  assert_int_equal(model_fill(writer, 5, &error), TM_OK);
  assert_int_equal(tm_checkpoint_writer_finish(writer, &error), TM_OK);
  tm_checkpoint_writer_destroy(writer);
  assert_int_equal(model_content(&memory, moved, &error), 5);
  assert_int_equal(model_write(&memory, TM_WRITE_GGUF, path_of("after/m.gguf", path), 0, 5, &error), TM_OK);
  DIR *folder = opendir(moved);
  for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
    (void)unlinkat(dirfd(folder), entry->d_name, 0);
  (void)closedir(folder);
}

static void without_memory_nothing_is_left(void **state) {
  (void)state;
  char path[1024];
  (void)path_of("m.safetensors", path);
  tm_status status = TM_ERROR_NO_MEMORY;
  for (uint64_t limit = 1; status == TM_ERROR_NO_MEMORY; limit += 97) {
    tm_memory small;
    tm_memory_init(&small, limit);
    status = model_write(&small, TM_WRITE_SAFETENSORS, path, SHARDS_OF_TWO, 1, &error);
    assert_int_equal(small.used_bytes, 0);
    if (status != TM_OK) assert_int_equal(count_entries(files.folder, ""), 0);
  }
  assert_int_equal(status, TM_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(safetensors_comes_out_as_it_was, set_up, tear_down),
    cmocka_unit_test_setup_teardown(gguf_comes_out_as_it_was, set_up, tear_down),
    cmocka_unit_test_setup_teardown(split_keys_and_repeated_keys_are_left_out, set_up, tear_down),
    cmocka_unit_test_setup_teardown(sets_hold_all_and_obey_the_limit, set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_set_of_many_shards, set_up, tear_down),
    cmocka_unit_test_setup_teardown(any_tensors_in_any_pieces, set_up, tear_down),
    cmocka_unit_test_setup_teardown(wide_elements_are_aligned, set_up, tear_down),
    cmocka_unit_test_setup_teardown(metadata_change_format, set_up, tear_down),
    cmocka_unit_test_setup_teardown(unsound_metadata_are_refused, set_up, tear_down),
    cmocka_unit_test_setup_teardown(tensors_that_do_not_fit_are_refused, set_up, tear_down),
    cmocka_unit_test_setup_teardown(paths_that_cannot_be_written_are_refused, set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_folder_that_may_not_be_written_to, set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_link_is_followed_and_stays, set_up, tear_down),
    cmocka_unit_test_setup_teardown(an_output_that_is_an_input_is_refused, set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_whole_checkpoint_is_no_part_by_its_name, set_up, tear_down),
    cmocka_unit_test_setup_teardown(an_input_is_looked_for_again, set_up, tear_down),
    cmocka_unit_test_setup_teardown(pieces_are_held_against_each_other, set_up, tear_down),
    cmocka_unit_test_setup_teardown(given_up_or_cancelled_nothing_is_left, set_up, tear_down),
    cmocka_unit_test_setup_teardown(threads_write_together, set_up, tear_down),
    cmocka_unit_test_setup_teardown(folders_may_move, set_up, tear_down),
    cmocka_unit_test_setup_teardown(without_memory_nothing_is_left, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
