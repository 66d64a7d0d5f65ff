/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_compare [--megabytes=256] [--slice=4] [--format=N] [--avx2=1]: the kernels of compare_tensors against a plain
 * read-sum of both tensors, with 1 and 2 threads.  Both go through two tensors of so many MiB in slices, one the even and one
 * the odd slices, in turns, so that all of it comes out of memory and a slice is too short to be disturbed often.  Prints the
 * median of each, the fastest tenth (what the machine does when nobody else is on it), and the ratios of these.  With
 * --slice=0 one slice of 1 MiB is measured again and again: what the kernel does where memory does not limit it.  --format is
 * the n-th of the list.
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

#define MOST_SLICES 512

typedef struct timing {
  uint64_t slice_elements, slices;      /* at most 2 * MOST_SLICES; of one, it is used again and again */
  double   read_ns[MOST_SLICES], compare_ns[MOST_SLICES];
  uint32_t rounds;
} timing;

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static unsigned char *slice_at(const pair *p, uint32_t k, uint64_t element) {
  const tm_format_info *info = tm_format_find(p->formats[k]);
  return p->data[k] + element / info->block_elements * info->block_bytes;
}

static uint64_t slice_bytes(const pair *p, uint32_t k, uint64_t elements) {
  const tm_format_info *info = tm_format_find(p->formats[k]);
  return elements / info->block_elements * info->block_bytes;
}

static uint64_t time_slices(kernel_host *host, const kernel_run *run, const pair *p, timing *t) {
  uint64_t result[TM_COMPARISON_WORDS], sink = 0;
  for (uint32_t r = 0; r < t->rounds; ++r) {
    const uint64_t even = 2 * r % t->slices * t->slice_elements, odd = (2 * r + 1) % t->slices * t->slice_elements;
    const uint64_t start = tm_now_ns();
    for (uint32_t k = 0; k < 2; ++k) sink += bench_read_sum(host, slice_at(p, k, even), slice_bytes(p, k, t->slice_elements));
    const uint64_t middle = tm_now_ns();
    kernel_run_launch(run, (void *[]){ slice_at(p, 0, odd), slice_at(p, 1, odd), result });
    t->read_ns[r] = (double)(middle - start);
    t->compare_ns[r] = (double)(tm_now_ns() - middle);
  }
  qsort(t->read_ns, t->rounds, sizeof t->read_ns[0], compare_doubles);
  qsort(t->compare_ns, t->rounds, sizeof t->compare_ns[0], compare_doubles);
  return sink;
}

static void measure(kernel_host *host, const pair *p, content c, timing *t) {
  const uint64_t words = TM_COMPARISON_WORDS;
  const double bytes = (double)(slice_bytes(p, 0, t->slice_elements) + slice_bytes(p, 1, t->slice_elements));
  tm_operand operands[3];
  for (uint32_t i = 0; i < 2; ++i) tm_operand_contiguous(p->formats[i], 1, &t->slice_elements, &operands[i], NULL);
  tm_operand_contiguous(TM_FORMAT_U64, 1, &words, &operands[2], NULL);
  const tm_operation operation = {
    .struct_size = sizeof operation, .op = TM_OP_COMPARE_TENSORS, .version = TM_COMPARISON_VERSION, .input_count = 2, .output_count = 1,
    .operands = operands,
  };
  kernel_run run;
  if (kernel_run_prepare(&run, host, &operation) != TM_OK) {
    printf("no kernel here\n");
    return;
  }
  const double declared = (double)kernel_host_query(host, &operation).cost_ns;
  const uint64_t sink = time_slices(host, &run, p, t);
  kernel_run_release(&run);
  const uint32_t middle = t->rounds / 2, fast = t->rounds / 10;
  printf("%-9s %-9s %-13s %u threads  read %5.1f (%5.1f) compare %5.1f (%5.1f) GB/s  %5.1f (%5.1f) %% of read  declared %5.1f%s\n",
         tm_format_find(p->formats[0])->name, tm_format_find(p->formats[1])->name, content_names[c], host->services.lane_count,
         bytes / t->read_ns[middle], bytes / t->read_ns[fast], bytes / t->compare_ns[middle], bytes / t->compare_ns[fast],
         100 * t->read_ns[middle] / t->compare_ns[middle], 100 * t->read_ns[fast] / t->compare_ns[fast], bytes / declared,
         sink == 1 ? " " : "");
}

static void measure_all(kernel_host *hosts, const pair *p, timing *t) {
  for (content c = 0; c < CONTENT_COUNT; ++c) {
    if (p->formats[0] != p->formats[1] && c != UNRELATED) continue;
    fill(p, c);
    for (uint32_t h = 0; h < 2; ++h) measure(&hosts[h], p, c, t);
  }
}

/* As many elements as fit both tensors, in whole slices. */
static void choose_sizes(pair *p, uint64_t most, uint64_t slice, timing *out) {
  const tm_format_info *a = tm_format_find(p->formats[0]), *b = tm_format_find(p->formats[1]);
  const double width_a = (double)a->block_bytes / a->block_elements, width_b = (double)b->block_bytes / b->block_elements;
  const double width = width_a > width_b ? width_a : width_b;
  out->slice_elements = (uint64_t)((double)(slice > 0 ? slice : (uint64_t)1 << 20) / width) / RUN_ELEMENTS * RUN_ELEMENTS;
  out->slices = slice > 0 ? (uint64_t)((double)most / width) / out->slice_elements : 1;
  if (out->slices > 2 * MOST_SLICES) out->slices = 2 * MOST_SLICES;
  out->rounds = slice > 0 ? (uint32_t)(out->slices / 2) : MOST_SLICES / 4;
  p->elements = out->slices * out->slice_elements;
  for (uint32_t k = 0; k < 2; ++k) p->bytes[k] = slice_bytes(p, k, p->elements);
}

int main(int argc, char **argv) {
  const uint64_t most = bench_option(argc, argv, "megabytes", 256) << 20, slice = bench_option(argc, argv, "slice", 4) << 20;
  const uint64_t only = bench_option(argc, argv, "format", UINT64_MAX);
  const char *isa = bench_option(argc, argv, "avx2", 0) != 0 ? "avx2" : "auto";
  const tm_plugin_query_fn query = bench_builtin("cpu");
  pair p = { .data = { malloc(most), malloc(most) } };
  timing *t = malloc(sizeof *t);
  if (query == NULL || p.data[0] == NULL || p.data[1] == NULL || t == NULL || 20 * slice > most) return 1;
  printf("compare_tensors in turns with a read-sum of both, slices of %llu MiB: median, fastest tenth (bench_compare)\n",
         (unsigned long long)(slice >> 20));
  kernel_host hosts[2];
  for (uint32_t h = 0; h < 2; ++h) kernel_host_open(&hosts[h], query, isa, 0, h + 1);
  for (uint32_t i = 0; i < FORMAT_PAIRS; ++i) {
    if (only != UINT64_MAX && only != i) continue;
    memcpy(p.formats, formats[i], sizeof p.formats);
    choose_sizes(&p, most, slice, t);
    measure_all(hosts, &p, t);
  }
  for (uint32_t h = 0; h < 2; ++h) kernel_host_close(&hosts[h]);
  for (uint32_t k = 0; k < 2; ++k) free(p.data[k]);
  free(t);
  return 0;
}
