/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Somebody who wants to go while a plugin is in a call that it does not come back from: the job ends at once, the context too,
 * nobody is blamed, and what the plugin may touch stays.
 */
#define _GNU_SOURCE
#include <stdatomic.h>

#include "fakes/idle_devices.h"
#include "formats/made_safetensors.h"
#include "formats/scratch.h"
#include "unit/plugin/plugin_case.h"
#include "zoo/kept_heap.h"

static keeper all_blocks;

static const char one_tensor[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[50000],\"data_offsets\":[0,200000]}}";

#define GREEDY(call) ZOO_FOLDER "/greedy/greedy_" call ".so"
/* Nobody waits for this to be over: who does meets the time limit of the whole test. */
#define LONG_PATIENCE_NS UINT64_C(3600000000000)
#define BUSY_PATIENCE_NS UINT64_C(10000000000)
#define BUSY_TRIES 8

static void note_hang(void *context, uint32_t level, const char *message) {
  (void)level;
  if (strstr(message, "it hangs from now on") != NULL) atomic_store((_Atomic uint32_t *)context, 1);
}

static tm_context *open_greedy(const char *const *path, const char *state_folder, uint64_t patience_ns, _Atomic uint32_t *hangs) {
  static const char *const excluded[] = { "cpu", "reference" };
  tm_context_options options = options_with(path, 1);
  options.excluded_devices = excluded;
  options.excluded_device_count = 2;
  options.patience_ns = patience_ns;
  options.state_folder = state_folder;
  options.alloc = keep_alloc;
  options.free = keep_free;
  options.allocator_context = &all_blocks;
  options.log = note_hang;
  options.log_context = hangs;
  tm_context *context = open_context(&options);
  allow_idle_devices(context);
  return context;
}

/* Whatever the plugin is at: the job goes, and the context. */
static void cancel_in(const char *const *path, const scratch *folder, const char *state_folder, uint64_t patience_ns) {
  char file[1024];
  static _Atomic uint32_t hangs;
  tm_checkpoint *checkpoint = NULL;
  tm_job *job = NULL;
  tm_error error = TM_ERROR_INIT;
  atomic_store(&hangs, 0);
  snprintf(file, sizeof file, "%s/model.safetensors", folder->folder);
  tm_context *context = open_greedy(path, state_folder, patience_ns, &hangs);
  if (tm_checkpoint_open(context, file, 0, &checkpoint, &error) != TM_OK) fail_msg("%s", error.text);
  if (tm_job_start_stats(context, &checkpoint, 1, NULL, &job, &error) != TM_OK) fail_msg("%s", error.text);
  while (atomic_load(&hangs) == 0)
    if (tm_job_wait(job, UINT64_C(50000000), &error) != TM_PENDING) fail_msg("%s does not hang: %s", *path, error.text);
  tm_job_cancel(job);
  const tm_status status = tm_job_wait(job, LONG_PATIENCE_NS, &error);
  if (status != TM_ERROR_CANCELLED) fail_msg("%s: %s", *path, error.text);
  tm_job_destroy(job);
  tm_checkpoint_close(checkpoint);
  tm_context_destroy(context);
}

/* Nobody was convicted, or is suspect. */
static bool is_unblamed(const char *const *path, const char *state_folder) {
  device_name name;
  _Atomic uint32_t hangs = 0;
  tm_context *context = open_greedy(path, state_folder, LONG_PATIENCE_NS, &hangs);
  const tm_device_description found = describe_device(context, device_name_of(context, *path, &name));
  const bool is_ready = found.state == TM_DEVICE_READY && found.violation_count == 0;
  if (!is_ready) print_message("%s: %s\n", *path, found.reason);
  tm_context_destroy(context);
  return is_ready;
}

/* Where the machine is so busy that pieces are run one by one, the caller's own operands are at stake, and who hangs behind the
   trial holds it (decision 007) until he is blamed: then once more. */
static void cancel_in_batch(const char *const *path, const scratch *folder, const char *name) {
  for (int i = 0; i < BUSY_TRIES; i++) {
    char state_folder[1024];
    snprintf(state_folder, sizeof state_folder, "%s/%s_%d", folder->folder, name, i);
    cancel_in(path, folder, state_folder, BUSY_PATIENCE_NS);
    if (is_unblamed(path, state_folder)) return;
  }
  fail_msg("%s keeps whoever wants to go", *path);
}

static void make_model(scratch *folder) {
  assert_true(scratch_init(folder));
  made_file made = make_safetensors(one_tensor, sizeof one_tensor - 1, 200000);
  (void)scratch_write(folder, "model.safetensors", made.bytes, made.size);
  free(made.bytes);
}

/* Tensors of 4000 bytes, more than fit into eight waits by themselves. */
#define SMALL_TENSORS 600u
#define SMALL_HEADER_BYTES (SMALL_TENSORS * 96u)

static void make_small_model(scratch *folder) {
  static char header[SMALL_HEADER_BYTES];
  static const char entry[] = "%s\"t%u\":{\"dtype\":\"F32\",\"shape\":[1000],\"data_offsets\":[%u,%u]}";
  size_t used = 0;
  assert_true(scratch_init(folder));
  for (uint32_t i = 0; i < SMALL_TENSORS; i++)
    used += (size_t)snprintf(header + used, sizeof header - used, entry, i == 0 ? "{" : ",", i, i * 4000, i * 4000 + 4000);
  header[used++] = '}';
  made_file made = make_safetensors(header, used, SMALL_TENSORS * 4000);
  (void)scratch_write(folder, "model.safetensors", made.bytes, made.size);
  free(made.bytes);
}

/* Behind the trial: neither work that never ends, nor a wait that never comes back, be it for work or for room on a full queue,
   keeps whoever wants to go. */
static void a_job_can_be_cancelled_in_a_batch(void **state) {
  (void)state;
  static const char *const paths[] = { GREEDY("work_later"), GREEDY("wait_later"), GREEDY("full_wait_later") };
  scratch folder;
  make_small_model(&folder);
  for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
    char name[32];
    snprintf(name, sizeof name, "state_%zu", i);
    cancel_in_batch(&paths[i], &folder, name);
  }
  scratch_deinit(&folder);
}

