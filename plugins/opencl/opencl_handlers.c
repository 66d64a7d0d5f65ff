/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "opencl_handlers.h"

#include <signal.h>
#include <stdlib.h>

#define SIGNALS 65

struct opencl_handlers {
  struct sigaction actions[SIGNALS];
  unsigned char    is_known[SIGNALS];
};

opencl_handlers *opencl_handlers_save(void) {
  opencl_handlers *handlers = malloc(sizeof *handlers);
  for (int i = 1; i < SIGNALS && handlers != NULL; i++) handlers->is_known[i] = sigaction(i, NULL, &handlers->actions[i]) == 0;
  return handlers;
}

void opencl_handlers_restore(opencl_handlers *handlers) {
  for (int i = 1; i < SIGNALS && handlers != NULL; i++) {
    struct sigaction now;
    if (!handlers->is_known[i] || sigaction(i, NULL, &now) != 0) continue;
    if (now.sa_handler != handlers->actions[i].sa_handler) (void)sigaction(i, &handlers->actions[i], NULL);
  }
  free(handlers);
}
