/* SPDX-License-Identifier: Apache-2.0 */
/* Manners of queues: tickets, waits, and work that nobody waits for. */
#include <stdlib.h>

#include "base/clock.h"
#include "conformance/errand.h"
#include "conformance/manner.h"
#include "plugin/table.h"

#define RUNS 6u
#define ROUNDS 4u
#define LARGE_ELEMENTS (UINT64_C(1) << 20)
#define POLLS 100000u
#define PATIENCE_NS (UINT64_C(20) * 1000000000)
#define SHORT_NS UINT64_C(1000000)
#define BALLAST_BYTES (UINT64_C(32) << 20)

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

/* Something that keeps a queue busy while more is put behind it, on devices that have such a thing. */
typedef struct ballast {
  tm_buffer     *buffer;
  unsigned char *host;
  tm_ticket      ticket;
} ballast;

static void load(subject *s, ballast *b) {
  const uint64_t largest = s->space.largest_buffer_bytes;
  *b = (ballast){ .ticket = { 0, 0, 0 } };
  if (is_synchronous(s) || s->host_makes_buffers || (largest != 0 && largest < BALLAST_BYTES)) return;
  b->host = calloc(1, BALLAST_BYTES);
  if (b->host == NULL || SUBJECT_CALL(s, buffer_create)(s->device, 0, BALLAST_BYTES, &b->buffer) != TM_OK) return;
  const tm_transfer up = { .struct_size = sizeof up, .destination = b->buffer, .host = b->host, .bytes = BALLAST_BYTES };
  if (SUBJECT_CALL(s, upload)(s->device, &up, &b->ticket) != TM_OK) b->ticket.value = 0;
}

