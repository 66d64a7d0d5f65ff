/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"
#include "json_writer.h"
#include "nearest_name.h"
#include "plugin_command.h"
#include "printable_text.h"
#include "row_printer.h"
#include "session.h"

#define BUILT_IN "built-in"
#define SEARCH_VARIABLE "TENSORMORPH_PLUGIN_PATH"

/* -------------------------------------------------------------------------------------------------------- list ---- */

static const char *state_name(uint32_t state) {
  static const char *const names[] = { "ready", "unavailable", "refused", "quarantined", "excluded" };
  return state < sizeof names / sizeof names[0] ? names[state] : "unknown";
}

/* The `row`-th backend that comes from a file. */
static bool find_plugin(tm_context *context, uint64_t row, tm_backend_description *backend, uint32_t *out_index) {
  *backend = (tm_backend_description){ .struct_size = sizeof *backend };
  for (uint32_t i = 0; tm_backend_describe(context, i, backend) == TM_OK; i++) {
    if (strcmp(backend->origin, BUILT_IN) == 0 || row-- != 0) continue;
    *out_index = i;
    return true;
  }
  return false;
}

typedef struct plugin_rows {
  tm_context *context;
  char        devices[512];
} plugin_rows;

static const char *join_devices(plugin_rows *rows, uint32_t backend) {
  tm_device_description device = { .struct_size = sizeof device };
  size_t                length = 0;
  rows->devices[0] = '\0';
  for (uint32_t i = 0; tm_device_describe(rows->context, i, &device) == TM_OK && length < sizeof rows->devices; i++)
    if (device.backend == backend)
      length +=
          (size_t)snprintf(rows->devices + length, sizeof rows->devices - length, "%s%s", length == 0 ? "" : " ", device.name);
  return rows->devices;
}

static const tm_column columns[] = { { "file", TM_COLUMN_TEXT, 0, "" },
                                     { "name", TM_COLUMN_TEXT, 0, "" },
                                     { "version", TM_COLUMN_TEXT, 0, "" },
                                     { "state", TM_COLUMN_TEXT, 0, "" },
                                     { "devices", TM_COLUMN_TEXT, 0, "" },
                                     { "reason", TM_COLUMN_TEXT, 0, "" } };
#define COLUMN_COUNT 6
#define TABLE_COLUMNS 5
static const tm_column_view views[] = {
    {1, 8, 0, false, "plugin"}, {2, 4, 0, false, NULL}, {3, 0, 0, false, NULL}, {4, 8, 0, false, NULL}, {0, 12, 0, false, NULL}};

static bool plugin_row(const void *source, uint64_t row, tm_cell *cells) {
  plugin_rows           *rows = (plugin_rows *)(uintptr_t)source;
  tm_backend_description backend;
  uint32_t               index = 0;
  if (!find_plugin(rows->context, row, &backend, &index)) return false;
  cells[0] = tm_cell_text(backend.origin);
  cells[1] = tm_cell_text(backend.name);
  cells[2] = tm_cell_text(backend.version);
  cells[3] = tm_cell_text(state_name(backend.state));
  cells[4] = tm_cell_text(join_devices(rows, index));
  cells[5] = tm_cell_text(backend.reason);
  return true;
}

static void print_list(tm_context *context, tm_invocation *invocation) {
  tm_output_stream      *stream = invocation->output;
  const tm_table_look    look = { .width = invocation->terminal.width, .color = invocation->terminal.color };
  plugin_rows            source = { .context = context };
  const tm_rows          rows = { columns, COLUMN_COUNT, plugin_row, &source, UINT64_MAX, NULL };
  tm_backend_description backend;
  uint32_t               index = 0;
  if (!find_plugin(context, 0, &backend, &index)) {
    tm_output_text(
        stream, "no plugins found; they are looked for in " SEARCH_VARIABLE ", in the system's folder, and where --plugin says\n");
    return;
  }
  tm_rows_print_table(&rows, views, TABLE_COLUMNS, &look, stream);
  for (uint64_t row = 0; find_plugin(context, row, &backend, &index); row++) {
    char text[1200];
    if (backend.reason[0] == '\0') continue;
    tm_printable_clean(backend.reason, strlen(backend.reason), text, sizeof text);
    tm_output_format(stream, "%s: ", backend.name);
    tm_printable_wrap(stream, text, strlen(backend.name) + 2, invocation->terminal.width);
  }
}

