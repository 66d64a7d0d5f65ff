/* SPDX-License-Identifier: Apache-2.0 */
#include "diff_wishes.h"

#include <string.h>

#include "complain.h"
#include "merge_words.h"

static tm_status parse_tolerance(const char *text, double *out_tolerance, tm_error *error) {
  double value = -1;
  if (!tm_merge_number_parse(text, &value) || value < 0)
    return tm_refuse(error, TM_ERROR_ARGUMENT, "--tolerance wants a number like 1e-6, not \"%.100s\"", text);
  *out_tolerance = value;
  return TM_OK;
}

static tm_status parse_key(const char *text, tm_layer_key *out_by, tm_error *error) {
  if (strcmp(text, "layer") != 0 && strcmp(text, "kind") != 0)
    return tm_refuse(error, TM_ERROR_ARGUMENT, "--by wants \"layer\" or \"kind\", not \"%.100s\"", text);
  *out_by = text[0] == 'l' ? TM_BY_LAYER : TM_BY_KIND;
  return TM_OK;
}

tm_status tm_diff_wishes_parse(tm_diff_wishes *wishes, const tm_arguments *arguments, tm_error *error) {
  const char *by = tm_arguments_value(arguments, "by"), *tolerance = tm_arguments_value(arguments, "tolerance");
  *wishes = (tm_diff_wishes){ .by = TM_BY_TENSOR, .tolerance = -1 };
  wishes->is_exact = tm_arguments_has(arguments, "exact");
  wishes->with_same = tm_arguments_has(arguments, "all");
  wishes->names_only = tm_arguments_has(arguments, "names-only");
  if (wishes->is_exact && tolerance != NULL)
    return tm_refuse(error, TM_ERROR_ARGUMENT, "--exact and --tolerance contradict each other; give one of them");
  if (by != NULL) {
    const tm_status status = parse_key(by, &wishes->by, error);
    if (status != TM_OK) return status;
  }
  return tolerance != NULL ? parse_tolerance(tolerance, &wishes->tolerance, error) : TM_OK;
}
