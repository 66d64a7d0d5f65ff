/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lowering.h - doing to operands what a backend asked for, so that it can run an operation.  An answer's changes become
 * one of three small programs, each of them data that src/execute carries out:
 *
 *   changed     inputs go their ways (cast, copied dense, padded, packed), the operation runs, outputs come back
 *   quantized   a and b become integers with a scale a row and a column, the integer product runs, y is rescaled
 *   split       the operation runs part by part, and the parts' results become one
 *
 * What is left after that is either a kernel of the device or, where it wants more, a request of its own (`inner`) to that
 * same device, which is answered, priced and run like any other; so programs nest.
 */
#ifndef TM_SCHEDULE_LOWERING_H
#define TM_SCHEDULE_LOWERING_H

#include "schedule/bill.h"
#include "schedule/request.h"

#define TM_CANDIDATE_TEXT_BYTES 256

typedef enum tm_lowering_kind { TM_LOWERING_CHANGED, TM_LOWERING_QUANTIZED, TM_LOWERING_SPLIT } tm_lowering_kind;

/* What happens to one operand: moved (by `op`) between the caller's memory and `inside`, a part of `dense`, whose other
   elements are `pad_value`; an input may then be packed. */
typedef struct tm_operand_way {
  uint32_t   operand;
  uint32_t   op;                        /* TM_OP_COPY, TM_OP_CAST, TM_OP_DEQUANTIZE; TM_OP_NONE: it stays where it is */
  bool       is_padded;
  bool       is_kept;                   /* a constant: the result serves later runs, too */
  double     pad_value;
  tm_operand original;
  tm_operand inside;
  tm_operand dense;
  tm_operand presented;                 /* the same memory with fewer axes */
  tm_operand packed;                    /* in a private format; TM_FORMAT_NONE if it is not packed */
} tm_operand_way;

typedef enum tm_split_join {
  TM_JOIN_SIDE_BY_SIDE,                 /* parts of the output */
  TM_JOIN_WORDS,                        /* tm_op_row.combine_words */
  TM_JOIN_ADD                           /* partial sums, in the format of `sum` */
} tm_split_join;

/* Parts of `part` elements of the caller's axis, the last of what remains; inner and tail are requests for them. */
typedef struct tm_split {
  tm_split_join join;
  uint32_t operand;                     /* that was asked to be split, and its axis */
  uint32_t axis;
  bool     drops_axis;                  /* parts of one element lose the axis */
  uint64_t extent;
  uint64_t part;
  uint64_t count;                       /* parts, the tail included */
  int64_t  steps_bytes[TM_MAX_OPERANDS];/* from one part to the next */
  tm_operand sum;                       /* TM_JOIN_ADD: a partial result, dense */
} tm_split;

typedef struct tm_lowering {
  tm_lowering_kind kind;
  uint32_t way_count;
  bool     rounds_output;               /* results are rounded a second time, to the caller's format */
  bool     loses_bits;                  /* an operand passes through a format that does not hold its values */
  bool     pads_sum;                    /* terms that are 0 were added to a sum of floats */
  bool     has_inner;                   /* what is left is a request of its own; always so but for TM_LOWERING_CHANGED */
  tm_operand_way ways[TM_MAX_CHANGES];
  uint64_t attributes[TM_LARGEST_ATTRIBUTES / 8];       /* of the changed operation */
  tm_request inner;
  tm_request tail;                      /* TM_LOWERING_SPLIT: of the last part; input_count 0 if it is like the others */
  tm_split split;
  tm_bill  bill;                        /* beside the operation itself */
  char     text[TM_CANDIDATE_TEXT_BYTES];
} tm_lowering;

/* Reads the changes of `answer` as a program and applies them to `operation`, whose `operands` are an array of the caller's
   that is changed, too; its attributes come to point into *out_lowering.  False when there is nothing to do, when it cannot
   be done, or when the operation would mean something else.  TM_LOWERING_CHANGED only. */
bool tm_lowering_change(tm_operation *operation, tm_operand *operands, const tm_answer *answer, tm_lowering *out_lowering);

/* `whole` is the request with normalized operands.  Makes the first split of `answer`, or a loop over the outermost axis
   where `operand` has too many. */
bool tm_lowering_split(const tm_request *whole, const tm_answer *answer, tm_lowering *out_lowering);

/* Makes the quantizations of `answer`: a matmul of floats becomes one of integers. */
bool tm_lowering_quantize(const tm_request *whole, const tm_answer *answer, tm_lowering *out_lowering);

/* After the product: to f32, times a's scales, times b's, and to y's format where that is another. */
#define TM_RESCALE_TO_FLOAT  0u
#define TM_RESCALE_ROWS      1u
#define TM_RESCALE_COLUMNS   2u
#define TM_RESCALE_TO_FORMAT 3u
#define TM_RESCALE_STEPS     4u
void tm_lowering_rescale_request(const tm_request *inner, const tm_operand *y, uint32_t step, tm_request *out_request);
/* The scales of factor 0 or 1, as they are multiplied with y. */
void tm_lowering_scales_operand(const tm_request *inner, uint32_t factor, tm_operand *out_scales);

bool tm_answer_has_change(const tm_answer *answer, uint32_t kind);

/* The request for one move of a way, of an input (original -> inside) or an output (inside -> original). */
void tm_lowering_move_request(const tm_operand_way *way, bool is_output, tm_request *out_request);
/* The request that fills `dense` with the padding, from a value of rank 0. */
void tm_lowering_fill_request(const tm_operand_way *way, tm_request *out_request);
/* The request that packs `presented`. */
void tm_lowering_convert_request(const tm_operand_way *way, uint32_t device, tm_request *out_request);

/* The request that adds two partial sums into `to`, of the same layout; and the one that makes y of the last. */
void tm_lowering_add_request(const tm_split *split, const tm_operand *to, tm_request *out_request);
void tm_lowering_finish_request(const tm_split *split, const tm_operand *y, tm_request *out_request);

/* "pad(a), cast(b, f32)": what happens before and after; `input_count` tells outputs from inputs. */
void tm_lowering_describe(const tm_lowering *lowering, uint32_t input_count, char *text, uint64_t capacity);

#endif
