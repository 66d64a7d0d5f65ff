/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/probe_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dynamic_library.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/text.h"
#include "plugin/record_store.h"

#define PROBE_VARIABLE "TENSORMORPH_PROBE"
#define PROBE_NAME "tensormorph-probe"
#define LONGEST_PATH 4096
#define NS_PER_S UINT64_C(1000000000)
#define SILENCE_S 5u            /* no single step takes so long */
#define TOTAL_S 60u
#define FIXED_ARGUMENTS 6u      /* program, depth, path, built-in, name, the end */

/* The probe lies in libexec beside the folder of this library or of the program that holds it. */
static bool find_probe(char *path, size_t capacity) {
  const char *chosen = tm_is_privileged() ? NULL : getenv(PROBE_VARIABLE);
  if (chosen != NULL && chosen[0] == '/') return (size_t)snprintf(path, capacity, "%s", chosen) < capacity;
  char folder[LONGEST_PATH];
  if (!tm_library_folder(PROBE_NAME, folder, sizeof folder)) return false;
  static const char *const places[] = { "../libexec/tensormorph", "../../libexec/tensormorph" };
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    if ((size_t)snprintf(path, capacity, "%s/%s/%s", folder, places[i], PROBE_NAME) < capacity && tm_is_executable(path))
      return true;
  }
  return false;
}

bool tm_probe_is_possible(void) {
  char program[LONGEST_PATH * 2];
  return find_probe(program, sizeof program) && tm_is_executable(program);
}

/* ---- the command ---- */

typedef struct command {
  tm_arena     arena;
  const char **words;
  uint32_t     count;
} command;

static bool add_word(command *c, const char *word) {
  c->words[c->count] = tm_arena_string(&c->arena, word, strlen(word));
  return c->words[c->count++] != NULL;
}

/* "backend.option=value" */
static bool add_setting(command *c, const tm_setting *setting) {
  const size_t bytes = strlen(setting->backend) + strlen(setting->name) + strlen(setting->value) + 3;
  char *word = tm_arena_alloc(&c->arena, bytes);
  if (word == NULL) return false;
  snprintf(word, bytes, "%s.%s=%s", setting->backend, setting->name, setting->value);
  c->words[c->count++] = word;
  return true;
}

static bool make_command(command *c, const char *program, const tm_probe_request *request) {
  const uint32_t settings = request->options == NULL ? 0 : request->options->setting_count;
  c->words = tm_arena_calloc(&c->arena, FIXED_ARGUMENTS + (uint64_t)settings, sizeof *c->words);
  if (c->words == NULL || !add_word(c, program) || !add_word(c, request->depth) || !add_word(c, request->path == NULL ? "" : request->path) ||
      !add_word(c, request->path == NULL ? request->builtin : "") || !add_word(c, request->settings_name == NULL ? "" : request->settings_name))
    return false;
  for (uint32_t i = 0; i < settings; i++)
    if (!add_setting(c, &request->options->settings[i])) return false;
  return true;
}

/* ---- what it said ---- */

/* Reads up to what ends it; *out_step is the last one that was told. */
static tm_string read_output(tm_probe_result *result, tm_field_reader *reader, tm_string *out_step) {
  *out_step = (tm_string){ "", 0 };
  tm_field_reader_init(reader, result->process.output, result->process.output_length);
  for (;;) {
    const tm_string tag = tm_field_read(reader);
    const bool is_step = tm_field_is(tag, TM_PROBE_STEP);
    if (!is_step && !tm_field_is(tag, TM_PROBE_VARIABLE)) return tag;
    const tm_string text = tm_field_read(reader);
    if (reader->failed) return tag;
    if (is_step)
      *out_step = text;
    else
      tm_field_write(&result->variables, text.data, text.length);
  }
}

/* It ended before it had said everything. */
static tm_status blame(const tm_process_result *process, tm_string step, const char *path, tm_error *error) {
  char doing[160];
  (void)tm_text_escape(step.length == 0 ? "loading it" : step.data, step.length == 0 ? 10 : step.length, doing, sizeof doing);
  if (process->timed_out)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: %s did not end within %u s (tried in a process of its own)", path, doing, SILENCE_S);
  if (process->signal != 0)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: %s ends the process with signal %d (tried in a process of its own)", path, doing,
                   process->signal);
  return tm_fail(error, TM_ERROR_CORRUPT, "%s: %s ends the process with exit code %d (tried in a process of its own)", path, doing,
                 process->exit_code);
}

static tm_status take_record(tm_field_reader *reader, tm_probe_result *result) {
  result->is_final = tm_field_read_number(reader) != 0;
  result->record = (tm_string){ reader->bytes + reader->position, reader->length - reader->position };
  return reader->failed ? TM_ERROR_CORRUPT : TM_OK;
}

static tm_status judge(const tm_probe_request *request, tm_probe_result *result, tm_error *error) {
  const char *what = request->path == NULL ? request->builtin : request->path;
  tm_string step;
  tm_field_reader reader;
  const tm_string tag = read_output(result, &reader, &step);
  const bool ended_well = !result->process.timed_out && result->process.signal == 0;
  if (reader.failed || !ended_well) return blame(&result->process, step, what, error);
  if (tm_field_is(tag, TM_PROBE_RECORD) && take_record(&reader, result) == TM_OK) return TM_OK;
  const tm_string text = tm_field_read(&reader);
  if (reader.failed) return blame(&result->process, step, what, error);
  const tm_status status = tm_field_is(tag, TM_PROBE_ARGUMENT) ? TM_ERROR_ARGUMENT : TM_ERROR_CORRUPT;
  return tm_fail(error, status, "%.*s", (int)(text.length > 900 ? 900 : text.length), text.data);
}

tm_status tm_probe_run(tm_memory *memory, const tm_probe_request *request, tm_probe_result *out_result, tm_error *error) {
  char program[LONGEST_PATH * 2];
  memset(out_result, 0, sizeof *out_result);
  tm_field_writer_init(&out_result->variables, memory);
  if (!find_probe(program, sizeof program))
    return tm_fail(error, TM_ERROR_NOT_FOUND, "%s is not installed, so it cannot be tried in a process of its own", PROBE_NAME);
  const tm_process_limits limits = { SILENCE_S * NS_PER_S, TOTAL_S * NS_PER_S, TM_RECORD_BYTES };
  command c = { .count = 0 };
  tm_arena_init(&c.arena, memory);
  tm_status status = make_command(&c, program, request) ? TM_OK : tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to try a plugin");
  if (status == TM_OK) status = tm_process_run(memory, c.words, &limits, &out_result->process, error);
  tm_arena_deinit(&c.arena);
  if (status == TM_ERROR_IO) return TM_ERROR_NOT_FOUND;
  return status == TM_OK ? judge(request, out_result, error) : status;
}

void tm_probe_deinit(tm_probe_result *result) {
  if (result->process.memory != NULL) tm_process_result_deinit(&result->process);
  tm_field_writer_deinit(&result->variables);
}
