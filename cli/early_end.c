/* SPDX-License-Identifier: Apache-2.0 */
#include "early_end.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "complain.h"

/* An exit handler gets no argument.  0: the end is expected; a child that somebody forked is not this process. */
static _Atomic long watched_process;

static void complain_of_end(void) {
  if (atomic_load(&watched_process) != (long)getpid()) return;
  _exit(tm_complain_as(TM_EXIT_TROUBLE, "something that was loaded ended the process before the command was done, and nothing of "
                                        "its output counts; tensormorph backends lists what is loaded, and plugin check tries it"));
}

void tm_early_end_watch(void) {
  if (atexit(complain_of_end) == 0) atomic_store(&watched_process, (long)getpid());
}

void tm_early_end_expect(void) { atomic_store(&watched_process, 0); }
