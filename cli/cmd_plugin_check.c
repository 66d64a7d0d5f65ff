/* SPDX-License-Identifier: Apache-2.0 */
/* Holding a backend to its claims is the business of a program of its own, which may crash. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "companion.h"
#include "complain.h"
#include "plugin_command.h"
#include "session.h"

#define PROGRAM "tensormorph-conformance"
#define PROGRAM_VARIABLE "TENSORMORPH_CONFORMANCE"
#define BUILT_IN "built-in"
#define EXIT_NO_DEVICE 77       /* of that program */
#define LONGEST_PATH 4096
#define LONGEST_CALL 2048
#define MOST_WORDS 64u          /* besides settings */

typedef struct check_call {
  tm_invocation *invocation;
  char         program[LONGEST_PATH];
  char         target[LONGEST_PATH];    /* a built-in's name, or a path */
  char         called[LONGEST_CALL];
  char         verdict_file[16];        /* the number of the open file that takes it; set as the program is started */
  const char **words;
  uint32_t     count;
  char       **settings;                /* owned */
  uint32_t     setting_count;
} check_call;

/* ---- what is checked ---- */

static bool is_file(const char *target) {
  const size_t length = strlen(target);
  return strchr(target, '/') != NULL || (length > 3 && strcmp(target + length - 3, ".so") == 0);
}

static int complain_nobody(const char *name) {
  return tm_complain_as(TM_EXIT_TROUBLE,
                        "there is no backend %.200s; tensormorph plugin list lists plugins, and a file is named with its path",
                        name);
}

/* By name: the list of backends says from which file it comes. */
static int find_by_name(check_call *call, const char *name) {
  const tm_session_needs needs = { 0 };
  tm_preferences         bare = call->invocation->preferences;
  tm_backend_description backend = { .struct_size = sizeof backend };
  tm_context            *context = NULL;
  tm_error               error = TM_CLI_ERROR_INIT;
  bool                   found = false;
  bare.devices.count = bare.excluded_devices.count = bare.setting_count = bare.variable_count = 0;
  bare.quiet = true;
  if (tm_session_open(&bare, &needs, &context, &error) != TM_OK) return tm_complain(&error);
  for (uint32_t i = 0; !found && tm_backend_describe(context, i, &backend) == TM_OK; i++) {
    found = strcmp(backend.name, name) == 0;
    if (found) snprintf(call->target, sizeof call->target, "%s", strcmp(backend.origin, BUILT_IN) == 0 ? name : backend.origin);
  }
  tm_context_destroy(context);
  return found ? TM_EXIT_OK : complain_nobody(name);
}

static int find_target(check_call *call, const char *target) {
  if (!is_file(target)) return find_by_name(call, target);
  if (access(target, R_OK) != 0) return tm_complain_as(TM_EXIT_TROUBLE, "%s: %s", target, strerror(errno));
  /* A name without a folder would be looked for among the system's libraries. */
  snprintf(call->target, sizeof call->target, "%s%s", strchr(target, '/') == NULL ? "./" : "", target);
  return TM_EXIT_OK;
}

/* ---- how ---- */

static void add_word(check_call *call, const char *word) {
  if (call->count < MOST_WORDS + 2 * call->setting_count) call->words[call->count++] = word;
}

static void add_pair(check_call *call, const char *name, const char *value) {
  if (value == NULL) return;
  add_word(call, name);
  add_word(call, value);
}

static void append_called(check_call *call, const char *text, size_t bytes) {
  const size_t length = strlen(call->called);
  snprintf(call->called + length, sizeof call->called - length, "%.*s", (int)bytes, text);
}

/* A word as a shell takes it. */
static void add_called(check_call *call, const char *before, const char *word) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,+-";
  const bool is_plain = word[0] != '\0' && strspn(word, plain) == strlen(word);
  append_called(call, before, strlen(before));
  if (!is_plain) append_called(call, "'", 1);
  for (const char *c = word; *c != '\0'; c++) append_called(call, *c == '\'' ? "'\\''" : c, *c == '\'' ? 4 : 1);
  if (!is_plain) append_called(call, "'", 1);
}

static bool make_settings(check_call *call) {
  const tm_preferences *preferences = &call->invocation->preferences;
  call->setting_count = preferences->setting_count;
  call->settings = calloc((size_t)call->setting_count + 1, sizeof *call->settings);
  call->words = calloc(MOST_WORDS + 2 * (size_t)call->setting_count + 1, sizeof *call->words);
  if (call->settings == NULL || call->words == NULL) return false;
  for (uint32_t i = 0; i < call->setting_count; i++) {
    const tm_setting *setting = &preferences->settings[i].setting;
    const size_t      bytes = strlen(setting->backend) + strlen(setting->name) + strlen(setting->value) + 3;
    call->settings[i] = malloc(bytes);
    if (call->settings[i] == NULL) return false;
    snprintf(call->settings[i], bytes, "%s.%s=%s", setting->backend, setting->name, setting->value);
  }
  return true;
}

