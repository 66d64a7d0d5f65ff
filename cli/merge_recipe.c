/* SPDX-License-Identifier: Apache-2.0 */
#include "merge_recipe.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

#include "complain.h"
#include "flag.h"
#include "merge_words.h"
#include "nearest_name.h"
#include "quantity.h"

/* Far more than anybody writes: a short text that refers to itself must not become a long list. */
#define MOST_RULES 65536u

/* What a reader of YAML looks through again and again: open brackets, names of nodes, directives.  A recipe is four deep. */
#define MOST_DEPTH      32u
#define MOST_ANCHORS    1024u
#define MOST_DIRECTIVES 16u

#define PLACE_BYTES 512

typedef struct recipe {
  const char       *path;
  yaml_document_t   document;
  tm_merge_request *request;
  tm_error         *error;
} recipe;

/* What the rules of an entry are for: a pattern, and one model or all. */
typedef struct scope {
  const char *pattern;
  uint32_t    model;
} scope;

typedef struct key_row key_row;
typedef tm_status (*key_fn)(recipe *r, const key_row *row, const scope *where, const yaml_node_t *value);

/* A list ends with a name of NULL.  Values are taken in the order of the rows, whatever their order in the text. */
struct key_row {
  const char *name;
  key_fn      take;
  uint32_t    what;             /* TM_MERGE_SET_*, for those that set one */
};

/* "recipe.yaml:3:5: weight" */
static const char *place_of(const recipe *r, const yaml_node_t *node, const char *name, char *out) {
  snprintf(out, PLACE_BYTES, "%.300s:%zu:%zu%s%s", r->path, node->start_mark.line + 1, node->start_mark.column + 1,
           name[0] != '\0' ? ": " : "", name);
  return out;
}

static tm_status refuse(const recipe *r, const yaml_node_t *node, const char *name, const char *wanted) {
  char place[PLACE_BYTES];
  return tm_refuse(r->error, TM_ERROR_ARGUMENT, "%s wants %s", place_of(r, node, name, place), wanted);
}

static const yaml_node_t *node_at(recipe *r, int index) { return yaml_document_get_node(&r->document, index); }

static bool is_null(const yaml_node_t *node) {
  const char *text = (const char *)node->data.scalar.value;
  return node->type == YAML_SCALAR_NODE && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
         (text[0] == '\0' || strcmp(text, "~") == 0 || strcmp(text, "null") == 0);
}

/* NULL: it is no text, or one that a C string cannot hold. */
static const char *text_of(const yaml_node_t *node) {
  if (node->type != YAML_SCALAR_NODE || is_null(node)) return NULL;
  const char *text = (const char *)node->data.scalar.value;
  return strlen(text) == node->data.scalar.length && text[0] != '\0' ? text : NULL;
}

static tm_status keep_text(recipe *r, const yaml_node_t *node, const char *name, const char **out_text) {
  const char *text = text_of(node);
  if (text == NULL) return refuse(r, node, name, "a text");
  *out_text = tm_merge_request_keep(r->request, text, strlen(text));
  return *out_text != NULL ? TM_OK : tm_refuse(r->error, TM_ERROR_NO_MEMORY, "out of memory");
}

/* A recipe travels with what it names, so its folder is where paths begin. */
static tm_status keep_path(recipe *r, const yaml_node_t *node, const char *name, const char **out_path) {
  char        joined[4096];
  const char *text = text_of(node), *slash = strrchr(r->path, '/');
  if (text == NULL || text[0] == '/' || slash == NULL) return keep_text(r, node, name, out_path);
  const int length = snprintf(joined, sizeof joined, "%.*s%s", (int)(slash + 1 - r->path), r->path, text);
  if (length < 0 || (size_t)length >= sizeof joined) return refuse(r, node, name, "a shorter path");
  *out_path = tm_merge_request_keep(r->request, joined, (size_t)length);
  return *out_path != NULL ? TM_OK : tm_refuse(r->error, TM_ERROR_NO_MEMORY, "out of memory");
}

