/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name_table.h - finds items of an array by name in constant time, and notices names that occur twice.  Each item is a
 * struct that begins with a tm_string; the table keeps 8 bytes an item and looks at the array through its address and stride.
 */
#ifndef TM_BASE_NAME_TABLE_H
#define TM_BASE_NAME_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "tensormorph/types.h"

typedef struct tm_name_slot {
  uint32_t hash;
  uint32_t index_plus_one;      /* 0: free */
} tm_name_slot;

typedef struct tm_name_table {
  tm_memory    *memory;
  tm_name_slot *slots;
  uint64_t      slot_count;     /* a power of two, or 0 */
  uint64_t      used_count;
} tm_name_table;

#define TM_NAME_TABLE_LARGEST_INDEX (UINT32_MAX - 1)

void tm_name_table_init(tm_name_table *table, tm_memory *memory);
void tm_name_table_deinit(tm_name_table *table);

/* Adds item `index` of `items`.  If its name is there already nothing is added and *out_existing tells where, else it is
   `index`.  false: no memory. */
bool tm_name_table_add(tm_name_table *table, const void *items, uint64_t stride, uint32_t index, uint32_t *out_existing);

/* The index of the item of that name; false if there is none. */
bool tm_name_table_find(const tm_name_table *table, const void *items, uint64_t stride, tm_string name, uint32_t *out_index);

#endif
