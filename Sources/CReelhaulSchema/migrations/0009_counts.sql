-- How many tasks there are, maintained and never counted: reading it takes as long with ten tasks as with ten million. The
-- triggers of 10_counts.sql write what a statement changes as rows of `count_change`; nobody waits for a row that others
-- write, too. A sweep folds these rows into the totals. So a count is a total and what is not folded yet.

-- Tasks by the state they rest in: of those that are queued, `run` has the ones that run.
create table task_count (
  state task_state not null,
  queue text       not null,
  kind  text       not null,
  tasks bigint     not null,
  primary key (state, queue, kind)
) with (fillfactor = 50);

-- How many tasks came to their end on a day (UTC), and the bytes of those that succeeded. A task that is retried and ends
-- again counts again; one that is removed stays counted.
create table settled_count (
  day     date       not null,
  queue   text       not null,
  outcome task_state not null check (outcome in ('succeeded', 'canceled', 'failed')),
  tasks   bigint     not null,
  bytes   bigint     not null,
  primary key (day, queue, outcome)
) with (fillfactor = 50);

-- The same since the beginning.
create table settled_total (
  outcome task_state primary key check (outcome in ('succeeded', 'canceled', 'failed')),
  tasks   bigint not null default 0,
  bytes   bigint not null default 0
) with (fillfactor = 50);

-- What statements have changed since the last time that a sweep folded it. Rows are only added, and taken away together.
-- Without an index, which each statement would pay for. A lane stays until its rows are folded; tasks that were deleted
-- are told by names, since the lane of a succeeded one may be gone.
create table count_change (
  state   task_state  not null,
  lane_id int,
  tasks   int         not null,
  bytes   bigint      not null default 0,
  at      timestamptz not null default now(),
  queue   text,
  kind    text,
  constraint count_change_has_a_place check ((lane_id is null) = (queue is not null) and (queue is null) = (kind is null))
) with (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_threshold = 2000000000
);

-- The tables are locked while this runs, so that nothing changes between the look and the triggers. The lane of a
-- succeeded task may be gone.
insert into task_count (state, queue, kind, tasks)
select t.state, coalesce(q.name, t.spec ->> 'queue', 'default'), coalesce(k.name, t.spec ->> 'kind', ''), count(*)
  from task t
  left join lane l on l.id = t.lane_id
  left join bucket q on q.id = l.queue_id
  left join bucket k on k.id = l.kind_id
 group by 1, 2, 3;

-- What ended before this is not known by day, except for what is still there.
insert into settled_count (day, queue, outcome, tasks, bytes)
select (t.finished_at at time zone 'utc')::date, coalesce(q.name, t.spec ->> 'queue', 'default'), t.state, count(*),
       coalesce(sum(t.bytes_done) filter (where t.state = 'succeeded'), 0)
  from task t
  left join lane l on l.id = t.lane_id
  left join bucket q on q.id = l.queue_id
 where t.finished_at >= now() - interval '1 day'
 group by 1, 2, 3;

insert into settled_total (outcome, tasks, bytes)
select s.outcome, count(t.state), coalesce(sum(t.bytes_done) filter (where t.state = 'succeeded'), 0)
  from unnest(array['succeeded', 'canceled', 'failed']::task_state[]) s (outcome)
  left join task t on t.state = s.outcome
 group by 1;

-- How the fleet was, every 10 seconds; coarser with age, see 10_counts.sql. The last three are totals since the beginning,
-- so that a sample that is missing takes nothing away.
create table fleet_sample (
  at               timestamptz primary key,
  blocked          bigint not null,
  queued           bigint not null,
  running          bigint not null,
  publishing       bigint not null,
  paused           bigint not null,
  succeeded        bigint not null,
  canceled         bigint not null,
  failed           bigint not null,
  bytes_per_second bigint not null,
  ever_succeeded   bigint not null,
  ever_canceled    bigint not null,
  ever_failed      bigint not null
);

-- The space of a worker's storages, parallel to `volume_names`, as the worker told it last. Null: not told.
alter table worker
  add volume_free     bigint[],
  add volume_promised bigint[],
  add volume_total    bigint[];
