#pragma once
#include <stddef.h>

// A file of the dashboard, embedded.
typedef struct {
  // Where it is served, such as "/assets/main.js".
  const char *path;
  // Its media type.
  const char *type;
  const char *bytes;
  size_t count;
} reelhaul_asset;

// All files of the dashboard. They live as long as the process.
const reelhaul_asset *reelhaul_dashboard_assets(size_t *count);
