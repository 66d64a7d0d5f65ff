/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"
#include "nearest_name.h"
#include "printable_text.h"

void tm_session_variable_name(const char *backend, const char *option, char *out, size_t capacity) {
  snprintf(out, capacity, "TENSORMORPH_%s_%s", backend, option);
  for (char *c = out; *c != '\0'; c++) *c = isalnum((unsigned char)*c) ? (char)toupper((unsigned char)*c) : '_';
}

/* What TENSORMORPH_TRACE asks for comes as lines of the library's log. */
static void print_trace(void *context, uint32_t level, const char *message) {
  (void)context, (void)level;
  char text[4096];
  tm_printable_clean(message, strlen(message), text, sizeof text);
  fprintf(stderr, "%s\n", text);
}

#define WARNING_LEVEL 2u        /* see the option `log` of a context */

static void print_warning(void *context, uint32_t level, const char *message) {
  (void)context;
  if (level >= WARNING_LEVEL) (void)tm_complain_as(TM_EXIT_OK, "note: %s", message);
}

static tm_status check_trace(const char *wanted, tm_error *error) {
  if (wanted == NULL || wanted[0] == '\0' || strcmp(wanted, "calls") == 0) return TM_OK;
  return tm_refuse(error, TM_ERROR_ARGUMENT, "TENSORMORPH_TRACE wants \"calls\", not \"%.100s\"", wanted);
}

static tm_status create(const tm_preferences *preferences, const tm_session_needs *needs, tm_context **out_context,
                        tm_error *error) {
  tm_setting *settings = calloc(preferences->setting_count + (size_t)1, sizeof *settings);
  if (settings == NULL) return tm_refuse(error, TM_ERROR_NO_MEMORY, "out of memory");
  for (uint32_t i = 0; i < preferences->setting_count; i++) settings[i] = preferences->settings[i].setting;
  const char *trace = getenv("TENSORMORPH_TRACE");
  char       state_folder[1024];
  const bool has_state = tm_preferences_state_path(getenv("XDG_STATE_HOME"), getenv("HOME"), state_folder, sizeof state_folder);
  const tm_context_options options = {
    .struct_size = sizeof options,
    .flags = TM_CONTEXT_MAP_FILES | TM_CONTEXT_LOAD_PLUGINS | (preferences->strict ? TM_CONTEXT_STRICT : 0) | needs->flags,
    .thread_count = preferences->thread_count,
    .max_memory_bytes = preferences->max_memory_bytes,
    .max_header_bytes = needs->max_header_bytes,
    .worst_numerics_plus_one = preferences->worst_numerics_plus_one,
    .plugin_paths = preferences->plugins.names,
    .plugin_path_count = preferences->plugins.count,
    .devices = preferences->devices.names,
    .device_count = preferences->devices.count,
    .excluded_devices = preferences->excluded_devices.names,
    .excluded_device_count = preferences->excluded_devices.count,
    .settings = settings,
    .setting_count = preferences->setting_count,
    .state_folder = has_state ? state_folder : NULL,
    .patience_ns = preferences->patience_ns,
    .log = trace != NULL && trace[0] != '\0' ? print_trace : needs->has_warnings && !preferences->quiet ? print_warning : NULL,
  };
  const tm_status status = tm_context_create(&options, out_context, error);
  free(settings);
  return status;
}

/* Does the variable name an option of this backend?  Then it becomes a setting; if not, its options are suggestions. */
static bool match_options(tm_preferences *preferences, tm_context *context, uint32_t backend, const char *backend_name,
                          const tm_backend_variable *variable, tm_nearest_name *nearest, tm_status *out_status,
                          tm_error *error) {
  tm_option_description option = { .struct_size = sizeof option };
  char                  name[128];
  for (uint32_t i = 0; tm_backend_option_describe(context, backend, i, &option) == TM_OK; i++) {
    tm_session_variable_name(backend_name, option.name, name, sizeof name);
    if (strcmp(name, variable->name) == 0) {
      *out_status = tm_preferences_add_setting(preferences, TM_LAYER_ENVIRONMENT, backend_name, option.name,
                                               variable->value, error);
      return true;
    }
    tm_nearest_name_offer(nearest, name);
  }
  return false;
}

