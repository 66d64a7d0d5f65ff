/* SPDX-License-Identifier: Apache-2.0 */
/* axes.h - which axes of the operands of an operation are one and the same. */
#ifndef CONFORMANCE_AXES_H
#define CONFORMANCE_AXES_H

#include "conformance/kernel_cases.h"

#define AXES_NONE 0xffu         /* shared with nobody */

/* Equal labels: the same axis. */
typedef struct axes {
  uint8_t labels[CASE_MAX_OPERANDS][TM_MAX_RANK];
} axes;

/* Of a normalized operation. */
void axes_label(const kernel_case *c, axes *out_axes);

#endif
