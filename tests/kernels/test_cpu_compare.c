/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_tensors of the CPU backend, bit for bit, for each instruction set: two tensors that are mostly the same, because
 * runs of equal blocks, blocks with one difference, and what follows them take different ways through the kernels.
 */
#include "conformance/kernel_cases.h"
#include "kernel_probe.h"
#include "tensormorph/canonical_sum.h"

#define SEED UINT64_C(20241130)
#define ELEMENTS (2 * TM_SUM_SUPERBLOCK + 7 * TM_SUM_BLOCK + 96)
#define MISALIGNED 3

static const char *const sets[] = { "avx2", "avx512" };
#define SETS (sizeof sets / sizeof sets[0])
static uint64_t runs[SETS];             /* of each set's kernels, by all tests; none where the processor lacks it */

typedef struct pair {
  uint32_t       format, other_format;
  uint64_t       elements, bytes;
  unsigned char *memory[2];             /* misaligned; `data` is in them */
  unsigned char *data[2];
} pair;

static uint64_t bytes_of(uint32_t format, uint64_t elements) {
  const tm_format_info *info = tm_format_find(format);
  return elements / info->block_elements * info->block_bytes;
}

static pair pair_make_of(uint32_t format, uint32_t other_format, uint64_t elements) {
  pair p = { .format = format, .other_format = other_format, .elements = elements, .bytes = bytes_of(format, elements) };
  for (int i = 0; i < 2; ++i) {
    assert_non_null(p.memory[i] = malloc(bytes_of(i == 0 ? format : other_format, elements) + MISALIGNED));
    p.data[i] = p.memory[i] + (i == 0 ? MISALIGNED : 0);
  }
  return p;
}

static pair pair_make(uint32_t format, uint64_t elements) { return pair_make_of(format, format, elements); }

static void pair_free(pair *p) {
  for (int i = 0; i < 2; ++i) free(p->memory[i]);
}

static void expect_same(const pair *p, const char *what) {
  static const uint32_t lanes[] = { 1, 3 };
  probe r = probe_of(TM_OP_COMPARE_TENSORS, NULL, 0);
  for (int i = 0; i < 2; ++i) probe_input(&r, i == 0 ? p->format : p->other_format, 1, &p->elements, p->data[i]);
  probe_finish(&r, TM_FORMAT_U64);
  probe_reference(&r);
  for (size_t s = 0; s < SETS; ++s) {
    for (size_t l = 0; l < sizeof lanes / sizeof lanes[0]; ++l) {
      kernel_host host;
      char row[64];
      kernel_host_open(&host, probe_entry(), sets[s], lanes[l], 0);
      if (host.status != TM_ERROR_NO_DEVICE) {
        snprintf(row, sizeof row, "cpu_compare_tensors__%s", sets[s]);
        probe_run(&r, &host, row);
        ++runs[s];
        const uint64_t *actual = probe_result(&r), *expected = r.expected;
        for (uint64_t w = 0; w < TM_COMPARISON_WORDS; ++w) {
          if (actual[w] != expected[w]) {
            fail_msg("%s %s %s, %s: word %llu is %llx, expected %llx", sets[s], tm_format_find(p->format)->name,
                     tm_format_find(p->other_format)->name, what, (unsigned long long)w, (unsigned long long)actual[w],
                     (unsigned long long)expected[w]);
          }
        }
      }
      kernel_host_close(&host);
    }
  }
  probe_free(&r);
}

/* ---- formats of single elements ---- */

static const uint32_t plain_formats[] = {
  TM_FORMAT_F32, TM_FORMAT_BF16, TM_FORMAT_F16, TM_FORMAT_F64, TM_FORMAT_F8_E4M3FN, TM_FORMAT_F8_E5M2, TM_FORMAT_I8, TM_FORMAT_U8,
  TM_FORMAT_I16, TM_FORMAT_U16, TM_FORMAT_I32, TM_FORMAT_U32, TM_FORMAT_I64, TM_FORMAT_U64, TM_FORMAT_BOOL,
};
#define PLAIN_FORMATS (sizeof plain_formats / sizeof plain_formats[0])

static void fill_values(const pair *p, double scale, uint64_t *random) {
  const tm_codec *codec = tm_codec_find(p->format);
  const uint32_t step = tm_format_find(p->format)->block_bytes;
  for (uint64_t i = 0; i < p->elements; ++i) {
    const double value = scale * plain_value(random);
    codec->encode(&value, 1, p->data[0] + i * step);
  }
  memcpy(p->data[1], p->data[0], p->bytes);
}

/* Flips the lowest bit of one element. */
static void change(const pair *p, uint64_t element) { p->data[1][element * tm_format_find(p->format)->block_bytes] ^= 1; }

static void set_both(const pair *p, uint64_t element, double a, double b) {
  const tm_codec *codec = tm_codec_find(p->format);
  const uint32_t step = tm_format_find(p->format)->block_bytes;
  codec->encode(&a, 1, p->data[0] + element * step);
  codec->encode(&b, 1, p->data[1] + element * step);
}

