/* SPDX-License-Identifier: Apache-2.0 */
/* shown_size.h - numbers of bytes as people read them in tables: three digits and a unit, "5.25 MB". */
#ifndef TM_BASE_SHOWN_SIZE_H
#define TM_BASE_SHOWN_SIZE_H

#include <stdint.h>

typedef struct tm_shown_size {
  char text[16];
} tm_shown_size;

/* Rounded up: who allows as much as is shown allows enough. */
tm_shown_size tm_show_needed(uint64_t bytes);
/* Rounded down: what is shown is there. */
tm_shown_size tm_show_available(uint64_t bytes);

#endif
