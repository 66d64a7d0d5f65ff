/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a question is answered fast: the host asks every device about every operation before it runs it anywhere. */
#include "base/clock.h"
#include "conformance/manner.h"

#define ENOUGH 9u
#define LEAST 3u                /* however late it is */
#define NS_PER_MS 1e6

/* The first questions of a process may find something out for all that follow. */
static void ask(manner_run *run) {
  const combination_list *list = run->options->combinations;
  const last_call *calls = run->options->calls;
  subject s;
  if (!manner_open(run, &s, 0)) return;
  for (uint32_t i = 0; i < list->count && atomic_load(&calls->question_count) < ENOUGH; i++) {
    question q;
    const bool is_late = run->end_ns != 0 && tm_now_ns() >= run->end_ns;
    if (is_late && atomic_load(&calls->question_count) >= LEAST) break;
    if (question_make(&q, &list->items[i], 0, run->seed)) (void)subject_ask_question(&s, &q);
  }
  subject_close(&s);
}

void manner_check_question_time(manner_run *run) {
  uint32_t count = 0;
  if (atomic_load(&run->options->calls->question_count) < ENOUGH) ask(run);
  const uint64_t median_ns = last_call_median_ns(run->options->calls, &count);
  if (run->t.failed || median_ns <= MANNER_QUESTION_NS) return;
  trial_fail(&run->t, "query takes %.1f ms (the median of %u), where microseconds are right and %.0f ms the most",
             (double)median_ns / NS_PER_MS, count, (double)MANNER_QUESTION_NS / NS_PER_MS);
}
