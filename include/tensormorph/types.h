/* SPDX-License-Identifier: Apache-2.0 */
/*
 * types.h - the vocabulary shared by applications (tensormorph.h), by backends (plugin.h) and by the library itself:
 * statuses, formats, operands, operation numbers with their attributes, numerics classes, and the results of the two
 * one-pass operations.  It declares data only.  Compiles alone as C11 and C++17 on 64-bit targets.
 *
 * Conventions: integers have fixed width; sizes are bytes unless the name says otherwise (_count, _ns, _elements); zero
 * means "none" or "unknown"; numbers once given are never reused; every list may grow at its end.
 */
#ifndef TENSORMORPH_TYPES_H
#define TENSORMORPH_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------------------------- statuses ---- */

/* Zero is success, positive values are ordinary answers, negative values are errors. */
typedef int32_t tm_status;

#define TM_OK                   0
#define TM_UNSUPPORTED          1   /* "not me": an ordinary, silent answer; the caller tries somebody else */
#define TM_PENDING              2   /* not finished yet (a wait that ran out of time, a poll) */
#define TM_BUSY                 3   /* a queue is full; nothing was enqueued; try again after a wait */
#define TM_STALE                4   /* the device's epoch moved since the query: ask again */
#define TM_END                  5   /* an enumeration has no item at this index */

#define TM_ERROR_ARGUMENT     (-1)  /* the caller broke a documented rule; nothing was done */
#define TM_ERROR_NOT_FOUND    (-2)  /* a file, tensor, device or option of that name does not exist */
#define TM_ERROR_NO_MEMORY    (-3)  /* an allocation failed or a memory limit was reached */
#define TM_ERROR_NO_DEVICE    (-4)  /* no device that may be used can run this */
#define TM_ERROR_DEVICE_LOST  (-5)  /* the device is gone; its buffers are lost */
#define TM_ERROR_IO           (-6)  /* the operating system refused a read or a write */
#define TM_ERROR_CORRUPT      (-7)  /* a file's content contradicts its format or itself */
#define TM_ERROR_CHANGED      (-8)  /* a file was changed or truncated while it was read */
#define TM_ERROR_CANCELLED    (-9)  /* the work was cancelled before it finished */
#define TM_ERROR_PREDECESSOR (-10)  /* earlier work in the same queue failed, so this was not started */
#define TM_ERROR_LIMIT       (-11)  /* a limit that the caller set would be exceeded; the text names the option */
#define TM_ERROR_INTERNAL    (-12)  /* a defect: of the library, or of a backend that broke its promise */

/*
 * What went wrong, in words.  The caller owns it, sets struct_size and may pass NULL wherever one is accepted.  It is
 * written only when the call fails.  `text` is NUL-terminated UTF-8: what, where, expected, found, what to do.
 */
typedef struct tm_error {
  uint32_t  struct_size;
  tm_status code;
  int64_t   native_code;        /* errno or a driver's own number; 0 if there is none */
  char      text[1008];
} tm_error;

/* A string that is not NUL-terminated.  Owner and lifetime are said where it is used. */
typedef struct tm_string {
  const char *data;             /* UTF-8; may be NULL if length is 0 */
  uint64_t    length;           /* bytes */
} tm_string;

/* ----------------------------------------------------------------------------------------------------- formats ---- */

/*
 * A format says how elements lie in memory.  All are little-endian.  Plain formats store one element in a whole number
 * of bytes.  Packed formats (i4, u4, f4, f6) and block formats store a fixed number of elements in a block of bytes;
 * blocks run along the last axis only, and no view begins inside one.
 */