static void test_few_differences(void **state) {
  (void)state;
  uint64_t random = SEED;
  for (size_t f = 0; f < PLAIN_FORMATS; ++f) {
    pair p = pair_make(plain_formats[f], ELEMENTS);
    fill_values(&p, 30, &random);
    expect_same(&p, "all equal");
    change(&p, TM_SUM_SUPERBLOCK + 5 * TM_SUM_BLOCK + 77);
    expect_same(&p, "one element differs");
    change(&p, TM_SUM_SUPERBLOCK - 1);
    change(&p, TM_SUM_SUPERBLOCK);
    change(&p, ELEMENTS - 1);
    expect_same(&p, "the ends of superblocks and the last element differ");
    for (uint64_t i = 3 * TM_SUM_BLOCK; i < ELEMENTS; i += 2 * TM_SUM_BLOCK + 1) change(&p, i);
    expect_same(&p, "every other block differs");
    for (uint64_t i = 0; i < ELEMENTS; i += 3) change(&p, i);
    expect_same(&p, "a third differs");
    pair_free(&p);
  }
}

static void test_lengths(void **state) {
  (void)state;
  static const uint64_t lengths[] = { 1, 2, 15, 16, 17, 31, 511, 512, 513, 1023, TM_SUM_SUPERBLOCK - 1, TM_SUM_SUPERBLOCK + 1 };
  uint64_t random = SEED;
  for (size_t f = 0; f < PLAIN_FORMATS; ++f) {
    for (size_t n = 0; n < sizeof lengths / sizeof lengths[0]; ++n) {
      pair p = pair_make(plain_formats[f], lengths[n]);
      fill_values(&p, 30, &random);
      expect_same(&p, "a length, equal");
      change(&p, lengths[n] / 2);
      expect_same(&p, "a length, one differs");
      pair_free(&p);
    }
  }
}

/* Values of which sums, differences or quotients are special, on either side and on both. */
static void test_special_values(void **state) {
  (void)state;
  static const uint32_t floats[] = {
    TM_FORMAT_F32, TM_FORMAT_BF16, TM_FORMAT_F16, TM_FORMAT_F64, TM_FORMAT_F8_E4M3FN, TM_FORMAT_F8_E5M2,
  };
  static const double specials[] = { 0.0, -0.0, INFINITY, -INFINITY, NAN, -NAN, 0x1p-149, 0x1p-133, 0x1p-24, 0x1p-1074, 0x1.8p-1073,
                                     0x1p-126, 3.4e38, -3.4e38, 65504, 1.7e308, -1.7e308, 1, 0x1.000002p0 };
  const uint64_t count = sizeof specials / sizeof specials[0];
  uint64_t random = SEED;
  for (size_t f = 0; f < sizeof floats / sizeof floats[0]; ++f) {
    for (uint64_t a = 0; a < count; ++a) {
      pair p = pair_make(floats[f], 3 * TM_SUM_BLOCK + 40);
      fill_values(&p, 1, &random);
      set_both(&p, 100, specials[a], specials[a]);
      expect_same(&p, "a special value on both sides");
      for (uint64_t b = 0; b < count; ++b) set_both(&p, TM_SUM_BLOCK * (b % 4) + b, specials[a], specials[b]);
      expect_same(&p, "special values against each other");
      pair_free(&p);
    }
  }
}

/* NaN that differ in payload, sign or quietness only: not equal, and not finite. */
static void test_nan_payloads(void **state) {
  (void)state;
  static const struct { uint32_t format; uint64_t bits[4]; } nans[] = {
    { TM_FORMAT_F32, { 0x7fc00000, 0x7fc00001, 0xffc00000, 0x7f800001 } },
    { TM_FORMAT_BF16, { 0x7fc0, 0x7fc1, 0xffc0, 0x7f81 } },
    { TM_FORMAT_F16, { 0x7e00, 0x7e01, 0xfe00, 0x7c01 } },
    { TM_FORMAT_F64,
      { UINT64_C(0x7ff8) << 48, UINT64_C(0x7ff8000000000001), UINT64_C(0xfff8) << 48, UINT64_C(0x7ff0000000000001) } },
    { TM_FORMAT_F8_E5M2, { 0x7e, 0x7f, 0xfe, 0x7d } },
  };
  uint64_t random = SEED;
  for (size_t f = 0; f < sizeof nans / sizeof nans[0]; ++f) {
    pair p = pair_make(nans[f].format, 5 * TM_SUM_BLOCK);
    const uint32_t step = tm_format_find(p.format)->block_bytes;
    fill_values(&p, 1, &random);
    for (uint64_t i = 0; i < 16; ++i) {
      memcpy(p.data[0] + (i * 97 + 512) * step, &nans[f].bits[i / 4], step);
      memcpy(p.data[1] + (i * 97 + 512) * step, &nans[f].bits[i % 4], step);
    }
    expect_same(&p, "payloads of NaN");
    memcpy(p.data[1], p.data[0], p.bytes);
    expect_same(&p, "equal bits of NaN");
    pair_free(&p);
  }
}

