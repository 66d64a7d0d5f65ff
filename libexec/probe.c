/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensormorph-probe DEPTH FILE BUILT-IN NAME [BACKEND.OPTION=VALUE]... - tries a plugin in a process that may crash or hang
 * instead of the application.  Tells each step before it takes it, then what was found (plugin/probe_run.h).  Whose devices
 * were listed has its exit handlers run last, as in any program; of what failed before they do not run.  FILE or BUILT-IN is
 * empty; NAME is the one that settings mean it by, or empty.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "canary.h"
#include "conformance/lent.h"
#include "conformance/process_state.h"
#include "journal.h"
#include "plugin/description.h"
#include "plugin/enumeration.h"
#include "plugin/probe_run.h"

/* What all devices have together: each has an equal share of what those before it left. */
#define QUESTIONS_S 5u
#define RUNS_S 20u
#define SLOW_QUESTION_NS UINT64_C(2000000)
#define NOTE_BYTES 1024u
#define NS_PER_S UINT64_C(1000000000)

typedef struct probe {
  tm_memory          memory;
  tm_pool           *pool;
  tm_inventory      *inventory;
  tm_setting        *settings;
  tm_context_options options;
  const char        *path;
  const char        *builtin;
  const char        *name;
  tm_accelerator_backend_plugin own;    /* functions, behind those that lend */
  process_state      before;
  uint32_t           thread_count;      /* likewise */
  canary_report      report;
  bool               was_listed;        /* its record is written: what is left is to end */
} probe;

/* ---- saying ---- */

static int say(probe *p, const char *tag, const char *text) {
  tm_field_writer writer;
  tm_field_writer_init(&writer, &p->memory);
  tm_field_write_text(&writer, tag);
  tm_field_write_text(&writer, text);
  journal_write(&writer);
  tm_field_writer_deinit(&writer);
  return 0;
}

static int say_record(probe *p, const tm_backend_slot *slot, bool is_final) {
  tm_field_writer writer;
  tm_field_writer_init(&writer, &p->memory);
  tm_field_write_text(&writer, TM_PROBE_RECORD);
  tm_field_write_number(&writer, is_final);
  if (slot != NULL) tm_enumeration_write(slot, &writer);
  if (writer.failed) return 3;
  journal_write(&writer);
  tm_field_writer_deinit(&writer);
  return 0;
}

/* ---- loading ---- */

static tm_status load(const char *path, tm_error *error) {
  void *library = NULL;
  tm_plugin_query_fn query = NULL;
  journal_step("loading it");
  TM_TRY(tm_library_open(path, &library, error));
  TM_TRY(tm_library_symbol(library, path, "tm_plugin_query", &query, error));
  journal_step("tm_plugin_query");
  const tm_plugin_header *header = query(TM_ABI_MAJOR, TM_ABI_MINOR);
  journal_step("reading its header");
  /* The first and the last field show a header that points nowhere; what it says is judged later. */
  if (header != NULL && header->magic == TM_PLUGIN_MAGIC && header->header_size == sizeof *header && header->traits != NULL &&
      header->trait_count > 0 && header->traits[0].id.length > 4096)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: its first trait is no sound string", path);
  return TM_OK;
}

/* If it does harm from here on, its name and options are known all the same. */
static void tell_header(void *context, tm_accelerator_backend_plugin *table) {
  probe *p = context;
  tm_field_writer header, writer;
  tm_field_writer_init(&header, &p->memory);
  tm_field_writer_init(&writer, &p->memory);
  tm_enumeration_write(p->inventory->backends[0], &header);
  tm_field_write_text(&writer, TM_PROBE_HEADER);
  tm_field_write(&writer, header.bytes, header.length);
  if (!header.failed && !writer.failed) journal_write(&writer);
  tm_field_writer_deinit(&writer);
  tm_field_writer_deinit(&header);
  p->own = *table;              /* what it is given is lent: who keeps it crashes here and not in an application */
  lent_everywhere(&p->own);
  lent_wrap(&p->own, table);
  journal_interpose(NULL, table);
}

