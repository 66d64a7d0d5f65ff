/* SPDX-License-Identifier: Apache-2.0 */
#include "opencl_launch.h"

#include <string.h>

#include "kernel_judge.h"
#include "opencl_error.h"
#include "opencl_program.h"
#include "opencl_queue.h"

kernel_device opencl_facts(opencl_found *found) {
  kernel_device facts = found->facts;
  facts.broken_programs = atomic_load(&found->broken_programs);
  facts.epoch = (uint64_t)__builtin_popcount(facts.broken_programs) + 1;
  return facts;
}

/* ---- prepare ---- */

static tm_status make_handles(tm_device *device, const kernel_row *row, tm_kernel *kernel) {
  const opencl_api *api = &device->backend->api;
  const int is_special = kernel_row_is_special(&device->found->facts, row);
  const kernel_special special = { &kernel->plan.parameters, row->kernels, row->kernels[1] != NULL ? 2 : 1 };
  opencl_program_handle program = NULL;
  if (kernel->plan.dispatch_count == 0) return TM_OK;
  const tm_status status = opencl_program_get(device, row->program, is_special ? &special : NULL, &program);
  if (status != TM_OK) return status;
  for (uint32_t i = 0; i < kernel->plan.dispatch_count; i++) {
    int32_t error = OPENCL_SUCCESS;
    kernel->handles[i] = api->CreateKernel(program, kernel->plan.dispatches[i].kernel, &error);
    if (error != OPENCL_SUCCESS || kernel->handles[i] == NULL)
      return opencl_fail_call(device, kernel->plan.dispatches[i].kernel, error);
  }
  return TM_OK;
}

static tm_status refusal_status(const kernel_device *facts, const tm_operation *operation) {
  tm_answer refusal = { .struct_size = sizeof refusal };
  kernel_query_answer(facts, operation, &refusal);
  return kernel_refusal_status(&refusal);
}

tm_status opencl_prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  const tm_host *host = device->backend->host;
  const kernel_device facts = opencl_facts(device->found);
  if (atomic_load(&device->is_lost) != 0) return TM_ERROR_DEVICE_LOST;
  if (!kernel_rest_is_zero(operation, sizeof *operation, operation->struct_size)) return TM_UNSUPPORTED;
  if (answer->epoch != 0 && answer->epoch != facts.epoch) return TM_STALE;
  tm_kernel *kernel = opencl_alloc(host, sizeof *kernel);
  if (kernel == NULL) return opencl_fail(host, TM_ERROR_NO_MEMORY, 0, "no memory for a kernel");
  memset(kernel, 0, sizeof *kernel);
  pthread_mutex_init(&kernel->lock, NULL);
  const kernel_row *row = kernel_row_find(&facts, operation, &kernel->plan);
  const tm_status status = row != NULL ? make_handles(device, row, kernel) : refusal_status(&facts, operation);
  if (status == TM_OK) *out_kernel = kernel;
  else opencl_release(device, kernel);
  return status;
}

void opencl_release(tm_device *device, tm_kernel *kernel) {
  if (kernel == NULL) return;
  for (uint32_t i = 0; i < KERNEL_MOST_DISPATCHES; i++)
    if (kernel->handles[i] != NULL) (void)device->backend->api.ReleaseKernel(kernel->handles[i]);
  pthread_mutex_destroy(&kernel->lock);
  opencl_free(device->backend->host, kernel, sizeof *kernel);
}

/* ---- launch ---- */

static int32_t enqueue_dispatch(tm_device *device, const tm_launch *launch, uint32_t index, const kernel_parameters *parameters,
                                const opencl_waits *waits, opencl_event *out_event) {
  const opencl_api *api = &device->backend->api;
  const kernel_dispatch *dispatch = &launch->kernel->plan.dispatches[index];
  opencl_kernel_handle handle = launch->kernel->handles[index];
  const size_t local = GROUP_SIZE, global = (size_t)dispatch->group_count * GROUP_SIZE;
  int32_t error = OPENCL_SUCCESS;
  for (uint32_t i = 0; i < dispatch->buffer_count && error == OPENCL_SUCCESS; i++)
    error = api->SetKernelArg(handle, i, sizeof(opencl_mem), &launch->bindings[dispatch->buffers[i]].buffer->handle);
  if (error == OPENCL_SUCCESS) error = api->SetKernelArg(handle, dispatch->buffer_count, sizeof *parameters, parameters);
  if (error != OPENCL_SUCCESS) return error;
  return api->EnqueueNDRangeKernel(device->queues[launch->queue].handle, handle, 1, NULL, &global, &local, waits->count,
                                   waits->count != 0 ? waits->events : NULL, out_event);
}

/* The last command's event is the ticket's; commands of one queue run in order, so it stands for all. */
static int32_t enqueue(tm_device *device, const tm_launch *launch, const opencl_waits *waits, opencl_event *out_event) {
  tm_kernel *kernel = launch->kernel;
  const uint32_t count = kernel->plan.dispatch_count;
  kernel_parameters parameters = kernel->plan.parameters;
  int32_t error = OPENCL_SUCCESS;
  for (uint32_t i = 0; i < launch->binding_count; i++)
    parameters.offsets[kernel->plan.slots[i]] = (int64_t)launch->bindings[i].offset;
  if (count == 0)
    return device->backend->api.EnqueueMarkerWithWaitList(device->queues[launch->queue].handle, waits->count,
                                                          waits->count != 0 ? waits->events : NULL, out_event);
  pthread_mutex_lock(&kernel->lock);
  for (uint32_t i = 0; i < count && error == OPENCL_SUCCESS; i++)
    error = enqueue_dispatch(device, launch, i, &parameters, waits, i + 1 == count ? out_event : NULL);
  pthread_mutex_unlock(&kernel->lock);
  return error;
}

static tm_status check(tm_device *device, const tm_launch *launch) {
  const kernel_plan *plan = &launch->kernel->plan;
  if (!kernel_rest_is_zero(launch, sizeof *launch, launch->struct_size)) return TM_UNSUPPORTED;
  if (launch->binding_count != plan->binding_count)
    return opencl_fail(device->backend->host, TM_ERROR_ARGUMENT, 0, "%u bindings, expected %u", (unsigned)launch->binding_count,
                       (unsigned)plan->binding_count);
  for (uint32_t i = 0; i < launch->binding_count; i++)
    if (launch->bindings[i].buffer == NULL || launch->bindings[i].offset % OPENCL_BUFFER_GRANULE != 0)
      return opencl_fail(device->backend->host, TM_ERROR_ARGUMENT, 0,
                         "binding %u has no buffer, or an offset that is no multiple of %u",
                         (unsigned)i, OPENCL_BUFFER_GRANULE);
  return TM_OK;
}

tm_status opencl_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  opencl_waits waits;
  opencl_event event = NULL;
  tm_status status = check(device, launch);
  if (status != TM_OK) return status;
  status = opencl_queue_begin(device, launch->queue, launch->waits, launch->wait_count, &waits, out_ticket);
  if (status == TM_ERROR_PREDECESSOR) return TM_OK;
  if (status != TM_OK) return status;
  const int32_t error = enqueue(device, launch, &waits, &event);
  opencl_waits_release(device, &waits);
  if (error != OPENCL_SUCCESS) return opencl_fail_call(device, "a launch", error);
  opencl_queue_commit(device, launch->queue, event, out_ticket);
  return TM_OK;
}
