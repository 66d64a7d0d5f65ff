/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/settings.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

#define LONGEST_LIST 512

static bool contains(const char *const *names, uint32_t count, const char *name) {
  for (uint32_t i = 0; i < count; i++)
    if (strcmp(names[i], name) == 0) return true;
  return false;
}

/* Whether "name" or any "name:index" is in the list. */
static bool mentions_backend(const char *const *names, uint32_t count, const char *name) {
  const size_t length = strlen(name);
  for (uint32_t i = 0; i < count; i++)
    if (strncmp(names[i], name, length) == 0 && (names[i][length] == '\0' || names[i][length] == ':')) return true;
  return false;
}

bool tm_settings_excludes_by_name(const tm_context_options *options, const char *name) {
  return contains(options->excluded_devices, options->excluded_device_count, name);
}

const char *tm_settings_exclude_backend(const tm_context_options *options, const char *name) {
  if (tm_settings_excludes_by_name(options, name)) return "excluded by request";
  if (options->device_count != 0 && !mentions_backend(options->devices, options->device_count, name))
    return "not among the devices asked for";
  return NULL;
}

const char *tm_settings_exclude_device(const tm_context_options *options, const char *backend, const char *device) {
  if (contains(options->excluded_devices, options->excluded_device_count, device)) return "excluded by request";
  if (options->device_count != 0 && !contains(options->devices, options->device_count, backend) &&
      !contains(options->devices, options->device_count, device))
    return "not among the devices asked for";
  return NULL;
}

static bool is_integer(const char *text) {
  if (*text == '-') text++;
  if (*text == '\0') return false;
  for (; *text != '\0'; text++)
    if (*text < '0' || *text > '9') return false;
  return true;
}

static tm_status check_type(const char *backend, const tm_option *option, const char *value, tm_error *error) {
  const bool is_switch = strcmp(value, "0") == 0 || strcmp(value, "1") == 0;
  if (option->type == TM_OPTION_SWITCH && !is_switch)
    return tm_fail(error, TM_ERROR_ARGUMENT, "option %s.%.*s: expected 0 or 1, found '%s'", backend, (int)option->name.length,
                   option->name.data, value);
  if (option->type == TM_OPTION_INTEGER && !is_integer(value))
    return tm_fail(error, TM_ERROR_ARGUMENT, "option %s.%.*s: expected an integer, found '%s'", backend,
                   (int)option->name.length, option->name.data, value);
  return TM_OK;
}

static const tm_option *find_option(const tm_backend_slot *slot, const char *name, uint32_t *out_index) {
  for (uint32_t i = 0; i < slot->table.option_count; i++) {
    const tm_option *option = slot->table.options[i];
    if (option->name.length != strlen(name) || memcmp(option->name.data, name, option->name.length) != 0) continue;
    *out_index = i;
    return option;
  }
  return NULL;
}

static tm_status unknown_option(const tm_backend_slot *slot, const char *name, tm_error *error) {
  const char *close = tm_suggest(name, slot->option_names, slot->table.option_count);
  if (close != NULL)
    return tm_fail(error, TM_ERROR_ARGUMENT, "backend %s has no option '%s'; did you mean '%s'?", slot->name, name, close);
  return tm_fail(error, TM_ERROR_ARGUMENT, "backend %s has no option '%s'%s", slot->name, name,
                 slot->table.option_count == 0 ? "; it has none" : "; see 'backends --options'");
}

static tm_status no_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for options"); }

static tm_status apply_defaults(tm_backend_slot *slot, tm_error *error) {
  tm_arena *arena = &slot->inventory->arena;
  const uint32_t count = slot->table.option_count;
  const char **texts = tm_arena_calloc(arena, 4 * (uint64_t)count, sizeof *texts);
  if (texts == NULL) return no_memory(error);
  slot->option_names = texts;
  slot->option_defaults = texts + count;
  slot->option_helps = texts + 2 * (uint64_t)count;
  slot->option_values = texts + 3 * (uint64_t)count;
  for (uint32_t i = 0; i < count; i++) {
    const tm_option *option = slot->table.options[i];
    slot->option_names[i] = tm_arena_string(arena, option->name.data, option->name.length);
    slot->option_defaults[i] = tm_arena_string(arena, option->default_value.data, option->default_value.length);
    slot->option_helps[i] = tm_arena_string(arena, option->help.data, option->help.length);
    slot->option_values[i] = slot->option_defaults[i];
    if (slot->option_names[i] == NULL || slot->option_defaults[i] == NULL || slot->option_helps[i] == NULL) return no_memory(error);
  }
  return TM_OK;
}

