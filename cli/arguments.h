/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arguments.h - the command line, sorted into options and operands.  Options may stand anywhere; "--" ends them.
 * Values come as "--name value" or "--name=value", of a letter as "-o value" or "-ovalue"; letters without a value may be
 * joined ("-qh").
 */
#ifndef TM_CLI_ARGUMENTS_H
#define TM_CLI_ARGUMENTS_H

#include "flag.h"

typedef struct tm_argument {
  const tm_flag *flag;
  const char    *value;         /* of a switch: "1", or "0" after --no-NAME */
} tm_argument;

typedef struct tm_arguments {
  tm_argument *items;
  const char **operands;
  uint32_t     count;
  uint32_t     operand_count;
  uint32_t     capacity;        /* of both arrays */
} tm_arguments;

/* TM_ERROR_NO_MEMORY */
tm_status tm_arguments_init(tm_arguments *arguments, int argc, tm_error *error);
void      tm_arguments_deinit(tm_arguments *arguments);

/*
 * Reads argv[first..argc), in which only options of the two lists (each may be NULL) are known.  With stop_at_operand
 * it returns at the first operand; *out_next is the index after what was read.   TM_ERROR_ARGUMENT, with a suggestion.
 */
tm_status tm_arguments_parse(tm_arguments *arguments, int argc, char *const *argv, int first, bool stop_at_operand,
                             const tm_flag *own, const tm_flag *common, int *out_next, tm_error *error);

/* The last value given for a name; NULL if there is none. */
const char *tm_arguments_value(const tm_arguments *arguments, const char *name);
bool        tm_arguments_has(const tm_arguments *arguments, const char *name);
/* Values that tm_flag_check has accepted; `otherwise` if the option is not there. */
uint64_t tm_arguments_count(const tm_arguments *arguments, const char *name, uint64_t otherwise);
uint64_t tm_arguments_size(const tm_arguments *arguments, const char *name, uint64_t otherwise);
uint64_t tm_arguments_duration(const tm_arguments *arguments, const char *name, uint64_t otherwise_ns);
/* All values of a repeated option, in order; out_values holds `count` of arguments.  Returns how many there are. */
uint32_t tm_arguments_all(const tm_arguments *arguments, const char *name, const char **out_values);

#endif
