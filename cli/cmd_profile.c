/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "complain.h"
#include "json_writer.h"
#include "nearest_name.h"
#include "printable_text.h"
#include "quantity.h"
#include "row_printer.h"
#include "session.h"
#include "standard_streams.h"

/* ---- show ---- */

static const char *kind_name(uint32_t kind) {
  static const char *const names[] = { "unknown", "device", "class", "operation", "set-ups", "set-up", "latency", "rate", "copy", "work" };
  return kind < sizeof names / sizeof names[0] ? names[kind] : names[0];
}

static const tm_column columns[] = { { "device", TM_COLUMN_TEXT, 0, "" },    { "kind", TM_COLUMN_TEXT, 0, "" },
                                     { "subject", TM_COLUMN_TEXT, 0, "" },   { "factor", TM_COLUMN_TEXT, 0, "" },
                                     { "spread", TM_COLUMN_TEXT, 0, "" },    { "samples", TM_COLUMN_COUNT, 0, "" },
                                     { "time", TM_COLUMN_TEXT, 0, "" } };
#define COLUMNS 7
static const tm_column_view views[COLUMNS] = { { 0, 8, 0, false, NULL }, { 1, 0, 0, false, NULL }, { 2, 12, 0, false, "of" },
                                               { 3, 0, 0, false, NULL }, { 4, 0, 2, false, NULL }, { 5, 0, 1, false, NULL },
                                               { 6, 0, 3, false, NULL } };

typedef struct learned_rows {
  tm_context *context;
  char        factor[32];
  char        spread[32];
  tm_quantity time;
  tm_learned_description learned;
} learned_rows;

static bool is_time(const tm_learned_description *learned) {
  return learned->kind == TM_LEARNED_ONE_SETUP || learned->kind == TM_LEARNED_LATENCY;
}

static bool learned_row(const void *source, uint64_t row, tm_cell *cells) {
  learned_rows           *rows = (learned_rows *)(uintptr_t)source;
  tm_learned_description *learned = &rows->learned;
  *learned = (tm_learned_description){ .struct_size = sizeof *learned };
  if (tm_learned_describe(rows->context, (uint32_t)row, learned) != TM_OK) return false;
  snprintf(rows->factor, sizeof rows->factor, "x%.3g", learned->factor);
  snprintf(rows->spread, sizeof rows->spread, "x%.3g", learned->spread);
  cells[0] = learned->device_name[0] != '\0' ? tm_cell_text(learned->device_name) : tm_cell_undefined(TM_COLUMN_TEXT);
  cells[1] = tm_cell_text(kind_name(learned->kind));
  cells[2] = learned->subject[0] != '\0' ? tm_cell_text(learned->subject) : tm_cell_undefined(TM_COLUMN_TEXT);
  cells[3] = is_time(learned) ? tm_cell_undefined(TM_COLUMN_TEXT) : tm_cell_text(rows->factor);
  cells[4] = tm_cell_text(rows->spread);
  cells[5] = tm_cell_count(learned->sample_count);
  cells[6] = is_time(learned) ? tm_cell_text(tm_quantity_duration(learned->time_ns, &rows->time)) : tm_cell_undefined(TM_COLUMN_TEXT);
  return true;
}

static void show_json(tm_context *context, tm_output_stream *stream) {
  tm_json_writer         json;
  tm_learned_description learned = { .struct_size = sizeof learned };
  tm_json_init(&json, stream);
  tm_json_begin_object(&json, NULL, false);
  tm_json_text(&json, "schema", "tensormorph.profile/1");
  tm_json_begin_array(&json, "entries", false);
  for (uint32_t i = 0; tm_learned_describe(context, i, &learned) == TM_OK; i++) {
    tm_json_begin_object(&json, NULL, true);
    tm_json_text(&json, "device", learned.device_name[0] != '\0' ? learned.device_name : NULL);
    tm_json_text(&json, "kind", kind_name(learned.kind));
    tm_json_text(&json, "of", learned.subject);
    tm_json_number(&json, "factor", learned.factor);
    tm_json_number(&json, "spread", learned.spread);
    tm_json_count(&json, "samples", learned.sample_count);
    if (is_time(&learned)) tm_json_count(&json, "time_ns", learned.time_ns);
    else tm_json_null(&json, "time_ns");
    tm_json_end_object(&json);
  }
  tm_json_end_array(&json);
  tm_json_end_object(&json);
  tm_json_finish(&json);
}

