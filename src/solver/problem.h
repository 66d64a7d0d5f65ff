/* SPDX-License-Identifier: Apache-2.0 */
/*
 * problem.h - where to run the operations of a graph, as numbers only.  An operation has labels: ways to run it, each with
 * a time, the memory that it reads and writes, and the resource that it keeps busy.  A value that is needed in another
 * memory than the one it was made in is copied there once, however many operations read it there.
 *
 *     assignment.h  the cheapest choice of labels when times add up: exact, with what every other label would cost
 *     timeline.h    when everything runs for a given choice and order, with one queue a resource and one a link
 *     portfolio.h   choices and orders worth a look when work overlaps, and the best of them
 *
 * Everything is a pure function of the problem: times are integer nanoseconds, ties go by `rank`, nothing is random, and
 * nothing here knows a device.  Sums that would exceed TM_SOLVER_MOST_NS stay there.
 */
#ifndef TM_SOLVER_PROBLEM_H
#define TM_SOLVER_PROBLEM_H

#include <stddef.h>

#include "base/memory.h"

#define TM_SOLVER_NONE    UINT32_MAX
#define TM_SOLVER_NEVER   UINT64_MAX            /* a cost: this cannot be */
#define TM_SOLVER_MOST_NS (UINT64_C(1) << 60)   /* and the most that anything that can be costs */

/* Traits of a value. */
#define TM_SOLVER_KEPT  0x1u    /* it has a home, and is the same for many runs: its copies are there from the start, and stay */
#define TM_SOLVER_LENT  0x2u    /* at home, or if it is made where it is wanted, it lies in memory of somebody else's: no room is taken */
#define TM_SOLVER_STAYS 0x4u    /* it takes room at home all the time, read or not */

typedef struct tm_solver_label {
  uint64_t cost_ns;             /* TM_SOLVER_NEVER: the operation cannot run so */
  uint32_t input_memory;        /* where all inputs must be present */
  uint32_t output_memory;       /* where all outputs appear */
  uint32_t resource;            /* labels of one resource never run at once */
  uint32_t rank;                /* among equals the lower wins: made from what a device is, never from its place in a list */
  uint64_t workspace_bytes;     /* in the output memory, while it runs */
} tm_solver_label;

/* Operations come in an order in which they could run: inputs are values of earlier operations, or of none. */
typedef struct tm_solver_op {
  uint32_t first_label;         /* its labels: labels[first_label ... + label_count) */
  uint32_t label_count;         /* at least 1 */
  uint32_t first_input;         /* its inputs: inputs[first_input ... + input_count), numbers of values; none twice */
  uint32_t input_count;
} tm_solver_op;

typedef struct tm_solver_value {
  uint64_t bytes;
  uint32_t producer;            /* operation, or TM_SOLVER_NONE: it is there from the start, in `home` */
  uint32_t home;                /* memory where it is from the start; of a produced one, TM_SOLVER_NONE */
  uint32_t wanted;              /* memory where it must be in the end, or TM_SOLVER_NONE */
  uint32_t size_class;          /* row of copy_ns */
} tm_solver_value;

typedef struct tm_solver_problem {
  const tm_solver_op    *ops;
  const tm_solver_label *labels;
  const tm_solver_value *values;
  const uint32_t        *inputs;
  const uint64_t        *copy_ns;       /* [size_class][from][to]; 0 where from == to; TM_SOLVER_NEVER: no way */
  const uint32_t        *links;         /* [from][to]: the queue that copies share, TM_SOLVER_NONE: they wait for nobody */
  const uint32_t        *copy_queues;   /* [memory]: the resource in whose queue copies from and to it wait their turn, among its
                                           operations (event_model.h); TM_SOLVER_NONE, or NULL for all: links carry them */
  const uint64_t        *budgets;       /* [memory]: bytes that may be there at once; NULL: no limits */
  const uint8_t         *traits;        /* [value]: TM_SOLVER_KEPT, LENT, STAYS; NULL: none has any */
  uint32_t op_count;
  uint32_t label_count;
  uint32_t value_count;
  uint32_t input_count;
  uint32_t memory_count;
  uint32_t resource_count;
  uint32_t link_count;
  uint32_t size_class_count;
} tm_solver_problem;

/* What copying a value from one memory to another costs. */
static inline uint64_t tm_solver_copy_ns(const tm_solver_problem *problem, uint32_t value, uint32_t from, uint32_t to) {
  const uint64_t memories = problem->memory_count;
  return problem->copy_ns[(problem->values[value].size_class * memories + from) * memories + to];
}

static inline uint32_t tm_solver_has_trait(const tm_solver_problem *problem, uint32_t value, uint32_t trait) {
  return problem->traits != NULL && (problem->traits[value] & trait) != 0;
}

static inline uint32_t tm_solver_is_kept(const tm_solver_problem *problem, uint32_t value) {
  return tm_solver_has_trait(problem, value, TM_SOLVER_KEPT);
}

/* Whether the value would be in that memory without taking room. */
static inline uint32_t tm_solver_is_lent(const tm_solver_problem *problem, uint32_t value, uint32_t memory) {
  const tm_solver_value *one = &problem->values[value];
  return tm_solver_has_trait(problem, value, TM_SOLVER_LENT) &&
         memory == (one->producer == TM_SOLVER_NONE ? one->home : one->wanted);
}

/* a + b, where NEVER stays NEVER and nothing else reaches it. */
static inline uint64_t tm_solver_add(uint64_t a, uint64_t b) {
  if (a == TM_SOLVER_NEVER || b == TM_SOLVER_NEVER) return TM_SOLVER_NEVER;
  const uint64_t sum = a > TM_SOLVER_MOST_NS || b > TM_SOLVER_MOST_NS ? TM_SOLVER_MOST_NS : a + b;
  return sum > TM_SOLVER_MOST_NS ? TM_SOLVER_MOST_NS : sum;
}

#endif
