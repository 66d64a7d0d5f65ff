/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/environment_watch.h"
#include "conformance/errand.h"
#include "conformance/manner.h"
#include "conformance/process_children.h"
#include "conformance/process_state.h"

/* A driver may keep something for the life of the process, and add to the environment when it is first loaded; what grows or
   changes with each life of the backend, or while it works, is not its to take. */
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
  process_state_read(&after, environment_watch_excuses);
  if (after.printed_bytes > before->printed_bytes)
    trial_fail(&run->t, "prints %llu bytes %s", (unsigned long long)(after.printed_bytes - before->printed_bytes), when);
  process_state_compare(before, &after, tell, &m);
}

static void work(manner_run *run, subject *s, const process_state *before) {
  errand e;
  tm_ticket ticket;
  if (!errand_make(&e, s, 0, run->seed, &run->t)) {
    errand_free(&e);
    return;
  }
  compare(run, before, "before its first launch: in query, prepare or upload");
  if (errand_launch(&e, 0, NULL, 0, &ticket) == TM_OK && (s->info.flags & TM_DEVICE_SYNCHRONOUS) == 0)
    (void)SUBJECT_CALL(s, wait)(s->device, &ticket, 1, TM_WAIT_FOREVER);
  compare(run, before, "in launch or wait");
  errand_free(&e);
}

typedef struct opening {
  manner_run   *run;
  process_state before;
} opening;

static void look_after_init(void *context) {
  opening *o = context;
  compare(o->run, &o->before, "in init");
}

static void live(manner_run *run) {
  subject s;
  opening o = { .run = run };
  subject_options options = *run->options;
  options.after_init = look_after_init;
  options.context = &o;
  process_state_read(&o.before, environment_watch_excuses);
  const process_state before = o.before;
  const tm_status status = subject_open(&s, &options);
  if (status != TM_OK) {
    trial_fail(&run->t, "the device does not open: status %d (%s)", status, s.text);
    return;
  }
  compare(run, &before, "when it opens");
  environment_watch_end();
  if (!run->t.failed) work(run, &s, &before);
  subject_close(&s);
  compare(run, &before, "when it closes");
}

void manner_check_process(manner_run *run) {
  uint32_t threads = 0, descriptors = 0;
  if (run->in_this_process) {
    manner_skip(run, "it needs a process of its own");
    return;
  }
  process_children children;
  process_children_read(&children);
  environment_watch_begin();
  for (int i = 0; i < ROUNDS && !run->t.failed && !manner_ends_early(run, (uint64_t)i, ROUNDS, "lives"); i++) {
    live(run);
    const uint32_t now_threads = process_thread_count(i == 0 ? 1 : threads), now_descriptors = process_descriptor_count();
    if (i > 0 && now_threads > threads)
      trial_fail(&run->t, "leaves %u more thread(s) running after each shutdown", now_threads - threads);
    if (i > 0 && now_descriptors > descriptors)
      trial_fail(&run->t, "leaves %u more file descriptor(s) open after each shutdown", now_descriptors - descriptors);
    const uint32_t left = process_children_count(&children);
    if (left != 0) trial_fail(&run->t, "leaves %u process(es) running after a shutdown", left);
    threads = now_threads;
    descriptors = now_descriptors;
  }
  environment_watch_describe(run->note, sizeof run->note);
}
