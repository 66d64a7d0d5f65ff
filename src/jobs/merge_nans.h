/* SPDX-License-Identifier: Apache-2.0 */
/* merge_nans.h - one NaN for all: which of several NaN comes out of a sum depends on the order in which a device takes its operands,
   so what is written has none but this one. */
#ifndef TM_JOBS_MERGE_NANS_H
#define TM_JOBS_MERGE_NANS_H

#include <stdint.h>

/* Each NaN of a float format that results can have becomes the quiet one without sign and payload. */
void tm_merge_nans_unify(uint32_t format, uint64_t elements, void *data);

#endif
