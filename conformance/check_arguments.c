/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/check_arguments.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/plain_print.h"
#include "conformance/size_walk.h"
#include "plugin/reference.h"

#define USUAL_CASES 48u
#define SHORT_CASES 128u                /* where a budget ends it: what time is left is used */
#define LEAST_CASES 2u
#define MOST_CASES 1000000u
#define QUICK_SECONDS 10u
#define MOST_SECONDS 100000u
#define SECOND_NS UINT64_C(1000000000)

static const char usage[] =
    "usage: tensormorph-conformance [NAME | FILE] [OPTION...]\n"
    "  NAME            a built-in backend, or 'reference' (the default)\n"
    "  FILE            a loadable backend (--plugin FILE: whatever its name is)\n"
    "  --device N      this device of the backend only\n"
    "  --set A=B       value of one of the backend's options; BACKEND.A=B if the backend has that name; repeatable\n"
    "  --seed N        of all random numbers, 1 if not given\n"
    "  --quick         stop after 10 seconds a device, and 60 of all, the most telling cases first\n"
    "  --budget N      ... after N seconds a device, however many there are\n"
    "  --full          everything (the default), on operands of up to 16 million elements\n"
    "  --cases N       for each combination of formats that is claimed, 48 if not given\n"
    "  --deadline N    seconds that a case may take before it counts as hanging, 60 if not given\n"
    "  --only WHAT     this operation only, or this check of manners\n"
    "  --leave-out M   not this check of manners, where a driver is known to fail it\n"
    "  --formats A,B.. of all operands in order, with --only: this combination only\n"
    "  --case N        this case only\n"
    "  --no-isolate    in this very process, for a debugger\n"
    "  --json          the report as one document\n"
    "  --quiet         no progress\n"
    "Exit code: 0 all claims hold, 1 some do not, 2 usage, 3 it does not load or nothing was checked, 77 it has no device here.\n";

static bool read_number(const char *text, uint64_t most, uint64_t *out_number) {
  char *end = NULL;
  const unsigned long long number = strtoull(text, &end, 0);
  *out_number = number;
  return isdigit((unsigned char)text[0]) && *end == '\0' && number <= most;
}

/* ---- options without a value ---- */

static void set_budget(check_arguments *a, uint64_t seconds, bool is_shared) {
  a->campaign.budget_ns = seconds * SECOND_NS;
  a->shares_budget = is_shared;
}

static void ask_for_all(check_arguments *a) {
  set_budget(a, 0, false);
  a->campaign.has_huge = true;
}

static bool take_switch(check_arguments *a, const char *option) {
  if (strcmp(option, "--json") == 0) a->json = true;
  else if (strcmp(option, "--quiet") == 0) a->quiet = true;
  else if (strcmp(option, "--no-isolate") == 0) a->campaign.in_this_process = true;
  else if (strcmp(option, "--quick") == 0) set_budget(a, QUICK_SECONDS, true);
  else if (strcmp(option, "--full") == 0) ask_for_all(a);
  else return false;
  return true;
}

/* ---- options with one ---- */

static bool take_only(check_arguments *a, const char *value) {
  const tm_op_row *row = tm_op_by_name(value, strlen(value));
  a->campaign.only_manner = manner_by_name(value);
  if (row != NULL) a->campaign.only_op = row->op;
  return row != NULL || a->campaign.only_manner != NULL;
}

typedef struct number_rule {
  const char *option;
  uint64_t    least;
  uint64_t    most;
} number_rule;

static const number_rule number_rules[] = {
  { "--seed", 0, UINT64_MAX }, { "--budget", 1, MOST_SECONDS }, { "--deadline", 1, MOST_SECONDS }, { "--cases", LEAST_CASES, MOST_CASES },
  { "--case", 0, SIZE_WALK_END }, { "--device", 0, 255 },
};
#define NUMBER_RULES (sizeof number_rules / sizeof number_rules[0])

