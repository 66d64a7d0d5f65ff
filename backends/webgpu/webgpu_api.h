/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webgpu_api.h - the part of the standard WebGPU interface for C that computing needs: own declarations, so that nothing is
 * needed to build.  Names are those of the standard with the prefix wapi_ in place of WGPU; tests/webgpu/declarations.c compares
 * every offset, size and number with an implementation's header.
 */
#ifndef WEBGPU_API_H
#define WEBGPU_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct wapi_adapter_object *wapi_adapter;
typedef struct wapi_bind_group_object *wapi_bind_group;
typedef struct wapi_bind_group_layout_object *wapi_bind_group_layout;
typedef struct wapi_buffer_object *wapi_buffer;
typedef struct wapi_command_buffer_object *wapi_command_buffer;
typedef struct wapi_command_encoder_object *wapi_command_encoder;
typedef struct wapi_compute_pass_object *wapi_compute_pass;
typedef struct wapi_compute_pipeline_object *wapi_compute_pipeline;
typedef struct wapi_device_object *wapi_device;
typedef struct wapi_instance_object *wapi_instance;
typedef struct wapi_pipeline_layout_object *wapi_pipeline_layout;
typedef struct wapi_queue_object *wapi_queue;
typedef struct wapi_shader_module_object *wapi_shader_module;

typedef uint32_t wapi_bool;
typedef uint32_t wapi_enum;     /* every enumeration of the interface has 32 bits */
typedef uint64_t wapi_flags;

enum {
  WAPI_SUCCESS = 1,             /* of every status */
  WAPI_ALLOW_PROCESS_EVENTS = 2,
  WAPI_ERROR_NONE = 1, WAPI_ERROR_VALIDATION = 2, WAPI_ERROR_OUT_OF_MEMORY = 3, WAPI_ERROR_INTERNAL = 4,
  WAPI_FILTER_VALIDATION = 1, WAPI_FILTER_OUT_OF_MEMORY = 2,
  WAPI_ADAPTER_CPU = 3,
  WAPI_BACKEND_NULL = 1,
  WAPI_POWER_LOW = 1, WAPI_POWER_HIGH = 2,
  WAPI_LEVEL_CORE = 2,
  WAPI_BINDING_UNIFORM = 2, WAPI_BINDING_STORAGE = 3, WAPI_BINDING_READ_ONLY_STORAGE = 4,
  WAPI_SOURCE_WGSL = 2,
  WAPI_FEATURE_SHADER_F16 = 11, WAPI_FEATURE_SUBGROUPS = 18,
  WAPI_USAGE_MAP_READ = 0x1, WAPI_USAGE_MAP_WRITE = 0x2, WAPI_USAGE_COPY_SOURCE = 0x4, WAPI_USAGE_COPY_DESTINATION = 0x8,
  WAPI_USAGE_UNIFORM = 0x40, WAPI_USAGE_STORAGE = 0x80,
  WAPI_MAP_READ = 1, WAPI_MAP_WRITE = 2,
  WAPI_STAGE_COMPUTE = 4,
};

typedef struct wapi_string { const char *data; size_t length; } wapi_string;
typedef struct wapi_chain { struct wapi_chain *next; wapi_enum type; } wapi_chain;
typedef struct wapi_future { uint64_t id; } wapi_future;

typedef struct wapi_limits {
  wapi_chain *next;
  uint32_t max_texture_dimension_1d, max_texture_dimension_2d, max_texture_dimension_3d, max_texture_array_layers;
  uint32_t max_bind_groups, max_bind_groups_plus_vertex_buffers, max_bindings_per_bind_group;
  uint32_t max_dynamic_uniform_buffers, max_dynamic_storage_buffers;
  uint32_t max_sampled_textures, max_samplers, max_storage_buffers, max_storage_textures, max_uniform_buffers;
  uint64_t max_uniform_binding_bytes, max_storage_binding_bytes;
  uint32_t min_uniform_offset_alignment, min_storage_offset_alignment;
  uint32_t max_vertex_buffers;
  uint64_t max_buffer_bytes;
  uint32_t max_vertex_attributes, max_vertex_stride, max_inter_stage_variables, max_color_attachments, max_color_bytes;
  uint32_t max_workgroup_bytes, max_invocations, max_workgroup_x, max_workgroup_y, max_workgroup_z, max_workgroups;
  uint32_t max_immediate_bytes;
} wapi_limits;

