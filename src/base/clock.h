/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - monotonic time. */
#ifndef TM_BASE_CLOCK_H
#define TM_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds since some fixed moment; never goes back. */
uint64_t tm_now_ns(void);
void     tm_sleep_ns(uint64_t duration_ns);

#endif
