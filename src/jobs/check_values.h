/* SPDX-License-Identifier: Apache-2.0 */
/* check_values.h - the rows of a check about one tensor's values: what is not finite, where, and in which slices. */
#ifndef TM_JOBS_CHECK_VALUES_H
#define TM_JOBS_CHECK_VALUES_H

#include "jobs/check_row.h"
#include "jobs/host_scan.h"

typedef struct tm_checked_tensor {
  tm_job                  *job;
  tm_host_scanner         *scanner;
  const char              *file;
  const tm_archive        *archive;
  uint64_t                 tensor;      /* index in the archive */
} tm_checked_tensor;

/* The row of a tensor none of whose values is other than 0. */
tm_status tm_check_values_report_zero(const tm_checked_tensor *checked, tm_error *error);
/* The rows of one that holds what is not finite.  Reads it again, to tell where.
   TM_ERROR_NO_MEMORY, TM_ERROR_CANCELLED, as tm_archive_read */
tm_status tm_check_values_report_nonfinite(const tm_checked_tensor *checked, tm_error *error);

#endif
