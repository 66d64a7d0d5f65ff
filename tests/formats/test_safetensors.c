/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#include "base/error.h"
#include "formats/archive.h"
#include "formats/made_safetensors.h"
#include "formats/scratch.h"

static tm_memory memory;

static int set_up(void **state) {
  (void)state;
  tm_memory_init(&memory, 0);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  return memory.used_bytes == 0 ? 0 : -1;
}

static tm_status open_made(const char *header, uint64_t data_bytes, const tm_archive_options *options, made_file *out_made,
                           tm_archive **out_archive, tm_error *error) {
  *out_made = make_safetensors(header, strlen(header), data_bytes);
  *out_archive = NULL;
  *error = (tm_error)TM_ERROR_INIT;
  return tm_archive_open_bytes(&memory, options, "made.safetensors", out_made->bytes, out_made->size, out_archive, error);
}

/* ------------------------------------------------------------------------------------------------------- reading ---- */

static void all_that_a_header_says(void **state) {
  (void)state;
  made_file made;
  tm_archive *archive;
  tm_error error;
  const char header[] =
      "{\"__metadata__\":{\"format\":\"pt\",\"note\":\"caf\\u00e9\"},"
      "\"b.weight\":{\"data_offsets\":[16,40],\"dtype\":\"F32\",\"shape\":[2,3]},"
      "\"a\":{\"dtype\":\"BF16\",\"shape\":[8],\"data_offsets\":[0,16],\"more\":{\"x\":[1]}},"
      "\"scalar\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[40,48]},"
      "\"empty\":{\"dtype\":\"F16\",\"shape\":[2,0],\"data_offsets\":[48,48]}}  ";
  assert_int_equal(open_made(header, 48, NULL, &made, &archive, &error), TM_OK);
  assert_string_equal(tm_archive_format_name(archive), "safetensors");
  assert_int_equal(tm_archive_tensor_count(archive), 4);
  assert_int_equal(tm_archive_tensor_bytes(archive), 48);
  const tm_archive_tensor *b = tm_archive_tensor_at(archive, 0);
  assert_string_equal(b->name.data, "b.weight");
  assert_int_equal(b->name.length, 8);
  assert_string_equal(b->type_name, "F32");
  assert_int_equal(b->format, TM_FORMAT_F32);
  assert_int_equal(b->rank, 2);
  assert_int_equal(b->dims[0], 2);
  assert_int_equal(b->dims[1], 3);
  assert_int_equal(b->element_count, 6);
  assert_int_equal(b->bytes, 24);
  assert_int_equal(b->offset, 8 + sizeof header - 1 + 16);
  assert_int_equal(b->flags, 0);
  unsigned char data[8];
  assert_int_equal(tm_archive_read(archive, 0, 4, data, 8, NULL), TM_OK);
  for (int i = 0; i < 8; i++) assert_int_equal(data[i], 16 + 4 + i);
  assert_ptr_equal(tm_archive_mapped(archive, 0), made.bytes + b->offset);
  assert_int_equal(tm_archive_tensor_at(archive, 2)->rank, 0);
  assert_int_equal(tm_archive_tensor_at(archive, 2)->element_count, 1);
  assert_int_equal(tm_archive_tensor_at(archive, 3)->element_count, 0);
  assert_null(tm_archive_mapped(archive, 3));
  assert_null(tm_archive_tensor_at(archive, 4));
  uint64_t index = 99;
  assert_true(tm_archive_find(archive, "scalar", 6, &index));
  assert_int_equal(index, 2);
  assert_false(tm_archive_find(archive, "scala", 5, &index));
  assert_int_equal(tm_archive_metadata_count(archive), 2);
  const tm_metadata *note = tm_archive_metadata_find(archive, "note");
  tm_string text;
  assert_true(tm_metadata_as_string(&note->value, &text));
  assert_int_equal(text.length, 5);
  assert_memory_equal(text.data, "caf\xc3\xa9", 5);
  assert_null(tm_archive_metadata_find(archive, "nothing"));
  tm_archive_close(archive);
  free(made.bytes);
}

