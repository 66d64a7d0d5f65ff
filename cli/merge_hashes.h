/* SPDX-License-Identifier: Apache-2.0 */
/* merge_hashes.h - whether models are still what a recipe has the hashes of. */
#ifndef TM_CLI_MERGE_HASHES_H
#define TM_CLI_MERGE_HASHES_H

#include "merge_request.h"

#define TM_MERGE_MOST_HASHES (TM_MERGE_MOST_MODELS + 1)

/* Nothing that the recipe has a hash of is compared. */
void tm_merge_hashes_forget(tm_merge_request *request);

/* Two entries with different hashes were two files, and cannot be one.   TM_ERROR_ARGUMENT */
tm_status tm_merge_hashes_check(const tm_merge_request *request, tm_error *error);

/* The paths of those of which something else was read now than the recipe has the hash of; returns how many.  record: what the
   merge says of itself. */
uint32_t tm_merge_hashes_compare(const tm_merge_request *request, const char *record, const char *out_paths[TM_MERGE_MOST_HASHES]);

#endif
