/* SPDX-License-Identifier: Apache-2.0 */
#include "base/reason_list.h"

#include <stdio.h>

#define COUNT_BYTES 32u         /* " and 4294967295 more" */

void tm_reason_list_add(tm_reason_list *list, const char *name, const char *reason) {
  const size_t room = sizeof list->text - list->used - COUNT_BYTES;
  char *at = list->text + list->used;
  const int length = list->untold != 0 ? -1 : snprintf(at, room, "%s%s (%s)", list->used == 0 ? "" : ", ", name, reason);
  if (length < 0 || (size_t)length >= room) {
    *at = '\0';
    list->untold++;
    return;
  }
  list->used += (size_t)length;
}

void tm_reason_list_end(tm_reason_list *list) {
  if (list->untold == 0) return;
  const char *what = list->used == 0 ? "" : " and ";
  (void)snprintf(list->text + list->used, sizeof list->text - list->used, "%s%u more", what, list->untold);
}
