/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/question.h"

#include <stdio.h>

#define ELEMENTS 6000u
#define ELEMENTS_ONE_PASS 100000u
#define DENSE_CONSTANT_FIRST 2u         /* this question */
#define SHARING 8u                      /* one of so many */

static uint64_t limit_of(const tm_op_row *row, uint32_t number) {
  return row->combine == TM_COMBINE_WORDS && number % 8 == 7 ? ELEMENTS_ONE_PASS : ELEMENTS;
}

/* ---- shapes that the rules do not make ---- */

static bool is_axis_operation(uint32_t op) {
  return op == TM_OP_GATHER || op == TM_OP_SOFTMAX || op == TM_OP_UPDATE;
}

static void shift_attributes(kernel_case *c, uint32_t added) {
  const uint32_t op = c->operation.op;
  if (is_axis_operation(op)) c->attributes.axis.axis += added;
  if (op >= TM_OP_SUM && op <= TM_OP_ARGMAX) c->attributes.reduce.axes <<= added;
  if (op != TM_OP_TRANSPOSE) return;
  uint8_t *order = c->attributes.transpose.permutation;
  for (uint32_t i = TM_MAX_RANK; i-- > added;) order[i] = i < c->operands[0].rank ? (uint8_t)(order[i - added] + added) : 0;
  for (uint32_t i = 0; i < added; i++) order[i] = (uint8_t)i;
}

static bool add_axes(tm_operand *operand, uint32_t added) {
  uint64_t dims[2 * TM_MAX_RANK];
  if (operand->rank + added > TM_MAX_RANK) return false;
  for (uint32_t i = 0; i < added + operand->rank; i++) dims[i] = i < added ? 1 : operand->dims[i - added];
  return tm_operand_contiguous(operand->format, operand->rank + added, dims, operand, NULL) == TM_OK;
}

/* Leading axes of extent 1, up to the largest rank, on all inputs that have the first one's. */
static bool widen(kernel_case *c, uint64_t *state) {
  const uint32_t rank = c->operands[0].rank;
  if (rank == 0 || rank == TM_MAX_RANK || c->operation.op == TM_OP_FILL) return true;
  const uint32_t added = random_below(state, 2) ? TM_MAX_RANK - rank : 1 + (uint32_t)random_below(state, TM_MAX_RANK - rank);
  for (uint32_t i = c->operation.input_count; i-- > 0;)
    if (c->operands[i].rank == rank && !add_axes(&c->operands[i], added)) return false;
  shift_attributes(c, added);
  return true;
}

/* An axis without extent, on all inputs that share it. */
static bool hollow(kernel_case *c, uint64_t *state) {
  const uint32_t rank = c->operands[0].rank;
  if (rank == 0) return true;
  const uint32_t axis = (uint32_t)random_below(state, rank);
  const uint64_t extent = c->operands[0].dims[axis];
  for (uint32_t i = 0; i < c->operation.input_count; i++) {
    tm_operand *operand = &c->operands[i];
    if (operand->rank != rank || operand->dims[axis] != extent) continue;
    operand->dims[axis] = 0;
    if (tm_operand_contiguous(operand->format, rank, operand->dims, operand, NULL) != TM_OK) return false;
  }
  return true;
}

/* Changes the shapes if the operation still accepts them; else leaves them. */
static void try_change(kernel_case *c, bool (*change)(kernel_case *, uint64_t *), uint64_t *state) {
  const kernel_case before = *c;
  tm_operand *y = &c->operands[c->operation.input_count];
  const uint32_t format = y->format;
  bool good = c->operation.op != TM_OP_FILL && change(c, state);
  if (good) {
    *y = (tm_operand){ .format = format };
    good = tm_op_infer_outputs(&c->operation, y, NULL) == TM_OK;
  }
  if (good) return;
  *c = before;
}

/* ---- layout and requirements ---- */

static uint32_t random_alignment(uint64_t *state) { return random_below(state, 2) ? 64 : 1u << random_below(state, 7); }

