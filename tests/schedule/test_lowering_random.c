/* SPDX-License-Identifier: Apache-2.0 */
/* Random rules, operations, shapes and layouts: what a picky device takes after changes is what the reference computes. */
#include "fakes/picky_case.h"

#ifdef __SANITIZE_THREAD__      /* each call on a watched thread: ten times as slow */
#define RULE_SETS 20
#else
#define RULE_SETS 250
#endif
#define CALLS 12
#define RANK 3

static uint64_t pick(uint64_t *state, uint64_t below) { return picky_random(state) % below; }

static picky_rule random_rule(uint64_t *state) {
  static const uint32_t kinds[] = { TM_CHANGE_CONTIGUOUS, TM_CHANGE_ALIGN, TM_CHANGE_PAD, TM_CHANGE_SPLIT_ABOVE, TM_CHANGE_REDUCE_RANK };
  picky_rule rule = { .kind = kinds[pick(state, 5)], .operand = (uint32_t)pick(state, 4), .axis_from_last = (uint32_t)pick(state, 3) };
  rule.value = rule.kind == TM_CHANGE_ALIGN ? UINT64_C(1) << pick(state, 13) : 1 + pick(state, 5);
  return rule;
}

/* A tensor of the dims, dense or a view with gaps, some axes walked backwards or repeated. */
static tm_tensor *random_tensor(picky_case *one, uint32_t format, uint32_t rank, const uint64_t *dims, uint64_t *state, tm_tensor **out_base) {
  uint64_t wide[RANK + 1];
  tm_operand layout = { .format = format, .rank = rank };
  *out_base = NULL;
  if (pick(state, 2) == 0) return picky_tensor(one, format, rank, dims, picky_random(state));
  for (uint32_t i = 0; i < rank; i++) wide[i] = dims[i] + 1 + pick(state, 2);
  *out_base = picky_tensor(one, format, rank, wide, picky_random(state));
  uint64_t offset = 0;
  for (uint32_t i = 0; i < rank; i++) {
    const int64_t stride = tm_tensor_operand(*out_base)->strides_bytes[i];
    const uint64_t way = pick(state, 4);
    layout.dims[i] = dims[i];
    layout.strides_bytes[i] = way == 0 ? -stride : way == 1 && i + 1 < rank ? 0 : stride;
    if (way == 0 && dims[i] != 0) offset += (dims[i] - 1) * (uint64_t)stride;
  }
  tm_tensor *view = NULL;
  if (tm_tensor_view(*out_base, &layout, offset, &view, &one->error) != TM_OK) fail_msg("%s", one->error.text);
  return view;
}

typedef struct random_call {
  picky_call call;
  tm_tensor *bases[4];
  uint64_t   attributes[8];
} random_call;

static void add_input(picky_case *one, random_call *r, uint32_t format, uint32_t rank, const uint64_t *dims, uint64_t *state) {
  const uint32_t index = r->call.input_count++;
  r->call.inputs[index] = random_tensor(one, format, rank, dims, state, &r->bases[index]);
}

static void set_attributes(random_call *r, const void *attributes, uint32_t bytes) {
  memcpy(r->attributes, attributes, bytes);
  r->call.attributes = r->attributes;
  r->call.attribute_bytes = bytes;
}

static void make_elementwise(picky_case *one, random_call *r, const uint64_t *dims, uint64_t *state) {
  static const uint32_t ops[] = { TM_OP_ADD, TM_OP_DIV, TM_OP_NEG, TM_OP_CLAMP, TM_OP_COMPARE };
  static const uint32_t inputs[] = { 2, 2, 1, 3, 2 };
  const uint64_t which = pick(state, 5);
  const tm_compare_attributes less = { TM_COMPARE_LESS, 0 };
  r->call.op = ops[which];
  if (r->call.op == TM_OP_COMPARE) set_attributes(r, &less, sizeof less);
  for (uint32_t i = 0; i < inputs[which]; i++) {
    uint64_t own[RANK];
    for (uint32_t axis = 0; axis < RANK; axis++) own[axis] = i != 0 && pick(state, 3) == 0 ? 1 : dims[axis];
    add_input(one, r, TM_FORMAT_F32, RANK, own, state);
  }
}

