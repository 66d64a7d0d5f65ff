/* SPDX-License-Identifier: Apache-2.0 */
#include "base/dynamic_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#else
#define OWN_MACHINE EM_NONE     /* not checked */
#endif

#define MOST_SEGMENTS 256

/* Every loadable segment must lie inside the file: the dynamic loader would map what is missing, and touching it is a
   fatal signal. */
static tm_status check_segments(int file, const char *path, const Elf64_Ehdr *header, uint64_t size, tm_error *error) {
  if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum == 0 || header->e_phnum > MOST_SEGMENTS)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: damaged shared object (%u segments)", path, header->e_phnum);
  for (unsigned i = 0; i < header->e_phnum; i++) {
    Elf64_Phdr segment;
    const ssize_t got = pread(file, &segment, sizeof segment, (off_t)(header->e_phoff + i * sizeof segment));
    const bool whole = got == (ssize_t)sizeof segment &&
                       (segment.p_type != PT_LOAD ||
                        (segment.p_offset <= size && segment.p_filesz <= size - segment.p_offset));
    if (!whole)
      return tm_fail(error, TM_ERROR_CORRUPT, "%s: truncated shared object: the file ends at %llu bytes, inside segment %u",
                     path, (unsigned long long)size, i);
  }
  if (header->e_shnum != 0 && (header->e_shoff > size || size - header->e_shoff < (uint64_t)header->e_shnum * header->e_shentsize))
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: truncated shared object: the file ends at %llu bytes, before its section table",
                   path, (unsigned long long)size);
  return TM_OK;
}

static tm_status check_elf(int file, const char *path, uint64_t size, tm_error *error) {
  Elf64_Ehdr header;
  const ssize_t got = pread(file, &header, sizeof header, 0);
  if (got < SELFMAG || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: not a shared object (no ELF header)", path);
  if (got != (ssize_t)sizeof header)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: truncated shared object: only %lld bytes", path, (long long)got);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || (OWN_MACHINE != EM_NONE && header.e_machine != OWN_MACHINE))
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: shared object for another architecture (ELF machine %u, class %u)", path,
                   header.e_machine, header.e_ident[EI_CLASS]);
  if (header.e_type != ET_DYN)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: an ELF file, but no shared object (type %u)", path, header.e_type);
  return check_segments(file, path, &header, size, error);
}

static tm_status check_file(const char *path, const struct stat *status, tm_error *error) {
  if (S_ISDIR(status->st_mode)) return tm_fail(error, TM_ERROR_CORRUPT, "%s: a folder, not a shared object", path);
  if (!S_ISREG(status->st_mode)) return tm_fail(error, TM_ERROR_CORRUPT, "%s: not a regular file", path);
  if (status->st_size == 0) return tm_fail(error, TM_ERROR_CORRUPT, "%s: empty file", path);
  if ((status->st_mode & S_IWOTH) != 0)
    return tm_fail(error, TM_ERROR_IO, "%s: writable by everybody; loading it would run anybody's code (chmod o-w)", path);
  return TM_OK;
}

tm_status tm_library_examine(const char *path, tm_file_identity *out_identity, tm_error *error) {
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    const tm_status status = errno == ENOENT ? TM_ERROR_NOT_FOUND : TM_ERROR_IO;
    return tm_fail_native(error, status, errno, "%s: %s", path, strerror(errno));
  }
  struct stat found;
  tm_status status = TM_OK;
  if (fstat(file, &found) != 0)
    status = tm_fail_native(error, TM_ERROR_IO, errno, "%s: %s", path, strerror(errno));
  if (status == TM_OK) status = check_file(path, &found, error);
  if (status == TM_OK) status = check_elf(file, path, (uint64_t)found.st_size, error);
  close(file);
  if (status == TM_OK) *out_identity = (tm_file_identity){ (uint64_t)found.st_dev, (uint64_t)found.st_ino };
  return status;
}

tm_status tm_library_open(const char *path, void **out_library, tm_error *error) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == NULL) {
    const char *reason = dlerror();
    return tm_fail(error, TM_ERROR_CORRUPT, "%s", reason == NULL ? "the dynamic loader gave no reason" : reason);
  }
  *out_library = library;
  return TM_OK;
}

static bool same_file(const char *a, const char *b) {
  struct stat first;
  struct stat second;
  return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

bool tm_library_contains(const char *path, const void *function_pointer) {
  Dl_info where;
  return dladdr(function_pointer, &where) != 0 && where.dli_fname != NULL && same_file(path, where.dli_fname);
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
  char *full = realpath(where.dli_fname, NULL);
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
