/* SPDX-License-Identifier: Apache-2.0 */
/* process.h - running a small program to find out something that must not hurt this process. */
#ifndef TM_BASE_PROCESS_H
#define TM_BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "tensormorph/types.h"

/* How a child ended. */
typedef struct tm_process_result {
  bool     timed_out;           /* it was killed */
  int32_t  signal;              /* that ended it; 0: none */
  int32_t  exit_code;           /* if it ended by itself */
  uint64_t output_length;
  char     output[1024];        /* the start of its standard output, NUL-terminated */
} tm_process_result;

/* Runs `program` with up to two arguments (NULL ends them) and the environment of this process, standard input closed.
   Needs no signal handler and disturbs none.   TM_ERROR_NOT_FOUND, TM_ERROR_IO */
tm_status tm_process_run(const char *program, const char *first, const char *second, uint64_t timeout_ns,
                         tm_process_result *out_result, tm_error *error);

/* Whether `path` is a file that this process may execute. */
bool tm_is_executable(const char *path);
/* Whether this process runs with more rights than its caller (set-user-id): the environment is then not trusted. */
bool tm_is_privileged(void);

#endif
