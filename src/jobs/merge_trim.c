/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/merge_trim.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "jobs/merge_tiles.h"
#include "ops/one_pass.h"
#include "tensor/codec.h"

/* Whole blocks of any format. */
#define DECODED_ELEMENTS 512u
#define HIGHEST_BIT 30

uint64_t tm_merge_trim_kept(uint64_t count, double density) {
  const double kept = ceil(density * (double)count * (1 - 0x1p-50));
  return tm_min_u64(count, kept < 1 ? 1 : (uint64_t)kept);
}

/* Where even the threshold is no number, nothing that is one stays. */
double tm_merge_trim_value(uint32_t bits) {
  float threshold;
  memcpy(&threshold, &bits, sizeof threshold);
  return isnan(threshold) ? (double)INFINITY : (double)threshold;
}

static void decode(tm_merge_elements input, uint64_t first, uint64_t elements, double *out_values) {
  const unsigned char *data = (const unsigned char *)input.data + tm_merge_bytes_of(input.format, first);
  tm_codec_find(input.format)->decode(data, elements, out_values);
}

static uint64_t count_from(const uint32_t *magnitudes, uint64_t elements, uint32_t least) {
  uint64_t count = 0;
  for (uint64_t i = 0; i < elements; i++) count += magnitudes[i] >= least;
  return count;
}

double tm_merge_trim_threshold(tm_merge_elements x, tm_merge_elements base, uint64_t elements, uint64_t kept) {
  uint32_t magnitudes[TM_MERGE_TRIM_SMALL], threshold = 0;
  double ours[DECODED_ELEMENTS], theirs[DECODED_ELEMENTS];
  for (uint64_t first = 0; first < elements; first += DECODED_ELEMENTS) {
    const uint64_t count = tm_min_u64(DECODED_ELEMENTS, elements - first);
    decode(x, first, count, ours);
    decode(base, first, count, theirs);
    for (uint64_t i = 0; i < count; i++) magnitudes[first + i] = tm_magnitude_bits(ours[i], theirs[i]);
  }
  for (int bit = HIGHEST_BIT; bit >= 0; bit--) {
    const uint32_t higher = threshold | UINT32_C(1) << bit;
    if (count_from(magnitudes, elements, higher) >= kept) threshold = higher;
  }
  return tm_merge_trim_value(threshold);
}
