/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_dequantize [--megabytes=512] [--rounds=9]: conversions to f32 of an output of that size, against what memory
 * allows: in the same round, reading the input's bytes and filling the output's without any arithmetic.  Prints medians.
 */
#include "bench.h"

#include "tensor/format.h"
#include "tensor/shape.h"

typedef struct bench_case {
  const char *name;
  uint32_t    op;
  uint32_t    format;
} bench_case;

static const bench_case cases[] = {
  { "dequantize q8_0", TM_OP_DEQUANTIZE, TM_FORMAT_Q8_0 }, { "dequantize q4_0", TM_OP_DEQUANTIZE, TM_FORMAT_Q4_0 },
  { "cast bf16", TM_OP_CAST, TM_FORMAT_BF16 },             { "cast f16", TM_OP_CAST, TM_FORMAT_F16 },
  { "cast f8_e4m3fn", TM_OP_CAST, TM_FORMAT_F8_E4M3FN },   { "cast f8_e5m2", TM_OP_CAST, TM_FORMAT_F8_E5M2 },
};

/* Small numbers in every format here, and scales that are finite. */
static void fill(unsigned char *data, uint64_t bytes) {
  uint64_t state = UINT64_C(0x1234567887654321);
  for (uint64_t i = 0; i < bytes; ++i) {
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    data[i] = (unsigned char)(0x20 | (state >> 40 & 0x8f));
  }
}

static void measure(kernel_host *host, const bench_case *c, unsigned char *from, unsigned char *to, uint64_t elements, uint32_t rounds) {
  tm_operand operands[2];
  const tm_cast_attributes attributes = { 0, 0 };
  tm_operand_contiguous(c->format, 1, &elements, &operands[0], NULL);
  tm_operand_contiguous(TM_FORMAT_F32, 1, &elements, &operands[1], NULL);
  const int is_cast = c->op == TM_OP_CAST;
  const tm_operation operation = {
    .struct_size = sizeof operation, .op = c->op, .version = 1, .input_count = 1, .output_count = 1, .operands = operands,
    .attribute_bytes = is_cast ? sizeof attributes : 0, .attributes = is_cast ? &attributes : NULL,
  };
  kernel_run run;
  if (kernel_run_prepare(&run, host, &operation) != TM_OK) {
    printf("%-18s no kernel here\n", c->name);
    return;
  }
  const double bytes = (double)operands[0].byte_count + (double)operands[1].byte_count;
  double bound[BENCH_MAX_ROUNDS], kernel[BENCH_MAX_ROUNDS], ratios[BENCH_MAX_ROUNDS];
  uint64_t sink = 0;
  for (uint32_t r = 0; r < rounds; ++r) {
    const uint64_t start = tm_now_ns();
    sink += bench_read_and_fill(host, from, operands[0].byte_count, to, operands[1].byte_count);
    const uint64_t middle = tm_now_ns();
    kernel_run_launch(&run, (void *[]){ from, to });
    const uint64_t end = tm_now_ns();
    bound[r] = bytes / (double)(middle - start);
    kernel[r] = bytes / (double)(end - middle);
    ratios[r] = kernel[r] / bound[r];
  }
  kernel_run_release(&run);
  printf("%-18s %u threads  read + fill %5.1f GB/s  kernel %5.1f GB/s  %5.1f %%%s\n", c->name, host->services.lane_count,
         bench_median(bound, rounds), bench_median(kernel, rounds), 100 * bench_median(ratios, rounds), sink == 1 ? " " : "");
}

int main(int argc, char **argv) {
  const uint64_t output_bytes = bench_option(argc, argv, "megabytes", 512) << 20;
  const uint32_t rounds = (uint32_t)bench_option(argc, argv, "rounds", 9);
  const uint64_t elements = output_bytes / 4 / 32 * 32;
  const tm_plugin_query_fn query = bench_builtin("cpu");
  unsigned char *from = malloc(elements * 2), *to = malloc(output_bytes);
  if (query == NULL || from == NULL || to == NULL || rounds > BENCH_MAX_ROUNDS) return 1;
  fill(from, elements * 2);
  memset(to, 0, output_bytes);
  printf("to f32, %llu MiB of output, median of %u rounds in turns with only reading the input and filling the output\n",
         (unsigned long long)(output_bytes >> 20), rounds);
  kernel_host hosts[2];
  for (uint32_t h = 0; h < 2; ++h) kernel_host_open(&hosts[h], query, "auto", 0, h + 1);
  for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    for (uint32_t h = 0; h < 2; ++h) measure(&hosts[h], &cases[i], from, to, elements, rounds);
  }
  for (uint32_t h = 0; h < 2; ++h) kernel_host_close(&hosts[h]);
  free(from);
  free(to);
  return 0;
}
