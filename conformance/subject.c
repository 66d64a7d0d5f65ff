/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "plugin/description.h"
#include "plugin/table.h"

#define SERIAL_LANES 3u
#define BUSY_TRIES 200000
#define LONGEST_TEXT 190u
#define STRANGE_WORDS 64u               /* room for them behind what a question is about */
/* The host's limits, as plugin.h has them. */
#define MOST_MEMORIES 64u
#define LARGEST_ALIGNMENT (1u << 21)
#define LARGEST_GRANULE (1u << 20)

static void keep(tm_string message, char *out_text, uint64_t capacity) {
  (void)tm_text_escape(message.length == 0 ? "" : message.data, message.length > LONGEST_TEXT ? LONGEST_TEXT : message.length,
                       out_text, capacity);
}

static void host_log(void *context, uint32_t level, tm_string message) {
  subject *s = context;
  (void)level;
  keep(message, s->logged, sizeof s->logged);
}

static tm_status host_fail(void *context, tm_status status, int64_t native_code, tm_string message) {
  subject *s = context;
  (void)native_code;
  keep(message, s->text, sizeof s->text);
  return status;
}

static void *host_alloc(void *context, uint64_t bytes, uint64_t alignment) {
  subject *s = context;
  atomic_fetch_add(&s->allocation_count, 1);
  if (atomic_load(&s->allocations_left) == 0) return NULL;
  atomic_fetch_sub(&s->allocations_left, 1);
  return tm_memory_alloc(&s->memory, bytes, alignment);
}

static void host_free(void *context, void *memory, uint64_t bytes) {
  tm_memory_free(&((subject *)context)->memory, memory, bytes);
}

static void host_parallel_for(void *context, uint64_t count, uint64_t grain, tm_range_fn function, void *argument) {
  subject *s = context;
  if (grain == 0) grain = 1;
  if (s->pool != NULL) {
    tm_pool_run(s->pool, count, grain, function, argument);
    return;
  }
  uint32_t lane = 0;
  for (uint64_t part = count / grain + (count % grain != 0); part-- > 0; lane = (lane + 1) % SERIAL_LANES) {
    const uint64_t begin = part * grain;
    function(argument, begin, count - begin < grain ? count : begin + grain, lane);
  }
}

static uint64_t host_now_ns(void *context) {
  (void)context;
  return tm_now_ns();
}

static bool setting_is(const char *word, tm_string name) {
  return strlen(word) > name.length && strncmp(word, name.data, name.length) == 0 && word[name.length] == '=';
}

static tm_status host_config_get(void *context, tm_string key, tm_string *out_value) {
  const subject *s = context;
  for (uint32_t i = 0; i < s->settings.count; i++) {
    if (!setting_is(s->settings.words[i], key)) continue;
    const char *value = s->settings.words[i] + key.length + 1;
    *out_value = (tm_string){ value, strlen(value) };
    return TM_OK;
  }
  for (uint32_t i = 0; i < s->table.option_count; i++) {
    const tm_option *option = s->table.options[i];
    if (option->name.length != key.length || memcmp(option->name.data, key.data, key.length) != 0) continue;
    *out_value = option->default_value;
    return TM_OK;
  }
  return TM_ERROR_NOT_FOUND;
}

/* A setting that is a number is an address of this process: whoever loads this program as a library has some. */
static void *host_config_pointer(void *context, tm_string key) {
  const subject *s = context;
  for (uint32_t i = 0; i < s->settings.count; i++)
    if (setting_is(s->settings.words[i], key)) return (void *)(uintptr_t)strtoull(s->settings.words[i] + key.length + 1, NULL, 0);
  return NULL;
}

static tm_status host_cache_get(void *context, tm_string key, void *out_data, uint64_t *inout_bytes) {
  (void)context, (void)key, (void)out_data, (void)inout_bytes;
  return TM_ERROR_NOT_FOUND;
}

static tm_status host_cache_put(void *context, tm_string key, const void *data, uint64_t bytes) {
  (void)context, (void)key, (void)data, (void)bytes;
  return TM_ERROR_LIMIT;
}

static void host_device_event(void *context, uint32_t index, uint32_t event, uint64_t epoch) {
  subject *s = context;
  uint32_t largest = atomic_load(&s->largest_event_index);
  while (index > largest && !atomic_compare_exchange_weak(&s->largest_event_index, &largest, index)) {
  }
  if (event == 0 || event > TM_EVENT_DEVICE_LOST) last_call_misuse(s->calls, "device_event: there is no event %u", event);
  /* A host does not use it any more then, however well it works. */
  if (index == s->device_index && event == TM_EVENT_DEVICE_LOST) last_call_misuse(s->calls, "device_event: says that the device is lost");
  if (index != s->device_index || event != TM_EVENT_EPOCH_MOVED) return;
  if (epoch == 0) last_call_misuse(s->calls, "device_event: epoch 0 is none");
  uint64_t known = atomic_load(&s->announced_epoch);          /* several threads may announce, in any order */
  while (epoch > known && !atomic_compare_exchange_weak(&s->announced_epoch, &known, epoch)) {
  }
}

