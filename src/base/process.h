/* SPDX-License-Identifier: Apache-2.0 */
/* process.h - running a small program to find out something that must not hurt this process. */
#ifndef TM_BASE_PROCESS_H
#define TM_BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "tensormorph/types.h"

typedef struct tm_process_limits {
  uint64_t silence_ns;          /* between two outputs, and from the start to the first */
  uint64_t total_ns;
  uint64_t output_bytes;        /* more is read and dropped; at least 1, which ends it */
  /* After each output, with all of it; may change both times.  NULL: they stay. */
  void   (*listen)(void *context, const char *output, uint64_t length, uint64_t *silence_ns, uint64_t *total_ns);
  void    *context;
} tm_process_limits;

/* How a child ended. */
typedef struct tm_process_result {
  bool       timed_out;         /* it was killed */
  bool       is_unseen;         /* somebody else collected it: nobody knows how it ended */
  int32_t    signal;            /* that ended it; 0: none */
  int32_t    exit_code;         /* if it ended by itself */
  uint64_t   output_length;
  char      *output;            /* the start of its standard output, NUL-terminated */
  uint64_t   capacity;
  tm_memory *memory;
} tm_process_result;

/* Runs command[0] with the arguments that follow, NULL at the end, and the environment of this process; standard input is
   empty.  What the child started and left behind is killed with it.  Needs no signal handler and disturbs none.  The result
   is to be deinited.   TM_ERROR_NOT_FOUND (it cannot be started), TM_ERROR_IO (nothing can be, now), TM_ERROR_NO_MEMORY */
tm_status tm_process_run(tm_memory *memory, const char *const *command, const tm_process_limits *limits,
                         tm_process_result *out_result, tm_error *error);
void tm_process_result_deinit(tm_process_result *result);

/* Whether `path` is a file that this process may execute. */
bool tm_is_executable(const char *path);
/* Whether this process runs with more rights than its caller (set-user-id): the environment is then not trusted. */
bool tm_is_privileged(void);

#endif
