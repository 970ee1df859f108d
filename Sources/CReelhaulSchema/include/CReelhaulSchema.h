#pragma once
#include <stddef.h>

/// One numbered migration: its SQL in UTF-8, not NUL-terminated.
typedef struct {
  int number;
  const char *name;
  const char *sql;
  size_t length;
} rh_migration;

/// All migrations, in the order of their numbers. They make and change the tables.
extern const rh_migration *const rh_migrations;
extern const size_t rh_migration_count;

/// The present version of all functions, views and triggers, in UTF-8, not NUL-terminated.
extern const char *const rh_routines;
extern const size_t rh_routines_length;
