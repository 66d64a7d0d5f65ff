/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_compare [--megabytes=256] [--rounds=9] [--format=N] [--avx2=1]: the kernels of compare_tensors against a plain
 * read-sum of the bytes of both tensors, in turns in one process, with 1 and 2 threads.  Prints the best and the median of
 * GB/s of both, and the median of the ratios round by round.  --megabytes is of one tensor, --format the n-th of the list.
 */
#include "bench.h"

#include "tensor/format.h"
#include "tensor/shape.h"

#define RUN_ELEMENTS 4096u      /* half changed: such runs are equal and changed by turns */

typedef enum content { EQUAL, HALF_CHANGED, CHANGED, UNRELATED, CONTENT_COUNT } content;

static const char *const content_names[CONTENT_COUNT] = { "all equal", "half changed", "all changed", "unrelated" };

static const uint32_t formats[][2] = {
  { TM_FORMAT_F32, TM_FORMAT_F32 },   { TM_FORMAT_BF16, TM_FORMAT_BF16 }, { TM_FORMAT_Q8_0, TM_FORMAT_Q8_0 },
  { TM_FORMAT_F16, TM_FORMAT_F16 },   { TM_FORMAT_Q4_0, TM_FORMAT_Q4_0 }, { TM_FORMAT_F64, TM_FORMAT_F64 },
  { TM_FORMAT_F8_E4M3FN, TM_FORMAT_F8_E4M3FN }, { TM_FORMAT_I8, TM_FORMAT_I8 }, { TM_FORMAT_I32, TM_FORMAT_I32 },
  { TM_FORMAT_I64, TM_FORMAT_I64 },   { TM_FORMAT_F32, TM_FORMAT_BF16 },  { TM_FORMAT_BF16, TM_FORMAT_Q8_0 },
};
#define FORMAT_PAIRS (sizeof formats / sizeof formats[0])

typedef struct pair {
  uint32_t       formats[2];
  uint64_t       elements;
  uint64_t       bytes[2];
  unsigned char *data[2];
} pair;

static uint64_t next_random(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  return *state ^= *state << 17;
}

/* No quantizer makes a -128 of q8_0. */
static unsigned char without_lowest(uint32_t format, unsigned char integers) {
  return format == TM_FORMAT_Q8_0 && integers == 0x80 ? 0x82 : integers;
}

/* Random bits with the exponents of ordinary weights where the format has any, and scales within a factor of two. */
static void tame(uint32_t format, unsigned char *data, uint64_t bytes) {
  const tm_format_info *info = tm_format_find(format);
  const uint64_t step = info->block_bytes, top = info->kind == TM_KIND_BLOCK ? 1 : step - 1;
  if (info->kind != TM_KIND_BLOCK && info->kind != TM_KIND_FLOAT) return;
  for (uint64_t at = 0; at + step <= bytes; at += step) {
    unsigned char *upper = data + at + top;
    switch (format) {
    case TM_FORMAT_F32:
    case TM_FORMAT_BF16: *upper = (unsigned char)((*upper & 0x81) | 0x3c); break;
    case TM_FORMAT_F64: *upper = (unsigned char)((*upper & 0x80) | 0x3f); break;
    case TM_FORMAT_F16: *upper = (unsigned char)((*upper & 0x87) | 0x20); break;
    case TM_FORMAT_F8_E4M3FN: *upper = (unsigned char)(*upper & 0xbf); break;
    default: *upper = (unsigned char)((*upper & 3) | 0x14); break;      /* the scale of a block */
    }
    for (uint64_t i = 2; info->kind == TM_KIND_BLOCK && i < step; ++i) data[at + i] = without_lowest(format, data[at + i]);
  }
}

static void fill_random(uint32_t format, unsigned char *data, uint64_t bytes, uint64_t state) {
  for (uint64_t i = 0; i + 8 <= bytes; i += 8) {
    const uint64_t random = next_random(&state);
    memcpy(data + i, &random, 8);
  }
  tame(format, data, bytes);
}

/* Lowest bits flipped: of every element, or of the integers of every block. */
static void change(uint32_t format, unsigned char *data, uint64_t bytes) {
  const tm_format_info *info = tm_format_find(format);
  for (uint64_t at = 0; at + info->block_bytes <= bytes; at += info->block_bytes) {
    if (info->kind != TM_KIND_BLOCK) data[at] ^= 1;
    for (uint64_t i = 2; info->kind == TM_KIND_BLOCK && i < info->block_bytes; ++i) {
      data[at + i] = without_lowest(format, (unsigned char)(data[at + i] ^ (format == TM_FORMAT_Q8_0 ? 1 : 0x11)));
    }
  }
}

static void fill(const pair *p, content c) {
  fill_random(p->formats[0], p->data[0], p->bytes[0], UINT64_C(0x1234567887654321));
  if (p->formats[0] != p->formats[1] || c == UNRELATED) {
    fill_random(p->formats[1], p->data[1], p->bytes[1], UINT64_C(0x8765432112345678));
    return;
  }
  memcpy(p->data[1], p->data[0], p->bytes[0]);
  const uint64_t run = p->bytes[1] / (p->elements / RUN_ELEMENTS);
  if (c == CHANGED) change(p->formats[1], p->data[1], p->bytes[1]);
  for (uint64_t at = 0; c == HALF_CHANGED && at + run <= p->bytes[1]; at += 2 * run) change(p->formats[1], p->data[1] + at, run);
}

