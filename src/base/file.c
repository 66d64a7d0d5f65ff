/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/mapping.h"
#include "base/system_error.h"
#include "base/text.h"

#define LABEL_BYTES 256u
#define NO_DESCRIPTOR (-1)
#define LARGEST_READ_BYTES (UINT64_C(1) << 30)  /* one system call moves less than 2 GiB on some systems */

typedef struct file_identity {
  dev_t           device;
  ino_t           inode;
  uint64_t        size_bytes;
  struct timespec modified;
} file_identity;

struct tm_file {
  tm_memory    *memory;
  char         *path;
  uint64_t      path_bytes;             /* with its end */
  int           descriptor;             /* NO_DESCRIPTOR: parked or wrapped */
  bool          is_wrapped;
  file_identity identity;
  const void   *wrapped_bytes;
  tm_mapping    mapping;
  char          label[LABEL_BYTES];
};

/* ----------------------------------------------------------------------------------------------------- opening ---- */

typedef struct kind_row {
  mode_t      type;
  int         number;
  const char *text;
} kind_row;

static const kind_row other_kinds[] = {
  { S_IFDIR, EISDIR, "is a directory" },
  { S_IFIFO, ESPIPE, "is a pipe, not a regular file, and cannot be read in any order" },
  { S_IFSOCK, ESPIPE, "is a socket, not a regular file" },
  { S_IFCHR, ESPIPE, "is a character device, not a regular file" },
  { S_IFBLK, ESPIPE, "is a block device, not a regular file" },
};

static tm_status refuse_kind(const char *label, mode_t mode, tm_error *error) {
  for (size_t i = 0; i < sizeof other_kinds / sizeof other_kinds[0]; i++)
    if ((mode & S_IFMT) == other_kinds[i].type)
      return tm_fail_native(error, TM_ERROR_IO, other_kinds[i].number, "%s: %s", label, other_kinds[i].text);
  return tm_fail(error, TM_ERROR_IO, "%s: is not a regular file", label);
}

static tm_status fail_open(const char *label, int number, tm_error *error) {
  const tm_status status = number == ENOENT || number == ENOTDIR ? TM_ERROR_NOT_FOUND : TM_ERROR_IO;
  return tm_fail_native(error, status, number, "%s: cannot be opened: %s", label, tm_system_error(number).text);
}

static file_identity identify(const struct stat *status) {
  return (file_identity){ .device = status->st_dev, .inode = status->st_ino, .size_bytes = (uint64_t)status->st_size,
                          .modified = status->st_mtim };
}

/* O_NONBLOCK: opening a pipe must not wait for its writer. */
static tm_status open_descriptor(const char *path, const char *label, int *out_descriptor, file_identity *out_identity,
                                 tm_error *error) {
  struct stat status;
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return fail_open(label, errno, error);
  if (fstat(descriptor, &status) != 0) {
    const int number = errno;
    (void)close(descriptor);
    return fail_open(label, number, error);
  }
  if (!S_ISREG(status.st_mode)) {
    (void)close(descriptor);
    return refuse_kind(label, status.st_mode, error);
  }
  *out_identity = identify(&status);
  *out_descriptor = descriptor;
  return TM_OK;
}

static void make_label(const char *path, char *label) {
  const size_t length = strlen(path), room = LABEL_BYTES - 8;
  const bool is_long = length > room;
  (void)tm_text_escape(is_long ? path + length - room : path, is_long ? room : length, label + (is_long ? 3 : 0),
                       LABEL_BYTES - 3);
  if (is_long) memcpy(label, "...", 3);
}