static uint64_t host_trace_begin(void *context, tm_string name) {
  (void)context, (void)name;
  return 0;
}

static void host_trace_end(void *context, uint64_t span) { (void)context, (void)span; }

static void make_services(subject *s) {
  s->services = (tm_host){
    .struct_size = sizeof s->services, .lane_count = s->pool == NULL ? SERIAL_LANES : tm_pool_lane_count(s->pool), .context = s,
    .log = host_log, .fail = host_fail, .alloc = host_alloc, .free = host_free, .parallel_for = host_parallel_for,
    .now_ns = host_now_ns, .config_get = host_config_get, .config_pointer = host_config_pointer,
    .cache_get = host_cache_get, .cache_put = host_cache_put, .device_event = host_device_event,
    .trace_begin = host_trace_begin, .trace_end = host_trace_end,
  };
}

/* ---- opening ---- */

static uint32_t at_least_1(uint32_t value) { return value == 0 ? 1 : value; }

static tm_status say(subject *s, tm_status status, const char *text) {
  snprintf(s->text, sizeof s->text, "%s", text);
  return status;
}

static bool is_sound_memory(subject *s, const tm_memory_space *space) {
  if (space->struct_size < sizeof *space) return say(s, TM_OK, "a memory is shorter than every version of its struct") != TM_OK;
  if ((space->alignment & (space->alignment - 1)) != 0 || space->alignment > LARGEST_ALIGNMENT)
    return say(s, TM_OK, "the alignment of a memory is no power of two, or too large") != TM_OK;
  if (space->offset_granule > LARGEST_GRANULE || space->store_granule > LARGEST_GRANULE)
    return say(s, TM_OK, "a granule of a memory is too large") != TM_OK;
  return true;
}

/* What the host refuses a backend for. */
static bool is_sound(subject *s) {
  const uint32_t known = TM_DEVICE_SYNCHRONOUS | TM_DEVICE_OPENING_THREAD | TM_DEVICE_EXCLUSIVE_PROCESS;
  const tm_device_info *info = &s->info;
  if ((info->flags & ~known) != 0) return say(s, TM_OK, "the device has unknown flags") != TM_OK;
  if (info->memory_count == 0 || info->memory_count > MOST_MEMORIES)
    return say(s, TM_OK, "the device has no sound number of memories") != TM_OK;
  for (uint32_t i = 0; i < info->memory_count; i++)
    if (info->memories == NULL || info->memories[i] == NULL)
      return say(s, TM_OK, "the device's list of memories is not sound") != TM_OK;
  for (uint32_t i = 0; i < info->memory_count; i++)
    if (!is_sound_memory(s, info->memories[i])) return false;
  return true;
}

/* How many there are, unless that is none. */
static tm_status say_no_device(subject *s) {
  tm_device_info info = { .struct_size = sizeof info };
  uint32_t count = 0;
  while (count < s->device_index && SUBJECT_CALL(s, device_info)(s->backend, count, &info) == TM_OK) count++;
  if (count == 1) snprintf(s->text, sizeof s->text, "it has 1 device, number 0");
  if (count > 1) snprintf(s->text, sizeof s->text, "it has %u devices, 0 to %u", count, count - 1);
  return TM_ERROR_NO_DEVICE;
}

static tm_status find_device(subject *s, const subject_options *options) {
  s->info = (tm_device_info){ .struct_size = sizeof s->info };
  const tm_status status = SUBJECT_CALL(s, device_info)(s->backend, s->device_index, &s->info);
  if (status == TM_END) return say_no_device(s);
  if (status != TM_OK) return say(s, status, "device_info gave a status that it may not give");
  if (!is_sound(s)) return TM_ERROR_CORRUPT;
  s->space = *s->info.memories[0];
  s->space.offset_granule = at_least_1(s->space.offset_granule);
  s->space.store_granule = at_least_1(s->space.store_granule);
  s->space.alignment = at_least_1(s->space.alignment);
  s->host_makes_buffers = (s->space.flags & TM_MEMORY_HOST_POINTER) != 0 && !tm_plugin_table_has_buffers(&s->table);
  if (s->calls != NULL) atomic_store(&s->calls->is_fenced, s->host_makes_buffers);
  if (options->before_open != NULL) options->before_open(options->context, s);
  return SUBJECT_CALL(s, open)(s->backend, s->device_index, &s->device);
}

