-- Clean-ups by what a worker needs for them: of those that nobody can do, such as those of a storage that was given up, no
-- more than one is looked at.
create index cleanup_line on cleanup (kind, storage, source_storage, run_at);
drop index cleanup_due;