static tm_status list(probe *p, tm_error *error) {
  const tm_log silent = { NULL, NULL };
  p->options.struct_size = sizeof p->options;
  p->options.plugin_paths = &p->path;
  p->options.plugin_path_count = p->path[0] != '\0';
  const tm_inventory_request request = { .options = &p->options, .is_trial = true,
                                         .trial_builtin = p->builtin[0] == '\0' ? NULL : p->builtin, .trial_name = p->name[0] == '\0' ? NULL : p->name,
                                         .interpose = tell_header,
                                         .interpose_context = p };
  TM_TRY(tm_pool_create(&p->memory, 0, &p->pool, error));
  return tm_inventory_create(&p->memory, p->pool, silent, &request, &p->inventory, error);
}

/* ---- the rest ---- */

static uint64_t end_of_share(uint64_t end_ns, uint32_t sharers) {
  const uint64_t now_ns = tm_now_ns();
  return now_ns >= end_ns ? end_ns : now_ns + (end_ns - now_ns) / sharers;
}

/* All are asked before any is opened: a question that crashes needs no more than to be asked. */
static bool try_devices(probe *p, tm_backend_slot *slot) {
  canary_report *report = &p->report;
  tm_device_slot **devices = p->inventory->devices + slot->first_device;
  report->arena = &p->inventory->arena;
  const uint64_t asked_ns = tm_now_ns() + QUESTIONS_S * NS_PER_S;
  for (uint32_t i = 0; i < slot->device_count; i++) canary_ask(devices[i], end_of_share(asked_ns, slot->device_count - i), report);
  const uint64_t run_ns = tm_now_ns() + RUNS_S * NS_PER_S;
  for (uint32_t i = 0; i < slot->device_count; i++)
    canary_run(devices[i], end_of_share(run_ns, slot->device_count - i), run_ns, report);
  slot->faults = report->faults;
  slot->fault_count = report->count;
  return !report->busy;
}

static void add_note(void *context, const char *what) {
  char *text = context;
  const size_t used = strlen(text);
  (void)snprintf(text + used, NOTE_BYTES - used, "%s%s", used == 0 ? "in its trial it " : ", ", what);
}

static void add_change(void *context, const char *what) {
  char text[128];
  (void)snprintf(text, sizeof text, "changed %s", what);
  add_note(context, text);
}

/* What nobody tried is not taken on trust in silence. */
static void add_untried(char *text, const canary_range *devices, const char *what, uint32_t seconds) {
  char which[64], whole[192];
  const uint32_t count = devices->count, first = devices->first, last = devices->last;
  if (count == 0) return;
  if (count == 1) (void)snprintf(which, sizeof which, "device %u", first);
  else if (count == last - first + 1) (void)snprintf(which, sizeof which, "devices %u to %u", first, last);
  else (void)snprintf(which, sizeof which, "%u devices from %u to %u", count, first, last);
  if (journal_is_full()) (void)snprintf(whole, sizeof whole, "%s on %s (there are too many)", what, which);
  else (void)snprintf(whole, sizeof whole, "%s on %s (all devices have %u s together)", what, which, seconds);
  add_note(text, whole);
}

static void take_note(probe *p, tm_backend_slot *slot) {
  process_state after;
  char text[NOTE_BYTES] = "", threads[64], took[64], odd[192];
  const uint32_t count = process_thread_count(p->thread_count);
  process_state_read(&after, NULL);
  (void)snprintf(threads, sizeof threads, "left %u thread%s behind", count - p->thread_count, count - p->thread_count == 1 ? "" : "s");
  if (count > p->thread_count) add_note(text, threads);
  process_state_compare(&p->before, &after, add_change, text);
  add_untried(text, &p->report.unasked, "was not asked about every kind of operation", QUESTIONS_S);
  add_untried(text, &p->report.unrun, "did not run every kind that it claims", RUNS_S);
  if (slot->odd_text != NULL) {
    (void)snprintf(odd, sizeof odd, "gave %.100s, which is " TM_NO_DESCRIPTION, slot->odd_text);
    add_note(text, odd);
  }
  if (journal_was_copied()) add_note(text, "made a copy of the process");
  if (journal_question_ns() > SLOW_QUESTION_NS) {
    (void)snprintf(took, sizeof took, "took %.0f ms for a question", (double)journal_question_ns() / 1e6);
    add_note(text, took);
  }
  /* The host puts the mode back after each call. */
  if (journal_saw_float_mode_changed()) add_change(text, "the floating-point mode");
  const char *kept = tm_arena_string(&p->inventory->arena, text, strlen(text));
  if (kept != NULL) slot->note = kept;
}

