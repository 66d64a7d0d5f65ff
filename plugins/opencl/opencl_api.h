/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opencl_api.h - as much of OpenCL 1.2 as the plugin calls, declared here so that it builds where no OpenCL is installed.
 * Names and numbers are those of the standard; test_opencl_api.c compares them with its own headers where they are.
 */
#ifndef OPENCL_API_H
#define OPENCL_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct opencl_platform_id   *opencl_platform;
typedef struct opencl_device_id     *opencl_device_id;
typedef struct opencl_context_id    *opencl_context;
typedef struct opencl_queue_id      *opencl_command_queue;
typedef struct opencl_mem_id        *opencl_mem;
typedef struct opencl_program_id    *opencl_program_handle;
typedef struct opencl_kernel_id     *opencl_kernel_handle;
typedef struct opencl_event_id      *opencl_event;

#define OPENCL_SUCCESS                         0
#define OPENCL_DEVICE_NOT_FOUND              (-1)
#define OPENCL_DEVICE_NOT_AVAILABLE          (-2)
#define OPENCL_MEM_OBJECT_ALLOCATION_FAILURE (-4)
#define OPENCL_OUT_OF_RESOURCES              (-5)
#define OPENCL_OUT_OF_HOST_MEMORY            (-6)
#define OPENCL_BUILD_PROGRAM_FAILURE        (-11)
#define OPENCL_FAILED_EVENT_IN_WAIT_LIST    (-14)
#define OPENCL_INVALID_BUFFER_SIZE          (-61)
#define OPENCL_PLATFORM_NOT_FOUND         (-1001)

#define OPENCL_PLATFORM_NAME                 0x0902u

#define OPENCL_DEVICE_TYPE                   0x1000u
#define OPENCL_DEVICE_MAX_COMPUTE_UNITS      0x1002u
#define OPENCL_DEVICE_MAX_WORK_GROUP_SIZE    0x1004u
#define OPENCL_DEVICE_MAX_CLOCK_FREQUENCY    0x100Cu
#define OPENCL_DEVICE_MAX_MEM_ALLOC_SIZE     0x1010u
#define OPENCL_DEVICE_MAX_PARAMETER_SIZE     0x1017u
#define OPENCL_DEVICE_SINGLE_FP_CONFIG       0x101Bu
#define OPENCL_DEVICE_GLOBAL_MEM_SIZE        0x101Fu
#define OPENCL_DEVICE_LOCAL_MEM_SIZE         0x1023u
#define OPENCL_DEVICE_ENDIAN_LITTLE          0x1026u
#define OPENCL_DEVICE_AVAILABLE              0x1027u
#define OPENCL_DEVICE_COMPILER_AVAILABLE     0x1028u
#define OPENCL_DEVICE_NAME                   0x102Bu
#define OPENCL_DRIVER_VERSION                0x102Du
#define OPENCL_DEVICE_PROFILE                0x102Eu
#define OPENCL_DEVICE_VERSION                0x102Fu
#define OPENCL_DEVICE_EXTENSIONS             0x1030u
#define OPENCL_DEVICE_DOUBLE_FP_CONFIG       0x1032u
#define OPENCL_DEVICE_HOST_UNIFIED_MEMORY    0x1035u
#define OPENCL_DEVICE_NATIVE_FLOAT_WIDTH     0x103Au
#define OPENCL_DEVICE_UUID                   0x106Au

#define OPENCL_DEVICE_TYPE_CPU               (UINT64_C(1) << 1)
#define OPENCL_DEVICE_TYPE_ALL               UINT64_C(0xFFFFFFFF)

#define OPENCL_FP_DENORM                     (UINT64_C(1) << 0)
#define OPENCL_FP_INF_NAN                    (UINT64_C(1) << 1)
#define OPENCL_FP_ROUND_TO_NEAREST           (UINT64_C(1) << 2)
#define OPENCL_FP_FMA                        (UINT64_C(1) << 5)
#define OPENCL_FP_EXACT_DIVIDE_SQRT          (UINT64_C(1) << 7)

#define OPENCL_MEM_READ_WRITE                (UINT64_C(1) << 0)
#define OPENCL_PROGRAM_BINARY_SIZES          0x1165u
#define OPENCL_PROGRAM_BINARIES              0x1166u
#define OPENCL_PROGRAM_BUILD_LOG             0x1183u
#define OPENCL_EVENT_EXECUTION_STATUS        0x11D3u
#define OPENCL_COMPLETE                      0x0
#define OPENCL_FALSE                         0u

#if defined(_WIN32)
#define OPENCL_CALL __stdcall
#else
#define OPENCL_CALL
#endif