static int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A record has bytes that are no UTF-8 as \xNN.  Returns how many it undid. */
static uint32_t undo_escapes(const char *path, char *out) {
  uint32_t count = 0;
  while (*path != '\0') {
    const bool begins = path[0] == '\\' && path[1] == 'x';
    const int  high = begins ? digit_of(path[2]) : -1, low = high >= 8 ? digit_of(path[3]) : -1;
    *out++ = low >= 0 ? (char)(high * 16 + low) : *path;
    path += low >= 0 ? 4 : 1;
    count += low >= 0;
  }
  *out = '\0';
  return count;
}

/* The path of what is to be read.  A file that is called as it is written down is meant first. */
static tm_status keep_input(recipe *r, const yaml_node_t *node, const char *name, const char **out_path) {
  char            plain[4096];
  const tm_status status = keep_path(r, node, name, out_path);
  if (status != TM_OK || strlen(*out_path) >= sizeof plain || access(*out_path, F_OK) == 0) return status;
  if (undo_escapes(*out_path, plain) == 0 || access(plain, F_OK) != 0) return TM_OK;
  *out_path = tm_merge_request_keep(r->request, plain, strlen(plain));
  return *out_path != NULL ? TM_OK : tm_refuse(r->error, TM_ERROR_NO_MEMORY, "out of memory");
}

/* -------------------------------------------------------------------------------------------------------- maps ---- */

static const key_row *find_row(const key_row *rows, const char *name) {
  for (; rows->name != NULL; rows++)
    if (strcmp(rows->name, name) == 0) return rows;
  return NULL;
}

/* "path, name, weight"; a name that has two rows is told once. */
static void list_keys(const key_row *rows, char *out, size_t capacity) {
  size_t used = 0;
  out[0] = '\0';
  for (const key_row *row = rows; row->name != NULL && used < capacity; row++)
    if (find_row(rows, row->name) == row)
      used += (size_t)snprintf(out + used, capacity - used, "%s%s", used == 0 ? "" : ", ", row->name);
}

static tm_status refuse_key(const recipe *r, const key_row *rows, const yaml_node_t *key) {
  char            place[PLACE_BYTES], all[256];
  const char     *name = text_of(key);
  tm_nearest_name nearest;
  if (name == NULL) return refuse(r, key, "", "a key that is a text");
  tm_nearest_name_init(&nearest, name);
  for (const key_row *row = rows; row->name != NULL; row++) tm_nearest_name_offer(&nearest, row->name);
  if (nearest.best != NULL)
    return tm_refuse(r->error, TM_ERROR_ARGUMENT, "%s: unknown key \"%s\"; did you mean \"%s\"?", place_of(r, key, "", place), name,
                     nearest.best);
  list_keys(rows, all, sizeof all);
  return tm_refuse(r->error, TM_ERROR_ARGUMENT, "%s: unknown key \"%s\"; there are: %s", place_of(r, key, "", place), name, all);
}

static const yaml_node_t *find_value(recipe *r, const yaml_node_t *map, const char *name, const yaml_node_pair_t *before) {
  for (const yaml_node_pair_t *pair = map->data.mapping.pairs.start; pair < before; pair++) {
    const char *key = text_of(node_at(r, pair->key));
    if (key != NULL && strcmp(key, name) == 0) return node_at(r, pair->value);
  }
  return NULL;
}

static tm_status check_keys(recipe *r, const key_row *rows, const yaml_node_t *map) {
  char place[PLACE_BYTES];
  for (const yaml_node_pair_t *pair = map->data.mapping.pairs.start; pair < map->data.mapping.pairs.top; pair++) {
    const yaml_node_t *key = node_at(r, pair->key);
    const char        *name = text_of(key);
    if (name == NULL || find_row(rows, name) == NULL) return refuse_key(r, rows, key);
    if (find_value(r, map, name, pair) != NULL)
      return tm_refuse(r->error, TM_ERROR_ARGUMENT, "%s: \"%s\" is there twice", place_of(r, key, "", place), name);
  }
  return TM_OK;
}

static tm_status take_map(recipe *r, const key_row *rows, const scope *where, const yaml_node_t *map) {
  tm_status status = check_keys(r, rows, map);
  for (const key_row *row = rows; row->name != NULL && status == TM_OK; row++) {
    const yaml_node_t *value = find_value(r, map, row->name, map->data.mapping.pairs.top);
    if (value == NULL) continue;
    status = is_null(value) ? refuse(r, value, row->name, "a value") : row->take(r, row, where, value);
  }
  return status;
}

