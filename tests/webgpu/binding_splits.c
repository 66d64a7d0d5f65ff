/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bindings of 1 MiB on a real device, tensors of several: every operation that the backend claims bit-equal to the reference
 * is so through the scheduler, which must split it, for f32, a 16-bit float and an integer.  With the argument "f32" it is that
 * format alone, but for TM_NIGHTLY=1.
 */
#include "conformance/kernel_cases.h"
#include "webgpu/webgpu_scheduled.h"

#define BINDING_BYTES "1048576"
#define LEAST_BYTES (UINT64_C(5) << 18)         /* of the largest operand */
#define MOST_BYTES (UINT64_C(12) << 20)
#define ELEMENTS 800000u
#define SHAPES 4000             /* to try, until one is large enough */
#define PROBES 6
#define LEAST_CASES 18          /* of each format, that the test is about anything */
#define MOST_UNIT_BYTES (UINT64_C(512) << 10)

static const uint32_t formats[] = { TM_FORMAT_F32, TM_FORMAT_BF16, TM_FORMAT_I32 };
#define FORMATS (sizeof formats / sizeof formats[0])

typedef struct tally {
  scheduled c;
  uint32_t  claimed;
  uint32_t  failed;
} tally;

/* ---- one case ---- */

static tm_tensor *make(scheduled *c, const tm_operand *operand, uint64_t *state) {
  tm_tensor *tensor = NULL;
  if (tm_tensor_create(c->context, operand->format, operand->rank, operand->dims, &tensor, &c->error) != TM_OK)
    fail_msg("%s", c->error.text);
  const uint32_t step = tm_format_find(operand->format)->block_bytes;
  unsigned char *bytes = tm_tensor_data(tensor);
  for (uint64_t at = 0; at + step <= tm_tensor_operand(tensor)->byte_count; at += step)
    random_block(operand->format, TEMPER_PLAIN, 1, state, bytes + at);
  return tensor;
}

typedef struct trial_run {
  tm_tensor *inputs[CASE_MAX_OPERANDS];
  tm_tensor *outputs[2];        /* the device's, the reference's */
} trial_run;

static void make_all(scheduled *c, const kernel_case *k, uint64_t seed, trial_run *out) {
  uint64_t state = seed;
  for (uint32_t i = 0; i < k->operation.input_count; i++) out->inputs[i] = make(c, &k->operands[i], &state);
  for (int i = 0; i < 2; i++) out->outputs[i] = make(c, &k->operands[k->operation.input_count], &state);
}

static void drop_all(const kernel_case *k, const trial_run *t) {
  for (uint32_t i = 0; i < k->operation.input_count; i++) tm_tensor_destroy(t->inputs[i]);
  for (int i = 0; i < 2; i++) tm_tensor_destroy(t->outputs[i]);
}

static tm_status run_on(scheduled *c, const kernel_case *k, uint32_t device, tm_tensor *const *inputs, tm_tensor *y) {
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N0, .device_plus_one = device + 1 };
  const void *attributes = k->operation.attribute_bytes == 0 ? NULL : &k->attributes;
  return tm_run(c->context, k->operation.op, attributes, k->operation.attribute_bytes, inputs, k->operation.input_count, &y, 1,
                &options, &c->error);
}

/* Which NaN an operation makes is nobody's promise. */
static bool are_equal(uint32_t format, const unsigned char *a, const unsigned char *b, uint64_t bytes) {
  const tm_format_info *info = tm_format_find(format);
  const bool is_float = info->kind == TM_KIND_FLOAT;
  for (uint64_t at = 0; at < bytes; at += info->block_bytes) {
    if (memcmp(a + at, b + at, info->block_bytes) == 0) continue;
    double values[2] = { 0, 0 };
    for (int i = 0; i < 2 && is_float; i++) tm_codec_find(format)->decode((i == 0 ? a : b) + at, 1, &values[i]);
    if (!isnan(values[0]) || !isnan(values[1])) return false;
  }
  return true;
}

/* Of the device alone. */
static tm_status outcome(scheduled *c, const kernel_case *k, uint64_t seed, bool *out_equal) {
  trial_run t;
  make_all(c, k, seed, &t);
  const tm_status status = run_on(c, k, c->device, t.inputs, t.outputs[0]);
  const tm_status there = status == TM_OK ? run_on(c, k, c->reference, t.inputs, t.outputs[1]) : TM_OK;
  if (there != TM_OK) fail_msg("the reference: %s", c->error.text);
  const uint64_t bytes = tm_tensor_operand(t.outputs[0])->byte_count;
  *out_equal = are_equal(tm_tensor_operand(t.outputs[0])->format, tm_tensor_data(t.outputs[0]), tm_tensor_data(t.outputs[1]), bytes);
  drop_all(k, &t);
  return status;
}

/* ---- one combination of formats ---- */

static uint64_t largest_operand(const kernel_case *k) {
  uint64_t largest = 0;
  for (uint32_t i = 0; i <= k->operation.input_count; i++)
    if (k->operands[i].byte_count > largest) largest = k->operands[i].byte_count;
  return largest;
}

