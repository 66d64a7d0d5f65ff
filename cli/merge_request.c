/* SPDX-License-Identifier: Apache-2.0 */
#include "merge_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"
#include "merge_words.h"
#include "nearest_format.h"
#include "quantity.h"
#include "standard_streams.h"

void tm_merge_request_init(tm_merge_request *request) { memset(request, 0, sizeof *request); }

void tm_merge_request_deinit(tm_merge_request *request) {
  for (uint32_t i = 0; i < request->owned_count; i++) free(request->owned[i]);
  free(request->owned);
  free(request->usual.items);
  free(request->special.items);
  memset(request, 0, sizeof *request);
}

const char *tm_merge_request_keep(tm_merge_request *request, const char *text, size_t length) {
  const uint32_t count = request->owned_count;
  if ((count & (count - 1)) == 0) {     /* full at every power of two */
    char **grown = realloc(request->owned, (count == 0 ? 1 : 2 * (size_t)count) * sizeof *grown);
    if (grown == NULL) return NULL;
    request->owned = grown;
  }
  char *copy = malloc(length + 1);
  if (copy == NULL) return NULL;
  memcpy(copy, text, length);
  copy[length] = '\0';
  return request->owned[request->owned_count++] = copy;
}

/* ------------------------------------------------------------------------------------------------------ models ---- */

tm_status tm_merge_request_add_model(tm_merge_request *request, const char *where, const char *path, const char *name,
                                     tm_error *error) {
  if (request->model_count == TM_MERGE_MOST_MODELS)
    return tm_refuse(error, TM_ERROR_ARGUMENT, "%s: at most %u models can be merged at once", where, TM_MERGE_MOST_MODELS);
  request->models[request->model_count++] = (tm_merge_model){ .path = path, .name = name };
  return TM_OK;
}

/* "models/a.safetensors" -> "a.safetensors"; of a folder "models/a/" its own name. */
static void last_component(const char *path, char *out, size_t capacity) {
  size_t end = strlen(path);
  while (end > 1 && path[end - 1] == '/') end--;
  size_t begin = end;
  while (begin > 0 && path[begin - 1] != '/') begin--;
  snprintf(out, capacity, "%.*s", (int)(end - begin), path + begin);
}

/* Whether the first `length` bytes of the path are the name, or end in it behind a '/'. */
static bool ends_in_name(const char *path, size_t length, const char *name) {
  const size_t wanted = strlen(name);
  if (wanted == 0 || wanted > length || memcmp(path + length - wanted, name, wanted) != 0) return false;
  return wanted == length || path[length - wanted - 1] == '/';
}

/* Plans and records call a model by as much of its path's end as it takes; any end of it will do here. */
static bool is_path_called(const char *path, const char *name) {
  if (path == NULL) return false;
  size_t end = strlen(path);
  if (ends_in_name(path, end, name)) return true;
  while (end > 1 && path[end - 1] == '/') end--;
  size_t dot = end;
  while (dot > 0 && path[dot - 1] != '.' && path[dot - 1] != '/') dot--;
  const bool has_extension = dot > 1 && path[dot - 1] == '.' && path[dot - 2] != '/';
  return ends_in_name(path, end, name) || (has_extension && ends_in_name(path, dot - 1, name));
}

static bool is_called(const tm_merge_model *model, const char *name) {
  return is_path_called(model->path, name) || is_path_called(model->name, name);
}

static tm_status refuse_model(const tm_merge_request *request, const char *where, const char *name, tm_error *error) {
  char            component[512];
  tm_nearest_name nearest;
  if (name[0] == '\0')
    return tm_refuse(error, TM_ERROR_ARGUMENT, "%s: a model's name is wanted before the \"=\"; numbers for all of them are given "
                     "as --weight=0.3,0.7 or -w 0.3,0.7", where);
  tm_nearest_name_init(&nearest, name);
  for (uint32_t i = 0; i < request->model_count; i++) {
    last_component(request->models[i].path, component, sizeof component);
    tm_nearest_name_offer(&nearest, component);
    char *dot = strrchr(component, '.');
    if (dot != NULL) *dot = '\0';
    tm_nearest_name_offer(&nearest, component);
    if (request->models[i].name != NULL) tm_nearest_name_offer(&nearest, request->models[i].name);
  }
  if (nearest.best != NULL)
    return tm_refuse(error, TM_ERROR_ARGUMENT, "%s: no model is called \"%s\"; did you mean \"%s\"?", where, name, nearest.best);
  return tm_refuse(error, TM_ERROR_ARGUMENT,
                   "%s: no model is called \"%s\"; there are %u, which go by their file names, or by numbers from 1", where, name,
                   request->model_count);
}

