/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/errand.h"

#include "conformance/changes.h"
#include "conformance/closeness.h"

#define ELEMENTS 4096u
#define TRIES 12u
#define QUESTIONS 4u            /* at most, of them; the last so many draws take what comes */
#define HANDY_BYTES (UINT64_C(1) << 16)
#define LARGE_BYTES_EACH 32u            /* for each element that is asked for */
#define HANDY_ELEMENTS 64u
#define EPOCHS 4u
#define LARGE_TRIES 400u        /* most draws are small */
#define BUSY_TRIES 200000u
#define FORM_TRIES 24u          /* of a combination: questions */
#define FORM_DRAWS 96u
#define FAR_SEEDS UINT64_C(0x9e3779b97f4a7c15)         /* neighbours make much the same at first */
#define CHANGE_ROUNDS 3u
#define PACKED_ALIGNMENT 64u

static uint64_t bytes_of(const question *q, const combination *which) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i <= which->inputs; i++) bytes += q->c.operands[i].byte_count;
  return bytes;
}

/* Neither next to nothing nor so much that many of it would be all that is done. */
static bool is_handy(const question *q, const combination *which) {
  return bytes_of(q, which) <= HANDY_BYTES && q->c.operands[which->inputs].element_count >= HANDY_ELEMENTS;
}

static bool is_large_enough(const question *q, const combination *which, uint64_t elements) {
  return q->c.operands[which->inputs].element_count >= elements / 2 && bytes_of(q, which) <= elements * LARGE_BYTES_EACH;
}

static bool is_wanted(const question *q, const combination *which, uint64_t elements, bool is_last) {
  if (elements > ELEMENTS) return is_large_enough(q, which, elements);
  return q->c.operands[which->inputs].element_count != 0 && (is_last || is_handy(q, which));
}

static bool is_accepted(subject *s, const combination *which, uint64_t elements, uint64_t seed, question *q, tm_answer *answer) {
  const uint32_t tries = elements > ELEMENTS ? LARGE_TRIES : TRIES;
  for (uint32_t i = 0, asked = 0; i < tries && asked < QUESTIONS; i++) {
    if (!question_make_plain(q, which, elements, seed + i) || !is_wanted(q, which, elements, i + QUESTIONS >= tries)) continue;
    *answer = subject_ask_question(s, q);
    if (answer->level != TM_LEVEL_REFUSED) return true;
    asked += (answer->reasons & (TM_REASON_OPERATION | TM_REASON_FORMAT)) != 0 ? QUESTIONS / 2 : 1;
  }
  return false;
}

/* One claim an operation, so that the first few are of different kinds; they are remembered. */
static bool search(subject *s, uint32_t which, uint64_t elements, uint64_t seed, question *out_question, tm_answer *out_answer) {
  const combination_list *list = s->combinations;
  const tm_op_row *done = NULL;
  uint32_t number = 0;
  for (uint32_t i = 0; list != NULL && i < list->count; i++) {
    const combination *one = &list->items[i];
    if (one->row == done || !is_accepted(s, one, ELEMENTS, seed, out_question, out_answer)) continue;
    if (number == s->found_count && number < SUBJECT_FOUND && elements == ELEMENTS) s->found[s->found_count++] = i;
    if (elements > ELEMENTS && !is_accepted(s, one, elements, seed, out_question, out_answer)) continue;
    done = one->row;
    if (number++ == which) return true;
  }
  s->found_all |= elements == ELEMENTS;
  return false;
}

static bool find(subject *s, uint32_t which, uint64_t elements, uint64_t seed, question *out_question, tm_answer *out_answer) {
  if (which >= s->found_count && s->found_all) return false;
  if (which < s->found_count && is_accepted(s, &s->combinations->items[s->found[which]], elements, seed, out_question, out_answer))
    return true;
  return search(s, which, elements, seed, out_question, out_answer);
}

bool errand_find(subject *s, uint32_t which, uint64_t seed, question *out_question, tm_answer *out_answer) {
  return find(s, which, ELEMENTS, seed, out_question, out_answer);
}

/* ---- claims on weights ---- */

/* What a host would ask next, and next. */
static void follow_changes(subject *s, question *q, tm_answer *answer) {
  changes made;
  for (uint32_t i = 0; i < CHANGE_ROUNDS && answer->level == TM_LEVEL_REFUSED; i++) {
    if (answer->change_count == 0 || answer->change_count > TM_MAX_CHANGES) return;
    if (changes_make(q, answer, &made) != CHANGES_MADE) return;
    question_copy(&made.changed, q);
    *answer = subject_ask_question(s, q);
  }
}