#define TM_FORMAT_NONE          0u
#define TM_FORMAT_F64           1u
#define TM_FORMAT_F32           2u
#define TM_FORMAT_F16           3u  /* IEEE 754 binary16 */
#define TM_FORMAT_BF16          4u  /* the upper half of an f32 */
#define TM_FORMAT_F8_E4M3FN     5u  /* OCP OFP8: no infinity, NaN is 0x7f and 0xff */
#define TM_FORMAT_F8_E5M2       6u  /* OCP OFP8: infinities and NaN as in f16 */
#define TM_FORMAT_F8_E8M0       7u  /* OCP MX scale: 2^(byte - 127), 0xff is NaN; size known, no arithmetic */
#define TM_FORMAT_F6_E2M3       8u  /* OCP MX: 4 elements in 3 bytes; size known, no arithmetic */
#define TM_FORMAT_F6_E3M2       9u  /* OCP MX: 4 elements in 3 bytes; size known, no arithmetic */
#define TM_FORMAT_F4_E2M1      10u  /* OCP MX: 2 elements in a byte; size known, no arithmetic */
#define TM_FORMAT_I4           16u  /* two's complement, 2 in a byte, the earlier element in the low half */
#define TM_FORMAT_U4           17u
#define TM_FORMAT_I8           18u
#define TM_FORMAT_U8           19u
#define TM_FORMAT_I16          20u
#define TM_FORMAT_U16          21u
#define TM_FORMAT_I32          22u
#define TM_FORMAT_U32          23u
#define TM_FORMAT_I64          24u
#define TM_FORMAT_U64          25u
#define TM_FORMAT_BOOL         26u  /* one byte; 0 is false, anything else is true; written as 1 */
#define TM_FORMAT_C64          32u  /* two f32: real, imaginary; size known, no arithmetic */

/* Block formats of the GGUF family: TM_FORMAT_GGUF + the type number in the file.
   (Sizes and layouts: ggml's block formats; GGUF numbers of plain formats map to the plain formats above.)
   Which of them operations can read, and which they can write, tm_format_describe says. */
#define TM_FORMAT_GGUF      0x100u
#define TM_FORMAT_Q4_0      0x102u  /* 32 elements in 18 bytes: f16 scale d, 16 bytes of nibbles (low: 0..15, high: 16..31); (q - 8) * d */
#define TM_FORMAT_Q4_1      0x103u
#define TM_FORMAT_Q5_0      0x106u
#define TM_FORMAT_Q5_1      0x107u
#define TM_FORMAT_Q8_0      0x108u  /* 32 elements in 34 bytes: f16 scale d, 32 i8; q * d */
#define TM_FORMAT_Q8_1      0x109u
#define TM_FORMAT_Q2_K      0x10au
#define TM_FORMAT_Q3_K      0x10bu
#define TM_FORMAT_Q4_K      0x10cu
#define TM_FORMAT_Q5_K      0x10du
#define TM_FORMAT_Q6_K      0x10eu
#define TM_FORMAT_Q8_K      0x10fu
#define TM_FORMAT_IQ2_XXS   0x110u
#define TM_FORMAT_IQ2_XS    0x111u
#define TM_FORMAT_IQ3_XXS   0x112u
#define TM_FORMAT_IQ1_S     0x113u
#define TM_FORMAT_IQ4_NL    0x114u
#define TM_FORMAT_IQ3_S     0x115u
#define TM_FORMAT_IQ2_S     0x116u
#define TM_FORMAT_IQ4_XS    0x117u
#define TM_FORMAT_IQ1_M     0x11du
#define TM_FORMAT_TQ1_0     0x122u
#define TM_FORMAT_TQ2_0     0x123u
#define TM_FORMAT_MXFP4     0x127u
#define TM_FORMAT_NVFP4     0x128u
#define TM_FORMAT_Q1_0      0x129u
#define TM_FORMAT_Q2_0      0x12au

/* From here on a number is private to one build of one backend: a packed layout that only it can read.  An operand in it has
   the rank and dims of what was converted, strides of zero, and the byte_count that the backend asked for. */
#define TM_FORMAT_PRIVATE 0x80000000u

/* ---------------------------------------------------------------------------------------------------- operands ---- */

#define TM_MAX_RANK 8
#define TM_MAX_OPERANDS 16      /* inputs and outputs of one operation together */

