/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits as a host makes them: in pieces, on work that takes several of them.  A clock says only how much work makes it long, and
 * that something came too early; that a wait goes on to the end of the work is believed once it did so each time.
 */
#include <stdio.h>

#include "base/clock.h"
#include "conformance/ballast.h"
#include "conformance/manner.h"
#include "plugin/wait_slice.h"

#define SLICE_MS 20u
#define LONG_SLICES 5u
#define WANTED_NS (TM_WAIT_SLICE_NS * (LONG_SLICES + 1))
#define LATE_NS (TM_WAIT_SLICE_NS * 3)  /* no piece, whoever has the processor */
#define NS_PER_MS UINT64_C(1000000)
#define MOST_TRANSFERS 16u              /* a copy of each may wait for its turn */
#define MOST_LAUNCHES 64u
#define MOST_SLICES 3000u               /* then it never ends */
#define ROUNDS 6u

_Static_assert(TM_WAIT_SLICE_NS == SLICE_MS * NS_PER_MS, "what is said");

typedef struct timed {
  manner_run *run;
  subject    *s;
  errand     *e;
  ballast    *b;
  uint32_t    queue;
  uint32_t    count;            /* of the ballast, that is long */
  uint32_t    most;             /* likewise */
  uint64_t    long_ns;          /* what that took */
  bool        is_in_pieces;     /* set: a piece passed before the work was over */
  tm_ticket   last;             /* of it */
} timed;

static tm_ticket put_one(timed *t) {
  tm_ticket ticket = { t->queue, 0, 0 };
  if (!t->b->has_large) return ballast_put(t->b, t->queue);
  return errand_launch_once(&t->b->large, t->queue, &ticket) == TM_OK ? ticket : (tm_ticket){ t->queue, 0, 0 };
}

/* As much as there is room for; how much that was. */
static uint32_t put(timed *t, uint32_t count) {
  uint32_t done = 0;
  for (tm_ticket ticket; done < count; done++) {
    ticket = put_one(t);
    if (ticket.value == 0) break;
    t->last = ticket;
  }
  return done;
}

static tm_status wait_for(timed *t, uint64_t timeout_ns) {
  return SUBJECT_CALL(t->s, wait)(t->s->device, &t->last, 1, timeout_ns);
}

/* More and more of it, until it takes long; the first takes longer than the others. */
static bool finds_enough(timed *t) {
  t->most = t->b->has_large ? MOST_LAUNCHES : MOST_TRANSFERS;
  t->count = put(t, 1);
  if (t->count == 0) return false;
  (void)wait_for(t, TM_WAIT_FOREVER);
  for (uint32_t count = 1; count <= t->most && t->long_ns < WANTED_NS; count *= 2) {
    const uint64_t begin_ns = tm_now_ns();
    t->count = put(t, count);
    if (t->count == 0) return false;
    const tm_status status = wait_for(t, TM_WAIT_FOREVER);
    if (status != TM_OK) return trial_fail(&t->run->t, "waiting for long work gave %d (%s)", status, t->s->text);
    t->long_ns = tm_now_ns() - begin_ns;
    if (t->count < count) t->most = t->count;
  }
  return true;
}

/* What seemed long while others had the processor may not be. */
static bool takes_more(timed *t) {
  const bool has_more = t->count * 2 <= t->most;
  if (has_more) t->count *= 2;
  return has_more;
}

/* ---- pieces until it is over ---- */

static bool wait_in_slices(timed *t) {
  tm_status status = TM_PENDING;
  for (uint32_t i = 0; i < MOST_SLICES && status == TM_PENDING; i++) {
    const uint64_t begin_ns = tm_now_ns();
    status = wait_for(t, TM_WAIT_SLICE_NS);
    t->is_in_pieces |= status == TM_PENDING || tm_now_ns() - begin_ns >= LATE_NS;
    if (status == TM_PENDING && tm_now_ns() - begin_ns < TM_WAIT_SLICE_NS / 2)
      return trial_fail(&t->run->t, "a wait for %u ms gave TM_PENDING long before that", SLICE_MS);
  }
  if (status == TM_PENDING) return trial_fail(&t->run->t, "work does not end while it is waited for %u ms each time", SLICE_MS);
  return status == TM_OK || trial_fail(&t->run->t, "a wait for %u ms gave %d (%s)", SLICE_MS, status, t->s->text);
}

/* What a later transfer would bring back tells nothing: it would wait its turn. */
static bool fetch_result(timed *t) {
  image *output = &t->e->operands[t->e->q.c.operation.input_count];
  tm_ticket ticket = { t->queue, 0, 0 };
  const tm_transfer down = { .struct_size = sizeof down, .queue = t->queue, .source = output->buffer, .host = output->bytes,
                             .bytes = output->size };
  if (t->s->host_makes_buffers) return true;
  const tm_status status = SUBJECT_CALL(t->s, download)(t->s->device, &down, &ticket);
  if (status != TM_OK && status != TM_BUSY) return trial_fail(&t->run->t, "a download behind other work gave %d", status);
  if (status == TM_OK && ticket.value != 0) t->last = ticket;
  return status == TM_OK;
}