/* Of a product the work is larger than what it is done on. */
static bool is_fit_for_weights(const question *q, const combination *which, uint64_t elements) {
  if (elements <= ELEMENTS) return is_handy(q, which);
  const uint64_t bytes = bytes_of(q, which);
  return bytes >= elements / 16 && bytes <= elements * LARGE_BYTES_EACH &&
         q->c.operands[which->inputs].element_count >= HANDY_ELEMENTS;
}

static bool has_form(subject *s, const combination *which, weights_form form, uint64_t elements, uint64_t seed, question *q,
                     tm_answer *answer) {
  const bool is_large = elements > ELEMENTS;
  *answer = (tm_answer){ .level = TM_LEVEL_REFUSED };
  for (uint32_t i = 0, asked = 0; i < (is_large ? LARGE_TRIES : FORM_DRAWS) && asked < FORM_TRIES; i++) {
    if (!question_make_plain(q, which, elements, seed + i * FAR_SEEDS) || !is_fit_for_weights(q, which, elements)) continue;
    asked++;
    *answer = subject_ask_question(s, q);
    if (answer->level != TM_LEVEL_REFUSED || (answer->reasons & TM_REASON_OPERATION) != 0) return false;
    question_make_constant(q, 0);
    if (!question_settle(q)) continue;
    *answer = subject_ask_question(s, q);
    if (form == WEIGHTS_PACKED) follow_changes(s, q, answer);
    if (answer->level != TM_LEVEL_REFUSED && question_is_packed(q) == (form == WEIGHTS_PACKED)) return true;
  }
  return false;
}

/* Small ones tell which combination it is. */
static bool find_weights(subject *s, weights_form form, uint64_t elements, uint64_t seed, question *q, tm_answer *answer) {
  const combination_list *list = s->combinations;
  const tm_op_row *unknown = NULL;
  for (uint32_t i = 0; list != NULL && i < list->count; i++) {
    const combination *one = &list->items[i];
    if (one->inputs < 2 || one->row == unknown) continue;
    if (has_form(s, one, form, ELEMENTS, seed, q, answer)) {
      if (elements <= ELEMENTS || has_form(s, one, form, elements, seed, q, answer)) return true;
    } else if ((answer->reasons & TM_REASON_OPERATION) != 0) {
      unknown = one->row;
    }
  }
  return false;
}

/* ---- memory ---- */

static bool make_expected(errand *e, uint64_t seed, trial *t) {
  const uint32_t inputs = e->q.c.operation.input_count;
  const tm_op_row *row = tm_op_find(e->q.c.operation.op);
  void *pointers[CASE_MAX_OPERANDS];
  uint64_t state = seed;
  image_fill_inputs(e->operands, &e->q, &state);
  if (!image_copy(&e->expected, &e->operands[inputs])) return trial_fail(t, "no memory");
  for (uint32_t i = 0; i < inputs; i++) pointers[i] = e->operands[i].bytes + e->operands[i].first;
  pointers[inputs] = e->expected.bytes + e->expected.first;
  row->reference(&e->q.c.operation, pointers, 0, row->units(&e->q.c.operation));
  return true;
}

static bool make_buffer(errand *e, image *one, trial *t) {
  const tm_status status = subject_buffer(e->s, one->bytes, one->size, &one->buffer);
  return status == TM_OK || trial_fail(t, "a buffer of %llu bytes: status %d", (unsigned long long)one->size, status);
}

static bool make_scratch(errand *e, uint64_t bytes, image *out_one, trial *t) {
  if (bytes == 0) return true;
  if (!image_make(out_one, e->s, 0, bytes, PACKED_ALIGNMENT, true)) return trial_fail(t, "no memory");
  return make_buffer(e, out_one, t);
}

static bool make_workspace(errand *e, trial *t) { return make_scratch(e, e->answer.workspace_bytes, &e->workspace, t); }

static void release_image(errand *e, image *one) {
  subject_buffer_free(e->s, one->buffer, one->size);
  image_drop(one);
}

