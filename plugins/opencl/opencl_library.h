/* SPDX-License-Identifier: Apache-2.0 */
/* opencl_library.h - the ICD loader, opened at run time. */
#ifndef OPENCL_LIBRARY_H
#define OPENCL_LIBRARY_H

#include "opencl_backend.h"

/* Opens `path` or, if that is empty, the first of the usual names.  TM_ERROR_NO_DEVICE with every name that was tried. */
tm_status opencl_library_open(const tm_host *host, tm_string path, opencl_api *out_api);

#endif
