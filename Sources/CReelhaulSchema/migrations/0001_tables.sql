-- Every task, in one place each: `ready` or `delayed` while it waits for a worker, `run` while a worker owns it, and in
-- none of them while it rests. Names without a schema: whoever connects chooses it by search_path.
--
-- Lock order, everywhere: apply, gate, inbox, worker, run rows (by id), task rows (those without dependencies first, then
-- by id), creation (a batch of commands that comes to it later goes alone), rows of ready and delayed, lanes that are
-- held, lanes that are woken (by id, once in a transaction), bucket (by id). Apply, gate, inbox and creation are advisory.
--
-- Buckets are the last thing that a claim, the end of runs and `set_limit` wait for. The first of them is the total, so
-- that two never wait for each other among the rest; creation and `tidy_lanes` lock only those that have no lane.
-- The one exception is `renew`: it records progress in run rows, then prolongs the lease, whose row is locked no longer
-- than need be. Nobody who has a worker's row waits for a row of run: a claim adds its own, `sweep` passes over locked
-- ones. The tests hold the count of deadlocks at none.

-- The states a task rests in. A row in `run` overrides it with running or publishing: a claim does not write `task`.
create type task_state as enum ('blocked', 'queued', 'paused', 'succeeded', 'canceled', 'failed');

-- The `run_limit` of what has none.
create function unlimited() returns int language sql immutable as 'select 2000000000';