static bool pack_input(errand *e, uint32_t input, trial *t) {
  subject *s = e->s;
  asked_operation packing;
  tm_kernel *kernel = NULL;
  image workspace = { .bytes = NULL }, *to = &e->packed[input];
  question_packing(&e->q, input, &packing);
  const tm_answer answer = subject_ask(s, &packing.operation);
  if (answer.level == TM_LEVEL_REFUSED) return trial_fail(t, "proposes a private format and refuses to convert to it");
  if (!make_scratch(e, e->q.packed[input].bytes, to, t)) return false;
  tm_status status = SUBJECT_CALL(s, prepare)(s->device, &packing.operation, &answer, &kernel);
  if (status != TM_OK) return trial_fail(t, "prepare of the conversion to its private format gave %d (%s)", status, s->text);
  if (make_scratch(e, answer.workspace_bytes, &workspace, t)) {
    const tm_binding bindings[] = { image_binding(&e->operands[input]), image_binding(to),
                                    { workspace.buffer, workspace.first, answer.workspace_bytes } };
    status = subject_launch(s, 0, kernel, bindings, answer.workspace_bytes != 0 ? 3 : 2);
    if (status != TM_OK) trial_fail(t, "the conversion to its private format gave %d (%s)", status, s->text);
  }
  SUBJECT_CALL(s, release)(s->device, kernel);
  release_image(e, &workspace);
  return !t->failed;
}

static bool make_memory(errand *e, uint64_t seed, trial *t) {
  const uint32_t inputs = e->q.c.operation.input_count;
  for (uint32_t i = 0; i <= inputs; i++)
    if (!image_for(&e->operands[i], e->s, &e->q.c.operands[i], i == inputs)) return trial_fail(t, "no memory");
  if (!make_expected(e, seed, t)) return false;
  for (uint32_t i = 0; i <= inputs; i++) {
    if (!make_buffer(e, &e->operands[i], t)) return false;
    if (i < inputs && e->s->host_makes_buffers) image_protect(&e->operands[i]);
    if (i < inputs && e->q.packed[i].format != TM_FORMAT_NONE && !pack_input(e, i, t)) return false;
  }
  return make_workspace(e, t);
}

void errand_free(errand *e) {
  const uint32_t inputs = e->q.c.operation.input_count;
  if (e->kernel != NULL && !e->shares_kernel) SUBJECT_CALL(e->s, release)(e->s->device, e->kernel);
  e->kernel = NULL;
  for (uint32_t i = e->shares_inputs ? inputs : 0; i < CASE_MAX_OPERANDS; i++) release_image(e, &e->operands[i]);
  for (uint32_t i = 0; i < CASE_MAX_OPERANDS && !e->shares_inputs; i++) release_image(e, &e->packed[i]);
  if (!e->shares_inputs) release_image(e, &e->expected);
  release_image(e, &e->workspace);
}

static void begin_again(errand *e, const errand *of) {
  memset(e, 0, sizeof *e);
  e->s = of->s;
  question_copy(&of->q, &e->q);
  e->answer = of->answer;
  e->kernel = of->kernel;
  e->shares_kernel = true;
}

bool errand_again(errand *e, const errand *of, uint64_t seed, trial *t) {
  begin_again(e, of);
  return make_memory(e, seed, t);
}

bool errand_beside(errand *e, const errand *of, trial *t) {
  const uint32_t inputs = of->q.c.operation.input_count;
  begin_again(e, of);
  e->shares_inputs = true;
  memcpy(e->operands, of->operands, inputs * sizeof e->operands[0]);
  memcpy(e->packed, of->packed, sizeof e->packed);
  e->expected = of->expected;
  if (!image_for(&e->operands[inputs], e->s, &e->q.c.operands[inputs], true)) return trial_fail(t, "no memory");
  return make_buffer(e, &e->operands[inputs], t) && make_workspace(e, t);
}

/* Memory and a kernel for what was found; *out_is_stale if its epoch moved meanwhile. */
static bool equip(errand *e, uint64_t seed, trial *t, bool *out_is_stale) {
  subject *s = e->s;
  asked_operation asked;
  question_asked(&e->q, &asked);
  if (!make_memory(e, seed, t)) return false;
  const tm_status status = SUBJECT_CALL(s, prepare)(s->device, &asked.operation, &e->answer, &e->kernel);
  *out_is_stale = status == TM_STALE && subject_has_moved(s, &e->answer);
  return status == TM_OK || *out_is_stale || trial_fail(t, "prepare gave %d after query said yes (%s)", status, s->text);
}

/* `form`: of weights; NULL: the `which`-th plain one. */
static bool make(errand *e, subject *s, uint32_t which, const weights_form *form, uint64_t elements, uint64_t seed, trial *t) {
  for (uint32_t i = 0; i < EPOCHS; i++) {
    bool is_stale = false;
    question q;
    memset(e, 0, sizeof *e);
    e->s = s;
    if (!(form == NULL ? find(s, which, elements, seed, &q, &e->answer) : find_weights(s, *form, elements, seed, &q, &e->answer)))
      return false;
    question_copy(&q, &e->q);
    const bool made = equip(e, seed, t, &is_stale);
    if (!is_stale) return made;
    errand_free(e);
  }
  return trial_fail(t, "its epoch moved with each of %u prepares", EPOCHS);
}

