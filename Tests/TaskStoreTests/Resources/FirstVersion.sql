-- A database of the first version of the schema, with tasks in all states. Made by pg_dump; comments, settings and what
-- belongs to a machine are left out, and positions are those of a young cluster. It is restored in one transaction.
set local check_function_bodies = off;


CREATE TYPE public.task_state AS ENUM (
    'blocked',
    'queued',
    'paused',
    'succeeded',
    'canceled',
    'failed'
);

CREATE FUNCTION public.announce(worker_id integer, its_volume_names text[], its_volume_ids uuid[]) RETURNS void
    LANGUAGE sql
    AS $$
  update worker set volume_names = its_volume_names, volume_ids = its_volume_ids where id = worker_id and not dead
$$;

CREATE FUNCTION public.audit() RETURNS SETOF text
    LANGUAGE sql
    SET work_mem TO '64MB'
    AS $$
  with places as (
    select coalesce(t.id, w.task_id, d.task_id, r.task_id) id, coalesce(t.state::text, 'missing') state,
           num_nonnulls(w.task_id, d.task_id, r.task_id) n,
           array_to_string(array[case when w.task_id is not null then 'ready' end,
                                 case when d.task_id is not null then 'delayed' end,
                                 case when r.task_id is not null then 'run' end], ', ') names
      from task t
      full join ready w on w.task_id = t.id
      full join delayed d on d.task_id = coalesce(t.id, w.task_id)
      full join run r on r.task_id = coalesce(t.id, w.task_id, d.task_id)),
  counts as (
    select scope.bucket_id, count(*) n from run r
     cross join lateral (values (1), (r.kind_id), (r.queue_id), (r.host_id), (r.storage_id)) scope (bucket_id)
     group by scope.bucket_id)
  select format('task %s is %s and in {%s}', id, state, names)
    from places where n <> case state when 'queued' then 1 else 0 end
  union all
  select format('task %s waits with lane, position, epoch, attempt and event %s instead of %s', t.id,
                (r.lane_id, r.pos, r.epoch, r.attempt, r.sequence), (t.lane_id, t.pos, t.epoch, t.attempt, t.sequence))
    from ready r join task t on t.id = r.task_id
   where (r.lane_id, r.pos, r.epoch, r.attempt, r.sequence)
         is distinct from (t.lane_id, t.pos, t.epoch, t.attempt, t.sequence)
  union all
  select format('task %s runs with epoch %s after epoch %s', t.id, r.epoch, t.epoch)
    from run r join task t on t.id = r.task_id where r.epoch <> t.epoch + 1
  union all
  select format('task %s runs for worker %s, which does not exist', r.task_id, r.worker_id)
    from run r where not exists (select from worker w where w.id = r.worker_id)
  union all
  select format('%s %s counts %s and runs %s', b.scope, b.name, b.used, coalesce(c.n, 0))
    from bucket b left join counts c on c.bucket_id = b.id where b.used <> coalesce(c.n, 0)
  union all
  select format('lane %s is off and has waiting tasks', l.id)
    from lane l where not l.ready and exists (select from ready r where r.lane_id = l.id)
  union all
  select format('task %s is %s in lane %s, which does not exist', t.id, t.state, t.lane_id)
    from task t where t.state <> 'succeeded' and not exists (select from lane l where l.id = t.lane_id)
  union all
  select format('lane %s is of bucket %s, which is no %s', l.id, k.id, k.scope)
    from lane l
   cross join lateral (values ('queue', l.queue_id), ('kind', l.kind_id), ('host', l.host_id),
                              ('storage', l.storage_id)) k (scope, id)
   where not exists (select from bucket b where b.id = k.id and b.scope = k.scope)
  union all
  select format('lane %s looks from %s on and has a task at %s', l.id, l.head, r.pos)
    from ready r join lane l on l.id = r.lane_id where r.pos >= 0 and r.pos < l.head
  union all
  select format('lane %s has a task at %s, ahead of all transactions: was the database restored from elsewhere?',
                r.lane_id, r.pos)
    from ready r where r.pos >> 20 > (select pg_snapshot_xmax(pg_current_snapshot())::text::bigint)
  union all
  select format('task %s is blocked by nothing', t.id)
    from task t where t.halted = 'blocked' and not exists (select from task_dependency d where d.task_id = t.id)
  union all
  select format('task %s is %s and waits for others', t.id, coalesce(t.state::text, 'missing'))
    from task_dependency d left join task t on t.id = d.task_id
   where t.id is null or t.state not in ('blocked', 'paused', 'canceled')
  union all
  select format('intent to %s task %s, which worker %s does not run', i.what, i.task_id, i.worker_id)
    from intent i where not exists (select from run r where r.task_id = i.task_id and r.worker_id = i.worker_id)
$$;

