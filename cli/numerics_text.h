/* SPDX-License-Identifier: Apache-2.0 */
/* numerics_text.h - levels, numerics classes and verdicts in words. */
#ifndef TM_CLI_NUMERICS_TEXT_H
#define TM_CLI_NUMERICS_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* "N2"; TM_NUMERICS_N4 and beyond are "N4". */
const char *tm_numerics_name(uint32_t numerics);
/* "refused", "emulated", "native". */
const char *tm_level_name(uint32_t level);
/* "chosen", "slower", ... */
const char *tm_verdict_name(uint32_t verdict);
/* "1", "log2 n", "n". */
const char *tm_growth_name(uint32_t growth);
/* "N0", "N1(2)", "N2(4, log2 n, f32)": the class with its bound, growth and accumulator. */
void tm_numerics_describe(uint32_t numerics, double bound, uint32_t growth, uint32_t accumulator, char *out,
                          size_t capacity);

#endif
