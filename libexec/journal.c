/* SPDX-License-Identifier: Apache-2.0 */
#include "journal.h"

#include <fcntl.h>
#include <fenv.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "plugin/probe_run.h"
#include "plugin/record_store.h"

#define LONGEST_STEP 200
#define MOST_STEPS_BYTES (TM_RECORD_BYTES / 2)  /* the record itself comes behind them */
#define MOST_VARIABLES 256u
#define MOST_DEVICES 256u
#define AGAIN_NS UINT64_C(500000000)
#define SHORT_NS UINT64_C(1000000)      /* not worth a word */
#define MOST_QUESTIONS 255u
#define ENOUGH_QUESTIONS 3u

extern char **environ;

/* One program, one plugin: what it is called through, and where it is told. */
static int output = -1;
static _Atomic uint64_t told_bytes;
static pid_t owner;
static _Atomic uint32_t *was_copied;    /* shared with copies of the process */
static char subject[LONGEST_STEP];
static tm_accelerator_backend_plugin real;
static bool changed_mode;
static uint64_t open_ns[MOST_DEVICES];
static _Atomic uint64_t question_ns[MOST_QUESTIONS];    /* the last ones */
static _Atomic uint32_t question_count;
static char variables[MOST_VARIABLES][LONGEST_STEP];
static uint32_t variable_count;
static atomic_flag variables_in_use = ATOMIC_FLAG_INIT;

void journal_open(void) {
  _Atomic uint32_t *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared != MAP_FAILED) was_copied = shared;
  owner = getpid();
  output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nothing >= 0) {
    (void)dup2(nothing, STDOUT_FILENO);
    (void)close(nothing);
  }
}

static bool is_copy(void) { return getpid() != owner; }

/* Nobody is to hear a step twice. */
static void end_copy(void) {
  if (was_copied != NULL) atomic_store(was_copied, 1);
  _exit(0);
}

bool journal_was_copied(void) { return was_copied != NULL && atomic_load(was_copied) != 0; }

bool journal_is_full(void) { return atomic_load(&told_bytes) > MOST_STEPS_BYTES; }

static void put(const char *bytes, size_t count) {
  if (is_copy()) end_copy();
  atomic_fetch_add(&told_bytes, count);
  while (count != 0) {
    const ssize_t written = write(output, bytes, count);
    if (written <= 0) return;
    bytes += written;
    count -= (size_t)written;
  }
}

/* The pipe stays open: its end is the end of the process. */
void journal_end(void) { output = -1; }

void journal_write(const tm_field_writer *writer) { put(writer->bytes, (size_t)writer->length); }

/* No allocation: the plugin may have broken the heap.  One write, so that threads do not mix their lines. */
static void put_line(const char *tag, const char *text) {
  char line[LONGEST_STEP + 64];
  const int length = snprintf(line, sizeof line, "%zu:%s\n%zu:%s\n", strlen(tag), tag, strlen(text), text);
  put(line, (size_t)length);
}

/* ---- variables ---- */

/* What a driver asks the environment for decides what it offers.  Every library that is loaded here finds these two
   functions before those of the C library, which are the same but for the note. */
static const char *find_variable(const char *name) {
  const size_t length = strlen(name);
  for (char **variable = environ; variable != NULL && *variable != NULL; variable++)
    if (strncmp(*variable, name, length) == 0 && (*variable)[length] == '=') return *variable + length + 1;
  return NULL;
}

static void note_variable(const char *name) {
  if (output < 0 || is_copy() || strlen(name) >= LONGEST_STEP) return;       /* whoever is to become another program asks, too */
  while (atomic_flag_test_and_set(&variables_in_use)) {
  }
  bool known = variable_count == MOST_VARIABLES;
  for (uint32_t i = 0; i < variable_count && !known; i++) known = strcmp(variables[i], name) == 0;
  if (!known) {
    (void)snprintf(variables[variable_count++], LONGEST_STEP, "%s", name);
    put_line(TM_PROBE_VARIABLE, name);
  }
  atomic_flag_clear(&variables_in_use);
}

__attribute__((visibility("default"))) char *getenv(const char *name) {
  note_variable(name);
  return (char *)(uintptr_t)find_variable(name);
}

__attribute__((visibility("default"))) char *secure_getenv(const char *name) { return getenv(name); }

/* ---- steps ---- */

void journal_step(const char *format, ...) {
  char text[LONGEST_STEP];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  put_line(TM_PROBE_STEP, text);
}

void journal_subject(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(subject, sizeof subject, format, arguments);
  va_end(arguments);
}

