/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/crash_marks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/claimed_file.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/kept_file.h"

#define FILE_PREFIX "running-"
#define MARKS 64u               /* calls under way at once; more go unmarked */
#define MARK_BYTES 768u
#define MARK_FIELDS 6
#define MOST_FILES_TRIED 64u
#define LASTING_MARKS 64u       /* kinds of work with one; more go unmarked */
#define LASTING_BYTES 1024u     /* each, behind the others */
#define FILE_BYTES (2 * TM_CLAIMED_FILE_UNIT)
#define LASTING_CALL "a run after its trial"
#define LONGEST_PATH 4096

/* Lies in the file.  The text is whole before anything is counted. */
struct tm_lasting_mark {
  _Atomic uint64_t running;
  char             text[LASTING_BYTES - 8];
};
_Static_assert(sizeof(tm_lasting_mark) == LASTING_BYTES && MARK_BYTES <= LASTING_BYTES - 8, "a mark has its room");
_Static_assert(MARKS * MARK_BYTES <= TM_CLAIMED_FILE_UNIT && LASTING_MARKS * LASTING_BYTES <= TM_CLAIMED_FILE_UNIT,
               "the lasting ones are the second unit");

struct tm_crash_marks {
  tm_memory    *memory;
  tm_log        log;
  tm_mutex      lock;
  tm_claimed_file file;
  uint64_t      in_use;         /* a bit a mark */
  bool          is_hopeless;    /* no file can be made, which was said */
  bool          may_map;
  uint32_t      lasting_count;
  tm_claimed_memory mapped;
  tm_lasting_mark nobodys;      /* counts where nothing is kept */
  char          path[LONGEST_PATH];
  char          folder[];
};

static uint64_t bytes_of(const char *folder) { return sizeof(tm_crash_marks) + strlen(folder) + 1; }

