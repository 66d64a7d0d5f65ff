/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/merge_provenance.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tensor/format.h"

#define WORD(text, value) [value] = text,
static const char *const methods[] = { TM_MERGE_EACH_METHOD(WORD) };
static const char *const missing_words[] = { TM_MERGE_EACH_MISSING(WORD) };
static const char *const rows_words[] = { TM_MERGE_EACH_ROWS(WORD) };
static const char *const other_words[] = { TM_MERGE_EACH_OTHER(WORD) };

typedef struct printer {
  const tm_merge_settings *settings;
  const tm_content_hash   *hashes;
  tm_byte_buffer          *buffer;
} printer;

/* The shortest text that is read as the same number; always with a point, whatever the process calls it. */
static void add_number(printer *p, double number) {
  char text[40];
  for (int digits = 1; digits <= 17; digits++) {
    (void)snprintf(text, sizeof text, "%.*g", digits, number);
    if (strtod(text, NULL) == number) break;
  }
  for (char *c = text; *c != '\0'; c++)
    if (*c == ',') *c = '.';
  tm_byte_buffer_add_text(p->buffer, text);
}

static void add_key(printer *p, const char *key) {
  const bool is_first = p->buffer->length == 0 || p->buffer->bytes[p->buffer->length - 1] == '{';
  if (!is_first) tm_byte_buffer_add(p->buffer, ",", 1);
  tm_byte_buffer_add(p->buffer, "\"", 1);
  tm_byte_buffer_add_text(p->buffer, key);
  tm_byte_buffer_add(p->buffer, "\":", 2);
}

static void add_text(printer *p, const char *key, const char *text) {
  add_key(p, key);
  tm_byte_buffer_add_json(p->buffer, (tm_string){ text, strlen(text) });
}

static void add_switch(printer *p, const char *key, bool is_on) {
  add_key(p, key);
  tm_byte_buffer_add_text(p->buffer, is_on ? "true" : "false");
}

/* ---------------------------------------------------------------------------------------------------------- sources ---- */

static bool has_differences(const printer *p) { return tm_merge_has_base(p->settings); }

static bool has_densities(const printer *p) { return p->settings->method == TM_MERGE_TIES || p->settings->method == TM_MERGE_DARE; }

/* JSON has no other bytes than UTF-8: in a name that is none those stand as \xNN, so that no two names become one. */
static void add_path(printer *p, const char *path) {
  char escape[8];
  tm_byte_buffer text;
  uint64_t left = strlen(path);
  tm_byte_buffer_init(&text, p->buffer->memory);
  while (left != 0) {
    const uint32_t length = tm_utf8_length(path, left);
    const uint32_t step = length == 0 ? 1 : length;
    (void)snprintf(escape, sizeof escape, "\\x%02x", (unsigned)(unsigned char)*path);
    if (length == 0) tm_byte_buffer_add_text(&text, escape);
    else tm_byte_buffer_add(&text, path, length);
    path += step;
    left -= step;
  }
  add_key(p, "path");
  tm_byte_buffer_add_json(p->buffer, (tm_string){ (const char *)text.bytes, text.length });
  p->buffer->failed = p->buffer->failed || text.failed;
  tm_byte_buffer_deinit(&text);
}

static void add_source(printer *p, uint32_t source, const tm_merge_figures *figures) {
  const tm_content_hash none = { 0, 0 };
  const tm_content_hash *hash = p->hashes == NULL ? &none : &p->hashes[p->settings->same_as[source]];
  char digits[33];
  tm_byte_buffer_add(p->buffer, "{", 1);
  add_path(p, p->settings->names[source]);
  if (source < p->settings->model_count && p->settings->method != TM_MERGE_SLERP) {
    add_key(p, "weight");
    add_number(p, figures->weights[source]);
    if (has_densities(p)) {
      add_key(p, "density");
      add_number(p, figures->densities[source]);
    }
  }
  (void)snprintf(digits, sizeof digits, "%016" PRIx64 "%016" PRIx64, hash->high, hash->low);
  add_text(p, "hash", digits);
  tm_byte_buffer_add(p->buffer, "}", 1);
}

static void add_sources(printer *p, const tm_merge_figures *figures) {
  if (tm_merge_has_base(p->settings)) {
    add_key(p, "base");
    add_source(p, p->settings->lead, figures);
  }
  add_key(p, "models");
  tm_byte_buffer_add(p->buffer, "[", 1);
  for (uint32_t i = 0; i < p->settings->model_count; i++) {
    if (i != 0) tm_byte_buffer_add(p->buffer, ",", 1);
    add_source(p, i, figures);
  }
  tm_byte_buffer_add(p->buffer, "]", 1);
}