/* ------------------------------------------------------------------------------------------------------ values ---- */

static tm_status take_switch(recipe *r, const key_row *row, const yaml_node_t *value, bool *out_value) {
  const char *text = text_of(value);
  return text != NULL && tm_switch_parse(text, out_value) ? TM_OK : refuse(r, value, row->name, "true or false");
}

static tm_status take_normalize(recipe *r, const key_row *row, const scope *where, const yaml_node_t *value) {
  bool            normalizes = true;
  const tm_status status = take_switch(r, row, value, &normalizes);
  (void)where;
  r->request->has_normalize = true;
  r->request->keeps_sum = !normalizes;
  return status;
}

static tm_status take_rescale(recipe *r, const key_row *row, const scope *where, const yaml_node_t *value) {
  bool            rescales = true;
  const tm_status status = take_switch(r, row, value, &rescales);
  (void)where;
  r->request->has_rescale = true;
  r->request->keeps_scale = !rescales;
  return status;
}

static tm_status take_word(recipe *r, const key_row *row, const tm_merge_word *words, const yaml_node_t *value,
                           uint32_t *out_value) {
  char        place[PLACE_BYTES];
  const char *text = text_of(value);
  return tm_merge_word_find(words, place_of(r, value, row->name, place), text != NULL ? text : "", out_value, r->error);
}

static tm_status take_method(recipe *r, const key_row *row, const scope *where, const yaml_node_t *value) {
  (void)where;
  return take_word(r, row, tm_merge_methods, value, &r->request->method);
}

static tm_status take_missing(recipe *r, const key_row *row, const scope *where, const yaml_node_t *value) {
  (void)where;
  return take_word(r, row, tm_merge_missing_words, value, &r->request->missing);
}

static tm_status take_rows(recipe *r, const key_row *row, const scope *where, const yaml_node_t *value) {
  (void)where;
  return take_word(r, row, tm_merge_rows_words, value, &r->request->rows);
}

static tm_status take_other(recipe *r, const key_row *row, const scope *where, const yaml_node_t *value) {
  (void)where;
  return take_word(r, row, tm_merge_other_words, value, &r->request->other);
}

static tm_status take_seed(recipe *r, const key_row *row, const scope *where, const yaml_node_t *value) {
  const char *text = text_of(value);
  (void)where;
  r->request->has_seed = true;
  return text != NULL && tm_quantity_parse_count(text, &r->request->seed) ? TM_OK : refuse(r, value, row->name, "a whole number up to 18446744073709551615");
}

static tm_status take_shard_size(recipe *r, const key_row *row, const scope *where, const yaml_node_t *value) {
  const char *text = text_of(value);
  (void)where;
  if (text != NULL && tm_quantity_parse_size(text, &r->request->shard_bytes)) return TM_OK;
  return refuse(r, value, row->name, "a size such as 5GB");
}

static tm_status take_output(recipe *r, const key_row *row, const scope *where, const yaml_node_t *value) {
  (void)where;
  return keep_path(r, value, row->name, &r->request->output);
}

/* Looked at elsewhere, or what a merge wrote down about itself besides what it was told. */
static tm_status take_record(recipe *r, const key_row *row, const scope *where, const yaml_node_t *value) {
  (void)r, (void)row, (void)where, (void)value;
  return TM_OK;
}

/* ------------------------------------------------------------------------------------------------------- rules ---- */

static tm_status add_rule(recipe *r, const key_row *row, const yaml_node_t *value, tm_merge_rule rule) {
  char        place[PLACE_BYTES];
  const char *text = text_of(value);
  place_of(r, value, row->name, place);
  if (r->request->usual.count + r->request->special.count >= MOST_RULES)
    return tm_refuse(r->error, TM_ERROR_ARGUMENT, "%s: more than %u rules", place, MOST_RULES);
  if (rule.what == TM_MERGE_SET_FORMAT)
    return text == NULL ? refuse(r, value, row->name, "the name of a format")
                        : tm_merge_request_add_text(r->request, place, rule.pattern, rule.what, text, r->error);
  if (text == NULL || !tm_merge_number_parse(text, &rule.value)) return refuse(r, value, row->name, "a finite number");
  return tm_merge_request_add_number(r->request, place, &rule, r->error);
}

