/* SPDX-License-Identifier: Apache-2.0 */
#include "flag.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "complain.h"
#include "quantity.h"

const tm_flag tm_common_flags[] = {
  { "device", 0, TM_FLAG_TEXT, false, "NAME", "use only this backend or device (NAME or NAME:INDEX); repeatable" },
  { "no-device", 0, TM_FLAG_TEXT, false, "NAME",
    "never use this backend or device; an excluded backend is not even loaded; repeatable" },
  { "accept", 0, TM_FLAG_NUMERICS, false, "CLASS",
    "weakest accepted numerics: N0 equal bits, N1 within ulps, N2 bounded by terms, N3 tolerance" },
  { "threads", 0, TM_FLAG_COUNT, false, "N", "threads to compute with (0: one a core)" },
  { "plugin", 0, TM_FLAG_TEXT, false, "PATH", "also load this plugin; repeatable" },
  { "max-memory", 0, TM_FLAG_SIZE, false, "SIZE",
    "fail instead of allocating more than this (mapped files not counted; usually 0: no limit)" },
  { "patience", 0, TM_FLAG_DURATION, false, "TIME",
    "what a plugin gets for a call before it is given up; work that should take long gets more (default 20s)" },
  { "strict", 0, TM_FLAG_SWITCH, true, NULL, "when a device fails, fail too, instead of going on with the next best" },
  { "set", 0, TM_FLAG_TEXT, false, "BACKEND.OPTION=VALUE",
    "set an option of a backend (see backends --options); repeatable" },
  { "json", 0, TM_FLAG_SWITCH, true, NULL, "print one JSON document" },
  { "color", 0, TM_FLAG_SWITCH, true, NULL, "use colour even if the output is no terminal; --no-color: never" },
  { "quiet", 'q', TM_FLAG_SWITCH, true, NULL, "no progress, no notes: results and errors only" },
  { "help", 'h', TM_FLAG_SWITCH, false, NULL, "print this help" },
  { NULL, 0, TM_FLAG_SWITCH, false, NULL, NULL },
};

bool tm_numerics_parse(const char *text, uint32_t *out_numerics) {
  if ((text[0] != 'N' && text[0] != 'n') || text[1] < '0' || text[1] > '3' || text[2] != '\0') return false;
  *out_numerics = (uint32_t)(text[1] - '0');
  return true;
}

bool tm_switch_parse(const char *text, bool *out_value) {
  static const char *const words[] = { "0", "1", "no", "yes", "false", "true", "off", "on" };
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    if (strcmp(text, words[i]) != 0) continue;
    *out_value = i % 2 == 1;
    return true;
  }
  return false;
}

tm_status tm_flag_check(const tm_flag *flag, const char *where, const char *value, tm_error *error) {
  static const char *const wanted[] = {
    [TM_FLAG_SWITCH] = "yes or no", [TM_FLAG_TEXT] = "a value", [TM_FLAG_COUNT] = "a whole number",
    [TM_FLAG_SIZE] = "a size such as 512M or 4GiB", [TM_FLAG_DURATION] = "a time such as 0.5 or 200ms",
    [TM_FLAG_NUMERICS] = "N0, N1, N2 or N3" };
  uint64_t number = 0;
  uint32_t numerics = 0;
  bool     right = value[0] != '\0', on = false;
  switch (flag->kind) {
    case TM_FLAG_SWITCH: right = tm_switch_parse(value, &on); break;
    case TM_FLAG_TEXT: break;
    case TM_FLAG_COUNT: right = tm_quantity_parse_count(value, &number) && number <= UINT32_MAX; break;
    case TM_FLAG_SIZE: right = tm_quantity_parse_size(value, &number); break;
    case TM_FLAG_DURATION: right = tm_quantity_parse_duration(value, &number); break;
    case TM_FLAG_NUMERICS: right = tm_numerics_parse(value, &numerics); break;
  }
  if (right) return TM_OK;
  if (flag->kind == TM_FLAG_COUNT && value[0] != '\0' && value[strspn(value, "0123456789")] == '\0')
    return tm_refuse(error, TM_ERROR_ARGUMENT, "%s wants a whole number up to %" PRIu32 ", not \"%s\"", where, UINT32_MAX, value);
  return tm_refuse(error, TM_ERROR_ARGUMENT, "%s wants %s, not \"%s\"", where, wanted[flag->kind], value);
}
