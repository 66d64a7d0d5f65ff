/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/system_error.h"

bool tm_path_is_folder(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool tm_name_is_hidden(const char *name) { return name[0] == '.'; }

bool tm_path_exists(const char *path) {
  struct stat status;
  return stat(path, &status) == 0;
}

bool tm_path_has_entry(const char *path) {
  struct stat status;
  return lstat(path, &status) == 0;
}

const char *tm_folder_openness(const char *path) {
  struct stat status;
  if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode)) return NULL;
  if ((status.st_mode & S_IWOTH) != 0) return "everybody may write to it (chmod o-w)";
  if ((status.st_mode & S_IWGRP) != 0 && status.st_uid != geteuid()) return "it is not ours, and its group may write to it (chmod g-w)";
  return NULL;
}

bool tm_path_identify(const char *path, tm_path_identity *out_identity) {
  struct stat status;
  if (stat(path, &status) != 0) return false;
  *out_identity = (tm_path_identity){ (uint64_t)status.st_dev, (uint64_t)status.st_ino };
  return true;
}

/* Some file systems have no idea, and say that they have no blocks at all. */
bool tm_folder_free_bytes(const char *path, uint64_t *out_bytes) {
  struct statvfs status;
  if (statvfs(path, &status) != 0 || status.f_blocks == 0) return false;
  const uint64_t blocks = geteuid() == 0 ? status.f_bfree : status.f_bavail;
  return tm_checked_mul(blocks, status.f_frsize, out_bytes);
}

bool tm_path_is_same(const char *a, const char *b) {
  struct stat first;
  struct stat second;
  return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

bool tm_path_goes_inwards(const char *path) {
  if (path[0] == '\0' || path[0] == '/') return false;
  for (const char *part = path; part != NULL;) {
    const char *slash = strchr(part, '/');
    const size_t length = slash == NULL ? strlen(part) : (size_t)(slash - part);
    if (length == 2 && part[0] == '.' && part[1] == '.') return false;
    part = slash == NULL ? NULL : slash + 1;
  }
  return true;
}

/* Is the first path below the folder whose path is the first `length` bytes of the second?  Both are resolved. */
static bool is_below(const char *path, const char *folder, size_t length) {
  if (length == 1) return true;                 /* the root */
  return strncmp(path, folder, length) == 0 && path[length] == '/';
}

/* Resolved paths begin with a slash. */
static size_t resolved_folder_length(const char *path) {
  const size_t length = (size_t)(strrchr(path, '/') - path);
  return length == 0 ? 1 : length;
}

static char *resolve_folder(const char *path) {
  const uint64_t length = tm_path_folder_length(path);
  char *folder = length == 0 ? strdup(".") : strndup(path, (size_t)length);
  char *resolved = folder == NULL ? NULL : realpath(folder, NULL);
  free(folder);
  return resolved;
}

bool tm_path_is_beside(const char *path, const char *other) {
  char *resolved = realpath(path, NULL), *folder = resolve_folder(other), *target = realpath(other, NULL);
  const bool is_beside = resolved != NULL && ((folder != NULL && is_below(resolved, folder, strlen(folder))) ||
                                              (target != NULL && is_below(resolved, target, resolved_folder_length(target))));
  free(resolved);
  free(folder);
  free(target);
  return is_beside;
}

typedef struct name_list {
  tm_arena    *arena;
  const char **names;
  uint64_t     count;
  uint64_t     capacity;
} name_list;

static bool list_add(name_list *list, const char *name) {
  if (list->count == list->capacity) {
    const uint64_t capacity = list->capacity == 0 ? 32 : list->capacity * 2;
    const char **grown = tm_arena_calloc(list->arena, capacity, sizeof *grown);
    if (grown == NULL) return false;
    if (list->count != 0) memcpy(grown, list->names, (size_t)list->count * sizeof *grown);
    list->names = grown;
    list->capacity = capacity;
  }
  char *copy = tm_arena_string(list->arena, name, strlen(name));
  if (copy == NULL) return false;
  list->names[list->count++] = copy;
  return true;
}

static bool is_dots(const char *name) { return strcmp(name, ".") == 0 || strcmp(name, "..") == 0; }

static int compare_names(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static tm_status read_names(DIR *folder, name_list *list, tm_error *error) {
  for (;;) {
    errno = 0;
    const struct dirent *entry = readdir(folder);
    if (entry == NULL) break;
    if (!is_dots(entry->d_name) && !list_add(list, entry->d_name))
      return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to list a folder");
  }
  if (errno != 0) return tm_fail_native(error, TM_ERROR_IO, errno, "reading a folder failed");
  return TM_OK;
}

tm_status tm_folder_list(tm_arena *arena, const char *path, const char ***out_names, uint64_t *out_count, tm_error *error) {
  name_list list = { .arena = arena };
  DIR *folder = opendir(path);
  if (folder == NULL) {
    const int number = errno;
    return tm_fail_native(error, TM_ERROR_IO, number, "the folder cannot be read: %s", tm_system_error(number).text);
  }
  const tm_status status = read_names(folder, &list, error);
  (void)closedir(folder);
  if (status != TM_OK) return status;
  if (list.count > 1) qsort(list.names, (size_t)list.count, sizeof *list.names, compare_names);
  *out_names = list.names;
  *out_count = list.count;
  return TM_OK;
}

uint64_t tm_path_folder_length(const char *path) {
  const char *slash = strrchr(path, '/');
  if (slash == NULL) return 0;
  return slash == path ? 1 : (uint64_t)(slash - path);
}

char *tm_path_join(tm_arena *arena, const char *folder, uint64_t folder_length, const char *name) {
  const uint64_t name_length = strlen(name);
  const bool needs_slash = folder_length > 0 && folder[folder_length - 1] != '/';
  char *path = tm_arena_alloc(arena, folder_length + name_length + 2);
  if (path == NULL) return NULL;
  if (folder_length > 0) memcpy(path, folder, (size_t)folder_length);
  if (needs_slash) path[folder_length] = '/';
  memcpy(path + folder_length + needs_slash, name, (size_t)name_length + 1);
  return path;
}
