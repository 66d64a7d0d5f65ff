/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_arc.h - in which form two tensors are compared for the angle between them.  The comparison sums tensors of 16-bit floats in
 * f32, which is too coarse for an angle: they are compared as f32, whose sums are in f64.  Squares of f64 may leave the range of f64;
 * then both are compared once more, as f64 and scaled by powers of two, of which the angle knows nothing.
 */
#ifndef TM_JOBS_MERGE_ARC_H
#define TM_JOBS_MERGE_ARC_H

#include "jobs/merge_item.h"

/* Places by which values are scaled up, and down where it is below 0; 0: they stay. */
typedef int tm_merge_arc_shift;

/* By the sum of a tensor's squares.  What is scaled for being too large then has a largest value from 2^-112 on, what is scaled for
   being too small one from 2^-474 on, and the squares of all values that count beside it are within the range. */
tm_merge_arc_shift tm_merge_arc_find_shift(double square);

/* The format that both inputs are brought into; TM_FORMAT_NONE: they are compared as they are. */
uint32_t tm_merge_arc_format(const tm_merge_settings *settings, const tm_merge_item *item, bool is_scaled);

/* Bytes that copies of `elements` of both take, whether they are scaled or not. */
uint64_t tm_merge_arc_bytes(const tm_merge_settings *settings, const tm_merge_item *item, uint64_t elements);

/* elements: whole blocks, at the beginning of one. */
void tm_merge_arc_scale(uint32_t format, const void *data, uint64_t elements, tm_merge_arc_shift shift, double *out_values);

#endif
