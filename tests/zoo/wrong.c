/* SPDX-License-Identifier: Apache-2.0 */
/* Claims bit-equal results and is off by one in the last element.  Dear enough never to be chosen. */
#include "zoo.h"

static tm_status query_dear(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                            tm_answer *const *out_answers) {
  const tm_status status = zoo_query(backend, index, operations, count, out_answers);
  for (uint32_t i = 0; i < count; i++) out_answers[i]->cost_ns *= UINT64_C(1000000000);
  return status;
}

static tm_status launch_wrong(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  const tm_status status = zoo_launch(device, launch, out_ticket);
  const tm_binding *output = &launch->bindings[launch->binding_count - 1];
  if (launch->kernel->count != 0)
    ((float *)((uintptr_t)output->buffer + output->offset))[launch->kernel->count - 1] += 1;
  return status;
}

static const tm_accelerator_backend_plugin table = { ZOO_TABLE(zoo_device_info, query_dear, zoo_prepare, launch_wrong) };

TM_DEFINE_PLUGIN(ZOO_NAME, "1", "zoo", table)
