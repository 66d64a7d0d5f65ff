/* SPDX-License-Identifier: Apache-2.0 */
/* One kernel launched again and again, each time with other contents in other places: alone, and with many under way. */
#include <stdlib.h>

#include "base/checked.h"
#include "conformance/ballast.h"
#include "conformance/errand.h"
#include "conformance/manner.h"

#define LAUNCHES 40u
#define PLACES 3u
#define MOST_QUEUES 4u                 /* that something long is put on */
#define HOLD_SHARE 4u                   /* of a ballast */
#define LARGE_ELEMENTS (UINT64_C(1) << 18)
#define WEIGHTS_ELEMENTS 4096u
#define LARGE_LAUNCHES 32u                /* so many that neighbours meet, also where others have the processor, too */

/* Operations of different kinds, where there are so many. */
static const uint32_t claims[] = { 0, 1, 5 };
#define CLAIMS ((uint32_t)(sizeof claims / sizeof claims[0]))
#define KERNELS (CLAIMS + WEIGHTS_PACKED + 1)

static bool is_synchronous(const subject *s) { return (s->info.flags & TM_DEVICE_SYNCHRONOUS) != 0; }

static uint32_t queue_of(const subject *s, uint32_t launch) { return s->info.queue_count == 0 ? 0 : launch % s->info.queue_count; }

static bool start(manner_run *run, errand *e, uint32_t launch, tm_ticket *out_ticket) {
  const tm_status status = errand_launch(e, queue_of(e->s, launch), NULL, 0, out_ticket);
  return status == TM_OK || trial_fail(&run->t, "launch %u of one kernel gave %d (%s)", launch + 1, status, e->s->text);
}

static bool finish(manner_run *run, errand *e, uint32_t launch, const tm_ticket *ticket, const char *how) {
  char what[120];
  trial seen = { .failed = false };
  const tm_status status = is_synchronous(e->s) ? TM_OK : SUBJECT_CALL(e->s, wait)(e->s->device, ticket, 1, TM_WAIT_FOREVER);
  if (status != TM_OK) return trial_fail(&run->t, "waiting for launch %u of one kernel gave %d (%s)", launch + 1, status, e->s->text);
  if (errand_check(e, &seen)) return true;
  question_describe(&e->q, what, sizeof what);
  return trial_fail(&run->t, "launch %u of one kernel%s is wrong: %.160s; %s", launch + 1, how, seen.text, what);
}

/* A few places take turns, so that each launch finds others than the one before. */
static void launch_in_turn(manner_run *run, errand *e) {
  errand places[PLACES];
  uint32_t done = 0;
  trial unused = { .failed = false };
  memset(places, 0, sizeof places);
  for (uint32_t i = 0; i < PLACES; i++) places[i].s = e->s;
  for (; done < LAUNCHES && !run->t.failed && !manner_ends_early(run, done, LAUNCHES, "launches"); done++) {
    errand *one = &places[done % PLACES];
    tm_ticket ticket;
    errand_free(one);
    if (!errand_again(one, e, run->seed + 1 + done, &unused)) break;
    if (start(run, one, done, &ticket)) (void)finish(run, one, done, &ticket, "");
  }
  for (uint32_t i = 0; i < PLACES; i++) errand_free(&places[i]);
}

/* Something long in front of all, on each queue, so that they are under way together. */
static uint32_t hold(subject *s, ballast *b, tm_ticket *out_tickets) {
  const uint32_t queues = (uint32_t)tm_min_u64(s->info.queue_count == 0 ? 1 : s->info.queue_count, MOST_QUEUES);
  b->bytes /= HOLD_SHARE;
  for (uint32_t i = 0; i < queues; i++) out_tickets[i] = ballast_put(b, i);
  b->bytes *= HOLD_SHARE;
  return queues;
}

