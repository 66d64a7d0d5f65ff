/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue that is full.  Something long keeps it busy, launches are put behind it, and the one that comes back only once there
 * is room has waited for the device.  What is long: transfers, else launches of many elements themselves.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/clock.h"
#include "conformance/errand.h"
#include "conformance/manner.h"

#define ATTEMPTS 3u
#define ROUNDS 3u
#define WEIGHINGS 3u
#define LAUNCHES 16384u
#define LEAST_LAUNCHES 8u
#define ROUND_NS (UINT64_C(500) * 1000000)
#define WORK_NS (UINT64_C(1000) * 1000000)      /* that is queued at most, where launches are long */
#define PATIENCE_NS (UINT64_C(20) * 1000000000)
#define LEAST_NS UINT64_C(2000000)              /* less does not tell a wait from a hiccup */
#define ENOUGH_NS UINT64_C(40000000)
#define BALLAST_BYTES (UINT64_C(32) << 20)
#define MOST_TRANSFERS 16u
#define LARGE_ELEMENTS (UINT64_C(1) << 20)
#define LARGEST_ELEMENTS (UINT64_C(1) << 22)
#define NO_LAUNCH UINT32_MAX

typedef struct filling {
  manner_run    *run;
  subject       *s;
  errand        *e;
  tm_buffer     *buffer;        /* NULL: no transfers; launches are long enough */
  unsigned char *host;
  uint32_t       transfer_count; /* before the first launch */
  uint64_t       item_ns;       /* that the queue is busy with one of them, or with one launch */
  bool           was_full;      /* a launch found the queue full */
} filling;

static bool is_pending(subject *s, const tm_ticket *ticket) {
  return ticket->value != 0 && SUBJECT_CALL(s, wait)(s->device, ticket, 1, TM_WAIT_POLL) == TM_PENDING;
}

/* ---- what keeps a queue busy ---- */

static void begin_transfers(filling *f) {
  const uint64_t largest = f->s->space.largest_buffer_bytes;
  if (f->s->host_makes_buffers || (largest != 0 && largest < BALLAST_BYTES)) return;
  f->host = calloc(1, BALLAST_BYTES);
  if (f->host == NULL || SUBJECT_CALL(f->s, buffer_create)(f->s->device, 0, BALLAST_BYTES, &f->buffer) != TM_OK) f->buffer = NULL;
}

static void end_transfers(filling *f) {
  if (f->buffer != NULL) subject_buffer_free(f->s, f->buffer, BALLAST_BYTES);
  free(f->host);
  f->buffer = NULL;
  f->host = NULL;
}

/* The transfers, of which `next` is the first that is not known to be over. */
typedef struct line {
  tm_ticket tickets[MOST_TRANSFERS];
  uint32_t  count;
  uint32_t  next;
} line;

static void load(filling *f, line *out_line) {
  const tm_transfer up = { .struct_size = sizeof up, .destination = f->buffer, .host = f->host, .bytes = BALLAST_BYTES };
  memset(out_line, 0, sizeof *out_line);
  while (f->buffer != NULL && out_line->count < f->transfer_count &&
         SUBJECT_CALL(f->s, upload)(f->s->device, &up, &out_line->tickets[out_line->count]) == TM_OK)
    out_line->count++;
  (void)SUBJECT_CALL(f->s, flush)(f->s->device, 0);
}

static bool is_pending_line(filling *f, line *l) {
  while (l->next < l->count && !is_pending(f->s, &l->tickets[l->next])) l->next++;
  return l->next < l->count;
}

static uint64_t weigh_transfers(filling *f) {
  line l;
  load(f, &l);
  const uint64_t begin_ns = tm_now_ns();
  const bool is_there = is_pending_line(f, &l);
  (void)SUBJECT_CALL(f->s, wait)(f->s->device, l.tickets, l.count, TM_WAIT_FOREVER);
  return is_there ? tm_now_ns() - begin_ns : 0;
}

static uint64_t weigh_launch(filling *f) {
  tm_ticket ticket;
  const uint64_t begin_ns = tm_now_ns();
  if (errand_launch(f->e, 0, NULL, 0, &ticket) != TM_OK) return 0;
  (void)SUBJECT_CALL(f->s, wait)(f->s->device, &ticket, 1, TM_WAIT_FOREVER);
  return tm_now_ns() - begin_ns;
}

/* The least of some: the first one may compile, or touch memory for the first time. */
static uint64_t weigh(filling *f, uint64_t (*one)(filling *f)) {
  uint64_t least_ns = UINT64_MAX;
  for (uint32_t i = 0; i < WEIGHINGS; i++) least_ns = tm_min_u64(least_ns, one(f));
  return least_ns;
}

static bool finds_transfers(filling *f) {
  begin_transfers(f);
  f->transfer_count = 1;
  f->item_ns = f->buffer != NULL ? weigh(f, weigh_transfers) : 0;
  if (f->item_ns < LEAST_NS) {
    end_transfers(f);
    return false;
  }
  f->transfer_count = (uint32_t)tm_min_u64(MOST_TRANSFERS, 1 + ENOUGH_NS / f->item_ns);
  return true;
}

