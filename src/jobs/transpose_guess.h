/* SPDX-License-Identifier: Apache-2.0 */
/* transpose_guess.h - whether a tensor looks like the transpose of another one, from a few of their elements. */
#ifndef TM_JOBS_TRANSPOSE_GUESS_H
#define TM_JOBS_TRANSPOSE_GUESS_H

#include <stdatomic.h>

#include "formats/archive.h"

typedef struct tm_transpose_side {
  const tm_archive *archive;
  uint64_t          tensor;
} tm_transpose_side;

/* `turned` is the side whose axes are looked at in reverse order, and `straight` the other one; both are possible
   (tm_transposed_is_possible).  What cannot be read looks like nothing: that is told when it is compared.  Mostly four elements
   tell; of a tensor that is nearly constant all is read until there are enough others. */
bool tm_transpose_guess(tm_transpose_side straight, tm_transpose_side turned, const _Atomic uint32_t *cancelled);

#endif
