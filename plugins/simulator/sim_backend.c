/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator as a backend: one device, described by a file. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "sim_device.h"
#include "sim_judge.h"

static const tm_option file_option = {
  .struct_size = sizeof file_option, .type = TM_OPTION_TEXT, .name = TM_STRING("device_file"), .default_value = TM_STRING(""),
  .help = TM_STRING("File that describes the device; empty: devices/npu.json beside the plugin."),
};
static const tm_option real_option = {
  .struct_size = sizeof real_option, .type = TM_OPTION_SWITCH, .name = TM_STRING("real_time"), .default_value = TM_STRING("0"),
  .help = TM_STRING("1: work takes at least as long as the description says; 0: as long as the loops that compute it."),
};
static const tm_option lock_option = {
  .struct_size = sizeof lock_option, .type = TM_OPTION_TEXT, .name = TM_STRING("lock_folder"), .default_value = TM_STRING(""),
  .help = TM_STRING("Folder for the lock file of a device for one process; empty: XDG_RUNTIME_DIR, else one in /tmp."),
};
static const tm_option *const options[] = { &file_option, &real_option, &lock_option };

/* ---- opening ---- */

static tm_status fail(const tm_host *host, tm_status status, const char *text) {
  return host->fail(host->context, status, 0, (tm_string){ text, strlen(text) });
}

static tm_status read_text(const tm_host *host, tm_string name, char path[SIM_PATH_BYTES]) {
  tm_string value = { NULL, 0 };
  if (host->config_get(host->context, name, &value) != TM_OK) return TM_ERROR_INTERNAL;
  if (value.length >= SIM_PATH_BYTES || (value.length != 0 && memchr(value.data, 0, value.length) != NULL))
    return fail(host, TM_ERROR_ARGUMENT, "an option of the simulator: expected a path of less than 4096 bytes");
  if (value.length != 0) memcpy(path, value.data, value.length);
  path[value.length] = '\0';
  return TM_OK;
}

/* "<folder of this library>/devices/npu.json" */
static tm_status find_default(const tm_host *host, char path[SIM_PATH_BYTES]) {
  Dl_info about = { .dli_fname = NULL };
  if (dladdr(&file_option, &about) == 0 || about.dli_fname == NULL)
    return fail(host, TM_ERROR_NO_DEVICE, "where the plugin lies is not known; name a description with the option device_file");
  const char *slash = strrchr(about.dli_fname, '/');
  const int folder = slash == NULL ? 1 : (int)(slash - about.dli_fname);
  const int length = snprintf(path, SIM_PATH_BYTES, "%.*s/devices/npu.json", folder, slash == NULL ? "." : about.dli_fname);
  return length < (int)SIM_PATH_BYTES ? TM_OK : fail(host, TM_ERROR_NO_DEVICE, "the plugin's path is too long");
}

static tm_status read_options(tm_backend *backend) {
  const tm_host *host = backend->host;
  char file[SIM_PATH_BYTES], folder[SIM_PATH_BYTES], text[SIM_TEXT_BYTES];
  tm_string real = { NULL, 0 };
  tm_status status = read_text(host, file_option.name, file);
  if (status == TM_OK) status = read_text(host, lock_option.name, folder);
  if (status == TM_OK) status = host->config_get(host->context, real_option.name, &real);
  if (status != TM_OK) return status;
  const int is_default = file[0] == '\0';
  backend->is_real = real.length == 1 && real.data[0] == '1';
  if (!sim_lock_folder(folder, backend->lock_folder)) return fail(host, TM_ERROR_ARGUMENT, "option lock_folder: expected a shorter path");
  if (is_default) status = find_default(host, file);
  if (status != TM_OK) return status;
  if (sim_description_read(file, &backend->description, text)) return TM_OK;
  return fail(host, is_default ? TM_ERROR_NO_DEVICE : TM_ERROR_ARGUMENT, text);
}

static void describe_memory(tm_backend *backend) {
  const sim_memory *memory = &backend->description.memory;
  backend->memory = (tm_memory_space){
    .struct_size = sizeof backend->memory, .name = TM_STRING("memory of the simulated device"), .total_bytes = memory->bytes,
    .largest_buffer_bytes = memory->largest_buffer_bytes != 0 ? memory->largest_buffer_bytes : memory->bytes,
    .alignment = (uint32_t)memory->alignment, .offset_granule = (uint32_t)memory->offset_granule,
    .store_granule = (uint32_t)memory->store_granule,
  };
  backend->memories[0] = &backend->memory;
}

static void sim_shutdown(tm_backend *backend) { backend->host->free(backend->host->context, backend, sizeof *backend); }

static tm_status sim_init(const tm_host *host, tm_backend **out_backend) {
  tm_backend *backend = host->alloc(host->context, sizeof *backend, 64);
  if (backend == NULL) return TM_ERROR_NO_MEMORY;
  memset(backend, 0, sizeof *backend);
  backend->host = host;
  const tm_status status = read_options(backend);
  if (status != TM_OK) {
    sim_shutdown(backend);
    return status;
  }
  describe_memory(backend);
  *out_backend = backend;
  return TM_OK;
}

static tm_status sim_device_info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  const sim_description *description = &backend->description;
  if (index > 0) return TM_END;
  tm_device_info info = {
    .struct_size = out_info->struct_size, .flags = description->exclusive_process ? TM_DEVICE_EXCLUSIVE_PROCESS : 0,
    .name = { description->name, strlen(description->name) }, .epoch = 1, .open_ns = description->open_ns,
    .cost_model_id = description->hash, .queue_count = (uint32_t)description->queues, .memory_count = 1, .memories = backend->memories,
  };
  memcpy(info.uuid.bytes, "simulator", 8);
  memcpy(info.uuid.bytes + 8, &description->hash, sizeof description->hash);
  info.resource = info.uuid;
  memcpy(out_info, &info, info.struct_size < sizeof info ? info.struct_size : sizeof info);
  return TM_OK;
}

static tm_status sim_query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                           tm_answer *const *out_answers) {
  (void)index;
  for (uint32_t i = 0; i < count; i++) {
    tm_answer answer = { .struct_size = out_answers[i]->struct_size };
    sim_judge(&backend->description, operations[i], &answer);
    memcpy(out_answers[i], &answer, answer.struct_size < sizeof answer ? answer.struct_size : sizeof answer);
  }
  return TM_OK;
}

static const void *sim_extension(tm_backend *backend, tm_string name, uint32_t revision) {
  static const tm_string clock_name = TM_STRING(SIM_CLOCK_EXTENSION);
  (void)backend;
  const int is_clock = revision == 1 && name.length == clock_name.length && memcmp(name.data, clock_name.data, name.length) == 0;
  return is_clock ? &sim_device_clock : NULL;
}

static const tm_accelerator_backend_plugin simulator = {
  .struct_size = sizeof simulator, .option_count = sizeof options / sizeof options[0], .options = options, .init = sim_init,
  .shutdown = sim_shutdown, .device_info = sim_device_info, .open = sim_device_open, .close = sim_device_close, .query = sim_query,
  .prepare = sim_device_prepare, .release = sim_device_release, .buffer_create = sim_device_create_buffer,
  .buffer_destroy = sim_device_destroy_buffer, .upload = sim_device_upload, .download = sim_device_download,
  .copy = sim_device_copy, .launch = sim_device_launch, .wait = sim_device_wait, .cancel = sim_device_cancel,
  .memory_stats = sim_device_memory_stats, .get_extension = sim_extension,
};

TM_DEFINE_PLUGIN("simulator", "0.1.0", "Tensormorph", simulator)
