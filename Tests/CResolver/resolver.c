// getaddrinfo of the test process: names that a test made up, and the system's for all others. A symbol of the executable
// goes before the C library's, so libcurl's own resolver threads come here.
#define _GNU_SOURCE
#include "resolver.h"

#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>
#include <string.h>

typedef int (*getaddrinfo_function)(
    const char *, const char *, const struct addrinfo *, struct addrinfo **);

static _Atomic(rh_resolver) current;

void rh_set_resolver(rh_resolver resolver) { current = resolver; }

int getaddrinfo(
    const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **result) {
  getaddrinfo_function system = (getaddrinfo_function)dlsym(RTLD_NEXT, "getaddrinfo");
  rh_resolver resolver = current;
  char addresses[512] = "";
  if (!name || !resolver || !resolver(name, addresses, sizeof addresses)) {
    return system(name, service, hints, result);
  }
  // The system makes the list, from one address at a time: so it can be freed as any other.
  int failure = EAI_NONAME;
  struct addrinfo **end = result;
  *result = NULL;
  for (char *rest = addresses, *address; (address = strtok_r(NULL, " ", &rest));) {
    int code = system(address, service, hints, end);
    if (code != 0) failure = code;
    while (*end) end = &(*end)->ai_next;
  }
  return *result ? 0 : failure;
}
