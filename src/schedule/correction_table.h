/* SPDX-License-Identifier: Apache-2.0 */
/* correction_table.h - the entries of a correction, by what they are about.  All under the correction's lock. */
#ifndef TM_SCHEDULE_CORRECTION_TABLE_H
#define TM_SCHEDULE_CORRECTION_TABLE_H

#include "schedule/correction.h"

#define TM_NO_ENTRY UINT32_MAX

typedef struct tm_correction_entry_key {
  uint32_t kind;                /* TM_CORRECTION_* */
  uint32_t owner;
  uint64_t key;
} tm_correction_entry_key;

bool tm_correction_table_init(tm_correction *correction, tm_memory *memory);
void tm_correction_table_deinit(tm_correction *correction, tm_memory *memory);

/* NULL if there is none.  A pointer holds until the next tm_correction_entry_add. */
tm_correction_entry *tm_correction_entry_find(tm_correction *correction, const tm_correction_entry_key *key);
/* NULL when the table is full: then the levels above must do. */
tm_correction_entry *tm_correction_entry_add(tm_correction *correction, const tm_correction_entry_key *key);

/* It learned something, and `estimate` is what is now thought of it; true if that is worth telling. */
bool tm_correction_entry_changed(tm_correction *correction, tm_correction_entry *entry, int64_t estimate);
/* Makes what was learned the snapshot, if it is worth it and nobody froze it. */
void tm_correction_tell(tm_correction *correction, bool is_worth_it);

#endif
