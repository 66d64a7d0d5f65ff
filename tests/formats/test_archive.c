/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "base/error.h"
#include "formats/archive.h"
#include "formats/made_gguf.h"
#include "formats/made_safetensors.h"
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

#define U8(name, count, begin, end) "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" #count "],\"data_offsets\":[" #begin "," #end "]}"

static const char *write_safetensors(scratch *folder, const char *name, const char *header, uint64_t data_bytes) {
  made_file made = make_safetensors(header, strlen(header), data_bytes);
  const char *path = scratch_write(folder, name, made.bytes, made.size);
  free(made.bytes);
  return path;
}

/* ---------------------------------------------------------------------------------------------------- strangers ---- */

#define CONTENT(text) text, sizeof text - 1

static void other_files_are_named(void **state) {
  (void)state;
  static const struct { const char *name, *bytes; size_t count; const char *text; } cases[] = {
    { "a.safetensors", CONTENT("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 90868376\n"), "Git LFS pointer" },
    { "a.gguf", CONTENT("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 90868376\n"), "git lfs pull" },
    { "b.safetensors", CONTENT("<!DOCTYPE html><html><head><title>404</title>"), "web page" },
    { "b2.safetensors", CONTENT("\n\n  <HTML lang=en><body>Sign in"), "web page" },
    { "b3", CONTENT("\xef\xbb\xbf<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code>"), "web page" },
    { "c.bin", CONTENT("PK\3\4\0\0\10\10\0\0\0\0\0\0\0\0archive/data.pkl"), "zip archive" },
    { "c.safetensors", CONTENT("PK\3\4\0\0\10\10\0\0\0\0\0\0\0\0archive/data.pkl"), "PyTorch" },
    { "d.pkl", CONTENT("\x80\2}q\0(X\6\0\0\0weight"), "pickle" },
    { "d4.pkl", CONTENT("\x80\4\x95\0\0\0\0\0\0\0\0}"), "pickle" },
    { "e", "", 0, "is empty (0 bytes)" },
    { "e.safetensors", "", 0, "is empty" },
    { "f.safetensors", CONTENT("Access to model is restricted. You must be authenticated."), "text that begins with \"Access to model" },
    { "f.txt", CONTENT("hello world\n"), "text that begins with \"hello world\\n\"" },
    { "g.gz", CONTENT("\x1f\x8b\10\0\0\0\0\0\0\3"), "gzip" },
    { "g.zst", CONTENT("\x28\xb5\x2f\xfd\4\0\1\0\0"), "zstd" },
    { "h.npz", CONTENT("PK\3\4\0\0\10\10\0\0\0\0\0\0\0\0arr_0.npy"), "each array in it is an .npy file" },
    { "i.h5", CONTENT("\x89HDF\r\n\x1a\n\0\0\0"), "HDF5" },
    { "j.json", CONTENT("{\"architectures\": [\"BertModel\"], \"hidden_size\": 384}"), "JSON, but not the index" },
    { "j.index.json", CONTENT("{\"architectures\": [\"BertModel\"]}"), "has no \"weight_map\"" },
    { "k.bin", CONTENT("lmgg\1\0\0\0"), "older than GGUF" },
    { "l", CONTENT("\1\2\3\4\5\6\7\10\11\12"), "is not in a format that this version reads" },
    { "l2", CONTENT("\1\2\3\4\5\6\7\10\11\12"), "begin with 01 02 03" },
    { "m.safetensors", CONTENT("\0\0\0\0\0\0\0\0\0\0\0\0"), "length 0" },
    { "n.gguf", CONTENT("\0\0\0\0\0\0\0\0\0\0\0\0"), "does not begin with GGUF" },
    { "o.safetensors", CONTENT("\x40\0\0\0"), "has 4 bytes" },
    { "p.safetensors", CONTENT("\377\377\377\377\377\377\377\377{}"), "should have 18446744073709551615 bytes" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    expect_refused(scratch_write(&files, cases[i].name, cases[i].bytes, cases[i].count), TM_ERROR_CORRUPT, cases[i].text);
}

static void no_file_at_all(void **state) {
  (void)state;
  expect_refused("", TM_ERROR_ARGUMENT, "empty");
  expect_refused(NULL, TM_ERROR_ARGUMENT, "empty");
  expect_refused(scratch_path(&files, "missing.safetensors"), TM_ERROR_NOT_FOUND, "missing.safetensors");
  const char *fifo = scratch_path(&files, "fifo.gguf");
  assert_int_equal(mkfifo(fifo, 0600), 0);
  expect_refused(fifo, TM_ERROR_IO, "is a pipe");
}

/* ------------------------------------------------------------------------------------------------------ folders ---- */

static const char *write_gguf(scratch *folder, const char *name) {
  gguf_maker maker = gguf_begin(3, 0, 0);
  const char *path = scratch_write(folder, name, maker.bytes, maker.size);
  free(maker.bytes);
  return path;
}

static void expect_folder(scratch *folder, const char *format) {
  tm_archive *archive;
  if (open_path(folder->folder, NULL, &archive) != TM_OK) fail_msg("%s", error.text);
  assert_string_equal(tm_archive_format_name(archive), format);
  assert_int_equal(tm_archive_is_nameless(archive), strncmp(format, "npy", 3) == 0);
  tm_archive_close(archive);
}

static void folders(void **state) {
  (void)state;
  scratch folder;
  assert_true(scratch_init(&folder));
  expect_refused(folder.folder, TM_ERROR_NOT_FOUND, "none of the 0 entries");
  assert_non_null(scratch_write(&folder, "config.json", "{}", 2));
  assert_non_null(scratch_write(&folder, ".safetensors", "{}", 2));
  expect_refused(folder.folder, TM_ERROR_NOT_FOUND, "none of the 2 entries");
  assert_non_null(write_gguf(&folder, "only.gguf"));
  expect_folder(&folder, "gguf v3");
  assert_non_null(write_safetensors(&folder, "a.safetensors", "{}", 0));
  expect_refused(folder.folder, TM_ERROR_NOT_FOUND, "holds 2 model files");
  expect_refused(folder.folder, TM_ERROR_NOT_FOUND, "a.safetensors only.gguf");
  assert_non_null(scratch_write(&folder, "odd.safetensors.index.json", "{\"weight_map\":{}}", 17));
  expect_folder(&folder, "safetensors");
  assert_non_null(scratch_write(&folder, "other.safetensors.index.json", "{\"weight_map\":{}}", 17));
  expect_refused(folder.folder, TM_ERROR_NOT_FOUND, "holds the indexes of 2 sets; name one of them: odd.safetensors.index.json other");
  assert_non_null(scratch_write(&folder, "model.safetensors.index.json", "{\"weight_map\":{}}", 17));
  expect_folder(&folder, "safetensors");
  scratch_deinit(&folder);
}

/* --------------------------------------------------------------------------------------------------------- sets ---- */

static const char *write_index(scratch *folder, const char *text) {
  return scratch_write(folder, "model.safetensors.index.json", text, strlen(text));
}

static void write_shards(scratch *folder) {
  assert_non_null(write_safetensors(folder, "m-2.safetensors", "{\"__metadata__\":{\"format\":\"pt\",\"part\":\"2\"}," U8("c", 3, 0, 3) "}", 3));
  assert_non_null(write_safetensors(folder, "m-1.safetensors", "{\"__metadata__\":{\"format\":\"pt\",\"part\":\"1\"}," U8("a", 4, 0, 4) ","
                                                               U8("b", 2, 4, 6) "}", 6));
}

static void sharded_sets(void **state) {
  (void)state;
  scratch folder;
  tm_archive *archive;
  unsigned char data[4];
  assert_true(scratch_init(&folder));
  write_shards(&folder);
  const char index[] = "{\"metadata\":{\"total_size\":9,\"x\":[1]},\"weight_map\":{\"c\":\"m-2.safetensors\",\"a\":\"m-1.safetensors\","
                       "\"b\":\"m-1.safetensors\"}}";
  assert_non_null(write_index(&folder, index));
  for (uint32_t most = 0; most < 3; most++) {
    const tm_archive_options options = { .max_open_files = most, .map_files = most == 2 };
    if (open_path(scratch_path(&folder, "model.safetensors.index.json"), &options, &archive) != TM_OK) fail_msg("%s", error.text);
    assert_int_equal(tm_archive_file_count(archive), 2);
    tm_archive_file file;
    assert_true(tm_archive_file_at(archive, 0, &file));
    assert_non_null(strstr(file.path, "/m-1.safetensors"));
    assert_int_equal(file.is_mapped, options.map_files);
    assert_false(tm_archive_file_at(archive, 2, &file));
    assert_int_equal(tm_archive_tensor_count(archive), 3);
    assert_string_equal(tm_archive_tensor_at(archive, 2)->name.data, "c");
    assert_int_equal(tm_archive_tensor_at(archive, 2)->file_index, 1);
    assert_int_equal(tm_archive_read(archive, 2, 1, data, 2, NULL), TM_OK);
    assert_memory_equal(data, "\1\2", 2);
    assert_int_equal(tm_archive_metadata_count(archive), 3);   /* format once, part twice */
    assert_null(tm_archive_note_at(archive, 0));
    assert_int_equal(tm_archive_check_unchanged(archive, NULL), TM_OK);
    tm_archive_close(archive);
  }
  expect_folder(&folder, "safetensors");
  scratch_deinit(&folder);
}

/* A shard stands for its set; if the set cannot be opened, or nobody wants it, for itself. */
static void any_shard_opens_its_set(void **state) {
  (void)state;
  const tm_archive_options alone = { .is_alone = true };
  scratch folder;
  tm_archive *archive;
  assert_true(scratch_init(&folder));
  write_shards(&folder);
  assert_non_null(write_index(&folder, "{\"weight_map\":{\"c\":\"m-2.safetensors\",\"a\":\"m-1.safetensors\",\"b\":\"m-1.safetensors\"}}"));
  assert_int_equal(open_path(scratch_path(&folder, "m-2.safetensors"), NULL, &archive), TM_OK);
  assert_int_equal(tm_archive_tensor_count(archive), 3);
  assert_null(tm_archive_note_at(archive, 0));
  tm_archive_close(archive);
  assert_int_equal(open_path(scratch_path(&folder, "m-2.safetensors"), &alone, &archive), TM_OK);
  assert_int_equal(tm_archive_tensor_count(archive), 1);
  assert_null(tm_archive_note_at(archive, 0));
  tm_archive_close(archive);
  assert_non_null(write_safetensors(&folder, "other.safetensors", "{" U8("z", 4, 0, 4) "}", 4));
  assert_int_equal(open_path(scratch_path(&folder, "other.safetensors"), NULL, &archive), TM_OK);
  assert_int_equal(tm_archive_file_count(archive), 1);
  assert_null(tm_archive_note_at(archive, 0));
  tm_archive_close(archive);
  scratch_deinit(&folder);
}

static void expect_alone(scratch *folder, const char *index, const char *note) {
  tm_archive *archive;
  assert_non_null(write_index(folder, index));
  if (open_path(scratch_path(folder, "m-1.safetensors"), NULL, &archive) != TM_OK) fail_msg("%s", error.text);
  assert_int_equal(tm_archive_file_count(archive), 1);
  assert_int_equal(tm_archive_tensor_count(archive), 2);
  assert_int_equal(tm_archive_tensor_bytes(archive), 6);
  if (strstr(tm_archive_note_at(archive, 0), note) == NULL) fail_msg("not \"%s\": %s", note, tm_archive_note_at(archive, 0));
  assert_null(tm_archive_note_at(archive, 1));
  tm_archive_close(archive);
}

static void a_shard_of_a_broken_set_opens_alone(void **state) {
  (void)state;
  scratch folder;
  assert_true(scratch_init(&folder));
  write_shards(&folder);
  expect_alone(&folder, "{\"weight_map\":{\"a\":\"m-1.safetensors\",\"b\":\"m-1.safetensors\",\"x\":\"gone.safetensors\"}}",
               "is a part of a set, but was opened alone: ");
  expect_alone(&folder, "{\"weight_map\":{\"a\":\"m-1.safetensors\",\"b\":\"m-1.safetensors\",\"x\":\"gone.safetensors\"}}",
               "1 of its 2 files is missing, the first is \"gone.safetensors\"");
  expect_alone(&folder, "{\"weight_map\":{\"c\":\"m-1.safetensors\",\"d\":\"m-2.safetensors\"}}", "\"c\" should be in");
  expect_alone(&folder, "{\"weight_map\":{", "whether this file is a part of a set is not known: ");
  expect_alone(&folder, "version https://git-lfs.github.com/spec/v1\n", "whether this file is a part of a set is not known: ");
  scratch_deinit(&folder);
}

/* Of the four formats that a folder may hold one of. */
static void folders_of_one_model(void **state) {
  (void)state;
  scratch folder;
  assert_true(scratch_init(&folder));
  assert_non_null(scratch_write(&folder, "model.onnx", CONTENT("\x08\x08\x3a\x00")));
  assert_non_null(scratch_write(&folder, "model.onnx.data", "x", 1));
  expect_folder(&folder, "onnx");
  assert_int_equal(unlink(scratch_path(&folder, "model.onnx")), 0);
  assert_non_null(scratch_write(&folder, "a.npy", CONTENT("\x93NUMPY\1\0\x37\0{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}x")));
  expect_folder(&folder, "npy v1");
  assert_non_null(scratch_write(&folder, "model.onnx", CONTENT("\x08\x08\x3a\x00")));
  expect_folder(&folder, "onnx");
  assert_non_null(write_safetensors(&folder, "model.safetensors", "{}", 0));
  expect_folder(&folder, "safetensors");
  assert_int_equal(unlink(scratch_path(&folder, "model.safetensors")), 0);
  assert_non_null(scratch_write(&folder, "other.onnx", CONTENT("\x08\x08\x3a\x00")));
  expect_refused(folder.folder, TM_ERROR_NOT_FOUND, "name one of them: a.npy model.onnx other.onnx");
  scratch_deinit(&folder);
}

/* More files than the process may have open at once. */
static void more_shards_than_handles(void **state) {
  (void)state;
  const int count = 300;
  static char index[65536];
  scratch folder;
  struct rlimit old, limited;
  tm_archive *archive;
  unsigned char byte;
  int used = snprintf(index, sizeof index, "{\"weight_map\":{");
  assert_true(scratch_init(&folder));
  for (int i = 0; i < count; i++) {
    char name[64], header[128];
    (void)snprintf(name, sizeof name, "m-%03d.safetensors", i);
    (void)snprintf(header, sizeof header, "{\"t%d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", i);
    assert_non_null(write_safetensors(&folder, name, header, 1));
    used += snprintf(index + used, sizeof index - (size_t)used, "%s\"t%d\":\"%s\"", i == 0 ? "" : ",", i, name);
  }
  (void)snprintf(index + used, sizeof index - (size_t)used, "}}");
  const char *path = write_index(&folder, index);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
  limited = old;
  limited.rlim_cur = 64;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limited), 0);
  const tm_status status = open_path(path, NULL, &archive);
  for (int i = 0; status == TM_OK && i < count; i++) assert_int_equal(tm_archive_read(archive, (uint64_t)i, 0, &byte, 1, NULL), TM_OK);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
  if (status != TM_OK) fail_msg("%s", error.text);
  assert_int_equal(tm_archive_file_count(archive), count);
  tm_archive_close(archive);
  scratch_deinit(&folder);
}

