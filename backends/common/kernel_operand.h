/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_operand.h - what every backend asks of operands: their sizes, whether they are dense. */
#ifndef KERNEL_OPERAND_H
#define KERNEL_OPERAND_H

#include <stdint.h>

#include "tensormorph/plugin.h"

/* Elements and bytes of a block of a format (1 element for a plain one); 0 if it is not known. */
int kernel_block_size(uint32_t format, uint32_t *out_elements, uint32_t *out_bytes);

/* Bytes of one element of a plain format; 0 for packed, block and unknown formats. */
uint32_t kernel_element_bytes(uint32_t format);

/* Bytes of one block of a packed or block format; 0 for plain and unknown ones. */
uint32_t kernel_block_bytes(uint32_t format);

/* Bytes that lie below element 0, because strides are negative. */
uint64_t kernel_bytes_below(const tm_operand *operand);

/* Bytes of all operands together, each once. */
double kernel_operand_bytes(const tm_operation *operation);

/* TM_REASON_LAYOUT and the first operand that is not contiguous, or 0. */
uint32_t kernel_refuses_strided(const tm_operation *operation, uint32_t *out_operand);

/* Makes of an operand what a dense copy of it would be; 0, and nothing changed, where that cannot be said. */
int kernel_operand_densify(tm_operand *operand);

/* 1 if bytes [known, size) of a struct that somebody newer may have made are all zero. */
int kernel_rest_is_zero(const void *data, uint64_t known, uint64_t size);

#endif
