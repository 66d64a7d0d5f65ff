/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llama MODEL [--prompt TOKEN,...] [--steps N] [--temperature T] [--seed N] [--vocabulary FILE] [--device NAME]... [--no-device NAME]...
 *       [--plugin FILE]... [--set BACKEND.OPTION=VALUE]... [--logits FILE] [--quiet]
 *
 * Tells a story with a model in the layout of llama2.c (model.h): the prompt in one run, then a token a run, printed as it comes.  The
 * graph is planned once for each of the two; where everything ran, and that the runs after the first asked, prepared and planned
 * nothing, is said at the end.  --logits writes those of every step as f32.  --vocabulary is llama2.c's tokenizer file; without
 * one tokens are printed as numbers.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "network.h"
#include "sampler.h"
#include "vocabulary.h"

#define MOST_NAMES 16u
#define MOST_PROMPT 4096u
#define BEGIN_TOKEN 1u

typedef struct arguments {
  const char *model, *logits, *vocabulary;
  const char *devices[MOST_NAMES], *excluded[MOST_NAMES], *plugins[MOST_NAMES];
  tm_setting  settings[MOST_NAMES];
  uint32_t    device_count, excluded_count, plugin_count, setting_count;
  int32_t     prompt[MOST_PROMPT];
  uint32_t    prompt_count, steps;
  llama_sampler sampler;
  int         quiet;
} arguments;

/* A planned network, with memory for what goes in and comes out. */
typedef struct runner {
  llama_network network;
  tm_plan      *plan;
  tm_tensor    *inputs[4];              /* tokens, positions, start, length */
  tm_tensor    *logits;
  uint32_t      tokens;
} runner;

/* ---- what was asked for ---- */

/* Digits alone: strtoull would take a sign, and turn it into a large number. */
static int read_number(const char *text, uint64_t most, const char **out_end, uint64_t *out_number) {
  char *end = NULL;
  if (*text < '0' || *text > '9') return 0;
  errno = 0;
  *out_number = strtoull(text, &end, 10);
  *out_end = end;
  return errno == 0 && *out_number <= most;
}

static int read_count(const char *text, uint64_t most, uint64_t *out_number) {
  const char *end = NULL;
  return read_number(text, most, &end, out_number) && *end == '\0';
}

static int read_steps(arguments *a, const char *text) {
  uint64_t steps;
  if (!read_count(text, UINT32_MAX, &steps)) return 0;
  a->steps = (uint32_t)steps;
  return 1;
}

static int read_temperature(arguments *a, const char *text) {
  char *end = NULL;
  a->sampler.temperature = strtod(text, &end);
  return end != text && *end == '\0' && isfinite(a->sampler.temperature) && a->sampler.temperature >= 0;
}

static int read_prompt(arguments *a, const char *text) {
  a->prompt_count = 0;
  while (a->prompt_count < MOST_PROMPT) {
    const char *end = NULL;
    uint64_t token;
    if (!read_number(text, INT32_MAX, &end, &token) || (*end != ',' && *end != '\0')) return 0;
    a->prompt[a->prompt_count++] = (int32_t)token;
    if (*end == '\0') return 1;
    text = end + 1;
  }
  return 0;
}

/* BACKEND.OPTION=VALUE; the argument is cut into its parts. */
static int read_setting(arguments *a, char *text) {
  char *point = strchr(text, '.'), *equals = strchr(text, '=');
  if (point == NULL || equals == NULL || equals < point || a->setting_count == MOST_NAMES) return 0;
  *point = *equals = '\0';
  a->settings[a->setting_count++] = (tm_setting){ text, point + 1, equals + 1 };
  return 1;
}

static int read_option(arguments *a, const char *name, char *value) {
  if (strcmp(name, "--prompt") == 0) return read_prompt(a, value);
  if (strcmp(name, "--steps") == 0) return read_steps(a, value);
  if (strcmp(name, "--temperature") == 0) return read_temperature(a, value);
  if (strcmp(name, "--seed") == 0) return read_count(value, UINT64_MAX, &a->sampler.seed);
  if (strcmp(name, "--set") == 0) return read_setting(a, value);
  if (strcmp(name, "--logits") == 0) return (a->logits = value) != NULL;
  if (strcmp(name, "--vocabulary") == 0) return (a->vocabulary = value) != NULL;
  if (strcmp(name, "--device") == 0 && a->device_count < MOST_NAMES) return (a->devices[a->device_count++] = value) != NULL;
  if (strcmp(name, "--no-device") == 0 && a->excluded_count < MOST_NAMES) return (a->excluded[a->excluded_count++] = value) != NULL;
  if (strcmp(name, "--plugin") == 0 && a->plugin_count < MOST_NAMES) return (a->plugins[a->plugin_count++] = value) != NULL;
  return 0;
}