tm_status tm_merge_request_find_model(const tm_merge_request *request, const char *where, const char *name, uint32_t *out_model,
                                      tm_error *error) {
  uint32_t found = 0;
  uint64_t number = 0;
  for (uint32_t i = 0; i < request->model_count; i++)
    if (is_called(&request->models[i], name)) {
      *out_model = i;
      found++;
    }
  const bool is_place = tm_quantity_parse_count(name, &number) && number >= 1 && number <= request->model_count;
  if (found == 1 && (!is_place || *out_model == number - 1)) return TM_OK;
  if (found == 1)
    return tm_refuse(error, TM_ERROR_ARGUMENT, "%s: \"%s\" is what model %u, %s, is called, and the place of another, %s; call it by "
                     "more of its path, or give one number for each model", where, name, *out_model + 1, request->models[*out_model].path,
                     request->models[number - 1].path);
  if (found > 1)
    return tm_refuse(error, TM_ERROR_ARGUMENT, "%s: %u models are called \"%s\"; call them by their numbers from 1", where, found,
                     name);
  if (!is_place) return refuse_model(request, where, name, error);
  *out_model = (uint32_t)number - 1;
  return TM_OK;
}

/* ------------------------------------------------------------------------------------------------------- rules ---- */

static tm_status push(tm_merge_rule_list *list, const tm_merge_rule *rule, tm_error *error) {
  if (list->count == list->capacity) {
    const uint32_t capacity = list->capacity == 0 ? 16 : 2 * list->capacity;
    tm_merge_rule *items = realloc(list->items, capacity * sizeof *items);
    if (items == NULL) return tm_refuse(error, TM_ERROR_NO_MEMORY, "out of memory");
    list->items = items;
    list->capacity = capacity;
  }
  list->items[list->count++] = *rule;
  return TM_OK;
}

tm_status tm_merge_request_add_rule(tm_merge_request *request, const tm_merge_rule *rule, tm_error *error) {
  return push(rule->pattern == NULL ? &request->usual : &request->special, rule, error);
}

static bool is_per_model(uint32_t what) { return what == TM_MERGE_SET_WEIGHT || what == TM_MERGE_SET_DENSITY; }

tm_status tm_merge_request_add_number(tm_merge_request *request, const char *where, const tm_merge_rule *rule, tm_error *error) {
  if (rule->what == TM_MERGE_SET_DENSITY && !(rule->value > 0 && rule->value <= 1))
    return tm_refuse(error, TM_ERROR_ARGUMENT, "%s wants a density above 0 and up to 1, not %g", where, rule->value);
  if (rule->what == TM_MERGE_SET_T && !(rule->value >= 0 && rule->value <= 1))
    return tm_refuse(error, TM_ERROR_ARGUMENT, "%s wants a number from 0 to 1, not %g", where, rule->value);
  return tm_merge_request_add_rule(request, rule, error);
}

static tm_status add_numbers(tm_merge_request *request, const char *where, const char *pattern, uint32_t what, const double *values,
                             uint32_t count, tm_error *error) {
  tm_merge_rule rule = { .pattern = pattern, .what = what, .model = is_per_model(what) ? TM_MERGE_EVERY_MODEL : 0 };
  tm_status     status = TM_OK;
  if (count == 1) {
    rule.value = values[0];
    return tm_merge_request_add_number(request, where, &rule, error);
  }
  if (!is_per_model(what)) return tm_refuse(error, TM_ERROR_ARGUMENT, "%s wants one number, not %u", where, count);
  if (count != request->model_count)
    return tm_refuse(error, TM_ERROR_ARGUMENT, "%s has %u numbers for %u model%s; give one for each, or one for all", where, count,
                     request->model_count, request->model_count == 1 ? "" : "s");
  for (rule.model = 0; rule.model < count && status == TM_OK; rule.model++) {
    rule.value = values[rule.model];
    status = tm_merge_request_add_number(request, where, &rule, error);
  }
  return status;
}

