/* SPDX-License-Identifier: Apache-2.0 */
#include "preferences.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"
#include "config_file.h"
#include "nearest_name.h"
#include "quantity.h"

#define PREFIX "TENSORMORPH_"

/* Variables that are the library's own business. */
static const char *const library_variables[] = { "TENSORMORPH_PLUGIN_PATH", "TENSORMORPH_PROBE", "TENSORMORPH_CONFORMANCE",
                                                 "TENSORMORPH_TRACE" };

void tm_preferences_init(tm_preferences *preferences) { memset(preferences, 0, sizeof *preferences); }

void tm_preferences_deinit(tm_preferences *preferences) {
  for (uint32_t i = 0; i < preferences->owned_count; i++) free(preferences->owned[i]);
  free(preferences->owned);
  free(preferences->settings);
  free(preferences->variables);
  free(preferences->devices.names);
  free(preferences->excluded_devices.names);
  free(preferences->plugins.names);
  tm_preferences_init(preferences);
}

static tm_status no_memory(tm_error *error) { return tm_refuse(error, TM_ERROR_NO_MEMORY, "out of memory"); }

/* The array with room for one more element, or NULL; the lists are short, so they grow by one. */
static void *grow(void *array, uint32_t count, size_t element_bytes) {
  return realloc(array, (count + (size_t)1) * element_bytes);
}

static const char *keep(tm_preferences *preferences, const char *text, size_t length) {
  char **owned = grow(preferences->owned, preferences->owned_count, sizeof *owned);
  if (owned == NULL) return NULL;
  preferences->owned = owned;
  char *copy = malloc(length + 1);
  if (copy == NULL) return NULL;
  memcpy(copy, text, length);
  copy[length] = '\0';
  preferences->owned[preferences->owned_count++] = copy;
  return copy;
}

static tm_status add_name(tm_preferences *preferences, tm_name_list *list, const char *text, size_t length,
                          tm_error *error) {
  if (length == 0) return TM_OK;
  const char *name = keep(preferences, text, length);
  const char **names = name != NULL ? grow(list->names, list->count, sizeof *names) : NULL;
  if (names == NULL) return no_memory(error);
  list->names = names;
  list->names[list->count++] = name;
  return TM_OK;
}

/* `separators` is "" where a value is one name. */
static tm_status add_names(tm_preferences *preferences, tm_name_list *list, tm_preference_layer layer,
                           const char *value, const char *separators, tm_error *error) {
  if (layer != list->layer) list->count = 0;
  list->layer = layer;
  while (*value != '\0') {
    while (*value == ' ') value++;
    size_t length = strcspn(value, separators);
    const size_t step = length;
    while (length > 0 && value[length - 1] == ' ') length--;
    const tm_status status = add_name(preferences, list, value, length, error);
    if (status != TM_OK) return status;
    value += step;
    if (*value != '\0') value++;
  }
  return TM_OK;
}

tm_status tm_preferences_add_setting(tm_preferences *preferences, tm_preference_layer layer, const char *backend,
                                     const char *name, const char *value, tm_error *error) {
  const tm_setting setting = { keep(preferences, backend, strlen(backend)), keep(preferences, name, strlen(name)),
                               keep(preferences, value, strlen(value)) };
  if (setting.backend == NULL || setting.name == NULL || setting.value == NULL) return no_memory(error);
  for (uint32_t i = 0; i < preferences->setting_count; i++) {
    tm_backend_setting *known = &preferences->settings[i];
    if (strcmp(known->setting.backend, backend) != 0 || strcmp(known->setting.name, name) != 0) continue;
    if (known->layer <= layer) *known = (tm_backend_setting){ setting, layer };
    return TM_OK;
  }
  tm_backend_setting *settings = grow(preferences->settings, preferences->setting_count, sizeof *settings);
  if (settings == NULL) return no_memory(error);
  preferences->settings = settings;
  preferences->settings[preferences->setting_count++] = (tm_backend_setting){ setting, layer };
  return TM_OK;
}

/* "backend.option" and its value. */
static tm_status set_dotted(tm_preferences *preferences, tm_preference_layer layer, const char *where, const char *key,
                            size_t key_length, const char *value, tm_error *error) {
  const char *dot = memchr(key, '.', key_length);
  if (dot == NULL || dot == key || dot + 1 == key + key_length)
    return tm_refuse(error, TM_ERROR_ARGUMENT, "%s wants BACKEND.OPTION=VALUE, not \"%.*s\"", where, (int)key_length,
                     key);
  const char *backend = keep(preferences, key, (size_t)(dot - key));
  const char *name = keep(preferences, dot + 1, (size_t)(key + key_length - dot - 1));
  if (backend == NULL || name == NULL) return no_memory(error);
  return tm_preferences_add_setting(preferences, layer, backend, name, value, error);
}

