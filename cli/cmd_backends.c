/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "complain.h"
#include "json_writer.h"
#include "printable_text.h"
#include "quantity.h"
#include "row_printer.h"
#include "session.h"

#define NAME_AT(names, index) ((index) < sizeof(names) / sizeof(names)[0] ? (names)[index] : "unknown")

static const char *backend_state(uint32_t state) {
  static const char *const names[] = { "ready", "unavailable", "refused", "quarantined", "excluded" };
  return NAME_AT(names, state);
}

static const char *device_state(uint32_t state) {
  static const char *const names[] = { "ready", "lost", "quarantined", "excluded" };
  return NAME_AT(names, state);
}

static const char *option_type(uint32_t type) {
  static const char *const names[] = { "unknown", "text", "integer", "switch" };
  return NAME_AT(names, type);
}

/* ------------------------------------------------------------------------------------------------------ tables ---- */

static const tm_column backend_columns[] = {
  { "name", TM_COLUMN_TEXT, 0, "" },    { "version", TM_COLUMN_TEXT, 0, "" },  { "state", TM_COLUMN_TEXT, 0, "" },
  { "devices", TM_COLUMN_COUNT, 0, "" }, { "origin", TM_COLUMN_TEXT, 0, "" } };
static const tm_column_view backend_views[] = { { 0, 8, 0, false, "backend" },
                                                { 1, 5, 1, false, NULL },
                                                { 2, 0, 0, false, NULL },
                                                { 3, 0, 0, false, NULL },
                                                { 4, 8, 2, false, NULL } };

static bool backend_row(const void *source, uint64_t row, tm_cell *cells) {
  tm_backend_description backend = { .struct_size = sizeof backend };
  if (tm_backend_describe((tm_context *)(uintptr_t)source, (uint32_t)row, &backend) != TM_OK) return false;
  cells[0] = tm_cell_text(backend.name);
  cells[1] = tm_cell_text(backend.version);
  cells[2] = tm_cell_text(backend_state(backend.state));
  cells[3] = tm_cell_count(backend.device_count);
  cells[4] = tm_cell_text(backend.origin);
  return true;
}

static const tm_column device_columns[] = {
  { "name", TM_COLUMN_TEXT, 0, "" },   { "state", TM_COLUMN_TEXT, 0, "" },  { "memory", TM_COLUMN_TEXT, 0, "" },
  { "honesty", TM_COLUMN_TEXT, 0, "" }, { "broken", TM_COLUMN_COUNT, 0, "" }, { "description", TM_COLUMN_TEXT, 0, "" } };
#define DEVICE_COLUMNS 6
static const tm_column_view device_views[] = {
  { 0, 12, 0, false, "device" }, { 1, 0, 0, false, NULL }, { 2, 0, 2, false, NULL },
  { 3, 0, 3, false, NULL },      { 4, 0, 4, true, NULL },  { 5, 12, 5, false, NULL }
};

/* A row's text that is made here. */
typedef struct device_rows {
  tm_context *context;
  char        memory[48];
  char        honesty[64];
} device_rows;

/* "x1.9 within x1.3 (85)": measured over declared, how far single ones are off that, and how many there were. */
static void format_honesty(const tm_device_description *device, char *out, size_t room) {
  snprintf(out, room, "x%.3g within x%.3g (%llu)", device->cost_factor, device->cost_spread,
           (unsigned long long)device->cost_samples);
}