tm_status tm_crash_marks_open(tm_memory *memory, const char *folder, bool may_map, tm_log log, tm_crash_marks **out_marks,
                              tm_error *error) {
  tm_crash_marks *marks = tm_memory_calloc(memory, 1, bytes_of(folder));
  if (marks == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a context");
  if (tm_mutex_init(&marks->lock) != TM_OK) {
    tm_memory_free(memory, marks, bytes_of(folder));
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a context");
  }
  marks->memory = memory;
  marks->may_map = may_map;
  atomic_init(&marks->nobodys.running, 0);
  marks->log = log;
  marks->file.descriptor = -1;
  memcpy(marks->folder, folder, strlen(folder) + 1);
  *out_marks = marks;
  return TM_OK;
}

void tm_crash_marks_close(tm_crash_marks *marks) {
  if (marks == NULL) return;
  if (marks->file.descriptor >= 0) tm_kept_file_remove(marks->path);
  tm_claimed_memory_deinit(&marks->mapped);
  tm_claimed_file_close(&marks->file);
  tm_mutex_deinit(&marks->lock);
  tm_memory_free(marks->memory, marks, bytes_of(marks->folder));
}

static tm_status make_file(tm_crash_marks *marks, tm_error *error) {
  TM_TRY(tm_kept_folder_make(marks->folder, error));
  for (uint32_t i = 0; i < MOST_FILES_TRIED; i++) {
    const int length = snprintf(marks->path, sizeof marks->path, "%s/" FILE_PREFIX "%llu-%u", marks->folder,
                                (unsigned long long)tm_process_number(), i);
    if (length < 0 || (size_t)length >= sizeof marks->path) return tm_fail(error, TM_ERROR_IO, "the folder's name is too long");
    if (tm_claimed_file_create(marks->path, &marks->file, error) == TM_OK) return TM_OK;
  }
  return TM_ERROR_IO;
}

/* Under the lock. */
static bool has_file(tm_crash_marks *marks) {
  tm_error error = TM_ERROR_INIT;
  if (marks->file.descriptor >= 0) return true;
  if (marks->is_hopeless || make_file(marks, &error) == TM_OK) return !marks->is_hopeless;
  marks->is_hopeless = true;
  tm_log_write(&marks->log, TM_LOG_WARNING, "a crash would go unnoticed by the next start: %s", error.text);
  return false;
}

static void describe(const tm_device_slot *device, const char *call, const tm_work_kind *kind, char text[MARK_BYTES]) {
  char kind_text[TM_WORK_KIND_BYTES];
  tm_work_kind_print(kind, kind_text);
  memset(text, 0, MARK_BYTES);
  snprintf(text, MARK_BYTES, "%s\t%s\t%s\t%s\t%s", device->backend->name, device->backend->build_id, device->uuid_text, call,
           kind_text);
}

static bool is_own_code(const tm_device_slot *device) {
  static const tm_identity cores = TM_HOST_CORES;
  return device->backend->path == NULL && device->is_host_memory && memcmp(&device->info.resource, &cores, sizeof cores) == 0;
}

uint32_t tm_crash_marks_set(tm_crash_marks *marks, const tm_device_slot *device, const char *call, const tm_work_kind *kind) {
  if (marks == NULL || is_own_code(device)) return TM_NO_MARK;
  char text[MARK_BYTES];
  describe(device, call, kind, text);
  uint32_t mark = TM_NO_MARK;
  tm_mutex_lock(&marks->lock);
  for (uint32_t i = 0; i < MARKS && mark == TM_NO_MARK; i++)
    if ((marks->in_use >> i & 1) == 0) mark = i;
  if (mark != TM_NO_MARK && has_file(marks) && tm_claimed_file_write(&marks->file, (uint64_t)mark * MARK_BYTES, text, sizeof text))
    marks->in_use |= UINT64_C(1) << mark;
  else
    mark = TM_NO_MARK;
  tm_mutex_unlock(&marks->lock);
  return mark;
}

void tm_crash_marks_clear(tm_crash_marks *marks, uint32_t mark) {
  if (mark == TM_NO_MARK) return;
  tm_mutex_lock(&marks->lock);
  (void)tm_claimed_file_write(&marks->file, (uint64_t)mark * MARK_BYTES, "", 1);
  marks->in_use &= ~(UINT64_C(1) << mark);
  tm_mutex_unlock(&marks->lock);
}

/* ---- of work that has proved itself ---- */

/* Under the lock. */
static tm_lasting_mark *take_lasting(tm_crash_marks *marks) {
  if (!marks->may_map || marks->lasting_count == LASTING_MARKS || !has_file(marks)) return NULL;
  if (marks->mapped.bytes == NULL && tm_claimed_file_map(&marks->file, FILE_BYTES, &marks->mapped) != TM_OK) {
    marks->may_map = false;
    return NULL;
  }
  char *begin = (char *)marks->mapped.bytes + TM_CLAIMED_FILE_UNIT;
  return (tm_lasting_mark *)(void *)(begin + (uint64_t)marks->lasting_count++ * LASTING_BYTES);
}

tm_lasting_mark *tm_crash_marks_last(tm_crash_marks *marks, const tm_device_slot *device, const tm_work_kind *kind) {
  char text[MARK_BYTES];
  describe(device, LASTING_CALL, kind, text);
  tm_mutex_lock(&marks->lock);
  tm_lasting_mark *mark = take_lasting(marks);
  if (mark != NULL) memcpy(mark->text, text, sizeof text);
  tm_mutex_unlock(&marks->lock);
  return mark != NULL ? mark : &marks->nobodys;
}

void tm_lasting_mark_enter(tm_lasting_mark *mark) { atomic_fetch_add_explicit(&mark->running, 1, memory_order_acq_rel); }
void tm_lasting_mark_leave(tm_lasting_mark *mark) { atomic_fetch_sub_explicit(&mark->running, 1, memory_order_release); }

/* ---- what others left ---- */

/* Anything may stand in a file. */
static bool parse_mark(char *text, tm_found_mark *out_mark) {
  char *fields[MARK_FIELDS];
  for (const char *c = text; *c != '\0'; c++)
    if ((unsigned char)*c < ' ' && *c != '\t') return false;
  for (int i = 0; i < MARK_FIELDS; i++) {
    fields[i] = text;
    text += strcspn(text, "\t");
    if (i + 1 < MARK_FIELDS && *text != '\t') return false;
    if (*text != '\0') *text++ = '\0';
  }
  *out_mark = (tm_found_mark){ fields[0], fields[1], fields[2], fields[3], { .op = 0 } };
  return tm_work_kind_parse(fields[4], fields[5], &out_mark->kind);
}

static bool is_same(const tm_found_mark *a, const tm_found_mark *b) {
  return strcmp(a->backend, b->backend) == 0 && strcmp(a->build_id, b->build_id) == 0 && strcmp(a->uuid, b->uuid) == 0 &&
         tm_work_kind_equal(&a->kind, &b->kind);
}

typedef struct found_marks {
  tm_found_mark marks[MARKS + LASTING_MARKS];
  char          texts[MARKS + LASTING_MARKS][MARK_BYTES + 1];
} found_marks;

/* A process ended once, however many of its threads were doing the same. */
static bool is_new(const found_marks *found, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (is_same(&found->marks[i], &found->marks[count])) return false;
  return true;
}

/* One mark of either kind; false at the end of the file. */
static bool read_mark(const tm_claimed_file *file, uint32_t index, char text[MARK_BYTES + 1]) {
  uint64_t running = 1, offset = (uint64_t)index * MARK_BYTES;
  if (index >= MARKS) {
    offset = TM_CLAIMED_FILE_UNIT + (uint64_t)(index - MARKS) * LASTING_BYTES;
    if (tm_claimed_file_read(file, offset, &running, sizeof running) != sizeof running) return false;
    offset += sizeof running;
  }
  const uint64_t length = tm_claimed_file_read(file, offset, text, MARK_BYTES);
  text[running == 0 ? 0 : length] = '\0';
  return length != 0;
}

static void visit_file(const tm_claimed_file *file, found_marks *found, tm_mark_visit_fn visit, void *context) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < MARKS + LASTING_MARKS; i++) {
    char *text = found->texts[i];
    if (!read_mark(file, i, text)) break;
    if (text[0] == '\0' || !parse_mark(text, &found->marks[count]) || !is_new(found, count)) continue;
    visit(context, &found->marks[count++]);
  }
}

