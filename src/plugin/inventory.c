/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/inventory.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/folder.h"
#include "base/process.h"
#include "base/text.h"
#include "plugin/backend_call.h"
#include "plugin/builtin_plugins.h"
#include "plugin/device.h"
#include "plugin/device_listing.h"
#include "plugin/host_services.h"
#include "plugin/library.h"
#include "plugin/reference.h"
#include "plugin/settings.h"
#include "plugin/table.h"

#define PATH_VARIABLE "TENSORMORPH_PLUGIN_PATH"
#define LONGEST_NAME 64
#define LONGEST_WORDS 256
#define BUILT_IN "built-in"

/* Files loaded so far, so that the same one under another name is seen. */
typedef struct loading {
  tm_inventory             *inventory;
  const tm_context_options *options;
  tm_file_identity         *files;
  uint32_t                  file_count;
} loading;

static tm_backend_slot *add_slot(tm_inventory *inventory, const char *name, const char *origin) {
  tm_backend_slot *slot = tm_arena_calloc(&inventory->arena, 1, sizeof *slot);
  tm_backend_slot **grown = slot == NULL ? NULL
                                         : tm_memory_grow(inventory->memory, inventory->backends, inventory->backend_count,
                                                          inventory->backend_count + 1, sizeof *grown);
  if (grown == NULL || tm_mutex_init(&slot->opening) != TM_OK) return NULL;
  slot->inventory = inventory;
  slot->index = inventory->backend_count;
  slot->name = tm_arena_string(&inventory->arena, name, strlen(name));
  slot->origin = tm_arena_string(&inventory->arena, origin, strlen(origin));
  slot->version = slot->vendor = slot->build_id = slot->reason = "";
  inventory->backends = grown;
  inventory->backends[inventory->backend_count++] = slot;
  return slot->name == NULL || slot->origin == NULL ? NULL : slot;
}

static void set_state(tm_backend_slot *slot, uint32_t state, const char *reason) {
  atomic_store(&slot->state, state);
  const char *kept = tm_arena_string(&slot->inventory->arena, reason, strlen(reason));
  slot->reason = kept == NULL ? "" : kept;
}

/* For people, so without what a terminal would obey. */
static const char *keep_words(tm_arena *arena, tm_string words) {
  char text[LONGEST_WORDS];
  const uint64_t length = tm_text_escape(words.length == 0 ? "" : words.data, words.length, text, sizeof text);
  return tm_arena_string(arena, text, length);
}

static tm_status take_header(tm_backend_slot *slot, const tm_plugin_header *header, tm_error *error) {
  tm_arena *arena = &slot->inventory->arena;
  slot->name = tm_arena_string(arena, header->name.data, header->name.length);
  slot->version = keep_words(arena, header->version);
  slot->vendor = keep_words(arena, header->vendor);
  slot->build_id = keep_words(arena, header->build_id);
  if (slot->name == NULL || slot->version == NULL || slot->vendor == NULL || slot->build_id == NULL)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of backends");
  return TM_OK;
}

static const tm_backend_slot *find_loaded(const tm_inventory *inventory, const tm_backend_slot *except) {
  for (uint32_t i = 0; i < inventory->backend_count; i++) {
    const tm_backend_slot *other = inventory->backends[i];
    if (other != except && other->initialized && strcmp(other->name, except->name) == 0) return other;
  }
  return NULL;
}

static bool has_settings(const tm_context_options *options, const char *backend) {
  for (uint32_t i = 0; i < options->setting_count; i++)
    if (strcmp(options->settings[i].backend, backend) == 0) return true;
  return false;
}

/* TM_ERROR_NO_DEVICE is the backend's way to say that its driver is missing, TM_ERROR_ARGUMENT that the user gave one of
   its options a value that means nothing: that alone is the user's mistake and returned, if there is such a value. */
static tm_status initialize(tm_backend_slot *slot, const tm_context_options *options, tm_error *out_error) {
  tm_error error = TM_ERROR_INIT;
  tm_status status = tm_backend_init(slot, &error);
  slot->initialized = status == TM_OK;
  if (status == TM_ERROR_ARGUMENT && has_settings(options, slot->name))
    return tm_fail(out_error, status, "backend %s: %.900s", slot->name, error.text);
  if (status == TM_OK) status = tm_device_listing_append(slot, options, &error);
  if (status == TM_OK && slot->device_count == 0) {
    status = TM_ERROR_NO_DEVICE;
    (void)tm_fail(&error, status, "it found no device");
  }
  if (status == TM_OK) return TM_OK;
  if (error.text[0] == '\0') (void)tm_fail(&error, status, "it could not start: %s", tm_status_name(status));
  const uint32_t refused = atomic_load(&slot->is_stuck) ? TM_BACKEND_QUARANTINED : TM_BACKEND_REFUSED;
  set_state(slot, status == TM_ERROR_NO_DEVICE ? TM_BACKEND_UNAVAILABLE : refused, error.text);
  return TM_OK;
}

