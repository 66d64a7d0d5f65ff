/* SPDX-License-Identifier: Apache-2.0 */
#include "opencl_program.h"

#include <stdio.h>
#include <string.h>

#include "kernel_text.h"
#include "opencl_error.h"

#define LOG_LENGTH 4096u
#define KEY_LENGTH 1024
#define LONGEST_BINARY (UINT64_C(64) << 20)

/* ---- binaries that the host keeps ---- */

static tm_string make_key(const tm_device *device, kernel_program kind, const char *options, char *out_text) {
  const int length = snprintf(out_text, KEY_LENGTH, "%s|%s|%s|%s", kernel_programs[kind].name, options, device->found->driver,
                              device->found->name);
  return (tm_string){ out_text, length > 0 && length < KEY_LENGTH ? (uint64_t)length : 0 };
}

static opencl_program_handle from_binary(tm_device *device, const unsigned char *binary, size_t bytes, const char *options) {
  const opencl_api *api = &device->backend->api;
  int32_t status = 0, error = 0;
  opencl_program_handle program = api->CreateProgramWithBinary(device->context, 1, &device->found->id, &bytes, &binary, &status,
                                                               &error);
  if (error != OPENCL_SUCCESS || program == NULL) return NULL;
  if (status == OPENCL_SUCCESS) error = api->BuildProgram(program, 1, &device->found->id, options, NULL, NULL);
  if (status == OPENCL_SUCCESS && error == OPENCL_SUCCESS) return program;
  (void)api->ReleaseProgram(program);
  return NULL;
}

/* NULL if the host has none, or one that the driver does not take any more. */
static opencl_program_handle recall(tm_device *device, kernel_program kind, const char *options) {
  const tm_host *host = device->backend->host;
  char text[KEY_LENGTH];
  const tm_string key = make_key(device, kind, options, text);
  uint64_t bytes = 0;
  opencl_program_handle program = NULL;
  (void)host->cache_get(host->context, key, NULL, &bytes);
  if (bytes == 0 || bytes > LONGEST_BINARY) return NULL;
  unsigned char *binary = opencl_alloc(host, bytes);
  uint64_t found = bytes;
  if (binary != NULL && host->cache_get(host->context, key, binary, &found) == TM_OK && found <= bytes)
    program = from_binary(device, binary, (size_t)found, options);
  opencl_free(host, binary, bytes);
  return program;
}

static void remember(tm_device *device, kernel_program kind, const char *options, opencl_program_handle program) {
  const opencl_api *api = &device->backend->api;
  const tm_host *host = device->backend->host;
  char text[KEY_LENGTH];
  size_t bytes = 0;
  if (api->GetProgramInfo(program, OPENCL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) != OPENCL_SUCCESS) return;
  if (bytes == 0 || bytes > LONGEST_BINARY) return;
  unsigned char *binary = opencl_alloc(host, bytes);
  if (binary == NULL) return;
  if (api->GetProgramInfo(program, OPENCL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) == OPENCL_SUCCESS)
    (void)host->cache_put(host->context, make_key(device, kind, options, text), binary, bytes);
  opencl_free(host, binary, bytes);
}

/* ---- compilation ---- */

/* The compiler's words go to the log whole and to the caller as far as they fit.  The device's answers change: so does its
   epoch. */
