#include "CReelhaulSchema.h"

// #embed is C23; clang offers it in every mode and says so.
#pragma clang diagnostic ignored "-Wc23-extensions"

// Each migration is a folder of files in reading order.
static const char schema[] = {
#embed "0001_schema/01_tables.sql"
    ,
#embed "0001_schema/02_counters.sql"
    ,
#embed "0001_schema/03_lanes.sql"
    ,
#embed "0001_schema/04_submit.sql"
    ,
#embed "0001_schema/05_control.sql"
    ,
#embed "0001_schema/06_claim.sql"
    ,
#embed "0001_schema/07_run.sql"
    ,
#embed "0001_schema/08_settle.sql"
    ,
#embed "0001_schema/09_sweep.sql"
    ,
#embed "0001_schema/10_reading.sql"
};

static const rh_migration migrations[] = {
    {1, "schema", schema, sizeof schema},
};
const rh_migration *const rh_migrations = migrations;
const size_t rh_migration_count = sizeof migrations / sizeof migrations[0];