tm_status subject_open(subject *s, const subject_options *options) {
  memset(s, 0, sizeof *s);
  tm_memory_init(&s->memory, 0);
  atomic_init(&s->allocations_left, options->allocations_plus_one == 0 ? UINT64_MAX : options->allocations_plus_one - 1);
  s->own = *options->table;
  lent_wrap(&s->own, &s->table);
  lent_everywhere(&s->own);
  s->settings = options->settings;
  s->combinations = options->combinations;
  s->calls = options->calls;
  s->device_index = options->device_index;
  if (options->threads > 1 && tm_pool_create(&s->memory, options->threads, &s->pool, NULL) != TM_OK) return TM_ERROR_NO_MEMORY;
  make_services(s);
  tm_status status = SUBJECT_CALL(s, init)(&s->services, &s->backend);
  if (status == TM_OK) {
    if (options->after_init != NULL) options->after_init(options->context);
    status = find_device(s, options);
    if (status != TM_OK) SUBJECT_CALL(s, shutdown)(s->backend);
  }
  if (status != TM_OK) tm_pool_destroy(s->pool);
  return status;
}

/* Of what devices it announced something. */
static void check_events(subject *s) {
  tm_device_info info = { .struct_size = sizeof info };
  const uint32_t largest = atomic_load(&s->largest_event_index);
  if (largest > s->device_index && SUBJECT_CALL(s, device_info)(s->backend, largest, &info) == TM_END)
    last_call_misuse(s->calls, "device_event: there is no device %u", largest);
}

/* Time does not run backwards: who kept an answer knows by its epoch that it is over. */
static void check_epoch(subject *s) {
  tm_device_info info = { .struct_size = sizeof info };
  if (SUBJECT_CALL(s, device_info)(s->backend, s->device_index, &info) == TM_OK && info.epoch < s->info.epoch)
    last_call_misuse(s->calls, "device_info: the epoch fell from %llu to %llu", (unsigned long long)s->info.epoch,
                     (unsigned long long)info.epoch);
}

void subject_close(subject *s) {
  check_events(s);
  check_epoch(s);
  SUBJECT_CALL(s, close)(s->device);
  SUBJECT_CALL(s, shutdown)(s->backend);
  tm_pool_destroy(s->pool);
}

/* ---- descriptions ---- */

static uint64_t hash_bytes(uint64_t hash, const void *data, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; i++) hash = (hash ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
  return hash;
}

uint64_t subject_description_hash(const tm_device_info *info) {
  const uint64_t numbers[] = { info->flags, info->cost_model_id, info->queue_count, info->memory_count };
  uint64_t hash = 1;
  hash = hash_bytes(hash, numbers, sizeof numbers);
  hash = hash_bytes(hash, &info->uuid, sizeof info->uuid);
  hash = hash_bytes(hash, &info->resource, sizeof info->resource);
  if (tm_description_is_readable(info->name)) hash = hash_bytes(hash, info->name.data, info->name.length);
  return tm_description_is_readable(info->driver_version) ? hash_bytes(hash, info->driver_version.data, info->driver_version.length) : hash;
}

/* ---- questions ---- */

void subject_work_on(subject *s, const question *q) {
  if (s->calls == NULL) return;
  question_describe(q, s->calls->subject, sizeof s->calls->subject);
  s->subject_length = strnlen(s->calls->subject, sizeof s->calls->subject);
}

void subject_ask_strangely(subject *s, const char *what) {
  if (s->calls == NULL) return;
  const size_t known = strnlen(s->calls->subject, LAST_CALL_SUBJECT), most = LAST_CALL_SUBJECT - STRANGE_WORDS;
  const size_t usual = s->subject_length < known ? s->subject_length : known, length = usual < most ? usual : most;
  (void)snprintf(s->calls->subject + length, LAST_CALL_SUBJECT - length, ", with %s", what);
}

/* `known` was in an answer before this one was asked for. */
static void note_epoch(subject *s, uint64_t known, uint64_t epoch) {
  if (epoch != 0 && epoch < known)
    last_call_misuse(s->calls, "query: answers for epoch %llu after an answer for epoch %llu", (unsigned long long)epoch,
                     (unsigned long long)known);
  while (epoch > known && !atomic_compare_exchange_weak(&s->largest_epoch, &known, epoch)) {
  }
}

