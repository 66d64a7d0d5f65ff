/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "complain.h"
#include "plugin_command.h"

static bool find_refused(tm_context *context, const char *name) {
  tm_backend_description backend = { .struct_size = sizeof backend };
  for (uint32_t i = 0; tm_backend_describe(context, i, &backend) == TM_OK; i++)
    if (strcmp(backend.name, name) == 0 && backend.state == TM_BACKEND_REFUSED) return true;
  return false;
}

static void say_forgiven(tm_invocation *invocation, const char *name, bool is_refused, uint32_t count) {
  if (is_refused)
    tm_output_format(invocation->output, count != 0 ? "the refusal of %.200s is forgotten: it is tried anew at the next start\n"
                                                    : "nothing is held against %.200s, which was refused only now\n", name);
  else
    tm_output_format(invocation->output, "%u broken promise%s of %.200s forgotten\n", count, count == 1 ? "" : "s", name);
}

int tm_plugin_forgive(tm_invocation *invocation, const char *name) {
  tm_context *context = NULL;
  tm_error    error = TM_CLI_ERROR_INIT;
  uint32_t    count = 0;
  int         exit_code = tm_plugin_session_open(invocation, &context);
  if (exit_code != TM_EXIT_OK) return exit_code;
  const bool is_refused = find_refused(context, name);
  if (tm_context_forgive(context, name, &count, &error) != TM_OK) exit_code = tm_complain(&error);
  else if (!invocation->preferences.quiet) say_forgiven(invocation, name, is_refused, count);
  tm_context_destroy(context);
  return exit_code;
}
