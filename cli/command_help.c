/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "printable_text.h"

/* Lines of help stay readable on very wide terminals, and are not cut up on very narrow ones. */
static uint32_t help_width(uint32_t width) {
  if (width == 0 || width > 100) return 100;
  return width < 40 ? 40 : width;
}

static void print_entry(tm_output_stream *stream, const char *term, const char *text, size_t indent, uint32_t width) {
  const size_t length = strlen(term);
  tm_output_format(stream, "  %s", term);
  if (length + 4 > indent) {
    tm_output_char(stream, '\n');
    tm_output_repeat(stream, ' ', indent);
  } else {
    tm_output_repeat(stream, ' ', indent - 2 - length);
  }
  tm_printable_wrap(stream, text, indent, width);
}

static bool is_flag_of(const tm_flag *flag, const char *action) {
  const size_t length = strlen(action);
  return strncmp(flag->help, action, length) == 0 && flag->help[length] == ':';
}

/* action: only the options whose help begins with its name; NULL: all. */
static void print_flags(tm_output_stream *stream, const tm_flag *flags, const char *action, uint32_t width) {
  const size_t indent = width < 70 ? 8 : 28, skipped = action == NULL ? 0 : strlen(action) + 2;
  for (const tm_flag *flag = flags; flag != NULL && flag->name != NULL; flag++) {
    char term[96], letter[8] = "";
    if (action != NULL && !is_flag_of(flag, action)) continue;
    if (flag->letter != 0) snprintf(letter, sizeof letter, "-%c, ", flag->letter);
    snprintf(term, sizeof term, "%s--%s%s%s", letter, flag->name, flag->value != NULL ? " " : "",
             flag->value != NULL ? flag->value : "");
    print_entry(stream, term, flag->help + skipped, indent, width);
  }
}

static void print_notes(tm_output_stream *stream, const char *notes, uint32_t width) {
  while (*notes != '\0') {
    const size_t length = strcspn(notes, "\n");
    char         paragraph[1024];
    snprintf(paragraph, sizeof paragraph, "%.*s", (int)length, notes);
    tm_output_char(stream, '\n');
    tm_printable_wrap(stream, paragraph, 0, width);
    notes += length;
    if (*notes == '\n') notes++;
  }
}

void tm_command_print_help(const tm_command *command, tm_output_stream *stream, uint32_t width) {
  width = help_width(width);
  tm_output_format(stream, "usage: tensormorph %s%s%s [OPTION...]\n\n", command->name,
                   command->operands[0] != '\0' ? " " : "", command->operands);
  tm_printable_wrap(stream, command->summary, 0, width);
  if (command->flags != NULL && command->flags[0].name != NULL) {
    tm_output_text(stream, "\noptions:\n");
    print_flags(stream, command->flags, NULL, width);
  }
  tm_output_text(stream, "\noptions of every command:\n");
  print_flags(stream, tm_common_flags, NULL, width);
  print_notes(stream, command->notes, width);
}

static void print_action(const tm_command *command, const tm_action_help *action, tm_output_stream *stream, uint32_t width) {
  bool has_flags = false;
  for (const tm_flag *flag = command->flags; flag != NULL && flag->name != NULL; flag++)
    has_flags |= is_flag_of(flag, action->name);
  tm_output_format(stream, "usage: tensormorph %s %s%s%s [OPTION...]\n\n", command->name, action->name,
                   action->operand[0] != '\0' ? " " : "", action->operand);
  tm_printable_wrap(stream, action->summary, 0, width);
  if (has_flags) {
    tm_output_text(stream, "\noptions:\n");
    print_flags(stream, command->flags, action->name, width);
  }
  print_notes(stream, action->notes, width);
  print_notes(stream, "Options of every command: tensormorph --help.", width);
}

void tm_command_print_help_for(const tm_command *command, const tm_arguments *arguments, tm_output_stream *stream, uint32_t width) {
  const tm_action_help *action = arguments->operand_count == 0 ? NULL : command->actions;
  while (action != NULL && action->name != NULL && strcmp(action->name, arguments->operands[0]) != 0) action++;
  if (action != NULL && action->name != NULL) print_action(command, action, stream, help_width(width));
  else tm_command_print_help(command, stream, width);
}

void tm_command_print_overview(tm_output_stream *stream, uint32_t width) {
  width = help_width(width);
  tm_output_text(stream, "usage: tensormorph COMMAND [OPTION...] [OPERAND...]\n\n"
                         "Runs tensor operations over checkpoints on whatever accelerator is there.\n\ncommands:\n");
  for (const tm_command *const *command = tm_commands; *command != NULL; command++) {
    char term[96];
    snprintf(term, sizeof term, "%s%s%s", (*command)->name, (*command)->operands[0] != '\0' ? " " : "",
             (*command)->operands);
    print_entry(stream, term, (*command)->summary, width < 70 ? 8 : 28, width);
  }
  tm_output_text(stream, "\noptions of every command:\n");
  print_flags(stream, tm_common_flags, NULL, width);
  print_entry(stream, "-V, --version", "print the version", width < 70 ? 8 : 28, width);
  print_notes(
      stream,
      "Options can also be set by variables (TENSORMORPH_THREADS=2, TENSORMORPH_<BACKEND>_<OPTION>=VALUE) and by lines "
      "\"threads = 2\" or \"backend.option = value\" in ~/.config/tensormorph/config; the command line wins over "
      "variables, and these over the file.\n"
      "Exit codes: 0 done; 1 found what was asked for; 2 wrong usage; 3 trouble with a file, the system or a device; "
      "130 interrupted.",
      width);
}