static void look_at_file(const char *path, found_marks *found, tm_mark_visit_fn visit, void *context) {
  tm_claimed_file file = { -1 };
  if (tm_claimed_file_look(path, &file, NULL) != TM_OK) return;
  visit_file(&file, found, visit, context);
  tm_claimed_file_close(&file);
}

static void collect_file(const char *path, found_marks *found, tm_mark_visit_fn visit, void *context) {
  tm_claimed_file file = { -1 };
  if (tm_claimed_file_open(path, false, &file, NULL) != TM_OK) return;
  visit_file(&file, found, visit, context);
  tm_kept_file_remove(path);
  tm_claimed_file_close(&file);
}

typedef void (*take_file_fn)(const char *path, found_marks *found, tm_mark_visit_fn visit, void *context);

static void take_files(tm_memory *memory, const char *folder, const char *prefix, take_file_fn take, tm_mark_visit_fn visit, void *context) {
  tm_arena arena;
  tm_arena_init(&arena, memory);
  const char **names = NULL;
  uint64_t count = 0;
  found_marks *found = tm_arena_alloc(&arena, sizeof *found);
  if (found != NULL && tm_path_is_folder(folder) && tm_folder_list(&arena, folder, &names, &count, NULL) != TM_OK) count = 0;
  for (uint64_t i = 0; i < count; i++) {
    if (strncmp(names[i], prefix, strlen(prefix)) != 0) continue;
    const char *path = tm_path_join(&arena, folder, strlen(folder), names[i]);
    if (path != NULL) take(path, found, visit, context);
  }
  tm_arena_deinit(&arena);
}

void tm_crash_marks_collect(tm_memory *memory, const char *folder, tm_mark_visit_fn visit, void *context) {
  take_files(memory, folder, FILE_PREFIX, collect_file, visit, context);
}

void tm_crash_marks_visit_own(tm_memory *memory, const char *folder, tm_mark_visit_fn visit, void *context) {
  char prefix[64];
  (void)snprintf(prefix, sizeof prefix, FILE_PREFIX "%llu-", (unsigned long long)tm_process_number());
  take_files(memory, folder, prefix, look_at_file, visit, context);
}
