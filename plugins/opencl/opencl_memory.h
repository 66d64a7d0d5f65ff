/* SPDX-License-Identifier: Apache-2.0 */
/* opencl_memory.h - buffers and transfers, as the contract has them. */
#ifndef OPENCL_MEMORY_H
#define OPENCL_MEMORY_H

#include "opencl_backend.h"

tm_status opencl_buffer_create(tm_device *device, uint32_t space, uint64_t bytes, tm_buffer **out_buffer);
void      opencl_buffer_destroy(tm_device *device, uint32_t space, tm_buffer *buffer, uint64_t bytes, uint32_t imported);
tm_status opencl_upload(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket);
tm_status opencl_download(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket);
tm_status opencl_copy(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket);

#endif
