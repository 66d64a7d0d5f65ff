/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_command.h - what `tensormorph plugin` can do, one function an action; each returns the exit code. */
#ifndef TM_CLI_PLUGIN_COMMAND_H
#define TM_CLI_PLUGIN_COMMAND_H

#include "command.h"

/* A context with what the user asked for and no needs of its own; an exit code that is not TM_EXIT_OK has been explained. */
int tm_plugin_session_open(tm_invocation *invocation, tm_context **out_context);

/* Whether the program that `plugin check` runs is there: some installations do without it. */
bool tm_plugin_can_check(void);
int tm_plugin_check(tm_invocation *invocation, const char *target);
int tm_plugin_new(tm_invocation *invocation, const char *name);
int tm_plugin_list(tm_invocation *invocation, const char *unused);
int tm_plugin_forgive(tm_invocation *invocation, const char *name);

#endif
