/* SPDX-License-Identifier: Apache-2.0 */
#include "base/shown_size.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#define THREE_DIGITS 999u

/* Of the number in hundredths of a unit as many digits as three allow. */
static tm_shown_size show(uint64_t bytes, bool rounds_up) {
  static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB", "EB" };
  tm_shown_size shown;
  uint64_t scale = 1, decimals = 1, count = bytes;
  uint32_t unit = 0;
  int places = 0;
  while (count > THREE_DIGITS) {        /* beyond 999 hundredths come tenths, then ones, then hundredths of the next unit */
    scale *= 10;
    count = bytes / scale + (rounds_up && bytes % scale != 0 ? 1 : 0);
    places = places == 0 ? 2 : places - 1;
    unit += places == 2 ? 1 : 0;
  }
  for (int i = 0; i < places; i++) decimals *= 10;
  if (places == 0) (void)snprintf(shown.text, sizeof shown.text, "%" PRIu64 " %s", count, units[unit]);
  else (void)snprintf(shown.text, sizeof shown.text, "%" PRIu64 ".%0*" PRIu64 " %s", count / decimals, places, count % decimals, units[unit]);
  return shown;
}

tm_shown_size tm_show_needed(uint64_t bytes) { return show(bytes, true); }

tm_shown_size tm_show_available(uint64_t bytes) { return show(bytes, false); }
