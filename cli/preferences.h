/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preferences.h - what the user wants of every command, gathered from the configuration file, the environment and the
 * command line.  A later one of these wins; lists given later replace lists given earlier.
 */
#ifndef TM_CLI_PREFERENCES_H
#define TM_CLI_PREFERENCES_H

#include "arguments.h"
#include "tensormorph/tensormorph.h"

typedef enum tm_preference_layer { TM_LAYER_CONFIG, TM_LAYER_ENVIRONMENT, TM_LAYER_FLAG } tm_preference_layer;

typedef struct tm_name_list {
  const char **names;
  uint32_t     count;
  tm_preference_layer layer;
} tm_name_list;

/* One option of a backend and where it came from. */
typedef struct tm_backend_setting {
  tm_setting          setting;
  tm_preference_layer layer;
} tm_backend_setting;

/* TENSORMORPH_<BACKEND>_<OPTION> as found; which backend is meant is known when they are loaded (session.h). */
typedef struct tm_backend_variable {
  const char *name;             /* the whole variable's */
  const char *value;
} tm_backend_variable;

typedef enum tm_choice { TM_CHOICE_AUTO, TM_CHOICE_NO, TM_CHOICE_YES } tm_choice;

typedef struct tm_preferences {
  tm_name_list devices;
  tm_name_list excluded_devices;
  tm_name_list plugins;
  tm_backend_setting  *settings;
  tm_backend_variable *variables;
  uint32_t  setting_count;
  uint32_t  variable_count;
  uint32_t  worst_numerics_plus_one;
  uint32_t  thread_count;
  uint64_t  max_memory_bytes;
  uint64_t  patience_ns;        /* 0: the library's */
  tm_choice color;
  bool      json;
  bool      quiet;
  bool      strict;
  char    **owned;              /* every string that was made here */
  uint32_t  owned_count;
} tm_preferences;

/* Whether a common option can also be given by a variable or in the file. */
bool tm_preference_is_lasting(const tm_flag *flag);

/* One source after the other, least important first.  `environment` is a NULL-terminated list of "NAME=value".
   Each: TM_ERROR_ARGUMENT (with the place and a suggestion), TM_ERROR_IO, TM_ERROR_NO_MEMORY */
void      tm_preferences_init(tm_preferences *preferences);
tm_status tm_preferences_load_config(tm_preferences *preferences, const char *path, tm_error *error);
tm_status tm_preferences_load_environment(tm_preferences *preferences, char *const *environment, tm_error *error);
tm_status tm_preferences_load_arguments(tm_preferences *preferences, const tm_arguments *arguments, tm_error *error);
void      tm_preferences_deinit(tm_preferences *preferences);

/* $XDG_CONFIG_HOME/tensormorph/config, or ~/.config/...; false when there is neither or it does not fit. */
bool tm_preferences_config_path(const char *xdg_config_home, const char *home, char *out_path, size_t capacity);

/* Likewise $XDG_STATE_HOME/tensormorph, or ~/.local/state/tensormorph. */
bool tm_preferences_state_path(const char *xdg_state_home, const char *home, char *out_path, size_t capacity);

/* Adds BACKEND.OPTION = value unless a more important layer has set it already.   TM_ERROR_NO_MEMORY */
tm_status tm_preferences_add_setting(tm_preferences *preferences, tm_preference_layer layer, const char *backend,
                                     const char *name, const char *value, tm_error *error);

#endif
