/* SPDX-License-Identifier: Apache-2.0 */
/* A content's hash: the same in any order of its pieces, another one for anything else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/content_hash.h"

#define PIECES 4
#define PIECE_BYTES 1000

static void fill(unsigned char *data) {
  for (uint32_t i = 0; i < PIECES * PIECE_BYTES; i++) data[i] = (unsigned char)(i * 2654435761u >> 24);
}

static tm_content_hash hash_of(const unsigned char *data) {
  tm_content_hash hash = { 0, 0 };
  for (uint64_t i = 0; i < PIECES; i++) tm_content_hash_add(&hash, i, data + i * PIECE_BYTES, PIECE_BYTES);
  return hash;
}

static int equal(const tm_content_hash *a, const tm_content_hash *b) { return a->low == b->low && a->high == b->high; }

static void order_does_not_matter(void **state) {
  (void)state;
  unsigned char data[PIECES * PIECE_BYTES];
  fill(data);
  const tm_content_hash expected = hash_of(data);
  tm_content_hash parts[2] = { { 0, 0 }, { 0, 0 } };
  for (uint64_t i = PIECES; i-- > 0;) tm_content_hash_add(&parts[i % 2], i, data + i * PIECE_BYTES, PIECE_BYTES);
  tm_content_hash_merge(&parts[0], &parts[1]);
  assert_true(equal(&parts[0], &expected));
}

static void every_bit_and_place_matters(void **state) {
  (void)state;
  unsigned char data[PIECES * PIECE_BYTES], other[PIECES * PIECE_BYTES];
  fill(data);
  const tm_content_hash expected = hash_of(data);
  for (uint32_t bit = 0; bit < 8 * sizeof data; bit += 37) {
    memcpy(other, data, sizeof data);
    other[bit / 8] ^= (unsigned char)(1u << bit % 8);
    const tm_content_hash found = hash_of(other);
    assert_false(equal(&found, &expected));
  }
  memcpy(other, data + PIECE_BYTES, PIECE_BYTES);
  memcpy(other + PIECE_BYTES, data, PIECE_BYTES);
  memcpy(other + 2 * PIECE_BYTES, data + 2 * PIECE_BYTES, 2 * PIECE_BYTES);
  const tm_content_hash swapped = hash_of(other);
  assert_false(equal(&swapped, &expected));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(order_does_not_matter),
    cmocka_unit_test(every_bit_and_place_matters),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
