-- Binds this schema to the fleet with this topic prefix, unless it belongs to a fleet already. Returns the prefix of
-- the fleet that has it.
create function bind_fleet(prefix text) returns text language sql as $$
  insert into fleet (topic_prefix) values (prefix) on conflict do nothing;
  select topic_prefix from fleet
$$;

-- A worker's lease begins. Repeated with the same boot it answers with the same id. `kind_limits` and `present_names` are
-- parallel to `its_kinds`: what their handlers declare. `its_version` is that of its program.
create function register_worker(
  its_boot uuid, its_host text, its_pid int, seconds int, its_kinds text[], kind_limits int[], present_names text[],
  its_volume_names text[], its_volume_ids uuid[], its_label_names text[], its_label_values text[], its_version text
) returns int language sql as $$
  select declare_kinds(its_kinds, kind_limits, present_names);
  insert into worker (boot, host, pid, lease_seconds, lease_until, kinds, volume_names, volume_ids, label_names,
                      label_values, version)
  values (its_boot, its_host, its_pid, seconds, now() + make_interval(secs => seconds), its_kinds,
          its_volume_names, its_volume_ids, its_label_names, its_label_values, its_version)
      on conflict (boot) do update set boot = excluded.boot
  returning id
$$;

-- Prolongs a lease. Returns no row if the lease is gone for good. Otherwise returns one row per intent, or one row of
-- nulls if there is no intent. A worker that was asked to end gets one more row, without a task: `drain`.
create function renew(renewed int) returns table (task_id uuid, what text) language plpgsql as $$
begin
  return query
    with alive as (
      update worker set lease_until = now() + make_interval(secs => lease_seconds)
       where id = renewed and not dead returning id, draining)
    select i.task_id, i.what from alive left join intent i on i.worker_id = alive.id
     union all
    select null, 'drain' from alive where draining;
end $$;

-- Asks a worker to end as on SIGTERM. Returns false if it has no lease.
create function drain_worker(its_boot uuid) returns boolean language plpgsql as $$
begin
  update worker set draining = true where boot = its_boot and not dead and lease_until > now();
  return found;
end $$;

-- Sets the storages that a worker can use from now on. Claims follow it.
create function announce(worker_id int, its_volume_names text[], its_volume_ids uuid[]) returns void language sql as $$
  -- What was told of their space has the places of the former names.
  update worker
     set volume_names = its_volume_names, volume_ids = its_volume_ids,
         volume_free = null, volume_promised = null, volume_total = null
   where id = worker_id and not dead
$$;

-- Gives up a lease. The sweep requeues the tasks that the worker still runs.
create function retire(retired int) returns void language plpgsql as $$
begin
  update worker set dead = true, lease_until = least(lease_until, now()) where id = retired;
  delete from worker where id = retired and not exists (select from run where worker_id = retired);
  delete from leader where worker_id = retired;
end $$;

-- Records the progress of running tasks. Ignores samples of an epoch that is over. Skips a run that is locked: samples
-- come together with the renewal of the lease, which must not wait for a lock.
create function record_progress(tasks uuid[], epochs int[], done bigint[], totals bigint[], rates bigint[])
returns void
language plpgsql set plan_cache_mode = force_generic_plan as $$
begin
  update run r set bytes_done = s.bytes_done, bytes_total = s.bytes_total, rate = s.rate
    from (select u.*, r.tuple
            from (select * from unnest(tasks, epochs, done, totals, rates)
                                u(task_id, epoch, bytes_done, bytes_total, rate)
                   order by task_id) u
           cross join lateral (
             select ctid tuple from run where task_id = u.task_id and epoch = u.epoch for no key update skip locked) r) s
   where r.ctid = s.tuple;
end $$;

-- Records checkpoints of runs. Returns one answer per checkpoint: whether its epoch owns the task. A checkpoint with
-- the stage `publishing` moves its task to that phase; what is published is known to be there.
create function record_checkpoints(
  tasks uuid[], epochs int[], versions smallint[], generations int[], dones bigint[], totals bigint[], stages text[],
  payloads json[]
) returns boolean[]
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  owned      int[];
  publishers uuid[];
  begun      uuid[];
  numbers    int[];
begin
  select coalesce(array_agg(o.ordinal), '{}'),
         array_agg(distinct o.id) filter (where o.phase = 'running' and stages[o.ordinal] = 'publishing')
    into owned, publishers
    from (select u.id, u.ordinal, r.phase
            from (select * from unnest(tasks, epochs) with ordinality u(id, epoch, ordinal) order by id, ordinal) u
           cross join lateral (select phase from run where task_id = u.id and epoch = u.epoch for no key update) r) o;

  insert into checkpoint as c (task_id, epoch, version, generation, bytes_done, bytes_total, stage, payload)
  select distinct on (u.task_id)  -- only the last checkpoint of a task
         u.task_id, u.epoch, u.version, u.generation, u.done, u.total, u.stage, u.payload
    from unnest(tasks, epochs, versions, generations, dones, totals, stages, payloads)
         with ordinality u(task_id, epoch, version, generation, done, total, stage, payload, ordinal)
   where u.ordinal = any(owned)
   order by u.task_id, u.ordinal desc
      on conflict (task_id) do update
     set epoch = excluded.epoch, version = excluded.version, generation = excluded.generation,
         bytes_done = excluded.bytes_done, bytes_total = excluded.bytes_total, stage = excluded.stage,
         payload = excluded.payload;

  if publishers is not null then
    perform lock_tasks(publishers);  -- so that no two events of a task get the same number
    with begun as (
      update run r set phase = 'publishing', sequence = greatest(r.sequence, t.sequence) + 1,
             bytes_done = c.bytes_done, bytes_total = coalesce(c.bytes_total, r.bytes_total)
        from unnest(publishers) u(id)
        join task t on t.id = any(array[u.id])
       cross join lateral (
         select epoch, bytes_done, bytes_total from checkpoint
          where task_id = u.id and stage = 'publishing' offset 0) c
       where r.task_id = any(array[u.id]) and r.phase = 'running' and r.epoch = c.epoch
      returning r.task_id, r.sequence)
    select array_agg(task_id), array_agg(b.sequence) into begun, numbers from begun b;
    perform publish('publishing', begun, numbers);
  end if;

  return (select array_agg(n = any(owned) order by n) from generate_series(1, cardinality(tasks)) n);
end $$;

-- Takes or keeps a role for some seconds. Returns false while another worker has it. A term that ends too late is one
-- from before the clock was set back.
create function lead(wanted_role text, candidate int, seconds int) returns boolean language plpgsql as $$
begin
  -- Most that ask do not lead. They write nothing: whoever meets the row below locks it.
  if exists (select from leader where role = wanted_role and worker_id <> candidate
                and until between now() and now() + make_interval(secs => 2 * seconds)) then
    return false;
  end if;
  insert into leader as l (role, worker_id, until)
  values (wanted_role, candidate, now() + make_interval(secs => seconds))
      on conflict (role) do update set worker_id = excluded.worker_id, until = excluded.until
   where l.worker_id = excluded.worker_id or l.until < now() or l.until > now() + make_interval(secs => 2 * seconds);
  return found;
end $$;
