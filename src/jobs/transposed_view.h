/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transposed_view.h - a stored tensor with its axes in reverse order, read in parts: a few elements to tell whether another one may
 * be its transpose, or a dense run of many for comparing them.  Axes of one element are of no account.
 */
#ifndef TM_JOBS_TRANSPOSED_VIEW_H
#define TM_JOBS_TRANSPOSED_VIEW_H

#include <stdatomic.h>

#include "formats/archive.h"
#include "tensor/format.h"

/* Dims without those of 1. */
typedef struct tm_squeezed_dims {
  uint32_t rank;
  uint64_t dims[TM_ARCHIVE_MAX_RANK];
} tm_squeezed_dims;

void tm_squeezed_dims_take(const tm_archive_tensor *tensor, tm_squeezed_dims *out_dims);

/* Whether one could be the other's transpose, and something else than its equal: by dims and formats. */
bool tm_transposed_is_possible(const tm_archive_tensor *a, const tm_archive_tensor *b);
/* Whether its shape stays the same then, like that of a square matrix. */
bool tm_transposed_is_symmetric(const tm_archive_tensor *tensor);
/* Whether the order of its axes can be reversed here: elements that are no part of a block. */
bool tm_transposed_can_flip(const tm_archive_tensor *tensor);
/* Which of two that are possible is read by tm_transposed_read while the other one is read as it is: 0 or 1. */
uint32_t tm_transposed_choose(const tm_archive_tensor *a, const tm_archive_tensor *b);

/* Decoded elements at fixed places that look random; is_flipped: of the transpose.   As tm_archive_read */
#define TM_TRANSPOSED_SAMPLES 32u
tm_status tm_transposed_sample(const tm_archive *archive, uint64_t tensor, bool is_flipped, uint32_t count, double *out_values,
                               tm_error *error);

/* Elements [begin, begin + elements) of the transpose, in its order of index, as they are stored.   TM_ERROR_CANCELLED (soon after
   *cancelled is no longer 0; `cancelled` may be NULL), as tm_archive_read */
tm_status tm_transposed_read(const tm_archive *archive, uint64_t tensor, uint64_t begin, uint64_t elements, const _Atomic uint32_t *cancelled,
                             void *out_data, tm_error *error);

#endif
