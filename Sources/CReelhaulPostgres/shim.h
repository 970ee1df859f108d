#pragma once
#include <libpq-fe.h>

// The fields of PQresultErrorField as functions: the header defines the codes as character macros, which Swift does
// not import.
static inline const char *rh_pg_error_sqlstate(const PGresult *r) { return PQresultErrorField(r, 'C'); }
static inline const char *rh_pg_error_severity(const PGresult *r) { return PQresultErrorField(r, 'V'); }
static inline const char *rh_pg_error_message(const PGresult *r) { return PQresultErrorField(r, 'M'); }
static inline const char *rh_pg_error_detail(const PGresult *r) { return PQresultErrorField(r, 'D'); }
static inline const char *rh_pg_error_hint(const PGresult *r) { return PQresultErrorField(r, 'H'); }
static inline const char *rh_pg_error_constraint(const PGresult *r) { return PQresultErrorField(r, 'n'); }
