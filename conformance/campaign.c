/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/campaign.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/text.h"
#include "conformance/campaign_worker.h"
#include "conformance/process_children.h"
#include "conformance/size_walk.h"
#include "conformance/worker_message.h"

#define USUAL_DEADLINE_NS (UINT64_C(60) * 1000000000)
#define LOOK_EVERY_MS 50
#define GRACE_PERCENT 20u               /* of the budget, for what is underway as the time of a phase ends */
#define LEAST_QUESTIONS 100u            /* that a budget has time for, or nothing more is tried with it */
#define MOST_HANGS 3u                   /* each costs a whole deadline */
#define MOST_DEATHS 400u
#define LEAST_PERCENT 5u
#define SETUP_SHARERS 8u                /* of an operation's claims, that are tried where the first of them is */
#define SHORT_ROUNDS 64u
#define PROGRESS_NS UINT64_C(100000000)
#define LONGEST_SAID 100u
#define LONGEST_DEATH 600u
#define KEPT " (it looks at what it was given for the time of an earlier call; structs of the caller's are not valid after it)"
#define FENCED " (inputs are read-only there, and no memory lies before or behind operands)"
#define ENDING_NS (UINT64_C(10) * 1000000000)          /* for the handlers that run when a process ends */
#define ENDING_CODE 47                  /* of one that nobody ends otherwise */
#define SHORT_DEADLINE_NS (UINT64_C(20) * 1000000000)   /* of one call, where all together have little: as the host waits */

/* Without a worker of its own, directly. */
static bool keep_report(void *context, const report *from) {
  report *r = context;
  r->question_count += from->question_count;
  r->refusal_count += from->refusal_count;
  r->unchecked_change_count += from->unchecked_change_count;
  r->way_count += from->way_count;
  r->withdrawn_count += from->withdrawn_count;
  for (uint32_t i = 0; i < from->count; i++) (void)report_add(r, &from->claims[i]);
  for (uint32_t i = 0; i < from->check_count; i++) (void)report_add_check(r, &from->checks[i]);
  return true;
}

/* ---- watching a worker ---- */

typedef struct watch {
  const worker *worker;
  report       *report;
  pid_t         child;
  int           from;
  uint64_t      beat;           /* last seen, and when it moved */
  uint64_t      moved_ns;
  uint64_t      next_progress_ns;
  bool          hung;
  bool          is_late;        /* its time was over, though each of its calls came back */
  bool          babbled;        /* sent what is no message */
  bool          has_copy;       /* sent what is another process's */
  char          said[LONGEST_SAID];     /* last, on its standard streams */
  uint32_t      hang_count;     /* of the whole campaign */
  uint32_t      death_count;
} watch;

static uint64_t deadline_of(const campaign *c) {
  if (c->case_deadline_ns != 0) return c->case_deadline_ns;
  if (c->budget_ns == 0 || c->budget_ns > USUAL_DEADLINE_NS) return USUAL_DEADLINE_NS;
  return c->budget_ns > SHORT_DEADLINE_NS ? c->budget_ns : SHORT_DEADLINE_NS;
}

/* Cases and calls: a check of many calls moves on with each. */
static uint64_t beat_of(journal *j) { return atomic_load(&j->beat) + atomic_load(&j->calls.beat); }

static void tell_progress(watch *w, uint64_t now_ns) {
  static const char *const names[] = { "asking", "manners", "claims", "claims, threaded" };
  const campaign *c = w->worker->campaign;
  if (c->progress == NULL || w->worker->list == NULL || now_ns < w->next_progress_ns) return;
  w->next_progress_ns = now_ns + PROGRESS_NS;
  c->progress(c->progress_context, atomic_load(&w->worker->journal->item), worker_item_count(w->worker), names[w->worker->phase]);
}

/* Workers look at the time between cases; one of a slow backend may be long in coming to that. */
static bool is_overdue(const watch *w, uint64_t now_ns) {
  const worker *own = w->worker;
  const uint64_t grace_ns = own->campaign->budget_ns / 100 * GRACE_PERCENT;
  return own->end_ns != 0 && own->list != NULL && now_ns > own->end_ns + grace_ns &&
         atomic_load(&own->journal->item) < worker_item_count(own);
}

