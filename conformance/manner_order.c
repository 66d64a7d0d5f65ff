/* SPDX-License-Identifier: Apache-2.0 */
/* Manners of queues: tickets and waits. */
#include "base/checked.h"
#include "base/clock.h"
#include "conformance/ballast.h"
#include "conformance/errand.h"
#include "conformance/manner.h"
#include "plugin/table.h"

#define RUNS 6u
#define ROUNDS 4u
#define POLLS 100000u
#define PATIENCE_NS (UINT64_C(20) * 1000000000)
#define SHORT_NS UINT64_C(1000000)
#define IDLE_TURNS 3u
#define IDLE_NS UINT64_C(400000000)     /* asked about for so long, */
#define IDLE_SHARE 10u                  /* and over in one of so many parts of that */
#define CHAIN_SHARE 4u                  /* of a ballast, as there are some twenty */
#define SMALL_BYTES 64u
#define LARGEST_UNIT (UINT64_C(1) << 22)
#define MOST_QUEUES 4u

static bool is_synchronous(const subject *s) { return (s->info.flags & TM_DEVICE_SYNCHRONOUS) != 0; }

static uint32_t last_queue(const subject *s) { return s->info.queue_count <= 1 ? 0 : s->info.queue_count - 1; }

static bool start(manner_run *run, errand *e, uint32_t queue, const tm_ticket *waits, uint32_t wait_count, tm_ticket *ticket) {
  const tm_status status = errand_launch(e, queue, waits, wait_count, ticket);
  if (status != TM_OK) return trial_fail(&run->t, "launch on queue %u gave %d (%s)", queue, status, e->s->text);
  if (is_synchronous(e->s) && ticket->value == 0) return true;
  if (ticket->value == 0) return trial_fail(&run->t, "launch left no ticket, on a device that is not synchronous");
  return ticket->queue == queue || trial_fail(&run->t, "launch on queue %u gave a ticket of queue %u", queue, ticket->queue);
}

static bool wait_for(manner_run *run, subject *s, const tm_ticket *tickets, uint32_t count, const char *what) {
  const tm_status status = SUBJECT_CALL(s, wait)(s->device, tickets, count, TM_WAIT_FOREVER);
  return status == TM_OK || trial_fail(&run->t, "waiting %s gave %d (%s)", what, status, s->text);
}

/* Several launches on two queues, waited for from the last to the first, each also when it is long complete. */
static bool wait_backwards(manner_run *run, subject *s, errand *e) {
  tm_ticket tickets[RUNS];
  const tm_ticket nothing = { 0, 0, 0 };
  if (!wait_for(run, s, &nothing, 1, "for ticket 0") || !wait_for(run, s, tickets, 0, "for no ticket")) return false;
  for (uint32_t i = 0; i < RUNS; i++)
    if (!start(run, &e[i % 2], i % 2 == 0 ? 0 : last_queue(s), NULL, 0, &tickets[i])) return false;
  for (uint32_t i = RUNS; i-- > 0;)
    if (!wait_for(run, s, &tickets[i], 1, "from the last ticket to the first")) return false;
  for (uint32_t i = 2; i < RUNS && !is_synchronous(s) && last_queue(s) != 0; i++)
    if (tickets[i].value != tickets[i - 2].value + 1)
      return trial_fail(&run->t, "tickets of queue %u are not dense: %llu after %llu", tickets[i].queue,
                        (unsigned long long)tickets[i].value, (unsigned long long)tickets[i - 2].value);
  return wait_for(run, s, tickets, RUNS, "for all tickets at once, again") && errand_check(&e[0], &run->t) &&
         errand_check(&e[1], &run->t);
}

/* Asking is not waiting, and a flush is enough for work to end. */
static bool poll_until_done(manner_run *run, subject *s, errand *e) {
  tm_ticket ticket;
  if (!errand_reset(e, &run->t) || !start(run, e, last_queue(s), NULL, 0, &ticket)) return false;
  if (SUBJECT_CALL(s, flush)(s->device, ticket.queue) != TM_OK) return trial_fail(&run->t, "flush fails");
  tm_status status = TM_PENDING;
  const uint64_t end_ns = tm_now_ns() + PATIENCE_NS;
  for (uint32_t i = 0; status == TM_PENDING && i < POLLS && tm_now_ns() < end_ns; i++)
    status = SUBJECT_CALL(s, wait)(s->device, &ticket, 1, i % 64 == 63 ? SHORT_NS : TM_WAIT_POLL);
  if (status == TM_PENDING) return trial_fail(&run->t, "flushed work does not end while it is only asked about");
  if (status != TM_OK) return trial_fail(&run->t, "asking for a ticket gave %d (%s)", status, s->text);
  return errand_check(e, &run->t);
}

