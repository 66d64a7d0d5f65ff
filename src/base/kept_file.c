/* SPDX-License-Identifier: Apache-2.0 */
#include "base/kept_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define LONGEST_PATH 4096
#define SUM_BYTES 8u            /* in front of the content: its hash */

static bool join(const char *folder, const char *name, const char *suffix, char path[LONGEST_PATH]) {
  const int length = snprintf(path, LONGEST_PATH, "%s/%s%s", folder, name, suffix);
  return length > 0 && length < LONGEST_PATH;
}

bool tm_kept_folder_prepare(const char *path) {
  char part[LONGEST_PATH];
  const size_t length = strlen(path);
  if (length == 0 || length >= sizeof part) return false;
  memcpy(part, path, length + 1);
  for (size_t i = 1; i <= length; i++) {
    if (part[i] != '/' && part[i] != '\0') continue;
    const char kept = part[i];
    part[i] = '\0';
    if (mkdir(part, 0700) != 0 && errno != EEXIST) return false;
    part[i] = kept;
  }
  struct stat found;
  return stat(path, &found) == 0 && S_ISDIR(found.st_mode) && (found.st_mode & S_IWOTH) == 0;
}

static bool read_whole(int file, void *data, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t got = read(file, (char *)data + done, (size_t)(bytes - done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += (uint64_t)got;
  }
  return true;
}

static bool read_content(tm_memory *memory, int file, uint64_t most_bytes, void **out_data, uint64_t *out_bytes) {
  struct stat found;
  uint64_t sum;
  if (fstat(file, &found) != 0 || !S_ISREG(found.st_mode) || found.st_size < (off_t)SUM_BYTES) return false;
  const uint64_t bytes = (uint64_t)found.st_size - SUM_BYTES;
  if (bytes > most_bytes) return false;
  void *data = tm_memory_alloc(memory, bytes, 0);
  if (data != NULL && read_whole(file, &sum, sizeof sum) && read_whole(file, data, bytes) && XXH3_64bits(data, (size_t)bytes) == sum) {
    *out_data = data;
    *out_bytes = bytes;
    return true;
  }
  tm_memory_free(memory, data, bytes);
  return false;
}

bool tm_kept_file_read(tm_memory *memory, const char *folder, const char *name, uint64_t most_bytes, void **out_data,
                        uint64_t *out_bytes) {
  char path[LONGEST_PATH];
  if (!join(folder, name, "", path)) return false;
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (file < 0) return false;
  const bool ok = read_content(memory, file, most_bytes, out_data, out_bytes);
  close(file);
  return ok;
}

static bool write_whole(int file, const void *data, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t put = write(file, (const char *)data + done, (size_t)(bytes - done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    done += (uint64_t)put;
  }
  return true;
}

bool tm_kept_file_write(const char *folder, const char *name, const void *data, uint64_t bytes) {
  char path[LONGEST_PATH], temporary[LONGEST_PATH];
  if (!join(folder, name, "", path) || !join(folder, name, ".XXXXXX", temporary)) return false;
  const int file = mkostemp(temporary, O_CLOEXEC);
  if (file < 0) return false;
  const uint64_t sum = XXH3_64bits(data, (size_t)bytes);
  bool ok = write_whole(file, &sum, sizeof sum) && write_whole(file, data, bytes);
  ok = close(file) == 0 && ok && rename(temporary, path) == 0;
  if (!ok) (void)unlink(temporary);
  return ok;
}

void tm_kept_file_remove(const char *folder, const char *name) {
  char path[LONGEST_PATH];
  if (join(folder, name, "", path)) (void)unlink(path);
}

/* ---- keeping the folder small ---- */

typedef struct aged_file {
  int64_t seconds;
  char    name[256];
} aged_file;

static int older_first(const void *a, const void *b) {
  const aged_file *x = a, *y = b;
  return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

static uint64_t list(DIR *folder, aged_file *files, uint64_t room) {
  uint64_t count = 0;
  for (const struct dirent *entry = readdir(folder); entry != NULL && count < room; entry = readdir(folder)) {
    struct stat found;
    if (fstatat(dirfd(folder), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(found.st_mode)) continue;
    if (files != NULL) {
      files[count].seconds = (int64_t)found.st_mtim.tv_sec;
      (void)snprintf(files[count].name, sizeof files[count].name, "%s", entry->d_name);
    }
    count++;
  }
  return count;
}

static void trim(tm_memory *memory, DIR *folder, uint64_t count, uint64_t most_count) {
  aged_file *files = tm_memory_calloc(memory, count, sizeof *files);
  if (files == NULL) return;
  rewinddir(folder);
  const uint64_t listed = list(folder, files, count);
  qsort(files, (size_t)listed, sizeof *files, older_first);
  for (uint64_t i = 0; i + most_count < listed; i++) (void)unlinkat(dirfd(folder), files[i].name, 0);
  tm_memory_free(memory, files, count * sizeof *files);
}

void tm_kept_folder_trim(tm_memory *memory, const char *path, uint64_t most_count) {
  DIR *folder = opendir(path);
  if (folder == NULL) return;
  const uint64_t count = list(folder, NULL, UINT64_MAX);
  if (count > most_count) trim(memory, folder, count, most_count);
  (void)closedir(folder);
}
