#pragma once

/// What a name stands for at this moment: numeric addresses with spaces between them, copied into `addresses`. Returns 0
/// for names that the system shall resolve. Called on any thread.
typedef int (*rh_resolver)(const char *name, char *addresses, int capacity);

/// Puts `resolver` before the system's getaddrinfo, for every library of this process.
void rh_set_resolver(rh_resolver resolver);
