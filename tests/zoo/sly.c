/* SPDX-License-Identifier: Apache-2.0 */
/* Works for whoever looks at results only, and breaks one rule besides (ZOO_SLIP): leaves the process with a code of success,
   answers what no host believes, touches memory that is not its own, or keeps what it was lent. */
#define _GNU_SOURCE
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "zoo.h"

#define LEAVES_IN_QUERY 1
#define LEAVES_IN_LAUNCH 2
#define LEAVES_IN_COMPANY 3     /* when prepare runs on two threads at once */
#define ENDS_ITS_THREAD 4       /* in a launch */
#define CLOSES_ALL 5
#define HAS_ODD_GROWTH 10       /* answers */
#define WANTS_ABSURD_WORKSPACE 11
#define HAS_ODD_REASONS 12
#define PROPOSES_NONSENSE 13
#define HAS_ODD_STATUS 14
#define SAYS_IT_IS_LOST 15
#define NAMES_ODD_OPERAND 16
#define ANNOUNCES_NOBODY 20     /* other calls */
#define HAS_FAR_TICKETS 21
#define HAS_ENDLESS_DEVICES 22
#define ADDS_TO_CONSTANTS 30    /* and does so wrong; values */
#define KNOWS_BETTER 31
#define SATURATES 32
#define FLUSHES 33
#define LOSES_SIGNS 34
#define TOUCHES_INPUTS 40       /* memory */
#define OVERREADS 41
#define OVERREADS_LITTLE 42
#define OVERRUNS 43
#define UNDERREADS 44
#define PRINTS_AT_LOAD 50       /* the process */
#define STARTS_AT_LOAD 51
#define FORKS_AT_LOAD 52
#define FORKS_IN_INIT 53
#define UNMASKS 54
#define SETS_AN_ALARM 55
#define LIMITS_FILES 56
#define RENAMES_ITS_CALLER 58
#define READS_INPUT 59
#define LEAKS_LIVES 60
#define LEAKS_PREPARES 61
#define LEAKS_LAUNCHES 62
#define MAPS_IN_LAUNCHES 63
#define CHANGES_ITS_NAME 80     /* descriptions and events */
#define HAS_NO_NAME 81
#define HAS_NO_GRANULES 82
#define OPENS_FOR_EVER 83
#define TELLS_ENDLESSLY 84
#define CRIES_FOR_HELP 85
#define HAS_A_RUDE_NAME 86
#define IS_NEVER_THE_SAME 87    /* not in another process either */
#define MASKS_FILES_LATE 90     /* from the 30th launch on */
#define PRINTS_LATE 91
#define KEEPS_FILES_LATE 92
#define SIGNALS_LATE 93
#define MEETS_ITSELF 70         /* wrong where both inputs are one */
#define COPIES_AT_LOAD 100      /* fork, and both come back */
#define COPIES_IN_LAUNCH 101    /* each of them */
#define COPIES_IN_RELEASE 102
#define COPIES_LATE 103         /* one launch, behind the trial's */
#define HAS_A_TORN_NAME 110     /* texts */
#define HAS_A_LONG_NAME 111
#define IS_ANOTHER_IN_EACH_PROCESS 128
#define HAS_AN_ODD_DRIVER 112
#define HAS_AN_ODD_MEMORY 113
#define HELPS_ODDLY 114
#define TELLS_ODDLY 115
#define KEEPS_THE_QUESTION 120  /* beyond the call that it is given for */
#define KEEPS_THE_OPERATION 121
#define KEEPS_THE_ANSWER 122
#define KEEPS_THE_LAUNCH 123
#define WRITES_TO_THE_QUESTION 124
#define TIRES 125               /* wrong from the tenth launch of a kernel on */
#define EXPIRES 126             /* says no after a while */
#define MINDS_COMPANY 127       /* wrong while another thread launches */

#define SAYS_YES_WHILE_CLOSED 129       /* and no once it is open */
#define SAYS_NO_WHILE_CLOSED 130
#define SAYS_LESS_WHILE_CLOSED 131      /* a weaker level */
#define FALLS_BACK 132                  /* its epoch does, when it is described again */
#define ANSWERS_FALL_BACK 133           /* or in an answer */

