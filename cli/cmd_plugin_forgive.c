/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "complain.h"
#include "json_writer.h"
#include "plugin_command.h"
#include "printable_text.h"

static bool find_refused(tm_context *context, const char *name) {
  tm_backend_description backend = { .struct_size = sizeof backend };
  for (uint32_t i = 0; tm_backend_describe(context, i, &backend) == TM_OK; i++)
    if (strcmp(backend.name, name) == 0 && backend.state == TM_BACKEND_REFUSED) return true;
  return false;
}

static void print_json(tm_invocation *invocation, const char *name, bool is_refused, uint32_t count) {
  tm_json_writer json;
  tm_json_init(&json, invocation->output);
  tm_json_begin_object(&json, NULL, false);
  tm_json_text(&json, "schema", "tensormorph.plugin-forgive/1");
  tm_json_text(&json, "name", name);
  tm_json_count(&json, "forgotten", count);
  tm_json_bool(&json, "was_refused", is_refused);
  tm_json_end_object(&json);
  tm_json_finish(&json);
}

static void say_forgiven(tm_invocation *invocation, const char *name, bool is_refused, uint32_t count) {
  tm_output_stream *stream = invocation->output;
  if (!is_refused && count == 0) {
    tm_output_text(stream, "nothing is held against ");
    tm_printable_print(stream, name);
    tm_output_text(stream, "\n");
    return;
  }
  if (!is_refused) tm_output_format(stream, "%u broken promise%s of ", count, count == 1 ? "" : "s");
  else tm_output_text(stream, count != 0 ? "the refusal of " : "nothing is held against ");
  tm_printable_print(stream, name);
  if (!is_refused) tm_output_text(stream, " forgotten\n");
  else tm_output_text(stream, count != 0 ? " is forgotten: it is tried anew at the next start\n" : ", which was refused only now\n");
}

int tm_plugin_forgive(tm_invocation *invocation, const char *name) {
  tm_context *context = NULL;
  tm_error    error = TM_CLI_ERROR_INIT;
  uint32_t    count = 0;
  int         exit_code = tm_plugin_session_open(invocation, &context);
  if (exit_code != TM_EXIT_OK) return exit_code;
  const bool is_refused = find_refused(context, name);
  if (tm_context_forgive(context, name, &count, &error) != TM_OK) exit_code = tm_complain(&error);
  else if (invocation->preferences.json) print_json(invocation, name, is_refused, count);
  else if (!invocation->preferences.quiet) say_forgiven(invocation, name, is_refused, count);
  tm_context_destroy(context);
  return exit_code;
}
