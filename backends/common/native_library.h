/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_library.h - a vendor's library, opened at run time.  Libraries are never closed again: drivers keep threads and
 * thread-local destructors, which outlive no dlclose.
 */
#ifndef NATIVE_LIBRARY_H
#define NATIVE_LIBRARY_H

#include <dirent.h>
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef void (*native_function)(void);

/* What a path that the user gave is instead of a file: the loader would wait for ever for what comes out of a pipe.  NULL: a
   file, or it is not there, or a name that the loader looks for; the loader then has its own words. */
static inline const char *native_library_problem(const char *path) {
  struct stat status;
  if (strchr(path, '/') == NULL || stat(path, &status) != 0 || S_ISREG(status.st_mode)) return NULL;
  if (S_ISDIR(status.st_mode)) return "it is a folder, not a file";
  return S_ISFIFO(status.st_mode) ? "it is a pipe, not a file" : "it is a device, not a file";
}

/* The library's handle; NULL if it cannot be opened, and then *out_reason is a text, valid until the next call
   on this thread. */
static inline void *native_library_open(const char *path, const char **out_reason) {
  *out_reason = native_library_problem(path);
  if (*out_reason != NULL) return NULL;
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  *out_reason = handle == NULL ? dlerror() : NULL;
  return handle;
}

static inline native_function native_library_find(void *handle, const char *name) {
  void *address = dlsym(handle, name);
  native_function function = NULL;
  memcpy(&function, &address, sizeof function);
  return function;
}

/* Calls `visit` with FOLDER/NAME/TAIL for each entry of the folder whose name begins with `prefix`, until it returns
   non-zero; returns that, or 0. */
static inline int native_folder_visit(const char *folder, const char *prefix, const char *tail, int (*visit)(void *, const char *),
                                      void *context) {
  DIR *opened = opendir(folder);
  int found = 0;
  char path[1024];
  if (opened == NULL) return 0;
  for (const struct dirent *entry; found == 0 && (entry = readdir(opened)) != NULL;) {
    if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0) continue;
    const int length = snprintf(path, sizeof path, "%s/%s/%s", folder, entry->d_name, tail);
    if (length > 0 && (size_t)length < sizeof path) found = visit(context, path);
  }
  closedir(opened);
  return found;
}

#endif
