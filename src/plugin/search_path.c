/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/search_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dynamic_library.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/process.h"
#include "tensormorph/plugin.h"

#define LONGEST_PATH 4096

typedef struct path_builder {
  tm_arena       *arena;
  const tm_log   *log;
  tm_search_path *path;
  uint32_t        capacity;
} path_builder;

static tm_status no_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the search path"); }

static bool is_known(const tm_search_path *path, const char *folder) {
  for (uint32_t i = 0; i < path->count; i++)
    if (strcmp(path->folders[i], folder) == 0 || tm_path_is_same(path->folders[i], folder)) return true;
  return false;
}

static tm_status add(path_builder *builder, const char *folder, size_t length, tm_error *error) {
  tm_search_path *path = builder->path;
  const char *copy = tm_arena_string(builder->arena, folder, length);
  if (copy == NULL) return no_memory(error);
  if (is_known(path, copy)) return TM_OK;
  if (path->count == builder->capacity) {
    const uint32_t capacity = builder->capacity == 0 ? 8 : builder->capacity * 2;
    const char **grown = tm_arena_calloc(builder->arena, capacity, sizeof *grown);
    if (grown == NULL) return no_memory(error);
    if (path->count != 0) memcpy(grown, path->folders, path->count * sizeof *grown);
    path->folders = grown;
    builder->capacity = capacity;
  }
  path->folders[path->count++] = copy;
  return TM_OK;
}

/* Only absolute folders count: a relative one would depend on where the program was started. */
static tm_status add_variable(path_builder *builder, tm_error *error) {
  const char *path = tm_is_privileged() ? NULL : getenv(TM_SEARCH_PATH_VARIABLE);
  while (path != NULL && *path != '\0') {
    const size_t length = strcspn(path, ":");
    if (length != 0 && path[0] == '/')
      TM_TRY(add(builder, path, length, error));
    else if (length != 0)
      tm_log_write(builder->log, TM_LOG_WARNING, "%s: '%.*s' is no absolute folder and is not searched", TM_SEARCH_PATH_VARIABLE,
                   (int)length, path);
    path += length + (path[length] == ':');
  }
  return TM_OK;
}

/* A package may be installed elsewhere than it was built for: seen from lib/ the folder lies below, from bin/ beside it. */
static tm_status add_own_place(path_builder *builder, tm_error *error) {
  static const char *const places[] = { "tensormorph/plugins", "../" TM_PLUGIN_FOLDER };
  char own[LONGEST_PATH / 2], folder[LONGEST_PATH];
  if (!tm_library_folder(places, own, sizeof own)) return TM_OK;
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    const int length = snprintf(folder, sizeof folder, "%s/%s", own, places[i]);
    if (length > 0 && (size_t)length < sizeof folder && tm_path_is_folder(folder)) return add(builder, folder, (size_t)length, error);
  }
  return TM_OK;
}

tm_status tm_search_path_make(tm_arena *arena, const tm_log *log, tm_search_path *out_path, tm_error *error) {
  path_builder builder = { .arena = arena, .log = log, .path = out_path };
  *out_path = (tm_search_path){ NULL, 0 };
  TM_TRY(add_variable(&builder, error));
  TM_TRY(add_own_place(&builder, error));
  return add(&builder, TM_PLUGIN_DIRECTORY, strlen(TM_PLUGIN_DIRECTORY), error);
}
