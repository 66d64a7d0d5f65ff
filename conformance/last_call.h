/* SPDX-License-Identifier: Apache-2.0 */
/*
 * last_call.h - the backend's function that was called last, and on what, and how long its last questions took, in memory that
 * outlives who called it.
 */
#ifndef CONFORMANCE_LAST_CALL_H
#define CONFORMANCE_LAST_CALL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensormorph/plugin.h"

#define LAST_CALL_SUBJECT 200
#define LAST_CALL_QUESTIONS 255u

typedef struct last_call {
  _Atomic uint64_t beat;        /* moves with each call */
  _Atomic uint32_t offset;      /* of the function in the table; 0: none yet */
  char             subject[LAST_CALL_SUBJECT];  /* the operation that is worked on */
  _Atomic uint32_t is_fenced;   /* operands are: inputs are read-only, and no memory lies around them */
  _Atomic int32_t  owner;       /* the process whose calls these are; 0: nobody's yet */
  _Atomic uint32_t has_kept;    /* what it was lent for the time of a call, and crashed there later */
  _Atomic uint32_t is_misused;
  char             misuse[LAST_CALL_SUBJECT];   /* of the host's services, or of tickets: the first; "" if none */
  _Atomic uint32_t question_count;
  _Atomic uint64_t question_ns[LAST_CALL_QUESTIONS];    /* of the last ones, in no order */
} last_call;

/* From here on this process is the one that calls. */
void last_call_own(last_call *call);
/* A backend may have copied the process (fork) and let both come back.  What a copy finds out is nobody's: it notes that there
   is one, and ends. */
void last_call_end_copy(last_call *call);
/* Before a call, which no copy makes; `call` may be NULL. */
void last_call_note(last_call *call, size_t offset);
/* What the backend did that no result shows; `call` may be NULL. */
void last_call_misuse(last_call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Whether it was one that has operands, between fences. */
bool last_call_is_fenced(const last_call *call);
/* After a question; `call` may be NULL. */
void last_call_time_question(last_call *call, uint64_t took_ns);
/* What half of the last questions took at most, and of how many; 0 of none. */
uint64_t last_call_median_ns(const last_call *call, uint32_t *out_count);
/* "; the last call was prepare, of neg f32[3]/4 -> f32[3]/4", or "" before the first.  Trusts nothing that stands there. */
void last_call_describe(const last_call *call, char *text, size_t capacity);

#endif
