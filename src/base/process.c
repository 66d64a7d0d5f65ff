/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/system_error.h"

extern char **environ;

#define NS_PER_MS UINT64_C(1000000)
/* A child that ends while others hold its output open is noticed after so long. */
#define LONGEST_POLL_MS UINT64_C(20)

/* In a group of its own, so that what it leaves behind can be ended with it. */
static tm_status spawn(const char *const *command, int output, pid_t *out_child, tm_error *error) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  const char *program = command[0];
  int code = posix_spawn_file_actions_init(&actions);
  if (code != 0) return tm_fail_native(error, TM_ERROR_IO, code, "%s: %s", program, tm_system_error(code).text);
  code = posix_spawnattr_init(&attributes);
  if (code == 0) {
    code = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    if (code == 0) code = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    if (code == 0) code = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (code == 0) code = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (code == 0) code = posix_spawn(out_child, program, &actions, &attributes, (char *const *)(uintptr_t)command, environ);
    posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_destroy(&actions);
  if (code == 0) return TM_OK;
  const bool is_short = code == ENOMEM || code == EMFILE || code == ENFILE;
  return tm_fail_native(error, is_short ? TM_ERROR_IO : TM_ERROR_NOT_FOUND, code, "%s: %s", program, tm_system_error(code).text);
}

/* One child while it runs. */
typedef struct watch {
  pid_t              child;
  int                input;
  bool               is_closed;         /* its output */
  bool               has_ended;
  bool               is_gone;           /* somebody else has collected it */
  uint64_t           begin_ns;
  uint64_t           silent_from_ns;
  tm_process_limits  limits;
  tm_process_result *result;
} watch;

/* Who says more than there is to say gets no more time for it. */
static void keep(watch *w, const char *chunk, uint64_t bytes) {
  tm_process_result *result = w->result;
  const uint64_t room = w->limits.output_bytes - 1 - result->output_length;
  const uint64_t kept = bytes < room ? bytes : room;
  memcpy(result->output + result->output_length, chunk, (size_t)kept);
  result->output_length += kept;
  if (kept != 0) w->silent_from_ns = tm_now_ns();
}

/* Reads what is there; false when there was nothing. */
static bool read_some(watch *w) {
  char chunk[4096];
  const ssize_t got = read(w->input, chunk, sizeof chunk);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return false;
  if (got <= 0) {
    w->is_closed = true;
    return false;
  }
  keep(w, chunk, (uint64_t)got);
  tm_process_limits *limits = &w->limits;
  if (limits->listen != NULL)
    limits->listen(limits->context, w->result->output, w->result->output_length, &limits->silence_ns, &limits->total_ns);
  return true;
}

static uint64_t later(uint64_t time_ns, uint64_t by_ns) { return by_ns > UINT64_MAX - time_ns ? UINT64_MAX : time_ns + by_ns; }

static uint64_t next_deadline(const watch *w) {
  return tm_min_u64(later(w->silent_from_ns, w->limits.silence_ns), later(w->begin_ns, w->limits.total_ns));
}

/* The child is looked at and not yet collected: as long as it is there nobody else gets its number, nor its group's.  A host
   that reaps all children itself leaves nothing to look at: then the output alone speaks, and its end is the child's. */
static void look(watch *w) {
  siginfo_t about = { .si_pid = 0 };
  const int code = waitid(P_PID, (id_t)w->child, &about, WEXITED | WNOHANG | WNOWAIT);
  if (code == 0 && about.si_pid == w->child) w->has_ended = true;
  if (code != 0 && errno == ECHILD) w->is_gone = true;
  if (w->is_gone && w->is_closed) w->has_ended = true;
}

/* Until the child has ended or time is up.  What the child started may hold the output open longer; nobody waits for that. */
static void attend(watch *w) {
  while (!w->has_ended) {
    const uint64_t now = tm_now_ns(), deadline = next_deadline(w);
    if (now >= deadline) return;
    const uint64_t left_ms = tm_min_u64((deadline - now) / NS_PER_MS + 1, w->is_closed ? 1 : LONGEST_POLL_MS);
    struct pollfd waiting = { .fd = w->is_closed ? -1 : w->input, .events = POLLIN };
    if (poll(&waiting, 1, (int)left_ms) > 0 && read_some(w)) continue;
    look(w);
  }
  while (!w->is_closed && read_some(w)) {
  }
}

static void finish(watch *w) {
  tm_process_result *result = w->result;
  int status = 0;
  if (!w->has_ended) result->timed_out = true;
  if (!w->is_gone) (void)kill(-w->child, SIGKILL);
  pid_t done = waitpid(w->child, &status, 0);
  while (done < 0 && errno == EINTR) done = waitpid(w->child, &status, 0);
  if (done != w->child) status = result->timed_out ? SIGKILL : 0;
  result->is_unseen = done != w->child && !result->timed_out;
  if (WIFSIGNALED(status)) result->signal = WTERMSIG(status);
  if (WIFEXITED(status)) result->exit_code = WEXITSTATUS(status);
  result->output[result->output_length] = '\0';
}

static tm_status run(const char *const *command, const tm_process_limits *limits, int ends[2], tm_process_result *result,
                     tm_error *error) {
  pid_t child = 0;
  const tm_status status = spawn(command, ends[1], &child, error);
  close(ends[1]);
  if (status != TM_OK) return status;
  const uint64_t now = tm_now_ns();
  watch w = { .child = child, .input = ends[0], .begin_ns = now, .silent_from_ns = now, .limits = *limits, .result = result };
  attend(&w);
  finish(&w);
  return TM_OK;
}

tm_status tm_process_run(tm_memory *memory, const char *const *command, const tm_process_limits *limits,
                         tm_process_result *out_result, tm_error *error) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    const int number = errno;
    return tm_fail_native(error, TM_ERROR_IO, number, "pipe: %s", tm_system_error(number).text);
  }
  tm_process_result result = { .memory = memory, .capacity = limits->output_bytes };
  result.output = tm_memory_alloc(memory, limits->output_bytes, 0);
  tm_status status = TM_OK;
  if (result.output == NULL || fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
    close(ends[1]);
    status = tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for what %s says", command[0]);
  }
  if (status == TM_OK) status = run(command, limits, ends, &result, error);
  close(ends[0]);
  if (status == TM_OK)
    *out_result = result;
  else
    tm_process_result_deinit(&result);
  return status;
}

void tm_process_result_deinit(tm_process_result *result) {
  tm_memory_free(result->memory, result->output, result->capacity);
  result->output = NULL;
}

bool tm_is_executable(const char *path) { return access(path, X_OK) == 0; }

bool tm_is_privileged(void) { return getauxval(AT_SECURE) != 0; }