/* One output of a reduction is one result in one order: it is split between outputs only, and figures anywhere. */
static bool can_be_split(const kernel_case *k) {
  const tm_operand *y = &k->operands[k->operation.input_count];
  if (tm_op_find(k->operation.op)->op_class != TM_CLASS_REDUCE) return true;
  return y->element_count != 0 && k->operands[0].byte_count / y->element_count <= MOST_UNIT_BYTES;
}

static bool make_large(kernel_case *k, const tm_op_row *row, uint32_t inputs, const uint32_t *which, uint64_t *state) {
  for (int i = 0; i < SHAPES; i++) {
    const bool is_made = case_make(k, row, inputs, which, ELEMENTS, state);
    if (is_made && largest_operand(k) >= LEAST_BYTES && largest_operand(k) <= MOST_BYTES && can_be_split(k)) return true;
  }
  return false;
}

/* Whether it takes a small one of them. */
static bool is_claimed(tally *all, const tm_op_row *row, uint32_t inputs, const uint32_t *which) {
  uint64_t state = 3;
  bool equal = false;
  for (int i = 0; i < PROBES; i++) {
    kernel_case k;
    if (!case_make(&k, row, inputs, which, 300, &state) || k.operands[inputs].element_count == 0) continue;
    if (outcome(&all->c, &k, state, &equal) == TM_OK) return true;
  }
  return false;
}

static void describe(const kernel_case *k, char *text, size_t capacity) {
  size_t length = (size_t)snprintf(text, capacity, "%s", tm_op_find(k->operation.op)->name);
  for (uint32_t i = 0; i <= k->operation.input_count && length < capacity; i++) {
    const tm_operand *operand = &k->operands[i];
    length += (size_t)snprintf(text + length, capacity - length, " %s[", tm_format_find(operand->format)->name);
    for (uint32_t axis = 0; axis < operand->rank && length < capacity; axis++)
      length += (size_t)snprintf(text + length, capacity - length, axis == 0 ? "%llu" : ",%llu", (unsigned long long)operand->dims[axis]);
    if (length < capacity) length += (size_t)snprintf(text + length, capacity - length, "]");
  }
}

static void try_combination(tally *all, const tm_op_row *row, uint32_t inputs, const uint32_t *which) {
  kernel_case k;
  uint64_t state = 11;
  char text[512];
  bool equal = false;
  if (!is_claimed(all, row, inputs, which)) return;
  all->claimed++;
  if (!make_large(&k, row, inputs, which, &state)) fail_msg("no large case of %s", row->name);
  const tm_status status = outcome(&all->c, &k, state, &equal);
  if (status == TM_OK && equal) return;
  describe(&k, text, sizeof text);
  print_message("%s: %s\n", text, status == TM_OK ? "other bits than the reference's" : all->c.error.text);
  all->failed++;
}

/* ---- all of them ---- */

/* Further inputs are of the first one's format, but for indices and weights; outputs are what the operation makes of them. */
static void try_formats(tally *all, const tm_op_row *row, uint32_t inputs, uint32_t format) {
  static const uint32_t outputs[] = { TM_FORMAT_NONE, TM_FORMAT_F32, TM_FORMAT_BF16, TM_FORMAT_I32 };
  const size_t count = row->op == TM_OP_CAST ? sizeof outputs / sizeof outputs[0] : 1;
  for (size_t y = 0; y < count; y++) {
    uint32_t which[CASE_MAX_OPERANDS + 1] = { format };
    kernel_case k;
    uint64_t state = 5;
    for (uint32_t i = 1; i < inputs; i++) which[i] = row->op == TM_OP_GATHER ? TM_FORMAT_I64 : format;
    if (row->op == TM_OP_WEIGHTED_SUM) which[1] = TM_FORMAT_F64;
    which[inputs] = outputs[y];
    if (case_make(&k, row, inputs, which, 300, &state)) try_combination(all, row, inputs, which);
  }
}

int main(int argument_count, char **arguments) {
  const bool is_short = argument_count > 1 && strcmp(arguments[1], "f32") == 0 && getenv("TM_NIGHTLY") == NULL;
  const uint32_t format_count = is_short ? 1 : FORMATS;
  tally all = { .claimed = 0 };
  if (!scheduled_open(&all.c, "max_binding_bytes", BINDING_BYTES, NULL)) return SCHEDULED_SKIPPED;
  for (uint32_t op = 1; op < 256; op++) {
    const tm_op_row *row = tm_op_find(op);
    if (row == NULL || row->reference == NULL) continue;
    for (uint32_t inputs = row->input_min; inputs <= case_most_inputs(row); inputs++)
      for (uint32_t i = 0; i < format_count; i++) try_formats(&all, row, inputs, formats[i]);
  }
  scheduled_describe(&all.c);
  printf("%u combinations, %u wrong, %llu broken promises\n", all.claimed, all.failed,
         (unsigned long long)all.c.description.violation_count);
  const bool good = all.failed == 0 && all.claimed >= LEAST_CASES * format_count && all.c.description.violation_count == 0;
  tm_context_destroy(all.c.context);
  return good ? 0 : 1;
}
