-- What else `set plan_cache_mode = force_generic_plan` stands for: a function that says so is planned once a session, and
-- for its indexes. What the statistics say of tables that fill and empty within seconds is of no use. What is off counts
-- as a cost, by which every plan would seem worth compiling, each time it runs: so that is off, too. The mark is a setting
-- that any owner of a function may give it; one of our own would need a superuser.
--
-- The settings are those of the functions and not of the sessions: behind PgBouncer a session has many clients, and
-- `psql` has the plans of the workers. This file is the last, so that it finds all functions.
do $do$
declare
  planned regprocedure;
begin
  for planned in
    select oid from pg_proc
     where pronamespace = current_schema()::regnamespace and proconfig @> '{plan_cache_mode=force_generic_plan}'
  loop
    execute format(
      'alter function %s
         set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set jit = off', planned);
  end loop;
end $do$;
