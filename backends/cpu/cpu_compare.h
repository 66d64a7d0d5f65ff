/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_compare.h - what the kernels of TM_OP_COMPARE_TENSORS share.  Pairs come in blocks of the canonical order
 * (canonical_sum.h), decoded to f32 where both formats fit it and to f64 otherwise; an instruction set gives the functions
 * that add a decoded block to a state.  A block with the same bytes on both sides is decoded once, and added once as long
 * as all blocks of its superblock before it were so too.
 *
 *   the same bytes:  decode one side  -> add_equal_*  -> norm_a, which is dot and norm_b as well
 *   others:          decode both      -> add_*        -> four sums, largest differences
 *   two floats of 16 bits or less: by chains of f32 (cpu_compare_chains.c); as they lie where nothing is special about a block
 */
#ifndef CPU_COMPARE_H
#define CPU_COMPARE_H

#include <stdint.h>
#include <string.h>

#include "tensormorph/canonical_sum.h"

/* Nearer than a single stream is asked for (cpu_simd.h): measured to be better for two. */
#define CPU_COMPARE_AHEAD 2048
#define CPU_COMPARE_PREFETCH(pointer) __builtin_prefetch((const char *)(pointer) + CPU_COMPARE_AHEAD)

typedef struct cpu_compare_lanes {
  double squared[TM_SUM_LANES], dot[TM_SUM_LANES], norm_a[TM_SUM_LANES], norm_b[TM_SUM_LANES];
} cpu_compare_lanes;

/* Which pairs of 16-bit floats, by their bits, have no larger quotient than `best` (cpu_compare_window.c).  Zeros are one: for 0. */
typedef struct cpu_compare_window {
  double   best;
  uint16_t near;                /* such as have |x - y| <= near in the circle of 16 bits, */
  uint16_t small;               /* and 2 x >= small, unless they are equal */
  float    threshold;           /* below 1: a quotient is larger than the best one just if f32 shows it to be above this */
} cpu_compare_window;

typedef struct cpu_compare_state {
  uint64_t           equal, nonfinite;
  double             max_abs, max_rel;
  cpu_compare_window window;    /* of a quotient up to max_rel */
  uint64_t           is_alike;  /* 1: all pairs of the superblock so far had equal bits; dot and norm_b are not kept */
  cpu_compare_lanes  lanes;     /* of one superblock, +0 when it starts */
} cpu_compare_state;

/* 512 elements of blocks with scales. */
#define CPU_COMPARE_QUANTS 16
#define CPU_COMPARE_ALL    0xffffu      /* a bit for each */
typedef struct cpu_compare_quants {
  const unsigned char *data;            /* the blocks as they lie, */
  uint64_t             block_bytes;     /* so many each */
  const unsigned char *integers;        /* signed bytes: 32 at each multiple of `stride` */
  uint64_t             stride;
  uint16_t             bits[CPU_COMPARE_QUANTS];        /* of the scales */
  float                scales[CPU_COMPARE_QUANTS];
  unsigned char        unpacked[TM_SUM_BLOCK];          /* the integers, where the format has them in another form */
} cpu_compare_quants;

#define CPU_COMPARE_LISTED 64u  /* so many are looked at together */

/* Sums of one superblock in no order (cpu_compare_blocks.c), in eight parts each. */
typedef struct cpu_compare_totals {
  double   dot[8], norm_a[8], norm_b[8];
  double   same[8];                     /* of blocks with equal bytes: belongs to all three */
  uint64_t unequal[8];                  /* pairs that are not equal, of chunks counted as equal */
  uint16_t smallest_a[CPU_COMPARE_QUANTS], smallest_b[CPU_COMPARE_QUANTS];      /* scales, as bits less 1 */
  uint32_t begin;                       /* the number of the chunk's first block */
  uint32_t listed_count;
  uint32_t listed[CPU_COMPARE_LISTED + CPU_COMPARE_QUANTS];     /* numbers of blocks to be looked at later */
} cpu_compare_totals;

/* Functions over whole blocks, at any address.  Those of a type `add` return 0 if some value is not finite, or a sum of f64
   became so: then only equal pairs have been counted, and the caller replaces what is not finite by zeros and calls again
   with `is_masked` set, which counts no equal pairs and always adds. */
