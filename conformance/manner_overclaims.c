/* SPDX-License-Identifier: Apache-2.0 */
/* Random questions far from the usual: what is said yes to must be possible, and where it is small, it must work. */
#include <stdio.h>
#include <stdlib.h>

#include "conformance/manner.h"
#include "conformance/promises.h"

#define QUESTIONS 3000u
#define RUNS 60u
#define PLAIN_ELEMENTS 1000u
#define MOST_FIXED 2u                   /* formats that a line names one by one for an operand: i32 and i64 of indices */
#define MOST_TIMES 8u                   /* the largest buffer, that are asked for */
#define LEAST_BITS 32u
#define BITS 14u                        /* of huge sizes: 2^32 to 2^45 elements */
#define LARGEST_WORKSPACE (UINT64_C(1) << 46)

static uint32_t odd_format(uint64_t *state) {
  static const uint32_t formats[] = {11, 15, 27, 99, 0xffu, 0x150u, 0x1ffu, 0x7fffffffu, TM_FORMAT_PRIVATE + 0xabcdefu, UINT32_MAX};
  return formats[random_below(state, sizeof formats / sizeof formats[0])];
}

/* Whether the operation's line leaves a choice there: where it does not, the host has checked what stands there. */
static bool is_open(const combination_list *all, const combination *which, uint32_t operand) {
  uint32_t seen[MOST_FIXED + 1], count = 0;
  for (uint32_t i = 0; i < all->count && count <= MOST_FIXED; i++) {
    const combination *one = &all->items[i];
    uint32_t k = 0;
    if (one->row != which->row || one->inputs != which->inputs) continue;
    while (k < count && seen[k] != one->formats[operand]) k++;
    if (k == count) seen[count++] = one->formats[operand];
  }
  return count > MOST_FIXED;
}

/* As a later host may ask: a format that nobody has given a meaning yet, in all operands that share one. */
static void ask_odd_format(manner_run *run, subject *s, const combination *which, question *q, uint64_t *state) {
  const combination_list *all = run->options->combinations;
  const uint32_t count = q->c.operation.input_count + 1, chosen = (uint32_t)random_below(state, count);
  tm_operand *operand = &q->c.operands[chosen];
  const uint32_t usual = operand->format, odd = odd_format(state);
  /* Bytes can be moved without knowing what they mean. */
  if (which->row->op_class == TM_CLASS_MOVE || !is_open(all, which, chosen)) return;
  for (uint32_t i = 0; i < count; i++)
    if (q->c.operands[i].format == usual && is_open(all, which, i)) q->c.operands[i].format = odd;
  const tm_answer answer = subject_ask(s, &q->c.operation);
  if (answer.level != TM_LEVEL_REFUSED)
    trial_fail(&run->t, "says yes to %s with an operand of format 0x%x, which it cannot know", which->row->name, odd);
  else if (answer.reasons == 0) trial_fail(&run->t, "refuses a format without a reason");
}

static void prepare_huge(manner_run *run, subject *s, const question *q, const tm_answer *answer) {
  tm_kernel *kernel = NULL;
  const tm_status status = SUBJECT_CALL(s, prepare)(s->device, &q->c.operation, answer, &kernel);
  if (status == TM_OK) SUBJECT_CALL(s, release)(s->device, kernel);
  else if (status != TM_ERROR_NO_MEMORY && !(status == TM_STALE && subject_has_moved(s, answer)))
    trial_fail(&run->t, "prepare of an operation on %llu elements gave %d after query said yes",
               (unsigned long long)q->c.operands[0].element_count, status);
}

static void ask_huge(manner_run *run, subject *s, const question *q) {
  const tm_answer answer = subject_ask(s, &q->c.operation);
  const uint64_t largest = s->space.largest_buffer_bytes;
  promises_check_answer(&run->t, s, q, &answer);
  if (answer.level == TM_LEVEL_REFUSED || run->t.failed) return;
  if (answer.workspace_bytes > LARGEST_WORKSPACE)
    trial_fail(&run->t, "needs a workspace of %llu bytes", (unsigned long long)answer.workspace_bytes);
  for (uint32_t i = 0; largest != 0 && i <= q->c.operation.input_count; i++)
    if (q->c.operands[i].byte_count > largest)
      trial_fail(&run->t, "says yes to an operand of %llu bytes, which is more than its largest buffer",
                 (unsigned long long)q->c.operands[i].byte_count);
  if (!run->t.failed) prepare_huge(run, s, q, &answer);
}

