/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/loading.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/folder.h"
#include "plugin/bring_up.h"
#include "plugin/builtin_plugins.h"
#include "plugin/device_identity.h"
#include "plugin/enumeration.h"
#include "plugin/library.h"
#include "plugin/manifest.h"
#include "plugin/record_store.h"
#include "plugin/reference.h"
#include "plugin/settings.h"
#include "plugin/probe_run.h"
#include "plugin/trial_pause.h"
#include "plugin/wake.h"

#define LONGEST_NAME 64
#define LONGEST_NOTE 512
#define BUILT_IN "built-in"
/* A built-in that starts faster is started each time: reading what was kept would take longer. */
#define WORTH_KEEPING_NS UINT64_C(1000000)

typedef struct loading {
  tm_inventory               *inventory;
  const tm_inventory_request *request;
  const tm_context_options   *options;
  tm_file_identity           *files;    /* loaded so far, so that the same one under another name is seen */
  uint32_t                    file_count;
} loading;

static tm_status no_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of backends"); }

static void refuse(tm_backend_slot *slot, const tm_error *reason) { tm_inventory_set_state(slot, TM_BACKEND_REFUSED, reason->text); }

/* Ordinary trouble with one backend is its own; only what concerns the whole is returned. */
static tm_status settle(tm_backend_slot *slot, tm_status status, const tm_error *reason, tm_error *error) {
  if (status == TM_ERROR_NO_MEMORY) return no_memory(error);
  refuse(slot, reason);
  return TM_OK;
}

/* From here on it has its name: is it wanted, and how? */
static tm_status name_and_set(loading *load, tm_backend_slot *slot, bool *out_wanted, tm_error *error) {
  *out_wanted = false;
  TM_TRY(tm_bring_up_name(slot, error));
  const char *excluded = tm_settings_exclude_backend(load->options, slot->name);
  if (excluded != NULL) {
    tm_inventory_set_state(slot, TM_BACKEND_EXCLUDED, excluded);
    return TM_OK;
  }
  *out_wanted = true;
  const bool is_renamed = load->request->is_trial && load->request->trial_name != NULL;
  return tm_settings_apply(load->options, slot, is_renamed ? load->request->trial_name : slot->name, error);
}

/* ---- built-ins ---- */

static bool may_sleep(const loading *load, const tm_backend_slot *slot) {
  return load->inventory->records != NULL && !tm_settings_has_pointers(load->options, slot->name);
}

/* Lists the devices of a record; false when there is none that says READY. */
static bool list_from_record(loading *load, tm_backend_slot *slot, const char *bytes, uint64_t length) {
  tm_enumeration_head head;
  tm_error reason = TM_ERROR_INIT;
  if (!tm_enumeration_look(bytes, length, &head) || head.state != TM_BACKEND_READY) return false;
  if (tm_enumeration_take_devices(slot, load->options, bytes, length, &reason) == TM_OK)
    tm_backend_put_to_sleep(slot);
  else
    refuse(slot, &reason);
  return true;
}

static bool recall_builtin(loading *load, tm_backend_slot *slot) {
  char *bytes = NULL;
  uint64_t length = 0;
  const tm_record_subject subject = { .build_id = slot->build_id, .settings_name = slot->name };
  tm_record_store_name(&subject, load->options, slot->record);
  if (!tm_record_store_find(load->inventory, slot->record, &bytes, &length)) return false;
  tm_error reason = TM_ERROR_INIT;
  tm_backend_option *options = slot->options;           /* with the user's values, which a record does not have */
  const bool taken = tm_enumeration_take_header(slot, bytes, length, &reason) == TM_OK;
  slot->options = options;
  const bool listed = taken && list_from_record(load, slot, bytes, length);
  tm_memory_free(load->inventory->memory, bytes, length);
  return listed;
}

/* Host cores that cost nothing to open do the work from the first operation on, and their init took long only because
   others had the processor: nothing is won by listing them from a record. */
static bool is_at_hand(const tm_backend_slot *slot) {
  for (uint32_t i = 0; i < slot->device_count; i++) {
    const tm_device_slot *device = slot->inventory->devices[slot->first_device + i];
    if (!device->is_host_memory || (device->info.flags & TM_DEVICE_SYNCHRONOUS) == 0 || device->info.open_ns != 0) return false;
  }
  return slot->device_count != 0;
}

