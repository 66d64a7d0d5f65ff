/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#include "base/error.h"
#include "formats/archive.h"
#include "formats/made_gguf.h"
#include "formats/scratch.h"
#include "tensor/format.h"

static tm_memory memory;
static tm_error error;

static int set_up(void **state) {
  (void)state;
  tm_memory_init(&memory, 0);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  return memory.used_bytes == 0 ? 0 : -1;
}

/* Opens an exact copy, so that a sanitizer sees each byte read beyond it. */
static tm_status open_prefix(const gguf_maker *maker, uint64_t size, const tm_archive_options *options, unsigned char **out_copy,
                             tm_archive **out_archive) {
  *out_copy = malloc((size_t)size + (size == 0));
  memcpy(*out_copy, maker->bytes, (size_t)size);
  *out_archive = NULL;
  error = (tm_error)TM_ERROR_INIT;
  return tm_archive_open_bytes(&memory, options, "made.gguf", *out_copy, size, out_archive, &error);
}

/* Expects an error whose text holds `text`; frees the maker. */
static void expect_refused(gguf_maker *maker, const char *text) {
  unsigned char *copy;
  tm_archive *archive;
  const tm_status status = open_prefix(maker, maker->size, NULL, &copy, &archive);
  if (status != TM_ERROR_CORRUPT || strstr(error.text, text) == NULL) fail_msg("status %d, not %s: %s", status, text, error.text);
  assert_null(archive);
  free(copy);
  free(maker->bytes);
}

static tm_archive *expect_opened(gguf_maker *maker, unsigned char **out_copy) {
  tm_archive *archive;
  if (open_prefix(maker, maker->size, NULL, out_copy, &archive) != TM_OK) fail_msg("%s", error.text);
  free(maker->bytes);
  return archive;
}

static void close_opened(tm_archive *archive, unsigned char *copy) {
  tm_archive_close(archive);
  free(copy);
}

static void expect_good(gguf_maker *maker) {
  unsigned char *copy;
  tm_archive *archive = expect_opened(maker, &copy);
  close_opened(archive, copy);
}

/* ------------------------------------------------------------------------------------------------------- reading ---- */

static void put_every_type(gguf_maker *maker) {
  static const struct { const char *key; uint32_t type; uint64_t bits; uint32_t bytes; } scalars[] = {
    { "u8", 0, 200, 1 }, { "i8", 1, 0x80, 1 }, { "u16", 2, 65535, 2 }, { "i16", 3, 0xfffe, 2 }, { "u32", 4, 4000000000, 4 },
    { "i32", 5, 0xffffffff, 4 }, { "f32", 6, 0x3dcccccd, 4 }, { "bool", 7, 1, 1 }, { "u64", 10, UINT64_MAX, 8 },
    { "i64", 11, UINT64_C(1) << 63, 8 }, { "f64", 12, UINT64_C(0x3fb999999999999a), 8 },
  };
  for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; i++) {
    put_key(maker, scalars[i].key, scalars[i].type);
    put_number(maker, scalars[i].bits, scalars[i].bytes);
  }
  put_key(maker, "string", 8);
  put_text(maker, "tab\there");
  put_key(maker, "numbers", 9);
  put_u32(maker, TM_METADATA_I16);
  put_u64(maker, 3);
  for (uint64_t i = 0; i < 3; i++) put_number(maker, 0xffff - i, 2);
  put_key(maker, "words", 9);
  put_u32(maker, TM_METADATA_STRING);
  put_u64(maker, 3);
  put_text(maker, "a");
  put_text(maker, "");
  put_text(maker, "ccc");
  put_key(maker, "nested", 9);
  put_u32(maker, TM_METADATA_ARRAY);
  put_u64(maker, 2);
  put_u32(maker, TM_METADATA_U8);
  put_u64(maker, 2);
  put_number(maker, 0x0201, 2);
  put_u32(maker, TM_METADATA_STRING);
  put_u64(maker, 1);
  put_text(maker, "deep");
}

static const char *printed(const tm_archive *archive, const char *key) {
  static char text[256];
  const tm_metadata *metadata = tm_archive_metadata_find(archive, key);
  assert_non_null(metadata);
  const uint64_t length = tm_metadata_print(&metadata->value, text, sizeof text);
  assert_int_equal(strlen(text), length);
  return text;
}

