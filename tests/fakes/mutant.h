/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutant.h - a backend with one row changed: what it says of one combination of formats is a little more than is true, and
 * everything else is the backend's own.  One at a time.
 */
#ifndef TM_TESTS_FAKES_MUTANT_H
#define TM_TESTS_FAKES_MUTANT_H

#include "conformance/question.h"

typedef enum mutation_kind {
  MUTATION_LEVEL,               /* level + 1 */
  MUTATION_WORKSPACE,           /* needs no workspace */
  MUTATION_EXPANSION,           /* native, with room for an expanded copy of its widest narrow input */
  MUTATION_CLASS,               /* the next stronger numerics class, with `bound` */
  MUTATION_EXACT,               /* class N0 */
  MUTATION_BOUND,               /* a thousandth of the bound */
  MUTATION_FORMAT,              /* one more combination: run as if it were `as` */
  MUTATION_EMPTY_PROMISE        /* one more combination: nothing behind it */
} mutation_kind;

typedef struct mutation {
  mutation_kind kind;
  combination   which;          /* the row that is changed, or made */
  combination   as;
  double        bound;
} mutation;

/* Fills *out_table with the mutant of *inner, both complete.  The mutant lasts until the next one is made. */
void mutant_make(const tm_accelerator_backend_plugin *inner, const mutation *m, tm_accelerator_backend_plugin *out_table);

#endif