static bool take_number(check_arguments *a, const char *option, const char *value) {
  uint64_t number = 0;
  campaign *c = &a->campaign;
  size_t i = 0;
  while (i < NUMBER_RULES && strcmp(option, number_rules[i].option) != 0) i++;
  if (i == NUMBER_RULES || !read_number(value, number_rules[i].most, &number) || number < number_rules[i].least) return false;
  switch (i) {
    case 0: c->seed = number; break;
    case 1: set_budget(a, number, false); break;
    case 2: c->case_deadline_ns = number * SECOND_NS; break;
    case 3: c->cases = (uint32_t)number; break;
    case 4: c->only_case_plus_one = (uint32_t)number + 1; break;
    default: c->subject.device_index = (uint32_t)number; break;
  }
  a->only_device |= i == 5;
  a->has_cases |= i == 3;
  return true;
}

static bool take_option(check_arguments *a, const char *option, const char *value, const char **formats) {
  uint64_t number = 0;
  if (value == NULL) return false;
  if (strcmp(option, "--plugin") == 0) {
    a->plugin = value;
  } else if (strcmp(option, "--formats") == 0) {
    *formats = value;
  } else if (strcmp(option, "--called") == 0) {         /* by the command that runs this program */
    a->called = value;
    a->speaker = "tensormorph";
  } else if (strcmp(option, "--verdict") == 0 && read_number(value, INT32_MAX, &number)) {       /* likewise */
    a->verdict_file = (int)number;
  } else if (strcmp(option, "--set") == 0 && a->setting_count < ARGUMENTS_SETTINGS && strchr(value, '=') != NULL) {
    a->settings[a->setting_count++] = value;
  } else if (strcmp(option, "--leave-out") == 0) {
    a->campaign.left_out = manner_by_name(value);
    return a->campaign.left_out != NULL;
  } else if (strcmp(option, "--only") == 0) {
    return take_only(a, value);
  } else {
    return take_number(a, option, value);
  }
  return true;
}

static bool is_file_name(const char *word) {
  const size_t length = strlen(word);
  return strchr(word, '/') != NULL || (length > 3 && strcmp(word + length - 3, ".so") == 0);
}

static bool take_operand(check_arguments *a, const char *word) {
  if (a->name != NULL || a->plugin != NULL) return false;
  if (is_file_name(word)) a->plugin = word;
  else a->name = word;
  return true;
}

/* "f32,q8_0,f32" for the operation of --only. */
static bool read_formats(check_arguments *a, const char *text) {
  uint32_t count = 0;
  a->only = (combination){ .row = tm_op_find(a->campaign.only_op) };
  while (*text != '\0' && count < CASE_MAX_OPERANDS) {
    const size_t length = strcspn(text, ",");
    const tm_format_info *info = tm_format_by_name(text, length);
    if (info == NULL) return false;
    a->only.formats[count++] = info->format;
    text += length + (text[length] == ',');
  }
  a->only.inputs = count - 1;
  a->campaign.only = &a->only;
  return a->only.row != NULL && count >= 2 && a->only.inputs >= a->only.row->input_min && a->only.inputs <= a->only.row->input_max;
}

static bool read_all(int count, char **words, check_arguments *a, const char **formats) {
  for (int i = 1; i < count; i++) {
    a->wrong = words[i];
    if (words[i][0] != '-') {
      if (!take_operand(a, words[i])) return false;
    } else if (!take_switch(a, words[i])) {
      if (i + 1 < count) a->wrong_value = words[i + 1];
      if (!take_option(a, words[i], i + 1 < count ? words[i + 1] : NULL, formats)) return false;
      a->wrong_value = "";
      i++;
    }
  }
  if (!a->has_cases && a->campaign.budget_ns != 0) a->campaign.cases = SHORT_CASES;
  a->wrong = *formats != NULL ? "--formats" : "";
  a->wrong_value = *formats != NULL ? *formats : "";
  if (a->plugin != NULL && a->name != NULL) return false;
  if (a->plugin == NULL && a->name == NULL) a->name = TM_REFERENCE_NAME;
  return *formats == NULL || read_formats(a, *formats);
}