static void step(const char *call) {
  if (subject[0] == '\0')
    journal_step("%s", call);
  else
    journal_step("%s of %.150s", call, subject);
}

/* Many come in a row about the same: told once, and again before who listens could take them for one that hangs. */
static void step_query(void) {
  static char told[LONGEST_STEP];
  static uint64_t told_ns;
  const uint64_t now_ns = tm_now_ns();
  if (subject[0] != '\0' && strcmp(told, subject) == 0 && now_ns - told_ns < AGAIN_NS) return;
  memcpy(told, subject, sizeof told);
  told_ns = now_ns;
  step("query");
}

/* What the next step is declared to take. */
static void declare(uint64_t time_ns) {
  char text[32];
  if (time_ns < SHORT_NS) return;
  (void)snprintf(text, sizeof text, "%" PRIu64, time_ns);
  put_line(TM_PROBE_PATIENCE, text);
}

/* The host puts the mode back after each call, so that it is never seen changed from outside. */
static void look_at_mode(void) {
  const volatile float smallest = 0x1p-149f, one = 1;
  if (fegetround() != FE_TONEAREST || smallest * one == 0) changed_mode = true;
}

bool journal_saw_float_mode_changed(void) { return changed_mode; }

/* ---- questions ---- */

static void time_questions(uint64_t took_ns, uint32_t count) {
  if (count != 0) atomic_store(&question_ns[atomic_fetch_add(&question_count, 1) % MOST_QUESTIONS], took_ns / count);
}

static int by_time(const void *left, const void *right) {
  const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
  return (a > b) - (a < b);
}

uint64_t journal_question_ns(void) {
  uint64_t times[MOST_QUESTIONS];
  const uint64_t count = tm_min_u64(atomic_load(&question_count), MOST_QUESTIONS);
  for (uint64_t i = 0; i < count; i++) times[i] = atomic_load(&question_ns[i]);
  qsort(times, (size_t)count, sizeof times[0], by_time);
  return count < ENOUGH_QUESTIONS ? 0 : times[count / 2];
}

/* ---- the table ---- */

static tm_status told_init(const tm_host *host, tm_backend **out_backend) {
  step("init");
  const tm_status status = real.init(host, out_backend);
  look_at_mode();
  return status;
}

static void told_shutdown(tm_backend *backend) {
  step("shutdown");
  real.shutdown(backend);
}

static tm_status told_device_info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  journal_step("device_info(%u)", index);
  const tm_status status = real.device_info(backend, index, out_info);
  if (status == TM_OK && index < MOST_DEVICES) open_ns[index] = out_info->open_ns;
  return status;
}

static tm_status told_open(tm_backend *backend, uint32_t index, tm_device **out_device) {
  declare(index < MOST_DEVICES ? open_ns[index] : 0);
  journal_step("open(%u)", index);
  return real.open(backend, index, out_device);
}

static void told_close(tm_device *device) {
  step("close");
  real.close(device);
}

static tm_status told_query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                            tm_answer *const *out_answers) {
  step_query();
  const uint64_t begin_ns = tm_now_ns();
  const tm_status status = real.query(backend, index, operations, count, out_answers);
  time_questions(tm_now_ns() - begin_ns, count);
  look_at_mode();
  return status;
}

static tm_status told_prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  declare(answer->setup_ns);
  step("prepare");
  const tm_status status = real.prepare(device, operation, answer, out_kernel);
  look_at_mode();
  return status;
}

static void told_release(tm_device *device, tm_kernel *kernel) {
  step("release");
  real.release(device, kernel);
}

static tm_status told_upload(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  step("upload");
  return real.upload(device, transfer, out_ticket);
}

static tm_status told_download(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  step("download");
  return real.download(device, transfer, out_ticket);
}

static tm_status told_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  step("launch");
  const tm_status status = real.launch(device, launch, out_ticket);
  look_at_mode();
  return status;
}

static tm_status told_wait(tm_device *device, const tm_ticket *tickets, uint32_t count, uint64_t timeout_ns) {
  step("wait");
  return real.wait(device, tickets, count, timeout_ns);
}

void journal_interpose(void *context, tm_accelerator_backend_plugin *table) {
  (void)context;
  real = *table;
  table->init = told_init;
  table->shutdown = told_shutdown;
  table->device_info = told_device_info;
  table->open = told_open;
  table->close = told_close;
  table->query = told_query;
  table->prepare = told_prepare;
  table->release = told_release;
  table->upload = told_upload;
  table->download = told_download;
  table->launch = told_launch;
  table->wait = told_wait;
}