/* Facts: true statements of the host about an operand.  Unknown ones may be ignored. */
#define TM_OPERAND_CONTIGUOUS  0x1u   /* dense row-major: strides follow from dims and format */
#define TM_OPERAND_CONSTANT    0x2u   /* the bytes do not change between launches (weights) */
#define TM_OPERAND_SCALAR      0x4u   /* exactly one element */
#define TM_OPERAND_IN_PLACE    0x8u   /* an output: every launch binds it to the memory of the first input for which alias_mask allows it;
                                         what is there already need not be copied.  Where none is allowed it says nothing */

/*
 * One tensor as an operation sees it: pure data without addresses.  dims and strides are outermost first; entries from
 * `rank` on are zero.  strides_bytes[i] is the distance between neighbours on axis i (0 = broadcast, negative = walks
 * backwards); on the last axis of a packed or block format it is the distance between blocks and must equal the block's
 * bytes.  A 0-d tensor has rank 0 and one element; a tensor with a zero dim has none.
 */
typedef struct tm_operand {
  uint32_t format;
  uint32_t rank;                /* 0..TM_MAX_RANK */
  uint64_t dims[TM_MAX_RANK];
  int64_t  strides_bytes[TM_MAX_RANK];
  uint64_t element_count;       /* product of dims; derived by the host */
  uint64_t byte_count;          /* bytes from the lowest to the end of the highest block touched; derived by the host */
  uint32_t alignment;           /* every address it will be bound at is a multiple of this power of two */
  uint32_t flags;               /* TM_OPERAND_* */
} tm_operand;

/* -------------------------------------------------------------------------------------------------- operations ---- */

/*
 * Operation numbers are stable and append-only; versions start at 1.  Shapes: inputs -> outputs.  "Broadcast" is the
 * numpy rule, expressed by equal ranks and zero strides once the host has prepared the operands.  Arithmetic on float
 * formats is that of the real numbers followed by one rounding to the output's format (nearest, ties to even) unless
 * the row says otherwise; NaN and infinities follow IEEE 754.  Which formats y may have the row says, the one that it
 * usually has first; "any float" is f64 f32 f16 bf16 f8_e4m3fn f8_e5m2, "any integer" is i8 to u64; later minors may add formats.
 * Integer add, sub, mul, neg and abs wrap; x/0 is 0.
 * Every operation is total: each input bit pattern has a defined result, but for one thing: the sign and payload of a
 * NaN that was computed.  Where an operand itself is the result (moves, neg, abs, relu, clamp, where, min, max, and lerp's
 * exact cases) all its bits are kept, also those of a NaN.
 */
#define TM_OP_NONE               0u
/* moving: bits are kept */
#define TM_OP_COPY               1u  /* x -> y, same format and dims, any strides */
#define TM_OP_TRANSPOSE          2u  /* x -> y, attributes tm_transpose_attributes */
#define TM_OP_GATHER             3u  /* x, indices(i32|i64) -> y: x's axis replaced by the indices' axes; one outside gives zero bits; tm_axis_attributes */
#define TM_OP_FILL               4u  /* value (0-d) -> y, same format */
#define TM_OP_CONVERT            5u  /* x -> y: between a public format and a backend's private one, same dims */
/* changing format */
#define TM_OP_CAST               6u  /* x -> y, same dims, plain or 4-bit formats; tm_cast_attributes */
#define TM_OP_QUANTIZE           7u  /* x (f32|f16|bf16|f64) -> y (q8_0, q4_0), same dims; the family's reference encoder; a block with a value that
                                         is not finite in f32 decodes to NaN throughout */
