/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/campaign_worker.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/text.h"
#include "conformance/lasting.h"
#include "conformance/process_state.h"
#include "conformance/promises.h"
#include "conformance/size_walk.h"
#include "plugin/description.h"

#define UNCLAIMED_CASES 8u              /* a combination that says no so often is not claimed, where time is short */
#define UNCLAIMED_CASES_OF_ALL 16u      /* and where it is not */
#define CASES_A_ROUND 1u                /* where time is short */
#define FORM_CASES 8u                   /* so many in a row are serial, then as many threaded */
#define THREADS 2u
#define LONGEST_NAME 200u
#define MOST_KEPT 64u                   /* descriptors, or threads, that drivers take with many kernels */
#define MOST_EPOCHS 4u                  /* that one case may use up */
#define WAYS_TO_RUN 3u                  /* refusals of a combination whose way out is also run */
#define ALL_CASES 48u                   /* with so many of a combination, walks are whole */
#define WALKS_SHARE 32u                 /* combinations behind an operation's first have one step in so many */
#define STEPS_AT_FIRST 8u               /* where time is short, in the first round */
#define STEPS_A_ROUND 32u               /* and in each behind it */
#define SEARCHES_A_ROUND 64u            /* likewise, of what refused whatever was asked: mere questions */
#define STEPS_OF_KNOWN 16u              /* of a combination that may be refused for its formats */

/* ---- one case ---- */

static uint64_t seed_of(const campaign *c, const combination *which, uint32_t number) {
  uint64_t state = c->seed ^ ((uint64_t)which->row->op << 40) ^ ((uint64_t)which->inputs << 36);
  for (uint32_t i = 0; i <= which->inputs; i++) state = random_u64(&state) ^ which->formats[i];
  state = random_u64(&state) ^ number;
  return random_u64(&state);
}

static void note_failure(report *r, report_claim *claim, const combination *asked, const question *q, const trial *t,
                         uint32_t number) {
  r->failure_count++;
  claim->failure_count++;
  if (claim->failure[0] != '\0') return;
  char what[200];
  question_describe(q, what, sizeof what);
  claim->failed_case = number;
  claim->failed_which = *asked;
  snprintf(claim->failure, sizeof claim->failure, "%s; case %u: %s", t->text, number, what);
}

/* What is run, and where it is written down: the question itself, or the one that a refusal's changes led to. */
typedef struct attempt {
  const combination *asked;
  subject  *s;
  report   *r;
  uint64_t  seed;
  uint32_t  number;
  bool      is_first;           /* accepted one of its combination */
  uint32_t *ways_run;
  uint32_t  most_ways;
  journal_entry *entry;
  uint64_t  end_ns;             /* of what need not be done; 0: none */
  uint32_t  epochs;             /* used up */
  trial     t;
} attempt;

/* What went stale is tried again, as often as a host would. */
static void write_down(attempt *a, const combination *which, const question *q, const tm_answer *answer) {
  if (a->t.went_stale && !a->t.failed && a->epochs < MOST_EPOCHS) return;
  if (a->t.went_stale) trial_fail(&a->t, "its epoch moved with each of %u prepares", MOST_EPOCHS);
  report_claim *claim = report_row(a->r, which, answer);
  if (claim == NULL) return;
  claim->case_count++;
  if (a->t.worst > claim->worst) claim->worst = a->t.worst;
  if (a->t.failed) note_failure(a->r, claim, a->asked, q, &a->t, a->number);
}

/* A combination with private formats is reached in no other way. */
static combination combination_of(const combination *which, const question *q) {
  combination changed = *which;
  for (uint32_t i = 0; i <= which->inputs; i++)
    changed.formats[i] = q->packed[i].format != TM_FORMAT_NONE ? q->packed[i].format : q->c.operands[i].format;
  return changed;
}

static void try_way_out(attempt *a, const combination *which, const question *q, const tm_answer *answer) {
  way_out way;
  promises_check_changes(&a->t, a->s, q, answer, &way, &a->r->unchecked_change_count);
  if (a->t.failed) write_down(a, which, q, answer);
  if (!way.is_found || *a->ways_run >= a->most_ways) return;
  ++*a->ways_run;
  a->r->way_count++;
  const combination reached = combination_of(which, &way.changed);
  promises_check_answer(&a->t, a->s, &way.changed, &way.answer);
  if (!a->t.failed) trial_run(&a->t, a->s, &way.changed, &way.answer, a->seed);
  if (a->t.failed || a->t.went_stale || question_is_packed(&way.changed)) write_down(a, &reached, &way.changed, &way.answer);
}