static int show(tm_invocation *invocation, tm_context *context, const char *unused) {
  (void)unused;
  learned_rows        source = { .context = context };
  const tm_table_look look = { .width = invocation->terminal.width, .color = invocation->terminal.color, .all_in = "--json shows" };
  const tm_rows       rows = { columns, COLUMNS, learned_row, &source, UINT64_MAX, NULL };
  tm_learned_description first = { .struct_size = sizeof first };
  if (invocation->preferences.json)
    show_json(context, invocation->output);
  else if (tm_learned_describe(context, 0, &first) == TM_END)
    tm_output_text(invocation->output, "nothing was learned yet: tensormorph calibrate measures all devices\n");
  else
    tm_rows_print_table(&rows, views, COLUMNS, &look, invocation->output);
  return TM_EXIT_OK;
}

/* ---- reset, export, import ---- */

static void say_done(tm_invocation *invocation, const char *action, const char *object, const uint32_t *count) {
  char text[600];
  if (invocation->preferences.json) {
    tm_json_writer json;
    tm_json_init(&json, invocation->output);
    tm_json_begin_object(&json, NULL, true);
    tm_json_text(&json, "schema", "tensormorph.profile-change/1");
    tm_json_text(&json, "action", action);
    tm_json_text(&json, "object", object);
    if (count != NULL) tm_json_count(&json, "entries", *count);
    else tm_json_null(&json, "entries");
    tm_json_end_object(&json);
    tm_json_finish(&json);
    return;
  }
  if (invocation->preferences.quiet) return;
  tm_printable_clean(object == NULL ? "all devices and copies" : object, strlen(object == NULL ? "all devices and copies" : object), text,
                     sizeof text);
  if (strcmp(action, "export") == 0) tm_output_format(invocation->output, "wrote %s\n", text);
  else if (strcmp(action, "import") == 0) tm_output_format(invocation->output, "%u entries read from %s\n", *count, text);
  else tm_output_format(invocation->output, "what was learned of %s is forgotten\n", text);
}

static int complain_about_name(tm_context *context, const char *name, const tm_error *error) {
  tm_nearest_name        nearest;
  tm_device_description  device = { .struct_size = sizeof device };
  tm_backend_description backend = { .struct_size = sizeof backend };
  tm_nearest_name_init(&nearest, name);
  for (uint32_t i = 0; tm_device_describe(context, i, &device) == TM_OK; i++) tm_nearest_name_offer(&nearest, device.name);
  for (uint32_t i = 0; tm_backend_describe(context, i, &backend) == TM_OK; i++) tm_nearest_name_offer(&nearest, backend.name);
  if (nearest.best == NULL) return tm_complain(error);
  return tm_complain_as(TM_EXIT_TROUBLE, "%s; did you mean \"%s\"?", error->text, nearest.best);
}

static int reset(tm_invocation *invocation, tm_context *context, const char *name) {
  uint32_t        count = 0;
  tm_error        error = TM_CLI_ERROR_INIT;
  const tm_status status = tm_context_reset_profile(context, name, &count, &error);
  if (status == TM_ERROR_NOT_FOUND) return complain_about_name(context, name, &error);
  if (status != TM_OK) return tm_complain(&error);
  say_done(invocation, "reset", name, &count);
  return TM_EXIT_OK;
}

/* What is no file is never replaced: the library says so. */
static bool would_lose(const tm_invocation *invocation, const char *path) {
  struct stat found;
  return !tm_arguments_has(&invocation->arguments, "force") && stat(path, &found) == 0 && S_ISREG(found.st_mode);
}

static int export_to(tm_invocation *invocation, tm_context *context, const char *path) {
  tm_error error = TM_CLI_ERROR_INIT;
  if (tm_standard_streams_is_output(path))
    return tm_complain_as(TM_EXIT_USAGE, "profile export %.300s: that is the standard output, where this command speaks; name a file", path);
  if (would_lose(invocation, path)) return tm_complain_as(TM_EXIT_FOUND, "%.900s is there; --force replaces it", path);
  if (tm_context_export_profile(context, path, &error) != TM_OK) return tm_complain(&error);
  say_done(invocation, "export", path, NULL);
  return TM_EXIT_OK;
}

