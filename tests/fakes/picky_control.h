/* SPDX-License-Identifier: Apache-2.0 */
/*
 * picky_control.h - what a test tells a picky accelerator, through the pointer option "control", and what it counts.  It
 * computes every operation, exactly, but only on operands that obey its rules; to others it says no and what to change.
 */
#ifndef TM_TESTS_PICKY_CONTROL_H
#define TM_TESTS_PICKY_CONTROL_H

#include <stdatomic.h>

#include "tensormorph/plugin.h"

#define PICKY_RULES 16
#define PICKY_CONTROL_KEY "control"

/* A change that is proposed where the operand is not yet so; see TM_CHANGE_*.  Private formats are TM_FORMAT_PRIVATE + the
   format that is packed. */
typedef struct picky_rule {
  uint32_t op;                  /* 0: of every operation but moves and packing */
  uint32_t kind;                /* TM_CHANGE_* */
  uint32_t operand;
  uint32_t axis_from_last;
  uint32_t format;              /* of casts, quantizations */
  uint32_t only_format;         /* not 0: of operands in this format only */
  uint64_t value;
} picky_rule;

typedef struct picky_control {
  picky_rule  rules[PICKY_RULES];
  uint32_t    only_op;          /* not 0: nothing but this and convert */
  uint32_t    needs_constant;   /* mask of operands of that operation */
  uint32_t    one_at_a_time;    /* proposes one change an answer */
  uint32_t    is_naive;         /* says what a packed operand takes as it is, not as it will be once padded */
  uint32_t    is_wrong;         /* multiplies its integers wrongly */
  uint32_t    numerics;
  uint32_t    accumulator;
  double      numerics_bound;
  uint64_t    cost_ns;          /* 0: 1 */
  uint64_t    setup_ns;
  uint64_t    setup_key;
  uint64_t    open_ns;
  uint64_t    capacity_bytes;   /* of its own memory; 0: no limit */
  uint64_t    store_granule;    /* 0: 1 */
  uint32_t    has_own_memory;
  _Atomic int32_t  launch_status;
  _Atomic uint64_t used_bytes;
  _Atomic uint64_t launches;    /* of all but convert */
  _Atomic uint64_t converts;
  _Atomic uint64_t prepares;
  _Atomic uint64_t complaints;  /* launches on operands that are not as they were promised */
} picky_control;

#endif
