/* SPDX-License-Identifier: Apache-2.0 */
/* merged_axes.h - the same operation with fewer axes: neighbours that every operand steps through as one become one. */
#ifndef TM_SCHEDULE_MERGED_AXES_H
#define TM_SCHEDULE_MERGED_AXES_H

#include "ops/op_table.h"

/* Makes operand `index` dense by a copy, in the array of operands; false when that is of no use. */
typedef bool (*tm_make_dense_fn)(void *context, uint32_t index);

/* Merges and drops axes in `operands` and `attributes` (copies of the operation's, which points to them) until
   operand `target` has at most `rank`; an operand that lies in the way of that is made dense.  False when it cannot be done; then
   both are left in any state. */
bool tm_merged_axes_reduce(tm_operation *operation, tm_operand *operands, void *attributes, uint32_t target, uint64_t rank,
                           tm_make_dense_fn make_dense, void *context);

/* Removes an axis of extent 1, or along which nothing is to be seen any more. */
void tm_operand_drop_axis(tm_operand *operand, uint32_t axis);

#endif