#define TM_OP_DEQUANTIZE         8u  /* x (block format with a decoder) -> y (f32 or any float), same dims */
/* elementwise, two operands, broadcast: a, b -> y, all of one format */
#define TM_OP_ADD               16u
#define TM_OP_SUB               17u
#define TM_OP_MUL               18u
#define TM_OP_DIV               19u  /* integers truncate towards zero; MIN / -1 wraps to MIN */
#define TM_OP_COMPARE           20u  /* a, b -> bool; tm_compare_attributes; NaN is unordered: only "not equal" is true */
/* elementwise, one operand: x -> y of the same format */
#define TM_OP_NEG               32u  /* flips the sign bit, also of NaN */
#define TM_OP_ABS               33u  /* clears the sign bit, also of NaN */
#define TM_OP_SQRT              34u
#define TM_OP_EXP               35u
#define TM_OP_LOG               36u
#define TM_OP_TANH              37u
#define TM_OP_SIGMOID           38u
#define TM_OP_ERF               39u
#define TM_OP_GELU              40u  /* x * Phi(x); tm_gelu_attributes may ask for the tanh form */
#define TM_OP_SILU              41u  /* x * sigmoid(x) */
#define TM_OP_RELU              42u  /* x < 0 ? +0 : x, so NaN passes and -0 stays */
/* elementwise, three operands, broadcast */
#define TM_OP_CLAMP             48u  /* x, low, high -> y: x < low ? low : x > high ? high : x; NaN passes */
#define TM_OP_WHERE             49u  /* condition (bool), a, b -> y */
#define TM_OP_LERP              50u  /* a, b, t -> y: a + t*(b - a); t = 0 or a = b gives a, else t = 1 gives b, bit for bit;
                                         computed in f64 (three roundings), then rounded to y's format */
/* merging: many tensors of equal dims become one.  Each input is of any float or block format of its own; y: f32 or any float.
   The second input holds the numbers that go with the others.  Arithmetic is f64 in the order written, each step rounded, and
   y one rounding of the last one.  13 inputs beside these two at most, as TM_MAX_OPERANDS has it */
#define TM_OP_WEIGHTED_SUM      56u  /* x_0, weights(f64[n]), x_1 .. x_(n-1) -> y = ((w_0*x_0) + w_1*x_1) + ... */
#define TM_OP_DARE_SUM          57u  /* base, settings(u64[1 + 4n]), x_1 .. x_n -> y: base plus differences, some dropped */
#define TM_OP_TIES_SUM          58u  /* base, settings(f64[1 + 2n]), x_1 .. x_n -> y: base plus the differences that agree;
                                         tm_ties_attributes */
/* reductions over axes: x -> y, of x's format unless said otherwise; tm_reduce_attributes */
#define TM_OP_SUM               64u  /* floats: canonical order (canonical_sum.h); integers wrap in 64 bits, then in y's
                                         format; y: of floats x's or any float; of unsigned integers u64, of others and
                                         bool i64, or any integer */
#define TM_OP_MEAN              65u  /* floats: canonical sum / count, one rounding; of nothing: NaN; y: of floats x's, else f64, or
                                         any float */
#define TM_OP_MIN               66u  /* NaN wins (the first one's bits); of nothing: +Inf (f8_e4m3fn: NaN) or the largest integer; -0 < +0 */
#define TM_OP_MAX               67u  /* NaN wins (the first one's bits); of nothing: -Inf (f8_e4m3fn: NaN) or the smallest integer; -0 < +0 */
#define TM_OP_ARGMAX            68u  /* -> i64; over exactly one axis; NaN is the largest; the first wins a tie, -0 ties with +0; of nothing: -1 */
/* one pass over a whole tensor: results in 64-bit words, exact partial results that can be combined */
#define TM_OP_STATS             72u  /* x -> u64[TM_STATS_WORDS] */
#define TM_OP_COMPARE_TENSORS   73u  /* a, b -> u64[TM_COMPARISON_WORDS], same dims; version 2 */
#define TM_OP_MAGNITUDES        74u  /* x, base -> u64[TM_MAGNITUDE_BINS], same dims, floats or block formats each: how often which
                                         |x - base| occurs; tm_magnitudes_attributes */
/* linear algebra */
#define TM_OP_MATMUL            80u  /* a[..,M,K], b[..,K,N] -> y[..,M,N]; tm_matmul_attributes; b may be a block format (transposed, blocks along K);
                                         y: a's, of f8 f32, or any float; of i8 by i8 i32, no other */