static void make_along_axis(picky_case *one, random_call *r, const uint64_t *dims, uint64_t *state) {
  static const uint32_t reductions[] = { TM_OP_SUM, TM_OP_MIN, TM_OP_MAX, TM_OP_MEAN };
  const tm_axis_attributes axis = { (uint32_t)pick(state, RANK), 0 };
  const tm_reduce_attributes reduce = { (uint32_t)pick(state, 8), (uint32_t)pick(state, 2) };
  const tm_reduce_attributes one_axis = { 1u << pick(state, RANK), (uint32_t)pick(state, 2) };
  const uint64_t which = pick(state, 4), count[] = { 1 + pick(state, 4), 2 };
  static const uint32_t ops[] = { TM_OP_SOFTMAX, TM_OP_GATHER, TM_OP_ARGMAX, 0 };
  r->call.op = which == 3 ? reductions[pick(state, 4)] : ops[which];
  if (which == 3) set_attributes(r, &reduce, sizeof reduce);
  else if (which == 2) set_attributes(r, &one_axis, sizeof one_axis);
  else set_attributes(r, &axis, sizeof axis);
  add_input(one, r, which != 0 && pick(state, 2) == 0 ? TM_FORMAT_I32 : TM_FORMAT_F32, RANK, dims, state);
  if (which == 1) add_input(one, r, TM_FORMAT_I64, 1 + (uint32_t)pick(state, 2), count, state);
}

static void make_product(picky_case *one, random_call *r, const uint64_t *dims, uint64_t *state) {
  const tm_matmul_attributes turned = { (uint32_t)pick(state, 2), (uint32_t)pick(state, 2) };
  const uint64_t m = 1 + pick(state, 6), k = dims[1], n = dims[2], batch = pick(state, 3) == 0 ? 1 : dims[0];
  const uint64_t a[] = { dims[0], turned.transpose_a ? k : m, turned.transpose_a ? m : k };
  const uint64_t b[] = { batch, turned.transpose_b ? n : k, turned.transpose_b ? k : n };
  const uint32_t format = pick(state, 2) == 0 ? TM_FORMAT_F32 : TM_FORMAT_I8, skipped = (uint32_t)pick(state, 2) & (batch == 1);
  r->call.op = TM_OP_MATMUL;
  set_attributes(r, &turned, sizeof turned);
  add_input(one, r, format, 3, a, state);
  add_input(one, r, format, 3 - skipped, b + skipped, state);
}

static void make_other(picky_case *one, random_call *r, const uint64_t *dims, uint64_t *state) {
  static const uint8_t turns[][3] = { { 0, 1, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 }, { 0, 2, 1 }, { 1, 0, 2 } };
  tm_transpose_attributes turn = { { 0 } };
  const tm_norm_attributes norm = { 1 };
  memcpy(turn.permutation, turns[pick(state, 6)], 3);
  r->call.op = pick(state, 2) == 0 ? TM_OP_TRANSPOSE : TM_OP_RMS_NORM;
  add_input(one, r, TM_FORMAT_F32, RANK, dims, state);
  if (r->call.op == TM_OP_TRANSPOSE) set_attributes(r, &turn, sizeof turn);
  else set_attributes(r, &norm, sizeof norm);
  if (r->call.op == TM_OP_RMS_NORM) add_input(one, r, TM_FORMAT_F32, 1, &dims[RANK - 1], state);
}

/* Settings are small numbers; of dare_sum thresholds and keys that keep about half. */
static void add_settings(picky_case *one, random_call *r, uint32_t format, uint64_t count, uint64_t *state) {
  const uint32_t index = r->call.input_count++;
  r->call.inputs[index] = picky_tensor(one, format, 1, &count, picky_random(state));
  uint64_t *words = tm_tensor_data(r->call.inputs[index]);
  for (uint64_t i = 0; i < count && format == TM_FORMAT_U64; i++) {
    const double weight = 0.5 + (double)pick(state, 4);
    memcpy(&words[i], &weight, sizeof weight);
    if (i == 0 || (i - 1) % TM_DARE_WORDS == TM_DARE_KEY) words[i] = pick(state, 1000);
    if (i > 0 && (i - 1) % TM_DARE_WORDS == TM_DARE_THRESHOLD) words[i] = UINT64_C(1) << 31;
  }
}

