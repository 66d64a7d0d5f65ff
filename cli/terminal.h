/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.h - what the output goes to, and the time that passes meanwhile. */
#ifndef TM_CLI_TERMINAL_H
#define TM_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

#include "preferences.h"

typedef struct tm_terminal {
  bool     color;               /* of the output */
  bool     is_interactive;      /* the output is a terminal: a person reads it */
  bool     can_redraw;          /* the error stream is a terminal that can rewrite a line */
  uint32_t width;               /* cells a line of the output may have; 0: no limit */
  uint32_t redraw_width;        /* of the error stream; 80 if unknown */
} tm_terminal;

/* Reads COLUMNS, NO_COLOR and TERM; COLUMNS counts also where the output is no terminal. */
void tm_terminal_inspect(tm_choice color, tm_terminal *out_terminal);

/* Monotonic. */
uint64_t tm_terminal_now_ns(void);

#endif
