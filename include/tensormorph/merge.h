/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.h - the part of tensormorph.h that is about making one checkpoint of several.  tensormorph.h includes it, and what
 * stands at its head (ownership, structs, threads) holds here, too.
 *
 *     tm_merge_plan_create     everything is decided and checked, nothing is written; of the tensors no more is read than it takes
 *                              to tell checkpoints apart, and those that cannot be computed with, until two differ
 *     tm_merge_plan_row ...    what will be done with each tensor, and why
 *     tm_job_start_merge       carries the plan out; a job like any other
 */
#ifndef TENSORMORPH_MERGE_H
#define TENSORMORPH_MERGE_H

#include "tensormorph.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

typedef struct tm_checkpoint tm_checkpoint;     /* checkpoints.h */
typedef struct tm_writer_file_description tm_writer_file_description;
typedef struct tm_job tm_job;                   /* jobs.h */
typedef struct tm_column tm_column;
typedef struct tm_cell tm_cell;

/* ------------------------------------------------------------------------------------------------------- methods ---- */

/*
 * x_i: the tensor of model i, b: that of the base; w_i, density_i, t and scale: see rules.  Inputs of any float format or a block
 * format with a decoder, each its own; all is computed in f64 and rounded once, to the format of the result, or to f32 before that
 * becomes blocks.
 *
 *   linear  sum w_i x_i, the weights divided by their sum unless told otherwise
 *   slerp   of two models: the point at t on the arc between both, each tensor taken as one vector (Shoemake 1985), whose norms and
 *           angle are those of its finite elements
 *   task    b + scale * sum w_i (x_i - b)  (Ilharco et al., arXiv 2212.04089)
 *   ties    b + scale * what is left of the differences after trimming and electing signs  (Yadav et al., arXiv 2306.01708)
 *   dare    as task, but each element of a difference is dropped with the probability 1 - density_i and else divided by
 *           density_i  (Yu et al., arXiv 2311.03099)
 *
 * Where the factors of linear and slerp have to sum to 1, equal inputs give their own bits, whatever the float format, but for NaN.
 * To that end these factors are multiples of 2^-28 and sum to 1 exactly, the remainder going to the largest; where an input is
 * f64 they are what dividing gives, and there, and where a weight is below 0, elements that all inputs have alike are taken over.
 * Those on slerp's arc, and weights that are kept as they are (TM_MERGE_KEEP_WEIGHTS), are not rounded.  With t = 0 and t = 1 slerp
 * is the first and the second model.  A weight of 0 leaves the model out: nothing of it can be missing, and what nobody else has is
 * not of the result; but where all weights are 0, and kept, the result is zeros.  What has one factor, of 1, is copied, unless its
 * format is to change.
 * The inputs are taken in an order of their own (weight, then density, then what the checkpoints hold), so neither their paths nor
 * the order in which they are named change a byte of a tensor; but for dare, whose masks are keyed by the seed, the tensor's name,
 * the model's place among those named and the element.  dare with a density of 1 is task, bit for bit.
 * Where what is computed is NaN, it is the quiet one without sign and payload, whatever the inputs' were; what is copied keeps all
 * bits.
 */
#define TM_MERGE_LINEAR 1u
#define TM_MERGE_SLERP  2u
#define TM_MERGE_TASK   3u
#define TM_MERGE_TIES   4u
#define TM_MERGE_DARE   5u

#define TM_MERGE_MOST_MODELS 13u

/* What a rule sets. */
#define TM_MERGE_SET_WEIGHT  1u         /* of a model; finite, default 1 */
#define TM_MERGE_SET_DENSITY 2u         /* of a model, for ties and dare; in (0, 1], default 1 */
#define TM_MERGE_SET_T       3u         /* for slerp; in [0, 1], default 0.5 */
#define TM_MERGE_SET_SCALE   4u         /* for task, ties and dare; finite, default 1 */
#define TM_MERGE_SET_FORMAT  5u         /* of the result: `format`; default: as in the checkpoint that leads */

#define TM_MERGE_EVERY_MODEL 0xffffffffu

/* For each tensor, model and setting the last rule with a pattern that matches counts, else the last one without a pattern. */
typedef struct tm_merge_rule {
  const char *pattern;                  /* glob pattern over names; NULL: every tensor */
  uint32_t what;                        /* TM_MERGE_SET_* */
  uint32_t model;                       /* of WEIGHT and DENSITY: index, or TM_MERGE_EVERY_MODEL; else it must be 0 */
  double   value;                       /* of all but FORMAT */
  uint32_t format;                      /* of FORMAT: any float, or a block format with an encoder; TM_FORMAT_NONE: the default.
                                           Integers and bool stay what they are, which the plan tells */
  uint32_t reserved;
} tm_merge_rule;

