/* SPDX-License-Identifier: Apache-2.0 */
#include "webgpu_library.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native_library.h"

#define HOW_TO_GET_ONE "; get one with: pip install wgpu==0.32.0, or set the option library to the file of one"

#if defined(__APPLE__)
#define SUFFIX ".dylib"
#else
#define SUFFIX ".so"
#endif

static const char *const usual_names[] = { "libwgpu_native" SUFFIX, "libwebgpu_dawn" SUFFIX, "libwebgpu" SUFFIX };
static const char package_tail[] = "site-packages/wgpu/resources/libwgpu_native-release" SUFFIX;
/* Variables that name the folder of an active environment. */
static const char *const environment_variables[] = { "VIRTUAL_ENV", "CONDA_PREFIX" };

static void note(webgpu_library *library, const char *format, ...) {
  const uint32_t room = WEBGPU_LIBRARY_TEXT - library->tried_length;
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(library->tried + library->tried_length, room, format, arguments);
  va_end(arguments);
  if (length > 0) library->tried_length += (uint32_t)length < room ? (uint32_t)length : room - 1;
}

/* ---- functions by name ---- */

typedef native_function (*address_fn)(wapi_string name);

/* Where functions come from: a library's symbols, or another program's wgpuGetProcAddress. */
typedef struct origin {
  void      *library;
  address_fn address;
} origin;

static native_function find(const origin *from, const char *name) {
  return from->address != NULL ? from->address((wapi_string){ name, strlen(name) }) : native_library_find(from->library, name);
}

typedef struct slot {
  const char *name;
  size_t      offset;
  uint32_t    is_optional;
} slot;

static const slot slots[] = {
#define REQUIRED(result, name, arguments) { "wgpu" #name, offsetof(webgpu_api, name), 0 },
#define OPTIONAL(result, name, arguments) { "wgpu" #name, offsetof(webgpu_api, name), 1 },
  WAPI_FUNCTIONS(REQUIRED)
  WAPI_OPTIONAL_FUNCTIONS(OPTIONAL)
#undef REQUIRED
#undef OPTIONAL
};

/* The first entry of the table tells the standard's layout of structs from the one before it, which has the same names. */
static const char *reason_of(const origin *from, size_t index) {
  if (find(from, "wgpuCreateInstance") == NULL) return "it is no implementation of WebGPU: ";
  return index == 0 ? "its interface is older than the standard: " : "";
}

static int fill(const origin *from, webgpu_library *library, const char *title) {
  for (size_t i = 0; i < sizeof slots / sizeof slots[0]; ++i) {
    const native_function function = find(from, slots[i].name);
    if (function == NULL && !slots[i].is_optional) {
      note(library, "%s (%sit lacks %s), ", title, reason_of(from, i), slots[i].name);
      return 0;
    }
    memcpy((char *)&library->api + slots[i].offset, &function, sizeof function);
  }
  snprintf(library->name, sizeof library->name, "%s", title);
  library->is_found = 1;
  return 1;
}

/* The loader says "NAME: cannot open shared object file: ...": what follows the name is what is new. */
static const char *shorten(const char *reason, const char *path) {
  const size_t length = strlen(path);
  if (reason == NULL) return "unknown reason";
  if (strncmp(reason, path, length) == 0 && reason[length] == ':') reason += length + 1;
  return *reason == ' ' ? reason + 1 : reason;
}

static int try_file(void *context, const char *path) {
  webgpu_library *library = context;
  const char *reason = NULL;
  const origin from = { .library = native_library_open(path, &reason) };
  if (from.library != NULL) return fill(&from, library, path);
  const int is_missing = reason != NULL && strstr(reason, "No such file") != NULL;
  if (is_missing) note(library, path[0] == '/' ? "%s (there is no such file), " : "%s, ", path);
  else note(library, "%s (%.160s), ", path, shorten(reason, path));
  return 0;
}

/* ---- places ---- */

static int try_environment(webgpu_library *library, const char *variable) {
  const char *folder = getenv(variable);
  char path[768];
  if (folder == NULL || folder[0] == '\0') {
    note(library, "no $%s, ", variable);
    return 0;
  }
  const int length = snprintf(path, sizeof path, "%s/lib", folder);
  if (length < 0 || (size_t)length >= sizeof path) return 0;
  if (native_folder_visit(path, "python", package_tail, try_file, library)) return 1;
  note(library, "%s/python*/%s, ", path, package_tail);
  return 0;
}

static int try_all(webgpu_library *library) {
  for (size_t i = 0; i < sizeof usual_names / sizeof usual_names[0]; ++i) {
    if (try_file(library, usual_names[i])) return 1;
  }
  for (size_t i = 0; i < sizeof environment_variables / sizeof environment_variables[0]; ++i) {
    if (try_environment(library, environment_variables[i])) return 1;
  }
  return 0;
}

static int try_wanted(webgpu_library *library, tm_string wanted) {
  char path[768];
  if (wanted.length >= sizeof path) {
    note(library, "a path of %u bytes in the option library, ", (unsigned)wanted.length);
    return 0;
  }
  memcpy(path, wanted.data, wanted.length);
  path[wanted.length] = '\0';
  return try_file(library, path);
}

tm_status webgpu_library_find(const tm_host *host, tm_string wanted, webgpu_library *out_library) {
  void *pointer = host->config_pointer(host->context, (tm_string)TM_STRING("proc_address"));
  memset(out_library, 0, sizeof *out_library);
  if (pointer != NULL) {
    origin from = { NULL, NULL };
    memcpy(&from.address, &pointer, sizeof from.address);
    if (fill(&from, out_library, "the application's functions")) return TM_OK;
  } else if (wanted.length != 0 ? try_wanted(out_library, wanted) : try_all(out_library)) {
    return TM_OK;
  }
  char text[WEBGPU_LIBRARY_TEXT];
  const int tried = out_library->tried_length > 2 ? (int)out_library->tried_length - 2 : 0;
  const int most = (int)(sizeof text - sizeof HOW_TO_GET_ONE - 48);
  const int length = snprintf(text, sizeof text, "no usable implementation of WebGPU; tried %.*s" HOW_TO_GET_ONE,
                              tried < most ? tried : most, out_library->tried);
  return host->fail(host->context, TM_ERROR_NO_DEVICE, 0, (tm_string){ text, length < 0 ? 0 : (uint64_t)length });
}