static double largest(const double *values, uint32_t count) {
  double best = 0;
  for (uint32_t i = 0; i < count; ++i) best = values[i] > best ? values[i] : best;
  return best;
}

static void measure(kernel_host *host, const pair *p, content c, uint32_t rounds) {
  const uint64_t words = TM_COMPARISON_WORDS, bytes = p->bytes[0] + p->bytes[1];
  uint64_t result[TM_COMPARISON_WORDS], sink = 0;
  tm_operand operands[3];
  for (uint32_t i = 0; i < 2; ++i) tm_operand_contiguous(p->formats[i], 1, &p->elements, &operands[i], NULL);
  tm_operand_contiguous(TM_FORMAT_U64, 1, &words, &operands[2], NULL);
  const tm_operation operation = { .struct_size = sizeof operation, .op = TM_OP_COMPARE_TENSORS, .version = 1, .input_count = 2, .output_count = 1, .operands = operands };
  kernel_run run;
  if (kernel_run_prepare(&run, host, &operation) != TM_OK) {
    printf("no kernel here\n");
    return;
  }
  const double declared = (double)kernel_host_query(host, &operation).cost_ns;
  double read_gbs[BENCH_MAX_ROUNDS], compare_gbs[BENCH_MAX_ROUNDS], ratios[BENCH_MAX_ROUNDS];
  for (uint32_t r = 0; r < rounds; ++r) {
    const uint64_t start = tm_now_ns();
    for (uint32_t i = 0; i < 2; ++i) sink += bench_read_sum(host, p->data[i], p->bytes[i]);
    const uint64_t middle = tm_now_ns();
    kernel_run_launch(&run, (void *[]){ p->data[0], p->data[1], result });
    const uint64_t end = tm_now_ns();
    read_gbs[r] = (double)bytes / (double)(middle - start);
    compare_gbs[r] = (double)bytes / (double)(end - middle);
    ratios[r] = compare_gbs[r] / read_gbs[r];
  }
  kernel_run_release(&run);
  const double best_read = largest(read_gbs, rounds), best = largest(compare_gbs, rounds);
  printf("%-9s %-9s %-13s %u thr.  read %5.1f (%5.1f) compare %5.1f (%5.1f) GB/s  %5.1f (%5.1f) %% of read  declared %5.1f%s\n",
         tm_format_find(p->formats[0])->name, tm_format_find(p->formats[1])->name, content_names[c], host->services.lane_count,
         bench_median(read_gbs, rounds), best_read, bench_median(compare_gbs, rounds), best, 100 * bench_median(ratios, rounds),
         100 * best / best_read, (double)bytes / declared, sink == 1 ? " " : "");
}

static void measure_all(kernel_host *hosts, pair *p, uint32_t rounds) {
  for (content c = 0; c < CONTENT_COUNT; ++c) {
    if (p->formats[0] != p->formats[1] && c != UNRELATED) continue;
    fill(p, c);
    for (uint32_t h = 0; h < 2; ++h) measure(&hosts[h], p, c, rounds);
  }
}

int main(int argc, char **argv) {
  const uint64_t most = bench_option(argc, argv, "megabytes", 256) << 20;
  const uint32_t rounds = (uint32_t)bench_option(argc, argv, "rounds", 9);
  const uint64_t only = bench_option(argc, argv, "format", UINT64_MAX);
  const char *isa = bench_option(argc, argv, "avx2", 0) != 0 ? "avx2" : "auto";
  const tm_plugin_query_fn query = bench_builtin("cpu");
  pair p = { .data = { malloc(most), malloc(most) } };
  if (query == NULL || p.data[0] == NULL || p.data[1] == NULL || rounds > BENCH_MAX_ROUNDS) return 1;
  printf("compare_tensors, two tensors of up to %llu MiB, median (and best) of %u rounds in turns with a read-sum of both\n",
         (unsigned long long)(most >> 20), rounds);
  kernel_host hosts[2];
  for (uint32_t h = 0; h < 2; ++h) kernel_host_open(&hosts[h], query, isa, 0, h + 1);
  for (uint32_t i = 0; i < FORMAT_PAIRS; ++i) {
    if (only != UINT64_MAX && only != i) continue;
    const tm_format_info *a = tm_format_find(formats[i][0]), *b = tm_format_find(formats[i][1]);
    const double width_a = (double)a->block_bytes / a->block_elements, width_b = (double)b->block_bytes / b->block_elements;
    p.elements = (uint64_t)((double)most / (width_a > width_b ? width_a : width_b)) / RUN_ELEMENTS * RUN_ELEMENTS;
    for (uint32_t k = 0; k < 2; ++k) {
      const tm_format_info *info = k == 0 ? a : b;
      p.formats[k] = formats[i][k];
      p.bytes[k] = p.elements / info->block_elements * info->block_bytes;
    }
    measure_all(hosts, &p, rounds);
  }
  for (uint32_t h = 0; h < 2; ++h) kernel_host_close(&hosts[h]);
  for (uint32_t k = 0; k < 2; ++k) free(p.data[k]);
  return 0;
}
