-- Clean-ups by what a worker needs for them: those that nobody can do, such as those of a storage that was given up, are not
-- looked at.
--
-- A destination of somebody's own kind may be any text, and a name that no storage can have is none.
update cleanup set storage = '' where storage !~ '^[A-Za-z0-9._-]{0,63}$';
update cleanup set source_storage = '' where source_storage !~ '^[A-Za-z0-9._-]{0,63}$';

create index cleanup_line on cleanup (kind, storage, source_storage, run_at);
drop index cleanup_due;
