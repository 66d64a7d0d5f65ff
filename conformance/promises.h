/* SPDX-License-Identifier: Apache-2.0 */
/* promises.h - what holds for every answer, yes or no, whatever the operation: the rules of query in plugin.h. */
#ifndef CONFORMANCE_PROMISES_H
#define CONFORMANCE_PROMISES_H

#include "conformance/claim_trial.h"

/* Of any answer: reasons where it refuses, requirements where it accepts, sound numbers. */
void promises_check_answer(trial *t, subject *s, const question *q, const tm_answer *answer);
/* Where the changes of a refusal led: what is accepted then. */
typedef struct way_out {
  bool      is_found;
  question  changed;
  tm_answer answer;
} way_out;

/* Of a refusal with changes: all of them together make it acceptable.  Kinds that cannot be applied here are counted. */
void promises_check_changes(trial *t, subject *s, const question *q, const tm_answer *answer, way_out *out_way,
                            uint64_t *inout_unchecked);
/* Variations of a question that was accepted: unknown demands, versions, operations, longer structs, odd attributes. */
void promises_check_strangers(trial *t, subject *s, const question *q, const tm_answer *answer, uint64_t seed);
/* Of costs and, for native claims, workspaces, on operands of a realistic size. */
void promises_check_scale(trial *t, subject *s, const combination *which, const question *small, const tm_answer *answer,
                          uint64_t seed);

#endif