/* Another process tells which variables its drivers ask for; without knowing that nothing can be kept. */
static void keep_builtin(loading *load, const tm_backend_slot *slot, const char *builtin) {
  tm_probe_result result;
  tm_enumeration_head head;
  const tm_probe_request request = { .builtin = builtin, .depth = TM_PROBE_LIST, .options = load->options,
                                     .settings_name = slot->name };
  const bool ok = tm_probe_run(load->inventory->memory, &request, &result, NULL) == TM_OK && result.is_final &&
                  tm_enumeration_look(result.record.data, result.record.length, &head) && head.state == TM_BACKEND_READY;
  if (ok) tm_record_store_keep(load->inventory, slot->record, &result.variables, result.record.data, result.record.length);
  tm_probe_deinit(&result);
}

static tm_status load_builtin(loading *load, const tm_builtin_plugin *builtin, tm_error *error) {
  tm_backend_slot *slot = tm_inventory_add_backend(load->inventory, builtin->name, BUILT_IN);
  if (slot == NULL) return no_memory(error);
  slot->entry = builtin->query;
  tm_error reason = TM_ERROR_INIT;
  bool wanted = false;
  const tm_status accepted = tm_bring_up_accept(slot, builtin->query(TM_ABI_MAJOR, TM_ABI_MINOR), &reason);
  if (accepted != TM_OK) return settle(slot, accepted, &reason, error);
  TM_TRY(name_and_set(load, slot, &wanted, error));
  if (!wanted || (may_sleep(load, slot) && recall_builtin(load, slot))) return TM_OK;
  if (load->request->interpose != NULL) load->request->interpose(load->request->interpose_context, &slot->table);
  TM_TRY(tm_bring_up_start(slot, load->options, error));
  if (may_sleep(load, slot) && slot->wake_ns >= WORTH_KEEPING_NS && atomic_load(&slot->state) == TM_BACKEND_READY && !is_at_hand(slot))
    keep_builtin(load, slot, builtin->name);
  return TM_OK;
}

static tm_status load_builtins(loading *load, tm_error *error) {
  const char *only = load->request->is_trial ? load->request->trial_builtin : NULL;
  for (uint32_t i = 0; i < tm_builtin_plugin_count; i++) {
    if (load->request->is_trial && (only == NULL || strcmp(only, tm_builtin_plugins[i].name) != 0)) continue;
    TM_TRY(load_builtin(load, &tm_builtin_plugins[i], error));
  }
  return TM_OK;
}

/* ---- files ---- */

/* "/x/libfoo.so" -> "foo": what a file is called until it has told its name. */
static void stem(const char *path, char *name, size_t capacity) {
  const char *slash = strrchr(path, '/');
  const char *start = slash == NULL ? path : slash + 1;
  if (strncmp(start, "lib", 3) == 0) start += 3;
  size_t length = strcspn(start, ".");
  if (length >= capacity) length = capacity - 1;
  memcpy(name, start, length);
  name[length] = '\0';
}

static bool is_known_file(const loading *load, const tm_file_identity *identity) {
  for (uint32_t i = 0; i < load->file_count; i++)
    if (load->files[i].device == identity->device && load->files[i].inode == identity->inode) return true;
  return false;
}

/* The last one of the list is the slot itself. */
static bool is_known_name(const loading *load, const tm_backend_slot *slot) {
  for (uint32_t i = 0; i < load->inventory->backend_count; i++) {
    const tm_backend_slot *other = load->inventory->backends[i];
    if (other != slot && other->path != NULL && strcmp(other->path, slot->path) == 0) return true;
  }
  return false;
}

