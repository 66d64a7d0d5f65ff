/* SPDX-License-Identifier: Apache-2.0 */
/* Ten thousand explanations and runs (fewer under a sanitizer) beside devices whose answers are random: never a crash, and never a wrong result. */
#define _GNU_SOURCE
#include <stdbool.h>

#include "base/text.h"

#include "sanitized.h"
#include "unit/plugin/plugin_case.h"

#define ROUNDS TM_WHOLE_OR_PART(50u, 15u)
#define CALLS 200u              /* a round: a fresh context with another seed */
#define LARGEST_EXTENT 40u
/* Without these bits no f32, f16 or bf16 is a NaN; which payload a sum of two keeps is nobody's promise. */
#define NAN_BITS UINT64_C(0x4000400040004000)

typedef struct fuzz_case {
  tm_context *fuzzed;
  tm_context *reference;
  uint64_t    state;
  uint32_t    fell_back;
  uint32_t    violations;
} fuzz_case;

static uint64_t next(fuzz_case *c) {
  uint64_t z = c->state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static uint32_t below(fuzz_case *c, uint32_t limit) { return (uint32_t)(next(c) % limit); }

typedef struct subject_row {
  uint32_t op;
  uint32_t inputs;
  uint32_t format;
  uint32_t attribute_bytes;
  uint64_t attributes;
} subject_row;

static const subject_row rows[] = {
  { TM_OP_NEG, 1, TM_FORMAT_F32, 0, 0 },   { TM_OP_ADD, 2, TM_FORMAT_F32, 0, 0 },  { TM_OP_COPY, 1, TM_FORMAT_F32, 0, 0 },
  { TM_OP_ADD, 2, TM_FORMAT_BF16, 0, 0 },  { TM_OP_SUM, 1, TM_FORMAT_F32, 8, 2 },  { TM_OP_MATMUL, 2, TM_FORMAT_F32, 8, UINT64_C(1) << 32 },
  { TM_OP_STATS, 1, TM_FORMAT_F16, 0, 0 }, { TM_OP_NEG, 1, TM_FORMAT_I8, 0, 0 },   { TM_OP_EXP, 1, TM_FORMAT_F32, 0, 0 },
};

/* An input with gaps between its rows as often as not, so that changes of layout are of use. */
static tm_tensor *make_input(tm_context *context, const subject_row *row, const uint64_t *dims, bool spread, const unsigned char *bytes,
                             uint64_t available) {
  tm_operand layout = { .format = row->format, .rank = 2, .dims = { dims[0], dims[1] } };
  const int64_t element = row->format == TM_FORMAT_F32 ? 4 : row->format == TM_FORMAT_I8 ? 1 : 2;
  layout.strides_bytes[1] = element;
  layout.strides_bytes[0] = element * (int64_t)dims[1] * (spread ? 2 : 1);
  tm_tensor *tensor = NULL;
  tm_error error = TM_ERROR_INIT;
  if (tm_tensor_wrap(context, &layout, (void *)(uintptr_t)bytes, available, &tensor, &error) != TM_OK) fail_msg("%s", error.text);
  return tensor;
}

/* Whatever a backend says, a terminal shows it and a parser of JSON reads it. */
static void expect_readable(const char *text) {
  const uint64_t length = strlen(text);
  assert_true(length < 1024);
  for (uint64_t i = 0, n; i < length; i += n) {
    n = tm_utf8_length(text + i, length - i);
    if (n == 0 || (unsigned char)text[i] < 0x20) fail_msg("'%s' has unreadable bytes", text);
  }
}

static void explain(tm_context *context, const subject_row *row, const tm_operand *layouts) {
  tm_explanation *explanation = NULL;
  tm_error error = TM_ERROR_INIT;
  const tm_operand wanted = { .format = TM_FORMAT_NONE };
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N2 };
  if (tm_explain(context, row->op, &row->attributes, row->attribute_bytes, layouts, row->inputs, &wanted, 1, &options, &explanation,
                 &error) != TM_OK)
    fail_msg("%s", error.text);
  tm_explanation_summary summary = { .struct_size = sizeof summary };
  tm_explanation_summarize(explanation, &summary);
  assert_int_not_equal(summary.chosen, TM_ANY_DEVICE);
  tm_candidate candidate = { .struct_size = sizeof candidate };
  uint64_t previous = 0;
  for (uint32_t i = 0; tm_explanation_candidate(explanation, i, &candidate) == TM_OK; i++) {
    expect_readable(candidate.reason);
    expect_readable(candidate.lowering);
    if (candidate.verdict > TM_VERDICT_SLOWER) continue;
    assert_true(candidate.price_ns >= previous);
    assert_true(candidate.level == TM_LEVEL_EMULATED || candidate.level == TM_LEVEL_NATIVE);
    assert_true(candidate.numerics <= TM_NUMERICS_N2);
    previous = candidate.price_ns;
  }
  tm_explanation_destroy(explanation);
}