/* Every pair one unit apart: quotients that come again and again, and differ in the last place only. */
static void test_units_apart(void **state) {
  (void)state;
  uint64_t random = SEED;
  for (size_t f = 0; f < PLAIN_FORMATS; ++f) {
    pair p = pair_make(plain_formats[f], 20 * TM_SUM_BLOCK);
    fill_values(&p, 100, &random);
    for (uint64_t i = 0; i < p.elements; ++i) change(&p, i);
    expect_same(&p, "one unit apart");
    pair_free(&p);
  }
}

/* A largest quotient that grows by one unit of its last place from block to block: a test of it that is off by one misses some. */
static void test_close_quotients(void **state) {
  (void)state;
  static const double larger[] = { 1, 1.5, 0x1.fffffep0, 3 };
  uint64_t random = SEED;
  for (size_t k = 0; k < sizeof larger / sizeof larger[0]; ++k) {
    pair p = pair_make(TM_FORMAT_F32, 64 * TM_SUM_BLOCK);
    fill_values(&p, 1, &random);
    set_both(&p, 1, 1e6, 1e6 - 100);            /* no other difference is larger, so that only the quotient shows */
    for (uint64_t i = 0; i < 64; ++i) set_both(&p, i * TM_SUM_BLOCK + 5 * i + 2, larger[k], -ldexp((double)(i + 1), -52));
    expect_same(&p, "close quotients");
    pair_free(&p);
  }
}

/* ---- floats of 16 bits ---- */

typedef struct half_shape {
  uint32_t format;
  int      fraction_bits;
  uint16_t infinite;            /* bits of +Inf */
} half_shape;

static const half_shape halves[] = { { TM_FORMAT_BF16, 7, 0x7f80 }, { TM_FORMAT_F16, 10, 0x7c00 } };

static void put_half(unsigned char *data, uint64_t element, uint32_t bits) {
  const uint16_t half = (uint16_t)bits;
  memcpy(data + 2 * element, &half, 2);
}

/* Bits `places` away in the order of magnitudes, within what is finite. */
static uint32_t moved(const half_shape *h, uint32_t bits, int64_t places) {
  const int64_t magnitude = (int64_t)(bits & 0x7fff) + places, most = h->infinite - 1;
  return (bits & 0x8000) | (uint32_t)(magnitude < 0 ? 0 : magnitude > most ? most : magnitude);
}

static double half_value(const half_shape *h, uint32_t bits) {
  const uint16_t half = (uint16_t)bits;
  double value;
  tm_codec_find(h->format)->decode(&half, 1, &value);
  return value;
}

typedef struct half_pair {
  uint32_t x, y;
  double   quotient;
} half_pair;

/* Of magnitudes up to 16: near ones of equal or opposite signs, at powers of two more often than not, subnormal ones and zeros. */
static half_pair random_half_pair(const half_shape *h, uint64_t *random) {
  const uint32_t top = (uint32_t)(h->fraction_bits == 7 ? 131 : 19) << h->fraction_bits, small = 2u << h->fraction_bits;
  uint32_t x = (uint32_t)random_below(random, random_below(random, 4) ? top : small);
  if (random_below(random, 3)) x = x >> h->fraction_bits << h->fraction_bits;
  const int64_t reach = INT64_C(1) << random_below(random, (uint64_t)h->fraction_bits + 5);
  uint32_t y = moved(h, x, (int64_t)random_below(random, 2 * (uint64_t)reach + 1) - reach);
  if (random_below(random, 16) == 0) y = 0;
  if (random_below(random, 2) != 0) y ^= 0x8000;
  const double a = half_value(h, x), b = half_value(h, y), larger = fmax(fabs(a), fabs(b));
  const float difference = (float)a - (float)b;
  return (half_pair){ x, y, larger > 0 ? fabs((double)difference) / larger : 0 };
}

/* A quotient in the first block, after a large difference; and in the second one, whose other pairs are equal, one that is larger by
   as little as a search found: a window that is too wide does not see it. */
static void test_second_quotient(void **state) {
  (void)state;
  uint64_t random = SEED;
  for (int round = 0; round < 400; ++round) {
    const half_shape *h = &halves[round % 2];
    const uint32_t far = (uint32_t)(h->fraction_bits == 7 ? 167 : 30) << h->fraction_bits;
    const half_pair first = random_half_pair(h, &random);
    half_pair second = { 0, 0, 3 };
    for (int i = 0; i < 400; ++i) {
      const half_pair other = random_half_pair(h, &random);
      if (other.quotient > first.quotient && other.quotient < second.quotient) second = other;
    }
    if (second.quotient == 3) continue;
    pair p = pair_make(h->format, 2 * TM_SUM_BLOCK);
    fill_values(&p, 1, &random);
    put_half(p.data[0], 7, far);
    put_half(p.data[1], 7, far + 1);
    put_half(p.data[0], 300, first.x);
    put_half(p.data[1], 300, first.y);
    put_half(p.data[0], TM_SUM_BLOCK + 222, second.x);
    put_half(p.data[1], TM_SUM_BLOCK + 222, second.y);
    const uint32_t some = 3u << h->fraction_bits << (h->fraction_bits == 7 ? 5 : 2);    /* for a square to be seen */
    put_half(p.data[0], TM_SUM_BLOCK + 5, some);
    put_half(p.data[1], TM_SUM_BLOCK + 5, some + (first.quotient > 0.01));
    expect_same(&p, "a second quotient");
    pair_free(&p);
  }
}

