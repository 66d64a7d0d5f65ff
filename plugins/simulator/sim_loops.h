/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_loops.h - the operations that a simulated device can be described to have, as plain loops over dense operands: one
 * row an operation, with what is known of it and the strongest promise that its loop keeps.
 */
#ifndef SIM_LOOPS_H
#define SIM_LOOPS_H

#include <tensormorph/plugin.h>

#define SIM_MAX_OPERANDS 4u
#define SIM_ATTRIBUTE_BYTES 16u

/* One operation with its operands in place, dense but for a packed one. */
typedef struct sim_task {
  uint32_t   op;
  uint32_t   count;                     /* operands, the output last */
  tm_operand operands[SIM_MAX_OPERANDS];
  unsigned char attributes[SIM_ATTRIBUTE_BYTES];
  void      *data[SIM_MAX_OPERANDS];
} sim_task;

typedef struct sim_numerics {
  uint32_t class_number;                /* TM_NUMERICS_* */
  uint32_t flags;
  double   bound;
  uint32_t growth;
  uint32_t accumulator;
} sim_numerics;

/* Classes of operations as the host numbers them in what it measured. */
#define SIM_CLASS_MOVE           0u
#define SIM_CLASS_CAST           1u
#define SIM_CLASS_ELEMENTWISE    2u
#define SIM_CLASS_TRANSCENDENTAL 3u
#define SIM_CLASS_REDUCE         4u
#define SIM_CLASS_MATMUL         6u
#define SIM_CLASS_NORMALIZE      7u
#define SIM_CLASSES              9u

typedef struct sim_loop {
  const char *name;
  uint32_t    op;
  uint32_t    operand_count;
  uint32_t    attribute_bytes;
  double      flops;                    /* an element of the largest operand; a matmul has its own count */
  uint32_t    same_shape;               /* all operands have equal dims */
  sim_numerics numerics;
  void      (*run)(const sim_task *task);
  uint32_t    class_number;             /* SIM_CLASS_* */
  double      counted_flops;            /* as the host counts an element of the largest operand */
} sim_loop;

const sim_loop *sim_loop_find(uint32_t op);             /* NULL if there is none */
const sim_loop *sim_loop_by_name(const char *name);
const sim_loop *sim_loop_at(uint32_t index);            /* NULL past the last */

#endif