/* A worker whose journal does not move has hung. */
static void look(watch *w) {
  const uint64_t now_ns = tm_now_ns(), beat = beat_of(w->worker->journal);
  tell_progress(w, now_ns);
  if (beat != w->beat) {
    w->beat = beat;
    w->moved_ns = now_ns;
    if (w->hung || w->is_late || !is_overdue(w, now_ns)) return;
    w->is_late = true;
    kill(w->child, SIGKILL);
  } else if (!w->hung && now_ns - w->moved_ns > deadline_of(w->worker->campaign)) {
    w->hung = true;
    kill(w->child, SIGKILL);
  }
}

/* What it sent is there by then; who it left behind may hold the other end for ever. */
static bool has_ended(const watch *w) {
  siginfo_t info = { .si_pid = 0 };
  return waitid(P_PID, (id_t)w->child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == w->child;
}

static void receive(watch *w) {
  worker_message m;
  size_t have = 0;
  w->beat = beat_of(w->worker->journal);
  w->moved_ns = tm_now_ns();
  w->hung = w->babbled = w->has_copy = w->is_late = false;
  for (;;) {
    struct pollfd end = { .fd = w->from, .events = POLLIN };
    const bool was_over = has_ended(w);
    const int ready = poll(&end, 1, was_over ? 0 : LOOK_EVERY_MS);
    look(w);
    if (ready == 0 && was_over) return;
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t got = read(w->from, (char *)&m + have, sizeof m - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    have += (size_t)got;
    if (have < sizeof m) continue;
    have = 0;
    w->has_copy = !worker_message_is_from(&m, (int32_t)w->child);
    if (!w->has_copy && worker_message_take(w->report, &m)) continue;
    w->babbled = true;
    kill(w->child, SIGKILL);
    return;
  }
}

/* The last line of what it printed. */
static void read_said(watch *w, int sink) {
  char text[512];
  struct stat about;
  w->said[0] = '\0';
  if (sink < 0 || fstat(sink, &about) != 0 || about.st_size == 0) return;
  const off_t from = about.st_size > (off_t)sizeof text ? about.st_size - (off_t)sizeof text : 0;
  const ssize_t got = pread(sink, text, sizeof text, from);
  size_t end = got < 0 ? 0 : (size_t)got;
  while (end > 0 && text[end - 1] == '\n') end--;
  size_t begin = end;
  while (begin > 0 && text[begin - 1] != '\n') begin--;
  const size_t length = end - begin < LONGEST_SAID / 2 ? end - begin : LONGEST_SAID / 2;
  (void)tm_text_escape(text + begin, length, w->said, sizeof w->said);
}

/* Whatever handlers the parent has: a signal ends the child and is seen. */
static void become_worker(int sink) {
  static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM, SIGPIPE, SIGINT, SIGTERM, SIGHUP };
  static const char unread[64] = "whoever reads this is seen by the place that comes next";
  const struct rlimit none = { 0, 0 };
  const int input = memfd_create("input", 0);
  if (input >= 0 && write(input, unread, sizeof unread) == (ssize_t)sizeof unread && lseek(input, 0, SEEK_SET) == 0)
    (void)dup2(input, STDIN_FILENO);
  if (input > STDIN_FILENO) close(input);
  if (sink >= 0) {              /* a report is no place for what a driver prints */
    (void)dup2(sink, STDOUT_FILENO);
    (void)dup2(sink, STDERR_FILENO);
    close(sink);
  }
  for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) (void)signal(signals[i], SIG_DFL);
  (void)setrlimit(RLIMIT_CORE, &none);
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* Runs `work` in a child that writes to a pipe; its wait status, or -1 when there is no child to be had. */
static int run_in_child(watch *w, journal_ending (*work)(const worker *, uint32_t), uint32_t from) {
  int ends[2];
  worker own = *w->worker;
  process_children before;
  process_children_read(&before);
  fflush(NULL);
  if (pipe(ends) != 0) return -1;
  const int sink = memfd_create("output", 0);
  atomic_store(&own.journal->is_open, 0);
  atomic_store(&own.journal->open_status, TM_ERROR_INTERNAL);
  atomic_store(&own.journal->ending, JOURNAL_BROKE_OFF);
  atomic_store(&own.journal->calls.offset, 0);
  atomic_store(&own.journal->calls.has_kept, 0);
  own.journal->calls.subject[0] = '\0';
  w->child = fork();
  if (w->child == 0) {
    close(ends[0]);
    become_worker(sink);
    lent_watch(&own.journal->calls);
    own.deliver = worker_message_send_report;
    worker_line line = worker_line_of(ends[1]);
    own.context = &line;
    atomic_store(&own.journal->ending, work(&own, from));
    _exit(0);
  }
  close(ends[1]);
  w->from = ends[0];
  if (w->child > 0) receive(w);
  close(ends[0]);
  int status = 0;
  const bool ended = w->child > 0 && waitpid(w->child, &status, 0) == w->child;
  read_said(w, sink);
  if (sink >= 0) close(sink);
  const uint32_t left = process_children_end(&before);
  if (left != 0 && ended && !w->hung && WIFEXITED(status))
    last_call_misuse(&own.journal->calls, "left %u process(es) running", left);
  return ended ? status : -1;
}

/* ---- what a death means ---- */

static void say_death(const watch *w, int status, char *text, size_t capacity) {
  char how[64], call[LAST_CALL_SUBJECT + 60];
  const bool has_said = w->said[0] != '\0';
  const bool is_cut_off = atomic_load(&w->worker->journal->ending) == JOURNAL_CUT_OFF;
  if (w->hung)
    snprintf(how, sizeof how, "did not end within %llu s", (unsigned long long)(deadline_of(w->worker->campaign) / 1000000000));
  else if (is_cut_off) snprintf(how, sizeof how, "closed a descriptor that is not its own");
  else if (w->has_copy) snprintf(how, sizeof how, "has made a copy of the worker");
  else if (w->babbled) snprintf(how, sizeof how, "corrupted the memory of the process");
  else if (WIFSIGNALED(status)) snprintf(how, sizeof how, "ended the process with signal %d", WTERMSIG(status));
  else snprintf(how, sizeof how, "ended the process with exit code %d", WEXITSTATUS(status));
  last_call_describe(&w->worker->journal->calls, call, sizeof call);
  const bool is_fault = !w->hung && WIFSIGNALED(status) && (WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGBUS);
  const bool has_kept = is_fault && atomic_load(&w->worker->journal->calls.has_kept) != 0;
  const bool is_fenced = is_fault && last_call_is_fenced(&w->worker->journal->calls);
  snprintf(text, capacity, "%s%s%s%s%s%s", how, call, has_kept ? KEPT : is_fenced ? FENCED : "", has_said ? "; it printed \"" : "", w->said,
           has_said ? "\"" : "");
}

/* The row of a case that ended its process has no level and no class: nothing is known of it. */
static void note_dead_case(const watch *w, uint32_t item, const char *how) {
  const tm_answer unknown = { .level = REPORT_LEVEL_UNKNOWN, .numerics = TM_NUMERICS_N4 + 1 };
  const uint32_t number = atomic_load(&w->worker->journal->number);
  const uint32_t noted = atomic_load(&w->worker->journal->combination);
  const combination_list *list = w->worker->list;
  const combination *which = &list->items[noted < list->count ? noted : worker_combination(w->worker, item)];
  report_claim *claim = report_row(w->report, which, &unknown);
  w->report->failure_count++;
  w->report->case_count++;
  if (claim == NULL) return;
  claim->case_count++;
  claim->failure_count++;
  if (claim->failure[0] != '\0') return;
  claim->failed_case = number;
  claim->failed_which = *which;
  snprintf(claim->failure, sizeof claim->failure, "%s; case %u%s", how, number,
           w->worker->phase == PHASE_SURVEY ? ", while it was only asked" : "");
}

static void note_dead_check(const watch *w, uint32_t item, const char *how) {
  report_check check = { .failed = true };
  snprintf(check.name, sizeof check.name, "%s", manners[item].name);
  snprintf(check.text, sizeof check.text, "%s", how);
  (void)report_add_check(w->report, &check);
}

/* Each phase closes the device once, and each may die of it. */
static void note_dead_closing(const watch *w, const char *how) {
  report_check check = { .name = "closing", .failed = true };
  for (uint32_t i = 0; i < w->report->check_count; i++)
    if (strcmp(w->report->checks[i].name, check.name) == 0) return;
  snprintf(check.text, sizeof check.text, "when the device was closed it %s", how);
  (void)report_add_check(w->report, &check);
}

static void note_late(const watch *w, uint32_t item) {
  report_check check = { .skipped = true, .text = "its time was over before it came to an end" };
  if (w->worker->phase != PHASE_MANNERS) return;
  snprintf(check.name, sizeof check.name, "%s", manners[item].name);
  (void)report_add_check(w->report, &check);
}

static void note_death(const watch *w, int status) {
  char how[LONGEST_DEATH];
  const uint32_t item = atomic_load(&w->worker->journal->item);
  say_death(w, status, how, sizeof how);
  if (item >= worker_item_count(w->worker)) {
    note_dead_closing(w, how);
  } else if (w->worker->phase == PHASE_MANNERS) {
    note_dead_check(w, item, how);
  } else {
    note_dead_case(w, item, how);
  }
}

static bool give_up(watch *w) {
  report *r = w->report;
  const campaign *c = w->worker->campaign;
  const bool is_spent = c->budget_ns != 0 && w->hang_count * deadline_of(c) >= c->budget_ns;
  if (w->hang_count >= MOST_HANGS || (w->hang_count != 0 && is_spent))
    snprintf(r->given_up, sizeof r->given_up, "after %u call(s) that did not end, each given %llu s", w->hang_count,
             (unsigned long long)(deadline_of(w->worker->campaign) / 1000000000));
  if (w->has_copy) snprintf(r->given_up, sizeof r->given_up, "after it made a copy of the worker");
  if (w->death_count >= MOST_DEATHS) snprintf(r->given_up, sizeof r->given_up, "after %u workers that crashed", w->death_count);
  return r->given_up[0] != '\0';
}

/* Where to go on after a worker ended, or UINT32_MAX when there is no going on. */
static uint32_t next_after(watch *w, uint32_t from, int status) {
  journal *j = w->worker->journal;
  const uint32_t ending = atomic_load(&j->ending);
  if (status < 0 || ending == JOURNAL_HAD_NO_DEVICE) return UINT32_MAX;
  if (ending == JOURNAL_IS_THROUGH && !w->babbled && !w->hung) return worker_item_count(w->worker);
  if (w->is_late) {
    const uint32_t item = atomic_load(&j->item);
    if (item < worker_item_count(w->worker)) note_late(w, item);
    return w->worker->phase == PHASE_MANNERS ? item + 1 : worker_item_count(w->worker);
  }
  w->hang_count += w->hung;
  w->death_count++;
  note_death(w, status);
  const uint32_t item = atomic_load(&j->item), count = worker_item_count(w->worker);
  return give_up(w) || item >= count ? count : item < from ? from + 1 : item + 1;
}

static bool run_phase(watch *w) {
  const uint32_t count = worker_item_count(w->worker);
  if (w->report->given_up[0] != '\0') return true;
  if (w->worker->campaign->in_this_process) {
    worker own = *w->worker;
    own.deliver = keep_report;
    own.context = w->report;
    return worker_run(&own, 0) != JOURNAL_HAD_NO_DEVICE;
  }
  /* Another worker opens the device again; the checks of manners say themselves that their time is over. */
  for (uint32_t next = 0; next < count && (next == 0 || w->worker->phase == PHASE_MANNERS || !worker_is_over(w->worker, 0));) {
    next = next_after(w, next, run_in_child(w, worker_run, next));
    if (next == UINT32_MAX) return false;
  }
  return true;
}

/* ---- the plan ---- */

static bool make_list(const campaign *c, combination_list *list) {
  const tm_op_row *row;
  *list = (combination_list){ NULL, 0, 0 };
  for (uint32_t i = 0; c->only == NULL && (row = tm_op_at(i)) != NULL; i++)
    if ((c->only_op == TM_OP_NONE || c->only_op == row->op) && !combination_list_add(list, row)) return false;
  if (c->only == NULL) return true;
  list->items = malloc(sizeof *list->items);
  if (list->items == NULL) return false;
  list->items[0] = *c->only;
  list->count = 1;
  return true;
}

/* A claim's place: each operation's first before any operation's second, and equal set-ups next to each other.  A few that share
   the set-up of the one before them come along, as they cost next to nothing. */
typedef struct place {
  uint32_t index;
  uint32_t is_walk;
  uint32_t pass;
  uint64_t setup_key;
} place;

/* Whether it goes with the place before it, which so many of the operation share already. */
static bool shares_setup(const place *before, const journal_entry *entry, uint32_t sharers) {
  return entry->setup_key != 0 && entry->setup_key == before->setup_key && sharers < SETUP_SHARERS;
}

static int by_place(const void *left, const void *right) {
  const place *a = left, *b = right;
  if (a->pass != b->pass) return a->pass < b->pass ? -1 : 1;
  if (a->is_walk != b->is_walk) return a->is_walk < b->is_walk ? -1 : 1;
  if (a->setup_key != b->setup_key) return a->setup_key < b->setup_key ? -1 : 1;
  return (a->index > b->index) - (a->index < b->index);
}

/* Walks come behind the first claims of all operations; where something is accepted only once it was changed behind those, and
   of an operation that refused all so far last. */
static bool has_walk(const combination_list *list, const journal *j, uint32_t begin, place *out_place) {
  bool is_accepted = false, leads_on = false, is_known = false;
  for (uint32_t i = begin; i < worker_walk_end(list, begin); i++) {
    is_accepted |= j->entries[i].state == JOURNAL_CLAIMED;
    leads_on |= j->entries[i].state != JOURNAL_REFUSED;
    is_known |= j->entries[i].is_known != 0;
  }
  *out_place = (place){ .index = begin, .is_walk = 1, .pass = is_accepted ? 0 : leads_on ? list->count : UINT32_MAX };
  return leads_on || is_known;
}

static uint32_t place_claims(const combination_list *list, const journal *j, place *places) {
  uint32_t count = 0, pass = 0, sharers = 0;
  for (uint32_t i = 0; i < list->count; i++) {
    if (i > 0 && list->items[i].row != list->items[i - 1].row) pass = sharers = 0;
    const journal_entry *entry = &j->entries[i];
    if (entry->state == JOURNAL_REFUSED) continue;
    const bool comes_along = sharers != 0 && shares_setup(&places[count - 1], entry, sharers);
    if (sharers != 0 && !comes_along) pass++;
    sharers = comes_along ? sharers + 1 : 1;
    /* What leads on only through changes comes behind what is claimed outright. */
    const uint32_t behind = entry->state == JOURNAL_LEADS_ON ? list->count : 0;
    places[count++] = (place){ .index = i, .pass = pass + behind, .setup_key = entry->setup_key };
  }
  return count;
}

static uint32_t order_room(const combination_list *list) { return 2 * list->count + 1; }

static bool make_order(const combination_list *list, const journal *j, uint32_t *order, uint32_t *out_count) {
  place *places = calloc(order_room(list), sizeof *places);
  if (places == NULL) return false;
  uint32_t count = place_claims(list, j, places);
  for (uint32_t begin = 0; begin < list->count; begin = worker_walk_end(list, begin)) count += has_walk(list, j, begin, &places[count]);
  qsort(places, count, sizeof *places, by_place);
  for (uint32_t i = 0; i < count; i++) order[i] = places[i].index + places[i].is_walk * list->count;
  free(places);
  *out_count = count;
  return true;
}

static void order_all(const combination_list *list, uint32_t *order, uint32_t *out_count) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < list->count; i++) order[count++] = i;
  for (uint32_t begin = 0; begin < list->count; begin = worker_walk_end(list, begin)) order[count++] = begin + list->count;
  *out_count = count;
}