static void spread_some(kernel_case *c, uint64_t *state) {
  for (uint32_t i = 0; i <= c->operation.input_count; i++)
    if (random_below(state, 2)) case_spread(&c->operands[i], state);
}

static void demand_something(kernel_case *c, uint64_t *state) {
  c->operation.worst_numerics = random_below(state, 3) ? TM_NUMERICS_N4 : (uint32_t)random_below(state, 5);
  if (random_below(state, 4) == 0) c->operation.flags |= TM_OPERATION_RUN_TO_RUN;
}

/* About weights: all inputs but one keep their bytes. */
static void make_constant(kernel_case *c, uint32_t but) {
  for (uint32_t i = 0; i < c->operation.input_count; i++)
    if (i != but) c->operands[i].flags |= TM_OPERAND_CONSTANT;
}

/* Every other question is, and the first such two, which are dense and aligned, leave out the first input and the last. */
static void make_some_constant(kernel_case *c, uint32_t number) {
  const uint32_t inputs = c->operation.input_count;
  if (number == DENSE_CONSTANT_FIRST) make_constant(c, inputs - 1);
  else if (number % 2 == 1) make_constant(c, number / 2 % inputs);
}

/* Where y could lie in the first input's memory, some questions say that it will. */
static void mean_in_place(kernel_case *c) {
  const tm_operand *x = &c->operands[0];
  tm_operand *y = &c->operands[c->operation.input_count];
  const bool is_alike = x->format == y->format && memcmp(x->dims, y->dims, sizeof x->dims) == 0 &&
                        memcmp(x->strides_bytes, y->strides_bytes, sizeof x->strides_bytes) == 0 && y->byte_count != 0;
  if (!is_alike || (tm_op_find(c->operation.op)->may_alias & 1u) == 0 || (x->flags & TM_OPERAND_CONSTANT) != 0) return;
  y->flags |= TM_OPERAND_IN_PLACE;
  y->alignment = x->alignment;
}

/* One operand of at most 16 bits an element has few enough values to try them all. */
static bool sweep(question *q) {
  kernel_case *c = &q->c;
  const tm_format_info *info = tm_format_find(c->operands[0].format);
  if (tm_op_find(c->operation.op)->merged_operands != 0x3 || info->block_elements != 1 || info->block_bytes > 2) return true;
  const uint64_t count = UINT64_C(1) << (8 * info->block_bytes);
  const tm_operand wanted = { .format = c->operands[1].format };
  c->operands[1] = wanted;
  q->sweeps = tm_operand_contiguous(info->format, 1, &count, &c->operands[0], NULL) == TM_OK &&
              tm_op_infer_outputs(&c->operation, &c->operands[1], NULL) == TM_OK;
  for (int i = 0; i < 2; i++) c->operands[i].alignment = 64;
  return q->sweeps;
}

/* All operands have the same shape, element by element. */
static bool is_elementwise(const tm_op_row *row, uint32_t inputs) {
  const uint32_t all = (UINT32_C(2) << inputs) - 1;
  return !case_merges(row->op) && (row->broadcasts || (row->merged_operands & all) == all);
}

static bool have_specials(const kernel_case *c) {
  bool any = false;
  for (uint32_t i = 0; i < c->operation.input_count; i++) any |= has_specials(c->operands[i].format);
  return any;
}

static bool shape_crossed(kernel_case *c) {
  const uint32_t inputs = c->operation.input_count;
  const uint64_t count = inputs == 1 ? CASE_SPECIALS : CASE_SPECIALS * CASE_SPECIALS;
  tm_operand *y = &c->operands[inputs];
  for (uint32_t i = 0; i < inputs; i++)
    if (tm_operand_contiguous(c->operands[i].format, 1, &count, &c->operands[i], NULL) != TM_OK) return false;
  *y = (tm_operand){ .format = y->format };
  if (tm_op_infer_outputs(&c->operation, y, NULL) != TM_OK) return false;
  for (uint32_t i = 0; i <= inputs; i++) c->operands[i].alignment = 64;
  return true;
}

