/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/merge_equals.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/checked.h"
#include "jobs/merge_tiles.h"
#include "tensor/codec.h"

/* Whole blocks of any format. */
#define STEP_ELEMENTS 512u

static void decode(uint32_t format, const void *data, uint64_t first, uint64_t elements, double *out_values) {
  tm_codec_find(format)->decode((const unsigned char *)data + tm_merge_bytes_of(format, first), elements, out_values);
}

static bool are_alike(const double *a, const double *b) { return memcmp(a, b, sizeof *a) == 0 && !isnan(*a); }

/* Marks of those that are not alike are cleared; whether any is left. */
static bool compare(const double *ours, const double *theirs, uint64_t elements, bool *are_equal) {
  bool any = false;
  for (uint64_t i = 0; i < elements; i++) {
    are_equal[i] = are_equal[i] && are_alike(&ours[i], &theirs[i]);
    any = any || are_equal[i];
  }
  return any;
}

static void keep(const tm_merge_elements *inputs, uint32_t input_count, uint64_t first, uint64_t elements, uint32_t format,
                 void *data) {
  double ours[STEP_ELEMENTS], others[STEP_ELEMENTS];
  bool are_equal[STEP_ELEMENTS], any = true;
  for (uint64_t i = 0; i < elements; i++) are_equal[i] = true;
  decode(inputs[0].format, inputs[0].data, first, elements, ours);
  for (uint32_t i = 1; i < input_count && any; i++) {
    decode(inputs[i].format, inputs[i].data, first, elements, others);
    any = compare(ours, others, elements, are_equal);
  }
  if (!any) return;
  decode(format, data, first, elements, others);
  for (uint64_t i = 0; i < elements; i++)
    if (are_equal[i]) others[i] = ours[i];
  tm_codec_find(format)->encode(others, elements, (unsigned char *)data + tm_merge_bytes_of(format, first));
}

void tm_merge_equals_keep(const tm_merge_elements *inputs, uint32_t input_count, uint64_t elements, uint32_t format, void *data) {
  for (uint64_t first = 0; first < elements; first += STEP_ELEMENTS)
    keep(inputs, input_count, first, tm_min_u64(STEP_ELEMENTS, elements - first), format, data);
}
