/* SPDX-License-Identifier: Apache-2.0 */
/* system_error.h - the system's words for an errno, without the shared buffer of strerror. */
#ifndef TM_BASE_SYSTEM_ERROR_H
#define TM_BASE_SYSTEM_ERROR_H

typedef struct tm_system_error_text {
  char text[96];
} tm_system_error_text;

/* By value, so that it can stand inside a call: tm_system_error(errno).text */
tm_system_error_text tm_system_error(int number);

#endif
