/* SPDX-License-Identifier: Apache-2.0 */
/* merge_groups.h - the tensors of a merge's plan by what is done with them: how many, and with which weights. */
#ifndef TM_CLI_MERGE_GROUPS_H
#define TM_CLI_MERGE_GROUPS_H

#include "row_printer.h"

#define TM_MERGE_GROUPS_MAX 48

typedef struct tm_merge_group {
  tm_cell  words[4];            /* action, dtype, models, weights */
  uint64_t tensor_count;
  uint64_t bytes;
  bool     is_written;
} tm_merge_group;

/* Further kinds are counted with the last one, whose words are undefined then. */
typedef struct tm_merge_groups {
  uint32_t       count;
  tm_merge_group items[TM_MERGE_GROUPS_MAX];
} tm_merge_groups;

/* In the order in which the plan has them; texts live as long as the plan. */
void tm_merge_groups_make(tm_merge_groups *groups, const tm_merge_plan *plan);
/* Rows: tensors, bytes, action, dtype, models, weights. */
tm_rows tm_merge_groups_rows(const tm_merge_groups *groups);

#endif