#define MOMENT_NS 2000000l
#define MOST_FILES 1024
#define LINGER_SECONDS 1000      /* longer than any test may take */
#define LOST_BYTES ((size_t)1 << 20)
#define FAR_BYTES 5000
#define LATE 30
#define LITTLE_BYTES 127        /* more than the alignment leaves */
#define TENTH 10u
#define WHILE_NS INT64_C(50000000)

/* What it was given. */
static const tm_operation *_Atomic kept_question, *_Atomic kept_operation;
static const tm_answer *_Atomic kept_answer;
static const tm_launch *_Atomic kept_launch;
static _Atomic int launching;
static _Atomic int is_open;
static _Atomic int descriptions;
static _Atomic uint64_t epoch = 1;

static _Atomic uint32_t preparing;

static void *linger(void *unused) {
  sleep(LINGER_SECONDS);
  return unused;
}

/* Holds whatever its parent had open. */
static void leave_somebody(void) {
  if (fork() != 0) return;
  (void)linger(NULL);
  _exit(0);
}

__attribute__((constructor)) static void begin_slyly(void) {
  pthread_t thread;
  if (ZOO_SLIP == PRINTS_AT_LOAD) (void)!write(STDOUT_FILENO, "nine byte", 9);
  if (ZOO_SLIP == STARTS_AT_LOAD) (void)pthread_create(&thread, NULL, linger, NULL);
  if (ZOO_SLIP == FORKS_AT_LOAD) leave_somebody();
  if (ZOO_SLIP == COPIES_AT_LOAD) (void)!fork();
}

static void lose(size_t bytes) {
  static void *volatile lost;
  lost = malloc(bytes);
  if (lost != NULL) memset(lost, 1, bytes);
}

static tm_status init_slyly(const tm_host *host, tm_backend **out_backend) {
  if (ZOO_SLIP == LEAKS_LIVES) lose(8 * LOST_BYTES);
  if (ZOO_SLIP == FORKS_IN_INIT) leave_somebody();
  if (ZOO_SLIP == CLOSES_ALL)
    for (int i = 3; i < MOST_FILES; i++) close(i);
  return zoo_init(host, out_backend);
}

static tm_status open_slyly(tm_backend *backend, uint32_t index, tm_device **out_device) {
  (void)index;
  atomic_store(&is_open, 1);
  *out_device = (tm_device *)(void *)backend;
  return TM_OK;
}

static void close_slyly(tm_device *device) {
  (void)device;
  atomic_store(&is_open, 0);
}

static tm_status describe_slyly(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  static char name[32];
  static unsigned count;
  static tm_memory_space memory;
  static const tm_memory_space *const memories[] = { &memory };
  const tm_status status = zoo_device_info(backend, ZOO_SLIP == HAS_ENDLESS_DEVICES ? 0 : index, out_info);
  if (status != TM_OK || out_info->struct_size < sizeof *out_info) return status;
  memory = *zoo_memories[0];
  if (ZOO_SLIP == HAS_AN_ODD_MEMORY) memory.name = (tm_string)TM_STRING("\xff\xfe");
  else memory.offset_granule = memory.store_granule = 0;
  snprintf(name, sizeof name, "animal %u", count++);
  if (ZOO_SLIP == IS_NEVER_THE_SAME) snprintf(name, sizeof name, "animal %ld.%u", (long)getpid(), count);
  if (ZOO_SLIP == CHANGES_ITS_NAME || ZOO_SLIP == IS_NEVER_THE_SAME) out_info->name = (tm_string){ name, strlen(name) };
  if (ZOO_SLIP == IS_ANOTHER_IN_EACH_PROCESS) out_info->uuid = (tm_identity){ { 1, (uint8_t)getpid(), (uint8_t)(getpid() >> 8) } };
  if (ZOO_SLIP == HAS_A_RUDE_NAME) out_info->name = (tm_string)TM_STRING("\x1b[31mred");
  if (ZOO_SLIP == HAS_A_TORN_NAME) out_info->name = (tm_string)TM_STRING("caf\xc3");
  if (ZOO_SLIP == HAS_A_LONG_NAME) out_info->name = (tm_string){ "x", (uint64_t)1 << 40 };
  if (ZOO_SLIP == HAS_AN_ODD_DRIVER) out_info->driver_version = (tm_string)TM_STRING("1\n2");
  if (ZOO_SLIP == HAS_AN_ODD_MEMORY) out_info->memories = memories;
  if (ZOO_SLIP == HAS_NO_NAME) out_info->name = (tm_string){ NULL, 5 };
  if (ZOO_SLIP == HAS_NO_GRANULES) out_info->memories = memories;
  if (ZOO_SLIP == FALLS_BACK) out_info->epoch = atomic_fetch_add(&descriptions, 1) % 2 == 0 ? 2 : 1;
  if (ZOO_SLIP == OPENS_FOR_EVER) out_info->open_ns = UINT64_MAX;
  return status;
}

