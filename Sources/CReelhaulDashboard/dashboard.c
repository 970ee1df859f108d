#include "CReelhaulDashboard.h"

// #embed is C23; clang offers it in every mode and says so.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const char html[] = {
#embed "page/index.html"
};
static const char css[] = {
#embed "page/dashboard.css"
};
static const char js[] = {
#embed "page/dashboard.js"
};

reelhaul_asset reelhaul_dashboard_html(void) { return (reelhaul_asset){html, sizeof html}; }
reelhaul_asset reelhaul_dashboard_css(void) { return (reelhaul_asset){css, sizeof css}; }
reelhaul_asset reelhaul_dashboard_js(void) { return (reelhaul_asset){js, sizeof js}; }
