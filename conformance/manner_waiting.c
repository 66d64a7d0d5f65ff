/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first that is asked of a queue, on memory that nobody misses: a wait that comes back early would have everything that
 * follows write to memory that is long freed.
 */
#include <stdlib.h>
#include <time.h>

#include "conformance/errand.h"
#include "conformance/manner.h"

#define AREA_BYTES (UINT64_C(4) << 20)
#define ROUNDS 4u
#define LAST_BYTES 64u
#define LATER_NS 300000000l

static void wait_a_while(void) {
  const struct timespec later = { 0, LATER_NS };
  nanosleep(&later, NULL);
}

/* The end is looked at first: whatever is still being copied arrives there last. */
static bool is_there(const unsigned char *seen, const unsigned char *sent, uint64_t bytes) {
  return memcmp(seen + bytes - LAST_BYTES, sent + bytes - LAST_BYTES, LAST_BYTES) == 0 && memcmp(seen, sent, bytes) == 0;
}

static bool send_and_fetch(manner_run *run, subject *s, tm_buffer *buffer, unsigned char *sent, unsigned char *seen,
                           uint64_t bytes) {
  tm_ticket ticket = { 0, 0, 0 };
  const tm_transfer up = { .struct_size = sizeof up, .destination = buffer, .host = sent, .bytes = bytes };
  const tm_transfer down = { .struct_size = sizeof down, .source = buffer, .host = seen, .bytes = bytes };
  tm_status status = subject_transfer(s, SUBJECT_CALL(s, upload), &up, &ticket);
  if (status != TM_OK) return trial_fail(&run->t, "an upload gave %d (%s)", status, s->text);
  ticket = (tm_ticket){ 0, 0, 0 };
  status = subject_transfer(s, SUBJECT_CALL(s, download), &down, &ticket);
  if (status != TM_OK) return trial_fail(&run->t, "a download gave %d (%s)", status, s->text);
  if (is_there(seen, sent, bytes)) return true;
  wait_a_while();
  if (!is_there(seen, sent, bytes)) return trial_fail(&run->t, "a download does not bring back what was uploaded");
  return trial_fail(&run->t, MANNER_EARLY_WAIT " (a download, with ticket %llu)", (unsigned long long)ticket.value);
}

static void check_transfers(manner_run *run, subject *s, unsigned char *sent, unsigned char *seen) {
  const uint64_t largest = s->space.largest_buffer_bytes, bytes = largest != 0 && largest < AREA_BYTES ? largest : AREA_BYTES;
  tm_buffer *buffer = NULL;
  if (bytes < LAST_BYTES || SUBJECT_CALL(s, buffer_create)(s->device, 0, bytes, &buffer) != TM_OK) {
    manner_skip(run, "no buffer to be had");
    return;
  }
  for (uint32_t round = 0; round < ROUNDS && !run->t.failed; round++) {
    memset(sent, (int)round + 1, bytes);
    memset(seen, 0xee, bytes);
    (void)send_and_fetch(run, s, buffer, sent, seen, bytes);
  }
  SUBJECT_CALL(s, buffer_destroy)(s->device, 0, buffer, bytes, 0);
}

/* In the host's memory: a result. */
static void check_launch(manner_run *run, subject *s) {
  errand e;
  tm_ticket ticket;
  trial early = { .failed = false }, later = { .failed = false };
  if (errand_make(&e, s, 0, run->seed, &run->t) && errand_launch(&e, 0, NULL, 0, &ticket) == TM_OK &&
      SUBJECT_CALL(s, wait)(s->device, &ticket, 1, TM_WAIT_FOREVER) == TM_OK && !errand_judge(&e, &early)) {
    wait_a_while();
    if (errand_judge(&e, &later))
      trial_fail(&run->t, MANNER_EARLY_WAIT " (a launch, with ticket %llu)", (unsigned long long)ticket.value);
  }
  errand_free(&e);
}

void manner_check_waiting(manner_run *run) {
  subject s;
  if (!manner_open(run, &s, 0)) return;
  unsigned char *sent = malloc(AREA_BYTES), *seen = malloc(AREA_BYTES);
  if (sent == NULL || seen == NULL) manner_skip(run, "no memory");
  else if ((s.info.flags & TM_DEVICE_SYNCHRONOUS) != 0) manner_skip(run, "it works inside its calls");
  else if (s.host_makes_buffers) check_launch(run, &s);
  else check_transfers(run, &s, sent, seen);
  subject_close(&s);
  if (run->t.failed) return;    /* the device may still write there */
  free(sent);
  free(seen);
}
