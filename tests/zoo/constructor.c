/* SPDX-License-Identifier: Apache-2.0 */
/* Does harm while it is being loaded: each build another (ZOO_HARM). */
#include <stdlib.h>
#include <threads.h>
#include <time.h>

#include "zoo.h"

#define HANG for (;;) thrd_sleep(&(struct timespec){ .tv_sec = 1 }, NULL)
#define ABORT abort()
#define LEAVE _Exit(3)

__attribute__((constructor)) static void on_load(void) { ZOO_HARM; }

static const tm_accelerator_backend_plugin table = { ZOO_TABLE(zoo_device_info, zoo_query, zoo_prepare, zoo_launch) };

TM_DEFINE_PLUGIN("zoo_constructor", "1", "zoo", table)