#define TM_OP_MATMUL_SCALED     81u  /* a, b, a_scale, b_scale[, a_zero, b_zero] -> y; tm_matmul_scaled_attributes;
                                         y: f32 or any float */
/* along one axis; y: x's format or any float */
#define TM_OP_SOFTMAX           96u  /* x -> y; tm_axis_attributes; a row with +Inf or NaN, or all -Inf, gives NaN */
#define TM_OP_LAYER_NORM        97u  /* x, scale, shift -> y, over the last axis; tm_norm_attributes */
#define TM_OP_RMS_NORM          98u  /* x, scale -> y, over the last axis; tm_norm_attributes */
/* over tokens in order.  What changes from one run to the next (positions, indices, lengths) is an operand, i32 or i64 */
#define TM_OP_ROPE             112u  /* x[..,tokens,heads,dim], positions[tokens] -> y; x's dims; y: x's format or any float; tm_rope_attributes */
#define TM_OP_UPDATE           113u  /* state, rows, start -> y: the state with n rows along an axis replaced, bits kept, all of one format;
                                         tm_axis_attributes.  rows: state's dims but for n on the axis.  start is 0-d: row j replaces
                                         start + j; or has n indices, one a row.  What is outside is left out, of two rows for one
                                         place the later counts.  y may lie in state's memory, and running it again changes nothing */
#define TM_OP_ATTENTION        114u  /* q[tokens,heads,dim], k[capacity,kv_heads,dim], v[capacity,kv_heads,vdim], length (0-d)[, mask]
                                         -> y[tokens,heads,vdim]; all but the length may have a batch axis before these;
                                         tm_attention_attributes; q, k, v: any floats; y: q's format or any float */

/* Numbers from here on are handed out by the host to operations that a plugin brings along. */
#define TM_OP_FOREIGN 0x80000000u

/* Attributes: one struct an operation, zero-padded; an operation that names none has none.  Zero is the usual choice. */

typedef struct tm_transpose_attributes {
  uint8_t permutation[TM_MAX_RANK];   /* axis i of y is axis permutation[i] of x; entries from rank on are 0 */
} tm_transpose_attributes;

typedef struct tm_axis_attributes {
  uint32_t axis;                /* counted from the outermost, < rank */
  uint32_t reserved;
} tm_axis_attributes;

typedef struct tm_cast_attributes {
  uint32_t saturate;            /* 1: a finite float beyond the target's range becomes its largest finite value instead of Inf or NaN.
                                   Float to integer truncates towards zero, always saturates, and NaN gives 0; integer to
                                   integer keeps the low bits; to bool: x != 0, so NaN is true.  A NaN that stays a float keeps
                                   its sign and upper payload and becomes quiet.  The same format: bits are kept */
  uint32_t reserved;
} tm_cast_attributes;

#define TM_COMPARE_EQUAL          0u
#define TM_COMPARE_NOT_EQUAL      1u
#define TM_COMPARE_LESS           2u
#define TM_COMPARE_LESS_EQUAL     3u
#define TM_COMPARE_GREATER        4u
#define TM_COMPARE_GREATER_EQUAL  5u
typedef struct tm_compare_attributes {
  uint32_t predicate;           /* TM_COMPARE_* */
  uint32_t reserved;
} tm_compare_attributes;

typedef struct tm_gelu_attributes {
  uint32_t tanh_form;           /* 1: 0.5x(1 + tanh(sqrt(2/pi)(x + 0.044715x^3))) */
  uint32_t reserved;
} tm_gelu_attributes;

typedef struct tm_reduce_attributes {
  uint32_t axes;                /* bit i set: axis i is reduced; 0 reduces nothing */
  uint32_t keep_dims;           /* 1: reduced axes stay with extent 1; 0: they vanish */
} tm_reduce_attributes;

typedef struct tm_matmul_attributes {
  uint32_t transpose_a;         /* 1: a is [..,K,M] */
  uint32_t transpose_b;         /* 1: b is [..,N,K] */
} tm_matmul_attributes;