bool errand_make_weights(errand *e, subject *s, weights_form form, uint64_t elements, uint64_t seed, trial *t) {
  return make(e, s, 0, &form, elements, seed, t);
}

bool errand_make(errand *e, subject *s, uint32_t which, uint64_t seed, trial *t) {
  return make(e, s, which, NULL, ELEMENTS, seed, t);
}

bool errand_make_large(errand *e, subject *s, uint32_t which, uint64_t elements, uint64_t seed, trial *t) {
  return make(e, s, which, NULL, elements, seed, t);
}

static tm_status launch(errand *e, uint32_t queue, const tm_ticket *waits, uint32_t wait_count, uint32_t tries, tm_ticket *out_ticket) {
  const uint32_t count = e->q.c.operation.input_count + 1;
  tm_binding bindings[CASE_MAX_OPERANDS + 1];
  for (uint32_t i = 0; i < count; i++)
    bindings[i] = image_binding(e->q.packed[i].format != TM_FORMAT_NONE ? &e->packed[i] : &e->operands[i]);
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

static image *output_of(errand *e) { return &e->operands[e->q.c.operation.input_count]; }

bool errand_reset(errand *e, trial *t) {
  image *output = output_of(e);
  subject_buffer_free(e->s, output->buffer, output->size);
  output->buffer = NULL;
  memset(output->bytes, CASE_GUARD, output->size);
  return subject_buffer(e->s, output->bytes, output->size, &output->buffer) == TM_OK || trial_fail(t, "no memory");
}

static tm_status move_output(errand *e, uint32_t queue, bool up) {
  image *output = output_of(e);
  tm_ticket ticket = { queue, 0, 0 };
  tm_transfer transfer = { .struct_size = sizeof transfer, .queue = queue, .host = output->bytes, .bytes = output->size };
  if (e->s->host_makes_buffers) return TM_OK;
  *(up ? &transfer.destination : &transfer.source) = output->buffer;
  return subject_transfer(e->s, up ? SUBJECT_CALL(e->s, upload) : SUBJECT_CALL(e->s, download), &transfer, &ticket);
}

bool errand_reset_on(errand *e, uint32_t queue, trial *t) {
  memset(output_of(e)->bytes, CASE_GUARD, output_of(e)->size);
  const tm_status status = move_output(e, queue, true);
  return status == TM_OK || trial_fail(t, "an upload on queue %u gave %d", queue, status);
}

bool errand_check_on(errand *e, uint32_t queue, trial *t) {
  const tm_status status = move_output(e, queue, false);
  return status == TM_OK ? errand_judge(e, t) : trial_fail(t, "a download on queue %u gave %d", queue, status);
}

bool errand_check(errand *e, trial *t) {
  const tm_status status = move_output(e, 0, false);
  return status == TM_OK ? errand_judge(e, t) : trial_fail(t, "download gave %d", status);
}

bool errand_is_untouched(errand *e) {
  const image *output = output_of(e);
  if (move_output(e, 0, false) != TM_OK) return false;
  for (uint64_t i = 0; i < output->size; i++)
    if (output->bytes[i] != CASE_GUARD) return false;
  return true;
}

bool errand_judge(const errand *e, trial *t) {
  const uint32_t inputs = e->q.c.operation.input_count;
  const image *output = &e->operands[inputs];
  void *pointers[CASE_MAX_OPERANDS];
  closeness near;
  oracle o = { NULL, NULL, 0 };
  if (memcmp(output->bytes + output->lowest, e->expected.bytes + e->expected.lowest, e->q.c.operands[inputs].byte_count) == 0) return true;
  for (uint32_t i = 0; i < inputs; i++) pointers[i] = e->operands[i].bytes + e->operands[i].first;
  pointers[inputs] = e->expected.bytes + e->expected.first;
  const bool has_oracle = e->answer.numerics == TM_NUMERICS_N2 && oracle_make(&o, &e->q.c, pointers);
  closeness_measure(&near, &e->q.c, &e->answer, output->bytes + output->first, pointers[inputs], has_oracle ? &o : NULL);
  oracle_free(&o);
  return near.is_close || trial_fail(t, "%s", near.text);
}
