/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensormorph-conformance [NAME | FILE] [OPTION...] - holds a backend to its claims, device by device.  Its table of claims
 * is the backend's support table.  `tensormorph plugin check` runs it.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "conformance/check_arguments.h"
#include "conformance/loading_watch.h"
#include "conformance/plain_print.h"
#include "conformance/printout.h"
#include "conformance/process_children.h"
#include "plugin/builtin_plugins.h"
#include "plugin/library.h"
#include "plugin/manifest.h"
#include "plugin/reference.h"
#include "plugin/table.h"

#define EXIT_FAILED 1
#define EXIT_USAGE 2
#define EXIT_TROUBLE 3
#define EXIT_SKIPPED 77
#define LONGEST_WORDS 256
#define LONGEST_HEADER_TEXT 4097        /* with its end, as tm_plugin_table_accept bounds it */
#define MOST_COLUMNS 100000u
#define USUAL_COLUMNS 80
/* What all devices together take where nobody said how long each may. */
#define MOST_BUDGET_NS (UINT64_C(60) * 1000000000)

/* As a host reads it, in the same order: what it keeps out does not run here either. */
static tm_status read_manifest(const char *path, tm_manifest *out_manifest, tm_error *error) {
  tm_memory memory;
  tm_file_identity identity;
  tm_memory_init(&memory, 0);
  TM_TRY(tm_manifest_load(&memory, path, out_manifest, error));
  TM_TRY(tm_plugin_library_examine(path, &identity, error));
  return tm_manifest_check(out_manifest, &memory, path, error);
}

static tm_status load(const char *path, tm_manifest *manifest, char *fault, const tm_plugin_header **out_header, tm_error *error) {
  const tm_log silent = { NULL, NULL };
  TM_TRY(read_manifest(path, manifest, error));
  loading_watch *watch = loading_watch_begin();
  const tm_status status = tm_plugin_library_load(path, &silent, out_header, error);
  loading_watch_end(watch, fault, LONGEST_WORDS);
  return status;
}

static tm_status find_header(const check_arguments *a, tm_manifest *manifest, char *fault, const tm_plugin_header **out_header,
                             tm_error *error) {
  if (a->plugin != NULL) return load(a->plugin, manifest, fault, out_header, error);
  if (strcmp(a->name, TM_REFERENCE_NAME) == 0) {
    *out_header = tm_reference_plugin_query(TM_ABI_MAJOR, TM_ABI_MINOR);
    return TM_OK;
  }
  for (uint32_t i = 0; i < tm_builtin_plugin_count; i++) {
    if (strcmp(tm_builtin_plugins[i].name, a->name) != 0) continue;
    *out_header = tm_builtin_plugins[i].query(TM_ABI_MAJOR, TM_ABI_MINOR);
    return TM_OK;
  }
  return tm_fail(error, TM_ERROR_NOT_FOUND, "there is no built-in backend %s; a plugin is named by its file", a->name);
}

static const char *text_of(tm_string string, char *text, size_t capacity) {
  snprintf(text, capacity, "%.*s", (int)string.length, string.length == 0 ? "" : string.data);
  return text;
}

/* Also what the host refuses it for once it has told its name. */
static tm_status accept(const check_arguments *a, char *fault, const tm_plugin_header **out_header,
                        tm_accelerator_backend_plugin *out_table, tm_error *error) {
  static tm_manifest manifest;          /* large for a stack; without a file it does not exist */
  char name[LONGEST_WORDS], version[LONGEST_HEADER_TEXT];
  TM_TRY(find_header(a, &manifest, fault, out_header, error));
  TM_TRY(tm_plugin_table_accept(*out_header, a->plugin, out_table, error));
  const tm_plugin_header *header = *out_header;
  if (a->plugin != NULL && strcmp(text_of(header->name, name, sizeof name), TM_REFERENCE_NAME) == 0)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: its name is that of the library's own reference; a backend must have another", a->plugin);
  return tm_manifest_compare(&manifest, text_of(header->name, name, sizeof name), text_of(header->version, version, sizeof version), error);
}

/* ---- one device ---- */