static void try_claim(attempt *a, const combination *which, const question *q, const tm_answer *answer) {
  if (a->is_first && !a->t.failed) promises_check_strangers(&a->t, a->s, q, answer, a->seed);
  if (a->is_first && !a->t.failed) promises_check_scale(&a->t, a->s, which, q, answer, a->seed);
  if (a->is_first && !a->t.failed) trial_run_out_of_memory(&a->t, a->s, q, answer, a->end_ns);
  if (!a->t.failed && !a->t.went_stale) trial_run(&a->t, a->s, q, answer, a->seed);
  write_down(a, which, q, answer);
}

/* A no that does not mean the operation itself is one of somebody who knows it. */
static void note_knowledge(journal_entry *entry, const tm_answer *answer) {
  const bool is_known = answer->level == TM_LEVEL_REFUSED &&
                        (answer->reasons & (TM_REASON_OPERATION | TM_REASON_ATTRIBUTE | TM_REASON_DEMAND)) == 0;
  entry->is_known |= is_known;
  entry->is_near |= is_known && (answer->reasons & TM_REASON_FORMAT) == 0;
}

static bool make_question(question *q, const combination *which, uint32_t number, uint64_t seed) {
  if (number < SIZE_WALK_FIRST) return question_make(q, which, number, seed);
  return size_walk_make(q, which, number, seed);
}

bool worker_question(const worker *w, uint32_t index, uint32_t number, question *out_question) {
  const combination *which = &w->list->items[index];
  return make_question(out_question, which, number, seed_of(w->campaign, which, number));
}

/* True if it was accepted, at once or after changes. */
static bool test_once(attempt *a, const combination *which) {
  question q;
  a->t = (trial){ .failed = false };
  a->epochs++;
  if (!make_question(&q, which, a->number, a->seed)) return false;
  const uint32_t ways_before = *a->ways_run;
  const tm_answer answer = subject_ask_question(a->s, &q);
  note_knowledge(a->entry, &answer);
  a->r->question_count++;
  promises_check_answer(&a->t, a->s, &q, &answer);
  if (answer.level != TM_LEVEL_REFUSED) {
    a->entry->has_begun = 1;
    lasting_note(a->entry, a->s, a->number, &answer);
    try_claim(a, which, &q, &answer);
    return true;
  }
  a->r->refusal_count++;
  if (a->t.failed) write_down(a, which, &q, &answer);
  else try_way_out(a, which, &q, &answer);
  return *a->ways_run != ways_before;
}

/* Where the epoch moved meanwhile it is asked again: the answer may be no. */
static bool test_case(attempt *a, const combination *which) {
  bool is_accepted = test_once(a, which);
  const bool was_accepted = is_accepted;
  while (a->t.went_stale && !a->t.failed && a->epochs < MOST_EPOCHS) is_accepted = test_once(a, which);
  if (!was_accepted || is_accepted) return is_accepted;
  a->r->withdrawn_count++;
  a->entry->state = JOURNAL_REFUSED;
  return false;
}

/* ---- items ---- */

static uint32_t form_of(const worker *w) { return w->phase == PHASE_THREADED ? 1 : 0; }

/* The form's i-th case: 0..7, 16..23 and so on are serial. */
static uint32_t case_number(const worker *w, uint32_t i) {
  return i / FORM_CASES * 2 * FORM_CASES + form_of(w) * FORM_CASES + i % FORM_CASES;
}

bool worker_is_over(const worker *w, uint64_t more_ns) { return w->end_ns != 0 && tm_now_ns() + more_ns >= w->end_ns; }

static bool is_over(const worker *w) { return worker_is_over(w, 0); }

static bool is_wanted_case(const campaign *c, uint32_t number) {
  return c->only_case_plus_one == 0 ? number < c->cases : number + 1 == c->only_case_plus_one;
}