static bool is_right_once(timed *t) {
  trial wrong = { .failed = false };
  if (!errand_reset(t->e, &t->run->t)) return false;
  if (put(t, t->count) == 0) return true;
  const tm_status status = errand_launch(t->e, t->queue, NULL, 0, &t->last);
  if (status != TM_OK) return trial_fail(&t->run->t, "launch on queue %u gave %d (%s)", t->queue, status, t->s->text);
  const bool is_fetched = fetch_result(t);
  if (t->run->t.failed || !wait_in_slices(t)) return false;
  const bool is_pending = wait_for(t, TM_WAIT_POLL) == TM_PENDING, is_right = !is_fetched || errand_judge(t->e, &wrong);
  if (is_pending) return trial_fail(&t->run->t, "a wait for %u ms gave TM_OK while the work was pending", SLICE_MS);
  return is_right || trial_fail(&t->run->t, "after a wait for %u ms that gave TM_OK the result is wrong: %s", SLICE_MS, wrong.text);
}

static bool is_right_after_slices(timed *t) {
  bool is_right = true;
  t->is_in_pieces = false;
  do {
    is_right = is_right_once(t);
    (void)wait_for(t, TM_WAIT_FOREVER);         /* or it works on what is gone by then */
  } while (is_right && !t->is_in_pieces && takes_more(t));
  return is_right;
}

/* ---- whose time passes before it is over ---- */

typedef enum course { PASSES, GOES_ON, IS_SHORT } course;

/* Whether it went on to the end of what takes much longer, once. */
static course course_of(timed *t, uint64_t timeout_ns) {
  if (put(t, t->count) < t->count) return PASSES;
  const uint64_t begin_ns = tm_now_ns();
  const tm_status status = wait_for(t, timeout_ns);
  t->long_ns = tm_now_ns() - begin_ns;
  (void)wait_for(t, TM_WAIT_FOREVER);
  if (status != TM_OK) return PASSES;
  return t->long_ns >= LONG_SLICES * TM_WAIT_SLICE_NS ? GOES_ON : IS_SHORT;
}

static bool comes_back(timed *t, uint64_t timeout_ns, const char *what) {
  for (uint32_t late = 0; late < ROUNDS;) {
    const course went = course_of(t, timeout_ns);
    if (went == PASSES) return true;
    if (went == IS_SHORT && !takes_more(t)) {
      snprintf(t->run->in_part, sizeof t->run->in_part, "no work takes %u pieces of %u ms", LONG_SLICES, SLICE_MS);
      return true;
    }
    late += went == GOES_ON;
  }
  return trial_fail(&t->run->t, "%s came back only once the work was over, which took %llu ms, %u times of %u", what,
                    (unsigned long long)(t->long_ns / NS_PER_MS), ROUNDS, ROUNDS);
}

static void check_queue(timed *t) {
  t->count = 0;
  t->long_ns = 0;
  if (finds_enough(t) && is_right_after_slices(t) && comes_back(t, TM_WAIT_SLICE_NS, "a wait for 20 ms"))
    (void)comes_back(t, TM_WAIT_POLL, "a poll");
}

/* The first queue and the last. */
static void check_queues(timed *t) {
  const uint32_t queues = t->s->info.queue_count == 0 ? 1 : t->s->info.queue_count, ends = queues == 1 ? 1 : 2;
  for (uint32_t i = 0; i < ends && !t->run->t.failed && !manner_ends_early(t->run, i, ends, "queues"); i++) {
    t->queue = i == 0 ? 0 : queues - 1;
    check_queue(t);
    if (t->count == 0 && !t->run->t.failed) manner_skip(t->run, "nothing keeps a queue of it busy");
  }
}

void manner_check_timed_waits(manner_run *run) {
  subject s;
  errand e;
  ballast b;
  if (!manner_open(run, &s, 0)) return;
  timed t = { .run = run, .s = &s, .e = &e, .b = &b };
  const bool has_errand = errand_make(&e, &s, 0, run->seed, &run->t);
  ballast_make(&b, &s, run->seed);
  if (!has_errand && !run->t.failed) manner_skip(run, "it claims nothing");
  else if ((s.info.flags & TM_DEVICE_SYNCHRONOUS) != 0) manner_skip(run, "it computes inside its calls");
  else if (has_errand) check_queues(&t);
  ballast_free(&b);
  errand_free(&e);
  subject_close(&s);
}
