/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_content.h - counterparts of tensors whose names have none: by what they hold.  Those that could be equal (by format and size,
 * or by shape) are sampled; where samples agree and more than two do, all is read; what is equal then is told apart by names.
 * So a tensor that nobody resembles costs a kilobyte, and most renamed ones no more.
 */
#ifndef TM_JOBS_DIFF_CONTENT_H
#define TM_JOBS_DIFF_CONTENT_H

#include "jobs/content_digest.h"
#include "jobs/diff_pairing.h"

typedef enum tm_diff_likeness {
  TM_DIFF_LIKE_BYTES,           /* one format, equal bytes */
  TM_DIFF_LIKE_VALUES,          /* one shape, equal values in whatever format */
  TM_DIFF_LIKE_TRANSPOSE,       /* the shape reversed, equal values */
  TM_DIFF_LIKE_ROUNDED          /* one shape, equal values when a wider float is rounded to a narrower one */
} tm_diff_likeness;

/* What is looked for. */
typedef struct tm_diff_round {
  tm_diff_likeness likeness;
  uint32_t         side;        /* of TRANSPOSE the one whose axes are reversed: 1 comes first, and leaves to 0 what cannot be; of
                                   ROUNDED the narrower one */
  uint32_t         format;      /* of ROUNDED: that one's, a float of 16 bits; else TM_FORMAT_NONE */
} tm_diff_round;

/* Tentative pairs for the selected tensors without a counterpart, in a's order; of ROUNDED all of both was looked at.  Tensors that
   have equal ones on the other side but cannot be told apart are marked as ambiguous.
   TM_ERROR_NO_MEMORY, TM_ERROR_CANCELLED; with the tensor's name as tm_archive_read */
tm_status tm_diff_content_pair(const tm_diff_pairing *pairing, tm_content_digester *digester, const tm_diff_round *round,
                               tm_diff_pairs *pairs, tm_error *error);

/* Tensors of which a pair of one name turned out not to be equal, while what they hold is in such a tensor of another name. */
typedef struct tm_diff_moved {
  uint64_t count;               /* of a's selected ones; constants and very small ones are not looked for */
  uint64_t first[2];            /* of a, and the one of b that holds the same */
} tm_diff_moved;

/* As tm_diff_content_pair */
tm_status tm_diff_content_find_moved(const tm_diff_pairing *pairing, tm_content_digester *digester, tm_diff_moved *out_moved, tm_error *error);

#endif
