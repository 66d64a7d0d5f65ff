/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How good corrected cost estimates are: random operations of random sizes on one device, each run a few times in random
 * order so that something is learned, and then compared with what was expected of it.
 *   bench_estimates [--cases=N] [--seed=N] [--threads=N] [--device=N]
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "tensormorph/tensormorph.h"

#define MOST_CASES 4096u
#define LEARNING_RUNS 3u
#define JUDGED_RUNS 7u
#define FACTOR 2.0

typedef enum shape { ELEMENTS, ROWS, SQUARE } shape;

typedef struct kind {
  uint32_t op;
  shape    shape;
  uint32_t input_count;
  uint32_t formats[4];          /* of the inputs; TM_FORMAT_NONE ends them */
  uint32_t output_format;       /* TM_FORMAT_NONE: the operation's default */
  uint32_t attributes[2];
  uint32_t attribute_bytes;
} kind;

#define FLOATS { TM_FORMAT_F32, TM_FORMAT_F16, TM_FORMAT_BF16 }
static const kind kinds[] = {
  { TM_OP_ADD, ELEMENTS, 2, FLOATS, TM_FORMAT_NONE, { 0, 0 }, 0 },
  { TM_OP_MUL, ELEMENTS, 2, FLOATS, TM_FORMAT_NONE, { 0, 0 }, 0 },
  { TM_OP_RELU, ELEMENTS, 1, FLOATS, TM_FORMAT_NONE, { 0, 0 }, 0 },
  { TM_OP_EXP, ELEMENTS, 1, FLOATS, TM_FORMAT_NONE, { 0, 0 }, 0 },
  { TM_OP_TANH, ELEMENTS, 1, FLOATS, TM_FORMAT_NONE, { 0, 0 }, 0 },
  { TM_OP_GELU, ELEMENTS, 1, FLOATS, TM_FORMAT_NONE, { 0, 0 }, 8 },
  { TM_OP_COPY, ELEMENTS, 1, { TM_FORMAT_F32, TM_FORMAT_U8 }, TM_FORMAT_NONE, { 0, 0 }, 0 },
  { TM_OP_CAST, ELEMENTS, 1, { TM_FORMAT_F16, TM_FORMAT_BF16 }, TM_FORMAT_F32, { 0, 0 }, 8 },
  { TM_OP_CAST, ELEMENTS, 1, { TM_FORMAT_F32 }, TM_FORMAT_F16, { 0, 0 }, 8 },
  { TM_OP_STATS, ELEMENTS, 1, FLOATS, TM_FORMAT_NONE, { 0, 0 }, 0 },
  { TM_OP_SUM, ROWS, 1, FLOATS, TM_FORMAT_NONE, { 2, 0 }, 8 },
  { TM_OP_SOFTMAX, ROWS, 1, FLOATS, TM_FORMAT_NONE, { 1, 0 }, 8 },
  { TM_OP_DEQUANTIZE, ROWS, 1, { TM_FORMAT_Q8_0, TM_FORMAT_Q4_0 }, TM_FORMAT_F32, { 0, 0 }, 0 },
  { TM_OP_MATMUL, SQUARE, 2, { TM_FORMAT_F32 }, TM_FORMAT_NONE, { 0, 0 }, 8 },
};
#define KINDS (sizeof kinds / sizeof kinds[0])

typedef struct random_case {
  const kind *kind;
  uint32_t    format;
  uint32_t    padding;
  uint64_t    rows;
  uint64_t    columns;
  double      first_ratio;      /* expected / measured, before this very case was ever run */
  double      ratio;
} random_case;

typedef struct setting {
  tm_context *context;
  uint32_t    device;
  uint64_t    seed;
} setting;

static uint64_t draw(setting *s) {
  s->seed ^= s->seed << 13;
  s->seed ^= s->seed >> 7;
  s->seed ^= s->seed << 17;
  return s->seed * UINT64_C(2685821657736338717);
}

static uint64_t draw_size(setting *s, double least, double most) {
  const double unit = (double)(draw(s) >> 11) / 9007199254740992.0;
  return (uint64_t)(least * pow(most / least, unit));
}

static random_case draw_case(setting *s) {
  random_case one = { .kind = &kinds[draw(s) % KINDS] };
  uint32_t formats = 0;
  while (formats < 4 && one.kind->formats[formats] != TM_FORMAT_NONE) formats++;
  one.format = one.kind->formats[draw(s) % formats];
  if (one.kind->shape == ELEMENTS) {
    one.rows = 1;
    one.columns = draw_size(s, 64, 4 << 20);
  } else if (one.kind->shape == ROWS) {
    one.rows = draw_size(s, 1, 2048);
    one.columns = (draw_size(s, 32, 2048) + 31) / 32 * 32;
  } else {
    one.rows = one.columns = draw_size(s, 16, 384);
  }
  return one;
}

typedef struct operands {
  tm_tensor *inputs[2];
  tm_tensor *output;
} operands;

