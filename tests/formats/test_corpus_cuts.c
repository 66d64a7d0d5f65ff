/* SPDX-License-Identifier: Apache-2.0 */
/* The valid seeds of the fuzz targets, cut at every byte and opened with ever so little memory. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/error.h"
#include "formats/archive.h"
#include "formats/scratch.h"

typedef void (*use_fn)(const char *name, const unsigned char *bytes, uint64_t size);

static tm_status open_prefix(const unsigned char *bytes, uint64_t size, bool is_lenient, uint64_t limit, uint64_t *out_incomplete) {
  const tm_archive_options options = { .allow_incomplete = is_lenient };
  tm_memory memory;
  tm_archive *archive = NULL;
  tm_error error = TM_ERROR_INIT;
  unsigned char *copy = malloc((size_t)size + 1);       /* of its own, so that a sanitizer sees what lies beyond */
  assert_non_null(copy);
  memcpy(copy, bytes, (size_t)size);
  unsigned char *exact = realloc(copy, size == 0 ? 1 : (size_t)size);
  tm_memory_init(&memory, limit);
  const tm_status status = tm_archive_open_bytes(&memory, &options, "seed", exact, size, &archive, &error);
  if (status == TM_OK) *out_incomplete = tm_archive_incomplete_count(archive);
  else assert_true(error.text[0] != '\0');
  tm_archive_close(archive);
  assert_int_equal(memory.used_bytes, 0);
  free(exact);
  return status;
}

/* Those that open: some are valid only up to what they are about. */
static uint64_t use_valid(const char *kind, use_fn use) {
  char folder[512], path[1024];
  uint64_t used = 0;
  (void)snprintf(folder, sizeof folder, "%s/fuzz/corpus/%s", TM_SOURCE_DIR, kind);
  DIR *entries = opendir(folder);
  assert_non_null(entries);
  for (const struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
    uint64_t size = 0, incomplete;
    if (strncmp(entry->d_name, "valid", 5) != 0) continue;
    (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    unsigned char *bytes = scratch_slurp(path, &size);
    assert_non_null(bytes);
    const bool opens = open_prefix(bytes, size, false, 0, &incomplete) == TM_OK;
    if (opens) use(entry->d_name, bytes, size);
    free(bytes);
    used += opens;
  }
  (void)closedir(entries);
  return used;
}

static void cut_everywhere(const char *name, const unsigned char *bytes, uint64_t size) {
  uint64_t incomplete = 0;
  for (uint64_t cut = 0; cut <= size; cut++) {
    const tm_status strict = open_prefix(bytes, cut, false, 0, &incomplete);
    if (strict != TM_OK && strict != TM_ERROR_CORRUPT) fail_msg("%s cut at %d: %d", name, (int)cut, strict);
    if (strict == TM_OK) assert_int_equal(incomplete, 0);
    const tm_status lenient = open_prefix(bytes, cut, true, 0, &incomplete);
    if (lenient != TM_OK && lenient != TM_ERROR_CORRUPT) fail_msg("%s cut at %d: %d", name, (int)cut, lenient);
    /* What opens only because incomplete tensors are allowed has some. */
    if (strict != TM_OK && lenient == TM_OK && incomplete == 0) fail_msg("%s cut at %d: opens without a reason", name, (int)cut);
    if (strict == TM_OK && lenient != TM_OK) fail_msg("%s cut at %d: only the strict one opens", name, (int)cut);
  }
}

static void starve(const char *name, const unsigned char *bytes, uint64_t size) {
  uint64_t incomplete;
  tm_status status = TM_ERROR_NO_MEMORY;
  for (uint64_t limit = 1; status != TM_OK; limit += 64 + limit / 64) {
    status = open_prefix(bytes, size, false, limit, &incomplete);
    if (status != TM_OK && status != TM_ERROR_NO_MEMORY) fail_msg("%s with %d bytes: %d", name, (int)limit, status);
    assert_true(limit < 4000000);
  }
}

static const char *const kinds[] = { "gguf", "npy", "onnx", "safetensors" };

static void seeds_are_cut_at_every_byte(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) assert_true(use_valid(kinds[i], cut_everywhere) >= 8);
}

static void memory_may_run_out_anywhere(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) assert_true(use_valid(kinds[i], starve) >= 8);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(seeds_are_cut_at_every_byte), cmocka_unit_test(memory_may_run_out_anywhere) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
