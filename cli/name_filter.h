/* SPDX-License-Identifier: Apache-2.0 */
/* name_filter.h - tensors chosen by --tensor and --exclude. */
#ifndef TM_CLI_NAME_FILTER_H
#define TM_CLI_NAME_FILTER_H

#include "arguments.h"

#define TM_NAME_FILTER_FLAGS                                                                                           \
  { "tensor", 0, TM_FLAG_TEXT, false, "GLOB", "only tensors whose name matches (* ? [a-z]); repeatable" },             \
  { "exclude", 0, TM_FLAG_TEXT, false, "GLOB", "no tensors whose name matches; repeatable" }

typedef struct tm_name_filter {
  const char **include;
  const char **exclude;
  uint32_t     include_count;   /* 0: all */
  uint32_t     exclude_count;
  bool        *has_matched;     /* by included pattern: some name matched it */
} tm_name_filter;

/* The patterns belong to the arguments.   TM_ERROR_NO_MEMORY */
tm_status tm_name_filter_init(tm_name_filter *filter, const tm_arguments *arguments, tm_error *error);
void      tm_name_filter_deinit(tm_name_filter *filter);
bool      tm_name_filter_passes(tm_name_filter *filter, const char *name);
/* The first included pattern that no name matched so far; NULL if there is none. */
const char *tm_name_filter_idle(const tm_name_filter *filter);

#endif
