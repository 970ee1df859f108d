#pragma once
#include <stddef.h>

// A file of the dashboard, embedded.
typedef struct {
  const char *bytes;
  size_t count;
} reelhaul_asset;

reelhaul_asset reelhaul_dashboard_html(void);
reelhaul_asset reelhaul_dashboard_css(void);
reelhaul_asset reelhaul_dashboard_js(void);
