/* SPDX-License-Identifier: Apache-2.0 */
/* float_range.h - which float formats hold the values of which. */
#ifndef TM_SCHEDULE_FLOAT_RANGE_H
#define TM_SCHEDULE_FLOAT_RANGE_H

#include <stdbool.h>
#include <stdint.h>

bool tm_float_is(uint32_t format);
/* Whether every value of `narrow` survives in `wide`. */
bool tm_float_holds(uint32_t wide, uint32_t narrow);
/* Distance from 1 to the next value; 0 if it is no float format. */
double tm_float_epsilon(uint32_t format);

#endif