/* A usual size, but a number of the case that no campaign gets to. */
static void ask_odd_case(manner_run *run, subject *s, const combination *which, uint64_t *state, uint32_t *runs) {
  question q;
  const uint64_t seed = random_u64(state);
  if (!question_make(&q, which, 2 + (uint32_t)random_below(state, 1000) * 2, seed)) return;
  const tm_answer answer = subject_ask(s, &q.c.operation);
  promises_check_answer(&run->t, s, &q, &answer);
  if (answer.level == TM_LEVEL_REFUSED || run->t.failed || *runs == RUNS) return;
  ++*runs;
  trial_run(&run->t, s, &q, &answer, seed);
}

/* Of those it takes at all, so that a backend of few claims is asked about these as often as about all others. */
typedef struct drawing {
  const combination_list *all;
  uint32_t               *claimed;      /* indices */
  uint32_t                claimed_count;
} drawing;

static bool draw_claims(drawing *d, subject *s) {
  d->claimed = calloc((size_t)d->all->count + 1, sizeof *d->claimed);
  if (d->claimed == NULL) return false;
  for (uint32_t i = 0; i < d->all->count; i++) {
    question q;
    if (question_make_plain(&q, &d->all->items[i], PLAIN_ELEMENTS, i) && subject_ask_question(s, &q).level != TM_LEVEL_REFUSED)
      d->claimed[d->claimed_count++] = i;
  }
  return true;
}

static const combination *draw(const drawing *d, uint64_t *state) {
  const uint64_t any = random_below(state, d->all->count);
  if (d->claimed_count == 0 || random_below(state, 2) == 0) return &d->all->items[any];
  return &d->all->items[d->claimed[random_below(state, d->claimed_count)]];
}

/* Far beyond what anybody could do; or, of a device that says how much it can, a little beyond that. */
static uint64_t huge_size(const subject *s, const combination *which, uint64_t *state) {
  const uint64_t far = UINT64_C(1) << (LEAST_BITS + random_below(state, BITS));
  const uint64_t largest = s->space.largest_buffer_bytes;
  if (largest == 0 || largest >= UINT64_C(1) << LEAST_BITS || random_below(state, 2) == 0) return far;
  const tm_format_info *info = tm_format_find(which->formats[0]);
  return (largest / info->block_bytes + 1) * info->block_elements * (1 + random_below(state, MOST_TIMES));
}

static void ask_one(manner_run *run, subject *s, const combination *which, uint64_t *state, uint32_t *runs) {
  question q;
  const uint64_t kind = random_below(state, 3);
  if (kind == 2) {
    ask_odd_case(run, s, which, state, runs);
    return;
  }
  const uint64_t elements = kind == 1 ? huge_size(s, which, state) : PLAIN_ELEMENTS;
  if (!question_make_plain(&q, which, elements, random_u64(state))) return;
  subject_work_on(s, &q);
  if (kind == 0) ask_odd_format(run, s, which, &q, state);
  else ask_huge(run, s, &q);
  if (!run->t.failed) return;
  char what[200], text[TRIAL_TEXT];
  if (kind == 0) return;
  question_describe(&q, what, sizeof what);
  snprintf(text, sizeof text, "%.180s: %.130s", run->t.text, what);
  memcpy(run->t.text, text, sizeof text);
}

void manner_check_overclaims(manner_run *run) {
  subject s;
  drawing d = { .all = run->options->combinations };
  uint64_t state = run->seed;
  uint32_t runs = 0;
  if (!manner_open(run, &s, 0)) return;
  if (!draw_claims(&d, &s)) manner_skip(run, "no memory");
  for (uint32_t i = 0; i < QUESTIONS && d.claimed != NULL && !run->t.failed && !manner_ends_early(run, i, QUESTIONS, "questions"); i++)
    ask_one(run, &s, draw(&d, &state), &state, &runs);
  free(d.claimed);
  subject_close(&s);
}