static tm_status remember_file(loading *load, const tm_file_identity *identity, tm_error *error) {
  tm_file_identity *grown = tm_memory_grow(load->inventory->memory, load->files, load->file_count, load->file_count + 1,
                                           sizeof *grown);
  if (grown == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of plugins");
  load->files = grown;
  load->files[load->file_count++] = *identity;
  return TM_OK;
}

/* Loads, starts and lists it here and now. */
static tm_status start_here(loading *load, tm_backend_slot *slot, tm_error *error) {
  tm_error reason = TM_ERROR_INIT;
  const tm_plugin_header *header = NULL;
  bool wanted = false;
  const uint64_t begin = tm_now_ns();
  tm_status status = tm_plugin_library_open(slot->path, &header, &reason);
  if (status == TM_OK) status = tm_bring_up_accept(slot, header, &reason);
  if (status != TM_OK) return settle(slot, status, &reason, error);
  slot->wake_ns = tm_now_ns() - begin;
  TM_TRY(name_and_set(load, slot, &wanted, error));
  if (!wanted) return TM_OK;
  if (load->request->interpose != NULL) load->request->interpose(load->request->interpose_context, &slot->table);
  return tm_bring_up_start(slot, load->options, error);
}

/* One file on its way through the steps. */
typedef struct candidate_file {
  tm_backend_slot *slot;
  bool             is_named;            /* by the user or the application, not found in a folder */
  const char      *settings_name;       /* NULL: its own */
  tm_manifest      manifest;
  char            *record;              /* what was found about it; freed by forget_record */
  uint64_t         record_bytes;
} candidate_file;

static void forget_record(loading *load, candidate_file *file) {
  tm_memory_free(load->inventory->memory, file->record, file->record_bytes);
  file->record = NULL;
  file->record_bytes = 0;
}

static tm_status take_over(loading *load, candidate_file *file, const char *bytes, uint64_t length, tm_error *error) {
  file->record = tm_memory_alloc(load->inventory->memory, length, 0);
  if (file->record == NULL) return no_memory(error);
  memcpy(file->record, bytes, (size_t)length);
  file->record_bytes = length;
  return TM_OK;
}

/* What did harm once is kept too, or each start would try it again.  What was merely slow or short of something is not: the
   next start may find it well. */
static void keep_refusal(loading *load, const candidate_file *file, const tm_field_writer *variables, const char *reason) {
  tm_field_writer writer;
  tm_field_writer_init(&writer, load->inventory->memory);
  tm_enumeration_write_refusal(file->slot, reason, &writer);
  if (!writer.failed) tm_record_store_keep(load->inventory, file->slot->record, variables, writer.bytes, writer.length);
  tm_field_writer_deinit(&writer);
}

static tm_status check_words(const candidate_file *file, const tm_enumeration_head *head, tm_error *reason) {
  char name[LONGEST_NAME * 2], version[LONGEST_NAME * 4];
  const uint64_t name_bytes = head->own_name.length < sizeof name ? head->own_name.length : sizeof name - 1;
  const uint64_t version_bytes = head->version.length < sizeof version ? head->version.length : sizeof version - 1;
  memcpy(name, head->own_name.data, (size_t)name_bytes);
  memcpy(version, head->version.data, (size_t)version_bytes);
  name[name_bytes] = version[version_bytes] = '\0';
  if (head->state == TM_BACKEND_REFUSED) return TM_OK;
  return tm_manifest_compare(&file->manifest, name, version, reason);
}

/* Its name is kept apart: those that are used come first in having one. */
static tm_status take_told(tm_backend_slot *slot, const char *bytes, uint64_t length, tm_error *error) {
  TM_TRY(tm_enumeration_take_header(slot, bytes, length, error));
  slot->told_name = slot->own_name;
  slot->own_name = NULL;
  return TM_OK;
}

static tm_status take_header_of_harm(candidate_file *file, const tm_probe_result *result, tm_error *error) {
  tm_enumeration_head head;
  if (!tm_enumeration_look(result->header.data, result->header.length, &head)) return TM_OK;
  return take_told(file->slot, result->header.data, result->header.length, error);
}

/* Tries it in another process.  TM_OK: file->record; TM_ERROR_CORRUPT: the reason is in `reason`; TM_ERROR_NOT_FOUND: no
   process can be started; TM_ERROR_IO: none now, likewise; the rest concerns the whole, with its words in `error`. */
static tm_status try_file(loading *load, candidate_file *file, tm_error *reason, tm_error *error) {
  tm_probe_result result;
  tm_enumeration_head head;
  const bool keeps = load->inventory->records != NULL;
  const tm_probe_request request = { .path = file->slot->path, .depth = keeps ? TM_PROBE_FULL : TM_PROBE_LIST,
                                     .settings_name = file->settings_name, .options = load->options };
  const uint64_t begin_ns = tm_now_ns();
  tm_status status = tm_probe_run(load->inventory->memory, &request, &result, reason);
  file->slot->trial_ns += tm_now_ns() - begin_ns;
  if (status == TM_ERROR_ARGUMENT) (void)tm_fail(error, status, "%.1000s", reason->text);
  if (status == TM_ERROR_NO_MEMORY) (void)no_memory(error);
  if (status == TM_ERROR_CORRUPT && take_header_of_harm(file, &result, error) != TM_OK) status = TM_ERROR_NO_MEMORY;
  if (status == TM_ERROR_CORRUPT && result.is_final) keep_refusal(load, file, &result.variables, reason->text);
  if (status == TM_ERROR_CORRUPT && result.process.timed_out) tm_trial_pause_keep(file->slot, reason->text);
  else if (status == TM_OK || status == TM_ERROR_CORRUPT) tm_trial_pause_end(load->inventory, file->slot->record);
  if (status == TM_OK && !tm_enumeration_look(result.record.data, result.record.length, &head))
    status = tm_fail(reason, TM_ERROR_CORRUPT, "its trial in a process of its own gave nothing that can be understood");
  if (status == TM_OK) status = check_words(file, &head, reason);
  if (status == TM_OK && result.is_final)
    tm_record_store_keep(load->inventory, file->slot->record, &result.variables, result.record.data, result.record.length);
  if (status == TM_OK) status = take_over(load, file, result.record.data, result.record.length, error);
  tm_probe_deinit(&result);
  return status;
}

/* Everything that can be known of the file without running it here: from a record, or found out now.  As try_file. */
static tm_status consult(loading *load, candidate_file *file, tm_error *reason, tm_error *error) {
  const tm_record_subject subject = { .path = file->slot->path, .identity = file->slot->identity, .manifest = &file->manifest,
                                      .settings_name = file->settings_name };
  tm_file_identity identity;
  TM_TRY(tm_manifest_load(load->inventory->memory, file->slot->path, &file->manifest, reason));
  tm_record_store_name(&subject, load->options, file->slot->record);
  if (tm_record_store_find(load->inventory, file->slot->record, &file->record, &file->record_bytes)) return TM_OK;
  if (tm_trial_pause_find(load->inventory, file->slot->record, &file->record, &file->record_bytes)) return TM_OK;
  TM_TRY(tm_plugin_library_examine(file->slot->path, &identity, reason));
  TM_TRY(tm_manifest_check(&file->manifest, load->inventory->memory, file->slot->path, reason));
  return try_file(load, file, reason, error);
}

/* The record knows its name now.  One that comes second under it is tried with the settings for the name it gets here. */
static tm_status consult_by_name(loading *load, candidate_file *file, tm_error *reason, tm_error *error) {
  tm_backend_slot *slot = file->slot;
  tm_enumeration_head head;
  if (!tm_enumeration_look(file->record, file->record_bytes, &head)) return no_memory(error);
  if (head.state == TM_BACKEND_REFUSED) return take_told(slot, file->record, file->record_bytes, error);
  TM_TRY(tm_enumeration_take_header(slot, file->record, file->record_bytes, error));
  if (slot->own_name == NULL) return TM_OK;
  TM_TRY(tm_bring_up_name(slot, error));
  const bool is_renamed = strcmp(slot->name, slot->own_name) != 0;
  if (!is_renamed || !(tm_settings_has_values(load->options, slot->name) || tm_settings_has_values(load->options, slot->own_name)))
    return TM_OK;
  forget_record(load, file);
  file->settings_name = slot->name;
  TM_TRY(consult(load, file, reason, error));
  return tm_enumeration_take_header(slot, file->record, file->record_bytes, error);
}

/* A driver that was missing may be there now: that alone is looked at again each time, here. */
static tm_status adopt(loading *load, candidate_file *file, tm_error *error) {
  tm_backend_slot *slot = file->slot;
  tm_enumeration_head head;
  bool wanted = false;
  if (!tm_enumeration_look(file->record, file->record_bytes, &head)) return no_memory(error);
  if (head.state == TM_BACKEND_REFUSED) {
    const char *kept = tm_arena_string(&load->inventory->arena, head.reason.data, head.reason.length);
    tm_inventory_set_state(slot, TM_BACKEND_REFUSED, kept == NULL ? "" : kept);
    return TM_OK;
  }
  if (head.state != TM_BACKEND_READY || !may_sleep(load, slot)) return start_here(load, slot, error);
  TM_TRY(name_and_set(load, slot, &wanted, error));
  if (wanted && !list_from_record(load, slot, file->record, file->record_bytes)) return no_memory(error);
  return TM_OK;
}

/* A file that the user named is loaded untried where nothing can be tried; what merely lies in a folder is not. */
static tm_status go_untried(loading *load, const candidate_file *file, const tm_error *reason, tm_error *error) {
  if (!file->is_named) {
    refuse(file->slot, reason);
    return TM_OK;
  }
  char note[LONGEST_NOTE];
  const int length = snprintf(note, sizeof note, "loaded without a trial: %.*s", (int)sizeof note - 32, reason->text);
  const char *kept = tm_arena_string(&load->inventory->arena, note, (uint64_t)length);
  if (kept == NULL) return no_memory(error);
  file->slot->note = kept;
  file->slot->is_untried = true;
  tm_log_write(&load->inventory->log, TM_LOG_WARNING, "%s is %s", file->slot->path, note);
  return start_here(load, file->slot, error);
}

static tm_status load_known(loading *load, candidate_file *file, tm_error *error) {
  tm_error reason = TM_ERROR_INIT;
  tm_status status = consult(load, file, &reason, error);
  if (status == TM_OK) status = consult_by_name(load, file, &reason, error);
  if (status == TM_OK)
    status = adopt(load, file, error);
  else if (status == TM_ERROR_NOT_FOUND)
    status = go_untried(load, file, &reason, error);
  else if (status == TM_ERROR_CORRUPT || status == TM_ERROR_IO || status == TM_ERROR_CHANGED || status == TM_ERROR_NO_MEMORY)
    status = settle(file->slot, status, &reason, error);
  forget_record(load, file);
  return status;
}

static tm_status load_file(loading *load, const char *path, bool is_named, tm_error *error) {
  char name[LONGEST_NAME];
  stem(path, name, sizeof name);
  tm_backend_slot *slot = tm_inventory_add_backend(load->inventory, name, path);
  if (slot == NULL) return no_memory(error);
  slot->path = slot->origin;
  if (tm_settings_excludes_by_name(load->options, name) && !tm_bring_up_is_builtin(name)) {
    tm_inventory_set_state(slot, TM_BACKEND_EXCLUDED, tm_settings_exclude_backend(load->options, name));
    return TM_OK;
  }
  tm_error reason = TM_ERROR_INIT;
  tm_status status = tm_library_identify(path, &slot->identity, &reason);
  if (status == TM_OK && is_known_file(load, &slot->identity))
    status = tm_fail(&reason, TM_ERROR_ARGUMENT, "the same file is loaded already%s", is_known_name(load, slot) ? "" : " under another name");
  if (status != TM_OK) return settle(slot, status, &reason, error);
  TM_TRY(remember_file(load, &slot->identity, error));
  if (load->request->is_trial) return start_here(load, slot, error);
  candidate_file *file = tm_memory_calloc(load->inventory->memory, 1, sizeof *file);
  if (file == NULL) return no_memory(error);
  file->slot = slot;
  file->is_named = is_named;
  status = load_known(load, file, error);
  tm_memory_free(load->inventory->memory, file, sizeof *file);
  return status;
}

/* What lies where others may put files could be anybody's: it is listed with that reason, and not so much as read. */
static tm_status refuse_by_folder(loading *load, const char *path, const char *folder, const char *openness, tm_error *error) {
  char name[LONGEST_NAME];
  tm_error reason = TM_ERROR_INIT;
  stem(path, name, sizeof name);
  tm_backend_slot *slot = tm_inventory_add_backend(load->inventory, name, path);
  if (slot == NULL) return no_memory(error);
  slot->path = slot->origin;
  return settle(slot, tm_fail(&reason, TM_ERROR_IO, "plugins in the folder %s are not used: %s", folder, openness), &reason, error);
}

static tm_status load_folder(loading *load, const char *folder, tm_error *error) {
  const char **names = NULL;
  uint64_t count = 0;
  const char *openness = tm_folder_openness(folder);
  const tm_status listed = tm_folder_list(&load->inventory->arena, folder, &names, &count, NULL);
  if (listed == TM_ERROR_NO_MEMORY) return tm_fail(error, listed, "no memory for the list of plugins");
  for (uint64_t i = 0; listed == TM_OK && i < count; i++) {
    const size_t length = strlen(names[i]);
    if (length < 4 || strcmp(names[i] + length - 3, ".so") != 0) continue;
    const char *path = tm_path_join(&load->inventory->arena, folder, strlen(folder), names[i]);
    if (path == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of plugins");
    if (openness != NULL) TM_TRY(refuse_by_folder(load, path, folder, openness, error));
    else TM_TRY(load_file(load, path, false, error));
  }
  return TM_OK;
}

static tm_status load_search_path(loading *load, tm_error *error) {
  tm_search_path *path = &load->inventory->search_path;
  TM_TRY(tm_search_path_make(&load->inventory->arena, &load->inventory->log, path, error));
  for (uint32_t i = 0; i < path->count; i++) TM_TRY(load_folder(load, path->folders[i], error));
  return TM_OK;
}

/* ---- those that did harm ---- */

/* What one of those that are used is called is not taken from it. */
static tm_status name_refused(const loading *load, tm_backend_slot *slot, tm_error *error) {
  uint32_t before = 0;
  char name[LONGEST_NAME + 16];
  for (uint32_t i = 0; i < load->inventory->backend_count; i++) {
    const tm_backend_slot *other = load->inventory->backends[i];
    before += other->own_name != NULL && strcmp(other->own_name, slot->told_name) == 0;
  }
  const int length = before == 0 ? snprintf(name, sizeof name, "%.64s", slot->told_name)
                                 : snprintf(name, sizeof name, "%.64s~%u", slot->told_name, before + 1);
  slot->own_name = slot->told_name;
  slot->name = tm_arena_string(&load->inventory->arena, name, (uint64_t)length);
  return slot->name == NULL ? no_memory(error) : tm_settings_apply(load->options, slot, slot->name, error);
}

static tm_status name_all_refused(const loading *load, tm_error *error) {
  for (uint32_t i = 0; i < load->inventory->backend_count; i++)
    if (load->inventory->backends[i]->told_name != NULL) TM_TRY(name_refused(load, load->inventory->backends[i], error));
  return TM_OK;
}

/* ---- the whole ---- */

static tm_status load_reference(loading *load, tm_error *error) {
  tm_backend_slot *slot = tm_inventory_add_backend(load->inventory, TM_REFERENCE_NAME, BUILT_IN);
  if (slot == NULL) return no_memory(error);
  if (tm_settings_excludes_by_name(load->options, slot->name)) {
    tm_inventory_set_state(slot, TM_BACKEND_EXCLUDED, "excluded by request");
    return TM_OK;
  }
  tm_context_options unrestricted = *load->options;
  unrestricted.device_count = 0;
  loading anyway = *load;
  anyway.options = &unrestricted;
  slot->entry = tm_reference_plugin_query;
  tm_error reason = TM_ERROR_INIT;
  bool wanted = false;
  const tm_status accepted = tm_bring_up_accept(slot, slot->entry(TM_ABI_MAJOR, TM_ABI_MINOR), &reason);
  if (accepted != TM_OK) return settle(slot, accepted, &reason, error);
  TM_TRY(name_and_set(&anyway, slot, &wanted, error));
  return tm_bring_up_start(slot, anyway.options, error);
}

static tm_status load_all(loading *load, tm_error *error) {
  for (uint32_t i = 0; i < load->options->plugin_path_count; i++)
    TM_TRY(load_file(load, load->options->plugin_paths[i], true, error));
  TM_TRY(load_builtins(load, error));
  if (load->request->is_trial) return TM_OK;
  if (load->request->search_folders) TM_TRY(load_search_path(load, error));
  TM_TRY(load_reference(load, error));
  TM_TRY(name_all_refused(load, error));
  TM_TRY(tm_device_identity_part(load->inventory, error));
  return tm_settings_check_names(load->options, load->inventory, error);
}

tm_status tm_loading_run(tm_inventory *inventory, const tm_inventory_request *request, tm_error *error) {
  loading load = { .inventory = inventory, .request = request, .options = request->options };
  const tm_status status = load_all(&load, error);
  tm_memory_free(inventory->memory, load.files, load.file_count * sizeof *load.files);
  return status;
}
