/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_file.h - the configuration file: lines "key = value", empty lines, and lines that begin with '#'.  Space
 * around key and value does not count; a value may hold anything else, also '#' and '='.
 */
#ifndef TM_CLI_CONFIG_FILE_H
#define TM_CLI_CONFIG_FILE_H

#include <stddef.h>

#include "tensormorph/types.h"

#define TM_CONFIG_FILE_MAX_BYTES 1048576

/* Called for each assignment; key and value live as long as the text that is parsed. */
typedef tm_status (*tm_config_entry_fn)(void *context, unsigned line, const char *key, const char *value,
                                        tm_error *error);

/* Cuts `text` (NUL-terminated, changed) into assignments.  `path` is for messages.   TM_ERROR_ARGUMENT, with the line
 */
tm_status tm_config_parse(const char *path, char *text, size_t length, tm_config_entry_fn entry, void *context,
                          tm_error *error);

/* The whole file as a NUL-terminated text that the caller frees; NULL with TM_OK when there is no such file.
   TM_ERROR_IO, TM_ERROR_NO_MEMORY, TM_ERROR_ARGUMENT (too large) */
tm_status tm_config_read(const char *path, char **out_text, size_t *out_length, tm_error *error);

#endif
