/* SPDX-License-Identifier: Apache-2.0 */
/* op_rows.h - the rows that each family of operations hands to op_table.c. */
#ifndef TM_OPS_OP_ROWS_H
#define TM_OPS_OP_ROWS_H

#include "ops/op_table.h"

#define TM_OP_FAMILY(name)                      \
  extern const tm_op_row tm_op_rows_##name[];   \
  extern const uint32_t  tm_op_rows_##name##_count

TM_OP_FAMILY(move);
TM_OP_FAMILY(gather);
TM_OP_FAMILY(cast);
TM_OP_FAMILY(binary);
TM_OP_FAMILY(unary);
TM_OP_FAMILY(ternary);
TM_OP_FAMILY(merge);
TM_OP_FAMILY(reduce);
TM_OP_FAMILY(matmul);
TM_OP_FAMILY(normalize);
TM_OP_FAMILY(rope);
TM_OP_FAMILY(update);
TM_OP_FAMILY(attention);

/* Behind a family's array. */
#define TM_OP_ROWS_COUNT(name) \
  const uint32_t tm_op_rows_##name##_count = sizeof tm_op_rows_##name / sizeof tm_op_rows_##name[0]

#endif