/* The next of several parts between commas, in out[256]; false: there is none, or it is too long. */
static bool next_part(const char **rest, char *out) {
  if (*rest == NULL) return false;
  const size_t length = strcspn(*rest, ",");
  if (length >= 256) return false;
  memcpy(out, *rest, length);
  out[length] = '\0';
  *rest = (*rest)[length] == ',' ? *rest + length + 1 : NULL;
  return true;
}

static tm_status refuse_number(const char *where, const char *text, tm_error *error) {
  return tm_refuse(error, TM_ERROR_ARGUMENT, "%s: \"%s\" is no finite number", where, text);
}

tm_status tm_merge_request_name_once(const tm_merge_request *request, const char *where, uint32_t model, uint32_t *named,
                                     tm_error *error) {
  if ((*named >> model & 1u) != 0)
    return tm_refuse(error, TM_ERROR_ARGUMENT, "%s: %s is there twice", where, request->models[model].path);
  *named |= 1u << model;
  return TM_OK;
}

static tm_status add_named(tm_merge_request *request, const char *where, tm_merge_rule rule, char *part, uint32_t *named,
                           tm_error *error) {
  char *equals = strrchr(part, '=');
  if (equals == NULL)
    return tm_refuse(error, TM_ERROR_ARGUMENT, "%s: \"%s\" names no model; give a name for every number, or for none", where, part);
  *equals = '\0';
  if (!tm_merge_number_parse(equals + 1, &rule.value)) return refuse_number(where, equals + 1, error);
  tm_status status = tm_merge_request_find_model(request, where, part, &rule.model, error);
  if (status == TM_OK) status = tm_merge_request_name_once(request, where, rule.model, named, error);
  return status != TM_OK ? status : tm_merge_request_add_number(request, where, &rule, error);
}

static tm_status add_format(tm_merge_request *request, const char *where, const char *pattern, const char *name, tm_error *error) {
  const tm_merge_rule rule = { .pattern = pattern, .what = TM_MERGE_SET_FORMAT, .format = tm_format_lookup(name) };
  if (rule.format != TM_FORMAT_NONE || strcmp(name, TM_MERGE_FORMAT_OF_LEAD) == 0)
    return tm_merge_request_add_rule(request, &rule, error);
  tm_nearest_name nearest;
  tm_nearest_format_find(&nearest, name);
  if (nearest.best != NULL)
    return tm_refuse(error, TM_ERROR_ARGUMENT, "%s: unknown format \"%s\"; did you mean \"%s\"?", where, name, nearest.best);
  return tm_refuse(error, TM_ERROR_ARGUMENT, "%s: unknown format \"%s\"; tensormorph ops lists all", where, name);
}

tm_status tm_merge_request_add_text(tm_merge_request *request, const char *where, const char *pattern, uint32_t what,
                                    const char *text, tm_error *error) {
  char        part[256];
  double      values[TM_MERGE_MOST_MODELS];
  uint32_t    count = 0, named = 0;
  const char *rest = text;
  tm_status   status = TM_OK;
  const tm_merge_rule rule = { .pattern = pattern, .what = what };
  if (what == TM_MERGE_SET_FORMAT) return add_format(request, where, pattern, text, error);
  if (is_per_model(what) && strchr(text, '=') != NULL) {
    while (status == TM_OK && next_part(&rest, part)) status = add_named(request, where, rule, part, &named, error);
    return status != TM_OK || rest == NULL ? status : tm_refuse(error, TM_ERROR_ARGUMENT, "%s: a name is too long", where);
  }
  while (next_part(&rest, part)) {
    double value = 0;
    if (!tm_merge_number_parse(part, &value)) return refuse_number(where, part, error);
    if (count < TM_MERGE_MOST_MODELS) values[count] = value;
    count++;    /* more than there may be models are more than there are */
  }
  if (rest != NULL) return refuse_number(where, rest, error);
  return add_numbers(request, where, pattern, what, values, count, error);
}

tm_status tm_merge_request_rules(tm_merge_request *request, const tm_merge_rule **out_rules, tm_error *error) {
  tm_status status = TM_OK;
  /* The usual ones come first, so that any pattern counts more. */
  for (uint32_t i = 0; i < request->special.count && status == TM_OK; i++)
    status = push(&request->usual, &request->special.items[i], error);
  request->special.count = 0;
  *out_rules = request->usual.items;
  return status;
}

/* ------------------------------------------------------------------------------------------------------- whole ---- */

