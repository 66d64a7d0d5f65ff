/* SPDX-License-Identifier: Apache-2.0 */
#include "standard_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void tm_standard_streams_claim(void) {
  /* Open for the other direction: neither reading the input nor writing the output works. */
  static const int modes[] = { [STDIN_FILENO] = O_WRONLY, [STDOUT_FILENO] = O_RDONLY, [STDERR_FILENO] = O_WRONLY };
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
    /* The lowest free number is given, and all below are taken. */
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF) (void)open("/dev/null", modes[stream]);
}

#define LEAST_COPY 10           /* none that a careless library guesses */

FILE *tm_standard_streams_take_output(void) {
  const int copy = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, LEAST_COPY);
  FILE *file = copy < 0 ? NULL : fdopen(copy, "w");
  if (file == NULL || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    if (file != NULL) fclose(file);
    else if (copy >= 0) close(copy);
    return NULL;
  }
  return file;
}
