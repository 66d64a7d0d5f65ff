/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"
#include "nearest_name.h"
#include "quantity.h"

tm_status tm_arguments_init(tm_arguments *arguments, int argc, tm_error *error) {
  memset(arguments, 0, sizeof *arguments);
  /* One word of the command line may hold several letters, but none holds more than its length. */
  arguments->capacity = (uint32_t)argc + 64;
  arguments->items = calloc(arguments->capacity, sizeof *arguments->items);
  arguments->operands = calloc(arguments->capacity, sizeof *arguments->operands);
  if (arguments->items != NULL && arguments->operands != NULL) return TM_OK;
  tm_arguments_deinit(arguments);
  return tm_refuse(error, TM_ERROR_NO_MEMORY, "out of memory");
}

void tm_arguments_deinit(tm_arguments *arguments) {
  free(arguments->items);
  free(arguments->operands);
  memset(arguments, 0, sizeof *arguments);
}

typedef struct reader {
  tm_arguments      *arguments;
  char *const       *argv;
  int                argc;
  int                next;
  const tm_flag     *lists[2];
  tm_error          *error;
} reader;

static bool same(const char *name, const char *text, size_t length) {
  return strncmp(name, text, length) == 0 && name[length] == '\0';
}

static const tm_flag *find_name(const reader *r, const char *text, size_t length, bool *out_negated) {
  for (size_t list = 0; list < 2; list++)
    for (const tm_flag *flag = r->lists[list]; flag != NULL && flag->name != NULL; flag++) {
      *out_negated = false;
      if (same(flag->name, text, length)) return flag;
      *out_negated = true;
      if (flag->negatable && length > 3 && strncmp(text, "no-", 3) == 0 && same(flag->name, text + 3, length - 3))
        return flag;
    }
  return NULL;
}

static const tm_flag *find_letter(const reader *r, char letter) {
  for (size_t list = 0; list < 2; list++)
    for (const tm_flag *flag = r->lists[list]; flag != NULL && flag->name != NULL; flag++)
      if (flag->letter == letter) return flag;
  return NULL;
}

static tm_status refuse_unknown(reader *r, const char *text, size_t length) {
  char wanted[64];
  snprintf(wanted, sizeof wanted, "%.*s", length < 63 ? (int)length : 63, text);
  tm_nearest_name nearest;
  tm_nearest_name_init(&nearest, wanted);
  for (size_t list = 0; list < 2; list++)
    for (const tm_flag *flag = r->lists[list]; flag != NULL && flag->name != NULL; flag++)
      tm_nearest_name_offer(&nearest, flag->name);
  if (nearest.best != NULL)
    return tm_refuse(r->error, TM_ERROR_ARGUMENT, "unknown option --%s; did you mean --%s?", wanted, nearest.best);
  return tm_refuse(r->error, TM_ERROR_ARGUMENT, "unknown option --%s; --help lists all", wanted);
}

static tm_status add(reader *r, const tm_flag *flag, const char *value) {
  if (r->arguments->count == r->arguments->capacity)
    return tm_refuse(r->error, TM_ERROR_ARGUMENT, "too many options");
  r->arguments->items[r->arguments->count++] = (tm_argument){ flag, value };
  return TM_OK;
}

/* `value` NULL: it is the next word. */
static tm_status read_value(reader *r, const tm_flag *flag, const char *where, const char *value) {
  if (value == NULL) {
    if (r->next == r->argc) return tm_refuse(r->error, TM_ERROR_ARGUMENT, "%s wants a value (%s)", where, flag->value);
    value = r->argv[r->next++];
  }
  const tm_status status = tm_flag_check(flag, where, value, r->error);
  return status != TM_OK ? status : add(r, flag, value);
}

static tm_status read_long(reader *r, const char *text) {
  const size_t   length = strcspn(text, "=");
  bool           negated = false;
  char           where[64];
  const tm_flag *flag = find_name(r, text, length, &negated);
  if (flag == NULL) return refuse_unknown(r, text, length);
  snprintf(where, sizeof where, "--%s", flag->name);
  if (flag->kind != TM_FLAG_SWITCH) return read_value(r, flag, where, text[length] == '\0' ? NULL : text + length + 1);
  if (text[length] == '=') return tm_refuse(r->error, TM_ERROR_ARGUMENT, "%s takes no value", where);
  return add(r, flag, negated ? "0" : "1");
}

static tm_status read_letters(reader *r, const char *letters) {
  for (; *letters != '\0'; letters++) {
    const tm_flag *flag = find_letter(r, *letters);
    if (flag == NULL) return tm_refuse(r->error, TM_ERROR_ARGUMENT, "unknown option -%c; --help lists all", *letters);
    if (flag->kind != TM_FLAG_SWITCH) {
      const char where[] = { '-', *letters, '\0' };
      return read_value(r, flag, where, letters[1] == '\0' ? NULL : letters + 1);
    }
    const tm_status status = add(r, flag, "1");
    if (status != TM_OK) return status;
  }
  return TM_OK;
}

tm_status tm_arguments_parse(tm_arguments *arguments, int argc, char *const *argv, int first, bool stop_at_operand,
                             const tm_flag *own, const tm_flag *common, int *out_next, tm_error *error) {
  reader r = { arguments, argv, argc, first, { own, common }, error };
  bool   options_ended = false;
  while (r.next < argc) {
    const char *word = argv[r.next];
    tm_status   status = TM_OK;
    if (options_ended || word[0] != '-' || word[1] == '\0') {
      if (stop_at_operand) break;
      arguments->operands[arguments->operand_count++] = word;
      r.next++;
      continue;
    }
    r.next++;
    if (strcmp(word, "--") == 0)
      options_ended = true;
    else if (word[1] == '-')
      status = read_long(&r, word + 2);
    else
      status = read_letters(&r, word + 1);
    if (status != TM_OK) return status;
  }
  *out_next = r.next;
  return TM_OK;
}

const char *tm_arguments_value(const tm_arguments *arguments, const char *name) {
  const char *value = NULL;
  for (uint32_t i = 0; i < arguments->count; i++)
    if (strcmp(arguments->items[i].flag->name, name) == 0) value = arguments->items[i].value;
  return value;
}

bool tm_arguments_has(const tm_arguments *arguments, const char *name) {
  const char *value = tm_arguments_value(arguments, name);
  return value != NULL && strcmp(value, "0") != 0;
}

uint64_t tm_arguments_count(const tm_arguments *arguments, const char *name, uint64_t otherwise) {
  const char *value = tm_arguments_value(arguments, name);
  uint64_t    count = otherwise;
  return value != NULL && tm_quantity_parse_count(value, &count) ? count : otherwise;
}

uint64_t tm_arguments_size(const tm_arguments *arguments, const char *name, uint64_t otherwise) {
  const char *value = tm_arguments_value(arguments, name);
  uint64_t    bytes = otherwise;
  return value != NULL && tm_quantity_parse_size(value, &bytes) ? bytes : otherwise;
}

uint64_t tm_arguments_duration(const tm_arguments *arguments, const char *name, uint64_t otherwise_ns) {
  const char *value = tm_arguments_value(arguments, name);
  uint64_t    duration_ns = otherwise_ns;
  return value != NULL && tm_quantity_parse_duration(value, &duration_ns) ? duration_ns : otherwise_ns;
}

uint32_t tm_arguments_all(const tm_arguments *arguments, const char *name, const char **out_values) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < arguments->count; i++)
    if (strcmp(arguments->items[i].flag->name, name) == 0) out_values[count++] = arguments->items[i].value;
  return count;
}