/* --device NAME:1 or 1; a name alone means all of its devices. */
static int add_device(check_call *call) {
  const tm_name_list *devices = &call->invocation->preferences.devices;
  if (devices->count == 0 || devices->layer != TM_LAYER_FLAG) return TM_EXIT_OK;
  const char *colon = strrchr(devices->names[0], ':');
  const char *index = colon != NULL ? colon + 1 : devices->names[0];
  const bool  is_index = index[0] != '\0' && strspn(index, "0123456789") == strlen(index);
  if (devices->count > 1) return tm_complain_as(TM_EXIT_USAGE, "plugin check takes one --device");
  if (colon != NULL && !is_index)
    return tm_complain_as(TM_EXIT_USAGE, "--device wants NAME:INDEX or INDEX, not \"%s\"", devices->names[0]);
  if (is_index) add_pair(call, "--device", index);
  return TM_EXIT_OK;
}

static int make_words(check_call *call) {
  static const char *const values[] = { "seed", "cases", "only", "leave-out", "formats", "case", "deadline", "budget" };
  static const char *const names[] = { "--seed", "--cases", "--only", "--leave-out", "--formats", "--case", "--deadline", "--budget" };
  const tm_arguments   *arguments = &call->invocation->arguments;
  const tm_preferences *preferences = &call->invocation->preferences;
  add_word(call, call->program);        /* with its folder: what lies beside it is found by that */
  add_word(call, call->target);
  add_pair(call, "--verdict", call->verdict_file);
  add_called(call, "tensormorph plugin check ", call->target);
  for (uint32_t i = 0; i < call->setting_count; i++) {
    add_pair(call, "--set", call->settings[i]);
    add_called(call, " --set ", call->settings[i]);
  }
  add_pair(call, "--called", call->called);
  add_word(call, tm_arguments_has(arguments, "full") ? "--full" : "--quick");
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) add_pair(call, names[i], tm_arguments_value(arguments, values[i]));
  if (tm_arguments_has(arguments, "no-isolate")) add_word(call, "--no-isolate");
  if (preferences->json) add_word(call, "--json");
  if (preferences->quiet) add_word(call, "--quiet");
  return add_device(call);
}

/* ---- running it ---- */

static bool has_program(char *path, size_t capacity) {
  static const char *const places[] = { "../libexec/tensormorph", "../../libexec/tensormorph", "../lib/tensormorph", NULL };
  const char *chosen = getenv(PROGRAM_VARIABLE);
  if (chosen != NULL && chosen[0] == '/') {
    snprintf(path, capacity, "%s", chosen);
    return true;
  }
  return tm_companion_find(places, PROGRAM, path, capacity);
}

bool tm_plugin_can_check(void) {
  char path[4096];
  return has_program(path, sizeof path) && access(path, X_OK) == 0;
}

static int find_program(char *path, size_t capacity) {
  if (has_program(path, capacity)) return TM_EXIT_OK;
  return tm_complain_as(TM_EXIT_TROUBLE, PROGRAM " is not installed beside this command; " PROGRAM_VARIABLE " can name it");
}

/* What the program said at its end; its exit code may be what a plugin in it made of it. */
static int judge_end(int status, bool has_verdict, int verdict) {
  if (has_verdict) return verdict == EXIT_NO_DEVICE ? TM_EXIT_TROUBLE : verdict;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE) return TM_EXIT_CLOSED_PIPE;
  if (WIFSIGNALED(status)) return tm_complain_as(TM_EXIT_TROUBLE, "the check ended with signal %d", WTERMSIG(status));
  return tm_complain_as(TM_EXIT_TROUBLE, "the check ended with exit code %d and without a verdict", WEXITSTATUS(status));
}

static int run_program(check_call *call) {
  int ends[2], status = 0;
  unsigned char verdict = 0;
  tm_output_flush(call->invocation->output);
  if (pipe(ends) != 0) return tm_complain_as(TM_EXIT_TROUBLE, "cannot run %s: %s", call->program, strerror(errno));
  /* Whoever is left with the other end must not be waited for, nor inherit this one. */
  (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
  (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  snprintf(call->verdict_file, sizeof call->verdict_file, "%d", ends[1]);
  const bool ran = tm_companion_run(call->program, call->words, &status);
  const int number = errno;
  const bool has_verdict = ran && read(ends[0], &verdict, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return ran ? judge_end(status, has_verdict, verdict)
             : tm_complain_as(TM_EXIT_TROUBLE, "cannot run %s: %s", call->program, strerror(number));
}

int tm_plugin_check(tm_invocation *invocation, const char *target) {
  check_call *call = calloc(1, sizeof *call);
  if (call == NULL) return tm_complain_as(TM_EXIT_TROUBLE, "out of memory");
  call->invocation = invocation;
  int exit_code = find_program(call->program, sizeof call->program);
  if (exit_code == TM_EXIT_OK) exit_code = find_target(call, target);
  if (exit_code == TM_EXIT_OK)
    exit_code = make_settings(call) ? make_words(call) : tm_complain_as(TM_EXIT_TROUBLE, "out of memory");
  if (exit_code == TM_EXIT_OK) exit_code = run_program(call);
  for (uint32_t i = 0; call->settings != NULL && i < call->setting_count; i++) free(call->settings[i]);
  free(call->settings);
  free(call->words);
  free(call);
  return exit_code;
}
