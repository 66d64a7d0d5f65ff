/* SPDX-License-Identifier: Apache-2.0 */
#include "merge_flags.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "complain.h"
#include "merge_hashes.h"
#include "merge_recipe.h"
#include "merge_words.h"
#include "quantity.h"

const tm_flag tm_merge_flags[] = {
  { "output", 'o', TM_FLAG_TEXT, false, "FILE", "where to: FILE.safetensors or FILE.gguf" },
  { "linear", 0, TM_FLAG_SWITCH, false, NULL, "the weighted mean of the models" },
  { "slerp", 0, TM_FLAG_SWITCH, false, NULL, "of two models the point at --t on the arc between them, tensor by tensor" },
  { "task", 0, TM_FLAG_SWITCH, false, NULL, "the base and the weighted sum of the models' differences from it" },
  { "ties", 0, TM_FLAG_SWITCH, false, NULL,
    "as --task, but of each difference only the largest elements, and of these those that agree in sign" },
  { "dare", 0, TM_FLAG_SWITCH, false, NULL,
    "as --task, but elements of the differences are dropped at random and the others scaled up" },
  { "base", 0, TM_FLAG_TEXT, false, "FILE", "of --task, --ties and --dare: the model that differences are taken from" },
  { "weight", 'w', TM_FLAG_TEXT, false, "[GLOB:]W",
    "one number for every model, one for each (0.3,0.7), or by name (a=0.3); a model that is given none counts 1; with GLOB: for "
    "tensors whose name matches; repeatable" },
  { "density", 0, TM_FLAG_TEXT, false, "[GLOB:]D",
    "of --ties and --dare: the share of a difference that stays, above 0 and up to 1, written as --weight (usually 1: all of it "
    "stays); repeatable" },
  { "t", 0, TM_FLAG_TEXT, false, "[GLOB:]T", "of --slerp: 0 is the first model, 1 the second (usually 0.5); repeatable" },
  { "scale", 0, TM_FLAG_TEXT, false, "[GLOB:]S",
    "of --task, --ties and --dare: what the sum of differences is multiplied with (usually 1); repeatable" },
  { "dtype", 0, TM_FLAG_TEXT, false, "[GLOB:]FORMAT",
    "format of the result (usually lead: as in the base or first model); repeatable" },
  { "seed", 0, TM_FLAG_TEXT, false, "N", "of --dare: another number drops other elements (usually 0)" },
  { "normalize", 0, TM_FLAG_SWITCH, true, NULL,
    "divide by what the weights add up to (linear and ties do unless told --no-normalize)" },
  { "rescale", 0, TM_FLAG_SWITCH, true, NULL, "divide what stays by the density (dare does unless told --no-rescale)" },
  { "missing", 0, TM_FLAG_TEXT, false, "HOW",
    "tensors that not all have: fail (usual), available (merge those there are), copy (from the first that has it), skip" },
  { "rows", 0, TM_FLAG_TEXT, false, "HOW",
    "tensors of different outermost extent: fail (usual), common (the rows all have), lead (as many as the base or first model), "
    "longest" },
  { "other", 0, TM_FLAG_TEXT, false, "HOW",
    "other shapes, and types without arithmetic that differ: fail (usual), copy (from the base or first model), skip" },
  { "recipe", 0, TM_FLAG_TEXT, false, "FILE",
    "all of this from a file (YAML or JSON), or as a merged checkpoint records it; options win over it" },
  { "shard-size", 0, TM_FLAG_SIZE, false, "SIZE",
    "write safetensors in files with at most SIZE of tensors, or with one, and an index (usually 0: in one file)" },
  { "dry-run", 'n', TM_FLAG_SWITCH, false, NULL, "print the plan and stop" },
  { "wide", 0, TM_FLAG_SWITCH, false, NULL, "name every tensor that does not match, also where the reason is one that others have" },
  { "force", 'f', TM_FLAG_SWITCH, false, NULL, "replace what is there" },
  { "top", 0, TM_FLAG_COUNT, false, "N", "how many of the tensors that changed most to print (usually 5)" },
  { "max-header", 0, TM_FLAG_SIZE, false, "SIZE", "accept headers up to this size (usually 100 MB; 0: the usual)" },
  { NULL, 0, TM_FLAG_SWITCH, false, NULL, NULL },
};

