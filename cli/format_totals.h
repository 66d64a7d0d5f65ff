/* SPDX-License-Identifier: Apache-2.0 */
/* format_totals.h - how many tensors, elements and bytes a checkpoint has of each format. */
#ifndef TM_CLI_FORMAT_TOTALS_H
#define TM_CLI_FORMAT_TOTALS_H

#include "row_printer.h"

#define TM_FORMAT_TOTALS_MAX 128

typedef struct tm_format_total {
  const char *name;             /* the format's, or the file's own word for one that nobody knows */
  uint64_t    tensor_count;
  uint64_t    element_count;
  uint64_t    bytes;
  bool        is_open;          /* of one of them the size is not known */
} tm_format_total;

typedef struct tm_format_totals {
  uint32_t        count;
  tm_format_total items[TM_FORMAT_TOTALS_MAX];  /* what comes after the last free one is counted there, as "others" */
} tm_format_totals;

/* Sums stop at their largest value instead of wrapping.  Names must outlive the totals. */
void tm_format_totals_add(tm_format_totals *totals, const char *name, uint64_t element_count, uint64_t bytes,
                          bool has_size);
/* Largest first. */
void tm_format_totals_sort(tm_format_totals *totals);
/* Rows: dtype, tensors, elements, bytes. */
tm_rows tm_format_totals_rows(const tm_format_totals *totals);

#endif
