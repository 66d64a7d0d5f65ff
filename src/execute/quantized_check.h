/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantized_check.h - how far a product of integers is from that of the numbers they stand for, at each run.
 *
 * No bound on the normalized mean square error of a quantized product holds for all data: where terms cancel, any rounding
 * may be larger than what is left.  For data without structure, with crest factors c = max / rms of a's rows and b's
 * columns, roundings are uniform in half a step and independent of what they are multiplied with (W. R. Bennett 1948,
 * "Spectra of Quantized Signals"), which gives E|e|^2 / |r|^2 = (c_a^2 + c_b^2) / (12 * 127^2): some 1.6e-4 for normally
 * distributed numbers in rows of 4096, and 1e-2 where the largest is 30 times the rms.  Outliers, and roundings that all
 * go one way, are worse.
 *
 * So the error is measured.  For a vector x of independent random signs E|(Y - AB) x|^2 is the squared Frobenius norm of
 * Y - AB, whatever it is, and takes two passes over matrices instead of a product (R. Freivalds 1977; M. Hutchinson 1989).
 * The mean over TM_PROJECTIONS = 8 vectors is never far below it: in the worst case, an error of rank 1, it is distributed
 * as chi^2_8 / 8 or steeper, and that is below 1/4 once in 50 times; errors of many independent rows average further.  A
 * product is taken if that mean is at most a quarter of the promised TM_QUANTIZED_ERROR times |Y|^2, so what is promised
 * is kept in all but such odd cases of data that are 4 times too bad.
 */
#ifndef TM_EXECUTE_QUANTIZED_CHECK_H
#define TM_EXECUTE_QUANTIZED_CHECK_H

#include "execute/quantized_factor.h"

typedef struct tm_quantized_product {
  const tm_line_view *a;                /* the numbers themselves */
  const float        *a_scales;
  const double       *b_projection;     /* of b's lines */
  const float        *b_scales;
  const tm_operand   *y;                /* dense i32 */
  const tm_operand   *b;                /* its batch axes, 1 where it repeats */
  const int32_t      *integers;         /* of y */
  double             *tile_sums;        /* scratch: tm_quantized_check_bytes */
} tm_quantized_product;

uint64_t tm_quantized_check_bytes(const tm_operand *y);

/* The mean squared error relative to the mean square of the product, as estimated; 0 if both are 0. */
double tm_quantized_check_error(tm_pool *pool, const tm_quantized_product *product);

#endif
