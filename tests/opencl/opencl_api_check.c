/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's own declarations against the standard's headers: numbers, and that calls agree in their parameters' sizes. */
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include "opencl_api.h"

#define SAME(ours, theirs) _Static_assert((long long)(ours) == (long long)(theirs), #ours)
SAME(OPENCL_SUCCESS, CL_SUCCESS);
SAME(OPENCL_DEVICE_NOT_FOUND, CL_DEVICE_NOT_FOUND);
SAME(OPENCL_DEVICE_NOT_AVAILABLE, CL_DEVICE_NOT_AVAILABLE);
SAME(OPENCL_MEM_OBJECT_ALLOCATION_FAILURE, CL_MEM_OBJECT_ALLOCATION_FAILURE);
SAME(OPENCL_OUT_OF_RESOURCES, CL_OUT_OF_RESOURCES);
SAME(OPENCL_OUT_OF_HOST_MEMORY, CL_OUT_OF_HOST_MEMORY);
SAME(OPENCL_BUILD_PROGRAM_FAILURE, CL_BUILD_PROGRAM_FAILURE);
SAME(OPENCL_FAILED_EVENT_IN_WAIT_LIST, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
SAME(OPENCL_INVALID_BUFFER_SIZE, CL_INVALID_BUFFER_SIZE);
SAME(OPENCL_PLATFORM_NOT_FOUND, CL_PLATFORM_NOT_FOUND_KHR);
SAME(OPENCL_PLATFORM_NAME, CL_PLATFORM_NAME);
SAME(OPENCL_DEVICE_TYPE, CL_DEVICE_TYPE);
SAME(OPENCL_DEVICE_MAX_COMPUTE_UNITS, CL_DEVICE_MAX_COMPUTE_UNITS);
SAME(OPENCL_DEVICE_MAX_WORK_GROUP_SIZE, CL_DEVICE_MAX_WORK_GROUP_SIZE);
SAME(OPENCL_DEVICE_MAX_CLOCK_FREQUENCY, CL_DEVICE_MAX_CLOCK_FREQUENCY);
SAME(OPENCL_DEVICE_MAX_MEM_ALLOC_SIZE, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
SAME(OPENCL_DEVICE_MAX_PARAMETER_SIZE, CL_DEVICE_MAX_PARAMETER_SIZE);
SAME(OPENCL_DEVICE_SINGLE_FP_CONFIG, CL_DEVICE_SINGLE_FP_CONFIG);
SAME(OPENCL_DEVICE_GLOBAL_MEM_SIZE, CL_DEVICE_GLOBAL_MEM_SIZE);
SAME(OPENCL_DEVICE_LOCAL_MEM_SIZE, CL_DEVICE_LOCAL_MEM_SIZE);
SAME(OPENCL_DEVICE_ENDIAN_LITTLE, CL_DEVICE_ENDIAN_LITTLE);
SAME(OPENCL_DEVICE_AVAILABLE, CL_DEVICE_AVAILABLE);
SAME(OPENCL_DEVICE_COMPILER_AVAILABLE, CL_DEVICE_COMPILER_AVAILABLE);
SAME(OPENCL_DEVICE_NAME, CL_DEVICE_NAME);
SAME(OPENCL_DRIVER_VERSION, CL_DRIVER_VERSION);
SAME(OPENCL_DEVICE_PROFILE, CL_DEVICE_PROFILE);
SAME(OPENCL_DEVICE_VERSION, CL_DEVICE_VERSION);
SAME(OPENCL_DEVICE_EXTENSIONS, CL_DEVICE_EXTENSIONS);
SAME(OPENCL_DEVICE_DOUBLE_FP_CONFIG, CL_DEVICE_DOUBLE_FP_CONFIG);
SAME(OPENCL_DEVICE_HOST_UNIFIED_MEMORY, CL_DEVICE_HOST_UNIFIED_MEMORY);
SAME(OPENCL_DEVICE_NATIVE_FLOAT_WIDTH, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
SAME(OPENCL_DEVICE_UUID, CL_DEVICE_UUID_KHR);
SAME(OPENCL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_CPU);
SAME(OPENCL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_ALL);
SAME(OPENCL_FP_DENORM, CL_FP_DENORM);
SAME(OPENCL_FP_INF_NAN, CL_FP_INF_NAN);
SAME(OPENCL_FP_ROUND_TO_NEAREST, CL_FP_ROUND_TO_NEAREST);
SAME(OPENCL_FP_FMA, CL_FP_FMA);
SAME(OPENCL_FP_EXACT_DIVIDE_SQRT, CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT);
SAME(OPENCL_MEM_READ_WRITE, CL_MEM_READ_WRITE);
SAME(OPENCL_PROGRAM_BINARY_SIZES, CL_PROGRAM_BINARY_SIZES);
SAME(OPENCL_PROGRAM_BINARIES, CL_PROGRAM_BINARIES);
SAME(OPENCL_PROGRAM_BUILD_LOG, CL_PROGRAM_BUILD_LOG);
SAME(OPENCL_EVENT_EXECUTION_STATUS, CL_EVENT_COMMAND_EXECUTION_STATUS);
SAME(OPENCL_COMPLETE, CL_COMPLETE);
SAME(OPENCL_FALSE, CL_FALSE);

/* Each function of the standard, called with arguments of our types: a missing or extra one, or one that does not convert,
   does not compile. */
typedef struct arguments {
  uint32_t u; int32_t i; size_t z; uint64_t l; void *p; const char *text; const unsigned char *binary;
} arguments;

void opencl_calls_compile(arguments a);
void opencl_calls_compile(arguments a) {
  (void)clGetPlatformIDs(a.u, a.p, a.p);
  (void)clGetPlatformInfo(a.p, a.u, a.z, a.p, a.p);
  (void)clGetDeviceIDs(a.p, a.l, a.u, a.p, a.p);
  (void)clGetDeviceInfo(a.p, a.u, a.z, a.p, a.p);
  (void)clCreateContext(a.p, a.u, a.p, NULL, a.p, a.p);
  (void)clCreateCommandQueue(a.p, a.p, a.l, a.p);
  (void)clCreateBuffer(a.p, a.l, a.z, a.p, a.p);
  (void)clCreateProgramWithSource(a.p, a.u, &a.text, a.p, a.p);
  (void)clCreateProgramWithBinary(a.p, a.u, a.p, a.p, &a.binary, a.p, a.p);
  (void)clBuildProgram(a.p, a.u, a.p, a.text, NULL, a.p);
  (void)clGetProgramInfo(a.p, a.u, a.z, a.p, a.p);
  (void)clGetProgramBuildInfo(a.p, a.p, a.u, a.z, a.p, a.p);
  (void)clCreateKernel(a.p, a.text, a.p);
  (void)clSetKernelArg(a.p, a.u, a.z, a.p);
  (void)clEnqueueNDRangeKernel(a.p, a.p, a.u, a.p, a.p, a.p, a.u, a.p, a.p);
  (void)clEnqueueReadBuffer(a.p, a.p, a.u, a.z, a.z, a.p, a.u, a.p, a.p);
  (void)clEnqueueWriteBuffer(a.p, a.p, a.u, a.z, a.z, a.p, a.u, a.p, a.p);
  (void)clEnqueueCopyBuffer(a.p, a.p, a.p, a.z, a.z, a.z, a.u, a.p, a.p);
  (void)clEnqueueMarkerWithWaitList(a.p, a.u, a.p, a.p);
  (void)clGetEventInfo(a.p, a.u, a.z, a.p, a.p);
  (void)clWaitForEvents(a.u, a.p);
}
