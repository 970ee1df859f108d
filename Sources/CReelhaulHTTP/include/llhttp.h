#pragma once
// The header of Debian's package node-llhttp, which is not on the search path.
#define LLHTTP_STRICT_MODE 1
#include <../share/include/llhttp/llhttp.h>