typedef struct wapi_adapter_info {
  wapi_chain *next;
  wapi_string vendor, architecture, device, description;
  wapi_enum   backend_type, adapter_type;
  uint32_t    vendor_id, device_id, subgroup_min, subgroup_max;
} wapi_adapter_info;

typedef struct wapi_adapter_options {
  wapi_chain *next;
  wapi_enum   feature_level, power_preference;
  wapi_bool   force_fallback;
  wapi_enum   backend_type;
  void       *surface;
} wapi_adapter_options;

/* An extension of one implementation. */
typedef struct wapi_enumerate_options {
  const wapi_chain *next;
  wapi_flags        backends;
} wapi_enumerate_options;
#define WAPI_BACKENDS_PRIMARY 0x2du     /* without those that go through a graphics library of the last generation */

/* ---- callbacks ---- */

typedef void (*wapi_adapter_fn)(wapi_enum status, wapi_adapter adapter, wapi_string message, void *a, void *b);
typedef void (*wapi_device_fn)(wapi_enum status, wapi_device device, wapi_string message, void *a, void *b);
typedef void (*wapi_lost_fn)(const wapi_device *device, wapi_enum reason, wapi_string message, void *a, void *b);
typedef void (*wapi_error_fn)(const wapi_device *device, wapi_enum type, wapi_string message, void *a, void *b);
typedef void (*wapi_status_fn)(wapi_enum status, wapi_string message, void *a, void *b);       /* mapped; work done */
typedef void (*wapi_scope_fn)(wapi_enum status, wapi_enum type, wapi_string message, void *a, void *b);

typedef struct wapi_adapter_call { wapi_chain *next; wapi_enum mode; wapi_adapter_fn function; void *a, *b; } wapi_adapter_call;
typedef struct wapi_device_call { wapi_chain *next; wapi_enum mode; wapi_device_fn function; void *a, *b; } wapi_device_call;
typedef struct wapi_lost_call { wapi_chain *next; wapi_enum mode; wapi_lost_fn function; void *a, *b; } wapi_lost_call;
typedef struct wapi_error_call { wapi_chain *next; wapi_error_fn function; void *a, *b; } wapi_error_call;
typedef struct wapi_status_call { wapi_chain *next; wapi_enum mode; wapi_status_fn function; void *a, *b; } wapi_status_call;
typedef struct wapi_scope_call { wapi_chain *next; wapi_enum mode; wapi_scope_fn function; void *a, *b; } wapi_scope_call;

/* ---- descriptors ---- */

typedef struct wapi_instance_descriptor {
  wapi_chain      *next;
  size_t           feature_count;
  const wapi_enum *features;
  const void      *limits;
} wapi_instance_descriptor;

typedef struct wapi_label { wapi_chain *next; wapi_string label; } wapi_label;  /* a descriptor with no more than a label */

typedef struct wapi_device_descriptor {
  wapi_chain        *next;
  wapi_string        label;
  size_t             feature_count;
  const wapi_enum   *features;
  const wapi_limits *limits;
  wapi_label         queue;
  wapi_lost_call     lost;
  wapi_error_call    uncaptured;
} wapi_device_descriptor;

typedef struct wapi_buffer_descriptor {
  wapi_chain *next;
  wapi_string label;
  wapi_flags  usage;
  uint64_t    bytes;
  wapi_bool   mapped_at_creation;
} wapi_buffer_descriptor;

typedef struct wapi_wgsl_source { wapi_chain chain; wapi_string code; } wapi_wgsl_source;

typedef struct wapi_buffer_layout {
  wapi_chain *next;
  wapi_enum   type;
  wapi_bool   has_dynamic_offset;
  uint64_t    min_bytes;
} wapi_buffer_layout;
typedef struct wapi_sampler_layout { wapi_chain *next; wapi_enum type; } wapi_sampler_layout;
typedef struct wapi_texture_layout {
  wapi_chain *next;
  wapi_enum   sample_type, dimension;
  wapi_bool   multisampled;
} wapi_texture_layout;
typedef struct wapi_image_layout { wapi_chain *next; wapi_enum access, format, dimension; } wapi_image_layout;

