/* SPDX-License-Identifier: Apache-2.0 */
/* norm_figure.h - lengths of vectors by sums of squares, where f64 holds those; NaN where it does not: undefined rather than wrong. */
#ifndef TM_JOBS_NORM_FIGURE_H
#define TM_JOBS_NORM_FIGURE_H

/* Of no square at all `largest` tells, a difference, whether there was one. */
double tm_norm_figure(double squares, double largest);
/* Of differences, of which `largest` is the largest. */
double tm_distance_figure(double squares, double largest);

#endif
