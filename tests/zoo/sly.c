/* SPDX-License-Identifier: Apache-2.0 */
/* Works for whoever looks at results only, and breaks one rule besides (ZOO_SLIP): leaves the process with a code of success, answers what
   no host believes, or touches memory that is not its own. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "zoo.h"

#define LEAVES_IN_QUERY 1
#define LEAVES_IN_LAUNCH 2
#define LEAVES_IN_COMPANY 3     /* when prepare runs on two threads at once */
#define ENDS_ITS_THREAD 4       /* in a launch */

#define MOMENT_NS 2000000l

static _Atomic uint32_t preparing;

static tm_status query_slyly(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                             tm_answer *const *out_answers) {
  if (ZOO_SLIP == LEAVES_IN_QUERY) _exit(0);
  return zoo_query(backend, index, operations, count, out_answers);
}

static tm_status prepare_slyly(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  const struct timespec moment = { 0, MOMENT_NS };
  if (ZOO_SLIP == LEAVES_IN_COMPANY) {
    if (atomic_fetch_add(&preparing, 1) != 0) _exit(0);
    nanosleep(&moment, NULL);
    atomic_fetch_sub(&preparing, 1);
  }
  return zoo_prepare(device, operation, answer, out_kernel);
}

static tm_status launch_slyly(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  if (ZOO_SLIP == LEAVES_IN_LAUNCH) _exit(0);
  if (ZOO_SLIP == ENDS_ITS_THREAD) pthread_exit(NULL);
  return zoo_launch(device, launch, out_ticket);
}

static const tm_accelerator_backend_plugin table = { ZOO_TABLE(zoo_device_info, query_slyly, prepare_slyly, launch_slyly) };

TM_DEFINE_PLUGIN(ZOO_NAME, "1", "zoo", table)
