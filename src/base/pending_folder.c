/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pending_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/system_error.h"
#include "base/text.h"

#define ID_MASK ((UINT64_C(1) << (4 * TM_PENDING_ID_DIGITS)) - 1)

/* ----------------------------------------------------------------------------------------------------- the folder ---- */

tm_status tm_pending_folder_open(const char *path, tm_pending_folder *out_folder, tm_error *error) {
  const char *given = path[0] == '\0' ? "." : path;
  tm_pending_folder folder = { .descriptor = open(given, O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
  const int number = errno;
  (void)tm_text_escape(given, strlen(given), folder.label, sizeof folder.label);
  if (folder.descriptor < 0)
    return tm_fail_native(error, number == ENOENT ? TM_ERROR_NOT_FOUND : TM_ERROR_IO, number,
                          "%s: the folder to write to cannot be "
                          "opened: %s", folder.label, tm_system_error(number).text);
  *out_folder = folder;
  return TM_OK;
}

void tm_pending_folder_close(tm_pending_folder *folder) {
  if (folder->descriptor >= 0) (void)close(folder->descriptor);
  folder->descriptor = -1;
}

tm_status tm_pending_fail(const tm_pending_folder *folder, const char *name, const char *done, int number, tm_error *error) {
  char label[200];
  (void)tm_text_escape(name, strlen(name), label, sizeof label);
  return tm_fail_native(error, TM_ERROR_IO, number, "%s/%s: cannot be %s: %s", folder->label, label, done,
                        tm_system_error(number).text);
}

/* File systems that cannot do this for a folder say so with EINVAL. */
tm_status tm_pending_folder_sync(const tm_pending_folder *folder, tm_error *error) {
  if (fsync(folder->descriptor) == 0 || errno == EINVAL || errno == ENOTSUP) return TM_OK;
  const int number = errno;
  return tm_fail_native(error, TM_ERROR_IO, number, "%s: the folder cannot be brought to the disk: %s", folder->label,
                        tm_system_error(number).text);
}

tm_status tm_pending_remove(const tm_pending_folder *folder, const char *name, tm_error *error) {
  if (unlinkat(folder->descriptor, name, 0) == 0 || errno == ENOENT) return TM_OK;
  return tm_pending_fail(folder, name, "removed", errno, error);
}

tm_status tm_pending_rename(const tm_pending_folder *folder, const char *from, const char *to, tm_error *error) {
  if (renameat(folder->descriptor, from, folder->descriptor, to) == 0) return TM_OK;
  return tm_pending_fail(folder, to, "put in its place", errno, error);
}

static tm_status fail_taken(const tm_pending_folder *folder, const char *name, tm_error *error) {
  char label[200];
  (void)tm_text_escape(name, strlen(name), label, sizeof label);
  return tm_fail_native(error, TM_ERROR_IO, EEXIST, "%s/%s: was not there when writing it was planned, and now is; it stays as it is",
                        folder->label, label);
}

tm_status tm_pending_check_vacant(const tm_pending_folder *folder, const char *name, tm_error *error) {
  struct stat status;
  if (fstatat(folder->descriptor, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return TM_OK;
  return fail_taken(folder, name, error);
}

/* Some file systems know no such renaming, some of these no second names: there a last look has to do. */
tm_status tm_pending_add(const tm_pending_folder *folder, const char *from, const char *to, tm_error *error) {
  const int at = folder->descriptor;
  if (renameat2(at, from, at, to, RENAME_NOREPLACE) == 0) return TM_OK;
  if (errno != EEXIST && linkat(at, from, at, to, 0) == 0) return tm_pending_remove(folder, from, error);
  if (errno == EEXIST) return fail_taken(folder, to, error);
  TM_TRY(tm_pending_check_vacant(folder, to, error));
  return tm_pending_rename(folder, from, to, error);
}

/* ---------------------------------------------------------------------------------------------------------- names ---- */

tm_pending_id tm_pending_id_make(void) {
  tm_pending_id id;
  uint64_t number;
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number)
    number = tm_now_ns() * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)getpid();
  (void)snprintf(id.digits, sizeof id.digits, "%012" PRIx64, number & ID_MASK);
  return id;
}

char *tm_pending_name(tm_arena *arena, const char *name, const tm_pending_id *id, const char *ending) {
  const size_t length = strlen(name), room = length + TM_PENDING_ID_DIGITS + strlen(ending) + 2;
  char *text = tm_arena_alloc(arena, room);
  if (text != NULL) (void)snprintf(text, room, "%s.%s%s", name, id->digits, ending);
  return text;
}

bool tm_pending_name_parse(const char *entry, const char *ending, uint64_t *out_name_length, tm_pending_id *out_id) {
  const size_t length = strlen(entry), tail = strlen(ending) + TM_PENDING_ID_DIGITS + 1;
  if (length <= tail || strcmp(entry + length - strlen(ending), ending) != 0) return false;
  const char *digits = entry + length - tail + 1;
  if (digits[-1] != '.' || strspn(digits, "0123456789abcdef") != TM_PENDING_ID_DIGITS) return false;
  memcpy(out_id->digits, digits, TM_PENDING_ID_DIGITS);
  out_id->digits[TM_PENDING_ID_DIGITS] = '\0';
  *out_name_length = length - tail;
  return true;
}

bool tm_pending_is_trusted(const tm_pending_folder *folder, const char *name) {
  struct stat holder, status;
  if (fstat(folder->descriptor, &holder) != 0 || fstatat(folder->descriptor, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
  const bool is_shared = (holder.st_mode & S_ISVTX) != 0 && (holder.st_mode & S_IWOTH) != 0;
  return S_ISREG(status.st_mode) && (!is_shared || status.st_uid == geteuid());
}

static bool is_entry(const tm_pending_folder *folder, const char *entry, int descriptor) {
  struct stat opened, named;
  return fstat(descriptor, &opened) == 0 && fstatat(folder->descriptor, entry, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/* The name is looked at under the lock: between opening and locking its owner may have put it in its place, or removed it. */
tm_pending_claim tm_pending_claim_leader(const tm_pending_folder *folder, const char *entry, int descriptor) {
  const bool is_locked = flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  if (!is_locked && errno == EWOULDBLOCK) return TM_PENDING_THEIRS;
  if (!is_entry(folder, entry, descriptor)) return TM_PENDING_GONE;
  return is_locked ? TM_PENDING_OURS : TM_PENDING_UNKNOWN;
}

/* In a folder with the sticky bit a file belongs to its owner, the folder's and the superuser. */
int tm_pending_look_at_removal(const tm_pending_folder *folder, const char *name) {
  struct stat holder, status;
  const uid_t user = geteuid();
  if (fstat(folder->descriptor, &holder) != 0) return errno;
  if (fstatat(folder->descriptor, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT ? 0 : errno;
  const bool is_kept = (holder.st_mode & S_ISVTX) != 0 && user != 0 && user != holder.st_uid && user != status.st_uid;
  return is_kept ? EPERM : 0;
}

/* -------------------------------------------------------------------------------------------------------- placing ---- */

/* A file under its name whose part is still there is an earlier set's. */
static tm_status clear_place(tm_arena *arena, const tm_pending_placement *placement, tm_error *error) {
  const tm_pending_folder *folder = placement->folder;
  for (uint64_t i = 0; i < placement->count; i++) {
    const char *part = tm_pending_name(arena, placement->names[i], placement->id, TM_PENDING_PART);
    if (part == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "%s: no memory for the names of its files", folder->label);
    if (tm_pending_is_trusted(folder, part)) TM_TRY(tm_pending_remove(folder, placement->names[i], error));
  }
  for (uint64_t i = 0; i < placement->old_count; i++) TM_TRY(tm_pending_remove(folder, placement->old_names[i], error));
  TM_TRY(tm_pending_folder_sync(folder, error));
  if (placement->count == 0) return TM_OK;
  TM_TRY(tm_pending_remove(folder, placement->leader, error));
  return tm_pending_folder_sync(folder, error);
}

tm_status tm_pending_place(tm_arena *arena, const tm_pending_placement *placement, tm_error *error) {
  const tm_pending_folder *folder = placement->folder;
  TM_TRY(clear_place(arena, placement, error));
  for (uint64_t i = 0; i < placement->count; i++) {
    const char *part = tm_pending_name(arena, placement->names[i], placement->id, TM_PENDING_PART);
    if (part == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "%s: no memory for the names of its files", folder->label);
    if (tm_pending_is_trusted(folder, part)) TM_TRY(tm_pending_rename(folder, part, placement->names[i], error));
  }
  TM_TRY(tm_pending_folder_sync(folder, error));
  const char *whole = tm_pending_name(arena, placement->leader, placement->id, TM_PENDING_WHOLE);
  if (whole == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "%s: no memory for the names of its files", folder->label);
  TM_TRY(tm_pending_rename(folder, whole, placement->leader, error));
  return tm_pending_folder_sync(folder, error);
}
