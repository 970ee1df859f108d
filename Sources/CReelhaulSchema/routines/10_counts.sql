-- A sum of sizes. Those of servers and handlers may add up to more than any disk holds. (Views say it themselves: a view
-- that uses a function could not be replaced by another version.)
create function saturated(bytes numeric) returns bigint language sql immutable as $$
  select greatest(-9223372036854775808, least(bytes, 9223372036854775807))::bigint
$$;

-- Triggers keep the counts of tasks, so that every statement that changes tasks counts, also one of another version or of
-- an operator. They are statement triggers: a statement adds one row for each state and lane that it changes. With batches
-- of 500 they take a fiftieth of the time that PostgreSQL needs for a task.
--
-- They have no settings of their own, which would cost each statement: whatever changes tasks is planned `by_index`.
create function count_added_tasks() returns trigger language plpgsql as $$
begin
  insert into count_change (state, lane_id, tasks)
  select state, lane_id, count(*) from added group by state, lane_id;
  return null;
end $$;

create function count_changed_tasks() returns trigger language plpgsql as $$
begin
  insert into count_change (state, lane_id, tasks, bytes)
  select u.state, u.lane_id, sum(u.tasks), saturated(sum(u.bytes))
    from (select state, lane_id, count(*) tasks,
                 case state when 'succeeded' then coalesce(sum(bytes_done), 0) else 0 end bytes
            from added group by state, lane_id
          union all
          select state, lane_id, -count(*), 0 from gone group by state, lane_id) u
   group by u.state, u.lane_id having sum(u.tasks) <> 0;
  return null;
end $$;

create function count_deleted_tasks() returns trigger language plpgsql as $$
begin
  insert into count_change (state, queue, kind, tasks)
  select g.state, coalesce(q.name, g.spec ->> 'queue', 'default'), coalesce(k.name, g.spec ->> 'kind', ''), -count(*)
    from gone g
    left join lane l on l.id = any(array[g.lane_id])
    left join bucket q on q.id = any(array[l.queue_id])
    left join bucket k on k.id = any(array[l.kind_id])
   group by 1, 2, 3;
  return null;
end $$;

create function count_no_tasks() returns trigger language plpgsql as $$
begin
  insert into count_change (state, queue, kind, tasks) select state, queue, kind, -tasks from resting_count;
  return null;
end $$;

create trigger task_added after insert on task
  referencing new table as added for each statement execute function count_added_tasks();
create trigger task_changed after update on task
  referencing new table as added old table as gone for each statement execute function count_changed_tasks();
create trigger task_deleted after delete on task
  referencing old table as gone for each statement execute function count_deleted_tasks();
create trigger task_emptied after truncate on task for each statement execute function count_no_tasks();

-- What is not folded yet, by names. A deletion moves no bytes.
create view named_change as
  select c.state, coalesce(c.queue, q.name, '') queue, coalesce(c.kind, k.name, '') kind, c.tasks,
         case coalesce(c.kind, k.name) when 'delete' then 0 else c.bytes end bytes, c.at
    from count_change c
    left join lane l on l.id = any(array[c.lane_id])
    left join bucket q on q.id = any(array[l.queue_id])
    left join bucket k on k.id = any(array[l.kind_id]);

-- How many tasks rest in each state, by queue and kind. Running tasks rest in `queued`.
create view resting_count as
  select state, queue, kind, sum(tasks)::bigint tasks
    from (select state, queue, kind, tasks from task_count
          union all
          select state, queue, kind, tasks from named_change) n
   group by state, queue, kind having sum(tasks) <> 0;

