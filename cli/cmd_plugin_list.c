/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "complain.h"
#include "json_writer.h"
#include "plugin_command.h"
#include "printable_text.h"
#include "row_printer.h"

#define BUILT_IN "built-in"
#define SEARCH_VARIABLE "TENSORMORPH_PLUGIN_PATH"

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

static void print_folders(tm_context *context, tm_output_stream *stream, uint32_t width) {
  const char *folder = NULL;
  tm_printable_wrap(stream, "no plugins found; they are looked for where --plugin says, and in these folders (" SEARCH_VARIABLE
                            " adds to them):", 0, width);
  for (uint32_t i = 0; tm_plugin_folder_describe(context, i, &folder) == TM_OK; i++) {
    tm_output_text(stream, "  ");
    tm_printable_print(stream, folder);
    tm_output_char(stream, '\n');
  }
}

static void print_list(tm_context *context, tm_invocation *invocation) {
  tm_output_stream      *stream = invocation->output;
  const tm_table_look    look = { .width = invocation->terminal.width, .color = invocation->terminal.color,
                                    .all_in = "--json shows" };
  plugin_rows            source = { .context = context };
  const tm_rows          rows = { columns, COLUMN_COUNT, plugin_row, &source, UINT64_MAX, NULL };
  tm_backend_description backend;
  uint32_t               index = 0;
  if (!find_plugin(context, 0, &backend, &index)) {
    print_folders(context, stream, invocation->terminal.width);
    return;
  }
  tm_rows_print_table(&rows, views, TABLE_COLUMNS, &look, stream);
  for (uint64_t row = 0; find_plugin(context, row, &backend, &index); row++)
    if (backend.reason[0] != '\0') tm_printable_about(stream, backend.name, backend.reason, invocation->terminal.width);
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

int tm_plugin_list(tm_invocation *invocation, const char *unused) {
  tm_context *context = NULL;
  (void)unused;
  const int exit_code = tm_plugin_session_open(invocation, &context);
  if (exit_code != TM_EXIT_OK) return exit_code;
  if (invocation->preferences.json) print_list_json(context, invocation->output);
  else print_list(context, invocation);
  tm_context_destroy(context);
  return TM_EXIT_OK;
}
