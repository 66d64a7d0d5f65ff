/* SPDX-License-Identifier: Apache-2.0 */
#include "base/claimed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/fault_guard.h"
#include "base/system_error.h"

static tm_status fail_path(const char *path, const char *what, tm_error *error) {
  const int number = errno;
  return tm_fail_native(error, TM_ERROR_IO, number, "%s: %s: %s", path, what, tm_system_error(number).text);
}

/* Somebody may have found, claimed and removed the file between opening and claiming it. */
static tm_status claim(int descriptor, tm_claimed_file *out_file) {
  struct stat status;
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 || fstat(descriptor, &status) != 0 || status.st_nlink == 0) {
    (void)close(descriptor);
    return TM_BUSY;
  }
  out_file->descriptor = descriptor;
  return TM_OK;
}

tm_status tm_claimed_file_create(const char *path, tm_claimed_file *out_file, tm_error *error) {
  const int descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return fail_path(path, "cannot make the file", error);
  if (claim(descriptor, out_file) == TM_OK) return TM_OK;
  return tm_fail(error, TM_ERROR_IO, "%s: somebody else has taken it", path);
}

tm_status tm_claimed_file_open(const char *path, bool make, tm_claimed_file *out_file, tm_error *error) {
  const int descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (make ? O_CREAT : 0), 0600);
  if (descriptor < 0) return fail_path(path, "cannot open the file", error);
  return claim(descriptor, out_file);
}

tm_status tm_claimed_file_look(const char *path, tm_claimed_file *out_file, tm_error *error) {
  out_file->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  return out_file->descriptor < 0 ? fail_path(path, "cannot open the file", error) : TM_OK;
}

void tm_claimed_file_close(tm_claimed_file *file) {
  if (file->descriptor >= 0) (void)close(file->descriptor);
  file->descriptor = -1;
}

bool tm_claimed_file_write(const tm_claimed_file *file, uint64_t offset, const void *data, uint64_t bytes) {
  return tm_descriptor_write(file->descriptor, offset, data, bytes);
}

uint64_t tm_claimed_file_read(const tm_claimed_file *file, uint64_t offset, void *out_data, uint64_t bytes) {
  return tm_descriptor_read(file->descriptor, offset, out_data, bytes);
}

/* Written, not only made longer: on a full disk a hole cannot be filled. */
static bool fill(const tm_claimed_file *file, uint64_t begin, uint64_t end) {
  static const char zeros[4096];
  for (uint64_t at = begin; at < end; at += sizeof zeros)
    if (!tm_claimed_file_write(file, at, zeros, end - at < sizeof zeros ? end - at : sizeof zeros)) return false;
  return true;
}

tm_status tm_claimed_file_map(const tm_claimed_file *file, uint64_t bytes, tm_claimed_memory *out_memory) {
  struct stat status;
  *out_memory = (tm_claimed_memory){ 0 };
  if (bytes % (uint64_t)sysconf(_SC_PAGESIZE) != 0 || fstat(file->descriptor, &status) != 0 ||
      !fill(file, (uint64_t)status.st_size, bytes))
    return TM_UNSUPPORTED;
  void *memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->descriptor, 0);
  if (memory == MAP_FAILED) return TM_UNSUPPORTED;
  struct tm_fault_range *range = tm_fault_guard_enter(memory, bytes, true);
  if (range == NULL) (void)munmap(memory, (size_t)bytes);
  else *out_memory = (tm_claimed_memory){ memory, bytes, range };
  return range == NULL ? TM_UNSUPPORTED : TM_OK;
}

void tm_claimed_memory_deinit(tm_claimed_memory *memory) {
  if (memory->bytes == NULL) return;
  tm_fault_guard_leave(memory->range);
  (void)munmap(memory->bytes, (size_t)memory->byte_count);
  *memory = (tm_claimed_memory){ 0 };
}

uint64_t tm_process_number(void) { return (uint64_t)getpid(); }
