/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/campaign.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/promises.h"

#define UNCLAIMED_CASES 6u              /* a combination that says no so often is not claimed */
#define SECONDS_A_COMBINATION 120u
#define THREADS 2u
#define FORMS 2u                        /* serial ranges, then threads */

/* Shared with the child: where it is, and what became of it before it could tell. */
typedef struct progress {
  volatile uint32_t combination;
  volatile uint32_t number;
  volatile uint32_t is_open;
  volatile int32_t  open_status;
  char              text[200];
} progress;

/* What a child sends when a combination is done. */
typedef struct message {
  report_claim claim;           /* which.row NULL: none, only counts */
  uint64_t     question_count;
  uint64_t     refusal_count;
  uint64_t     unchecked_change_count;
} message;

typedef struct runner {
  const campaign         *campaign;
  const combination_list *list;
  progress               *shared;
  report                 *report;
  uint32_t                form;
} runner;

/* ---- in the child ---- */

static uint64_t seed_of(const campaign *c, const combination *which, uint32_t number) {
  uint64_t state = c->seed ^ ((uint64_t)which->row->op << 40) ^ ((uint64_t)which->inputs << 36);
  for (uint32_t i = 0; i <= which->inputs; i++) state = random_u64(&state) ^ which->formats[i];
  state = random_u64(&state) ^ number;
  return random_u64(&state);
}

static void note_failure(report_claim *claim, const question *q, const trial *t, uint32_t number) {
  claim->failure_count++;
  if (claim->failure[0] != '\0') return;
  char what[200];
  question_describe(q, what, sizeof what);
  snprintf(claim->failure, sizeof claim->failure, "%s; case %u: %s", t->text, number, what);
}

/* One case; true if it was accepted. */
static bool test_case(const campaign *c, subject *s, const combination *which, uint32_t number, bool is_first, report *r) {
  question q;
  const uint64_t seed = seed_of(c, which, number);
  if (!question_make(&q, which, number, seed)) return false;
  trial t = { .failed = false };
  const tm_answer answer = subject_ask(s, &q.c.operation);
  const bool accepted = answer.level != TM_LEVEL_REFUSED;
  r->question_count++;
  promises_check_answer(&t, s, &q, &answer);
  if (accepted) {
    if (is_first && !t.failed) promises_check_strangers(&t, s, &q, &answer, seed);
    if (is_first && !t.failed) promises_check_scale(&t, s, which, &q, &answer, seed);
    if (is_first && !t.failed) trial_run_out_of_memory(&t, s, &q, &answer);
    if (!t.failed) trial_run(&t, s, &q, &answer, seed);
  } else {
    r->refusal_count++;
    promises_check_changes(&t, s, &q, &answer, &r->unchecked_change_count);
  }
  if (!accepted && !t.failed) return false;
  report_claim *claim = report_row(r, which, &answer);
  if (claim == NULL) return accepted;
  claim->case_count++;
  if (t.worst > claim->worst) claim->worst = t.worst;
  if (t.failed) {
    note_failure(claim, &q, &t, number);
    r->failure_count++;
  }
  return accepted;
}

static void test_combination(const runner *run, subject *s, const combination *which, report *r) {
  const campaign *c = run->campaign;
  const uint32_t first = run->form * (c->cases / FORMS);
  const uint32_t end = run->form + 1 == FORMS ? c->cases : first + c->cases / FORMS;
  bool claimed = false;
  for (uint32_t number = first; number < end && !(c->stop_at_first && r->failure_count != 0); number++) {
    if (c->only_case_plus_one != 0 && number + 1 != c->only_case_plus_one) continue;
    if (!claimed && number >= first + UNCLAIMED_CASES && c->only_case_plus_one == 0) break;
    run->shared->number = number;
    if (test_case(c, s, which, number, !claimed, r)) claimed = true;
  }
}

static bool send_all(int to, const void *data, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t wrote = write(to, (const char *)data + done, bytes - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    done += (size_t)wrote;
  }
  return true;
}

static void send_report(int to, const report *r) {
  message m;
  memset(&m, 0, sizeof m);
  m.question_count = r->question_count;
  m.refusal_count = r->refusal_count;
  m.unchecked_change_count = r->unchecked_change_count;
  for (uint32_t i = 0; i < r->count; i++) {
    m.claim = r->claims[i];
    if (!send_all(to, &m, sizeof m)) return;
    m.question_count = m.refusal_count = m.unchecked_change_count = 0;
  }
  m.claim.which.row = NULL;
  if (r->count == 0) (void)send_all(to, &m, sizeof m);
}

static bool is_wanted(const campaign *c, const combination *which) {
  return c->only == NULL || (c->only->row == which->row && c->only->inputs == which->inputs &&
                             memcmp(c->only->formats, which->formats, (which->inputs + 1) * sizeof which->formats[0]) == 0);
}

/* Whatever handlers the parent has: a signal ends the child and is seen. */
static void forget_handlers(void) {
  static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM };
  for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) (void)signal(signals[i], SIG_DFL);
}

