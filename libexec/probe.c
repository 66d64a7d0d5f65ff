/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensormorph-probe FILE - loads a plugin and asks for its header, in a process that may crash or hang instead of the
 * application.  Prints "ok" or the reason why it cannot be used; ends without running exit handlers of the plugin.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tensormorph/plugin.h"

static int say(const char *path, const char *reason) {
  if (reason == NULL)
    puts("ok");
  else if (strncmp(reason, path, strlen(path)) == 0)
    puts(reason);
  else
    printf("%s: %s\n", path, reason);
  fflush(stdout);
  return reason != NULL;
}

static int probe(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return say(path, dlerror());
  void *symbol = dlsym(library, "tm_plugin_query");
  if (symbol == NULL) return say(path, "no plugin: it does not export tm_plugin_query");
  tm_plugin_query_fn query = NULL;
  memcpy(&query, &symbol, sizeof query);
  const tm_plugin_header *header = query(TM_ABI_MAJOR, TM_ABI_MINOR);
  /* Reading the first and last field finds a header that points nowhere; what it says is judged by the library. */
  if (header != NULL && header->magic == TM_PLUGIN_MAGIC && header->header_size == sizeof *header && header->traits != NULL &&
      header->trait_count > 0 && header->traits[0].id.length > 4096)
    return say(path, "its first trait is no sound string");
  return say(path, NULL);
}

int main(int argument_count, char **arguments) {
  if (argument_count != 2) {
    fputs("usage: tensormorph-probe FILE\n", stderr);
    return 2;
  }
  _exit(probe(arguments[1]));
}
