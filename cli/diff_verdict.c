/* SPDX-License-Identifier: Apache-2.0 */
#include "diff_verdict.h"

#include <stdio.h>
#include <string.h>

#include "printable_text.h"
#include "quantity.h"

void tm_diff_verdict_make(tm_diff_verdict *verdict, const tm_diff_view *view, uint64_t row_count) {
  tm_cell cells[TM_MAX_COLUMNS];
  memset(verdict, 0, sizeof *verdict);
  for (uint64_t row = 0; row < row_count && tm_job_row(view->job, row, cells) == TM_OK; row++) {
    const tm_diff_word    word = tm_diff_view_word(view, cells);
    const tm_diff_meaning meaning = tm_diff_view_meaning(view, cells);
    verdict->word_count[word]++;
    verdict->same_word_count[word] += meaning == TM_MEANS_SAME;
    verdict->different_word_count[word] += meaning == TM_MEANS_DIFFERENT;
    verdict->close_count += meaning == TM_MEANS_CLOSE;
    verdict->different_count += meaning == TM_MEANS_DIFFERENT;
  }
}

typedef struct sentence {
  char   text[512];
  size_t used;
  bool   has_parts;
} sentence;

static void add_text(sentence *line, const char *text) {
  const size_t length = strlen(text);
  if (line->used + length >= sizeof line->text) return;
  memcpy(line->text + line->used, text, length + 1);
  line->used += length;
}

/* "12 renamed", after a comma if it is not the first. */
static void add_count(sentence *line, uint64_t count, const char *word) {
  tm_quantity number;
  if (count == 0) return;
  add_text(line, line->has_parts ? ", " : " ");
  add_text(line, tm_quantity_count(count, &number));
  add_text(line, " ");
  add_text(line, word);
  line->has_parts = true;
}

/* What is identical first. */
static void add_same(sentence *line, const tm_diff_verdict *verdict) {
  for (uint32_t i = 0; i < TM_WORD_COUNT; i++) {
    const tm_diff_word word = (tm_diff_word)((i + TM_WORD_IDENTICAL) % TM_WORD_COUNT);
    add_count(line, verdict->same_word_count[word], tm_diff_word_text(word));
  }
  add_count(line, verdict->close_count, "within the tolerance");
}

void tm_diff_verdict_print(const tm_diff_verdict *verdict, bool color, uint32_t width, tm_output_stream *stream) {
  const bool  differs = verdict->different_count != 0;
  const char *head = differs ? "different" : "same weights";
  sentence    line = { .used = 0 };
  for (uint32_t i = 0; i < TM_WORD_COUNT; i++)
    add_count(&line, verdict->different_word_count[i], tm_diff_word_text((tm_diff_word)i));
  sentence same = { .used = 0 };
  add_same(&same, verdict);
  if (differs && same.has_parts) add_text(&line, "; the same:");
  add_text(&line, same.text);
  if (line.used == 0) add_text(&line, " there are no tensors");
  if (color) tm_output_text(stream, differs ? "\x1b[1;33m" : "\x1b[1;32m");
  tm_output_format(stream, "%s:", head);
  if (color) tm_output_text(stream, "\x1b[0m");
  tm_output_char(stream, ' ');
  tm_printable_wrap(stream, line.text + 1, strlen(head) + 2, width);
}

void tm_diff_verdict_print_json(const tm_diff_verdict *verdict, tm_json_writer *json) {
  tm_json_begin_object(json, "summary", true);
  for (uint32_t i = 0; i < TM_WORD_COUNT; i++) tm_json_count(json, tm_diff_word_text((tm_diff_word)i), verdict->word_count[i]);
  tm_json_count(json, "close", verdict->close_count);
  tm_json_count(json, "different", verdict->different_count);
  tm_json_end_object(json);
}