static int run_child(const runner *run, uint32_t from, int to) {
  subject s;
  subject_options options = run->campaign->subject;
  forget_handlers();
  options.threads = run->form == 0 ? 0 : THREADS;
  run->shared->open_status = subject_open(&s, &options);
  snprintf(run->shared->text, sizeof run->shared->text, "%s", s.text);
  if (run->shared->open_status != TM_OK) return 1;
  run->shared->is_open = 1;
  for (uint32_t i = from; i < run->list->count; i++) {
    report own = { .count = 0 };
    run->shared->combination = i;
    if (!is_wanted(run->campaign, &run->list->items[i])) continue;
    alarm(SECONDS_A_COMBINATION);
    test_combination(run, &s, &run->list->items[i], &own);
    send_report(to, &own);
    report_free(&own);
  }
  subject_close(&s);
  return 0;
}

/* ---- in the parent ---- */

static void receive(int from, report *r) {
  message m;
  size_t have = 0;
  for (;;) {
    const ssize_t got = read(from, (char *)&m + have, sizeof m - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    have += (size_t)got;
    if (have < sizeof m) continue;
    have = 0;
    r->question_count += m.question_count;
    r->refusal_count += m.refusal_count;
    r->unchecked_change_count += m.unchecked_change_count;
    if (m.claim.which.row != NULL) (void)report_add(r, &m.claim);
  }
}

/* The row of a case that ended its process has level and class of a refusal: nothing else is known of it. */
static void note_death(const runner *run, int status) {
  if (run->shared->combination >= run->list->count) return;
  const combination *which = &run->list->items[run->shared->combination];
  const tm_answer unknown = { .level = TM_LEVEL_REFUSED };
  report_claim *claim = report_row(run->report, which, &unknown);
  if (claim == NULL) return;
  claim->case_count++;
  claim->failure_count++;
  run->report->failure_count++;
  if (claim->failure[0] != '\0') return;
  const uint32_t number = run->shared->number;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
    snprintf(claim->failure, sizeof claim->failure, "did not end within %u s; case %u", SECONDS_A_COMBINATION, number);
  else if (WIFSIGNALED(status))
    snprintf(claim->failure, sizeof claim->failure, "ended the process with signal %d; case %u", WTERMSIG(status), number);
  else
    snprintf(claim->failure, sizeof claim->failure, "ended the process with exit code %d; case %u", WEXITSTATUS(status), number);
}

/* Forks for the combinations from `from` on; where to go on, or UINT32_MAX when no child can be had. */
static uint32_t run_from(const runner *run, uint32_t from) {
  int ends[2];
  fflush(NULL);
  if (pipe(ends) != 0) return UINT32_MAX;
  run->shared->combination = from;
  run->shared->number = 0;
  run->shared->is_open = 0;
  run->shared->open_status = TM_ERROR_INTERNAL;
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    _exit(run_child(run, from, ends[1]));
  }
  close(ends[1]);
  if (child > 0) receive(ends[0], run->report);
  close(ends[0]);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return UINT32_MAX;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return run->list->count;
  if (run->shared->is_open == 0 && run->shared->open_status != TM_ERROR_INTERNAL) return UINT32_MAX;
  note_death(run, status);
  return run->shared->combination + 1;
}

static progress *share(void) {
  void *memory = mmap(NULL, sizeof(progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

static bool run_operation(const campaign *c, const tm_op_row *row, progress *shared, report *r) {
  combination_list list;
  combination only = { .row = row };
  if (c->only != NULL) only = *c->only;
  bool good = c->only == NULL && combination_list_make(row, &list);
  if (c->only != NULL) {
    list = (combination_list){ &only, 1, 1 };
    good = only.row == row;
  }
  for (uint32_t form = 0; form < FORMS && good; form++) {
    const runner run = { c, &list, shared, r, form };
    for (uint32_t next = 0; next < list.count && good;) {
      next = run_from(&run, next);
      good = next != UINT32_MAX;
    }
    if (c->stop_at_first && r->failure_count != 0) break;
  }
  if (c->only == NULL) combination_list_free(&list);
  return good;
}

bool campaign_run(const campaign *c, report *out_report) {
  *out_report = (report){ .count = 0 };
  progress *shared = share();
  if (shared == NULL) return false;
  bool good = true;
  const tm_op_row *row;
  for (uint32_t i = 0; good && (row = tm_op_at(i)) != NULL; i++)
    if (c->only_op == TM_OP_NONE || c->only_op == row->op) good = run_operation(c, row, shared, out_report);
  munmap(shared, sizeof *shared);
  return good;
}

tm_status campaign_try(const campaign *c, char *text, uint64_t capacity) {
  progress *shared = share();
  if (shared == NULL) return TM_ERROR_NO_MEMORY;
  const combination_list none = { NULL, 0, 0 };
  report unused = { .count = 0 };
  const runner run = { c, &none, shared, &unused, 0 };
  (void)run_from(&run, 0);
  const tm_status status = shared->open_status;
  snprintf(text, capacity, "%s", shared->text);
  munmap(shared, sizeof *shared);
  return status;
}