/* Of sums: whether it is open decides what it says. */
static void answer_by_state(tm_answer *answer) {
  const int is_closed = atomic_load(&is_open) == 0;
  const tm_answer no = { .struct_size = answer->struct_size, .reasons = TM_REASON_RESOURCES, .operand = TM_NO_OPERAND, .epoch = 1 };
  if (ZOO_SLIP == SAYS_YES_WHILE_CLOSED && !is_closed) *answer = no;
  if (ZOO_SLIP == SAYS_NO_WHILE_CLOSED && is_closed) *answer = no;
  if (ZOO_SLIP == SAYS_LESS_WHILE_CLOSED && is_closed) answer->level = TM_LEVEL_NATIVE - 1;
}

static void answer_slyly(const tm_operation *operation, tm_answer *answer) {
  const int is_yes = answer->level != TM_LEVEL_REFUSED, is_add = operation->op == TM_OP_ADD;
  const int is_constant = is_add && (operation->operands[0].flags & TM_OPERAND_CONSTANT) != 0;
  const int is_odd = ZOO_SLIP == ADDS_TO_CONSTANTS ? is_add && !is_constant : ZOO_SLIP == KNOWS_BETTER && operation->op == TM_OP_NEG;
  if (is_yes && is_odd)
    *answer = (tm_answer){ .struct_size = answer->struct_size, .reasons = TM_REASON_CONSTANT, .operand = 0, .epoch = 1 };
  if (is_yes && is_add) answer_by_state(answer);
  if (ZOO_SLIP == FALLS_BACK) answer->epoch = 0;
  if (ZOO_SLIP == ANSWERS_FALL_BACK) answer->epoch = atomic_load(&epoch);
  if (ZOO_SLIP == HAS_ODD_GROWTH && is_yes) {
    answer->numerics = TM_NUMERICS_N2;
    answer->numerics_bound = 1;
    answer->growth = 77;
    answer->accumulator = TM_FORMAT_F32;
  }
  if (ZOO_SLIP == WANTS_ABSURD_WORKSPACE && is_yes) answer->workspace_bytes = UINT64_MAX;
  if (ZOO_SLIP == TELLS_ENDLESSLY && is_yes) answer->text = (tm_string){ "yes", (uint64_t)1 << 40 };
  if (ZOO_SLIP == TELLS_ODDLY && is_yes) answer->text = (tm_string)TM_STRING("y\x1b[1mes");
  if (ZOO_SLIP == HAS_ODD_REASONS && !is_yes) answer->reasons = UINT32_MAX;
  if (ZOO_SLIP == NAMES_ODD_OPERAND && !is_yes) answer->operand = 77;
  if (ZOO_SLIP != PROPOSES_NONSENSE || is_yes) return;
  answer->change_count = 1;
  answer->changes[0] = (tm_change){ 77, 0, 0, 0, 0 };
}

/* A while after this was first looked at. */
static int is_late(void) {
  static _Atomic int64_t begin_ns;
  struct timespec now;
  int64_t none = 0;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
  (void)atomic_compare_exchange_strong(&begin_ns, &none, now_ns);
  return now_ns - atomic_load(&begin_ns) > WHILE_NS;
}