static int import_from(tm_invocation *invocation, tm_context *context, const char *path) {
  uint32_t count = 0;
  tm_error error = TM_CLI_ERROR_INIT;
  if (tm_context_import_profile(context, path, &count, &error) != TM_OK) return tm_complain(&error);
  say_done(invocation, "import", path, &count);
  return TM_EXIT_OK;
}

/* ---- which ---- */

typedef struct action {
  const char *name;
  const char *operand;          /* "" if it takes none */
  bool        needs_operand;
  int       (*run)(tm_invocation *invocation, tm_context *context, const char *operand);
} action;

static const action actions[] = {
  { "show", "", false, show },
  { "reset", "[NAME]", false, reset },
  { "export", "FILE", true, export_to },
  { "import", "FILE", true, import_from },
};
#define ACTIONS (sizeof actions / sizeof actions[0])

static int complain_unknown(const char *name) {
  tm_nearest_name nearest;
  tm_nearest_name_init(&nearest, name);
  for (size_t i = 0; i < ACTIONS; i++) tm_nearest_name_offer(&nearest, actions[i].name);
  if (nearest.best != NULL) return tm_complain_as(TM_EXIT_USAGE, "profile cannot \"%s\"; did you mean \"%s\"?", name, nearest.best);
  return tm_complain_as(TM_EXIT_USAGE, "profile cannot \"%s\"; it can show, reset, export and import", name);
}

static int run_action(tm_invocation *invocation, const action *chosen, const char *operand) {
  const tm_session_needs needs = { .has_warnings = true };
  tm_context            *context = NULL;
  tm_error               error = TM_CLI_ERROR_INIT;
  if (tm_session_open(&invocation->preferences, &needs, &context, &error) != TM_OK) return tm_complain(&error);
  const int exit_code = chosen->run(invocation, context, operand);
  tm_context_destroy(context);
  return exit_code;
}

static int run(tm_invocation *invocation) {
  const tm_arguments *arguments = &invocation->arguments;
  const char         *operand = arguments->operand_count > 1 ? arguments->operands[1] : NULL;
  const action       *chosen = NULL;
  for (size_t i = 0; i < ACTIONS; i++)
    if (strcmp(actions[i].name, arguments->operands[0]) == 0) chosen = &actions[i];
  if (chosen == NULL) return complain_unknown(arguments->operands[0]);
  if (chosen->needs_operand && operand == NULL)
    return tm_complain_as(TM_EXIT_USAGE, "something is missing: usage: tensormorph profile %s %s [OPTION...]", chosen->name, chosen->operand);
  if (chosen->operand[0] == '\0' && operand != NULL)
    return tm_complain_as(TM_EXIT_USAGE, "one operand too many: usage: tensormorph profile %s [OPTION...]", chosen->name);
  if (chosen->run != export_to && tm_arguments_has(arguments, "force"))
    return tm_complain_as(TM_EXIT_USAGE, "profile %s replaces no file: --force is for profile export", chosen->name);
  return run_action(invocation, chosen, operand);
}

static const tm_flag flags[] = {
  { "force", 'f', TM_FLAG_SWITCH, false, NULL, "export: replace the file that is there" },
  { NULL, 0, TM_FLAG_SWITCH, false, NULL, NULL },
};

static const tm_action_help helps[] = {
  { "show", "", "show what was measured of each device, and how far that is from what it declared",
    "Factor is measured over expected: for a device, a class of operations and an operation with formats and magnitude of work, "
    "over what the device declared; for work, over the library's own count of it. Spread is how far single measurements are off." },
  { "reset", "[NAME]", "forget what was measured of a device, of a backend's devices, or of everything",
    "Without NAME everything is forgotten, copies between memories included." },
  { "export", "FILE", "write all that was measured to a file, for another machine or a simulation",
    "That of devices that are not here now is written, too. A file that is there, an earlier profile or another, is only replaced with "
    "--force." },
  { "import", "FILE", "take over what such a file knows from more measurements",
    "It counts for devices with the same backend, identity and cost formulas; less if build, driver, threads or memory differ. "
    "What is read twice counts twice." },
  { NULL, NULL, NULL, NULL },
};

const tm_command tm_command_profile = {
  .name = "profile",
  .operands = "show | reset [NAME] | export FILE | import FILE",
  .operand_min = 1,
  .operand_max = 2,
  .summary = "what was learned of costs by measuring: show it, forget it, write it to a file, read one",
  .notes = "Each of the four has a help of its own: tensormorph profile show --help.",
  .actions = helps,
  .flags = flags,
  .run = run,
};
