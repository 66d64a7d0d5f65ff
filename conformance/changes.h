/* SPDX-License-Identifier: Apache-2.0 */
/* changes.h - what a refusal proposes, made: the question that a host would ask next. */
#ifndef CONFORMANCE_CHANGES_H
#define CONFORMANCE_CHANGES_H

#include "conformance/question.h"

typedef enum changes_result {
  CHANGES_MADE,
  CHANGES_IMPOSSIBLE,           /* no host could make them: `text` says which and why */
  CHANGES_UNKNOWN               /* of a kind, or on an operation, that is not known here */
} changes_result;

typedef struct changes {
  question changed;
  question last_part;           /* of a split, where it differs from the others */
  bool     has_last_part;
  bool     is_other_operation;  /* a part, or integers instead of floats: may itself be refused with further changes */
  char     text[120];
} changes;

changes_result changes_make(const question *q, const tm_answer *answer, changes *out_changes);

#endif
