/* SPDX-License-Identifier: Apache-2.0 */
/* companion.h - files and programs that are installed beside the command, found from where the command itself lies. */
#ifndef TM_CLI_COMPANION_H
#define TM_CLI_COMPANION_H

#include <stdbool.h>
#include <stddef.h>

/* "<folder of the command>/<one of places>/<name>", the first that exists; places ends with NULL.  False if none does. */
bool tm_companion_find(const char *const *places, const char *name, char *out_path, size_t capacity);

/* Runs a program that writes where the command writes, and waits for it.  argv ends with NULL.  False if it cannot be
   started (errno says why); *out_status is as waitpid has it. */
bool tm_companion_run(const char *path, const char *const *argv, int *out_status);

#endif
