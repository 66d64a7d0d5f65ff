/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complain.h - how the command says that something is wrong: one line on the error stream, one exit code.
 */
#ifndef TM_CLI_COMPLAIN_H
#define TM_CLI_COMPLAIN_H

#include "tensormorph/types.h"

/* As diff and grep have it, and 128 + signal for what a signal ended. */
#define TM_EXIT_OK          0
#define TM_EXIT_FOUND       1   /* what the user asked to be told about is there */
#define TM_EXIT_USAGE       2   /* the command line, the environment or the configuration is wrong */
#define TM_EXIT_TROUBLE     3   /* a file, the system or a device is */
#define TM_EXIT_INTERRUPTED 130 /* Ctrl-C */
#define TM_EXIT_TERMINATED  143
#define TM_EXIT_CLOSED_PIPE 141 /* whoever read the output stopped reading */

#define TM_CLI_ERROR_INIT { .struct_size = sizeof(tm_error) }

/* Records a status and its text (cut to what fits) and returns the status. */
tm_status tm_refuse(tm_error *error, tm_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A text of the library, into `out`, with flags in place of the names of options that an application would set. */
const char *tm_in_flags(const char *text, char *out, uint64_t capacity);

/* Prints "tensormorph: text" with control characters escaped, and returns the exit code that the status stands for. */
int tm_complain(const tm_error *error);
/* The same for a text that is made here. */
int tm_complain_as(int exit_code, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
