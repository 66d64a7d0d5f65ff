/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pending_set.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/pending_folder.h"
#include "base/system_error.h"
#include "base/text.h"
#include "base/write_target.h"

#define NO_DESCRIPTOR (-1)
/* Files beyond these are opened anew for each write: a set may have more than a process may hold open. */
#define MOST_OPEN 32u
/* That are waited for at once when a file is brought to the disk. */
#define SYNC_BYTES (UINT64_C(32) << 20)
/* Smaller writes are left to the system: often the next one is a neighbour, and a call for each would split what the disk takes at
   once. */
#define EARLY_BYTES (UINT64_C(1) << 18)
#define MOST_IDS  16u           /* that are tried until nobody has it */

typedef struct part {
  const char *name;             /* of the file when it is in its place */
  const char *part_name;
  uint64_t    bytes;
  int         descriptor;       /* NO_DESCRIPTOR: opened for each write, or not made yet */
  bool        is_made;
  bool        is_new;
} part;

struct tm_pending_set {
  tm_memory        *memory;
  tm_arena          arena;
  tm_pending_folder folder;
  tm_pending_id     id;
  part             *parts;      /* the last one leads */
  uint64_t          count;
  bool              is_decided;
};

static part *leader_of(const tm_pending_set *set) { return &set->parts[set->count - 1]; }

static tm_status fail_memory(const tm_pending_set *set, tm_error *error) {
  return tm_fail(error, TM_ERROR_NO_MEMORY, "%s: no memory to write files to it", set->folder.label);
}

/* --------------------------------------------------------------------------------------------------------- making ---- */

