/* SPDX-License-Identifier: Apache-2.0 */
/* sim_number.h - formats by name, and single elements as f64: every value of the formats that the simulator computes with. */
#ifndef SIM_NUMBER_H
#define SIM_NUMBER_H

#include <tensormorph/plugin.h>

/* Formats that a description may name.  computes: the simulator reads and writes them; else only the host converts them. */
typedef struct sim_format {
  uint32_t    format;
  uint32_t    bytes;
  uint32_t    computes;
  const char *name;
} sim_format;

const sim_format *sim_format_find(uint32_t format);     /* NULL if it is not known */
const sim_format *sim_format_by_name(const char *name);
const sim_format *sim_format_at(uint32_t index);        /* NULL past the last */

/* Element `index` of a dense array in `format`. */
double sim_load(uint32_t format, const void *array, uint64_t index);
/* Rounds once, to nearest, ties to even; a NaN stays a NaN. */
void sim_store(uint32_t format, void *array, uint64_t index, double value);

/* Whether bytes [begin, end) are zero. */
int sim_is_zero(const void *data, uint64_t begin, uint64_t end);

#endif
