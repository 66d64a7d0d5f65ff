/* SPDX-License-Identifier: Apache-2.0 */
/* Lacks what it needs, as the contract allows: lost after some launches, busy for a while, out of memory (ZOO_MOOD). */
#include "zoo.h"

#define LAUNCHES_BEFORE_LOSS 3u
#define BUSY_CALLS 20u

#define LOST 0
#define BUSY 1
#define OUT_OF_MEMORY 2

static tm_status prepare_moody(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  const tm_host *host = zoo_backend_of(device)->host;
  const tm_string text = TM_STRING("no memory for another kernel");
  if (ZOO_MOOD == OUT_OF_MEMORY) return host->fail(host->context, TM_ERROR_NO_MEMORY, 0, text);
  return zoo_prepare(device, operation, answer, out_kernel);
}

static tm_status launch_moody(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  const uint64_t call = atomic_fetch_add(&zoo_backend_of(device)->calls, 1);
  if (ZOO_MOOD == LOST && call >= LAUNCHES_BEFORE_LOSS) return TM_ERROR_DEVICE_LOST;
  if (ZOO_MOOD == BUSY && call % (BUSY_CALLS + 1) != BUSY_CALLS) return TM_BUSY;
  return zoo_launch(device, launch, out_ticket);
}

static const tm_accelerator_backend_plugin table = { ZOO_TABLE(zoo_device_info, zoo_query, prepare_moody, launch_moody) };

TM_DEFINE_PLUGIN(ZOO_NAME, "1", "zoo", table)
