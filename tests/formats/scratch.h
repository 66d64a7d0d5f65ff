/* SPDX-License-Identifier: Apache-2.0 */
/* scratch.h - files that a test makes for itself: a folder that vanishes with its content, and bytes written to it. */
#ifndef TM_TESTS_FORMATS_SCRATCH_H
#define TM_TESTS_FORMATS_SCRATCH_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct scratch {
  char folder[256];
  char path[1024];              /* of the name last asked for */
} scratch;

static inline bool scratch_init(scratch *s) {
  const char *base = getenv("TMPDIR");
  (void)snprintf(s->folder, sizeof s->folder, "%s/tm-test-XXXXXX", base != NULL ? base : "/tmp");
  return mkdtemp(s->folder) != NULL;
}

static inline const char *scratch_path(scratch *s, const char *name) {
  (void)snprintf(s->path, sizeof s->path, "%s/%s", s->folder, name);
  return s->path;
}

static inline void scratch_deinit(scratch *s) {
  DIR *folder = opendir(s->folder);
  if (folder == NULL) return;
  for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/%s", s->folder, entry->d_name);
    if (unlink(path) != 0) (void)rmdir(path);
  }
  (void)closedir(folder);
  (void)rmdir(s->folder);
}

/* Returns the path of the new file, or NULL. */
static inline const char *scratch_write(scratch *s, const char *name, const void *bytes, uint64_t count) {
  const char *path = scratch_path(s, name);
  FILE *file = fopen(path, "wb");
  if (file == NULL) return NULL;
  const bool ok = fwrite(bytes, 1, (size_t)count, file) == count;
  return fclose(file) == 0 && ok ? path : NULL;
}

/* A file whose bytes from the written ones to `size` are a hole. */
static inline const char *scratch_write_sparse(scratch *s, const char *name, const void *bytes, uint64_t count, uint64_t size) {
  const char *path = scratch_write(s, name, bytes, count);
  return path != NULL && truncate(path, (off_t)size) == 0 ? path : NULL;
}

/* The whole of a file in memory for the caller to free, or NULL. */
static inline unsigned char *scratch_slurp(const char *path, uint64_t *out_size) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return NULL;
  (void)fseek(file, 0, SEEK_END);
  const long size = ftell(file);
  (void)fseek(file, 0, SEEK_SET);
  unsigned char *bytes = malloc((size_t)size + 1);
  if (bytes != NULL && fread(bytes, 1, (size_t)size, file) != (size_t)size) {
    free(bytes);
    bytes = NULL;
  }
  (void)fclose(file);
  *out_size = (uint64_t)size;
  return bytes;
}

#endif
