/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "complain.h"
#include "early_end.h"
#include "json_writer.h"
#include "standard_streams.h"

extern char **environ;

/* Options before the command's name; they are the common ones and --version. */
static const tm_flag leading_flags[] = {
  { "version", 'V', TM_FLAG_SWITCH, false, NULL, "print the version" },
  { NULL, 0, TM_FLAG_SWITCH, false, NULL, NULL },
};

static tm_status load_preferences(tm_preferences *preferences, const tm_arguments *arguments, tm_error *error) {
  char      path[4096];
  tm_status status = TM_OK;
  if (tm_preferences_config_path(getenv("XDG_CONFIG_HOME"), getenv("HOME"), path, sizeof path))
    status = tm_preferences_load_config(preferences, path, error);
  if (status == TM_OK) status = tm_preferences_load_environment(preferences, environ, error);
  return status != TM_OK ? status : tm_preferences_load_arguments(preferences, arguments, error);
}

/* Drivers print.  Where programs read the output it is the document and nothing else; the check is a program of its own, which sees
   to that itself. */
static void keep_document_whole(tm_invocation *invocation) {
  FILE *file = NULL;
  if (invocation->preferences.json && strcmp(invocation->command->name, "plugin") != 0) file = tm_standard_streams_take_output();
  if (file != NULL) tm_output_stream_init_file(invocation->output, file);
}

static int run_command(tm_invocation *invocation, tm_error *error) {
  const tm_command *command = invocation->command;
  const uint32_t    count = invocation->arguments.operand_count;
  if (tm_arguments_has(&invocation->arguments, "help")) {
    tm_command_print_help_for(command, &invocation->arguments, invocation->output, invocation->terminal.width);
    return TM_EXIT_OK;
  }
  if (count < command->operand_min || count > command->operand_max)
    return tm_complain_as(TM_EXIT_USAGE, "%s: usage: tensormorph %s %s [OPTION...]; --help says more",
                          count < command->operand_min ? "something is missing" : "one operand too many", command->name,
                          command->operands);
  if (load_preferences(&invocation->preferences, &invocation->arguments, error) != TM_OK) return tm_complain(error);
  tm_terminal_inspect(invocation->preferences.color, &invocation->terminal);
  keep_document_whole(invocation);
  tm_interrupt_watch_begin(&invocation->interrupt);
  const int exit_code = command->run(invocation);
  tm_interrupt_watch_end(&invocation->interrupt);
  return exit_code;
}

static int print_version(const tm_invocation *invocation) {
  tm_json_writer json;
  if (!tm_arguments_has(&invocation->arguments, "json")) {
    tm_output_format(invocation->output, "tensormorph %s\n", tm_version());
    return TM_EXIT_OK;
  }
  tm_json_init(&json, invocation->output);
  tm_json_begin_object(&json, NULL, false);
  tm_json_text(&json, "schema", "tensormorph.version/1");
  tm_json_text(&json, "version", tm_version());
  tm_json_end_object(&json);
  tm_json_finish(&json);
  return TM_EXIT_OK;
}

/* No command was named: only help and version are left. */
static int run_nothing(tm_invocation *invocation) {
  if (tm_arguments_has(&invocation->arguments, "version")) return print_version(invocation);
  if (tm_arguments_has(&invocation->arguments, "help")) {
    tm_command_print_overview(invocation->output, invocation->terminal.width);
    return TM_EXIT_OK;
  }
  return tm_complain_as(TM_EXIT_USAGE, "which command? tensormorph help lists all");
}

static int run(tm_invocation *invocation, int argc, char **argv) {
  tm_error error = TM_CLI_ERROR_INIT;
  int      next = 1;
  if (tm_arguments_parse(&invocation->arguments, argc, argv, 1, true, leading_flags, tm_common_flags, &next, &error) !=
      TM_OK)
    return tm_complain(&error);
  tm_terminal_inspect(TM_CHOICE_AUTO, &invocation->terminal);
  if (next == argc || tm_arguments_has(&invocation->arguments, "version")) return run_nothing(invocation);
  invocation->command = tm_command_find(argv[next]);
  if (invocation->command == NULL) return tm_command_complain_unknown(argv[next]);
  if (tm_arguments_parse(&invocation->arguments, argc, argv, next + 1, false, invocation->command->flags,
                         tm_common_flags, &next, &error) != TM_OK)
    return tm_complain(&error);
  return run_command(invocation, &error);
}

/* Whatever the command did, it is not done unless its output arrived. */
static int end_output(tm_output_stream *output, int exit_code) {
  if (tm_output_flush(output)) return exit_code;
  if (output->error == EPIPE) return TM_EXIT_CLOSED_PIPE;
  return tm_complain_as(TM_EXIT_TROUBLE, "cannot write the output: %s", strerror(output->error));
}

int main(int argc, char **argv) {
  tm_output_stream output;
  tm_error         error = TM_CLI_ERROR_INIT;
  tm_invocation    invocation = { .output = &output };
  tm_standard_streams_claim();
  /* A reader that goes away is an error of the write, not a signal: it ends the work in order. */
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);     /* so is a limit of what a file may have */
  tm_output_stream_init_file(&output, stdout);
  tm_preferences_init(&invocation.preferences);
  if (tm_arguments_init(&invocation.arguments, argc, &error) != TM_OK) return tm_complain(&error);
  tm_early_end_watch();
  const int exit_code = run(&invocation, argc, argv);
  tm_early_end_expect();
  tm_preferences_deinit(&invocation.preferences);
  tm_arguments_deinit(&invocation.arguments);
  return end_output(&output, exit_code);
}
