-- The lanes without any task that may still run. A succeeded task keeps the number of its lane, but never runs again.
-- The lanes of what runs and of what is delayed are taken away as a set: joined to each lane, they would be looked up for
-- each, while the statistics are from before many lanes were switched off.
create view unused_lane as
  select l.id from lane l
   where not l.ready
     and not exists (select from ready r where r.lane_id = l.id offset 0)
     and not exists (
           select from task t where t.lane_id = l.id and t.halted = any('{blocked,paused,canceled,failed}') offset 0)
  except
  select t.lane_id
    from (select task_id from run union all select task_id from delayed) p
   cross join lateral (select lane_id from task where id = p.task_id offset 0) t;

create function tidy_key() returns bigint language sql stable as $$
  select hashtextextended('reelhaul.tidy.' || current_schema(), 0)
$$;

-- Switches up to 10,000 empty lanes off. A claim does not look at the lanes of what no worker has or what has no place, and
-- so does not switch them off when their tasks were withdrawn. Claims do not wait for it.
create function rest_lanes() returns void language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  dry int[];
begin
  if not pg_try_advisory_xact_lock(tidy_key()) then
    return;
  end if;
  -- A database that was restored from another cluster may have had higher transaction ids: what is new would be below
  -- the heads of its lanes.
  update lane set head = 0, ready = true
   where id = any(array(
     select id from lane where head > pg_snapshot_xmax(pg_current_snapshot())::text::bigint << 20
      order by id for no key update skip locked));
  -- Locks first (a transaction that puts a task into a lane holds KEY SHARE), then looks again with a new snapshot.
  select array_agg(id) into dry
    from (select id from lane l
           where ready and not exists (select from ready r where r.lane_id = l.id offset 0) limit 10000
             for update skip locked) locked;
  update lane l set ready = false
   where id = any(dry) and not exists (select from ready r where r.lane_id = l.id offset 0);
end $$;

-- Deletes up to 10,000 unused lanes, and returns whether there may be more. Claims do not wait for it. A submit waits only
-- if it uses such a lane again, because looking at a million delayed tasks takes seconds.
create function tidy_lanes() returns boolean language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  unused  int[];
  is_full boolean;
begin
  if not pg_try_advisory_xact_lock(tidy_key()) then
    return false;
  end if;
  select array_agg(id), count(*) = 10000 into unused, is_full from (select id from unused_lane limit 10000) u;
  -- Locks first, then looks again, as above.
  select array_agg(id) into unused from (select id from lane where id = any(unused) for update skip locked) locked;
  if unused is not null then
    select array_agg(id) into unused from unused_lane where id = any(unused);
    -- Counts of these lanes that are not folded yet name them.
    perform pg_advisory_xact_lock(counts_key());
    perform fold_counts();
    delete from lane where id = any(unused);
    return is_full;
  end if;
  return false;
end $$;

-- Frees up to 10,000 buckets that have no lane and no settings, and returns whether there may be more. New names never
-- stop coming, and every claim looks at every queue. The queue that was served last stays, because it holds the virtual
-- time. Claims do not wait for it.
create function tidy_buckets() returns boolean language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  freed   int[];
  is_full boolean;
begin
  -- While this lock is held, no lane is created, and so no bucket comes into use. It waits for a moment: where names never
  -- stop coming, some transaction nearly always holds it.
  begin
    set local lock_timeout = '1 s';
    perform begin_creation();
    set local lock_timeout = 0;
  exception when lock_not_available then
    return false;
  end;
  -- What lanes and other names use is taken away as a set: nothing of it is looked up for each bucket.
  freed := array(
    select id from (
      select id from bucket b
       where scope in ('host', 'queue', 'kind', 'storage') and name <> '' and used = 0 and run_limit = unlimited()
         and declared_limit is null and counts_as is null
         and (scope <> 'queue' or exists (
               select from queue q
                where q.id = b.id and q.weight = 1 and q.start < (select max(start) from queue) offset 0))
      except
      select counts_as from bucket where counts_as is not null
      except
      select unnest(array[queue_id, kind_id, host_id, storage_id, source_storage_id]) from lane) u limit 10000);
  is_full := cardinality(freed) = 10000;
  -- Only learned limits come without the lock.
  select array_agg(id) into freed
    from (select id from bucket where id = any(freed) and run_limit = unlimited() for update skip locked) unused;
  -- A claim that has moved a queue's tag holds its row.
  select array_agg(id) into freed
    from (select id from unnest(freed) u(id) where not exists (select from queue q where q.id = u.id offset 0)
           union all
          select id from (select id from queue where id = any(freed) for update skip locked) locked) unused;
  if freed is not null then
    delete from queue where id = any(freed);
    update bucket set scope = 'free', name = id::text where id = any(freed);
  end if;
  -- A claim has an array with a place for each id up to the highest.
  delete from bucket where scope = 'free' and id > (select max(id) from bucket where scope <> 'free');
  return is_full;
end $$;

-- Requeues the tasks of workers whose lease is over, moves delayed tasks whose time has come to `ready`, and goes on with
-- the dependents of tasks that have very many; up to 5,000 tasks each. It locks a worker's row and checks the lease under
-- that lock, but skips locked rows, so it never waits for a worker that is alive. A lease that ends more than two terms
-- from now is from before the clock was set back, and gets one term: a worker that lives renews it. Also returns how many
-- workers there are.
create function sweep() returns table (expired int, due int, workers int)
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  gone        int[];
  tuples      tid[];
  lost        uuid[];
  delays_over uuid[];
