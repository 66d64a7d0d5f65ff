/* SPDX-License-Identifier: Apache-2.0 */
#include "opencl_error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_LENGTH 896

typedef struct error_name {
  int32_t     error;
  const char *name;
} error_name;

static const error_name names[] = {
  { -1, "CL_DEVICE_NOT_FOUND" },           { -2, "CL_DEVICE_NOT_AVAILABLE" },        { -3, "CL_COMPILER_NOT_AVAILABLE" },
  { -4, "CL_MEM_OBJECT_ALLOCATION_FAILURE" }, { -5, "CL_OUT_OF_RESOURCES" },         { -6, "CL_OUT_OF_HOST_MEMORY" },
  { -9, "CL_IMAGE_FORMAT_MISMATCH" },      { -11, "CL_BUILD_PROGRAM_FAILURE" },      { -12, "CL_MAP_FAILURE" },
  { -13, "CL_MISALIGNED_SUB_BUFFER_OFFSET" }, { -14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST" },
  { -15, "CL_COMPILE_PROGRAM_FAILURE" },   { -16, "CL_LINKER_NOT_AVAILABLE" },       { -17, "CL_LINK_PROGRAM_FAILURE" },
  { -30, "CL_INVALID_VALUE" },             { -31, "CL_INVALID_DEVICE_TYPE" },        { -32, "CL_INVALID_PLATFORM" },
  { -33, "CL_INVALID_DEVICE" },            { -34, "CL_INVALID_CONTEXT" },            { -35, "CL_INVALID_QUEUE_PROPERTIES" },
  { -36, "CL_INVALID_COMMAND_QUEUE" },     { -37, "CL_INVALID_HOST_PTR" },           { -38, "CL_INVALID_MEM_OBJECT" },
  { -42, "CL_INVALID_BINARY" },            { -43, "CL_INVALID_BUILD_OPTIONS" },      { -44, "CL_INVALID_PROGRAM" },
  { -45, "CL_INVALID_PROGRAM_EXECUTABLE" }, { -46, "CL_INVALID_KERNEL_NAME" },       { -47, "CL_INVALID_KERNEL_DEFINITION" },
  { -48, "CL_INVALID_KERNEL" },            { -49, "CL_INVALID_ARG_INDEX" },          { -50, "CL_INVALID_ARG_VALUE" },
  { -51, "CL_INVALID_ARG_SIZE" },          { -52, "CL_INVALID_KERNEL_ARGS" },        { -53, "CL_INVALID_WORK_DIMENSION" },
  { -54, "CL_INVALID_WORK_GROUP_SIZE" },   { -55, "CL_INVALID_WORK_ITEM_SIZE" },     { -56, "CL_INVALID_GLOBAL_OFFSET" },
  { -57, "CL_INVALID_EVENT_WAIT_LIST" },   { -58, "CL_INVALID_EVENT" },              { -59, "CL_INVALID_OPERATION" },
  { -61, "CL_INVALID_BUFFER_SIZE" },       { -63, "CL_INVALID_GLOBAL_WORK_SIZE" },   { -1001, "CL_PLATFORM_NOT_FOUND_KHR" },
};

const char *opencl_error_name(int32_t error) {
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (names[i].error == error) return names[i].name;
  return "an unknown error";
}

tm_status opencl_fail(const tm_host *host, tm_status status, int64_t native_code, const char *format, ...) {
  char text[TEXT_LENGTH];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return host->fail(host->context, status, native_code, (tm_string){ text, strlen(text) });
}

static tm_status lose(tm_device *device) {
  const tm_host *host = device->backend->host;
  if (atomic_exchange(&device->is_lost, 1) == 0)
    host->device_event(host->context, (uint32_t)(device->found - device->backend->devices), TM_EVENT_DEVICE_LOST, UINT32_MAX);
  return TM_ERROR_DEVICE_LOST;
}

static int is_lack_of_memory(int32_t error) {
  return error == OPENCL_OUT_OF_HOST_MEMORY || error == OPENCL_MEM_OBJECT_ALLOCATION_FAILURE || error == OPENCL_OUT_OF_RESOURCES ||
         error == OPENCL_INVALID_BUFFER_SIZE;
}

tm_status opencl_fail_call(tm_device *device, const char *call, int32_t error) {
  const tm_status status = is_lack_of_memory(error) ? TM_ERROR_NO_MEMORY : lose(device);
  return opencl_fail(device->backend->host, status, error, "%s on %s: %s (%d)", call, device->found->name, opencl_error_name(error),
                     (int)error);
}

/* Drivers report a kernel that died as lack of resources; nothing of the context can be trusted after that. */
tm_status opencl_event_failure(tm_device *device, int32_t status) {
  if (status == OPENCL_FAILED_EVENT_IN_WAIT_LIST) return TM_ERROR_PREDECESSOR;
  if (status == OPENCL_OUT_OF_HOST_MEMORY || status == OPENCL_MEM_OBJECT_ALLOCATION_FAILURE)
    return opencl_fail(device->backend->host, TM_ERROR_NO_MEMORY, status, "work on %s: %s (%d)", device->found->name,
                       opencl_error_name(status), (int)status);
  return opencl_fail(device->backend->host, lose(device), status, "work on %s failed: %s (%d)", device->found->name,
                     opencl_error_name(status), (int)status);
}