/* It was refused before it said anything of itself. */
static bool is_mute(const tm_backend_description *backend) {
  return backend->state == TM_BACKEND_REFUSED && backend->build_id[0] == '\0';
}

/* A backend that was not loaded cannot say which options it has, so any may be one. */
static bool may_be_of(const tm_backend_description *backend, const tm_backend_variable *variable) {
  char prefix[128];
  if (backend->state != TM_BACKEND_EXCLUDED && !is_mute(backend)) return false;
  tm_session_variable_name(backend->name, "", prefix, sizeof prefix);
  return strncmp(variable->name, prefix, strlen(prefix)) == 0;
}

static void offer_common(tm_nearest_name *nearest) {
  for (const tm_flag *flag = tm_common_flags; flag->name != NULL; flag++) {
    if (!tm_preference_is_lasting(flag)) continue;
    char name[128];
    snprintf(name, sizeof name, "TENSORMORPH_%s", flag->name);
    for (char *c = name; *c != '\0'; c++) *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
    tm_nearest_name_offer(nearest, name);
  }
}

static tm_status resolve_variable(tm_preferences *preferences, tm_context *context, const tm_backend_variable *variable,
                                  tm_error *error) {
  tm_nearest_name        nearest;
  tm_status              status = TM_OK;
  tm_backend_description backend = { .struct_size = sizeof backend };
  tm_nearest_name_init(&nearest, variable->name);
  for (uint32_t i = 0; tm_backend_describe(context, i, &backend) == TM_OK; i++) {
    if (match_options(preferences, context, i, backend.name, variable, &nearest, &status, error)) return status;
    if (!may_be_of(&backend, variable)) continue;
    if (is_mute(&backend) && !preferences->quiet)
      (void)tm_complain_as(TM_EXIT_OK, "note: %.200s cannot be checked: %.300s was refused before it told its options", variable->name,
                           backend.origin);
    return TM_OK;
  }
  offer_common(&nearest);
  return tm_refuse(error, TM_ERROR_ARGUMENT, "unknown variable %s%s%s%s", variable->name,
                   nearest.best != NULL ? "; did you mean " : "; backends --options lists those of backends",
                   nearest.best != NULL ? nearest.best : "", nearest.best != NULL ? "?" : "");
}

#define LONG_TRIAL_MS 1000u

static bool is_named(const tm_preferences *preferences, const char *origin) {
  for (uint32_t p = 0; p < preferences->plugins.count; p++)
    if (strcmp(origin, preferences->plugins.names[p]) == 0) return true;
  return false;
}

/* A plugin that the user named and that is not used, or not as it should be, must not go by unsaid; nor one that made the user
   wait. */
static void note_odd_plugins(const tm_preferences *preferences, tm_context *context) {
  tm_backend_description backend = { .struct_size = sizeof backend };
  for (uint32_t i = 0; tm_backend_describe(context, i, &backend) == TM_OK; i++) {
    if (backend.is_untried != 0) (void)tm_complain_as(TM_EXIT_OK, "note: plugin %.300s is %.500s", backend.origin, backend.note);
    if (backend.state != TM_BACKEND_REFUSED) continue;
    if (is_named(preferences, backend.origin))
      (void)tm_complain_as(TM_EXIT_OK, "plugin %.300s is not used: %.700s", backend.origin, backend.reason);
    else if (backend.trial_ms >= LONG_TRIAL_MS)
      (void)tm_complain_as(TM_EXIT_OK, "note: %u s went by in trying a plugin that is not used: %.700s", backend.trial_ms / 1000,
                           backend.reason);
  }
}

