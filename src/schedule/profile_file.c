/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/profile_file.h"

#include <stdio.h>
#include <string.h>

#include "base/claimed_file.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/kept_file.h"
#include "base/replaced_file.h"

#define LARGEST_FILE_BYTES (UINT64_C(16) << 20)
#define LARGEST_JOURNAL_BYTES (UINT64_C(256) << 10)
#define LONGEST_PATH 4096
#define MOST_STATES 4u          /* that one device is remembered in: builds, drivers ... */
#define LOCK_PATIENCE_NS (UINT64_C(2) * 1000000000)
#define LOCK_PAUSE_NS UINT64_C(2000000)

#define SNAPSHOT "profile"
#define JOURNAL "profile.journal"
#define LOCK "profile.lock"

typedef char path_text[LONGEST_PATH];

static bool path_of(const tm_profile_file *file, const char *name, path_text path) {
  const int length = snprintf(path, LONGEST_PATH, "%s/%s", file->folder, name);
  return length > 0 && length < LONGEST_PATH;
}

/* path NULL: `what` begins with it. */
static void say_once(tm_profile_file *file, const char *path, const char *what) {
  if (atomic_exchange(&file->is_silent, true)) return;
  (void)snprintf(file->note, sizeof file->note, "what was learned of devices is not all there: %.600s%s%.300s",
                 path == NULL ? "" : path, path == NULL ? "" : ": ", what);
  atomic_store_explicit(&file->has_note, true, memory_order_release);
  tm_log_write(&file->log, TM_LOG_WARNING, "%s", file->note);
}

const char *tm_profile_file_note(const tm_profile_file *file) {
  return atomic_load_explicit(&file->has_note, memory_order_acquire) ? file->note : "";
}

/* ---- reading ---- */

static void nothing(void *context, const tm_profile_record *record) { (void)context, (void)record; }

/* What became of one of the two files. */
typedef struct reading {
  tm_profile_flaws flaws;
  bool             is_there;
  uint64_t         bytes;
  uint64_t         generation;
} reading;

typedef struct relay {
  tm_profile_record_fn take;
  void                *context;
  const reading       *snapshot;        /* NULL: this is it */
  uint64_t             generation;
} relay;

/* A journal for an older snapshot was merged into the present one by a process that did not get to remove it. */
static void pass_on(void *context, const tm_profile_record *record) {
  relay *to = context;
  if (record->kind == TM_PROFILE_HEADER) to->generation = record->generation;
  else if (to->snapshot == NULL || to->snapshot->generation == to->generation) to->take(to->context, record);
}

/* Whatever is written next is written beside what is sound of it. */
#define REMEDY "; what is measured and kept next mends that, or tm_context_reset_profile"

static void say_flaws(tm_profile_file *file, const char *path, const tm_profile_flaws *flaws) {
  char text[160];
  if (flaws->is_foreign) say_once(file, path, "it is no profile, and is ignored" REMEDY);
  if (flaws->version != 0) say_once(file, path, "it is of another version, and is ignored");
  snprintf(text, sizeof text, "%llu damaged line%s ignored" REMEDY, (unsigned long long)flaws->damaged_count,
           flaws->damaged_count == 1 ? " is" : "s are");
  if (flaws->damaged_count != 0) say_once(file, path, text);
}

static void read_one(tm_profile_file *file, const char *name, const reading *snapshot, tm_profile_record_fn take, void *context,
                     reading *out_reading) {
  path_text path;
  char *data = NULL;
  tm_error error = TM_ERROR_INIT;
  *out_reading = (reading){ .is_there = false };
  if (!path_of(file, name, path)) return;
  const tm_status status = tm_plain_file_read(file->memory, path, LARGEST_FILE_BYTES, &data, &out_reading->bytes, &error);
  out_reading->is_there = status != TM_ERROR_NOT_FOUND;
  if (status != TM_OK) {
    if (out_reading->is_there) say_once(file, NULL, error.text);
    out_reading->flaws.is_foreign = out_reading->is_there;
    return;
  }
  relay to = { take, context, snapshot, 0 };
  if (out_reading->bytes != 0) out_reading->flaws = tm_profile_text_read(data, out_reading->bytes, pass_on, &to);
  out_reading->generation = to.generation;
  say_flaws(file, path, &out_reading->flaws);
  tm_memory_free(file->memory, data, out_reading->bytes);
}