static bool device_row(const void *source, uint64_t row, tm_cell *cells) {
  device_rows          *rows = (device_rows *)(uintptr_t)source;
  tm_device_description device = { .struct_size = sizeof device };
  tm_memory_description memory = { .struct_size = sizeof memory };
  tm_quantity           quantity;
  if (tm_device_describe(rows->context, (uint32_t)row, &device) != TM_OK) return false;
  const bool has_memory = tm_device_memory_describe(rows->context, (uint32_t)row, 0, &memory) == TM_OK;
  snprintf(rows->memory, sizeof rows->memory, "%s%s%s",
           memory.total_bytes != 0 ? tm_quantity_bytes(memory.total_bytes, &quantity) : "",
           memory.total_bytes != 0 ? " " : "", memory.is_host != 0 ? "host" : "own");
  cells[0] = tm_cell_text(device.name);
  cells[1] = tm_cell_text(device_state(device.state));
  cells[2] = has_memory ? tm_cell_text(rows->memory) : tm_cell_undefined(TM_COLUMN_TEXT);
  format_honesty(&device, rows->honesty, sizeof rows->honesty);
  cells[3] = device.cost_samples != 0 ? tm_cell_text(rows->honesty) : tm_cell_undefined(TM_COLUMN_TEXT);
  cells[4] = tm_cell_count(device.violation_count);
  cells[5] = tm_cell_text(device.description);
  cells[5].type = TM_CELL_PHRASE;
  return true;
}

static void print_words_about(const char *name, const char *words, tm_invocation *invocation) {
  if (words[0] != '\0') tm_printable_about(invocation->output, name, words, invocation->terminal.width);
}

static void print_reasons(tm_context *context, tm_invocation *invocation) {
  tm_backend_description backend = { .struct_size = sizeof backend };
  tm_device_description  device = { .struct_size = sizeof device };
  for (uint32_t i = 0; tm_backend_describe(context, i, &backend) == TM_OK; i++) {
    print_words_about(backend.name, backend.reason, invocation);
    print_words_about(backend.name, backend.note, invocation);
  }
  for (uint32_t i = 0; tm_device_describe(context, i, &device) == TM_OK; i++)
    print_words_about(device.name, device.reason, invocation);
}

/* "fake:0 is not asked for matmul (f32,q4_0,f32) any more: ..." */
static void print_violations(tm_context *context, tm_invocation *invocation) {
  tm_violation_description violation = { .struct_size = sizeof violation };
  for (uint32_t i = 0; tm_violation_describe(context, i, &violation) == TM_OK; i++) {
    char head[256], text[512];
    if (violation.op == TM_OP_NONE)
      snprintf(head, sizeof head, "%s is not used: ", violation.device_name);
    else
      snprintf(head, sizeof head, "%s is not asked for %s%s%s%s: ", violation.device_name, violation.op_name,
               violation.formats[0] != '\0' ? " (" : "", violation.formats, violation.formats[0] != '\0' ? ")" : "");
    snprintf(text, sizeof text, "%s (%llu time%s%s)", violation.reason, (unsigned long long)violation.count,
             violation.count == 1 ? "" : "s", violation.remembered ? ", remembered" : "");
    tm_printable_sentence(invocation->output, head, text, invocation->terminal.width);
  }
}

static void print_tables(tm_context *context, tm_invocation *invocation) {
  const tm_table_look look = { .width = invocation->terminal.width, .color = invocation->terminal.color, .all_in = "--json shows" };
  const tm_rows backends = { backend_columns, 5, backend_row, context, UINT64_MAX, NULL };
  device_rows   source = { .context = context };
  const tm_rows devices = { device_columns, DEVICE_COLUMNS, device_row, &source, UINT64_MAX, NULL };
  tm_rows_print_table(&backends, backend_views, 5, &look, invocation->output);
  print_reasons(context, invocation);
  print_violations(context, invocation);
  tm_output_char(invocation->output, '\n');
  tm_rows_print_table(&devices, device_views, DEVICE_COLUMNS, &look, invocation->output);
}

static void print_option_value(tm_output_stream *stream, const char *before, const char *value) {
  tm_output_text(stream, before);
  tm_printable_print(stream, value[0] != '\0' ? value : "\"\"");
}

