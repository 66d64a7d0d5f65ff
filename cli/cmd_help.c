/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"
#include "complain.h"

static int run(tm_invocation *invocation) {
  /* Asked for here and now; where the user's configuration wants it everywhere, help is help all the same. */
  if (tm_arguments_has(&invocation->arguments, "json"))
    return tm_complain_as(TM_EXIT_USAGE, "help is for people: it has no --json");
  if (invocation->arguments.operand_count == 0) {
    tm_command_print_overview(invocation->output, invocation->terminal.width);
    return TM_EXIT_OK;
  }
  const char       *name = invocation->arguments.operands[0];
  const tm_command *command = tm_command_find(name);
  if (command == NULL) return tm_command_complain_unknown(name);
  tm_command_print_help(command, invocation->output, invocation->terminal.width);
  return TM_EXIT_OK;
}

const tm_command tm_command_help = {
  .name = "help",
  .operands = "[COMMAND]",
  .operand_max = 1,
  .summary = "say what there is, or what a command does",
  .notes = "",
  .run = run,
};