static void print_list_json(tm_context *context, tm_output_stream *stream) {
  plugin_rows    source = { .context = context };
  tm_json_writer json;
  tm_cell        cells[COLUMN_COUNT];
  tm_json_init(&json, stream);
  tm_json_begin_object(&json, NULL, false);
  tm_json_text(&json, "schema", "tensormorph.plugins/1");
  tm_json_begin_array(&json, "plugins", false);
  for (uint64_t row = 0; plugin_row(&source, row, cells); row++) tm_row_print_json(columns, COLUMN_COUNT, cells, 0, &json);
  tm_json_end_array(&json);
  tm_json_end_object(&json);
  tm_json_finish(&json);
}

static int open_session(tm_invocation *invocation, tm_context **out_context) {
  const tm_session_needs needs = { 0 };
  tm_error               error = TM_CLI_ERROR_INIT;
  return tm_session_open(&invocation->preferences, &needs, out_context, &error) == TM_OK ? TM_EXIT_OK : tm_complain(&error);
}

int tm_plugin_list(tm_invocation *invocation, const char *unused) {
  tm_context *context = NULL;
  (void)unused;
  const int exit_code = open_session(invocation, &context);
  if (exit_code != TM_EXIT_OK) return exit_code;
  if (invocation->preferences.json) print_list_json(context, invocation->output);
  else print_list(context, invocation);
  tm_context_destroy(context);
  return TM_EXIT_OK;
}

/* ----------------------------------------------------------------------------------------------------- forgive ---- */

static bool find_refused(tm_context *context, const char *name) {
  tm_backend_description backend = { .struct_size = sizeof backend };
  for (uint32_t i = 0; tm_backend_describe(context, i, &backend) == TM_OK; i++)
    if (strcmp(backend.name, name) == 0 && backend.state == TM_BACKEND_REFUSED) return true;
  return false;
}

int tm_plugin_forgive(tm_invocation *invocation, const char *name) {
  tm_context *context = NULL;
  tm_error    error = TM_CLI_ERROR_INIT;
  uint32_t    count = 0;
  int         exit_code = open_session(invocation, &context);
  if (exit_code != TM_EXIT_OK) return exit_code;
  const bool is_refused = find_refused(context, name);
  if (tm_context_forgive(context, name, &count, &error) != TM_OK) exit_code = tm_complain(&error);
  else if (!invocation->preferences.quiet) {
    if (is_refused)
      tm_output_format(invocation->output, count != 0 ? "the refusal of %.200s is forgotten: it is tried anew at the next start\n"
                                                      : "nothing is held against %.200s, which was refused only now\n", name);
    else
      tm_output_format(invocation->output, "%u broken promise%s of %.200s forgotten\n", count, count == 1 ? "" : "s", name);
  }
  tm_context_destroy(context);
  return exit_code;
}

/* --------------------------------------------------------------------------------------------------- the command ---- */

typedef struct action {
  const char *name;
  const char *operand;          /* NULL: it takes none */
  int       (*run)(tm_invocation *invocation, const char *operand);
} action;

static const action actions[] = {
  { "check", "FILE|NAME", tm_plugin_check },
  { "new", "NAME", tm_plugin_new },
  { "list", NULL, tm_plugin_list },
  { "forgive", "NAME", tm_plugin_forgive },
};
#define ACTIONS (sizeof actions / sizeof actions[0])

static int complain_unknown(const char *name) {
  tm_nearest_name nearest;
  tm_nearest_name_init(&nearest, name);
  for (size_t i = 0; i < ACTIONS; i++) tm_nearest_name_offer(&nearest, actions[i].name);
  if (nearest.best != NULL) return tm_complain_as(TM_EXIT_USAGE, "plugin cannot \"%s\"; did you mean \"%s\"?", name, nearest.best);
  return tm_complain_as(TM_EXIT_USAGE, "plugin cannot \"%s\"; it can check, new, list and forgive", name);
}

