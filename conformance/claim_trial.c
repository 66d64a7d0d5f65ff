/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/claim_trial.h"

#include <fenv.h>
#include <float.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/float_mode.h"
#include "conformance/closeness.h"
#include "conformance/image.h"

#define WORKSPACE_ALIGNMENT 64u
#define LEAST_FAR_MEMORY (UINT64_C(64) << 20)
#define MOST_ALLOCATIONS 16u            /* of one prepare, that are made to fail one after the other */

bool trial_fail(trial *t, const char *format, ...) {
  if (t->failed) return false;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(t->text, sizeof t->text, format, arguments);
  va_end(arguments);
  t->failed = true;
  return false;
}

/* ---- the state of one trial ---- */

typedef struct bench {
  trial          *t;
  subject        *s;
  const question *q;
  const tm_answer *answer;
  uint32_t        inputs;
  image           operands[CASE_MAX_OPERANDS];
  image           copies[CASE_MAX_OPERANDS];    /* of the inputs */
  image           expected;
  image           earlier;                      /* the output of the first launch */
  image           workspace;
  image           packed[CASE_MAX_OPERANDS];    /* inputs in the device's own format */
  image           packed_copies[CASE_MAX_OPERANDS];
  asked_operation asked;
  void           *pointers[CASE_MAX_OPERANDS];
  tm_kernel      *kernel;
} bench;

static bool make_inputs(bench *b, uint64_t *state) {
  for (uint32_t i = 0; i < b->inputs; i++)
    if (!image_for(&b->operands[i], b->s, &b->q->c.operands[i], false)) return false;
  image_fill_inputs(b->operands, b->q, state);
  if (question_shares(b->q)) memcpy(b->operands[1].bytes, b->operands[0].bytes, b->operands[0].size);
  for (uint32_t i = 0; i < b->inputs; i++) {
    if (!image_copy(&b->copies[i], &b->operands[i])) return false;
    b->pointers[i] = b->copies[i].bytes + b->copies[i].first;
  }
  return true;
}

static bool make_expected(bench *b) {
  const kernel_case *c = &b->q->c;
  const tm_op_row *row = tm_op_find(c->operation.op);
  if (!image_for(&b->expected, b->s, &c->operands[b->inputs], true)) return false;
  b->pointers[b->inputs] = b->expected.bytes + b->expected.first;
  row->reference(&c->operation, b->pointers, 0, row->units(&c->operation));
  return true;
}

/* ---- launching ---- */

static bool may_fail_with(tm_status status) {
  return status == TM_ERROR_NO_MEMORY || status == TM_BUSY || status == TM_ERROR_DEVICE_LOST;
}

/* An answer holds until the epoch moves, which it may do at any time. */
static bool is_stale(trial *t, subject *s, const tm_answer *answer, tm_status status) {
  t->went_stale |= status == TM_STALE && subject_has_moved(s, answer);
  return t->went_stale;
}

static bool prepare(bench *b) {
  const tm_status status = SUBJECT_CALL(b->s, prepare)(b->s->device, &b->asked.operation, b->answer, &b->kernel);
  if (status == TM_OK) return true;
  if (is_stale(b->t, b->s, b->answer, status)) return false;
  return trial_fail(b->t, "prepare gave %d after query said yes (%s)", status, may_fail_with(status) ? "no resources" : b->s->text);
}

static bool upload(bench *b, image *one) {
  const tm_status status = subject_buffer(b->s, one->bytes, one->size, &one->buffer);
  return status == TM_OK || trial_fail(b->t, "a buffer of %llu bytes: status %d", (unsigned long long)one->size, status);
}

static bool make_workspace(bench *b, const tm_answer *answer, image *one) {
  if (answer->workspace_bytes == 0) return true;
  const uint64_t alignment = b->s->space.alignment > WORKSPACE_ALIGNMENT ? b->s->space.alignment : WORKSPACE_ALIGNMENT;
  if (!image_make(one, b->s, 0, answer->workspace_bytes, alignment, true)) return trial_fail(b->t, "no memory for the workspace");
  return upload(b, one);
}

static void image_free(bench *b, image *one) {
  subject_buffer_free(b->s, one->buffer, one->size);
  image_drop(one);
}

/* ---- packed inputs ---- */

