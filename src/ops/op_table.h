/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_table.h - the operations: one row each.  Shapes, work, splitting, combination and the scalar reference all hang
 * off the row, so whatever is said about an operation anywhere comes from here.
 */
#ifndef TM_OPS_OP_TABLE_H
#define TM_OPS_OP_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "tensormorph/plugin.h"

/* What an operation costs in principle; the core's own count, which no backend can influence. */
typedef struct tm_work {
  uint64_t flops;               /* floating-point or integer operations; saturates */
  uint64_t read_bytes;          /* of the inputs, each element once */
  uint64_t written_bytes;
} tm_work;

/* Classes group operations whose speed goes together; cost corrections are learned per class first. */
typedef enum tm_op_class {
  TM_CLASS_MOVE, TM_CLASS_CAST, TM_CLASS_ELEMENTWISE, TM_CLASS_TRANSCENDENTAL, TM_CLASS_REDUCE, TM_CLASS_SCAN,
  TM_CLASS_MATMUL, TM_CLASS_NORMALIZE, TM_CLASS_ATTENTION, TM_CLASS_COUNT
} tm_op_class;

/* How partial results over parts of a splittable axis become one. */
typedef enum tm_combine {
  TM_COMBINE_CONCATENATE,       /* parts of the output lie side by side */
  TM_COMBINE_WORDS,             /* stats and its like: tm_op_row.combine_words */
  TM_COMBINE_NONE               /* cannot be split */
} tm_combine;

typedef struct tm_op_row {
  uint32_t    op;
  uint32_t    version;
  const char *name;             /* lower_snake, as types.h has it */
  const char *summary;          /* one line for people */
  tm_op_class op_class;
  uint32_t    input_min;
  uint32_t    input_max;
  uint32_t    output_count;
  uint32_t    attribute_bytes;
  uint32_t    default_numerics; /* the class accepted when the caller says nothing */
  bool        broadcasts;       /* operands may be broadcast; the host expands them before a backend sees them */
  tm_combine  combine;
  uint64_t    split_elements;   /* TM_COMBINE_WORDS: parts but the last hold a multiple of this many elements */
  double pad_value; /* what a padded input element must be so that results do not change; NaN: there is none */

  /* Given checked inputs and attributes and, in out_outputs[].format, the wanted formats (TM_FORMAT_NONE: the default;
     fill also takes rank and dims from there), fills dense outputs. */
  tm_status (*infer)(const tm_operation *operation, tm_operand *out_outputs, tm_error *error);
  /* Are formats, shapes and attributes of all operands right?  Outputs may have any strides. */
  tm_status (*check)(const tm_operation *operation, tm_error *error);
  void (*work)(const tm_operation *operation, tm_work *out_work);
  /* Bit mask of axes of the first input along which the operation can be split (see combine). */
  uint32_t (*splittable)(const tm_operation *operation);
  /* Units of output that the reference computes independently (elements, rows ...). */
  uint64_t (*units)(const tm_operation *operation);
  /* THE reference: computes units [begin, end).  pointers[i] is the address of operand i's first element.  NULL where
     only a backend can do it (convert); units is then 0. */
  void (*reference)(const tm_operation *operation, void *const *pointers, uint64_t begin, uint64_t end);
  /* TM_COMBINE_WORDS only: adds the result of the part that follows to `words`. */
  void (*combine_words)(uint64_t *words, const uint64_t *part);

  const char *input_names[6];   /* for messages; NULL: "operand 0" and so on.  A single output is called y */
  /* Bit i set: operand i (inputs, then outputs) has, once broadcast, the dims of the operation and takes part when
     neighbouring axes are merged.  0: axes are never merged. */
  uint32_t    merged_operands;
  /* Gives broadcast inputs their full dims; NULL: all inputs get those of output 0.  Only if `broadcasts`. */
  void (*expand)(const tm_operation *operation, tm_operand *operands);
  /* Bit (output * 8 + input), as in tm_answer.alias_mask: with that output in that input's exact memory (same format, dims
     and strides) the operation still makes sense, and the reference does it. */
  uint64_t    may_alias;
  /* Run again over such an output, whole or in part, it gives the same bits: it can be retried where it failed halfway. */
  bool        is_repeatable;
} tm_op_row;

/* NULL if unknown. */
const tm_op_row *tm_op_find(uint32_t op);
const tm_op_row *tm_op_by_name(const char *name, uint64_t length);
/* By index, for listings; NULL past the end. */
const tm_op_row *tm_op_at(uint32_t index);

/* Checks the inputs and attributes of an operation and, in out_outputs[].format, takes the wanted formats
   (TM_FORMAT_NONE: the default) and, for fill, rank and dims; fills dense outputs.  The operation's own output operands
   are not looked at. */
tm_status tm_op_infer_outputs(const tm_operation *operation, tm_operand *out_outputs, tm_error *error);

/* Checks an operation against its row: number of operands, attributes (reserved fields zero), formats, shapes. */
tm_status tm_op_check(const tm_operation *operation, tm_error *error);

/*
 * Brings a checked operation into the form that backends see.  `operands` (its operand array) is changed in place:
 * broadcast operands get the full dims with zero strides, and neighbouring axes of elementwise operations are merged
 * where every operand allows it, so that one signature stands for many shapes.  Then derives the facts in
 * operation->flags.  Results computed by the new form are, byte for byte, those of the old one.
 */
void tm_op_normalize(tm_operation *operation, tm_operand *operands);

#endif
