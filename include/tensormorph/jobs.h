/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs.h - the part of tensormorph.h that is about long work over checkpoints, in the background: what all jobs have in common, and
 * each of them.  tensormorph.h includes it, and what stands at its head (ownership, structs, threads) holds here, too.
 */
#ifndef TENSORMORPH_JOBS_H
#define TENSORMORPH_JOBS_H

#include "tensormorph.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

typedef struct tm_checkpoint tm_checkpoint;     /* checkpoints.h */

/* -------------------------------------------------------------------------------------------------------- jobs ---- */

/* [any thread] tm_job_destroy is the exception.  Rows, notes and figures may be read while the job runs. */
typedef struct tm_job tm_job;

#define TM_COLUMN_TEXT    1u
#define TM_COLUMN_COUNT   2u            /* unsigned */
#define TM_COLUMN_NUMBER  3u            /* f64 */
#define TM_COLUMN_SHAPE   4u            /* list of unsigned */
#define TM_COLUMN_BYTES   5u            /* unsigned, a size */

typedef struct tm_column {
  const char *name;                     /* as in JSON */
  uint32_t    type;                     /* TM_COLUMN_* */
  uint32_t    reserved;
  const char *help;                     /* one sentence; units included */
} tm_column;

/* One cell.  `defined` 0: there is no such number (the mean of nothing). */
typedef struct tm_cell {
  uint32_t    type;                     /* TM_COLUMN_*: which member holds */
  uint32_t    defined;
  uint64_t    count;                    /* COUNT, BYTES; of TEXT its length, of SHAPE its rank */
  double      number;
  const char *text;
  const uint64_t *shape;
} tm_cell;

typedef struct tm_progress {
  uint32_t struct_size;
  uint32_t finished;                    /* 1: no more will happen; tm_job_wait tells how it ended */
  uint64_t bytes_done;                  /* never more than the total; less at the end of a check or diff that did not read all */
  uint64_t bytes_total;                 /* 0 until the job has found out, like items_total; fixed from then on */
  uint64_t items_done;                  /* tensors, of a diff those of both sides; of a check those that were examined whole */
  uint64_t items_total;
  uint64_t elapsed_ns;
} tm_progress;

/* How much one device did for a job. */
typedef struct tm_device_usage {
  uint32_t    struct_size;
  uint32_t    device;
  const char *device_name;
  uint64_t    operation_count;
  uint64_t    bytes;
  uint64_t    busy_ns;                  /* sum over operations; may exceed the job's time when they overlap */
} tm_device_usage;

/* Called once on the job's own thread when it has ended; must not call tm_job_wait or tm_job_destroy on it. */
typedef void (*tm_job_complete_fn)(void *complete_context, tm_job *job);

typedef struct tm_stats_options {
  uint32_t struct_size;
  uint32_t worst_numerics;              /* TM_NUMERICS_*, or TM_NUMERICS_DEFAULT */
  const char *const *include;           /* glob patterns over names; none: all */
  const char *const *exclude;
  uint32_t include_count;
  uint32_t exclude_count;
  tm_job_complete_fn complete;          /* NULL: none */
  void    *complete_context;
} tm_stats_options;

/*
 * Statistics of every tensor, in one pass, in file order.  Columns: file, name, dtype, shape, count, nan, pos_inf,
 * neg_inf, zero, subnormal, min, max, abs_max, mean, std, l2 (the last six of the finite values; std is the population's).
 * A tensor whose type has no arithmetic gets a row with undefined figures and a note.  options may be NULL; options and
 * patterns are copied, the checkpoints outlive the job.
 * Returns at once, whatever the number of tensors: the job itself finds out which ones are meant.  So a pattern that matches
 * nothing makes the job end, before any row and with totals still 0, and tm_job_wait returns TM_ERROR_NOT_FOUND with a
 * suggestion in its text; so do patterns that exclude all that there is.
 * TM_ERROR_ARGUMENT, TM_ERROR_NO_MEMORY
 */
tm_status tm_job_start_stats(tm_context *context, tm_checkpoint *const *checkpoints, uint32_t checkpoint_count,
                             const tm_stats_options *options, tm_job **out_job, tm_error *error);

typedef struct tm_check_options {
  uint32_t struct_size;
  uint32_t reserved;
  const char *const *include;           /* glob patterns over names; none: all.  They choose whose values are examined */
  const char *const *exclude;
  uint32_t include_count;
  uint32_t exclude_count;
  tm_job_complete_fn complete;          /* NULL: none */
  void    *complete_context;
} tm_check_options;

/*
 * What is wrong with the checkpoints at these paths (files, indexes of sharded sets, folders): one row each thing.  Columns: file,
 * level ("finding": something is wrong; "note": worth knowing; "trouble": it could not be examined), kind, tensor, dtype, shape,
 * count, total, first, slices, other, message.  Kinds:
 *   structure         what the reader refuses, and files that are something else
 *   missing_shard, stray_shard, missing_tensor, misplaced_tensor, unindexed_tensor, duplicate_tensor    index against shards
 *   interrupted       a complete checkpoint was being put in its place here: tm_writer_begin, tm_writer_recover
 *   missing_index     files that are parts of one model by their names, and no index (of which some are missing: missing_shard)
 *   truncated_file, truncated       the file, and each tensor that it ends before
 *   nan, inf          count elements of total; first: an index; slices: where on the outermost axis, from three axes on
 *   block_scale       likewise count blocks whose scale is not finite; the last number of first counts blocks in a row
 *   unexamined        values of a type that this version does not know
 *   tied, zero, odd   notes: equal bytes in another tensor (other), nothing but zeros, what a reader finds odd
 *   unreadable, changed             trouble: not there, not readable, or changed meanwhile
 * Rows about files come first, then those about values in file order, then ties.  Trouble with one file costs the others nothing,
 * and the job ends with TM_OK.  options may be NULL; all is copied.  Returns at once: files are opened by the job itself.
 * Patterns that match nothing, or leave nothing, end it as they end statistics, unless there are findings or trouble about files:
 * then those are its rows, and a note tells of the pattern.
 * TM_ERROR_ARGUMENT, TM_ERROR_NO_MEMORY
 */