static bool convert(bench *b, const asked_operation *packing, const tm_answer *answer, image *from, image *to) {
  tm_kernel *kernel = NULL;
  image workspace = { .bytes = NULL };
  tm_status status = SUBJECT_CALL(b->s, prepare)(b->s->device, &packing->operation, answer, &kernel);
  if (is_stale(b->t, b->s, answer, status)) return false;
  if (status != TM_OK) return trial_fail(b->t, "prepare of the conversion to its private format gave %d (%s)", status, b->s->text);
  bool good = make_workspace(b, answer, &workspace);
  const tm_binding bindings[] = { image_binding(from), image_binding(to),
                                  { workspace.buffer, workspace.first, answer->workspace_bytes } };
  if (good) {
    status = subject_launch(b->s, 0, kernel, bindings, answer->workspace_bytes != 0 ? 3 : 2);
    if (status == TM_OK) status = subject_collect(b->s, to->buffer, to->bytes, to->size);
    good = status == TM_OK || trial_fail(b->t, "the conversion to its private format gave %d (%s)", status, b->s->text);
  }
  SUBJECT_CALL(b->s, release)(b->s->device, kernel);
  image_free(b, &workspace);
  return good;
}

static bool pack_input(bench *b, uint32_t input) {
  asked_operation packing;
  image *to = &b->packed[input];
  question_packing(b->q, input, &packing);
  const tm_answer answer = subject_ask(b->s, &packing.operation);
  if (answer.level == TM_LEVEL_REFUSED) return trial_fail(b->t, "proposes a private format and refuses to convert to it");
  if (!image_make(to, b->s, 0, b->q->packed[input].bytes, WORKSPACE_ALIGNMENT, true)) return trial_fail(b->t, "no memory");
  if (!upload(b, to) || !convert(b, &packing, &answer, &b->operands[input], to)) return false;
  return image_copy(&b->packed_copies[input], to) || trial_fail(b->t, "no memory");
}

static bool pack_inputs(bench *b) {
  for (uint32_t i = 0; i < b->inputs; i++)
    if (b->q->packed[i].format != TM_FORMAT_NONE && !pack_input(b, i)) return false;
  return true;
}

/* Where the kernel finds operand i. */
static const image *operand_image(const bench *b, uint32_t i) {
  const uint32_t place = i == 1 && question_shares(b->q) ? 0 : i;
  return b->q->packed[place].format != TM_FORMAT_NONE ? &b->packed[place] : &b->operands[place];
}

/* Any queue will do; which one follows from the question. */
static uint32_t queue_for(const bench *b) {
  const uint32_t count = b->s->info.queue_count;
  return count == 0 ? 0 : (uint32_t)(b->q->c.operands[b->inputs].byte_count % count);
}

/* Rounds to nearest and keeps subnormal numbers. */
static bool float_mode_is_usual(void) {
  volatile float small = FLT_MIN;
  small /= 2;
  return fegetround() == FE_TONEAREST && small != 0;
}

/* The output begins as guard bytes, so that an element that is not written is seen. */
static bool launch_once(bench *b) {
  image *output = &b->operands[b->inputs];
  const uint32_t count = b->inputs + 1;
  tm_binding bindings[CASE_MAX_OPERANDS + 1];
  if (!image_for(output, b->s, &b->q->c.operands[b->inputs], true)) return trial_fail(b->t, "no memory for the output");
  if (!upload(b, output)) return false;
  for (uint32_t i = 0; i < count; i++) bindings[i] = image_binding(operand_image(b, i));
  bindings[count] = (tm_binding){ b->workspace.buffer, b->workspace.first, b->answer->workspace_bytes };
  const uint64_t allocations = atomic_load(&b->s->allocation_count);
  b->s->text[0] = '\0';
  tm_float_mode before;
  tm_float_mode_save(&before);
  tm_status status = subject_launch(b->s, queue_for(b), b->kernel, bindings,
                                    count + (b->answer->workspace_bytes != 0));
  const bool is_usual = float_mode_is_usual();
  tm_float_mode_restore(&before);
  if (!is_usual) return trial_fail(b->t, "the launch left another floating-point mode");
  if (status != TM_OK) return trial_fail(b->t, "launch gave %d after query said yes (%s)", status, b->s->text);
  if (b->s->host_makes_buffers && atomic_load(&b->s->allocation_count) != allocations)
    return trial_fail(b->t, "the launch allocated memory beyond the declared workspace");
  status = subject_collect(b->s, output->buffer, output->bytes, output->size);
  return status == TM_OK || trial_fail(b->t, "download gave %d", status);
}

/* ---- judging ---- */

