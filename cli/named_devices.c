/* SPDX-License-Identifier: Apache-2.0 */
#include "named_devices.h"

#include <string.h>

#include "complain.h"

bool tm_named_devices_is(const char *device, const char *name) {
  const size_t length = strlen(name);
  return strncmp(name, device, length) == 0 && (device[length] == '\0' || device[length] == ':');
}

/* Of a name that no ready device has. */
static void complain(tm_context *context, const char *name) {
  tm_device_description  device = { .struct_size = sizeof device };
  tm_backend_description backend = { .struct_size = sizeof backend };
  for (uint32_t i = 0; tm_device_describe(context, i, &device) == TM_OK; i++) {
    if (!tm_named_devices_is(device.name, name)) continue;
    (void)tm_complain_as(TM_EXIT_TROUBLE, "%.100s is not used: %.600s", device.name, device.reason);
    return;
  }
  for (uint32_t i = 0; tm_backend_describe(context, i, &backend) == TM_OK; i++) {
    if (!tm_named_devices_is(name, backend.name)) continue;
    (void)tm_complain_as(TM_EXIT_TROUBLE, "%.100s is not here: %.900s", name,
                         backend.reason[0] != '\0' ? backend.reason : "its backend has no such device");
    return;
  }
  (void)tm_complain_as(TM_EXIT_TROUBLE, "%.100s is not here", name);
}

static bool is_ready(tm_context *context, const char *name) {
  tm_device_description device = { .struct_size = sizeof device };
  for (uint32_t i = 0; tm_device_describe(context, i, &device) == TM_OK; i++)
    if (device.state == TM_DEVICE_READY && tm_named_devices_is(device.name, name)) return true;
  return false;
}

uint32_t tm_named_devices_complain(tm_context *context, const tm_name_list *names) {
  uint32_t absent = 0;
  for (uint32_t i = 0; i < names->count; i++) {
    if (is_ready(context, names->names[i])) continue;
    complain(context, names->names[i]);
    absent++;
  }
  return absent;
}
