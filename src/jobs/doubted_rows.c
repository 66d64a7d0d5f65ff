/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/doubted_rows.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"

/* Of more kinds than there is room for the last place is shared, so that nothing is left out. */
static tm_doubt *find(tm_doubted_rows *rows, const tm_inventory *inventory, uint32_t device, uint32_t format) {
  for (uint32_t i = 0; i < rows->count; i++)
    if (rows->doubts[i].device == device && rows->doubts[i].format == format) return &rows->doubts[i];
  if (rows->count == TM_DOUBT_MOST) return &rows->doubts[TM_DOUBT_MOST - 1];
  tm_doubt *doubt = &rows->doubts[rows->count++];
  *doubt = (tm_doubt){ .device = device, .format = format, .wrong_before = atomic_load(&inventory->devices[device]->wrong_count) };
  return doubt;
}

static void copy_name(tm_string name, char out_text[TM_DOUBT_NAME_BYTES]) {
  const uint64_t length = tm_min_u64(name.length, TM_DOUBT_NAME_BYTES - 1);
  memcpy(out_text, name.data, length);
  out_text[length] = '\0';
}

void tm_doubted_rows_note(tm_doubted_rows *rows, const tm_inventory *inventory, const tm_run_outcome *outcome, uint32_t format,
                          tm_string name) {
  if (!inventory->devices[outcome->device]->is_checked) return;
  tm_doubt *doubt = find(rows, inventory, outcome->device, format);
  if (outcome->unchecked_runs == 0) {
    if (doubt->device == outcome->device && doubt->format == format) doubt->piece_count = 0;
    return;
  }
  if (doubt->piece_count++ == 0) copy_name(name, doubt->first);
  copy_name(name, doubt->last);
}

bool tm_doubted_rows_tell(const tm_doubted_rows *rows, const tm_inventory *inventory, uint32_t index, char out_text[TM_DOUBT_TEXT_BYTES]) {
  for (uint32_t i = 0; i < rows->count; i++) {
    const tm_doubt *doubt = &rows->doubts[i];
    const tm_device_slot *device = inventory->devices[doubt->device];
    if (doubt->piece_count == 0 || atomic_load(&device->wrong_count) == doubt->wrong_before || index-- != 0) continue;
    const bool is_one = strcmp(doubt->first, doubt->last) == 0;
    (void)snprintf(out_text, TM_DOUBT_TEXT_BYTES,
                   "%s gave a wrong result; what it had computed since its last check may be wrong, too: of %s%s%s%s", device->name,
                   is_one ? "" : "rows from ", doubt->first, is_one ? "" : " to ", is_one ? "" : doubt->last);
    return true;
  }
  return false;
}
