/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "blas_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef void (*any_fn)(void);
typedef int (*number_fn)(void);
typedef void (*set_number_fn)(int number);
typedef const char *(*string_fn)(void);

/* How the libraries that are known tell about themselves.  The first name is what a library is recognised by. */
typedef struct family {
  const char *name;
  const char *get_threads;
  const char *set_threads;
  const char *get_version;              /* NULL: it has none that returns a string of its own */
} family;

static const family families[] = {
  { "OpenBLAS", "openblas_get_num_threads", "openblas_set_num_threads", "openblas_get_config" },
  { "BLIS", "bli_thread_get_num_threads", "bli_thread_set_num_threads", "bli_info_get_version_str" },
  { "MKL", "MKL_Get_Max_Threads", "MKL_Set_Num_Threads", NULL },
};

#define DEBIAN "/usr/lib/x86_64-linux-gnu/"
static const char *const usual_names[] = {
  "libopenblas.so.0", DEBIAN "openblas-pthread/libopenblas.so.0", DEBIAN "openblas-openmp/libopenblas.so.0",
  DEBIAN "openblas-serial/libopenblas.so.0", "libopenblas.so", "libblis.so.4", DEBIAN "blis-openmp/libblis.so.4",
  DEBIAN "blis-pthread/libblis.so.4", "libblis.so", "libmkl_rt.so.2", "libmkl_rt.so", "libcblas.so.3", "libcblas.so",
  "libblas.so.3",
};

/* A symbol as a function; ISO C has no cast for that. */
static any_fn function_of(void *handle, const char *name) {
  any_fn function = NULL;
  void *symbol = name == NULL ? NULL : dlsym(handle, name);
  memcpy(&function, &symbol, sizeof function);
  return function;
}

static tm_string text_of(const char *text) {
  return (tm_string){ text, text == NULL ? 0 : strlen(text) };
}

/* Built for 64-bit integers: the same names mean other arguments. */
static int takes_long_integers(void *handle) {
  const number_fn blis_bits = (number_fn)function_of(handle, "bli_info_get_blas_int_type_size");
  const string_fn openblas_config = (string_fn)function_of(handle, "openblas_get_config");
  const char *layer = getenv("MKL_INTERFACE_LAYER");
  if (blis_bits != NULL) return blis_bits() == 64;
  if (openblas_config != NULL) return strstr(openblas_config(), "USE64BITINT") != NULL;
  return function_of(handle, "MKL_Get_Max_Threads") != NULL && layer != NULL && strstr(layer, "ILP64") != NULL;
}

static const family *family_of(void *handle) {
  for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
    if (function_of(handle, families[i].get_threads) != NULL) return &families[i];
  return NULL;
}

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* The number of threads is the whole process's, so it is set only where the user says so or nobody else can care. */
static uint32_t settle_threads(void *handle, const family *f, uint32_t thread_count, uint32_t lane_count, int is_ours) {
  const number_fn get = (number_fn)function_of(handle, f->get_threads);
  const set_number_fn set = (set_number_fn)function_of(handle, f->set_threads);
  const int now = get();
  const uint32_t current = now < 1 ? 1 : (uint32_t)now;
  const uint32_t wanted = thread_count != 0 ? thread_count : is_ours ? least(current, lane_count) : current;
  if (wanted == current || set == NULL) return current;
  set((int)wanted);
  return wanted;
}

static void describe(void *handle, uint32_t thread_count, uint32_t lane_count, int is_ours, blas_library *library) {
  const family *f = family_of(handle);
  library->name = (tm_string)TM_STRING("a CBLAS of unknown make");
  library->thread_count = 1;
  if (f == NULL) return;
  const string_fn version = (string_fn)function_of(handle, f->get_version);
  library->name = text_of(f->name);
  library->version = text_of(version == NULL ? NULL : version());
  library->thread_count = settle_threads(handle, f, thread_count, lane_count, is_ours);
  library->is_known = 1;
}

/* The loader would wait for ever for what comes out of a pipe. */
static const char *problem_of_path(const char *path) {
  struct stat status;
  if (strchr(path, '/') == NULL || stat(path, &status) != 0 || S_ISREG(status.st_mode)) return NULL;
  return S_ISFIFO(status.st_mode) ? "a pipe, not a file" : S_ISDIR(status.st_mode) ? "a folder, not a file" : "a device, not a file";
}

/* What is wrong with it, or NULL.  One that turns out to be none stays loaded: unloading may crash its threads. */
static const char *try_file(const char *path, uint32_t thread_count, uint32_t lane_count, blas_library *out_library) {
  const char *problem = problem_of_path(path);
  if (problem != NULL) return problem;
  const int how = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  const int is_ours = dlopen(path, how | RTLD_NOLOAD) == NULL;
  void *handle = dlopen(path, how);
  const char *error = handle == NULL ? dlerror() : NULL;
  if (handle == NULL) return error == NULL ? "cannot be loaded" : error;
  *out_library = (blas_library){ .sgemm = (blas_sgemm_fn)function_of(handle, "cblas_sgemm"),
                                 .dgemm = (blas_dgemm_fn)function_of(handle, "cblas_dgemm") };
  if (out_library->sgemm == NULL || out_library->dgemm == NULL) return "has no cblas_sgemm and cblas_dgemm";
  if (takes_long_integers(handle)) return "is built for 64-bit integers";
  describe(handle, thread_count, lane_count, is_ours, out_library);
  return NULL;
}

static void append(char *text, const char *separator, const char *word) {
  const size_t used = strlen(text);
  snprintf(text + used, BLAS_TEXT_BYTES - used, "%s%s", separator, word);
}

tm_status blas_library_open(const char *path, uint32_t thread_count, uint32_t lane_count, blas_library *out_library,
                            char text[BLAS_TEXT_BYTES]) {
  if (path[0] != '\0') {
    const char *problem = try_file(path, thread_count, lane_count, out_library);
    if (problem == NULL) return TM_OK;
    snprintf(text, BLAS_TEXT_BYTES, "option library: %.300s: expected a CBLAS with 32-bit integers, found: %.400s", path, problem);
    return TM_ERROR_NO_DEVICE;
  }
  snprintf(text, BLAS_TEXT_BYTES, "no CBLAS found; install one (libopenblas0, libblis4) or name it with the option library; tried");
  for (size_t i = 0; i < sizeof usual_names / sizeof usual_names[0]; i++) {
    if (try_file(usual_names[i], thread_count, lane_count, out_library) == NULL) return TM_OK;
    append(text, i == 0 ? ": " : ", ", usual_names[i]);
  }
  return TM_ERROR_NO_DEVICE;
}