typedef struct cpu_compare_kernels {
  int (*add_f32)(const void *a, const void *b, int is_masked, cpu_compare_state *state);
  int (*add_f64)(const void *a, const void *b, int is_masked, cpu_compare_state *state);
  /* Of blocks as they lie, in which nothing is special: 0 leaves the state as it was. */
  int (*add_bf16)(const unsigned char *a, const unsigned char *b, cpu_compare_state *state);
  int (*add_f16)(const unsigned char *a, const unsigned char *b, cpu_compare_state *state);
  /* Of pairs of which both sides are `a`. */
  int (*add_equal_f32)(const void *a, int is_masked, cpu_compare_state *state);
  int (*add_equal_f64)(const void *a, int is_masked, cpu_compare_state *state);
  /* Of some blocks, by bits: whether some difference, or quotient, is above the given one as far as f32 shows; adds the number of
     equal pairs. */
  int (*compare_quants)(const cpu_compare_quants *a, const cpu_compare_quants *b, uint32_t blocks, float max_abs, float max_rel,
                        uint64_t *equal);
  /* Adds the sums of all blocks, and the figures of those whose integers tell them; lists other ones, or returns bits of them. */
  uint32_t (*add_integers)(const cpu_compare_quants *a, const cpu_compare_quants *b, cpu_compare_state *state,
                           cpu_compare_totals *totals);
  /* Whether all bytes are the same; stops early. */
  int (*same_bytes)(const unsigned char *a, const unsigned char *b, uint64_t bytes);
} cpu_compare_kernels;

/* Kernels find a larger quotient |a - b| / max(|a|, |b|) without dividing: a rounded quotient is above the largest so far, `best`,
   only where |a - b| - best * max, one fused operation, is half a unit of best's last place times max, or more.  The margin is
   a trifle less than that half unit, for the rounding of the difference; so a quotient that is as large as the best one, which
   is common where there are few bits, is not taken for a larger one because the best one was rounded down. */
static inline double cpu_compare_margin(double best) {
  const uint64_t half_unit = UINT64_C(53) << 52;        /* of the exponent */
  uint64_t bits;
  memcpy(&bits, &best, sizeof bits);
  bits &= UINT64_C(0x7ff) << 52;
  return bits > half_unit ? tm_sum_from_bits(bits - half_unit) * (1 - 0x1p-40) : 0;
}

/* The largest f32 that is not above this one, which is not negative. */
static inline float cpu_compare_rounded_down(double value) {
  float nearest = (float)value;
  uint32_t bits;
  if (!((double)nearest > value)) return nearest;
  memcpy(&bits, &nearest, sizeof bits);
  bits--;
  memcpy(&nearest, &bits, sizeof bits);
  return nearest;
}

/* Asks for what follows some blocks, of 128 bytes and a bit.  Kernels ask while they work: asking for much at once has to wait. */
static inline void cpu_compare_prefetch(const cpu_compare_quants *q, uint64_t block) {
  for (int line = 0; line < 3; ++line) CPU_COMPARE_PREFETCH(q->data + block * q->block_bytes + 64 * line);
}

extern const cpu_compare_kernels cpu_compare_avx2;
extern const cpu_compare_kernels cpu_compare_avx512;
extern const cpu_compare_kernels cpu_compare_vnni;      /* AVX-512 and more */

/* If the largest of a sum's 32 chains of squares, folded to 16, is in [least, most), then the largest of its 512 terms is such that
   it goes by chains (canonical_sum.h); and then nothing is infinite or NaN. */
#define CPU_COMPARE_CHAIN_LEAST 0x1p-90f
#define CPU_COMPARE_CHAIN_MOST  0x1p110f

/* Of AVX2, for both. */
void cpu_compare_open_window(int is_f16, cpu_compare_state *state);     /* for its max_rel */
int cpu_compare_add_equal_bf16(const unsigned char *a, const unsigned char *b, cpu_compare_state *state);    /* if they are */
int cpu_compare_add_equal_f16(const unsigned char *a, const unsigned char *b, cpu_compare_state *state);
int cpu_compare_add_bf16(const unsigned char *a, const unsigned char *b, cpu_compare_state *state);
int cpu_compare_add_f16(const unsigned char *a, const unsigned char *b, cpu_compare_state *state);
void cpu_compare_find_largest_16bit(const unsigned char *a, const unsigned char *b, int is_f16, cpu_compare_state *state);
void cpu_compare_add_chains(const float *a, const float *b, cpu_compare_state *state);   /* all but equal pairs */
void cpu_compare_add_equal_chains(const float *a, cpu_compare_state *state);
void cpu_compare_find_largest(const void *a, const void *b, cpu_compare_state *state); /* the maxima, by a finite block of f32 */
int cpu_compare_add_equal_f32(const void *a, int is_masked, cpu_compare_state *state);
int cpu_compare_add_f64(const void *a, const void *b, int is_masked, cpu_compare_state *state);
int cpu_compare_add_equal_f64(const void *a, int is_masked, cpu_compare_state *state);

