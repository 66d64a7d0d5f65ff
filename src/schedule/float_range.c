/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/float_range.h"

#include <math.h>
#include <stddef.h>

#include "tensormorph/types.h"

/* What a float format holds: significant bits, the exponent of its lowest bit, and that of its largest value. */
typedef struct float_range {
  uint32_t format;
  int32_t  precision;
  int32_t  lowest_bit;
  int32_t  largest;
} float_range;

static const float_range ranges[] = {
  { TM_FORMAT_F64, 53, -1074, 1023 }, { TM_FORMAT_F32, 24, -149, 127 },    { TM_FORMAT_F16, 11, -24, 15 },
  { TM_FORMAT_BF16, 8, -133, 127 },   { TM_FORMAT_F8_E4M3FN, 4, -9, 8 },   { TM_FORMAT_F8_E5M2, 3, -16, 15 },
};

static const float_range *range_of(uint32_t format) {
  for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
    if (ranges[i].format == format) return &ranges[i];
  return NULL;
}

bool tm_float_is(uint32_t format) { return range_of(format) != NULL; }

bool tm_float_holds(uint32_t wide, uint32_t narrow) {
  const float_range *w = range_of(wide), *n = range_of(narrow);
  return w != NULL && n != NULL && w->precision >= n->precision && w->lowest_bit <= n->lowest_bit && w->largest >= n->largest;
}

double tm_float_epsilon(uint32_t format) {
  const float_range *range = range_of(format);
  return range == NULL ? 0 : ldexp(1, 1 - range->precision);
}
