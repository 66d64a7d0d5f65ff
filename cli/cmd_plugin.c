/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "complain.h"
#include "nearest_name.h"
#include "plugin_command.h"
#include "session.h"

int tm_plugin_session_open(tm_invocation *invocation, tm_context **out_context) {
  const tm_session_needs needs = { 0 };
  tm_error               error = TM_CLI_ERROR_INIT;
  return tm_session_open(&invocation->preferences, &needs, out_context, &error) == TM_OK ? TM_EXIT_OK : tm_complain(&error);
}

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
    const bool is_known = strncmp(flag->help, "new: ", 5) == 0 ? is_new : is_check;
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
  { "quick", 0, TM_FLAG_SWITCH, false, NULL, "check: stop after 10 seconds a device, and 60 of all, the most telling cases first (the default)" },
  { "full", 0, TM_FLAG_SWITCH, false, NULL, "check: everything that is claimed" },
  { "budget", 0, TM_FLAG_COUNT, false, "SECONDS", "check: stop after so many seconds a device, however many there are" },
  { "seed", 0, TM_FLAG_COUNT, false, "N", "check: of all random numbers (1)" },
  { "cases", 0, TM_FLAG_COUNT, false, "N", "check: for each claimed combination of formats (48)" },
  { "only", 0, TM_FLAG_TEXT, false, "WHAT", "check: only this operation, or this check of manners" },
  { "leave-out", 0, TM_FLAG_TEXT, false, "CHECK", "check: not this check of manners" },
  { "formats", 0, TM_FLAG_TEXT, false, "A,B...", "check: with --only OPERATION, only these formats of its operands" },
  { "case", 0, TM_FLAG_COUNT, false, "N", "check: only this case" },
  { "deadline", 0, TM_FLAG_COUNT, false, "SECONDS", "check: what a case may take before it counts as hanging (60)" },
  { "no-isolate", 0, TM_FLAG_SWITCH, false, NULL, "check: in one process, for a debugger" },
  { "folder", 0, TM_FLAG_TEXT, false, "FOLDER", "new: write there, not into a folder of the plugin's name" },
  { "queue", 0, TM_FLAG_SWITCH, false, NULL, "new: a device with memory of its own and a queue, as most accelerators have" },
  { NULL, 0, TM_FLAG_SWITCH, false, NULL, NULL },
};

static const tm_action_help helps[] = {
  { "check", "FILE|NAME", "hold a plugin to everything that it claims",
    "A plugin's file, or a backend by its name: each operation and combination of formats against the scalar reference, and its "
    "manners towards the host. It runs in a process of its own; a crash or a hang is one failed line. Each failure ends with the "
    "command that repeats it.\n"
    "Exit code: 0 all claims hold, 1 some do not, 2 wrong usage, 3 it cannot be loaded, has no device, or "
    "nothing was checked (as where it refuses the --case)." },
  { "new", "NAME", "write a project with a backend that works, and a test that checks it",
    "NAME is what the backend will be called: lower case letters, digits and underscores. The project builds with CMake and "
    "with make. Without --queue the device computes on the host's cores, in the application's memory." },
  { "list", "", "list the plugins found, with state, devices, and why those that are not used are not",
    "Plugins are looked for where --plugin says, in the folders of TENSORMORPH_PLUGIN_PATH, in the plugin folder of the place "
    "where this library is installed, and in the one that it was built for. Where there is none, the folders are named." },
  { "forgive", "NAME", "forget the broken promises of a backend, and that it was refused, so that it is used again",
    "NAME is a backend or one of its devices; tensormorph backends lists what is held against whom." },
  { NULL, NULL, NULL, NULL },
};

const tm_command tm_command_plugin = {
  .name = "plugin",
  .operands = "check FILE|NAME | new NAME | list | forgive NAME",
  .operand_min = 1,
  .operand_max = 2,
  .summary = "check a backend claim by claim, begin a new one, list those found, forget what one broke",
  .notes = "Each of the four has a help of its own: tensormorph plugin check --help.",
  .actions = helps,
  .flags = flags,
  .run = run,
};