static void count_coverage(const combination_list *list, const journal *j, report *r) {
  size_t length = 0;
  for (uint32_t i = 0; i < list->count; i++) {
    const journal_entry *entry = &j->entries[i];
    if (entry->state != JOURNAL_CLAIMED) continue;
    r->claimed_count++;
    r->reached_count += entry->case_count != 0;
    if (entry->case_count != 0 || length + 60 > sizeof r->unreached) continue;
    char formats[160];
    combination_describe(&list->items[i], formats, sizeof formats);
    length += (size_t)snprintf(r->unreached + length, sizeof r->unreached - length, "%s%s %s", length == 0 ? "" : "; ",
                               list->items[i].row->name, formats);
  }
  if (length >= sizeof r->unreached) r->unreached[sizeof r->unreached - 1] = '\0';
}

/* Whether any of its combinations in [begin, end) of the list is known, and none accepted. */
static bool is_never_accepted(const journal *j, uint32_t begin, uint32_t end) {
  bool is_known = false;
  for (uint32_t i = begin; i < end; i++) {
    if (j->entries[i].state == JOURNAL_CLAIMED || j->entries[i].case_count != 0) return false;
    is_known |= j->entries[i].is_known != 0;
  }
  return is_known;
}

/* Of operations that take anything. */
static void count_walks(const worker *own, report *r) {
  const combination_list *list = own->list;
  const uint32_t steps = size_walk_count(own->campaign->has_huge);
  for (uint32_t begin = 0; begin < list->count; begin = worker_walk_end(list, begin)) {
    const uint32_t walked = (uint32_t)tm_min_u64(own->journal->entries[begin].walked, steps);
    bool is_claimed = false;
    for (uint32_t i = begin; i < worker_walk_end(list, begin); i++) is_claimed |= own->journal->entries[i].state == JOURNAL_CLAIMED;
    if (!is_claimed) continue;
    r->operation_count++;
    r->walked_count += walked == steps;
    r->step_count += walked;
    r->all_step_count += steps;
  }
}