/* The functions: result, name without "cl", parameters.  One list makes the table and the look-up. */
#define OPENCL_FUNCTIONS(F)                                                                                                      \
  F(int32_t, GetPlatformIDs, (uint32_t count, opencl_platform *platforms, uint32_t *out_count))                                  \
  F(int32_t, GetPlatformInfo, (opencl_platform platform, uint32_t name, size_t bytes, void *out_value, size_t *out_bytes))       \
  F(int32_t, GetDeviceIDs, (opencl_platform platform, uint64_t type, uint32_t count, opencl_device_id *devices,                  \
                            uint32_t *out_count))                                                                                \
  F(int32_t, GetDeviceInfo, (opencl_device_id device, uint32_t name, size_t bytes, void *out_value, size_t *out_bytes))          \
  F(opencl_context, CreateContext, (const intptr_t *properties, uint32_t count, const opencl_device_id *devices,                 \
     void (OPENCL_CALL *notify)(const char *, const void *, size_t, void *), void *user, int32_t *out_error))                    \
  F(int32_t, ReleaseContext, (opencl_context context))                                                                           \
  F(opencl_command_queue, CreateCommandQueue, (opencl_context context, opencl_device_id device, uint64_t properties,             \
                                               int32_t *out_error))                                                              \
  F(int32_t, ReleaseCommandQueue, (opencl_command_queue queue))                                                                  \
  F(opencl_mem, CreateBuffer, (opencl_context context, uint64_t flags, size_t bytes, void *host, int32_t *out_error))            \
  F(int32_t, ReleaseMemObject, (opencl_mem memory))                                                                              \
  F(opencl_program_handle, CreateProgramWithSource, (opencl_context context, uint32_t count, const char **texts,                 \
     const size_t *lengths, int32_t *out_error))                                                                                 \
  F(opencl_program_handle, CreateProgramWithBinary, (opencl_context context, uint32_t count, const opencl_device_id *devices,    \
     const size_t *lengths, const unsigned char **binaries, int32_t *out_status, int32_t *out_error))                            \
  F(int32_t, BuildProgram, (opencl_program_handle program, uint32_t count, const opencl_device_id *devices, const char *options, \
     void (OPENCL_CALL *notify)(opencl_program_handle, void *), void *user))                                                     \
  F(int32_t, GetProgramInfo, (opencl_program_handle program, uint32_t name, size_t bytes, void *out_value, size_t *out_bytes))   \
  F(int32_t, GetProgramBuildInfo, (opencl_program_handle program, opencl_device_id device, uint32_t name, size_t bytes,          \
     void *out_value, size_t *out_bytes))                                                                                        \
  F(int32_t, ReleaseProgram, (opencl_program_handle program))                                                                    \
  F(opencl_kernel_handle, CreateKernel, (opencl_program_handle program, const char *name, int32_t *out_error))                   \
  F(int32_t, ReleaseKernel, (opencl_kernel_handle kernel))                                                                       \
  F(int32_t, SetKernelArg, (opencl_kernel_handle kernel, uint32_t index, size_t bytes, const void *value))                       \
  F(int32_t, EnqueueNDRangeKernel, (opencl_command_queue queue, opencl_kernel_handle kernel, uint32_t dimensions,                \
     const size_t *offset, const size_t *global, const size_t *local, uint32_t count, const opencl_event *waits,                 \
     opencl_event *out_event))                                                                                                   \
  F(int32_t, EnqueueReadBuffer, (opencl_command_queue queue, opencl_mem memory, uint32_t is_blocking, size_t offset, size_t bytes, \
     void *host, uint32_t count, const opencl_event *waits, opencl_event *out_event))                                            \
  F(int32_t, EnqueueWriteBuffer, (opencl_command_queue queue, opencl_mem memory, uint32_t is_blocking, size_t offset,            \
                                  size_t bytes,                                                                                  \
     const void *host, uint32_t count, const opencl_event *waits, opencl_event *out_event))                                      \
  F(int32_t, EnqueueCopyBuffer, (opencl_command_queue queue, opencl_mem source, opencl_mem target, size_t source_offset,         \
     size_t target_offset, size_t bytes, uint32_t count, const opencl_event *waits, opencl_event *out_event))                    \
  F(int32_t, EnqueueMarkerWithWaitList, (opencl_command_queue queue, uint32_t count, const opencl_event *waits,                  \
                                         opencl_event *out_event))                                                               \
  F(int32_t, Flush, (opencl_command_queue queue))                                                                                \
  F(int32_t, Finish, (opencl_command_queue queue))                                                                               \
  F(int32_t, WaitForEvents, (uint32_t count, const opencl_event *events))                                                        \
  F(int32_t, GetEventInfo, (opencl_event event, uint32_t name, size_t bytes, void *out_value, size_t *out_bytes))                \
  F(int32_t, RetainEvent, (opencl_event event))                                                                                  \
  F(int32_t, ReleaseEvent, (opencl_event event))

#define OPENCL_POINTER(result, name, parameters) result (OPENCL_CALL *name) parameters;
typedef struct opencl_api {
  OPENCL_FUNCTIONS(OPENCL_POINTER)
} opencl_api;
#undef OPENCL_POINTER

#endif