/* [0.3, null, 0.7]: one for each model; null says nothing. */
static tm_status take_list(recipe *r, const key_row *row, const scope *where, const yaml_node_t *list) {
  char            place[PLACE_BYTES];
  const ptrdiff_t count = list->data.sequence.items.top - list->data.sequence.items.start;
  tm_status       status = TM_OK;
  if (count != (ptrdiff_t)r->request->model_count)
    return tm_refuse(r->error, TM_ERROR_ARGUMENT, "%s has %td number%s for %u model%s; give one for each, or one for all",
                     place_of(r, list, row->name, place), count, count == 1 ? "" : "s", r->request->model_count,
                     r->request->model_count == 1 ? "" : "s");
  for (uint32_t model = 0; model < r->request->model_count && status == TM_OK; model++) {
    const yaml_node_t *value = node_at(r, list->data.sequence.items.start[model]);
    const tm_merge_rule rule = { .pattern = where->pattern, .what = row->what, .model = model };
    if (!is_null(value)) status = add_rule(r, row, value, rule);
  }
  return status;
}

/* { a: 0.3, b: 0.7 } */
static tm_status take_names(recipe *r, const key_row *row, const scope *where, const yaml_node_t *map) {
  char     place[PLACE_BYTES];
  uint32_t named = 0;
  for (const yaml_node_pair_t *pair = map->data.mapping.pairs.start; pair < map->data.mapping.pairs.top; pair++) {
    const yaml_node_t *key = node_at(r, pair->key);
    const char        *name = text_of(key);
    tm_merge_rule      rule = { .pattern = where->pattern, .what = row->what };
    if (name == NULL) return refuse(r, key, row->name, "the name of a model");
    tm_status status = tm_merge_request_find_model(r->request, place_of(r, key, row->name, place), name, &rule.model, r->error);
    if (status == TM_OK) status = tm_merge_request_name_once(r->request, place, rule.model, &named, r->error);
    if (status == TM_OK) status = add_rule(r, row, node_at(r, pair->value), rule);
    if (status != TM_OK) return status;
  }
  return TM_OK;
}

/* Of one model, of each, or of all. */
static tm_status take_numbers(recipe *r, const key_row *row, const scope *where, const yaml_node_t *value) {
  if (value->type == YAML_SCALAR_NODE || where->model != TM_MERGE_EVERY_MODEL)
    return add_rule(r, row, value, (tm_merge_rule){ .pattern = where->pattern, .what = row->what, .model = where->model });
  return value->type == YAML_SEQUENCE_NODE ? take_list(r, row, where, value) : take_names(r, row, where, value);
}

static tm_status take_setting(recipe *r, const key_row *row, const scope *where, const yaml_node_t *value) {
  return add_rule(r, row, value, (tm_merge_rule){ .pattern = where->pattern, .what = row->what });
}

/* ------------------------------------------------------------------------------------------------ models, tensors ---- */

static const key_row model_keys[] = {
  { "path", take_record, 0 },
  { "name", take_record, 0 },
  { "weight", take_numbers, TM_MERGE_SET_WEIGHT },
  { "density", take_numbers, TM_MERGE_SET_DENSITY },
  { "hash", take_record, 0 },
  { NULL, NULL, 0 },
};

/* The command line may say where the models are; then the list tells what they are called. */
static tm_status place_model(recipe *r, const yaml_node_t *entry, uint32_t index, tm_merge_model model) {
  char        place[PLACE_BYTES];
  const char *path = model.path, *name = model.name;
  if (!r->request->has_operands) {
    const tm_status status = tm_merge_request_add_model(r->request, place_of(r, entry, "models", place), path, name, r->error);
    if (status == TM_OK) r->request->models[index].hash = model.hash;
    return status;
  }
  if (index >= r->request->model_count)
    return tm_refuse(r->error, TM_ERROR_ARGUMENT, "%s: more models than the %u of the command line",
                     place_of(r, entry, "models", place), r->request->model_count);
  r->request->models[index].name = name != NULL ? name : path;
  return TM_OK;
}