static tm_status read_method(const tm_arguments *arguments, tm_merge_request *request, tm_error *error) {
  const char *chosen = NULL;
  for (const tm_merge_word *method = tm_merge_methods; method->text != NULL; method++) {
    if (!tm_arguments_has(arguments, method->text)) continue;
    if (chosen != NULL) return tm_refuse(error, TM_ERROR_ARGUMENT, "--%s and --%s: a merge has one method", chosen, method->text);
    chosen = method->text;
    request->method = method->value;
  }
  return TM_OK;
}

static bool is_for_all(const char *value) { return strpbrk(value, ":=") == NULL; }

/* Who gives one number each in options of their own would get the last one for all. */
static tm_status refuse_repeated(const tm_arguments *arguments, uint32_t index, tm_error *error) {
  const char *name = arguments->items[index].flag->name, *value = arguments->items[index].value;
  for (uint32_t i = 0; i < index && is_for_all(value); i++) {
    const char *earlier = arguments->items[i].value;
    if (strcmp(arguments->items[i].flag->name, name) != 0 || !is_for_all(earlier)) continue;
    return tm_refuse(error, TM_ERROR_ARGUMENT, "--%s %s and --%s %s are both for everything; %s", name, earlier, name, value,
                     strcmp(name, "weight") == 0 || strcmp(name, "density") == 0 ? "for one number each put commas between them"
                                                                                  : "put GLOB: before those that are not");
  }
  return TM_OK;
}

/* "GLOB:VALUE"; a pattern may hold a colon, a value does not. */
static tm_status read_setting(const tm_merge_word *setting, const tm_arguments *arguments, uint32_t index, tm_merge_request *request,
                              tm_error *error) {
  char            where[64];
  const char     *text = arguments->items[index].value, *colon = strrchr(text, ':'), *pattern = NULL;
  const tm_status status = refuse_repeated(arguments, index, error);
  if (status != TM_OK) return status;
  snprintf(where, sizeof where, "--%s", setting->text);
  if (colon == text) return tm_refuse(error, TM_ERROR_ARGUMENT, "%s: no pattern before \":\" in \"%s\"", where, text);
  if (colon != NULL) {
    pattern = tm_merge_request_keep(request, text, (size_t)(colon - text));
    if (pattern == NULL) return tm_refuse(error, TM_ERROR_NO_MEMORY, "out of memory");
  }
  return tm_merge_request_add_text(request, where, pattern, setting->value, colon != NULL ? colon + 1 : text, error);
}

static tm_status read_settings(const tm_arguments *arguments, tm_merge_request *request, tm_error *error) {
  tm_status status = TM_OK;
  for (uint32_t i = 0; i < arguments->count && status == TM_OK; i++)
    for (const tm_merge_word *setting = tm_merge_setting_words; setting->text != NULL && status == TM_OK; setting++)
      if (strcmp(arguments->items[i].flag->name, setting->text) == 0)
        status = read_setting(setting, arguments, i, request, error);
  return status;
}

static tm_status read_word(const tm_arguments *arguments, const char *name, const tm_merge_word *words, uint32_t *out_value,
                           tm_error *error) {
  char        where[64];
  const char *text = tm_arguments_value(arguments, name);
  snprintf(where, sizeof where, "--%s", name);
  return text == NULL ? TM_OK : tm_merge_word_find(words, where, text, out_value, error);
}

static tm_status read_policies(const tm_arguments *arguments, tm_merge_request *request, tm_error *error) {
  tm_status status = read_word(arguments, "missing", tm_merge_missing_words, &request->missing, error);
  if (status == TM_OK) status = read_word(arguments, "rows", tm_merge_rows_words, &request->rows, error);
  return status != TM_OK ? status : read_word(arguments, "other", tm_merge_other_words, &request->other, error);
}

