/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - monotonic time. */
#ifndef TM_BASE_CLOCK_H
#define TM_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds since some fixed moment; never goes back. */
uint64_t tm_now_ns(void);
void     tm_sleep_ns(uint64_t duration_ns);

/* What durations are measured with: the time above, or another one that a test moves as it likes. */
typedef struct tm_clock {
  uint64_t (*now_ns)(void *context);    /* NULL: tm_now_ns */
  void      *context;
} tm_clock;

uint64_t tm_clock_now(const tm_clock *clock);
/* The time since then; 0 on a clock that went back. */
uint64_t tm_clock_since(const tm_clock *clock, uint64_t begin_ns);

#endif