/* Special values meet each other in few random questions: here each meets each. */
static void cross(question *q) {
  kernel_case *c = &q->c;
  const kernel_case before = *c;
  if (!is_elementwise(tm_op_find(c->operation.op), c->operation.input_count) || !have_specials(c)) return;
  q->crosses = shape_crossed(c);
  if (!q->crosses) *c = before;
}

/* All values there are, or all special ones. */
static bool try_values(question *q) {
  if (!sweep(q)) return false;
  if (!q->sweeps) cross(q);
  return true;
}

static bool have_equal_dims(const tm_operand *a, const tm_operand *b) {
  return a->format == b->format && a->rank == b->rank && memcmp(a->dims, b->dims, sizeof a->dims) == 0;
}

static bool are_alike(const tm_operand *a, const tm_operand *b) {
  return have_equal_dims(a, b) && a->alignment == b->alignment &&
         memcmp(a->strides_bytes, b->strides_bytes, sizeof a->strides_bytes) == 0;
}

/* Where the second input has the dims of the first, its strides follow. */
static void share(question *q) {
  kernel_case *c = &q->c;
  tm_operand *a = &c->operands[0], *b = &c->operands[1];
  if (c->operation.input_count < 2 || !have_equal_dims(a, b) || case_is_index(c, 1) || case_merges(c->operation.op)) return;
  b->alignment = a->alignment;
  memcpy(b->strides_bytes, a->strides_bytes, sizeof b->strides_bytes);
  q->shares = tm_operand_derive(b, NULL) == TM_OK;
}

static bool begin(question *q, const combination *which, const case_plan *plan, uint64_t elements, uint64_t *state) {
  if (!case_make_planned(&q->c, which->row, which->inputs, which->formats, plan, elements, state)) return false;
  q->temper = TEMPER_PLAIN;
  q->sweeps = q->crosses = q->shares = false;
  memset(q->packed, 0, sizeof q->packed);
  for (uint32_t i = 0; i <= which->inputs; i++) q->c.operands[i].alignment = 64;
  return true;
}

static const case_plan no_plan = { .rank = 0 };

static void settle(kernel_case *c) { tm_op_normalize(&c->operation, c->operands); }

bool question_make(question *q, const combination *which, uint32_t number, uint64_t seed) {
  uint64_t state = seed;
  if (!begin(q, which, &no_plan, limit_of(which->row, number), &state)) return false;
  kernel_case *c = &q->c;
  const bool is_plain = number == DENSE_CONSTANT_FIRST && which->inputs > 1;
  if (number == 1 && !try_values(q)) return false;
  if (number > 1 && !is_plain) {
    q->temper = (temper)random_below(&state, TEMPER_COUNT);
    if (random_below(&state, 8) == 0) try_change(c, widen, &state);
    if (random_below(&state, 12) == 0) try_change(c, hollow, &state);
    if (random_below(&state, 3) == 0) spread_some(c, &state);
    for (uint32_t i = 0; i <= which->inputs; i++) c->operands[i].alignment = random_alignment(&state);
    if (number % 4 == 3) demand_something(c, &state);
  }
  if (which->inputs > 1) make_some_constant(c, number);
  if (number % SHARING == SHARING - 2) share(q);
  if (number % 3 == 2) mean_in_place(c);
  settle(c);
  return tm_op_check(&c->operation, NULL) == TM_OK;
}

bool question_make_plain(question *q, const combination *which, uint64_t elements, uint64_t seed) {
  uint64_t state = seed;
  if (!begin(q, which, &no_plan, elements, &state)) return false;
  settle(&q->c);
  return true;
}

bool question_make_planned(question *q, const combination *which, const case_plan *plan, uint64_t *state) {
  return begin(q, which, plan, 0, state);
}

void question_make_constant(question *q, uint32_t but) { make_constant(&q->c, but); }

bool question_settle(question *q) {
  settle(&q->c);
  return tm_op_check(&q->c.operation, NULL) == TM_OK;
}

/* ---- packed inputs ---- */

