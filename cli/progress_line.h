/* SPDX-License-Identifier: Apache-2.0 */
/* progress_line.h - one line on the error stream that says how far a job is, redrawn in place and gone at the end. */
#ifndef TM_CLI_PROGRESS_LINE_H
#define TM_CLI_PROGRESS_LINE_H

#include <stddef.h>

#include "tensormorph/tensormorph.h"
#include "terminal.h"

typedef struct tm_progress_line {
  bool     is_shown;            /* something stands there that must be cleared */
  bool     is_wanted;
  uint32_t width;
  uint64_t next_draw_ns;
  uint64_t rate_since_ns;       /* the last moment that the rate was taken at */
  uint64_t rate_since_bytes;
  double   bytes_per_second;    /* over the last seconds; 0: not known yet */
} tm_progress_line;

/* Nothing is drawn in the first moments: what ends at once needs no progress. */
void tm_progress_line_init(tm_progress_line *line, const tm_terminal *terminal, bool is_wanted, uint64_t now_ns);
void tm_progress_line_update(tm_progress_line *line, const tm_progress *progress, uint64_t now_ns);
void tm_progress_line_clear(tm_progress_line *line);

/* " 37%  12.3 GB of 33.1 GB  2.10 GB/s  ETA 0:09  tensor 120 of 311", as much of it as fits. */
void tm_progress_format(const tm_progress *progress, double bytes_per_second, uint32_t width, char *out,
                        size_t capacity);

#endif
