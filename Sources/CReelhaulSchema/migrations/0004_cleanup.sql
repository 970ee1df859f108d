-- What removed and canceled tasks left elsewhere, such as staging files: a worker that has the kind and the storages takes
-- a row and works it off. The row has all that this needs, since the task may be gone.
create table cleanup (
  id             bigint generated always as identity primary key,
  task_id        uuid   not null,
  kind           text   not null,
  -- Names; empty where there is none.
  storage        text   not null,
  source_storage text   not null,
  spec           json   not null,
  -- The task's last checkpoint; nulls where it had none.
  version        smallint,
  generation     int,
  bytes_done     bigint,
  bytes_total    bigint,
  stage          text,
  payload        json,
  -- Whether the task's files are to be deleted, too.
  files          boolean  not null,
  attempt        int      not null default 0,
  run_at         timestamptz not null default now(),
  -- Until then a worker works on it.
  claimed_until  timestamptz not null default '-infinity',
  error          text,
  created_at     timestamptz not null default now(),
  constraint cleanup_has_work check (files or payload is not null),
  constraint cleanup_checkpoint_is_whole
    check (num_nulls(version, generation, bytes_done, payload) in (0, 4))
) with (fillfactor = 70);

create index cleanup_due on cleanup (run_at);

-- A canceled task has no checkpoint from now on: what it left is a row here.
with gone as (
  delete from checkpoint c using task t where t.id = c.task_id and t.state = 'canceled'
  returning c.*, t.spec, t.lane_id)
insert into cleanup (task_id, kind, storage, source_storage, spec, version, generation, bytes_done, bytes_total, stage,
                     payload, files)
select g.task_id, k.name, s.name, '', g.spec, g.version, g.generation, g.bytes_done, g.bytes_total, g.stage, g.payload,
       false
  from gone g join lane l on l.id = g.lane_id join bucket k on k.id = l.kind_id join bucket s on s.id = l.storage_id;
