/* SPDX-License-Identifier: Apache-2.0 */
/* one_pass.h - the references of the operations that see a whole tensor once and leave exact partial results in words. */
#ifndef TM_OPS_ONE_PASS_H
#define TM_OPS_ONE_PASS_H

#include "ops/op_table.h"

/* tm_op_row.combine_words. */
void tm_stats_combine(uint64_t *words, const uint64_t *part);
void tm_comparison_combine(uint64_t *words, const uint64_t *part);
void tm_magnitudes_combine(uint64_t *words, const uint64_t *part);

/* The words of all of x, or of all pairs of a and b, which have equal dims. */
void tm_stats_compute(const tm_operand *x, const void *pointer, uint64_t *out_words);
void tm_comparison_compute(const tm_operand *a, const void *a_pointer, const tm_operand *b, const void *b_pointer,
                           uint64_t *out_words);

/* The f32 magnitude of a difference by which it is counted; any NaN is one and the same. */
uint32_t tm_magnitude_bits(double x, double base);

/* The whole of a checked operation. */
void tm_magnitudes_compute(const tm_operation *operation, void *const *pointers);

#endif
