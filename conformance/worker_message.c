/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/worker_message.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x746d2d7265706f72)

enum { MESSAGE_COUNTS = 1, MESSAGE_CLAIM, MESSAGE_CHECK };

/* ---- sending ---- */

static bool send_message(int to, const worker_message *m) {
  for (size_t done = 0; done < sizeof *m;) {
    const ssize_t wrote = write(to, (const char *)m + done, sizeof *m - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    done += (size_t)wrote;
  }
  return true;
}

static bool send_claim(int to, worker_message *m, const report_claim *claim) {
  m->kind = MESSAGE_CLAIM;
  m->of.claim = *claim;
  m->op = claim->which.row->op;
  m->failed_op = claim->failed_which.row != NULL ? claim->failed_which.row->op : TM_OP_NONE;
  m->of.claim.which.row = m->of.claim.failed_which.row = NULL;
  return send_message(to, m);
}

worker_line worker_line_of(int to) {
  struct stat about;
  if (fstat(to, &about) != 0) return (worker_line){ -1, 0, 0 };
  return (worker_line){ to, (uint64_t)about.st_dev, (uint64_t)about.st_ino };
}

static bool is_whole(const worker_line *line) {
  const worker_line now = worker_line_of(line->to);
  return now.to >= 0 && now.device == line->device && now.node == line->node;
}

bool worker_message_send_report(void *context, const report *r) {
  const worker_line *line = context;
  const int to = line->to;
  worker_message m;
  if (!is_whole(line)) return false;
  memset(&m, 0, sizeof m);
  m.magic = MAGIC;
  m.sender = (int32_t)getpid();
  m.kind = MESSAGE_COUNTS;
  m.question_count = r->question_count;
  m.refusal_count = r->refusal_count;
  m.unchecked_change_count = r->unchecked_change_count;
  m.way_count = r->way_count;
  m.withdrawn_count = r->withdrawn_count;
  if (r->question_count != 0 && !send_message(to, &m)) return false;
  m.question_count = m.refusal_count = m.unchecked_change_count = m.way_count = m.withdrawn_count = 0;
  for (uint32_t i = 0; i < r->count; i++)
    if (!send_claim(to, &m, &r->claims[i])) return false;
  for (uint32_t i = 0; i < r->check_count; i++) {
    m.kind = MESSAGE_CHECK;
    m.of.check = r->checks[i];
    if (!send_message(to, &m)) return false;
  }
  return true;
}

/* ---- taking ---- */

bool worker_message_is_from(const worker_message *m, int32_t process) { return m->magic != MAGIC || m->sender == process; }

static bool is_text(const char *text, size_t capacity) { return memchr(text, '\0', capacity) != NULL; }

static bool is_combination(combination *which, uint32_t op) {
  which->row = tm_op_find(op);
  return which->row != NULL && which->inputs >= which->row->input_min && which->inputs <= which->row->input_max &&
         which->inputs < CASE_MAX_OPERANDS;
}

static bool is_claim(worker_message *m) {
  report_claim *claim = &m->of.claim;
  if (!is_combination(&claim->which, m->op) || !is_text(claim->failure, sizeof claim->failure)) return false;
  if (claim->failure_count > claim->case_count) return false;
  return m->failed_op == TM_OP_NONE ? claim->failure_count == 0 : is_combination(&claim->failed_which, m->failed_op);
}

static bool is_check(const report_check *check) {
  return is_text(check->name, sizeof check->name) && is_text(check->text, sizeof check->text) &&
         is_text(check->note, sizeof check->note);
}

bool worker_message_take(report *r, worker_message *m) {
  if (m->magic != MAGIC || m->kind < MESSAGE_COUNTS || m->kind > MESSAGE_CHECK) return false;
  if (m->kind == MESSAGE_CLAIM && !is_claim(m)) return false;
  if (m->kind == MESSAGE_CHECK && !is_check(&m->of.check)) return false;
  r->question_count += m->question_count;
  r->refusal_count += m->refusal_count;
  r->unchecked_change_count += m->unchecked_change_count;
  r->way_count += m->way_count;
  r->withdrawn_count += m->withdrawn_count;
  if (m->kind == MESSAGE_CLAIM) (void)report_add(r, &m->of.claim);
  if (m->kind == MESSAGE_CHECK) (void)report_add_check(r, &m->of.check);
  return true;
}
