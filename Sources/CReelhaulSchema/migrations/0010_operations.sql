-- Who acts on tasks and workers, what became of it, and what was unusual in the life of a task.

-- An operation sends one command to each task that matches a filter, or that it names. It is worked off in batches by any
-- process that holds its lease; the row says how far it is. It touches no task that is younger than itself.
create table operation (
  id          uuid        primary key,
  action      text        not null check (action in ('pause', 'resume', 'cancel', 'retry', 'remove', 'prioritize')),
  priority    smallint,
  files       boolean     not null default false,
  -- Either of the two: a filter, as it was asked for, or tasks.
  filter      json,
  ids         uuid[],
  -- The only queues whose tasks it may touch; null for all.
  queues      text[],
  actor       text,
  created_at  timestamptz not null default now(),
  state       text        not null default 'running' check (state in ('running', 'done', 'canceled', 'failed')),
  -- Set once nothing more happens: a canceled operation still waits for the commands that were sent.
  finished_at timestamptz,
  error       text,
  -- The last task that it looked at, from the newest to the oldest; with `ids`, how many of them.
  after_at    timestamptz,
  after_id    uuid,
  looked_at   int         not null default 0,
  is_walked   boolean     not null default false,
  matched     bigint      not null default 0,
  sent        bigint      not null default 0,
  applied     bigint      not null default 0,
  refused     bigint      not null default 0,
  -- How many were refused, by code.
  refusals    jsonb       not null default '{}',
  -- When one of its commands was last known to be applied or refused, or sent.
  moved_at    timestamptz not null default now(),
  driver      uuid,
  lease_until timestamptz not null default '-infinity',
  constraint operation_has_tasks check (num_nonnulls(filter, ids) = 1),
  constraint operation_prioritizes check ((priority is not null) = (action = 'prioritize')),
  constraint operation_end_is_final check (finished_at is null or state <> 'running')
) with (fillfactor = 50);

create index operation_newest on operation (created_at desc);
create index operation_unfinished on operation (created_at) where finished_at is null;

-- Commands of an operation whose outcomes are not counted yet: written before they are sent, deleted once they are counted.
-- The ids of the commands follow from those of the operation and of the tasks.
create table operation_batch (
  operation_id uuid    not null references operation on delete cascade,
  number       bigint  generated always as identity,
  task_ids     uuid[]  not null,
  is_sent      boolean not null default false,
  primary key (operation_id, number)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- The unusual events of a task: a plain life leaves no row. Rows go with their task.
create table task_history (
  task_id       uuid        not null,
  sequence      int         not null,  -- that of the event
  type          text        not null,
  at            timestamptz not null default now(),
  attempt       smallint    not null,
  epoch         int         not null,
  -- Of events that end a run: when it began, and the boot of its worker.
  started_at    timestamptz,
  worker        uuid,
  actor         text,
  error_code    text,
  error_message text,
  primary key (task_id, sequence)
) with (autovacuum_analyze_threshold = 2000000000);

-- Dead letters that were replayed or dropped are not listed again. `record_at` tells records of a topic that was created
-- again from those of the one before.
create table dead_letter_mark (
  partition     int         not null,
  record_offset bigint      not null,
  record_at     timestamptz not null,
  mark          text        not null check (mark in ('replayed', 'dropped')),
  actor         text,
  at            timestamptz not null default now(),
  primary key (partition, record_offset, record_at)
);

-- Who asked for a command: kept with the intent until the run ends, and published with the event.
alter table intent add actor text;
alter table outbox add actor text;

-- Whether a worker was asked to end, and the version of its program, which older ones do not tell.
alter table worker
  add draining boolean not null default false,
  add version  text;