static void reads_outside_a_tensor_are_refused(void **state) {
  (void)state;
  made_file made;
  tm_archive *archive;
  tm_error error;
  unsigned char data[8];
  assert_int_equal(open_made("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, NULL, &made, &archive, &error), TM_OK);
  assert_int_equal(tm_archive_read(archive, 0, 0, data, 5, &error), TM_ERROR_ARGUMENT);
  assert_non_null(strstr(error.text, "\"a\" has 4 bytes"));
  assert_int_equal(tm_archive_read(archive, 0, UINT64_MAX, data, 2, NULL), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_archive_read(archive, 1, 0, data, 1, NULL), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_archive_read(archive, 0, 4, data, 0, NULL), TM_OK);
  tm_archive_close(archive);
  free(made.bytes);
}

/* Names may hold anything: quotes, controls, a NUL; the archive keeps them as they are. */
static void names_are_kept(void **state) {
  (void)state;
  made_file made;
  tm_archive *archive;
  tm_error error;
  uint64_t index;
  const char header[] = "{\"a\\u0000b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
                        "\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
                        "\"\\u001b[31m\\\"\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
                        "\"\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}";
  assert_int_equal(open_made(header, 0, NULL, &made, &archive, &error), TM_OK);
  assert_int_equal(tm_archive_tensor_at(archive, 0)->name.length, 3);
  assert_memory_equal(tm_archive_tensor_at(archive, 0)->name.data, "a\0b", 4);
  assert_true(tm_archive_find(archive, "a\0b", 3, &index) && index == 0);
  assert_true(tm_archive_find(archive, "a", 1, &index) && index == 1);
  assert_true(tm_archive_find(archive, "\x1b[31m\"", 6, &index) && index == 2);
  assert_true(tm_archive_find(archive, "", 0, &index) && index == 3);
  tm_archive_close(archive);
  free(made.bytes);
}

static void every_dtype(void **state) {
  (void)state;
  static const struct { const char *dtype; uint32_t format; uint64_t elements, bytes; } cases[] = {
    { "F64", TM_FORMAT_F64, 8, 64 }, { "F32", TM_FORMAT_F32, 8, 32 }, { "F16", TM_FORMAT_F16, 8, 16 },
    { "BF16", TM_FORMAT_BF16, 8, 16 }, { "F8_E4M3", TM_FORMAT_F8_E4M3FN, 8, 8 }, { "F8_E5M2", TM_FORMAT_F8_E5M2, 8, 8 },
    { "F8_E8M0", TM_FORMAT_F8_E8M0, 8, 8 }, { "F6_E2M3", TM_FORMAT_F6_E2M3, 8, 6 }, { "F6_E3M2", TM_FORMAT_F6_E3M2, 8, 6 },
    { "F4", TM_FORMAT_F4_E2M1, 8, 4 }, { "I8", TM_FORMAT_I8, 8, 8 }, { "U8", TM_FORMAT_U8, 8, 8 },
    { "I16", TM_FORMAT_I16, 8, 16 }, { "U16", TM_FORMAT_U16, 8, 16 }, { "I32", TM_FORMAT_I32, 8, 32 },
    { "U32", TM_FORMAT_U32, 8, 32 }, { "I64", TM_FORMAT_I64, 8, 64 }, { "U64", TM_FORMAT_U64, 8, 64 },
    { "BOOL", TM_FORMAT_BOOL, 8, 8 }, { "C64", TM_FORMAT_C64, 8, 64 }, { "F9_NEW", TM_FORMAT_NONE, 8, 13 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    made_file made;
    tm_archive *archive;
    tm_error error;
    char header[200];
    (void)snprintf(header, sizeof header, "{\"t\":{\"dtype\":\"%s\",\"shape\":[2,%d],\"data_offsets\":[0,%d]}}", cases[i].dtype,
                   (int)cases[i].elements / 2, (int)cases[i].bytes);
    if (open_made(header, cases[i].bytes, NULL, &made, &archive, &error) != TM_OK) fail_msg("%s: %s", header, error.text);
    const tm_archive_tensor *tensor = tm_archive_tensor_at(archive, 0);
    assert_int_equal(tensor->format, cases[i].format);
    assert_string_equal(tensor->type_name, cases[i].dtype);
    assert_int_equal(tensor->element_count, 8);
    assert_int_equal(tensor->bytes, cases[i].bytes);
    assert_int_equal(tensor->flags, cases[i].format == TM_FORMAT_NONE ? TM_ARCHIVE_TENSOR_UNKNOWN_TYPE : 0);
    tm_archive_close(archive);
    free(made.bytes);
  }
}

/* ------------------------------------------------------------------------------------------------------ refusing ---- */

#define U8(name, shape, begin, end) "\"" name "\":{\"dtype\":\"U8\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

static void bad_headers(void **state) {
  (void)state;
  static const struct { const char *header; uint64_t data_bytes; const char *text; } cases[] = {
    { "{" U8("a", "[4]", "0", "4") "," U8("b", "[4]", "3", "7") "}", 7, "\"a\" and \"b\" overlap" },
    { "{" U8("a", "[4]", "0", "4") "," U8("b", "[4]", "0", "4") "}", 4, "overlap: both begin at offset" },
    { "{" U8("b", "[4]", "2", "6") "," U8("a", "[4]", "0", "4") "}", 6, "\"a\" and \"b\" overlap" },
    { "{" U8("a", "[4]", "0", "4") "," U8("b", "[4]", "5", "9") "}", 9, "1 byte at offset 117 belongs to no tensor" },
    { "{" U8("a", "[4]", "1", "5") "}", 5, "no gaps" },
    { "{" U8("a", "[4]", "0", "4") "}", 5, "no gaps" },
    { "{}", 1, "no gaps" },
    { "{" U8("a", "[4]", "0", "4") "}", 3, "the file ends at offset" },
    { "{" U8("a", "[4]", "4", "0") "}", 4, "before they begin" },
    { "{" U8("a", "[4]", "0", "18446744073709551615") "}", 4, "beyond any file" },
    { "{" U8("a", "[4]", "18446744073709551611", "18446744073709551615") "}", 4, "beyond any file" },
    { "{" U8("a", "[4]", "0", "18446744073709551616") "}", 4, "at most 64 bits" },
    { "{" U8("a", "[4]", "-4", "0") "}", 4, "non-negative integer" },
    { "{" U8("a", "[4.0]", "0", "4") "}", 4, "non-negative integer" },
    { "{" U8("a", "[-4]", "0", "4") "}", 4, "non-negative integer" },
    { "{" U8("a", "[\"4\"]", "0", "4") "}", 4, "non-negative integer" },
    { "{" U8("a", "4", "0", "4") "}", 4, "list of integers" },
    { "{" U8("a", "[5]", "0", "4") "}", 4, "need 5 bytes, its data_offsets hold 4" },
    { "{" U8("a", "[4294967296,4294967296]", "0", "0") "}", 0, "more elements" },
    { "{" U8("a", "[4294967296,4294967296,0]", "0", "0") "}", 0, "more elements" },
    { "{\"a\":{\"dtype\":\"F64\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]}}", 0, "more bytes" },
    { "{" U8("a", "[1]", "0", "1") "," U8("a", "[1]", "1", "2") "}", 2, "\"a\" occurs twice" },
    { "{" U8("a", "[1]", "0", "1") "," U8("\\u0061", "[1]", "1", "2") "}", 2, "\"a\" occurs twice" },
    { "{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2, "multiple of 2" },
    { "{\"a\":{\"dtype\":\"F6_E2M3\",\"shape\":[6],\"data_offsets\":[0,5]}}", 5, "multiple of 4" },
    { "{\"a\":{\"shape\":[4],\"data_offsets\":[0,4]}}", 4, "has no dtype" },
    { "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,4]}}", 4, "has no shape" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[4]}}", 4, "has no data_offsets" },
    { "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, "each field once" },
    { "{\"a\":{\"dtype\":1,\"shape\":[4],\"data_offsets\":[0,4]}}", 4, "name of a dtype" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0]}}", 4, "begin and end" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4,8]}}", 4, "it has more than 2 data_offsets" },
    { "{\"a\":{\"dtype\":\"XX\",\"shape\":[4],\"data_offsets\":[0,0]}}", 0, "\"a\": its shape has 4 elements (XX), its data_offsets hold 0" },
    { "{\"a\":{\"dtype\":\"XX\",\"shape\":[],\"data_offsets\":[0,0]}," U8("b", "[4]", "0", "4") "}", 4, "\"a\": its shape has 1" },
    { "{\"a\":[1]}", 0, "an object with dtype" },
    { "{\"__metadata__\":[]}", 0, "an object of strings" },
    { "{\"__metadata__\":{\"a\":1}}", 0, "expected a string" },
    { "{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, "key \"a\" occurs twice with different" },
    { "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "__metadata__ once" },
    { "{\"a\":", 0, "not valid JSON at offset" },
    { "{} x", 0, "text after the end" },
    { "{\"a\xff\":1}", 0, "not valid UTF-8" },
    { "{\"a\":{\"x\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", 0, "nested too deeply" },
    { "[]", 0, "does not begin with {" },
    { " {}", 0, "does not begin with {" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    made_file made;
    tm_archive *archive;
    tm_error error;
    const tm_status status = open_made(cases[i].header, cases[i].data_bytes, NULL, &made, &archive, &error);
    if (status != TM_ERROR_CORRUPT || strstr(error.text, cases[i].text) == NULL || strstr(error.text, "made.safetensors") == NULL)
      fail_msg("%s: status %d, %s", cases[i].header, status, error.text);
    assert_null(archive);
    free(made.bytes);
  }
}

static void too_many_axes(void **state) {
  (void)state;
  for (uint32_t rank = 63; rank <= 66; rank++) {
    made_file made;
    tm_archive *archive;
    tm_error error;
    char shape[2 * 66 + 1] = "", header[400];
    for (uint32_t i = 0; i < rank; i++) strcat(shape, i == 0 ? "1" : ",1");
    (void)snprintf(header, sizeof header, "{\"a\":{\"dtype\":\"U8\",\"shape\":[%s],\"data_offsets\":[0,1]}}", shape);
    assert_int_equal(open_made(header, 1, NULL, &made, &archive, &error), rank <= 64 ? TM_OK : TM_ERROR_CORRUPT);
    if (archive != NULL) assert_int_equal(tm_archive_tensor_at(archive, 0)->rank, rank);
    else assert_non_null(strstr(error.text, "it has more than 64 dimensions"));
    tm_archive_close(archive);
    free(made.bytes);
  }
}

static void unsorted_is_fine(void **state) {
  (void)state;
  made_file made;
  tm_archive *archive;
  tm_error error;
  assert_int_equal(open_made("{" U8("c", "[3]", "6", "9") "," U8("a", "[4]", "0", "4") "," U8("e", "[0]", "4", "4") ","
                             U8("b", "[2]", "4", "6") "}", 9, NULL, &made, &archive, &error), TM_OK);
  assert_string_equal(tm_archive_tensor_at(archive, 0)->name.data, "c");
  tm_archive_close(archive);
  free(made.bytes);
}

static void bad_lengths(void **state) {
  (void)state;
  static const struct { uint64_t length; uint64_t size; const char *text; } cases[] = {
    { 0, 8, "length 0" }, { 0, 100, "length 0" }, { 100, 107, "100 bytes, but the file ends at offset 107" },
    { UINT64_MAX, 64, "should have 18446744073709551615 bytes" }, { UINT64_MAX - 7, 64, "should have" }, { 2, 9, "should have 2" },
    { 1, 3, "has 3 bytes" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    unsigned char bytes[128] = { 0 };
    tm_archive *archive = NULL;
    tm_error error = TM_ERROR_INIT;
    for (int b = 0; b < 8; b++) bytes[b] = (unsigned char)(cases[i].length >> (8 * b));
    const tm_status status = tm_archive_open_bytes(&memory, NULL, "x.safetensors", bytes, cases[i].size, &archive, &error);
    if (status != TM_ERROR_CORRUPT || strstr(error.text, cases[i].text) == NULL) fail_msg("%zu: %d %s", i, status, error.text);
  }
}

static void no_metadata_may_be_null(void **state) {
  (void)state;
  made_file made;
  tm_archive *archive;
  tm_error error;
  assert_int_equal(open_made("{\"__metadata__\":null," U8("a", "[4]", "0", "4") "}", 4, NULL, &made, &archive, &error), TM_OK);
  assert_int_equal(tm_archive_tensor_count(archive), 1);
  tm_archive_close(archive);
  free(made.bytes);
}

static void the_header_limit_names_its_option(void **state) {
  (void)state;
  made_file made;
  tm_archive *archive;
  tm_error error;
  const tm_archive_options options = { .max_header_bytes = 20 };
  assert_int_equal(open_made("{\"__metadata__\":{} }", 0, &options, &made, &archive, &error), TM_OK);
  tm_archive_close(archive);
  free(made.bytes);
  assert_int_equal(open_made("{\"__metadata__\":{}  }", 0, &options, &made, &archive, &error), TM_ERROR_LIMIT);
  assert_non_null(strstr(error.text, "21 bytes"));
  assert_non_null(strstr(error.text, "max_header_bytes 21"));
  free(made.bytes);
}

static void incomplete_files_open_when_asked(void **state) {
  (void)state;
  const char header[] = "{" U8("a", "[4]", "0", "4") "," U8("b", "[4]", "4", "8") "," U8("c", "[4]", "8", "12") ","
                        U8("d", "[0]", "12", "12") "}";
  made_file made;
  tm_archive *archive;
  tm_error error;
  char data[4];
  const tm_archive_options options = { .allow_incomplete = true };
  assert_int_equal(open_made(header, 6, NULL, &made, &archive, &error), TM_ERROR_CORRUPT);
  assert_non_null(strstr(error.text, "(6 bytes are missing): 2 of 4 tensors are incomplete (\"b\", \"c\")"));
  free(made.bytes);
  assert_int_equal(open_made(header, 6, &options, &made, &archive, &error), TM_OK);
  static const uint32_t flags[] = { 0, TM_ARCHIVE_TENSOR_INCOMPLETE, TM_ARCHIVE_TENSOR_INCOMPLETE, 0 };
  for (uint64_t i = 0; i < 4; i++) assert_int_equal(tm_archive_tensor_at(archive, i)->flags, flags[i]);
  assert_int_equal(tm_archive_incomplete_count(archive), 2);
  assert_int_equal(tm_archive_read(archive, 0, 0, data, 4, NULL), TM_OK);
  assert_int_equal(tm_archive_read(archive, 1, 0, data, 2, NULL), TM_OK);
  assert_int_equal(tm_archive_read(archive, 1, 0, data, 3, &error), TM_ERROR_CORRUPT);
  assert_non_null(strstr(error.text, "\"b\" is incomplete"));
  assert_non_null(tm_archive_mapped(archive, 0));
  assert_null(tm_archive_mapped(archive, 1));
  tm_archive_close(archive);
  free(made.bytes);
}

/* Every prefix is an error, as it stands and with allow_incomplete unless the header is whole. */
static void truncation_at_every_byte(void **state) {
  (void)state;
  const char header[] = "{\"__metadata__\":{\"k\":\"v\"}," U8("a", "[2,3]", "0", "6") "," U8("b", "[2]", "6", "8") "}";
  made_file made = make_safetensors(header, sizeof header - 1, 8);
  const tm_archive_options options = { .allow_incomplete = true };
  for (uint64_t size = 0; size < made.size; size++) {
    unsigned char *bytes = malloc((size_t)size + (size == 0));
    tm_archive *archive = NULL;
    tm_error error = TM_ERROR_INIT;
    memcpy(bytes, made.bytes, (size_t)size);
    assert_int_equal(tm_archive_open_bytes(&memory, NULL, "x.safetensors", bytes, size, &archive, &error), TM_ERROR_CORRUPT);
    assert_true(error.text[0] != '\0');
    const bool is_whole = size >= 8 + sizeof header - 1;
    assert_int_equal(tm_archive_open_bytes(&memory, &options, "x.safetensors", bytes, size, &archive, NULL),
                     is_whole ? TM_OK : TM_ERROR_CORRUPT);
    tm_archive_close(archive);
    free(bytes);
  }
  free(made.bytes);
}

static void memory_may_run_out_anywhere(void **state) {
  (void)state;
  const char header[] = "{\"__metadata__\":{\"k\":\"v\"}," U8("b", "[2]", "6", "8") "," U8("a", "[2,3]", "0", "6") "}";
  made_file made = make_safetensors(header, sizeof header - 1, 8);
  bool has_opened = false;
  for (uint64_t limit = 1; !has_opened && limit < 100000; limit += 8) {
    tm_memory little;
    tm_archive *archive = NULL;
    tm_memory_init(&little, limit);
    const tm_status status = tm_archive_open_bytes(&little, NULL, "x", made.bytes, made.size, &archive, NULL);
    assert_true(status == TM_OK || status == TM_ERROR_NO_MEMORY);
    has_opened = status == TM_OK;
    tm_archive_close(archive);
    assert_int_equal(little.used_bytes, 0);
  }
  assert_true(has_opened);
  free(made.bytes);
}

/* --------------------------------------------------------------------------------------------------------- large ---- */

/* A header of `count` tensors in one file whose data is a hole. */
static const char *write_many(scratch *files, const char *name, uint64_t count, uint64_t *out_header_bytes) {
  const char *path = scratch_path(files, name);
  FILE *file = fopen(path, "wb");
  unsigned char length[8] = { 0 };
  (void)fwrite(length, 1, 8, file);
  for (uint64_t i = 0; i < count; i++)
    (void)fprintf(file, "%c\"model.layers.%llu.mlp.experts.%llu.w%llu\":{\"dtype\":\"F16\",\"shape\":[8],\"data_offsets\":[%llu,%llu]}",
                  i == 0 ? '{' : ',', (unsigned long long)(i / 4096), (unsigned long long)(i / 8 % 512),
                  (unsigned long long)(i % 8), (unsigned long long)(16 * i), (unsigned long long)(16 * i + 16));
  (void)fputc('}', file);
  const uint64_t header = (uint64_t)ftell(file) - 8;
  for (int b = 0; b < 8; b++) length[b] = (unsigned char)(header >> (8 * b));
  (void)fseek(file, 0, SEEK_SET);
  (void)fwrite(length, 1, 8, file);
  (void)fclose(file);
  *out_header_bytes = header;
  return truncate(path, (off_t)(8 + header + 16 * count)) == 0 ? path : NULL;
}

static void open_many(const char *path, uint64_t count, uint64_t *out_peak_bytes) {
  const tm_archive_options options = { .max_header_bytes = UINT64_MAX };
  tm_memory own;
  tm_archive *archive = NULL;
  tm_error error = TM_ERROR_INIT;
  tm_memory_init(&own, 0);
  if (tm_archive_open(&own, &options, path, &archive, &error) != TM_OK) fail_msg("%s", error.text);
  uint64_t index;
  assert_int_equal(tm_archive_tensor_count(archive), count);
  assert_true(tm_archive_find(archive, "model.layers.0.mlp.experts.3.w5", 31, &index) && index == 29);
  *out_peak_bytes = own.used_bytes;
  tm_archive_close(archive);
}

/* A step that looks at all of them for each would meet the time limit of the whole test. */
static void the_132_megabyte_header(void **state) {
  (void)state;
  scratch files;
  uint64_t header_bytes, kept_bytes;
  tm_archive *archive = NULL;
  tm_error error = TM_ERROR_INIT;
  const uint64_t count = 1290000;
  assert_true(scratch_init(&files));
  const char *path = write_many(&files, "big.safetensors", count, &header_bytes);
  assert_non_null(path);
  assert_true(header_bytes > 100000000);
  assert_int_equal(tm_archive_open(&memory, NULL, path, &archive, &error), TM_ERROR_LIMIT);
  char option[64];
  (void)snprintf(option, sizeof option, "max_header_bytes %llu", (unsigned long long)header_bytes);
  assert_non_null(strstr(error.text, option));
  open_many(path, count, &kept_bytes);
  print_message("%llu tensors, header of %llu bytes: %llu bytes a tensor kept\n", (unsigned long long)count,
                (unsigned long long)header_bytes, (unsigned long long)(kept_bytes / count));
  scratch_deinit(&files);
}

/* One tensor of more than 2^31 elements and more than 4 GiB, in a file that is a hole. */
static void beyond_32_bits(void **state) {
  (void)state;
  scratch files;
  const uint64_t elements = UINT64_C(3) << 30;
  char header[200];
  assert_true(scratch_init(&files));
  const int length = snprintf(header, sizeof header,
                              "{\"a\":{\"dtype\":\"F16\",\"shape\":[3,1073741824],\"data_offsets\":[0,%llu]},"
                              "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[%llu,%llu]}}",
                              (unsigned long long)(2 * elements), (unsigned long long)(2 * elements),
                              (unsigned long long)(2 * elements + 2));
  made_file made = make_safetensors(header, (uint64_t)length, 0);
  const char *path = scratch_write_sparse(&files, "huge.safetensors", made.bytes, made.size, made.size + 2 * elements + 2);
  assert_non_null(path);
  free(made.bytes);
  for (int maps = 0; maps < 2; maps++) {
    const tm_archive_options options = { .map_files = maps == 1 };
    tm_archive *archive = NULL;
    char data[16] = "xxxxxxxxxxxxxxx";
    assert_int_equal(tm_archive_open(&memory, &options, path, &archive, NULL), TM_OK);
    assert_int_equal(tm_archive_tensor_at(archive, 0)->element_count, elements);
    assert_int_equal(tm_archive_tensor_at(archive, 0)->bytes, 2 * elements);
    assert_int_equal(tm_archive_read(archive, 0, 2 * elements - 8, data, 8, NULL), TM_OK);
    assert_memory_equal(data, "\0\0\0\0\0\0\0\0", 8);
    assert_int_equal(tm_archive_read(archive, 1, 0, data, 2, NULL), TM_OK);
    assert_int_equal(tm_archive_check_unchanged(archive, NULL), TM_OK);
    tm_archive_close(archive);
  }
  scratch_deinit(&files);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_that_a_header_says), cmocka_unit_test(reads_outside_a_tensor_are_refused),
    cmocka_unit_test(names_are_kept), cmocka_unit_test(every_dtype), cmocka_unit_test(bad_headers),
    cmocka_unit_test(too_many_axes), cmocka_unit_test(unsorted_is_fine), cmocka_unit_test(bad_lengths),
    cmocka_unit_test(no_metadata_may_be_null),
    cmocka_unit_test(the_header_limit_names_its_option), cmocka_unit_test(incomplete_files_open_when_asked),
    cmocka_unit_test(truncation_at_every_byte), cmocka_unit_test(memory_may_run_out_anywhere),
    cmocka_unit_test(the_132_megabyte_header), cmocka_unit_test(beyond_32_bits),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
