/* SPDX-License-Identifier: Apache-2.0 */
/* merge_words.h - what the command line and recipes call the methods, policies and settings of a merge. */
#ifndef TM_CLI_MERGE_WORDS_H
#define TM_CLI_MERGE_WORDS_H

#include <stdbool.h>

#include "tensormorph/tensormorph.h"

typedef struct tm_merge_word {
  const char *text;
  uint32_t    value;
} tm_merge_word;

/* Lists end with a text of NULL. */
extern const tm_merge_word tm_merge_methods[];
extern const tm_merge_word tm_merge_missing_words[];
extern const tm_merge_word tm_merge_rows_words[];
extern const tm_merge_word tm_merge_other_words[];
extern const tm_merge_word tm_merge_setting_words[];

/* TM_ERROR_ARGUMENT, with all of the words; `where` begins the message. */
tm_status tm_merge_word_find(const tm_merge_word *words, const char *where, const char *text, uint32_t *out_value,
                             tm_error *error);
/* "?" if there is none. */
const char *tm_merge_word_text(const tm_merge_word *words, uint32_t value);

/* Does the method take the setting (TM_MERGE_SET_*)? */
bool tm_merge_method_takes(uint32_t method, uint32_t what);
/* "task, ties and dare": those that take it. */
const char *tm_merge_methods_with(uint32_t what);
/* A finite decimal number. */
bool tm_merge_number_parse(const char *text, double *out_value);

#endif