/* COLUMNS overrules what the terminal says; anything else has no width. */
static uint32_t terminal_width(int descriptor) {
  struct winsize size;
  const char *columns = getenv("COLUMNS");
  const unsigned long wanted = columns != NULL ? strtoul(columns, NULL, 10) : 0;
  if (wanted != 0 && wanted <= MOST_COLUMNS) return (uint32_t)wanted;
  if (isatty(descriptor) == 0 || ioctl(descriptor, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

/* Cut where the terminal ends; its last cell stays free, as some break the line when it is filled. */
static void draw_progress(void *context, uint64_t done, uint64_t total, const char *what) {
  const campaign *c = context;
  char text[LONGEST_WORDS];
  const uint32_t width = terminal_width(STDERR_FILENO);
  (void)snprintf(text, sizeof text, "device %u: %s, %llu of %llu", c->subject.device_index, what, (unsigned long long)done,
                 (unsigned long long)total);
  fprintf(stderr, "\r%.*s\x1b[K", width == 0 ? USUAL_COLUMNS - 1 : (int)width - 1, text);
}

static void clear_progress(const check_arguments *a) {
  if (a->campaign.progress != NULL) fputs("\r\x1b[K", stderr);
}

/* What comes next on the terminal begins on a line of its own. */
static void end_line(int signal_number) {
  (void)!write(STDERR_FILENO, "\n", 1);
  (void)signal(signal_number, SIG_DFL);
  (void)raise(signal_number);
}

static void show_progress(check_arguments *a) {
  static const int endings[] = { SIGINT, SIGTERM, SIGHUP };
  const char *terminal = getenv("TERM");
  if (a->quiet || isatty(STDERR_FILENO) == 0 || terminal == NULL || terminal[0] == '\0' || strcmp(terminal, "dumb") == 0) return;
  a->campaign.progress = draw_progress;
  a->campaign.progress_context = &a->campaign;
  for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
    if (signal(endings[i], end_line) == SIG_IGN) (void)signal(endings[i], SIG_IGN);
}

typedef struct checking {
  check_arguments *arguments;
  char name[LONGEST_WORDS];
  char version[LONGEST_WORDS];
  uint32_t device_count;        /* checked so far */
  uint32_t sharer_count;        /* devices that have MOST_BUDGET_NS together; 0: each has all that it wants */
  bool failed;
  bool is_empty;                /* a device of which nothing was checked */
} checking;

static bool check_device(checking *all, const campaign_opening *opening) {
  check_arguments *a = all->arguments;
  const campaign *c = &a->campaign;
  report r;
  const bool ran = campaign_run(c, &r);
  clear_progress(a);
  if (!ran) {
    plain_print(stderr, "%s: device %u of %s does not open any more\n", a->speaker, c->subject.device_index, all->name);
    return false;
  }
  const printout_heading heading = {
      .backend = all->name,
      .version = all->version,
      .origin = a->plugin != NULL ? a->plugin : "built-in",
      .device_name = opening->device_name,
      .command = a->called,
      .device_index = c->subject.device_index,
      .cases = c->cases,
      .seed = c->seed,
      .budget_ns = c->budget_ns,
      .sharer_count = all->sharer_count,
      .shared_budget_ns = MOST_BUDGET_NS,
      .is_check = c->only_manner != NULL,
      .width = terminal_width(STDOUT_FILENO),
  };
  if (a->json && all->device_count > 0) fputs(",\n", stdout);
  (a->json ? printout_json : printout_table)(&r, &heading, stdout);
  all->failed |= r.failure_count != 0;
  all->is_empty |= r.nothing_checked[0] != '\0';
  all->device_count++;
  report_free(&r);
  return true;
}

static void share_budget(checking *all, uint32_t count) {
  check_arguments *a = all->arguments;
  if (!a->shares_budget || a->campaign.budget_ns <= MOST_BUDGET_NS / count) return;
  a->campaign.budget_ns = MOST_BUDGET_NS / count;
  all->sharer_count = count;
}

/* A device that cannot be opened says why; the others are checked all the same. */
static int check_devices(checking *all) {
  check_arguments *a = all->arguments;
  const uint32_t first = a->only_device ? a->campaign.subject.device_index : 0;
  int trouble = 0;
  if (a->json) fputs("{\"schema\":\"tensormorph.conformance/2\",\"devices\":[\n", stdout);
  for (uint32_t device = first, end = first + 1; device < end; device++) {
    campaign_opening opening;
    a->campaign.subject.device_index = device;
    a->campaign.begin_ns = tm_now_ns();
    campaign_open(&a->campaign, &opening);
    a->campaign.open_ns = opening.open_ns;
    /* A list without end is told by the first device's description. */
    const bool has_end = opening.device_count < CAMPAIGN_MOST_DEVICES;
    if (opening.status == TM_OK && !a->only_device && has_end && opening.device_count > end) end = opening.device_count;
    share_budget(all, end - first);
    if (opening.status == TM_OK && check_device(all, &opening)) continue;
    if (opening.status != TM_OK)
      plain_print(stderr, "%s: %s:%u cannot be used here: %s%s%s\n", a->speaker, all->name, device, tm_status_name(opening.status),
                  opening.text[0] != '\0' ? ": " : "", opening.text);
    trouble = opening.status == TM_ERROR_NO_DEVICE ? EXIT_SKIPPED : EXIT_TROUBLE;
  }
  if (a->json) fputs("\n]}\n", stdout);
  if (all->failed) return EXIT_FAILED;
  return all->is_empty ? EXIT_TROUBLE : trouble;
}

/* ---- all ---- */

static int run(check_arguments *a) {
  tm_error error = TM_ERROR_INIT;
  const tm_plugin_header *header = NULL;
  tm_accelerator_backend_plugin table;
  checking all = { .arguments = a };
  char fault[LONGEST_WORDS] = "";
  process_children_adopt();
  a->campaign.loading_fault = fault;
  if (accept(a, fault, &header, &table, &error) != TM_OK) {
    plain_print(stderr, "%s: %s\n", a->speaker, error.text);
    return EXIT_TROUBLE;
  }
  snprintf(all.name, sizeof all.name, "%.*s", (int)header->name.length, header->name.data);
  (void)tm_text_escape(header->version.length == 0 ? "" : header->version.data, header->version.length, all.version,
                       sizeof all.version);
  a->campaign.subject.table = &table;
  a->campaign.subject.header = header;
  if (!check_arguments_take_settings(a, all.name)) return EXIT_USAGE;
  show_progress(a);
  return check_devices(&all);
}

/* A report that did not arrive is none. */
static int end_output(const check_arguments *a, int exit_code) {
  const bool failed_before = ferror(stdout) != 0;
  errno = 0;
  if (fflush(stdout) == 0 && !failed_before) return exit_code;
  fprintf(stderr, "%s: cannot write the output%s%s\n", a->speaker, errno != 0 ? ": " : "", errno != 0 ? strerror(errno) : "");
  return EXIT_TROUBLE;
}

/* For the command that waits for it: an exit code alone could be anybody's. */
static void tell_verdict(const check_arguments *a, int exit_code) {
  const char verdict = (char)exit_code;
  if (a->verdict_file >= 0) (void)!write(a->verdict_file, &verdict, 1);
}

#ifdef __SANITIZE_ADDRESS__
/* A worker may end with exit handlers and all; what a plugin leaves then must not change its exit code. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) {
  int signal_number = 0;
  return prctl(PR_GET_PDEATHSIG, &signal_number) == 0 && signal_number == SIGKILL;
}
#endif

/* A plugin stays loaded: what it does when a process ends was tried in another one, and must not end this one. */
int main(int count, char **words) {
  check_arguments a;
  const bool is_understood = check_arguments_read(count, words, &a);
  /* A command that is gone wants no verdict any more. */
  if (a.verdict_file >= 0) (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int exit_code = is_understood ? end_output(&a, run(&a)) : EXIT_USAGE;
  tell_verdict(&a, exit_code);
  if (a.plugin == NULL) return exit_code;
  fflush(NULL);
  _exit(exit_code);
}
