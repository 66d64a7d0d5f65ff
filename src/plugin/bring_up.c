/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/bring_up.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "plugin/backend_call.h"
#include "plugin/builtin_plugins.h"
#include "plugin/call_trace.h"
#include "plugin/description.h"
#include "plugin/device_listing.h"
#include "plugin/host_services.h"
#include "plugin/reference.h"
#include "plugin/settings.h"
#include "plugin/table.h"

#define LONGEST_WORDS 256
#define LONGEST_UNIQUE_NAME 96

/* For people, so without what a terminal would obey. */
static const char *keep_words(tm_arena *arena, tm_string words) {
  char text[LONGEST_WORDS];
  const uint64_t length = tm_text_escape(words.length == 0 ? "" : words.data, words.length, text, sizeof text);
  return tm_arena_string(arena, text, length);
}

static tm_status take_header(tm_backend_slot *slot, const tm_plugin_header *header, tm_error *error) {
  tm_arena *arena = &slot->inventory->arena;
  slot->own_name = tm_arena_string(arena, header->name.data, header->name.length);
  slot->version = keep_words(arena, header->version);
  slot->vendor = keep_words(arena, header->vendor);
  slot->build_id = keep_words(arena, header->build_id);
  if (slot->own_name == NULL || slot->version == NULL || slot->vendor == NULL || slot->build_id == NULL)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of backends");
  return TM_OK;
}

static void doubt_texts(tm_backend_slot *slot, const tm_plugin_header *header) {
  tm_description_doubt(slot, header->version, "its version");
  tm_description_doubt(slot, header->vendor, "its vendor");
  tm_description_doubt(slot, header->build_id, "its build id");
  for (uint32_t i = 0; i < slot->table.option_count; i++) {
    const tm_option *option = slot->table.options[i];
    tm_description_doubt(slot, option->default_value, "the default of its option %.*s", (int)option->name.length, option->name.data);
    tm_description_doubt(slot, option->help, "the help of its option %.*s", (int)option->name.length, option->name.data);
  }
}

tm_status tm_bring_up_accept(tm_backend_slot *slot, const tm_plugin_header *header, tm_error *error) {
  TM_TRY(tm_plugin_table_accept(header, slot->path, &slot->table, error));
  if (slot->path != NULL && header->name.length == strlen(TM_REFERENCE_NAME) &&
      memcmp(header->name.data, TM_REFERENCE_NAME, header->name.length) == 0)
    return tm_fail(error, TM_ERROR_CORRUPT, "its name is that of the library's own reference; a backend must have another");
  TM_TRY(take_header(slot, header, error));
  doubt_texts(slot, header);
  return tm_settings_declare(slot, &slot->table, error);
}

bool tm_bring_up_is_builtin(const char *name) {
  for (uint32_t i = 0; i < tm_builtin_plugin_count; i++)
    if (strcmp(tm_builtin_plugins[i].name, name) == 0) return true;
  return false;
}

/* A file may come before the built-ins, but what they are called is theirs. */
tm_status tm_bring_up_name(tm_backend_slot *slot, tm_error *error) {
  const tm_inventory *inventory = slot->inventory;
  uint32_t before = slot->path != NULL && tm_bring_up_is_builtin(slot->own_name);
  for (uint32_t i = 0; i < slot->index; i++) {
    const tm_backend_slot *other = inventory->backends[i];
    if ((other->path != NULL) != (slot->path != NULL)) continue;
    before += other->own_name != NULL && strcmp(other->own_name, slot->own_name) == 0;
  }
  char name[LONGEST_UNIQUE_NAME];
  const int length = before == 0 ? snprintf(name, sizeof name, "%s", slot->own_name)
                                 : snprintf(name, sizeof name, "%s~%u", slot->own_name, before + 1);
  slot->name = tm_arena_string(&slot->inventory->arena, name, (uint64_t)length);
  return slot->name == NULL ? tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of backends") : TM_OK;
}

/* Short of something, or overtaken by a change: no word about what it is. */
static bool is_passing(tm_status status) {
  return status == TM_BUSY || status == TM_STALE || status == TM_ERROR_NO_MEMORY || status == TM_ERROR_DEVICE_LOST ||
         status == TM_ERROR_IO || status == TM_ERROR_LIMIT;
}

tm_status tm_bring_up_init(tm_backend_slot *slot, tm_error *error) {
  tm_host_services_init(slot);
  if (tm_call_trace_is_wanted()) TM_TRY(tm_call_trace_install(slot, error));
  const tm_status status = tm_backend_init(slot, error);
  slot->initialized = status == TM_OK;
  return status;
}

/* TM_ERROR_NO_DEVICE is the backend's way to say that its driver is missing, TM_ERROR_ARGUMENT that the user gave one of
   its options a value that means nothing: that alone is the user's mistake and returned, if there is such a value. */
tm_status tm_bring_up_start(tm_backend_slot *slot, const tm_context_options *options, tm_error *out_error) {
  tm_error error = TM_ERROR_INIT;
  const uint64_t begin = tm_now_ns();
  tm_status status = tm_bring_up_init(slot, &error);
  if (status == TM_ERROR_ARGUMENT && options->setting_count != 0 && tm_settings_has_values(options, slot->name))
    return tm_fail(out_error, status, "backend %s: %.900s", slot->name, error.text);
  if (status == TM_OK) status = tm_device_listing_append(slot, options, &error);
  if (status == TM_OK && slot->device_count == 0) {
    status = TM_ERROR_NO_DEVICE;
    (void)tm_fail(&error, status, "it found no device");
  }
  slot->wake_ns += tm_now_ns() - begin;
  if (status == TM_OK) return TM_OK;
  if (error.text[0] == '\0') (void)tm_fail(&error, status, "it could not start: %s", tm_status_name(status));
  slot->may_recover = is_passing(status) || atomic_load(&slot->is_stuck);
  const uint32_t refused = atomic_load(&slot->is_stuck) ? TM_BACKEND_QUARANTINED : TM_BACKEND_REFUSED;
  tm_inventory_set_state(slot, status == TM_ERROR_NO_DEVICE ? TM_BACKEND_UNAVAILABLE : refused, error.text);
  return TM_OK;
}
