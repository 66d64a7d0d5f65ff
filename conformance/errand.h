/* SPDX-License-Identifier: Apache-2.0 */
/* errand.h - one claim of a device with its memory filled, to be launched as often and in whatever order a check likes. */
#ifndef CONFORMANCE_ERRAND_H
#define CONFORMANCE_ERRAND_H

#include "conformance/image.h"
#include "conformance/claim_trial.h"

typedef struct errand {
  subject   *s;
  question   q;
  tm_answer  answer;
  image      operands[CASE_MAX_OPERANDS];
  image      packed[CASE_MAX_OPERANDS];         /* inputs in the device's own format */
  image      expected;
  image      workspace;
  tm_kernel *kernel;
  bool       shares_kernel;     /* of another errand, which outlives it */
  bool       shares_inputs;     /* and what is expected, likewise */
} errand;

/* The `which`-th claim of the device on a plain operation, counted from 0; false if it has no so many. */
bool errand_find(subject *s, uint32_t which, uint64_t seed, question *out_question, tm_answer *out_answer);
/* The same as errand_make, of the claims that go on about so many elements, at least half of them. */
bool errand_make_large(errand *e, subject *s, uint32_t which, uint64_t elements, uint64_t seed, trial *t);
/* That claim, prepared, with buffers.  False if there is none, or after a failure that `t` says. */
bool errand_make(errand *e, subject *s, uint32_t which, uint64_t seed, trial *t);
/* The first claim on weights, of those that are refused with other inputs: as they are, or in a format of the device's own. */
typedef enum weights_form { WEIGHTS_AS_THEY_ARE, WEIGHTS_PACKED } weights_form;
bool errand_make_weights(errand *e, subject *s, weights_form form, uint64_t elements, uint64_t seed, trial *t);
/* The kernel of another errand once more: with other contents in memory of its own, or with the same inputs and a result of its
   own.  To be freed whatever they return. */
bool errand_again(errand *e, const errand *of, uint64_t seed, trial *t);
bool errand_beside(errand *e, const errand *of, trial *t);
void errand_free(errand *e);

/* Enqueues it; TM_BUSY is tried again.  The ticket is {queue, 0} from a device that is done already. */
tm_status errand_launch(errand *e, uint32_t queue, const tm_ticket *waits, uint32_t wait_count, tm_ticket *out_ticket);
/* The same once, TM_BUSY or not. */
tm_status errand_launch_once(errand *e, uint32_t queue, tm_ticket *out_ticket);
/* Fills the output with guard bytes again. */
bool errand_reset(errand *e, trial *t);
/* The same, of one that has a buffer, by way of a queue that nobody else uses. */
bool errand_reset_on(errand *e, uint32_t queue, trial *t);
/* Once it is done: the result is the reference's, within what was claimed. */
bool errand_check(errand *e, trial *t);
bool errand_check_on(errand *e, uint32_t queue, trial *t);
/* Whether nothing was written to the result yet; to be asked in the place of errand_check. */
bool errand_is_untouched(errand *e);
/* The same of what was already brought back. */
bool errand_judge(const errand *e, trial *t);

#endif
