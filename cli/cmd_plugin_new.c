/* SPDX-License-Identifier: Apache-2.0 */
/* A new plugin's project: the files of the template, with its name in the place of @NAME@. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "companion.h"
#include "complain.h"
#include "json_writer.h"
#include "plugin_command.h"
#include "printable_text.h"

#define TEMPLATE "plugin-template"
#define QUEUE_TEMPLATE "queue-template"
#define PLACEHOLDER "@NAME@"
#define SOURCE "backend.c"      /* becomes NAME.c */
#define LONGEST_NAME 48u
#define LONGEST_PATH 4096
#define LONGEST_FILE 262144

/* ---- names ---- */

/* The entry of a plugin wants lower_snake; functions of the file begin with it. */
static int check_name(const char *name) {
  const size_t length = strlen(name);
  bool         good = length > 0 && length <= LONGEST_NAME && name[0] >= 'a' && name[0] <= 'z';
  for (size_t i = 0; good && i < length; i++)
    good = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9') || name[i] == '_';
  if (!good)
    return tm_complain_as(
        TM_EXIT_USAGE, "\"%.100s\" is no name for a plugin: lower case letters, digits and underscores, a letter first, at most %u",
        name, LONGEST_NAME);
  return TM_EXIT_OK;
}

/* Of two backends of one name the later one would be used under another. */
static int check_taken(tm_invocation *invocation, const char *name) {
  tm_context            *context = NULL;
  tm_backend_description backend = { .struct_size = sizeof backend };
  bool                   is_taken = strcmp(name, "tm") == 0;    /* the beginning of the library's own functions */
  const int              exit_code = tm_plugin_session_open(invocation, &context);
  if (exit_code != TM_EXIT_OK) return exit_code;
  for (uint32_t i = 0; !is_taken && tm_backend_describe(context, i, &backend) == TM_OK; i++)
    is_taken = strcmp(backend.name, name) == 0 && strcmp(backend.origin, "built-in") == 0;
  tm_context_destroy(context);
  return is_taken ? tm_complain_as(TM_EXIT_USAGE, "\"%s\" is taken by the library itself", name) : TM_EXIT_OK;
}

/* ---- files ---- */

static int complain_file(const char *path) { return tm_complain_as(TM_EXIT_TROUBLE, "%s: %s", path, strerror(errno)); }

static char *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  char *text = file == NULL ? NULL : malloc(LONGEST_FILE + 1);
  if (text != NULL) {
    const size_t length = fread(text, 1, LONGEST_FILE, file);
    text[length] = '\0';
  }
  if (file != NULL) fclose(file);
  return text;
}

static bool write_replaced(FILE *to, const char *text, const char *name) {
  for (const char *next; (next = strstr(text, PLACEHOLDER)) != NULL; text = next + strlen(PLACEHOLDER))
    if (fwrite(text, 1, (size_t)(next - text), to) != (size_t)(next - text) || fputs(name, to) == EOF) return false;
  return fputs(text, to) != EOF;
}

static int copy_file(const char *from, const char *to, const char *name) {
  char *text = read_file(from);
  if (text == NULL) return complain_file(from);
  FILE *file = fopen(to, "wbx");
  bool  good = file != NULL && write_replaced(file, text, name);
  if (file != NULL && fclose(file) != 0) good = false;
  free(text);
  return good ? TM_EXIT_OK : complain_file(to);
}

static int copy_template(const char *from, const char *to, const char *name) {
  DIR *folder = opendir(from);
  int  exit_code = folder == NULL ? complain_file(from) : TM_EXIT_OK;
  if (folder == NULL) return exit_code;
  for (const struct dirent *entry; exit_code == TM_EXIT_OK && (entry = readdir(folder)) != NULL;) {
    char source[LONGEST_PATH + 256], target[LONGEST_PATH + 256];
    if (entry->d_name[0] == '.') continue;
    const bool is_source = strcmp(entry->d_name, SOURCE) == 0;
    snprintf(source, sizeof source, "%s/%s", from, entry->d_name);
    snprintf(target, sizeof target, "%s/%s%s", to, is_source ? name : entry->d_name, is_source ? ".c" : "");
    exit_code = copy_file(source, target, name);
  }
  closedir(folder);
  return exit_code;
}

static int find_template(const char *name, char *path, size_t capacity) {
  static const char *const places[] = { "../share/tensormorph", "../../share/tensormorph", NULL };
  if (tm_companion_find(places, name, path, capacity)) return TM_EXIT_OK;
  return tm_complain_as(TM_EXIT_TROUBLE, "the template of plugins is not installed beside this command");
}

static void print_json(tm_invocation *invocation, const char *name, const char *folder) {
  char           source[LONGEST_PATH + LONGEST_NAME + 8];
  tm_json_writer json;
  snprintf(source, sizeof source, "%s/%s.c", folder, name);
  tm_json_init(&json, invocation->output);
  tm_json_begin_object(&json, NULL, false);
  tm_json_text(&json, "schema", "tensormorph.plugin-new/1");
  tm_json_text(&json, "name", name);
  tm_json_text(&json, "folder", folder);
  tm_json_text(&json, "source", source);
  tm_json_end_object(&json);
  tm_json_finish(&json);
}

static void say_written(tm_invocation *invocation, const char *folder) {
  static const char *const between[] = { "wrote ", ": a backend that works, with a test; README.md there says how to go on\n  cmake -S ",
                                         " -B ", "/build && cmake --build ", "/build && ctest --test-dir " };
  for (size_t i = 0; i < sizeof between / sizeof between[0]; i++) {
    tm_output_text(invocation->output, between[i]);
    tm_printable_print(invocation->output, folder);
  }
  tm_output_text(invocation->output, "/build\n");
}

int tm_plugin_new(tm_invocation *invocation, const char *name) {
  char        template_folder[LONGEST_PATH];
  const char *given = tm_arguments_value(&invocation->arguments, "folder");
  const char *folder = given != NULL ? given : name;
  const bool  has_queue = tm_arguments_has(&invocation->arguments, "queue");
  int         exit_code = check_name(name);
  if (exit_code == TM_EXIT_OK) exit_code = check_taken(invocation, name);
  if (exit_code == TM_EXIT_OK && strlen(folder) >= LONGEST_PATH)
    exit_code = tm_complain_as(TM_EXIT_USAGE, "the folder's name is too long");
  if (exit_code == TM_EXIT_OK)
    exit_code = find_template(has_queue ? QUEUE_TEMPLATE : TEMPLATE, template_folder, sizeof template_folder);
  if (exit_code != TM_EXIT_OK) return exit_code;
  if (mkdir(folder, 0777) != 0) {
    if (errno != EEXIST) return complain_file(folder);
    return tm_complain_as(TM_EXIT_USAGE, "%s exists already; nothing was written", folder);
  }
  exit_code = copy_template(template_folder, folder, name);
  if (exit_code == TM_EXIT_OK && invocation->preferences.json) print_json(invocation, name, folder);
  else if (exit_code == TM_EXIT_OK && !invocation->preferences.quiet) say_written(invocation, folder);
  return exit_code;
}
