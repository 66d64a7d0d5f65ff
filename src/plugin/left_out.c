/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/left_out.h"

#include <stdio.h>
#include <string.h>

#define COUNT_BYTES 32u         /* " and 4294967295 more" */

void tm_left_out_describe(const tm_inventory *inventory, char out_text[TM_LEFT_OUT_BYTES]) {
  size_t used = 0;
  uint32_t untold = 0;
  out_text[0] = '\0';
  for (uint32_t i = 0; i < inventory->backend_count; i++) {
    const tm_backend_slot *backend = inventory->backends[i];
    if (atomic_load(&backend->state) != TM_BACKEND_EXCLUDED) continue;
    char one[128];
    const int length = snprintf(one, sizeof one, "%s%.64s", used == 0 ? "; left out by request: " : ", ", backend->name);
    if (length < 0 || used + (size_t)length + COUNT_BYTES >= TM_LEFT_OUT_BYTES || untold != 0) {
      untold++;
      continue;
    }
    memcpy(out_text + used, one, (size_t)length + 1);
    used += (size_t)length;
  }
  if (untold != 0) snprintf(out_text + used, TM_LEFT_OUT_BYTES - used, " and %u more", untold);
}
