/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/merge_settings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/folder.h"
#include "base/text.h"
#include "jobs/merge_order.h"
#include "tensor/format.h"

#define DEFAULT_T 0.5

/* ------------------------------------------------------------------------------------------------------ as a whole ---- */

static tm_status fail_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to plan a merge"); }

static tm_status check_method(const tm_merge_settings *given, tm_error *error) {
  const bool wants_base = given->method == TM_MERGE_TASK || given->method == TM_MERGE_TIES || given->method == TM_MERGE_DARE;
  if (given->method < TM_MERGE_LINEAR || given->method > TM_MERGE_DARE)
    return tm_fail(error, TM_ERROR_ARGUMENT, "merge: there is no method %u", given->method);
  if (given->model_count == 0 || given->model_count > TM_MERGE_MOST_MODELS)
    return tm_fail(error, TM_ERROR_ARGUMENT, "merge: %u models, expected 1 to %u", given->model_count, TM_MERGE_MOST_MODELS);
  if (given->method == TM_MERGE_SLERP && given->model_count != 2)
    return tm_fail(error, TM_ERROR_ARGUMENT, "merge: slerp is between two models; %u are given", given->model_count);
  if (wants_base && !tm_merge_has_base(given))
    return tm_fail(error, TM_ERROR_ARGUMENT, "merge: this method adds up differences from a base, and none is given");
  if (!wants_base && tm_merge_has_base(given))
    return tm_fail(error, TM_ERROR_ARGUMENT,
                   "merge: a base is given, but linear and slerp have no use for one; name it as a model");
  return TM_OK;
}

static tm_status check_policies(const tm_merge_settings *given, tm_error *error) {
  const uint32_t known = TM_MERGE_KEEP_WEIGHTS | TM_MERGE_NO_RESCALE | TM_MERGE_TIES_SUM;
  const bool is_known = (given->flags & ~known) == 0 && given->missing <= TM_MERGE_MISSING_SKIP &&
                        given->rows <= TM_MERGE_ROWS_LONGEST && given->other <= TM_MERGE_OTHER_SKIP &&
                        given->writer_format <= TM_WRITER_GGUF;
  return is_known ? TM_OK : tm_fail(error, TM_ERROR_ARGUMENT,
                                    "merge: a flag, a policy or a file format that this version does not know");
}

/* ------------------------------------------------------------------------------------------------------------ rules ---- */

static tm_status fail_rule(const tm_merge_rule *rule, const char *what, tm_error *error) {
  const char *pattern = rule->pattern == NULL ? "every tensor" : rule->pattern;
  char shown[160];
  (void)tm_text_escape(pattern, strlen(pattern), shown, sizeof shown);
  return tm_fail(error, TM_ERROR_ARGUMENT, "merge: %s (for '%s')", what, shown);
}

static tm_status check_format(const tm_merge_rule *rule, tm_error *error) {
  const tm_format_info *info = tm_format_find(rule->format);
  if (rule->format == TM_FORMAT_NONE) return TM_OK;
  char what[256], blocks[128];
  if (info != NULL && info->has_arithmetic && (info->kind == TM_KIND_FLOAT || info->kind == TM_KIND_BLOCK)) return TM_OK;
  (void)snprintf(what, sizeof what, "a dtype of %s; results can be of any float format, or of a block format that can be written: %s",
                 info == NULL ? "no known format" : info->name, tm_format_list_blocks(true, blocks, sizeof blocks));
  return fail_rule(rule, what, error);
}

static tm_status check_value(const tm_merge_rule *rule, tm_error *error) {
  char what[128];
  const double value = rule->value;
  switch (rule->what) {
    case TM_MERGE_SET_WEIGHT:
    case TM_MERGE_SET_SCALE:
      if (isfinite(value)) return TM_OK;
      (void)snprintf(what, sizeof what, "a %s must be a finite number", rule->what == TM_MERGE_SET_SCALE ? "scale" : "weight");
      return fail_rule(rule, what, error);
    case TM_MERGE_SET_DENSITY:
      if (value > 0 && value <= 1) return TM_OK;
      (void)snprintf(what, sizeof what, "a density of %g; it must be above 0 and at most 1", value);
      return fail_rule(rule, what, error);
    case TM_MERGE_SET_T:
      if (value >= 0 && value <= 1) return TM_OK;
      (void)snprintf(what, sizeof what, "a t of %g; it must be from 0 to 1", value);
      return fail_rule(rule, what, error);
    case TM_MERGE_SET_FORMAT: return check_format(rule, error);
    default: return fail_rule(rule, "a rule for something that this version does not know", error);
  }
}

