/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does the conformance run find a claim that is a little too bold?  Every claim of a built-in backend is overstated in
 * every way that applies: a level more, no workspace, a stronger class, a thousandth of the bound, one more format.  Each
 * must make it fail for that very combination.
 *
 * A stronger promise can happen to be kept: a bound is modest, a function is computed better than it says.  What holds in
 * many more cases than usual is counted and named as true.  But a numerics class that no mutation of can be found must belong to
 * results that equal the reference's bit for bit; nothing else may survive.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/error.h"
#include "conformance/campaign.h"
#include "fakes/mutant.h"
#include "plugin/builtin_plugins.h"
#include "plugin/table.h"

#define CASES 40u           /* fewer than all: what is overstated shows in the first steps of the walk through sizes */
#define HONEST_CASES 4          /* enough to meet a layout that is taken, for every combination of formats */
#define MANY_CASES 200u
#define QUESTIONS 40u
#define SEED 7u

typedef struct session {
  tm_accelerator_backend_plugin inner;
  const report                 *claims; /* of the backend as it is */
  uint32_t falsified;
  uint32_t true_claims;         /* as far as can be told */
  uint32_t survivors;
} session;

/* What it is called, and what the run must say of it ("": whatever it is). */
typedef struct kind {
  const char *name;
  const char *finding;
  const char *or_finding;
} kind;

static const kind kinds[] = {
  [MUTATION_LEVEL] = { "level + 1", "answers with level", "native with a workspace" },
  [MUTATION_WORKSPACE] = { "no workspace", "", "" },
  [MUTATION_EXPANSION] = { "an expanded copy", "native with a workspace", "native with a workspace" },
  [MUTATION_CLASS] = { "stronger class", "of what class", "of what class" },
  [MUTATION_EXACT] = { "bit-equal", "of what class", "of what class" },
  [MUTATION_BOUND] = { "bound / 1000", "of what class", "of what class" },
  [MUTATION_FORMAT] = { "one more format", "", "" },
  [MUTATION_EMPTY_PROMISE] = { "empty promise", "prepare gave", "prepare gave" },
};

static void run_one(const tm_accelerator_backend_plugin *table, const combination *which, uint32_t cases, bool stop, report *out_report) {
  const campaign c = { .subject = { .table = table }, .seed = SEED, .cases = cases, .only_op = which->row->op, .only = which,
                       .stop_at_first = stop };
  if (!campaign_run(&c, out_report)) fail_msg("no process for the trials");
}

/* The largest distance from the reference, as a fraction of what is allowed. */
static double worst_of(const tm_accelerator_backend_plugin *table, const combination *which) {
  report r;
  double worst = 0;
  run_one(table, which, MANY_CASES, false, &r);
  for (uint32_t i = 0; i < r.count; i++)
    if (r.claims[i].worst > worst) worst = r.claims[i].worst;
  report_free(&r);
  return worst;
}

static void say(const mutation *m, const char *what) {
  char formats[160];
  combination_describe(&m->which, formats, sizeof formats);
  printf("  %s %s, %s: %s\n", m->which.row->name, formats, kinds[m->kind].name, what);
}

/* Whether the run fails, and says what is wrong. */
static bool is_found(session *s, const mutation *m, uint32_t cases) {
  const kind *k = &kinds[m->kind];
  tm_accelerator_backend_plugin mutant;
  report r;
  bool found = false;
  mutant_make(&s->inner, m, &mutant);
  run_one(&mutant, &m->which, cases, true, &r);
  for (uint32_t i = 0; i < r.count && !found; i++)
    found = r.claims[i].failure_count != 0 &&
            (strstr(r.claims[i].failure, k->finding) != NULL || strstr(r.claims[i].failure, k->or_finding) != NULL);
  if (!found && r.failure_count != 0) say(m, r.claims[0].failure);
  report_free(&r);
  return found;
}

/* Unknown levels, missing or expanding workspaces and empty promises are false whatever the numbers are. */
static void expect_found(session *s, const mutation *m) {
  if (is_found(s, m, CASES)) {
    s->falsified++;
    return;
  }
  s->survivors++;
  say(m, "NOT FOUND");
}

/* A stronger promise may happen to be kept. */
static bool found_or_true(session *s, const mutation *m) {
  if (is_found(s, m, CASES) || is_found(s, m, MANY_CASES)) {
    s->falsified++;
    return true;
  }
  s->true_claims++;
  say(m, "true in every case tried");
  return false;
}

/* If neither the next class nor a thousandth of the bound is found, the results must be equal to the reference's bit for
   bit, or the run has no eye for this claim. */
static void mutate_numerics(session *s, const report_claim *claim) {
  mutation m = { .kind = MUTATION_CLASS, .which = claim->which, .bound = 1 };
  if (claim->numerics == TM_NUMERICS_N0) return;
  bool found = found_or_true(s, &m);
  if (claim->numerics != TM_NUMERICS_N4) {
    m.kind = MUTATION_BOUND;
    found |= found_or_true(s, &m);
  }
  if (found) return;
  m.kind = MUTATION_EXACT;
  if (claim->numerics > TM_NUMERICS_N1 && found_or_true(s, &m)) return;
  if (worst_of(&s->inner, &m.which) == 0) return;
  s->survivors++;
  say(&m, "NOT FOUND although results differ from the reference's");
}