/* ": it wants ...", or "" where there is no more to say; in `text`. */
static const char *rule_of(const char *option, char *text, size_t capacity) {
  text[0] = '\0';
  for (size_t i = 0; i < NUMBER_RULES; i++)
    if (strcmp(option, number_rules[i].option) == 0)
      snprintf(text, capacity, ": it wants a whole number from %" PRIu64 " to %" PRIu64, number_rules[i].least, number_rules[i].most);
  if (strcmp(option, "--formats") == 0)
    snprintf(text, capacity, ": it wants the formats of all operands of the operation that --only names, in order (f32,f32,f32)");
  if (strcmp(option, "--only") != 0 && strcmp(option, "--leave-out") != 0) return text;
  int length = snprintf(text, capacity, ": it wants %s", strcmp(option, "--only") == 0 ? "an operation (see tensormorph ops) or " : "");
  for (uint32_t i = 0; i < manner_count && length > 0 && (size_t)length < capacity; i++)
    length += snprintf(text + length, capacity - (size_t)length, "%s%s", i == 0 ? "one of the checks " : ", ", manners[i].name);
  return text;
}

bool check_arguments_read(int count, char **words, check_arguments *out) {
  const char *formats = NULL;
  char rule[512];
  *out = (check_arguments){ .speaker = "tensormorph-conformance", .wrong = "", .wrong_value = "", .verdict_file = -1,
                            .campaign = { .seed = 1, .cases = USUAL_CASES } };
  if (!read_all(count, words, out, &formats)) {
    if (out->called == NULL) fputs(usage, stderr);
    else plain_print(stderr, "%s: plugin check does not understand %s %s%s\n", out->speaker, out->wrong, out->wrong_value,
                     rule_of(out->wrong, rule, sizeof rule));
    return false;
  }
  if (out->called != NULL) return true;
  snprintf(out->called_text, sizeof out->called_text, "tensormorph-conformance %s", out->plugin != NULL ? out->plugin : out->name);
  out->called = out->called_text;
  return true;
}

/* ---- settings ---- */

static bool add(check_arguments *a, const char *word) {
  subject_settings *settings = &a->campaign.subject.settings;
  if (settings->count == SUBJECT_SETTINGS) {
    fprintf(stderr, "%s: more than %u settings\n", a->speaker, SUBJECT_SETTINGS);
    return false;
  }
  settings->words[settings->count++] = word;
  return true;
}

static bool is_option(const tm_accelerator_backend_plugin *table, const char *word) {
  const size_t length = strcspn(word, "=");
  for (uint32_t i = 0; i < table->option_count; i++) {
    const tm_string name = table->options[i]->name;
    if (name.length == length && memcmp(name.data, word, length) == 0) return true;
  }
  return false;
}

/* "name=0x1234": a pointer for the backend, which need not declare it. */
static bool is_pointer(const char *word) { return strncmp(word + strcspn(word, "="), "=0x", 3) == 0; }

/* Settings of other backends are not for us. */
static bool take_setting(check_arguments *a, const char *backend, const char *word) {
  const size_t length = strlen(backend);
  const char *dot = strchr(word, '.');
  const bool is_addressed = dot != NULL && dot < strchr(word, '=');
  if (is_addressed && ((size_t)(dot - word) != length || strncmp(word, backend, length) != 0)) return true;
  const char *own = is_addressed ? dot + 1 : word;
  if (is_option(a->campaign.subject.table, own) || is_pointer(own)) return add(a, own);
  plain_print(stderr, "%s: %s has no option %.*s\n", a->speaker, backend, (int)strcspn(own, "="), own);
  return false;
}

/* TENSORMORPH_<BACKEND>_<OPTION>, which the command line overrules. */
static bool take_variable(check_arguments *a, const char *backend, tm_string option) {
  char name[256], *word;
  snprintf(name, sizeof name, "TENSORMORPH_%s_%.*s", backend, (int)option.length, option.data);
  for (char *c = name; *c != '\0'; c++) *c = isalnum((unsigned char)*c) ? (char)toupper((unsigned char)*c) : '_';
  const char *value = getenv(name);
  if (value == NULL) return true;
  const size_t bytes = (size_t)option.length + strlen(value) + 2;
  word = malloc(bytes);         /* until the program ends */
  if (word == NULL) return false;
  snprintf(word, bytes, "%.*s=%s", (int)option.length, option.data, value);
  return add(a, word);
}

bool check_arguments_take_settings(check_arguments *a, const char *backend) {
  const tm_accelerator_backend_plugin *table = a->campaign.subject.table;
  for (uint32_t i = 0; i < a->setting_count; i++)
    if (!take_setting(a, backend, a->settings[i])) return false;
  for (uint32_t i = 0; i < table->option_count; i++)
    if (!take_variable(a, backend, table->options[i]->name)) return false;
  return true;
}