/* A flush that does nothing is one behind which asking finds nothing, time and again, and a wait the end in no time. */
static bool starts_without_wait(manner_run *run, subject *s, errand *e) {
  if (is_synchronous(s)) return true;
  for (uint32_t turn = 0; turn < IDLE_TURNS; turn++) {
    tm_ticket ticket;
    tm_status status = TM_PENDING;
    if (!errand_reset(e, &run->t) || !start(run, e, last_queue(s), NULL, 0, &ticket)) return false;
    if (SUBJECT_CALL(s, flush)(s->device, ticket.queue) != TM_OK) return trial_fail(&run->t, "flush fails");
    const uint64_t end_ns = tm_now_ns() + IDLE_NS;
    while (status == TM_PENDING && tm_now_ns() < end_ns)
      status = SUBJECT_CALL(s, wait)(s->device, &ticket, 1, TM_WAIT_POLL);
    const uint64_t begin_ns = tm_now_ns();
    if (!wait_for(run, s, &ticket, 1, "for flushed work")) return false;
    if (status != TM_PENDING || tm_now_ns() - begin_ns > IDLE_NS / IDLE_SHARE) return true;
  }
  return trial_fail(&run->t, "flushed work does not begin before it is waited for, %u times of %u", IDLE_TURNS, IDLE_TURNS);
}

/* ---- work that waits for another queue's ---- */

typedef enum waiter { LAUNCH, UPLOAD, DOWNLOAD, COPY, WAITERS } waiter;
/* Where the ticket of something long stands among those that are waited for.  Another one is long complete, or under way still
   and over before it. */
typedef enum wait_list {
  ALONE, BEHIND_OWN, BEHIND_SAME, BEFORE_SAME, BEFORE_OWN, BEHIND_EARLIER, BEFORE_EARLIER, BEHIND_NEIGHBOUR, BEFORE_NEIGHBOUR, WAIT_LISTS
} wait_list;

static const char *const waiter_names[WAITERS] = { "launch", "upload", "download", "copy" };

typedef struct chain {
  manner_run *run;
  subject    *s;
  errand     *e;
  ballast    *b;                /* put on queue 0 */
  tm_buffer  *small;            /* room for twice `unit`; NULL: there are no transfers */
  uint64_t    unit;             /* bytes, a whole number of granules */
  tm_ticket   own;              /* complete ones: of the queue that waits, */
  tm_ticket   same;             /* and of the one that is busy */
  unsigned char host[SMALL_BYTES];
} chain;

/* The long one, and in front of it what the list wants to be under way. */
static tm_ticket begin_long(const chain *c, wait_list list, tm_ticket *out_other) {
  const bool has_neighbour = list == BEHIND_NEIGHBOUR || list == BEFORE_NEIGHBOUR;
  *out_other = list == BEHIND_OWN || list == BEFORE_OWN ? c->own : c->same;
  if (list >= BEHIND_EARLIER) *out_other = ballast_put(c->b, has_neighbour ? 1 : 0);
  if (has_neighbour) (void)ballast_put(c->b, 0);
  return ballast_put(c->b, 0);
}

static uint32_t list_waits(wait_list list, tm_ticket busy, tm_ticket other, tm_ticket *waits) {
  const uint32_t place = list == BEHIND_OWN || list == BEHIND_SAME || list == BEHIND_EARLIER || list == BEHIND_NEIGHBOUR;
  waits[0] = waits[1] = other;
  waits[place] = busy;
  return list == ALONE ? 1 : 2;
}

static tm_status put(chain *c, waiter what, const tm_ticket *waits, uint32_t count, tm_ticket *out_ticket) {
  const uint32_t queue = last_queue(c->s);
  tm_transfer transfer = { .struct_size = sizeof transfer, .queue = queue, .bytes = SMALL_BYTES, .waits = waits, .wait_count = count };
  *out_ticket = (tm_ticket){ queue, 0, 0 };
  if (what == LAUNCH) return errand_launch(c->e, queue, waits, count, out_ticket);
  if (what != UPLOAD) transfer.source = c->small;
  if (what != DOWNLOAD) transfer.destination = c->small;
  if (what != COPY) transfer.host = c->host;
  if (what == COPY) transfer.destination_offset = c->unit;
  if (what == UPLOAD) return SUBJECT_CALL(c->s, upload)(c->s->device, &transfer, out_ticket);
  return what == COPY ? SUBJECT_CALL(c->s, copy)(c->s->device, &transfer, out_ticket)
                      : SUBJECT_CALL(c->s, download)(c->s->device, &transfer, out_ticket);
}