static tm_status query_slyly(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                             tm_answer *const *out_answers) {
  if (ZOO_SLIP == LEAVES_IN_QUERY) _exit(0);
  if (count != 0) atomic_store(&kept_question, operations[0]);
  if (ZOO_SLIP == WRITES_TO_THE_QUESTION && count != 0) ((tm_operation *)(uintptr_t)operations[0])->flags ^= TM_OPERATION_ALL_CONTIGUOUS;
  (void)zoo_query(backend, index, operations, count, out_answers);
  for (uint32_t i = 0; i < count; i++) {
    tm_answer answer = { .struct_size = sizeof answer };
    const uint32_t known = out_answers[i]->struct_size < sizeof answer ? out_answers[i]->struct_size : sizeof answer;
    memcpy(&answer, out_answers[i], known);
    if (ZOO_SLIP == EXPIRES && operations[i]->op == TM_OP_NEG && answer.level != TM_LEVEL_REFUSED && is_late())
      answer = (tm_answer){ .struct_size = answer.struct_size, .reasons = TM_REASON_RESOURCES, .operand = TM_NO_OPERAND, .epoch = 1 };
    answer_slyly(operations[i], &answer);
    memcpy(out_answers[i], &answer, known);
  }
  if (ZOO_SLIP == SAYS_IT_IS_LOST) return TM_ERROR_DEVICE_LOST;
  return ZOO_SLIP == HAS_ODD_STATUS ? 99 : TM_OK;
}

static tm_status prepare_slyly(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  const struct timespec moment = { 0, MOMENT_NS };
  const tm_host *host = zoo_backend_of(device)->host;
  if (ZOO_SLIP == CRIES_FOR_HELP) host->device_event(host->context, 0, TM_EVENT_DEVICE_LOST, 1);
  if (ZOO_SLIP == ANSWERS_FALL_BACK) {
    host->device_event(host->context, 0, TM_EVENT_EPOCH_MOVED, 3);
    atomic_store(&epoch, atomic_load(&epoch) == 3 ? 2 : 3);
  }
  if (ZOO_SLIP == LEAKS_PREPARES) lose(LOST_BYTES);
  if (ZOO_SLIP == KEEPS_THE_QUESTION && atomic_load(&kept_question)->op == 0) return TM_ERROR_INTERNAL;
  atomic_store(&kept_operation, operation);
  atomic_store(&kept_answer, answer);
  if (ZOO_SLIP == LEAVES_IN_COMPANY) {
    if (atomic_fetch_add(&preparing, 1) != 0) _exit(0);
    nanosleep(&moment, NULL);
    atomic_fetch_sub(&preparing, 1);
  }
  return zoo_prepare(device, operation, answer, out_kernel);
}

static void *address(const tm_launch *launch, uint32_t index) {
  return (void *)((uintptr_t)launch->bindings[index].buffer + launch->bindings[index].offset);
}

/* What it makes of the right sum. */
static float sum_slyly(float sum) {
  const float least = FLT_MIN;
  if (ZOO_SLIP == ADDS_TO_CONSTANTS) return sum + 1;
  if (ZOO_SLIP == SATURATES && isinf(sum)) return sum < 0 ? -FLT_MAX : FLT_MAX;
  if (ZOO_SLIP == FLUSHES && fabsf(sum) < least) return copysignf(0, sum);
  return ZOO_SLIP == LOSES_SIGNS && sum == 0 ? 0 : sum;
}

/* Leaves no trace where it may. */
static void trespass(const tm_launch *launch) {
  volatile unsigned char *input = address(launch, 0), *output = address(launch, launch->binding_count - 1);
  const uint64_t bytes = launch->kernel->count * sizeof(float);
  if (bytes == 0) return;
  if (ZOO_SLIP == TOUCHES_INPUTS) input[0] = input[0];
  if (ZOO_SLIP == OVERREADS) (void)input[bytes + FAR_BYTES];
  if (ZOO_SLIP == OVERREADS_LITTLE) (void)input[bytes + LITTLE_BYTES];
  if (ZOO_SLIP == UNDERREADS) (void)input[-FAR_BYTES];
  if (ZOO_SLIP == OVERRUNS) output[bytes + FAR_BYTES] = 1;
}

static void unmask(void) {
#if defined(__x86_64__)
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() & ~0x80u);
#else
  (void)alarm(1000);
#endif
}