/* What it says of a few questions, without running anything. */
static void survey(const worker *w, subject *s, uint32_t item) {
  const uint32_t index = worker_combination(w, item);
  const combination *which = &w->list->items[index];
  journal_entry *entry = &w->journal->entries[index];
  entry->state = JOURNAL_REFUSED;
  for (uint32_t number = 0; number < UNCLAIMED_CASES && entry->state != JOURNAL_CLAIMED; number++) {
    question q;
    if (number != 0 && is_over(w)) {
      if (entry->state == JOURNAL_REFUSED) entry->state = JOURNAL_UNKNOWN;
      return;
    }
    journal_note(w->journal, item, index, number);
    if (!question_make(&q, which, number, seed_of(w->campaign, which, number))) continue;
    const tm_answer answer = subject_ask_question(s, &q);
    note_knowledge(entry, &answer);
    if (atomic_load(&s->query_status) != TM_OK) {         /* a case will say so */
      entry->state = JOURNAL_LEADS_ON;
    } else if (answer.level != TM_LEVEL_REFUSED) {
      entry->state = JOURNAL_CLAIMED;
      lasting_note(entry, s, number, &answer);
      entry->setup_key = answer.setup_key;
      entry->setup_ns = answer.setup_ns;
    } else if (answer.change_count != 0) {
      entry->state = JOURNAL_LEADS_ON;
    }
  }
}

/* Where a case stands. */
typedef struct case_place {
  uint32_t item;
  uint32_t combination;         /* index */
  uint32_t number;
} case_place;

/* True if it was accepted. */
static bool run_one(const worker *w, subject *s, report *r, case_place p, uint32_t *ways_run, uint32_t most_ways) {
  const combination *which = &w->list->items[p.combination];
  journal_entry *entry = &w->journal->entries[p.combination];
  journal_note(w->journal, p.item, p.combination, p.number);
  attempt a = { .asked = which, .s = s, .r = r, .seed = seed_of(w->campaign, which, p.number), .number = p.number,
                .is_first = entry->has_begun == 0, .ways_run = ways_run, .most_ways = most_ways, .entry = entry,
                .end_ns = w->end_ns };
  if (!test_case(&a, which)) return false;
  entry->case_count++;
  entry->state = JOURNAL_CLAIMED;
  return true;
}

static void run_cases(const worker *w, subject *s, uint32_t item, report *r) {
  const campaign *c = w->campaign;
  const uint32_t index = worker_combination(w, item), round = item / w->order_count;
  const bool is_short = w->round_count > 1;
  const uint32_t first = is_short ? round * CASES_A_ROUND : 0, end = is_short ? first + CASES_A_ROUND : UINT32_MAX;
  const uint32_t last = c->only_case_plus_one != 0 ? c->only_case_plus_one : c->cases;
  uint32_t ways_run = 0;
  /* Where there was no time to ask about all, the rest is asked about as it comes. */
  if (is_short && w->journal->entries[index].state == JOURNAL_UNKNOWN) survey(w, s, item);
  if (is_short && w->journal->entries[index].state == JOURNAL_REFUSED) return;
  if (c->only_case_plus_one > SIZE_WALK_FIRST) return;          /* a step of the walk */
  bool claimed = is_short && w->journal->entries[index].has_begun != 0;
  const uint32_t patience = is_short ? UNCLAIMED_CASES : UNCLAIMED_CASES_OF_ALL;
  for (uint32_t i = first; i < end && case_number(w, i) < last && !(is_over(w) && (item != 0 || i != first)); i++) {
    const uint32_t number = case_number(w, i);
    if (!is_wanted_case(c, number)) continue;
    if (!claimed && i >= first + patience && c->only_case_plus_one == 0) break;
    if (c->stop_at_first && r->failure_count != 0) break;
    claimed |= run_one(w, s, r, (case_place){ item, index, number }, &ways_run, WAYS_TO_RUN);
  }
}

/* ---- walks ---- */

/* How much is known of a combination: what is walked are those of the operation of which most is. */
typedef enum nearness { IS_CLAIMED, LEADS_ON, IS_NEAR, IS_KNOWN, IS_FAR } nearness;

