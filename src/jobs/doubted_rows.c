/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/doubted_rows.h"

#include <stdio.h>

#include "base/content_hash.h"
#include "base/text.h"

static uint64_t wrong_count(const tm_inventory *inventory, uint32_t device) {
  if (device != TM_DOUBT_ANY) return atomic_load(&inventory->devices[device]->wrong_count);
  uint64_t sum = 0;
  for (uint32_t i = 0; i < inventory->device_count; i++) sum += atomic_load(&inventory->devices[i]->wrong_count);
  return sum;
}

static tm_doubt *begin(tm_doubted_rows *rows, const tm_inventory *inventory, uint32_t device, const struct tm_trial *trial) {
  tm_doubt *doubt = &rows->doubts[rows->count++];
  *doubt = (tm_doubt){ .device = device, .trial = trial, .wrong_before = wrong_count(inventory, device) };
  return doubt;
}

/* The last place is for all that there is no room for, whatever their devices, so that nothing is left out. */
static tm_doubt *find(tm_doubted_rows *rows, const tm_inventory *inventory, uint32_t device, const struct tm_trial *trial) {
  for (uint32_t i = 0; i < rows->count; i++)
    if (rows->doubts[i].device == device && rows->doubts[i].trial == trial) return &rows->doubts[i];
  if (rows->count + 1 < TM_DOUBT_MOST) return begin(rows, inventory, device, trial);
  if (rows->count < TM_DOUBT_MOST) (void)begin(rows, inventory, TM_DOUBT_ANY, NULL);
  return &rows->doubts[TM_DOUBT_MOST - 1];
}

void tm_doubted_rows_note(tm_doubted_rows *rows, const tm_inventory *inventory, const tm_run_outcome *outcome, tm_string name) {
  if (!inventory->devices[outcome->device]->is_checked) return;
  tm_doubt *doubt = find(rows, inventory, outcome->device, outcome->trial);
  const uint64_t hash = tm_hash_number(name.data, name.length, 0);
  const bool is_first = doubt->piece_count++ == 0;
  if (is_first) {
    doubt->first_hash = hash;
    (void)tm_text_escape(name.data, name.length, doubt->first, sizeof doubt->first);
  }
  doubt->is_one = hash == doubt->first_hash && (is_first || doubt->is_one);
  (void)tm_text_escape(name.data, name.length, doubt->last, sizeof doubt->last);
}

static void write_doubt(const tm_doubt *doubt, const tm_inventory *inventory, char out_text[TM_DOUBT_TEXT_BYTES]) {
  const char *who = doubt->device == TM_DOUBT_ANY ? "a device" : inventory->devices[doubt->device]->name;
  (void)snprintf(out_text, TM_DOUBT_TEXT_BYTES,
                 "%.64s gave a wrong result; what it had computed before may be wrong, too: of %s%s%s%s", who,
                 doubt->is_one ? "" : "rows from ", doubt->first, doubt->is_one ? "" : " to ", doubt->is_one ? "" : doubt->last);
}

bool tm_doubted_rows_tell(const tm_doubted_rows *rows, const tm_inventory *inventory, uint32_t index, char out_text[TM_DOUBT_TEXT_BYTES]) {
  for (uint32_t i = 0; i < rows->count; i++) {
    const tm_doubt *doubt = &rows->doubts[i];
    if (doubt->piece_count == 0 || wrong_count(inventory, doubt->device) == doubt->wrong_before || index-- != 0) continue;
    write_doubt(doubt, inventory, out_text);
    return true;
  }
  return false;
}
