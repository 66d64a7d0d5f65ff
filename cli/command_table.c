/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "command.h"
#include "complain.h"
#include "nearest_name.h"

const tm_command *const tm_commands[] = {
  &tm_command_backends, &tm_command_ops, &tm_command_inspect, &tm_command_stats, &tm_command_check, &tm_command_diff,
  &tm_command_merge, &tm_command_explain, &tm_command_bench, &tm_command_plugin, &tm_command_profile, &tm_command_calibrate,
  &tm_command_help, NULL };

const tm_command *tm_command_find(const char *name) {
  for (const tm_command *const *command = tm_commands; *command != NULL; command++)
    if (strcmp((*command)->name, name) == 0) return *command;
  return NULL;
}

int tm_command_complain_unknown(const char *name) {
  tm_nearest_name nearest;
  tm_nearest_name_init(&nearest, name);
  for (const tm_command *const *command = tm_commands; *command != NULL; command++)
    tm_nearest_name_offer(&nearest, (*command)->name);
  if (nearest.best != NULL)
    return tm_complain_as(TM_EXIT_USAGE, "unknown command \"%s\"; did you mean \"%s\"?", name, nearest.best);
  return tm_complain_as(TM_EXIT_USAGE, "unknown command \"%s\"; tensormorph help lists all", name);
}
