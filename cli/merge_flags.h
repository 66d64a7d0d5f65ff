/* SPDX-License-Identifier: Apache-2.0 */
/* merge_flags.h - the options of merge, and what they ask for. */
#ifndef TM_CLI_MERGE_FLAGS_H
#define TM_CLI_MERGE_FLAGS_H

#include "arguments.h"
#include "merge_request.h"

extern const tm_flag tm_merge_flags[];

/* Operands, then the recipe, then options, each over what came before.  Whether all is there is for tm_merge_request_check.
   TM_ERROR_ARGUMENT, TM_ERROR_NO_MEMORY, and what reading the recipe may return */
tm_status tm_merge_flags_read(tm_context *context, const tm_arguments *arguments, tm_merge_request *request, tm_error *error);

#endif
