/* SPDX-License-Identifier: Apache-2.0 */
/* centred_pass.h - the statistics of a tensor's distance from its mean: a second pass over its bytes, in exact operations. */
#ifndef TM_JOBS_CENTRED_PASS_H
#define TM_JOBS_CENTRED_PASS_H

#include "execute/work_stream.h"
#include "formats/archive.h"
#include "tensor/format.h"

typedef struct tm_centred_pass {
  const tm_runner       *runner;
  const tm_archive      *archive;
  uint64_t               tensor;        /* index in the archive */
  const tm_format_info  *info;
  double                 centre;
  tm_work_stream_room        *room;          /* for bytes of files that are not mapped */
} tm_centred_pass;

/* Called with each operation that was run on statistics themselves. */
typedef void (*tm_centred_count_fn)(void *context, const tm_run_outcome *outcome);

/* out_words: TM_STATS_WORDS.   TM_ERROR_CANCELLED, TM_ERROR_NO_MEMORY, as tm_archive_read and tm_runner_run */
tm_status tm_centred_pass_run(const tm_centred_pass *pass, tm_centred_count_fn count, void *count_context, uint64_t *out_words,
                              tm_error *error);

#endif
