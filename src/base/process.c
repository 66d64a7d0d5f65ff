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
#define LONGEST_POLL_MS UINT64_C(1000)

static tm_status spawn(const char *program, char *const *arguments, int output, pid_t *out_child, tm_error *error) {
  posix_spawn_file_actions_t actions;
  int code = posix_spawn_file_actions_init(&actions);
  if (code != 0) return tm_fail_native(error, TM_ERROR_IO, code, "%s: %s", program, tm_system_error(code).text);
  code = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  if (code == 0) code = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (code == 0) code = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  if (code == 0) code = posix_spawn(out_child, program, &actions, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) return tm_fail_native(error, TM_ERROR_NOT_FOUND, code, "%s: %s", program, tm_system_error(code).text);
  return TM_OK;
}

/* Reads until the child closes its output or time is up; true when it closed. */
static bool collect(int input, uint64_t deadline_ns, tm_process_result *result) {
  for (;;) {
    const uint64_t now = tm_now_ns();
    if (now >= deadline_ns) return false;
    struct pollfd waiting = { .fd = input, .events = POLLIN };
    const int ready = poll(&waiting, 1, (int)tm_min_u64((deadline_ns - now) / NS_PER_MS + 1, LONGEST_POLL_MS));
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    if (ready < 0) return false;
    char chunk[512];
    const ssize_t got = read(input, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    const uint64_t room = sizeof result->output - 1 - result->output_length;
    const uint64_t kept = (uint64_t)got < room ? (uint64_t)got : room;
    memcpy(result->output + result->output_length, chunk, (size_t)kept);
    result->output_length += kept;
  }
}

/* Waits for the child until the deadline, then kills it.  A host that reaps all children itself leaves no status: then the
   output alone speaks. */
static void reap(pid_t child, uint64_t deadline_ns, bool closed, tm_process_result *result) {
  int status = 0;
  pid_t done = 0;
  while (closed && (done = waitpid(child, &status, WNOHANG)) == 0 && tm_now_ns() < deadline_ns) tm_sleep_ns(NS_PER_MS / 10);
  if (done == 0) {
    result->timed_out = true;
    kill(child, SIGKILL);
    do {
      done = waitpid(child, &status, 0);
    } while (done < 0 && errno == EINTR);
  }
  if (done < 0) return;
  if (WIFSIGNALED(status)) result->signal = WTERMSIG(status);
  if (WIFEXITED(status)) result->exit_code = WEXITSTATUS(status);
}

tm_status tm_process_run(const char *program, const char *first, const char *second, uint64_t timeout_ns,
                         tm_process_result *out_result, tm_error *error) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    const int number = errno;
    return tm_fail_native(error, TM_ERROR_IO, number, "pipe: %s", tm_system_error(number).text);
  }
  char *arguments[] = { (char *)(uintptr_t)program, (char *)(uintptr_t)first, (char *)(uintptr_t)second, NULL };
  pid_t child = 0;
  tm_status status = spawn(program, arguments, ends[1], &child, error);
  close(ends[1]);
  if (status == TM_OK) {
    memset(out_result, 0, sizeof *out_result);
    const uint64_t now = tm_now_ns();
    const uint64_t deadline = timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
    const bool closed = collect(ends[0], deadline, out_result);
    reap(child, deadline, closed, out_result);
    out_result->output[out_result->output_length] = '\0';
  }
  close(ends[0]);
  return status;
}

bool tm_is_executable(const char *path) { return access(path, X_OK) == 0; }

bool tm_is_privileged(void) { return getauxval(AT_SECURE) != 0; }
