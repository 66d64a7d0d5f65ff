/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value_scan.h - which of many stored values are not finite, told from their bits alone: of every plain format by element, of
 * every block format by the scales of its blocks.  What counts is called a unit: an element, or a block (also of a packed format).
 */
#ifndef TM_TENSOR_VALUE_SCAN_H
#define TM_TENSOR_VALUE_SCAN_H

#include "tensor/format.h"

#define TM_NO_UNIT UINT64_MAX

typedef struct tm_value_scan {
  uint64_t nan_count;           /* units that are, or have a scale that is, not a number */
  uint64_t pos_inf_count;       /* of the others those that are infinite */
  uint64_t neg_inf_count;
  uint64_t first_nan;           /* units from the beginning of the tensor; TM_NO_UNIT: none */
  uint64_t first_inf;
  bool     has_nonzero;         /* some value is neither +0 nor -0, as far as its element or the block's scales tell */
} tm_value_scan;

/* Whether this version can tell from the bits of that format. */
bool tm_value_scan_knows(const tm_format_info *info);

void tm_value_scan_init(tm_value_scan *scan);
/* Adds `units` dense units, the first of which has the number `first`.  At any alignment. */
void tm_value_scan_add(tm_value_scan *scan, const tm_format_info *info, const void *data, uint64_t first, uint64_t units);
void tm_value_scan_merge(tm_value_scan *scan, const tm_value_scan *part);

#endif