typedef struct wapi_layout_entry {
  wapi_chain         *next;
  uint32_t            binding;
  wapi_flags          visibility;
  uint32_t            array_count;
  wapi_buffer_layout  buffer;
  wapi_sampler_layout sampler;
  wapi_texture_layout texture;
  wapi_image_layout   image;
} wapi_layout_entry;

typedef struct wapi_bind_group_layout_descriptor {
  wapi_chain              *next;
  wapi_string              label;
  size_t                   entry_count;
  const wapi_layout_entry *entries;
} wapi_bind_group_layout_descriptor;

typedef struct wapi_pipeline_layout_descriptor {
  wapi_chain                   *next;
  wapi_string                   label;
  size_t                        layout_count;
  const wapi_bind_group_layout *layouts;
  uint32_t                      immediate_bytes;
} wapi_pipeline_layout_descriptor;

typedef struct wapi_compute_state {
  wapi_chain        *next;
  wapi_shader_module module;
  wapi_string        entry;
  size_t             constant_count;
  const void        *constants;
} wapi_compute_state;

typedef struct wapi_compute_pipeline_descriptor {
  wapi_chain          *next;
  wapi_string          label;
  wapi_pipeline_layout layout;
  wapi_compute_state   compute;
} wapi_compute_pipeline_descriptor;

typedef struct wapi_bind_group_entry {
  wapi_chain *next;
  uint32_t    binding;
  wapi_buffer buffer;
  uint64_t    offset, bytes;
  void       *sampler, *texture;
} wapi_bind_group_entry;

typedef struct wapi_bind_group_descriptor {
  wapi_chain                  *next;
  wapi_string                  label;
  wapi_bind_group_layout       layout;
  size_t                       entry_count;
  const wapi_bind_group_entry *entries;
} wapi_bind_group_descriptor;

typedef struct wapi_pass_descriptor { wapi_chain *next; wapi_string label; const void *timestamps; } wapi_pass_descriptor;

/* ---- functions: X(result, name without "wgpu", arguments) ---- */

