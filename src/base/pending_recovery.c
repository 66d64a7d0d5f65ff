/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pending_recovery.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/pending_folder.h"
#include "base/text.h"

typedef struct recovery {
  const tm_pending_search *search;
  tm_arena                 arena;
  tm_pending_folder        folder;
  const char             **entries;     /* of the folder, when it was looked at */
  uint64_t                 count;
  tm_pending_leftovers    *leftovers;
  tm_error                *error;
} recovery;

static bool is_of(const char *entry, const char *ending, const char *leader, tm_pending_id *out_id) {
  uint64_t length;
  return tm_pending_name_parse(entry, ending, &length, out_id) && length == strlen(leader) && memcmp(entry, leader, length) == 0;
}

static tm_status fail_memory(const recovery *work) {
  return tm_fail(work->error, TM_ERROR_NO_MEMORY, "%s: no memory to look for what earlier writers left", work->folder.label);
}

/* ------------------------------------------------------------------------------------------------------ dead sets ---- */

/* The names, without their endings, of the parts with these digits. */
static tm_status collect(recovery *work, const tm_pending_id *id, const char ***out_names, uint64_t *out_count) {
  const char **names = tm_arena_calloc(&work->arena, work->count, sizeof *names);
  uint64_t count = 0, length;
  if (names == NULL) return fail_memory(work);
  for (uint64_t i = 0; i < work->count; i++) {
    tm_pending_id other;
    if (!tm_pending_name_parse(work->entries[i], TM_PENDING_PART, &length, &other) || strcmp(other.digits, id->digits) != 0)
      continue;
    if (!tm_pending_is_trusted(&work->folder, work->entries[i])) continue;
    names[count] = tm_arena_string(&work->arena, work->entries[i], length);
    if (names[count++] == NULL) return fail_memory(work);
  }
  *out_names = names;
  *out_count = count;
  return TM_OK;
}

/* The leader last, so that what is left always has one. */
static tm_status remove_set(recovery *work, const char *leader_part, const tm_pending_id *id) {
  const char **names = NULL;
  uint64_t count = 0;
  TM_TRY(collect(work, id, &names, &count));
  for (uint64_t i = 0; i < count; i++) {
    const char *part = tm_pending_name(&work->arena, names[i], id, TM_PENDING_PART);
    if (part == NULL) return fail_memory(work);
    if (strcmp(part, leader_part) != 0) TM_TRY(tm_pending_remove(&work->folder, part, work->error));
  }
  TM_TRY(tm_pending_remove(&work->folder, leader_part, work->error));
  work->leftovers->removed_count += count;
  return TM_OK;
}

static tm_status complete_set(recovery *work, const tm_pending_id *id) {
  tm_pending_placement placement = { .folder = &work->folder, .id = id, .leader = work->search->leader,
                                     .old_names = work->search->old_names, .old_count = work->search->old_count };
  const char **names = NULL;
  TM_TRY(collect(work, id, &names, &placement.count));
  placement.names = names;
  TM_TRY(tm_pending_place(&work->arena, &placement, work->error));
  work->leftovers->completed_count++;
  return TM_OK;
}

/* ------------------------------------------------------------------------------------------------------ searching ---- */

/* A complete set has nothing else that says so than its leader's name. */
static tm_status fail_busy(const recovery *work, const char *entry, bool is_whole) {
  char label[200];
  (void)tm_text_escape(entry, strlen(entry), label, sizeof label);
  if (is_whole)
    return tm_fail(work->error, TM_BUSY, "%s/%s: somebody is putting a complete checkpoint in its place right now; try again in a "
                   "moment, and do not remove this file: it alone says that the checkpoint is complete", work->folder.label, label);
  return tm_fail(work->error, TM_BUSY, "%s/%s: somebody is writing this right now; if nobody is (the file system may not tell), "
                 "remove it", work->folder.label, label);
}

