/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flag.h - a command line option as a row.  Parsing, --help, and the checks of man page and completions use these rows.
 */
#ifndef TM_CLI_FLAG_H
#define TM_CLI_FLAG_H

#include <stdbool.h>

#include "tensormorph/types.h"

typedef enum tm_flag_kind {
  TM_FLAG_SWITCH,               /* no value */
  TM_FLAG_TEXT,
  TM_FLAG_COUNT,                /* tm_quantity_parse_count */
  TM_FLAG_SIZE,                 /* tm_quantity_parse_size */
  TM_FLAG_DURATION,             /* tm_quantity_parse_duration */
  TM_FLAG_NUMERICS              /* N0, N1, N2, N3 */
} tm_flag_kind;

/* A list of rows ends with one whose name is NULL. */
typedef struct tm_flag {
  const char  *name;            /* without the dashes */
  char         letter;          /* 0: none */
  tm_flag_kind kind;
  bool         negatable;       /* a switch that --no-NAME turns off */
  const char  *value;           /* what --help calls it; NULL for switches */
  const char  *help;            /* one sentence without a full stop */
} tm_flag;

/* The options that every command has. */
extern const tm_flag tm_common_flags[];

/* Is `value` what the flag wants?  `where` ("--threads", "config:3: threads") begins the message. */
tm_status tm_flag_check(const tm_flag *flag, const char *where, const char *value, tm_error *error);
/* "N2" -> 2; false if it is no class that can be asked for. */
bool tm_numerics_parse(const char *text, uint32_t *out_numerics);
/* "1" yes true on -> true; "0" no false off -> false; the result says whether it was one of them. */
bool tm_switch_parse(const char *text, bool *out_value);

#endif