static bool guards_are_whole(bench *b, const image *one, const char *what) {
  const uint64_t end = one->lowest + one->touched;
  if (end <= one->size && case_is_guard(one->bytes, one->lowest) && case_is_guard(one->bytes + end, one->size - end)) return true;
  for (uint64_t i = 0; i < one->size; i++) {
    if (i >= one->lowest && i < one->lowest + one->touched) continue;
    if (one->bytes[i] != CASE_GUARD)
      return trial_fail(b->t, "wrote %lld bytes %s its %s",
                        (long long)(i < one->lowest ? one->lowest - i : i - one->lowest - one->touched + 1),
                        i < one->lowest ? "before" : "behind", what);
  }
  return true;
}

static void mark_axis(const tm_operand *y, uint32_t axis, uint64_t offset, unsigned char *marks) {
  const tm_format_info *info = tm_format_find(y->format);
  if (axis == y->rank) {
    memset(marks + offset, 1, info->block_bytes);
    return;
  }
  const uint64_t steps = axis + 1 == y->rank ? y->dims[axis] / info->block_elements : y->dims[axis];
  for (uint64_t i = 0; i < steps; i++) mark_axis(y, axis + 1, offset + (uint64_t)((int64_t)i * y->strides_bytes[axis]), marks);
}

/* Marks the bytes of elements; what lies between them belongs to somebody else. */
static void mark(const tm_operand *y, uint64_t first, unsigned char *marks) {
  if ((y->flags & TM_OPERAND_CONTIGUOUS) != 0) memset(marks + first, 1, y->byte_count);
  else mark_axis(y, 0, first, marks);
}

static bool gaps_are_whole(bench *b, const image *output) {
  const tm_operand *y = &b->q->c.operands[b->inputs];
  if ((y->flags & TM_OPERAND_CONTIGUOUS) != 0 || b->s->space.store_granule > 1) return true;
  unsigned char *marks = calloc(1, output->size);
  if (marks == NULL) return trial_fail(b->t, "no memory");
  mark(y, output->first, marks);
  bool whole = true;
  for (uint64_t i = output->lowest; i < output->lowest + output->touched && whole; i++)
    whole = marks[i] != 0 || output->bytes[i] == CASE_GUARD;
  free(marks);
  return whole || trial_fail(b->t, "wrote between the elements of its output");
}

static bool inputs_are_unchanged(bench *b) {
  for (uint32_t i = 0; i < b->inputs; i++) {
    image *one = &b->operands[i];
    const tm_status status = subject_collect(b->s, one->buffer, one->bytes, one->size);
    if (status != TM_OK) return trial_fail(b->t, "download gave %d", status);
    if (memcmp(one->bytes, b->copies[i].bytes, one->size) != 0) return trial_fail(b->t, "wrote to input %u", i);
  }
  return true;
}

static bool packed_are_whole(bench *b) {
  for (uint32_t i = 0; i < b->inputs; i++) {
    image *one = &b->packed[i];
    if (one->bytes == NULL) continue;
    const tm_status status = subject_collect(b->s, one->buffer, one->bytes, one->size);
    if (status != TM_OK) return trial_fail(b->t, "download gave %d", status);
    if (!guards_are_whole(b, one, "private format's declared size")) return false;
    if (memcmp(one->bytes, b->packed_copies[i].bytes, one->size) != 0) return trial_fail(b->t, "wrote to packed input %u", i);
  }
  return true;
}

static bool workspace_is_kept(bench *b) {
  image *one = &b->workspace;
  if (one->bytes == NULL) return true;
  const tm_status status = subject_collect(b->s, one->buffer, one->bytes, one->size);
  return status == TM_OK ? guards_are_whole(b, one, "declared workspace") : trial_fail(b->t, "download gave %d", status);
}

static bool is_close_enough(bench *b, const image *output) {
  closeness near;
  oracle o = { NULL, NULL, 0 };
  const bool needs_oracle = b->answer->numerics == TM_NUMERICS_N2;
  const bool has_oracle = needs_oracle && oracle_make(&o, &b->q->c, b->pointers);
  closeness_measure(&near, &b->q->c, b->answer, output->bytes + output->first, b->expected.bytes + b->expected.first,
                    has_oracle ? &o : NULL);
  oracle_free(&o);
  if (near.worst > b->t->worst) b->t->worst = near.worst;
  return near.is_close || trial_fail(b->t, "%s", near.text);
}

static bool repeats(bench *b) {
  image *output = &b->operands[b->inputs];
  if ((b->answer->numerics_flags & TM_NUMERICS_RUN_TO_RUN) == 0) return true;
  b->earlier = *output;
  *output = (image){ .bytes = NULL };
  if (!launch_once(b)) return false;
  return memcmp(output->bytes + output->lowest, b->earlier.bytes + b->earlier.lowest, b->q->c.operands[b->inputs].byte_count) ==
             0 ||
         trial_fail(b->t, "a second run gave other bits, against its promise");
}