/* Some file systems lock only what may be written to; others' files can be looked at at least. */
static int open_leader(const tm_pending_folder *folder, const char *entry) {
  const int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const int descriptor = openat(folder->descriptor, entry, O_RDWR | flags);
  return descriptor < 0 && errno == EACCES ? openat(folder->descriptor, entry, O_RDONLY | flags) : descriptor;
}

#define LOCK_TRIES    25u
#define LOCK_PAUSE_NS UINT64_C(10000000)

/* A process that was killed just now keeps its locks until the system has given back what else it had. */
static tm_pending_claim claim_patiently(const recovery *work, const char *entry, int descriptor) {
  tm_pending_claim claim = tm_pending_claim_leader(&work->folder, entry, descriptor);
  for (uint32_t i = 1; i < LOCK_TRIES && claim == TM_PENDING_THEIRS; i++) {
    tm_sleep_ns(LOCK_PAUSE_NS);
    claim = tm_pending_claim_leader(&work->folder, entry, descriptor);
  }
  return claim;
}

static tm_status handle(recovery *work, const char *entry, const tm_pending_id *id, bool is_whole) {
  const int descriptor = open_leader(&work->folder, entry);
  if (descriptor < 0) return errno == ENOENT ? TM_OK : tm_pending_fail(&work->folder, entry, "opened", errno, work->error);
  const tm_pending_claim claim = claim_patiently(work, entry, descriptor);
  tm_status status = TM_OK;
  if (claim == TM_PENDING_THEIRS || claim == TM_PENDING_UNKNOWN) status = fail_busy(work, entry, is_whole);
  else if (claim == TM_PENDING_OURS) status = is_whole ? complete_set(work, id) : remove_set(work, entry, id);
  (void)close(descriptor);
  return status;
}

static tm_status search_entries(recovery *work) {
  const tm_pending_search *search = work->search;
  for (uint64_t i = 0; i < work->count; i++) {
    tm_pending_id id;
    const bool is_whole = is_of(work->entries[i], TM_PENDING_WHOLE, search->leader, &id);
    if (!is_whole && !is_of(work->entries[i], TM_PENDING_PART, search->leader, &id)) continue;
    if (search->own_id != NULL && strcmp(id.digits, search->own_id) == 0) continue;
    if (tm_pending_is_trusted(&work->folder, work->entries[i])) TM_TRY(handle(work, work->entries[i], &id, is_whole));
  }
  return TM_OK;
}

static tm_status list(recovery *work) {
  const char *path = work->search->folder[0] == '\0' ? "." : work->search->folder;
  TM_TRY(tm_pending_folder_open(path, &work->folder, work->error));
  const tm_status status = tm_folder_list(&work->arena, path, &work->entries, &work->count, work->error);
  if (status != TM_OK) tm_error_prefix(work->error, "%s", work->folder.label);
  return status;
}

tm_status tm_pending_recover(tm_memory *memory, const tm_pending_search *search, tm_pending_leftovers *out_leftovers,
                             tm_error *error) {
  recovery work = { .search = search, .folder = { .descriptor = -1 }, .leftovers = out_leftovers, .error = error };
  tm_arena_init(&work.arena, memory);
  tm_status status = list(&work);
  if (status == TM_OK) status = search_entries(&work);
  tm_pending_folder_close(&work.folder);
  tm_arena_deinit(&work.arena);
  return status;
}

bool tm_pending_is_interrupted(const char *folder, const char *leader) {
  DIR *opened = opendir(folder[0] == '\0' ? "." : folder);
  bool is_found = false;
  if (opened == NULL) return false;
  for (const struct dirent *entry = readdir(opened); entry != NULL && !is_found; entry = readdir(opened)) {
    tm_pending_id id;
    uint64_t length;
    is_found = leader != NULL ? is_of(entry->d_name, TM_PENDING_WHOLE, leader, &id)
                              : tm_pending_name_parse(entry->d_name, TM_PENDING_WHOLE, &length, &id);
  }
  (void)closedir(opened);
  return is_found;
}