/* Significands of two numbers with one exponent, the first of which is the larger. */
typedef struct significands {
  uint32_t large, small;
} significands;

static significands random_significands(uint32_t one, uint64_t *random) {
  const uint32_t large = one + (uint32_t)random_below(random, one), apart = large - one;
  return (significands){ large, large - (uint32_t)random_below(random, random_below(random, 2) ? apart + 1 : apart / 16 + 1) };
}

/* Those with the least quotient that is larger. */
static significands next_quotient(uint32_t one, significands first) {
  significands best = { 2 * one, 0 };
  for (uint32_t large = one; large < 2 * one; large++) {
    const uint32_t apart = (first.large - first.small) * large / first.large + 1;
    if (apart <= large - one && (uint64_t)apart * best.large < (uint64_t)(best.large - best.small) * large)
      best = (significands){ large, large - apart };
  }
  return best;
}

static void put_significands(const pair *p, uint64_t at, const half_shape *h, significands of, uint32_t exponent) {
  const uint32_t one = 1u << h->fraction_bits, field = exponent << h->fraction_bits;
  put_half(p->data[0], at, field + of.large - one);
  put_half(p->data[1], at, field + of.small - one);
}

/* Many pairs with one quotient, and one pair with the next larger one that there is. */
static void test_next_quotient(void **state) {
  (void)state;
  uint64_t random = SEED;
  for (int round = 0; round < 300; ++round) {
    const half_shape *h = &halves[round % 2];
    const uint32_t one = 1u << h->fraction_bits, bias = h->fraction_bits == 7 ? 127 : 15;
    const significands first = random_significands(one, &random), second = next_quotient(one, first);
    pair p = pair_make(h->format, 5 * TM_SUM_BLOCK);
    for (uint64_t i = 0; i < p.elements; ++i) put_significands(&p, i, h, first, bias - (uint32_t)random_below(&random, 5));
    put_significands(&p, 9, h, (significands){ 2 * one - 1, 2 * one - 1 }, bias);
    if (second.small != 0) put_significands(&p, random_below(&random, p.elements), h, second, bias - 5);
    expect_same(&p, "the next quotient");
    pair_free(&p);
  }
}

/* Of the exponent that `top` has or, so that chains round, one of six below. */
static uint32_t random_half(const half_shape *h, uint32_t top, uint64_t *random) {
  const uint32_t rest = (uint32_t)random_u64(random) & (0x8000u | ((1u << h->fraction_bits) - 1));
  return moved(h, top | rest, -(int64_t)(random_below(random, 7) << h->fraction_bits));
}

/* Blocks on all sides of the borders between chains and lanes: of either side, and of differences.  Small ones and large ones apart, whose
   sums would hide the others. */
static void test_borders_of_chains(void **state) {
  (void)state;
  static const int exponents[2][8] = { { -133, -126, -76, -52, -51, -50, -49, -24 }, { -24, 15, 58, 59, 60, 61, 100, 127 } };
  uint64_t random = SEED;
  for (int round = 0; round < 60; ++round) {
    const half_shape *h = &halves[round % 4 == 3];
    const int bias = h->fraction_bits == 7 ? 127 : 15, most = (h->infinite >> h->fraction_bits) - 1;
    pair p = pair_make(h->format, (round < 12 ? 66 : 2) * TM_SUM_BLOCK + 77);
    for (uint64_t i = 0, kind = 0, top[2] = { 0, 0 }; i < p.elements; ++i) {
      for (int side = 0; side < 2 && i % TM_SUM_BLOCK == 0; ++side) {
        const int field = exponents[round / 4 % 2][random_below(&random, round / 8 % 2 ? 7 : 8)] + bias;
        top[side] = (uint64_t)(field < 0 ? 0 : field > most ? most : field) << h->fraction_bits;
        kind = random_below(&random, 7);
      }
      const int is_odd_one = i % TM_SUM_BLOCK == 76;
      const uint32_t x = is_odd_one ? (uint32_t)top[0] : random_half(h, (uint32_t)top[0], &random);
      const uint32_t others[] = { random_half(h, (uint32_t)top[0], &random), random_half(h, (uint32_t)top[1], &random), x ^ 1,
                                  x ^ (uint32_t)is_odd_one, 0, is_odd_one ? (uint32_t)top[1] : x, x ^ 1 };
      put_half(p.data[0], i, kind == 6 && is_odd_one ? h->infinite : x);
      put_half(p.data[1], i, others[kind]);
    }
    expect_same(&p, "borders of chains");
    pair_free(&p);
  }
}

/* Short floats of two formats in numbers, most of which sums go by chains. */
static void test_two_short_formats(void **state) {
  (void)state;
  static const uint32_t shorts[] = { TM_FORMAT_BF16, TM_FORMAT_F16, TM_FORMAT_F8_E4M3FN, TM_FORMAT_F8_E5M2 };
  uint64_t random = SEED;
  for (uint32_t k = 0; k < 16; ++k) {
    pair p = pair_make_of(shorts[k / 4], shorts[k % 4], TM_SUM_SUPERBLOCK + 3 * TM_SUM_BLOCK + 41);
    for (int side = 0; side < 2; ++side) {
      const uint32_t format = side == 0 ? p.format : p.other_format, step = tm_format_find(format)->block_bytes;
      for (uint64_t i = 0; i < p.elements; ++i) {
        const double value = i % 700 == 699 ? NAN : plain_value(&random) * 0x1p-3;
        tm_codec_find(format)->encode(&value, 1, p.data[side] + i * step);
      }
    }
    expect_same(&p, "two short formats");
    pair_free(&p);
  }
}