-- How many tasks there are in each effective state, by queue and kind. The former name of a kind means the kind.
create view effective_count as
  select n.state, n.queue, coalesce(c.name, n.kind) kind, sum(n.tasks)::bigint tasks
    from (select state::text, queue, kind, tasks from resting_count
          union all
          select s.state, q.name, k.name, case s.state when 'queued' then -r.runs else r.runs end
            from (select phase, queue_id, kind_id, count(*) runs from run group by phase, queue_id, kind_id) r
            join bucket q on q.id = r.queue_id
            join bucket k on k.id = r.kind_id
           cross join lateral (values (r.phase), ('queued')) s (state)) n
    left join bucket k on k.scope = 'kind' and k.name = n.kind
    left join bucket c on c.id = k.counts_as
   group by 1, 2, 3 having sum(n.tasks) <> 0;

-- How many tasks have ended on a day (UTC), by queue: succeeded, canceled and failed ones. Only what enters a state ends:
-- a statement never takes tasks out of a state and others into it.
create view settled_by_day as
  select day, queue, outcome, sum(tasks)::bigint tasks, greatest(-9223372036854775808, least(sum(bytes), 9223372036854775807))::bigint bytes
    from (select day, queue, outcome, tasks, bytes from settled_count
          union all
          select (at at time zone 'utc')::date, queue, state, tasks, bytes
            from named_change where tasks > 0 and state in ('succeeded', 'canceled', 'failed')) n
   group by day, queue, outcome;

create view settled_ever as
  select outcome, sum(tasks)::bigint tasks, greatest(-9223372036854775808, least(sum(bytes), 9223372036854775807))::bigint bytes
    from (select outcome, tasks, bytes from settled_total
          union all
          select state, tasks, bytes from count_change where tasks > 0 and state in ('succeeded', 'canceled', 'failed')) n
   group by outcome;

-- The views, for those who may ask at any time.
create function effective_counts() returns table (state text, queue text, kind text, tasks bigint)
language sql stable set plan_cache_mode = force_generic_plan as $$
  select state, queue, kind, tasks from effective_count
$$;

create function settled_today() returns table (queue text, outcome text, tasks bigint, bytes bigint)
language sql stable set plan_cache_mode = force_generic_plan as $$
  select queue, outcome::text, tasks, bytes from settled_by_day where day = (now() at time zone 'utc')::date
$$;

create function counts_key() returns bigint language sql stable as $$
  select hashtextextended('reelhaul.counts.' || current_schema(), 0)
$$;

-- Folds what statements have changed into the totals. The caller has the lock `counts_key`, which is the last that it
-- waits for.
create function fold_counts() returns void
language plpgsql set plan_cache_mode = force_generic_plan as $$
begin
  with gone as (delete from count_change returning state, lane_id, tasks, bytes, at, queue, kind),
  named as materialized (
    select g.state, coalesce(g.queue, q.name, '') queue, coalesce(g.kind, k.name, '') kind, g.tasks,
           case coalesce(g.kind, k.name) when 'delete' then 0 else g.bytes end bytes,
           (g.at at time zone 'utc')::date as day
      from gone g
      left join lane l on l.id = any(array[g.lane_id])
      left join bucket q on q.id = any(array[l.queue_id])
      left join bucket k on k.id = any(array[l.kind_id])),
  counted as (
    insert into task_count as c (state, queue, kind, tasks)
    select state, queue, kind, sum(tasks) from named group by state, queue, kind having sum(tasks) <> 0
        on conflict (state, queue, kind) do update set tasks = c.tasks + excluded.tasks),
  settled as materialized (
    select day, queue, state, sum(tasks) tasks, saturated(sum(bytes)) bytes
      from named where tasks > 0 and state in ('succeeded', 'canceled', 'failed') group by day, queue, state),
  by_day as (
    insert into settled_count as c (day, queue, outcome, tasks, bytes)
    select day, queue, state, tasks, bytes from settled
        on conflict (day, queue, outcome) do update
       set tasks = c.tasks + excluded.tasks, bytes = saturated(c.bytes::numeric + excluded.bytes))
  insert into settled_total as c (outcome, tasks, bytes)
  select state, sum(tasks), saturated(sum(bytes)) from settled group by state
      on conflict (outcome) do update
     set tasks = c.tasks + excluded.tasks, bytes = saturated(c.bytes::numeric + excluded.bytes);