/* Of these a merge has one: of two one would be ignored. */
static tm_status refuse_second(const tm_arguments *arguments, tm_error *error) {
  static const char *const names[] = { "output", "recipe", "base", "seed", "missing", "rows", "other" };
  for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
    const char *first = NULL;
    for (uint32_t i = 0; i < arguments->count; i++) {
      if (strcmp(arguments->items[i].flag->name, names[n]) != 0) continue;
      if (first != NULL && strcmp(first, arguments->items[i].value) != 0)
        return tm_refuse(error, TM_ERROR_ARGUMENT, "--%s %.200s and --%s %.200s: a merge has one", names[n], first, names[n],
                         arguments->items[i].value);
      first = arguments->items[i].value;
    }
  }
  return TM_OK;
}

static tm_status read_rest(const tm_arguments *arguments, tm_merge_request *request, tm_error *error) {
  const char *seed = tm_arguments_value(arguments, "seed"), *base = tm_arguments_value(arguments, "base");
  const char *output = tm_arguments_value(arguments, "output");
  if (seed != NULL) {
    request->has_seed = true;
    if (!tm_quantity_parse_count(seed, &request->seed))
      return tm_refuse(error, TM_ERROR_ARGUMENT, "--seed wants a whole number up to %" PRIu64 ", not \"%s\"", UINT64_MAX, seed);
  }
  if (base != NULL) request->base = base;
  if (output != NULL) {
    request->output = output;
    if (tm_merge_output_is_gguf(output)) request->shard_bytes = 0;      /* the recipe's is that of its own output; GGUF is one file */
  }
  if (tm_arguments_value(arguments, "normalize") != NULL) {
    request->has_normalize = true;
    request->keeps_sum = !tm_arguments_has(arguments, "normalize");
  }
  if (tm_arguments_value(arguments, "rescale") != NULL) {
    request->has_rescale = true;
    request->keeps_scale = !tm_arguments_has(arguments, "rescale");
  }
  request->shard_bytes = tm_arguments_size(arguments, "shard-size", request->shard_bytes);
  return TM_OK;
}

static tm_status read_operands(const tm_arguments *arguments, tm_merge_request *request, tm_error *error) {
  tm_status status = TM_OK;
  for (uint32_t i = 0; i < arguments->operand_count && status == TM_OK; i++)
    status = tm_merge_request_add_model(request, "merge", arguments->operands[i], NULL, error);
  request->has_operands = arguments->operand_count > 0;
  return status;
}

/* With these something else may be read of the models than the recipe has the hashes of. */
static bool changes_inputs(const tm_arguments *arguments) {
  static const char *const names[] = { "base", "weight", "t", "scale", "missing", "rows", "other" };
  for (uint32_t i = 0; i < arguments->count; i++) {
    const char *name = arguments->items[i].flag->name;
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++)
      if (strcmp(name, names[n]) == 0) return true;
    for (const tm_merge_word *method = tm_merge_methods; method->text != NULL; method++)
      if (strcmp(name, method->text) == 0) return true;
  }
  return false;
}

tm_status tm_merge_flags_read(tm_context *context, const tm_arguments *arguments, tm_merge_request *request, tm_error *error) {
  const char *recipe = tm_arguments_value(arguments, "recipe");
  tm_status   status = refuse_second(arguments, error);
  if (status == TM_OK) status = read_operands(arguments, request, error);
  request->recipe = recipe;
  request->output = tm_arguments_value(arguments, "output");    /* trouble is told of it, too */
  if (status == TM_OK && recipe != NULL) status = tm_merge_recipe_load(context, recipe, request, error);
  if (changes_inputs(arguments)) tm_merge_hashes_forget(request);
  if (status == TM_OK) status = tm_merge_hashes_check(request, error);
  if (status == TM_OK) status = read_method(arguments, request, error);
  if (status == TM_OK) status = read_settings(arguments, request, error);
  if (status == TM_OK) status = read_policies(arguments, request, error);
  return status != TM_OK ? status : read_rest(arguments, request, error);
}