/* ---- outputs in the place of inputs ---- */

static bool lies_like(const tm_operand *a, const tm_operand *b) {
  const tm_format_info *x = tm_format_find(a->format), *y = tm_format_find(b->format);
  return x->block_bytes == y->block_bytes && x->block_elements == y->block_elements && a->rank == b->rank && a->byte_count != 0 &&
         a->alignment <= b->alignment && memcmp(a->dims, b->dims, sizeof a->dims) == 0 &&
         memcmp(a->strides_bytes, b->strides_bytes, sizeof a->strides_bytes) == 0;
}

/* Elements of two images of the output, of which each lies in a place of its own. */
static bool same_elements(const bench *b, const image *one, const image *other) {
  const tm_operand *y = &b->q->c.operands[b->inputs];
  unsigned char *marks = calloc(1, one->size);
  if (marks == NULL) return false;
  mark(y, one->first, marks);
  bool same = true;
  for (uint64_t i = one->lowest; i < one->lowest + y->byte_count && same; i++)
    same = marks[i] == 0 || one->bytes[i] == other->bytes[other->lowest + (i - one->lowest)];
  free(marks);
  return same;
}

static bool launch_over(bench *b, image *over, uint32_t input) {
  tm_binding bindings[CASE_MAX_OPERANDS + 1];
  for (uint32_t i = 0; i <= b->inputs; i++) bindings[i] = image_binding(i == input || i == b->inputs ? over : operand_image(b, i));
  bindings[b->inputs + 1] = (tm_binding){ b->workspace.buffer, b->workspace.first, b->answer->workspace_bytes };
  tm_status status = subject_launch(b->s, 0, b->kernel, bindings, b->inputs + 1 + (b->answer->workspace_bytes != 0));
  if (status == TM_OK) status = subject_collect(b->s, over->buffer, over->bytes, over->size);
  return status == TM_OK || trial_fail(b->t, "launch over input %u gave %d", input, status);
}

/* What a second run in the same place must give again, where the operation says so. */
static bool is_repeated(bench *b, image *over, uint32_t input) {
  image first;
  if (!tm_op_find(b->q->c.operation.op)->is_repeatable) return true;
  if (!image_copy(&first, over)) return trial_fail(b->t, "no memory");
  const bool good = launch_over(b, over, input) &&
                    (same_elements(b, over, &first) || trial_fail(b->t, "a second run over input %u changed its result", input));
  image_drop(&first);
  return good;
}

/* The output written over the input, as the answer allows; with the bits that it has in a place of its own. */
static bool works_over(bench *b, uint32_t input) {
  image over;
  const image *apart = &b->operands[b->inputs];
  const bool has_both = apart->bytes != NULL, keeps_bits = (b->answer->numerics_flags & TM_NUMERICS_RUN_TO_RUN) != 0;
  if (!image_copy(&over, &b->copies[input])) return trial_fail(b->t, "no memory");
  bool good = upload(b, &over) && launch_over(b, &over, input) && is_close_enough(b, &over);
  if (good && has_both && keeps_bits && !same_elements(b, &over, apart)) good = trial_fail(b->t, "other bits over input %u than apart", input);
  good = good && is_repeated(b, &over, input);
  image_free(b, &over);
  return good || trial_fail(b->t, "not over input %u, against its promise", input);
}

static bool keeps_alias_promises(bench *b) {
  const tm_operand *y = &b->q->c.operands[b->inputs];
  for (uint32_t i = 0; i < b->inputs && i < 8; i++) {
    if ((b->answer->alias_mask >> i & 1u) == 0 || !lies_like(y, &b->q->c.operands[i])) continue;
    if (b->q->packed[i].format != TM_FORMAT_NONE) continue;
    if (!works_over(b, i)) return false;
  }
  return true;
}

/* The answer is to an operation of which y lies in input 0: it is run so and not otherwise. */
static bool is_in_place(const bench *b) {
  return (b->q->c.operands[b->inputs].flags & TM_OPERAND_IN_PLACE) != 0 && (b->answer->alias_mask & 1u) != 0 && !question_is_packed(b->q);
}

