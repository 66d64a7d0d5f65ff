/* SPDX-License-Identifier: Apache-2.0 */
/* Shader modules and pipelines: compiled once a device and text, kept until it is closed. */
#include <stdio.h>
#include <string.h>

#include "webgpu_device.h"
#include "webgpu_kernel.h"

#define ENTRIES 6u
#define HEADER_BYTES 160u

struct webgpu_module {
  webgpu_module     *next;
  uint64_t           bytes;             /* of this allocation; the prologue follows the struct */
  webgpu_module_key  key;
  wapi_shader_module handle;
  const char        *entries[ENTRIES];
  wapi_compute_pipeline pipelines[ENTRIES];
};

/* ---- layouts ---- */

wapi_bind_group_layout webgpu_layout_get(tm_device *device, uint32_t reads, uint32_t writes) {
  wapi_layout_entry entries[1 + WEBGPU_READ_LAYOUTS + WEBGPU_WRITE_LAYOUTS];
  if (device->layouts[reads][writes] != NULL) return device->layouts[reads][writes];
  memset(entries, 0, sizeof entries);
  for (uint32_t i = 0; i < 1 + reads + writes; ++i) {
    entries[i].binding = i;
    entries[i].visibility = WAPI_STAGE_COMPUTE;
    entries[i].buffer.type = i == 0 ? WAPI_BINDING_UNIFORM : i <= reads ? WAPI_BINDING_READ_ONLY_STORAGE : WAPI_BINDING_STORAGE;
  }
  const wapi_bind_group_layout_descriptor descriptor = { .entry_count = 1 + reads + writes, .entries = entries };
  device->layouts[reads][writes] = device->api->DeviceCreateBindGroupLayout(device->handle, &descriptor);
  return device->layouts[reads][writes];
}

static wapi_pipeline_layout pipeline_layout_get(tm_device *device, uint32_t reads, uint32_t writes) {
  if (device->pipeline_layouts[reads][writes] != NULL) return device->pipeline_layouts[reads][writes];
  const wapi_bind_group_layout layout = webgpu_layout_get(device, reads, writes);
  const wapi_pipeline_layout_descriptor descriptor = { .layout_count = 1, .layouts = &layout };
  device->pipeline_layouts[reads][writes] = device->api->DeviceCreatePipelineLayout(device->handle, &descriptor);
  return device->pipeline_layouts[reads][writes];
}

/* ---- modules ---- */

static int is_equal(const webgpu_module_key *a, const webgpu_module_key *b) {
  return a->shaders == b->shaders && a->needs == b->needs && a->reads == b->reads && a->writes == b->writes &&
         a->prologue_length == b->prologue_length && memcmp(a->prologue, b->prologue, a->prologue_length) == 0;
}

static uint64_t text_length(const webgpu_module_key *key) {
  uint64_t length = HEADER_BYTES + key->prologue_length;
  for (const char *const *shader = key->shaders; *shader != NULL; ++shader) length += strlen(*shader);
  return length;
}

static uint64_t write_text(const webgpu_limits *limits, const webgpu_module_key *key, char *text) {
  const char *f16 = key->needs & WEBGPU_NEEDS_F16 ? "enable f16;\n" : "";
  const char *subgroups = key->needs & WEBGPU_NEEDS_SUBGROUPS ? "enable subgroups;\n" : "";
  const int header = snprintf(text, HEADER_BYTES, "%s%sconst WG: u32 = %uu;\n", f16, subgroups, (unsigned)limits->workgroup_size);
  uint64_t length = header > 0 ? (uint64_t)header : 0;
  memcpy(text + length, key->prologue, key->prologue_length);
  length += key->prologue_length;
  for (const char *const *shader = key->shaders; *shader != NULL; ++shader) {
    memcpy(text + length, *shader, strlen(*shader));
    length += strlen(*shader);
  }
  return length;
}

static wapi_shader_module compile(tm_device *device, const char *text, uint64_t length) {
  wapi_wgsl_source source = { .chain = { .type = WAPI_SOURCE_WGSL }, .code = { text, (size_t)length } };
  const wapi_label descriptor = { .next = &source.chain };
  return device->api->DeviceCreateShaderModule(device->handle, &descriptor);
}

