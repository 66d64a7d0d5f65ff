/* SPDX-License-Identifier: Apache-2.0 */
/* reason_list.h - "a:0 (reason), b:0 (reason) and 2 more" for an error's text: nothing in it is cut. */
#ifndef TM_BASE_REASON_LIST_H
#define TM_BASE_REASON_LIST_H

#include <stddef.h>
#include <stdint.h>

/* All zero: nothing is in it. */
typedef struct tm_reason_list {
  char     text[560];
  size_t   used;
  uint32_t untold;              /* had no room */
} tm_reason_list;

void tm_reason_list_add(tm_reason_list *list, const char *name, const char *reason);
/* Appends how many are not in it; after that nothing is added any more. */
void tm_reason_list_end(tm_reason_list *list);

#endif
