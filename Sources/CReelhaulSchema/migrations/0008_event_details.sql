-- What the events of a row need besides the ids of their tasks, where the statement that changed the tasks knows it: the
-- relay then does not read the tasks. All arrays are parallel to `task_ids`; an array or an element may be null, and the
-- relay then reads the task.
alter table outbox
  add specs       json[],         -- of submitted: of tasks that wait for a worker; of started: at the first start
  add created_ats timestamptz[],  -- of started
  add worker      uuid,           -- of started: its boot
  add sizes       bigint[],       -- these four are of succeeded
  add digests     bytea[],
  add outputs     json[],
  add generations int[];

alter table outbox
  alter specs set storage external, alter created_ats set storage external, alter sizes set storage external,
  alter digests set storage external, alter outputs set storage external, alter generations set storage external;