static tm_tensor *run(tm_context *context, const subject_row *row, tm_tensor *const *inputs, tm_run_report *report) {
  tm_operand layouts[2], wanted = { .format = TM_FORMAT_NONE };
  tm_error error = TM_ERROR_INIT;
  tm_tensor *output = NULL;
  for (uint32_t i = 0; i < row->inputs; i++) layouts[i] = *tm_tensor_operand(inputs[i]);
  if (tm_op_infer(row->op, &row->attributes, row->attribute_bytes, layouts, row->inputs, &wanted, 1, &error) != TM_OK ||
      tm_tensor_create(context, wanted.format, wanted.rank, wanted.dims, &output, &error) != TM_OK)
    fail_msg("%s", error.text);
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N0, .report = report };
  if (tm_run(context, row->op, &row->attributes, row->attribute_bytes, inputs, row->inputs, &output, 1, &options, &error) != TM_OK)
    fail_msg("operation %u: %s", row->op, error.text);
  return output;
}

static void call_once(fuzz_case *c) {
  static unsigned char bytes[2][LARGEST_EXTENT * LARGEST_EXTENT * 2 * sizeof(float)];
  const subject_row *row = &rows[below(c, sizeof rows / sizeof rows[0])];
  const uint64_t square = 1 + below(c, LARGEST_EXTENT), other = row->op == TM_OP_MATMUL ? square : 1 + below(c, LARGEST_EXTENT);
  const uint64_t dims[2] = { square, other };
  tm_tensor *inputs[2] = { NULL, NULL }, *plain[2] = { NULL, NULL };
  tm_operand layouts[2];
  for (uint32_t i = 0; i < row->inputs; i++) {
    for (uint64_t b = 0; b < sizeof bytes[i]; b += 8) {
      const uint64_t word = next(c) & ~NAN_BITS;
      memcpy(&bytes[i][b], &word, sizeof word);
    }
    const bool spread = below(c, 2) != 0;
    inputs[i] = make_input(c->fuzzed, row, dims, spread, bytes[i], sizeof bytes[i]);
    plain[i] = make_input(c->reference, row, dims, spread, bytes[i], sizeof bytes[i]);
    layouts[i] = *tm_tensor_operand(inputs[i]);
  }
  if (below(c, 2) != 0) {
    explain(c->fuzzed, row, layouts);
  } else {
    tm_run_report report = { .struct_size = sizeof report };
    tm_tensor *got = run(c->fuzzed, row, inputs, &report), *expected = run(c->reference, row, plain, NULL);
    assert_memory_equal(tm_tensor_data(got), tm_tensor_data(expected), (size_t)tm_tensor_operand(expected)->byte_count);
    c->fell_back += report.fell_back;
    tm_tensor_destroy(got);
    tm_tensor_destroy(expected);
  }
  for (uint32_t i = 0; i < row->inputs; i++) {
    tm_tensor_destroy(inputs[i]);
    tm_tensor_destroy(plain[i]);
  }
}

static void count_violations(fuzz_case *c) {
  tm_device_description device = { .struct_size = sizeof device };
  for (uint32_t i = 0; tm_device_describe(c->fuzzed, i, &device) == TM_OK; i++) c->violations += (uint32_t)device.violation_count;
}

static void random_answers_do_no_harm(void **state) {
  (void)state;
  fuzz_case c = { .state = 20 };
  static const char *const only_reference[] = { "reference" };
  const tm_context_options plain = { .struct_size = sizeof plain, .devices = only_reference, .device_count = 1, .thread_count = 1 };
  c.reference = open_context(&plain);
  for (uint32_t round = 1; round <= ROUNDS; round++) {
    const char *paths[] = { ZOO_FOLDER "/fuzzed/fuzzed.so" };
    char seed[16];
    snprintf(seed, sizeof seed, "%u", round);
    const tm_setting setting = { "zoo_fuzzed", "seed", seed };
    tm_context_options options = options_with(paths, 1);
    options.thread_count = 1;
    options.max_memory_bytes = UINT64_C(1) << 28;       /* against workspaces of many terabytes */
    options.settings = &setting;
    options.setting_count = 1;
    c.fuzzed = open_context(&options);
    for (uint32_t i = 0; i < CALLS; i++) call_once(&c);
    count_violations(&c);
    tm_context_destroy(c.fuzzed);
  }
  tm_context_destroy(c.reference);
  printf("%u calls, %u fell back, %u broken promises counted\n", ROUNDS * CALLS, c.fell_back, c.violations);
  assert_true(c.fell_back > ROUNDS);
  assert_true(c.violations >= c.fell_back);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(random_answers_do_no_harm) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
