/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/trial.h"

#include <fenv.h>
#include <float.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/float_mode.h"
#include "conformance/closeness.h"

#define GUARD_BYTES 192u
#define BASE_ALIGNMENT 4096u
#define WORKSPACE_ALIGNMENT 64u

bool trial_fail(trial *t, const char *format, ...) {
  if (t->failed) return false;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(t->text, sizeof t->text, format, arguments);
  va_end(arguments);
  t->failed = true;
  return false;
}

/* ---- images: an operand's bytes between guards ---- */

typedef struct image {
  unsigned char *bytes;
  uint64_t       size;
  uint64_t       lowest;        /* offset of the first byte that the operand touches */
  uint64_t       first;         /* offset of its first element */
  uint64_t       touched;       /* from lowest on; rounded up to whole stores for an output */
  tm_buffer     *buffer;
} image;

static uint64_t common_multiple(uint64_t a, uint64_t b) {
  uint64_t x = a, y = b;
  while (y != 0) {
    const uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  return a / x * b;
}

static uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

/* An odd multiple of a unit: aligned as declared, and no better where the granules allow it. */
static uint64_t odd_multiple(uint64_t least, uint64_t unit) {
  const uint64_t count = (least + unit - 1) / unit;
  return (count | 1) * unit;
}

static bool image_make(image *one, const subject *s, uint64_t below, uint64_t bytes, uint64_t alignment, bool is_written) {
  const uint64_t stores = is_written ? s->space.store_granule : 1;
  const uint64_t unit = common_multiple(common_multiple(s->space.offset_granule, stores), alignment);
  memset(one, 0, sizeof *one);
  one->first = odd_multiple(GUARD_BYTES + below, unit);
  one->lowest = one->first - below;
  one->touched = round_up(bytes, stores);
  one->size = round_up(one->lowest + one->touched + GUARD_BYTES, BASE_ALIGNMENT);
  one->bytes = aligned_alloc(BASE_ALIGNMENT, one->size);
  if (one->bytes == NULL) return false;
  memset(one->bytes, CASE_GUARD, one->size);
  return true;
}

static bool image_for(image *one, const subject *s, const tm_operand *operand, bool is_written) {
  return image_make(one, s, tm_operand_bytes_below(operand), operand->byte_count, operand->alignment, is_written);
}

static bool image_copy(image *to, const image *from) {
  *to = *from;
  to->buffer = NULL;
  to->bytes = aligned_alloc(BASE_ALIGNMENT, from->size);
  if (to->bytes != NULL) memcpy(to->bytes, from->bytes, from->size);
  return to->bytes != NULL;
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
  void           *pointers[CASE_MAX_OPERANDS];
  tm_kernel      *kernel;
} bench;

static void fill_indices(const bench *b, const image *one, uint64_t *state) {
  const kernel_case *c = &b->q->c;
  const uint64_t extent = c->operands[0].dims[c->attributes.axis.axis];
  const uint32_t bytes = tm_format_find(c->operands[1].format)->block_bytes;
  for (uint64_t at = 0; at + bytes <= c->operands[1].byte_count; at += bytes) {
    const int64_t index = (int64_t)random_below(state, extent + 3) - 1;
    memcpy(one->bytes + one->lowest + at, &index, bytes);
  }
}

static void fill_in_order(const case_buffer *view, const tm_operand *operand) {
  const uint64_t step = operand->byte_count / operand->element_count;
  for (uint64_t i = 0; i < operand->element_count; i++) memcpy(view->first + i * step, &i, step);
}

/* ---- sums that cancel ---- */

/* Makes the second half of an axis the first one again, negated if asked. */
static void mirror(const tm_operand *operand, uint32_t axis, uint32_t along, char *from, bool negate) {
  const tm_format_info *info = tm_format_find(operand->format);
  if (axis == operand->rank) {
    const tm_codec *codec = tm_codec_find(operand->format);
    const uint64_t half = (axis == along + 1 ? operand->dims[along] / info->block_elements : operand->dims[along]) / 2;
    char *to = from + (int64_t)half * operand->strides_bytes[along];
    double value[256];
    memmove(to, from, info->block_bytes);
    if (!negate || codec == NULL) return;
    codec->decode(from, info->block_elements, value);
    for (uint32_t i = 0; i < info->block_elements; i++) value[i] = -value[i];
    codec->encode(value, info->block_elements, to);
    return;
  }
  uint64_t steps = axis + 1 == operand->rank ? operand->dims[axis] / info->block_elements : operand->dims[axis];
  if (axis == along) steps /= 2;
  for (uint64_t i = 0; i < steps; i++) mirror(operand, axis + 1, along, from + (int64_t)i * operand->strides_bytes[axis], negate);
}

/* The axis that a sum of this operation runs along; UINT32_MAX if it has none. */
static uint32_t summed_axis(const kernel_case *c, uint32_t input) {
  const tm_operand *x = &c->operands[input];
  const uint32_t op = c->operation.op;
  if (op == TM_OP_MATMUL || op == TM_OP_MATMUL_SCALED) {
    const tm_matmul_attributes *attributes = c->operation.attributes;
    const bool k_is_last = input == 0 ? attributes->transpose_a == 0 : attributes->transpose_b != 0;
    return input > 1 ? UINT32_MAX : k_is_last ? x->rank - 1 : x->rank - 2;
  }
  if (op != TM_OP_SUM && op != TM_OP_MEAN) return UINT32_MAX;
  const uint32_t axes = c->attributes.reduce.axes;
  return axes == 0 ? UINT32_MAX : (uint32_t)__builtin_ctz(axes);
}

/* Each term meets its negative, so that what is left is rounding: the hardest data for a bound on sums. */
static void make_cancelling(const bench *b) {
  const kernel_case *c = &b->q->c;
  for (uint32_t i = 0; i < b->inputs; i++) {
    const uint32_t along = summed_axis(c, i);
    if (along < c->operands[i].rank && c->operands[i].element_count != 0)
      mirror(&c->operands[i], 0, along, (char *)b->operands[i].bytes + b->operands[i].first, i == 0);
  }
}

/* Equal values say little about a sum: there they are replaced by values that cancel. */
static bool is_cancelling(const bench *b) { return b->q->temper == TEMPER_CONSTANT && summed_axis(&b->q->c, 0) != UINT32_MAX; }

static temper temper_of(const bench *b) { return is_cancelling(b) ? TEMPER_PLAIN : b->q->temper; }

static bool make_inputs(bench *b, uint64_t *state) {
  const kernel_case *c = &b->q->c;
  for (uint32_t i = 0; i < b->inputs; i++) {
    image *one = &b->operands[i];
    if (!image_for(one, b->s, &c->operands[i], false)) return false;
    const case_buffer view = { one->bytes, one->size, one->bytes + one->first, one->bytes + one->lowest };
    buffer_fill(&view, &c->operands[i], temper_of(b), state);
    if (b->q->sweeps) fill_in_order(&view, &c->operands[i]);
    if (c->operation.op == TM_OP_GATHER && i == 1) fill_indices(b, one, state);
  }
  if (is_cancelling(b)) make_cancelling(b);
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

static bool prepare(bench *b) {
  const tm_status status = b->s->table.prepare(b->s->device, &b->q->c.operation, b->answer, &b->kernel);
  if (status == TM_OK) return true;
  return trial_fail(b->t, "prepare gave %d after query said yes (%s)", status, may_fail_with(status) ? "no resources" : b->s->text);
}

static bool upload(bench *b, image *one) {
  const tm_status status = subject_buffer(b->s, one->bytes, one->size, &one->buffer);
  return status == TM_OK || trial_fail(b->t, "a buffer of %llu bytes: status %d", (unsigned long long)one->size, status);
}

static tm_binding bind(const image *one) {
  return (tm_binding){ one->buffer, one->first, one->size - one->first - GUARD_BYTES };
}

static bool make_workspace(bench *b) {
  image *one = &b->workspace;
  if (b->answer->workspace_bytes == 0) return true;
  const uint64_t alignment = b->s->space.alignment > WORKSPACE_ALIGNMENT ? b->s->space.alignment : WORKSPACE_ALIGNMENT;
  if (!image_make(one, b->s, 0, b->answer->workspace_bytes, alignment, true)) return trial_fail(b->t, "no memory for the workspace");
  return upload(b, one);
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
  for (uint32_t i = 0; i < count; i++) bindings[i] = bind(&b->operands[i]);
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
  for (uint64_t i = 0; i < one->size; i++) {
    if (i >= one->lowest && i < one->lowest + one->touched) continue;
    if (one->bytes[i] != CASE_GUARD)
      return trial_fail(b->t, "wrote %lld bytes %s its %s", (long long)(i < one->lowest ? one->lowest - i : i - one->lowest - one->touched + 1),
                        i < one->lowest ? "before" : "behind", what);
  }
  return true;
}

/* Marks the bytes of elements; what lies between them belongs to somebody else. */
static void mark(const tm_operand *y, uint32_t axis, uint64_t offset, unsigned char *marks) {
  const tm_format_info *info = tm_format_find(y->format);
  if (axis == y->rank) {
    memset(marks + offset, 1, info->block_bytes);
    return;
  }
  const uint64_t steps = axis + 1 == y->rank ? y->dims[axis] / info->block_elements : y->dims[axis];
  for (uint64_t i = 0; i < steps; i++) mark(y, axis + 1, offset + (uint64_t)((int64_t)i * y->strides_bytes[axis]), marks);
}

static bool gaps_are_whole(bench *b, const image *output) {
  const tm_operand *y = &b->q->c.operands[b->inputs];
  if ((y->flags & TM_OPERAND_CONTIGUOUS) != 0 || b->s->space.store_granule > 1) return true;
  unsigned char *marks = calloc(1, output->size);
  if (marks == NULL) return trial_fail(b->t, "no memory");
  mark(y, 0, output->first, marks);
  bool whole = true;
  for (uint64_t i = output->lowest; i < output->lowest + output->touched && whole; i++) whole = marks[i] != 0 || output->bytes[i] == CASE_GUARD;
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
  *output = (image){ NULL, 0, 0, 0, 0, NULL };
  if (!launch_once(b)) return false;
  return memcmp(output->bytes + output->lowest, b->earlier.bytes + b->earlier.lowest, b->q->c.operands[b->inputs].byte_count) == 0 ||
         trial_fail(b->t, "a second run gave other bits, against its promise");
}

static bool run_and_judge(bench *b, uint64_t *state) {
  if (!make_inputs(b, state) || !make_expected(b)) return trial_fail(b->t, "no memory for the operands");
  for (uint32_t i = 0; i < b->inputs; i++)
    if (!upload(b, &b->operands[i])) return false;
  if (!make_workspace(b) || !prepare(b) || !launch_once(b)) return false;
  const image *output = &b->operands[b->inputs];
  return guards_are_whole(b, output, "output") && gaps_are_whole(b, output) && is_close_enough(b, output) &&
         inputs_are_unchanged(b) && workspace_is_kept(b) && repeats(b);
}

static void image_free(bench *b, image *one) {
  subject_buffer_free(b->s, one->buffer, one->size);
  free(one->bytes);
}

void trial_run(trial *t, subject *s, const question *q, const tm_answer *answer, uint64_t seed) {
  bench b = { .t = t, .s = s, .q = q, .answer = answer, .inputs = q->c.operation.input_count };
  uint64_t state = seed;
  const uint64_t used = atomic_load(&s->memory.used_bytes);
  (void)run_and_judge(&b, &state);
  if (b.kernel != NULL) s->table.release(s->device, b.kernel);
  for (uint32_t i = 0; i <= b.inputs; i++) image_free(&b, &b.operands[i]);
  for (uint32_t i = 0; i < b.inputs; i++) image_free(&b, &b.copies[i]);
  image_free(&b, &b.expected);
  image_free(&b, &b.earlier);
  image_free(&b, &b.workspace);
  if (atomic_load(&s->memory.used_bytes) > used) (void)trial_fail(t, "keeps %llu bytes of the host's memory after release",
                                                                  (unsigned long long)(atomic_load(&s->memory.used_bytes) - used));
}
