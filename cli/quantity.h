/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantity.h - sizes, durations and counts as people write and read them.  Printing functions fill a small buffer of
 * the caller and return it, so they can stand inside an argument list.
 */
#ifndef TM_CLI_QUANTITY_H
#define TM_CLI_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

#define TM_QUANTITY_BYTES 32

typedef struct tm_quantity {
  char text[TM_QUANTITY_BYTES];
} tm_quantity;

/* "4096", "64K", "64KiB" (both 65536), "64kB", "64KB" (64000); K M G T, upper or lower case.  false: not a size, or too
 * large. */
bool tm_quantity_parse_size(const char *text, uint64_t *out_bytes);
/* A whole number, decimal digits only.  false: anything else, or too large. */
bool tm_quantity_parse_count(const char *text, uint64_t *out_count);
/* "1.5", "500ms", "20us", "2s": seconds when no unit is given.  false: not a duration, negative, or too large. */
bool tm_quantity_parse_duration(const char *text, uint64_t *out_ns);

/* Of what is as large as can be told: "> 18.4 EB", "> 277:46:40 h". */

/* "0 B", "999 B", "1.00 kB", "90.9 MB": powers of 1000, three digits. */
const char *tm_quantity_bytes(uint64_t bytes, tm_quantity *out);
/* "1,234,567". */
const char *tm_quantity_count(uint64_t count, tm_quantity *out);
/* "22.7 M": three digits, for sentences. */
const char *tm_quantity_short_count(uint64_t count, tm_quantity *out);
/* "412 ns", "3.21 us", "12.3 ms", "4.56 s", "2:03 min", "1:02:03 h". */
const char *tm_quantity_duration(uint64_t duration_ns, tm_quantity *out);
/* "0:09", "12:03", "1:02:03": whole seconds, for clocks that count. */
const char *tm_quantity_clock(uint64_t seconds, tm_quantity *out);
/* "7.41 GB/s"; "-" when no time passed. */
const char *tm_quantity_rate(uint64_t bytes, uint64_t duration_ns, tm_quantity *out);

#endif