static const tm_flag *find_common(const char *key) {
  for (const tm_flag *flag = tm_common_flags; flag->name != NULL; flag++)
    if (strcmp(flag->name, key) == 0) return flag;
  return NULL;
}

static tm_status set_switch(tm_preferences *preferences, const char *key, const char *value) {
  bool on = false;
  tm_switch_parse(value, &on);
  if (strcmp(key, "json") == 0) preferences->json = on;
  if (strcmp(key, "quiet") == 0) preferences->quiet = on;
  if (strcmp(key, "strict") == 0) preferences->strict = on;
  if (strcmp(key, "color") == 0) preferences->color = on ? TM_CHOICE_YES : TM_CHOICE_NO;
  return TM_OK;
}

static tm_status set_number(tm_preferences *preferences, const char *key, const char *value) {
  uint64_t number = 0;
  uint32_t numerics = 0;
  if (strcmp(key, "threads") == 0 && tm_quantity_parse_count(value, &number))
    preferences->thread_count = (uint32_t)number;
  if (strcmp(key, "max-memory") == 0 && tm_quantity_parse_size(value, &number)) preferences->max_memory_bytes = number;
  if (strcmp(key, "patience") == 0 && tm_quantity_parse_duration(value, &number)) preferences->patience_ns = number;
  if (strcmp(key, "accept") == 0 && tm_numerics_parse(value, &numerics))
    preferences->worst_numerics_plus_one = numerics + 1;
  return TM_OK;
}

/* One common option; its value has been checked against its row. */
static tm_status set_common(tm_preferences *preferences, tm_preference_layer layer, const tm_flag *flag,
                            const char *where, const char *value, tm_error *error) {
  const bool several_paths = layer == TM_LAYER_ENVIRONMENT;
  if (strcmp(flag->name, "device") == 0) return add_names(preferences, &preferences->devices, layer, value, ",", error);
  if (strcmp(flag->name, "no-device") == 0)
    return add_names(preferences, &preferences->excluded_devices, layer, value, ",", error);
  if (strcmp(flag->name, "plugin") == 0)
    return add_names(preferences, &preferences->plugins, layer, value, several_paths ? ":" : "", error);
  if (strcmp(flag->name, "set") == 0) {
    const size_t key_length = strcspn(value, "=");
    if (value[key_length] == '\0')
      return tm_refuse(error, TM_ERROR_ARGUMENT, "%s wants BACKEND.OPTION=VALUE, not \"%s\"", where, value);
    return set_dotted(preferences, layer, where, value, key_length, value + key_length + 1, error);
  }
  return flag->kind == TM_FLAG_SWITCH ? set_switch(preferences, flag->name, value)
                                      : set_number(preferences, flag->name, value);
}

/* --help makes no sense outside the command line, and backends' options have their own form there. */
bool tm_preference_is_lasting(const tm_flag *flag) {
  return strcmp(flag->name, "help") != 0 && strcmp(flag->name, "set") != 0;
}

typedef struct config_context {
  tm_preferences *preferences;
  const char     *path;
} config_context;

static tm_status set_from_config(void *context, unsigned line, const char *key, const char *value, tm_error *error) {
  config_context *config = context;
  char            where[512], name[64];
  snprintf(where, sizeof where, "%s:%u: %s", config->path, line, key);
  if (strchr(key, '.') != NULL)
    return set_dotted(config->preferences, TM_LAYER_CONFIG, where, key, strlen(key), value, error);
  snprintf(name, sizeof name, "%s", key);
  for (char *c = name; *c != '\0'; c++)
    if (*c == '_') *c = '-';
  const tm_flag *flag = find_common(name);
  if (flag != NULL && tm_preference_is_lasting(flag)) {
    const tm_status status = tm_flag_check(flag, where, value, error);
    return status != TM_OK ? status : set_common(config->preferences, TM_LAYER_CONFIG, flag, where, value, error);
  }
  tm_nearest_name nearest;
  tm_nearest_name_init(&nearest, name);
  for (flag = tm_common_flags; flag->name != NULL; flag++)
    if (tm_preference_is_lasting(flag)) tm_nearest_name_offer(&nearest, flag->name);
  return tm_refuse(error, TM_ERROR_ARGUMENT, "%s:%u: unknown key \"%.60s\"%s%s%s", config->path, line, key,
                   nearest.best != NULL ? "; did you mean \"" : "", nearest.best != NULL ? nearest.best : "",
                   nearest.best != NULL ? "\"?" : "");
}