static nearness nearness_of(const worker *w, uint32_t index) {
  const journal_entry *entry = &w->journal->entries[index];
  if (w->campaign->only != NULL || entry->state == JOURNAL_CLAIMED) return IS_CLAIMED;
  if (entry->state == JOURNAL_LEADS_ON) return LEADS_ON;
  return entry->is_near != 0 ? IS_NEAR : entry->is_known != 0 ? IS_KNOWN : IS_FAR;
}

uint32_t worker_walk_end(const combination_list *list, uint32_t begin) {
  uint32_t end = begin + 1;
  while (end < list->count && list->items[end].row == list->items[begin].row) end++;
  return end;
}

/* The walk of an operation, as far as it is known what it takes. */
typedef struct walk {
  uint32_t begin;               /* combinations of the operation */
  uint32_t end;
  nearness nearness;            /* of those that are walked */
  uint32_t count;               /* of them */
  uint32_t steps;               /* of each of them, of both forms */
} walk;

static walk walk_of(const worker *w, uint32_t begin) {
  const campaign *c = w->campaign;
  walk out = { .begin = begin, .end = worker_walk_end(w->list, begin), .nearness = IS_FAR };
  for (uint32_t i = out.begin; i < out.end; i++) {
    const nearness n = nearness_of(w, i);
    if (n < out.nearness) out.count = 0;
    if (n < out.nearness) out.nearness = n;
    out.count += n == out.nearness;
  }
  out.steps = out.nearness >= IS_KNOWN ? STEPS_OF_KNOWN : size_walk_count(c->has_huge);
  if (out.nearness == IS_FAR) out.count = 0;
  if (c->cases < ALL_CASES && c->cases < out.steps) out.steps = c->cases;
  return out;
}

/* The index of the number-th combination that is walked. */
static uint32_t walked_combination(const worker *w, const walk *of, uint32_t number) {
  for (uint32_t i = of->begin; i < of->end; i++)
    if (nearness_of(w, i) == of->nearness && number-- == 0) return i;
  return of->begin;
}

/* Where time is not short, all combinations together are walked a second time, and no more. */
static bool is_left_out(const worker *w, const walk *of, uint32_t number, uint32_t step) {
  const campaign *c = w->campaign;
  if (number == 0 || of->nearness > LEADS_ON) return false;
  if (size_walk_is_large(step) || c->cases < ALL_CASES) return true;
  return w->round_count == 1 && step % WALKS_SHARE != number % WALKS_SHARE;
}

/* In the first way that is accepted. */
static void take_step(const worker *w, subject *s, report *r, case_place p, uint32_t *ways_run) {
  for (uint32_t way = 0; way < SIZE_WALK_WAYS && !run_one(w, s, r, p, ways_run, UINT32_MAX); way++) p.number += SIZE_WALK_WAY;
}

static void take_steps(const worker *w, subject *s, uint32_t item, const walk *of, uint32_t first, uint32_t end, report *r) {
  const uint32_t form = form_of(w), of_form = (of->steps + 1 - form) / 2;
  uint32_t ways_run = 0, number = UINT32_MAX, index = 0;
  for (uint32_t place = first; place < end && of_form != 0 && place / of_form < of->count && !(is_over(w) && place != 0); place++) {
    const uint32_t step = place % of_form * 2 + form;
    if (w->campaign->stop_at_first && r->failure_count != 0) return;
    if (place / of_form != number) index = walked_combination(w, of, place / of_form);
    number = place / of_form;
    if (number == 0) w->journal->entries[of->begin].walked++;
    if (is_left_out(w, of, number, step)) continue;
    take_step(w, s, r, (case_place){ item, index, SIZE_WALK_FIRST + step }, &ways_run);
  }
}

/* Sizes, ranks and layouts of an operation, whatever the seed; where it refused all that was asked so far, the questions that
   may find out what it wants. */
