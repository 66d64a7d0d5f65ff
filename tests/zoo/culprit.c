/* SPDX-License-Identifier: Apache-2.0 */
/* Does harm in one call of its table (ZOO_CALL): aborts, never comes back, or breaks its promise (ZOO_DEED).  Its name and identity are other ones
   in each build, so that nothing can depend on them. */
#include <stdlib.h>
#include <threads.h>
#include <time.h>

#include "zoo.h"

#define INIT 1
#define DEVICE_INFO 2
#define QUERY 3
#define OPEN 4
#define PREPARE 5
#define LAUNCH 6
#define RELEASE 7
#define CLOSE 8
#define SHUTDOWN 9

#define ABORTS 1
#define HANGS 2
#define REFUSES 3               /* LAUNCH only */

static void enter(int call) {
  if (call != ZOO_CALL || ZOO_DEED == REFUSES) return;
  if (ZOO_DEED == ABORTS) abort();
  for (;;) thrd_sleep(&(struct timespec){ .tv_sec = 1 }, NULL);
}

#ifdef ZOO_TAMES
static const tm_option tame = { sizeof tame, TM_OPTION_SWITCH, TM_STRING("tame"), TM_STRING("0"), TM_STRING("Does no harm.") };
static const tm_option *const options[] = { &tame };

static int is_tame(const tm_host *host) {
  tm_string value = { NULL, 0 };
  return host->config_get(host->context, tame.name, &value) == TM_OK && value.length == 1 && value.data[0] == '1';
}
#define OPTIONS .option_count = 1, .options = options,
#else
static int is_tame(const tm_host *host) { return host == NULL; }
#define OPTIONS
#endif

static tm_status culprit_init(const tm_host *host, tm_backend **out_backend) {
  if (!is_tame(host)) enter(INIT);
  return zoo_init(host, out_backend);
}

static void culprit_shutdown(tm_backend *backend) {
  enter(SHUTDOWN);
  zoo_shutdown(backend);
}

static tm_status culprit_device_info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  static const tm_identity uuid = { { ZOO_UUID } };
  enter(DEVICE_INFO);
  const tm_status status = zoo_device_info(backend, index, out_info);
  if (status == TM_OK) out_info->uuid = uuid;
  return status;
}

static tm_status culprit_open(tm_backend *backend, uint32_t index, tm_device **out_device) {
  (void)index;
  enter(OPEN);
  *out_device = (tm_device *)(void *)backend;
  return TM_OK;
}

static void culprit_close(tm_device *device) {
  (void)device;
  enter(CLOSE);
}

static tm_status culprit_query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                               tm_answer *const *out_answers) {
  enter(QUERY);
  return zoo_query(backend, index, operations, count, out_answers);
}

static tm_status culprit_prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  enter(PREPARE);
  return zoo_prepare(device, operation, answer, out_kernel);
}

static void culprit_release(tm_device *device, tm_kernel *kernel) {
  enter(RELEASE);
  zoo_release(device, kernel);
}

static tm_status culprit_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  enter(LAUNCH);
  if (ZOO_DEED == REFUSES) return TM_ERROR_INTERNAL;
  return zoo_launch(device, launch, out_ticket);
}

static const tm_accelerator_backend_plugin table = {
  .struct_size = sizeof table, OPTIONS .init = culprit_init, .shutdown = culprit_shutdown, .device_info = culprit_device_info,
  .open = culprit_open, .close = culprit_close, .query = culprit_query, .prepare = culprit_prepare, .release = culprit_release,
  .launch = culprit_launch,
};

TM_DEFINE_PLUGIN(ZOO_NAME, "1", "zoo", table)
