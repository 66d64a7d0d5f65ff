/* SPDX-License-Identifier: Apache-2.0 */
/* opencl_launch.h - prepared operations and their launches, as the contract has them. */
#ifndef OPENCL_LAUNCH_H
#define OPENCL_LAUNCH_H

#include "opencl_backend.h"

/* What answers depend on at this moment. */
kernel_device opencl_facts(opencl_found *found);

tm_status opencl_prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel);
void      opencl_release(tm_device *device, tm_kernel *kernel);
tm_status opencl_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket);

#endif