/* All of them at once, as many as there is memory for, in places of their own; `is_beside`: with the same inputs. */
static void launch_together(manner_run *run, errand *e, ballast *b, uint32_t count, bool is_beside) {
  subject *s = e->s;
  errand *all = calloc(count, sizeof *all);
  tm_ticket *tickets = calloc(count, sizeof *tickets), held[MOST_QUEUES];
  uint32_t made = 0, begun = 0;
  const bool good = all != NULL && tickets != NULL;
  trial unused = { .failed = false };
  for (; made < count && good && !unused.failed; made++) {
    if (is_beside) (void)errand_beside(&all[made], e, &unused);
    else (void)errand_again(&all[made], e, run->seed + 1 + made, &unused);
  }
  const uint32_t held_count = hold(s, b, held);
  while (begun + unused.failed < made && start(run, &all[begun], begun, &tickets[begun])) begun++;
  for (uint32_t i = 0; i < held_count; i++) (void)SUBJECT_CALL(s, wait)(s->device, &held[i], 1, TM_WAIT_FOREVER);
  for (uint32_t i = 0; i < begun; i++)                  /* all of them, before any memory goes */
    (void)SUBJECT_CALL(s, wait)(s->device, &tickets[i], 1, TM_WAIT_FOREVER);
  for (uint32_t i = 0; i < begun && !run->t.failed; i++) (void)finish(run, &all[i], i, &tickets[i], ", with others under way,");
  for (uint32_t i = 0; i < made; i++) errand_free(&all[i]);
  free(tickets);
  free(all);
}

static void launch_one_kernel(manner_run *run, errand *e, ballast *b) {
  launch_in_turn(run, e);
  if (!is_synchronous(e->s) && !run->t.failed && run->in_part[0] == '\0') launch_together(run, e, b, LAUNCHES, false);
}

static bool launch_one_claim(manner_run *run, subject *s, ballast *b, uint32_t which) {
  errand e;
  const bool made = errand_make(&e, s, which, run->seed, &run->t);
  if (made) launch_one_kernel(run, &e, b);
  errand_free(&e);
  return made;
}

/* A kernel is used for all layers of a model. */
static bool launch_weights(manner_run *run, subject *s, ballast *b, weights_form form) {
  errand e;
  const bool made = errand_make_weights(&e, s, form, WEIGHTS_ELEMENTS, run->seed, &run->t);
  if (made) launch_one_kernel(run, &e, b);
  errand_free(&e);
  return made;
}

/* Queues work beside each other only where launches take longer than to come to them. */
static void launch_large(manner_run *run, subject *s, ballast *b, uint32_t which) {
  errand e;
  trial unused = { .failed = false };
  if (errand_make_large(&e, s, which, LARGE_ELEMENTS, run->seed, &unused)) launch_together(run, &e, b, LARGE_LAUNCHES, true);
  errand_free(&e);
}

/* Whether something is left to be done, and time for it. */
static bool goes_on(manner_run *run, uint32_t done, uint32_t all, const char *what) {
  return !run->t.failed && run->in_part[0] == '\0' && !manner_ends_early(run, done, all, what);
}

void manner_check_many_launches(manner_run *run) {
  subject s;
  ballast b;
  if (!manner_open(run, &s, 0)) return;
  ballast_make(&b, &s, run->seed);
  const bool has_neighbours = !is_synchronous(&s) && s.info.queue_count > 1;
  bool has_any = false;
  for (uint32_t i = 0; i < CLAIMS && (i == 0 || has_any) && goes_on(run, i, KERNELS, "kernels"); i++)
    has_any |= launch_one_claim(run, &s, &b, claims[i]);
  for (uint32_t i = CLAIMS; i < KERNELS && goes_on(run, i, KERNELS, "kernels"); i++)
    has_any |= launch_weights(run, &s, &b, (weights_form)(i - CLAIMS));
  if (!has_any && !run->t.failed) manner_skip(run, "it claims nothing");
  for (uint32_t i = 0; i < CLAIMS && has_neighbours && has_any && goes_on(run, i + 1, CLAIMS + 1, "large kernels"); i++)
    launch_large(run, &s, &b, claims[i]);
  ballast_free(&b);
  subject_close(&s);
}