/* ---- blocks with scales ---- */

static uint16_t f16_bits(double value) {
  uint16_t bits;
  tm_codec_find(TM_FORMAT_F16)->encode(&value, 1, &bits);
  return bits;
}

typedef enum scales {
  ALIKE, SLIGHTLY_OFF, WIDE, FAR_APART, NEGATIVE, SOME_ZERO, SUBNORMAL, SOME_NAN, SIMPLE_RATIOS, SCALES_COUNT
} scales;

static double scale_of(scales kind, uint64_t block, int side, uint64_t *random) {
  const double usual = 0.01 * (1 + (double)random_below(random, 1000) / 1000);
  switch (kind) {
  case ALIKE: return 0.0123;
  case SLIGHTLY_OFF: return 0.0123 + (side == 1 ? 0.00001 * (double)random_below(random, 3) : 0);
  case WIDE: return ldexp(usual, (int)random_below(random, 14) - 7);
  case FAR_APART: return side == 0 ? usual : usual / 100;
  case NEGATIVE: return random_below(random, 2) ? -usual : usual;
  case SOME_ZERO: return random_below(random, 3) ? usual : random_below(random, 2) ? -0.0 : 0.0;
  case SUBNORMAL: return ldexp((double)random_below(random, 9), -24);
  case SIMPLE_RATIOS: return ldexp(3 + (double)random_below(random, 5), (int)random_below(random, 3) - 9);
  default: return block % 200 == 150 ? (side == 0 ? NAN : INFINITY) : usual;
  }
}

static void fill_quants(const pair *p, scales kind, int has_lowest, uint64_t *random) {
  const uint32_t step = tm_format_find(p->format)->block_bytes;
  for (uint64_t b = 0; b * step < p->bytes; ++b) {
    unsigned char *first = p->data[0] + b * step, *second = p->data[1] + b * step;
    for (int side = 0; side < 2; ++side) {
      const uint16_t bits = f16_bits(scale_of(kind, b, side, random));
      memcpy(side == 0 ? first : second, &bits, sizeof bits);
    }
    if (random_below(random, 2) != 0) memcpy(second, first, 2);
    for (uint32_t i = 2; i < step; ++i) {
      first[i] = (unsigned char)random_u64(random);
      if (p->format == TM_FORMAT_Q8_0 && first[i] == 0x80 && !has_lowest) first[i] = 0;
      second[i] = random_below(random, 4) ? first[i] : (unsigned char)(first[i] ^ (first[i] == 0x81 ? 2 : 1));
      if (random_below(random, 8) == 0) second[i] = first[i] = p->format == TM_FORMAT_Q8_0 ? 0 : 0x88;
    }
    if (b / 20 % 3 == 0) memcpy(second, first, step);
  }
}

static void test_quants(void **state) {
  (void)state;
  static const uint32_t formats[] = { TM_FORMAT_Q8_0, TM_FORMAT_Q4_0 };
  uint64_t random = SEED;
  for (size_t f = 0; f < 2; ++f) {
    for (scales kind = 0; kind < SCALES_COUNT; ++kind) {
      for (int has_lowest = 0; has_lowest < 2; ++has_lowest) {
        pair p = pair_make(formats[f], ELEMENTS);
        fill_quants(&p, kind, has_lowest, &random);
        expect_same(&p, "scales and integers");
        memcpy(p.data[1], p.data[0], p.bytes);
        expect_same(&p, "equal scales and integers");
        pair_free(&p);
      }
    }
  }
}

/* Few integers, so that values of different scales are equal, quotients and differences come again and again, and signs differ; and
   lengths that end within 512 elements. */
static void test_small_integers(void **state) {
  (void)state;
  static const uint32_t formats[] = { TM_FORMAT_Q8_0, TM_FORMAT_Q4_0 };
  uint64_t random = SEED;
  for (uint32_t k = 0; k < 2 * SCALES_COUNT; ++k) {
    for (uint64_t reach = 1; reach < 8; reach += 2) {
      pair p = pair_make(formats[k % 2], TM_SUM_SUPERBLOCK + 32 * (1 + random_below(&random, 200)));
      fill_quants(&p, k / 2, 0, &random);
      const uint32_t step = tm_format_find(p.format)->block_bytes;
      for (uint64_t at = 0; at < p.bytes; ++at) {
        if (at % step < 2) continue;
        const uint8_t few = (uint8_t)random_below(&random, 2 * reach + 1);
        const uint8_t other = random_below(&random, 5) ? few : (uint8_t)(reach * 2 - few);
        p.data[0][at] = (unsigned char)(k % 2 == 0 ? few - reach : 0x88 + few - reach);
        p.data[1][at] = (unsigned char)(k % 2 == 0 ? other - reach : 0x88 + other - reach);
      }
      expect_same(&p, "small integers");
      pair_free(&p);
    }
  }
}

