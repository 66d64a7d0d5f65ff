/* SPDX-License-Identifier: Apache-2.0 */
/* process_traces.h - what belongs to the process and a plugin must leave alone, before and after. */
#ifndef TM_LIBEXEC_PROCESS_TRACES_H
#define TM_LIBEXEC_PROCESS_TRACES_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define TRACED_SIGNALS 64

typedef struct process_traces {
  uint32_t         thread_count;
  uint64_t         environment;
  uint64_t         folder;
  uint64_t         locale;
  uint64_t         streams;
  mode_t           mask;
  struct sigaction handlers[TRACED_SIGNALS];
} process_traces;

void process_traces_take(process_traces *out_traces);

/* Says in one sentence what is different, or nothing.  Threads that are still ending are waited for. */
void process_traces_compare(const process_traces *before, const process_traces *after, bool float_mode_changed, char *out_text,
                            size_t capacity);

#endif
