/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/errand.h"

#include "conformance/closeness.h"

#define ELEMENTS 4096u
#define TRIES 4u
#define LARGE_TRIES 64u         /* most draws are small */
#define BUSY_TRIES 200000u

static bool is_accepted(subject *s, const combination *which, uint64_t elements, uint64_t seed, question *q, tm_answer *answer) {
  const bool is_large = elements > ELEMENTS;
  for (uint64_t i = 0; i < (is_large ? LARGE_TRIES : TRIES); i++) {
    if (!question_make_plain(q, which, elements, seed + i)) continue;
    if (q->c.operands[which->inputs].element_count < (is_large ? elements / 2 : 1)) continue;
    *answer = subject_ask_question(s, q);
    if (answer->level != TM_LEVEL_REFUSED) return true;
  }
  return false;
}

/* One claim an operation, so that the first few are of different kinds. */
static bool find(subject *s, uint32_t which, uint64_t elements, uint64_t seed, question *out_question, tm_answer *out_answer) {
  const combination_list *list = s->combinations;
  const tm_op_row *done = NULL;
  for (uint32_t i = 0; list != NULL && i < list->count; i++) {
    const combination *one = &list->items[i];
    if (one->row == done || !is_accepted(s, one, ELEMENTS, seed, out_question, out_answer)) continue;
    if (elements > ELEMENTS && !is_accepted(s, one, elements, seed, out_question, out_answer)) continue;
    done = one->row;
    if (which-- == 0) return true;
  }
  return false;
}

bool errand_find(subject *s, uint32_t which, uint64_t seed, question *out_question, tm_answer *out_answer) {
  return find(s, which, ELEMENTS, seed, out_question, out_answer);
}

static bool make_memory(errand *e, uint64_t seed, trial *t) {
  subject *s = e->s;
  const uint32_t inputs = e->q.c.operation.input_count;
  const tm_op_row *row = tm_op_find(e->q.c.operation.op);
  void *pointers[CASE_MAX_OPERANDS];
  uint64_t state = seed;
  for (uint32_t i = 0; i <= inputs; i++)
    if (!image_for(&e->operands[i], s, &e->q.c.operands[i], i == inputs)) return trial_fail(t, "no memory");
  image_fill_inputs(e->operands, &e->q, &state);
  if (!image_copy(&e->expected, &e->operands[inputs])) return trial_fail(t, "no memory");
  for (uint32_t i = 0; i < inputs; i++) pointers[i] = e->operands[i].bytes + e->operands[i].first;
  pointers[inputs] = e->expected.bytes + e->expected.first;
  row->reference(&e->q.c.operation, pointers, 0, row->units(&e->q.c.operation));
  for (uint32_t i = 0; i <= inputs; i++) {
    image *one = &e->operands[i];
    const tm_status status = subject_buffer(s, one->bytes, one->size, &one->buffer);
    if (status != TM_OK) return trial_fail(t, "a buffer of %llu bytes: status %d", (unsigned long long)one->size, status);
    if (i < inputs && s->host_makes_buffers) image_protect(one);
  }
  if (e->answer.workspace_bytes == 0) return true;
  if (!image_make(&e->workspace, s, 0, e->answer.workspace_bytes, 64, true)) return trial_fail(t, "no memory");
  return subject_buffer(s, e->workspace.bytes, e->workspace.size, &e->workspace.buffer) == TM_OK || trial_fail(t, "no workspace");
}

static void release_image(errand *e, image *one) {
  subject_buffer_free(e->s, one->buffer, one->size);
  image_drop(one);
}

void errand_free(errand *e) {
  if (e->kernel != NULL) SUBJECT_CALL(e->s, release)(e->s->device, e->kernel);
  e->kernel = NULL;
  for (uint32_t i = 0; i < CASE_MAX_OPERANDS; i++) release_image(e, &e->operands[i]);
  release_image(e, &e->expected);
  release_image(e, &e->workspace);
}

/* Once; *out_is_stale if its epoch moved meanwhile. */
static bool make_once(errand *e, subject *s, uint32_t which, uint64_t elements, uint64_t seed, trial *t, bool *out_is_stale) {
  memset(e, 0, sizeof *e);
  e->s = s;
  question q;
  if (!find(s, which, elements, seed, &q, &e->answer)) return false;
  question_copy(&q, &e->q);
  if (!make_memory(e, seed, t)) return false;
  const tm_status status = SUBJECT_CALL(s, prepare)(s->device, &e->q.c.operation, &e->answer, &e->kernel);
  *out_is_stale = status == TM_STALE && subject_has_moved(s, &e->answer);
  return status == TM_OK || *out_is_stale || trial_fail(t, "prepare gave %d after query said yes (%s)", status, s->text);
}

