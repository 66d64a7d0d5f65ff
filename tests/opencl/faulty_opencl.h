/* SPDX-License-Identifier: Apache-2.0 */
/* faulty_opencl.h - an OpenCL loader that fails as a test says: a few calls are its own, all others are the real one's. */
#ifndef FAULTY_OPENCL_H
#define FAULTY_OPENCL_H

#include <stdint.h>

/* All zero: it is the real one. */
typedef struct faulty_plan {
  int32_t build_error;          /* of every clBuildProgram; its log then says so */
  int32_t buffer_error;         /* of every clCreateBuffer */
  int32_t launch_error;         /* of every clEnqueueNDRangeKernel */
  int32_t event_status;         /* of the event that is asked about next, once */
  int32_t is_stuck;             /* events stay submitted while it is not 0 */
  int32_t is_flushed;           /* counts clFlush */
  int32_t build_count;          /* counts clBuildProgram of source text */
  int32_t binary_count;         /* counts clCreateProgramWithBinary */
} faulty_plan;

typedef faulty_plan *(*faulty_plan_fn)(void);

#endif