/* A tensor that not all checkpoints have. */
#define TM_MERGE_MISSING_FAIL 0u
#define TM_MERGE_MISSING_AVAILABLE 1u   /* merged of those that have it: for linear with their weights, for slerp copied from the
                                           one; who has none differs from the base in nothing; without a base tensor as COPY */
#define TM_MERGE_MISSING_COPY 2u        /* copied from the first that has it and takes part: the base, then models in their order */
#define TM_MERGE_MISSING_SKIP 3u        /* left out of the result */

/* A tensor whose outermost extents differ, the others being equal: rows of a vocabulary. */
#define TM_MERGE_ROWS_FAIL   0u
#define TM_MERGE_ROWS_COMMON 1u         /* the rows that all have; the rest is left out of the result */
#define TM_MERGE_ROWS_LEAD   2u         /* as many rows as the checkpoint that leads has, whatever its weight: common ones merged,
                                           its further ones taken over */
#define TM_MERGE_ROWS_LONGEST 3u        /* as many as the longest has: common ones merged, further ones taken over from the first
                                           that has the most */

/* A tensor whose shapes differ otherwise, or which cannot be computed with (integers, formats without arithmetic) and is not
   equal, bits and format, in all.  Equal ones are copied, whatever the weights. */
#define TM_MERGE_OTHER_FAIL 0u
#define TM_MERGE_OTHER_COPY 1u          /* copied from the checkpoint that leads, whatever its weight */
#define TM_MERGE_OTHER_SKIP 2u          /* left out of the result; so is what its file has no place for */

#define TM_MERGE_KEEP_WEIGHTS 0x1u      /* linear: weights as they are, whatever their sum */
#define TM_MERGE_NO_RESCALE   0x2u      /* dare: kept elements of a difference are not divided by the density */
#define TM_MERGE_TIES_SUM     0x4u      /* ties: the agreeing differences are added up, not averaged */

/* The key of the metadata under which a result tells how it was made, and what methods and policies are called there. */
#define TM_MERGE_RECORD_KEY "tensormorph.merge"
#define TM_MERGE_FORMAT_OF_LEAD "lead"  /* as a format: that of the checkpoint that leads */
#define TM_MERGE_EACH_METHOD(ROW) \
  ROW("linear", TM_MERGE_LINEAR) ROW("slerp", TM_MERGE_SLERP) ROW("task", TM_MERGE_TASK) ROW("ties", TM_MERGE_TIES) \
  ROW("dare", TM_MERGE_DARE)
#define TM_MERGE_EACH_MISSING(ROW) \
  ROW("fail", TM_MERGE_MISSING_FAIL) ROW("available", TM_MERGE_MISSING_AVAILABLE) ROW("copy", TM_MERGE_MISSING_COPY) \
  ROW("skip", TM_MERGE_MISSING_SKIP)
#define TM_MERGE_EACH_ROWS(ROW) \
  ROW("fail", TM_MERGE_ROWS_FAIL) ROW("common", TM_MERGE_ROWS_COMMON) ROW("lead", TM_MERGE_ROWS_LEAD) \
  ROW("longest", TM_MERGE_ROWS_LONGEST)
#define TM_MERGE_EACH_OTHER(ROW) \
  ROW("fail", TM_MERGE_OTHER_FAIL) ROW("copy", TM_MERGE_OTHER_COPY) ROW("skip", TM_MERGE_OTHER_SKIP)

/* Zero-initialise, then set struct_size, method and models.  Needed during tm_merge_plan_create only; the checkpoints outlive the
   plan. */
typedef struct tm_merge_options {
  uint32_t struct_size;
  uint32_t method;                      /* TM_MERGE_LINEAR ... */
  tm_checkpoint *const *models;         /* at least one; of slerp two */
  uint32_t model_count;
  uint32_t rule_count;
  const tm_merge_rule *rules;
  tm_checkpoint *base;                  /* of task, ties and dare; else NULL */
  uint64_t seed;                        /* of dare */
  uint32_t flags;                       /* TM_MERGE_KEEP_WEIGHTS ... */
  uint32_t missing;                     /* TM_MERGE_MISSING_* */
  uint32_t rows;                        /* TM_MERGE_ROWS_* */
  uint32_t other;                       /* TM_MERGE_OTHER_* */
  uint32_t writer_format;               /* TM_WRITER_*; 0: GGUF for a path that ends in .gguf, else safetensors */
  uint32_t reserved;
  uint64_t shard_bytes;                 /* as in tm_writer_options */
  const volatile uint32_t *cancelled;   /* not 0: the plan is wanted no more; set by another thread, atomically, or by a signal
                                           handler.  NULL: it is */
} tm_merge_options;