static tm_status take_model(recipe *r, const yaml_node_t *entry, uint32_t index) {
  tm_merge_model     model = { NULL, NULL, NULL };
  const bool         is_map = entry->type == YAML_MAPPING_NODE;
  const yaml_node_t *path_node = is_map ? find_value(r, entry, "path", entry->data.mapping.pairs.top) : entry;
  const yaml_node_t *name_node = is_map ? find_value(r, entry, "name", entry->data.mapping.pairs.top) : NULL;
  const yaml_node_t *hash_node = is_map ? find_value(r, entry, "hash", entry->data.mapping.pairs.top) : NULL;
  tm_status          status = is_map ? check_keys(r, model_keys, entry) : TM_OK;
  if (status == TM_OK && path_node == NULL) return refuse(r, entry, "model", "a path");
  if (status == TM_OK) status = keep_input(r, path_node, "path", &model.path);
  if (status == TM_OK && name_node != NULL) status = keep_text(r, name_node, "name", &model.name);
  if (status == TM_OK && hash_node != NULL) status = keep_text(r, hash_node, "hash", &model.hash);
  return status == TM_OK ? place_model(r, entry, index, model) : status;
}

static tm_status take_models(recipe *r, const key_row *row, const scope *where, const yaml_node_t *value) {
  char      place[PLACE_BYTES];
  uint32_t  count = 0;
  tm_status status = TM_OK;
  (void)where;
  if (value->type != YAML_SEQUENCE_NODE) return refuse(r, value, row->name, "a list of files");
  const yaml_node_item_t *end = value->data.sequence.items.top;
  for (const yaml_node_item_t *item = value->data.sequence.items.start; item < end && status == TM_OK; item++)
    status = take_model(r, node_at(r, *item), count++);
  if (status != TM_OK || count == r->request->model_count) return status;
  return tm_refuse(r->error, TM_ERROR_ARGUMENT, "%s: %u model%s, but the command line names %u",
                   place_of(r, value, row->name, place), count, count == 1 ? "" : "s", r->request->model_count);
}

/* A list or names at the top say of single models what these say themselves. */
static tm_status refuse_second_number(recipe *r, const yaml_node_t *entry, uint32_t model) {
  char place[PLACE_BYTES];
  for (const key_row *row = model_keys; row->name != NULL; row++) {
    const yaml_node_t *value = row->take == take_numbers ? find_value(r, entry, row->name, entry->data.mapping.pairs.top) : NULL;
    for (uint32_t i = 0; value != NULL && i < r->request->usual.count; i++)
      if (r->request->usual.items[i].what == row->what && r->request->usual.items[i].model == model)
        return tm_refuse(r->error, TM_ERROR_ARGUMENT, "%s: the model has one here, and another one outside of \"models\"",
                         place_of(r, value, row->name, place));
  }
  return TM_OK;
}

/* What is said of one model counts more than what is said of all. */
static tm_status take_model_settings(recipe *r, const key_row *row, const scope *where, const yaml_node_t *value) {
  tm_status status = TM_OK;
  (void)row, (void)where;
  for (uint32_t model = 0; model < r->request->model_count && status == TM_OK; model++) {
    const yaml_node_t *entry = node_at(r, value->data.sequence.items.start[model]);
    const scope        own = { NULL, model };
    if (entry->type != YAML_MAPPING_NODE) continue;
    status = refuse_second_number(r, entry, model);
    if (status == TM_OK) status = take_map(r, model_keys, &own, entry);
  }
  return status;
}

static const key_row base_keys[] = {
  { "path", take_record, 0 },
  { "hash", take_record, 0 },
  { NULL, NULL, 0 },
};

static tm_status take_base(recipe *r, const key_row *row, const scope *where, const yaml_node_t *value) {
  if (value->type != YAML_MAPPING_NODE) return keep_input(r, value, row->name, &r->request->base);
  tm_status          status = take_map(r, base_keys, where, value);
  const yaml_node_t *path = find_value(r, value, "path", value->data.mapping.pairs.top);
  const yaml_node_t *hash = find_value(r, value, "hash", value->data.mapping.pairs.top);
  if (status == TM_OK && hash != NULL) status = keep_text(r, hash, "hash", &r->request->base_hash);
  if (status != TM_OK) return status;
  return path == NULL ? refuse(r, value, row->name, "a path") : keep_input(r, path, row->name, &r->request->base);
}