static void list_never_accepted(const combination_list *list, const journal *j, report *r) {
  size_t length = 0;
  for (uint32_t begin = 0, end; begin < list->count; begin = end) {
    end = worker_walk_end(list, begin);
    if (!is_never_accepted(j, begin, end) || length + 40 > sizeof r->never_accepted) continue;
    length += (size_t)snprintf(r->never_accepted + length, sizeof r->never_accepted - length, "%s%.30s", length == 0 ? "" : ", ",
                               list->items[begin].row->name);
  }
}

/* Shares of the budget after which a phase must have ended, in percent. */
static const uint32_t shares[PHASE_COUNT] = { 40, 50, 85, 100 };

static bool is_wanted(const campaign *c, phase p) {
  const bool is_narrow = c->only != NULL || c->only_op != TM_OP_NONE;
  if (c->only_manner != NULL) return p == PHASE_MANNERS;
  if (p == PHASE_MANNERS) return !c->claims_only && !is_narrow;
  return p != PHASE_SURVEY || c->only == NULL;
}

/* Of what must not come to nothing, however late the others end. */
static const uint32_t least_shares[PHASE_COUNT] = { 5, 10, 35, 0 };

/* One check alone has all the time.  To open the device is not to have had one's time. */
static uint64_t end_of(const campaign *c, phase p, uint64_t begin_ns, uint64_t now_ns) {
  const uint64_t percent_ns = c->budget_ns / 100, least_ns = percent_ns * least_shares[p];
  const uint64_t planned_ns = begin_ns + percent_ns * (c->only_manner != NULL ? 100 : shares[p]);
  if (c->budget_ns == 0) return 0;
  if (least_ns == 0) return planned_ns;
  return tm_max_u64(planned_ns, now_ns + tm_max_u64(least_ns, c->open_ns + percent_ns * LEAST_PERCENT));
}

