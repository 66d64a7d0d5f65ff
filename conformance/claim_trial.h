/* SPDX-License-Identifier: Apache-2.0 */
/* claim_trial.h - a claim put to the test: prepared, launched and compared, with guards around everything that may be written. */
#ifndef CONFORMANCE_CLAIM_TRIAL_H
#define CONFORMANCE_CLAIM_TRIAL_H

#include "conformance/question.h"
#include "conformance/subject.h"

#define TRIAL_TEXT 320

typedef struct trial {
  bool   failed;
  bool   went_stale;            /* the device's epoch moved when it was prepared: nothing is known, and it is to be asked again */
  char   text[TRIAL_TEXT];      /* the first thing that was wrong */
  double worst;                 /* see closeness.h */
} trial;

/* Records the first failure; returns false. */
bool trial_fail(trial *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prepares the question while the host's memory runs out; it may fail for lack of it, and in no other way.  Stops
   early once it is end_ns (0: never). */
void trial_run_out_of_memory(trial *t, subject *s, const question *q, const tm_answer *answer, uint64_t end_ns);

/* Runs the question that `answer` said yes to.  Data follows from the seed. */
void trial_run(trial *t, subject *s, const question *q, const tm_answer *answer, uint64_t seed);

#endif