begin
  perform tend_inbox();
  expired := 0; due := 0;

  with late as (
    select id from worker where not dead and lease_until > now() + make_interval(secs => 2 * lease_seconds)
     order by id for update skip locked)
  update worker set lease_until = clock_timestamp() + make_interval(secs => lease_seconds)
   where id in (select id from late);

  with over as (
    select id from worker where not dead and lease_until < now() order by id for update skip locked)
  update worker set dead = true where id in (select id from over);
  select array_agg(id) into gone from (select id from worker where dead order by id for update skip locked) w;

  -- Those that somebody holds are for the next sweep, and hold up no other.
  select array_agg(l.ctid), array_agg(l.task_id) into tuples, lost
    from (select r.ctid, r.task_id
            from run r join task t on t.id = any(array[r.task_id])
           where gone is not null and r.worker_id = any(gone)
           order by r.task_id limit 5000
             for update of r skip locked for no key update of t skip locked) l;

  -- Locks the task's row first: a control command that has locked it may be taking it out of `delayed`.
  select array_agg(id) into delays_over
    from (select t.id
            from (select task_id from delayed where run_at <= now() order by run_at limit 5000) d
            join task t on t.id = any(array[d.task_id])
             for no key update of t skip locked) l;
  if delays_over is not null then
    with moved as (delete from delayed where task_id = any(delays_over) and run_at <= now() returning task_id, run_at)
    select array_agg(task_id order by run_at) into delays_over from moved;
    perform enqueue(delays_over, false);
    due := coalesce(cardinality(delays_over), 0);
  end if;
  due := due + unblock_more();

  expired := coalesce(cardinality(lost), 0);
  if expired > 0 then
    perform end_runs(
      tuples, lost, array_fill('lost'::text, array[expired]), null, null, null, null, null, null, null, null);
  else
    perform wake_lanes();
  end if;
  delete from worker w where id = any(gone) and not exists (select from run r where r.worker_id = w.id);
  perform tend_counts();
  workers := (select count(*) from worker where not dead);
  return next;
end $$;

-- Ends the sessions of the caller's user whose client has stopped in the middle of a batch of commands, and sent nothing for
-- longer than this; returns how many. The machine of a frozen process still acknowledges, so that no limit of the server's
-- own ends what waits for the rest of a batch, with all its locks.
create function end_stalled_batches(silence interval) returns int language sql volatile as $$
  select count(pg_terminate_backend(pid))::int
    from pg_stat_activity
   where datname = current_database() and usename = current_user
     and state in ('active', 'idle in transaction') and wait_event = 'ClientRead'
     and state_change < clock_timestamp() - silence
     and pid in (select pid from pg_locks
                  where locktype = 'advisory' and granted and objsubid = 1
                    and (classid::bigint << 32 | objid::bigint) = apply_key())
$$;

-- Whether a lease or claim of so many seconds is over. One that ends long after its time is from before the clock was set
-- back.
create function is_over(until timestamptz, seconds int) returns boolean language sql stable as $$
  select until not between now() and now() + make_interval(secs => 2 * seconds)
$$;

-- Takes up to `wanted` clean-ups that a worker with a current lease can do, for 60 seconds; none of the busy lines, which
-- are parallel arrays. It looks for what the worker can do, and not at what there is, which may be very many for others.
create function claim_cleanups(
  claimer int, wanted int, busy_kinds text[], busy_storages text[], busy_source_storages text[]
) returns setof cleanup
language plpgsql set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
  if not exists (select from cleanup) then
    return;  -- as mostly: every worker asks
  end if;
  return query
    with claiming as materialized (
      select kinds, volume_names || ''::text names from worker where id = claimer and not dead and lease_until > now()),
    due as materialized (
      select c.id
        from claiming w
       cross join lateral unnest(w.kinds) k(kind)
       cross join lateral unnest(w.names) s(storage)
       cross join lateral (select from cleanup c where c.kind = k.kind and c.storage = s.storage limit 1) any_row
       cross join lateral unnest(w.names) o(storage)
       cross join lateral (
         select id, run_at from cleanup c
          where (c.kind, c.storage, c.source_storage) = (k.kind, s.storage, o.storage)
            and c.run_at <= now() and is_over(c.claimed_until, 60)
          order by c.run_at limit wanted for update skip locked) c
       where not exists (
         select from unnest(busy_kinds, busy_storages, busy_source_storages) b(kind, storage, source_storage)
          where (b.kind, b.storage, b.source_storage) = (k.kind, s.storage, o.storage))
       order by c.run_at limit wanted)
    update cleanup c set claimed_until = now() + interval '60 s', attempt = c.attempt + 1
      from due where c.id = any(array[due.id])
    returning c.*;
end $$;

create function finish_cleanups(ids bigint[]) returns void language sql as $$
  delete from cleanup where id = any(ids)
$$;

-- They were not tried.
create function return_cleanups(ids bigint[]) returns void language sql as $$
  update cleanup set claimed_until = '-infinity', attempt = attempt - 1 where id = any(ids)
$$;

create function postpone_cleanup(postponed bigint, delay_microseconds bigint, reason text) returns void
language sql as $$
  update cleanup
     set run_at = now() + make_interval(secs => delay_microseconds / 1e6), claimed_until = '-infinity', error = reason
   where id = postponed
$$;