static void broken_sets(void **state) {
  (void)state;
  static const struct { const char *index; tm_status status; const char *text; } cases[] = {
    { "{\"weight_map\":{\"a\":\"m-1.safetensors\",\"b\":\"m-1.safetensors\"}}", TM_OK, NULL },
    { "{\"weight_map\":{\"a\":\"m-1.safetensors\",\"b\":\"gone.safetensors\"}}", TM_ERROR_NOT_FOUND, "1 of its 2 files is missing" },
    { "{\"weight_map\":{\"a\":\"m-1.safetensors\"}}", TM_ERROR_CORRUPT, "\"b\" of" },
    { "{\"weight_map\":{\"a\":\"m-1.safetensors\",\"b\":\"m-1.safetensors\",\"d\":\"m-1.safetensors\"}}", TM_ERROR_CORRUPT, "\"d\" should be in" },
    { "{\"weight_map\":{\"a\":\"m-1.safetensors\",\"b\":\"m-1.safetensors\",\"c\":\"m-1.safetensors\",\"d\":\"m-2.safetensors\"}}",
      TM_ERROR_CORRUPT, "\"c\" should be in" },
    { "{\"weight_map\":{\"a\":\"m-1.safetensors\",\"a\":\"m-1.safetensors\"}}", TM_ERROR_CORRUPT, "\"a\" occurs twice" },
    { "{\"weight_map\":{\"a\":\"../m-1.safetensors\"}}", TM_ERROR_CORRUPT, "leads out of the folder" },
    { "{\"weight_map\":{\"a\":\"x/../../m-1.safetensors\"}}", TM_ERROR_CORRUPT, "leads out of the folder" },
    { "{\"weight_map\":{\"a\":\"\\u002e./m-1.safetensors\"}}", TM_ERROR_CORRUPT, "leads out of the folder" },
    { "{\"weight_map\":{\"a\":\"/etc/passwd\"}}", TM_ERROR_CORRUPT, "leads out of the folder" },
    { "{\"weight_map\":{\"a\":\"m-1.safetensors\\u0000x\"}}", TM_ERROR_CORRUPT, "has a NUL character in it" },
    { "{\"weight_map\":{\"a\":\"\"}}", TM_ERROR_CORRUPT, "is empty" },
    { "{\"weight_map\":{\"a\":1}}", TM_ERROR_CORRUPT, "expected a file name" },
    { "{\"weight_map\":[]}", TM_ERROR_CORRUPT, "an object as weight_map" },
    { "{\"weight_map\":{},\"weight_map\":{}}", TM_ERROR_CORRUPT, "weight_map once" },
    { "{\"weight_map\":{\"a\":\"m-1.safetensors\"", TM_ERROR_CORRUPT, "not valid JSON at offset" },
    { "{\"weight_map\":{\"a\":\"pointer.safetensors\"}}", TM_ERROR_CORRUPT, "Git LFS pointer" },
    { "{\"weight_map\":{\"a\":\"other.gguf\"}}", TM_ERROR_CORRUPT, "is a file of the format gguf" },
    { "{\"weight_map\":{\"a\":\"model.safetensors.index.json\"}}", TM_ERROR_CORRUPT, "is a file of the format safetensors index" },
    { "{\"weight_map\":{\"a\":\"m-1.safetensors\",\"b\":\"copy.safetensors\"}}", TM_ERROR_CORRUPT, "is also in" },
  };
  scratch folder;
  assert_true(scratch_init(&folder));
  write_shards(&folder);
  assert_non_null(write_safetensors(&folder, "copy.safetensors", "{" U8("a", 4, 0, 4) "," U8("b", 2, 4, 6) "}", 6));
  assert_non_null(scratch_write(&folder, "pointer.safetensors", CONTENT("version https://git-lfs.github.com/spec/v1\n")));
  assert_non_null(write_gguf(&folder, "other.gguf"));
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tm_archive *archive;
    const char *path = write_index(&folder, cases[i].index);
    const tm_status status = open_path(path, NULL, &archive);
    if (status != cases[i].status || (status != TM_OK && strstr(error.text, cases[i].text) == NULL))
      fail_msg("%s: %d %s", cases[i].index, status, error.text);
    tm_archive_close(archive);
  }
  scratch_deinit(&folder);
}