static tm_status check_rules(const tm_merge_request *request, const tm_merge_rule_list *list, tm_error *error) {
  for (uint32_t i = 0; i < list->count; i++)
    if (!tm_merge_method_takes(request->method, list->items[i].what))
      return tm_refuse(error, TM_ERROR_ARGUMENT, "%s has no %s; that is for %s",
                       tm_merge_word_text(tm_merge_methods, request->method),
                       tm_merge_word_text(tm_merge_setting_words, list->items[i].what), tm_merge_methods_with(list->items[i].what));
  return TM_OK;
}

static tm_status check_switches(const tm_merge_request *request, tm_error *error) {
  const uint32_t method = request->method;
  const char    *name = tm_merge_word_text(tm_merge_methods, method);
  if ((request->has_normalize || request->keeps_sum) && method != TM_MERGE_LINEAR && method != TM_MERGE_TIES)
    return tm_refuse(error, TM_ERROR_ARGUMENT, "%s normalizes nothing; --[no-]normalize is for linear and ties", name);
  if ((request->has_rescale || request->keeps_scale) && method != TM_MERGE_DARE)
    return tm_refuse(error, TM_ERROR_ARGUMENT, "%s rescales nothing; --[no-]rescale is for dare", name);
  if (request->has_seed && method != TM_MERGE_DARE)
    return tm_refuse(error, TM_ERROR_ARGUMENT, "%s draws nothing at random; --seed is for dare", name);
  return TM_OK;
}

static tm_status check_models(const tm_merge_request *request, tm_error *error) {
  const char *name = tm_merge_word_text(tm_merge_methods, request->method);
  const bool  has_base = tm_merge_method_takes(request->method, TM_MERGE_SET_SCALE);
  if (request->model_count == 0) return tm_refuse(error, TM_ERROR_ARGUMENT, "which models? name their files behind the options");
  if (has_base && request->base == NULL)
    return tm_refuse(error, TM_ERROR_ARGUMENT, "%s wants --base FILE, the model that all differences are taken from", name);
  if (!has_base && request->base != NULL)
    return tm_refuse(error, TM_ERROR_ARGUMENT, "%s has no base; --base is for task, ties and dare", name);
  if (request->method == TM_MERGE_SLERP && request->model_count != 2)
    return tm_refuse(error, TM_ERROR_ARGUMENT, "slerp wants two models, not %u", request->model_count);
  return TM_OK;
}

static bool ends_with(const char *text, const char *ending) {
  const size_t length = strlen(text), wanted = strlen(ending);
  return length > wanted && strcmp(text + length - wanted, ending) == 0;
}

bool tm_merge_output_is_gguf(const char *path) { return ends_with(path, ".gguf"); }

/* A name that says something else, or nothing, would be believed by whoever opens the file by its name. */
static tm_status check_output(const tm_merge_request *request, tm_error *error) {
  if (request->output != NULL && tm_standard_streams_is_output(request->output))
    return tm_refuse(error, TM_ERROR_ARGUMENT, "%s: that is the standard output, where the report goes; name a file", request->output);
  if (request->output == NULL) return tm_refuse(error, TM_ERROR_ARGUMENT, "where to? -o FILE.safetensors or -o FILE.gguf");
  if (ends_with(request->output, ".safetensors") || tm_merge_output_is_gguf(request->output)) return TM_OK;
  return tm_refuse(error, TM_ERROR_ARGUMENT, "%s: what is written is FILE.safetensors or FILE.gguf", request->output);
}

/* The plan would be for nothing. */
static tm_status check_shards(const tm_merge_request *request, tm_error *error) {
  if (request->shard_bytes == 0 || !tm_merge_output_is_gguf(request->output)) return TM_OK;
  return tm_refuse(error, TM_ERROR_ARGUMENT, "%s is to be written in one file; --shard-size is for safetensors", request->output);
}

tm_status tm_merge_request_check(const tm_merge_request *request, tm_error *error) {
  tm_status status = TM_OK;
  if (request->method == 0)
    return tm_refuse(error, TM_ERROR_ARGUMENT,
                     "which method? --linear, --slerp, --task, --ties or --dare, or a recipe that names one");
  status = check_output(request, error);
  if (status == TM_OK) status = check_shards(request, error);
  if (status == TM_OK) status = check_models(request, error);
  if (status == TM_OK) status = check_rules(request, &request->usual, error);
  if (status == TM_OK) status = check_rules(request, &request->special, error);
  return status != TM_OK ? status : check_switches(request, error);
}