static tm_file *create_file(tm_memory *memory, const char *path, tm_error *error) {
  const uint64_t path_bytes = strlen(path) + 1;
  tm_file *file = tm_memory_calloc(memory, 1, sizeof *file);
  char *copy = tm_memory_alloc(memory, path_bytes, 0);
  if (file == NULL || copy == NULL) {
    tm_memory_free(memory, file, sizeof *file);
    tm_memory_free(memory, copy, path_bytes);
    (void)tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to open a file");
    return NULL;
  }
  memcpy(copy, path, (size_t)path_bytes);
  file->memory = memory;
  file->path = copy;
  file->path_bytes = path_bytes;
  file->descriptor = NO_DESCRIPTOR;
  make_label(path, file->label);
  return file;
}

tm_status tm_file_open(tm_memory *memory, const char *path, uint32_t flags, tm_file **out_file, tm_error *error) {
  if (path == NULL || path[0] == '\0') return tm_fail(error, TM_ERROR_ARGUMENT, "the path of the file is empty");
  tm_file *file = create_file(memory, path, error);
  if (file == NULL) return TM_ERROR_NO_MEMORY;
  const tm_status status = open_descriptor(path, file->label, &file->descriptor, &file->identity, error);
  if (status != TM_OK) {
    tm_file_close(file);
    return status;
  }
  (void)posix_fadvise(file->descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);
  if ((flags & TM_FILE_MAP) != 0 && file->identity.size_bytes > 0)
    (void)tm_mapping_init(&file->mapping, file->descriptor, file->identity.size_bytes);
  *out_file = file;
  return TM_OK;
}

tm_status tm_file_wrap(tm_memory *memory, const char *name, const void *bytes, uint64_t size_bytes, tm_file **out_file,
                       tm_error *error) {
  tm_file *file = create_file(memory, name, error);
  if (file == NULL) return TM_ERROR_NO_MEMORY;
  file->is_wrapped = true;
  file->wrapped_bytes = bytes;
  file->identity.size_bytes = size_bytes;
  *out_file = file;
  return TM_OK;
}

uint64_t tm_file_handle_limit(void) {
  struct rlimit limit;
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? (uint64_t)limit.rlim_cur : UINT32_MAX;
}

void tm_file_park(tm_file *file) {
  if (file->descriptor == NO_DESCRIPTOR) return;
  (void)close(file->descriptor);
  file->descriptor = NO_DESCRIPTOR;
}

void tm_file_close(tm_file *file) {
  if (file == NULL) return;
  tm_mapping_deinit(&file->mapping);
  tm_file_park(file);
  tm_memory_free(file->memory, file->path, file->path_bytes);
  tm_memory_free(file->memory, file, sizeof *file);
}

const char *tm_file_path(const tm_file *file) { return file->path; }
const char *tm_file_label(const tm_file *file) { return file->label; }
uint64_t tm_file_size(const tm_file *file) { return file->identity.size_bytes; }
bool tm_file_is_in_memory(const tm_file *file) { return file->is_wrapped; }
const void *tm_file_bytes(const tm_file *file) { return file->is_wrapped ? file->wrapped_bytes : file->mapping.bytes; }

void tm_file_forget_pages(const tm_file *file, tm_pool *pool) { tm_mapping_forget_pages(&file->mapping, pool); }

/* ---------------------------------------------------------------------------------------------------- checking ---- */

static tm_status fail_changed(const tm_file *file, const char *how, tm_error *error) {
  return tm_fail(error, TM_ERROR_CHANGED, "%s: changed while read: %s", file->label, how);
}

static tm_status compare_identity(const tm_file *file, const file_identity *now, tm_error *error) {
  const file_identity *then = &file->identity;
  if (now->device != then->device || now->inode != then->inode)
    return fail_changed(file, "another file has taken its place", error);
  if (now->size_bytes != then->size_bytes)
    return tm_fail(error, TM_ERROR_CHANGED,
                   "%s: changed while read: it had %" PRIu64 " bytes when it was opened and now ends at offset %" PRIu64,
                   file->label, then->size_bytes, now->size_bytes);
  if (now->modified.tv_sec != then->modified.tv_sec || now->modified.tv_nsec != then->modified.tv_nsec)
    return fail_changed(file, "it was written to", error);
  return TM_OK;
}