/* From a header on, built-ins and files go the same way.  Only the user's mistakes and lack of memory are returned. */
static tm_status bring_up(loading *load, tm_backend_slot *slot, const tm_plugin_header *header, const char *path,
                          tm_error *error) {
  tm_error reason = TM_ERROR_INIT;
  if (tm_plugin_table_accept(header, path, &slot->table, &reason) != TM_OK) {
    set_state(slot, TM_BACKEND_REFUSED, reason.text);
    return TM_OK;
  }
  if (path != NULL && header->name.length == strlen(TM_REFERENCE_NAME) &&
      memcmp(header->name.data, TM_REFERENCE_NAME, header->name.length) == 0) {
    set_state(slot, TM_BACKEND_REFUSED, "its name is that of the library's own reference; a backend must have another");
    return TM_OK;
  }
  TM_TRY(take_header(slot, header, error));
  const char *excluded = tm_settings_exclude_backend(load->options, slot->name);
  if (excluded != NULL) {
    set_state(slot, TM_BACKEND_EXCLUDED, excluded);
    return TM_OK;
  }
  const tm_backend_slot *other = find_loaded(load->inventory, slot);
  if (other != NULL) {
    (void)tm_fail(&reason, TM_ERROR_ARGUMENT, "a backend of this name is loaded already (%s)", other->origin);
    set_state(slot, TM_BACKEND_REFUSED, reason.text);
    return TM_OK;
  }
  TM_TRY(tm_settings_apply(load->options, slot, error));
  tm_host_services_init(slot);
  return initialize(slot, load->options, error);
}

