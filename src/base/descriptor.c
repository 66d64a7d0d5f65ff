/* SPDX-License-Identifier: Apache-2.0 */
#include "base/descriptor.h"

#include <errno.h>
#include <sys/types.h>
#include <unistd.h>

bool tm_descriptor_write(int descriptor, uint64_t offset, const void *data, uint64_t bytes) {
  const char *from = data;
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t written = pwrite(descriptor, from + done, (size_t)(bytes - done), (off_t)(offset + done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    done += (uint64_t)written;
  }
  return true;
}

uint64_t tm_descriptor_read(int descriptor, uint64_t offset, void *out_data, uint64_t bytes) {
  char *to = out_data;
  uint64_t done = 0;
  while (done < bytes) {
    const ssize_t got = pread(descriptor, to + done, (size_t)(bytes - done), (off_t)(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += (uint64_t)got;
  }
  return done;
}