/* What is wrong with an option that read_option did not take. */
static void tell_option(const char *name, const char *value) {
  static const char *const names[] = { "--prompt",     "--steps",  "--temperature", "--seed",   "--set",
                                       "--logits",     "--vocabulary", "--device",  "--no-device", "--plugin" };
  size_t i = 0;
  while (i < sizeof names / sizeof names[0] && strcmp(names[i], name) != 0) i++;
  if (i == sizeof names / sizeof names[0]) fprintf(stderr, "llama: there is no option %s\n", name);
  else if (value == NULL) fprintf(stderr, "llama: %s needs a value\n", name);
  else fprintf(stderr, "llama: %s cannot be '%s', or was given too often\n", name, value);
}

static int refuse(const char *what, const char *word) {
  fprintf(stderr, "llama: %s%s\n", what, word);
  return 0;
}

/* Says which argument it does not take. */
static int read_arguments(arguments *a, int count, char **words) {
  *a = (arguments){ .prompt = { BEGIN_TOKEN }, .prompt_count = 1, .steps = 200 };
  for (int i = 1; i < count; i++) {
    if (strncmp(words[i], "--", 2) != 0) {
      if (a->model != NULL) return refuse("there is a model already, before ", words[i]);
      a->model = words[i];
    } else if (strcmp(words[i], "--quiet") == 0) {
      a->quiet = 1;
    } else if (i + 1 == count || !read_option(a, words[i], words[i + 1])) {
      tell_option(words[i], i + 1 == count ? NULL : words[i + 1]);
      return 0;
    } else {
      i++;
    }
  }
  return a->model != NULL ? 1 : refuse("no model is named", "");
}

static int is_possible(const arguments *a, const llama_model *model) {
  for (uint32_t i = 0; i < a->prompt_count; i++)
    if (a->prompt[i] < 0 || (uint32_t)a->prompt[i] >= model->vocabulary) {
      fprintf(stderr, "token %" PRId32 " of the prompt: the model has tokens 0 to %" PRIu32 "\n", a->prompt[i], model->vocabulary - 1);
      return 0;
    }
  if ((uint64_t)a->prompt_count + a->steps <= (uint64_t)model->longest + 1) return 1;
  fprintf(stderr, "%" PRIu32 " tokens of prompt and %" PRIu32 " steps: the model takes %" PRIu32 " tokens\n", a->prompt_count, a->steps, model->longest);
  return 0;
}

/* ---- running ---- */

static tm_status open_runner(runner *r, tm_context *context, const llama_model *model, uint32_t tokens, tm_error *error) {
  const tm_plan_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .wait_for_prepare = 1 };
  const uint64_t extents[] = { tokens }, logits[] = { 1, model->vocabulary };
  memset(r, 0, sizeof *r);
  r->tokens = tokens;
  tm_status status = llama_network_build(&r->network, context, model, tokens, model->longest, error);
  if (status == TM_OK) status = tm_plan_create(r->network.graph, &options, &r->plan, error);
  for (uint32_t i = 0; i < 4 && status == TM_OK; i++)
    status = tm_tensor_create(context, TM_FORMAT_I32, i < 2 ? 1 : 0, extents, &r->inputs[i], error);
  if (status == TM_OK) status = tm_tensor_create(context, TM_FORMAT_F32, 2, logits, &r->logits, error);
  return status;
}

static void close_runner(runner *r) {
  tm_tensor_destroy(r->logits);
  for (uint32_t i = 0; i < 4; i++) tm_tensor_destroy(r->inputs[i]);
  tm_plan_destroy(r->plan);
  llama_network_free(&r->network);
}