static void run_walk(const worker *w, subject *s, uint32_t item, report *r) {
  const campaign *c = w->campaign;
  const uint32_t round = item / w->order_count, begin = worker_combination(w, item);
  const walk of = walk_of(w, begin);
  const bool is_search = of.nearness > LEADS_ON;
  const uint32_t a_round = is_search ? SEARCHES_A_ROUND : STEPS_A_ROUND, at_first = is_search ? SEARCHES_A_ROUND : STEPS_AT_FIRST;
  uint32_t ways_run = 0;
  if (c->only_case_plus_one != 0) {
    const uint32_t number = c->only_case_plus_one - 1;
    if (number >= SIZE_WALK_FIRST && number % 2 == form_of(w)) (void)run_one(w, s, r, (case_place){ item, begin, number }, &ways_run, UINT32_MAX);
    return;
  }
  if (w->round_count == 1) take_steps(w, s, item, &of, 0, UINT32_MAX, r);
  else take_steps(w, s, item, &of, round == 0 ? 0 : at_first + (round - 1) * a_round, at_first + round * a_round, r);
}

/* What must not be followed by anything else. */
static bool is_hopeless(const report *r) {
  return r->check_count != 0 && strncmp(r->checks[0].text, MANNER_EARLY_WAIT, strlen(MANNER_EARLY_WAIT)) == 0;
}

static void mind_manners(const worker *w, uint32_t item, report *r) {
  const manner *m = &manners[item];
  if (w->campaign->only_manner != NULL && w->campaign->only_manner != m) return;
  subject_options options = w->campaign->subject;
  options.combinations = w->list;
  options.calls = &w->journal->calls;
  manner_run run = { .options = &options, .seed = w->campaign->seed, .end_ns = w->end_ns,
                     .in_this_process = w->campaign->in_this_process };
  report_check check = { .failed = false };
  snprintf(check.name, sizeof check.name, "%s", m->name);
  if (w->campaign->left_out == m) manner_skip(&run, "left out");
  else if (!m->comes_first && worker_is_over(w, w->campaign->open_ns)) manner_skip(&run, "out of time");
  else m->check(&run);
  check.failed = run.t.failed;
  check.skipped = !run.t.failed && run.skipped[0] != '\0';
  snprintf(check.text, sizeof check.text, "%s", check.failed ? run.t.text : check.skipped ? run.skipped : run.in_part);
  snprintf(check.note, sizeof check.note, "%s", check.failed || check.skipped ? "" : run.note);
  (void)report_add_check(r, &check);
}

uint32_t worker_item_count(const worker *w) {
  switch (w->phase) {
    case PHASE_SURVEY: return w->list->count;
    case PHASE_MANNERS: return manner_count;
    default: return w->order_count * w->round_count;
  }
}

uint32_t worker_combination(const worker *w, uint32_t item) {
  const uint32_t place = w->phase == PHASE_SURVEY ? item : w->order[item % w->order_count];
  return place % w->list->count;
}

static bool is_walk(const worker *w, uint32_t item) { return w->order[item % w->order_count] >= w->list->count; }

static void run_item(const worker *w, subject *s, uint32_t item, report *r) {
  if (w->phase == PHASE_SURVEY) survey(w, s, item);
  else if (w->phase == PHASE_MANNERS) mind_manners(w, item, r);
  else if (is_walk(w, item)) run_walk(w, s, item, r);
  else run_cases(w, s, item, r);
}

/* ---- the process ---- */

/* A host lists it in one process and uses it in others. */
static void compare_description(journal *j, const subject *s) {
  const uint64_t hash = subject_description_hash(&s->info) | 1;
  if (j->description == 0) j->description = hash;
  else if (j->description != hash)
    last_call_misuse(&j->calls, "device_info: describes the same device differently in another process");
}

static bool open_device(const worker *w, subject *s) {
  subject_options options = w->campaign->subject;
  journal *j = w->journal;
  options.threads = w->phase == PHASE_THREADED ? THREADS : 0;
  options.calls = &j->calls;
  const uint64_t begin_ns = tm_now_ns();
  atomic_store(&j->open_status, subject_open(s, &options));
  j->open_ns = tm_now_ns() - begin_ns;
  snprintf(j->text, sizeof j->text, "%s", s->text);
  if (atomic_load(&j->open_status) == TM_OK) compare_description(j, s);
  atomic_store(&j->is_open, atomic_load(&j->open_status) == TM_OK);
  return atomic_load(&j->is_open) != 0;
}

/* What is right at first may be wrong later: the process is looked at again once all cases were run.  What a driver loads with its
   first kernel is no part of that. */