static tm_status make_operands(const setting *s, const random_case *one, operands *out) {
  memset(out, 0, sizeof *out);
  const uint64_t dims[2] = { one->rows, one->columns };
  tm_operand layouts[2], wanted = { .format = one->kind->output_format };
  tm_status status = TM_OK;
  for (uint32_t i = 0; i < one->kind->input_count && status == TM_OK; i++) {
    status = tm_tensor_create(s->context, one->format, 2, dims, &out->inputs[i], NULL);
    if (status == TM_OK) layouts[i] = *tm_tensor_operand(out->inputs[i]);
  }
  if (status == TM_OK)
    status = tm_op_infer(one->kind->op, one->kind->attributes, one->kind->attribute_bytes, layouts, one->kind->input_count, &wanted, 1, NULL);
  if (status == TM_OK) status = tm_tensor_create(s->context, wanted.format, wanted.rank, wanted.dims, &out->output, NULL);
  return status;
}

static void free_operands(operands *all) {
  tm_tensor_destroy(all->output);
  tm_tensor_destroy(all->inputs[1]);
  tm_tensor_destroy(all->inputs[0]);
}

static tm_status run(const setting *s, const random_case *one, const operands *all, tm_run_report *report) {
  *report = (tm_run_report){ .struct_size = sizeof *report };
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N2, .device_plus_one = s->device + 1,
                                   .report = report };
  return tm_run(s->context, one->kind->op, one->kind->attributes, one->kind->attribute_bytes, all->inputs, one->kind->input_count,
                &all->output, 1, &options, NULL);
}

/* Runs the case `count` times; the ratio is what was expected of the first over the median of what they took. */
static tm_status run_case(const setting *s, const random_case *one, uint32_t count, double *out_ratio) {
  operands all;
  double taken[JUDGED_RUNS];
  double expected = 0;
  tm_status status = make_operands(s, one, &all);
  for (uint32_t i = 0; i < count && status == TM_OK; i++) {
    tm_run_report report;
    status = run(s, one, &all, &report);
    if (i == 0) expected = (double)report.expected_ns;
    taken[i] = (double)report.measured_ns;
  }
  free_operands(&all);
  if (status == TM_OK) *out_ratio = expected / bench_median(taken, count);
  return status;
}

static void shuffle(setting *s, random_case *cases, uint32_t count) {
  for (uint32_t i = count; i > 1; i--) {
    const uint32_t other = (uint32_t)(draw(s) % i);
    const random_case kept = cases[i - 1];
    cases[i - 1] = cases[other];
    cases[other] = kept;
  }
}

static bool is_close(double ratio) { return ratio <= FACTOR && ratio >= 1 / FACTOR; }

static void print_kind(const kind *one, const random_case *cases, uint32_t count) {
  uint32_t found = 0, close = 0, first = 0;
  double worst = 1;
  for (uint32_t i = 0; i < count; i++) {
    if (cases[i].kind != one) continue;
    found++;
    close += is_close(cases[i].ratio);
    first += is_close(cases[i].first_ratio);
    const double off = cases[i].ratio < 1 ? 1 / cases[i].ratio : cases[i].ratio;
    if (off > worst) worst = off;
  }
  tm_op_description op = { .struct_size = sizeof op };
  for (uint32_t i = 0; tm_op_describe(i, &op) == TM_OK && op.op != one->op; i++) {
  }
  if (found != 0)
    printf("  %-14s %4u cases   %5.1f %% when first seen   %5.1f %% when known   worst x%.1f\n", op.name, found, 100.0 * first / found,
           100.0 * close / found, worst);
}

static void print_result(const random_case *cases, uint32_t count) {
  uint32_t close = 0, first = 0;
  for (uint32_t i = 0; i < count; i++) {
    close += is_close(cases[i].ratio);
    first += is_close(cases[i].first_ratio);
  }
  for (size_t i = 0; i < KINDS; i++) print_kind(&kinds[i], cases, count);
  printf("within x%.0f: %.1f %% when first seen, %.1f %% when known   goal: 90 %%\n", FACTOR, 100.0 * first / count, 100.0 * close / count);
}

/* Cases that the device refuses are drawn again. */
static uint32_t learn_cases(setting *s, random_case *cases, uint32_t count) {
  uint32_t made = 0;
  for (uint32_t tries = 0; made < count && tries < 4 * count; tries++) {
    random_case one = draw_case(s);
    if (run_case(s, &one, LEARNING_RUNS, &one.first_ratio) == TM_OK) cases[made++] = one;
  }
  return made;
}

int main(int argc, char **argv) {
  static random_case cases[MOST_CASES];
  setting s = { .device = (uint32_t)bench_option(argc, argv, "device", 0), .seed = bench_option(argc, argv, "seed", 20240229) };
  const uint64_t asked = bench_option(argc, argv, "cases", 600);
  const uint32_t count = asked < MOST_CASES ? (uint32_t)asked : MOST_CASES;
  const tm_context_options options = { .struct_size = sizeof options, .thread_count = (uint32_t)bench_option(argc, argv, "threads", 0) };
  if (tm_context_create(&options, &s.context, NULL) != TM_OK) return 1;
  tm_device_description device = { .struct_size = sizeof device };
  if (tm_device_describe(s.context, s.device, &device) != TM_OK) return 1;
  printf("%u cases on %s, seed %llu\n", count, device.name, (unsigned long long)s.seed);
  const uint32_t made = learn_cases(&s, cases, count);
  shuffle(&s, cases, made);
  for (uint32_t i = 0; i < made; i++)
    if (run_case(&s, &cases[i], JUDGED_RUNS, &cases[i].ratio) != TM_OK) cases[i].ratio = 0;
  if (made != 0) print_result(cases, made);
  tm_context_destroy(s.context);
  return 0;
}
