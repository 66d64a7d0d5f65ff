/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/probe_run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/dynamic_library.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/text.h"
#include "plugin/record_store.h"

#define PROBE_VARIABLE "TENSORMORPH_PROBE"
#define PROBE_NAME "tensormorph-probe"
#define LONGEST_PATH 4096
#define NS_PER_S UINT64_C(1000000000)
#define SILENCE_S 5u            /* no single step takes so long, beside what it declares */
#define TIMES_DECLARED 3u       /* what is declared is for a machine that does nothing else */
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

/* ---- how long it may be silent ---- */

/* Follows the output as it comes. */
typedef struct listener {
  uint64_t position;            /* of the first field that is not whole yet */
  uint64_t declared_ns;         /* for the next step, that many times */
  uint64_t silence_ns;
  bool     is_over;             /* no step follows */
} listener;

static void take_field(listener *l, tm_string tag, tm_field_reader *reader, uint64_t *total_ns) {
  if (tm_field_is(tag, TM_PROBE_PATIENCE)) {
    l->declared_ns = TIMES_DECLARED * tm_min_u64(tm_field_read_number(reader), TM_PROBE_LONGEST_NS);
    return;
  }
  (void)tm_field_read(reader);
  l->is_over = !tm_field_is(tag, TM_PROBE_STEP) && !tm_field_is(tag, TM_PROBE_VARIABLE) && !tm_field_is(tag, TM_PROBE_HEADER);
  if (reader->failed || !tm_field_is(tag, TM_PROBE_STEP)) return;
  l->silence_ns = SILENCE_S * NS_PER_S + l->declared_ns;
  *total_ns += l->declared_ns;
  l->declared_ns = 0;
}

static void listen(void *context, const char *output, uint64_t length, uint64_t *silence_ns, uint64_t *total_ns) {
  listener *l = context;
  tm_field_reader reader;
  tm_field_reader_init(&reader, output, length);
  for (reader.position = l->position; !reader.failed && !l->is_over; l->position = reader.failed ? l->position : reader.position) {
    const tm_string tag = tm_field_read(&reader);
    if (!reader.failed) take_field(l, tag, &reader, total_ns);
  }
  *silence_ns = l->silence_ns;
}

/* ---- what it said ---- */

/* Reads up to what ends it; *out_step is the last one that was told. */
static tm_string read_output(tm_probe_result *result, tm_field_reader *reader, tm_string *out_step) {
  *out_step = (tm_string){ "", 0 };
  tm_field_reader_init(reader, result->process.output, result->process.output_length);
  for (;;) {
    const tm_string tag = tm_field_read(reader);
    const bool is_step = tm_field_is(tag, TM_PROBE_STEP), is_variable = tm_field_is(tag, TM_PROBE_VARIABLE);
    const bool is_header = tm_field_is(tag, TM_PROBE_HEADER);
    if (!is_step && !is_variable && !is_header && !tm_field_is(tag, TM_PROBE_PATIENCE)) return tag;
    const tm_string text = tm_field_read(reader);
    if (reader->failed) return tag;
    if (is_step) *out_step = text;
    if (is_header) result->header = text;
    if (is_variable) tm_field_write(&result->variables, text.data, text.length);
  }
}

/* A person, or a system without memory, ends processes with these; a plugin that does harm ends them with others. */
static bool is_from_outside(int32_t signal) {
  return signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT || signal == SIGXCPU;
}

/* It ended before it had said everything. */
static tm_status blame(tm_probe_result *result, tm_string step, uint64_t silence_ns, const char *path, tm_error *error) {
  const tm_process_result *process = &result->process;
  char doing[160];
  result->is_final = !process->timed_out && !is_from_outside(process->signal);
  (void)tm_text_escape(step.length == 0 ? "loading it" : step.data, step.length == 0 ? 10 : step.length, doing, sizeof doing);
  if (process->timed_out)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: %s did not end within %u s (tried in a process of its own)", path, doing,
                   (uint32_t)(silence_ns / NS_PER_S));
  if (process->signal != 0)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: %s ends the process with signal %d (tried in a process of its own)", path, doing,
                   process->signal);
  return tm_fail(error, TM_ERROR_CORRUPT, "%s: %s ends the process with exit code %d (tried in a process of its own)", path, doing,
                 process->exit_code);
}

