/* SPDX-License-Identifier: Apache-2.0 */
#include "name_filter.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"

tm_status tm_name_filter_init(tm_name_filter *filter, const tm_arguments *arguments, tm_error *error) {
  memset(filter, 0, sizeof *filter);
  filter->include = calloc(arguments->count + (size_t)1, sizeof *filter->include);
  filter->exclude = calloc(arguments->count + (size_t)1, sizeof *filter->exclude);
  filter->has_matched = calloc(arguments->count + (size_t)1, sizeof *filter->has_matched);
  if (filter->include == NULL || filter->exclude == NULL || filter->has_matched == NULL) {
    tm_name_filter_deinit(filter);
    return tm_refuse(error, TM_ERROR_NO_MEMORY, "out of memory");
  }
  filter->include_count = tm_arguments_all(arguments, "tensor", filter->include);
  filter->exclude_count = tm_arguments_all(arguments, "exclude", filter->exclude);
  return TM_OK;
}

void tm_name_filter_deinit(tm_name_filter *filter) {
  free(filter->include);
  free(filter->exclude);
  free(filter->has_matched);
  memset(filter, 0, sizeof *filter);
}

bool tm_name_filter_passes(tm_name_filter *filter, const char *name) {
  bool passes = filter->include_count == 0;
  /* Patterns without a match so far are tried also when another one has matched: each must be of use. */
  for (uint32_t i = 0; i < filter->include_count; i++)
    if ((!passes || !filter->has_matched[i]) && fnmatch(filter->include[i], name, 0) == 0)
      passes = filter->has_matched[i] = true;
  for (uint32_t i = 0; passes && i < filter->exclude_count; i++)
    if (fnmatch(filter->exclude[i], name, 0) == 0) passes = false;
  return passes;
}

const char *tm_name_filter_idle(const tm_name_filter *filter) {
  for (uint32_t i = 0; i < filter->include_count; i++)
    if (!filter->has_matched[i]) return filter->include[i];
  return NULL;
}
