/* SPDX-License-Identifier: Apache-2.0 */
/* Our declarations against an implementation's header: what compiles is equal, so running says no more than that. */
#include <stdio.h>

#include <webgpu.h>

#include "webgpu_api.h"

#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), "size of " #theirs)
#define SAME(ours, our_member, theirs, their_member)                                                                    \
  _Static_assert(offsetof(ours, our_member) == offsetof(theirs, their_member), #theirs "." #their_member);              \
  _Static_assert(sizeof(((ours *)0)->our_member) == sizeof(((theirs *)0)->their_member), #theirs "." #their_member)
#define VALUE(ours, theirs) _Static_assert((uint64_t)(ours) == (uint64_t)(theirs), #theirs)

SAME_SIZE(wapi_bool, WGPUBool);
SAME_SIZE(wapi_future, WGPUFuture);
SAME_SIZE(wapi_string, WGPUStringView);
SAME(wapi_string, data, WGPUStringView, data);
SAME(wapi_string, length, WGPUStringView, length);
SAME_SIZE(wapi_chain, WGPUChainedStruct);
SAME(wapi_chain, type, WGPUChainedStruct, sType);

SAME_SIZE(wapi_limits, WGPULimits);
SAME(wapi_limits, max_storage_buffers, WGPULimits, maxStorageBuffersPerShaderStage);
SAME(wapi_limits, max_storage_binding_bytes, WGPULimits, maxStorageBufferBindingSize);
SAME(wapi_limits, min_uniform_offset_alignment, WGPULimits, minUniformBufferOffsetAlignment);
SAME(wapi_limits, min_storage_offset_alignment, WGPULimits, minStorageBufferOffsetAlignment);
SAME(wapi_limits, max_buffer_bytes, WGPULimits, maxBufferSize);
SAME(wapi_limits, max_workgroup_bytes, WGPULimits, maxComputeWorkgroupStorageSize);
SAME(wapi_limits, max_invocations, WGPULimits, maxComputeInvocationsPerWorkgroup);
SAME(wapi_limits, max_workgroup_x, WGPULimits, maxComputeWorkgroupSizeX);
SAME(wapi_limits, max_workgroups, WGPULimits, maxComputeWorkgroupsPerDimension);
SAME(wapi_limits, max_immediate_bytes, WGPULimits, maxImmediateSize);

SAME_SIZE(wapi_adapter_info, WGPUAdapterInfo);
SAME(wapi_adapter_info, device, WGPUAdapterInfo, device);
SAME(wapi_adapter_info, description, WGPUAdapterInfo, description);
SAME(wapi_adapter_info, backend_type, WGPUAdapterInfo, backendType);
SAME(wapi_adapter_info, adapter_type, WGPUAdapterInfo, adapterType);
SAME(wapi_adapter_info, vendor_id, WGPUAdapterInfo, vendorID);
SAME(wapi_adapter_info, device_id, WGPUAdapterInfo, deviceID);
SAME(wapi_adapter_info, subgroup_min, WGPUAdapterInfo, subgroupMinSize);
SAME(wapi_adapter_info, subgroup_max, WGPUAdapterInfo, subgroupMaxSize);

SAME_SIZE(wapi_adapter_options, WGPURequestAdapterOptions);
SAME(wapi_adapter_options, feature_level, WGPURequestAdapterOptions, featureLevel);
SAME(wapi_adapter_options, power_preference, WGPURequestAdapterOptions, powerPreference);
SAME(wapi_adapter_options, force_fallback, WGPURequestAdapterOptions, forceFallbackAdapter);

#define SAME_CALL(ours, theirs)                                                                                         \
  SAME_SIZE(ours, theirs);                                                                                              \
  SAME(ours, function, theirs, callback);                                                                               \
  SAME(ours, a, theirs, userdata1);                                                                                     \
  SAME(ours, b, theirs, userdata2)
SAME_CALL(wapi_adapter_call, WGPURequestAdapterCallbackInfo);
SAME_CALL(wapi_device_call, WGPURequestDeviceCallbackInfo);
SAME_CALL(wapi_lost_call, WGPUDeviceLostCallbackInfo);
SAME_CALL(wapi_error_call, WGPUUncapturedErrorCallbackInfo);
SAME_CALL(wapi_status_call, WGPUBufferMapCallbackInfo);
SAME_CALL(wapi_status_call, WGPUQueueWorkDoneCallbackInfo);
SAME_CALL(wapi_scope_call, WGPUPopErrorScopeCallbackInfo);
SAME(wapi_status_call, mode, WGPUBufferMapCallbackInfo, mode);
SAME(wapi_scope_call, mode, WGPUPopErrorScopeCallbackInfo, mode);

SAME_SIZE(wapi_instance_descriptor, WGPUInstanceDescriptor);
SAME_SIZE(wapi_label, WGPUQueueDescriptor);
SAME_SIZE(wapi_label, WGPUShaderModuleDescriptor);
SAME_SIZE(wapi_label, WGPUCommandEncoderDescriptor);
SAME_SIZE(wapi_label, WGPUCommandBufferDescriptor);
SAME_SIZE(wapi_pass_descriptor, WGPUComputePassDescriptor);
SAME_SIZE(wapi_device_descriptor, WGPUDeviceDescriptor);
SAME(wapi_device_descriptor, feature_count, WGPUDeviceDescriptor, requiredFeatureCount);
SAME(wapi_device_descriptor, features, WGPUDeviceDescriptor, requiredFeatures);
SAME(wapi_device_descriptor, limits, WGPUDeviceDescriptor, requiredLimits);
SAME(wapi_device_descriptor, queue, WGPUDeviceDescriptor, defaultQueue);
SAME(wapi_device_descriptor, lost, WGPUDeviceDescriptor, deviceLostCallbackInfo);
SAME(wapi_device_descriptor, uncaptured, WGPUDeviceDescriptor, uncapturedErrorCallbackInfo);

SAME_SIZE(wapi_buffer_descriptor, WGPUBufferDescriptor);
SAME(wapi_buffer_descriptor, usage, WGPUBufferDescriptor, usage);
SAME(wapi_buffer_descriptor, bytes, WGPUBufferDescriptor, size);
SAME(wapi_buffer_descriptor, mapped_at_creation, WGPUBufferDescriptor, mappedAtCreation);
SAME_SIZE(wapi_wgsl_source, WGPUShaderSourceWGSL);
SAME(wapi_wgsl_source, code, WGPUShaderSourceWGSL, code);

SAME_SIZE(wapi_layout_entry, WGPUBindGroupLayoutEntry);
SAME(wapi_layout_entry, binding, WGPUBindGroupLayoutEntry, binding);
SAME(wapi_layout_entry, visibility, WGPUBindGroupLayoutEntry, visibility);
SAME(wapi_layout_entry, array_count, WGPUBindGroupLayoutEntry, bindingArraySize);
SAME(wapi_layout_entry, buffer, WGPUBindGroupLayoutEntry, buffer);
SAME(wapi_layout_entry, sampler, WGPUBindGroupLayoutEntry, sampler);
SAME(wapi_layout_entry, texture, WGPUBindGroupLayoutEntry, texture);
SAME(wapi_layout_entry, image, WGPUBindGroupLayoutEntry, storageTexture);
SAME(wapi_buffer_layout, type, WGPUBufferBindingLayout, type);
SAME(wapi_buffer_layout, has_dynamic_offset, WGPUBufferBindingLayout, hasDynamicOffset);
SAME(wapi_buffer_layout, min_bytes, WGPUBufferBindingLayout, minBindingSize);
SAME_SIZE(wapi_bind_group_layout_descriptor, WGPUBindGroupLayoutDescriptor);
SAME(wapi_bind_group_layout_descriptor, entries, WGPUBindGroupLayoutDescriptor, entries);
SAME_SIZE(wapi_pipeline_layout_descriptor, WGPUPipelineLayoutDescriptor);
SAME(wapi_pipeline_layout_descriptor, layouts, WGPUPipelineLayoutDescriptor, bindGroupLayouts);
SAME_SIZE(wapi_compute_pipeline_descriptor, WGPUComputePipelineDescriptor);
SAME(wapi_compute_pipeline_descriptor, layout, WGPUComputePipelineDescriptor, layout);
SAME(wapi_compute_pipeline_descriptor, compute, WGPUComputePipelineDescriptor, compute);
SAME(wapi_compute_state, module, WGPUComputeState, module);
SAME(wapi_compute_state, entry, WGPUComputeState, entryPoint);
SAME(wapi_compute_state, constants, WGPUComputeState, constants);
SAME_SIZE(wapi_bind_group_entry, WGPUBindGroupEntry);
SAME(wapi_bind_group_entry, binding, WGPUBindGroupEntry, binding);
SAME(wapi_bind_group_entry, buffer, WGPUBindGroupEntry, buffer);
SAME(wapi_bind_group_entry, offset, WGPUBindGroupEntry, offset);
SAME(wapi_bind_group_entry, bytes, WGPUBindGroupEntry, size);
SAME_SIZE(wapi_bind_group_descriptor, WGPUBindGroupDescriptor);
SAME(wapi_bind_group_descriptor, layout, WGPUBindGroupDescriptor, layout);
SAME(wapi_bind_group_descriptor, entries, WGPUBindGroupDescriptor, entries);

VALUE(WAPI_SUCCESS, WGPUStatus_Success);
VALUE(WAPI_SUCCESS, WGPURequestAdapterStatus_Success);
VALUE(WAPI_SUCCESS, WGPURequestDeviceStatus_Success);
VALUE(WAPI_SUCCESS, WGPUMapAsyncStatus_Success);
VALUE(WAPI_SUCCESS, WGPUQueueWorkDoneStatus_Success);
VALUE(WAPI_SUCCESS, WGPUPopErrorScopeStatus_Success);
VALUE(WAPI_ALLOW_PROCESS_EVENTS, WGPUCallbackMode_AllowProcessEvents);
VALUE(WAPI_ERROR_NONE, WGPUErrorType_NoError);
VALUE(WAPI_ERROR_VALIDATION, WGPUErrorType_Validation);
VALUE(WAPI_ERROR_OUT_OF_MEMORY, WGPUErrorType_OutOfMemory);
VALUE(WAPI_ERROR_INTERNAL, WGPUErrorType_Internal);
VALUE(WAPI_FILTER_VALIDATION, WGPUErrorFilter_Validation);
VALUE(WAPI_FILTER_OUT_OF_MEMORY, WGPUErrorFilter_OutOfMemory);
VALUE(WAPI_ADAPTER_CPU, WGPUAdapterType_CPU);
VALUE(WAPI_BACKEND_NULL, WGPUBackendType_Null);
VALUE(WAPI_POWER_LOW, WGPUPowerPreference_LowPower);
VALUE(WAPI_POWER_HIGH, WGPUPowerPreference_HighPerformance);
VALUE(WAPI_LEVEL_CORE, WGPUFeatureLevel_Core);
VALUE(WAPI_BINDING_UNIFORM, WGPUBufferBindingType_Uniform);
VALUE(WAPI_BINDING_STORAGE, WGPUBufferBindingType_Storage);
VALUE(WAPI_BINDING_READ_ONLY_STORAGE, WGPUBufferBindingType_ReadOnlyStorage);
VALUE(WAPI_SOURCE_WGSL, WGPUSType_ShaderSourceWGSL);
VALUE(WAPI_FEATURE_SHADER_F16, WGPUFeatureName_ShaderF16);
VALUE(WAPI_FEATURE_SUBGROUPS, WGPUFeatureName_Subgroups);

/* The flags are objects in the header, which no static assertion reads. */
#define FLAG(ours, theirs) ((uint64_t)(ours) == (uint64_t)(theirs) ? 0 : (printf("%s is not %s\n", #ours, #theirs), 1))

int main(void) {
  return FLAG(WAPI_USAGE_MAP_READ, WGPUBufferUsage_MapRead) | FLAG(WAPI_USAGE_MAP_WRITE, WGPUBufferUsage_MapWrite) |
         FLAG(WAPI_USAGE_COPY_SOURCE, WGPUBufferUsage_CopySrc) | FLAG(WAPI_USAGE_COPY_DESTINATION, WGPUBufferUsage_CopyDst) |
         FLAG(WAPI_USAGE_UNIFORM, WGPUBufferUsage_Uniform) | FLAG(WAPI_USAGE_STORAGE, WGPUBufferUsage_Storage) |
         FLAG(WAPI_MAP_READ, WGPUMapMode_Read) | FLAG(WAPI_MAP_WRITE, WGPUMapMode_Write) |
         FLAG(WAPI_STAGE_COMPUTE, WGPUShaderStage_Compute);
}
