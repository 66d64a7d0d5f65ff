/* SPDX-License-Identifier: Apache-2.0 */
#include "complain.h"
#include "plugin_command.h"

int tm_plugin_forgive(tm_invocation *invocation, const char *name) {
  tm_context *context = NULL;
  tm_error    error = TM_CLI_ERROR_INIT;
  uint32_t    count = 0;
  int         exit_code = tm_plugin_session_open(invocation, &context);
  if (exit_code != TM_EXIT_OK) return exit_code;
  if (tm_context_forgive(context, name, &count, &error) != TM_OK) exit_code = tm_complain(&error);
  else if (!invocation->preferences.quiet)
    tm_output_format(invocation->output, "%u broken promise%s of %.200s forgotten\n", count, count == 1 ? "" : "s", name);
  tm_context_destroy(context);
  return exit_code;
}
