// Debian's sources of llhttp (package node-llhttp). In strict mode a chunk must end as the standard says.
#define LLHTTP_STRICT_MODE 1
#include <../share/llhttp/http.c>