/* A descriptor to read from: the file's own, or for a parked file a fresh one of the same file. */
static tm_status borrow_descriptor(const tm_file *file, int *out_descriptor, tm_error *error) {
  file_identity now = { 0 };
  if (file->descriptor != NO_DESCRIPTOR) {
    *out_descriptor = file->descriptor;
    return TM_OK;
  }
  const tm_status status = open_descriptor(file->path, file->label, out_descriptor, &now, error);
  if (status == TM_ERROR_NOT_FOUND) return fail_changed(file, "it is gone", error);
  if (status != TM_OK) return status;
  const tm_status compared = compare_identity(file, &now, error);
  if (compared != TM_OK) (void)close(*out_descriptor);
  return compared;
}

static void return_descriptor(const tm_file *file, int descriptor) {
  if (descriptor != file->descriptor) (void)close(descriptor);
}

static tm_status check_descriptor(const tm_file *file, int descriptor, tm_error *error) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) {
    const int number = errno;
    return tm_fail_native(error, TM_ERROR_IO, number, "%s: %s", file->label, tm_system_error(number).text);
  }
  const file_identity now = identify(&status);
  return compare_identity(file, &now, error);
}

tm_status tm_file_check_unchanged(const tm_file *file, tm_error *error) {
  if (file->is_wrapped) return TM_OK;
  const uint64_t fault = tm_mapping_fault_offset(&file->mapping);
  if (fault != TM_NO_FAULT)
    return tm_fail(error, TM_ERROR_CHANGED,
                   "%s: changed while read: its mapped bytes could not be read at offset %" PRIu64 " of %" PRIu64
                   "; was it truncated?", file->label, fault, file->identity.size_bytes);
  int descriptor;
  TM_TRY(borrow_descriptor(file, &descriptor, error));
  const tm_status status = check_descriptor(file, descriptor, error);
  return_descriptor(file, descriptor);
  return status;
}

/* ----------------------------------------------------------------------------------------------------- reading ---- */

static tm_status read_descriptor(const tm_file *file, int descriptor, uint64_t offset, void *out_data, uint64_t bytes,
                                 tm_error *error) {
  char *data = out_data;
  uint64_t done = 0;
  while (done < bytes) {
    const size_t wanted = (size_t)tm_min_u64(bytes - done, LARGEST_READ_BYTES);
    const ssize_t got = pread(descriptor, data + done, wanted, (off_t)(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int number = errno;
      return tm_fail_native(error, TM_ERROR_IO, number, "%s: reading %zu bytes at offset %" PRIu64 ": %s", file->label,
                            wanted, offset + done, tm_system_error(number).text);
    }
    if (got == 0)
      return tm_fail(error, TM_ERROR_CHANGED,
                     "%s: changed while read: expected %" PRIu64 " bytes at offset %" PRIu64 ", found %" PRIu64
                     ": the file now ends at offset %" PRIu64, file->label, bytes, offset, done, offset + done);
    done += (uint64_t)got;
  }
  return TM_OK;
}

tm_status tm_file_read(const tm_file *file, uint64_t offset, void *out_data, uint64_t bytes, tm_error *error) {
  uint64_t end;
  if (!tm_checked_add(offset, bytes, &end) || end > file->identity.size_bytes)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: %" PRIu64 " bytes at offset %" PRIu64 " lie beyond the end at %" PRIu64,
                   file->label, bytes, offset, file->identity.size_bytes);
  if (bytes == 0) return TM_OK;
  if (file->is_wrapped) {
    memcpy(out_data, (const char *)file->wrapped_bytes + offset, (size_t)bytes);
    return TM_OK;
  }
  int descriptor;
  TM_TRY(borrow_descriptor(file, &descriptor, error));
  const tm_status status = read_descriptor(file, descriptor, offset, out_data, bytes, error);
  return_descriptor(file, descriptor);
  return status;
}