static void take_what_is_not_its_own(void) {
  struct rlimit limit;
  char input[4];
  if (ZOO_SLIP == UNMASKS) unmask();
  if (ZOO_SLIP == SETS_AN_ALARM) (void)alarm(1000);
  if (ZOO_SLIP == LIMITS_FILES && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur--;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (ZOO_SLIP == RENAMES_ITS_CALLER) (void)prctl(PR_SET_NAME, "sly");
  if (ZOO_SLIP == READS_INPUT) (void)!read(STDIN_FILENO, input, sizeof input);
}

static void change_late(void) {
  static _Atomic unsigned launches;
  const unsigned before = atomic_fetch_add(&launches, 1);
  if (ZOO_SLIP == COPIES_LATE && before == LATE) (void)!fork();
  if (before < LATE) return;
  if (ZOO_SLIP == MASKS_FILES_LATE) (void)umask(0);
  if (ZOO_SLIP == PRINTS_LATE) (void)!write(STDOUT_FILENO, "nine byte", 9);
  if (ZOO_SLIP == KEEPS_FILES_LATE) (void)!dup(STDIN_FILENO);
  if (ZOO_SLIP == SIGNALS_LATE) (void)signal(SIGUSR2, SIG_IGN);
}

/* Reads what was given to an earlier call. */
static int finds_nothing(const tm_launch *launch) {
  const tm_launch *before = atomic_exchange(&kept_launch, launch);
  if (ZOO_SLIP == KEEPS_THE_OPERATION) return atomic_load(&kept_operation)->op == 0;
  if (ZOO_SLIP == KEEPS_THE_ANSWER) return atomic_load(&kept_answer)->level == 0;
  return ZOO_SLIP == KEEPS_THE_LAUNCH && before != NULL && before->kernel == NULL;
}

static tm_status launch_slyly(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  const tm_host *host = zoo_backend_of(device)->host;
  if (ZOO_SLIP == LEAVES_IN_LAUNCH) _exit(0);
  if (ZOO_SLIP == COPIES_IN_LAUNCH) (void)!fork();
  if (finds_nothing(launch)) return TM_ERROR_INTERNAL;
  const int had_company = atomic_fetch_add(&launching, 1) != 0;
  if (ZOO_SLIP == MINDS_COMPANY) (void)nanosleep(&(struct timespec){ 0, MOMENT_NS / 10 }, NULL);        /* or nobody comes */
  if (ZOO_SLIP == ENDS_ITS_THREAD) pthread_exit(NULL);
  trespass(launch);
  change_late();
  take_what_is_not_its_own();
  if (ZOO_SLIP == LEAKS_LAUNCHES) lose(LOST_BYTES / 64);
  if (ZOO_SLIP == MAPS_IN_LAUNCHES) (void)mmap(NULL, LOST_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (ZOO_SLIP == ANNOUNCES_NOBODY) host->device_event(host->context, 9999, TM_EVENT_EPOCH_MOVED, 2);
  const tm_status status = zoo_launch(device, launch, out_ticket);
  const int is_odd = (atomic_fetch_sub(&launching, 1) != 1 || had_company) && ZOO_SLIP == MINDS_COMPANY;
  const int is_tired = ZOO_SLIP == TIRES && ++launch->kernel->reserved >= TENTH;
  if ((is_odd || is_tired) && launch->kernel->count != 0) ((float *)address(launch, launch->binding_count - 1))[0] += 1;
  if (ZOO_SLIP == HAS_FAR_TICKETS && status == TM_OK) *out_ticket = (tm_ticket){ 99, 0, 1 };
  if (status != TM_OK || launch->kernel->op != TM_OP_ADD) return status;
  float *y = address(launch, launch->binding_count - 1);
  if (ZOO_SLIP == MEETS_ITSELF && address(launch, 0) == address(launch, 1) && launch->kernel->count != 0) y[0] += 1;
  for (uint64_t i = 0; i < launch->kernel->count; i++) y[i] = sum_slyly(y[i]);
  return status;
}

static void release_slyly(tm_device *device, tm_kernel *kernel) {
  zoo_release(device, kernel);
  if (ZOO_SLIP == COPIES_IN_RELEASE) (void)!fork();
}

static const tm_option loud = {
  sizeof loud, TM_OPTION_SWITCH, TM_STRING("loud"), TM_STRING("0"), TM_STRING("Rings the bell (\a) when it is done."),
};
static const tm_option *const options[] = { &loud };

static const tm_accelerator_backend_plugin table = {
  .struct_size = sizeof table, .option_count = ZOO_SLIP == HELPS_ODDLY, .options = options,
  .init = init_slyly, .shutdown = zoo_shutdown, .open = open_slyly, .close = close_slyly, .device_info = describe_slyly, .query = query_slyly,
  .prepare = prepare_slyly, .release = release_slyly, .launch = launch_slyly,
};

TM_DEFINE_PLUGIN(ZOO_NAME, "1", "zoo", table)
