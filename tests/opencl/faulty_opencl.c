/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "faulty_opencl.h"

#include <dlfcn.h>
#include <string.h>

#include "opencl_api.h"

#define EXPORT __attribute__((visibility("default")))
#define SUBMITTED 2

static faulty_plan plan;

EXPORT faulty_plan *faulty_opencl_plan(void);
EXPORT faulty_plan *faulty_opencl_plan(void) { return &plan; }

/* The library behind this one, which is linked to it. */
static void find(const char *name, void *out_function) {
  void *symbol = dlsym(RTLD_NEXT, name);
  memcpy(out_function, &symbol, sizeof symbol);
}

static const char log_text[] = "kernel_walk.inc:7:1: error: a fault of the test";

EXPORT int32_t clBuildProgram(opencl_program_handle program, uint32_t count, const opencl_device_id *devices, const char *options,
                              void (*notify)(opencl_program_handle, void *), void *user);
EXPORT int32_t clBuildProgram(opencl_program_handle program, uint32_t count, const opencl_device_id *devices, const char *options,
                              void (*notify)(opencl_program_handle, void *), void *user) {
  int32_t (*real)(opencl_program_handle, uint32_t, const opencl_device_id *, const char *, void (*)(opencl_program_handle, void *), void *);
  find("clBuildProgram", &real);
  plan.build_count++;
  return plan.build_error != 0 ? plan.build_error : real(program, count, devices, options, notify, user);
}

EXPORT int32_t clGetProgramBuildInfo(opencl_program_handle program, opencl_device_id device, uint32_t name, size_t bytes, void *out_value,
                                     size_t *out_bytes);
EXPORT int32_t clGetProgramBuildInfo(opencl_program_handle program, opencl_device_id device, uint32_t name, size_t bytes, void *out_value,
                                     size_t *out_bytes) {
  int32_t (*real)(opencl_program_handle, opencl_device_id, uint32_t, size_t, void *, size_t *);
  find("clGetProgramBuildInfo", &real);
  if (plan.build_error == 0) return real(program, device, name, bytes, out_value, out_bytes);
  if (out_bytes != NULL) *out_bytes = sizeof log_text;
  if (out_value != NULL && bytes >= sizeof log_text) memcpy(out_value, log_text, sizeof log_text);
  return OPENCL_SUCCESS;
}

EXPORT opencl_program_handle clCreateProgramWithBinary(opencl_context context, uint32_t count, const opencl_device_id *devices,
                                                       const size_t *lengths, const unsigned char **binaries, int32_t *out_status,
                                                       int32_t *out_error);
EXPORT opencl_program_handle clCreateProgramWithBinary(opencl_context context, uint32_t count, const opencl_device_id *devices,
                                                       const size_t *lengths, const unsigned char **binaries, int32_t *out_status,
                                                       int32_t *out_error) {
  opencl_program_handle (*real)(opencl_context, uint32_t, const opencl_device_id *, const size_t *, const unsigned char **, int32_t *,
                                int32_t *);
  find("clCreateProgramWithBinary", &real);
  plan.binary_count++;
  return real(context, count, devices, lengths, binaries, out_status, out_error);
}

EXPORT opencl_mem clCreateBuffer(opencl_context context, uint64_t flags, size_t bytes, void *host, int32_t *out_error);
EXPORT opencl_mem clCreateBuffer(opencl_context context, uint64_t flags, size_t bytes, void *host, int32_t *out_error) {
  opencl_mem (*real)(opencl_context, uint64_t, size_t, void *, int32_t *);
  find("clCreateBuffer", &real);
  if (plan.buffer_error == 0) return real(context, flags, bytes, host, out_error);
  *out_error = plan.buffer_error;
  return NULL;
}

EXPORT int32_t clEnqueueNDRangeKernel(opencl_command_queue queue, opencl_kernel_handle kernel, uint32_t dimensions, const size_t *offset,
                                      const size_t *global, const size_t *local, uint32_t count, const opencl_event *waits,
                                      opencl_event *out_event);
EXPORT int32_t clEnqueueNDRangeKernel(opencl_command_queue queue, opencl_kernel_handle kernel, uint32_t dimensions, const size_t *offset,
                                      const size_t *global, const size_t *local, uint32_t count, const opencl_event *waits,
                                      opencl_event *out_event) {
  int32_t (*real)(opencl_command_queue, opencl_kernel_handle, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t,
                  const opencl_event *, opencl_event *);
  find("clEnqueueNDRangeKernel", &real);
  if (plan.launch_error != 0) return plan.launch_error;
  return real(queue, kernel, dimensions, offset, global, local, count, waits, out_event);
}

EXPORT int32_t clFlush(opencl_command_queue queue);
EXPORT int32_t clFlush(opencl_command_queue queue) {
  int32_t (*real)(opencl_command_queue);
  find("clFlush", &real);
  plan.is_flushed++;
  return real(queue);
}

EXPORT int32_t clGetEventInfo(opencl_event event, uint32_t name, size_t bytes, void *out_value, size_t *out_bytes);
EXPORT int32_t clGetEventInfo(opencl_event event, uint32_t name, size_t bytes, void *out_value, size_t *out_bytes) {
  int32_t (*real)(opencl_event, uint32_t, size_t, void *, size_t *);
  find("clGetEventInfo", &real);
  const int32_t error = real(event, name, bytes, out_value, out_bytes);
  if (error != OPENCL_SUCCESS || name != OPENCL_EVENT_EXECUTION_STATUS || bytes != sizeof(int32_t)) return error;
  if (plan.is_stuck != 0) *(int32_t *)out_value = SUBMITTED;
  else if (plan.event_status != 0 && *(int32_t *)out_value == OPENCL_COMPLETE) {
    *(int32_t *)out_value = plan.event_status;
    plan.event_status = 0;
  }
  return error;
}
