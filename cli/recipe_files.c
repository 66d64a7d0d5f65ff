/* SPDX-License-Identifier: Apache-2.0 */
#include "recipe_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "complain.h"
#include "merge_recipe.h"

static bool look_up(const char *path, tm_known_file *out_file, bool *out_is_folder) {
  struct stat found;
  if (stat(path, &found) != 0) return false;
  *out_file = (tm_known_file){ (uint64_t)found.st_dev, (uint64_t)found.st_ino };
  *out_is_folder = S_ISDIR(found.st_mode);
  return true;
}

static void add(tm_recipe_files *files, const char *path) {
  bool is_folder = false;
  files->count += look_up(path, &files->items[files->count], &is_folder);
}

static tm_status add_checkpoint(tm_context *context, tm_recipe_files *files, tm_error *error) {
  tm_checkpoint_description about = { .struct_size = sizeof about };
  tm_file_description       file = { .struct_size = sizeof file };
  tm_checkpoint            *checkpoint = NULL;
  const tm_status           status = tm_checkpoint_open(context, files->path, 0, &checkpoint, error);
  if (status != TM_OK) return status;
  tm_checkpoint_describe(checkpoint, &about);
  tm_known_file *grown = realloc(files->items, ((size_t)about.file_count + 1) * sizeof *grown);
  if (grown != NULL) files->items = grown;
  for (uint32_t i = 0; grown != NULL && tm_checkpoint_file(checkpoint, i, &file) == TM_OK; i++) add(files, file.path);
  tm_checkpoint_close(checkpoint);
  return grown != NULL ? TM_OK : tm_refuse(error, TM_ERROR_NO_MEMORY, "out of memory");
}

tm_status tm_recipe_files_find(tm_context *context, const char *recipe, tm_recipe_files *out_files, tm_error *error) {
  tm_known_file own;
  *out_files = (tm_recipe_files){ .path = recipe, .items = malloc(sizeof *out_files->items) };
  if (out_files->items == NULL) return tm_refuse(error, TM_ERROR_NO_MEMORY, "out of memory");
  if (!look_up(recipe, &own, &out_files->is_folder)) return TM_OK;
  out_files->items[out_files->count++] = own;
  return tm_merge_recipe_is_checkpoint(recipe) ? add_checkpoint(context, out_files, error) : TM_OK;
}

void tm_recipe_files_free(tm_recipe_files *files) {
  free(files->items);
  files->items = NULL;
}

/* An index directly in the folder that is the recipe: the folder may be known by it. */
static bool is_index_inside(const tm_recipe_files *files, const char *path) {
  static const char ending[] = ".index.json";
  const size_t      length = strlen(path), tail = strlen(ending);
  const char       *slash = strrchr(path, '/');
  char              parent[4096];
  tm_known_file     folder;
  bool              is_folder = false;
  if (!files->is_folder || length < tail || strcmp(path + length - tail, ending) != 0) return false;
  const int kept = slash == NULL ? 1 : (int)(slash - path + 1);
  const int used = snprintf(parent, sizeof parent, "%.*s", kept, slash == NULL ? "." : path);
  return used > 0 && (size_t)used < sizeof parent && look_up(parent, &folder, &is_folder) &&
         folder.device == files->items[0].device && folder.number == files->items[0].number;
}

bool tm_recipe_files_have(const tm_recipe_files *files, const char *path) {
  tm_known_file file;
  bool          is_folder = false;
  if (!look_up(path, &file, &is_folder)) return false;
  for (uint32_t i = 0; i < files->count; i++)
    if (files->items[i].device == file.device && files->items[i].number == file.number) return true;
  return is_index_inside(files, path);
}
