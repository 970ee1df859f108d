#include "CMigrations.h"

static const char schema[] = {
#embed "0001_schema.sql"
};

const rh_migration rh_migrations[] = {
    {1, "schema", schema, sizeof schema},
};
const size_t rh_migration_count = sizeof rh_migrations / sizeof rh_migrations[0];
