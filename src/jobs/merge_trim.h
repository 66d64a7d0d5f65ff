/* SPDX-License-Identifier: Apache-2.0 */
/* merge_trim.h - how large a difference of ties must be to stay: how many stay, and for small tensors the threshold itself, which
   for these takes less than two histograms. */
#ifndef TM_JOBS_MERGE_TRIM_H
#define TM_JOBS_MERGE_TRIM_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/merge_elements.h"

#define TM_MERGE_TRIM_SMALL 8192u       /* elements */

/* So many of the largest differences stay: a share of all, rounded up, but not for what the product itself is rounded by. */
uint64_t tm_merge_trim_kept(uint64_t count, double density);
/* What an f32 of these bits says to the operation. */
double tm_merge_trim_value(uint32_t bits);

/* The kept-th largest magnitude of a difference, as tm_merge_trim_value has it.  elements: TM_MERGE_TRIM_SMALL at most, whole
   blocks. */
double tm_merge_trim_threshold(tm_merge_elements x, tm_merge_elements base, uint64_t elements, uint64_t kept);

#endif
