-- For the ids of removed tasks, which are remembered as long as a clean-up waits.
create index cleanup_task on cleanup (task_id);
