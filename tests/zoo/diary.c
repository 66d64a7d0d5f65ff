/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a line for each init into the file of its option `diary`: so that a test sees when it is loaded, and how often.  A
   line of another length in the file of its option `devices` makes it another number of devices; init takes `delay_ms`. */
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>

#include "zoo.h"

#define LONGEST_PATH 1024

static const tm_option diary = { .struct_size = sizeof diary, .type = TM_OPTION_TEXT, .name = TM_STRING("diary"),
                                 .default_value = TM_STRING(""), .help = TM_STRING("A file to write to.") };
static const tm_option devices = { .struct_size = sizeof devices, .type = TM_OPTION_TEXT, .name = TM_STRING("devices"),
                                   .default_value = TM_STRING(""), .help = TM_STRING("A file whose size is the number of devices.") };
static const tm_option delay = { .struct_size = sizeof delay, .type = TM_OPTION_INTEGER, .name = TM_STRING("delay_ms"),
                                 .default_value = TM_STRING("0"), .help = TM_STRING("What init takes.") };
static const tm_option *const options[] = { &diary, &devices, &delay };

static void read_option(const tm_host *host, tm_string name, char text[LONGEST_PATH]) {
  tm_string value = { NULL, 0 };
  text[0] = '\0';
  if (host->config_get(host->context, name, &value) == TM_OK) (void)snprintf(text, LONGEST_PATH, "%.*s", (int)value.length, value.data);
}

static tm_status init_writing(const tm_host *host, tm_backend **out_backend) {
  char path[LONGEST_PATH], text[LONGEST_PATH];
  read_option(host, diary.name, path);
  read_option(host, delay.name, text);
  FILE *file = path[0] == '\0' ? NULL : fopen(path, "a");
  if (file != NULL) {
    (void)fputs("init\n", file);
    (void)fclose(file);
  }
  if (getenv("ZOO_DRIVER") != NULL) (void)0;    /* a variable that it might depend on */
  const long delay_ms = strtol(text, NULL, 10);
  if (delay_ms > 0) (void)thrd_sleep(&(struct timespec){ .tv_sec = delay_ms / 1000, .tv_nsec = delay_ms % 1000 * 1000000 }, NULL);
  return zoo_init(host, out_backend);
}

static tm_status some_devices(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  char path[LONGEST_PATH];
  long count = 1;
  read_option(backend->host, devices.name, path);
  FILE *file = path[0] == '\0' ? NULL : fopen(path, "r");
  if (file != NULL) {
    (void)fseek(file, 0, SEEK_END);
    count = ftell(file);
    (void)fclose(file);
  }
  return (long)index < count ? zoo_device_info(backend, 0, out_info) : TM_END;
}

static const tm_accelerator_backend_plugin table = {
  .struct_size = sizeof table, .option_count = 3, .options = options, .init = init_writing, .shutdown = zoo_shutdown,
  .device_info = some_devices, .query = zoo_query, .prepare = zoo_prepare, .release = zoo_release, .launch = zoo_launch,
};

TM_DEFINE_PLUGIN("zoo_diary", "1", "zoo", table)
