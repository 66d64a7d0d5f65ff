/* SPDX-License-Identifier: Apache-2.0 */
#include "merge_words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"

#define ROW(text, value) { text, value },
const tm_merge_word tm_merge_methods[] = { TM_MERGE_EACH_METHOD(ROW){ NULL, 0 } };
const tm_merge_word tm_merge_missing_words[] = { TM_MERGE_EACH_MISSING(ROW){ NULL, 0 } };
const tm_merge_word tm_merge_rows_words[] = { TM_MERGE_EACH_ROWS(ROW){ NULL, 0 } };
const tm_merge_word tm_merge_other_words[] = { TM_MERGE_EACH_OTHER(ROW){ NULL, 0 } };
const tm_merge_word tm_merge_setting_words[] = {
  { "weight", TM_MERGE_SET_WEIGHT }, { "density", TM_MERGE_SET_DENSITY }, { "t", TM_MERGE_SET_T },
  { "scale", TM_MERGE_SET_SCALE },   { "dtype", TM_MERGE_SET_FORMAT },    { NULL, 0 },
};

tm_status tm_merge_word_find(const tm_merge_word *words, const char *where, const char *text, uint32_t *out_value,
                             tm_error *error) {
  char   all[160] = "";
  size_t used = 0;
  for (const tm_merge_word *word = words; word->text != NULL; word++) {
    if (strcmp(word->text, text) == 0) {
      *out_value = word->value;
      return TM_OK;
    }
    const char *between = word == words ? "" : word[1].text == NULL ? " or " : ", ";
    used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", between, word->text);
  }
  return tm_refuse(error, TM_ERROR_ARGUMENT, "%s wants %s, not \"%s\"", where, all, text);
}

const char *tm_merge_word_text(const tm_merge_word *words, uint32_t value) {
  while (words->text != NULL && words->value != value) words++;
  return words->text != NULL ? words->text : "?";
}

typedef struct setting_row {
  uint32_t    what;
  uint32_t    methods;          /* bit m: TM_MERGE_* m */
  const char *words;
} setting_row;

#define METHOD(name)    (1u << TM_MERGE_##name)
#define OF_DIFFERENCES (METHOD(TASK) | METHOD(TIES) | METHOD(DARE))

static const setting_row setting_rows[] = {
  { TM_MERGE_SET_WEIGHT, METHOD(LINEAR) | OF_DIFFERENCES, "linear, task, ties and dare" },
  { TM_MERGE_SET_DENSITY, METHOD(TIES) | METHOD(DARE), "ties and dare" },
  { TM_MERGE_SET_T, METHOD(SLERP), "slerp" },
  { TM_MERGE_SET_SCALE, OF_DIFFERENCES, "task, ties and dare" },
  { TM_MERGE_SET_FORMAT, METHOD(LINEAR) | METHOD(SLERP) | OF_DIFFERENCES, "every method" },
};

static const setting_row *find_setting(uint32_t what) {
  const setting_row *row = setting_rows;
  while (row->what != what && row->what != TM_MERGE_SET_FORMAT) row++;
  return row;
}

bool tm_merge_method_takes(uint32_t method, uint32_t what) { return (find_setting(what)->methods >> method & 1u) != 0; }

const char *tm_merge_methods_with(uint32_t what) { return find_setting(what)->words; }

bool tm_merge_number_parse(const char *text, double *out_value) {
  char *end = NULL;
  if (text[0] == '\0' || strspn(text, "0123456789+-.eE") != strlen(text)) return false;
  const double value = strtod(text, &end);
  if (*end != '\0' || !isfinite(value)) return false;
  *out_value = value;
  return true;
}
