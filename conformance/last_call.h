/* SPDX-License-Identifier: Apache-2.0 */
/* last_call.h - the backend's function that was called last, and on what, in memory that outlives who called it. */
#ifndef CONFORMANCE_LAST_CALL_H
#define CONFORMANCE_LAST_CALL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensormorph/plugin.h"

#define LAST_CALL_SUBJECT 200

typedef struct last_call {
  _Atomic uint64_t beat;        /* moves with each call */
  _Atomic uint32_t offset;      /* of the function in the table; 0: none yet */
  char             subject[LAST_CALL_SUBJECT];  /* the operation that is worked on */
  _Atomic uint32_t is_fenced;   /* operands are: inputs are read-only, and no memory lies around them */
  _Atomic uint32_t is_misused;
  char             misuse[LAST_CALL_SUBJECT];   /* of the host's services, or of tickets: the first; "" if none */
} last_call;

/* Before a call; `call` may be NULL. */
void last_call_note(last_call *call, size_t offset);
/* What the backend did that no result shows; `call` may be NULL. */
void last_call_misuse(last_call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Whether it was one that has operands, between fences. */
bool last_call_is_fenced(const last_call *call);
/* "; the last call was prepare, of neg f32[3]/4 -> f32[3]/4", or "" before the first.  Trusts nothing that stands there. */
void last_call_describe(const last_call *call, char *text, size_t capacity);

#endif
