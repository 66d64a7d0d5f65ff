/* SPDX-License-Identifier: Apache-2.0 */
#include "job_watch.h"

#include "interrupt.h"
#include "progress_line.h"

/* How long a wait for the job may last before progress and signals are looked at. */
#define WAIT_NS UINT64_C(20000000)

static void answer_signal(tm_job_watch *watch) {
  const int number = tm_interrupt_poll();
  if (number == 0) return;
  /* The first one asks the job to end; whoever sends a second one wants the process to go, whatever it is doing. */
  if (watch->signal_number != 0) tm_interrupt_act(number);
  watch->signal_number = number;
  tm_job_cancel(watch->job);
}

tm_status tm_job_watch_wait(tm_job_watch *watch, tm_error *error) {
  tm_progress_line line;
  tm_progress      progress = { .struct_size = sizeof progress };
  tm_status        status;
  tm_progress_line_init(&line, &watch->invocation->terminal, watch->shows_progress, tm_terminal_now_ns());
  for (;;) {
    status = tm_job_wait(watch->job, WAIT_NS, error);
    if (watch->meanwhile != NULL) watch->meanwhile(watch->context);
    if (status != TM_PENDING) break;
    answer_signal(watch);
    if (watch->invocation->output->error != 0) tm_job_cancel(watch->job);
    tm_job_progress(watch->job, &progress);
    tm_progress_line_update(&line, &progress, tm_terminal_now_ns());
  }
  tm_progress_line_clear(&line);
  return status;
}
