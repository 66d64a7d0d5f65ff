/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor with its axes reversed, read in parts: the right elements, with work for those alone, until it is cancelled. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/scratch.h"
#include "jobs/transposed_view.h"

#define MOST_RANK 5u

typedef struct stored {
  scratch        files;
  tm_memory      memory;
  tm_archive    *archive;
  uint32_t       rank;
  uint64_t       dims[MOST_RANK];
  uint64_t       elements;
  uint32_t       element_bytes;
  unsigned char *data;
} stored;

static const char *type_of(uint32_t element_bytes) {
  switch (element_bytes) {
    case 1: return "U8";
    case 2: return "U16";
    case 4: return "U32";
    default: return "U64";
  }
}

static uint64_t write_header(const stored *s, char *out, size_t capacity) {
  char dims[128] = "";
  for (uint32_t i = 0; i < s->rank; i++) {
    const size_t used = strlen(dims);
    (void)snprintf(dims + used, sizeof dims - used, "%s%" PRIu64, i == 0 ? "" : ",", s->dims[i]);
  }
  return (uint64_t)snprintf(out, capacity, "{\"t\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[0,%" PRIu64 "]}}",
                            type_of(s->element_bytes), dims, s->elements * s->element_bytes);
}

/* dims end with 0. */
static void open_stored(stored *s, const uint64_t *dims, uint32_t element_bytes, bool is_mapped) {
  *s = (stored){ .element_bytes = element_bytes, .elements = 1 };
  for (; dims[s->rank] != 0; s->rank++) s->elements *= s->dims[s->rank] = dims[s->rank];
  char header[512];
  const uint64_t length = write_header(s, header, sizeof header), bytes = 8 + length + s->elements * element_bytes;
  unsigned char *whole = malloc(bytes);
  assert_non_null(whole);
  for (int i = 0; i < 8; i++) whole[i] = (unsigned char)(length >> (8 * i));
  memcpy(whole + 8, header, length);
  for (uint64_t i = 8 + length; i < bytes; i++) whole[i] = (unsigned char)(i * UINT64_C(0x9e3779b97f4a7c15) >> 40);
  assert_true(scratch_init(&s->files));
  tm_memory_init(&s->memory, 0);
  const tm_archive_options options = { .map_files = is_mapped };
  tm_error error = { .struct_size = sizeof error };
  const char *path = scratch_write(&s->files, "t.safetensors", whole, bytes);
  if (tm_archive_open(&s->memory, &options, path, &s->archive, &error) != TM_OK) fail_msg("%s", error.text);
  assert_int_equal(tm_archive_mapped(s->archive, 0) != NULL, is_mapped);
  memmove(whole, whole + 8 + length, s->elements * element_bytes);
  s->data = whole;
}

static void close_stored(stored *s) {
  tm_archive_close(s->archive);
  assert_int_equal(atomic_load(&s->memory.used_bytes), 0);
  scratch_deinit(&s->files);
  free(s->data);
}

/* Element `at` of the transpose, by its index in each axis. */
static const unsigned char *expected(const stored *s, uint64_t at) {
  uint64_t index[MOST_RANK], place = 0;
  for (uint32_t i = 0; i < s->rank; i++) {
    index[i] = at % s->dims[i];
    at /= s->dims[i];
  }
  for (uint32_t i = 0; i < s->rank; i++) place = place * s->dims[i] + index[i];
  return s->data + place * s->element_bytes;
}

static void expect_part(const stored *s, uint64_t begin, uint64_t count) {
  unsigned char *found = malloc(count * s->element_bytes);
  tm_error error = { .struct_size = sizeof error };
  assert_non_null(found);
  if (tm_transposed_read(s->archive, 0, begin, count, NULL, found, &error) != TM_OK) fail_msg("%s", error.text);
  for (uint64_t i = 0; i < count; i++)
    if (memcmp(found + i * s->element_bytes, expected(s, begin + i), s->element_bytes) != 0)
      fail_msg("element %" PRIu64 " of [%" PRIu64 ", %" PRIu64 ")", i, begin, begin + count);
  free(found);
}

static void parts_of_any_shape(void **state) {
  (void)state;
  static const uint64_t shapes[][MOST_RANK + 1] = { { 2, 3 }, { 37, 5 }, { 1, 4, 1, 6 }, { 2, 3, 4 }, { 7, 2, 5 }, { 2, 61, 2 }, { 61, 2, 2 },
                                                    { 3, 2, 4, 5 }, { 2, 2, 2, 2, 2 }, { 5, 3, 1, 4, 7 }, { 2, 40, 300 }, { 3, 9000 }, { 2, 2, 5000 } };
  uint64_t random = 1;
  for (size_t i = 0; i < 4 * sizeof shapes / sizeof shapes[0]; i++) {
    stored s;
    open_stored(&s, shapes[i / 4], 1u << i % 4, false);
    stored mapped;
    open_stored(&mapped, shapes[i / 4], 1u << i % 4, true);
    for (int k = 0; k < 40; k++) {
      random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
      const uint64_t begin = (random >> 33) % s.elements, left = s.elements - begin;
      const uint64_t count = 1 + (random >> 13) % (k % 2 == 0 || left < 20 ? left : 20);
      expect_part(&s, begin, count);
      expect_part(&mapped, begin, count);
    }
    expect_part(&s, 0, s.elements);
    expect_part(&mapped, 0, s.elements);
    close_stored(&s);
    close_stored(&mapped);
  }
}

/* Were the work for a part that for its row, this would take hours. */
static void a_small_part_is_little_work(void **state) {
  (void)state;
  static const uint64_t shapes[][MOST_RANK + 1] = { { 2, 1 << 19, 2 }, { 1 << 18, 2, 2, 2 }, { 2, 2, 1 << 18, 2 }, { 1 << 20, 2 } };
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    stored s;
    open_stored(&s, shapes[i], 1, true);
    unsigned char found[3];
    for (uint64_t begin = 0; begin + 3 <= s.elements; begin += 3) {
      if (begin < s.elements / 2 && begin + 3 > s.elements / 2) continue;       /* of two rows */
      assert_int_equal(tm_transposed_read(s.archive, 0, begin, 3, NULL, found, NULL), TM_OK);
      assert_memory_equal(found, expected(&s, begin), 1);
    }
    close_stored(&s);
  }
}

static void it_looks_whether_it_is_cancelled(void **state) {
  (void)state;
  stored s;
  open_stored(&s, (const uint64_t[]){ 2, 4096, 2, 0 }, 1, true);
  unsigned char *found = calloc(1, s.elements);
  assert_non_null(found);
  const _Atomic uint32_t cancelled = 1;
  assert_int_equal(tm_transposed_read(s.archive, 0, 0, s.elements, &cancelled, found, NULL), TM_ERROR_CANCELLED);
  for (uint64_t i = 0; i < s.elements; i++) assert_int_equal(found[i], 0);      /* nothing was done after it */
  free(found);
  close_stored(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(parts_of_any_shape),
    cmocka_unit_test(a_small_part_is_little_work),
    cmocka_unit_test(it_looks_whether_it_is_cancelled),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