/* Copies of two blocks with zeros in place of pairs that are not finite; returns the number of these. */
uint64_t cpu_compare_mask_f32(const void *a, const void *b, float *out_a, float *out_b);
uint64_t cpu_compare_mask_f64(const void *a, const void *b, double *out_a, double *out_b);

uint64_t cpu_compare_count_same(const void *a, const void *b);   /* pairs of f32 with equal bits */

/* Pairs of two formats with equal values: 0 and -0 are equal, and so is any NaN to another one. */
uint64_t cpu_compare_count_f32(const void *a, const void *b);
uint64_t cpu_compare_count_f64(const void *a, const void *b);

uint32_t cpu_compare_add_integers(const cpu_compare_quants *a, const cpu_compare_quants *b, cpu_compare_state *state,
                                  cpu_compare_totals *totals);
uint32_t cpu_compare_add_integers_vnni(const cpu_compare_quants *a, const cpu_compare_quants *b, cpu_compare_state *state,
                                       cpu_compare_totals *totals);
/* Bits of blocks whose scales are of opposite signs or of zero, whose zeros have signs. */
uint32_t cpu_compare_odd_blocks(const cpu_compare_quants *a, const cpu_compare_quants *b);
uint64_t cpu_compare_count_equal_integers(const cpu_compare_quants *a, const cpu_compare_quants *b, uint32_t blocks);
void cpu_compare_add_equal_integers(const cpu_compare_quants *a, cpu_compare_totals *totals);
int cpu_compare_quants_avx2(const cpu_compare_quants *a, const cpu_compare_quants *b, uint32_t blocks, float max_abs, float max_rel,
                            uint64_t *equal);

/* How a block of a format is read. */
typedef struct cpu_compare_format {
  uint32_t format;
  uint32_t bytes;               /* of so many elements: */
  uint32_t elements;
  uint32_t decode_ps;           /* picoseconds an element, for estimates */
  uint8_t  zero_byte;           /* of quants: of integers that are 0 */
  uint8_t  has_quants;          /* blocks of an f16 scale and integers: two of them are compared as such */
  uint8_t  is_wide_integer;     /* f64 does not hold all of it */
  uint8_t  is_short_float;      /* of 16 bits or less: two of them are summed by chains of f32 */
  void   (*to_f32)(const unsigned char *data, float *to);       /* NULL: it is f32, or does not fit */
  void   (*to_f16)(const unsigned char *data, unsigned char *to);       /* of 8-bit floats: other bits where theirs are others */
  void   (*to_f64)(const unsigned char *data, double *to);      /* NULL: it fits f32, or is f64 */
} cpu_compare_format;

/* Looks at the blocks that were listed, of those from `a` and `b` on: of AVX-512 VNNI, as is who lists them. */
void cpu_compare_look_at_listed(const cpu_compare_format *format, const unsigned char *a, const unsigned char *b,
                                cpu_compare_state *state, cpu_compare_totals *totals);
/* The maxima, by a finite chunk of blocks. */
void cpu_compare_find_largest_of_blocks(const cpu_compare_format *format, const unsigned char *a, const unsigned char *b,
                                        cpu_compare_state *state);

/* So many times 512 elements of one block format, up to a superblock; the sums go to `words` in the order of cpu_compare_lanes. */
void cpu_compare_add_quants(const cpu_compare_kernels *kernels, const cpu_compare_format *format, const unsigned char *a,
                            const unsigned char *b, uint64_t chunks, cpu_compare_state *state, uint64_t (*words)[TM_SUM_WORDS]);

/* A block of which one side or both are wide integers; a, b: its values as f64, of any alignment. */
void cpu_compare_add_wide(const cpu_compare_format *const *formats, const unsigned char *data_a, const unsigned char *data_b,
                          const void *a, const void *b, cpu_compare_state *state);

/* NULL if it is none of those that can be read. */
const cpu_compare_format *cpu_compare_format_find(uint32_t format);

/* A block of f32 as f64; bits of NaN are kept. */
void cpu_compare_widen(const void *from, double *to);

#endif
