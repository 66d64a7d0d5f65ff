/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <errno.h>
#include <time.h>

#define NS_PER_SECOND UINT64_C(1000000000)

uint64_t tm_now_ns(void) {
  struct timespec now;
  if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) return 0;
  return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

void tm_sleep_ns(uint64_t duration_ns) {
  struct timespec left = { (time_t)(duration_ns / NS_PER_SECOND), (long)(duration_ns % NS_PER_SECOND) };
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

uint64_t tm_clock_now(const tm_clock *clock) { return clock->now_ns == NULL ? tm_now_ns() : clock->now_ns(clock->context); }

uint64_t tm_clock_since(const tm_clock *clock, uint64_t begin_ns) {
  const uint64_t now = tm_clock_now(clock);
  return now > begin_ns ? now - begin_ns : 0;
}
