/* SPDX-License-Identifier: Apache-2.0 */
/* Manners of calls from several threads at once. */
#include <pthread.h>

#include "base/clock.h"
#include "conformance/errand.h"
#include "conformance/manner.h"

#define THREADS 4u
#define ROUNDS 40u
#define LARGE_ELEMENTS (UINT64_C(1) << 18)
#define LARGE_CLAIMS 3u
#define LARGE_ROUNDS 8u

typedef struct caller {
  pthread_t  thread;
  subject   *s;
  errand    *e;
  uint32_t   queue;
  bool       launches;          /* the only one on its queue */
  bool       prepares;
  uint64_t   end_ns;            /* 0: none */
  uint32_t   rounds;
  uint32_t   round_count;       /* done */
  trial      t;
} caller;

/* Not through subject_ask: what the backend says of a failure is kept in one place for all threads. */
static void ask(caller *c) {
  tm_answer answer = { .struct_size = sizeof answer, .operand = TM_NO_OPERAND }, *pointer = &answer;
  asked_operation asked;
  question_asked(&c->e->q, &asked);
  const tm_operation *operation = &asked.operation;
  if (SUBJECT_CALL(c->s, query)(c->s->backend, c->s->device_index, &operation, 1, &pointer) != TM_OK)
    trial_fail(&c->t, "query fails in a second thread");
  else if (memcmp(&answer, &c->e->answer, sizeof answer) != 0 && !subject_has_moved(c->s, &c->e->answer))
    trial_fail(&c->t, "answers differently when several threads ask");
}

static void prepare(caller *c) {
  tm_kernel *kernel = NULL;
  asked_operation asked;
  question_asked(&c->e->q, &asked);
  const tm_status status = SUBJECT_CALL(c->s, prepare)(c->s->device, &asked.operation, &c->e->answer, &kernel);
  if (status == TM_OK) SUBJECT_CALL(c->s, release)(c->s->device, kernel);
  else if (status != TM_STALE || !subject_has_moved(c->s, &c->e->answer))
    trial_fail(&c->t, "prepare gave %d while other threads prepare", status);
}

/* Each result is looked at: one that is wrong while others work may be right again the next time. */
static void launch(caller *c) {
  tm_ticket ticket;
  trial seen = { .failed = false };
  if (!errand_reset_on(c->e, c->queue, &c->t)) return;
  tm_status status = errand_launch(c->e, c->queue, NULL, 0, &ticket);
  if (status == TM_OK && (c->s->info.flags & TM_DEVICE_SYNCHRONOUS) == 0)
    status = SUBJECT_CALL(c->s, wait)(c->s->device, &ticket, 1, TM_WAIT_FOREVER);
  if (status != TM_OK) trial_fail(&c->t, "launch on queue %u gave %d while other threads launch", c->queue, status);
  else if (!errand_check_on(c->e, c->queue, &seen)) trial_fail(&c->t, "queue %u, while other threads launch: %s", c->queue, seen.text);
}

static void *call(void *argument) {
  caller *c = argument;
  for (uint32_t i = 0; i < c->rounds && !c->t.failed && (i == 0 || c->end_ns == 0 || tm_now_ns() < c->end_ns); i++) {
    ask(c);
    if (c->prepares && !c->t.failed) prepare(c);
    if (c->launches && !c->t.failed) launch(c);
    c->round_count++;
  }
  return NULL;
}

static void call_all(manner_run *run, subject *s, errand *errands, uint32_t count, uint32_t rounds) {
  caller callers[THREADS];
  const bool is_bound = (s->info.flags & TM_DEVICE_OPENING_THREAD) != 0;
  const uint32_t queues = s->info.queue_count == 0 ? 1 : s->info.queue_count;
  uint32_t started = 0;
  memset(callers, 0, sizeof callers);
  for (; started < count; started++) {
    caller *c = &callers[started];
    *c = (caller){.s = s, .e = &errands[started], .queue = started, .launches = !is_bound && started < queues,
                  .prepares = !is_bound, .end_ns = run->end_ns, .rounds = rounds};
    if (pthread_create(&c->thread, NULL, call, c) != 0) break;
  }
  for (uint32_t i = 0; i < started; i++) pthread_join(callers[i].thread, NULL);
  for (uint32_t i = 0; i < started; i++) {
    if (callers[i].round_count < rounds) (void)manner_ends_early(run, callers[i].round_count, rounds, "rounds");
    if (callers[i].t.failed) trial_fail(&run->t, "%s", callers[i].t.text);
  }
  if (started == 0) manner_skip(run, "no threads to be had");
}

/* Long enough for launches of different queues to meet: one kernel, as it may be used from any queue; each with inputs of its own, or all
   with those of the first.  Frees it. */
static bool call_together(manner_run *run, subject *s, errand *first, bool is_made, bool has_own) {
  errand all[THREADS];
  trial unused = { .failed = false };
  const uint32_t queues = s->info.queue_count < THREADS ? s->info.queue_count : THREADS;
  bool good = is_made;
  memset(all, 0, sizeof all);
  for (uint32_t i = 0; i < queues; i++) {
    all[i].s = s;
    good = good && (has_own ? errand_again(&all[i], first, run->seed + 1 + i, &unused) : errand_beside(&all[i], first, &unused));
  }
  if (good) call_all(run, s, all, queues, LARGE_ROUNDS);
  for (uint32_t i = 0; i < queues; i++) errand_free(&all[i]);
  errand_free(first);
  return good;
}

static void call_large(manner_run *run, subject *s, uint32_t which) {
  errand large;
  trial unused = { .failed = false };
  const bool is_made = errand_make_large(&large, s, which, LARGE_ELEMENTS, run->seed, &unused);
  (void)call_together(run, s, &large, is_made, false);
}

static bool call_weights(manner_run *run, subject *s, weights_form form) {
  errand large;
  trial unused = { .failed = false };
  const bool is_made = errand_make_weights(&large, s, form, LARGE_ELEMENTS, run->seed, &unused);
  return call_together(run, s, &large, is_made, true);
}

void manner_check_threads(manner_run *run) {
  subject s;
  errand errands[THREADS];
  uint32_t count = 0;
  if (!manner_open(run, &s, 2)) return;
  memset(errands, 0, sizeof errands);
  for (; count < THREADS; count++)
    if (!errand_make(&errands[count], &s, 0, run->seed + count, &run->t)) break;
  if (count == THREADS) call_all(run, &s, errands, count, ROUNDS);
  const bool is_alone = s.info.queue_count < 2 || (s.info.flags & TM_DEVICE_OPENING_THREAD) != 0;
  for (uint32_t i = 0; i < LARGE_CLAIMS && count == THREADS && !is_alone && !run->t.failed && run->in_part[0] == '\0'; i++)
    call_large(run, &s, i);
  bool has_weights = false;
  for (uint32_t i = 0; i <= WEIGHTS_PACKED && !is_alone && !run->t.failed && run->in_part[0] == '\0'; i++)
    has_weights |= call_weights(run, &s, (weights_form)i);
  if (count == 0 && !has_weights && !run->t.failed) manner_skip(run, "it claims nothing");
  for (uint32_t i = 0; i < THREADS; i++)
    if (errands[i].s != NULL) errand_free(&errands[i]);
  subject_close(&s);
}