static const key_row tensor_keys[] = {
  { "match", take_record, 0 },
  { "weight", take_numbers, TM_MERGE_SET_WEIGHT },
  { "density", take_numbers, TM_MERGE_SET_DENSITY },
  { "t", take_setting, TM_MERGE_SET_T },
  { "scale", take_setting, TM_MERGE_SET_SCALE },
  { "dtype", take_setting, TM_MERGE_SET_FORMAT },
  { NULL, NULL, 0 },
};

static tm_status take_tensor(recipe *r, const yaml_node_t *entry) {
  scope where = { NULL, TM_MERGE_EVERY_MODEL };
  if (entry->type != YAML_MAPPING_NODE) return refuse(r, entry, "tensors", "entries with \"match\" and what it sets");
  const yaml_node_t *match = find_value(r, entry, "match", entry->data.mapping.pairs.top);
  tm_status          status = check_keys(r, tensor_keys, entry);
  if (status == TM_OK && match == NULL) return refuse(r, entry, "tensors", "a \"match\" in every entry, a pattern over names");
  if (status == TM_OK && entry->data.mapping.pairs.top - entry->data.mapping.pairs.start < 2)
    return refuse(r, match, "tensors", "something that is set beside each \"match\", such as a weight");
  if (status == TM_OK) status = keep_text(r, match, "match", &where.pattern);
  return status == TM_OK ? take_map(r, tensor_keys, &where, entry) : status;
}

static tm_status take_tensors(recipe *r, const key_row *row, const scope *where, const yaml_node_t *value) {
  tm_status status = TM_OK;
  (void)where;
  if (value->type != YAML_SEQUENCE_NODE) return refuse(r, value, row->name, "a list of entries");
  const yaml_node_item_t *end = value->data.sequence.items.top;
  for (const yaml_node_item_t *item = value->data.sequence.items.start; item < end && status == TM_OK; item++)
    status = take_tensor(r, node_at(r, *item));
  return status;
}

/* Models come first, since what is said of them by number or name needs them; what they say of themselves comes later. */
static const key_row recipe_keys[] = {
  { "models", take_models, 0 },
  { "method", take_method, 0 },
  { "base", take_base, 0 },
  { "output", take_output, 0 },
  { "weight", take_numbers, TM_MERGE_SET_WEIGHT },
  { "density", take_numbers, TM_MERGE_SET_DENSITY },
  { "models", take_model_settings, 0 },
  { "t", take_setting, TM_MERGE_SET_T },
  { "scale", take_setting, TM_MERGE_SET_SCALE },
  { "dtype", take_setting, TM_MERGE_SET_FORMAT },
  { "normalize", take_normalize, 0 },
  { "rescale", take_rescale, 0 },
  { "seed", take_seed, 0 },
  { "missing", take_missing, 0 },
  { "rows", take_rows, 0 },
  { "other", take_other, 0 },
  { "shard_size", take_shard_size, 0 },
  { "tensors", take_tensors, 0 },
  { "version", take_record, 0 },
  { NULL, NULL, 0 },
};

/* -------------------------------------------------------------------------------------------------------- file ---- */

/* A pattern that begins with '*' is a reference to YAML, and two escapes are two characters. */
static const char *hint_for(const char *problem, const char *context) {
  if (strstr(problem, "Unicode character escape") != NULL)
    return "; write a character beyond \\uffff itself, or as \\U and 8 digits";
  return strstr(problem, "alias") != NULL || strstr(context, "alias") != NULL ? "; a pattern that begins with * needs quotes" : "";
}

static tm_status refuse_text(const recipe *r, const yaml_parser_t *parser) {
  const char *problem = parser->problem != NULL ? parser->problem : "it cannot be read";
  const char *context = parser->context != NULL ? parser->context : "";
  if (parser->error == YAML_MEMORY_ERROR) return tm_refuse(r->error, TM_ERROR_NO_MEMORY, "out of memory");
  if (parser->error == YAML_READER_ERROR)
    return tm_refuse(r->error, TM_ERROR_ARGUMENT, "%s: byte %zu: %s", r->path, parser->problem_offset, problem);
  return tm_refuse(r->error, TM_ERROR_ARGUMENT, "%s:%zu:%zu: %s%s%s%s", r->path, parser->problem_mark.line + 1,
                   parser->problem_mark.column + 1, problem, context[0] != '\0' ? " " : "", context, hint_for(problem, context));
}