static void a_wrong_total_is_noted(void **state) {
  (void)state;
  scratch folder;
  tm_archive *archive;
  assert_true(scratch_init(&folder));
  write_shards(&folder);
  const char *path = write_index(&folder, "{\"metadata\":{\"total_size\":77},\"weight_map\":{\"a\":\"m-1.safetensors\","
                                          "\"b\":\"m-1.safetensors\"}}");
  assert_int_equal(open_path(path, NULL, &archive), TM_OK);
  assert_non_null(strstr(tm_archive_note_at(archive, 0), "total_size 77"));
  assert_null(tm_archive_note_at(archive, 1));
  tm_archive_close(archive);
  scratch_deinit(&folder);
}

static void an_index_in_memory_has_no_files(void **state) {
  (void)state;
  tm_archive *archive = NULL;
  const char text[] = "{\"weight_map\":{\"a\":\"m-1.safetensors\"}}";
  assert_int_equal(tm_archive_open_bytes(&memory, NULL, "x", text, sizeof text - 1, &archive, NULL), TM_ERROR_ARGUMENT);
}

/* ------------------------------------------------------------------------------------------------ changing files ---- */

#define BIG (UINT64_C(1) << 20)

static const char *write_big(const char *name) {
  char header[128];
  (void)snprintf(header, sizeof header, "{\"a\":{\"dtype\":\"U8\",\"shape\":[%llu],\"data_offsets\":[0,%llu]}}",
                 (unsigned long long)BIG, (unsigned long long)BIG);
  return write_safetensors(&files, name, header, BIG);
}