CREATE FUNCTION public.begin_apply(alone boolean, tasks uuid[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
  key bigint := hashtextextended('reelhaul.apply.' || current_schema(), 0);
begin
  if alone then
    perform pg_advisory_xact_lock(key);
  else
    perform pg_advisory_xact_lock_shared(key);
  end if;
  perform tend_inbox();
  perform lock_tasks(tasks);
end $$;

CREATE FUNCTION public.begin_creation() RETURNS void
    LANGUAGE sql
    AS $$
  select pg_advisory_xact_lock(creation_key())
$$;

CREATE FUNCTION public.bind_fleet(prefix text) RETURNS text
    LANGUAGE sql
    AS $$
  insert into fleet (topic_prefix) values (prefix) on conflict do nothing;
  select topic_prefix from fleet
$$;

CREATE FUNCTION public.claim(claimer integer, wanted integer, call bigint) RETURNS SETOF uuid
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_memoize TO 'off'
    AS $$
#variable_conflict use_column
declare
  chunk      float8   := greatest(8, wanted / 16.0);               -- a queue is served so many tasks at a time
  shares     int      := ceil(wanted / greatest(8, wanted / 16.0));
  left_over  int      := wanted;
  at_rank    smallint := -32768;
  now_v      float8;                                              -- the virtual time
  horizon    bigint;                                              -- no later commit comes below it
  kinds      int[];                                               -- those the worker handles that have room
  storages   int[];                                               -- those it has mounted that have room
  hosts      int[];                                               -- those with room, where they are few
  few        boolean;
  room       int[];                                               -- run_limit - used, by bucket, when first met
  served     int[];                                               -- queues with nothing left at this rank
  progress   boolean;
  share      record;
  l          record;
  quota      int;
  got        int;
  steps      int;
  fan        int;
  n          int;
  e          int;
  at_host    int;
  at_lane    int;
  from_host  int;
  from_lane  int;
  wrapped    boolean;
  ended      boolean;
  met        boolean;
  picked     tid[];
  dry        int[];                                               -- lanes that seem empty
  took       uuid[];          took_sequences int[];
  all_took   uuid[] := '{}';  all_sequences  int[] := '{}';
begin
  perform pass_gate();

  update worker set claim_call = call
   where id = claimer and not dead and lease_until > now() and claim_call < call;
  if not found then
    return query
      select r.task_id from worker w join run r on r.worker_id = w.id and r.claim_call = call
       where w.id = claimer and not w.dead and w.lease_until > now();
    return;
  end if;

  horizon := pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 20;
  select array_fill(null::int, array[max(id)]) into room from bucket;
  select least(wanted, run_limit - used) into left_over from bucket where id = 1;
  select max(start) into now_v from queue;
  select coalesce(array_agg(b.id), '{}') into kinds
    from worker w cross join lateral unnest(w.kinds) k(name)
    join bucket b on b.scope = 'kind' and b.name = k.name and b.used < b.run_limit where w.id = claimer;
  select coalesce(array_agg(b.id), '{}') into storages
    from worker w cross join lateral unnest(w.volume_names || ''::text) s(name)
    join bucket b on b.scope = 'storage' and b.name = s.name and b.used < b.run_limit where w.id = claimer;
  select coalesce(array_agg(id), '{}') into hosts
    from (select id from bucket where scope = 'host' and used < run_limit order by id limit 33) open;
  few := cardinality(hosts) <= 32;

  <<ranks>>
  while left_over > 0 loop
    select rank into at_rank from lane where ready and rank > at_rank order by rank limit 1;
    exit when not found;
    served := '{}';

    loop  -- rounds, while something is taken
      progress := false;
      -- The queues that are due, by virtual start time, and how many chunks each. A queue whose lanes are all without
      -- room must not be listed: it would stay the lowest, and starve the others.
      for share in
        with due as (
          select q.id, q.s, q.weight, q.cursor_host, q.cursor_lane, b.run_limit - b.used room
            from (select id, greatest(tag, now_v) s, weight, cursor_host, cursor_lane
                    from queue order by greatest(tag, now_v), id) q
            join bucket b on b.id = q.id and b.used < b.run_limit
           where q.id <> all(served)
             and case
                   when not exists (
                     select from lane r where r.ready and r.rank = at_rank and r.queue_id = q.id offset 0) then false
                   when few then exists (
                     select from unnest(hosts) o(id)
                      cross join lateral (
                        select from lane r
                         where r.ready and r.rank = at_rank and r.queue_id = q.id and r.host_id = o.id
                           and r.kind_id = any(kinds) and r.storage_id = any(storages) limit 1) open_lane)
                   else exists (
                     select from lane r
                      where r.ready and r.rank = at_rank and r.queue_id = q.id
                        and r.kind_id = any(kinds) and r.storage_id = any(storages)
                        and (select h.used < h.run_limit from bucket h where h.id = r.host_id))
                 end
           limit shares),
        chunks as (
          select due.*, s + i * chunk / weight f from due, generate_series(0, shares - 1) i order by f limit shares)
        select id, s, weight, cursor_host, cursor_lane, room, ceil(count(*) * chunk)::int quota, max(f) last_start
          from chunks group by id, s, weight, cursor_host, cursor_lane, room order by s
      loop
        room[share.id] := coalesce(room[share.id], share.room);
        quota := least(share.quota, left_over, room[share.id]);
        got := 0; steps := 0; fan := 1; wrapped := false; ended := false;
        at_host := share.cursor_host; at_lane := share.cursor_lane;
        from_host := at_host; from_lane := at_lane;

        -- The queue's lanes as a ring, from behind its cursor, once round: one lane at first, then 4, 16, 32 at a time.
        while quota > 0 and steps < 256 loop
          met := false;
          for l in
            select x.id, x.kind_id, x.host_id, x.storage_id, x.head_at, free.kind, free.host, free.storage,
                   least(quota, free.kind, free.host, free.storage) asked, waiting.rows, waiting.first_pos
              from (select * from (
                      select r.*
                        from (select o.id from unnest(hosts) o(id) where few and o.id >= at_host order by o.id) o
                       cross join lateral (
                         select r.id, r.kind_id, r.host_id, r.storage_id, r.head, r.head_at from lane r
                          where r.ready and r.rank = at_rank and r.queue_id = share.id and r.host_id = o.id
                            and (o.id > at_host or r.id > at_lane)
                            and r.kind_id = any(kinds) and r.storage_id = any(storages)
                          order by r.id) r
                       limit fan) of_few
                    union all
                    select * from (
                      select r.id, r.kind_id, r.host_id, r.storage_id, r.head, r.head_at from lane r
                       where not few and r.ready and r.rank = at_rank and r.queue_id = share.id
                         and (r.host_id, r.id) > (at_host, at_lane)
                         and r.kind_id = any(kinds) and r.storage_id = any(storages)
                         and (select h.used < h.run_limit from bucket h where h.id = r.host_id)
                       order by r.host_id, r.id limit fan) of_many) x
             cross join lateral (
               select coalesce(room[x.kind_id], (select run_limit - used from bucket where id = x.kind_id)) kind,
                      coalesce(room[x.host_id], (select run_limit - used from bucket where id = x.host_id)) host,
                      coalesce(room[x.storage_id], (select run_limit - used from bucket where id = x.storage_id)) storage
               offset 0) free
              left join lateral (
                select array_agg(z.ctid) rows, min(z.pos) filter (where z.pos >= 0) first_pos
                  from (select * from (
                          select w.ctid, w.pos from ready w where w.lane_id = x.id and w.pos < 0
                           order by w.pos limit least(quota, free.kind, free.host, free.storage)) in_front
                        union all
                        select * from (
                          select w.ctid, w.pos from ready w where w.lane_id = x.id and w.pos >= x.head
                           order by w.pos limit least(quota, free.kind, free.host, free.storage)) behind
                        limit least(quota, free.kind, free.host, free.storage)) z) waiting on true
          loop
            if wrapped and (l.host_id, l.id) > (from_host, from_lane) then
              ended := true;
              exit;
            end if;
            met := true; steps := steps + 1; at_host := l.host_id; at_lane := l.id;
            room[l.kind_id] := coalesce(room[l.kind_id], l.kind);
            room[l.host_id] := coalesce(room[l.host_id], l.host);
            room[l.storage_id] := coalesce(room[l.storage_id], l.storage);
            n := least(quota, room[l.kind_id], room[l.host_id], room[l.storage_id]);
            e := coalesce(cardinality(l.rows), 0);
            if n > 0 then
              if e < l.asked then
                dry := dry || l.id;
              end if;
              if e > n then
                picked := picked || l.rows[1:n]; e := n;
              else
                picked := picked || l.rows;
              end if;
              quota := quota - e; got := got + e; left_over := left_over - e;
              room[share.id] := room[share.id] - e;
              room[l.kind_id] := room[l.kind_id] - e;
              room[l.host_id] := room[l.host_id] - e;
              room[l.storage_id] := room[l.storage_id] - e;
              if few and room[l.host_id] <= 0 then
                hosts := array_remove(hosts, l.host_id);
              end if;
              if e >= 50 and l.first_pos >= 0 and l.head_at < now() - interval '0.1 s' then
                update lane set head = least(l.first_pos, horizon), head_at = now()
                 where id = (select id from lane where id = l.id for no key update skip locked);
              end if;
            end if;
            if room[l.kind_id] <= 0 then
              kinds := array_remove(kinds, l.kind_id);
            end if;
            if room[l.storage_id] <= 0 then
              storages := array_remove(storages, l.storage_id);
            end if;
            exit when quota <= 0;
          end loop;
          exit when ended;
          if not met then
            exit when wrapped;
            wrapped := true; at_host := 0; at_lane := 0;
          end if;
          fan := least(fan * 4, 32);
        end loop;

        update queue
           set tag = share.s + got / share.weight,
               start = case when got > 0 then least(share.last_start, share.s + got / share.weight) else start end,
               cursor_host = at_host, cursor_lane = at_lane
         where id = share.id and (got > 0 or steps >= 256);
        if got > 0 then
          progress := true;
        end if;
        if got < share.quota then
          served := served || share.id;
        end if;
        exit when left_over <= 0;
      end loop;

      -- Every round is written before the next one looks.
      if picked is not null then
        -- Never waits for a command that is taking a task out of `ready`: that may be waiting for this claim.
        with free as materialized (select ctid tuple from ready where ctid = any(picked) for update skip locked),
        taken as (delete from ready r using free where r.ctid = free.tuple returning r.*),
        begun as (
          insert into run (task_id, epoch, worker_id, claim_call, queue_id, kind_id, host_id, storage_id, attempt, sequence)
          select t.task_id, t.epoch + 1, claimer, call, z.queue_id, z.kind_id, z.host_id, z.storage_id,
                 t.attempt + 1, t.sequence + 1
            from taken t join lane z on z.id = t.lane_id
          returning task_id, sequence)
        select array_agg(task_id), array_agg(sequence) into took, took_sequences from begun;
        all_took := all_took || took; all_sequences := all_sequences || took_sequences;
        picked := null;
      end if;
      exit ranks when left_over <= 0;
      exit when not progress;
    end loop;
  end loop;

  -- Switch empty lanes off: lock first (whoever inserts holds KEY SHARE), then look again with a new snapshot.
  if dry is not null then
    select array_agg(id) into dry from (select id from lane where id = any(dry) and ready for update skip locked) locked;
    update lane z set ready = false
     where id = any(dry)
       and not exists (select from ready r where r.lane_id = z.id and r.pos < 0)
       and not exists (select from ready r where r.lane_id = z.id and r.pos >= z.head);
  end if;

  perform publish('started', all_took, all_sequences);
  return query select unnest(all_took);
end $$;

CREATE FUNCTION public.claimed(tasks uuid[]) RETURNS TABLE(task_id uuid, epoch integer, attempt smallint, priority smallint, spec json, generation integer, identity json, volume uuid, staging_name text, done int8multirange, tail_crc bigint, publishing bytea)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
begin
  return query
    select t.id, r.epoch, r.attempt, t.priority, t.spec,
           c.generation, c.identity, c.volume, c.staging_name, c.done, c.tail_crc, c.publishing
      from unnest(tasks) u(id)
      join run r on r.task_id = any(array[u.id])
      join task t on t.id = any(array[u.id])
      left join checkpoint c on c.task_id = any(array[u.id]);
end $$;

CREATE FUNCTION public.control(ids uuid[], tasks uuid[], actions text[], priorities smallint[]) RETURNS TABLE(outcome text, worker_boot uuid, code text, reason text)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  today   date := (now() at time zone 'utc')::date;
  new     uuid[];
  command record;
  t       task;
  r       run;
  pending text;
  running boolean;
  target  int;
begin
  with added as (
    insert into command_inbox (id, day)
    select distinct u.id, today from unnest(ids) u(id)
     where not exists (select from command_inbox i where i.id = u.id offset 0)
     order by u.id  -- two batches with the same commands wait in one order
        on conflict do nothing
    returning id)
  select array_agg(id) into new from added;

  for command in
    select u.*, n.id is not null and row_number() over (partition by u.id order by u.ordinal) = 1 is_new
      from unnest(ids, tasks, actions, priorities) with ordinality u(id, task_id, action, priority, ordinal)
      left join unnest(new) n(id) on n.id = u.id
     order by u.ordinal
  loop
    outcome := 'applied'; worker_boot := null; code := null; reason := null;

    if not command.is_new then
      select case when i.code is null then 'duplicate' else 'refused' end, i.code, i.reason
        into outcome, code, reason from command_inbox i where i.id = command.id;
      return next;
      continue;
    end if;

    select * into t from task where id = command.task_id;
    if not found then
      code := 'unknown_task'; reason := 'there is no task ' || command.task_id;
    else
      select * into r from run where task_id = t.id;
      running := found;
      if not running and t.state = 'queued'
         and (command.action in ('pause', 'cancel', 'remove')
              or command.action = 'prioritize' and not exists (select from delayed where task_id = t.id))
      then
        if not withdraw(t) then
          select * into strict r from run where task_id = t.id;
          running := true;
        end if;
      end if;

      if running then
        select what into pending from intent where worker_id = r.worker_id and task_id = t.id;
        if command.action = 'cancel' or command.action = 'pause' and pending is distinct from 'cancel' then
          insert into intent (worker_id, task_id, what) values (r.worker_id, t.id, command.action)
              on conflict (worker_id, task_id) do update set what = excluded.what;
          select boot into worker_boot from worker where id = r.worker_id;
          outcome := 'intended';
        elsif command.action = 'resume' and pending = 'pause' then
          delete from intent where worker_id = r.worker_id and task_id = t.id;
        elsif command.action = 'prioritize' then
          -- Felt when the task comes back to the queue.
          update task
             set priority = command.priority, lane_id = sibling_lane(t.lane_id, (-command.priority)::smallint),
                 sequence = greatest(t.sequence, r.sequence) + 1
           where id = t.id returning * into t;
          perform publish('prioritized', array[t.id], array[t.sequence]);
        else
          code := 'illegal_transition';
          reason := format('%s is not possible while the task is %s', command.action,
                           case pending when 'cancel' then 'being canceled' else r.phase end);
        end if;
      elsif command.action = 'pause' and t.state in ('blocked', 'queued') then
        update task set state = 'paused', sequence = sequence + 1 where id = t.id;
        perform publish('paused', array[t.id], array[t.sequence + 1]);
      elsif command.action = 'resume' and t.state = 'paused' then
        perform release_tasks(array[t.id], 'resumed');
      elsif command.action = 'cancel' and t.state in ('blocked', 'queued', 'paused') then
        update task set state = 'canceled', finished_at = now(), sequence = sequence + 1 where id = t.id;
        perform publish('canceled', array[t.id], array[t.sequence + 1]);
      elsif command.action = 'retry' and t.state in ('failed', 'canceled') then
        update task
           set attempt = 0, error_code = null, error_message = null, error_class = null, error_retry_after = null,
               state = 'queued', finished_at = null
         where id = t.id;
        perform release_tasks(array[t.id], 'retrying');
      elsif command.action = 'remove' then
        delete from task where id = t.id;
        delete from checkpoint where task_id = t.id;
        delete from task_dependency where task_id = t.id;
        insert into removed_task (id, succeeded) values (t.id, t.state = 'succeeded') on conflict do nothing;
        perform publish('removed', array[t.id], array[t.sequence + 1]);
      elsif command.action = 'prioritize' and t.state in ('blocked', 'queued', 'paused') then
        target := sibling_lane(t.lane_id, (-command.priority)::smallint);
        update task set priority = command.priority, lane_id = target, sequence = sequence + 1 where id = t.id;
        perform publish('prioritized', array[t.id], array[t.sequence + 1]);
        if t.state = 'queued' and not exists (select from delayed where task_id = t.id) then
          perform enqueue(array[t.id], false);
        end if;
      else
        code := 'illegal_transition';
        reason := format('%s is not possible while the task is %s', command.action, t.state);
      end if;
    end if;

    if code is not null then
      outcome := 'refused';
      update command_inbox i set code = control.code, reason = control.reason where i.id = command.id and i.day = today;
    end if;
    return next;
  end loop;
end $$;

CREATE FUNCTION public.count_runs() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
  buckets int[];
  counts  int[];
begin
  select array_agg(bucket_id order by bucket_id), array_agg(n order by bucket_id) into buckets, counts
    from (select bucket_id, sum(n)::int n
            from (select kind_id, queue_id, host_id, storage_id, count(*) n
                    from changed group by kind_id, queue_id, host_id, storage_id) c  -- runs alike, together
           cross join lateral (values (1), (c.kind_id), (c.queue_id), (c.host_id), (c.storage_id)) scope (bucket_id)
           group by bucket_id) counted;
  if buckets is null then
    return null;
  end if;

  perform from bucket where id = any(buckets) order by id for no key update;

  if tg_op = 'INSERT' then
    update bucket b set used = b.used + u.n
      from unnest(buckets, counts) u(id, n) where b.id = u.id;
  else
    update bucket b set used = b.used - u.n, ceiling = greatest(b.run_limit, b.used - u.n)
      from unnest(buckets, counts) u(id, n) where b.id = u.id;
  end if;
  return null;
end $$;

CREATE FUNCTION public.creation_key() RETURNS bigint
    LANGUAGE sql STABLE
    AS $$
  select hashtextextended('reelhaul.creation.' || current_schema(), 0)
$$;

CREATE FUNCTION public.end_runs(tuples tid[], tasks uuid[], outcomes text[], delays interval[], digests bytea[], sizes bigint[], codes text[], messages text[], classes text[], retry_afters integer[]) RETURNS void
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  to_front  uuid[];
  to_end    uuid[];
  succeeded uuid[];
  intents   tid[];
begin
  perform lock_tasks(tasks);  -- after this no control command can leave an intent behind

  with ended as materialized (
    select r.*, u.*, i.*
      from unnest(tuples, outcomes, delays, digests, sizes, codes, messages, classes, retry_afters)
           u(tuple, outcome, delay, digest, size, code, message, class, retry_after)
      join run r on r.ctid = u.tuple
      left join lateral (select what, ctid intent from intent where worker_id = r.worker_id and task_id = r.task_id offset 0) i
        on true),
  decided as (
    select e.*,
           case when e.outcome = 'succeeded' then 'succeeded'
                when e.what = 'cancel' then 'canceled'
                when e.what = 'pause' then 'paused'
                when e.outcome = 'failed' and e.delay is null then 'failed'
                when e.outcome in ('failed', 'progressed') then 'retrying'
                else 'released' end verdict,
           case when e.outcome in ('released', 'lost') then e.attempt - 1
                when e.outcome = 'progressed' then 0 else e.attempt end counted,
           coalesce(e.delay, interval '0') > interval '0' waits
      from ended e),
  changed as (
    update task t
       set state = case d.verdict when 'retrying' then 'queued' when 'released' then 'queued' else d.verdict end::task_state,
           attempt = d.counted,
           epoch = d.epoch,
           settled_epoch = case d.outcome when 'lost' then t.settled_epoch else d.epoch end,
           sequence = greatest(t.sequence, d.sequence) + 1,
           started_at = d.started_at,
           finished_at = case when d.verdict in ('succeeded', 'failed', 'canceled') then now() end,
           -- What is recorded; the run may have had more, and lost it, or recorded more than it last told.
           bytes_done = case d.verdict when 'succeeded' then d.size
                          else (select coalesce(sum(upper(r) - lower(r)), 0)
                                  from checkpoint c cross join unnest(c.done) r where c.task_id = t.id) end,
           bytes_total = case d.verdict when 'succeeded' then d.size else coalesce(d.bytes_total, t.bytes_total) end,
           generation = coalesce((select generation from checkpoint c where c.task_id = t.id), t.generation),
           worker = (select boot from worker w where w.id = d.worker_id),
           sha256 = case d.verdict when 'succeeded' then d.digest end,
           error_code = case when d.verdict not in ('succeeded', 'canceled') then d.code end,
           error_message = case when d.verdict not in ('succeeded', 'canceled') then d.message end,
           error_class = case when d.verdict not in ('succeeded', 'canceled') then d.class end,
           error_retry_after = case when d.verdict not in ('succeeded', 'canceled') then d.retry_after end
      from decided d
     where t.id = any(array[d.task_id])
    returning t.id, t.sequence, d.verdict, d.waits, d.delay, d.intent),
  told as (
    insert into outbox (kind, task_ids, sequences)
    select verdict, array_agg(id), array_agg(sequence) from changed group by verdict),
  later as (
    insert into delayed (task_id, run_at)
    select id, now() + delay from changed where verdict in ('retrying', 'released') and waits)
  select array_agg(id) filter (where verdict = 'released' and not waits),
         array_agg(id) filter (where verdict = 'retrying' and not waits),
         array_agg(id) filter (where verdict = 'succeeded'),
         array_agg(intent) filter (where intent is not null)
    into to_front, to_end, succeeded, intents from changed;

  if intents is not null then
    delete from intent where ctid = any(intents);
  end if;
  if succeeded is not null then
    delete from checkpoint where task_id = any(succeeded);
    perform unblock(succeeded);
  end if;
  perform enqueue(to_front, true);
  perform enqueue(to_end, false);
  perform wake_lanes();
  delete from run where ctid = any(tuples);
end $$;

CREATE FUNCTION public.enqueue(tasks uuid[], in_front boolean) RETURNS void
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  base  bigint;
  lanes int[];
begin
  if coalesce(cardinality(tasks), 0) = 0 then
    return;
  end if;
  base := reserve_positions(cardinality(tasks)) - case when in_front then 1::bigint << 62 else 0 end;
  select array_agg(distinct lane_id) into lanes from task where id = any(tasks);
  perform hold_lanes(lanes);
  with placed as (
    update task t set pos = base + u.ordinal - 1
      from unnest(tasks) with ordinality u(id, ordinal)
     where t.id = any(array[u.id])
    returning t.lane_id, t.pos, t.id, t.epoch, t.attempt, t.sequence)
  insert into ready (lane_id, pos, task_id, epoch, attempt, sequence)
  select lane_id, pos, id, epoch, attempt, sequence from placed;
end $$;

CREATE FUNCTION public.ensure_buckets(scopes text[], names text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
  perform begin_creation();

  with wanted as (
    select w.scope, w.name, row_number() over (order by w.scope, w.name) n
      from (select distinct scope, name from unnest(scopes, names) u(scope, name)) w
     where not exists (select from bucket b where b.scope = w.scope and b.name = w.name)),
  free as (
    select id, row_number() over (order by id) n
      from (select id from bucket where scope = 'free' order by id limit (select count(*) from wanted)) f),
  reused as (
    update bucket b set scope = w.scope, name = w.name from free f join wanted w using (n) where b.id = f.id)
  insert into bucket (id, scope, name)
  select (select max(id) from bucket) + row_number() over (order by w.n), w.scope, w.name
    from wanted w where w.n > (select count(*) from free);

  insert into queue (id, tag)
  select b.id, (select coalesce(max(start), 0) from queue)
    from bucket b
   where b.scope = 'queue' and b.name = any(names) and not exists (select from queue q where q.id = b.id);
end $$;

CREATE FUNCTION public.hold_lanes(lanes integer[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
  held  int[] := coalesce(nullif(current_setting('reelhaul.lanes', true), ''), '{}');
  there int;
begin
  perform from lane where id = any(lanes) order by id for key share;
  get diagnostics there = row_count;
  if there < cardinality(lanes) then
    -- Deleted since it was looked up: whoever repeats the call makes it anew.
    raise exception 'a lane is gone' using errcode = 'serialization_failure';
  end if;
  if not lanes <@ held then
    perform set_config('reelhaul.lanes', (held || lanes)::text, true);
  end if;
end $$;

CREATE FUNCTION public.lane_ids(ranks smallint[], queues text[], kinds text[], hosts text[], storages text[]) RETURNS integer[]
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  ids   int[];
  tries int := 0;
begin
  loop
    select array_agg(l.id order by u.ordinal) into ids
      from unnest(ranks, queues, kinds, hosts, storages) with ordinality u(rank, queue, kind, host, storage, ordinal)
      left join bucket q on q.scope = 'queue' and q.name = u.queue
      left join bucket k on k.scope = 'kind' and k.name = u.kind
      left join bucket h on h.scope = 'host' and h.name = u.host
      left join bucket s on s.scope = 'storage' and s.name = u.storage
      left join lane l
        on (l.rank, l.queue_id, l.kind_id, l.host_id, l.storage_id) = (u.rank, q.id, k.id, h.id, s.id);
    if array_position(ids, null) is null then
      return ids;
    end if;
    -- One that is there may be deleted before it is held; not again and again.
    tries := tries + 1;
    if tries > 10 then
      raise exception 'lanes could not be made';
    end if;

    perform ensure_buckets(
      array_fill('queue'::text, array[cardinality(queues)]) || array_fill('kind'::text, array[cardinality(kinds)])
        || array_fill('host'::text, array[cardinality(hosts)]) || array_fill('storage'::text, array[cardinality(storages)]),
      queues || kinds || hosts || storages);
    insert into lane (rank, queue_id, kind_id, host_id, storage_id)
    select u.rank, q.id, k.id, h.id, s.id
      from unnest(ranks, queues, kinds, hosts, storages) u(rank, queue, kind, host, storage)
      join bucket q on q.scope = 'queue' and q.name = u.queue
      join bucket k on k.scope = 'kind' and k.name = u.kind
      join bucket h on h.scope = 'host' and h.name = u.host
      join bucket s on s.scope = 'storage' and s.name = u.storage
     where not exists (select from lane l
                        where (l.rank, l.queue_id, l.kind_id, l.host_id, l.storage_id) = (u.rank, q.id, k.id, h.id, s.id))
        on conflict do nothing;
  end loop;
end $$;

CREATE FUNCTION public.lead(wanted_role text, candidate integer, seconds integer) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
begin
  insert into leader as l (role, worker_id, until)
  values (wanted_role, candidate, now() + make_interval(secs => seconds))
      on conflict (role) do update set worker_id = excluded.worker_id, until = excluded.until
   where l.worker_id = excluded.worker_id or l.until < now();
  return found;
end $$;

CREATE TABLE public.checkpoint (
    task_id uuid NOT NULL,
    epoch integer NOT NULL,
    generation integer NOT NULL,
    identity json NOT NULL,
    volume uuid NOT NULL,
    staging_name text NOT NULL,
    done int8multirange NOT NULL,
    tail_crc bigint,
    publishing bytea,
    CONSTRAINT checkpoint_publishing_check CHECK ((octet_length(publishing) = 32)),
    CONSTRAINT checkpoint_tail_crc_check CHECK (((tail_crc >= 0) AND (tail_crc <= '4294967295'::bigint)))
)
WITH (fillfactor='50');

CREATE TABLE public.delayed (
    task_id uuid NOT NULL,
    run_at timestamp with time zone NOT NULL
);

CREATE TABLE public.run (
    task_id uuid NOT NULL,
    epoch integer NOT NULL,
    worker_id integer NOT NULL,
    claim_call bigint NOT NULL,
    queue_id integer NOT NULL,
    kind_id integer NOT NULL,
    host_id integer NOT NULL,
    storage_id integer NOT NULL,
    attempt smallint NOT NULL,
    sequence integer NOT NULL,
    phase text DEFAULT 'running'::text NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    bytes_done bigint,
    bytes_total bigint,
    rate bigint,
    CONSTRAINT run_attempt_check CHECK ((attempt > 0)),
    CONSTRAINT run_epoch_check CHECK ((epoch > 0)),
    CONSTRAINT run_phase_check CHECK ((phase = ANY (ARRAY['running'::text, 'publishing'::text])))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='20000', autovacuum_analyze_threshold='2000000000');

CREATE TABLE public.task (
    id uuid NOT NULL,
    state public.task_state NOT NULL,
    halted public.task_state GENERATED ALWAYS AS (
CASE
    WHEN (state = ANY (ARRAY['blocked'::public.task_state, 'paused'::public.task_state, 'canceled'::public.task_state, 'failed'::public.task_state])) THEN state
    ELSE NULL::public.task_state
END) STORED,
    priority smallint NOT NULL,
    attempt smallint DEFAULT 0 NOT NULL,
    epoch integer DEFAULT 0 NOT NULL,
    settled_epoch integer DEFAULT 0 NOT NULL,
    sequence integer DEFAULT 1 NOT NULL,
    lane_id integer NOT NULL,
    pos bigint,
    not_before timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    bytes_done bigint,
    bytes_total bigint,
    generation integer,
    worker uuid,
    sha256 bytea,
    error_code text,
    error_message text,
    error_class text,
    error_retry_after integer,
    spec json NOT NULL,
    CONSTRAINT task_digest_is_of_success CHECK (((sha256 IS NULL) OR (state = 'succeeded'::public.task_state))),
    CONSTRAINT task_error_class_check CHECK ((error_class = ANY (ARRAY['retry'::text, 'fail'::text, 'wait'::text]))),
    CONSTRAINT task_error_is_whole CHECK ((((error_code IS NULL) = (error_class IS NULL)) AND ((error_code IS NULL) = (error_message IS NULL)))),
    CONSTRAINT task_failed_says_why CHECK (((state <> 'failed'::public.task_state) OR (error_code IS NOT NULL))),
    CONSTRAINT task_finished_is_final CHECK (((finished_at IS NOT NULL) = (state = ANY (ARRAY['succeeded'::public.task_state, 'canceled'::public.task_state, 'failed'::public.task_state])))),
    CONSTRAINT task_sha256_check CHECK ((octet_length(sha256) = 32))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.25', autovacuum_vacuum_threshold='50000', autovacuum_vacuum_insert_scale_factor='0.5', autovacuum_vacuum_insert_threshold='500000', autovacuum_analyze_scale_factor='0.5', autovacuum_analyze_threshold='50000');
ALTER TABLE ONLY public.task ALTER COLUMN spec SET STORAGE EXTERNAL;

CREATE TABLE public.worker (
    id integer NOT NULL,
    boot uuid NOT NULL,
    host text NOT NULL,
    pid integer NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    lease_seconds integer NOT NULL,
    lease_until timestamp with time zone NOT NULL,
    dead boolean DEFAULT false NOT NULL,
    claim_call bigint DEFAULT 0 NOT NULL,
    kinds text[] NOT NULL,
    volume_names text[] NOT NULL,
    volume_ids uuid[] NOT NULL,
    label_names text[] NOT NULL,
    label_values text[] NOT NULL,
    CONSTRAINT worker_check CHECK ((cardinality(volume_names) = cardinality(volume_ids))),
    CONSTRAINT worker_check1 CHECK ((cardinality(label_names) = cardinality(label_values))),
    CONSTRAINT worker_lease_seconds_check CHECK ((lease_seconds > 0))
)
WITH (fillfactor='20');

CREATE VIEW public.task_document AS
 SELECT t.id,
    COALESCE(r.phase, (t.state)::text) AS state,
    t.priority,
    t.spec,
    COALESCE(r.attempt, t.attempt) AS attempt,
    COALESCE(r.epoch, t.epoch) AS epoch,
    GREATEST(r.sequence, t.sequence) AS sequence,
    COALESCE(
        CASE
            WHEN (t.state <> 'succeeded'::public.task_state) THEN ( SELECT c.generation
               FROM public.checkpoint c
              WHERE (c.task_id = t.id))
            ELSE NULL::integer
        END, t.generation, 0) AS generation,
    COALESCE(( SELECT w.boot
           FROM public.worker w
          WHERE (w.id = r.worker_id)), t.worker) AS worker,
    COALESCE(r.bytes_done, t.bytes_done, (0)::bigint) AS bytes_done,
    COALESCE(r.bytes_total, t.bytes_total) AS bytes_total,
    r.rate,
    t.created_at,
    COALESCE(r.started_at, t.started_at) AS started_at,
    t.finished_at,
        CASE
            WHEN ((t.state = 'queued'::public.task_state) AND (r.task_id IS NULL)) THEN ( SELECT d.run_at
               FROM public.delayed d
              WHERE (d.task_id = t.id))
            ELSE NULL::timestamp with time zone
        END AS run_at,
    t.sha256,
    t.error_code,
    t.error_message,
    t.error_class,
    t.error_retry_after
   FROM (public.task t
     LEFT JOIN public.run r ON ((r.task_id = ANY (
        CASE
            WHEN (t.state = 'queued'::public.task_state) THEN ARRAY[t.id]
            ELSE NULL::uuid[]
        END))));

CREATE FUNCTION public.list_tasks(of_state text, of_queue text, most integer) RETURNS SETOF public.task_document
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  few     constant int := 2000;  -- where more wait, they are found soon among all tasks
  delays  constant bool := coalesce(of_state in ('scheduled', 'retrying'), false);
  queue   int;
  lanes   int[];
  waiting uuid[];
  ids     uuid[];
begin
  if of_queue is not null then
    select id into queue from bucket where scope = 'queue' and name = of_queue;
    if not found then
      return;
    end if;
    select coalesce(array_agg(id), '{}') into lanes from lane where queue_id = queue;
  end if;

  if of_state = 'queued' or delays then
    select coalesce(array_agg(task_id), '{}') into waiting
      from (select task_id from ready where lanes is null and not delays
            union all
            select r.task_id from unnest(lanes) l(id) join ready r on r.lane_id = l.id where not delays
            union all
            select task_id from delayed where not delays or run_at > clock_timestamp()
            limit few + 1) w;
  end if;

  if cardinality(waiting) <= few then
    select array_agg(id) into ids
      from (select t.id from unnest(waiting) w(id) join task t on t.id = any(array[w.id])
             where (lanes is null or t.lane_id = any(lanes))
               and (not delays or (t.error_code is null) = (of_state = 'scheduled'))
             order by t.created_at desc, t.id desc limit most) newest;
  elsif delays then
    select array_agg(id) into ids
      from (select id from task t
             where t.state = 'queued' and (lanes is null or t.lane_id = any(lanes))
               and (t.error_code is null) = (of_state = 'scheduled')
               and exists (select from delayed d where d.task_id = t.id and d.run_at > clock_timestamp())
             order by created_at desc, id desc limit most) newest;
  elsif of_state in ('running', 'publishing') then
    select array_agg(id) into ids
      from (select t.id from run r join task t on t.id = any(array[r.task_id])
             where r.phase = of_state and (lanes is null or t.lane_id = any(lanes))
             order by t.created_at desc, t.id desc limit most) newest;
  elsif of_state in ('blocked', 'paused', 'canceled', 'failed') then
    select array_agg(id) into ids
      from (select id from task
             where halted = of_state::task_state and (lanes is null or lane_id = any(lanes))
             order by created_at desc, id desc limit most) newest;
  else
    select array_agg(id) into ids
      from (select id from task t
             where (of_state is null or t.state::text = of_state)
               -- Not by its lane: that of what has succeeded may be gone.
               and (of_queue is null or coalesce(t.spec ->> 'queue', 'default') = of_queue)
               and (of_state is distinct from 'queued' or not exists (select from run r where r.task_id = t.id))
             order by created_at desc, id desc limit most) newest;
  end if;
  return query select d.* from task_documents(ids) d order by d.created_at desc, d.id desc;
end $$;

CREATE FUNCTION public.lock_tasks(ids uuid[]) RETURNS void
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
begin
  perform from task t where t.id = any(ids)
    order by exists (select from task_dependency d where d.task_id = t.id offset 0), t.id for no key update of t;
end $$;

CREATE FUNCTION public.pass_gate() RETURNS void
    LANGUAGE sql
    AS $$
  select pg_advisory_xact_lock(hashtextextended('reelhaul.gate.' || current_schema(), 0))
$$;

CREATE FUNCTION public.publish(event text, tasks uuid[], numbers integer[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
  if cardinality(tasks) > 0 then
    insert into outbox (kind, task_ids, sequences) values (event, tasks, numbers);
  end if;
end $$;

CREATE FUNCTION public.record_checkpoints(tasks uuid[], epochs integer[], generations integer[], identities json[], volumes uuid[], staging_names text[], dones int8multirange[], tail_crcs bigint[], publishings bytea[]) RETURNS boolean[]
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  owned      int[];
  publishers uuid[];
  begun      uuid[];
  numbers    int[];
begin
  select coalesce(array_agg(o.ordinal), '{}'),
         array_agg(distinct o.id) filter (where o.phase = 'running' and publishings[o.ordinal] is not null)
    into owned, publishers
    from (select u.id, u.ordinal, r.phase
            from (select * from unnest(tasks, epochs) with ordinality u(id, epoch, ordinal) order by id, ordinal) u
           cross join lateral (select phase from run where task_id = u.id and epoch = u.epoch for no key update) r) o;

  insert into checkpoint as c (task_id, epoch, generation, identity, volume, staging_name, done, tail_crc, publishing)
  select distinct on (u.task_id)  -- the last of several
         u.task_id, u.epoch, u.generation, u.identity, u.volume, u.staging_name, u.done, u.tail_crc, u.publishing
    from unnest(tasks, epochs, generations, identities, volumes, staging_names, dones, tail_crcs, publishings)
         with ordinality u(task_id, epoch, generation, identity, volume, staging_name, done, tail_crc, publishing, ordinal)
   where u.ordinal = any(owned)
   order by u.task_id, u.ordinal desc
      on conflict (task_id) do update
     set epoch = excluded.epoch, generation = excluded.generation, identity = excluded.identity,
         volume = excluded.volume, staging_name = excluded.staging_name, done = excluded.done,
         tail_crc = excluded.tail_crc, publishing = excluded.publishing;

  if publishers is not null then
    perform lock_tasks(publishers);  -- the number of an event must not be given twice
    with begun as (
      update run r set phase = 'publishing', sequence = greatest(r.sequence, t.sequence) + 1
        from unnest(publishers) u(id) join task t on t.id = any(array[u.id])
       where r.task_id = any(array[u.id]) and r.phase = 'running'
         and exists (select from checkpoint c where c.task_id = u.id and c.epoch = r.epoch and c.publishing is not null offset 0)
      returning r.task_id, r.sequence)
    select array_agg(task_id), array_agg(b.sequence) into begun, numbers from begun b;
    perform publish('publishing', begun, numbers);
  end if;

  return (select array_agg(n = any(owned) order by n) from generate_series(1, cardinality(tasks)) n);
end $$;

CREATE FUNCTION public.record_progress(tasks uuid[], epochs integer[], done bigint[], totals bigint[], rates bigint[]) RETURNS void
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
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

CREATE FUNCTION public.refuse_move() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  raise exception 'a run cannot change its buckets';
end $$;

CREATE FUNCTION public.register_worker(its_boot uuid, its_host text, its_pid integer, seconds integer, its_kinds text[], its_volume_names text[], its_volume_ids uuid[], its_label_names text[], its_label_values text[]) RETURNS integer
    LANGUAGE sql
    AS $$
  insert into worker (boot, host, pid, lease_seconds, lease_until, kinds, volume_names, volume_ids, label_names, label_values)
  values (its_boot, its_host, its_pid, seconds, now() + make_interval(secs => seconds), its_kinds,
          its_volume_names, its_volume_ids, its_label_names, its_label_values)
      on conflict (boot) do update set boot = excluded.boot
  returning id
$$;

CREATE FUNCTION public.release_tasks(tasks uuid[], event text) RETURNS void
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  numbers int[];
  changed uuid[];
  able    uuid[];
begin
  with moved as (
    update task t
       set state = case when exists (select from task_dependency d where d.task_id = t.id offset 0)
                        then 'blocked' else 'queued' end::task_state,
           sequence = sequence + 1, finished_at = null
     where id = any(tasks)
    returning id, state, sequence, not_before),
  later as (
    insert into delayed (task_id, run_at)
    select id, not_before from moved where state = 'queued' and not_before > now())
  select array_agg(id), array_agg(sequence),
         array_agg(id) filter (where state = 'queued' and (not_before is null or not_before <= now()))
    into changed, numbers, able from moved;
  perform publish(event, changed, numbers);
  perform enqueue(able, false);
end $$;

CREATE FUNCTION public.renew(renewed integer) RETURNS TABLE(task_id uuid, what text)
    LANGUAGE plpgsql
    AS $$
begin
  return query
    with alive as (
      update worker set lease_until = now() + make_interval(secs => lease_seconds)
       where id = renewed and not dead returning id)
    select i.task_id, i.what from alive left join intent i on i.worker_id = alive.id;
end $$;

CREATE FUNCTION public.reserve_positions(count integer) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
declare
  taken bigint := coalesce(nullif(current_setting('reelhaul.positions', true), ''), '0')::bigint;
begin
  perform set_config('reelhaul.positions', (taken + count)::text, true);
  return (pg_current_xact_id()::text::bigint << 20) + taken;
end $$;

CREATE FUNCTION public.retire(retired integer) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
  update worker set dead = true, lease_until = least(lease_until, now()) where id = retired;
  delete from worker where id = retired and not exists (select from run where worker_id = retired);
  delete from leader where worker_id = retired;
end $$;

CREATE FUNCTION public.set_limit(bucket_scope text, bucket_name text, new_limit integer) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
  wanted int := coalesce(new_limit, unlimited());
begin
  perform pass_gate();
  perform ensure_buckets(array[bucket_scope], array[bucket_name]);
  update bucket set run_limit = wanted, ceiling = greatest(wanted, used)
   where scope = bucket_scope and name = bucket_name;
end $$;

CREATE FUNCTION public.set_weight(queue_name text, new_weight double precision) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
  perform pass_gate();
  perform ensure_buckets(array['queue'], array[queue_name]);
  update queue set weight = new_weight
   where id = (select id from bucket where scope = 'queue' and name = queue_name);
end $$;

CREATE FUNCTION public.settle(ids uuid[], epochs integer[], outcomes text[], delay_microseconds bigint[], digests bytea[], sizes bigint[], codes text[], messages text[], classes text[], retry_afters integer[]) RETURNS boolean[]
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  f record;
begin
  select array_agg(r.tuple) tuples, array_agg(u.id) tasks, array_agg(u.outcome) outcomes,
         array_agg(make_interval(secs => u.delay / 1e6)) delays, array_agg(u.digest) digests, array_agg(u.size) sizes,
         array_agg(u.code) codes, array_agg(u.message) messages, array_agg(u.class) classes,
         array_agg(u.retry_after) retry_afters
    into f
    from (select * from unnest(ids, epochs, outcomes, delay_microseconds, digests, sizes, codes, messages, classes,
                               retry_afters)
                        u(id, epoch, outcome, delay, digest, size, code, message, class, retry_after)
           order by id) u
   cross join lateral (select ctid tuple from run where task_id = u.id and epoch = u.epoch for update) r;

  if f.tuples is not null then
    perform end_runs(f.tuples, f.tasks, f.outcomes, f.delays, f.digests, f.sizes, f.codes, f.messages, f.classes,
                     f.retry_afters);
    if cardinality(f.tuples) = cardinality(ids) then
      return array_fill(true, array[cardinality(ids)]);
    end if;
  end if;
  return (select array_agg(exists (select from task t where t.id = u.id and t.settled_epoch = u.epoch offset 0) order by u.n)
            from unnest(ids, epochs) with ordinality u(id, epoch, n));
end $$;

CREATE FUNCTION public.sibling_lane(lane integer, other_rank smallint) RETURNS integer
    LANGUAGE plpgsql
    AS $$
declare
  sibling int;
begin
  for attempt in 1..2 loop
    select o.id into sibling
      from lane l
      join lane o on (o.rank, o.queue_id, o.kind_id, o.host_id, o.storage_id)
                   = (other_rank, l.queue_id, l.kind_id, l.host_id, l.storage_id)
     where l.id = lane
       for key share of o;
    exit when sibling is not null;
    perform begin_creation();
    insert into lane (rank, queue_id, kind_id, host_id, storage_id)
    select other_rank, queue_id, kind_id, host_id, storage_id from lane l where id = lane
        on conflict do nothing;
  end loop;
  return sibling;
end $$;

CREATE FUNCTION public.submit(ranks smallint[], queues text[], kinds text[], hosts text[], storages text[], ids uuid[], lane_numbers integer[], priorities smallint[], not_befores timestamp with time zone[], pauses boolean[], specs json[], dependents uuid[], dependencies uuid[]) RETURNS uuid[]
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  lanes   int[]  := lane_ids(ranks, queues, kinds, hosts, storages);
  base    bigint := reserve_positions(cardinality(ids));
  waiting uuid[] := '{}';
  unmet   uuid[] := '{}';
  added   uuid[];
begin
  perform hold_lanes(lanes);

  if cardinality(dependents) > 0 then
    -- One that succeeds later finds the rows written below.
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
     where not exists (select from task t where t.id = u.id offset 0)  -- a conflict would wait for whoever changes it
       and not exists (select from removed_task r where r.id = u.id offset 0)
     order by u.id  -- two batches with the same new tasks wait in one order
        on conflict do nothing
    returning id, state, lane_id, pos, not_before),
  now_ready as (
    insert into ready (lane_id, pos, task_id, epoch, attempt, sequence)
    select lane_id, pos, id, 0, 0, 1 from new
     where state = 'queued' and (not_before is null or not_before <= now())),
  later as (
    insert into delayed (task_id, run_at)
    select id, not_before from new where state = 'queued' and not_before > now())
  select coalesce(array_agg(id), '{}') into added from new;

  if cardinality(waiting) > 0 then
    insert into task_dependency (task_id, after_id)
    select u.id, u.after_id from unnest(waiting, unmet) u(id, after_id) where u.id = any(added)
        on conflict do nothing;
  end if;

  perform publish('submitted', added, array_fill(1, array[cardinality(added)]));
  return added;
end $$;

CREATE FUNCTION public.sweep() RETURNS TABLE(expired integer, due integer)
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  gone        int[];
  tuples      tid[];
  lost        uuid[];
  delays_over uuid[];
begin
  perform tend_inbox();
  expired := 0; due := 0;

  with over as (
    select id from worker where not dead and lease_until < now() order by id for update skip locked)
  update worker set dead = true where id in (select id from over);
  select array_agg(id) into gone from (select id from worker where dead order by id for update skip locked) w;

  select array_agg(l.ctid), array_agg(l.task_id) into tuples, lost
    from (select ctid, task_id from run where gone is not null and worker_id = any(gone) order by task_id limit 5000
            for update skip locked) l;
  perform lock_tasks(lost);

  -- The task's row first: a control command that has it may be taking it out of `delayed`.
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

  expired := coalesce(cardinality(lost), 0);
  if expired > 0 then
    perform end_runs(
      tuples, lost, array_fill('lost'::text, array[expired]), array_fill(null::interval, array[expired]),
      array_fill(null::bytea, array[expired]), array_fill(null::bigint, array[expired]),
      array_fill(null::text, array[expired]), array_fill(null::text, array[expired]),
      array_fill(null::text, array[expired]), array_fill(null::int, array[expired]));
  else
    perform wake_lanes();
  end if;
  delete from worker w where id = any(gone) and not exists (select from run r where r.worker_id = w.id);
  return next;
end $$;

CREATE FUNCTION public.task_documents(ids uuid[]) RETURNS SETOF public.task_document
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
begin
  return query
    select d.* from unnest(ids) with ordinality u(id, ordinal) join task_document d on d.id = any(array[u.id])
     order by u.ordinal;
end $$;

CREATE FUNCTION public.tend_inbox() RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
  today date := (now() at time zone 'utc')::date;
  day   date;
  old   text;
begin
  if to_regclass(format('command_inbox_%s', to_char(today + 1, 'YYYYMMDD'))) is not null then
    return;
  end if;
  perform pg_advisory_xact_lock(hashtextextended('reelhaul.inbox.' || current_schema(), 0));
  for day in select today + n from generate_series(0, 2) n loop
    execute format('create table if not exists %I partition of command_inbox for values from (%L) to (%L)',
                   'command_inbox_' || to_char(day, 'YYYYMMDD'), day, day + 1);
  end loop;
  for old in
    select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'command_inbox'::regclass
       and c.relname < 'command_inbox_' || to_char(today - 7, 'YYYYMMDD')
  loop
    execute format('drop table %I', old);
  end loop;
  delete from removed_task where removed_at < now() - interval '8 days';
end $$;

CREATE FUNCTION public.tidy_buckets() RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
  freed int[];
begin
  -- Meanwhile no lane is made, and so no bucket comes into use.
  if not pg_try_advisory_xact_lock(creation_key()) then
    return;
  end if;
  select array_agg(id) into freed
    from (select id from bucket b
           where scope in ('host', 'queue') and name <> '' and used = 0 and run_limit = unlimited()
             and not exists (select from (select host_id id from lane union all select queue_id from lane) l
                              where l.id = b.id)
             and (scope = 'host' or exists (
                   select from queue q
                    where q.id = b.id and q.weight = 1
                      and q.start < (select max(start) from queue) and q.tag <= (select max(start) from queue)))
             for update skip locked) unused;
  if freed is not null then
    delete from queue where id = any(freed);
    update bucket set scope = 'free', name = id::text where id = any(freed);
  end if;
end $$;

CREATE FUNCTION public.tidy_lanes() RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
  unused int[];
begin
  if not pg_try_advisory_xact_lock(hashtextextended('reelhaul.tidy.' || current_schema(), 0)) then
    return;
  end if;
  select array_agg(id) into unused from (select id from unused_lane limit 10000) u;
  -- Lock first (whoever puts a task into a lane holds KEY SHARE), then look again with a new snapshot.
  select array_agg(id) into unused from (select id from lane where id = any(unused) for update skip locked) locked;
  if unused is not null then
    delete from lane where id in (select id from unused_lane where id = any(unused));
  end if;
end $$;

CREATE FUNCTION public.unblock(succeeded uuid[]) RETURNS void
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET enable_indexonlyscan TO 'off'
    AS $$
declare
  candidates uuid[];
  able       uuid[];
begin
  select array_agg(distinct d.task_id) into candidates
    from unnest(succeeded) u(id) join task_dependency d on d.after_id = any(array[u.id]);
  if candidates is null then
    return;
  end if;
  -- Two that end at the same time: whoever gets the row last sees both gone.
  perform lock_tasks(candidates);
  delete from task_dependency d using unnest(succeeded) u(id) where d.after_id = any(array[u.id]);
  select array_agg(id) into able from task t
   where id = any(candidates) and state = 'blocked'
     and not exists (select from task_dependency d where d.task_id = t.id offset 0);
  if able is not null then
    perform release_tasks(able, 'unblocked');
  end if;
end $$;

CREATE FUNCTION public.unlimited() RETURNS integer
    LANGUAGE sql IMMUTABLE
    AS $$select 2000000000$$;

CREATE FUNCTION public.wake_lanes() RETURNS void
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
  lanes int[] := nullif(current_setting('reelhaul.lanes', true), '')::int[];
begin
  if lanes is not null then
    update lane set ready = true
     where id in (select id from lane where id = any(lanes) and not ready order by id for no key update);
    perform set_config('reelhaul.lanes', '', true);
  end if;
end $$;

CREATE FUNCTION public.withdraw(t public.task) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
begin
  delete from ready where lane_id = t.lane_id and pos = t.pos and task_id = t.id;
  if found then
    return true;
  end if;
  delete from delayed where task_id = t.id;
  return found;
end $$;

CREATE TABLE public.bucket (
    id integer NOT NULL,
    scope text NOT NULL,
    name text NOT NULL,
    run_limit integer DEFAULT public.unlimited() NOT NULL,
    ceiling integer DEFAULT public.unlimited() NOT NULL,
    used integer DEFAULT 0 NOT NULL,
    CONSTRAINT bucket_never_over_its_ceiling CHECK (((used >= 0) AND (used <= ceiling))),
    CONSTRAINT bucket_run_limit_check CHECK ((run_limit >= 0)),
    CONSTRAINT bucket_scope_check CHECK ((scope = ANY (ARRAY['total'::text, 'kind'::text, 'queue'::text, 'host'::text, 'storage'::text, 'free'::text])))
)
WITH (fillfactor='20', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='5000');

CREATE TABLE public.command_inbox (
    id uuid NOT NULL,
    day date NOT NULL,
    code text,
    reason text,
    CONSTRAINT command_inbox_check CHECK (((code IS NULL) = (reason IS NULL)))
)
PARTITION BY RANGE (day);

CREATE TABLE public.command_inbox_20261123 (
    id uuid NOT NULL,
    day date NOT NULL,
    code text,
    reason text,
    CONSTRAINT command_inbox_check CHECK (((code IS NULL) = (reason IS NULL)))
);

CREATE TABLE public.command_inbox_20261124 (
    id uuid NOT NULL,
    day date NOT NULL,
    code text,
    reason text,
    CONSTRAINT command_inbox_check CHECK (((code IS NULL) = (reason IS NULL)))
);

CREATE TABLE public.command_inbox_20261125 (
    id uuid NOT NULL,
    day date NOT NULL,
    code text,
    reason text,
    CONSTRAINT command_inbox_check CHECK (((code IS NULL) = (reason IS NULL)))
);

CREATE TABLE public.fleet (
    is_only boolean DEFAULT true NOT NULL,
    topic_prefix text NOT NULL,
    CONSTRAINT fleet_is_only_check CHECK (is_only)
);

CREATE TABLE public.intent (
    worker_id integer NOT NULL,
    task_id uuid NOT NULL,
    what text NOT NULL,
    CONSTRAINT intent_what_check CHECK ((what = ANY (ARRAY['pause'::text, 'cancel'::text])))
);

CREATE TABLE public.lane (
    id integer NOT NULL,
    rank smallint NOT NULL,
    queue_id integer NOT NULL,
    kind_id integer NOT NULL,
    host_id integer NOT NULL,
    storage_id integer NOT NULL,
    ready boolean DEFAULT false NOT NULL,
    head bigint DEFAULT 0 NOT NULL,
    head_at timestamp with time zone DEFAULT now() NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='5000');

ALTER TABLE public.lane ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.lane_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.leader (
    role text NOT NULL,
    worker_id integer NOT NULL,
    until timestamp with time zone NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE public.outbox (
    id bigint NOT NULL,
    kind text NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    task_ids uuid[] NOT NULL,
    sequences integer[] NOT NULL,
    CONSTRAINT outbox_check CHECK ((cardinality(task_ids) = cardinality(sequences)))
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000', autovacuum_analyze_threshold='2000000000');
ALTER TABLE ONLY public.outbox ALTER COLUMN task_ids SET STORAGE EXTERNAL;
ALTER TABLE ONLY public.outbox ALTER COLUMN sequences SET STORAGE EXTERNAL;

ALTER TABLE public.outbox ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.outbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.queue (
    id integer NOT NULL,
    weight double precision DEFAULT 1 NOT NULL,
    tag double precision DEFAULT 0 NOT NULL,
    start double precision DEFAULT 0 NOT NULL,
    cursor_host integer DEFAULT 0 NOT NULL,
    cursor_lane integer DEFAULT 0 NOT NULL,
    CONSTRAINT queue_weight_check CHECK ((weight > (0)::double precision))
)
WITH (fillfactor='20', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='5000');

CREATE TABLE public.ready (
    lane_id integer NOT NULL,
    pos bigint NOT NULL,
    task_id uuid NOT NULL,
    epoch integer NOT NULL,
    attempt smallint NOT NULL,
    sequence integer NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='20000', autovacuum_vacuum_insert_scale_factor='0.5', autovacuum_vacuum_insert_threshold='500000', autovacuum_analyze_threshold='2000000000');

CREATE TABLE public.removed_task (
    id uuid NOT NULL,
    succeeded boolean NOT NULL,
    removed_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.schema_migration (
    number integer NOT NULL,
    name text NOT NULL,
    checksum bigint NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT schema_migration_number_check CHECK ((number > 0))
);

CREATE TABLE public.task_dependency (
    task_id uuid NOT NULL,
    after_id uuid NOT NULL
);

CREATE VIEW public.unused_lane AS
 SELECT l.id
   FROM public.lane l
  WHERE ((NOT l.ready) AND (NOT (EXISTS ( SELECT
           FROM public.ready r
          WHERE (r.lane_id = l.id)))) AND (NOT (EXISTS ( SELECT
           FROM public.task t
          WHERE ((t.lane_id = l.id) AND (t.halted IS NOT NULL))))) AND (NOT (EXISTS ( SELECT
           FROM (public.run r
             JOIN public.task t ON ((t.id = r.task_id)))
          WHERE (t.lane_id = l.id)))) AND (NOT (EXISTS ( SELECT
           FROM (public.delayed d
             JOIN public.task t ON ((t.id = d.task_id)))
          WHERE (t.lane_id = l.id)))));

ALTER TABLE public.worker ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.worker_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE ONLY public.command_inbox ATTACH PARTITION public.command_inbox_20261123 FOR VALUES FROM ('2026-11-23') TO ('2026-11-24');

ALTER TABLE ONLY public.command_inbox ATTACH PARTITION public.command_inbox_20261124 FOR VALUES FROM ('2026-11-24') TO ('2026-11-25');

ALTER TABLE ONLY public.command_inbox ATTACH PARTITION public.command_inbox_20261125 FOR VALUES FROM ('2026-11-25') TO ('2026-11-26');

INSERT INTO public.bucket (id, scope, name, run_limit, ceiling, used) VALUES (3, 'queue', 'archive', 2000000000, 2000000000, 0);
INSERT INTO public.bucket (id, scope, name, run_limit, ceiling, used) VALUES (1, 'total', '', 2000000000, 2000000000, 3);
INSERT INTO public.bucket (id, scope, name, run_limit, ceiling, used) VALUES (2, 'host', 'films.example', 50, 50, 3);
INSERT INTO public.bucket (id, scope, name, run_limit, ceiling, used) VALUES (4, 'kind', 'download', 2000000000, 2000000000, 3);
INSERT INTO public.bucket (id, scope, name, run_limit, ceiling, used) VALUES (5, 'queue', 'default', 2000000000, 2000000000, 3);
INSERT INTO public.bucket (id, scope, name, run_limit, ceiling, used) VALUES (6, 'storage', 'default', 2000000000, 2000000000, 3);

INSERT INTO public.checkpoint (task_id, epoch, generation, identity, volume, staging_name, done, tail_crc, publishing) VALUES ('01990000-0000-7000-8000-000000000005', 1, 2, '{"finalURL":"https://films.example/5.mp4","size":67108864,"etag":"\"v1\"","lastModified":"Mon, 06 Jan 2025 10:00:00 GMT"}', '6f9619ff-8b86-4d01-b42d-00cf4fc964ff', '01990000-0000-7000-8000-000000000005.2', '{[0,33554432),[41943040,50331648)}', 3735928559, NULL);
INSERT INTO public.checkpoint (task_id, epoch, generation, identity, volume, staging_name, done, tail_crc, publishing) VALUES ('01990000-0000-7000-8000-000000000006', 1, 0, '{"finalURL":"https://films.example/6.mp4","size":67108864,"etag":"\"v1\"","lastModified":"Mon, 06 Jan 2025 10:00:00 GMT"}', '6f9619ff-8b86-4d01-b42d-00cf4fc964ff', '01990000-0000-7000-8000-000000000006.0', '{[0,67108864)}', NULL, '\xabababababababababababababababababababababababababababababababab');
INSERT INTO public.checkpoint (task_id, epoch, generation, identity, volume, staging_name, done, tail_crc, publishing) VALUES ('01990000-0000-7000-8000-00000000000d', 1, 1, '{"finalURL":"https://films.example/13.mp4","size":67108864,"etag":"\"v1\"","lastModified":"Mon, 06 Jan 2025 10:00:00 GMT"}', '6f9619ff-8b86-4d01-b42d-00cf4fc964ff', '01990000-0000-7000-8000-00000000000d.1', '{[0,8388608),[16777216,25165824)}', 305419896, NULL);
INSERT INTO public.checkpoint (task_id, epoch, generation, identity, volume, staging_name, done, tail_crc, publishing) VALUES ('01990000-0000-7000-8000-00000000000e', 1, 0, '{"finalURL":"https://films.example/14.mp4","size":67108864,"etag":"\"v1\"","lastModified":"Mon, 06 Jan 2025 10:00:00 GMT"}', '6f9619ff-8b86-4d01-b42d-00cf4fc964ff', '01990000-0000-7000-8000-00000000000e.0', '{[0,4194304)}', 7, NULL);
INSERT INTO public.checkpoint (task_id, epoch, generation, identity, volume, staging_name, done, tail_crc, publishing) VALUES ('01990000-0000-7000-8000-00000000000f', 1, 0, '{"finalURL":"https://films.example/15.mp4","size":67108864,"etag":"\"v1\"","lastModified":"Mon, 06 Jan 2025 10:00:00 GMT"}', '6f9619ff-8b86-4d01-b42d-00cf4fc964ff', '01990000-0000-7000-8000-00000000000f.0', '{[0,1048576)}', 9, NULL);
INSERT INTO public.checkpoint (task_id, epoch, generation, identity, volume, staging_name, done, tail_crc, publishing) VALUES ('01990000-0000-7000-8000-00000000000c', 1, 0, '{"finalURL":"https://films.example/12.mp4","size":67108864,"etag":"\"v1\"","lastModified":"Mon, 06 Jan 2025 10:00:00 GMT"}', '6f9619ff-8b86-4d01-b42d-00cf4fc964ff', '01990000-0000-7000-8000-00000000000c.0', '{}', NULL, NULL);

INSERT INTO public.command_inbox_20261123 (id, day, code, reason) VALUES ('01990000-0000-7000-8000-0000000003f1', '2026-11-23', NULL, NULL);
INSERT INTO public.command_inbox_20261123 (id, day, code, reason) VALUES ('01990000-0000-7000-8000-0000000003f7', '2026-11-23', NULL, NULL);
INSERT INTO public.command_inbox_20261123 (id, day, code, reason) VALUES ('01990000-0000-7000-8000-0000000003f4', '2026-11-23', NULL, NULL);
INSERT INTO public.command_inbox_20261123 (id, day, code, reason) VALUES ('01990000-0000-7000-8000-0000000003f3', '2026-11-23', NULL, NULL);
INSERT INTO public.command_inbox_20261123 (id, day, code, reason) VALUES ('01990000-0000-7000-8000-0000000003f0', '2026-11-23', 'illegal_transition', 'pause is not possible while the task is succeeded');

INSERT INTO public.delayed (task_id, run_at) VALUES ('01990000-0000-7000-8000-000000000003', '2100-01-01 00:00:00+00');
INSERT INTO public.delayed (task_id, run_at) VALUES ('01990000-0000-7000-8000-000000000004', '2100-01-01 00:00:00+00');
INSERT INTO public.delayed (task_id, run_at) VALUES ('01990000-0000-7000-8000-00000000000e', '2100-01-01 00:00:00+00');

INSERT INTO public.fleet (is_only, topic_prefix) VALUES (true, 'reelhaul.');

INSERT INTO public.intent (worker_id, task_id, what) VALUES (1, '01990000-0000-7000-8000-00000000000c', 'pause');

INSERT INTO public.lane (id, rank, queue_id, kind_id, host_id, storage_id, ready, head, head_at) OVERRIDING SYSTEM VALUE VALUES (1, 0, 5, 4, 2, 6, true, 0, '2026-11-23 13:01:57.921694+00');
INSERT INTO public.lane (id, rank, queue_id, kind_id, host_id, storage_id, ready, head, head_at) OVERRIDING SYSTEM VALUE VALUES (2, 0, 3, 4, 2, 6, true, 0, '2026-11-23 13:01:57.965574+00');

INSERT INTO public.outbox (id, kind, at, task_ids, sequences) OVERRIDING SYSTEM VALUE VALUES (1, 'submitted', '2026-11-23 13:01:57.921694+00', '{01990000-0000-7000-8000-000000000004,01990000-0000-7000-8000-000000000005,01990000-0000-7000-8000-000000000006,01990000-0000-7000-8000-000000000008,01990000-0000-7000-8000-000000000009,01990000-0000-7000-8000-00000000000a,01990000-0000-7000-8000-00000000000c,01990000-0000-7000-8000-00000000000d,01990000-0000-7000-8000-00000000000e,01990000-0000-7000-8000-00000000000f}', '{1,1,1,1,1,1,1,1,1,1}');
INSERT INTO public.outbox (id, kind, at, task_ids, sequences) OVERRIDING SYSTEM VALUE VALUES (2, 'started', '2026-11-23 13:01:57.941889+00', '{01990000-0000-7000-8000-000000000004,01990000-0000-7000-8000-000000000005,01990000-0000-7000-8000-000000000006,01990000-0000-7000-8000-000000000008,01990000-0000-7000-8000-000000000009,01990000-0000-7000-8000-00000000000a,01990000-0000-7000-8000-00000000000c,01990000-0000-7000-8000-00000000000d,01990000-0000-7000-8000-00000000000e,01990000-0000-7000-8000-00000000000f}', '{2,2,2,2,2,2,2,2,2,2}');
INSERT INTO public.outbox (id, kind, at, task_ids, sequences) OVERRIDING SYSTEM VALUE VALUES (3, 'publishing', '2026-11-23 13:01:57.952574+00', '{01990000-0000-7000-8000-000000000006}', '{3}');
INSERT INTO public.outbox (id, kind, at, task_ids, sequences) OVERRIDING SYSTEM VALUE VALUES (4, 'retrying', '2026-11-23 13:01:57.954855+00', '{01990000-0000-7000-8000-000000000004}', '{3}');
INSERT INTO public.outbox (id, kind, at, task_ids, sequences) OVERRIDING SYSTEM VALUE VALUES (5, 'succeeded', '2026-11-23 13:01:57.958318+00', '{01990000-0000-7000-8000-000000000008}', '{3}');
INSERT INTO public.outbox (id, kind, at, task_ids, sequences) OVERRIDING SYSTEM VALUE VALUES (6, 'canceled', '2026-11-23 13:01:57.960957+00', '{01990000-0000-7000-8000-000000000009}', '{3}');
INSERT INTO public.outbox (id, kind, at, task_ids, sequences) OVERRIDING SYSTEM VALUE VALUES (7, 'failed', '2026-11-23 13:01:57.961664+00', '{01990000-0000-7000-8000-00000000000a}', '{3}');
INSERT INTO public.outbox (id, kind, at, task_ids, sequences) OVERRIDING SYSTEM VALUE VALUES (8, 'released', '2026-11-23 13:01:57.962126+00', '{01990000-0000-7000-8000-00000000000d}', '{3}');
INSERT INTO public.outbox (id, kind, at, task_ids, sequences) OVERRIDING SYSTEM VALUE VALUES (9, 'retrying', '2026-11-23 13:01:57.963156+00', '{01990000-0000-7000-8000-00000000000e}', '{3}');
INSERT INTO public.outbox (id, kind, at, task_ids, sequences) OVERRIDING SYSTEM VALUE VALUES (10, 'canceled', '2026-11-23 13:01:57.96407+00', '{01990000-0000-7000-8000-00000000000f}', '{3}');
INSERT INTO public.outbox (id, kind, at, task_ids, sequences) OVERRIDING SYSTEM VALUE VALUES (11, 'submitted', '2026-11-23 13:01:57.965004+00', '{01990000-0000-7000-8000-000000000002,01990000-0000-7000-8000-00000000000b}', '{1,1}');
INSERT INTO public.outbox (id, kind, at, task_ids, sequences) OVERRIDING SYSTEM VALUE VALUES (12, 'submitted', '2026-11-23 13:01:57.965574+00', '{01990000-0000-7000-8000-000000000010}', '{1}');
INSERT INTO public.outbox (id, kind, at, task_ids, sequences) OVERRIDING SYSTEM VALUE VALUES (13, 'submitted', '2026-11-23 13:01:57.966848+00', '{01990000-0000-7000-8000-000000000001}', '{1}');
INSERT INTO public.outbox (id, kind, at, task_ids, sequences) OVERRIDING SYSTEM VALUE VALUES (14, 'submitted', '2026-11-23 13:01:57.967693+00', '{01990000-0000-7000-8000-000000000003}', '{1}');
INSERT INTO public.outbox (id, kind, at, task_ids, sequences) OVERRIDING SYSTEM VALUE VALUES (15, 'submitted', '2026-11-23 13:01:57.968245+00', '{01990000-0000-7000-8000-000000000007}', '{1}');
INSERT INTO public.outbox (id, kind, at, task_ids, sequences) OVERRIDING SYSTEM VALUE VALUES (16, 'removed', '2026-11-23 13:01:57.96865+00', '{01990000-0000-7000-8000-00000000000b}', '{2}');

INSERT INTO public.queue (id, weight, tag, start, cursor_host, cursor_lane) VALUES (3, 2.5, 0, 0, 0, 0);
INSERT INTO public.queue (id, weight, tag, start, cursor_host, cursor_lane) VALUES (5, 1, 10, 10, 0, 0);

INSERT INTO public.ready (lane_id, pos, task_id, epoch, attempt, sequence) VALUES (1, -4611686017812922368, '01990000-0000-7000-8000-00000000000d', 1, 0, 3);
INSERT INTO public.ready (lane_id, pos, task_id, epoch, attempt, sequence) VALUES (1, 619708416, '01990000-0000-7000-8000-000000000002', 0, 0, 1);
INSERT INTO public.ready (lane_id, pos, task_id, epoch, attempt, sequence) VALUES (2, 620756992, '01990000-0000-7000-8000-000000000010', 0, 0, 1);

INSERT INTO public.removed_task (id, succeeded, removed_at) VALUES ('01990000-0000-7000-8000-00000000000b', false, '2026-11-23 13:01:57.96865+00');

INSERT INTO public.run (task_id, epoch, worker_id, claim_call, queue_id, kind_id, host_id, storage_id, attempt, sequence, phase, started_at, bytes_done, bytes_total, rate) VALUES ('01990000-0000-7000-8000-00000000000c', 1, 1, 1, 5, 4, 2, 6, 1, 2, 'running', '2026-11-23 13:01:57.941889+00', NULL, NULL, NULL);
INSERT INTO public.run (task_id, epoch, worker_id, claim_call, queue_id, kind_id, host_id, storage_id, attempt, sequence, phase, started_at, bytes_done, bytes_total, rate) VALUES ('01990000-0000-7000-8000-000000000006', 1, 1, 1, 5, 4, 2, 6, 1, 3, 'publishing', '2026-11-23 13:01:57.941889+00', NULL, NULL, NULL);
INSERT INTO public.run (task_id, epoch, worker_id, claim_call, queue_id, kind_id, host_id, storage_id, attempt, sequence, phase, started_at, bytes_done, bytes_total, rate) VALUES ('01990000-0000-7000-8000-000000000005', 1, 1, 1, 5, 4, 2, 6, 1, 2, 'running', '2026-11-23 13:01:57.941889+00', 52000000, 67108864, 9000000);

INSERT INTO public.schema_migration (number, name, checksum, applied_at) VALUES (1, 'schema', 1248641941136920980, '2026-11-23 13:01:57.912071+00');

INSERT INTO public.task (id, state, priority, attempt, epoch, settled_epoch, sequence, lane_id, pos, not_before, created_at, started_at, finished_at, bytes_done, bytes_total, generation, worker, sha256, error_code, error_message, error_class, error_retry_after, spec) VALUES ('01990000-0000-7000-8000-000000000005', 'queued', 0, 0, 0, 0, 1, 1, 1124073473, NULL, '2026-11-23 13:01:57.921694+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{"id":"01990000-0000-7000-8000-000000000005","kind":"download","source":"https://films.example/5.mp4","destination":"storage://default/5.mp4"}');
INSERT INTO public.task (id, state, priority, attempt, epoch, settled_epoch, sequence, lane_id, pos, not_before, created_at, started_at, finished_at, bytes_done, bytes_total, generation, worker, sha256, error_code, error_message, error_class, error_retry_after, spec) VALUES ('01990000-0000-7000-8000-000000000006', 'queued', 0, 0, 0, 0, 1, 1, 1124073474, NULL, '2026-11-23 13:01:57.921694+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{"id":"01990000-0000-7000-8000-000000000006","kind":"download","source":"https://films.example/6.mp4","destination":"storage://default/6.mp4"}');
INSERT INTO public.task (id, state, priority, attempt, epoch, settled_epoch, sequence, lane_id, pos, not_before, created_at, started_at, finished_at, bytes_done, bytes_total, generation, worker, sha256, error_code, error_message, error_class, error_retry_after, spec) VALUES ('01990000-0000-7000-8000-00000000000c', 'queued', 0, 0, 0, 0, 1, 1, 1124073478, NULL, '2026-11-23 13:01:57.921694+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{"id":"01990000-0000-7000-8000-00000000000c","kind":"download","source":"https://films.example/12.mp4","destination":"storage://default/12.mp4"}');
INSERT INTO public.task (id, state, priority, attempt, epoch, settled_epoch, sequence, lane_id, pos, not_before, created_at, started_at, finished_at, bytes_done, bytes_total, generation, worker, sha256, error_code, error_message, error_class, error_retry_after, spec) VALUES ('01990000-0000-7000-8000-000000000004', 'queued', 0, 1, 1, 1, 3, 1, 1124073472, NULL, '2026-11-23 13:01:57.921694+00', '2026-11-23 13:01:57.941889+00', NULL, 0, NULL, NULL, '018f0000-0000-7000-8000-00000000000a', NULL, 'connection_reset', 'The server hung up.', 'retry', NULL, '{"id":"01990000-0000-7000-8000-000000000004","kind":"download","source":"https://films.example/4.mp4","destination":"storage://default/4.mp4"}');
INSERT INTO public.task (id, state, priority, attempt, epoch, settled_epoch, sequence, lane_id, pos, not_before, created_at, started_at, finished_at, bytes_done, bytes_total, generation, worker, sha256, error_code, error_message, error_class, error_retry_after, spec) VALUES ('01990000-0000-7000-8000-000000000008', 'succeeded', 0, 1, 1, 1, 3, 1, 1124073475, NULL, '2026-11-23 13:01:57.921694+00', '2026-11-23 13:01:57.941889+00', '2026-11-23 13:01:57.958318+00', 67108864, 67108864, NULL, '018f0000-0000-7000-8000-00000000000a', '\xcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd', NULL, NULL, NULL, NULL, '{"id":"01990000-0000-7000-8000-000000000008","kind":"download","source":"https://films.example/8.mp4","destination":"storage://default/8.mp4"}');
INSERT INTO public.task (id, state, priority, attempt, epoch, settled_epoch, sequence, lane_id, pos, not_before, created_at, started_at, finished_at, bytes_done, bytes_total, generation, worker, sha256, error_code, error_message, error_class, error_retry_after, spec) VALUES ('01990000-0000-7000-8000-000000000009', 'canceled', 0, 0, 1, 1, 3, 1, 1124073476, NULL, '2026-11-23 13:01:57.921694+00', '2026-11-23 13:01:57.941889+00', '2026-11-23 13:01:57.960957+00', 0, NULL, NULL, '018f0000-0000-7000-8000-00000000000a', NULL, NULL, NULL, NULL, NULL, '{"id":"01990000-0000-7000-8000-000000000009","kind":"download","source":"https://films.example/9.mp4","destination":"storage://default/9.mp4"}');
INSERT INTO public.task (id, state, priority, attempt, epoch, settled_epoch, sequence, lane_id, pos, not_before, created_at, started_at, finished_at, bytes_done, bytes_total, generation, worker, sha256, error_code, error_message, error_class, error_retry_after, spec) VALUES ('01990000-0000-7000-8000-00000000000a', 'failed', 0, 1, 1, 1, 3, 1, 1124073477, NULL, '2026-11-23 13:01:57.921694+00', '2026-11-23 13:01:57.941889+00', '2026-11-23 13:01:57.961664+00', 0, NULL, NULL, '018f0000-0000-7000-8000-00000000000a', NULL, 'connection_reset', 'The server hung up.', 'retry', NULL, '{"id":"01990000-0000-7000-8000-00000000000a","kind":"download","source":"https://films.example/10.mp4","destination":"storage://default/10.mp4"}');
INSERT INTO public.task (id, state, priority, attempt, epoch, settled_epoch, sequence, lane_id, pos, not_before, created_at, started_at, finished_at, bytes_done, bytes_total, generation, worker, sha256, error_code, error_message, error_class, error_retry_after, spec) VALUES ('01990000-0000-7000-8000-00000000000e', 'queued', 0, 1, 1, 1, 3, 1, 1124073480, NULL, '2026-11-23 13:01:57.921694+00', '2026-11-23 13:01:57.941889+00', NULL, 4194304, NULL, 0, '018f0000-0000-7000-8000-00000000000a', NULL, 'connection_reset', 'The server hung up.', 'retry', NULL, '{"id":"01990000-0000-7000-8000-00000000000e","kind":"download","source":"https://films.example/14.mp4","destination":"storage://default/14.mp4"}');
INSERT INTO public.task (id, state, priority, attempt, epoch, settled_epoch, sequence, lane_id, pos, not_before, created_at, started_at, finished_at, bytes_done, bytes_total, generation, worker, sha256, error_code, error_message, error_class, error_retry_after, spec) VALUES ('01990000-0000-7000-8000-00000000000f', 'canceled', 0, 0, 1, 1, 3, 1, 1124073481, NULL, '2026-11-23 13:01:57.921694+00', '2026-11-23 13:01:57.941889+00', '2026-11-23 13:01:57.96407+00', 1048576, NULL, 0, '018f0000-0000-7000-8000-00000000000a', NULL, NULL, NULL, NULL, NULL, '{"id":"01990000-0000-7000-8000-00000000000f","kind":"download","source":"https://films.example/15.mp4","destination":"storage://default/15.mp4"}');
INSERT INTO public.task (id, state, priority, attempt, epoch, settled_epoch, sequence, lane_id, pos, not_before, created_at, started_at, finished_at, bytes_done, bytes_total, generation, worker, sha256, error_code, error_message, error_class, error_retry_after, spec) VALUES ('01990000-0000-7000-8000-00000000000d', 'queued', 0, 0, 1, 1, 3, 1, -4611686017812922368, NULL, '2026-11-23 13:01:57.921694+00', '2026-11-23 13:01:57.941889+00', NULL, 16777216, NULL, 1, '018f0000-0000-7000-8000-00000000000a', NULL, NULL, NULL, NULL, NULL, '{"id":"01990000-0000-7000-8000-00000000000d","kind":"download","source":"https://films.example/13.mp4","destination":"storage://default/13.mp4"}');
INSERT INTO public.task (id, state, priority, attempt, epoch, settled_epoch, sequence, lane_id, pos, not_before, created_at, started_at, finished_at, bytes_done, bytes_total, generation, worker, sha256, error_code, error_message, error_class, error_retry_after, spec) VALUES ('01990000-0000-7000-8000-000000000002', 'queued', 0, 0, 0, 0, 1, 1, 619708416, NULL, '2026-11-23 13:01:57.965004+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{"id":"01990000-0000-7000-8000-000000000002","kind":"download","source":"https://films.example/2.mp4","destination":"storage://default/2.mp4"}');
INSERT INTO public.task (id, state, priority, attempt, epoch, settled_epoch, sequence, lane_id, pos, not_before, created_at, started_at, finished_at, bytes_done, bytes_total, generation, worker, sha256, error_code, error_message, error_class, error_retry_after, spec) VALUES ('01990000-0000-7000-8000-000000000001', 'blocked', 0, 0, 0, 0, 1, 1, 1146093568, NULL, '2026-11-23 13:01:57.966848+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{"id":"01990000-0000-7000-8000-000000000001","kind":"download","source":"https://films.example/1.mp4","destination":"storage://default/1.mp4","after":["01990000-0000-7000-8000-000000000002"]}');
INSERT INTO public.task (id, state, priority, attempt, epoch, settled_epoch, sequence, lane_id, pos, not_before, created_at, started_at, finished_at, bytes_done, bytes_total, generation, worker, sha256, error_code, error_message, error_class, error_retry_after, spec) VALUES ('01990000-0000-7000-8000-000000000003', 'queued', 0, 0, 0, 0, 1, 1, 1147142144, '2100-01-01 00:00:00+00', '2026-11-23 13:01:57.967693+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{"id":"01990000-0000-7000-8000-000000000003","kind":"download","source":"https://films.example/3.mp4","destination":"storage://default/3.mp4","notBefore":"2100-01-01T00:00:00Z"}');
INSERT INTO public.task (id, state, priority, attempt, epoch, settled_epoch, sequence, lane_id, pos, not_before, created_at, started_at, finished_at, bytes_done, bytes_total, generation, worker, sha256, error_code, error_message, error_class, error_retry_after, spec) VALUES ('01990000-0000-7000-8000-000000000007', 'paused', 0, 0, 0, 0, 1, 1, 1148190720, NULL, '2026-11-23 13:01:57.968245+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{"id":"01990000-0000-7000-8000-000000000007","kind":"download","source":"https://films.example/7.mp4","destination":"storage://default/7.mp4","paused":true}');
INSERT INTO public.task (id, state, priority, attempt, epoch, settled_epoch, sequence, lane_id, pos, not_before, created_at, started_at, finished_at, bytes_done, bytes_total, generation, worker, sha256, error_code, error_message, error_class, error_retry_after, spec) VALUES ('01990000-0000-7000-8000-000000000010', 'queued', 0, 0, 0, 0, 1, 2, 620756992, NULL, '2026-11-23 13:01:57.965574+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{"id":"01990000-0000-7000-8000-000000000010","kind":"download","source":"https://films.example/16.mp4","destination":"storage://default/16.mp4","queue":"archive"}');

INSERT INTO public.task_dependency (task_id, after_id) VALUES ('01990000-0000-7000-8000-000000000001', '01990000-0000-7000-8000-000000000002');

INSERT INTO public.worker (id, boot, host, pid, started_at, lease_seconds, lease_until, dead, claim_call, kinds, volume_names, volume_ids, label_names, label_values) OVERRIDING SYSTEM VALUE VALUES (1, '018f0000-0000-7000-8000-00000000000a', 'mill', 71, '2026-11-23 13:01:57.914793+00', 15, '2100-01-01 00:00:00+00', false, 1, '{download,noop}', '{default}', '{6f9619ff-8b86-4d01-b42d-00cf4fc964ff}', '{rack}', '{7}');

SELECT pg_catalog.setval('public.lane_id_seq', 2, true);

SELECT pg_catalog.setval('public.outbox_id_seq', 16, true);

SELECT pg_catalog.setval('public.worker_id_seq', 1, true);

ALTER TABLE ONLY public.bucket
    ADD CONSTRAINT bucket_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.bucket
    ADD CONSTRAINT bucket_scope_name_key UNIQUE (scope, name);

ALTER TABLE ONLY public.checkpoint
    ADD CONSTRAINT checkpoint_pkey PRIMARY KEY (task_id);

ALTER TABLE ONLY public.command_inbox
    ADD CONSTRAINT command_inbox_pkey PRIMARY KEY (id, day);

ALTER TABLE ONLY public.command_inbox_20261123
    ADD CONSTRAINT command_inbox_20261123_pkey PRIMARY KEY (id, day);

ALTER TABLE ONLY public.command_inbox_20261124
    ADD CONSTRAINT command_inbox_20261124_pkey PRIMARY KEY (id, day);

ALTER TABLE ONLY public.command_inbox_20261125
    ADD CONSTRAINT command_inbox_20261125_pkey PRIMARY KEY (id, day);

ALTER TABLE ONLY public.delayed
    ADD CONSTRAINT delayed_pkey PRIMARY KEY (task_id);

ALTER TABLE ONLY public.fleet
    ADD CONSTRAINT fleet_pkey PRIMARY KEY (is_only);

ALTER TABLE ONLY public.intent
    ADD CONSTRAINT intent_pkey PRIMARY KEY (worker_id, task_id);

ALTER TABLE ONLY public.lane
    ADD CONSTRAINT lane_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.lane
    ADD CONSTRAINT lane_rank_queue_id_kind_id_host_id_storage_id_key UNIQUE (rank, queue_id, kind_id, host_id, storage_id);

ALTER TABLE ONLY public.leader
    ADD CONSTRAINT leader_pkey PRIMARY KEY (role);

ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.queue
    ADD CONSTRAINT queue_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.ready
    ADD CONSTRAINT ready_pkey PRIMARY KEY (lane_id, pos);

ALTER TABLE ONLY public.removed_task
    ADD CONSTRAINT removed_task_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_pkey PRIMARY KEY (task_id);

ALTER TABLE ONLY public.schema_migration
    ADD CONSTRAINT schema_migration_pkey PRIMARY KEY (number);

ALTER TABLE ONLY public.task_dependency
    ADD CONSTRAINT task_dependency_pkey PRIMARY KEY (task_id, after_id);

ALTER TABLE ONLY public.task
    ADD CONSTRAINT task_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.worker
    ADD CONSTRAINT worker_boot_key UNIQUE (boot);

ALTER TABLE ONLY public.worker
    ADD CONSTRAINT worker_pkey PRIMARY KEY (id);

CREATE INDEX delayed_due ON public.delayed USING btree (run_at);

CREATE INDEX lane_ready ON public.lane USING btree (rank, queue_id, host_id, id) WHERE ready;

CREATE INDEX removed_task_age ON public.removed_task USING btree (removed_at);

CREATE INDEX task_dependency_after ON public.task_dependency USING btree (after_id);

CREATE INDEX task_halted ON public.task USING btree (halted, created_at DESC, id DESC) WHERE (halted IS NOT NULL);

CREATE INDEX task_halted_lane ON public.task USING btree (lane_id) WHERE (halted IS NOT NULL);

CREATE INDEX task_newest ON public.task USING btree (created_at);

ALTER INDEX public.command_inbox_pkey ATTACH PARTITION public.command_inbox_20261123_pkey;

ALTER INDEX public.command_inbox_pkey ATTACH PARTITION public.command_inbox_20261124_pkey;

ALTER INDEX public.command_inbox_pkey ATTACH PARTITION public.command_inbox_20261125_pkey;

CREATE TRIGGER run_begins AFTER INSERT ON public.run REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.count_runs();

CREATE TRIGGER run_ends AFTER DELETE ON public.run REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.count_runs();

CREATE TRIGGER run_stays BEFORE UPDATE OF kind_id, queue_id, host_id, storage_id, task_id ON public.run FOR EACH ROW EXECUTE FUNCTION public.refuse_move();

ALTER TABLE ONLY public.queue
    ADD CONSTRAINT queue_id_fkey FOREIGN KEY (id) REFERENCES public.bucket(id);

