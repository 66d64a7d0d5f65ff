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

/* Places of elements that look random, the same ones for each tensor of as many elements; of few elements all. */
#define TM_TRANSPOSED_SAMPLES 32u
void tm_transposed_places(const tm_archive *archive, uint64_t tensor, uint32_t count, uint64_t *out_places);

typedef struct tm_transposed_search {
  double                  usual;
  const _Atomic uint32_t *cancelled;
} tm_transposed_search;
/* Places of up to TM_TRANSPOSED_SAMPLES elements that have not the usual value, from all over the tensor: reads until there are
   enough.   TM_ERROR_CANCELLED, as tm_archive_read */
tm_status tm_transposed_find_others(const tm_archive *archive, uint64_t tensor, const tm_transposed_search *search, uint32_t *out_count,
                                    uint64_t *out_places, tm_error *error);

/* Decoded elements (tm_f64_unified) at these places; is_flipped: of the transpose.   As tm_archive_read */
tm_status tm_transposed_sample(const tm_archive *archive, uint64_t tensor, bool is_flipped, const uint64_t *places, uint32_t count,
                               double *out_values, tm_error *error);

/* Elements [begin, begin + elements) of the transpose, in its order of index, as they are stored.   TM_ERROR_CANCELLED (soon after
   *cancelled is no longer 0; `cancelled` may be NULL), as tm_archive_read */
tm_status tm_transposed_read(const tm_archive *archive, uint64_t tensor, uint64_t begin, uint64_t elements, const _Atomic uint32_t *cancelled,
                             void *out_data, tm_error *error);

#endif