/* It has said everything; a program that holds it must be able to end, too. */
static tm_status judge_ending(tm_probe_result *result, uint64_t silence_ns, const char *what, tm_error *error) {
  const tm_process_result *process = &result->process;
  const bool ended_well = !process->timed_out && process->signal == 0 && process->exit_code == TM_PROBE_EXIT_CODE;
  if (ended_well || process->is_unseen) return TM_OK;
  result->record = (tm_string){ "", 0 };
  result->is_final = !process->timed_out && !is_from_outside(process->signal);
  if (process->timed_out)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: it keeps the process from ending: it did not end within %u s (tried in a process of its own)",
                   what, (uint32_t)(silence_ns / NS_PER_S));
  if (process->signal != 0)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: it crashed when the process ended: signal %d (tried in a process of its own)", what,
                   process->signal);
  return tm_fail(error, TM_ERROR_CORRUPT, "%s: when the process ended it made its exit code %d (tried in a process of its own)", what,
                 process->exit_code);
}

static tm_status take_record(tm_field_reader *reader, tm_probe_result *result) {
  result->is_final = tm_field_read_number(reader) != 0;
  result->record = (tm_string){ reader->bytes + reader->position, reader->length - reader->position };
  return reader->failed ? TM_ERROR_CORRUPT : TM_OK;
}

static tm_status judge(const tm_probe_request *request, uint64_t silence_ns, tm_probe_result *result, tm_error *error) {
  const char *what = request->path == NULL ? request->builtin : request->path;
  tm_string step;
  tm_field_reader reader;
  const tm_string tag = read_output(result, &reader, &step);
  const bool ended_well = !result->process.timed_out && result->process.signal == 0;
  if (!reader.failed && tm_field_is(tag, TM_PROBE_RECORD) && take_record(&reader, result) == TM_OK)
    return judge_ending(result, silence_ns, what, error);
  if (reader.failed || !ended_well) return blame(result, step, silence_ns, what, error);
  const tm_string text = tm_field_read(&reader);
  if (reader.failed) return blame(result, step, silence_ns, what, error);
  result->is_final = !tm_field_is(tag, TM_PROBE_TROUBLE);
  const tm_status status = tm_field_is(tag, TM_PROBE_ARGUMENT) ? TM_ERROR_ARGUMENT : TM_ERROR_CORRUPT;
  return tm_fail(error, status, "%.*s", (int)(text.length > 900 ? 900 : text.length), text.data);
}

tm_status tm_probe_run(tm_memory *memory, const tm_probe_request *request, tm_probe_result *out_result, tm_error *error) {
  char program[LONGEST_PATH * 2];
  memset(out_result, 0, sizeof *out_result);
  tm_field_writer_init(&out_result->variables, memory);
  if (!find_probe(program, sizeof program))
    return tm_fail(error, TM_ERROR_NOT_FOUND, "%s is not installed, so it cannot be tried in a process of its own", PROBE_NAME);
  listener heard = { .silence_ns = SILENCE_S * NS_PER_S };
  const tm_process_limits limits = { heard.silence_ns, TOTAL_S * NS_PER_S, TM_RECORD_BYTES, listen, &heard };
  command c = { .count = 0 };
  tm_arena_init(&c.arena, memory);
  tm_status status = make_command(&c, program, request) ? TM_OK : tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to try a plugin");
  if (status == TM_OK) status = tm_process_run(memory, c.words, &limits, &out_result->process, error);
  tm_arena_deinit(&c.arena);
  return status == TM_OK ? judge(request, heard.silence_ns, out_result, error) : status;
}

void tm_probe_deinit(tm_probe_result *result) {
  if (result->process.memory != NULL) tm_process_result_deinit(&result->process);
  tm_field_writer_deinit(&result->variables);
}
