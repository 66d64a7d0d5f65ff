/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keyed_order.h - puts many items in the order of 64-bit keys, items of one key in the order in which they came; in linear time,
 * whatever the keys are.
 */
#ifndef TM_BASE_KEYED_ORDER_H
#define TM_BASE_KEYED_ORDER_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct tm_keyed_item {
  uint64_t key;
  uint64_t item;
} tm_keyed_item;

/* Sorts `items`; `spare` has room for as many.  `cancelled` may be NULL; once it is not 0 they come in any order. */
void tm_keyed_order_sort(tm_keyed_item *items, tm_keyed_item *spare, uint64_t count, const _Atomic uint32_t *cancelled);

#endif