/* One pair in each of two times 512 elements, all others zero: the first says what the largest figures are, the second is beyond
   one of them in a way that integers must not hide. */
static void test_integers_tell_enough(void **state) {
  (void)state;
  static const struct { double scale[2]; int8_t a, b; } pairs[][2] = {
    { { { 64, 64 }, 100, 99 }, { { 1, 1 }, 2, 1 } },            /* quotient below 1 */
    { { { 64, 64 }, 100, 99 }, { { 1, 1.25 }, 2, 2 } },
    { { { 64, 64 }, 5, 0 }, { { 1, 1 }, 1, -1 } },              /* above 1 */
    { { { 64, 64 }, 5, -3 }, { { 1, 1.125 }, 7, -5 } },
    { { { 1, 1 }, 10, 0 }, { { 1, 0.5 }, 100, 100 } },          /* scales alone */
    { { { 1, 1 }, 1, -1 }, { { 1, 0.5 }, 100, 100 } },
    { { { 1, 1 }, 100, -100 }, { { 1, 1 }, 127, -127 } },       /* more than 127 apart */
    { { { 1, 1 }, 100, -100 }, { { 1, 1.0625 }, 127, -127 } },
    { { { 1, 1 }, 100, -100 }, { { 1, 1 }, -128, 127 } },
    { { { 1.05, 1.05 }, 1, -1 }, { { 1, 1 + 17.0 / 1024 }, -128, -128 } },      /* by as little as two integers times 17/1024 */
    { { { 1, 1 }, 64, -64 }, { { 1, 0x1p-20 }, -128, 1 } },     /* by less than f32 shows */
    { { { 64, 64 }, 5, -3 }, { { 0, 1 }, -5, 0 } },             /* zeros of two signs */
    { { { 64, 64 }, 5, -3 }, { { 1, 0 }, 0, -5 } },
    { { { 64, 64 }, 5, -5 }, { { 0, 1 }, -5, 0 } },
    { { { 64, 64 }, 5, -5 }, { { 1, 0 }, 0, -5 } },
  };
  for (size_t k = 0; k < sizeof pairs / sizeof pairs[0]; ++k) {
    pair p = pair_make(TM_FORMAT_Q8_0, 2 * TM_SUM_BLOCK);
    memset(p.data[0], 0, p.bytes);
    memset(p.data[1], 0, p.bytes);
    for (uint64_t block = 0; block < 32; ++block) {
      const uint64_t half = block / 16;
      for (int side = 0; side < 2; ++side) {
        const uint16_t bits = f16_bits(pairs[k][half].scale[side]);
        memcpy(p.data[side] + block * 34, &bits, 2);
        if (block % 16 == 9) p.data[side][block * 34 + 20] = (unsigned char)(side == 0 ? pairs[k][half].a : pairs[k][half].b);
      }
    }
    expect_same(&p, "integers that tell enough");
    pair_free(&p);
  }
}

/* Sums that f64 does not hold: of far scales, and negative ones with integers that are -128. */
static void test_sums_beyond_f64(void **state) {
  (void)state;
  uint64_t random = SEED;
  pair p = pair_make(TM_FORMAT_Q8_0, TM_SUM_SUPERBLOCK + 64);
  const uint16_t large = f16_bits(0x1.ffcp0), small = f16_bits(0x3p-24), largest = f16_bits(-65504);
  memset(p.data[0], 0, p.bytes);
  memset(p.data[1], 0, p.bytes);
  memcpy(p.data[0] + 34, &large, 2);
  memcpy(p.data[1] + 34, &small, 2);
  p.data[0][34 + 9] = 127;
  p.data[1][34 + 9] = 1;
  expect_same(&p, "one pair of far scales");
  for (uint64_t i = 2; i < 34; ++i) p.data[0][34 + i] = p.data[1][34 + i] = (unsigned char)i;
  expect_same(&p, "a block of far scales");
  for (uint64_t at = 0; at < p.bytes; at += 34) {
    memcpy(p.data[0] + at, at % 3 ? &largest : &small, 2);
    memcpy(p.data[1] + at, at % 5 ? &largest : &large, 2);
    for (uint64_t i = 2; i < 34; ++i) {
      p.data[0][at + i] = (unsigned char)random_u64(&random);
      p.data[1][at + i] = (unsigned char)-p.data[0][at + i];
    }
  }
  expect_same(&p, "largest scales and opposite integers");
  pair_free(&p);
}

/* Sides that differ by noise alone: every scale by a little, integers by one at most, and never in sign. */
static void test_requantized(void **state) {
  (void)state;
  uint64_t random = SEED;
  pair p = pair_make(TM_FORMAT_Q8_0, 3 * TM_SUM_SUPERBLOCK + 7 * 32);
  for (uint64_t at = 0; at < p.bytes; at += 34) {
    const uint16_t bits = (uint16_t)(0x1c00 + random_below(&random, 900)), other = (uint16_t)(bits + random_below(&random, 40));
    memcpy(p.data[0] + at, &bits, 2);
    memcpy(p.data[1] + at, random_below(&random, 4) ? &other : &bits, 2);
    for (uint64_t i = 2; i < 34; ++i) {
      const int x = (int)random_below(&random, 253) - 126, change = (int)random_below(&random, 2);
      p.data[0][at + i] = (unsigned char)x;
      p.data[1][at + i] = (unsigned char)(x > 0 ? x - change : x + change);
    }
  }
  expect_same(&p, "requantized");
  pair_free(&p);
}