/* Takes the tokens that follow `position` earlier ones. */
static tm_status run(runner *r, const int32_t *tokens, uint32_t position, tm_plan_report *report, tm_error *error) {
  int32_t *to[4];
  for (uint32_t i = 0; i < 4; i++) to[i] = tm_tensor_data(r->inputs[i]);
  for (uint32_t i = 0; i < r->tokens; i++) {
    to[0][i] = tokens[i];
    to[1][i] = (int32_t)(position + i);
  }
  *to[2] = (int32_t)position;
  *to[3] = (int32_t)(position + r->tokens);
  *report = (tm_plan_report){ .struct_size = sizeof *report };
  return tm_plan_run(r->plan, r->inputs, 4, &r->logits, 1, report, error);
}

/* Keys and values go from one plan to the other; their graphs have the same states. */
static tm_status hand_over(tm_context *context, const runner *from, runner *to, tm_error *error) {
  tm_graph_description all = { .struct_size = sizeof all };
  tm_value_description value = { .struct_size = sizeof value };
  tm_status status = TM_OK;
  tm_graph_describe(from->network.graph, &all);
  for (uint32_t i = 0; i < all.value_count && status == TM_OK; i++) {
    uint32_t other = TM_NO_VALUE;
    tm_tensor *content = NULL;
    (void)tm_graph_value_describe(from->network.graph, i, &value);
    if (value.kind != TM_VALUE_STATE) continue;
    status = tm_graph_find(to->network.graph, value.name, &other);
    if (status == TM_OK) status = tm_tensor_create(context, value.layout.format, value.layout.rank, value.layout.dims, &content, error);
    if (status == TM_OK) status = tm_plan_state_read(from->plan, i, content, error);
    if (status == TM_OK) status = tm_plan_state_write(to->plan, other, content, error);
    tm_tensor_destroy(content);
  }
  return status;
}

/* ---- the story ---- */

typedef struct story {
  const arguments   *arguments;
  const llama_model *model;
  llama_vocabulary   vocabulary;
  llama_sampler      sampler;
  FILE              *logits;
  int32_t            last;
  uint64_t           queries, prepares, plans;          /* after the first step */
  uint64_t           nanoseconds;                       /* of the runs after the first */
} story;

/* Picks the token that follows, and prints it. */
static tm_status say(story *s, runner *r, tm_error *error) {
  const float *logits = tm_tensor_data(r->logits);
  const uint32_t before = (uint32_t)s->last, count = s->model->vocabulary;
  s->last = (int32_t)llama_sampler_pick(&s->sampler, logits, count);
  int written = s->logits == NULL || fwrite(logits, sizeof *logits, count, s->logits) == count;
  if (!s->arguments->quiet) written &= llama_vocabulary_print(&s->vocabulary, before, (uint32_t)s->last);
  if (written) return TM_OK;
  snprintf(error->text, sizeof error->text, "what was computed cannot be written");
  return TM_ERROR_IO;
}

static tm_status tell(story *s, tm_context *context, tm_error *error) {
  const arguments *a = s->arguments;
  runner prefill, decode;
  tm_plan_report report;
  memset(&decode, 0, sizeof decode);
  s->last = a->prompt[a->prompt_count - 1];
  tm_status status = open_runner(&prefill, context, s->model, a->prompt_count, error);
  if (status == TM_OK) status = run(&prefill, a->prompt, 0, &report, error);
  if (status == TM_OK && a->steps != 0) status = say(s, &prefill, error);
  if (status == TM_OK) status = open_runner(&decode, context, s->model, 1, error);
  if (status == TM_OK) status = hand_over(context, &prefill, &decode, error);
  for (uint32_t i = 1; i < a->steps && status == TM_OK; i++) {
    status = run(&decode, &s->last, a->prompt_count + i - 1, &report, error);
    if (status == TM_OK) status = say(s, &decode, error);
    if (i == 1) continue;
    s->queries += report.query_count;
    s->prepares += report.prepare_count;
    s->plans += report.plan_count;
    s->nanoseconds += report.measured_ns;
  }
  close_runner(&decode);
  close_runner(&prefill);
  return status;
}

