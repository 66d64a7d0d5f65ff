/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manner.h - what holds of a backend whatever it computes: its life cycle, its memory, its queues, its threads, and what
 * belongs to the process and must be left alone.
 */
#ifndef CONFORMANCE_MANNER_H
#define CONFORMANCE_MANNER_H

#include "conformance/subject.h"
#include "conformance/claim_trial.h"

typedef struct manner_run {
  const subject_options *options;
  uint64_t seed;
  uint64_t end_ns;              /* of the time for it, once something was tried; 0: none */
  bool     in_this_process;     /* no worker: others were here before */
  trial    t;
  char     skipped[120];        /* why it could not be tried here; "" if it was */
  char     in_part[120];        /* how far it came before its time was over; "" if to the end */
  char     note[160];           /* what a driver does that is no fault of the backend's; "" if nothing */
} manner_run;

typedef struct manner {
  const char *name;             /* lower-kebab */
  const char *rule;             /* one sentence: what must hold */
  void      (*check)(manner_run *run);
  bool        comes_first;      /* however late it is: nothing else means much without it */
} manner;

/* After which nothing else of the device can be tried: it would write to memory that is freed. */
#define MANNER_EARLY_WAIT "wait came back before the work was done"

/* What half of the questions may take: a thousand times what is meant, as others have the processor, too. */
#define MANNER_QUESTION_NS UINT64_C(2000000)

/* In the order in which they are checked. */
extern const manner manners[];
extern const uint32_t manner_count;

const manner *manner_by_name(const char *name);
void manner_skip(manner_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* For loops, after their first turn: true once the time is over, and then the check says that it came to `done` of `all`. */
bool manner_ends_early(manner_run *run, uint64_t done, uint64_t all, const char *what);
/* Opens the device; records the failure if it does not. */
bool manner_open(manner_run *run, subject *s, uint32_t threads);

void manner_check_waiting(manner_run *run);
void manner_check_question_time(manner_run *run);
void manner_check_life_cycle(manner_run *run);
void manner_check_growth(manner_run *run);
void manner_check_process(manner_run *run);
void manner_check_description(manner_run *run);
void manner_check_memory_shortage(manner_run *run);
void manner_check_buffers(manner_run *run);
void manner_check_transfers(manner_run *run);
void manner_check_longer_structs(manner_run *run);
void manner_check_order(manner_run *run);
void manner_check_timed_waits(manner_run *run);
void manner_check_many_launches(manner_run *run);
void manner_check_full_queue(manner_run *run);
void manner_check_abandoned_work(manner_run *run);
void manner_check_threads(manner_run *run);
void manner_check_overclaims(manner_run *run);

#endif
