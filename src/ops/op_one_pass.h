/* SPDX-License-Identifier: Apache-2.0 */
/* op_one_pass.h - the rows that the operation table takes from op_one_pass.c. */
#ifndef TM_OPS_OP_ONE_PASS_H
#define TM_OPS_OP_ONE_PASS_H

#include "ops/op_table.h"

extern const tm_op_row tm_op_rows_one_pass[];
extern const uint32_t tm_op_rows_one_pass_count;

#endif