/* What would only open the device and close it again. */
static bool is_too_late(const worker *w) {
  return least_shares[w->phase] == 0 && worker_is_over(w, w->campaign->open_ns);
}

/* ---- how a process ends that had the backend in it ---- */

static const manner *process_manner(void) { return manner_by_name("process"); }

static bool wants_process(const campaign *c) {
  return is_wanted(c, PHASE_MANNERS) && c->left_out != process_manner() &&
         (c->only_manner == NULL || c->only_manner == process_manner());
}

static bool wants_ending(const campaign *c) { return wants_process(c) && !c->in_this_process; }

/* Ends as any program does: its destructors and exit handlers run. */
static journal_ending live_and_end(const worker *w, uint32_t from) {
  (void)from;
  (void)worker_try_open(w->campaign, w->journal);
  last_call_note(&w->journal->calls, 0);
  exit(ENDING_CODE);
}

static void say_ending(const watch *w, int status, char *text, size_t capacity) {
  if (w->hung)
    snprintf(text, capacity, "keeps the process from ending: it did not end within %llu s",
             (unsigned long long)(deadline_of(w->worker->campaign) / 1000000000));
  else if (WIFSIGNALED(status)) snprintf(text, capacity, "crashes when the process ends: signal %d", WTERMSIG(status));
  else snprintf(text, capacity, "makes the exit code %d when the process ends", WEXITSTATUS(status));
}

