/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/settings.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

#define LONGEST_LIST 512
#define MOST_SUGGESTIONS 64u

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

static tm_status check_type(const char *backend, const tm_backend_option *option, const char *value, tm_error *error) {
  const bool is_switch = strcmp(value, "0") == 0 || strcmp(value, "1") == 0;
  if (option->type == TM_OPTION_SWITCH && !is_switch)
    return tm_fail(error, TM_ERROR_ARGUMENT, "option %s.%s: expected 0 or 1, found '%s'", backend, option->name, value);
  if (option->type == TM_OPTION_INTEGER && !is_integer(value))
    return tm_fail(error, TM_ERROR_ARGUMENT, "option %s.%s: expected an integer, found '%s'", backend, option->name, value);
  return TM_OK;
}

static tm_backend_option *find_option(const tm_backend_slot *slot, const char *name) {
  for (uint32_t i = 0; i < slot->option_count; i++)
    if (strcmp(slot->options[i].name, name) == 0) return &slot->options[i];
  return NULL;
}

static tm_status unknown_option(const tm_backend_slot *slot, const char *name, tm_error *error) {
  const char *names[MOST_SUGGESTIONS] = { NULL };
  uint32_t count = 0;
  for (; count < slot->option_count && count < MOST_SUGGESTIONS; count++) names[count] = slot->options[count].name;
  const char *close = tm_suggest(name, names, count);
  if (close != NULL)
    return tm_fail(error, TM_ERROR_ARGUMENT, "backend %s has no option '%s'; did you mean '%s'?", slot->name, name, close);
  char list[400] = "";
  for (uint32_t i = 0; i < count; i++) {
    const size_t used = strlen(list);
    snprintf(list + used, sizeof list - used, "%s%.64s", i == 0 ? "; it has " : ", ", names[i]);
  }
  return tm_fail(error, TM_ERROR_ARGUMENT, "backend %s has no option '%s'%s", slot->name, name, count == 0 ? "; it has none" : list);
}

static tm_status no_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for options"); }

tm_status tm_settings_declare(tm_backend_slot *slot, const tm_accelerator_backend_plugin *table, tm_error *error) {
  tm_arena *arena = &slot->inventory->arena;
  tm_backend_option *options = tm_arena_calloc(arena, table->option_count, sizeof *options);
  if (options == NULL) return no_memory(error);
  for (uint32_t i = 0; i < table->option_count; i++) {
    const tm_option *option = table->options[i];
    options[i].type = option->type;
    options[i].name = tm_arena_string(arena, option->name.data, option->name.length);
    options[i].default_value = tm_arena_string(arena, option->default_value.data, option->default_value.length);
    options[i].help = tm_arena_string(arena, option->help.data, option->help.length);
    options[i].value = options[i].default_value;
    if (options[i].name == NULL || options[i].default_value == NULL || options[i].help == NULL) return no_memory(error);
  }
  slot->options = options;
  slot->option_count = table->option_count;
  return TM_OK;
}

/* In a trial the backend has its own name, but settings may mean it by another. */
static tm_status apply_settings(const tm_context_options *options, tm_backend_slot *slot, const char *name, tm_error *error) {
  for (uint32_t i = 0; i < options->setting_count; i++) {
    const tm_setting *setting = &options->settings[i];
    if (strcmp(setting->backend, name) != 0) continue;
    tm_backend_option *option = find_option(slot, setting->name);
    if (option == NULL) return unknown_option(slot, setting->name, error);
    TM_TRY(check_type(slot->name, option, setting->value, error));
    option->value = tm_arena_string(&slot->inventory->arena, setting->value, strlen(setting->value));
    if (option->value == NULL) return no_memory(error);
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

tm_status tm_settings_apply(const tm_context_options *options, tm_backend_slot *slot, const char *name, tm_error *error) {
  TM_TRY(apply_settings(options, slot, name, error));
  return apply_pointers(options, slot, error);
}

bool tm_settings_has_values(const tm_context_options *options, const char *backend) {
  for (uint32_t i = 0; i < options->setting_count; i++)
    if (strcmp(options->settings[i].backend, backend) == 0) return true;
  return false;
}

bool tm_settings_has_pointers(const tm_context_options *options, const char *backend) {
  for (uint32_t i = 0; i < options->pointer_count; i++)
    if (strcmp(options->pointers[i].backend, backend) == 0) return true;
  return false;
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

/* A file that was refused before it told its name may be anybody's. */
static const tm_backend_slot *find_nameless(const tm_inventory *inventory) {
  for (uint32_t i = 0; i < inventory->backend_count; i++)
    if (inventory->backends[i]->own_name == NULL && atomic_load(&inventory->backends[i]->state) == TM_BACKEND_REFUSED)
      return inventory->backends[i];
  return NULL;
}

static tm_status check_setting(const tm_setting *setting, const tm_inventory *inventory, tm_error *error) {
  const tm_backend_slot *nameless = backend_exists(inventory, setting->backend) ? NULL : find_nameless(inventory);
  if (backend_exists(inventory, setting->backend)) return TM_OK;
  if (nameless == NULL) return unknown_name(inventory, "backend", setting->backend, error);
  tm_log_write(&inventory->log, TM_LOG_WARNING, "%s.%s cannot be checked: no backend has that name, and %s was refused before it told its own",
               setting->backend, setting->name, nameless->origin);
  return TM_OK;
}

tm_status tm_settings_check_names(const tm_context_options *options, const tm_inventory *inventory, tm_error *error) {
  for (uint32_t i = 0; i < options->device_count; i++)
    if (!names_something(inventory, options->devices[i])) return unknown_name(inventory, "device", options->devices[i], error);
  for (uint32_t i = 0; i < options->excluded_device_count; i++)
    if (!names_something(inventory, options->excluded_devices[i]))
      return unknown_name(inventory, "device", options->excluded_devices[i], error);
  for (uint32_t i = 0; i < options->setting_count; i++)
    TM_TRY(check_setting(&options->settings[i], inventory, error));
  for (uint32_t i = 0; i < options->pointer_count; i++)
    if (!backend_exists(inventory, options->pointers[i].backend))
      return unknown_name(inventory, "backend", options->pointers[i].backend, error);
  return TM_OK;
}
