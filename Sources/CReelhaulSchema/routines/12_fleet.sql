-- What operators ask about the fleet. Each reads a bounded part, however many tasks there are.

-- The newest failed tasks, by error and host: up to `most` of them. `task_id` is the one that failed last.
create function failure_groups(of_queues text[], most int)
returns table (code text, host text, tasks bigint, newest_at timestamptz, task_id uuid, is_all boolean)
language plpgsql stable set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
  return query
    select t.error_code, coalesce(h.name, ''), count(*), max(t.finished_at),
           (array_agg(t.id order by t.finished_at desc, t.id))[1], bool_and(f.is_last)
      from find_tasks(array['failed'], of_queues, most => most, budget => most) f
     cross join lateral unnest(f.ids) u(id)
      join task t on t.id = any(array[u.id])
      left join lane l on l.id = any(array[t.lane_id])
      left join bucket h on h.id = any(array[l.host_id])
     group by 1, 2;
end $$;

-- The tasks that wait for a time, by their last error: up to `most` of them. Without one, they are scheduled.
create function delayed_tasks(most int) returns table (code text, class text, tasks bigint)
language plpgsql stable set plan_cache_mode = force_generic_plan set enable_bitmapscan = off as $$
#variable_conflict use_column
begin
  return query
    select t.error_code, t.error_class, count(*)
      from (select task_id from delayed limit most) d join task t on t.id = any(array[d.task_id])
     group by 1, 2;
end $$;

-- Each host that has waiting or running tasks or a limit. `waiting`: of the first 5,000 lanes, and at most `most` of a queue
-- and kind. It reads all hosts, of which there may be many more, and so is not planned `by_index`.
create function host_uses(most int)
returns table (host text, waiting bigint, running int, run_limit int, bytes_per_second bigint)
language plpgsql stable set jit = off as $$
#variable_conflict use_column
begin
  return query
    with waits as materialized (
      select w.host, sum(w.runnable + w.capped + w.unserved)::bigint tasks from waiting_tasks(most) w group by w.host),
    rates as materialized (
      select r.host_id, coalesce(sum(r.rate), 0)::bigint rate from run r group by r.host_id)
    select b.name, coalesce(w.tasks, 0), b.used, nullif(b.run_limit, unlimited()), coalesce(r.rate, 0)
      from bucket b left join waits w on w.host = b.name left join rates r on r.host_id = b.id
     where b.scope = 'host' and b.name <> '' and (w.tasks > 0 or b.used > 0 or b.run_limit < unlimited());
end $$;

-- The storages that live workers have, with the space that one of them told last. Null: none has told it.
create function storage_uses()
returns table (storage text, workers bigint, free bigint, promised bigint, total bigint)
language sql stable as $$
  select v.name, count(*), (array_agg(v.free order by v.free is null, w.lease_until desc))[1],
         (array_agg(v.promised order by v.free is null, w.lease_until desc))[1],
         (array_agg(v.total order by v.free is null, w.lease_until desc))[1]
    from worker w
   cross join lateral unnest(w.volume_names, w.volume_free, w.volume_promised, w.volume_total) v(name, free, promised, total)
   where not w.dead and w.lease_until > now() and v.name is not null
   group by v.name
$$;

-- A worker tells the space of its storages. Storages that it does not have now are left out.
create function measure_storages(worker_id int, names text[], free bigint[], promised bigint[], total bigint[]) returns void
language sql as $$
  update worker w
     set (volume_free, volume_promised, volume_total) = (
           select array_agg(m.free order by v.n), array_agg(m.promised order by v.n), array_agg(m.total order by v.n)
             from unnest(w.volume_names) with ordinality v(name, n)
             left join unnest(names, free, promised, total) m(name, free, promised, total) on m.name = v.name)
   where w.id = worker_id and not w.dead
$$;

-- Samples in steps of `seconds`, from `since` to before `till`: how the fleet was at the last sample of a step, and how
-- many tasks ended since the last sample of the step before.
create function fleet_samples(since timestamptz, till timestamptz, seconds int)
returns table (
  at timestamptz, blocked bigint, queued bigint, running bigint, publishing bigint, paused bigint, succeeded bigint,
  canceled bigint, failed bigint, bytes_per_second bigint, new_succeeded bigint, new_canceled bigint, new_failed bigint)
language sql stable as $$
  with s as (
    select *, date_bin(make_interval(secs => seconds), at, 'epoch') step from fleet_sample where at >= since and at < till),
  last as (
    select distinct on (step) s.*, avg(bytes_per_second) over (partition by step) rate,
           first_value(ever_succeeded) over w first_succeeded, first_value(ever_canceled) over w first_canceled,
           first_value(ever_failed) over w first_failed
      from s window w as (partition by step order by at)
     order by step, at desc),
  base as (select * from fleet_sample where at < since order by at desc limit 1)
  select l.step, l.blocked, l.queued, l.running, l.publishing, l.paused, l.succeeded, l.canceled, l.failed, l.rate::bigint,
         l.ever_succeeded - coalesce(lag(l.ever_succeeded) over o, b.ever_succeeded, l.first_succeeded),
         l.ever_canceled - coalesce(lag(l.ever_canceled) over o, b.ever_canceled, l.first_canceled),
         l.ever_failed - coalesce(lag(l.ever_failed) over o, b.ever_failed, l.first_failed)
    from last l left join base b on true
  window o as (order by l.step)
   order by l.step
$$;