tm_status tm_preferences_load_config(tm_preferences *preferences, const char *path, tm_error *error) {
  config_context context = { preferences, path };
  char          *text = NULL;
  size_t         length = 0;
  tm_status      status = tm_config_read(path, &text, &length, error);
  if (status == TM_OK && text != NULL) status = tm_config_parse(path, text, length, set_from_config, &context, error);
  free(text);
  return status;
}

/* TENSORMORPH_NO_DEVICE -> the row of no-device. */
static const tm_flag *find_variable(const char *name, size_t length) {
  char   key[64];
  size_t used = 0;
  for (size_t i = sizeof PREFIX - 1; i < length && used < sizeof key - 1; i++) {
    const char c = name[i];
    key[used++] = c == '_' ? '-' : c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : '\0';
  }
  key[used] = '\0';
  const tm_flag *flag = find_common(key);
  return flag != NULL && tm_preference_is_lasting(flag) ? flag : NULL;
}

static bool is_library_variable(const char *name) {
  for (size_t i = 0; i < sizeof library_variables / sizeof library_variables[0]; i++)
    if (strcmp(name, library_variables[i]) == 0) return true;
  return false;
}

static tm_status set_variable(tm_preferences *preferences, const char *entry, tm_error *error) {
  const size_t length = strcspn(entry, "=");
  if (entry[length] == '\0') return TM_OK;
  const char    *name = keep(preferences, entry, length), *value = entry + length + 1;
  const tm_flag *flag = find_variable(entry, length);
  if (name == NULL) return no_memory(error);
  if (is_library_variable(name)) return TM_OK;
  if (flag != NULL) {
    /* An empty variable is the same as none: that is how one is switched off for a single call. */
    if (*value == '\0') return TM_OK;
    const tm_status status = tm_flag_check(flag, name, value, error);
    return status != TM_OK ? status : set_common(preferences, TM_LAYER_ENVIRONMENT, flag, name, value, error);
  }
  const char *kept_value = keep(preferences, value, strlen(value));
  tm_backend_variable *variables =
      kept_value != NULL ? grow(preferences->variables, preferences->variable_count, sizeof *variables) : NULL;
  if (variables == NULL) return no_memory(error);
  preferences->variables = variables;
  preferences->variables[preferences->variable_count++] = (tm_backend_variable){ name, kept_value };
  return TM_OK;
}

tm_status tm_preferences_load_environment(tm_preferences *preferences, char *const *environment, tm_error *error) {
  for (; *environment != NULL; environment++) {
    if (strncmp(*environment, PREFIX, sizeof PREFIX - 1) != 0) continue;
    const tm_status status = set_variable(preferences, *environment, error);
    if (status != TM_OK) return status;
  }
  return TM_OK;
}

tm_status tm_preferences_load_arguments(tm_preferences *preferences, const tm_arguments *arguments, tm_error *error) {
  for (uint32_t i = 0; i < arguments->count; i++) {
    const tm_argument *argument = &arguments->items[i];
    const tm_flag     *flag = find_common(argument->flag->name);
    char               where[64];
    if (flag != argument->flag) continue;
    snprintf(where, sizeof where, "--%s", flag->name);
    const tm_status status = set_common(preferences, TM_LAYER_FLAG, flag, where, argument->value, error);
    if (status != TM_OK) return status;
  }
  /* Another form of the table that is asked for here wins over the one that is usually wanted. */
  if (tm_arguments_has(arguments, "csv") && !tm_arguments_has(arguments, "json")) preferences->json = false;
  return TM_OK;
}

/* The XDG rule: a path that is not absolute is as good as none. */
static bool xdg_path(const char *base, const char *home, const char *under_home, const char *rest, char *out_path, size_t capacity) {
  int length = -1;
  if (base != NULL && base[0] == '/')
    length = snprintf(out_path, capacity, "%s/%s", base, rest);
  else if (home != NULL && home[0] == '/')
    length = snprintf(out_path, capacity, "%s/%s/%s", home, under_home, rest);
  return length > 0 && (size_t)length < capacity;
}

bool tm_preferences_config_path(const char *xdg_config_home, const char *home, char *out_path, size_t capacity) {
  return xdg_path(xdg_config_home, home, ".config", "tensormorph/config", out_path, capacity);
}

bool tm_preferences_state_path(const char *xdg_state_home, const char *home, char *out_path, size_t capacity) {
  return xdg_path(xdg_state_home, home, ".local/state", "tensormorph", out_path, capacity);
}
