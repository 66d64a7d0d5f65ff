/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_judge.h - judging an operation by a backend's table of rows: the one body of query, and of the search in prepare.
 * A row says as data what it takes and how exactly; how it runs is its backend's own affair, behind the same row.  What
 * depends on the device comes in as functions.
 *
 * A row is judged in stages: its operation, the operands' formats, what the device has, attributes, numerics and demands,
 * whether the device's compiler took it, shapes and layouts, sizes.  The row that came furthest explains a refusal.
 */
#ifndef KERNEL_JUDGE_H
#define KERNEL_JUDGE_H

#include <stdint.h>

#include "kernel_operand.h"

#define KERNEL_CLAIM_FORMATS 8

/* What a row takes as an operand: a format's number, TM_FORMAT_NONE for any, or one of a set of formats.  In a set each
   format below TM_FORMAT_C64 has a bit of its own, so do the block formats that kernels read; the rest share one. */
#define KERNEL_FORMAT_BIT(format) (UINT64_C(1) << (32 + (format)))
#define KERNEL_Q4_0_BIT  (UINT64_C(1) << 60)
#define KERNEL_Q8_0_BIT  (UINT64_C(1) << 61)
#define KERNEL_OTHER_BIT (UINT64_C(1) << 62)
#define KERNEL_SAME      (UINT64_C(1) << 63)    /* the format of operand 0 */

/* The members that every row begins with. */
#define KERNEL_CLAIM_MEMBERS                                                                                             \
  uint32_t    op;                                                                                                        \
  uint32_t    attribute_bytes;          /* of the attributes that the kernel reads; fewer are refused, more must be zero */ \
  uint64_t    formats[KERNEL_CLAIM_FORMATS];    /* of the operands, in order */                                          \
  uint32_t    level;                                                                                                     \
  uint32_t    numerics;                                                                                                  \
  uint32_t    numerics_flags;                                                                                            \
  uint32_t    growth;                                                                                                    \
  uint32_t    accumulator;                                                                                               \
  uint32_t    castable;                 /* 1: a refusal for formats proposes casts to this row's formats */              \
  double      numerics_bound;                                                                                            \
  uint64_t    alias_mask;               /* as in tm_answer */                                                            \
  const char *name;                     /* for people and for tests */

typedef struct kernel_claim {
  KERNEL_CLAIM_MEMBERS
} kernel_claim;

/* First member of a row: its members can be named with or without `claim`. */
#define KERNEL_CLAIM                                                                                                     \
  union {                                                                                                                \
    kernel_claim claim;                                                                                                  \
    struct {                                                                                                             \
      KERNEL_CLAIM_MEMBERS                                                                                               \
    };                                                                                                                   \
  }

/* Rows of one operation are tried in the order of their table, so the faster, narrower one stands first. */
typedef struct kernel_row_table {
  const void *rows;
  uint32_t    count;
} kernel_row_table;

/* How exactly a row computes on one device. */
typedef struct kernel_closeness {
  uint32_t numerics;
  uint32_t flags;
  double   bound;
} kernel_closeness;

/* What a backend hands in.  `context` is what the caller of kernel_judge_* gave; a function that is NULL finds no fault. */
typedef struct kernel_judge {
  const kernel_row_table *const *tables;        /* ended by NULL */
  uint64_t    row_bytes;
  const char *lacks_text;               /* for people, on refusals by `lacks` and `exceeds` */
  const char *exceeds_text;
  /* TM_REASON_* if the device lacks what the row needs, whatever the shapes. */
  uint32_t (*lacks)(const void *context, const void *row, const tm_operation *operation);
  /* What the row's own numerics become on the device; NULL: nothing else. */
  kernel_closeness (*closeness)(const void *context, const void *row);
  int (*is_broken)(const void *context, const void *row);
  /* TM_REASON_* if the row cannot take these shapes, layouts or attributes, and the operand that they are about. */
  uint32_t (*refuses)(const void *context, const void *row, const tm_operation *operation, uint32_t *out_operand);
  int (*exceeds)(const void *context, const void *row, const tm_operation *operation, uint32_t *out_operand);
  /* Where `operand` exceeds: the split that helps.  0: none does. */
  int (*split)(const void *context, const void *row, const tm_operation *operation, uint32_t operand, tm_change *out_change);
  /* Costs, set-up and workspace of a yes; whatever else of the answer the device changes. */
  void (*price)(const void *context, const void *row, const tm_operation *operation, tm_answer *answer);
} kernel_judge;

/* The row that runs the operation, or NULL.  The same question to the same device always finds the same row; no function is
   called about another row, or with another operation, after the one that said yes. */
const void *kernel_judge_find(const kernel_judge *judge, const void *context, const tm_operation *operation);

/* What prepare returns for an operation that this answer refuses: TM_UNSUPPORTED where a later host asks for what is not known. */
tm_status kernel_refusal_status(const tm_answer *answer);

/* Fills *out_answer, whose struct_size the caller has set, as far as that reaches. */
void kernel_judge_answer(const kernel_judge *judge, const void *context, uint64_t epoch, const tm_operation *operation,
                         tm_answer *out_answer);

#endif
