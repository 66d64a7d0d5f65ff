/* SPDX-License-Identifier: Apache-2.0 */
/* check_arguments.h - the command line of the conformance program. */
#ifndef CONFORMANCE_CHECK_ARGUMENTS_H
#define CONFORMANCE_CHECK_ARGUMENTS_H

#include "conformance/campaign.h"

#define ARGUMENTS_SETTINGS 64u

typedef struct check_arguments {
  const char *name;             /* of a built-in backend */
  const char *plugin;           /* NULL, or a file */
  const char *called;           /* how a person repeats it */
  const char *speaker;          /* who complains: this program, or the command that runs it */
  const char *wrong;            /* the word that was not understood, and its value */
  const char *wrong_value;
  int         verdict_file;     /* takes the exit code as one byte; -1: none */
  bool        json;
  bool        quiet;
  bool        only_device;
  bool        has_cases;        /* said how many */
  bool        shares_budget;    /* nobody said it, and all devices together have a limit */
  uint32_t    setting_count;
  const char *settings[ARGUMENTS_SETTINGS];     /* "BACKEND.OPTION=VALUE" or "OPTION=VALUE" */
  combination only;             /* of --formats */
  campaign    campaign;
  char        called_text[512];
} check_arguments;

/* False after it has said what is wrong. */
bool check_arguments_read(int count, char **words, check_arguments *out_arguments);
/* Of the settings given, and of the environment, those of this backend.  False after it has said which is none. */
bool check_arguments_take_settings(check_arguments *arguments, const char *backend);

#endif