/*
 * y = sum_k (a - a_zero) * a_scale * (b - b_zero) * b_scale.  Scales are f32, zero points are i32.  A scale is 0-d (per
 * tensor), or has a's (b's) rank with each extent either 1 or dividing the operand's extent: element i on an axis uses
 * entry i / (extent / scale extent), so per-axis and per-block scales are the same rule.  Zero points have the scale's dims.
 */
typedef struct tm_matmul_scaled_attributes {
  uint32_t transpose_a;
  uint32_t transpose_b;
  uint32_t zero_points;         /* 1: operands a_zero and b_zero follow the scales */
  uint32_t reserved;
} tm_matmul_scaled_attributes;

typedef struct tm_norm_attributes {
  double epsilon;               /* added to the variance (layer_norm) or the mean square (rms_norm); >= 0 */
} tm_norm_attributes;

/*
 * Rotary position embedding (Su et al., arXiv 2104.09864, section 3.2).  Pair i of the first r = rotary_dims elements of each
 * head, (a, b), becomes (a cos t - b sin t, a sin t + b cos t) with t = position * scale * theta^(-2i/r) in f64; the other
 * elements stay as they are.  Of an i64 position the low 32 bits count, as an i32.  The terms of N2 are |a| and |b|, and n is 2.
 */
#define TM_ROPE_PAIRS  0u       /* pair i is elements 2i and 2i + 1 */
#define TM_ROPE_HALVES 1u       /* pair i is elements i and i + r/2 */
typedef struct tm_rope_attributes {
  double   theta;               /* finite, > 0; 0 counts as 10000 */
  double   scale;               /* of positions, finite; 0 counts as 1 */
  uint32_t rotary_dims;         /* even, at most dim; 0: all of dim, which is even then */
  uint32_t layout;              /* TM_ROPE_PAIRS or TM_ROPE_HALVES */
} tm_rope_attributes;

/*
 * Attention (Vaswani et al., arXiv 1706.03762, section 3.2.1) with grouped heads (Ainslie et al., arXiv 2305.13245): head h of
 * q reads head h / (heads / kv_heads) of k and v, where kv_heads divides heads.
 *
 *   s_j = scale * sum_d q_d k_jd + mask_j,   y = sum_j exp(s_j - max s) v_j / sum_j exp(s_j - max s)
 *
 * over the keys j < length, a length below 0 counting as 0, one above capacity as capacity; with `causal` over those of them
 * with j <= length - tokens + t for token t, so that q's tokens are the last of the keys.  The mask has the axes of
 * [batch, heads, tokens, capacity], or the last two or three of these, each with that extent or 1.  It is bool (only keys where
 * it is true) or a float (added; -Inf leaves the key out).  Without any key y is 0; a key with a score of +Inf or NaN, or only
 * ones of -Inf, gives NaN.  The terms of N2 are (p_j + 2^-64) |v_j| (1 + 2S), with p_j the weight of v_j and S the largest
 * |scale| sum_d |q_d k_jd| + |mask_j|, as far as S is at most 4096; n is capacity + dim.
 */
typedef struct tm_attention_attributes {
  double   scale;               /* finite; 0 counts as 1 / sqrt(dim) */
  uint32_t causal;
  uint32_t reserved;
} tm_attention_attributes;

/*
 * Merging.  A weighted sum whose weights are multiples of 2^-28 that add up to 1, none below 0, gives x where every x_i is x,
 * bit for bit, for values of f32 and narrower formats: products and partial sums then are exact.
 *
 * In the other two an input that equals the base in an element differs by 0 there (also where both are infinite), else by
 * d_i = x_i - base.
 *
 * DARE (Yu et al., arXiv 2311.03099): y = base, to which w_i * (factor_i * d_i) is added for i = 1 .. n in this order where
 * d_i is not 0 and the element is kept.  Word 0 of the settings is the number of the operand's first element, which makes the
 * result of a tile that of the whole; elements are numbered in row-major order.  The words TM_DARE_* of input i begin at
 * word 1 + 4 (i - 1).  A difference is kept if a 32-bit number is below the threshold, so floor(density * 2^32) keeps the
 * density and 2^32 everything, which is the plain sum of weighted differences; the usual factor is 1 / density.  For element e
 * that number is word e mod 4 of Philox4x32-10 (Salmon et al. 2011, doi 10.1145/2063384.2063405) on the counter e div 4, low word
 * first, with the key, low word first.
 */
