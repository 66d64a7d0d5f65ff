/* SPDX-License-Identifier: Apache-2.0 */
/*
 * size_walk.h - the sizes, ranks and layouts that every operation is tried with, whatever the seed: every tail of 64 in three
 * ways, powers of two and their neighbours, ranks 2 to 8 in six layouts, sizes beyond 16 bits, and plain sizes with weights
 * in each place.  The first few steps are a mixture of all.
 */
#ifndef CONFORMANCE_SIZE_WALK_H
#define CONFORMANCE_SIZE_WALK_H

#include "conformance/question.h"

/* Steps are cases with numbers of their own, far behind those of random cases: SIZE_WALK_FIRST + way * SIZE_WALK_WAY + step.
   What a step leaves open (attributes, transposes, weights) is another thing in each way. */
#define SIZE_WALK_FIRST 2000000u
#define SIZE_WALK_WAY 1000u
#define SIZE_WALK_WAYS 4u
#define SIZE_WALK_END (SIZE_WALK_FIRST + SIZE_WALK_WAYS * SIZE_WALK_WAY)

/* Of all steps, with those of millions of elements or without. */
uint32_t size_walk_count(bool has_huge);
/* Whether it is one of tens of thousands of elements or more, which one combination of an operation is enough for. */
bool size_walk_is_large(uint32_t step);
/* Not all steps make an operation, nor are there always several ways: then false. */
bool size_walk_make(question *q, const combination *which, uint32_t number, uint64_t seed);

#endif