static void every_metadata_type(void **state) {
  (void)state;
  gguf_maker maker = gguf_begin(3, 0, 15);
  put_every_type(&maker);
  unsigned char *copy;
  tm_archive *archive = expect_opened(&maker, &copy);
  assert_string_equal(tm_archive_format_name(archive), "gguf v3");
  assert_int_equal(tm_archive_metadata_count(archive), 15);
  static const struct { const char *key, *text; } cases[] = {
    { "u8", "200" }, { "i8", "-128" }, { "u16", "65535" }, { "i16", "-2" }, { "u32", "4000000000" }, { "i32", "-1" },
    { "f32", "0.1" }, { "bool", "true" }, { "u64", "18446744073709551615" }, { "i64", "-9223372036854775808" },
    { "f64", "0.1" }, { "string", "tab\\there" }, { "numbers", "[-1, -2, -3]" }, { "words", "[\"a\", \"\", \"ccc\"]" },
    { "nested", "[array of u8[2], array of string[1]]" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) assert_string_equal(printed(archive, cases[i].key), cases[i].text);
  char type[64];
  tm_metadata_describe_type(&tm_archive_metadata_find(archive, "words")->value, type, sizeof type);
  assert_string_equal(type, "array of string[3]");
  close_opened(archive, copy);
}

static void typed_access(void **state) {
  (void)state;
  gguf_maker maker = gguf_begin(2, 0, 15);
  put_every_type(&maker);
  unsigned char *copy;
  tm_archive *archive = expect_opened(&maker, &copy);
  assert_string_equal(tm_archive_format_name(archive), "gguf v2");
  uint64_t natural;
  int64_t integer;
  double number;
  bool truth;
  tm_string text;
  const tm_metadata_value *u64 = &tm_archive_metadata_find(archive, "u64")->value;
  const tm_metadata_value *i8 = &tm_archive_metadata_find(archive, "i8")->value;
  const tm_metadata_value *f32 = &tm_archive_metadata_find(archive, "f32")->value;
  const tm_metadata_value *words = &tm_archive_metadata_find(archive, "words")->value;
  assert_true(tm_metadata_as_u64(u64, &natural) && natural == UINT64_MAX);
  assert_false(tm_metadata_as_i64(u64, &integer));
  assert_false(tm_metadata_as_u64(i8, &natural));
  assert_true(tm_metadata_as_i64(i8, &integer) && integer == -128);
  assert_true(tm_metadata_as_f64(i8, &number) && number == -128.0);
  assert_true(tm_metadata_as_f64(f32, &number) && (float)number == 0.1f);
  assert_false(tm_metadata_as_i64(f32, &integer));
  assert_true(tm_metadata_as_bool(&tm_archive_metadata_find(archive, "bool")->value, &truth) && truth);
  assert_false(tm_metadata_as_bool(u64, &truth));
  assert_true(tm_metadata_as_string(&tm_archive_metadata_find(archive, "string")->value, &text) && text.length == 8);
  assert_false(tm_metadata_as_string(words, &text));
  assert_false(tm_metadata_as_f64(words, &number));
  tm_metadata_iterator iterator;
  tm_metadata_value element;
  uint32_t count = 0;
  for (tm_metadata_iterate(words, &iterator); tm_metadata_next(&iterator, &element); count++) assert_int_equal(element.type, 8);
  assert_int_equal(count, 3);
  tm_metadata_iterate(u64, &iterator);
  assert_false(tm_metadata_next(&iterator, &element));
  tm_metadata_iterate(&tm_archive_metadata_find(archive, "nested")->value, &iterator);
  assert_true(tm_metadata_next(&iterator, &element) && element.bytes == 2);
  assert_true(tm_metadata_next(&iterator, &element) && element.count == 1);
  tm_metadata_iterator inner;
  tm_metadata_value word;
  tm_metadata_iterate(&element, &inner);
  assert_true(tm_metadata_next(&inner, &word) && word.bytes == 4 && memcmp(word.data, "deep", 4) == 0);
  assert_false(tm_metadata_next(&iterator, &element));
  close_opened(archive, copy);
}

static void printing_is_bounded(void **state) {
  (void)state;
  gguf_maker maker = gguf_begin(3, 0, 2);
  put_key(&maker, "many", 9);
  put_u32(&maker, TM_METADATA_U32);
  put_u64(&maker, 1000);
  for (uint64_t i = 0; i < 1000; i++) put_u32(&maker, i);
  put_key(&maker, "long", 8);
  put_u64(&maker, 5000);
  for (int i = 0; i < 5000; i++) put_number(&maker, 'x', 1);
  unsigned char *copy;
  tm_archive *archive = expect_opened(&maker, &copy);
  for (uint64_t capacity = 16; capacity < 64; capacity++) {
    char text[64];
    memset(text, '#', sizeof text);
    const uint64_t length = tm_metadata_print(&tm_archive_metadata_find(archive, "many")->value, text, capacity);
    assert_true(length < capacity && strlen(text) == length);
    assert_non_null(strstr(text, "...]"));
    if (capacity < sizeof text) assert_int_equal(text[capacity], '#');
    assert_true(tm_metadata_print(&tm_archive_metadata_find(archive, "long")->value, text, capacity) < capacity);
    assert_non_null(strstr(text, "..."));
  }
  close_opened(archive, copy);
}

/* Three tensors, out of order, aligned to 64, dims reversed. */
static gguf_maker make_three(void) {
  gguf_maker maker = gguf_begin(3, 4, 1);
  put_key(&maker, "general.alignment", TM_METADATA_U32);
  put_u32(&maker, 64);
  put_tensor(&maker, "late", 2, (const uint64_t[]){ 4, 3 }, 0, 128);
  put_tensor(&maker, "blocks", 2, (const uint64_t[]){ 32, 2 }, 8, 0);
  put_tensor(&maker, "scalar", 0, NULL, 27, 192);
  put_tensor(&maker, "empty", 2, (const uint64_t[]){ 0, 7 }, 0, 192);
  put_data(&maker, 64, 200);
  return maker;
}

static void tensors(void **state) {
  (void)state;
  gguf_maker maker = make_three();
  const uint64_t data_begin = maker.size - 200;
  unsigned char *copy, data[12];
  tm_archive *archive = expect_opened(&maker, &copy);
  const tm_archive_tensor *late = tm_archive_tensor_at(archive, 0), *blocks = tm_archive_tensor_at(archive, 1);
  assert_string_equal(late->name.data, "late");
  assert_int_equal(late->format, TM_FORMAT_F32);
  assert_string_equal(late->type_name, "f32");
  assert_int_equal(late->dims[0], 3);
  assert_int_equal(late->dims[1], 4);
  assert_int_equal(late->bytes, 48);
  assert_int_equal(late->offset, data_begin + 128);
  assert_int_equal(blocks->format, TM_FORMAT_Q8_0);
  assert_int_equal(blocks->bytes, 68);
  assert_int_equal(blocks->offset, data_begin);
  assert_int_equal(tm_archive_tensor_at(archive, 2)->element_count, 1);
  assert_int_equal(tm_archive_tensor_at(archive, 2)->bytes, 8);
  assert_int_equal(tm_archive_tensor_at(archive, 3)->element_count, 0);
  assert_int_equal(tm_archive_tensor_at(archive, 3)->dims[0], 7);
  assert_int_equal(tm_archive_read(archive, 0, 36, data, 12, NULL), TM_OK);
  for (int i = 0; i < 12; i++) assert_int_equal(data[i], 128 + 36 + i);
  close_opened(archive, copy);
}

static void every_type_number(void **state) {
  (void)state;
  for (uint32_t type = 0; type < 90; type++) {
    const uint64_t dims[] = { 256, 2 };
    const tm_format_info *info = tm_format_by_gguf(type);
    gguf_maker maker = gguf_begin(3, 1, 0);
    put_tensor(&maker, "t", 2, dims, type, 0);
    put_data(&maker, 32, 4096);
    unsigned char *copy;
    tm_archive *archive = expect_opened(&maker, &copy);
    const tm_archive_tensor *tensor = tm_archive_tensor_at(archive, 0);
    char expected[40];
    if (info != NULL) {
      assert_int_equal(tensor->format, info->format);
      assert_int_equal(tensor->bytes, 512 / info->block_elements * info->block_bytes);
      assert_string_equal(tensor->type_name, info->name);
      assert_int_equal(tensor->flags, 0);
    } else {
      (void)snprintf(expected, sizeof expected, "gguf type %u%s", type, tm_gguf_type_is_retired(type) ? " (retired)" : "");
      assert_string_equal(tensor->type_name, expected);
      assert_int_equal(tensor->format, TM_FORMAT_NONE);
      assert_int_equal(tensor->bytes, 0);
      assert_int_equal(tensor->element_count, 512);
      assert_int_equal(tensor->flags, TM_ARCHIVE_TENSOR_UNKNOWN_TYPE);
    }
    close_opened(archive, copy);
  }
}

/* ------------------------------------------------------------------------------------------------------ refusing ---- */

static void versions(void **state) {
  (void)state;
  static const struct { uint32_t version; const char *text; } cases[] = {
    { 0, "GGUF version 0" }, { 4, "GGUF version 4" }, { 0x04000000, "big-endian GGUF version 4" }, { 0x00030000, "big-endian GGUF version 768" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    gguf_maker maker = gguf_begin(cases[i].version, 0, 0);
    expect_refused(&maker, cases[i].text);
  }
}

static void absurd_counts(void **state) {
  (void)state;
  static const uint64_t counts[] = { 1, UINT64_C(1) << 31, UINT64_C(1) << 59, UINT64_C(0x0555555555555556), UINT64_MAX };
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    gguf_maker maker = gguf_begin(3, counts[i], 0);
    expect_refused(&maker, "tensors, but only 0 bytes follow");
    maker = gguf_begin(3, 0, counts[i]);
    expect_refused(&maker, "metadata, but only 0 bytes follow");
    maker = gguf_begin(3, 0, 1);
    put_key(&maker, "k", 8);
    put_u64(&maker, counts[i]);
    expect_refused(&maker, "a string at offset");
    for (uint32_t type = 0; type < TM_METADATA_TYPES; type++) {
      maker = gguf_begin(3, 0, 1);
      put_key(&maker, "k", 9);
      put_u32(&maker, type);
      put_u64(&maker, counts[i]);
      expect_refused(&maker, "an array at offset");
    }
  }
}

static void long_names(void **state) {
  (void)state;
  gguf_maker maker = gguf_begin(3, 0, 1);
  put_u64(&maker, 65536);
  for (int i = 0; i < 65536 + 20; i++) put_number(&maker, 'k', 1);
  expect_refused(&maker, "claims 65536 bytes");
  maker = gguf_begin(3, 1, 0);
  put_u64(&maker, UINT64_C(1) << 63);
  for (int i = 0; i < 40; i++) put_number(&maker, 'k', 1);
  expect_refused(&maker, "claims 9223372036854775808 bytes");
}

static void alignments(void **state) {
  (void)state;
  static const struct { uint64_t alignment; bool is_good; } cases[] = {
    { 0, false }, { 1, true }, { 2, true }, { 3, false }, { 4, true }, { 6, false }, { 8, true }, { 12, false }, { 24, true },
    { 32, true }, { 40, true }, { 100, false }, { 4096, true }, { 0x80000000, true }, { 0xffffffff, false },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    gguf_maker maker = gguf_begin(3, 0, 1);
    put_key(&maker, "general.alignment", TM_METADATA_U32);
    put_u32(&maker, cases[i].alignment);
    if (!cases[i].is_good) {
      expect_refused(&maker, "general.alignment is");
      continue;
    }
    expect_good(&maker);
  }
  static const uint32_t wrong_types[] = { 0, 5, 6, 8, 10, 11 };
  for (size_t i = 0; i < sizeof wrong_types / sizeof wrong_types[0]; i++) {
    gguf_maker maker = gguf_begin(3, 0, 1);
    put_key(&maker, "general.alignment", wrong_types[i]);
    put_u64(&maker, 0);
    expect_refused(&maker, "general.alignment must be a u32");
  }
  gguf_maker maker = gguf_begin(3, 1, 1);       /* 2^31: the data would begin far beyond the file */
  put_key(&maker, "general.alignment", TM_METADATA_U32);
  put_u32(&maker, 0x80000000);
  put_tensor(&maker, "t", 1, (const uint64_t[]){ 4 }, 0, 0);
  put_data(&maker, 32, 64);
  expect_refused(&maker, "the file ends at offset");
}

/* Each is from the record of real vulnerabilities: products and sums that wrap. */
static void hostile_dims(void **state) {
  (void)state;
  static const struct { uint32_t rank; uint64_t dims[4]; uint32_t type; const char *text; } cases[] = {
    { 2, { UINT64_C(1) << 32, UINT64_C(1) << 32 }, 0, "more elements" },
    { 3, { UINT64_C(1) << 33, UINT64_C(1) << 31, 3 }, 0, "more elements" },
    { 3, { UINT64_C(1) << 32, UINT64_C(1) << 32, 0 }, 0, "more elements" },
    { 1, { (UINT64_C(1) << 61) - 1 }, 27, "ends beyond any file" },
    { 1, { UINT64_C(1) << 61 }, 27, "more bytes" },
    { 1, { UINT64_MAX }, 0, "more bytes" },
    { 1, { UINT64_MAX }, 24, "ends beyond any file" },
    { 1, { UINT64_C(1) << 63 }, 0, "more bytes" },
    { 2, { UINT64_C(1) << 58, 16 }, 0, "more bytes" },
    { 1, { UINT64_C(1) << 62 }, 2, "the file ends at offset" },
    { 1, { 33 }, 2, "multiple of 32" },
    { 1, { 128 }, 12, "multiple of 256" },
    { 0, { 0 }, 8, "multiple of 32" },
    { 2, { 1, 32 }, 2, "multiple of 32" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    gguf_maker maker = gguf_begin(3, 1, 0);
    put_tensor(&maker, "t", cases[i].rank, cases[i].dims, cases[i].type, 0);
    put_data(&maker, 32, 64);
    expect_refused(&maker, cases[i].text);
  }
  static const uint32_t ranks[] = { 65, 1000, 0x7fffffff, 0xffffffff };
  for (size_t i = 0; i < 4; i++) {
    gguf_maker maker = gguf_begin(3, 1, 0);
    put_text(&maker, "t");
    put_u32(&maker, ranks[i]);
    put_data(&maker, 32, 2000);
    expect_refused(&maker, "dimensions; 64 are allowed");
  }
}

/* Sums of sizes: each tensor alone is possible, all together are not. */
static void sizes_that_wrap_together(void **state) {
  (void)state;
  gguf_maker maker = gguf_begin(3, 3, 0);
  const uint64_t half = UINT64_C(1) << 61;
  put_tensor(&maker, "a", 1, &(const uint64_t){ half }, 0 + 24, 0);
  put_tensor(&maker, "b", 1, &(const uint64_t){ half }, 27 - 3, half);
  put_tensor(&maker, "c", 1, &(const uint64_t){ UINT64_C(7) << 61 }, 24, half * 2);
  put_data(&maker, 32, 64);
  expect_refused(&maker, "more bytes than 64 bits can count");
}

static void five_axes_are_fine(void **state) {
  (void)state;
  gguf_maker maker = gguf_begin(3, 1, 0);
  put_tensor(&maker, "t", 5, (const uint64_t[]){ 1, 2, 1, 2, 1 }, 0, 0);
  put_data(&maker, 32, 16);
  unsigned char *copy;
  tm_archive *archive = expect_opened(&maker, &copy);
  assert_int_equal(tm_archive_tensor_at(archive, 0)->rank, 5);
  close_opened(archive, copy);
}

static void offsets(void **state) {
  (void)state;
  const uint64_t dims[] = { 8 };
  static const struct { uint64_t first, second; const char *text; } cases[] = {
    { 0, 31, "no multiple of the alignment" }, { 0, 0, "overlap" }, { 32, 32, "overlap" },
    { 0, UINT64_MAX - 31, "ends beyond any file" }, { 0, UINT64_C(1) << 63, "the file ends at offset" },
    { 0, 96, "1 of 2 tensors is incomplete (\"b\")" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    gguf_maker maker = gguf_begin(3, 2, 0);
    put_tensor(&maker, "a", 1, dims, 0, cases[i].first);
    put_tensor(&maker, "b", 1, dims, 0, cases[i].second);
    put_data(&maker, 32, 96);
    expect_refused(&maker, cases[i].text);
  }
  gguf_maker maker = gguf_begin(3, 2, 0);       /* a type of unknown size inside another tensor */
  put_tensor(&maker, "a", 1, (const uint64_t[]){ 16 }, 0, 0);
  put_tensor(&maker, "b", 1, dims, 77, 32);
  put_data(&maker, 32, 96);
  expect_refused(&maker, "overlap");
  maker = gguf_begin(3, 1, 0);                  /* and one that lies beyond the file */
  put_tensor(&maker, "b", 1, dims, 77, 96);
  put_data(&maker, 32, 96);
  expect_refused(&maker, "incomplete");
  maker = gguf_begin(3, 2, 0);                  /* gaps and bytes at the end are allowed */
  put_tensor(&maker, "a", 1, dims, 0, 64);
  put_tensor(&maker, "b", 1, dims, 0, 0);
  put_data(&maker, 32, 500);
  expect_good(&maker);
}

static void duplicates(void **state) {
  (void)state;
  gguf_maker maker = gguf_begin(3, 2, 0);
  put_tensor(&maker, "same", 1, (const uint64_t[]){ 8 }, 0, 0);
  put_tensor(&maker, "same", 1, (const uint64_t[]){ 8 }, 0, 32);
  put_data(&maker, 32, 64);
  expect_refused(&maker, "tensor \"same\" occurs twice");
  maker = gguf_begin(3, 0, 2);
  for (int i = 0; i < 2; i++) {
    put_key(&maker, "same", 7);
    put_number(&maker, (uint64_t)i, 1);
  }
  expect_refused(&maker, "key \"same\" occurs twice with different values");
  maker = gguf_begin(3, 0, 200);                /* files by a real writer say one thing twice */
  for (int i = 0; i < 200; i++) {
    put_key(&maker, "same", 8);
    put_text(&maker, "thing");
  }
  unsigned char *copy;
  tm_archive *archive = expect_opened(&maker, &copy);
  assert_int_equal(tm_archive_metadata_count(archive), 1);
  assert_non_null(strstr(tm_archive_note_at(archive, 0), "\"same\" occurs twice with the same value"));
  assert_null(tm_archive_note_at(archive, TM_ARCHIVE_MAX_NOTES));
  close_opened(archive, copy);
  maker = gguf_begin(3, 2, 0);                  /* a NUL does not end a name */
  put_u64(&maker, 3);
  put_bytes(&maker, "a\0b\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 3 + 16);
  put_u64(&maker, 3);
  put_bytes(&maker, "a\0c\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 3 + 16);
  put_data(&maker, 32, 64);
  expect_refused(&maker, "overlap");            /* so they are two tensors, at the same offset */
}

static void arrays_in_arrays(void **state) {
  (void)state;
  for (uint32_t depth = 1; depth <= 12; depth++) {
    gguf_maker maker = gguf_begin(3, 0, 1);
    put_key(&maker, "k", 9);
    for (uint32_t i = 1; i < depth; i++) {
      put_u32(&maker, 9);
      put_u64(&maker, 1);
    }
    put_u32(&maker, 0);
    put_u64(&maker, 1);
    put_number(&maker, 7, 1);
    if (depth > TM_METADATA_MAX_DEPTH) {
      expect_refused(&maker, "nested deeper");
      continue;
    }
    unsigned char *copy;
    tm_archive *archive = expect_opened(&maker, &copy);
    tm_metadata_value value = tm_archive_metadata_at(archive, 0)->value;
    for (uint32_t i = 0; i < depth; i++) {
      tm_metadata_iterator iterator;
      const tm_metadata_value outer = value;
      tm_metadata_iterate(&outer, &iterator);
      assert_true(tm_metadata_next(&iterator, &value));
    }
    uint64_t seven;
    assert_true(tm_metadata_as_u64(&value, &seven) && seven == 7);
    close_opened(archive, copy);
  }
  static const uint32_t unknown[] = { 13, 255, 0x7fffffff, 0xffffffff };
  for (size_t i = 0; i < 4; i++) {
    gguf_maker maker = gguf_begin(3, 0, 1);
    put_key(&maker, "k", unknown[i]);
    put_u64(&maker, 0);
    expect_refused(&maker, "unknown type");
    maker = gguf_begin(3, 0, 1);
    put_key(&maker, "k", 9);
    put_u32(&maker, unknown[i]);
    put_u64(&maker, 1);
    put_u64(&maker, 1);
    expect_refused(&maker, "unknown type");
  }
}

/* A prefix opens only when nothing but padding is missing. */
static void truncation_at_every_byte(void **state) {
  (void)state;
  gguf_maker makers[2] = { make_three(), gguf_begin(3, 0, 15) };
  put_every_type(&makers[1]);
  const uint64_t enough[2] = { makers[0].size, makers[1].size };
  for (int m = 0; m < 2; m++) {
    for (uint64_t size = 0; size <= makers[m].size; size++) {
      unsigned char *copy;
      tm_archive *archive;
      const tm_status status = open_prefix(&makers[m], size, NULL, &copy, &archive);
      assert_int_equal(status, size >= enough[m] ? TM_OK : TM_ERROR_CORRUPT);
      close_opened(archive, copy);
    }
    free(makers[m].bytes);
  }
}

static void truncated_files_open_when_asked(void **state) {
  (void)state;
  gguf_maker maker = make_three();
  const tm_archive_options options = { .allow_incomplete = true };
  unsigned char *copy;
  tm_archive *archive;
  assert_int_equal(open_prefix(&maker, maker.size - 60, &options, &copy, &archive), TM_OK);
  assert_int_equal(tm_archive_incomplete_count(archive), 2);
  assert_int_equal(tm_archive_tensor_at(archive, 0)->flags, TM_ARCHIVE_TENSOR_INCOMPLETE);
  assert_int_equal(tm_archive_tensor_at(archive, 1)->flags, 0);
  assert_int_equal(tm_archive_tensor_at(archive, 2)->flags, TM_ARCHIVE_TENSOR_INCOMPLETE);
  assert_int_equal(tm_archive_tensor_at(archive, 3)->flags, 0);
  close_opened(archive, copy);
  free(maker.bytes);
}

static void the_header_limit(void **state) {
  (void)state;
  gguf_maker maker = make_three();
  const uint64_t data_begin = maker.size - 200;
  for (uint64_t limit = 1; limit < maker.size; limit += 7) {
    const tm_archive_options options = { .max_header_bytes = limit };
    unsigned char *copy;
    tm_archive *archive;
    const tm_status status = open_prefix(&maker, maker.size, &options, &copy, &archive);
    assert_true(status == TM_OK || status == TM_ERROR_LIMIT);
    if (status != TM_OK) assert_non_null(strstr(error.text, "max_header_bytes"));
    if (limit >= data_begin) assert_int_equal(status, TM_OK);
    if (limit + 64 <= data_begin) assert_int_equal(status, TM_ERROR_LIMIT);
    close_opened(archive, copy);
  }
  free(maker.bytes);
}

static void memory_may_run_out_anywhere(void **state) {
  (void)state;
  gguf_maker maker = make_three();
  bool has_opened = false;
  for (uint64_t limit = 1; !has_opened && limit < 1000000; limit += limit < 4096 ? 64 : 512) {
    tm_memory little;
    tm_archive *archive = NULL;
    tm_memory_init(&little, limit);
    const tm_status status = tm_archive_open_bytes(&little, NULL, "x", maker.bytes, maker.size, &archive, NULL);
    assert_true(status == TM_OK || status == TM_ERROR_NO_MEMORY);
    has_opened = status == TM_OK;
    tm_archive_close(archive);
    assert_int_equal(little.used_bytes, 0);
  }
  assert_true(has_opened);
  free(maker.bytes);
}

/* --------------------------------------------------------------------------------------------------------- large ---- */

static void open_many(gguf_maker *maker, uint64_t tensor_count, uint64_t metadata_count) {
  unsigned char *copy;
  tm_archive *archive = expect_opened(maker, &copy);
  assert_int_equal(tm_archive_tensor_count(archive), tensor_count);
  assert_int_equal(tm_archive_metadata_count(archive), metadata_count);
  close_opened(archive, copy);
}

static gguf_maker make_many(uint64_t tensor_count, uint64_t metadata_count) {
  gguf_maker maker = gguf_begin(3, tensor_count, metadata_count);
  char name[64];
  for (uint64_t i = 0; i < metadata_count; i++) {
    (void)snprintf(name, sizeof name, "key.%llu", (unsigned long long)i);
    put_key(&maker, name, 7);
    put_number(&maker, 1, 1);
  }
  for (uint64_t i = 0; i < tensor_count; i++) {
    (void)snprintf(name, sizeof name, "blk.%llu.ffn.weight", (unsigned long long)i);
    put_tensor(&maker, name, 2, (const uint64_t[]){ 0, 3 }, 0, 0);
  }
  return maker;
}

/* So many that a step which looks at all of them for each would meet the time limit of the whole test. */
static void many_names_are_linear(void **state) {
  (void)state;
  gguf_maker keys = make_many(0, 1000000), tensors = make_many(1000000, 0);
  open_many(&keys, 0, 1000000);
  open_many(&tensors, 1000000, 0);
}

/* A million strings: no allocation and no read each. */
static void a_million_strings(void **state) {
  (void)state;
  gguf_maker maker = gguf_begin(3, 0, 1);
  put_key(&maker, "tokens", 9);
  put_u32(&maker, TM_METADATA_STRING);
  put_u64(&maker, 1000000);
  for (int i = 0; i < 1000000; i++) put_text(&maker, "token");
  tm_memory own;
  tm_archive *archive = NULL;
  tm_memory_init(&own, 0);
  assert_int_equal(tm_archive_open_bytes(&own, NULL, "x", maker.bytes, maker.size, &archive, NULL), TM_OK);
  assert_true(own.peak_bytes < maker.size + (2 << 20));
  const tm_metadata_value *tokens = &tm_archive_metadata_at(archive, 0)->value;
  tm_metadata_iterator iterator;
  tm_metadata_value token;
  uint64_t count = 0;
  for (tm_metadata_iterate(tokens, &iterator); tm_metadata_next(&iterator, &token); count++) assert_int_equal(token.bytes, 5);
  assert_int_equal(count, 1000000);
  tm_archive_close(archive);
  free(maker.bytes);
}

static void beyond_32_bits(void **state) {
  (void)state;
  scratch files;
  gguf_maker maker = gguf_begin(3, 2, 0);
  const uint64_t elements = UINT64_C(3) << 30;
  put_tensor(&maker, "a", 2, (const uint64_t[]){ UINT64_C(1) << 30, 3 }, 1, 0);
  put_tensor(&maker, "b", 1, (const uint64_t[]){ 32 }, 8, 2 * elements);
  put_data(&maker, 32, 0);
  assert_true(scratch_init(&files));
  const char *path = scratch_write_sparse(&files, "huge.gguf", maker.bytes, maker.size, maker.size + 2 * elements + 34);
  tm_archive *archive = NULL;
  assert_int_equal(tm_archive_open(&memory, NULL, path, &archive, NULL), TM_OK);
  assert_int_equal(tm_archive_tensor_at(archive, 0)->element_count, elements);
  char data[34];
  assert_int_equal(tm_archive_read(archive, 1, 0, data, 34, NULL), TM_OK);
  assert_int_equal(tm_archive_read(archive, 0, 2 * elements - 2, data, 2, NULL), TM_OK);
  tm_archive_close(archive);
  free(maker.bytes);
  scratch_deinit(&files);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_metadata_type), cmocka_unit_test(typed_access), cmocka_unit_test(printing_is_bounded),
    cmocka_unit_test(tensors), cmocka_unit_test(every_type_number), cmocka_unit_test(versions),
    cmocka_unit_test(absurd_counts), cmocka_unit_test(long_names), cmocka_unit_test(alignments),
    cmocka_unit_test(hostile_dims), cmocka_unit_test(sizes_that_wrap_together), cmocka_unit_test(five_axes_are_fine),
    cmocka_unit_test(offsets), cmocka_unit_test(duplicates), cmocka_unit_test(arrays_in_arrays),
    cmocka_unit_test(truncation_at_every_byte), cmocka_unit_test(truncated_files_open_when_asked),
    cmocka_unit_test(the_header_limit), cmocka_unit_test(memory_may_run_out_anywhere),
    cmocka_unit_test(many_names_are_linear), cmocka_unit_test(a_million_strings), cmocka_unit_test(beyond_32_bits),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
