/* SPDX-License-Identifier: Apache-2.0 */
/* webgpu_library.h - finds an implementation of WebGPU and fills the table of its functions. */
#ifndef WEBGPU_LIBRARY_H
#define WEBGPU_LIBRARY_H

#include "tensormorph/plugin.h"
#include "webgpu_api.h"

#define WEBGPU_LIBRARY_TEXT 880u

/* What was found, or everywhere that was looked. */
typedef struct webgpu_library {
  webgpu_api api;
  char       name[512];                 /* of the file; "the application's" for functions handed in */
  char       tried[WEBGPU_LIBRARY_TEXT];
  uint32_t   tried_length;
  uint32_t   is_found;
} webgpu_library;

/*
 * Looks, in this order, at the functions that the application handed in (pointer "proc_address", a wgpuGetProcAddress);
 * the file of the option `library`, and no other if it is set; the usual names of libraries; the packages of an active
 * Python environment.   TM_OK, TM_ERROR_NO_DEVICE (said through fail, with all that was tried)
 */
tm_status webgpu_library_find(const tm_host *host, tm_string wanted, webgpu_library *out_library);

#endif
