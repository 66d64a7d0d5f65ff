/* SPDX-License-Identifier: Apache-2.0 */
/* byte_order.h - the numbers inside a format's bytes, for files whose numbers have their most significant byte first. */
#ifndef TM_TENSOR_BYTE_ORDER_H
#define TM_TENSOR_BYTE_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "tensor/format.h"

/* Whether it is known where the numbers lie; false also where writers of such files disagree. */
bool tm_byte_order_is_known(const tm_format_info *info);

/* Turns every number in `block_count` blocks of a known format around, in place. */
void tm_byte_order_swap(const tm_format_info *info, void *data, uint64_t block_count);

#endif
