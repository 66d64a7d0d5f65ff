/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_file.h - a plan as bytes: the graph's digest, the policy, devices by what they are, and who runs what.  All else
 * follows from that when it is loaded, and the plan's digest tells whether it came out as it was.  In a file the checksum of
 * these bytes comes after them (fields.h).
 */
#ifndef TM_EXECUTE_PLAN_FILE_H
#define TM_EXECUTE_PLAN_FILE_H

#include "base/fields.h"
#include "execute/plan.h"

#define TM_PLAN_FILE_MOST_BYTES (UINT64_C(1) << 30)

typedef struct tm_plan_file_device {
  tm_string   name;             /* for messages */
  tm_string   backend;
  tm_string   build_id;
  tm_identity uuid;
} tm_plan_file_device;

typedef struct tm_plan_file_step {
  uint32_t  node;
  uint32_t  device;             /* of the file's */
  uint32_t  is_direct;
  uint32_t  reserved;
  tm_string lowering;           /* "" if nothing is done to operands first */
} tm_plan_file_step;

/* Texts point into the bytes that were read. */
typedef struct tm_plan_file {
  tm_memory           *memory;
  tm_plan_file_device *devices;
  tm_plan_file_step   *steps;
  uint32_t             device_count;
  uint32_t             step_count;
  uint32_t             state_device;    /* in whose memory states live; TM_PLAN_NONE: the host's */
  uint32_t             worst_numerics;
  uint32_t             run_to_run;
  uint32_t             one_resource;
  uint64_t             repeats;
  uint64_t             most_bytes;
  uint8_t              graph_digest[TM_SHA256_BYTES];
  uint8_t              plan_digest[TM_SHA256_BYTES];
} tm_plan_file;

/* writer->failed: no memory. */
void      tm_plan_file_write(const tm_plan *plan, tm_field_writer *writer);
/* Believes nothing, and takes no more memory than the bytes account for.   TM_ERROR_CORRUPT (what, and where), TM_ERROR_NO_MEMORY
 */
tm_status tm_plan_file_read(tm_memory *memory, const char *bytes, uint64_t length, tm_plan_file *out_file, tm_error *error);
void      tm_plan_file_deinit(tm_plan_file *file);

/* tm_plan_request.choose for a file.   TM_ERROR_NO_DEVICE: the first difference between its devices and those here */
tm_status tm_plan_file_choose(void *file, tm_graph_problem *problem, tm_memory *memory, tm_graph_choice *out_choice,
                              tm_error *error);

#endif