/* No quantizer makes a -128, which has no opposite number; its squares and products are sums like any. */
static void test_lowest_integers(void **state) {
  (void)state;
  uint64_t random = SEED;
  static const uint64_t one_in[] = { 1, 2, 50, 600 };
  for (size_t k = 0; k < 4 * sizeof one_in / sizeof one_in[0]; ++k) {
    pair p = pair_make(TM_FORMAT_Q8_0, 2 * TM_SUM_SUPERBLOCK + 5 * 32);
    const int is_alike = k & 1, has_same_scales = (k >> 1) & 1;
    for (uint64_t at = 0; at < p.bytes; at += 34) {
      for (int side = 0; side < 2; ++side) {
        const uint16_t bits = (uint16_t)(0x1c00 + (has_same_scales ? at % 500 : random_below(&random, 500)));
        memcpy(p.data[side] + at, &bits, 2);
        for (uint64_t i = 2; i < 34; ++i)
          p.data[side][at + i] = random_below(&random, one_in[k / 4]) == 0 ? 0x80 : (unsigned char)random_u64(&random);
      }
      if (is_alike && at % 102 != 0) memcpy(p.data[1] + at, p.data[0] + at, 34);
    }
    expect_same(&p, "integers that are -128");
    pair_free(&p);
  }
}

/* Of 512 elements some blocks tell their figures and others do not: scales that are the same, near, far apart, of zero or of
   opposite signs, with integers that are the same, near or of any size, after pairs that leave more or less to be found. */
static void test_some_blocks_tell(void **state) {
  (void)state;
  static const uint16_t bits[] = { 0x1c00, 0x1c00, 0x1c01, 0x1c08, 0x1c60, 0x1000, 0x2000, 0x0000, 0x8000, 0x9c00, 0x0001 };
  static const int8_t firsts[][2] = { { 0, 0 }, { 100, 99 }, { 1, 0 }, { 2, -2 }, { 127, -127 } };
  uint64_t random = SEED;
  for (size_t first = 0; first < sizeof firsts / sizeof firsts[0]; ++first) {
    pair p = pair_make(TM_FORMAT_Q8_0, TM_SUM_SUPERBLOCK + 3 * 32);
    for (uint64_t at = 0; at < p.bytes; at += 34) {
      const uint64_t reach = random_below(&random, 3);
      for (int side = 0; side < 2; ++side)
        memcpy(p.data[side] + at, &bits[random_below(&random, 3) ? 0 : random_below(&random, sizeof bits / 2)], 2);
      for (uint64_t i = 2; i < 34; ++i) {
        const int x = (int)random_below(&random, 253) - 126;
        p.data[0][at + i] = (unsigned char)x;
        p.data[1][at + i] = (unsigned char)(reach < 2 ? x + (int)random_below(&random, reach + 1) : (int)random_u64(&random));
      }
    }
    memcpy(p.data[0], &bits[0], 2);
    memcpy(p.data[1], &bits[0], 2);
    p.data[0][2] = (unsigned char)firsts[first][0];
    p.data[1][2] = (unsigned char)firsts[first][1];
    expect_same(&p, "some blocks that tell");
    pair_free(&p);
  }
}

/* One superblock of many cannot be summed without lanes: the ones after it are right whichever way they are done. */
static void test_one_odd_superblock(void **state) {
  (void)state;
  uint64_t random = SEED;
  pair p = pair_make(TM_FORMAT_Q8_0, 20 * TM_SUM_SUPERBLOCK);
  fill_quants(&p, SLIGHTLY_OFF, 0, &random);
  const uint64_t block = TM_SUM_SUPERBLOCK / 32 + 900;
  const uint16_t large = f16_bits(30000);
  memcpy(p.data[1] + block * 34, &large, 2);
  expect_same(&p, "one large scale");
  p.data[0][block * 34 + 2] = 0x80;
  expect_same(&p, "one lowest integer");
  pair_free(&p);
}

/* Scales so far apart that a difference has more bits than f32, in superblocks with so little in them that no sum rounds. */
static void test_far_scales(void **state) {
  (void)state;
  const uint16_t large = f16_bits(0x1.ffcp0), small = f16_bits(-0x1p-24);
  pair p = pair_make(TM_FORMAT_Q8_0, 2 * TM_SUM_SUPERBLOCK);
  memset(p.data[0], 0, p.bytes);
  memset(p.data[1], 0, p.bytes);
  for (uint64_t i = 0; i < 2; ++i) {
    unsigned char *first = p.data[0] + i * p.bytes / 2, *second = p.data[1] + i * p.bytes / 2;
    memcpy(first, &large, 2);
    memcpy(second, &small, 2);
    first[7] = 1;
    second[7] = i == 0;                 /* the test's host begins with the last superblock */
  }
  expect_same(&p, "far scales");
  pair_free(&p);
}

