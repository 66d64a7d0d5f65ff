/* SPDX-License-Identifier: Apache-2.0 */
#include "early_end.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "complain.h"
#include "plugin_command.h"
#include "preferences.h"
#include "tensormorph/tensormorph.h"

/* An exit handler gets no argument.  0: the end is expected; a child that somebody forked is not this process. */
static _Atomic long watched_process;

/* An exit comes from within a call, mostly; another thread may have been in one, too, so this is who was at work and no more. */
static void find_calls(char *out_text, size_t capacity) {
  char folder[1024];
  out_text[0] = '\0';
  if (tm_preferences_state_path(getenv("XDG_STATE_HOME"), getenv("HOME"), folder, sizeof folder))
    tm_running_calls_describe(folder, out_text, capacity);
}

static void complain_of_end(void) {
  char calls[300];
  if (atomic_load(&watched_process) != (long)getpid()) return;
  find_calls(calls, sizeof calls);
  const bool is_known = calls[0] != '\0';
  const char *check = is_known ? ", and tensormorph plugin check tries it" : ", and plugin check tries it";
  if (!tm_plugin_can_check()) check = "";
  _exit(tm_complain_as(TM_EXIT_TROUBLE, "something that was loaded ended the process before the command was done%s%s, and nothing "
                       "of its output counts; %s%s", is_known ? "; at work was " : "", calls,
                       is_known ? "--no-device does without it" : "tensormorph backends lists what is loaded", check));
}

void tm_early_end_watch(void) {
  if (atexit(complain_of_end) == 0) atomic_store(&watched_process, (long)getpid());
}

void tm_early_end_expect(void) { atomic_store(&watched_process, 0); }