typedef struct later_look {
  process_state before;
  uint32_t      descriptors;
  uint32_t      threads;
  bool          has_begun;
} later_look;

static void begin_later_look(const worker *w, later_look *look) {
  if (look->has_begun || w->campaign->in_this_process || w->phase == PHASE_MANNERS || w->phase == PHASE_SURVEY) return;
  look->has_begun = true;
  process_state_read(&look->before, NULL);
  look->descriptors = process_descriptor_count();
  look->threads = process_thread_count(1);
}

static void tell_change(void *context, const char *what) { last_call_misuse(context, "changes %s after some launches", what); }

static void end_later_look(const worker *w, const later_look *look) {
  process_state after;
  last_call *calls = &w->journal->calls;
  if (!look->has_begun) return;
  process_state_read(&after, NULL);
  process_state_compare(&look->before, &after, tell_change, calls);
  if (after.printed_bytes > look->before.printed_bytes)
    last_call_misuse(calls, "prints %llu bytes after some launches", (unsigned long long)(after.printed_bytes - look->before.printed_bytes));
  const uint32_t descriptors = process_descriptor_count(), threads = process_thread_count(look->threads + MOST_KEPT);
  if (descriptors > look->descriptors + MOST_KEPT) last_call_misuse(calls, "leaves %u more descriptors open than before", descriptors - look->descriptors);
  if (threads > look->threads + MOST_KEPT) last_call_misuse(calls, "leaves %u more threads running than before", threads - look->threads);
}

/* However late it is, a hundredth of the budget is left for it. */
static uint64_t end_of_lasting(const worker *w) {
  const uint64_t least_ns = w->campaign->budget_ns / 100, now_ns = tm_now_ns();
  return w->end_ns == 0 ? 0 : w->end_ns > now_ns + least_ns ? w->end_ns : now_ns + least_ns;
}

journal_ending worker_run(const worker *w, uint32_t from) {
  subject s;
  later_look look = { .has_begun = false };
  const bool needs_device = w->phase != PHASE_MANNERS;          /* they open it as they like */
  last_call_own(&w->journal->calls);
  journal_note(w->journal, from, UINT32_MAX, 0);
  if (needs_device && !open_device(w, &s)) return JOURNAL_HAD_NO_DEVICE;
  atomic_store(&w->journal->is_open, 1);
  for (uint32_t item = from; item < worker_item_count(w); item++) {
    if (w->phase != PHASE_MANNERS && item != 0 && is_over(w)) break;       /* however late it is, something is tried */
    report own = { .count = 0 };
    journal_note(w->journal, item, UINT32_MAX, 0);
    run_item(w, &s, item, &own);
    const bool ends_here = is_hopeless(&own);
    last_call_end_copy(&w->journal->calls);
    const bool has_arrived = w->deliver(w->context, &own);
    report_free(&own);
    if (!has_arrived) return JOURNAL_CUT_OFF;
    if (ends_here) break;
    begin_later_look(w, &look);
  }
  if (needs_device) lasting_check(w, &s, end_of_lasting(w));
  end_later_look(w, &look);
  journal_note(w->journal, worker_item_count(w), UINT32_MAX, 0);
  if (needs_device) subject_close(&s);
  return JOURNAL_IS_THROUGH;
}

journal_ending worker_try_open(const campaign *c, journal *j) {
  subject s;
  const worker w = { .campaign = c, .journal = j, .phase = PHASE_SURVEY };
  last_call_own(&j->calls);
  if (!open_device(&w, &s)) return JOURNAL_HAD_NO_DEVICE;
  tm_device_info info = { .struct_size = sizeof info };
  j->device_count = 0;
  while (j->device_count < CAMPAIGN_MOST_DEVICES && SUBJECT_CALL(&s, device_info)(s.backend, j->device_count, &info) == TM_OK)
    j->device_count++;
  const tm_string name = tm_description_is_readable(s.info.name) ? s.info.name : (tm_string){ "", 0 };
  (void)tm_text_escape(name.length == 0 ? "" : name.data, name.length > LONGEST_NAME ? LONGEST_NAME : name.length, j->device_name,
                       sizeof j->device_name);
  subject_close(&s);
  return JOURNAL_IS_THROUGH;
}
