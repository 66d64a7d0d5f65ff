/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics_text.h"

#include <stdio.h>

#include "tensormorph/tensormorph.h"

#define NAME_AT(names, index) ((index) < sizeof(names) / sizeof(names)[0] ? (names)[index] : "unknown")

const char *tm_numerics_name(uint32_t numerics) {
  static const char *const names[] = { "N0", "N1", "N2", "N3", "N4" };
  return NAME_AT(names, numerics);
}

const char *tm_level_name(uint32_t level) {
  static const char *const names[] = { "refused", "emulated", "native" };
  return NAME_AT(names, level);
}

const char *tm_verdict_name(uint32_t verdict) {
  static const char *const names[] = { "chosen", "slower", "refused", "inexact", "excluded", "quarantined" };
  return NAME_AT(names, verdict);
}

const char *tm_growth_name(uint32_t growth) {
  static const char *const names[] = { "1", "log2 n", "n" };
  return NAME_AT(names, growth);
}

void tm_numerics_describe(uint32_t numerics, double bound, uint32_t growth, uint32_t accumulator, char *out,
                          size_t capacity) {
  const char *name = tm_numerics_name(numerics);
  if (numerics == TM_NUMERICS_N2)
    snprintf(out, capacity, "%s(%.3g, %s, %s)", name, bound, tm_growth_name(growth), tm_format_name(accumulator));
  else if (numerics == TM_NUMERICS_N1 || numerics == TM_NUMERICS_N3)
    snprintf(out, capacity, "%s(%.3g)", name, bound);
  else
    snprintf(out, capacity, "%s", name);
}
