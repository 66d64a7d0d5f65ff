/* SPDX-License-Identifier: Apache-2.0 */
/* stats_row.h - one tensor's line of a statistics job: its columns, what stands in them, and why some are empty. */
#ifndef TM_JOBS_STATS_ROW_H
#define TM_JOBS_STATS_ROW_H

#include "formats/archive.h"
#include "jobs/job.h"
#include "jobs/stats_figures.h"

#define TM_STATS_COLUMNS 16u
extern const tm_column tm_stats_columns[TM_STATS_COLUMNS];

/* Which tensor it is; its figures are still undefined.  Texts are the archive's. */
void tm_stats_row_identify(const char *path, const tm_archive_tensor *tensor, tm_cell *cells);
void tm_stats_row_fill(const uint64_t *words, const tm_moments *moments, tm_cell *cells);

/* Whether the tensor can have figures. */
bool tm_stats_row_is_possible(const tm_archive_tensor *tensor);
/* Whether it has none; then the job's notes say why. */
bool tm_stats_row_has_none(tm_job *job, const tm_archive_tensor *tensor);
/* Notes it if figures are missing since values, though finite, have squares or sums beyond the range of f64. */
void tm_stats_row_note_gaps(tm_job *job, const tm_archive_tensor *tensor, const tm_cell *cells, double finite_count);

#endif