static tm_status refuse(tm_device *device, kernel_program kind, opencl_program_handle program, int32_t error) {
  const tm_host *host = device->backend->host;
  opencl_found *found = device->found;
  char log[LOG_LENGTH], line[LOG_LENGTH + 512];
  log[0] = '\0';
  if (program != NULL) {
    (void)device->backend->api.GetProgramBuildInfo(program, found->id, OPENCL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
    log[sizeof log - 1] = '\0';
  }
  (void)snprintf(line, sizeof line, "kernels %s on %s (%s): %s (%d): %s", kernel_programs[kind].name, found->name, found->driver,
                 opencl_error_name(error), (int)error, log[0] != '\0' ? log : "the compiler says nothing");
  host->log(host->context, TM_LOG_WARNING, (tm_string){ line, strlen(line) });
  const uint32_t before = atomic_fetch_or(&found->broken_programs, 1u << kind);
  const uint64_t epoch = (uint64_t)__builtin_popcount(before | 1u << kind) + 1;
  host->device_event(host->context, (uint32_t)(found - device->backend->devices), TM_EVENT_EPOCH_MOVED, epoch);
  return opencl_fail(host, TM_STALE, error, "%s", line);
}

/* Without correct rounding by itself, the compiler is asked for it where the device can. */
static void print_options(const tm_device *device, kernel_program kind, const kernel_special *special, char *out_text) {
  kernel_options_print(kind, device->found->facts.has_f64, special, out_text);
  const size_t length = strlen(out_text);
  if (device->found->facts.has_exact_divide)
    (void)snprintf(out_text + length, KERNEL_OPTIONS_LENGTH - length, " -cl-fp32-correctly-rounded-divide-sqrt");
}

static opencl_program_handle create(tm_device *device, kernel_program kind, int32_t *out_error) {
  const char *texts[KERNEL_PROGRAM_PARTS];
  size_t lengths[KERNEL_PROGRAM_PARTS];
  uint32_t count = 0;
  for (; count < KERNEL_PROGRAM_PARTS && kernel_programs[kind].parts[count] != NULL; count++) {
    const kernel_text *text = kernel_text_find(kernel_programs[kind].parts[count]);
    texts[count] = text != NULL ? (const char *)text->data : "";
    lengths[count] = text != NULL ? text->length : 0;
  }
  return device->backend->api.CreateProgramWithSource(device->context, count, texts, lengths, out_error);
}

static int is_compilers_word(int32_t error) { return error != OPENCL_OUT_OF_HOST_MEMORY && error != OPENCL_OUT_OF_RESOURCES; }

static tm_status compile(tm_device *device, kernel_program kind, const char *options, opencl_program_handle *out_program) {
  const opencl_api *api = &device->backend->api;
  int32_t error = OPENCL_SUCCESS;
  opencl_program_handle program = create(device, kind, &error);
  if (error != OPENCL_SUCCESS || program == NULL) return opencl_fail_call(device, "clCreateProgramWithSource", error);
  error = api->BuildProgram(program, 1, &device->found->id, options, NULL, NULL);
  if (error == OPENCL_SUCCESS) {
    remember(device, kind, options, program);
    *out_program = program;
    return TM_OK;
  }
  const tm_status status =
      is_compilers_word(error) ? refuse(device, kind, program, error) : opencl_fail_call(device, "clBuildProgram", error);
  (void)api->ReleaseProgram(program);
  return status;
}

/* ---- the device's own list ---- */

static opencl_program *find(tm_device *device, kernel_program kind, const char *options) {
  opencl_program *program = device->programs;
  while (program != NULL && (program->kind != kind || strcmp(program->options, options) != 0)) program = program->next;
  return program;
}

static tm_status add(tm_device *device, kernel_program kind, const char *options, opencl_program_handle *out_handle) {
  opencl_program *program = opencl_alloc(device->backend->host, sizeof *program);
  if (program == NULL) return opencl_fail(device->backend->host, TM_ERROR_NO_MEMORY, 0, "no memory for a program");
  *program = (opencl_program){ .kind = kind, .next = device->programs };
  (void)snprintf(program->options, sizeof program->options, "%s", options);
  program->handle = recall(device, kind, options);
  const tm_status status = program->handle != NULL ? TM_OK : compile(device, kind, options, &program->handle);
  if (status != TM_OK) {
    opencl_free(device->backend->host, program, sizeof *program);
    return status;
  }
  device->programs = program;
  *out_handle = program->handle;
  return TM_OK;
}

tm_status opencl_program_get(tm_device *device, kernel_program kind, const kernel_special *special,
                             opencl_program_handle *out_program) {
  char options[KERNEL_OPTIONS_LENGTH];
  tm_status status = TM_OK;
  print_options(device, kind, special, options);
  pthread_mutex_lock(&device->program_lock);
  const opencl_program *program = find(device, kind, options);
  if (program != NULL) *out_program = program->handle;
  else status = add(device, kind, options, out_program);
  pthread_mutex_unlock(&device->program_lock);
  return status;
}

void opencl_programs_release(tm_device *device) {
  while (device->programs != NULL) {
    opencl_program *program = device->programs;
    device->programs = program->next;
    (void)device->backend->api.ReleaseProgram(program->handle);
    opencl_free(device->backend->host, program, sizeof *program);
  }
}