#define TM_DARE_WEIGHT    0     /* f64 bits */
#define TM_DARE_FACTOR    1     /* f64 bits; of differences that are kept */
#define TM_DARE_THRESHOLD 2
#define TM_DARE_KEY       3
#define TM_DARE_WORDS     4     /* an input */

/*
 * TIES (Yadav et al., arXiv 2306.01708): settings are a scale, then weight and threshold of each input.  d_i counts as 0 where its
 * magnitude, |d_i| rounded to f32, is below the threshold.  p_i = w_i * d_i; the sign that is elected is that of
 * (p_1 + p_2) + ...  Where this is 0 y is the base; where it is NaN y is NaN.  Else m is the sum of those p_i that have this
 * sign, divided by the sum of their |w_i|, both in the order of the inputs, and y = base + scale * m.
 */
typedef struct tm_ties_attributes {
  uint32_t sum;                 /* 1: not divided */
  uint32_t reserved;
} tm_ties_attributes;

/*
 * Which |x - base| occur how often: the difference as above in f64, its magnitude rounded to f32, NaN as 0x7fc00000.  Two passes
 * find the k-th largest exactly: one over bits 30 to 15 of the magnitudes, then one over bits 14 to 0 of those with the upper
 * bits that were found.  Words add up: results of parts are the result of the whole when they are added.
 */
#define TM_MAGNITUDE_BINS 65536
#define TM_MAGNITUDE_LOW_BITS 15
typedef struct tm_magnitudes_attributes {
  uint32_t within;              /* 0: bin b counts the magnitudes with bits >> 15 == b.  1: bin b counts those with bits
                                   == upper << 15 | b, b < 2^15; the other bins stay 0 */
  uint32_t upper;               /* < 2^16; 0 unless `within` */
} tm_magnitudes_attributes;

/* ---------------------------------------------------------------------------------------- one-pass results ---- */

/*
 * An exact sum of f64 values: a fixed-point number wide enough for all of them, so that adding is associative and a sum
 * does not depend on how the work was split.  Word 0: TM_SUM_SAW_* bits.  Words 1..68: 32-bit digits, the least
 * significant of weight 2^-1088; in a result each is in [0, 2^32) but the last, which is a signed 64-bit value.
 * canonical_sum.h reads and writes it and defines the order of additions before this point.
 */
#define TM_SUM_WORDS 69
#define TM_SUM_SAW_POSITIVE_INFINITY 0x1u
#define TM_SUM_SAW_NEGATIVE_INFINITY 0x2u
#define TM_SUM_SAW_NAN               0x4u

/* Words of the result of TM_OP_STATS.  Extremes are f64 bit patterns over the finite values, a zero is +0; of
   none: +Inf, -Inf, 0. */
#define TM_STATS_COUNT       0
#define TM_STATS_NAN         1
#define TM_STATS_POS_INF     2
#define TM_STATS_NEG_INF     3
#define TM_STATS_ZERO        4  /* +0 and -0 */
#define TM_STATS_SUBNORMAL   5  /* in the tensor's own format; a block format has none */
#define TM_STATS_MIN         6
#define TM_STATS_MAX         7
#define TM_STATS_ABS_MAX     8
#define TM_STATS_SUM         9  /* TM_SUM_WORDS words: the sum of the finite values */
#define TM_STATS_SUM_SQUARES (TM_STATS_SUM + TM_SUM_WORDS)
#define TM_STATS_WORDS       (TM_STATS_SUM_SQUARES + TM_SUM_WORDS)