end $$;

-- Adds the sample of this slot of 10 seconds, unless it is there. Every 10 minutes, what is older than a day is thinned to
-- a sample a minute, and what is older than three days to one in 10 minutes. 14 days are kept. With each sample, some
-- removed tasks and given up events are forgotten. Samples of a time to come are from before the clock was set back.
create function take_sample() returns void
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  slot timestamptz := date_bin('10 s', now(), 'epoch');
begin
  delete from fleet_sample where at > slot + interval '1 min';
  if exists (select from fleet_sample where at >= slot) then
    return;
  end if;
  insert into fleet_sample (at, blocked, queued, running, publishing, paused, succeeded, canceled, failed,
                            bytes_per_second, ever_succeeded, ever_canceled, ever_failed)
  select slot, n.blocked, n.queued, n.running, n.publishing, n.paused, n.succeeded, n.canceled, n.failed,
         coalesce((select sum(rate)::bigint from run), 0), e.succeeded, e.canceled, e.failed
    from (select coalesce(sum(tasks) filter (where state = 'blocked'), 0) blocked,
                 coalesce(sum(tasks) filter (where state = 'queued'), 0) queued,
                 coalesce(sum(tasks) filter (where state = 'running'), 0) running,
                 coalesce(sum(tasks) filter (where state = 'publishing'), 0) publishing,
                 coalesce(sum(tasks) filter (where state = 'paused'), 0) paused,
                 coalesce(sum(tasks) filter (where state = 'succeeded'), 0) succeeded,
                 coalesce(sum(tasks) filter (where state = 'canceled'), 0) canceled,
                 coalesce(sum(tasks) filter (where state = 'failed'), 0) failed
            from effective_count) n
   cross join (select coalesce(sum(tasks) filter (where outcome = 'succeeded'), 0) succeeded,
                      coalesce(sum(tasks) filter (where outcome = 'canceled'), 0) canceled,
                      coalesce(sum(tasks) filter (where outcome = 'failed'), 0) failed
                 from settled_ever) e
      on conflict do nothing;

  perform forget_removed();
  perform forget_hooks();
  if date_bin('10 min', slot, 'epoch') = slot then
    perform thin_samples(slot);
  end if;
end $$;

-- Looks at up to 5,000 tasks that were removed more than 17 days ago, and forgets their ids. There may be millions of them.
-- One that is not cleaned up yet is remembered for as long again: its clean-up would delete what a new task with its id has
-- made.
create function forget_removed() returns void
language sql set plan_cache_mode = force_generic_plan as $$
  with old as materialized (
    select id, exists (select from cleanup c where c.task_id = r.id) is_left from removed_task r
     where removed_at < now() - interval '17 days' order by removed_at limit 5000
       for update skip locked),
  kept as (
    update removed_task set removed_at = now() where id = any(array(select id from old where is_left)))
  delete from removed_task where id = any(array(select id from old where not is_left))
$$;

create function thin_samples(as_of timestamptz) returns void language plpgsql as $$
begin
  delete from fleet_sample where at < as_of - interval '14 days';
  delete from fleet_sample s
   using (select at, row_number() over (
                       partition by at < as_of - interval '3 days',
                                    date_bin(case when at < as_of - interval '3 days' then interval '10 min'
                                                  else interval '1 min' end, at, 'epoch')
                           order by at) n
            from fleet_sample where at < as_of - interval '1 day') numbered
   where numbered.n > 1 and s.at = numbered.at;
  delete from settled_count where day < (as_of at time zone 'utc')::date - 14;
  delete from task_count where tasks = 0;
end $$;

-- For the sweeps of all workers: whichever comes first folds, about once a second, and takes the sample.
create function tend_counts() returns void language plpgsql as $$
begin
  if not pg_try_advisory_xact_lock(counts_key()) then
    return;
  end if;
  if exists (select from count_change where at < now() - interval '1 s') then
    perform fold_counts();
  end if;
  perform take_sample();
end $$;
