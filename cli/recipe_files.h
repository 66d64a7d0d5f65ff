/* SPDX-License-Identifier: Apache-2.0 */
/* recipe_files.h - the files that a recipe is, so that no result is written over one of them. */
#ifndef TM_CLI_RECIPE_FILES_H
#define TM_CLI_RECIPE_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "tensormorph/tensormorph.h"

typedef struct tm_known_file {
  uint64_t device;
  uint64_t number;
} tm_known_file;

typedef struct tm_recipe_files {
  const char    *path;          /* of the recipe */
  bool           is_folder;     /* whose index is one of the files */
  tm_known_file *items;
  uint32_t       count;
} tm_recipe_files;

/* Of a text it is one, of a checkpoint all that it consists of.  What is not there is none.   TM_ERROR_NO_MEMORY, or what opening a
   checkpoint may return */
tm_status tm_recipe_files_find(tm_context *context, const char *recipe, tm_recipe_files *out_files, tm_error *error);
void      tm_recipe_files_free(tm_recipe_files *files);

/* Whether the path leads to one of them. */
bool tm_recipe_files_have(const tm_recipe_files *files, const char *path);

#endif