static void print_option(const char *backend, const tm_option_description *option, tm_invocation *invocation) {
  tm_output_stream *stream = invocation->output;
  char              variable[160];
  tm_session_variable_name(backend, option->name, variable, sizeof variable);
  tm_printable_print(stream, backend);
  tm_output_char(stream, '.');
  tm_printable_print(stream, option->name);
  print_option_value(stream, " = ", option->value);
  tm_output_format(stream, "  (%s", option_type(option->type));
  print_option_value(stream, ", default ", option->default_value);
  tm_output_text(stream, ")\n    ");
  tm_printable_wrap(stream, option->help, 4, invocation->terminal.width);
  tm_output_format(stream, "    %s\n", variable);
}

static void print_options(tm_context *context, tm_invocation *invocation) {
  tm_backend_description backend = { .struct_size = sizeof backend };
  tm_option_description  option = { .struct_size = sizeof option };
  bool                   any = false;
  for (uint32_t i = 0; tm_backend_describe(context, i, &backend) == TM_OK; i++)
    for (uint32_t j = 0; tm_backend_option_describe(context, i, j, &option) == TM_OK; j++, any = true) {
      if (any) tm_output_char(invocation->output, '\n');
      print_option(backend.name, &option, invocation);
    }
  if (!any) tm_output_text(invocation->output, "no loaded backend has options\n");
}

/* -------------------------------------------------------------------------------------------------------- JSON ---- */

static void print_backend_json(tm_context *context, uint32_t index, const tm_backend_description *backend,
                               tm_json_writer *json) {
  tm_option_description option = { .struct_size = sizeof option };
  tm_json_begin_object(json, NULL, false);
  tm_json_text(json, "name", backend->name);
  tm_json_text(json, "version", backend->version);
  tm_json_text(json, "vendor", backend->vendor);
  tm_json_text(json, "build_id", backend->build_id);
  tm_json_text(json, "origin", backend->origin);
  tm_json_text(json, "state", backend_state(backend->state));
  tm_json_text(json, "reason", backend->reason);
  tm_json_text(json, "note", backend->note);
  tm_json_bool(json, "is_untried", backend->is_untried != 0);
  tm_json_begin_array(json, "options", false);
  for (uint32_t i = 0; tm_backend_option_describe(context, index, i, &option) == TM_OK; i++) {
    char variable[160];
    tm_session_variable_name(backend->name, option.name, variable, sizeof variable);
    tm_json_begin_object(json, NULL, true);
    tm_json_text(json, "name", option.name);
    tm_json_text(json, "type", option_type(option.type));
    tm_json_text(json, "default", option.default_value);
    tm_json_text(json, "value", option.value);
    tm_json_text(json, "variable", variable);
    tm_json_text(json, "help", option.help);
    tm_json_end_object(json);
  }
  tm_json_end_array(json);
  tm_json_end_object(json);
}

static void print_limit(tm_json_writer *json, const char *key, uint64_t bytes) {
  if (bytes == 0)
    tm_json_null(json, key);
  else
    tm_json_count(json, key, bytes);
}

static void print_memories_json(tm_context *context, uint32_t device, tm_json_writer *json) {
  tm_memory_description memory = { .struct_size = sizeof memory };
  tm_json_begin_array(json, "memories", false);
  for (uint32_t i = 0; tm_device_memory_describe(context, device, i, &memory) == TM_OK; i++) {
    tm_json_begin_object(json, NULL, true);
    tm_json_text(json, "name", memory.name);
    tm_json_bool(json, "is_host", memory.is_host != 0);
    print_limit(json, "total_bytes", memory.total_bytes);
    print_limit(json, "largest_buffer_bytes", memory.largest_buffer_bytes);
    print_limit(json, "largest_binding_bytes", memory.largest_binding_bytes);
    tm_json_count(json, "alignment", memory.alignment);
    tm_json_count(json, "offset_granule", memory.offset_granule);
    tm_json_end_object(json);
  }
  tm_json_end_array(json);
}

