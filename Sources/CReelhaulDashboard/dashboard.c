#include "CReelhaulDashboard.h"

// #embed is C23; clang offers it in every mode and says so.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const char index_html[] = {
#embed "page/index.html"
};
static const char actions_js[] = {
#embed "page/actions.js"
};
static const char api_js[] = {
#embed "page/api.js"
};
static const char charts_js[] = {
#embed "page/charts.js"
};
static const char command_js[] = {
#embed "page/command.js"
};
static const char dom_js[] = {
#embed "page/dom.js"
};
static const char fleet_js[] = {
#embed "page/fleet.js"
};
static const char format_js[] = {
#embed "page/format.js"
};
static const char icon_svg[] = {
#embed "page/icon.svg"
};
static const char live_js[] = {
#embed "page/live.js"
};
static const char main_js[] = {
#embed "page/main.js"
};
static const char operations_js[] = {
#embed "page/operations.js"
};
static const char overview_js[] = {
#embed "page/overview.js"
};
static const char palette_js[] = {
#embed "page/palette.js"
};
static const char route_js[] = {
#embed "page/route.js"
};
static const char rows_js[] = {
#embed "page/rows.js"
};
static const char signin_js[] = {
#embed "page/signin.js"
};
static const char style_css[] = {
#embed "page/style.css"
};
static const char submit_js[] = {
#embed "page/submit.js"
};
static const char task_js[] = {
#embed "page/task.js"
};
static const char tasks_js[] = {
#embed "page/tasks.js"
};
static const char theme_js[] = {
#embed "page/theme.js"
};
static const char trouble_js[] = {
#embed "page/trouble.js"
};
static const char ui_js[] = {
#embed "page/ui.js"
};

#define ASSET(path, type, bytes) {path, type "; charset=utf-8", bytes, sizeof bytes}

// A file of the page is a row here, and a line above.
static const reelhaul_asset assets[] = {
    ASSET("/", "text/html", index_html),
    ASSET("/assets/actions.js", "text/javascript", actions_js),
    ASSET("/assets/api.js", "text/javascript", api_js),
    ASSET("/assets/charts.js", "text/javascript", charts_js),
    ASSET("/assets/command.js", "text/javascript", command_js),
    ASSET("/assets/dom.js", "text/javascript", dom_js),
    ASSET("/assets/fleet.js", "text/javascript", fleet_js),
    ASSET("/assets/format.js", "text/javascript", format_js),
    ASSET("/assets/icon.svg", "image/svg+xml", icon_svg),
    ASSET("/assets/live.js", "text/javascript", live_js),
    ASSET("/assets/main.js", "text/javascript", main_js),
    ASSET("/assets/operations.js", "text/javascript", operations_js),
    ASSET("/assets/overview.js", "text/javascript", overview_js),
    ASSET("/assets/palette.js", "text/javascript", palette_js),
    ASSET("/assets/route.js", "text/javascript", route_js),
    ASSET("/assets/rows.js", "text/javascript", rows_js),
    ASSET("/assets/signin.js", "text/javascript", signin_js),
    ASSET("/assets/style.css", "text/css", style_css),
    ASSET("/assets/submit.js", "text/javascript", submit_js),
    ASSET("/assets/task.js", "text/javascript", task_js),
    ASSET("/assets/tasks.js", "text/javascript", tasks_js),
    ASSET("/assets/theme.js", "text/javascript", theme_js),
    ASSET("/assets/trouble.js", "text/javascript", trouble_js),
    ASSET("/assets/ui.js", "text/javascript", ui_js),
};

const reelhaul_asset *reelhaul_dashboard_assets(size_t *count) {
  *count = sizeof assets / sizeof assets[0];
  return assets;
}
