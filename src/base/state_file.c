/* SPDX-License-Identifier: Apache-2.0 */
#include "base/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system_error.h"

#define LONGEST_PATH 4096

static tm_status fail_path(const char *path, const char *what, tm_error *error) {
  const int number = errno;
  return tm_fail_native(error, TM_ERROR_IO, number, "%s: %s: %s", path, what, tm_system_error(number).text);
}

static bool is_folder(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

tm_status tm_state_folder_make(const char *folder, tm_error *error) {
  char path[LONGEST_PATH];
  const size_t length = strlen(folder);
  if (length == 0 || length >= sizeof path) return tm_fail(error, TM_ERROR_IO, "the name of the folder for state is empty or too long");
  memcpy(path, folder, length + 1);
  for (size_t i = 1; i <= length; i++) {
    if (path[i] != '/' && path[i] != '\0') continue;
    const char kept = path[i];
    path[i] = '\0';
    if (mkdir(path, 0700) != 0 && !is_folder(path)) return fail_path(path, "cannot make the folder", error);
    path[i] = kept;
  }
  return TM_OK;
}

/* ---- files of one owner ---- */

/* Somebody may have found, claimed and removed the file between opening and claiming it. */
static tm_status claim(int descriptor, tm_state_file *out_file) {
  struct stat status;
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 || fstat(descriptor, &status) != 0 || status.st_nlink == 0) {
    (void)close(descriptor);
    return TM_BUSY;
  }
  out_file->descriptor = descriptor;
  return TM_OK;
}

tm_status tm_state_file_create(const char *path, tm_state_file *out_file, tm_error *error) {
  const int descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return fail_path(path, "cannot make the file", error);
  if (claim(descriptor, out_file) == TM_OK) return TM_OK;
  return tm_fail(error, TM_ERROR_IO, "%s: somebody else has taken it", path);
}

tm_status tm_state_file_claim(const char *path, bool make, tm_state_file *out_file, tm_error *error) {
  const int descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (make ? O_CREAT : 0), 0600);
  if (descriptor < 0) return fail_path(path, "cannot open the file", error);
  return claim(descriptor, out_file);
}

void tm_state_file_close(tm_state_file *file) {
  if (file->descriptor >= 0) (void)close(file->descriptor);
  file->descriptor = -1;
}

static bool write_all(int descriptor, uint64_t offset, const char *data, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t written = pwrite(descriptor, data + done, (size_t)(bytes - done), (off_t)(offset + done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    done += (uint64_t)written;
  }
  return true;
}

bool tm_state_file_write(const tm_state_file *file, uint64_t offset, const void *data, uint64_t bytes) {
  return write_all(file->descriptor, offset, data, bytes);
}

static uint64_t read_all(int descriptor, uint64_t offset, char *out_data, uint64_t bytes) {
  uint64_t done = 0;
  while (done < bytes) {
    const ssize_t got = pread(descriptor, out_data + done, (size_t)(bytes - done), (off_t)(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += (uint64_t)got;
  }
  return done;
}

uint64_t tm_state_file_read(const tm_state_file *file, uint64_t offset, void *out_data, uint64_t bytes) {
  return read_all(file->descriptor, offset, out_data, bytes);
}

/* ---- files that are replaced ---- */

static tm_status write_new(const char *path, const char *temporary, const void *data, uint64_t bytes, tm_error *error) {
  const int descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return fail_path(temporary, "cannot make the file", error);
  const bool is_written = write_all(descriptor, 0, data, bytes) && fsync(descriptor) == 0;
  const bool is_closed = close(descriptor) == 0;
  if (is_written && is_closed && rename(temporary, path) == 0) return TM_OK;
  (void)fail_path(path, "cannot be written", error);
  (void)unlink(temporary);
  return TM_ERROR_IO;
}

tm_status tm_state_file_replace(tm_memory *memory, const char *path, const void *data, uint64_t bytes, tm_error *error) {
  const uint64_t room = strlen(path) + 32;
  char *temporary = tm_memory_alloc(memory, room, 0);
  if (temporary == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to write a file");
  snprintf(temporary, room, "%s.%llu", path, (unsigned long long)tm_process_number());
  const tm_status status = write_new(path, temporary, data, bytes, error);
  tm_memory_free(memory, temporary, room);
  return status;
}

static tm_status load_open(tm_memory *memory, int descriptor, const char *path, uint64_t most_bytes, char **out_data,
                           uint64_t *out_bytes, tm_error *error) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) return fail_path(path, "cannot be read", error);
  if (!S_ISREG(status.st_mode) || status.st_size < 0 || (uint64_t)status.st_size > most_bytes)
    return tm_fail(error, TM_ERROR_LIMIT, "%s: no file, or one of more than %llu bytes", path, (unsigned long long)most_bytes);
  const uint64_t bytes = (uint64_t)status.st_size;
  char *data = tm_memory_alloc(memory, bytes, 0);
  if (data == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to read a file");
  if (read_all(descriptor, 0, data, bytes) != bytes) {
    tm_memory_free(memory, data, bytes);
    return tm_fail(error, TM_ERROR_IO, "%s: it changed while it was read", path);
  }
  *out_data = data;
  *out_bytes = bytes;
  return TM_OK;
}

tm_status tm_state_file_load(tm_memory *memory, const char *path, uint64_t most_bytes, char **out_data, uint64_t *out_bytes,
                             tm_error *error) {
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0 && errno == ENOENT) return tm_fail(error, TM_ERROR_NOT_FOUND, "%s: there is no such file", path);
  if (descriptor < 0) return fail_path(path, "cannot be read", error);
  const tm_status status = load_open(memory, descriptor, path, most_bytes, out_data, out_bytes, error);
  (void)close(descriptor);
  return status;
}

void tm_state_file_remove(const char *path) { (void)unlink(path); }

uint64_t tm_process_number(void) { return (uint64_t)getpid(); }
