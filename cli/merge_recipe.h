/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_recipe.h - a merge written down in a file: YAML, and so JSON, too.  The reader knows every key and says of all others where
 * they stand.  The JSON that a merged checkpoint carries is such a recipe.
 */
#ifndef TM_CLI_MERGE_RECIPE_H
#define TM_CLI_MERGE_RECIPE_H

#include <stddef.h>

#include "merge_request.h"

#define TM_MERGE_RECIPE_MAX_BYTES 1048576u

/* Adds what the text says.  `path` is for messages, and paths in the recipe count from its folder.
   TM_ERROR_ARGUMENT with "path:line:column: ...", TM_ERROR_NO_MEMORY */
tm_status tm_merge_recipe_parse(const char *path, const char *text, size_t length, tm_merge_request *request, tm_error *error);

/* Whether a recipe of that path is what a checkpoint says of itself. */
bool tm_merge_recipe_is_checkpoint(const char *path);

/* The same for a file, or for what a merged checkpoint says of itself.
   Besides: TM_ERROR_NOT_FOUND, TM_ERROR_IO, and what opening a checkpoint may return */
tm_status tm_merge_recipe_load(tm_context *context, const char *path, tm_merge_request *request, tm_error *error);

#endif
