-- Adds one row to the outbox for a statement that changed tasks; does nothing if it changed no task.
create function publish(event text, tasks uuid[], numbers int[], its_actor text default null) returns void
language plpgsql as $$
begin
  if cardinality(tasks) > 0 then
    insert into outbox (kind, task_ids, sequences, actor) values (event, tasks, numbers, its_actor);
  end if;
end $$;

-- The same for events that are no part of a plain life: they are in the history of their tasks, too. `end_runs` writes
-- the history of runs itself.
create function publish_unusual(event text, tasks uuid[], numbers int[], its_actor text) returns void
language plpgsql set plan_cache_mode = force_generic_plan as $$
begin
  perform publish(event, tasks, numbers, its_actor);
  insert into task_history (task_id, sequence, type, attempt, epoch, actor)
  select t.id, u.number, event, t.attempt, t.epoch, its_actor
    from unnest(tasks, numbers) u(id, number) join task t on t.id = any(array[u.id]);
  perform thin_history(array(select u.id from unnest(tasks, numbers) u(id, number) where u.number > history_limit()));
end $$;

-- How many rows the history of a task has at most. A task with fewer events cannot have more.
create function history_limit() returns int language sql immutable as $$ select 200 $$;

-- Keeps the first 50 rows of each task, and its newest ones up to the limit.
create function thin_history(tasks uuid[]) returns void
language plpgsql set plan_cache_mode = force_generic_plan as $$
begin
  if cardinality(tasks) > 0 then
    delete from task_history where ctid = any(array(
      select h.tuple
        from unnest(tasks) u(id)
       cross join lateral (
         select ctid tuple, row_number() over (order by sequence) place, count(*) over () rows
           from task_history where task_id = u.id) h
       where h.rows > history_limit() and h.place between 51 and 50 + h.rows - history_limit()));
  end if;
end $$;

-- A row of the outbox has specifications only up to this size, in bytes: the relay reads whole rows.
create function bytes_in_events() returns int language sql immutable as $$ select 1048576 $$;

-- Locks task rows in the one order that all functions use. Tasks with dependencies come last, because a transaction
-- that ends a run first locks its task and then the tasks that wait for it.
create function lock_tasks(ids uuid[]) returns void
language plpgsql set plan_cache_mode = force_generic_plan as $$
begin
  perform from task t where t.id = any(ids)
    order by exists (select from task_dependency d where d.task_id = t.id offset 0), t.id for no key update of t;
end $$;

create function apply_key() returns bigint language sql stable as $$
  select hashtextextended('reelhaul.apply.' || current_schema(), 0)
$$;

-- The first statement of every batch of commands; `wake_lanes` is the last. It prepares the inbox and locks the tasks
-- that the batch names. Batches run at the same time. A batch with dependencies or removals runs alone, so that no task
-- is created, or created again, between its look and its commit. A batch that may create lanes while it has tasks
-- locked runs alone too.
create function begin_apply(alone boolean, tasks uuid[]) returns void language plpgsql as $$
declare
  key bigint := apply_key();
begin
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    raise exception 'reelhaul needs transactions that are read committed, and those of this user are %',
      current_setting('transaction_isolation')
      using errcode = '25001', hint = 'ALTER ROLE ... SET default_transaction_isolation = ''read committed''';
  end if;
  -- Who sends the rest of the batch may be gone, with its machine: what is locked is free within half a minute then.
  perform set_config('tcp_keepalives_idle', '10', true), set_config('tcp_keepalives_interval', '5', true),
          set_config('tcp_keepalives_count', '3', true);
  if alone then
    perform pg_advisory_xact_lock(key);
  else
    perform pg_advisory_xact_lock_shared(key);
  end if;
  perform tend_inbox();
  perform lock_tasks(tasks);
end $$;

-- Adds tasks and returns the ids of those that were new; `begin_apply` has locked what they come after. The lanes come as
-- keys of their own, `lane_numbers` counts into them from 1. `dependents` and `dependencies` are pairs: a task and one
-- that it comes after.
--
-- Columns as arrays, here and in `settle`, and not one array of a composite type: that takes as long, and its binary form
-- has the type's oid, which every connection would have to ask for. Batches of 500, interleaved, medians of 40 each:
-- submit 6.3 ms with arrays and 6.2 ms with the type (quartiles 6.1-6.7 and 6.0-6.6), settle 10.4 and 10.2 ms.
create function submit(
  ranks smallint[], queues text[], kinds text[], hosts text[], storages text[], source_storages text[],
  ids uuid[], lane_numbers int[], priorities smallint[], not_befores timestamptz[], pauses boolean[], specs json[],
  dependents uuid[], dependencies uuid[]
) returns uuid[]
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  lanes   int[]  := lane_ids(ranks, queues, kinds, hosts, storages, source_storages);
  base    bigint := reserve_positions(cardinality(ids));
  waiting uuid[] := '{}';
  unmet   uuid[] := '{}';
  added   uuid[];
  used    int[];   -- the lanes with tasks that wait for a worker now: a claim looks at those, and at no others
  plain   json[];  -- the specifications of those that wait for a worker now
begin
  perform hold_lanes(lanes);

  if cardinality(dependents) > 0 then
    -- A task that succeeds later finds the rows written below.
    select coalesce(array_agg(u.id), '{}'), coalesce(array_agg(u.after_id), '{}') into waiting, unmet
      from unnest(dependents, dependencies) u(id, after_id)
     where not exists (select from task t where t.id = u.after_id and t.state = 'succeeded' offset 0)
       and not exists (select from removed_task r where r.id = u.after_id and r.succeeded offset 0);
  end if;

  with new as (
    insert into task (id, state, priority, lane_id, pos, not_before, spec)
    select u.id,
           case when u.is_paused then 'paused' when u.id = any(waiting) then 'blocked' else 'queued' end::task_state,
           u.priority, lanes[u.lane_number], base + u.ordinal - 1, u.not_before, u.spec
      from unnest(ids, lane_numbers, priorities, not_befores, pauses, specs)
           with ordinality u(id, lane_number, priority, not_before, is_paused, spec, ordinal)
     where not exists (select from task t where t.id = u.id offset 0)  -- a conflict would wait for the task's lock
       and not exists (select from removed_task r where r.id = u.id offset 0)
     order by u.id  -- two batches with the same new tasks wait in one order
        on conflict do nothing
    returning id, state, lane_id, pos, not_before, spec,
              state = 'queued' and (not_before is null or not_before <= now()) is_ready),
  now_ready as (
    insert into ready (lane_id, pos, task_id, epoch, attempt, sequence)
    select lane_id, pos, id, 0, 0, 1 from new where is_ready),
  later as (
    insert into delayed (task_id, run_at)
    select id, not_before from new where state = 'queued' and not_before > now())
  select coalesce(array_agg(id), '{}'),
         array_agg(case when is_ready then spec end), array_agg(distinct lane_id) filter (where is_ready)
    into added, plain, used from new;
  perform note_lanes(used);

  if cardinality(waiting) > 0 then
    insert into task_dependency (task_id, after_id)
    select u.id, u.after_id from unnest(waiting, unmet) u(id, after_id) where u.id = any(added)
        on conflict do nothing;
  end if;

  if cardinality(added) > 0 then
    insert into outbox (kind, task_ids, sequences, specs)
    values ('submitted', added, array_fill(1, array[cardinality(added)]),
            case when pg_column_size(plain) <= bytes_in_events() then plain end);
  end if;
  return added;
end $$;
