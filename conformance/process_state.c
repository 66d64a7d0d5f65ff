/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/process_state.h"

#include <float.h>
#include <stddef.h>

#include <dirent.h>
#include <fcntl.h>
#include <fenv.h>
#include <inttypes.h>
#include <locale.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 500

extern char **environ;

static uint64_t hash(uint64_t state, const void *data, size_t bytes) {
  const unsigned char *p = data;
  for (size_t i = 0; i < bytes; i++) state = (state ^ p[i]) * UINT64_C(0x100000001b3);
  return state;
}

static uint32_t entries_of(const char *folder) {
  DIR *open = opendir(folder);
  uint32_t count = 0;
  if (open == NULL) return 0;
  for (const struct dirent *entry; (entry = readdir(open)) != NULL;) count += entry->d_name[0] != '.';
  closedir(open);
  return count;
}

uint32_t process_descriptor_count(void) { return entries_of("/proc/self/fd"); }

uint32_t process_thread_count(uint32_t expected) {
  const struct timespec moment = { 0, 1000000 };
  uint32_t count = entries_of("/proc/self/task");
  for (int i = 0; i < PATIENCE_MS && count > expected; i++) {
    nanosleep(&moment, NULL);
    count = entries_of("/proc/self/task");
  }
  return count;
}

void process_await_thread(uint64_t id) {
  const struct timespec moment = { 0, 200000 };
  char path[64];
  struct stat about;
  (void)snprintf(path, sizeof path, "/proc/self/task/%" PRIu64, id);
  for (int i = 0; i < PATIENCE_MS * 5 && stat(path, &about) == 0; i++) nanosleep(&moment, NULL);
}

static uint64_t hash_streams(void) {
  uint64_t state = 1;
  for (int i = 0; i < 3; i++) {
    struct stat about;
    memset(&about, 0, sizeof about);
    if (fstat(i, &about) != 0) about.st_ino = UINT32_MAX;
    state = hash(state, &about.st_dev, sizeof about.st_dev);
    state = hash(state, &about.st_ino, sizeof about.st_ino);
    const int flags = fcntl(i, F_GETFL);
    state = hash(state, &flags, sizeof flags);
  }
  const off_t place = lseek(STDIN_FILENO, 0, SEEK_CUR);
  return hash(state, &place, sizeof place);
}

/* Their number and what they do; not how long they still run. */
static uint64_t hash_timers(void) {
  static const __itimer_which_t kinds[] = { ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF };
  uint64_t state = 1;
  char line[128];
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    struct itimerval timer;
    memset(&timer, 0, sizeof timer);
    (void)getitimer(kinds[i], &timer);
    const bool is_set = timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0;
    state = hash(state, &is_set, sizeof is_set);
  }
  FILE *file = fopen("/proc/self/timers", "re");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) state = hash(state, line, strlen(line));
  if (file != NULL) fclose(file);
  return state;
}

static uint64_t hash_limits(void) {
  uint64_t state = 1;
  for (int i = 0; i < (int)RLIM_NLIMITS; i++) {
    struct rlimit limit = { 0, 0 };
    (void)getrlimit((__rlimit_resource_t)i, &limit);
    state = hash(state, &limit, sizeof limit);
  }
  return state;
}

static uint64_t hash_affinity(void) {
  cpu_set_t set;
  CPU_ZERO(&set);
  (void)sched_getaffinity(0, sizeof set, &set);
  return hash(1, &set, sizeof set);
}

static uint64_t hash_pending(void) {
  sigset_t pending;
  uint64_t state = 1;
  (void)sigpending(&pending);
  for (int i = 1; i < PROCESS_SIGNALS; i++) {
    const int is_pending = sigismember(&pending, i);
    state = hash(state, &is_pending, sizeof is_pending);
  }
  return state;
}

static uint64_t hash_priority(void) {
  const int numbers[] = { getpriority(PRIO_PROCESS, 0), sched_getscheduler(0) };
  return hash(1, numbers, sizeof numbers);
}

/* Its flags are what was computed, and no mode. */
static uint32_t vector_control(void) {
#if defined(__x86_64__)
  return __builtin_ia32_stmxcsr() & ~0x3fu;
#else
  return 0;
#endif
}

