/* SPDX-License-Identifier: Apache-2.0 */
/* How often which magnitude of a difference occurs. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "ops/element_reader.h"
#include "ops/one_pass.h"

#define NAN_BITS UINT32_C(0x7fc00000)
#define LOW_MASK ((UINT32_C(1) << TM_MAGNITUDE_LOW_BITS) - 1)

uint32_t tm_magnitude_bits(double x, double base) {
  const float magnitude = x == base ? 0 : fabsf((float)(x - base));
  uint32_t bits;
  memcpy(&bits, &magnitude, sizeof bits);
  return isnan(magnitude) ? NAN_BITS : bits;
}

/* The words where they lie: too many for a stack, and at any distance. */
typedef struct word_row {
  char   *address;
  int64_t step_bytes;
} word_row;

static void put_word(const word_row *row, uint32_t index, uint64_t word) {
  memcpy(row->address + (int64_t)index * row->step_bytes, &word, sizeof word);
}

static void count_one(const word_row *row, uint32_t index) {
  uint64_t word;
  memcpy(&word, row->address + (int64_t)index * row->step_bytes, sizeof word);
  put_word(row, index, word + 1);
}

static void count(const tm_magnitudes_attributes *attributes, uint32_t bits, const word_row *row) {
  const uint32_t upper = bits >> TM_MAGNITUDE_LOW_BITS;
  if (!attributes->within) count_one(row, upper);
  else if (upper == attributes->upper) count_one(row, bits & LOW_MASK);
}

void tm_magnitudes_combine(uint64_t *words, const uint64_t *part) {
  for (uint32_t i = 0; i < TM_MAGNITUDE_BINS; i++) words[i] += part[i];
}

void tm_magnitudes_compute(const tm_operation *operation, void *const *pointers) {
  double x[TM_READER_ELEMENTS], base[TM_READER_ELEMENTS];
  const word_row row = { pointers[2], operation->operands[2].strides_bytes[0] };
  tm_element_reader readers[2];
  for (uint32_t i = 0; i < 2; i++) tm_element_reader_init(&readers[i], &operation->operands[i], pointers[i]);
  for (uint32_t i = 0; i < TM_MAGNITUDE_BINS; i++) put_word(&row, i, 0);
  for (uint64_t left = operation->operands[0].element_count, n; left > 0; left -= n) {
    n = tm_min_u64(left, TM_READER_ELEMENTS);
    tm_element_reader_next(&readers[0], n, x, NULL);
    tm_element_reader_next(&readers[1], n, base, NULL);
    for (uint64_t i = 0; i < n; i++) count(operation->attributes, tm_magnitude_bits(x[i], base[i]), &row);
  }
}
