/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/errand.h"
#include "conformance/manner.h"
#include "conformance/process_state.h"

/* A driver may keep something for the life of the process; what grows with each life of the backend is a leak. */
#define ROUNDS 3

typedef struct moment {
  manner_run *run;
  const char *when;
} moment;

/* The first one is told. */
static void tell(void *context, const char *what) {
  const moment *m = context;
  if (!m->run->t.failed) trial_fail(&m->run->t, "changes %s %s", what, m->when);
}

static void compare(manner_run *run, const process_state *before, const char *when) {
  process_state after;
  moment m = { run, when };
  process_state_read(&after);
  process_state_compare(before, &after, tell, &m);
}

static void work(manner_run *run, subject *s, const process_state *before) {
  errand e;
  tm_ticket ticket;
  if (!errand_make(&e, s, 0, run->seed, &run->t)) {
    errand_free(&e);
    return;
  }
  compare(run, before, "when it prepares");
  if (errand_launch(&e, 0, NULL, 0, &ticket) == TM_OK && (s->info.flags & TM_DEVICE_SYNCHRONOUS) == 0)
    (void)s->table.wait(s->device, &ticket, 1, TM_WAIT_FOREVER);
  compare(run, before, "when it runs");
  errand_free(&e);
}

static void live(manner_run *run) {
  process_state before;
  subject s;
  process_state_read(&before);
  if (!manner_open(run, &s, 0)) return;
  compare(run, &before, "when it opens");
  if (!run->t.failed) work(run, &s, &before);
  subject_close(&s);
  compare(run, &before, "when it closes");
}

void manner_check_process(manner_run *run) {
  uint32_t threads = 0, descriptors = 0;
  for (int i = 0; i < ROUNDS && !run->t.failed; i++) {
    live(run);
    const uint32_t now_threads = process_thread_count(i == 0 ? 1 : threads), now_descriptors = process_descriptor_count();
    if (i > 0 && now_threads > threads)
      trial_fail(&run->t, "leaves %u more thread(s) running after each shutdown", now_threads - threads);
    if (i > 0 && now_descriptors > descriptors)
      trial_fail(&run->t, "leaves %u more file descriptor(s) open after each shutdown", now_descriptors - descriptors);
    threads = now_threads;
    descriptors = now_descriptors;
  }
}
