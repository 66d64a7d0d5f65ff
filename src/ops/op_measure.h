/* SPDX-License-Identifier: Apache-2.0 */
/* op_measure.h - what rows say about size: work, units of output, axes that can be split. */
#ifndef TM_OPS_OP_MEASURE_H
#define TM_OPS_OP_MEASURE_H

#include "ops/op_table.h"

/* Bytes of all inputs (a repeated element once) and of all outputs, and `flops`, into *out_work. */
void tm_work_of(const tm_operation *operation, uint64_t flops, tm_work *out_work);

/* tm_op_row.work of elementwise rows: 1 operation an element, 16 for a transcendental one, none for moves. */
void tm_work_elementwise(const tm_operation *operation, tm_work *out_work);

/* tm_op_row.units of elementwise rows: elements of y, or groups of them where any operand is packed. */
uint64_t tm_units_elementwise(const tm_operation *operation);
/* Elements in such a unit. */
uint32_t tm_unit_elements(const tm_operation *operation);

/* tm_op_row.splittable: every axis of input 0 where it has y's dims (a packed last axis in whole blocks), or none. */
uint32_t tm_splittable_elementwise(const tm_operation *operation);
uint32_t tm_splittable_none(const tm_operation *operation);

/* Bits 0 .. rank - 1. */
static inline uint32_t tm_axis_mask(uint32_t rank) { return (1u << rank) - 1; }

#endif
