/* SPDX-License-Identifier: Apache-2.0 */
/* diff_pair.h - which tensor of one checkpoint is held against which of another, and why. */
#ifndef TM_JOBS_DIFF_PAIR_H
#define TM_JOBS_DIFF_PAIR_H

#include <stdbool.h>
#include <stdint.h>

#define TM_DIFF_NO_TENSOR UINT64_MAX

typedef enum tm_diff_paired {
  TM_DIFF_UNPAIRED,
  TM_DIFF_PAIRED_BY_NAME,
  TM_DIFF_PAIRED_AS_SINGLE,     /* each the only tensor, and one side has no names */
  TM_DIFF_PAIRED_BY_CONTENT,
  TM_DIFF_PAIRED_BY_VALUES,     /* equal once they are decoded */
  TM_DIFF_PAIRED_TRANSPOSED,
  TM_DIFF_PAIRED_ROUNDED        /* equal once the wider one is rounded to the other one's format, which is known of all elements */
} tm_diff_paired;

typedef struct tm_diff_pair {
  uint64_t a;                   /* index of a tensor, or TM_DIFF_NO_TENSOR */
  uint64_t b;
  uint8_t  paired;              /* TM_DIFF_PAIRED_* */
  bool     is_transposed;       /* a is compared with b's transpose */
  bool     is_tied;             /* a or b is the counterpart of another tensor, too */
  bool     is_sole;             /* of a tied one: that other tensor, of its name, does not hold the same */
  bool     is_tentative;        /* a pair only if all elements turn out to be equal, or it is ROUNDED */
  bool     is_hidden;           /* a or b is excluded: it gets no row */
  bool     is_confirmed;        /* its row is written, if it gets one */
  bool     is_equal;            /* confirmed, and all elements are equal */
  bool     counts_a;            /* a, b is done with this pair */
  bool     counts_b;
  uint64_t searched_bytes[2];   /* of a and b, counted already while they were looked for */
} tm_diff_pair;

#endif