static int run(probe *p, const char *depth) {
  tm_error error = TM_ERROR_INIT;
  tm_memory_init(&p->memory, 0);
  process_state_read(&p->before, NULL);
  p->thread_count = process_thread_count(UINT32_MAX);
  tm_status status = p->path[0] == '\0' ? TM_OK : load(p->path, &error);
  if (status != TM_OK) return say(p, status == TM_ERROR_NO_MEMORY ? TM_PROBE_TROUBLE : TM_PROBE_REFUSAL, error.text);
  if (strcmp(depth, TM_PROBE_LOAD) == 0) return say_record(p, NULL, true);
  status = list(p, &error);
  if (status == TM_ERROR_ARGUMENT) return say(p, TM_PROBE_ARGUMENT, error.text);
  if (status != TM_OK || p->inventory->backend_count == 0) return say(p, TM_PROBE_TROUBLE, error.text);
  tm_backend_slot *slot = p->inventory->backends[0];
  bool is_final = !slot->may_recover;
  if (strcmp(depth, TM_PROBE_FULL) == 0 && atomic_load(&slot->state) == TM_BACKEND_READY) is_final = try_devices(p, slot);
  tm_inventory_stop(p->inventory);
  tm_pool_destroy(p->pool);
  journal_step("what came after shutdown");
  take_note(p, slot);
  p->was_listed = true;
  return say_record(p, slot, is_final);
}

/* "backend.option=value", cut where it lies. */
static bool split(char *word, tm_setting *out_setting) {
  char *dot = strchr(word, '.');
  char *equals = dot == NULL ? NULL : strchr(dot, '=');
  if (equals == NULL) return false;
  *dot = *equals = '\0';
  *out_setting = (tm_setting){ word, dot + 1, equals + 1 };
  return true;
}

static bool read_settings(probe *p, int count, char **words) {
  p->settings = calloc((size_t)count + 1, sizeof *p->settings);
  if (p->settings == NULL) return false;
  for (int i = 0; i < count; i++)
    if (!split(words[i], &p->settings[i])) return false;
  p->options.settings = p->settings;
  p->options.setting_count = (uint32_t)count;
  return true;
}

static void *tell_id(void *argument) {
  *(uint64_t *)argument = tm_thread_id();
  return NULL;
}

/* Whoever waits for it is the only one that it is for; and a crash is an answer, no case for a file. */
static void settle_in(void) {
  const struct rlimit none = { 0, 0 };
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)setrlimit(RLIMIT_CORE, &none);
  /* Some runtimes start a thread of their own along with the first one of the program: that is not the plugin's. */
  tm_thread thread;
  uint64_t id = 0;
  if (tm_thread_start(&thread, tell_id, &id, NULL) != TM_OK) return;
  tm_thread_join(&thread);
  process_await_thread(id);
}

#ifdef __SANITIZE_ADDRESS__
/* What a plugin leaves to the end of the process is no business of ours, and must not change the exit code. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return 1; }
#endif

int main(int argument_count, char **arguments) {
  static probe p;
  if (argument_count < 5 || !read_settings(&p, argument_count - 5, arguments + 5)) {
    fputs("usage: tensormorph-probe load|list|full FILE BUILT-IN NAME [BACKEND.OPTION=VALUE]...\n", stderr);
    return 2;
  }
  settle_in();
  journal_open();
  p.path = arguments[2];
  p.builtin = arguments[3];
  p.name = arguments[4];
  const int code = run(&p, arguments[1]);
  if (code != 0) _exit(code);
  if (!p.was_listed) _exit(TM_PROBE_EXIT_CODE);
  journal_end();
  exit(TM_PROBE_EXIT_CODE);
}