-- Whatever limits how much may run: the total (id 1), a kind, a queue, a host, a storage (which must be mounted). Ids
-- are small and dense: one that is free waits for its next use. `used` is the number of rows of `run`, kept by run's own
-- triggers; `ceiling` is the limit, or what ran already when the limit was lowered below it.
create table bucket (
  id        int  primary key,
  scope     text not null check (scope in ('total', 'kind', 'queue', 'host', 'storage', 'free')),
  name      text not null,
  run_limit int  not null default unlimited() check (run_limit >= 0),
  ceiling   int  not null default unlimited(),
  used      int  not null default 0,
  unique (scope, name),
  constraint bucket_never_over_its_ceiling check (used between 0 and ceiling)
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

insert into bucket (id, scope, name) values (1, 'total', '');

-- Fair queueing among queues, see 06_claim.sql: `tag` rises by 1 / weight with each task that starts; `start` is the
-- virtual time when the queue was last served, the highest is that of the fleet. The cursor is where its ring of lanes
-- goes on; cursor_lane is -1 while no task waits, and the tag is then relative to the virtual time. Written by claims only.
create table queue (
  id          int    primary key references bucket,
  weight      float8 not null default 1 check (weight > 0),
  tag         float8 not null default 0,
  start       float8 not null default 0,
  cursor_host int    not null default 0,
  cursor_lane int    not null default 0
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- One line of waiting tasks that are alike to a claim. `rank` is the priority with its sign turned: lowest first.
-- `ready` says "look here"; `head` is a hint: no row of `ready` at or above zero is left below it.
create table lane (
  id         int      generated always as identity primary key,
  rank       smallint not null,
  queue_id   int      not null,
  kind_id    int      not null,
  host_id    int      not null,
  storage_id int      not null,
  ready      boolean  not null default false,
  head       bigint   not null default 0,
  head_at    timestamptz not null default now(),
  unique (rank, queue_id, kind_id, host_id, storage_id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

create index lane_ready on lane (rank, queue_id, host_id, id) where ready;

-- The truth about a task while no worker owns it. While one does, epoch, attempt and sequence in `run` are ahead.
-- Half of every page is left free: the ends of its tasks come together, and have room beside what they replace.
create table task (
  id            uuid       primary key,
  state         task_state not null,
  -- The state of a task that waits for somebody to decide; a task that runs through never has one, so that its updates
  -- stay heap-only.
  halted        task_state generated always as
                  (case when state in ('blocked', 'paused', 'canceled', 'failed') then state end) stored,
  priority      smallint   not null,
  attempt       smallint   not null default 0,
  epoch         int        not null default 0,
  -- The epoch that was last ended by its owner, so that a repeated settlement is told from a stale one.
  settled_epoch int        not null default 0,
  -- The number of the task's last event.
  sequence      int        not null default 1,
  lane_id       int        not null,
  -- Its place in `ready`, while it is there.
  pos           bigint,
  not_before    timestamptz,
  created_at    timestamptz not null default now(),
  started_at    timestamptz,
  finished_at   timestamptz,
  bytes_done    bigint,
  bytes_total   bigint,
  -- That of the last checkpoint, kept when the checkpoint goes with success.
  generation    int,
  -- The boot of the last worker that owned it.
  worker        uuid,
  sha256        bytea check (octet_length(sha256) = 32),
  error_code    text,
  error_message text,
  error_class   text check (error_class in ('retry', 'fail', 'wait')),
  error_retry_after int,
  spec          json not null,  -- kept as it was written: it is read as a whole, and often
  constraint task_finished_is_final check ((finished_at is not null) = (state in ('succeeded', 'canceled', 'failed'))),
  constraint task_failed_says_why check (state <> 'failed' or error_code is not null),
  constraint task_error_is_whole
    check ((error_code is null) = (error_class is null) and (error_code is null) = (error_message is null)),
  constraint task_digest_is_of_success check (sha256 is null or state = 'succeeded')
) with (
  fillfactor = 50, autovacuum_vacuum_scale_factor = 0.25, autovacuum_vacuum_threshold = 50000,
  autovacuum_vacuum_insert_scale_factor = 0.5, autovacuum_vacuum_insert_threshold = 500000,
  autovacuum_analyze_scale_factor = 0.5, autovacuum_analyze_threshold = 50000
);

create index task_newest on task (created_at);  -- without the id: lookups by id shall have one index
create index task_halted on task (halted, created_at desc, id desc) where halted is not null;
create index task_halted_lane on task (lane_id) where halted is not null;

-- What may run now. `pos` is the xid of the inserting transaction << 20 plus an ordinal, so that a head at or below the
-- oldest running xid never passes a late commit; what was taken back from a worker comes in front, 2^62 below.
-- A row carries what the claim hands on, which therefore need not read `task`.
-- Not analyzed, as `run` and `outbox`: statistics would be of rows that are gone, plans here do not follow from them, and
-- while they are taken no dead row is forgotten, over which claims must then step.
create table ready (
  lane_id  int      not null,
  pos      bigint   not null,
  task_id  uuid     not null,
  epoch    int      not null,
  attempt  smallint not null,
  sequence int      not null,
  primary key (lane_id, pos)
) with (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_insert_scale_factor = 0.5, autovacuum_vacuum_insert_threshold = 500000,
  autovacuum_analyze_threshold = 2000000000
);

-- What may run later: scheduled, or backing off.
create table delayed (
  task_id uuid        primary key,
  run_at  timestamptz not null
);

create index delayed_due on delayed (run_at);

-- One lease per worker process. A boot is a new UUID for every start.
create table worker (
  id            int  generated always as identity primary key,
  boot          uuid not null unique,
  host          text not null,
  pid           int  not null,
  started_at    timestamptz not null default now(),
  lease_seconds int  not null check (lease_seconds > 0),
  lease_until   timestamptz not null,
  dead          boolean not null default false,
  -- The number of its last claim call.
  claim_call    bigint not null default 0,
  kinds         text[] not null,
  volume_names  text[] not null,
  volume_ids    uuid[] not null,
  label_names   text[] not null,
  label_values  text[] not null,
  check (cardinality(volume_names) = cardinality(volume_ids)),
  check (cardinality(label_names) = cardinality(label_values))
) with (fillfactor = 20);

-- A task that a worker owns: inserted by a claim, deleted by settle and sweep, fenced by (task_id, epoch).
-- One index, so that progress is a heap-only update.
create table run (
  task_id     uuid     primary key,
  epoch       int      not null check (epoch > 0),
  worker_id   int      not null,
  -- The number of the worker's claim call, so that a call whose answer was lost can be repeated.
  claim_call  bigint   not null,
  queue_id    int      not null,
  kind_id     int      not null,
  host_id     int      not null,
  storage_id  int      not null,
  attempt     smallint not null check (attempt > 0),
  sequence    int      not null,
  phase       text     not null default 'running' check (phase in ('running', 'publishing')),
  started_at  timestamptz not null default now(),
  bytes_done  bigint,
  bytes_total bigint,
  rate        bigint
) with (
  fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
  autovacuum_analyze_threshold = 2000000000
);

-- What a worker shall do about a task it runs. It stays until the task is settled or swept: a lost reply loses nothing.
create table intent (
  worker_id int  not null,
  task_id   uuid not null,
  what      text not null check (what in ('pause', 'cancel')),
  primary key (worker_id, task_id)
);

-- What is on stable storage of a task's bytes.
create table checkpoint (
  task_id        uuid   primary key,
  epoch          int    not null,
  generation     int    not null,
  identity       json   not null,
  volume         uuid   not null,
  staging_name   text   not null,
  done           int8multirange not null,
  tail_crc       bigint check (tail_crc between 0 and 4294967295),
  -- Set once the bytes are complete and verified: the digest of the file that is being published.
  publishing     bytea  check (octet_length(publishing) = 32)
) with (fillfactor = 50);

-- A task waits for each task it comes after; a row goes when that one has succeeded. One that failed, was canceled,
-- was removed before it succeeded or was never submitted keeps it waiting: retry or submit it, or cancel what waits.
create table task_dependency (
  task_id  uuid not null,
  after_id uuid not null,
  primary key (task_id, after_id)
);

create index task_dependency_after on task_dependency (after_id);

-- The ids of commands applied already. Days are dropped whole, never deleted by row.
-- A refusal is kept with its reason, so that a repeated delivery gets the same answer.
create table command_inbox (
  id     uuid not null,
  day    date not null,
  code   text,
  reason text,
  primary key (id, day),
  check ((code is null) = (reason is null))
) partition by range (day);

-- Ids of removed tasks, as long as commands may be delivered again: an old submit must not bring a task back. One that
-- had succeeded keeps nobody waiting.
create table removed_task (
  id         uuid primary key,
  succeeded  boolean not null,
  removed_at timestamptz not null default now()
);

create index removed_task_age on removed_task (removed_at);

-- Events to be published, one row per statement that changed tasks; `sequences` are numbers per task.
create table outbox (
  id        bigint generated always as identity primary key,
  kind      text   not null,
  at        timestamptz not null default now(),
  task_ids  uuid[] not null,
  sequences int[]  not null,
  check (cardinality(task_ids) = cardinality(sequences))
) with (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_threshold = 2000000000
);

alter table outbox alter task_ids set storage external, alter sequences set storage external;

-- Not compressed, so that its size tells what it takes to read it.
alter table task alter spec set storage external;

-- Who may do what only one worker does. A lease, not a session lock: it works behind a pooler.
create table leader (
  role      text primary key,
  worker_id int  not null,
  until     timestamptz not null
) with (fillfactor = 50);

-- The one fleet whose tasks these are: what the names of its topics begin with.
create table fleet (
  is_only      boolean primary key default true check (is_only),
  topic_prefix text not null
);