static tm_status take_document(recipe *r) {
  const scope        where = { NULL, TM_MERGE_EVERY_MODEL };
  const yaml_node_t *root = yaml_document_get_root_node(&r->document);
  if (root == NULL) return tm_refuse(r->error, TM_ERROR_ARGUMENT, "%s: an empty recipe", r->path);
  if (root->type != YAML_MAPPING_NODE) return refuse(r, root, "a recipe", "keys and values, such as \"method: linear\"");
  return take_map(r, recipe_keys, &where, root);
}

/* A second document would go unread. */
static tm_status expect_end(recipe *r, yaml_parser_t *parser) {
  yaml_document_t further;
  char            place[PLACE_BYTES];
  if (yaml_parser_load(parser, &further) == 0) return refuse_text(r, parser);
  const yaml_node_t *root = yaml_document_get_root_node(&further);
  const tm_status    status = root == NULL ? TM_OK
                                           : tm_refuse(r->error, TM_ERROR_ARGUMENT, "%s: a second document; a recipe is one",
                                                       place_of(r, root, "", place));
  yaml_document_delete(&further);
  return status;
}

typedef struct bulk {
  uint32_t depth;
  uint32_t anchors;
} bulk;

static void count_event(const yaml_event_t *event, bulk *found) {
  const yaml_char_t *anchor = NULL;
  switch (event->type) {
    case YAML_SEQUENCE_START_EVENT: anchor = event->data.sequence_start.anchor; found->depth++; break;
    case YAML_MAPPING_START_EVENT: anchor = event->data.mapping_start.anchor; found->depth++; break;
    case YAML_SCALAR_EVENT: anchor = event->data.scalar.anchor; break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: found->depth--; break;
    default: break;
  }
  found->anchors += anchor != NULL;
}

/* Lines that begin with '%'. */
static uint32_t count_directives(const char *text, size_t length) {
  uint32_t count = 0;
  for (size_t i = 0; i < length; i++) count += text[i] == '%' && (i == 0 || text[i - 1] == '\n');
  return count;
}

/* The text is read once for this alone: a document that is made of it takes time that grows with the square of any of them. */
static tm_status check_bulk(const char *path, const char *text, size_t length, tm_error *error) {
  yaml_parser_t parser;
  yaml_event_t  event;
  tm_status     status = TM_OK;
  bulk          found = { 0, 0 };
  if (count_directives(text, length) > MOST_DIRECTIVES)
    return tm_refuse(error, TM_ERROR_ARGUMENT, "%.300s: more than %u directives (lines that begin with %%); this is no recipe",
                     path, MOST_DIRECTIVES);
  if (yaml_parser_initialize(&parser) == 0) return tm_refuse(error, TM_ERROR_NO_MEMORY, "out of memory");
  yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
  for (bool goes_on = true; goes_on && status == TM_OK && yaml_parser_parse(&parser, &event) != 0;) {
    count_event(&event, &found);
    goes_on = event.type != YAML_STREAM_END_EVENT;
    if (found.depth > MOST_DEPTH || found.anchors > MOST_ANCHORS)
      status = tm_refuse(error, TM_ERROR_ARGUMENT, "%.300s:%zu:%zu: %s; this is no recipe", path, event.start_mark.line + 1,
                         event.start_mark.column + 1, found.depth > MOST_DEPTH ? "nested too deep" : "too many names of nodes");
    yaml_event_delete(&event);
  }
  yaml_parser_delete(&parser);
  return status;        /* what cannot be read is told by who makes the document */
}

tm_status tm_merge_recipe_parse(const char *path, const char *text, size_t length, tm_merge_request *request, tm_error *error) {
  recipe        r = { .path = path, .request = request, .error = error };
  yaml_parser_t parser;
  tm_status     status = check_bulk(path, text, length, error);
  if (status != TM_OK) return status;
  if (yaml_parser_initialize(&parser) == 0) return tm_refuse(error, TM_ERROR_NO_MEMORY, "out of memory");
  yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
  if (yaml_parser_load(&parser, &r.document) == 0) {
    status = refuse_text(&r, &parser);
    yaml_parser_delete(&parser);
    return status;
  }
  status = take_document(&r);
  if (status == TM_OK) status = expect_end(&r, &parser);
  yaml_document_delete(&r.document);
  yaml_parser_delete(&parser);
  return status;
}
