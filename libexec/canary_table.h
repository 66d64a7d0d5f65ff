/* SPDX-License-Identifier: Apache-2.0 */
/* canary_table.h - one small example an operation: shapes that even a narrow device takes, whole blocks, nothing odd. */
#ifndef TM_LIBEXEC_CANARY_TABLE_H
#define TM_LIBEXEC_CANARY_TABLE_H

#include "ops/op_table.h"
#include "schedule/request.h"

/* The extents that the examples are made of; a trial of questions takes others. */
typedef struct canary_sizes {
  uint64_t rows;
  uint64_t columns;
  uint64_t depth;               /* of a product */
} canary_sizes;

uint32_t canary_table_count(void);

/* The operation of example `index` with operands of `format`, checked and in the form that backends see.  Its operands and
   attributes lie in out_request.  false: the operation does not take the format. */
bool canary_table_make(uint32_t index, uint32_t format, const canary_sizes *sizes, tm_request *out_request,
                       tm_operation *out_operation);

#endif
