-- How many runs in a row ended with their worker and without a checkpoint of their own. Too many fail the task: it may be
-- what kills the workers.
alter table task add losses smallint not null default 0;
