-- Takes up to `wanted` tasks for a worker that has a current lease: highest priority first, fair among queues, round
-- the lanes of each queue, within the limit of every bucket. `call` counts the worker's calls: one that is repeated,
-- because its answer was lost, answers with what it took. Run it as its own transaction: the gate is held to its end.
create function claim(claimer int, wanted int, call bigint)
returns setof uuid language plpgsql
set plan_cache_mode = force_generic_plan
set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set jit = off
set enable_bitmapscan = off set enable_memoize = off as $$
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
  select coalesce(array_agg(b.id), '{}') || 0 into storages
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
                           and r.kind_id = any(kinds) and r.storage_id = any(storages) and r.source_storage_id = any(storages) limit 1) open_lane)
                   else exists (
                     select from lane r
                      where r.ready and r.rank = at_rank and r.queue_id = q.id
                        and r.kind_id = any(kinds) and r.storage_id = any(storages) and r.source_storage_id = any(storages)
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
            select x.id, x.kind_id, x.host_id, x.storage_id, x.source_storage_id, x.head_at,
                   free.kind, free.host, free.storage, free.source,
                   least(quota, free.kind, free.host, free.storage, free.source) asked, waiting.rows, waiting.first_pos
              from (select * from (
                      select r.*
                        from (select o.id from unnest(hosts) o(id) where few and o.id >= at_host order by o.id) o
                       cross join lateral (
                         select r.id, r.kind_id, r.host_id, r.storage_id, r.source_storage_id, r.head, r.head_at from lane r
                          where r.ready and r.rank = at_rank and r.queue_id = share.id and r.host_id = o.id
                            and (o.id > at_host or r.id > at_lane)
                            and r.kind_id = any(kinds) and r.storage_id = any(storages) and r.source_storage_id = any(storages)
                          order by r.id) r
                       limit fan) of_few
                    union all
                    select * from (
                      select r.id, r.kind_id, r.host_id, r.storage_id, r.source_storage_id, r.head, r.head_at from lane r
                       where not few and r.ready and r.rank = at_rank and r.queue_id = share.id
                         and (r.host_id, r.id) > (at_host, at_lane)
                         and r.kind_id = any(kinds) and r.storage_id = any(storages) and r.source_storage_id = any(storages)
                         and (select h.used < h.run_limit from bucket h where h.id = r.host_id)
                       order by r.host_id, r.id limit fan) of_many) x
             cross join lateral (
               select coalesce(room[x.kind_id], (select run_limit - used from bucket where id = x.kind_id)) kind,
                      coalesce(room[x.host_id], (select run_limit - used from bucket where id = x.host_id)) host,
                      coalesce(room[x.storage_id], (select run_limit - used from bucket where id = x.storage_id)) storage,
                      -- Null where there is no second storage: `least` passes over it.
                      coalesce(room[x.source_storage_id],
                               (select run_limit - used from bucket where id = x.source_storage_id)) source
               offset 0) free
              left join lateral (
                select array_agg(z.ctid) rows, min(z.pos) filter (where z.pos >= 0) first_pos
                  from (select * from (
                          select w.ctid, w.pos from ready w where w.lane_id = x.id and w.pos < 0
                           order by w.pos limit least(quota, free.kind, free.host, free.storage, free.source)) in_front
                        union all
                        select * from (
                          select w.ctid, w.pos from ready w where w.lane_id = x.id and w.pos >= x.head
                           order by w.pos limit least(quota, free.kind, free.host, free.storage, free.source)) behind
                        limit least(quota, free.kind, free.host, free.storage, free.source)) z) waiting on true
          loop
            if wrapped and (l.host_id, l.id) > (from_host, from_lane) then
              ended := true;
              exit;
            end if;
            met := true; steps := steps + 1; at_host := l.host_id; at_lane := l.id;
            room[l.kind_id] := coalesce(room[l.kind_id], l.kind);
            room[l.host_id] := coalesce(room[l.host_id], l.host);
            room[l.storage_id] := coalesce(room[l.storage_id], l.storage);
            room[l.source_storage_id] := coalesce(room[l.source_storage_id], l.source);
            n := least(quota, room[l.kind_id], room[l.host_id], room[l.storage_id], room[l.source_storage_id]);
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
              room[l.source_storage_id] := room[l.source_storage_id] - e;
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
            if room[l.source_storage_id] <= 0 then
              storages := array_remove(storages, l.source_storage_id);
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
          insert into run (task_id, epoch, worker_id, claim_call, queue_id, kind_id, host_id, storage_id,
                           source_storage_id, attempt, sequence)
          select t.task_id, t.epoch + 1, claimer, call, z.queue_id, z.kind_id, z.host_id, z.storage_id,
                 z.source_storage_id, t.attempt + 1, t.sequence + 1
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

-- What a worker needs to begin the tasks it claimed; outside the gate. In the order of `tasks`.
create function claimed(tasks uuid[])
returns table (
  task_id uuid, epoch int, attempt smallint, priority smallint, spec json,
  checkpoint_version smallint, generation int, bytes_done bigint, bytes_total bigint, stage text, payload json
)
language plpgsql set plan_cache_mode = force_generic_plan
set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
begin
  return query
    select t.id, r.epoch, r.attempt, t.priority, t.spec,
           c.version, c.generation, c.bytes_done, c.bytes_total, c.stage, c.payload
      from unnest(tasks) u(id)
      join run r on r.task_id = any(array[u.id])
      join task t on t.id = any(array[u.id])
      left join checkpoint c on c.task_id = any(array[u.id]);
end $$;