static bool make(errand *e, subject *s, uint32_t which, uint64_t elements, uint64_t seed, trial *t) {
  for (uint32_t i = 0; i < TRIES; i++) {
    bool is_stale = false;
    const bool made = make_once(e, s, which, elements, seed, t, &is_stale);
    if (!is_stale) return made;
    errand_free(e);
  }
  return trial_fail(t, "its epoch moved with each of %u prepares", TRIES);
}

bool errand_make(errand *e, subject *s, uint32_t which, uint64_t seed, trial *t) {
  return make(e, s, which, ELEMENTS, seed, t);
}

bool errand_make_large(errand *e, subject *s, uint64_t elements, uint64_t seed, trial *t) {
  return make(e, s, 0, elements, seed, t);
}

static tm_status launch(errand *e, uint32_t queue, const tm_ticket *waits, uint32_t wait_count, uint32_t tries, tm_ticket *out_ticket) {
  const uint32_t count = e->q.c.operation.input_count + 1;
  tm_binding bindings[CASE_MAX_OPERANDS + 1];
  for (uint32_t i = 0; i < count; i++) bindings[i] = image_binding(&e->operands[i]);
  bindings[count] = (tm_binding){ e->workspace.buffer, e->workspace.first, e->answer.workspace_bytes };
  const tm_launch one = {
    .struct_size = sizeof one, .queue = queue, .kernel = e->kernel, .bindings = bindings,
    .waits = waits, .wait_count = wait_count, .binding_count = count + (e->answer.workspace_bytes != 0),
  };
  *out_ticket = (tm_ticket){ queue, 0, 0 };
  tm_status status = SUBJECT_CALL(e->s, launch)(e->s->device, &one, out_ticket);
  for (uint32_t i = 0; i < tries && status == TM_BUSY; i++) {
    (void)SUBJECT_CALL(e->s, flush)(e->s->device, queue);
    status = SUBJECT_CALL(e->s, launch)(e->s->device, &one, out_ticket);
  }
  return status;
}

tm_status errand_launch(errand *e, uint32_t queue, const tm_ticket *waits, uint32_t wait_count, tm_ticket *out_ticket) {
  return launch(e, queue, waits, wait_count, BUSY_TRIES, out_ticket);
}

tm_status errand_launch_once(errand *e, uint32_t queue, tm_ticket *out_ticket) { return launch(e, queue, NULL, 0, 0, out_ticket); }

bool errand_reset(errand *e, trial *t) {
  image *output = &e->operands[e->q.c.operation.input_count];
  subject_buffer_free(e->s, output->buffer, output->size);
  output->buffer = NULL;
  memset(output->bytes, CASE_GUARD, output->size);
  return subject_buffer(e->s, output->bytes, output->size, &output->buffer) == TM_OK || trial_fail(t, "no memory");
}

bool errand_check(errand *e, trial *t) {
  image *output = &e->operands[e->q.c.operation.input_count];
  const tm_status status = subject_collect(e->s, output->buffer, output->bytes, output->size);
  return status == TM_OK ? errand_judge(e, t) : trial_fail(t, "download gave %d", status);
}

bool errand_judge(const errand *e, trial *t) {
  const uint32_t inputs = e->q.c.operation.input_count;
  const image *output = &e->operands[inputs];
  void *pointers[CASE_MAX_OPERANDS];
  closeness near;
  oracle o = { NULL, NULL, 0 };
  for (uint32_t i = 0; i < inputs; i++) pointers[i] = e->operands[i].bytes + e->operands[i].first;
  pointers[inputs] = e->expected.bytes + e->expected.first;
  const bool has_oracle = e->answer.numerics == TM_NUMERICS_N2 && oracle_make(&o, &e->q.c, pointers);
  closeness_measure(&near, &e->q.c, &e->answer, output->bytes + output->first, pointers[inputs], has_oracle ? &o : NULL);
  oracle_free(&o);
  return near.is_close || trial_fail(t, "%s", near.text);
}