static tm_status open_context(const arguments *a, tm_context **out_context, tm_error *error) {
  const tm_context_options options = { .struct_size = sizeof options, .devices = a->devices, .device_count = a->device_count,
                                       .excluded_devices = a->excluded, .excluded_device_count = a->excluded_count,
                                       .plugin_paths = a->plugins, .plugin_path_count = a->plugin_count,
                                       .settings = a->settings, .setting_count = a->setting_count };
  return tm_context_create(&options, out_context, error);
}

/* One that is named and cannot be used is a mistake, or the story would be told by another device. */
static int has_plugins(tm_context *context) {
  tm_backend_description backend = { .struct_size = sizeof backend };
  int has_all = 1;
  for (uint32_t i = 0; tm_backend_describe(context, i, &backend) == TM_OK; i++) {
    if (backend.state != TM_BACKEND_REFUSED || strcmp(backend.origin, "built-in") == 0) continue;
    fprintf(stderr, "--plugin %s: %s\n", backend.origin, backend.reason);
    has_all = 0;
  }
  return has_all;
}

/* Another device tells the story then; whoever asked for this one must know. */
static void note_absent(const arguments *a, tm_context *context) {
  tm_backend_description backend = { .struct_size = sizeof backend };
  for (uint32_t i = 0; tm_backend_describe(context, i, &backend) == TM_OK; i++)
    for (uint32_t k = 0; k < a->device_count && backend.device_count == 0; k++) {
      const size_t length = strlen(backend.name);
      if (strncmp(a->devices[k], backend.name, length) != 0) continue;
      if (a->devices[k][length] != '\0' && a->devices[k][length] != ':') continue;
      fprintf(stderr, "nothing goes to %s: it has no device here: %s\n", backend.name, backend.reason);
      break;
    }
}

static void show_summary(const story *s, tm_context *context) {
  tm_device_description device = { .struct_size = sizeof device };
  const uint32_t runs = s->arguments->steps > 2 ? s->arguments->steps - 2 : 0;
  if (!s->arguments->quiet) printf("\n");
  fprintf(stderr, "after the first step: %" PRIu64 " questions, %" PRIu64 " kernels prepared, %" PRIu64 " plans\n", s->queries, s->prepares, s->plans);
  if (runs != 0 && s->nanoseconds != 0) fprintf(stderr, "%.0f tokens a second\n", 1e9 * runs / (double)s->nanoseconds);
  for (uint32_t i = 0; tm_device_describe(context, i, &device) == TM_OK; i++)
    if (device.launch_count != 0) fprintf(stderr, "%s: %" PRIu64 " operation%s\n", device.name, device.launch_count, device.launch_count == 1 ? "" : "s");
}

static int tell_with(const arguments *a, const llama_model *model) {
  story s = { .arguments = a, .model = model, .sampler = a->sampler };
  tm_error error = { .struct_size = sizeof error };
  tm_context *context = NULL;
  if (!is_possible(a, model) || !llama_vocabulary_read(&s.vocabulary, a->vocabulary, model->vocabulary)) return 0;
  if (a->logits != NULL && (s.logits = fopen(a->logits, "wb")) == NULL) perror(a->logits);
  int told = a->logits == NULL || s.logits != NULL;
  tm_status status = told ? open_context(a, &context, &error) : TM_OK;
  told = told && (status != TM_OK || has_plugins(context));
  if (status == TM_OK && told) note_absent(a, context);
  if (status == TM_OK && told) status = tell(&s, context, &error);
  if (status != TM_OK) fprintf(stderr, "%s: %s\n", tm_status_text(status), error.text);
  told = told && status == TM_OK;
  if (told) show_summary(&s, context);
  tm_context_destroy(context);
  if (s.logits != NULL && fclose(s.logits) != 0) told = 0;
  llama_vocabulary_free(&s.vocabulary);
  return told;
}

int main(int argument_count, char **words) {
  static arguments a;
  static llama_model model;
  if (!read_arguments(&a, argument_count, words)) {
    fprintf(stderr, "usage: llama MODEL [--prompt TOKEN,...] [--steps N] [--temperature T] [--seed N] [--vocabulary FILE]\n"
                    "             [--device NAME]... [--no-device NAME]... [--plugin FILE]... [--set BACKEND.OPTION=VALUE]... [--logits FILE] [--quiet]\n");
    return 2;
  }
  const int told = llama_model_read(&model, a.model) && tell_with(&a, &model);
  llama_model_free(&model);
  return told ? 0 : 1;
}