static void make_merge(picky_case *one, random_call *r, const uint64_t *dims, uint64_t *state) {
  static const uint32_t ops[] = { TM_OP_WEIGHTED_SUM, TM_OP_DARE_SUM, TM_OP_TIES_SUM };
  static const uint32_t formats[] = { TM_FORMAT_F32, TM_FORMAT_BF16, TM_FORMAT_F64 };
  const tm_ties_attributes ties = { (uint32_t)pick(state, 2), 0 };
  const uint64_t others = 1 + pick(state, 2);
  r->call.op = ops[pick(state, 3)];
  r->call.worst_numerics = TM_NUMERICS_N0;
  if (r->call.op == TM_OP_TIES_SUM) set_attributes(r, &ties, sizeof ties);
  add_input(one, r, formats[pick(state, 3)], RANK, dims, state);
  if (r->call.op == TM_OP_DARE_SUM) add_settings(one, r, TM_FORMAT_U64, 1 + TM_DARE_WORDS * others, state);
  else add_settings(one, r, TM_FORMAT_F64, r->call.op == TM_OP_TIES_SUM ? 1 + 2 * others : 1 + others, state);
  for (uint64_t i = 0; i < others; i++) add_input(one, r, formats[pick(state, 3)], RANK, dims, state);
}

/* 1: it ran on the picky one. */
static int compare_random(picky_case *one, uint64_t *state) {
  static void (*const makers[])(picky_case *, random_call *, const uint64_t *, uint64_t *) = {
    make_elementwise, make_along_axis, make_product, make_other, make_merge,
  };
  uint64_t dims[RANK];
  random_call r = { .call = { .worst_numerics = TM_NUMERICS_N2 } };
  for (uint32_t i = 0; i < RANK; i++) dims[i] = pick(state, 12) == 0 ? 0 : 1 + pick(state, 9);
  makers[pick(state, sizeof makers / sizeof makers[0])](one, &r, dims, state);
  tm_tensor *expected = picky_output(one, &r.call), *found = picky_output(one, &r.call);
  const uint64_t bytes = tm_tensor_operand(expected)->byte_count;
  if (picky_try(one, &r.call, one->reference + 1, expected) != TM_OK) fail_msg("%s", one->error.text);
  const tm_status status = picky_try(one, &r.call, one->device + 1, found);
  if (status != TM_OK && status != TM_ERROR_NO_DEVICE) fail_msg("%s", one->error.text);
  if (status != TM_OK && strstr(one->error.text, "last failure") != NULL) fail_msg("%s", one->error.text);
  if (status == TM_OK && memcmp(tm_tensor_data(found), tm_tensor_data(expected), (size_t)bytes) != 0)
    fail_msg("operation %u of %llu,%llu,%llu differs", r.call.op, (unsigned long long)dims[0], (unsigned long long)dims[1], (unsigned long long)dims[2]);
  tm_tensor_destroy(expected);
  tm_tensor_destroy(found);
  for (uint32_t i = 0; i < r.call.input_count; i++) {
    tm_tensor_destroy(r.call.inputs[i]);
    tm_tensor_destroy(r.bases[i]);
  }
  return status == TM_OK;
}

static void random_rules_change_no_result(void **state) {
  (void)state;
  int ran = 0;
  for (uint64_t seed = 1; seed <= RULE_SETS; seed++) {
    uint64_t random = seed * 7919;
    picky_case one = { .control = { .has_own_memory = (uint32_t)pick(&random, 2), .store_granule = UINT64_C(1) << pick(&random, 5) } };
    const uint64_t rules = 1 + pick(&random, 4);
    for (uint64_t i = 0; i < rules; i++) one.control.rules[i] = random_rule(&random);
    picky_case_open(&one);
    for (int call = 0; call < CALLS; call++) ran += compare_random(&one, &random);
    if (atomic_load(&one.control.complaints) != 0) fail_msg("seed %llu", (unsigned long long)seed);
    picky_case_close(&one);
  }
  print_message("%d of %d ran after changes or as they were\n", ran, RULE_SETS * CALLS);
  assert_true(ran > RULE_SETS * CALLS / 2);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(random_rules_change_no_result) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
