/* SPDX-License-Identifier: Apache-2.0 */
#include "finite_check.h"

#include <stdio.h>
#include <string.h>

#include "complain.h"
#include "printable_text.h"
#include "row_selection.h"

static const tm_cell *cell_of(const tm_job *job, const tm_cell *cells, const char *name) {
  uint32_t         count = 0;
  const tm_column *columns = tm_job_columns(job, &count);
  const uint32_t   index = tm_column_find(columns, count, name);
  return index == TM_NO_COLUMN ? NULL : &cells[index];
}

static uint64_t count_of(const tm_job *job, const tm_cell *cells, const char *name) {
  const tm_cell *cell = cell_of(job, cells, name);
  return cell != NULL && cell->defined ? cell->count : 0;
}

/* Whether the list has the name already; "f8" is not in "f8_e4m3fn". */
static bool has_type(const char *types, const char *name, size_t length) {
  for (const char *at = strstr(types, name); at != NULL; at = strstr(at + 1, name))
    if ((at == types || at[-1] == ' ') && (at[length] == ',' || at[length] == '\0')) return true;
  return false;
}

static void note_type(tm_finite_check *check, const tm_cell *dtype) {
  static const char more[] = ", ...";
  char              name[64] = "?";
  const size_t      used = strlen(check->types);
  if (dtype != NULL && dtype->defined) tm_printable_escape(dtype->text, (size_t)dtype->count, name, sizeof name);
  const size_t length = strlen(name);
  if (has_type(check->types, name, length) || has_type(check->types, "...", 3)) return;
  const bool fits = used + 2 + length + sizeof more <= sizeof check->types;
  snprintf(check->types + used, sizeof check->types - used, "%s%s", used == 0 ? "" : ", ", fits ? name : more + 2);
}

void tm_finite_check_make(tm_finite_check *check, const tm_job *job) {
  tm_cell cells[TM_MAX_COLUMNS];
  memset(check, 0, sizeof *check);
  for (uint64_t row = 0; tm_job_row(job, row, cells) == TM_OK; row++, check->tensor_count++) {
    const tm_cell *nan = cell_of(job, cells, "nan");
    if (nan == NULL || !nan->defined) {
      check->unexamined++;
      note_type(check, cell_of(job, cells, "dtype"));
    } else if (nan->count + count_of(job, cells, "pos_inf") + count_of(job, cells, "neg_inf") != 0 &&
               check->found++ == 0) {
      check->first = row;
    }
  }
}

void tm_finite_check_print(const tm_finite_check *check, tm_output_stream *stream) {
  if (check->unexamined != 0)
    tm_output_format(stream, "%llu of %llu tensor%s not examined for NaN and infinities\n",
                     (unsigned long long)check->unexamined, (unsigned long long)check->tensor_count,
                     check->tensor_count == 1 ? "" : "s");
  else if (check->found == 0 && check->tensor_count != 0)
    tm_output_text(stream, "no NaN, no infinities\n");
}

static void complain_of_first(const tm_finite_check *check, const tm_job *job) {
  tm_cell cells[TM_MAX_COLUMNS];
  char    escaped[512] = "?";
  if (tm_job_row(job, check->first, cells) != TM_OK) return;
  const tm_cell *name = cell_of(job, cells, "name");
  if (name != NULL) tm_printable_escape(name->text, (size_t)name->count, escaped, sizeof escaped);
  tm_complain_as(TM_EXIT_FOUND, "%llu tensor%s with NaN or infinities; the first is %s: %llu NaN, %llu +Inf, %llu -Inf",
                 (unsigned long long)check->found, check->found == 1 ? "" : "s", escaped,
                 (unsigned long long)count_of(job, cells, "nan"), (unsigned long long)count_of(job, cells, "pos_inf"),
                 (unsigned long long)count_of(job, cells, "neg_inf"));
}

int tm_finite_check_judge(const tm_finite_check *check, const tm_job *job) {
  if (check->found != 0) complain_of_first(check, job);
  if (check->unexamined != 0)
    tm_complain_as(TM_EXIT_FOUND, "--fail-on-nonfinite: %llu of %llu tensor%s could not be examined (type %s)",
                   (unsigned long long)check->unexamined, (unsigned long long)check->tensor_count,
                   check->tensor_count == 1 ? "" : "s", check->types);
  return check->found != 0 || check->unexamined != 0 ? TM_EXIT_FOUND : TM_EXIT_OK;
}
