/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_stats [--megabytes=1024] [--rounds=9]: the statistics kernels against a plain read-sum of the same bytes, in turns
 * in one process, with 1 and 2 threads.  Prints medians: GB/s of both, and the median of the ratios round by round.
 */
#include <math.h>

#include "bench.h"

#include "tensor/format.h"
#include "tensor/shape.h"

typedef enum content { NORMAL, A_ZERO_A_BLOCK, HALF_ZEROS, SUBNORMAL, A_NAN_A_BLOCK, RANDOM_BITS } content;

typedef struct bench_case {
  const char *name;
  uint32_t    format;
  content     content;
} bench_case;

static const bench_case cases[] = {
  { "f32", TM_FORMAT_F32, NORMAL },
  { "bf16", TM_FORMAT_BF16, NORMAL },
  { "f16", TM_FORMAT_F16, NORMAL },
  { "f64", TM_FORMAT_F64, NORMAL },
  { "f8_e4m3fn", TM_FORMAT_F8_E4M3FN, RANDOM_BITS },
  { "f8_e5m2", TM_FORMAT_F8_E5M2, NORMAL },
  { "i8", TM_FORMAT_I8, RANDOM_BITS },
  { "q8_0", TM_FORMAT_Q8_0, NORMAL },
  { "q4_0", TM_FORMAT_Q4_0, NORMAL },
  { "f32, a zero in every block", TM_FORMAT_F32, A_ZERO_A_BLOCK },
  { "f32, half zeros", TM_FORMAT_F32, HALF_ZEROS },
  { "f32, all subnormal", TM_FORMAT_F32, SUBNORMAL },
  { "f32, a NaN in every block", TM_FORMAT_F32, A_NAN_A_BLOCK },
  { "f32, random bits", TM_FORMAT_F32, RANDOM_BITS },
  { "bf16, a zero in every block", TM_FORMAT_BF16, A_ZERO_A_BLOCK },
  { "bf16, half zeros", TM_FORMAT_BF16, HALF_ZEROS },
  { "bf16, all subnormal", TM_FORMAT_BF16, SUBNORMAL },
  { "bf16, a NaN in every block", TM_FORMAT_BF16, A_NAN_A_BLOCK },
  { "bf16, random bits", TM_FORMAT_BF16, RANDOM_BITS },
};

static uint64_t next_random(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  return *state ^= *state << 17;
}

/* An exponent of ordinary weights and a random fraction, in the upper 16 bits of the format; enough for the kernels. */
static uint16_t upper_half(const bench_case *c, uint64_t index, uint64_t random) {
  const uint16_t bits = (uint16_t)random;
  const int f16 = c->format == TM_FORMAT_F16;
  if (c->content == RANDOM_BITS) return bits;
  if (c->content == HALF_ZEROS && random >> 40 & 1) return 0;
  if (c->content == A_ZERO_A_BLOCK && index % 512 == 77) return 0;
  if (c->content == A_NAN_A_BLOCK && index % 512 == 77) return 0x7fc0;
  if (c->content == SUBNORMAL) return (uint16_t)((bits & 0x807f) | 1);
  return f16 ? (uint16_t)((bits & 0x87ff) | 0x2000) : (uint16_t)((bits & 0x81ff) | 0x3c00);
}

