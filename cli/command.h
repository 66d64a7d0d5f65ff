/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h - a subcommand as a row.  To add one: write cmd_<name>.c with a tm_command, declare it here, name it in
 * command_table.c.
 */
#ifndef TM_CLI_COMMAND_H
#define TM_CLI_COMMAND_H

#include "arguments.h"
#include "interrupt.h"
#include "output_stream.h"
#include "preferences.h"
#include "terminal.h"

typedef struct tm_command tm_command;

/* One of several things that a command can do, as its first operand names it.  Its options are those of the command whose help
   begins with "name: ". */
typedef struct tm_action_help {
  const char *name;
  const char *operand;          /* "" if it takes none */
  const char *summary;
  const char *notes;
} tm_action_help;

/* What a command has in hand while it runs. */
typedef struct tm_invocation {
  const tm_command  *command;
  tm_arguments       arguments;
  tm_preferences     preferences;
  tm_terminal        terminal;
  tm_output_stream  *output;
  tm_interrupt_watch interrupt;
} tm_invocation;

struct tm_command {
  const char    *name;
  const char    *operands;      /* "FILE...", "" if it takes none */
  uint32_t       operand_min;
  uint32_t       operand_max;
  const char    *summary;       /* one line without a full stop */
  const char    *notes; /* paragraphs for --help after the options, separated by '\n'; "" if there is nothing to say */
  const tm_flag *flags;         /* besides the common ones */
  const tm_action_help *actions;        /* ends with a name of NULL; NULL: it does one thing */
  int          (*run)(tm_invocation *invocation);       /* returns the exit code */
};

extern const tm_command tm_command_backends;
extern const tm_command tm_command_ops;
extern const tm_command tm_command_inspect;
extern const tm_command tm_command_stats;
extern const tm_command tm_command_check;
extern const tm_command tm_command_diff;
extern const tm_command tm_command_merge;
extern const tm_command tm_command_explain;
extern const tm_command tm_command_bench;
extern const tm_command tm_command_plugin;
extern const tm_command tm_command_profile;
extern const tm_command tm_command_calibrate;
extern const tm_command tm_command_help;

/* In the order of the general help; ends with NULL. */
extern const tm_command *const tm_commands[];

/* NULL if there is none of that name. */
const tm_command *tm_command_find(const char *name);
/* Says so, with a suggestion; returns the exit code. */
int tm_command_complain_unknown(const char *name);

/* The general help, and a command's. */
void tm_command_print_overview(tm_output_stream *stream, uint32_t width);
/* That of the action which the first operand names, if it names one. */
void tm_command_print_help_for(const tm_command *command, const tm_arguments *arguments, tm_output_stream *stream, uint32_t width);
void tm_command_print_help(const tm_command *command, tm_output_stream *stream, uint32_t width);

#endif
