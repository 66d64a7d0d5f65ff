/* SPDX-License-Identifier: Apache-2.0 */
/* Honest until the process ends, and does harm then: each build another (ZOO_HARM), from a destructor or an exit handler; its sums
   may be wrong besides (ZOO_WRONG). */
#include <stdlib.h>
#include <threads.h>
#include <time.h>

#include "zoo.h"

#define HANG for (;;) thrd_sleep(&(struct timespec){ .tv_sec = 1 }, NULL)
#define ABORT abort()
#define LEAVE _Exit(0)

static void on_end(void) { ZOO_HARM; }

#ifdef ZOO_HANDLER
__attribute__((constructor)) static void on_load(void) { (void)atexit(on_end); }
#else
__attribute__((destructor)) static void on_unload(void) { on_end(); }
#endif

static tm_status launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  const tm_status status = zoo_launch(device, launch, out_ticket);
#ifdef ZOO_WRONG
  const tm_binding *output = &launch->bindings[launch->binding_count - 1];
  if (launch->kernel->count != 0) ((float *)((uintptr_t)output->buffer + output->offset))[0] += 1;
#endif
  return status;
}

static const tm_accelerator_backend_plugin table = { ZOO_TABLE(zoo_device_info, zoo_query, zoo_prepare, launch) };

TM_DEFINE_PLUGIN(ZOO_NAME, "1", "zoo", table)
