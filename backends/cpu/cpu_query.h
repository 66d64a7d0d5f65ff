/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_query.h - judging an operation by the rows. */
#ifndef CPU_QUERY_H
#define CPU_QUERY_H

#include <stdint.h>

#include "cpu_kernel.h"

/* What a device offers; made once at init. */
typedef struct cpu_offer {
  uint32_t isa;                 /* CPU_ISA_* in use */
  uint32_t lanes;
  uint64_t epoch;
} cpu_offer;

/* The row that runs the operation, or NULL.  The same question always finds the same row. */
const cpu_row *cpu_row_find(const cpu_offer *offer, const tm_operation *operation);

/* What the row asks for, with room to align it; 0 for none. */
uint64_t cpu_workspace_bytes(const cpu_offer *offer, const cpu_row *row, const tm_operation *operation);

/* Fills *out_answer, whose struct_size the caller has set, as far as that reaches. */
void cpu_query_answer(const cpu_offer *offer, const tm_operation *operation, tm_answer *out_answer);

#endif