static void truncated_while_mapped(void **state) {
  (void)state;
  tm_archive *archive;
  const tm_archive_options options = { .map_files = true };
  const char *path = write_big("mapped.safetensors");
  assert_int_equal(open_path(path, &options, &archive), TM_OK);
  const volatile unsigned char *bytes = tm_archive_mapped(archive, 0);
  assert_non_null(bytes);
  assert_int_equal(bytes[BIG - 1], 0xff);
  assert_int_equal(truncate(path, 8192), 0);
  uint64_t sum = 0;
  for (uint64_t i = 0; i < BIG; i++) sum += bytes[i];
  assert_true(sum > 0);
  assert_int_equal(tm_archive_check_tensor(archive, 0, &error), TM_ERROR_CHANGED);
  assert_non_null(strstr(error.text, "at offset 8192 of"));
  assert_int_equal(tm_archive_check_unchanged(archive, &error), TM_ERROR_CHANGED);
  tm_archive_close(archive);
}

static void truncated_while_read(void **state) {
  (void)state;
  tm_archive *archive;
  static unsigned char data[BIG];
  const char *path = write_big("read.safetensors");
  assert_int_equal(open_path(path, NULL, &archive), TM_OK);
  assert_null(tm_archive_mapped(archive, 0));
  assert_int_equal(truncate(path, 8192), 0);
  assert_int_equal(tm_archive_read(archive, 0, 0, data, BIG, &error), TM_ERROR_CHANGED);
  assert_non_null(strstr(error.text, "ends at offset 8192"));
  tm_archive_close(archive);
}

