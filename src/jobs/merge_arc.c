/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/merge_arc.h"

#include <math.h>

#include "tensor/codec.h"

#define SMALLEST_SQUARE 0x1p-900
#define LARGEST_SQUARE  0x1p+1000
#define SHIFT 600

tm_merge_arc_shift tm_merge_arc_find_shift(double square) {
  if (square < SMALLEST_SQUARE) return SHIFT;
  return square <= LARGEST_SQUARE ? 0 : -SHIFT;
}

static bool is_narrow(const tm_merge_settings *settings, const tm_merge_input *input) {
  const tm_archive_tensor *tensor = tm_archive_tensor_at(settings->sources[input->source].archive, input->tensor);
  const tm_format_info *info = tm_format_find(tensor->format);
  return info->kind == TM_KIND_FLOAT && info->block_bytes <= 2;
}

uint32_t tm_merge_arc_format(const tm_merge_settings *settings, const tm_merge_item *item, bool is_scaled) {
  if (is_scaled) return TM_FORMAT_F64;
  const bool are_narrow = is_narrow(settings, &item->inputs[0]) && is_narrow(settings, &item->inputs[1]);
  return are_narrow ? TM_FORMAT_F32 : TM_FORMAT_NONE;
}

uint64_t tm_merge_arc_bytes(const tm_merge_settings *settings, const tm_merge_item *item, uint64_t elements) {
  if (item->is_wide) return 2 * elements * sizeof(double);
  return tm_merge_arc_format(settings, item, false) == TM_FORMAT_NONE ? 0 : 2 * elements * sizeof(float);
}

void tm_merge_arc_scale(uint32_t format, const void *data, uint64_t elements, tm_merge_arc_shift shift, double *out_values) {
  const double factor = ldexp(1, shift);
  tm_codec_find(format)->decode(data, elements, out_values);
  for (uint64_t i = 0; i < elements; i++) out_values[i] *= factor;
}
