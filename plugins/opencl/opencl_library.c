/* SPDX-License-Identifier: Apache-2.0 */
#include "opencl_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "opencl_error.h"

#define PATH_LENGTH 4096
#define TRIED_LENGTH 512

static const char *const usual_names[] = { "libOpenCL.so.1", "libOpenCL.so" };

/* POSIX has an object pointer where a function pointer is meant. */
static int find_function(void *library, const char *name, void *out_function) {
  void *symbol = dlsym(library, name);
  memcpy(out_function, &symbol, sizeof symbol);
  return symbol != NULL;
}

/* Loaders are never unloaded: drivers behind them leave threads and handlers. */
static const char *find_functions(void *library, opencl_api *api) {
#define FIND(result, name, parameters) \
  if (!find_function(library, "cl" #name, &api->name)) return "cl" #name;
  OPENCL_FUNCTIONS(FIND)
#undef FIND
  return NULL;
}

/* The system's loader would wait for ever for what comes out of a pipe. */
static const char *problem_of(const char *name) {
  struct stat status;
  if (strchr(name, '/') == NULL || stat(name, &status) != 0 || S_ISREG(status.st_mode)) return NULL;
  return S_ISFIFO(status.st_mode) ? "it is a pipe, not a file" : S_ISDIR(status.st_mode) ? "it is a folder, not a file"
                                                                                           : "it is a device, not a file";
}

static void *try_name(const char *name, char *tried) {
  const char *problem = problem_of(name);
  if (problem != NULL) {
    (void)snprintf(tried, TRIED_LENGTH, "%.300s: %s", name, problem);
    return NULL;
  }
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  const char *why = library == NULL ? dlerror() : NULL;
  const size_t length = strlen(tried);
  if (library == NULL)
    (void)snprintf(tried + length, TRIED_LENGTH - length, "%s%s", length == 0 ? "" : "; ", why != NULL ? why : name);
  return library;
}

tm_status opencl_library_open(const tm_host *host, tm_string path, opencl_api *out_api) {
  char name[PATH_LENGTH], tried[TRIED_LENGTH] = "";
  void *library = NULL;
  if (path.length >= sizeof name)
    return opencl_fail(host, TM_ERROR_ARGUMENT, 0, "option library: a path of %zu bytes", (size_t)path.length);
  if (path.length != 0) {
    memcpy(name, path.data, path.length);
    name[path.length] = '\0';
    library = try_name(name, tried);
  }
  for (size_t i = 0; path.length == 0 && library == NULL && i < sizeof usual_names / sizeof usual_names[0]; i++)
    library = try_name(usual_names[i], tried);
  if (library == NULL)
    return opencl_fail(host, TM_ERROR_NO_DEVICE, 0,
                       "no OpenCL loader: %s; install one (ocl-icd-libopencl1) or set the option library", tried);
  const char *missing = find_functions(library, out_api);
  if (missing == NULL) return TM_OK;
  return opencl_fail(host, TM_ERROR_NO_DEVICE, 0, "the OpenCL loader lacks %s: older than OpenCL 1.2", missing);
}
