/* SPDX-License-Identifier: Apache-2.0 */
/* log.h - lines for the application's log; the library itself never prints. */
#ifndef TM_BASE_LOG_H
#define TM_BASE_LOG_H

#include <stdint.h>

typedef struct tm_log {
  void (*write)(void *context, uint32_t level, const char *message);    /* NULL: dropped */
  void  *context;
} tm_log;

/* level as TM_LOG_* of plugin.h: 0 debug .. 3 error. */
void tm_log_write(const tm_log *log, uint32_t level, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