/* What went to the standard streams, where these are files: those of a worker are one. */
static uint64_t count_printed(void) {
  struct stat out, err;
  uint64_t bytes = 0;
  fflush(NULL);
  const bool has_out = fstat(STDOUT_FILENO, &out) == 0 && S_ISREG(out.st_mode);
  const bool has_err = fstat(STDERR_FILENO, &err) == 0 && S_ISREG(err.st_mode);
  if (has_out) bytes += (uint64_t)out.st_size;
  if (has_err && !(has_out && out.st_ino == err.st_ino && out.st_dev == err.st_dev)) bytes += (uint64_t)err.st_size;
  return bytes;
}

static float_habits read_habits(void) {
  volatile float least = FLT_MIN, subnormal = FLT_TRUE_MIN;
  least /= 2;
  return (float_habits){ fegetround(), fegetexcept(), least, subnormal * 1024, vector_control() };
}

void process_state_read(process_state *out, process_excuse_fn is_excused) {
  memset(out, 0, sizeof *out);
  for (int i = 1; i < PROCESS_SIGNALS; i++) (void)sigaction(i, NULL, &out->actions[i]);
  (void)sigprocmask(SIG_SETMASK, NULL, &out->mask);
  out->environment = 1;
  for (char **variable = environ; variable != NULL && *variable != NULL; variable++)
    if (is_excused == NULL || !is_excused(*variable)) out->environment = hash(out->environment, *variable, strlen(*variable) + 1);
  out->streams = hash_streams();
  out->timers = hash_timers();
  out->limits = hash_limits();
  out->affinity = hash_affinity();
  out->pending = hash_pending();
  out->priority = hash_priority();
  out->may_be_dumped = (uint64_t)prctl(PR_GET_DUMPABLE);
  (void)prctl(PR_GET_NAME, out->thread_name);
  if (getcwd(out->folder, sizeof out->folder) == NULL) out->folder[0] = '\0';
  const char *locale = setlocale(LC_ALL, NULL);
  snprintf(out->locale, sizeof out->locale, "%s", locale == NULL ? "" : locale);
  out->file_mask = umask(077);
  umask((mode_t)out->file_mask);
  out->habits = read_habits();
  out->printed_bytes = count_printed();
}

/* The C library's own, in whatever is set through it: not there before the first time, and no change. */
#define RESTORER_FLAG 0x04000000

static bool is_same_action(const struct sigaction *a, const struct sigaction *b) {
  return a->sa_handler == b->sa_handler && (a->sa_flags & ~RESTORER_FLAG) == (b->sa_flags & ~RESTORER_FLAG);
}

/* The first signal from `number` on that is handled differently; PROCESS_SIGNALS: none. */
static int next_signal(const process_state *a, const process_state *b, int number) {
  while (number < PROCESS_SIGNALS && is_same_action(&a->actions[number], &b->actions[number])) number++;
  return number;
}

static bool is_different(const process_state *a, const process_state *b, size_t at, size_t bytes) {
  return memcmp((const char *)a + at, (const char *)b + at, bytes) != 0;
}

void process_state_compare(const process_state *a, const process_state *b, process_difference_fn visit, void *context) {
  static const struct { size_t at, bytes; const char *what; } parts[] = {
    { offsetof(process_state, environment), sizeof a->environment, "the environment" },
    { offsetof(process_state, streams), sizeof a->streams, "the standard streams" },
    { offsetof(process_state, folder), sizeof a->folder, "the working directory" },
    { offsetof(process_state, locale), sizeof a->locale, "the locale" },
    { offsetof(process_state, file_mask), sizeof a->file_mask, "the file mode mask" },
    { offsetof(process_state, habits), sizeof a->habits, "the floating-point mode" },
    { offsetof(process_state, mask), sizeof a->mask, "the signal mask" },
    { offsetof(process_state, timers), sizeof a->timers, "the timers of the process" },
    { offsetof(process_state, limits), sizeof a->limits, "the limits of the process" },
    { offsetof(process_state, affinity), sizeof a->affinity, "which processors the thread may run on" },
    { offsetof(process_state, pending), sizeof a->pending, "which signals are pending" },
    { offsetof(process_state, priority), sizeof a->priority, "the priority of the process" },
    { offsetof(process_state, may_be_dumped), sizeof a->may_be_dumped, "whether the process may be dumped" },
    { offsetof(process_state, thread_name), sizeof a->thread_name, "the name of the thread" },
  };
  for (int i = next_signal(a, b, 1); i < PROCESS_SIGNALS; i = next_signal(a, b, i + 1)) {
    char what[64];
    snprintf(what, sizeof what, "the handler of signal %d", i);
    visit(context, what);
  }
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    if (is_different(a, b, parts[i].at, parts[i].bytes)) visit(context, parts[i].what);
}
