/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/write_target_path.h"

#include <string.h>

#include "base/error.h"
#include "base/folder.h"
#include "base/system_error.h"
#include "base/text.h"
#include "base/write_target.h"
#include "formats/standing_files.h"

#define LABEL_BYTES 256u
#define INDEX_ENDING ".index.json"

static const char *const extensions[] = { ".safetensors", ".gguf" };

static tm_status fail_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a path"); }

static bool split(tm_arena *arena, const char *path, const char **out_folder, const char **out_name) {
  const char *slash = strrchr(path, '/');
  const char *name = slash == NULL ? path : slash + 1;
  *out_folder = tm_arena_string(arena, path, tm_path_folder_length(path));
  *out_name = tm_arena_string(arena, name, strlen(name));
  return *out_folder != NULL && *out_name != NULL;
}

static tm_status check_name(const tm_write_target_path *target, const char *extension, tm_error *error) {
  if (tm_text_has_ending(target->name, INDEX_ENDING))
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: is the name of an index, which is written beside; name the model: X.safetensors",
                   target->label);
  for (size_t i = 0; i < sizeof extensions / sizeof extensions[0]; i++)
    if (strcmp(extensions[i], extension) != 0 && tm_text_has_ending(target->name, extensions[i]))
      return tm_fail(error, TM_ERROR_ARGUMENT, "%s: is the name of a %s file, but a %s file is to be written", target->label,
                     extensions[i], extension);
  return TM_OK;
}

static tm_status follow(tm_arena *arena, const char *path, tm_write_target_path *target, tm_error *error) {
  char linked[TM_LONGEST_PATH];
  const int number = tm_write_target_find(path, linked);
  if (number != 0)
    return tm_fail_native(error, TM_ERROR_IO, number, "%s: cannot be written to: %s", target->label, tm_system_error(number).text);
  target->is_link = strcmp(path, linked) != 0;
  if (!target->is_link) return TM_OK;
  return split(arena, linked, &target->linked_folder, &target->linked_name) ? TM_OK : fail_memory(error);
}

/* X.safetensors.index.json stands for X.safetensors where a set is only looked for. */
static void drop_index_ending(char *name) {
  if (tm_text_has_ending(name, INDEX_ENDING)) name[strlen(name) - (sizeof INDEX_ENDING - 1)] = '\0';
}

tm_status tm_write_target_path_find(tm_arena *arena, const char *path, const char *extension, tm_write_target_path *out_target,
                                    tm_error *error) {
  tm_write_target_path target = { 0 };
  if (path == NULL || path[0] == '\0') return tm_fail(error, TM_ERROR_ARGUMENT, "no path to write to");
  char *label = tm_arena_alloc(arena, LABEL_BYTES);
  char *copy = tm_arena_string(arena, path, strlen(path));
  if (label == NULL || copy == NULL) return fail_memory(error);
  (void)tm_text_escape(path, strlen(path), label, LABEL_BYTES);
  target.label = label;
  if (tm_path_is_folder(path) || path[strlen(path) - 1] == '/')
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: is a folder; name the file in it, such as model.safetensors", label);
  if (extension == NULL) drop_index_ending(copy);
  if (!split(arena, copy, &target.folder, &target.name)) return fail_memory(error);
  if (extension != NULL) TM_TRY(check_name(&target, extension, error));
  TM_TRY(follow(arena, copy, &target, error));
  const bool is_gguf = extension == NULL ? tm_text_has_ending(target.name, ".gguf") : strcmp(extension, ".gguf") == 0;
  if (!is_gguf) {
    target.index = tm_standing_index_name(arena, target.name);
    if (target.index == NULL) return fail_memory(error);
  }
  *out_target = target;
  return TM_OK;
}