static tm_status check_rule(const tm_merge_settings *given, const tm_merge_rule *rule, tm_error *error) {
  const bool is_of_model = rule->what == TM_MERGE_SET_WEIGHT || rule->what == TM_MERGE_SET_DENSITY;
  if (is_of_model && rule->model >= given->model_count && rule->model != TM_MERGE_EVERY_MODEL)
    return fail_rule(rule, "a rule for a model that is not there", error);
  if (!is_of_model && rule->model != 0) return fail_rule(rule, "a model is named, but what is set is of no model", error);
  if (rule->reserved != 0) return fail_rule(rule, "what is reserved must be 0", error);
  return check_value(rule, error);
}

static tm_status copy_rules(const tm_merge_settings *given, tm_arena *arena, tm_merge_settings *settings, tm_error *error) {
  tm_merge_rule *rules = tm_arena_calloc(arena, given->rule_count, sizeof *rules);
  uint32_t used = 0;
  if (rules == NULL) return fail_memory(error);
  for (uint32_t pass = 0; pass < 2; pass++) {
    for (uint32_t i = 0; i < given->rule_count; i++) {
      const tm_merge_rule *rule = &given->rules[i];
      if ((rule->pattern != NULL) != (pass == 1)) continue;
      TM_TRY(check_rule(given, rule, error));
      rules[used] = *rule;
      if (rule->pattern != NULL) rules[used].pattern = tm_arena_string(arena, rule->pattern, strlen(rule->pattern));
      if (rule->pattern != NULL && rules[used].pattern == NULL) return fail_memory(error);
      used++;
    }
  }
  settings->rules = rules;
  return TM_OK;
}

static tm_status check_patterns(const tm_merge_settings *settings, tm_memory *memory, tm_error *error) {
  for (uint32_t i = 0; i < settings->rule_count; i++)
    if (settings->rules[i].pattern != NULL)
      TM_TRY(tm_selection_check_pattern(memory, settings->sources, settings->source_count, settings->rules[i].pattern, error));
  return TM_OK;
}

/* ---------------------------------------------------------------------------------------------------------- sources ---- */

/* The last `depth` names of a path, without what may stand behind them; all of it if it has no more. */
static tm_string path_end(const char *path, uint32_t depth) {
  uint64_t end = strlen(path), begin;
  while (end > 1 && path[end - 1] == '/') end--;
  for (begin = end; begin > 0; begin--) {
    const bool is_begin = path[begin - 1] == '/' && begin < end && path[begin] != '/';
    if (is_begin && --depth == 0) break;
  }
  return (tm_string){ path + begin, end - begin };
}

static bool are_equal(tm_string a, tm_string b) { return a.length == b.length && memcmp(a.data, b.data, a.length) == 0; }

/* What a person calls it: the last part of the path that is a name, and folders before it where another has the same. */
static const char *name_source(const tm_merge_settings *given, const uint32_t *same_as, uint32_t source, tm_arena *arena) {
  const char *path = given->sources[source].path;
  const uint64_t length = strlen(path);
  tm_string name = { path, 0 };
  bool is_told_apart = false;
  for (uint32_t depth = 1; !is_told_apart; depth++) {
    name = path_end(path, depth);
    is_told_apart = true;
    for (uint32_t i = 0; i < given->source_count; i++)
      if (same_as[i] != same_as[source] && are_equal(name, path_end(given->sources[i].path, depth))) is_told_apart = false;
    if (depth > length) break;
  }
  return tm_arena_string(arena, name.data, name.length);
}

