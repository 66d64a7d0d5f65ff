/* SPDX-License-Identifier: Apache-2.0 */
/* Work that nobody waits for: cancelled, released and closed while it is under way. */
#include "base/clock.h"
#include "conformance/ballast.h"
#include "conformance/errand.h"
#include "conformance/manner.h"
#include "plugin/table.h"

#define RUNS 6u
#define LIVES 2u
#define PATIENCE_NS (UINT64_C(20) * 1000000000)

/* A launch with a result of its own, and what is said of it once its queue was cancelled. */
typedef struct abandoned {
  errand    e;
  tm_ticket ticket;
  tm_status status;
} abandoned;

typedef struct scene {
  manner_run *run;
  subject    *s;
  errand     *e;
  ballast     b;
  uint32_t    queues[2];        /* the busy one first; both may be one */
  abandoned   all[RUNS];
} scene;

static uint32_t last_queue(const subject *s) { return s->info.queue_count <= 1 ? 0 : s->info.queue_count - 1; }

static bool start(manner_run *run, errand *e, uint32_t queue, tm_ticket *ticket) {
  const tm_status status = errand_launch(e, queue, NULL, 0, ticket);
  if (status != TM_OK) return trial_fail(&run->t, "launch on queue %u gave %d (%s)", queue, status, e->s->text);
  if (ticket->value != 0 || (e->s->info.flags & TM_DEVICE_SYNCHRONOUS) != 0) return true;
  return trial_fail(&run->t, "launch left no ticket, on a device that is not synchronous");
}

/* Once cancel said that all is quiet, nothing is pending any more; its default says so of anything. */
static bool look_at(scene *c, abandoned *one) {
  const bool has_cancel = tm_plugin_table_has_cancel(&c->s->table);
  one->status = SUBJECT_CALL(c->s, wait)(c->s->device, &one->ticket, 1, has_cancel ? TM_WAIT_POLL : TM_WAIT_FOREVER);
  if (one->status != TM_PENDING) return true;
  return trial_fail(&c->run->t, "cancel gave TM_OK while ticket %llu of queue %u was still pending",
                    (unsigned long long)one->ticket.value, one->ticket.queue);
}

/* As the host does with a device that it gave up. */
static bool cancel(scene *c, uint32_t queue, const tm_ticket *busy) {
  const uint64_t end_ns = tm_now_ns() + PATIENCE_NS;
  abandoned long_one = { .ticket = *busy };
  tm_status status = TM_BUSY;
  while (status == TM_BUSY && tm_now_ns() < end_ns) status = SUBJECT_CALL(c->s, cancel)(c->s->device, queue);
  if (status != TM_OK) return trial_fail(&c->run->t, "cancelling queue %u with work underway gave %d", queue, status);
  if (queue == busy->queue && !look_at(c, &long_one)) return false;
  for (uint32_t i = 0; i < RUNS; i++)
    if (c->all[i].ticket.queue == queue && !look_at(c, &c->all[i])) return false;
  return true;
}

/* What is cancelled never ran and stays cancelled; what is not has its result. */
static bool judge(scene *c, abandoned *one) {
  trial *t = &c->run->t;
  const tm_status status = SUBJECT_CALL(c->s, wait)(c->s->device, &one->ticket, 1, TM_WAIT_FOREVER);
  if (status != TM_OK && status != TM_ERROR_CANCELLED && status != TM_ERROR_PREDECESSOR)
    return trial_fail(t, "waiting for cancelled work gave %d", status);
  if (one->status == TM_ERROR_CANCELLED && status != TM_ERROR_CANCELLED)
    return trial_fail(t, "ticket %llu of queue %u was cancelled, and gives %d when it is asked for again",
                      (unsigned long long)one->ticket.value, one->ticket.queue, status);
  if (status == TM_ERROR_CANCELLED)
    return errand_is_untouched(&one->e) || trial_fail(t, "work that was cancelled wrote to its result");
  trial seen = { .failed = false };
  if (status != TM_OK || errand_check(&one->e, &seen)) return true;
  return trial_fail(t, "of work that was under way when its queue was cancelled wait gave TM_OK, and its result is wrong: %s", seen.text);
}

static bool abandon(scene *c) {
  bool good = true;
  for (uint32_t i = 0; i < RUNS && good; i++) good = errand_beside(&c->all[i].e, c->e, &c->run->t);
  if (!good) return false;
  const tm_ticket busy = ballast_put(&c->b, c->queues[0]);
  for (uint32_t i = 0; i < RUNS && good; i++) good = start(c->run, &c->all[i].e, c->queues[i % 2], &c->all[i].ticket);
  for (uint32_t i = 0; i < 2 && good; i++) good = (i == 1 && c->queues[0] == c->queues[1]) || cancel(c, c->queues[i], &busy);
  for (uint32_t i = 0; i < RUNS && good; i++) good = judge(c, &c->all[i]);
  /* Where it went wrong, work may be under way still. */
  (void)SUBJECT_CALL(c->s, wait)(c->s->device, &busy, 1, TM_WAIT_FOREVER);
  for (uint32_t i = 0; i < RUNS; i++) (void)SUBJECT_CALL(c->s, wait)(c->s->device, &c->all[i].ticket, 1, TM_WAIT_FOREVER);
  return good;
}

static bool works_again(scene *c, uint32_t queue) {
  tm_ticket ticket;
  if (!errand_reset(c->e, &c->run->t) || !start(c->run, c->e, queue, &ticket)) return false;
  const tm_status status = SUBJECT_CALL(c->s, wait)(c->s->device, &ticket, 1, TM_WAIT_FOREVER);
  if (status != TM_OK) return trial_fail(&c->run->t, "waiting after a cancel gave %d (%s)", status, c->s->text);
  return errand_check(c->e, &c->run->t);
}

static void abandon_each(manner_run *run, subject *s, errand *e) {
  scene c = { .run = run, .s = s, .e = e };
  const uint32_t last = last_queue(s);
  ballast_make(&c.b, s, run->seed);
  for (uint32_t turn = 0; turn < (last == 0 ? 1 : 2) && !run->t.failed; turn++) {
    memset(c.all, 0, sizeof c.all);
    c.queues[0] = turn == 0 ? 0 : last;
    c.queues[1] = turn == 0 ? last : 0;
    for (uint32_t i = 0; i < RUNS; i++) c.all[i].e.s = s;
    const bool good = abandon(&c);
    for (uint32_t i = 0; i < RUNS; i++) errand_free(&c.all[i].e);
    if (good) (void)(works_again(&c, 0) && works_again(&c, last));
  }
  ballast_free(&c.b);
}

void manner_check_abandoned_work(manner_run *run) {
  for (uint32_t life = 0; life < LIVES && !run->t.failed && run->skipped[0] == '\0'; life++) {
    if (manner_ends_early(run, life, LIVES, "lives")) return;
    subject s;
    errand e;
    if (!manner_open(run, &s, 0)) return;
    if (errand_make(&e, &s, 0, run->seed, &run->t)) abandon_each(run, &s, &e);
    else if (!run->t.failed) manner_skip(run, "it claims nothing");
    errand_free(&e);
    subject_close(&s);
  }
}