/* ---------------------------------------------------------------------------------------------------------- plan ---- */

/* [any thread] for what is told of it; it never changes, but for the hashes in tm_merge_plan_provenance and the arcs of slerp in
   tm_merge_plan_part, and is destroyed after its job. */
typedef struct tm_merge_plan tm_merge_plan;

/*
 * Decides what will be done with every tensor.  The checkpoint that leads is the base where there is one, else the first model; for
 * a tensor that it lacks, the first that has it and takes part.  The result has the order of its tensors (those that only others
 * have come behind) and its metadata, and beside them the key TM_MERGE_RECORD_KEY: JSON with the version, method, settings, seed
 * and models of this merge.  Models have file names, with as many folders before as it takes to tell them apart, and the hash of
 * what was read of them: the sum of XXH3 (128 bits) of each 32768 elements of each tensor, with XXH3 (64 bits) of the tensor's name
 * plus the piece's number as seed.  So it is the same for every way to compute, and whether tensors were merged or copied, of
 * however many parts.  Of a tensor whose further rows nobody took over, what was read ends with the rows that all have, within a
 * piece, perhaps.  A checkpoint that is named twice has one hash.
 * Tensors of integers and of types without arithmetic that several models have are compared, byte by byte and in the calling
 * thread: where they are large and equal that takes as long as reading them.  The same goes for checkpoints that are copies of each
 * other.  `cancelled` ends it soon, wherever it is.
 * What stands in the way of the merge (a mismatch whose policy is to fail, a format that the file cannot hold, no room) is told by
 * the plan, in rows and problems, and is no error here.
 * TM_ERROR_ARGUMENT (options, weights or densities out of range, weights whose sum is nothing, no tensor that models have in
 * common, an output that is an input), TM_ERROR_NOT_FOUND (a pattern that matches nothing, with a suggestion; with native_code
 * ENOENT: no such folder), TM_ERROR_IO, TM_ERROR_CANCELLED, TM_ERROR_NO_MEMORY
 */
tm_status tm_merge_plan_create(tm_context *context, const tm_merge_options *options, const char *path, tm_merge_plan **out_plan,
                               tm_error *error);
void tm_merge_plan_destroy(tm_merge_plan *plan);

typedef struct tm_merge_description {
  uint32_t struct_size;
  uint32_t method;
  uint64_t tensor_count;                /* of the result */
  uint64_t merged_count;                /* of these: computed */
  uint64_t copied_count;                /* of these: taken over, by a policy or since one factor is 1 */
  uint64_t skipped_count;               /* left out of the result */
  uint64_t mismatch_count;              /* tensors about which something did not match, whatever is done */
  uint64_t refused_count;               /* tensors that stand in the way */
  uint64_t problem_count;               /* of tm_merge_plan_problem; 0: it can be carried out */
  uint64_t read_bytes;                  /* that the job will read, some perhaps twice (slerp and ties look at a tensor before) */
  uint64_t written_bytes;               /* of the result's tensors */
  uint64_t file_bytes;                  /* of all files of the result; 0 if it cannot be arranged */
  uint64_t free_bytes;                  /* of the file system; UINT64_MAX: nobody can tell */
  uint64_t memory_bytes;                /* what the context's memory comes to at most while it is planned and carried out, about:
                                           with what the context holds already, such as the names of tensors */
  uint32_t writer_format;               /* TM_WRITER_* */
  uint32_t file_count;                  /* of tm_merge_plan_file */
} tm_merge_description;
void tm_merge_plan_describe(const tm_merge_plan *plan, tm_merge_description *out_description);

/*
 * One row a tensor of the result, in its order, then one each for those left out.  Columns: name, action ("merge", "copy", "skip",
 * "refuse"), dtype, shape, bytes (of the result), models (those that take part, by file names or "base"), weights (their factors,
 * as text, and a scale that is not 1; of slerp t), mismatch ("", "missing", "rows", "shape", "type", "format": the file cannot hold
 * the result), message ("" or a sentence: what does not match and what is done, a weight that is too small to count, or a format
 * that is asked for in vain).
 */