static tm_status copy_sources(const tm_merge_settings *given, tm_arena *arena, tm_merge_settings *settings, tm_error *error) {
  tm_job_source *sources = tm_arena_calloc(arena, given->source_count, sizeof *sources);
  const char **names = tm_arena_calloc(arena, given->source_count, sizeof *names);
  uint32_t *same_as = tm_arena_calloc(arena, given->source_count, sizeof *same_as);
  if (sources == NULL || names == NULL || same_as == NULL) return fail_memory(error);
  for (uint32_t i = 0; i < given->source_count; i++) {
    sources[i] = given->sources[i];
    for (same_as[i] = 0; same_as[i] < i; same_as[i]++)
      if (sources[same_as[i]].archive == sources[i].archive || tm_path_is_same(sources[same_as[i]].path, sources[i].path)) break;
  }
  for (uint32_t i = 0; i < given->source_count; i++) {
    names[i] = name_source(given, same_as, i, arena);
    if (names[i] == NULL) return fail_memory(error);
  }
  settings->sources = sources;
  settings->names = names;
  settings->same_as = same_as;
  return TM_OK;
}

static tm_status rank_sources(tm_merge_settings *settings, tm_arena *arena, tm_error *error) {
  uint32_t *ranks = tm_arena_calloc(arena, settings->source_count, sizeof *ranks);
  if (ranks == NULL) return fail_memory(error);
  settings->ranks = ranks;
  if (settings->method == TM_MERGE_SLERP) return TM_OK;         /* takes its two as they come */
  return tm_merge_order_find(settings, arena->memory, ranks, error);
}

tm_status tm_merge_settings_make(const tm_merge_settings *given, tm_arena *arena, tm_merge_settings *out_settings,
                                 tm_error *error) {
  TM_TRY(check_method(given, error));
  TM_TRY(check_policies(given, error));
  *out_settings = *given;
  TM_TRY(copy_sources(given, arena, out_settings, error));
  TM_TRY(copy_rules(given, arena, out_settings, error));
  TM_TRY(check_patterns(out_settings, arena->memory, error));
  TM_TRY(rank_sources(out_settings, arena, error));
  out_settings->path = tm_arena_string(arena, given->path, strlen(given->path));
  if (out_settings->path == NULL) return fail_memory(error);
  out_settings->lead = tm_merge_has_base(given) ? given->model_count : 0;
  if (given->writer_format == 0)
    out_settings->writer_format = tm_text_has_ending(given->path, ".gguf") ? TM_WRITER_GGUF : TM_WRITER_SAFETENSORS;
  return TM_OK;
}

/* --------------------------------------------------------------------------------------------------- for one tensor ---- */

static void set(double *figures, uint32_t count, const tm_merge_rule *rule) {
  for (uint32_t i = 0; i < count; i++)
    if (rule->model == i || rule->model == TM_MERGE_EVERY_MODEL) figures[i] = rule->value;
}

void tm_merge_settings_apply(const tm_merge_settings *settings, tm_string name, tm_merge_figures *out_figures) {
  *out_figures = (tm_merge_figures){ .t = DEFAULT_T, .scale = 1, .format = TM_FORMAT_NONE };
  for (uint32_t i = 0; i < TM_MERGE_MOST_MODELS; i++) out_figures->weights[i] = out_figures->densities[i] = 1;
  for (uint32_t i = 0; i < settings->rule_count; i++) {
    const tm_merge_rule *rule = &settings->rules[i];
    if (rule->pattern != NULL && !tm_glob_match(rule->pattern, strlen(rule->pattern), name.data, name.length)) continue;
    switch (rule->what) {
      case TM_MERGE_SET_WEIGHT: set(out_figures->weights, settings->model_count, rule); break;
      case TM_MERGE_SET_DENSITY: set(out_figures->densities, settings->model_count, rule); break;
      case TM_MERGE_SET_T: out_figures->t = rule->value; break;
      case TM_MERGE_SET_SCALE: out_figures->scale = rule->value; break;
      default: out_figures->format = rule->format; break;
    }
  }
}