/* Case of real life: a 24 GB model under strict limits; the mapping fails, reading does not. */
static void mapping_may_fail(void **state) {
  (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  print_message("skipped: a sanitizer needs the whole address space\n");
  skip();
#else
  char header[128];
  const uint64_t bytes = UINT64_C(24) << 30;
  const int length = snprintf(header, sizeof header, "{\"a\":{\"dtype\":\"U8\",\"shape\":[%llu],\"data_offsets\":[0,%llu]}}",
                              (unsigned long long)bytes, (unsigned long long)bytes);
  made_file made = make_safetensors(header, (uint64_t)length, 0);
  const char *path = scratch_write_sparse(&files, "huge.safetensors", made.bytes, made.size, made.size + bytes);
  free(made.bytes);
  struct rlimit old, limited;
  tm_archive *archive;
  const tm_archive_options options = { .map_files = true };
  assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
  limited = old;
  limited.rlim_cur = (rlim_t)4 << 30;
  assert_int_equal(setrlimit(RLIMIT_AS, &limited), 0);
  const tm_status status = open_path(path, &options, &archive);
  assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
  assert_int_equal(status, TM_OK);
  assert_null(tm_archive_mapped(archive, 0));
  unsigned char byte = 1;
  assert_int_equal(tm_archive_read(archive, 0, bytes - 1, &byte, 1, NULL), TM_OK);
  assert_int_equal(byte, 0);
  tm_archive_close(archive);
#endif
}

/* ------------------------------------------------------------------------------------------------------ threads ---- */

static void *read_all(void *argument) {
  const tm_archive *archive = argument;
  unsigned char data[4];
  uintptr_t failures = 0;
  for (int round = 0; round < 500; round++) {
    for (uint64_t i = 0; i < tm_archive_tensor_count(archive); i++) {
      const tm_archive_tensor *tensor = tm_archive_tensor_at(archive, i);
      uint64_t found;
      if (!tm_archive_find(archive, tensor->name.data, tensor->name.length, &found) || found != i) failures++;
      if (tm_archive_read(archive, i, 0, data, tensor->bytes, NULL) != TM_OK || data[1] != (i == 1 ? 5 : 1)) failures++;
      if (tm_archive_check_tensor(archive, i, NULL) != TM_OK) failures++;
    }
  }
  return (void *)failures;
}

static void many_threads_read(void **state) {
  (void)state;
  scratch folder;
  tm_archive *archive;
  pthread_t threads[4];
  const tm_archive_options options = { .max_open_files = 1 };
  assert_true(scratch_init(&folder));
  write_shards(&folder);
  const char *path = write_index(&folder, "{\"weight_map\":{\"a\":\"m-1.safetensors\",\"b\":\"m-1.safetensors\",\"c\":\"m-2.safetensors\"}}");
  assert_int_equal(open_path(path, &options, &archive), TM_OK);
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, read_all, archive), 0);
  for (int i = 0; i < 4; i++) {
    void *failures;
    assert_int_equal(pthread_join(threads[i], &failures), 0);
    assert_null(failures);
  }
  tm_archive_close(archive);
  scratch_deinit(&folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(other_files_are_named), cmocka_unit_test(no_file_at_all), cmocka_unit_test(folders),
    cmocka_unit_test(sharded_sets), cmocka_unit_test(any_shard_opens_its_set), cmocka_unit_test(a_shard_of_a_broken_set_opens_alone),
    cmocka_unit_test(folders_of_one_model), cmocka_unit_test(more_shards_than_handles), cmocka_unit_test(broken_sets), cmocka_unit_test(a_wrong_total_is_noted),
    cmocka_unit_test(an_index_in_memory_has_no_files), cmocka_unit_test(truncated_while_mapped),
    cmocka_unit_test(truncated_while_read), cmocka_unit_test(mapping_may_fail), cmocka_unit_test(many_threads_read),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
