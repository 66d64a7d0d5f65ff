/* SPDX-License-Identifier: Apache-2.0 */
/* diff_wishes.h - what the user of diff asked for, read from the command line and checked. */
#ifndef TM_CLI_DIFF_WISHES_H
#define TM_CLI_DIFF_WISHES_H

#include "arguments.h"
#include "layer_groups.h"

typedef struct tm_diff_wishes {
  tm_layer_key by;              /* TM_BY_TENSOR: rows are tensors */
  double       tolerance;       /* negative: none */
  bool         is_exact;
  bool         with_same;
  bool         names_only;
} tm_diff_wishes;

/* TM_ERROR_ARGUMENT */
tm_status tm_diff_wishes_parse(tm_diff_wishes *wishes, const tm_arguments *arguments, tm_error *error);

#endif