/* Integers beyond 2^53 have equal f64 where they differ. */
static void test_wide_integers(void **state) {
  (void)state;
  static const uint32_t formats[] = { TM_FORMAT_I64, TM_FORMAT_U64 };
  uint64_t random = SEED;
  for (size_t f = 0; f < 2; ++f) {
    pair p = pair_make(formats[f], 3 * TM_SUM_BLOCK + 5);
    for (uint64_t i = 0; i < p.elements; ++i) {
      const uint64_t a = random_u64(&random) >> (i % 3 * 5), b = a + random_below(&random, 3);
      memcpy(p.data[0] + 8 * i, &a, 8);
      memcpy(p.data[1] + 8 * i, &b, 8);
    }
    expect_same(&p, "wide integers");
    pair_free(&p);
  }
}

/* Bytes that are neither 0 nor 1 are true, but not equal to others that are. */
static void test_bools(void **state) {
  (void)state;
  uint64_t random = SEED;
  pair p = pair_make(TM_FORMAT_BOOL, 3 * TM_SUM_BLOCK + 5);
  for (uint64_t i = 0; i < p.elements; ++i) {
    p.data[0][i] = (unsigned char)random_below(&random, 3);
    p.data[1][i] = random_below(&random, 3) ? p.data[0][i] : 0xff;
  }
  expect_same(&p, "bytes of bool");
  pair_free(&p);
}

/* Zeros of either sign, NaN and what only just differs, of each two formats. */
static void test_two_formats(void **state) {
  (void)state;
  static const double values[] = { 0.0, -0.0, 1, -1, NAN, -NAN, INFINITY, -INFINITY, 3, 0x1p53, -0x1p62, 0x1p63, 0x1p64 };
  const uint64_t count = sizeof values / sizeof values[0];
  for (size_t f = 0; f < PLAIN_FORMATS * PLAIN_FORMATS; ++f) {
    const uint32_t formats[2] = { plain_formats[f / PLAIN_FORMATS], plain_formats[f % PLAIN_FORMATS] };
    if (formats[0] == formats[1]) continue;
    pair p = pair_make_of(formats[0], formats[1], TM_SUM_BLOCK + 41);
    for (uint64_t i = 0; i < p.elements; ++i) {
      const uint32_t steps[2] = { tm_format_find(formats[0])->block_bytes, tm_format_find(formats[1])->block_bytes };
      tm_codec_find(formats[0])->encode(&values[i % count], 1, p.data[0] + i * steps[0]);
      tm_codec_find(formats[1])->encode(&values[(i + (i / count % 2) * i / 64) % count], 1, p.data[1] + i * steps[1]);
      if (formats[0] == TM_FORMAT_I64 || formats[0] == TM_FORMAT_U64) p.data[0][i * 8] ^= (unsigned char)(i % 3);
      if (formats[1] == TM_FORMAT_I64 || formats[1] == TM_FORMAT_U64) p.data[1][i * 8] ^= (unsigned char)(i % 5 % 3);
    }
    expect_same(&p, "values of two formats");
    pair_free(&p);
  }
}

/* ---- what was tested ---- */

/* After all others. */
static void expect_runs(size_t set) {
  kernel_host host;
  kernel_host_open(&host, probe_entry(), sets[set], 1, 0);
  const bool is_absent = host.status == TM_ERROR_NO_DEVICE;
  kernel_host_close(&host);
  if (is_absent) {
    assert_int_equal(runs[set], 0);
    print_message("skipped: this processor has no %s\n", sets[set]);
    skip();
  }
  assert_true(runs[set] > 0);
}

static void test_avx2_was_tested(void **state) {
  (void)state;
  expect_runs(0);
}

static void test_avx512_was_tested(void **state) {
  (void)state;
  expect_runs(1);
}

int main(void) {
  kernel_host host;
  if (!probe_open(&host, 1, 0)) return 77;
  kernel_host_close(&host);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_few_differences),  cmocka_unit_test(test_lengths),         cmocka_unit_test(test_special_values),
    cmocka_unit_test(test_nan_payloads),     cmocka_unit_test(test_units_apart),     cmocka_unit_test(test_close_quotients),
    cmocka_unit_test(test_second_quotient),
    cmocka_unit_test(test_next_quotient), cmocka_unit_test(test_borders_of_chains), cmocka_unit_test(test_two_short_formats),
    cmocka_unit_test(test_small_integers),   cmocka_unit_test(test_requantized),
    cmocka_unit_test(test_lowest_integers),
    cmocka_unit_test(test_some_blocks_tell),
    cmocka_unit_test(test_integers_tell_enough), cmocka_unit_test(test_sums_beyond_f64),
    cmocka_unit_test(test_quants),           cmocka_unit_test(test_one_odd_superblock), cmocka_unit_test(test_wide_integers),
    cmocka_unit_test(test_far_scales),       cmocka_unit_test(test_bools),           cmocka_unit_test(test_two_formats),
    cmocka_unit_test(test_avx2_was_tested),  cmocka_unit_test(test_avx512_was_tested),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
