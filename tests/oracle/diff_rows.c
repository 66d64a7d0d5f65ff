/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_rows.c - what a comparison of two checkpoints says, for oracle scripts in other languages:
 *   diff_rows threads map|read flags A B [pattern ...]
 * prints a line each row, a line each note, and how it ended; a row's cells stand between tabs, "-" for an undefined one, names in
 * hex.  A pattern that begins with "!" excludes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensormorph/tensormorph.h"

#define MOST_COLUMNS 64
#define MOST_PATTERNS 16

static void print_cell(const tm_cell *cell, int is_name) {
  if (cell->defined == 0) printf("-");
  else if (cell->type == TM_COLUMN_NUMBER) printf("%.17g", cell->number);
  else if (cell->type == TM_COLUMN_SHAPE)
    for (uint64_t i = 0; i < cell->count; i++) printf("%s%" PRIu64, i == 0 ? "" : ",", cell->shape[i]);
  else if (cell->type != TM_COLUMN_TEXT) printf("%" PRIu64, cell->count);
  else if (!is_name) printf("%s", cell->text);
  else
    for (uint64_t i = 0; i < cell->count; i++) printf("%02x", (unsigned char)cell->text[i]);
}

static void print_rows(const tm_job *job) {
  tm_cell cells[MOST_COLUMNS];
  const char *note = NULL;
  uint32_t count = 0;
  const tm_column *columns = tm_job_columns(job, &count);
  printf("columns");
  for (uint32_t i = 0; i < count; i++) printf("\t%s", columns[i].name);
  for (uint64_t row = 0; tm_job_row(job, row, cells) == TM_OK; row++) {
    printf("\nrow");
    for (uint32_t i = 0; i < count; i++) {
      printf("\t");
      print_cell(&cells[i], strstr(columns[i].name, "name") != NULL);
    }
  }
  printf("\n");
  for (uint32_t i = 0; tm_job_note(job, i, &note) == TM_OK; i++) printf("note\t%s\n", note);
}

static void take_patterns(int argc, char **argv, tm_diff_options *options, const char **include, const char **exclude) {
  options->include = include;
  options->exclude = exclude;
  for (int i = 0; i < argc && i < MOST_PATTERNS; i++) {
    if (argv[i][0] == '!') exclude[options->exclude_count++] = argv[i] + 1;
    else include[options->include_count++] = argv[i];
  }
}

int main(int argc, char **argv) {
  if (argc < 6) return 2;
  const char *include[MOST_PATTERNS], *exclude[MOST_PATTERNS];
  tm_error error = { .struct_size = sizeof error };
  tm_context_options options = { .struct_size = sizeof options, .thread_count = (uint32_t)atoi(argv[1]) };
  if (strcmp(argv[2], "map") == 0) options.flags = TM_CONTEXT_MAP_FILES;
  tm_diff_options diff = { .struct_size = sizeof diff, .worst_numerics = TM_NUMERICS_DEFAULT, .flags = (uint32_t)atoi(argv[3]) };
  take_patterns(argc - 6, argv + 6, &diff, include, exclude);
  tm_context *context = NULL;
  tm_checkpoint *a = NULL, *b = NULL;
  tm_job *job = NULL;
  tm_status status = tm_context_create(&options, &context, &error);
  if (status == TM_OK) status = tm_checkpoint_open(context, argv[4], TM_CHECKPOINT_ALLOW_INCOMPLETE, &a, &error);
  if (status == TM_OK) status = tm_checkpoint_open(context, argv[5], TM_CHECKPOINT_ALLOW_INCOMPLETE, &b, &error);
  if (status == TM_OK) status = tm_job_start_diff(context, a, b, &diff, &job, &error);
  if (status == TM_OK) {
    tm_progress progress = { .struct_size = sizeof progress };
    status = tm_job_wait(job, UINT64_MAX, &error);
    print_rows(job);
    tm_job_progress(job, &progress);
    printf("progress\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", progress.bytes_done, progress.bytes_total, progress.items_done,
           progress.items_total);
  }
  printf("end\t%d\t%s\n", (int)status, status == TM_OK ? "" : error.text);
  tm_job_destroy(job);
  tm_checkpoint_close(b);
  tm_checkpoint_close(a);
  tm_context_destroy(context);
  return 0;
}