static void print_device_json(tm_context *context, uint32_t index, const tm_device_description *device,
                              tm_json_writer *json) {
  tm_backend_description backend = { .struct_size = sizeof backend };
  tm_json_begin_object(json, NULL, false);
  tm_json_text(json, "name", device->name);
  tm_json_text(json, "backend", tm_backend_describe(context, device->backend, &backend) == TM_OK ? backend.name : NULL);
  tm_json_text(json, "state", device_state(device->state));
  tm_json_text(json, "reason", device->reason);
  tm_json_text(json, "description", device->description);
  tm_json_text(json, "driver_version", device->driver_version);
  tm_json_text(json, "uuid", device->uuid);
  tm_json_text(json, "resource", device->resource);
  tm_json_count(json, "queues", device->queue_count);
  tm_json_number(json, "cost_factor", device->cost_factor);
  tm_json_number(json, "cost_spread", device->cost_spread);
  tm_json_count(json, "cost_samples", device->cost_samples);
  tm_json_count(json, "broken_promises", device->violation_count);
  print_memories_json(context, index, json);
  tm_json_end_object(json);
}

static void print_violations_json(tm_context *context, tm_json_writer *json) {
  tm_violation_description violation = { .struct_size = sizeof violation };
  tm_json_begin_array(json, "violations", false);
  for (uint32_t i = 0; tm_violation_describe(context, i, &violation) == TM_OK; i++) {
    tm_json_begin_object(json, NULL, true);
    tm_json_text(json, "device", violation.device_name);
    tm_json_text(json, "op", violation.op == TM_OP_NONE ? NULL : violation.op_name);
    tm_json_text(json, "formats", violation.formats);
    tm_json_count(json, "count", violation.count);
    tm_json_bool(json, "remembered", violation.remembered != 0);
    tm_json_text(json, "reason", violation.reason);
    tm_json_end_object(json);
  }
  tm_json_end_array(json);
}

static void print_json(tm_context *context, tm_output_stream *stream) {
  tm_json_writer         json;
  tm_backend_description backend = { .struct_size = sizeof backend };
  tm_device_description  device = { .struct_size = sizeof device };
  tm_json_init(&json, stream);
  tm_json_begin_object(&json, NULL, false);
  tm_json_text(&json, "schema", "tensormorph.backends/1");
  tm_json_text(&json, "version", tm_version());
  tm_json_begin_array(&json, "backends", false);
  for (uint32_t i = 0; tm_backend_describe(context, i, &backend) == TM_OK; i++)
    print_backend_json(context, i, &backend, &json);
  tm_json_end_array(&json);
  tm_json_begin_array(&json, "devices", false);
  for (uint32_t i = 0; tm_device_describe(context, i, &device) == TM_OK; i++)
    print_device_json(context, i, &device, &json);
  tm_json_end_array(&json);
  print_violations_json(context, &json);
  tm_json_end_object(&json);
  tm_json_finish(&json);
}

static int run(tm_invocation *invocation) {
  const tm_session_needs needs = { .uses_profile = true };
  tm_context            *context = NULL;
  tm_error               error = TM_CLI_ERROR_INIT;
  if (tm_session_open(&invocation->preferences, &needs, &context, &error) != TM_OK) return tm_complain(&error);
  if (invocation->preferences.json)
    print_json(context, invocation->output);
  else if (tm_arguments_has(&invocation->arguments, "options"))
    print_options(context, invocation);
  else
    print_tables(context, invocation);
  tm_context_destroy(context);
  return TM_EXIT_OK;
}

static const tm_flag flags[] = {
  { "options", 0, TM_FLAG_SWITCH, false, NULL, "list the options of each backend instead, with their variables" },
  { NULL, 0, TM_FLAG_SWITCH, false, NULL, NULL },
};

const tm_command tm_command_backends = {
  .name = "backends",
  .operands = "",
  .summary = "list backends with their state and the reason for it, and their devices with memories",
  .notes =
      "A backend is ready; unavailable (loaded, but without device or driver); refused (not loaded, or not "
      "accepted); quarantined (it broke a promise); or excluded (by --device or --no-device).\n"
      "Honesty is what was measured over what the device declared: the mean factor, how far single measurements are off it, and "
      "how many there were. tensormorph profile show tells more.",
  .flags = flags,
  .run = run,
};
