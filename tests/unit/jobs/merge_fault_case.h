/* SPDX-License-Identifier: Apache-2.0 */
/* merge_fault_case.h - small models that are merged in a context with a faulty device, and what comes of it without. */
#ifndef TM_TESTS_UNIT_JOBS_MERGE_FAULT_CASE_H
#define TM_TESTS_UNIT_JOBS_MERGE_FAULT_CASE_H

#include "fakes/faulty_case.h"
#include "formats/scratch.h"

#define ROWS 96u
#define COLUMNS 700u
#define TENSORS 3u
#define TENSOR_BYTES (ROWS * COLUMNS * 4u)

static scratch files;
static char paths[3][1024];

/* safetensors of some f32 tensors with values of their own. */
static inline void write_model(const char *name, uint32_t seed, char out_path[1024]) {
  char header[512];
  int length = snprintf(header, sizeof header, "{");
  for (uint32_t i = 0; i < TENSORS; i++)
    length += snprintf(header + length, sizeof header - (size_t)length,
                       "%s\"w%u\":{\"dtype\":\"F32\",\"shape\":[%u,%u],\"data_offsets\":[%u,%u]}", i == 0 ? "" : ",", i, ROWS, COLUMNS,
                       i * TENSOR_BYTES, (i + 1) * TENSOR_BYTES);
  length += snprintf(header + length, sizeof header - (size_t)length, "}");
  while (length % 8 != 0) header[length++] = ' ';
  unsigned char *bytes = calloc(1, 8 + (size_t)length + TENSORS * TENSOR_BYTES);
  assert_non_null(bytes);
  bytes[0] = (unsigned char)length;
  bytes[1] = (unsigned char)(length >> 8);
  memcpy(bytes + 8, header, (size_t)length);
  for (uint32_t i = 0; i < TENSORS * ROWS * COLUMNS; i++) {
    const float value = (float)((i * 2654435761u + seed * 40503u) % 2001u) / 1000 - 1;
    memcpy(bytes + 8 + length + 4 * (size_t)i, &value, sizeof value);
  }
  assert_non_null(scratch_write(&files, name, bytes, 8 + (uint64_t)length + TENSORS * TENSOR_BYTES));
  (void)snprintf(out_path, 1024, "%s", scratch_path(&files, name));
  free(bytes);
}

typedef struct merge_case {
  tm_checkpoint *models[2], *base;
  tm_merge_plan *plan;
  tm_job        *job;
} merge_case;

/* How it ended; what it wrote is in out.safetensors. */
static inline tm_status merge(tm_context *context, uint32_t method, merge_case *m, tm_error *error) {
  const tm_merge_rule density = { .what = TM_MERGE_SET_DENSITY, .model = TM_MERGE_EVERY_MODEL, .value = 0.25 };
  char out[1024];
  (void)snprintf(out, sizeof out, "%s", scratch_path(&files, "out.safetensors"));
  *m = (merge_case){ .base = NULL };
  for (uint32_t i = 0; i < 2; i++) TM_TRY(tm_checkpoint_open(context, paths[i], 0, &m->models[i], error));
  TM_TRY(tm_checkpoint_open(context, paths[2], 0, &m->base, error));
  const bool has_base = method == TM_MERGE_TIES || method == TM_MERGE_DARE;
  const tm_merge_options options = { .struct_size = sizeof options, .method = method, .models = m->models, .model_count = 2,
                                     .base = has_base ? m->base : NULL, .rules = &density, .rule_count = 1, .seed = 7 };
  TM_TRY(tm_merge_plan_create(context, &options, out, &m->plan, error));
  TM_TRY(tm_job_start_merge(m->plan, NULL, &m->job, error));
  return tm_job_wait(m->job, UINT64_MAX, error);
}

static inline void end_merge(merge_case *m) {
  tm_job_destroy(m->job);
  tm_merge_plan_destroy(m->plan);
  for (uint32_t i = 0; i < 2; i++) tm_checkpoint_close(m->models[i]);
  tm_checkpoint_close(m->base);
}

/* NULL: there is none. */
static inline unsigned char *take_result(uint64_t *out_size) {
  char out[1024];
  (void)snprintf(out, sizeof out, "%s", scratch_path(&files, "out.safetensors"));
  if (access(out, F_OK) != 0) return NULL;
  unsigned char *bytes = scratch_slurp(out, out_size);
  (void)unlink(out);
  return bytes;
}

static inline unsigned char *undisturbed(uint32_t method, uint64_t *out_size) {
  const tm_context_options options = { .struct_size = sizeof options, .thread_count = 2 };
  tm_context *context = open_context(&options);
  tm_error error = TM_ERROR_INIT;
  merge_case m;
  if (merge(context, method, &m, &error) != TM_OK) fail_msg("%s", error.text);
  end_merge(&m);
  tm_context_destroy(context);
  return take_result(out_size);
}

static inline int set_up(void **state) {
  (void)state;
  if (!scratch_init(&files)) return -1;
  write_model("a.safetensors", 1, paths[0]);
  write_model("b.safetensors", 2, paths[1]);
  write_model("base.safetensors", 3, paths[2]);
  return 0;
}

static inline int tear_down(void **state) {
  (void)state;
  scratch_deinit(&files);
  return 0;
}

#endif