static void fail_process_check(report *r, const char *text) {
  report_check check = { .failed = true };
  snprintf(check.name, sizeof check.name, "%s", process_manner()->name);
  snprintf(check.text, sizeof check.text, "%s", text);
  for (uint32_t i = 0; i < r->check_count; i++) {
    if (strcmp(r->checks[i].name, check.name) != 0) continue;
    if (r->checks[i].failed) return;
    r->checks[i] = check;
    r->failure_count++;
    return;
  }
  (void)report_add_check(r, &check);
}

static void note_no_ending(report *r) {
  for (uint32_t i = 0; i < r->check_count; i++) {
    report_check *check = &r->checks[i];
    if (strcmp(check->name, process_manner()->name) == 0 && !check->failed && !check->skipped)
      snprintf(check->text, sizeof check->text, "it was not tried how a process ends that used it, as its time was over");
  }
}

static void check_ending(watch *w) {
  if (worker_is_over(w->worker, w->worker->campaign->open_ns)) {
    note_no_ending(w->report);
    return;
  }
  campaign own_campaign = *w->worker->campaign;
  worker own = *w->worker;
  watch ending = { .worker = &own, .report = w->report };
  char how[LONGEST_DEATH];
  own_campaign.case_deadline_ns = tm_min_u64(deadline_of(&own_campaign), ENDING_NS);
  own_campaign.progress = NULL;
  own.campaign = &own_campaign;
  const int status = run_in_child(&ending, live_and_end, 0);
  const bool came_to_it = atomic_load(&own.journal->is_open) != 0 && atomic_load(&own.journal->calls.offset) == 0;
  if (status < 0 || !came_to_it || (WIFEXITED(status) && WEXITSTATUS(status) == ENDING_CODE)) return;
  say_ending(&ending, status, how, sizeof how);
  fail_process_check(w->report, how);
}