static void fill(const bench_case *c, unsigned char *data, uint64_t bytes) {
  const tm_format_info *info = tm_format_find(c->format);
  uint64_t state = UINT64_C(0x1234567887654321);
  if (info->kind == TM_KIND_BLOCK || info->block_bytes == 1) {
    for (uint64_t i = 0; i + 8 <= bytes; i += 8) {
      const uint64_t random = next_random(&state);
      memcpy(data + i, &random, 8);
    }
    for (uint64_t i = 0; info->kind == TM_KIND_BLOCK && i + 2 <= bytes; i += info->block_bytes) data[i + 1] = (unsigned char)(0x10 | (data[i + 1] & 0x83));
    for (uint64_t i = 0; c->format == TM_FORMAT_F8_E5M2 && i < bytes; ++i) data[i] = (unsigned char)((data[i] & 0x8f) | 0x20);
    return;
  }
  for (uint64_t i = 0; i * info->block_bytes + info->block_bytes <= bytes; ++i) {
    const uint64_t random = next_random(&state);
    uint64_t element = random;
    const uint16_t upper = upper_half(c, i, random >> 20);
    unsigned char *at = data + i * info->block_bytes;
    if (c->content == NORMAL || upper != 0) memcpy(at, &element, info->block_bytes);
    else memset(at, 0, info->block_bytes);
    memcpy(at + info->block_bytes - 2, &upper, 2);
  }
}

static void measure(kernel_host *host, const bench_case *c, void *data, uint64_t bytes, uint32_t rounds) {
  const tm_format_info *info = tm_format_find(c->format);
  const uint64_t elements = bytes / info->block_bytes * info->block_elements, words = TM_STATS_WORDS;
  uint64_t result[TM_STATS_WORDS], sink = 0;
  tm_operand operands[2];
  tm_operand_contiguous(c->format, 1, &elements, &operands[0], NULL);
  tm_operand_contiguous(TM_FORMAT_U64, 1, &words, &operands[1], NULL);
  const tm_operation operation = { .struct_size = sizeof operation, .op = TM_OP_STATS, .version = 1, .input_count = 1, .output_count = 1,
                                   .operands = operands };
  kernel_run run;
  if (kernel_run_prepare(&run, host, &operation) != TM_OK) {
    printf("%-30s no kernel here\n", c->name);
    return;
  }
  double read_gbs[BENCH_MAX_ROUNDS], stats_gbs[BENCH_MAX_ROUNDS], ratios[BENCH_MAX_ROUNDS];
  for (uint32_t r = 0; r < rounds; ++r) {
    const uint64_t start = tm_now_ns();
    sink += bench_read_sum(host, data, bytes);
    const uint64_t middle = tm_now_ns();
    kernel_run_launch(&run, (void *[]){ data, result });
    const uint64_t end = tm_now_ns();
    read_gbs[r] = (double)bytes / (double)(middle - start);
    stats_gbs[r] = (double)bytes / (double)(end - middle);
    ratios[r] = stats_gbs[r] / read_gbs[r];
  }
  kernel_run_release(&run);
  printf("%-30s %u threads  read %5.1f GB/s  stats %5.1f GB/s  %5.1f %% of read%s\n", c->name, host->services.lane_count,
         bench_median(read_gbs, rounds), bench_median(stats_gbs, rounds), 100 * bench_median(ratios, rounds), sink == 1 ? " " : "");
}

int main(int argc, char **argv) {
  const uint64_t bytes = bench_option(argc, argv, "megabytes", 1024) << 20;
  const uint32_t rounds = (uint32_t)bench_option(argc, argv, "rounds", 9);
  const uint64_t only = bench_option(argc, argv, "case", UINT64_MAX);
  const tm_plugin_query_fn query = bench_builtin("cpu");
  unsigned char *data = malloc(bytes);
  if (query == NULL || data == NULL || rounds > BENCH_MAX_ROUNDS) return 1;
  printf("stats of %llu MiB, median of %u rounds in turns with a read-sum of the same bytes\n", (unsigned long long)(bytes >> 20), rounds);
  kernel_host hosts[2];
  for (uint32_t h = 0; h < 2; ++h) kernel_host_open(&hosts[h], query, "auto", 0, h + 1);
  for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    if (only != UINT64_MAX && only != i) continue;
    fill(&cases[i], data, bytes);
    for (uint32_t h = 0; h < 2; ++h) measure(&hosts[h], &cases[i], data, bytes, rounds);
  }
  for (uint32_t h = 0; h < 2; ++h) kernel_host_close(&hosts[h]);
  free(data);
  return 0;
}