static tm_status apply_settings(const tm_context_options *options, tm_backend_slot *slot, tm_error *error) {
  for (uint32_t i = 0; i < options->setting_count; i++) {
    const tm_setting *setting = &options->settings[i];
    if (strcmp(setting->backend, slot->name) != 0) continue;
    uint32_t index = 0;
    const tm_option *option = find_option(slot, setting->name, &index);
    if (option == NULL) return unknown_option(slot, setting->name, error);
    TM_TRY(check_type(slot->name, option, setting->value, error));
    slot->option_values[index] = tm_arena_string(&slot->inventory->arena, setting->value, strlen(setting->value));
    if (slot->option_values[index] == NULL) return no_memory(error);
  }
  return TM_OK;
}

static tm_status apply_pointers(const tm_context_options *options, tm_backend_slot *slot, tm_error *error) {
  tm_arena *arena = &slot->inventory->arena;
  slot->pointers = tm_arena_calloc(arena, options->pointer_count, sizeof *slot->pointers);
  if (slot->pointers == NULL) return no_memory(error);
  for (uint32_t i = 0; i < options->pointer_count; i++) {
    const tm_named_pointer *given = &options->pointers[i];
    if (strcmp(given->backend, slot->name) != 0) continue;
    const char *name = tm_arena_string(arena, given->name, strlen(given->name));
    if (name == NULL) return no_memory(error);
    slot->pointers[slot->pointer_count++] = (tm_named_pointer){ slot->name, name, given->pointer };
  }
  return TM_OK;
}

tm_status tm_settings_apply(const tm_context_options *options, tm_backend_slot *slot, tm_error *error) {
  TM_TRY(apply_defaults(slot, error));
  TM_TRY(apply_settings(options, slot, error));
  return apply_pointers(options, slot, error);
}

/* ---- names that the user gave ---- */

static bool backend_exists(const tm_inventory *inventory, const char *name) {
  for (uint32_t i = 0; i < inventory->backend_count; i++)
    if (strcmp(inventory->backends[i]->name, name) == 0) return true;
  return false;
}

static bool device_exists(const tm_inventory *inventory, const char *name) {
  for (uint32_t i = 0; i < inventory->device_count; i++)
    if (strcmp(inventory->devices[i]->name, name) == 0) return true;
  return false;
}

/* "backend:index" of a backend that is not loaded cannot be checked further. */
static bool names_something(const tm_inventory *inventory, const char *name) {
  if (backend_exists(inventory, name) || device_exists(inventory, name)) return true;
  for (uint32_t i = 0; i < inventory->backend_count; i++) {
    const tm_backend_slot *slot = inventory->backends[i];
    const size_t length = strlen(slot->name);
    if (atomic_load(&slot->state) == TM_BACKEND_EXCLUDED && strncmp(name, slot->name, length) == 0 && name[length] == ':')
      return true;
  }
  return false;
}

static tm_status unknown_name(const tm_inventory *inventory, const char *what, const char *name, tm_error *error) {
  const char *known[128];
  uint32_t count = 0;
  char list[LONGEST_LIST] = "";
  for (uint32_t i = 0; i < inventory->backend_count && count < 64; i++) {
    known[count++] = inventory->backends[i]->name;
    strncat(list, i == 0 ? "" : ", ", sizeof list - strlen(list) - 1);
    strncat(list, inventory->backends[i]->name, sizeof list - strlen(list) - 1);
  }
  for (uint32_t i = 0; i < inventory->device_count && count < 128; i++) known[count++] = inventory->devices[i]->name;
  const char *close = tm_suggest(name, known, count);
  if (close != NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "unknown %s '%s'; did you mean '%s'?", what, name, close);
  return tm_fail(error, TM_ERROR_ARGUMENT, "unknown %s '%s'; there are: %s", what, name, list);
}

tm_status tm_settings_check_names(const tm_context_options *options, const tm_inventory *inventory, tm_error *error) {
  for (uint32_t i = 0; i < options->device_count; i++)
    if (!names_something(inventory, options->devices[i])) return unknown_name(inventory, "device", options->devices[i], error);
  for (uint32_t i = 0; i < options->excluded_device_count; i++)
    if (!names_something(inventory, options->excluded_devices[i]))
      return unknown_name(inventory, "device", options->excluded_devices[i], error);
  for (uint32_t i = 0; i < options->setting_count; i++)
    if (!backend_exists(inventory, options->settings[i].backend))
      return unknown_name(inventory, "backend", options->settings[i].backend, error);
  for (uint32_t i = 0; i < options->pointer_count; i++)
    if (!backend_exists(inventory, options->pointers[i].backend))
      return unknown_name(inventory, "backend", options->pointers[i].backend, error);
  return TM_OK;
}