static void note_loading(const campaign *c, report *r) {
  char text[REPORT_TEXT];
  if (!wants_process(c) || c->loading_fault == NULL || c->loading_fault[0] == '\0') return;
  snprintf(text, sizeof text, "when it is loaded it %s", c->loading_fault);
  fail_process_check(r, text);
}

/* A device that goes on writing after it was waited for leaves nothing to be tried. */
static void look_for_early_wait(report *r) {
  for (uint32_t i = 0; i < r->check_count; i++)
    if (strncmp(r->checks[i].text, MANNER_EARLY_WAIT, strlen(MANNER_EARLY_WAIT)) == 0)
      snprintf(r->given_up, sizeof r->given_up, "nothing else can be tried on a device whose work goes on after it was waited for");
}

/* A backend that takes so long to answer leaves nothing to be found out in the time. */
static void look_for_slow_questions(const campaign *c, const journal *j, report *r) {
  uint32_t count = 0;
  const uint64_t median_ns = last_call_median_ns(&j->calls, &count);
  if (c->budget_ns == 0 || median_ns <= MANNER_QUESTION_NS || median_ns * LEAST_QUESTIONS <= c->budget_ns) return;
  snprintf(r->given_up, sizeof r->given_up, "there is no time for %u questions that take %llu ms each", LEAST_QUESTIONS,
           (unsigned long long)(median_ns / 1000000));
}

static void note_nothing(const campaign *c, report *r) {
  const char *why = "";
  bool has_checked = false;
  for (uint32_t i = 0; i < r->check_count; i++) has_checked |= !r->checks[i].skipped;
  if (c->only_manner != NULL) {
    if (!has_checked) why = r->check_count != 0 ? r->checks[0].text : "the check was not reached";
  } else if (r->case_count == 0 && r->way_count == 0 && r->given_up[0] == '\0') {
    why = c->only_case_plus_one != 0 ? "it refuses this case, or there is no such case"
          : r->claimed_count != 0    ? "no time was left; a larger --budget gives more"
          : r->withdrawn_count != 0  ? "it took back all that it claimed when it was prepared"
          : r->out_of_time           ? "no time was left to find out what it claims; a larger --budget gives more"
                                     : "it refuses everything that was asked";
  }
  snprintf(r->nothing_checked, sizeof r->nothing_checked, "%.150s", why);
}

