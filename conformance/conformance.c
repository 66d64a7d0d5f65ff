/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensormorph-conformance [NAME | --plugin FILE] [OPTION...] - holds a backend to its claims.  Its table of claims is the
 * support table of the backend.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "conformance/campaign.h"
#include "plugin/builtin_plugins.h"
#include "plugin/library.h"
#include "plugin/reference.h"
#include "plugin/table.h"

#define EXIT_FAILED 1
#define EXIT_USAGE 2
#define EXIT_TROUBLE 3
#define EXIT_SKIPPED 77

static const char usage[] =
    "usage: tensormorph-conformance [NAME | --plugin FILE] [OPTION...]\n"
    "  NAME            a built-in backend, or 'reference' (the default)\n"
    "  --plugin FILE   a loadable backend\n"
    "  --device N      index of the device, 0 if not given\n"
    "  --set A=B       value of one of the backend's options; repeatable\n"
    "  --seed N        of all random numbers, 1 if not given\n"
    "  --cases N       for each combination of formats that is claimed, 48 if not given\n"
    "  --only OP       this operation only\n"
    "  --formats A,B.. of all operands in order, with --only: this combination only\n"
    "  --case N        this case only\n"
    "  --json          the report as one document\n"
    "Exit code: 0 all claims hold, 1 some do not, 2 usage, 3 it does not load, 77 it has no device here.\n";

typedef struct arguments {
  const char *name;
  const char *plugin;
  const char *formats;
  bool        json;
  campaign    campaign;
} arguments;

static bool read_number(const char *text, uint64_t most, uint64_t *out_number) {
  char *end = NULL;
  const unsigned long long number = strtoull(text, &end, 0);
  *out_number = number;
  return end != text && *end == '\0' && number <= most;
}

/* One option with its value; false if it is none or the value is wrong. */
static bool take_option(arguments *a, const char *option, const char *value) {
  uint64_t number = 0;
  subject_settings *settings = &a->campaign.subject.settings;
  if (value == NULL) return false;
  if (strcmp(option, "--plugin") == 0) {
    a->plugin = value;
  } else if (strcmp(option, "--formats") == 0) {
    a->formats = value;
  } else if (strcmp(option, "--set") == 0 && settings->count < SUBJECT_SETTINGS) {
    settings->words[settings->count++] = value;
  } else if (strcmp(option, "--only") == 0) {
    const tm_op_row *row = tm_op_by_name(value, strlen(value));
    if (row == NULL) return false;
    a->campaign.only_op = row->op;
  } else if (strcmp(option, "--seed") == 0 && read_number(value, UINT64_MAX, &number)) {
    a->campaign.seed = number;
  } else if (strcmp(option, "--cases") == 0 && read_number(value, 1000000, &number) && number >= 2) {
    a->campaign.cases = (uint32_t)number;
  } else if (strcmp(option, "--case") == 0 && read_number(value, 1000000, &number)) {
    a->campaign.only_case_plus_one = (uint32_t)number + 1;
  } else if (strcmp(option, "--device") == 0 && read_number(value, 255, &number)) {
    a->campaign.subject.device_index = (uint32_t)number;
  } else {
    return false;
  }
  return true;
}

static bool read_arguments(int count, char **words, arguments *out) {
  *out = (arguments){ .campaign = { .seed = 1, .cases = 48 } };
  for (int i = 1; i < count; i++) {
    if (strcmp(words[i], "--json") == 0) {
      out->json = true;
    } else if (words[i][0] != '-') {
      if (out->name != NULL) return false;
      out->name = words[i];
    } else {
      if (!take_option(out, words[i], i + 1 < count ? words[i + 1] : NULL)) return false;
      i++;
    }
  }
  if (out->name == NULL) out->name = out->plugin != NULL ? out->plugin : TM_REFERENCE_NAME;
  return out->plugin == NULL || out->name == out->plugin;
}

/* "f32,q8_0,f32" for the operation of --only. */
static bool read_formats(const arguments *a, combination *out) {
  const char *text = a->formats;
  uint32_t count = 0;
  *out = (combination){ .row = tm_op_find(a->campaign.only_op) };
  while (*text != '\0' && count < CASE_MAX_OPERANDS) {
    const size_t length = strcspn(text, ",");
    const tm_format_info *info = tm_format_by_name(text, length);
    if (info == NULL) return false;
    out->formats[count++] = info->format;
    text += length + (text[length] == ',');
  }
  out->inputs = count - 1;
  return out->row != NULL && count >= 2;
}

static tm_status find_header(const arguments *a, const tm_plugin_header **out_header, tm_error *error) {
  const tm_log silent = { NULL, NULL };
  tm_file_identity identity;
  if (a->plugin != NULL) {
    TM_TRY(tm_plugin_library_examine(a->plugin, &identity, error));
    return tm_plugin_library_load(a->plugin, &silent, out_header, error);
  }
  if (strcmp(a->name, TM_REFERENCE_NAME) == 0) {
    *out_header = tm_reference_plugin_query(TM_ABI_MAJOR, TM_ABI_MINOR);
    return TM_OK;
  }
  for (uint32_t i = 0; i < tm_builtin_plugin_count; i++) {
    if (strcmp(tm_builtin_plugins[i].name, a->name) != 0) continue;
    *out_header = tm_builtin_plugins[i].query(TM_ABI_MAJOR, TM_ABI_MINOR);
    return TM_OK;
  }
  return tm_fail(error, TM_ERROR_NOT_FOUND, "there is no built-in backend %s", a->name);
}

static int run(arguments *a) {
  tm_error error = TM_ERROR_INIT;
  const tm_plugin_header *header = NULL;
  tm_accelerator_backend_plugin table;
  char text[256];
  report r;
  if (find_header(a, &header, &error) != TM_OK || tm_plugin_table_accept(header, a->plugin, &table, &error) != TM_OK) {
    fprintf(stderr, "tensormorph-conformance: %s\n", error.text);
    return EXIT_TROUBLE;
  }
  a->campaign.subject.table = &table;
  const tm_status status = campaign_try(&a->campaign, text, sizeof text);
  if (status != TM_OK) {
    fprintf(stderr, "tensormorph-conformance: %s cannot be used here: %s: %s\n", a->name, tm_status_name(status), text);
    return status == TM_ERROR_NO_DEVICE ? EXIT_SKIPPED : EXIT_TROUBLE;
  }
  if (!campaign_run(&a->campaign, &r)) {
    fprintf(stderr, "tensormorph-conformance: no process for the trials\n");
    return EXIT_TROUBLE;
  }
  (a->json ? report_print_json : report_print)(&r, a->name, a->campaign.seed, stdout);
  const bool failed = r.failure_count != 0;
  report_free(&r);
  return failed ? EXIT_FAILED : 0;
}

int main(int count, char **words) {
  arguments a;
  combination only;
  bool good = read_arguments(count, words, &a);
  if (good && a.formats != NULL) {
    good = read_formats(&a, &only);
    a.campaign.only = &only;
  }
  if (!good) {
    fputs(usage, stderr);
    return EXIT_USAGE;
  }
  return run(&a);
}