/* What it says of the first of so many questions that it takes. */
static tm_answer ask(session *s, const combination *which, uint64_t questions) {
  subject host;
  question q;
  const subject_options options = { .table = &s->inner };
  tm_answer answer = { .level = TM_LEVEL_REFUSED };
  if (subject_open(&host, &options) != TM_OK) fail_msg("the backend does not open");
  for (uint64_t seed = 1; seed <= questions && answer.level == TM_LEVEL_REFUSED; seed++)
    if (question_make_plain(&q, which, 5000, seed)) answer = subject_ask(&host, &q.c.operation);
  subject_close(&host);
  return answer;
}

static bool has_workspace(session *s, const combination *which) { return ask(s, which, 1).workspace_bytes != 0; }

static bool has_narrow_input(const combination *which) {
  for (uint32_t i = 0; i < which->inputs; i++) {
    const tm_format_info *info = tm_format_find(which->formats[i]);
    if ((info->kind == TM_KIND_FLOAT || info->kind == TM_KIND_BLOCK) && info->block_bytes < 4 * info->block_elements) return true;
  }
  return false;
}

/* Among the few cases of an honest run may have been none that the backend takes. */
static bool is_claimed(session *s, const combination *which) {
  for (uint32_t i = 0; i < s->claims->count; i++) {
    const combination *other = &s->claims->claims[i].which;
    if (other->row == which->row && other->inputs == which->inputs &&
        memcmp(other->formats, which->formats, (which->inputs + 1) * sizeof which->formats[0]) == 0)
      return true;
  }
  return ask(s, which, QUESTIONS).level != TM_LEVEL_REFUSED;
}

/* Operands that are as large in the one as in the other, so that the kernel runs on them without harm. */
static bool can_stand_for(const combination *a, const combination *b) {
  if (a->inputs != b->inputs) return false;
  for (uint32_t i = 0; i <= a->inputs; i++) {
    const tm_format_info *x = tm_format_find(a->formats[i]), *y = tm_format_find(b->formats[i]);
    if (x->block_bytes != y->block_bytes || x->block_elements != y->block_elements) return false;
  }
  return true;
}

static void mutate_formats(session *s, const report_claim *claim, const combination_list *all) {
  bool promised = false, disguised = false;
  for (uint32_t i = 0; i < all->count && !(promised && disguised); i++) {
    mutation m = { .kind = MUTATION_EMPTY_PROMISE, .which = all->items[i], .as = claim->which };
    if (is_claimed(s, &m.which)) continue;
    if (!promised) expect_found(s, &m);
    promised = true;
    if (disguised || !can_stand_for(&m.which, &claim->which)) continue;
    m.kind = MUTATION_FORMAT;
    disguised = true;
    (void)found_or_true(s, &m);
  }
}

static void mutate_claim(session *s, const report_claim *claim, const combination_list *all) {
  mutation m = { .kind = MUTATION_LEVEL, .which = claim->which };
  if (claim->level == TM_LEVEL_EMULATED) (void)found_or_true(s, &m);
  else expect_found(s, &m);
  if (has_workspace(s, &m.which)) {
    m.kind = MUTATION_WORKSPACE;
    expect_found(s, &m);
    m.kind = MUTATION_EXPANSION;
    if (has_narrow_input(&m.which)) expect_found(s, &m);
  }
  mutate_numerics(s, claim);
  mutate_formats(s, claim, all);
}

static void overstated_claims_are_found(void **state) {
  const tm_builtin_plugin *backend = *state;
  session s = { .falsified = 0 };
  tm_error error = TM_ERROR_INIT;
  campaign_opening opening;
  report claims;
  if (tm_plugin_table_accept(backend->query(TM_ABI_MAJOR, TM_ABI_MINOR), NULL, &s.inner, &error) != TM_OK) fail_msg("%s", error.text);
  const campaign honest = { .subject = { .table = &s.inner }, .seed = SEED, .cases = HONEST_CASES, .claims_only = true };
  campaign_open(&honest, &opening);
  if (opening.status != TM_OK) {
    printf("%s has no device here: %s\n", backend->name, opening.text);
    skip();
  }
  assert_true(campaign_run(&honest, &claims));
  assert_int_equal(claims.failure_count, 0);
  s.claims = &claims;
  for (uint32_t i = 0; i < claims.count; i++) {
    combination_list all = { NULL, 0, 0 };
    assert_true(combination_list_add(&all, claims.claims[i].which.row));
    mutate_claim(&s, &claims.claims[i], &all);
    combination_list_free(&all);
  }
  printf("%s: %u claims; %u overstatements found, %u true in every case tried, %u not found\n", backend->name, claims.count,
         s.falsified, s.true_claims, s.survivors);
  report_free(&claims);
  assert_int_equal(s.survivors, 0);
}

int main(void) {
  struct CMUnitTest *tests = calloc(tm_builtin_plugin_count + 1, sizeof *tests);
  if (tests == NULL) return 1;
  for (uint32_t i = 0; i < tm_builtin_plugin_count; i++)
    tests[i] = (struct CMUnitTest){ tm_builtin_plugins[i].name, overstated_claims_are_found, NULL, NULL,
                                    (void *)(uintptr_t)&tm_builtin_plugins[i] };
  const int failed = _cmocka_run_group_tests("mutation", tests, tm_builtin_plugin_count, NULL, NULL);
  free(tests);
  return failed;
}
