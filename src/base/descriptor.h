/* SPDX-License-Identifier: Apache-2.0 */
/* descriptor.h - all bytes of an open file's part, however many system calls that takes. */
#ifndef TM_BASE_DESCRIPTOR_H
#define TM_BASE_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>

bool     tm_descriptor_write(int descriptor, uint64_t offset, const void *data, uint64_t bytes);
/* The number of bytes that were there. */
uint64_t tm_descriptor_read(int descriptor, uint64_t offset, void *out_data, uint64_t bytes);

#endif
