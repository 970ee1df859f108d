#include "CReelhaulSchema.h"

// #embed is C23; clang offers it in every mode and says so.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const char tables[] = {
#embed "migrations/0001_tables.sql"
};
static const char envelope[] = {
#embed "migrations/0002_envelope.sql"
};

static const char two_storages[] = {
#embed "migrations/0003_two_storages.sql"
};
static const char cleanup[] = {
#embed "migrations/0004_cleanup.sql"
};
static const char declared_limits[] = {
#embed "migrations/0005_declared_limits.sql"
};

static const char former_names[] = {
#embed "migrations/0006_former_names.sql"
};

static const char losses[] = {
#embed "migrations/0007_losses.sql"
};

static const char event_details[] = {
#embed "migrations/0008_event_details.sql"
};

static const char counts[] = {
#embed "migrations/0009_counts.sql"
};

static const char operations[] = {
#embed "migrations/0010_operations.sql"
};

static const char tokens[] = {
#embed "migrations/0011_tokens.sql"
};

static const char hooks[] = {
#embed "migrations/0012_hooks.sql"
};

static const char hook_hosts[] = {
#embed "migrations/0013_hook_hosts.sql"
};
static const char unblocking[] = {
#embed "migrations/0014_unblocking.sql"
};
static const char learned_limits[] = {
#embed "migrations/0015_learned_limits.sql"
};
static const char cleanup_lines[] = {
#embed "migrations/0016_cleanup_lines.sql"
};

static const char cleanup_task[] = {
#embed "migrations/0017_cleanup_task.sql"
};

static const char count_identity[] = {
#embed "migrations/0018_count_identity.sql"
};

static const char former_hooks[] = {
#embed "migrations/0019_former_hooks.sql"
};

static const char applied_batches[] = {
#embed "migrations/0020_applied_batches.sql"
};

static const char former_hook_key[] = {
#embed "migrations/0021_former_hook_key.sql"
};

static const char hooks_due[] = {
#embed "migrations/0022_hooks_due.sql"
};

static const char open_hooks[] = {
#embed "migrations/0023_open_hooks.sql"
};

static const char cleanup_of_sent[] = {
#embed "migrations/0024_cleanup_of_sent.sql"
};

static const char hook_queue[] = {
#embed "migrations/0025_hook_queue.sql"
};
static const char server_outage[] = {
#embed "migrations/0026_server_outage.sql"
};

static const rh_migration migrations[] = {
    {1, "schema", tables, sizeof tables},
    {2, "envelope", envelope, sizeof envelope},
    {3, "two_storages", two_storages, sizeof two_storages},
    {4, "cleanup", cleanup, sizeof cleanup},
    {5, "declared_limits", declared_limits, sizeof declared_limits},
    {6, "former_names", former_names, sizeof former_names},
    {7, "losses", losses, sizeof losses},
    {8, "event_details", event_details, sizeof event_details},
    {9, "counts", counts, sizeof counts},
    {10, "operations", operations, sizeof operations},
    {11, "tokens", tokens, sizeof tokens},
    {12, "hooks", hooks, sizeof hooks},
    {13, "hook_hosts", hook_hosts, sizeof hook_hosts},
    {14, "unblocking", unblocking, sizeof unblocking},
    {15, "learned_limits", learned_limits, sizeof learned_limits},
    {16, "cleanup_lines", cleanup_lines, sizeof cleanup_lines},
    {17, "cleanup_task", cleanup_task, sizeof cleanup_task},
    {18, "count_identity", count_identity, sizeof count_identity},
    {19, "former_hooks", former_hooks, sizeof former_hooks},
    {20, "applied_batches", applied_batches, sizeof applied_batches},
    {21, "former_hook_key", former_hook_key, sizeof former_hook_key},
    {22, "hooks_due", hooks_due, sizeof hooks_due},
    {23, "open_hooks", open_hooks, sizeof open_hooks},
    {24, "cleanup_of_sent", cleanup_of_sent, sizeof cleanup_of_sent},
    {25, "hook_queue", hook_queue, sizeof hook_queue},
    {26, "server_outage", server_outage, sizeof server_outage},
};
const rh_migration *const rh_migrations = migrations;
const size_t rh_migration_count = sizeof migrations / sizeof migrations[0];

// In reading order.
static const char routines[] = {
#embed "routines/01_counters.sql"
    ,
#embed "routines/02_lanes.sql"
    ,
#embed "routines/03_submit.sql"
    ,
#embed "routines/04_control.sql"
    ,
#embed "routines/05_claim.sql"
    ,
#embed "routines/05_claim_tasks.sql"
    ,
#embed "routines/06_run.sql"
    ,
#embed "routines/07_settle.sql"
    ,
#embed "routines/08_sweep.sql"
    ,
#embed "routines/09_reading.sql"
    ,
#embed "routines/10_counts.sql"
    ,
#embed "routines/11_listing.sql"
    ,
#embed "routines/11_operations.sql"
    ,
#embed "routines/12_fleet.sql"
    ,
#embed "routines/13_audit.sql"
    ,
#embed "routines/12_tokens.sql"
    ,
#embed "routines/13_hooks.sql"
    ,
#embed "routines/90_version_before.sql"
    ,
#embed "routines/99_plans.sql"
};
const char *const rh_routines = routines;
const size_t rh_routines_length = sizeof routines;
