/* SPDX-License-Identifier: Apache-2.0 */
/* merge_provenance.h - how a merge was made, as JSON for the result's metadata; the keys are those of a recipe. */
#ifndef TM_JOBS_MERGE_PROVENANCE_H
#define TM_JOBS_MERGE_PROVENANCE_H

#include "base/content_hash.h"
#include "formats/byte_buffer.h"
#include "jobs/merge_settings.h"

/* hashes: of what was read of each source; NULL: zeros.  The length does not depend on them. */
void tm_merge_provenance_print(const tm_merge_settings *settings, const tm_content_hash *hashes, tm_byte_buffer *buffer);

#endif