static bool run_and_judge(bench *b, uint64_t *state) {
  if (!make_inputs(b, state) || !make_expected(b)) return trial_fail(b->t, "no memory for the operands");
  for (uint32_t i = 0; i < b->inputs; i++)
    if (!upload(b, &b->operands[i])) return false;
  for (uint32_t i = 0; i < b->inputs && b->s->host_makes_buffers; i++) image_protect(&b->operands[i]);
  if (!pack_inputs(b) || !make_workspace(b, b->answer, &b->workspace) || !prepare(b)) return false;
  if (is_in_place(b)) return works_over(b, 0) && inputs_are_unchanged(b) && workspace_is_kept(b);
  if (!launch_once(b)) return false;
  const image *output = &b->operands[b->inputs];
  return guards_are_whole(b, output, "output") && gaps_are_whole(b, output) && is_close_enough(b, output) &&
         inputs_are_unchanged(b) && packed_are_whole(b) && workspace_is_kept(b) && repeats(b) && keeps_alias_promises(b);
}

/* Memory may be kept for the next time; what the next time does not use again is lost. */
static void check_leak(trial *t, subject *s, const question *q, const tm_answer *answer) {
  tm_kernel *kernel = NULL;
  const uint64_t used = atomic_load(&s->memory.used_bytes);
  if (SUBJECT_CALL(s, prepare)(s->device, &q->c.operation, answer, &kernel) == TM_OK) SUBJECT_CALL(s, release)(s->device, kernel);
  const uint64_t then = atomic_load(&s->memory.used_bytes);
  if (then > used) trial_fail(t, "keeps %llu bytes more with each prepare and release", (unsigned long long)(then - used));
}

/* One in two lies far into its buffers: small offsets may be all that a device looks at. */
static uint32_t far_bytes(const subject *s, uint64_t seed) {
  static const uint32_t ways[] = { 0, 4096, 0, 65536 };
  const uint64_t largest = s->space.largest_buffer_bytes, total = s->space.total_bytes;
  const bool has_room = (largest == 0 || largest >= LEAST_FAR_MEMORY) && (total == 0 || total >= LEAST_FAR_MEMORY);
  return has_room ? ways[(seed >> 20) % (sizeof ways / sizeof ways[0])] : 0;
}

void trial_run(trial *t, subject *s, const question *q, const tm_answer *answer, uint64_t seed) {
  bench b = { .t = t, .s = s, .q = q, .answer = answer, .inputs = q->c.operation.input_count };
  uint64_t state = seed;
  question_asked(q, &b.asked);
  const uint64_t used = atomic_load(&s->memory.used_bytes);
  s->far_bytes = far_bytes(s, seed);
  (void)run_and_judge(&b, &state);
  s->far_bytes = 0;
  if (b.kernel != NULL) SUBJECT_CALL(s, release)(s->device, b.kernel);
  for (uint32_t i = 0; i <= b.inputs; i++) image_free(&b, &b.operands[i]);
  for (uint32_t i = 0; i < b.inputs; i++) {
    image_free(&b, &b.copies[i]);
    image_free(&b, &b.packed[i]);
    image_free(&b, &b.packed_copies[i]);
  }
  image_free(&b, &b.expected);
  image_free(&b, &b.earlier);
  image_free(&b, &b.workspace);
  if (!t->failed && !question_is_packed(q) && atomic_load(&s->memory.used_bytes) > used) check_leak(t, s, q, answer);
}

/* One prepare with so many allocations before the host has no more. */
static tm_status prepare_with(subject *s, const question *q, const tm_answer *answer, uint64_t allocations) {
  tm_kernel *kernel = NULL;
  atomic_store(&s->allocations_left, allocations);
  const tm_status status = SUBJECT_CALL(s, prepare)(s->device, &q->c.operation, answer, &kernel);
  atomic_store(&s->allocations_left, UINT64_MAX);
  if (status == TM_OK) SUBJECT_CALL(s, release)(s->device, kernel);
  return status;
}

void trial_run_out_of_memory(trial *t, subject *s, const question *q, const tm_answer *answer, uint64_t end_ns) {
  tm_status status = TM_ERROR_NO_MEMORY;
  for (uint64_t left = 0; left < MOST_ALLOCATIONS && status == TM_ERROR_NO_MEMORY && !t->failed; left++) {
    if (end_ns != 0 && tm_now_ns() >= end_ns) return;
    if (is_stale(t, s, answer, prepare_with(s, q, answer, left))) return;
    const uint64_t used = atomic_load(&s->memory.used_bytes);
    status = prepare_with(s, q, answer, left);
    if (is_stale(t, s, answer, status)) return;
    if (status != TM_OK && status != TM_ERROR_NO_MEMORY) trial_fail(t, "prepare gave %d when the host had no memory", status);
    if (status == TM_ERROR_NO_MEMORY && atomic_load(&s->memory.used_bytes) > used)
      trial_fail(t, "loses memory in a prepare that runs out of it");
  }
}