bool question_is_packed(const question *q) {
  for (uint32_t i = 0; i < q->c.operation.input_count; i++)
    if (q->packed[i].format != TM_FORMAT_NONE) return true;
  return false;
}

static void pack(const packed_input *packed, tm_operand *operand) {
  operand->format = packed->format;
  operand->byte_count = packed->bytes;
  memset(operand->strides_bytes, 0, sizeof operand->strides_bytes);
  operand->flags &= TM_OPERAND_CONSTANT | TM_OPERAND_SCALAR;
  operand->alignment = 64;
}

bool question_shares(const question *q) {
  return q->shares && are_alike(&q->c.operands[0], &q->c.operands[1]) && q->packed[0].format == q->packed[1].format;
}

void question_asked(const question *q, asked_operation *out_asked) {
  const uint32_t count = q->c.operation.input_count + 1;
  out_asked->operation = q->c.operation;
  memcpy(out_asked->operands, q->c.operands, sizeof out_asked->operands);
  out_asked->operation.operands = out_asked->operands;
  if (!question_is_packed(q)) return;
  for (uint32_t i = 0; i + 1 < count; i++)
    if (q->packed[i].format != TM_FORMAT_NONE) pack(&q->packed[i], &out_asked->operands[i]);
  out_asked->operation.flags &= ~(TM_OPERATION_ALL_CONTIGUOUS | TM_OPERATION_ALL_SAME_FORMAT);
}

void question_packing(const question *q, uint32_t input, asked_operation *out_asked) {
  const tm_op_row *row = tm_op_find(TM_OP_CONVERT);
  memset(out_asked, 0, sizeof *out_asked);
  out_asked->operands[0] = q->c.operands[input];
  out_asked->operands[1] = q->c.operands[input];
  pack(&q->packed[input], &out_asked->operands[1]);
  out_asked->operation = (tm_operation){
    .struct_size = sizeof out_asked->operation, .op = row->op, .version = row->version, .worst_numerics = TM_NUMERICS_N4,
    .flags = TM_OPERATION_ALL_SAME_SHAPE, .input_count = 1, .output_count = 1, .operands = out_asked->operands,
  };
}

void question_copy(const question *from, question *out_to) {
  *out_to = *from;
  out_to->c.operation.operands = out_to->c.operands;
  if (from->c.operation.attributes != NULL) out_to->c.operation.attributes = &out_to->c.attributes;
}

/* ---- in words ---- */

static const char *format_name(uint32_t format, char *text, uint64_t capacity) {
  const tm_format_info *info = tm_format_find(format);
  if (info != NULL) return info->name;
  snprintf(text, capacity, "0x%x", format);
  return text;
}

void question_describe(const question *q, char *text, uint64_t capacity) {
  const tm_operation *operation = &q->c.operation;
  uint64_t length = (uint64_t)snprintf(text, capacity, "%s", tm_op_find(operation->op)->name);
  for (uint32_t i = 0; i <= operation->input_count && length < capacity; i++) {
    const tm_operand *operand = &q->c.operands[i];
    char dims[120], number[16];
    tm_format_dims(operand, dims, sizeof dims);
    length += (uint64_t)snprintf(text + length, capacity - length, "%s %s%s%s%s/%u", i == operation->input_count ? " ->" : "",
                                 format_name(operand->format, number, sizeof number), dims,
                                 operand->flags & TM_OPERAND_CONTIGUOUS ? "" : "(view)",
                                 q->packed[i].format != TM_FORMAT_NONE ? "(packed)" : "", operand->alignment);
  }
  if (question_shares(q) && length < capacity) snprintf(text + length, capacity - length, " (the first two in one place)");
}

void combination_describe(const combination *which, char *text, uint64_t capacity) {
  uint64_t length = 0;
  char number[16];
  text[0] = '\0';
  for (uint32_t i = 0; i <= which->inputs && length < capacity; i++)
    length += (uint64_t)snprintf(text + length, capacity - length, "%s%s", i == 0 ? "" : ",",
                                 format_name(which->formats[i], number, sizeof number));
}