static webgpu_module *module_create(tm_device *device, const webgpu_module_key *key) {
  const tm_host *host = device->backend->host;
  const uint64_t bytes = sizeof(webgpu_module) + key->prologue_length;
  webgpu_module *module = host->alloc(host->context, bytes, _Alignof(webgpu_module));
  if (module == NULL) return NULL;
  memset(module, 0, sizeof *module);
  char *prologue = (char *)module + sizeof *module;
  memcpy(prologue, key->prologue, key->prologue_length);
  module->bytes = bytes;
  module->key = *key;
  module->key.prologue = prologue;
  return module;
}

static void module_free(tm_device *device, webgpu_module *module) {
  const tm_host *host = device->backend->host;
  for (uint32_t i = 0; i < ENTRIES; ++i) {
    if (module->pipelines[i] != NULL) device->api->ComputePipelineRelease(module->pipelines[i]);
  }
  if (module->handle != NULL) device->api->ShaderModuleRelease(module->handle);
  host->free(host->context, module, module->bytes);
}

static tm_status module_compile(tm_device *device, webgpu_module *module, const char *name, tm_status refused) {
  const tm_host *host = device->backend->host;
  const uint64_t room = text_length(&module->key);
  char *text = host->alloc(host->context, room, 1);
  if (text == NULL) return webgpu_fail(host, TM_ERROR_NO_MEMORY, "no memory for a shader's text");
  const uint64_t length = write_text(&device->adapter->limits, &module->key, text);
  webgpu_scope_begin(device);
  module->handle = compile(device, text, length);
  const tm_status status = webgpu_scope_end(device, name, refused);
  host->free(host->context, text, room);
  return status;
}

static tm_status module_get(tm_device *device, const webgpu_module_key *key, const char *name, tm_status refused,
                            webgpu_module **out_module) {
  for (webgpu_module *module = device->modules; module != NULL; module = module->next) {
    if (!is_equal(&module->key, key)) continue;
    *out_module = module;
    return TM_OK;
  }
  webgpu_module *module = module_create(device, key);
  if (module == NULL) return webgpu_fail(device->backend->host, TM_ERROR_NO_MEMORY, "no memory for a shader");
  const tm_status status = module_compile(device, module, name, refused);
  if (status != TM_OK) {
    module_free(device, module);
    return status;
  }
  module->next = device->modules;
  device->modules = module;
  *out_module = module;
  return TM_OK;
}

void webgpu_modules_release(tm_device *device) {
  while (device->modules != NULL) {
    webgpu_module *module = device->modules;
    device->modules = module->next;
    module_free(device, module);
  }
}

/* ---- pipelines ---- */

tm_status webgpu_pipeline_get(tm_device *device, const webgpu_module_key *key, const char *name, const char *entry,
                              tm_status refused, wapi_compute_pipeline *out_pipeline) {
  webgpu_module *module = NULL;
  tm_status status = module_get(device, key, name, refused, &module);
  if (status != TM_OK) return status;
  uint32_t place = 0;
  for (; place < ENTRIES && module->pipelines[place] != NULL; ++place) {
    if (strcmp(module->entries[place], entry) != 0) continue;
    *out_pipeline = module->pipelines[place];
    return TM_OK;
  }
  if (place == ENTRIES) return webgpu_fail(device->backend->host, refused, "too many entry points in a shader");
  const wapi_compute_pipeline_descriptor descriptor = {
    .layout = pipeline_layout_get(device, key->reads, key->writes),
    .compute = { .module = module->handle, .entry = { entry, strlen(entry) } },
  };
  webgpu_scope_begin(device);
  wapi_compute_pipeline pipeline = device->api->DeviceCreateComputePipeline(device->handle, &descriptor);
  status = webgpu_scope_end(device, name, refused);
  if (status != TM_OK) {
    if (pipeline != NULL) device->api->ComputePipelineRelease(pipeline);
    return status;
  }
  module->entries[place] = entry;
  module->pipelines[place] = pipeline;
  *out_pipeline = pipeline;
  return TM_OK;
}
