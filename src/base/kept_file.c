/* SPDX-License-Identifier: Apache-2.0 */
#include "base/kept_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/system_error.h"

#define LONGEST_PATH 4096
#define SUM_FORMAT "%016llx\n"
#define SUM_BYTES 17u           /* in front of the content: its hash */

static tm_status fail_path(const char *path, const char *what, tm_error *error) {
  const int number = errno;
  return tm_fail_native(error, TM_ERROR_IO, number, "%s: %s: %s", path, what, tm_system_error(number).text);
}

static void sum_of(const void *data, uint64_t bytes, char sum[SUM_BYTES + 1]) {
  (void)snprintf(sum, SUM_BYTES + 1, SUM_FORMAT, (unsigned long long)XXH3_64bits(data, (size_t)bytes));
}

/* ---- the folder ---- */

static bool is_folder(const char *path) {
  struct stat found;
  return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

static tm_status check_folder(const char *path, tm_error *error) {
  struct stat found;
  if (stat(path, &found) != 0) return fail_path(path, "cannot be used", error);
  if ((found.st_mode & S_IWOTH) != 0) return tm_fail(error, TM_ERROR_IO, "%s: anybody may write to this folder", path);
  if (found.st_uid != geteuid() && found.st_uid != 0) return tm_fail(error, TM_ERROR_IO, "%s: the folder is somebody else's", path);
  return access(path, W_OK | X_OK) == 0 ? TM_OK : fail_path(path, "cannot be written", error);
}

tm_status tm_kept_folder_make(const char *folder, tm_error *error) {
  char path[LONGEST_PATH];
  const size_t length = strlen(folder);
  if (length == 0 || length >= sizeof path) return tm_fail(error, TM_ERROR_IO, "the folder's name is empty or too long");
  memcpy(path, folder, length + 1);
  for (size_t i = 1; i <= length; i++) {
    if (path[i] != '/' && path[i] != '\0') continue;
    const char kept = path[i];
    path[i] = '\0';
    if (mkdir(path, 0700) != 0 && !is_folder(path)) return fail_path(path, "cannot make the folder", error);
    path[i] = kept;
  }
  return check_folder(folder, error);
}

/* ---- reading ---- */

static tm_status read_content(tm_memory *memory, int file, const char *path, uint64_t bytes, char **out_data, tm_error *error) {
  char found[SUM_BYTES] = "", expected[SUM_BYTES + 1];
  char *data = tm_memory_alloc(memory, bytes, 0);
  if (data == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to read a file");
  const bool is_whole = tm_descriptor_read(file, 0, found, SUM_BYTES) == SUM_BYTES &&
                        tm_descriptor_read(file, SUM_BYTES, data, bytes) == bytes;
  sum_of(data, is_whole ? bytes : 0, expected);
  if (is_whole && memcmp(found, expected, SUM_BYTES) == 0) {
    *out_data = data;
    return TM_OK;
  }
  tm_memory_free(memory, data, bytes);
  return tm_fail(error, TM_ERROR_CORRUPT, "%s: its content is damaged", path);
}

static tm_status read_plain(tm_memory *memory, int file, const char *path, uint64_t most_bytes, char **out_data, uint64_t *out_bytes,
                            tm_error *error) {
  struct stat found;
  if (fstat(file, &found) != 0) return fail_path(path, "cannot be read", error);
  if (!S_ISREG(found.st_mode)) return tm_fail(error, TM_ERROR_CORRUPT, "%s: it is no regular file", path);
  const uint64_t bytes = (uint64_t)found.st_size;
  if (bytes > most_bytes) return tm_fail(error, TM_ERROR_LIMIT, "%s: more than %llu bytes", path, (unsigned long long)most_bytes);
  char *data = tm_memory_alloc(memory, bytes, 0);
  if (data == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to read a file");
  if (tm_descriptor_read(file, 0, data, bytes) != bytes) {
    tm_memory_free(memory, data, bytes);
    return tm_fail(error, TM_ERROR_IO, "%s: it became shorter while it was read", path);
  }
  *out_data = data;
  *out_bytes = bytes;
  return TM_OK;
}

static tm_status read_open(tm_memory *memory, int file, const char *path, uint64_t most_bytes, char **out_data, uint64_t *out_bytes,
                           tm_error *error) {
  struct stat found;
  if (fstat(file, &found) != 0) return fail_path(path, "cannot be read", error);
  if (!S_ISREG(found.st_mode) || found.st_size < (off_t)SUM_BYTES)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: its content is damaged", path);
  const uint64_t bytes = (uint64_t)found.st_size - SUM_BYTES;
  if (bytes > most_bytes) return tm_fail(error, TM_ERROR_LIMIT, "%s: more than %llu bytes", path, (unsigned long long)most_bytes);
  TM_TRY(read_content(memory, file, path, bytes, out_data, error));
  *out_bytes = bytes;
  return TM_OK;
}

typedef tm_status (*read_fn)(tm_memory *memory, int file, const char *path, uint64_t most_bytes, char **out_data, uint64_t *out_bytes,
                             tm_error *error);

static tm_status read_path(read_fn read, tm_memory *memory, const char *path, uint64_t most_bytes, char **out_data, uint64_t *out_bytes,
                           tm_error *error) {
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (file < 0 && (errno == ENOENT || errno == ENOTDIR)) return tm_fail(error, TM_ERROR_NOT_FOUND, "%s: there is no such file", path);
  if (file < 0) return fail_path(path, "cannot be read", error);
  const tm_status status = read(memory, file, path, most_bytes, out_data, out_bytes, error);
  (void)close(file);
  return status;
}

tm_status tm_kept_file_read(tm_memory *memory, const char *path, uint64_t most_bytes, char **out_data, uint64_t *out_bytes,
                            tm_error *error) {
  return read_path(read_open, memory, path, most_bytes, out_data, out_bytes, error);
}

tm_status tm_plain_file_read(tm_memory *memory, const char *path, uint64_t most_bytes, char **out_data, uint64_t *out_bytes,
                             tm_error *error) {
  return read_path(read_plain, memory, path, most_bytes, out_data, out_bytes, error);
}

/* ---- writing ---- */

#define TEMPORARY ".new-"
#define LEFTOVER_SECONDS 600

/* What processes left that ended while they wrote; nobody writes that long. */
static void remove_leftovers(const char *path) {
  char folder[LONGEST_PATH];
  struct stat found;
  const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
  (void)snprintf(folder, sizeof folder, "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1, slash == NULL ? "." : path);
  DIR *open = opendir(folder);
  if (open == NULL) return;
  const time_t now = time(NULL);
  for (const struct dirent *entry = readdir(open); entry != NULL; entry = readdir(open)) {
    if (strncmp(entry->d_name, name, strlen(name)) != 0) continue;
    if (strncmp(entry->d_name + strlen(name), TEMPORARY, strlen(TEMPORARY)) != 0) continue;
    const bool is_there = fstatat(dirfd(open), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_there && now - found.st_mtim.tv_sec >= LEFTOVER_SECONDS) (void)unlinkat(dirfd(open), entry->d_name, 0);
  }
  (void)closedir(open);
}

static tm_status replace(const char *path, const char *sum, uint64_t sum_bytes, const void *data, uint64_t bytes, tm_error *error) {
  char temporary[LONGEST_PATH];
  const int length = snprintf(temporary, sizeof temporary, "%s" TEMPORARY "XXXXXX", path);
  if (length < 0 || (size_t)length >= sizeof temporary) return tm_fail(error, TM_ERROR_IO, "the folder's name is too long");
  const int file = mkostemp(temporary, O_CLOEXEC);
  if (file < 0) return fail_path(path, "cannot be written", error);
  remove_leftovers(path);
  const bool is_written = tm_descriptor_write(file, 0, sum, sum_bytes) && tm_descriptor_write(file, sum_bytes, data, bytes) &&
                          fsync(file) == 0;
  const bool is_closed = close(file) == 0;
  if (is_written && is_closed && rename(temporary, path) == 0) return TM_OK;
  const tm_status status = fail_path(path, "cannot be written", error);
  (void)unlink(temporary);
  return status;
}

tm_status tm_kept_file_replace(const char *path, const void *data, uint64_t bytes, tm_error *error) {
  char sum[SUM_BYTES + 1];
  sum_of(data, bytes, sum);
  return replace(path, sum, SUM_BYTES, data, bytes, error);
}

tm_status tm_plain_file_replace(const char *path, const void *data, uint64_t bytes, tm_error *error) {
  return replace(path, "", 0, data, bytes, error);
}

tm_status tm_plain_file_append(const char *path, const void *data, uint64_t bytes, tm_error *error) {
  struct stat found;
  const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0600);
  if (file < 0) return fail_path(path, "cannot be written", error);
  const bool is_regular = fstat(file, &found) == 0 && S_ISREG(found.st_mode);
  const bool is_written = is_regular && tm_descriptor_write(file, (uint64_t)found.st_size, data, bytes);
  const tm_status status = is_written ? TM_OK : fail_path(path, "cannot be written", error);
  /* What fails is appended again: nothing of it may count twice. */
  if (status != TM_OK && is_regular) (void)!ftruncate(file, found.st_size);
  (void)close(file);
  return status;
}

void tm_kept_file_remove(const char *path) { (void)unlink(path); }

uint32_t tm_kept_folder_remove(const char *folder, const char *beginning) {
  uint32_t count = 0;
  DIR *open = opendir(folder);
  if (open == NULL) return 0;
  for (const struct dirent *entry = readdir(open); entry != NULL; entry = readdir(open))
    if (strncmp(entry->d_name, beginning, strlen(beginning)) == 0 && unlinkat(dirfd(open), entry->d_name, 0) == 0) count++;
  (void)closedir(open);
  return count;
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