/* Words of the result of TM_OP_COMPARE_TENSORS, version 2.  The figures are over pairs in which both values are finite.  Values are
   f64; of an integer that f64 does not hold the nearest, and then a - b is (a - b) + (rest of a - rest of b), a rest being what it
   lacks.  Of two floats of 16 bits or less a - b is rounded to f32. */
#define TM_COMPARISON_VERSION        2
#define TM_COMPARISON_COUNT          0
#define TM_COMPARISON_EQUAL_BITS     1  /* pairs with identical bits, bool and NaN included; of block formats whose decoded values have
                                             identical bits; of two formats of equal values: 0 and -0, and one NaN and another */
#define TM_COMPARISON_NONFINITE      2  /* pairs in which at least one value is NaN or infinite */
#define TM_COMPARISON_MAX_ABS        3  /* f64 bits: max |a - b|, of none 0 */
#define TM_COMPARISON_MAX_REL        4  /* f64 bits: max |a - b| / max(|a|, |b|), 0/0 counts as 0 */
#define TM_COMPARISON_SUM_SQUARED    5  /* sum of (a - b)^2 */
#define TM_COMPARISON_DOT            (TM_COMPARISON_SUM_SQUARED + TM_SUM_WORDS)
#define TM_COMPARISON_NORM_A         (TM_COMPARISON_DOT + TM_SUM_WORDS)        /* sum of a^2 */
#define TM_COMPARISON_NORM_B         (TM_COMPARISON_NORM_A + TM_SUM_WORDS)     /* sum of b^2 */
#define TM_COMPARISON_WORDS          (TM_COMPARISON_NORM_B + TM_SUM_WORDS)

/* ----------------------------------------------------------------------------- how well, and how exactly ---- */

/* How a device does an operation.  The level says nothing about speed. */
#define TM_LEVEL_REFUSED   0u   /* it does not; reasons say why */
#define TM_LEVEL_EMULATED  1u   /* correct through conversion or decomposition, in the declared workspace */
#define TM_LEVEL_NATIVE    2u   /* reads these formats directly; no expanded copy anywhere */

/* How close to the reference a result is; a smaller number is a stronger promise.  A bound that a result of nothing but zeros would
   keep, or nearly, is no promise, and the class is taken as N4: N1 over a sixteenth of 1/eps(y's format) ulp (f32: 2^19, f16: 64;
   of an integer over a sixteenth of its range; never less than 4), N2 over a sixteenth of 1/eps(accumulator), N3 over 1/4. */
#define TM_NUMERICS_N0     0u   /* bit-equal */
#define TM_NUMERICS_N1     1u   /* within `bound` ulp of the output's format */
#define TM_NUMERICS_N2     2u   /* |y-r| <= bound * growth(n) * eps(accumulator) * sum|terms| + eps(y's format) * |r|
                                   (+ one smallest normal if FLUSHES); n: number of terms; r: f64 from decoded operands.
                                   As far as no sum of some of the terms overflows the accumulator */
#define TM_NUMERICS_N3     3u   /* normalized mean square error <= bound */
#define TM_NUMERICS_N4     4u   /* no promise */

#define TM_GROWTH_ONE      0u
#define TM_GROWTH_LOG2     1u   /* log2(n) + 1 */
#define TM_GROWTH_LINEAR   2u   /* n */

#define TM_NUMERICS_RUN_TO_RUN   0x1u   /* the same call gives the same bits every time */
#define TM_NUMERICS_KEEPS_NONFINITE 0x2u /* NaN and infinities come out where the reference has them */
#define TM_NUMERICS_FLUSHES      0x4u   /* subnormals may be taken as or become zero, as far as the class then still holds:
                                           N1: a result that is subnormal may be zero; N2: one smallest normal number of y's
                                           format is allowed besides.  An operand taken as zero whose loss shows beyond that
                                           (times a large number, in a logarithm) is not covered */

#ifdef __cplusplus
}
#endif

#endif /* TENSORMORPH_TYPES_H */