const tm_column *tm_merge_plan_columns(const tm_merge_plan *plan, uint32_t *out_count);
uint64_t tm_merge_plan_row_count(const tm_merge_plan *plan);
/* Fills one cell a column.  Texts live as long as the plan.   TM_OK, TM_END past the last, TM_ERROR_NO_MEMORY */
tm_status tm_merge_plan_row(const tm_merge_plan *plan, uint64_t row, tm_cell *out_cells);

#define TM_MERGE_PART_BASE 0xffffffffu

/* One of those that take part in a row, as numbers: what the columns models and weights tell in words. */
typedef struct tm_merge_part_description {
  uint32_t    struct_size;
  uint32_t    model;                    /* its index among those of the options; TM_MERGE_PART_BASE */
  const char *name;                     /* as in models; lives as long as the plan */
  double      weight;                   /* its factor, or that of its difference without scale and density; of slerp 1 - t and t,
                                           and the factors when the job has written the tensor; NaN: the base, which has none */
  double      density;                  /* NaN: its method knows none, or it is the base */
  double      scale;                    /* of the row's method; NaN: it knows none */
  double      angle;                    /* of slerp, in radians, when the job has written the tensor; NaN: linear, or none */
} tm_merge_part_description;
/* In the order of the arithmetic, a base first; a copy has one, what is left out or refused has none.
   TM_OK, TM_END past the last of that row */
tm_status tm_merge_plan_part(const tm_merge_plan *plan, uint64_t row, uint32_t part, tm_merge_part_description *out_description);
/* What stands in the way: one sentence each, of refused tensors one for all of a kind.   TM_OK, TM_END past the last */
tm_status tm_merge_plan_problem(const tm_merge_plan *plan, uint64_t index, const char **out_problem);
/* What is worth knowing: what is odd about the inputs, metadata that the format cannot hold ...   TM_OK, TM_END past the last */
tm_status tm_merge_plan_note(const tm_merge_plan *plan, uint64_t index, const char **out_note);
/* As tm_writer_file and tm_writer_removal.   TM_OK, TM_END past the last, and where the result cannot be arranged */
tm_status tm_merge_plan_file(const tm_merge_plan *plan, uint64_t file, tm_writer_file_description *out_description);
tm_status tm_merge_plan_removal(const tm_merge_plan *plan, uint64_t index, const char **out_path);
/* The JSON of "tensormorph.merge"; hashes are zeros before the job has ended. */
const char *tm_merge_plan_provenance(const tm_merge_plan *plan);

/* ----------------------------------------------------------------------------------------------------------- job ---- */

typedef struct tm_merge_job_options {
  uint32_t struct_size;
  uint32_t reserved;
  void   (*complete)(void *complete_context, tm_job *job);      /* as tm_job_complete_fn; NULL: none */
  void    *complete_context;
} tm_merge_job_options;

/*
 * Carries the plan out, once.  Rows come as tensors are written, in the result's order.  Columns: name, action ("merge", "copy"),
 * dtype, shape, bytes, models, weights (the factors, slerp's too), then: change_max (largest distance of an element from the
 * checkpoint that leads), change_l2, change_rel (divided by the norm there; undefined if that is 0 and something changed), error_rel
 * (norm of what the result's block format lost, divided by the norm of the result; undefined for other formats), nonfinite (elements
 * that are NaN or infinite, and finite in the checkpoint that leads), unequal (elements whose bits are not those of the checkpoint
 * that leads; of two formats whose values are not).  The other figures are over finite values.  Changes are undefined where the
 * checkpoint that leads takes no part: what is copied from another is not compared with it.
 * Only devices with bit-equal results take part, so written bytes depend on the inputs alone.  A device that fails is left out. One
 * that hangs is given up where its calls are watched, which the first few of each kind are; later one that works in the calling
 * thread holds the job, and tm_job_wait with it, for as long as it hangs.  Nothing stands under the result's name before all is
 * there; a job that ends otherwise leaves everything as it was.  options may be NULL.
 * TM_ERROR_ARGUMENT (the plan has problems, or was carried out before), TM_ERROR_NO_MEMORY; the job itself: TM_ERROR_CHANGED (an
 * input changed meanwhile), TM_ERROR_IO, TM_BUSY (somebody else writes the same), TM_ERROR_CANCELLED, ...
 */
tm_status tm_job_start_merge(tm_merge_plan *plan, const tm_merge_job_options *options, tm_job **out_job, tm_error *error);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif /* TENSORMORPH_MERGE_H */
