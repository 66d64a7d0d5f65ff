/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/norm_figure.h"

#include <math.h>

/* Squares become infinite, or so small that f64 loses some of them. */
#define SMALLEST_SQUARES 0x1p-960

double tm_norm_figure(double squares, double largest) {
  if (!isfinite(squares)) return NAN;
  if (squares == 0) return largest == 0 || largest >= sqrt(SMALLEST_SQUARES) ? 0 : NAN;
  return squares < SMALLEST_SQUARES ? NAN : sqrt(squares);
}

double tm_distance_figure(double squares, double largest) {
  if (largest == 0) return 0;
  return squares == 0 ? NAN : tm_norm_figure(squares, largest);
}