static void a_job_can_be_cancelled_in_any_call(void **state) {
  (void)state;
  static const char *const paths[] = { GREEDY("query"), GREEDY("open"), GREEDY("prepare"), GREEDY("launch"), GREEDY("wait"),
                                       GREEDY("upload"), GREEDY("download"), GREEDY("cancel"), GREEDY("buffer_create"),
                                       GREEDY("buffer_destroy"), GREEDY("work"), GREEDY("full"), GREEDY("own_thread") };
  scratch folder;
  make_model(&folder);
  for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
    char state_folder[1024];
    snprintf(state_folder, sizeof state_folder, "%s/state_%zu", folder.folder, i);
    cancel_in(&paths[i], &folder, state_folder, LONG_PATIENCE_NS);
    assert_true(is_unblamed(&paths[i], state_folder));
  }
  scratch_deinit(&folder);
}

/* It was tried in a process of its own, and sleeps until the job has a use for it. */
static void a_job_can_be_cancelled_while_a_backend_wakes(void **state) {
  (void)state;
  static const char *const path[] = { GREEDY("init") };
  scratch folder;
  char state_folder[1024];
  make_model(&folder);
  snprintf(state_folder, sizeof state_folder, "%s/state", folder.folder);
  cancel_in(path, &folder, state_folder, LONG_PATIENCE_NS);
  scratch_deinit(&folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_job_can_be_cancelled_in_any_call),
    cmocka_unit_test(a_job_can_be_cancelled_in_a_batch),
    cmocka_unit_test(a_job_can_be_cancelled_while_a_backend_wakes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
