/* SPDX-License-Identifier: Apache-2.0 */
/* Real files, written by other programs, against what an independent reader (tests/oracle/read_model.py) says of them. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/error.h"
#include "formats/archive.h"
#include "formats/scratch.h"

typedef struct fixture_row {
  const char *path;
  const char *format;
  uint64_t    tensor_count;
  uint64_t    needed_bytes;     /* without padding at the end; 0: all */
} fixture_row;

static const fixture_row fixtures[] = {
  { "fixtures/gguf/empty.gguf", "gguf v3", 0, 283 },
  { "fixtures/gguf/single.gguf", "gguf v3", 1, 400 },
  { "fixtures/gguf/single_v2.gguf", "gguf v2", 1, 400 },
  { "fixtures/gguf/multiple.gguf", "gguf v3", 3, 624 },
  { "fixtures/safetensors/empty.safetensors", "safetensors", 0, 0 },
  { "fixtures/safetensors/single.safetensors", "safetensors", 1, 0 },
  { "fixtures/safetensors/multiple.safetensors", "safetensors", 3, 0 },
  { "silero-vad/silero_vad_16k.safetensors", "safetensors", 15, 0 },
  { "gguf-vocab/ggml-vocab-bert-bge.gguf", "gguf v3", 0, 0 },
};

#define FIXTURE_COUNT (sizeof fixtures / sizeof fixtures[0])

static tm_memory memory;

static const char *full_path(const fixture_row *fixture) {
  static char path[1024];
  (void)snprintf(path, sizeof path, "%s/%s", TM_TEST_DATA, fixture->path);
  return path;
}

/* ---------------------------------------------------------------------------- the same facts, in the oracle's words ---- */

typedef struct text {
  char    *bytes;
  uint64_t length;
  uint64_t capacity;
} text;