/* In the place of the errand that the caller made, which is not long. */
static bool finds_launches(filling *f) {
  trial unused = { .failed = false };
  for (uint64_t elements = LARGE_ELEMENTS; elements <= LARGEST_ELEMENTS; elements *= 4) {
    errand_free(f->e);
    if (!errand_make_large(f->e, f->s, elements, f->run->seed, &unused)) return false;
    f->item_ns = weigh(f, weigh_launch);
    if (f->item_ns >= LEAST_NS) return true;
  }
  return false;
}

/* ---- filling ---- */

/* Who has no cancel gets a default that says of anything that it is quiet, so that the last ticket is waited for. */
static bool quieten(filling *f, const tm_ticket *last) {
  const uint64_t end_ns = tm_now_ns() + PATIENCE_NS;
  tm_status left = TM_BUSY;
  while (left == TM_BUSY && tm_now_ns() < end_ns) left = SUBJECT_CALL(f->s, cancel)(f->s->device, 0);
  if (left != TM_OK) return trial_fail(&f->run->t, "cancelling a full queue gave %d", left);
  (void)SUBJECT_CALL(f->s, wait)(f->s->device, last, 1, TM_WAIT_FOREVER);
  return true;
}

/* The oldest work that is not known to be over: a transfer, else a launch. */
static bool is_busy(filling *f, line *l, const tm_ticket *oldest) {
  return f->buffer != NULL ? is_pending_line(f, l) : is_pending(f->s, oldest);
}

/* Whether it came back once work before it was over, and took most of that one's time; beside a queue with room, launches take
   next to none. */
static bool has_waited(filling *f, line *l, const tm_ticket *oldest, uint64_t taken_ns) {
  const uint32_t before = l->next;
  if (taken_ns <= f->item_ns / 2) return false;
  return !is_busy(f, l, oldest) || l->next != before;
}

/* Launches until one says BUSY, nothing is left before them, or one has waited: its number. */
static bool find_blocking(filling *f, uint32_t *out_launch) {
  line l;
  tm_ticket oldest = { 0, 0, 0 }, ticket = oldest;
  tm_status status = TM_OK;
  const bool has_transfers = f->buffer != NULL;
  const uint64_t most = has_transfers ? LAUNCHES : tm_max_u64(LEAST_LAUNCHES, WORK_NS / f->item_ns);
  load(f, &l);
  *out_launch = NO_LAUNCH;
  const uint64_t end_ns = tm_now_ns() + ROUND_NS;
  for (uint32_t i = 0; i < most && *out_launch == NO_LAUNCH && tm_now_ns() < end_ns; i++) {
    const bool was_busy = is_busy(f, &l, &oldest);
    tm_ticket next;
    if (has_transfers && !was_busy) break;
    const uint64_t begin_ns = tm_now_ns();
    status = errand_launch_once(f->e, 0, &next);
    if (status != TM_OK) break;
    ticket = next;
    if (was_busy && has_waited(f, &l, &oldest, tm_now_ns() - begin_ns)) *out_launch = i;
    if (!is_pending(f->s, &oldest)) oldest = ticket;
  }
  f->was_full |= status == TM_BUSY;
  if (status != TM_OK && status != TM_BUSY) return trial_fail(&f->run->t, "a launch behind long work gave %d (%s)", status, f->s->text);
  if (l.count != 0) (void)SUBJECT_CALL(f->s, wait)(f->s->device, l.tickets, l.count, TM_WAIT_FOREVER);
  return quieten(f, &ticket);
}

static bool is_about(uint32_t launch, uint32_t first) {
  const uint32_t apart = launch > first ? launch - first : first - launch;
  return apart <= first / 8 + 1;
}

/* Several times, since a machine under load delays any launch, but not the same one each time; NO_LAUNCH if there is no such one. */
static uint32_t find_always_blocking(filling *f) {
  uint32_t first = NO_LAUNCH;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    uint32_t blocking = NO_LAUNCH;
    if (!find_blocking(f, &blocking) || blocking == NO_LAUNCH || (round != 0 && !is_about(blocking, first))) return NO_LAUNCH;
    first = blocking;
  }
  return first;
}

static void fill_queue(filling *f) {
  uint32_t blocking = NO_LAUNCH;
  for (uint32_t i = 0; i < ATTEMPTS && !f->was_full && blocking == NO_LAUNCH && !f->run->t.failed; i++) {
    if (manner_ends_early(f->run, i, ATTEMPTS, "attempts")) break;
    blocking = find_always_blocking(f);
  }
  if (blocking != NO_LAUNCH)
    trial_fail(&f->run->t, "launch number %u behind %s waits for the device, each time; a full queue is BUSY", blocking + 1,
               f->buffer != NULL ? "a long transfer" : "others");
  else if (!f->was_full) snprintf(f->run->in_part, sizeof f->run->in_part, "its queue was never full");
}

void manner_check_full_queue(manner_run *run) {
  subject s;
  errand e;
  if (!manner_open(run, &s, 0)) return;
  filling f = { .run = run, .s = &s, .e = &e };
  const bool has_errand = errand_make(&e, &s, 0, run->seed, &run->t);
  if (!has_errand && !run->t.failed) manner_skip(run, "it claims nothing");
  else if ((s.info.flags & TM_DEVICE_SYNCHRONOUS) != 0) manner_skip(run, "it computes inside its calls");
  else if (has_errand && (finds_transfers(&f) || finds_launches(&f))) fill_queue(&f);
  else if (has_errand) manner_skip(run, "nothing keeps a queue of it busy for long enough");
  end_transfers(&f);
  errand_free(&e);
  subject_close(&s);
}
