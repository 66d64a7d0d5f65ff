/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue that is full.  Something long keeps it busy, launches or short transfers are put behind it, and the one that comes back
 * only once there is room has waited for the device.  What is long: transfers, else launches of many elements.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
#define MOST_BALLAST 16u
#define SMALL_BYTES 64u
#define LARGE_ELEMENTS (UINT64_C(1) << 20)
#define LARGEST_ELEMENTS (UINT64_C(1) << 22)
#define NO_LAUNCH UINT32_MAX

/* What is put behind that which is long. */
typedef enum filler { LAUNCH, UPLOAD, DOWNLOAD, FILLERS } filler;

static const char *const filler_names[FILLERS] = { "launch", "upload", "download" };

typedef struct filling {
  manner_run    *run;
  subject       *s;
  errand        *e;
  filler         what;
  tm_buffer     *buffer;        /* of long transfers; NULL: launches are what is long */
  tm_buffer     *small;         /* of short transfers; NULL: it has none */
  unsigned char *host;
  uint32_t       ballast_count; /* before the first filler; 0: that one is long itself */
  uint64_t       item_ns;       /* that the queue is busy with one of them, or with one launch */
  bool           was_full;      /* one found the queue full */
  unsigned char  small_host[SMALL_BYTES];
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

/* The ballast, of which `next` is the first that is not known to be over. */
typedef struct line {
  tm_ticket tickets[MOST_BALLAST];
  uint32_t  count;
  uint32_t  next;
} line;

static tm_status put_ballast(filling *f, tm_ticket *out_ticket) {
  const tm_transfer up = { .struct_size = sizeof up, .destination = f->buffer, .host = f->host, .bytes = BALLAST_BYTES };
  return f->buffer != NULL ? SUBJECT_CALL(f->s, upload)(f->s->device, &up, out_ticket) : errand_launch_once(f->e, 0, out_ticket);
}

static void load(filling *f, line *out_line) {
  memset(out_line, 0, sizeof *out_line);
  while (out_line->count < f->ballast_count && put_ballast(f, &out_line->tickets[out_line->count]) == TM_OK) out_line->count++;
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

static uint32_t enough_ballast(const filling *f) { return (uint32_t)tm_min_u64(MOST_BALLAST, 1 + ENOUGH_NS / f->item_ns); }

static bool finds_transfers(filling *f) {
  begin_transfers(f);
  f->ballast_count = 1;
  f->item_ns = f->buffer != NULL ? weigh(f, weigh_transfers) : 0;
  if (f->item_ns < LEAST_NS) {
    end_transfers(f);
    return false;
  }
  f->ballast_count = enough_ballast(f);
  return true;
}

/* In the place of the errand that the caller made, which is not long. */
static bool finds_launches(filling *f) {
  trial unused = { .failed = false };
  for (uint64_t elements = LARGE_ELEMENTS; elements <= LARGEST_ELEMENTS; elements *= 4) {
    errand_free(f->e);
    if (!errand_make_large(f->e, f->s, 0, elements, f->run->seed, &unused)) return false;
    f->item_ns = weigh(f, weigh_launch);
    if (f->item_ns >= LEAST_NS) return true;
  }
  return false;
}

/* ---- filling ---- */

static tm_status put(filling *f, tm_ticket *out_ticket) {
  tm_transfer transfer = { .struct_size = sizeof transfer, .host = f->small_host, .bytes = SMALL_BYTES };
  *out_ticket = (tm_ticket){ 0, 0, 0 };
  if (f->what == LAUNCH) return errand_launch_once(f->e, 0, out_ticket);
  *(f->what == UPLOAD ? &transfer.destination : &transfer.source) = f->small;
  return f->what == UPLOAD ? SUBJECT_CALL(f->s, upload)(f->s->device, &transfer, out_ticket)
                           : SUBJECT_CALL(f->s, download)(f->s->device, &transfer, out_ticket);
}

/* Who has no cancel gets a default that says of anything that it is quiet, so that the last ticket is waited for. */
static bool quieten(filling *f, const tm_ticket *last) {
  const uint64_t end_ns = tm_now_ns() + PATIENCE_NS;
  tm_status left = TM_BUSY;
  while (left == TM_BUSY && tm_now_ns() < end_ns) left = SUBJECT_CALL(f->s, cancel)(f->s->device, 0);
  if (left != TM_OK) return trial_fail(&f->run->t, "cancelling a full queue gave %d", left);
  (void)SUBJECT_CALL(f->s, wait)(f->s->device, last, 1, TM_WAIT_FOREVER);
  return true;
}

/* The oldest work that is not known to be over: ballast, else a launch. */
static bool is_busy(filling *f, line *l, const tm_ticket *oldest) {
  return f->ballast_count != 0 ? is_pending_line(f, l) : is_pending(f->s, oldest);
}

/* Whether it came back once work before it was over, and took most of that one's time; beside a queue with room, it takes next
   to none. */
static bool has_waited(filling *f, line *l, const tm_ticket *oldest, uint64_t taken_ns) {
  const uint32_t before = l->next;
  if (taken_ns <= f->item_ns / 2) return false;
  return !is_busy(f, l, oldest) || l->next != before;
}

/* Puts until one says BUSY, nothing is left before them, or one has waited: its number. */
static bool find_blocking(filling *f, uint32_t *out_launch) {
  line l;
  tm_ticket oldest = { 0, 0, 0 }, ticket = oldest;
  tm_status status = TM_OK;
  const bool has_ballast = f->ballast_count != 0;
  const uint64_t most = has_ballast ? LAUNCHES : tm_max_u64(LEAST_LAUNCHES, WORK_NS / f->item_ns);
  load(f, &l);
  *out_launch = NO_LAUNCH;
  const uint64_t end_ns = tm_now_ns() + ROUND_NS;
  for (uint32_t i = 0; i < most && *out_launch == NO_LAUNCH && tm_now_ns() < end_ns; i++) {
    const bool was_busy = is_busy(f, &l, &oldest);
    tm_ticket next;
    if (has_ballast && !was_busy) break;
    const uint64_t begin_ns = tm_now_ns();
    status = put(f, &next);
    if (status != TM_OK) break;
    ticket = next;
    if (was_busy && has_waited(f, &l, &oldest, tm_now_ns() - begin_ns)) *out_launch = i;
    if (!is_pending(f->s, &oldest)) oldest = ticket;
  }
  f->was_full |= status == TM_BUSY;
  if (status != TM_OK && status != TM_BUSY)       /* what is queued is waited for all the same: nothing is taken from under it */
    (void)trial_fail(&f->run->t, "%s behind long work gave %d (%s)", filler_names[f->what], status, f->s->text);
  if (l.count != 0) (void)SUBJECT_CALL(f->s, wait)(f->s->device, l.tickets, l.count, TM_WAIT_FOREVER);
  return quieten(f, &ticket) && !f->run->t.failed;
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
    trial_fail(&f->run->t, "%s number %u behind %s waits for the device, each time; a full queue is BUSY", filler_names[f->what],
               blocking + 1, f->buffer != NULL ? "a long transfer" : f->what == LAUNCH ? "others" : "long launches");
}

/* The transfers of the check itself are over, however it went: a cancel or a wait has seen to that. */
static bool can_transfer(filling *f) {
  return !f->s->host_makes_buffers && SUBJECT_CALL(f->s, buffer_create)(f->s->device, 0, SMALL_BYTES, &f->small) == TM_OK;
}

/* The errand is long by now, or transfers are. */
static void fill_with_all(filling *f) {
  bool was_full = false;
  for (uint32_t what = LAUNCH; what < FILLERS && !f->run->t.failed; what++) {
    if (what != LAUNCH && f->small == NULL && !can_transfer(f)) break;
    if (manner_ends_early(f->run, what, FILLERS, "kinds of work")) break;
    f->what = (filler)what;
    f->was_full = false;
    if (f->buffer == NULL) f->ballast_count = what == LAUNCH ? 0 : enough_ballast(f);
    fill_queue(f);
    was_full |= f->was_full;
  }
  if (!was_full && f->run->in_part[0] == '\0') snprintf(f->run->in_part, sizeof f->run->in_part, "its queue was never full");
  if (f->small != NULL) subject_buffer_free(f->s, f->small, SMALL_BYTES);
}

void manner_check_full_queue(manner_run *run) {
  subject s;
  errand e;
  if (!manner_open(run, &s, 0)) return;
  filling f = { .run = run, .s = &s, .e = &e };
  const bool has_errand = errand_make(&e, &s, 0, run->seed, &run->t);
  if (!has_errand && !run->t.failed) manner_skip(run, "it claims nothing");
  else if ((s.info.flags & TM_DEVICE_SYNCHRONOUS) != 0) manner_skip(run, "it computes inside its calls");
  else if (has_errand && (finds_transfers(&f) || finds_launches(&f))) fill_with_all(&f);
  else if (has_errand) manner_skip(run, "nothing keeps a queue of it busy for long enough");
  end_transfers(&f);
  errand_free(&e);
  subject_close(&s);
}