static void append(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void append(text *t, const char *format, ...) {
  va_list arguments;
  for (;;) {
    va_start(arguments, format);
    const uint64_t room = t->capacity - t->length;
    const int length = vsnprintf(t->bytes == NULL ? NULL : t->bytes + t->length, (size_t)room, format, arguments);
    va_end(arguments);
    if ((uint64_t)length < room) {
      t->length += (uint64_t)length;
      return;
    }
    t->capacity = 2 * (t->capacity + (uint64_t)length) + 64;
    t->bytes = realloc(t->bytes, (size_t)t->capacity);
  }
}

static uint32_t adler32(const unsigned char *bytes, uint64_t count) {
  uint32_t a = 1, b = 0;
  for (uint64_t i = 0; i < count; i++) {
    a = (a + bytes[i]) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

static void append_value(text *t, const tm_metadata_value *value) {
  tm_string string;
  uint64_t natural;
  int64_t integer;
  double number;
  if (value->type == TM_METADATA_ARRAY) {
    text joined = { NULL, 0, 0 };
    tm_metadata_iterator iterator;
    tm_metadata_value element;
    append(&joined, "%s", "");
    tm_metadata_iterate(value, &iterator);
    for (uint64_t i = 0; tm_metadata_next(&iterator, &element); i++) {
      if (i > 0) append(&joined, ",");
      append_value(&joined, &element);
    }
    append(t, "%" PRIu32, adler32((const unsigned char *)joined.bytes, joined.length));
    free(joined.bytes);
  } else if (tm_metadata_as_string(value, &string)) {
    for (uint64_t i = 0; i < string.length; i++) append(t, "%02x", (unsigned char)string.data[i]);
  } else if (tm_metadata_as_u64(value, &natural)) {
    append(t, "%" PRIu64, natural);
  } else if (tm_metadata_as_i64(value, &integer)) {
    append(t, "%" PRId64, integer);
  } else if (tm_metadata_as_f64(value, &number)) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    append(t, "%016" PRIx64, bits);
  }
}

static void append_tensor(text *t, const tm_archive *archive, uint64_t index) {
  const tm_archive_tensor *tensor = tm_archive_tensor_at(archive, index);
  unsigned char *data = malloc((size_t)tensor->bytes + 1);
  assert_int_equal(tm_archive_read(archive, index, 0, data, tensor->bytes, NULL), TM_OK);
  const void *mapped = tm_archive_mapped(archive, index);
  if (mapped != NULL) assert_memory_equal(mapped, data, (size_t)tensor->bytes);
  append(t, "tensor\t%s\t%s\t", tensor->name.data, tensor->type_name);
  for (uint32_t i = 0; i < tensor->rank; i++) append(t, "%s%" PRIu64, i == 0 ? "" : ",", tensor->dims[i]);
  append(t, "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu32 "\n", tensor->bytes, tensor->offset, adler32(data, tensor->bytes));
  free(data);
}

static text describe(const tm_archive *archive) {
  text t = { NULL, 0, 0 };
  append(&t, "%s", "");
  for (uint64_t i = 0; i < tm_archive_metadata_count(archive); i++) {
    const tm_metadata *metadata = tm_archive_metadata_at(archive, i);
    char type[64];
    tm_metadata_describe_type(&metadata->value, type, sizeof type);
    append(&t, "meta\t%s\t%s\t", metadata->key.data, type);
    append_value(&t, &metadata->value);
    append(&t, "\n");
  }
  for (uint64_t i = 0; i < tm_archive_tensor_count(archive); i++) append_tensor(&t, archive, i);
  return t;
}

/* What the oracle says, a line that repeats the one before left out: these writers give one key twice. */
static text ask_oracle(const char *path) {
  char command[2200], line[8192], before[8192] = "";
  text t = { NULL, 0, 0 };
  append(&t, "%s", "");
  (void)snprintf(command, sizeof command, "python3 '%s/tests/oracle/read_model.py' '%s'", TM_SOURCE_DIR, path);
  FILE *oracle = popen(command, "r");
  assert_non_null(oracle);
  while (fgets(line, sizeof line, oracle) != NULL) {
    if (strcmp(line, before) != 0) append(&t, "%s", line);
    (void)snprintf(before, sizeof before, "%s", line);
  }
  assert_int_equal(pclose(oracle), 0);
  return t;
}

static void both_readers_agree(void **state) {
  (void)state;
  if (system("python3 -c '' >/dev/null 2>&1") != 0) {
    print_message("skipped: there is no python3 to compare with\n");
    skip();
  }
  for (size_t i = 0; i < FIXTURE_COUNT; i++) {
    const char *path = full_path(&fixtures[i]);
    const text expected = ask_oracle(path);
    for (int maps = 0; maps < 2; maps++) {
      const tm_archive_options options = { .map_files = maps == 1 };
      tm_archive *archive = NULL;
      tm_error error = TM_ERROR_INIT;
      if (tm_archive_open(&memory, &options, path, &archive, &error) != TM_OK) fail_msg("%s", error.text);
      assert_string_equal(tm_archive_format_name(archive), fixtures[i].format);
      assert_int_equal(tm_archive_tensor_count(archive), fixtures[i].tensor_count);
      const text found = describe(archive);
      assert_string_equal(found.bytes, expected.bytes);
      assert_int_equal(tm_archive_check_unchanged(archive, NULL), TM_OK);
      tm_archive_close(archive);
      free(found.bytes);
    }
    free(expected.bytes);
  }
}

/* Small ones at every byte, larger ones at a few hundred places. */
static void truncated_fixtures_are_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < FIXTURE_COUNT; i++) {
    uint64_t size = 0;
    unsigned char *bytes = scratch_slurp(full_path(&fixtures[i]), &size);
    assert_non_null(bytes);
    const uint64_t enough = fixtures[i].needed_bytes == 0 ? size : fixtures[i].needed_bytes;
    const uint64_t step = size < 4096 ? 1 : size / 211;
    for (uint64_t cut = 0; cut < size; cut += step) {
      unsigned char *prefix = malloc((size_t)cut + (cut == 0));
      tm_archive *archive = NULL;
      tm_error error = TM_ERROR_INIT;
      memcpy(prefix, bytes, (size_t)cut);
      const tm_status status = tm_archive_open_bytes(&memory, NULL, fixtures[i].path, prefix, cut, &archive, &error);
      if (status != (cut >= enough ? TM_OK : TM_ERROR_CORRUPT)) fail_msg("%s cut at %" PRIu64 ": %d", fixtures[i].path, cut, status);
      tm_archive_close(archive);
      free(prefix);
    }
    free(bytes);
  }
}

/* One byte wrong anywhere in a header: an error or another reading, but never a crash. */
static void damaged_fixtures_do_no_harm(void **state) {
  (void)state;
  static const unsigned char wrong[] = { 0x00, 0xff, 0x80, 0x7f, '"' };
  for (size_t i = 0; i < FIXTURE_COUNT; i++) {
    uint64_t size = 0;
    unsigned char *bytes = scratch_slurp(full_path(&fixtures[i]), &size);
    assert_non_null(bytes);
    for (uint64_t at = 0; size < 4096 && at < size; at++) {
      for (size_t w = 0; w < sizeof wrong; w++) {
        tm_archive *archive = NULL;
        const unsigned char right = bytes[at];
        bytes[at] = wrong[w];
        const tm_status status = tm_archive_open_bytes(&memory, NULL, fixtures[i].path, bytes, size, &archive, NULL);
        assert_int_equal(status == TM_OK, archive != NULL);
        tm_archive_close(archive);
        bytes[at] = right;
      }
    }
    free(bytes);
  }
}

static int set_up(void **state) {
  (void)state;
  tm_memory_init(&memory, 0);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  return memory.used_bytes == 0 ? 0 : -1;
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(both_readers_agree), cmocka_unit_test(truncated_fixtures_are_refused),
    cmocka_unit_test(damaged_fixtures_do_no_harm),
  };
  if (access(full_path(&fixtures[0]), R_OK) != 0) {
    (void)fprintf(stderr, "skipped: there are no real files in %s\n", TM_TEST_DATA);
    return 77;
  }
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
