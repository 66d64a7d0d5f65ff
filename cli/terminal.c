/* SPDX-License-Identifier: Apache-2.0 */
#include "terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "quantity.h"

static uint32_t window_width(int descriptor) {
  struct winsize size;
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static uint32_t wanted_width(void) {
  const char *columns = getenv("COLUMNS");
  uint64_t    width = 0;
  return columns != NULL && tm_quantity_parse_count(columns, &width) && width <= 100000 ? (uint32_t)width : 0;
}

static bool is_set(const char *name) {
  const char *value = getenv(name);
  return value != NULL && value[0] != '\0';
}

void tm_terminal_inspect(tm_choice color, tm_terminal *out_terminal) {
  const char    *term = getenv("TERM");
  const bool     dumb = term == NULL || term[0] == '\0' || strcmp(term, "dumb") == 0;
  const bool     output_is_terminal = isatty(STDOUT_FILENO) == 1, error_is_terminal = isatty(STDERR_FILENO) == 1;
  const uint32_t wanted = wanted_width();
  memset(out_terminal, 0, sizeof *out_terminal);
  out_terminal->is_interactive = output_is_terminal;
  out_terminal->can_redraw = error_is_terminal && !dumb;
  /* An explicit choice outranks NO_COLOR, which outranks what the terminal could do. */
  out_terminal->color =
      color == TM_CHOICE_YES || (color == TM_CHOICE_AUTO && output_is_terminal && !dumb && !is_set("NO_COLOR"));
  out_terminal->width = wanted;
  if (wanted == 0 && output_is_terminal) out_terminal->width = window_width(STDOUT_FILENO);
  out_terminal->redraw_width = wanted != 0 ? wanted : window_width(STDERR_FILENO);
  if (out_terminal->redraw_width == 0) out_terminal->redraw_width = 80;
}

uint64_t tm_terminal_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}