/* Only the standard has HasInstanceFeature: what lacks it has an older layout of structs under the same names. */
#define WAPI_FUNCTIONS(X)                                                                                               \
  X(wapi_bool, HasInstanceFeature, (wapi_enum feature))                                                                 \
  X(wapi_instance, CreateInstance, (const wapi_instance_descriptor *descriptor))                                        \
  X(wapi_future, InstanceRequestAdapter, (wapi_instance instance, const wapi_adapter_options *options, wapi_adapter_call call)) \
  X(void, InstanceProcessEvents, (wapi_instance instance))                                                              \
  X(void, InstanceRelease, (wapi_instance instance))                                                                    \
  X(wapi_enum, AdapterGetInfo, (wapi_adapter adapter, wapi_adapter_info *out_info))                                     \
  X(void, AdapterInfoFreeMembers, (wapi_adapter_info info))                                                             \
  X(wapi_enum, AdapterGetLimits, (wapi_adapter adapter, wapi_limits *out_limits))                                       \
  X(wapi_bool, AdapterHasFeature, (wapi_adapter adapter, wapi_enum feature))                                            \
  X(wapi_future, AdapterRequestDevice, (wapi_adapter adapter, const wapi_device_descriptor *descriptor, wapi_device_call call)) \
  X(void, AdapterRelease, (wapi_adapter adapter))                                                                       \
  X(wapi_queue, DeviceGetQueue, (wapi_device device))                                                                   \
  X(wapi_buffer, DeviceCreateBuffer, (wapi_device device, const wapi_buffer_descriptor *descriptor))                    \
  X(wapi_shader_module, DeviceCreateShaderModule, (wapi_device device, const wapi_label *descriptor))                   \
  X(wapi_bind_group_layout, DeviceCreateBindGroupLayout, (wapi_device device,                                           \
                                                          const wapi_bind_group_layout_descriptor *descriptor))         \
  X(wapi_pipeline_layout, DeviceCreatePipelineLayout, (wapi_device device, const wapi_pipeline_layout_descriptor *descriptor)) \
  X(wapi_compute_pipeline, DeviceCreateComputePipeline, (wapi_device device, const wapi_compute_pipeline_descriptor *descriptor)) \
  X(wapi_bind_group, DeviceCreateBindGroup, (wapi_device device, const wapi_bind_group_descriptor *descriptor))         \
  X(wapi_command_encoder, DeviceCreateCommandEncoder, (wapi_device device, const wapi_label *descriptor))               \
  X(void, DevicePushErrorScope, (wapi_device device, wapi_enum filter))                                                 \
  X(wapi_future, DevicePopErrorScope, (wapi_device device, wapi_scope_call call))                                       \
  X(void, DeviceDestroy, (wapi_device device))                                                                          \
  X(void, DeviceRelease, (wapi_device device))                                                                          \
  X(wapi_future, BufferMapAsync, (wapi_buffer buffer, wapi_flags mode, size_t offset, size_t bytes, wapi_status_call call)) \
  X(void *, BufferGetMappedRange, (wapi_buffer buffer, size_t offset, size_t bytes))                                    \
  X(const void *, BufferGetConstMappedRange, (wapi_buffer buffer, size_t offset, size_t bytes))                         \
  X(void, BufferUnmap, (wapi_buffer buffer))                                                                            \
  X(void, BufferDestroy, (wapi_buffer buffer))                                                                          \
  X(void, BufferRelease, (wapi_buffer buffer))                                                                          \
  X(wapi_compute_pass, CommandEncoderBeginComputePass, (wapi_command_encoder encoder, const wapi_pass_descriptor *descriptor)) \
  X(void, CommandEncoderCopyBufferToBuffer, (wapi_command_encoder encoder, wapi_buffer source, uint64_t source_offset,  \
                                             wapi_buffer destination, uint64_t destination_offset, uint64_t bytes))     \
  X(wapi_command_buffer, CommandEncoderFinish, (wapi_command_encoder encoder, const wapi_label *descriptor))            \
  X(void, CommandEncoderRelease, (wapi_command_encoder encoder))                                                        \
  X(void, CommandBufferRelease, (wapi_command_buffer commands))                                                         \
  X(void, ComputePassEncoderSetPipeline, (wapi_compute_pass pass, wapi_compute_pipeline pipeline))                      \
  X(void, ComputePassEncoderSetBindGroup, (wapi_compute_pass pass, uint32_t group, wapi_bind_group bindings,            \
                                           size_t dynamic_offset_count, const uint32_t *dynamic_offsets))               \
  X(void, ComputePassEncoderDispatchWorkgroups, (wapi_compute_pass pass, uint32_t x, uint32_t y, uint32_t z))           \
  X(void, ComputePassEncoderEnd, (wapi_compute_pass pass))                                                              \
  X(void, ComputePassEncoderRelease, (wapi_compute_pass pass))                                                          \
  X(void, QueueSubmit, (wapi_queue queue, size_t count, const wapi_command_buffer *commands))                           \
  X(wapi_future, QueueOnSubmittedWorkDone, (wapi_queue queue, wapi_status_call call))                                   \
  X(void, QueueRelease, (wapi_queue queue))                                                                             \
  X(void, ShaderModuleRelease, (wapi_shader_module module))                                                             \
  X(void, BindGroupLayoutRelease, (wapi_bind_group_layout layout))                                                      \
  X(void, PipelineLayoutRelease, (wapi_pipeline_layout layout))                                                         \
  X(void, ComputePipelineRelease, (wapi_compute_pipeline pipeline))                                                     \
  X(void, BindGroupRelease, (wapi_bind_group bindings))

/* Extensions of one implementation; NULL elsewhere. */
#define WAPI_OPTIONAL_FUNCTIONS(X)                                                                                      \
  X(size_t, InstanceEnumerateAdapters, (wapi_instance instance, const wapi_enumerate_options *options,                  \
                                        wapi_adapter *out_adapters))                                                    \
  X(wapi_bool, DevicePoll, (wapi_device device, wapi_bool wait, const uint64_t *submission))

typedef struct webgpu_api {
#define WAPI_MEMBER(result, name, arguments) result (*name) arguments;
  WAPI_FUNCTIONS(WAPI_MEMBER)
  WAPI_OPTIONAL_FUNCTIONS(WAPI_MEMBER)
#undef WAPI_MEMBER
} webgpu_api;

#endif
