/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - from the user's preferences to a context of the library. */
#ifndef TM_CLI_SESSION_H
#define TM_CLI_SESSION_H

#include "preferences.h"
#include "tensormorph/tensormorph.h"

typedef struct tm_session_needs {
  uint32_t flags;               /* TM_CONTEXT_*, besides those that every command has */
  uint64_t max_header_bytes;    /* 0: the library's limit */
  bool     has_warnings;        /* the library's warnings are for the user, unless it is to be quiet */
  bool     uses_profile;        /* so is, of them, what is wrong with what was learned */
} tm_session_needs;

/*
 * Creates the context with the user's devices, limits and options, TENSORMORPH_<BACKEND>_<OPTION> included.
 * TM_ERROR_ARGUMENT (an unknown device, backend, option or variable, with a suggestion), TM_ERROR_NO_MEMORY, ...
 */
tm_status tm_session_open(tm_preferences *preferences, const tm_session_needs *needs, tm_context **out_context,
                          tm_error *error);

/* "TENSORMORPH_<BACKEND>_<OPTION>", upper case, with '_' for what cannot stand in a variable's name. */
void tm_session_variable_name(const char *backend, const char *option, char *out, size_t capacity);

/* For commands that compute: some device must be left.   TM_ERROR_NO_DEVICE, with what became of each backend */
tm_status tm_session_require_device(tm_context *context, tm_error *error);

#endif
