/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/manner.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

const manner manners[] = {
    /* First, in a process in which the backend was never opened: what it changes once is changed after that. */
    {"process", "leaves alone what belongs to the process, prints nothing, and leaves no threads or descriptors behind",
     manner_check_process, false},
    {"waiting", "has done the work when wait comes back", manner_check_waiting, true},
    {"question-time", "answers a question in microseconds", manner_check_question_time, true},
    {"life-cycle", "opens, closes and shuts down as often as one likes, keeps nothing, and answers the same each time",
     manner_check_life_cycle, false},
    {"description", "describes its devices within the sizes it is given, the same each time", manner_check_description, false},
    {"longer-structs", "takes longer structs with a zero tail, and refuses others", manner_check_longer_structs, false},
    {"order", "completes queues in order, whatever is waited for first", manner_check_order, false},
    {"timed-waits", "waits as long as it is told to, in the pieces in which a host waits", manner_check_timed_waits, false},
    {"many-launches", "computes the same with one kernel however often it is launched, and with many launches under way",
     manner_check_many_launches, false},
    {"transfers", "moves bytes to and from any place of a buffer, and no others", manner_check_transfers, false},
    {"buffers", "makes buffers of any size, or says that it cannot", manner_check_buffers, false},
    {"memory-shortage", "survives a host without memory, and loses nothing", manner_check_memory_shortage, false},
    {"growth", "gives back what it takes, of the process's memory and the device's, whatever is done how often",
     manner_check_growth, false},
    {"full-queue", "says BUSY when a queue is full, and does not wait for room", manner_check_full_queue, false},
    {"threads", "is called from several threads at once where the contract allows it", manner_check_threads, false},
    {"abandoned-work", "can be cancelled, released and closed with work underway", manner_check_abandoned_work, false},
    /* Last: it goes on as long as there is time. */
    {"overclaims", "says no to what nobody could do", manner_check_overclaims, false},
};
const uint32_t manner_count = sizeof manners / sizeof manners[0];

const manner *manner_by_name(const char *name) {
  for (uint32_t i = 0; i < manner_count; i++)
    if (strcmp(manners[i].name, name) == 0) return &manners[i];
  return NULL;
}

void manner_skip(manner_run *run, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(run->skipped, sizeof run->skipped, format, arguments);
  va_end(arguments);
}

bool manner_ends_early(manner_run *run, uint64_t done, uint64_t all, const char *what) {
  if (done == 0 || done >= all || run->end_ns == 0 || tm_now_ns() < run->end_ns) return false;
  snprintf(run->in_part, sizeof run->in_part, "%llu of %llu %s before its time was over", (unsigned long long)done,
           (unsigned long long)all, what);
  return true;
}

bool manner_open(manner_run *run, subject *s, uint32_t threads) {
  subject_options options = *run->options;
  options.threads = threads;
  const tm_status status = subject_open(s, &options);
  return status == TM_OK || trial_fail(&run->t, "the device does not open: status %d (%s)", status, s->text);
}
