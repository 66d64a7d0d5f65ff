/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs on a device that computes something else than it promised, from its first launch on, from a later one, or now and then: rows are right, or it is
 * said which of them may not be.
 */
#define _GNU_SOURCE
#include "api/context.h"
#include "fakes/faulty_case.h"
#include "formats/scratch.h"

#define MOST_TENSORS 3000u
#define LARGE 30000u            /* elements: the reference would take longer than there is for a first look */
#define SMALL 1000u             /* ... for ten of these there is */
#define COLUMNS 32u

static void write_model(const char *path, uint32_t tensors, uint32_t elements) {
  static char header[MOST_TENSORS * 96];
  header[0] = '{';
  size_t length = 1;
  for (uint32_t i = 0; i < tensors; i++)
    length += (size_t)snprintf(header + length, sizeof header - length, "%s\"t%04u\":{\"dtype\":\"F32\",\"shape\":[%u],\"data_offsets\":[%u,%u]}",
                               i == 0 ? "" : ",", i, elements, i * elements * 4, (i + 1) * elements * 4);
  header[length++] = '}';
  while (length % 8 != 0) header[length++] = ' ';
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  const uint64_t header_bytes = length;
  assert_int_equal(fwrite(&header_bytes, 8, 1, file), 1);
  assert_int_equal(fwrite(header, 1, length, file), length);
  for (uint32_t i = 0; i < tensors * elements; i++) {
    const float value = (float)(i % 1013) - 500;
    assert_int_equal(fwrite(&value, 4, 1, file), 1);
  }
  assert_int_equal(fclose(file), 0);
}

typedef struct figures {
  uint32_t tensors;
  uint64_t words[MOST_TENSORS][COLUMNS];
  char     notes[4096];
} figures;

static void run_stats(tm_context *context, const char *path, figures *out) {
  tm_error error = TM_ERROR_INIT;
  tm_checkpoint *checkpoint = NULL;
  tm_job *job = NULL;
  memset(out, 0, sizeof *out);
  if (tm_checkpoint_open(context, path, 0, &checkpoint, &error) != TM_OK ||
      tm_job_start_stats(context, &checkpoint, 1, NULL, &job, &error) != TM_OK || tm_job_wait(job, UINT64_MAX, &error) != TM_OK)
    fail_msg("%s", error.text);
  uint32_t columns = 0;
  (void)tm_job_columns(job, &columns);
  tm_cell cells[COLUMNS];
  out->tensors = (uint32_t)tm_job_row_count(job);
  for (uint64_t row = 0; tm_job_row(job, row, cells) == TM_OK; row++)
    for (uint32_t i = 0; i < columns; i++) {
      out->words[row][i] = cells[i].count;
      if (cells[i].type == TM_COLUMN_NUMBER && cells[i].defined) memcpy(&out->words[row][i], &cells[i].number, sizeof(double));
    }
  const char *note = NULL;
  for (uint32_t i = 0; tm_job_note(job, i, &note) == TM_OK; i++)
    (void)snprintf(out->notes + strlen(out->notes), sizeof out->notes - strlen(out->notes), "%s\n", note);
  tm_job_destroy(job);
  tm_checkpoint_close(checkpoint);
}

static void expect_right_or_said(const figures *expected, const figures *got) {
  unsigned first = MOST_TENSORS, last = 0;
  const char *said = strstr(got->notes, "may be wrong, too: of ");
  if (said != NULL && sscanf(said, "may be wrong, too: of rows from t%u to t%u", &first, &last) != 2)
    assert_int_equal(sscanf(said, "may be wrong, too: of t%u", &first), 1);
  if (said != NULL && last < first) last = first;
  for (uint32_t row = 0; row < expected->tensors; row++) {
    if (memcmp(expected->words[row], got->words[row], sizeof got->words[row]) == 0) continue;
    if (row < first || row > last) fail_msg("row %u is wrong, and that was not said:\n%s", row, got->notes);
  }
}

static void stats_are_right_or_it_is_said(void **state) {
  static const struct { uint64_t first, each; uint32_t tensors, elements; } cases[] = {
    { 1, 0, 24, LARGE }, { 1, 0, 24, SMALL }, { 2, 0, 24, SMALL }, { 3, 0, 24, SMALL }, { 8, 0, 24, SMALL },
    { 700, 0, MOST_TENSORS, SMALL / 10 }, { 100, 2, MOST_TENSORS, SMALL / 10 }, { 100, 5, MOST_TENSORS, SMALL / 10 },
  };
  static figures expected, got;
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    scratch files;
    char path[1024];
    assert_true(scratch_init(&files));
    snprintf(path, sizeof path, "%s/model.safetensors", files.folder);
    write_model(path, cases[i].tensors, cases[i].elements);
    const tm_context_options options = options_with(NULL, 0);
    tm_context *honest = open_context(&options);
    run_stats(honest, path, &expected);
    tm_context_destroy(honest);
    assert_string_equal(expected.notes, "");
    faulty_case one = { .plan = { .function = FAULT_LAUNCH, .first = cases[i].first, .last = UINT64_MAX, .each = cases[i].each,
                              .kind = FAULT_WRONG, .output = 1 } };
    faulty_case_open(&one);
    atomic_store(&one.context->correction.is_frozen, true);     /* it stays as cheap as it says */
    run_stats(one.context, path, &got);
    assert_true(atomic_load(&one.plan.faults) != 0);
    if (strstr(got.notes, "a wrong result for stats") == NULL) fail_msg("from launch %u on: %s", (unsigned)cases[i].first, got.notes);
    assert_int_equal(expected.tensors, cases[i].tensors);
    assert_int_equal(got.tensors, cases[i].tensors);
    expect_right_or_said(&expected, &got);
    if (cases[i].tensors == MOST_TENSORS && memcmp(expected.words, got.words, sizeof got.words) != 0)
      assert_non_null(strstr(got.notes, "rows from t"));
    if (cases[i].first == 1) assert_memory_equal(expected.words, got.words, sizeof got.words);  /* nothing was wanted before it was found out */
    tm_context_destroy(one.context);
    scratch_deinit(&files);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(stats_are_right_or_it_is_said) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