/* What no result shows, and what was said to the host in passing. */
static void note_misuse(const last_call *calls, report *r) {
  report_check check = { .name = "calls", .failed = true };
  if (atomic_load(&calls->is_misused) == 0) return;
  (void)tm_text_escape(calls->misuse, strnlen(calls->misuse, sizeof calls->misuse), check.text, sizeof check.text);
  (void)report_add_check(r, &check);
}

static bool run_phases(watch *w, worker *own, uint32_t *order) {
  const campaign *c = own->campaign;
  const uint64_t begin_ns = c->begin_ns != 0 ? c->begin_ns : tm_now_ns();
  bool good = true;
  for (int p = 0; p < PHASE_COUNT && good; p++) {
    if (!is_wanted(c, (phase)p)) continue;
    own->phase = (phase)p;
    own->end_ns = end_of(c, (phase)p, begin_ns, tm_now_ns());
    if (p == PHASE_SERIAL) {
      if (c->budget_ns != 0 && c->only == NULL) good = make_order(own->list, own->journal, order, &own->order_count);
      else order_all(own->list, order, &own->order_count);
    }
    good = good && (is_too_late(own) || run_phase(w));
    if (p == PHASE_MANNERS && good && wants_ending(c)) check_ending(w);
    if (p == PHASE_MANNERS) note_loading(c, w->report);
    if (p == PHASE_MANNERS) look_for_early_wait(w->report);
    if (p == PHASE_MANNERS) look_for_slow_questions(c, own->journal, w->report);
    w->report->out_of_time |= own->end_ns != 0 && tm_now_ns() >= own->end_ns;
    if (c->stop_at_first && w->report->failure_count != 0) break;
  }
  return good;
}

bool campaign_run(const campaign *c, report *out_report) {
  combination_list list = { NULL, 0, 0 };
  *out_report = (report){ .count = 0 };
  bool good = make_list(c, &list);
  journal *j = good ? journal_create(list.count) : NULL;
  uint32_t *order = calloc(order_room(&list), sizeof *order);
  const bool is_short = c->budget_ns != 0 && c->only == NULL;
  worker own = { .campaign = c, .list = &list, .order = order, .round_count = is_short ? SHORT_ROUNDS : 1, .journal = j };
  watch w = { .worker = &own, .report = out_report };
  good = good && j != NULL && order != NULL && run_phases(&w, &own, order);
  if (good) note_misuse(&j->calls, out_report);
  if (good) count_coverage(&list, j, out_report);
  if (good) count_walks(&own, out_report);
  if (good && c->only == NULL && c->only_manner == NULL) list_never_accepted(&list, j, out_report);
  if (good) note_nothing(c, out_report);
  free(order);
  journal_destroy(j);
  combination_list_free(&list);
  return good;
}

static journal_ending try_open(const worker *w, uint32_t from) {
  (void)from;
  return worker_try_open(w->campaign, w->journal);
}

void campaign_open(const campaign *c, campaign_opening *out_opening) {
  journal *j = journal_create(0);
  *out_opening = (campaign_opening){ .status = TM_ERROR_NO_MEMORY };
  if (j == NULL) return;
  const worker own = { .campaign = c, .journal = j, .phase = PHASE_SURVEY };
  report unused = { .count = 0 };
  watch w = { .worker = &own, .report = &unused };
  int status = 0;
  if (c->in_this_process) (void)try_open(&own, 0);
  else status = run_in_child(&w, try_open, 0);
  out_opening->status = atomic_load(&j->open_status);
  out_opening->open_ns = j->open_ns;
  out_opening->device_count = j->device_count < CAMPAIGN_MOST_DEVICES ? j->device_count : CAMPAIGN_MOST_DEVICES;
  snprintf(out_opening->text, sizeof out_opening->text, "%.*s", JOURNAL_TEXT - 1, j->text);
  if (out_opening->status == TM_ERROR_INTERNAL && j->text[0] == '\0')
    say_death(&w, status, out_opening->text, sizeof out_opening->text);
  snprintf(out_opening->device_name, sizeof out_opening->device_name, "%.*s", JOURNAL_TEXT - 1, j->device_name);
  journal_destroy(j);
}