/* ------------------------------------------------------------------------------------------------------------ rules ---- */

/* [null,0.3] of model 1. */
static void add_of_model(printer *p, const char *key, const tm_merge_rule *rule) {
  add_key(p, key);
  if (rule->model == TM_MERGE_EVERY_MODEL) {
    add_number(p, rule->value);
    return;
  }
  tm_byte_buffer_add(p->buffer, "[", 1);
  for (uint32_t i = 0; i < p->settings->model_count; i++) {
    if (i != 0) tm_byte_buffer_add(p->buffer, ",", 1);
    if (i == rule->model) add_number(p, rule->value);
    else tm_byte_buffer_add_text(p->buffer, "null");
  }
  tm_byte_buffer_add(p->buffer, "]", 1);
}

static void add_format(printer *p, uint32_t format) {
  const tm_format_info *info = tm_format_find(format);
  add_text(p, "dtype", info == NULL ? TM_MERGE_FORMAT_OF_LEAD : info->name);
}

static void add_rule(printer *p, const tm_merge_rule *rule) {
  tm_byte_buffer_add(p->buffer, "{", 1);
  add_text(p, "match", rule->pattern);
  if (rule->what == TM_MERGE_SET_WEIGHT) add_of_model(p, "weight", rule);
  else if (rule->what == TM_MERGE_SET_DENSITY) add_of_model(p, "density", rule);
  else if (rule->what == TM_MERGE_SET_FORMAT) add_format(p, rule->format);
  else {
    add_key(p, rule->what == TM_MERGE_SET_T ? "t" : "scale");
    add_number(p, rule->value);
  }
  tm_byte_buffer_add(p->buffer, "}", 1);
}

static void add_rules(printer *p) {
  const tm_merge_settings *settings = p->settings;
  uint32_t first = 0;
  while (first < settings->rule_count && settings->rules[first].pattern == NULL) first++;
  if (first == settings->rule_count) return;
  add_key(p, "tensors");
  tm_byte_buffer_add(p->buffer, "[", 1);
  for (uint32_t i = first; i < settings->rule_count; i++) {
    if (i != first) tm_byte_buffer_add(p->buffer, ",", 1);
    add_rule(p, &settings->rules[i]);
  }
  tm_byte_buffer_add(p->buffer, "]", 1);
}

/* ------------------------------------------------------------------------------------------------------------ whole ---- */

static void add_figures(printer *p, const tm_merge_figures *figures) {
  const tm_merge_settings *settings = p->settings;
  if (settings->method == TM_MERGE_SLERP) {
    add_key(p, "t");
    add_number(p, figures->t);
  }
  if (has_differences(p)) {
    add_key(p, "scale");
    add_number(p, figures->scale);
  }
  if (settings->method == TM_MERGE_DARE) {
    add_key(p, "seed");
    tm_byte_buffer_add_decimal(p->buffer, settings->seed);
    add_switch(p, "rescale", (settings->flags & TM_MERGE_NO_RESCALE) == 0);
  }
  if (settings->method == TM_MERGE_LINEAR) add_switch(p, "normalize", (settings->flags & TM_MERGE_KEEP_WEIGHTS) == 0);
  if (settings->method == TM_MERGE_TIES) add_switch(p, "normalize", (settings->flags & TM_MERGE_TIES_SUM) == 0);
  if (figures->format != TM_FORMAT_NONE) add_format(p, figures->format);
}

void tm_merge_provenance_print(const tm_merge_settings *settings, const tm_content_hash *hashes, tm_byte_buffer *buffer) {
  printer p = { settings, hashes, buffer };
  tm_merge_settings everywhere = *settings;
  tm_merge_figures figures;
  while (everywhere.rule_count != 0 && everywhere.rules[everywhere.rule_count - 1].pattern != NULL) everywhere.rule_count--;
  tm_merge_settings_apply(&everywhere, (tm_string){ "", 0 }, &figures);
  tm_byte_buffer_add(buffer, "{", 1);
  add_text(&p, "version", tm_version());
  add_text(&p, "method", methods[settings->method]);
  add_sources(&p, &figures);
  add_figures(&p, &figures);
  add_text(&p, "missing", missing_words[settings->missing]);
  add_text(&p, "rows", rows_words[settings->rows]);
  add_text(&p, "other", other_words[settings->other]);
  if (settings->shard_bytes != 0) {
    add_key(&p, "shard_size");
    tm_byte_buffer_add_decimal(p.buffer, settings->shard_bytes);
  }
  add_rules(&p);
  tm_byte_buffer_add(buffer, "}", 1);
}