/* Whatever it does, it is not over before that which it waits for. */
static bool comes_behind(chain *c, waiter what, wait_list list) {
  subject *s = c->s;
  tm_ticket waits[2], ticket, other;
  const tm_ticket busy = begin_long(c, list, &other);
  if (busy.value == 0) return true;
  const uint32_t count = list_waits(list, busy, other, waits);
  const tm_status status = put(c, what, waits, count, &ticket);
  bool good = status == TM_OK;
  if (!good) trial_fail(&c->run->t, "a %s that waits for another queue gave %d (%s)", waiter_names[what], status, s->text);
  if (status == TM_OK) good = wait_for(c->run, s, &ticket, 1, "for work behind another queue's");
  if (status == TM_OK && good && SUBJECT_CALL(s, wait)(s->device, &busy, 1, TM_WAIT_POLL) == TM_PENDING)
    good = trial_fail(&c->run->t, "a %s is over before another queue's work that it waits for, number %u of %u tickets",
                      waiter_names[what], waits[0].value == busy.value && waits[0].queue == busy.queue ? 1 : 2, count);
  (void)SUBJECT_CALL(s, wait)(s->device, &other, 1, TM_WAIT_FOREVER);
  (void)SUBJECT_CALL(s, wait)(s->device, &busy, 1, TM_WAIT_FOREVER);
  return good;
}

/* Launches with each list of tickets, transfers with two of them: each costs one to three of what is long. */
static void chain_all(chain *c) {
  for (uint32_t what = LAUNCH; what < WAITERS && (what == LAUNCH || c->small != NULL); what++)
    for (uint32_t list = ALONE; list < WAIT_LISTS; list++) {
      if (list >= BEHIND_NEIGHBOUR && last_queue(c->s) < 2) continue;
      if (what != LAUNCH && list != ALONE && list != BEHIND_EARLIER) continue;
      if (what == COPY && !tm_plugin_table_has_copy(&c->s->own)) continue;
      if (!comes_behind(c, (waiter)what, (wait_list)list)) return;
    }
}

/* What was written behind something long is what is brought back. */
static bool sees_result(manner_run *run, subject *s, errand *e, ballast *b) {
  tm_ticket first, second = { 0, 0, 0 };
  image *output = &e->operands[e->q.c.operation.input_count];
  if (s->host_makes_buffers) return true;
  if (!errand_reset(e, &run->t)) return false;
  const tm_ticket busy = ballast_put(b, 0);
  const bool has_begun = start(run, e, 0, NULL, 0, &first);
  const tm_transfer transfer = { .struct_size = sizeof transfer, .queue = last_queue(s), .source = output->buffer,
                                 .host = output->bytes, .bytes = output->size, .waits = &first, .wait_count = 1 };
  const tm_status status = has_begun ? SUBJECT_CALL(s, download)(s->device, &transfer, &second) : TM_OK;
  if (status != TM_OK) trial_fail(&run->t, "a download that waits for another queue gave %d (%s)", status, s->text);
  if (second.value != 0) (void)wait_for(run, s, &second, 1, "for a download behind another queue's launch");
  (void)SUBJECT_CALL(s, wait)(s->device, &busy, 1, TM_WAIT_FOREVER);
  if (has_begun) (void)SUBJECT_CALL(s, wait)(s->device, &first, 1, TM_WAIT_FOREVER);    /* or it works on what is gone by then */
  if (run->t.failed) return false;
  trial seen = { .failed = false };
  const bool good = errand_judge(e, &seen);
  return good || trial_fail(&run->t, "a download that waits for another queue's launch does not see its result: %s", seen.text);
}

static bool chain_queues(manner_run *run, subject *s, errand *e, ballast *b) {
  chain c = { .run = run, .s = s, .e = e, .b = b, .unit = (uint64_t)SMALL_BYTES * s->space.offset_granule * s->space.store_granule };
  if (is_synchronous(s) || last_queue(s) == 0) return true;
  if (!s->host_makes_buffers && c.unit <= LARGEST_UNIT && SUBJECT_CALL(s, buffer_create)(s->device, 0, 2 * c.unit, &c.small) != TM_OK)
    c.small = NULL;
  bool good = start(run, e, last_queue(s), NULL, 0, &c.own) && start(run, e, 0, NULL, 0, &c.same);
  const tm_ticket all[] = { c.own, c.same };
  b->bytes /= CHAIN_SHARE;
  if (good && wait_for(run, s, all, 2, "for launches on each queue") && sees_result(run, s, e, b)) chain_all(&c);
  b->bytes *= CHAIN_SHARE;
  if (c.small != NULL) subject_buffer_free(s, c.small, 2 * c.unit);
  return !run->t.failed;
}

/* ---- several tickets ---- */

