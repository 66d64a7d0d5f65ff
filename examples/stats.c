/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of every tensor of a checkpoint, printed while the job runs:  stats FILE */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <tensormorph/tensormorph.h>

#define POLL_NS UINT64_C(50000000)
#define MOST_COLUMNS 32

static int complain(const char *what, const tm_error *error) {
  fprintf(stderr, "%s: %s\n", what, error->text);
  return 1;
}

static void print_cell(const tm_cell *cell) {
  if (!cell->defined) {
    printf("\t-");
  } else if (cell->type == TM_COLUMN_NUMBER) {
    printf("\t%g", cell->number);
  } else if (cell->type == TM_COLUMN_TEXT) {
    printf("\t%.*s", (int)cell->count, cell->text);
  } else if (cell->type == TM_COLUMN_SHAPE) {
    for (uint64_t i = 0; i < cell->count; i++) printf("%s%" PRIu64, i == 0 ? "\t" : "x", cell->shape[i]);
    if (cell->count == 0) printf("\tscalar");
  } else {
    printf("\t%" PRIu64, cell->count);
  }
}

/* Prints the rows from `first` on that are there by now and returns how many there are. */
static uint64_t print_rows(const tm_job *job, uint64_t first) {
  tm_cell cells[MOST_COLUMNS];
  uint32_t columns = 0;
  (void)tm_job_columns(job, &columns);
  uint64_t row = first;
  for (; columns <= MOST_COLUMNS && tm_job_row(job, row, cells) == TM_OK; row++) {
    for (uint32_t i = 0; i < columns; i++) print_cell(&cells[i]);
    printf("\n");
  }
  return row;
}

static void print_progress(const tm_job *job) {
  tm_progress progress = { .struct_size = sizeof progress };
  tm_job_progress(job, &progress);
  fprintf(stderr, "%" PRIu64 " of %" PRIu64 " bytes, %" PRIu64 " of %" PRIu64 " tensors\n", progress.bytes_done,
          progress.bytes_total, progress.items_done, progress.items_total);
}

static int follow(tm_job *job) {
  tm_error error = { .struct_size = sizeof error };
  uint32_t columns = 0;
  const tm_column *column = tm_job_columns(job, &columns);
  for (uint32_t i = 0; i < columns; i++) printf("\t%s", column[i].name);
  printf("\n");
  uint64_t printed = 0;
  tm_status status;
  do {
    status = tm_job_wait(job, POLL_NS, &error);
    printed = print_rows(job, printed);
    print_progress(job);
  } while (status == TM_PENDING);
  const char *note = NULL;
  for (uint32_t i = 0; tm_job_note(job, i, &note) == TM_OK; i++) fprintf(stderr, "note: %s\n", note);
  return status == TM_OK ? 0 : complain("stats", &error);
}

int main(int argument_count, char **arguments) {
  if (argument_count != 2) {
    fprintf(stderr, "usage: %s FILE\n", arguments[0]);
    return 2;
  }
  tm_error error = { .struct_size = sizeof error };
  const tm_context_options options = { .struct_size = sizeof options, .flags = TM_CONTEXT_MAP_FILES };
  tm_context *context = NULL;
  tm_checkpoint *checkpoint = NULL;
  tm_job *job = NULL;
  int result = 0;
  if (tm_context_create(&options, &context, &error) != TM_OK)
    result = complain("context", &error);
  else if (tm_checkpoint_open(context, arguments[1], 0, &checkpoint, &error) != TM_OK)
    result = complain("open", &error);
  else if (tm_job_start_stats(context, &checkpoint, 1, NULL, &job, &error) != TM_OK)
    result = complain("start", &error);
  else
    result = follow(job);
  tm_job_destroy(job);
  tm_checkpoint_close(checkpoint);
  tm_context_destroy(context);
  return result;
}