tm_status tm_job_start_check(tm_context *context, const char *const *paths, uint32_t path_count, const tm_check_options *options,
                             tm_job **out_job, tm_error *error);

#define TM_DIFF_BY_NAME 0x1u            /* nothing is paired by content */

typedef struct tm_diff_options {
  uint32_t struct_size;
  uint32_t worst_numerics;              /* TM_NUMERICS_*, or TM_NUMERICS_DEFAULT */
  uint32_t flags;                       /* TM_DIFF_* */
  uint32_t reserved;
  const char *const *include;           /* glob patterns over names; none: all.  A pair counts if one of its names does, */
  const char *const *exclude;           /* and neither is excluded */
  uint32_t include_count;
  uint32_t exclude_count;
  tm_job_complete_fn complete;          /* NULL: none */
  void    *complete_context;
} tm_diff_options;

/*
 * Where two checkpoints, of whatever formats, differ: a row each pair of tensors and each that has no counterpart.  Columns:
 * verdict, name and other_name (in a and in b), paired, dtype and other_dtype, shape and other_shape, count, equal, changed,
 * nonfinite, max_abs, max_rel, rel_l2, cosine, distance, norm, other_norm, bytes and other_bytes.  What there is not is undefined:
 * the name and the rest in a of what was added, figures of what was not compared, a quotient by 0.
 *
 * Tensors of one name are a pair, and so are those of two files with one tensor each if one of them is npy, which has no names
 * ("single").  What is left over is paired by content, unless TM_DIFF_BY_NAME: where bytes are equal; where they are in another
 * format and decode to the same; where one is the transpose of the other (all axes in reverse order); where one is f16 or bf16 and
 * the other, a float of another format, rounds to it.  Of several that would do the one with the nearest name is taken; a few
 * elements or a constant are paired only where there is no choice, where names that end alike leave none, or where a layer has as
 * many on either side, and never tied.  `paired` says how: "name", "single", "content", "decoded", "transposed", "rounded".
 * `verdict` is one of
 *   identical         all bits equal, as are name, format and shape
 *   renamed           the same under another name
 *   tied              equal to a tensor that has another equal counterpart, which has a row of its own: one tensor stored several times
 *   retyped           another format, or other bits of a block format, and every element decodes to the same value
 *   transposed        the elements of the other one with its axes in reverse order; all equal, or at least much nearer to them than
 *                     to the same elements in its own order
 *   reshaped          another shape, axes of 1 included.  Where the number of elements is the same they are compared in order of
 *                     index; all equal or not is what `equal` says
 *   changed           the same shape, and some elements differ
 *   added, removed    in b only, in a only
 *   unexamined        not known to be equal: of two types of which this version cannot decode one, or cut off by the end of its file
 * Of a format that cannot be decoded bytes are compared; how many elements of blocks differ is then not defined.  Nor are figures whose
 * squares f64 does not hold, and norms of which nothing is left.
 *
 * Pairs of one name come first, in a's order, then those paired by content, then what was removed and what was added; the rows are
 * the same whatever devices and threads there are, as far as worst_numerics leaves them no choice.  options may be NULL; options
 * and patterns are copied, the checkpoints outlive the job and may be the same.  Returns at once.  A pattern that matches nothing in
 * either ends it as it ends statistics.  After an incomplete tensor it goes on and ends with TM_ERROR_CORRUPT.
 * TM_ERROR_ARGUMENT, TM_ERROR_NO_MEMORY
 */
tm_status tm_job_start_diff(tm_context *context, tm_checkpoint *a, tm_checkpoint *b, const tm_diff_options *options, tm_job **out_job,
                            tm_error *error);

/* TM_PENDING while it runs (timeout_ns 0 polls, UINT64_MAX waits for ever), then how it ended, however often it is asked:
   TM_OK, TM_ERROR_CANCELLED, TM_ERROR_NOT_FOUND (a pattern that matches nothing), TM_ERROR_CHANGED, TM_ERROR_IO,
   TM_ERROR_NO_DEVICE, TM_ERROR_NO_MEMORY, ...; error gets the text. */
tm_status tm_job_wait(tm_job *job, uint64_t timeout_ns, tm_error *error);
/* Asks it to end soon (within 100 ms); returns at once.  Safe to call from a signal handler. */
void tm_job_cancel(tm_job *job);
void tm_job_progress(const tm_job *job, tm_progress *out_progress);
/* What its rows consist of; fixed from the start. */
const tm_column *tm_job_columns(const tm_job *job, uint32_t *out_count);
/* Rows finished so far; rows are never changed or removed. */
uint64_t tm_job_row_count(const tm_job *job);
/* Fills one cell a column.  Texts live as long as the job.   TM_OK, TM_END (not there yet) */
tm_status tm_job_row(const tm_job *job, uint64_t row, tm_cell *out_cells);
/* TM_OK, TM_END */
tm_status tm_job_device_usage(const tm_job *job, uint32_t index, tm_device_usage *out_usage);
/* What fell back and why, what could not be computed: one sentence each.  TM_OK, TM_END */
tm_status tm_job_note(const tm_job *job, uint32_t index, const char **out_note);
/* Cancels it if it runs, waits for its end, frees it. */
void tm_job_destroy(tm_job *job);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif /* TENSORMORPH_JOBS_H */