/* An option that only another action understands would go by unheard. */
static int check_options(const tm_invocation *invocation, const action *chosen) {
  const bool is_check = chosen->run == tm_plugin_check, is_new = chosen->run == tm_plugin_new;
  for (const tm_flag *flag = invocation->command->flags; flag->name != NULL; flag++) {
    const bool is_known = strcmp(flag->name, "folder") == 0 ? is_new : is_check;
    if (!is_known && tm_arguments_has(&invocation->arguments, flag->name))
      return tm_complain_as(TM_EXIT_USAGE, "plugin %s has no option --%s", chosen->name, flag->name);
  }
  if (tm_arguments_has(&invocation->arguments, "full") && tm_arguments_has(&invocation->arguments, "quick"))
    return tm_complain_as(TM_EXIT_USAGE, "--quick and --full exclude each other");
  return TM_EXIT_OK;
}

static int run(tm_invocation *invocation) {
  const tm_arguments *arguments = &invocation->arguments;
  const action       *chosen = NULL;
  for (size_t i = 0; i < ACTIONS; i++)
    if (strcmp(actions[i].name, arguments->operands[0]) == 0) chosen = &actions[i];
  if (chosen == NULL) return complain_unknown(arguments->operands[0]);
  if (chosen->operand != NULL && arguments->operand_count < 2)
    return tm_complain_as(TM_EXIT_USAGE, "something is missing: usage: tensormorph plugin %s %s [OPTION...]", chosen->name,
                          chosen->operand);
  if (chosen->operand == NULL && arguments->operand_count > 1)
    return tm_complain_as(TM_EXIT_USAGE, "one operand too many: usage: tensormorph plugin %s [OPTION...]", chosen->name);
  const int exit_code = check_options(invocation, chosen);
  return exit_code != TM_EXIT_OK ? exit_code : chosen->run(invocation, chosen->operand == NULL ? NULL : arguments->operands[1]);
}

static const tm_flag flags[] = {
  { "quick", 0, TM_FLAG_SWITCH, false, NULL, "check: stop after 10 seconds a device, the most telling cases first (the default)" },
  { "full", 0, TM_FLAG_SWITCH, false, NULL, "check: everything that is claimed" },
  { "budget", 0, TM_FLAG_COUNT, false, "SECONDS", "check: stop after so many seconds a device" },
  { "seed", 0, TM_FLAG_COUNT, false, "N", "check: of all random numbers (1)" },
  { "cases", 0, TM_FLAG_COUNT, false, "N", "check: for each claimed combination of formats (48)" },
  { "only", 0, TM_FLAG_TEXT, false, "WHAT", "check: only this operation, or this check of manners" },
  { "formats", 0, TM_FLAG_TEXT, false, "A,B...", "check: with --only OPERATION, only these formats of its operands" },
  { "case", 0, TM_FLAG_COUNT, false, "N", "check: only this case" },
  { "deadline", 0, TM_FLAG_COUNT, false, "SECONDS", "check: what a case may take before it counts as hanging (60)" },
  { "no-isolate", 0, TM_FLAG_SWITCH, false, NULL, "check: in one process, for a debugger" },
  { "folder", 0, TM_FLAG_TEXT, false, "FOLDER", "new: write there, not into a folder of the plugin's name" },
  { NULL, 0, TM_FLAG_SWITCH, false, NULL, NULL },
};

const tm_command tm_command_plugin = {
  .name = "plugin",
  .operands = "check FILE|NAME | new NAME | list | forgive NAME",
  .operand_min = 1,
  .operand_max = 2,
  .summary = "check a backend claim by claim, begin a new one, list those found, forget what one broke",
  .notes =
      "check holds a plugin's file, or a backend by its name, to everything that it claims: each operation and "
      "combination of formats against the scalar reference, and its manners towards the host. It runs in a process of "
      "its own; a crash or a hang is one failed line. Each failure ends with the command that repeats it.\n"
      "Exit code of check: 0 all claims hold, 1 some do not, 2 wrong usage, 3 it cannot be loaded or has no device.\n"
      "new writes a project with a backend that works and a test that checks it.\n"
      "forgive forgets the broken promises that are remembered of a backend, and that it was refused, so that it is tried "
      "and used again.",
  .flags = flags,
  .run = run,
};