static tm_status load_builtins(loading *load, tm_error *error) {
  for (uint32_t i = 0; i < tm_builtin_plugin_count; i++) {
    tm_backend_slot *slot = add_slot(load->inventory, tm_builtin_plugins[i].name, BUILT_IN);
    if (slot == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of backends");
    const char *excluded = tm_settings_exclude_backend(load->options, slot->name);
    if (excluded != NULL)
      set_state(slot, TM_BACKEND_EXCLUDED, excluded);
    else
      TM_TRY(bring_up(load, slot, tm_builtin_plugins[i].query(TM_ABI_MAJOR, TM_ABI_MINOR), NULL, error));
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

static tm_status remember_file(loading *load, const tm_file_identity *identity, tm_error *error) {
  tm_file_identity *grown = tm_memory_grow(load->inventory->memory, load->files, load->file_count, load->file_count + 1,
                                           sizeof *grown);
  if (grown == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of plugins");
  load->files = grown;
  load->files[load->file_count++] = *identity;
  return TM_OK;
}

static tm_status load_file(loading *load, const char *path, tm_error *error) {
  char name[LONGEST_NAME];
  stem(path, name, sizeof name);
  tm_backend_slot *slot = add_slot(load->inventory, name, path);
  if (slot == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of backends");
  const char *excluded = tm_settings_exclude_backend(load->options, slot->name);
  if (excluded != NULL && tm_settings_excludes_by_name(load->options, name)) {
    set_state(slot, TM_BACKEND_EXCLUDED, excluded);
    return TM_OK;
  }
  tm_error reason = TM_ERROR_INIT;
  tm_file_identity identity;
  const tm_plugin_header *header = NULL;
  tm_status status = tm_plugin_library_examine(path, &identity, &reason);
  if (status == TM_OK && is_known_file(load, &identity))
    status = tm_fail(&reason, TM_ERROR_ARGUMENT, "the same file is loaded already under another name");
  if (status == TM_OK) TM_TRY(remember_file(load, &identity, error));
  if (status == TM_OK) status = tm_plugin_library_load(path, &load->inventory->log, &header, &reason);
  if (status == TM_OK) return bring_up(load, slot, header, path, error);
  set_state(slot, TM_BACKEND_REFUSED, reason.text);
  return TM_OK;
}

static tm_status load_folder(loading *load, const char *folder, tm_error *error) {
  const char **names = NULL;
  uint64_t count = 0;
  const tm_status listed = tm_folder_list(&load->inventory->arena, folder, &names, &count, NULL);
  if (listed == TM_ERROR_NO_MEMORY) return tm_fail(error, listed, "no memory for the list of plugins");
  for (uint64_t i = 0; listed == TM_OK && i < count; i++) {
    const size_t length = strlen(names[i]);
    if (length < 4 || strcmp(names[i] + length - 3, ".so") != 0) continue;
    const char *path = tm_path_join(&load->inventory->arena, folder, strlen(folder), names[i]);
    if (path == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of plugins");
    TM_TRY(load_file(load, path, error));
  }
  return TM_OK;
}

/* Only absolute folders count: a relative one would depend on where the program was started. */
static tm_status load_search_path(loading *load, tm_error *error) {
  const char *path = tm_is_privileged() ? NULL : getenv(PATH_VARIABLE);
  while (path != NULL && *path != '\0') {
    const size_t length = strcspn(path, ":");
    if (length != 0 && path[0] == '/') {
      const char *folder = tm_arena_string(&load->inventory->arena, path, length);
      if (folder == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the search path");
      TM_TRY(load_folder(load, folder, error));
    } else if (length != 0) {
      tm_log_write(&load->inventory->log, TM_LOG_WARNING, "%s: '%.*s' is no absolute folder and is not searched",
                   PATH_VARIABLE, (int)length, path);
    }
    path += length + (path[length] == ':');
  }
  return load_folder(load, TM_PLUGIN_DIRECTORY, error);
}

/* ---- the whole ---- */

static tm_status load_reference(loading *load, tm_error *error) {
  tm_backend_slot *slot = add_slot(load->inventory, TM_REFERENCE_NAME, BUILT_IN);
  if (slot == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of backends");
  if (tm_settings_excludes_by_name(load->options, slot->name)) {
    set_state(slot, TM_BACKEND_EXCLUDED, "excluded by request");
    return TM_OK;
  }
  tm_context_options unrestricted = *load->options;
  unrestricted.device_count = 0;
  loading anyway = *load;
  anyway.options = &unrestricted;
  return bring_up(&anyway, slot, tm_reference_plugin_query(TM_ABI_MAJOR, TM_ABI_MINOR), NULL, error);
}

static tm_status load_all(loading *load, bool search_folders, tm_error *error) {
  for (uint32_t i = 0; i < load->options->plugin_path_count; i++)
    TM_TRY(load_file(load, load->options->plugin_paths[i], error));
  TM_TRY(load_builtins(load, error));
  if (search_folders) TM_TRY(load_search_path(load, error));
  TM_TRY(load_reference(load, error));
  return tm_settings_check_names(load->options, load->inventory, error);
}

tm_status tm_inventory_create(tm_memory *memory, tm_pool *pool, tm_log log, const tm_inventory_request *request,
                              tm_inventory **out_inventory, tm_error *error) {
  tm_inventory *inventory = tm_memory_calloc(memory, 1, sizeof *inventory);
  if (inventory == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of backends");
  inventory->memory = memory;
  atomic_init(&inventory->pool, pool);
  inventory->log = log;
  tm_arena_init(&inventory->arena, memory);
  atomic_init(&inventory->generation, 1);
  atomic_init(&inventory->is_whole, false);
  inventory->crash_marks = request->crash_marks;
  tm_status status = tm_kernel_cache_init(&inventory->kernel_cache, memory);
  if (status != TM_OK) {
    tm_memory_free(memory, inventory, sizeof *inventory);
    return tm_fail(error, status, "no memory for the kernel cache");
  }
  *out_inventory = inventory;
  TM_TRY(tm_watch_init(&inventory->watch, memory, request->options->patience_ns));
  loading load = { .inventory = inventory, .options = request->options };
  status = load_all(&load, request->search_folders, error);
  tm_memory_free(memory, load.files, load.file_count * sizeof *load.files);
  if (status == TM_OK) atomic_store(&inventory->is_whole, true);
  return status;
}

static bool is_stuck(const tm_inventory *inventory) {
  for (uint32_t i = 0; i < inventory->backend_count; i++)
    if (atomic_load(&inventory->backends[i]->is_stuck)) return true;
  return false;
}

bool tm_inventory_destroy(tm_inventory *inventory) {
  if (inventory == NULL) return true;
  for (uint32_t i = 0; i < inventory->device_count; i++) tm_device_close(inventory->devices[i]);
  for (uint32_t i = inventory->backend_count; i-- > 0;) tm_backend_shutdown(inventory->backends[i]);
  tm_watch_deinit(&inventory->watch);
  if (is_stuck(inventory)) {
    atomic_store(&inventory->is_gone, true);
    return false;
  }
  for (uint32_t i = 0; i < inventory->backend_count; i++) tm_mutex_deinit(&inventory->backends[i]->opening);
  for (uint32_t i = 0; i < inventory->device_count; i++) tm_device_listing_free(inventory->devices[i]);
  tm_kernel_cache_deinit(&inventory->kernel_cache);
  tm_memory *memory = inventory->memory;
  tm_memory_free(memory, inventory->devices, inventory->device_count * sizeof *inventory->devices);
  tm_memory_free(memory, inventory->backends, inventory->backend_count * sizeof *inventory->backends);
  tm_arena_deinit(&inventory->arena);
  tm_memory_free(memory, inventory, sizeof *inventory);
  return true;
}

void tm_inventory_retire(tm_device_slot *device, uint32_t state) {
  uint32_t ready = TM_DEVICE_READY;
  if (!atomic_compare_exchange_strong(&device->state, &ready, state)) return;
  atomic_fetch_add(&device->backend->inventory->generation, 1);
  tm_log_write(&device->backend->inventory->log, TM_LOG_WARNING, "%s is %s and not used any more", device->name,
               state == TM_DEVICE_LOST ? "lost" : "quarantined");
}