tm_status subject_query(subject *s, const tm_operation *operation, tm_answer *out_answer) {
  *out_answer = (tm_answer){ .struct_size = sizeof *out_answer, .operand = TM_NO_OPERAND };
  const uint64_t epoch = atomic_load(&s->largest_epoch);
  const uint64_t begin_ns = tm_now_ns();
  const tm_status status = SUBJECT_CALL(s, query)(s->backend, s->device_index, &operation, 1, &out_answer);
  last_call_time_question(s->calls, tm_now_ns() - begin_ns);
  if (status == TM_OK) note_epoch(s, epoch, out_answer->epoch);
  return status;
}

tm_answer subject_ask(subject *s, const tm_operation *operation) {
  tm_answer answer;
  const tm_status status = subject_query(s, operation, &answer);
  atomic_store(&s->query_status, status);
  if (status != TM_OK) {
    answer.level = TM_LEVEL_REFUSED;
    answer.reasons = TM_REASON_RESOURCES;
  }
  return answer;
}

bool subject_has_moved(subject *s, const tm_answer *answer) {
  return atomic_load(&s->announced_epoch) > (answer->epoch != 0 ? answer->epoch : s->info.epoch);
}

tm_answer subject_ask_question(subject *s, const question *q) {
  asked_operation asked;
  subject_work_on(s, q);
  question_asked(q, &asked);
  return subject_ask(s, &asked.operation);
}

/* ---- memory and work ---- */

static tm_status finish(subject *s, tm_status status, const tm_ticket *ticket) {
  if (status != TM_OK || (s->info.flags & TM_DEVICE_SYNCHRONOUS) != 0) return status;
  return SUBJECT_CALL(s, wait)(s->device, ticket, 1, TM_WAIT_FOREVER);
}

tm_status subject_transfer(subject *s, subject_transfer_fn function, const tm_transfer *transfer, tm_ticket *out_ticket) {
  tm_status status = function(s->device, transfer, out_ticket);
  for (int i = 0; i < BUSY_TRIES && status == TM_BUSY; i++) {
    (void)SUBJECT_CALL(s, flush)(s->device, transfer->queue);
    status = function(s->device, transfer, out_ticket);
  }
  return finish(s, status, out_ticket);
}

tm_status subject_buffer(subject *s, void *image, uint64_t bytes, tm_buffer **out_buffer) {
  if (s->host_makes_buffers) {
    *out_buffer = image;
    return TM_OK;
  }
  tm_buffer *buffer = NULL;
  tm_ticket ticket = { 0, 0, 0 };
  tm_status status = SUBJECT_CALL(s, buffer_create)(s->device, 0, bytes, &buffer);
  if (status != TM_OK) return status;
  const tm_transfer transfer = { .struct_size = sizeof transfer, .destination = buffer, .host = image, .bytes = bytes };
  status = subject_transfer(s, SUBJECT_CALL(s, upload), &transfer, &ticket);
  if (status == TM_OK) *out_buffer = buffer;
  else SUBJECT_CALL(s, buffer_destroy)(s->device, 0, buffer, bytes, 0);
  return status;
}

tm_status subject_collect(subject *s, tm_buffer *buffer, void *image, uint64_t bytes) {
  if (s->host_makes_buffers) return TM_OK;
  tm_ticket ticket = { 0, 0, 0 };
  const tm_transfer transfer = { .struct_size = sizeof transfer, .source = buffer, .host = image, .bytes = bytes };
  return subject_transfer(s, SUBJECT_CALL(s, download), &transfer, &ticket);
}

void subject_buffer_free(subject *s, tm_buffer *buffer, uint64_t bytes) {
  if (!s->host_makes_buffers && buffer != NULL) SUBJECT_CALL(s, buffer_destroy)(s->device, 0, buffer, bytes, 0);
}

tm_status subject_launch(subject *s, uint32_t queue, tm_kernel *kernel, const tm_binding *bindings, uint32_t count) {
  const tm_launch launch = {
      .struct_size = sizeof launch, .queue = queue, .kernel = kernel, .bindings = bindings, .binding_count = count};
  tm_ticket ticket = { queue, 0, 0 };
  tm_status status = SUBJECT_CALL(s, launch)(s->device, &launch, &ticket);
  for (int i = 0; i < BUSY_TRIES && status == TM_BUSY; i++) status = SUBJECT_CALL(s, launch)(s->device, &launch, &ticket);
  if (status == TM_OK && ticket.value != 0 && ticket.queue != queue)
    last_call_misuse(s->calls, "launch on queue %u gave a ticket of queue %u", queue, ticket.queue);
  if (status == TM_OK) status = SUBJECT_CALL(s, flush)(s->device, queue);
  return finish(s, status, &ticket);
}
