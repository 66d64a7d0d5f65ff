/* SPDX-License-Identifier: Apache-2.0 */
/* job_watch.h - a job that runs while somebody waits for it: its progress, and Ctrl-C, which ends it in order. */
#ifndef TM_CLI_JOB_WATCH_H
#define TM_CLI_JOB_WATCH_H

#include "command.h"
#include "tensormorph/tensormorph.h"

typedef struct tm_job_watch {
  tm_invocation *invocation;    /* its interrupt watch is paused */
  tm_job        *job;
  bool           shows_progress;
  /* Called again and again, and once when the job has ended; NULL: nothing is to be done meanwhile. */
  void         (*meanwhile)(void *context);
  void          *context;
  int            signal_number; /* that ended it; 0: none did */
} tm_job_watch;

/* Returns how the job ended. */
tm_status tm_job_watch_wait(tm_job_watch *watch, tm_error *error);

#endif