static void unload(subject *s, ballast *b) {
  (void)SUBJECT_CALL(s, wait)(s->device, &b->ticket, 1, TM_WAIT_FOREVER);
  subject_buffer_free(s, b->buffer, BALLAST_BYTES);
  free(b->host);
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

/* Work that waits for another queue's: the download must see what the launch wrote. */
static bool chain_queues(manner_run *run, subject *s, errand *e) {
  tm_ticket first, second = { 0, 0, 0 };
  image *output = &e->operands[e->q.c.operation.input_count];
  if (is_synchronous(s) || s->host_makes_buffers || last_queue(s) == 0) return true;
  if (!errand_reset(e, &run->t) || !start(run, e, 0, NULL, 0, &first)) return false;
  const tm_transfer transfer = {.struct_size = sizeof transfer,
                                .queue = last_queue(s),
                                .source = output->buffer,
                                .host = output->bytes,
                                .bytes = output->size,
                                .waits = &first,
                                .wait_count = 1};
  const tm_status status = SUBJECT_CALL(s, download)(s->device, &transfer, &second);
  if (status != TM_OK) return trial_fail(&run->t, "a download that waits for another queue gave %d (%s)", status, s->text);
  if (second.value != 0 && !wait_for(run, s, &second, 1, "for a download behind another queue's launch")) return false;
  trial seen = { .failed = false };
  const bool good = errand_judge(e, &seen);
  return good || trial_fail(&run->t, "a download that waits for another queue's launch does not see its result: %s", seen.text);
}

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
static bool wait_for_mixed(manner_run *run, subject *s, errand *e, uint32_t turn) {
  tm_ticket tickets[RUNS + 2] = { { 0, 0, 0 } };
  ballast b;
  uint32_t count = 1;
  if (!start(run, e, 0, NULL, 0, &tickets[0]) || !wait_for(run, s, &tickets[0], 1, "for a launch")) return false;
  load(s, &b);
  if (b.ticket.value != 0) tickets[count++] = b.ticket;
  for (uint32_t i = 0; i < RUNS && !run->t.failed; i++)
    if (start(run, e, turn % 2 == 0 ? 0 : last_queue(s), NULL, 0, &tickets[count])) count++;
  const tm_ticket few[] = { tickets[0], tickets[count - 1] };
  const bool good = !run->t.failed && (turn < ROUNDS / 2 ? ask_and_wait(run, s, few, 2) : ask_and_wait(run, s, tickets, count));
  for (uint32_t i = 0; i < count; i++) (void)SUBJECT_CALL(s, wait)(s->device, &tickets[i], 1, TM_WAIT_FOREVER);
  unload(s, &b);
  return good;
}

/* Where transfers are none, launches are what is long. */
static bool wait_for_several(manner_run *run, subject *s, errand *e) {
  errand large;
  trial unused = { .failed = false };
  if (is_synchronous(s)) return true;
  const bool has_large = s->host_makes_buffers && errand_make_large(&large, s, LARGE_ELEMENTS, run->seed, &unused);
  bool good = true;
  for (uint32_t turn = 0; turn < ROUNDS && good; turn++) good = wait_for_mixed(run, s, has_large ? &large : e, turn);
  if (s->host_makes_buffers) errand_free(&large);
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
  tm_ticket ticket;
  const tm_status status = SUBJECT_CALL(s, cancel)(s->device, 0);
  if (status != TM_OK) return trial_fail(&run->t, "cancelling an idle queue gave %d", status);
  if (!errand_reset(e, &run->t) || !start(run, e, 0, NULL, 0, &ticket)) return false;
  return wait_for(run, s, &ticket, 1, "after a cancel") && errand_check(e, &run->t);
}

void manner_check_order(manner_run *run) {
  subject s;
  errand e[2];
  if (!manner_open(run, &s, 0)) return;
  const bool has_first = errand_make(&e[0], &s, 0, run->seed, &run->t);
  const bool has_second = errand_make(&e[1], &s, has_first ? 1 : 0, run->seed + 1, &run->t) ||
                          (!run->t.failed && has_first && (errand_free(&e[1]), errand_make(&e[1], &s, 0, run->seed + 1, &run->t)));
  if (!has_first && !run->t.failed) manner_skip(run, "it claims nothing");
  if (has_first && has_second)
    (void)(wait_backwards(run, &s, e) && poll_until_done(run, &s, &e[0]) && chain_queues(run, &s, &e[1]) &&
           wait_for_several(run, &s, &e[0]) && refuse_future(run, &s, &e[0]) && cancel_idle(run, &s, &e[0]));
  errand_free(&e[1]);
  errand_free(&e[0]);
  subject_close(&s);
}

/* ---- work that nobody waits for ---- */

/* Once cancel said that all is quiet, nothing is pending any more. */
static bool is_quiet(manner_run *run, subject *s, const tm_ticket *ticket) {
  if (!tm_plugin_table_has_cancel(&s->table)) return true;      /* the default says so of anything */
  const tm_status status = SUBJECT_CALL(s, wait)(s->device, ticket, 1, TM_WAIT_POLL);
  if (status != TM_PENDING) return true;
  return trial_fail(&run->t, "cancel gave TM_OK while ticket %llu of the queue was still pending",
                    (unsigned long long)ticket->value);
}

/* What the host does with a device that it gave up: cancel until the queue is quiet, then take everything away. */
static bool abandon(manner_run *run, subject *s, errand *e, const ballast *b) {
  tm_ticket tickets[RUNS];
  for (uint32_t i = 0; i < RUNS; i++)
    if (!start(run, e, i % 2 == 0 ? 0 : last_queue(s), NULL, 0, &tickets[i])) return false;
  const uint64_t end_ns = tm_now_ns() + PATIENCE_NS;
  for (uint32_t queue = 0; queue <= last_queue(s); queue += last_queue(s) == 0 ? 1 : last_queue(s)) {
    tm_status status = TM_BUSY;
    while (status == TM_BUSY && tm_now_ns() < end_ns) status = SUBJECT_CALL(s, cancel)(s->device, queue);
    if (status != TM_OK) return trial_fail(&run->t, "cancelling queue %u with work underway gave %d", queue, status);
    if (queue == 0 && (!is_quiet(run, s, &b->ticket) || !is_quiet(run, s, &tickets[0]))) return false;
  }
  for (uint32_t i = 0; i < RUNS; i++) {
    const tm_status status = SUBJECT_CALL(s, wait)(s->device, &tickets[i], 1, TM_WAIT_FOREVER);
    if (status != TM_OK && status != TM_ERROR_CANCELLED && status != TM_ERROR_PREDECESSOR)
      return trial_fail(&run->t, "waiting for cancelled work gave %d", status);
  }
  return true;
}

void manner_check_abandoned_work(manner_run *run) {
  for (int life = 0; life < 2 && !run->t.failed && run->skipped[0] == '\0'; life++) {
    if (manner_ends_early(run, (uint64_t)life, 2, "lives")) return;
    subject s;
    errand e;
    if (!manner_open(run, &s, 0)) return;
    if (!errand_make(&e, &s, 0, run->seed, &run->t)) {
      if (!run->t.failed) manner_skip(run, "it claims nothing");
    } else {
      tm_ticket ticket;
      ballast b;
      load(&s, &b);
      const bool good = abandon(run, &s, &e, &b);
      unload(&s, &b);
      if (good && errand_reset(&e, &run->t) && start(run, &e, 0, NULL, 0, &ticket) && wait_for(run, &s, &ticket, 1, "after a cancel"))
        (void)errand_check(&e, &run->t);
    }
    errand_free(&e);
    subject_close(&s);
  }
}
