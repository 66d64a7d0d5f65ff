/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/description.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define LONGEST_PLACE 128

bool tm_description_is_readable(tm_string text) {
  return text.length == 0 || (text.data != NULL && text.length <= TM_LONGEST_DESCRIPTION);
}

bool tm_description_is_text(tm_string text) {
  return text.length == 0 || (tm_description_is_readable(text) && tm_text_is_clean(text.data, text.length));
}

void tm_description_doubt(tm_backend_slot *slot, tm_string text, const char *format, ...) {
  char place[LONGEST_PLACE];
  va_list arguments;
  if (slot->odd_text != NULL || tm_description_is_text(text)) return;
  va_start(arguments, format);
  (void)vsnprintf(place, sizeof place, format, arguments);
  va_end(arguments);
  slot->odd_text = tm_arena_string(&slot->inventory->arena, place, strlen(place));
}