static bool has_backend(tm_context *context, const char *name) {
  tm_backend_description backend = { .struct_size = sizeof backend };
  for (uint32_t i = 0; tm_backend_describe(context, i, &backend) == TM_OK; i++)
    if (strcmp(backend.name, name) == 0) return true;
  return false;
}

static void note_unchecked(const tm_setting *setting, tm_context *context) {
  tm_backend_description backend = { .struct_size = sizeof backend };
  for (uint32_t i = 0; tm_backend_describe(context, i, &backend) == TM_OK; i++) {
    if (!is_mute(&backend)) continue;
    (void)tm_complain_as(TM_EXIT_OK, "note: %.100s.%.100s cannot be checked: no backend is called %.100s, and %.300s was refused before it told its name",
                         setting->backend, setting->name, setting->backend, backend.origin);
    return;
  }
}

static void note_all(const tm_preferences *preferences, const tm_session_needs *needs, tm_context *context) {
  const char *profile_note = tm_context_profile_note(context);
  if (preferences->quiet) return;
  if (needs->uses_profile && !needs->has_warnings && profile_note[0] != '\0') (void)tm_complain_as(TM_EXIT_OK, "note: %.900s", profile_note);
  note_odd_plugins(preferences, context);
  for (uint32_t i = 0; i < preferences->setting_count; i++)
    if (!has_backend(context, preferences->settings[i].setting.backend)) note_unchecked(&preferences->settings[i].setting, context);
}

tm_status tm_session_open(tm_preferences *preferences, const tm_session_needs *needs, tm_context **out_context,
                          tm_error *error) {
  tm_context *context = NULL;
  tm_status   status = check_trace(getenv("TENSORMORPH_TRACE"), error);
  tm_session_needs first = *needs;
  if (preferences->variable_count != 0) first.has_warnings = false;     /* the second context says them, once */
  if (status == TM_OK) status = create(preferences, &first, &context, error);
  if (status != TM_OK) return status;
  if (preferences->variable_count == 0) {
    *out_context = context;
    note_all(preferences, needs, context);
    return TM_OK;
  }
  /* Where a variable's name splits into backend and option is known only now; options count from the start, so again.
   */
  for (uint32_t i = 0; i < preferences->variable_count && status == TM_OK; i++)
    status = resolve_variable(preferences, context, &preferences->variables[i], error);
  tm_context_destroy(context);
  preferences->variable_count = 0;
  if (status == TM_OK) status = create(preferences, needs, out_context, error);
  if (status == TM_OK) note_all(preferences, needs, *out_context);
  return status;
}

#define MOST_OF_REASON 320u

/* "; reference: excluded by request"; what has no room ends at a word, in "...". */
static void append_reason(tm_error *error, const char *name, const char *reason) {
  char         one[MOST_OF_REASON + 128];
  const size_t used = strlen(error->text), room = sizeof error->text - used - 1;
  snprintf(one, sizeof one, "; %.64s: %s", name, reason);
  const size_t most = room < MOST_OF_REASON ? room : MOST_OF_REASON;
  tm_printable_end_at_word(one, most);
  snprintf(error->text + used, sizeof error->text - used, "%s", one);
}

tm_status tm_session_require_device(tm_context *context, tm_error *error) {
  tm_device_description  device = { .struct_size = sizeof device };
  tm_backend_description backend = { .struct_size = sizeof backend };
  for (uint32_t i = 0; tm_device_describe(context, i, &device) == TM_OK; i++)
    if (device.state == TM_DEVICE_READY) return TM_OK;
  tm_refuse(error, TM_ERROR_NO_DEVICE, "no device is left to compute on");
  for (uint32_t i = 0; tm_device_describe(context, i, &device) == TM_OK; i++) append_reason(error, device.name, device.reason);
  for (uint32_t i = 0; tm_backend_describe(context, i, &backend) == TM_OK; i++)
    if (backend.device_count == 0) append_reason(error, backend.name, backend.reason);
  return TM_ERROR_NO_DEVICE;
}
