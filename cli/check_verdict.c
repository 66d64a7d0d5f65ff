/* SPDX-License-Identifier: Apache-2.0 */
#include "check_verdict.h"

#include <stdio.h>
#include <string.h>

#include "complain.h"
#include "printable_text.h"
#include "quantity.h"
#include "row_selection.h"

/* A model of a thousand zero biases needs no thousand lines. */
#define MOST_NOTES 20u

/* The cells of a row that a line is made of. */
typedef struct row_words {
  const char *level;
  const char *file;
  const char *message;
  tm_cell     tensor;
} row_words;

static tm_cell cell_of(const tm_job *job, const tm_cell *cells, const char *name) {
  uint32_t         count = 0;
  const tm_column *columns = tm_job_columns(job, &count);
  const uint32_t   index = tm_column_find(columns, count, name);
  return index == TM_NO_COLUMN ? tm_cell_undefined(TM_COLUMN_TEXT) : cells[index];
}

static const char *text_of(const tm_job *job, const tm_cell *cells, const char *name) {
  const tm_cell cell = cell_of(job, cells, name);
  return cell.defined ? cell.text : "";
}

/* false: there is no such row. */
static bool read_row(const tm_job *job, uint64_t row, row_words *out_words) {
  tm_cell cells[TM_MAX_COLUMNS];
  if (tm_job_row(job, row, cells) != TM_OK) return false;
  *out_words = (row_words){ text_of(job, cells, "level"), text_of(job, cells, "file"), text_of(job, cells, "message"),
                            cell_of(job, cells, "tensor") };
  return true;
}

static bool is_level(const row_words *words, const char *level) { return strcmp(words->level, level) == 0; }

/* Cells of a name that a line shows: what names have in common is at their ends, as in a table. */
#define NAME_CELLS 160u
#define NAME_BYTES 4096u

static void shorten_name(const tm_cell *name, char *out) {
  tm_printable_escape(name->text, (size_t)name->count, out, NAME_BYTES);
  tm_printable_shorten(out, NAME_CELLS);
  if (name->count == 0) snprintf(out, NAME_BYTES, "''");
}

/* "file: tensor: message" */
static void write_line(const row_words *words, char *out, size_t capacity) {
  char file[1024], flags[2048], tensor[NAME_BYTES] = "";
  tm_printable_escape(words->file, strlen(words->file), file, sizeof file);
  if (words->tensor.defined) shorten_name(&words->tensor, tensor);
  snprintf(out, capacity, "%s%s%s%s%s", file, file[0] != '\0' ? ": " : "", tensor, words->tensor.defined ? ": " : "",
           tm_in_flags(words->message, flags, sizeof flags));
}

void tm_check_verdict_make(tm_check_verdict *verdict, const tm_job *job) {
  row_words words;
  memset(verdict, 0, sizeof *verdict);
  verdict->first_trouble.struct_size = sizeof verdict->first_trouble;
  for (uint64_t row = 0; read_row(job, row, &words); row++) {
    if (is_level(&words, "finding")) verdict->finding_count++;
    if (is_level(&words, "note")) verdict->note_count++;
    if (!is_level(&words, "trouble") || verdict->trouble_count++ != 0) continue;
    verdict->first_trouble.code = TM_ERROR_IO;
    write_line(&words, verdict->first_trouble.text, sizeof verdict->first_trouble.text);
  }
}

const char *tm_check_verdict_word(const tm_check_verdict *verdict) {
  if (verdict->trouble_count != 0) return "trouble";
  return verdict->finding_count != 0 ? "findings" : "clean";
}

int tm_check_verdict_exit_code(const tm_check_verdict *verdict) {
  if (verdict->trouble_count != 0) return TM_EXIT_TROUBLE;
  return verdict->finding_count != 0 ? TM_EXIT_FOUND : TM_EXIT_OK;
}

static void print_level(const tm_job *job, const char *level, uint64_t most, uint32_t width, tm_output_stream *stream) {
  char      line[3072];
  row_words words;
  for (uint64_t row = 0; most > 0 && read_row(job, row, &words); row++) {
    if (!is_level(&words, level)) continue;
    write_line(&words, line, sizeof line);
    tm_printable_about(stream, level, line, width);
    most--;
  }
}

static const char *plural(uint64_t count) { return count == 1 ? "" : "s"; }

void tm_check_verdict_print(const tm_check_verdict *verdict, const tm_job *job, uint32_t width, tm_output_stream *stream) {
  tm_quantity count;
  print_level(job, "finding", UINT64_MAX, width, stream);
  print_level(job, "note", MOST_NOTES, width, stream);
  if (verdict->note_count > MOST_NOTES)
    tm_output_format(stream, "and %s more notes; --json lists all\n", tm_quantity_count(verdict->note_count - MOST_NOTES, &count));
  if (verdict->finding_count == 0)
    tm_output_text(stream, "no findings");
  else
    tm_output_format(stream, "%s finding%s", tm_quantity_count(verdict->finding_count, &count), plural(verdict->finding_count));
  if (verdict->trouble_count != 0)
    tm_output_format(stream, "; %s file%s could not be examined", tm_quantity_count(verdict->trouble_count, &count),
                     plural(verdict->trouble_count));
  tm_output_char(stream, '\n');
}

void tm_check_verdict_complain(const tm_job *job) {
  char      line[3072];
  row_words words;
  for (uint64_t row = 0; read_row(job, row, &words); row++) {
    if (!is_level(&words, "trouble")) continue;
    write_line(&words, line, sizeof line);
    tm_complain_as(TM_EXIT_TROUBLE, "%s", line);
  }
}