static void read_both(tm_profile_file *file, tm_profile_record_fn take, void *context, reading *out_snapshot, reading *out_journal) {
  read_one(file, SNAPSHOT, NULL, take, context, out_snapshot);
  read_one(file, JOURNAL, out_snapshot, take, context, out_journal);
}

void tm_profile_file_read(tm_profile_file *file, tm_profile_record_fn take, void *context) {
  reading snapshot, journal;
  read_both(file, take, context, &snapshot, &journal);
}

/* ---- changing, under the lock ---- */

static tm_status lock(tm_profile_file *file, tm_claimed_file *out_lock, tm_error *error) {
  path_text path;
  const uint64_t give_up = tm_now_ns() + LOCK_PATIENCE_NS;
  if (!path_of(file, LOCK, path)) return tm_fail(error, TM_ERROR_IO, "the folder's name is too long");
  TM_TRY(tm_kept_folder_make(file->folder, error));
  tm_status status = tm_claimed_file_open(path, true, out_lock, error);
  while (status == TM_BUSY && tm_now_ns() < give_up) {
    tm_sleep_ns(LOCK_PAUSE_NS);
    status = tm_claimed_file_open(path, true, out_lock, error);
  }
  return status == TM_BUSY ? tm_fail(error, status, "%s: somebody has it for too long", path) : status;
}

static tm_status check_version(const reading *snapshot, const reading *journal, tm_error *error) {
  if (snapshot->flaws.version == 0 && journal->flaws.version == 0) return TM_OK;
  return tm_fail(error, TM_UNSUPPORTED, "the profile was written by another version of the library, and is left alone");
}

/* A device whose build, driver or host changed often leaves knowledge that nobody will ask for again. */
static void drop_outdated(tm_profile_merge *merge) {
  for (uint32_t i = 0; i < merge->owner_count; i++) {
    tm_profile_owner *owner = &merge->owners[i];
    uint32_t later = 0;
    for (uint32_t j = i + 1; j < merge->owner_count && !owner->is_link; j++) {
      const tm_profile_owner *other = &merge->owners[j];
      later += !other->is_link && strcmp(owner->device.backend, other->device.backend) == 0 &&
               strcmp(owner->device.uuid, other->device.uuid) == 0;
    }
    owner->is_dropped |= later >= MOST_STATES;
  }
}

static tm_status compact_locked(tm_profile_file *file, tm_profile_keep_fn keep, void *context, tm_profile_merge *merge, tm_error *error) {
  path_text path, journal_path;
  reading snapshot, journal;
  char *text = NULL;
  uint64_t bytes = 0, room = 0;
  if (!path_of(file, SNAPSHOT, path) || !path_of(file, JOURNAL, journal_path)) return TM_ERROR_IO;
  read_both(file, tm_profile_merge_take, merge, &snapshot, &journal);
  TM_TRY(check_version(&snapshot, &journal, error));
  for (uint32_t i = 0; keep != NULL && i < merge->owner_count; i++) merge->owners[i].is_dropped = !keep(context, &merge->owners[i]);
  drop_outdated(merge);
  if (tm_profile_merge_print(merge, snapshot.generation + 1, &text, &bytes, &room) != TM_OK)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a profile");
  const tm_status status = tm_plain_file_replace(path, text, bytes, error);
  tm_memory_free(file->memory, text, room);
  if (status == TM_OK) tm_kept_file_remove(journal_path);
  return status;
}

static tm_status compact_under_lock(tm_profile_file *file, tm_profile_keep_fn keep, void *context, tm_error *error) {
  tm_profile_merge merge;
  if (tm_profile_merge_init(&merge, file->memory) != TM_OK) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a profile");
  const tm_status status = compact_locked(file, keep, context, &merge, error);
  tm_profile_merge_deinit(&merge);
  return status;
}

