/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zoo.h - a small honest backend: one synchronous device in host memory that negates, adds and copies dense f32 tensors,
 * at a price that nobody beats.  Each animal of the zoo replaces one of its functions by a bad one.
 */
#ifndef TM_TESTS_ZOO_H
#define TM_TESTS_ZOO_H

#include <stdatomic.h>

#include "tensormorph/plugin.h"

struct tm_backend {
  const tm_host   *host;
  _Atomic uint64_t calls;       /* for animals that change their mind */
};

struct tm_kernel {
  uint32_t op;
  uint32_t reserved;
  uint64_t count;               /* elements */
};

extern const tm_memory_space *const zoo_memories[1];
/* Of the animal's device, in the one file of its own; all zero where the build gives none. */
extern const tm_identity zoo_uuid;
#ifdef ZOO_UUID
const tm_identity zoo_uuid = { { ZOO_UUID } };
#endif

tm_status zoo_init(const tm_host *host, tm_backend **out_backend);
void      zoo_shutdown(tm_backend *backend);
tm_status zoo_device_info(tm_backend *backend, uint32_t index, tm_device_info *out_info);
tm_status zoo_query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                    tm_answer *const *out_answers);
tm_status zoo_prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel);
void      zoo_release(tm_device *device, tm_kernel *kernel);
tm_status zoo_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket);

/* Bytes [from, to) of a struct or of attributes. */
int zoo_is_zero(const void *data, uint64_t from, uint64_t to);
/* Why it is not even looked at (TM_REASON_*): unknown operation, version, demand, appended field; 0 if it is. */
uint32_t zoo_strange(const tm_operation *operation);
/* Why the honest backend cannot do it; 0 if it can. */
uint32_t zoo_refuses(const tm_operation *operation);
/* A yes: native, bit-equal, for one nanosecond. */
void zoo_accept(tm_answer *out_answer);
/* A yes if there are no reasons, else a no; writes no more than the answer's struct_size. */
void zoo_reply(tm_answer *out_answer, uint32_t reasons);
/* The kernel's arithmetic on host addresses. */
void zoo_compute(const tm_kernel *kernel, const float *a, const float *b, float *y);
/* Whether this process is the one in which the library tries plugins: some animals behave until they are let in. */
int zoo_is_on_trial(void);
/* The device handle is the backend's. */
tm_backend *zoo_backend_of(tm_device *device);

#define ZOO_TABLE(device_info_fn, query_fn, prepare_fn, launch_fn)                                                   \
  .struct_size = sizeof(tm_accelerator_backend_plugin), .init = zoo_init, .shutdown = zoo_shutdown,                  \
  .device_info = device_info_fn, .query = query_fn, .prepare = prepare_fn, .release = zoo_release, .launch = launch_fn

#endif
