/* SPDX-License-Identifier: Apache-2.0 */
#include "progress_line.h"

#include <stdio.h>
#include <string.h>

#include "quantity.h"

#define MILLISECOND_NS UINT64_C(1000000)
#define FIRST_DRAW_NS  (250 * MILLISECOND_NS)
#define REDRAW_NS      (100 * MILLISECOND_NS)
#define RATE_NS        (500 * MILLISECOND_NS)

void tm_progress_line_init(tm_progress_line *line, const tm_terminal *terminal, bool is_wanted, uint64_t now_ns) {
  memset(line, 0, sizeof *line);
  line->is_wanted = is_wanted && terminal->can_redraw;
  line->width = terminal->redraw_width;
  line->next_draw_ns = now_ns + FIRST_DRAW_NS;
  line->rate_since_ns = now_ns;
}

/* Appends a part if the line still has room for it; false stops the line there. */
static bool append(char *out, size_t capacity, uint32_t width, const char *part) {
  const size_t used = strlen(out), length = strlen(part);
  if (used + length > width || used + length >= capacity) return false;
  memcpy(out + used, part, length + 1);
  return true;
}

static uint64_t remaining_seconds(const tm_progress *progress, double bytes_per_second) {
  const uint64_t left = progress->bytes_total > progress->bytes_done ? progress->bytes_total - progress->bytes_done : 0;
  return (uint64_t)((double)left / bytes_per_second + 0.5);
}

void tm_progress_format(const tm_progress *progress, double bytes_per_second, uint32_t width, char *out,
                        size_t capacity) {
  char        part[4 * TM_QUANTITY_BYTES];
  tm_quantity a, b;
  const double fraction = progress->bytes_total > 0 ? (double)progress->bytes_done / (double)progress->bytes_total : 0;
  out[0] = '\0';
  snprintf(part, sizeof part, "%3u%%", (unsigned)(fraction > 1 ? 100 : fraction * 100));
  if (!append(out, capacity, width, part)) return;
  snprintf(part, sizeof part, "  %s of %s", tm_quantity_bytes(progress->bytes_done, &a),
           tm_quantity_bytes(progress->bytes_total, &b));
  if (!append(out, capacity, width, part)) return;
  if (bytes_per_second >= 1) {
    const uint64_t seconds = remaining_seconds(progress, bytes_per_second);
    snprintf(part, sizeof part, "  %s  ETA %s", tm_quantity_rate((uint64_t)bytes_per_second, UINT64_C(1000000000), &a),
             seconds < 360000 ? tm_quantity_clock(seconds, &b) : "days");
    if (!append(out, capacity, width, part)) return;
  }
  if (progress->items_total > 1 && progress->items_done < progress->items_total) {
    snprintf(part, sizeof part, "  tensor %s of %s", tm_quantity_count(progress->items_done + 1, &a),
             tm_quantity_count(progress->items_total, &b));
    append(out, capacity, width, part);
  }
}

/* A rate that follows the last seconds, so that the estimate is not spoiled by a slow start. */
static void take_rate(tm_progress_line *line, const tm_progress *progress, uint64_t now_ns) {
  if (now_ns - line->rate_since_ns < RATE_NS) return;
  const double seconds = (double)(now_ns - line->rate_since_ns) / 1e9;
  const double rate = (double)(progress->bytes_done - line->rate_since_bytes) / seconds;
  line->bytes_per_second = line->bytes_per_second <= 0 ? rate : 0.7 * line->bytes_per_second + 0.3 * rate;
  line->rate_since_ns = now_ns;
  line->rate_since_bytes = progress->bytes_done;
}

void tm_progress_line_update(tm_progress_line *line, const tm_progress *progress, uint64_t now_ns) {
  char text[512];
  if (!line->is_wanted) return;
  take_rate(line, progress, now_ns);
  if (now_ns < line->next_draw_ns) return;
  line->next_draw_ns = now_ns + REDRAW_NS;
  /* The last cell stays free: some terminals break the line when it is filled. */
  tm_progress_format(progress, line->bytes_per_second, line->width > 1 ? line->width - 1 : 1, text, sizeof text);
  fprintf(stderr, "\r%s\x1b[K", text);
  line->is_shown = true;
}

void tm_progress_line_clear(tm_progress_line *line) {
  if (line->is_shown) fputs("\r\x1b[K", stderr);
  line->is_shown = false;
}