tm_status tm_profile_file_compact(tm_profile_file *file, tm_profile_keep_fn keep, void *context, tm_error *error) {
  tm_claimed_file held = { -1 };
  TM_TRY(lock(file, &held, error));
  const tm_status status = compact_under_lock(file, keep, context, error);
  tm_claimed_file_close(&held);
  return status;
}

/* A journal that is not sound, or for another snapshot, begins anew; its sound lines go into the snapshot first. */
static tm_status begin_journal(const char *path, uint64_t generation, tm_error *error) {
  char header[TM_PROFILE_LINE_BYTES];
  const tm_profile_record record = { .kind = TM_PROFILE_HEADER, .version = TM_PROFILE_VERSION, .generation = generation };
  return tm_plain_file_replace(path, header, tm_profile_record_print(&record, header), error);
}

static bool is_sound(const reading *one) { return !one->flaws.is_foreign && one->flaws.damaged_count == 0; }

static tm_status append_locked(tm_profile_file *file, const char *lines, uint64_t bytes, tm_error *error) {
  path_text path;
  reading snapshot, journal;
  if (!path_of(file, JOURNAL, path)) return tm_fail(error, TM_ERROR_IO, "the folder's name is too long");
  read_both(file, nothing, NULL, &snapshot, &journal);
  TM_TRY(check_version(&snapshot, &journal, error));
  const bool is_due = journal.bytes + bytes > LARGEST_JOURNAL_BYTES || !is_sound(&snapshot) || !is_sound(&journal);
  if (is_due) TM_TRY(compact_under_lock(file, NULL, NULL, error));
  if (is_due) read_both(file, nothing, NULL, &snapshot, &journal);
  if (!journal.is_there || journal.bytes == 0 || journal.generation != snapshot.generation)
    TM_TRY(begin_journal(path, snapshot.generation, error));
  return tm_plain_file_append(path, lines, bytes, error);
}

tm_status tm_profile_file_append(tm_profile_file *file, const char *lines, uint64_t bytes, tm_error *error) {
  tm_claimed_file held = { -1 };
  TM_TRY(lock(file, &held, error));
  const tm_status status = append_locked(file, lines, bytes, error);
  tm_claimed_file_close(&held);
  return status;
}

/* ---- elsewhere ---- */

tm_status tm_profile_file_export(tm_profile_file *file, const char *path, tm_error *error) {
  tm_profile_merge merge;
  char *text = NULL;
  uint64_t bytes = 0, room = 0;
  if (tm_profile_merge_init(&merge, file->memory) != TM_OK) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a profile");
  if (file->folder != NULL) tm_profile_file_read(file, tm_profile_merge_take, &merge);
  tm_status status = tm_profile_merge_print(&merge, 1, &text, &bytes, &room);
  tm_profile_merge_deinit(&merge);
  if (status != TM_OK) return tm_fail(error, status, "no memory for a profile");
  status = tm_file_replace(path, text, bytes, error);
  tm_memory_free(file->memory, text, room);
  return status;
}

tm_status tm_profile_file_load(tm_memory *memory, const char *path, tm_profile_record_fn take, void *context,
                               tm_profile_flaws *out_flaws, tm_error *error) {
  char *data = NULL;
  uint64_t bytes = 0;
  TM_TRY(tm_plain_file_read(memory, path, LARGEST_FILE_BYTES, &data, &bytes, error));
  *out_flaws = tm_profile_text_read(data, bytes, take, context);
  tm_memory_free(memory, data, bytes);
  if (out_flaws->is_foreign || bytes == 0) return tm_fail(error, TM_ERROR_CORRUPT, "%s: it is no profile", path);
  if (out_flaws->version != 0)
    return tm_fail(error, TM_UNSUPPORTED, "%s: a profile of version %u, this library knows %u", path, out_flaws->version,
                   TM_PROFILE_VERSION);
  return TM_OK;
}
