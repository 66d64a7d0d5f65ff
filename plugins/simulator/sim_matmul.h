/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_matmul.h - the product, and the packed layout of its constant factor: a head that says what it holds, then tiles of
 * 16 x 16 elements, row by row of tiles and row by row within one.  Both extents are multiples of 16.
 */
#ifndef SIM_MATMUL_H
#define SIM_MATMUL_H

#include "sim_loops.h"

#define SIM_TILE 16u
/* The private format that packs a public one. */
#define SIM_PACKED(format) (TM_FORMAT_PRIVATE | (format))

/* Bytes of a packed matrix; 0 if it has too many. */
uint64_t sim_packed_bytes(uint64_t rows, uint64_t columns, uint64_t element_bytes);

void sim_matmul_run(const sim_task *task);
/* TM_OP_CONVERT from a dense matrix to its packed form. */
void sim_pack_run(const sim_task *task);

#endif