/* A write beyond the limit would raise a signal that ends programs. */
static bool is_within_limit(uint64_t bytes) {
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

/* Where the file system cannot set room aside, the file gets its size at least. */
static int take_room(int descriptor, uint64_t bytes) {
  if (bytes > INT64_MAX || !is_within_limit(bytes)) return EFBIG;
  if (bytes == 0) return 0;
  int result;
  do {
    result = fallocate(descriptor, 0, 0, (off_t)bytes);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return 0;
  if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL) return errno;
  return ftruncate(descriptor, (off_t)bytes) == 0 ? 0 : errno;
}

static const char *kind_of(mode_t mode) {
  if (S_ISLNK(mode)) return "is a link, and a set is not written through links";
  if (S_ISDIR(mode)) return "is a folder";
  return S_ISFIFO(mode) ? "is a pipe, not a regular file" : "is not a regular file";
}

static tm_status look_at_old(const tm_pending_folder *folder, const char *name, struct stat *out_old, bool *out_is_there,
                             tm_error *error) {
  char label[200];
  const int number = tm_write_target_look(folder->descriptor, name, out_old, out_is_there);
  if (number == 0) return TM_OK;
  if (!*out_is_there || S_ISREG(out_old->st_mode)) return tm_pending_fail(folder, name, "replaced", number, error);
  (void)tm_text_escape(name, strlen(name), label, sizeof label);
  return tm_fail_native(error, TM_ERROR_IO, number, "%s/%s: cannot be replaced: it %s", folder->label, label,
                        kind_of(out_old->st_mode));
}

/* Nobody else's until it has the mode of what it replaces; a new one has the mode that the user's mask gives. */
static tm_status make_part(tm_pending_set *set, part *one, int *out_number, tm_error *error) {
  struct stat old;
  bool is_there;
  *out_number = 0;
  TM_TRY(look_at_old(&set->folder, one->name, &old, &is_there, error));
  one->descriptor = openat(set->folder.descriptor, one->part_name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                           is_there ? 0600 : 0666);
  *out_number = errno;
  if (one->descriptor < 0) return tm_pending_fail(&set->folder, one->part_name, "made", *out_number, error);
  one->is_made = true;
  const int number = is_there ? tm_write_target_keep_access(one->descriptor, &old) : 0;
  if (number == 0) return TM_OK;
  return tm_pending_fail(&set->folder, one->part_name, "given the owner and mode of what it replaces", number, error);
}

static void close_part(part *one) {
  if (one->descriptor >= 0) (void)close(one->descriptor);
  one->descriptor = NO_DESCRIPTOR;
}

static tm_status fail_room(const tm_pending_set *set, const part *one, int number, tm_error *error) {
  const bool is_limit = number == EFBIG && !is_within_limit(one->bytes);
  (void)tm_pending_fail(&set->folder, one->name, "given its room on the disk", number, error);
  tm_error_prefix(error, "%" PRIu64 " bytes are needed%s", one->bytes,
                  is_limit ? ", more than this process may write to a file (ulimit -f)" : "");
  return TM_ERROR_IO;
}

static tm_status fail_busy(const tm_pending_set *set, tm_error *error) {
  return tm_fail(error, TM_BUSY, "%s/%s: somebody else begins to write this right now", set->folder.label, leader_of(set)->name);
}

/* Locked before anything else is there; one that somebody took for a dead one's meanwhile is left to him. */
static tm_status make_leader(tm_pending_set *set, tm_error *error) {
  part *leader = leader_of(set);
  for (uint32_t i = 0; i <= MOST_IDS; i++) {
    set->id = tm_pending_id_make();
    leader->part_name = tm_pending_name(&set->arena, leader->name, &set->id, TM_PENDING_PART);
    if (leader->part_name == NULL) return fail_memory(set, error);
    int number;
    const tm_status status = make_part(set, leader, &number, error);
    if (status != TM_OK && (number != EEXIST || i == MOST_IDS)) return status;
    if (status != TM_OK) continue;
    const tm_pending_claim claim = tm_pending_claim_leader(&set->folder, leader->part_name, leader->descriptor);
    if (claim == TM_PENDING_OURS || claim == TM_PENDING_UNKNOWN) return TM_OK;
    close_part(leader);
    leader->is_made = false;
  }
  return fail_busy(set, error);
}

static tm_status make_parts(tm_pending_set *set, tm_error *error) {
  TM_TRY(make_leader(set, error));
  for (uint64_t i = 0; i < set->count; i++) {
    part *one = &set->parts[i];
    int number;
    if (!one->is_made) {
      one->part_name = tm_pending_name(&set->arena, one->name, &set->id, TM_PENDING_PART);
      if (one->part_name == NULL) return fail_memory(set, error);
      TM_TRY(make_part(set, one, &number, error));
    }
    number = take_room(one->descriptor, one->bytes);
    if (number != 0) return fail_room(set, one, number, error);
    if (i >= MOST_OPEN && one != leader_of(set)) close_part(one);
  }
  return TM_OK;
}

static tm_status copy_plan(tm_pending_set *set, const tm_pending_plan *plan, tm_error *error) {
  set->parts = tm_arena_calloc(&set->arena, plan->file_count, sizeof *set->parts);
  if (set->parts == NULL) return fail_memory(set, error);
  set->count = plan->file_count;
  for (uint64_t i = 0; i < set->count; i++) set->parts[i].descriptor = NO_DESCRIPTOR;
  for (uint64_t i = 0; i < set->count; i++) {
    set->parts[i].name = tm_arena_string(&set->arena, plan->files[i].name, strlen(plan->files[i].name));
    set->parts[i].bytes = plan->files[i].bytes;
    set->parts[i].is_new = plan->files[i].is_new;
    if (set->parts[i].name == NULL) return fail_memory(set, error);
  }
  return TM_OK;
}

static tm_status check_removal(const tm_pending_folder *folder, const char *name, tm_error *error) {
  const int number = tm_pending_look_at_removal(folder, name);
  return number == 0 ? TM_OK : tm_pending_fail(folder, name, "removed or replaced", number, error);
}

static tm_status check_name(const tm_pending_folder *folder, const char *name, tm_error *error) {
  char label[80];
  struct stat old;
  bool is_there;
  const long most = fpathconf(folder->descriptor, _PC_NAME_MAX);
  const size_t tail = sizeof TM_PENDING_WHOLE + TM_PENDING_ID_DIGITS;
  TM_TRY(look_at_old(folder, name, &old, &is_there, error));
  TM_TRY(check_removal(folder, name, error));
  if (most < 0 || strlen(name) + tail <= (size_t)most) return TM_OK;
  (void)tm_text_escape(name, strlen(name), label, sizeof label);
  return tm_fail_native(error, TM_ERROR_IO, ENAMETOOLONG,
                        "%s: the name \"%s\" is too long: %zu bytes are allowed there, of which %zu "
                        "are needed while it is written", folder->label, label, (size_t)most, tail);
}

tm_status tm_pending_set_check(const tm_pending_plan *plan, tm_error *error) {
  tm_pending_folder folder;
  TM_TRY(tm_pending_folder_open(plan->folder, &folder, error));
  tm_status status = TM_OK;
  if (faccessat(folder.descriptor, ".", W_OK | X_OK, AT_EACCESS) != 0) {
    const int number = errno;
    status = tm_fail_native(error, TM_ERROR_IO, number, "%s: the folder cannot be written to: %s", folder.label,
                            tm_system_error(number).text);
  }
  for (uint64_t i = 0; i < plan->file_count && status == TM_OK; i++) status = check_name(&folder, plan->files[i].name, error);
  for (uint64_t i = 0; i < plan->old_count && status == TM_OK; i++) status = check_removal(&folder, plan->old_names[i], error);
  tm_pending_folder_close(&folder);
  return status;
}

tm_status tm_pending_set_create(tm_memory *memory, const tm_pending_plan *plan, tm_pending_set **out_set, tm_error *error) {
  tm_pending_set *set = tm_memory_calloc(memory, 1, sizeof *set);
  if (set == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to write files");
  set->memory = memory;
  set->folder.descriptor = NO_DESCRIPTOR;
  tm_arena_init(&set->arena, memory);
  tm_status status = tm_pending_folder_open(plan->folder, &set->folder, error);
  if (status == TM_OK) status = copy_plan(set, plan, error);
  if (status == TM_OK) status = make_parts(set, error);
  if (status == TM_OK) *out_set = set;
  else tm_pending_set_destroy(set);
  return status;
}

const char *tm_pending_set_id(const tm_pending_set *set) { return set->id.digits; }

/* The leader last: as long as it is there, the others have an owner. */
void tm_pending_set_destroy(tm_pending_set *set) {
  if (set == NULL) return;
  for (uint64_t i = 0; i < set->count; i++) {
    if (set->parts[i].is_made && !set->is_decided) (void)unlinkat(set->folder.descriptor, set->parts[i].part_name, 0);
    close_part(&set->parts[i]);
  }
  tm_pending_folder_close(&set->folder);
  tm_arena_deinit(&set->arena);
  tm_memory_free(set->memory, set, sizeof *set);
}

/* -------------------------------------------------------------------------------------------------------- writing ---- */

static int borrow(const tm_pending_set *set, const part *one) {
  if (one->descriptor >= 0) return one->descriptor;
  return openat(set->folder.descriptor, one->part_name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
}

static void give_back(const part *one, int descriptor) {
  if (descriptor != one->descriptor) (void)close(descriptor);
}

/* The disk may begin with what is large, so that less is left to wait for at the end.  Whether it does is of no concern here. */
static void start_writing(int descriptor, uint64_t begin, uint64_t bytes) {
  if (bytes >= EARLY_BYTES) (void)sync_file_range(descriptor, (off_t)begin, (off_t)bytes, SYNC_FILE_RANGE_WRITE);
}

tm_status tm_pending_set_write(tm_pending_set *set, uint64_t file, uint64_t offset, const void *data, uint64_t bytes,
                               tm_error *error) {
  const part *one = &set->parts[file];
  uint64_t end;
  if (!tm_checked_add(offset, bytes, &end) || end > one->bytes)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s/%s: %" PRIu64 " bytes at offset %" PRIu64 " lie beyond its end at %" PRIu64,
                   set->folder.label, one->name, bytes, offset, one->bytes);
  if (!is_within_limit(end)) return tm_pending_fail(&set->folder, one->part_name, "written", EFBIG, error);
  const int descriptor = borrow(set, one);
  if (descriptor < 0) return tm_pending_fail(&set->folder, one->part_name, "opened", errno, error);
  const bool is_written = tm_descriptor_write(descriptor, offset, data, bytes);
  const int number = errno;
  if (is_written) start_writing(descriptor, offset, bytes);
  give_back(one, descriptor);
  return is_written ? TM_OK : tm_pending_fail(&set->folder, one->part_name, "written", number, error);
}

/* Returns 0 or an errno.  A system that cannot do this for a part of a file leaves all of it to fsync. */
static int sync_piece(int descriptor, uint64_t begin, uint64_t bytes) {
  const unsigned flags = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  if (sync_file_range(descriptor, (off_t)begin, (off_t)bytes, flags) == 0) return 0;
  return errno == EIO || errno == ENOSPC || errno == EDQUOT ? errno : 0;
}

static int sync_all(int descriptor, uint64_t bytes, const atomic_bool *is_cancelled) {
  for (uint64_t begin = 0; begin < bytes; begin += SYNC_BYTES) {
    if (atomic_load(is_cancelled)) return ECANCELED;
    const int number = sync_piece(descriptor, begin, tm_min_u64(SYNC_BYTES, bytes - begin));
    if (number != 0) return number;
  }
  if (atomic_load(is_cancelled)) return ECANCELED;
  return fsync(descriptor) == 0 ? 0 : errno;
}

tm_status tm_pending_set_sync(tm_pending_set *set, uint64_t file, const atomic_bool *is_cancelled, tm_error *error) {
  const part *one = &set->parts[file];
  const int descriptor = borrow(set, one);
  if (descriptor < 0) return tm_pending_fail(&set->folder, one->part_name, "opened", errno, error);
  const int number = sync_all(descriptor, one->bytes, is_cancelled);
  give_back(one, descriptor);
  if (number == ECANCELED)
    return tm_fail(error, TM_ERROR_CANCELLED, "%s/%s: writing it was cancelled", set->folder.label, one->name);
  return number == 0 ? TM_OK : tm_pending_fail(&set->folder, one->part_name, "brought to the disk", number, error);
}

/* ----------------------------------------------------------------------------------------------------- committing ---- */

static tm_status commit_one(tm_pending_set *set, tm_error *error) {
  const part *only = leader_of(set);
  const tm_status status = only->is_new ? tm_pending_add(&set->folder, only->part_name, only->name, error)
                                        : tm_pending_rename(&set->folder, only->part_name, only->name, error);
  TM_TRY(status);
  set->is_decided = true;
  return tm_pending_folder_sync(&set->folder, error);
}

static tm_status commit_by_steps(tm_pending_set *set, const char *const *old_names, uint64_t old_count, tm_error *error) {
  const part *leader = leader_of(set);
  const char *whole = tm_pending_name(&set->arena, leader->name, &set->id, TM_PENDING_WHOLE);
  const char **names = tm_arena_calloc(&set->arena, set->count - 1, sizeof *names);
  if (whole == NULL || names == NULL) return fail_memory(set, error);
  for (uint64_t i = 0; i + 1 < set->count; i++) names[i] = set->parts[i].name;
  TM_TRY(tm_pending_folder_sync(&set->folder, error));
  for (uint64_t i = 0; i < set->count; i++)
    if (set->parts[i].is_new) TM_TRY(tm_pending_check_vacant(&set->folder, set->parts[i].name, error));
  TM_TRY(tm_pending_rename(&set->folder, leader->part_name, whole, error));
  set->is_decided = true;
  TM_TRY(tm_pending_folder_sync(&set->folder, error));
  const tm_pending_placement placement = {
    .folder = &set->folder, .id = &set->id, .names = names, .count = set->count - 1, .leader = leader->name,
    .old_names = old_names, .old_count = old_count,
  };
  return tm_pending_place(&set->arena, &placement, error);
}

tm_status tm_pending_set_commit(tm_pending_set *set, const char *const *old_names, uint64_t old_count, bool *out_is_decided,
                                tm_error *error) {
  const bool is_one_step = set->count == 1 && old_count == 0;
  const tm_status status = is_one_step ? commit_one(set, error) : commit_by_steps(set, old_names, old_count, error);
  *out_is_decided = set->is_decided;
  return status;
}
