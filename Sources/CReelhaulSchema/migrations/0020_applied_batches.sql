-- All commands of the batch were applied or refused, and runs may still be stopping.
alter table operation_batch add is_applied boolean not null default false;
