/* SPDX-License-Identifier: Apache-2.0 */
#include "base/dynamic_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/folder.h"
#include "base/float_mode.h"
#include "base/system_error.h"

#define NS_PER_SECOND UINT64_C(1000000000)
#define LONGEST_FILE_NAME 255

static tm_status check_file(const char *path, const struct stat *status, tm_error *error) {
  if (S_ISDIR(status->st_mode)) return tm_fail(error, TM_ERROR_CORRUPT, "%s: a folder, not a shared object", path);
  if (!S_ISREG(status->st_mode)) return tm_fail(error, TM_ERROR_CORRUPT, "%s: not a regular file", path);
  if (status->st_size == 0) return tm_fail(error, TM_ERROR_CORRUPT, "%s: empty file", path);
  if ((status->st_mode & S_IWOTH) != 0)
    return tm_fail(error, TM_ERROR_IO, "%s: writable by everybody; loading it would run anybody's code (chmod o-w)", path);
  return TM_OK;
}

static tm_status open_file(const char *path, int *out_file, struct stat *out_found, tm_error *error) {
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    const int number = errno;
    const tm_status status = number == ENOENT ? TM_ERROR_NOT_FOUND : TM_ERROR_IO;
    return tm_fail_native(error, status, number, "%s: %s", path, tm_system_error(number).text);
  }
  tm_status status = TM_OK;
  if (fstat(file, out_found) != 0) {
    const int number = errno;
    status = tm_fail_native(error, TM_ERROR_IO, number, "%s: %s", path, tm_system_error(number).text);
  }
  if (status == TM_OK) status = check_file(path, out_found, error);
  if (status == TM_OK)
    *out_file = file;
  else
    close(file);
  return status;
}

static tm_file_identity identity_of(const struct stat *found) {
  return (tm_file_identity){ (uint64_t)found->st_dev, (uint64_t)found->st_ino, (uint64_t)found->st_size,
                             (uint64_t)found->st_mtim.tv_sec * NS_PER_SECOND + (uint64_t)found->st_mtim.tv_nsec,
                             (uint64_t)found->st_ctim.tv_sec * NS_PER_SECOND + (uint64_t)found->st_ctim.tv_nsec };
}

tm_status tm_library_identify(const char *path, tm_file_identity *out_identity, tm_error *error) {
  int file = -1;
  struct stat found;
  TM_TRY(open_file(path, &file, &found, error));
  close(file);
  *out_identity = identity_of(&found);
  return TM_OK;
}

static bool read_file(void *context, uint64_t offset, void *out_data, uint64_t bytes) {
  const int *file = context;
  return offset <= INT64_MAX && pread(*file, out_data, (size_t)bytes, (off_t)offset) == (ssize_t)bytes;
}

tm_status tm_library_examine(const char *path, const char *entry, tm_shared_object *out_object, tm_error *error) {
  int file = -1;
  struct stat found;
  TM_TRY(open_file(path, &file, &found, error));
  const tm_byte_source source = { read_file, &file, (uint64_t)found.st_size };
  const tm_status status = tm_shared_object_read(&source, path, entry, out_object, error);
  close(file);
  return status;
}

tm_status tm_library_open(const char *path, void **out_library, tm_error *error) {
  /* Without a slash the loader would look for it elsewhere than in the current folder. */
  char here[LONGEST_FILE_NAME + 3];
  if (strchr(path, '/') == NULL && (size_t)snprintf(here, sizeof here, "./%s", path) < sizeof here) path = here;
  tm_float_mode mode;
  tm_float_mode_save(&mode);    /* code built for speed switches subnormals off as it is loaded */
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  tm_float_mode_restore(&mode);
  if (library == NULL) {
    const char *reason = dlerror();
    return tm_fail(error, TM_ERROR_CORRUPT, "%s", reason == NULL ? "the dynamic loader gave no reason" : reason);
  }
  *out_library = library;
  return TM_OK;
}

bool tm_library_contains(const char *path, const void *function_pointer) {
  Dl_info where;
  return dladdr(function_pointer, &where) != 0 && where.dli_fname != NULL && tm_path_is_same(path, where.dli_fname);
}

tm_status tm_library_symbol(void *library, const char *path, const char *symbol, void *out_function, tm_error *error) {
  void *address = dlsym(library, symbol);
  if (address == NULL) return tm_fail(error, TM_ERROR_NOT_FOUND, "%s: no plugin: it does not export %s", path, symbol);
  if (!tm_library_contains(path, address))
    return tm_fail(error, TM_ERROR_NOT_FOUND, "%s: no plugin: its %s comes from another library", path, symbol);
  memcpy(out_function, &address, sizeof address);
  return TM_OK;
}

bool tm_library_folder(const void *address, char *folder, uint64_t capacity) {
  Dl_info where;
  if (dladdr(address, &where) == 0 || where.dli_fname == NULL) return false;
  /* A program is known by what it was called, which means nothing once the working directory has changed. */
  char *full = realpath(where.dli_fname[0] == '/' ? where.dli_fname : "/proc/self/exe", NULL);
  if (full == NULL) return false;
  char *slash = strrchr(full, '/');
  const bool fits = slash != NULL && (uint64_t)(slash - full) < capacity;
  if (fits) {
    memcpy(folder, full, (size_t)(slash - full));
    folder[slash - full] = '\0';
  }
  free(full);
  return fits;
}