/* A yes about several is one about each. */
static bool is_over(manner_run *run, subject *s, const tm_ticket *tickets, uint32_t count, const char *what) {
  for (uint32_t i = 0; i < count; i++)
    if (SUBJECT_CALL(s, wait)(s->device, &tickets[i], 1, TM_WAIT_POLL) == TM_PENDING)
      return trial_fail(&run->t, "%s %u tickets gave TM_OK while number %u of them was pending", what, count, i + 1);
  return true;
}

static bool ask_and_wait(manner_run *run, subject *s, const tm_ticket *tickets, uint32_t count) {
  const tm_status status = SUBJECT_CALL(s, wait)(s->device, tickets, count, TM_WAIT_POLL);
  if (status == TM_OK && !is_over(run, s, tickets, count, "asking about")) return false;
  return wait_for(run, s, tickets, count, "for several tickets") && is_over(run, s, tickets, count, "waiting for");
}

/* One that is long complete, and later ones that are not. */
static bool wait_for_mixed(manner_run *run, subject *s, errand *e, ballast *b, uint32_t turn) {
  tm_ticket tickets[RUNS + 2] = { { 0, 0, 0 } };
  uint32_t count = 1;
  if (!start(run, e, 0, NULL, 0, &tickets[0]) || !wait_for(run, s, &tickets[0], 1, "for a launch")) return false;
  const tm_ticket busy = ballast_put(b, 0);
  if (busy.value != 0) tickets[count++] = busy;
  for (uint32_t i = 0; i < RUNS && !run->t.failed; i++)
    if (start(run, e, turn % 2 == 0 ? 0 : last_queue(s), NULL, 0, &tickets[count])) count++;
  const tm_ticket few[] = { tickets[0], tickets[count - 1] };
  const bool good = !run->t.failed && (turn < ROUNDS / 2 ? ask_and_wait(run, s, few, 2) : ask_and_wait(run, s, tickets, count));
  for (uint32_t i = 0; i < count; i++) (void)SUBJECT_CALL(s, wait)(s->device, &tickets[i], 1, TM_WAIT_FOREVER);
  return good;
}

/* Where transfers are none, launches are what is long. */
static bool wait_for_several(manner_run *run, subject *s, errand *e, ballast *b) {
  if (is_synchronous(s)) return true;
  bool good = true;
  for (uint32_t turn = 0; turn < ROUNDS && good; turn++) good = wait_for_mixed(run, s, b->has_large ? &b->large : e, b, turn);
  return good;
}

static bool refuse_future(manner_run *run, subject *s, errand *e) {
  tm_ticket ticket;
  const tm_ticket future = { 0, 0, UINT64_C(1) << 40 };
  if (is_synchronous(s)) return true;
  const tm_status status = errand_launch(e, 0, &future, 1, &ticket);
  return status == TM_ERROR_ARGUMENT || trial_fail(&run->t, "a launch that waits for a ticket not yet issued gave %d", status);
}

static bool cancel_idle(manner_run *run, subject *s, errand *e) {
  for (uint32_t queue = 0; queue <= tm_min_u64(last_queue(s), MOST_QUEUES - 1); queue++) {
    tm_ticket ticket;
    const tm_status status = SUBJECT_CALL(s, cancel)(s->device, queue);
    if (status != TM_OK) return trial_fail(&run->t, "cancelling idle queue %u gave %d", queue, status);
    if (!errand_reset(e, &run->t) || !start(run, e, queue, NULL, 0, &ticket)) return false;
    if (!wait_for(run, s, &ticket, 1, "after a cancel") || !errand_check(e, &run->t)) return false;
  }
  return true;
}

void manner_check_order(manner_run *run) {
  subject s;
  errand e[2];
  ballast b;
  if (!manner_open(run, &s, 0)) return;
  const bool has_first = errand_make(&e[0], &s, 0, run->seed, &run->t);
  const bool has_second = errand_make(&e[1], &s, has_first ? 1 : 0, run->seed + 1, &run->t) ||
                          (!run->t.failed && has_first && (errand_free(&e[1]), errand_make(&e[1], &s, 0, run->seed + 1, &run->t)));
  if (!has_first && !run->t.failed) manner_skip(run, "it claims nothing");
  ballast_make(&b, &s, run->seed);
  if (has_first && has_second)
    (void)(wait_backwards(run, &s, e) && poll_until_done(run, &s, &e[0]) && starts_without_wait(run, &s, &e[0]) &&
           chain_queues(run, &s, &e[1], &b) &&
           wait_for_several(run, &s, &e[0], &b) && refuse_future(run, &s, &e[0]) && cancel_idle(run, &s, &e[0]));
  ballast_free(&b);
  errand_free(&e[1]);
  errand_free(&e[0]);
  subject_close(&s);
}
