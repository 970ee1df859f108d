-- Moves rows of `ready` into `run`. `counted`: by former names of kinds, what they count as.
create function begin_runs(
  claimer int, call bigint, began timestamptz, picked tid[], counted int[], out tasks uuid[], out sequences int[])
language plpgsql as $$
begin
  -- Skips locked rows: a command that takes a task out of `ready` may itself wait for this claim.
  with free as materialized (select ctid tuple from ready where ctid = any(picked) for update skip locked),
  taken as (delete from ready r using free where r.ctid = free.tuple returning r.*),
  begun as (
    insert into run (task_id, epoch, worker_id, claim_call, queue_id, kind_id, host_id, storage_id, source_storage_id,
                     attempt, sequence, started_at)
    select t.task_id, t.epoch + 1, claimer, call, z.queue_id, coalesce(counted[z.kind_id], z.kind_id), z.host_id,
           z.storage_id, z.source_storage_id, t.attempt + 1, t.sequence + 1, began
      from taken t join lane z on z.id = t.lane_id
    returning task_id, sequence)
  select array_agg(task_id), array_agg(sequence) into tasks, sequences from begun;
end $$;

-- Switches off lanes that seem empty. Locks them first (a transaction that inserts rows holds KEY SHARE), then looks
-- again with a new snapshot. Queues without any other lane that is on become idle.
--
-- A queue that this call has `served` was due until its last task, and not until the call had all of its tasks: it has
-- earned no part of the others. The time of its last task lies between `v_before`, the virtual time before the call, and
-- `v`, about half a task before its tag.
create function switch_off(dry int[], v_before float8, v float8, served int[]) returns void language plpgsql as $$
declare
  locked int[];
  queues int[];
begin
  select array_agg(id) into locked
    from (select id from lane where id = any(dry) and ready for update skip locked) l;
  if locked is null then
    return;
  end if;
  with off as (
    update lane z set ready = false
     where id = any(locked)
       and not exists (select from ready r where r.lane_id = z.id and r.pos < 0)
       and not exists (select from ready r where r.lane_id = z.id and r.pos >= z.head)
    returning queue_id)
  select array_agg(distinct queue_id) into queues from off;
  if queues is not null then
    update queue q
       set tag = greatest(-1 / weight, least(1 / weight, tag - case
                   when id = any(served) then greatest(v_before, least(v, tag - 0.5 / weight)) else v end)),
           cursor_lane = -1
     where id = any(queues) and cursor_lane >= 0
       and not exists (
         with recursive ranks as (
           (select rank from lane where ready order by rank limit 1)
           union all
           select (select l.rank from lane l where l.ready and l.rank > ranks.rank order by l.rank limit 1)
             from ranks where rank is not null)
         select from ranks r
          cross join lateral (
            select from lane l where l.ready and l.rank = r.rank and l.queue_id = q.id limit 1) other);
  end if;
end $$;

-- The kinds that a worker can run, with what former names count as, the kind that counts, and how many more of that may run.
create function kinds_of(worker_id int) returns table (id int, counts_as int, kind int, places bigint)
language sql stable as $$
  select b.id, b.counts_as, c.id,
         -- What began under a former name before it was known to be one counts there.
         c.run_limit - c.used - coalesce((select sum(f.used) from bucket f where f.counts_as = c.id), 0)
    from worker w cross join lateral unnest(w.kinds) k(name)
    join bucket b on b.scope = 'kind' and b.name = k.name
    join bucket c on c.id = coalesce(b.counts_as, b.id)
   where w.id = worker_id
$$;

-- Takes up to `wanted` tasks for a worker that has a current lease: highest priority first, fair among queues, around
-- the lanes of each queue, within the limit of every bucket. `call` is the number of the worker's call: if a call is
-- repeated because its answer was lost, it returns the tasks that it took the first time. Run it as its own
-- transaction, because the gate is held until the transaction ends.
--
-- A task that starts for the first time, and was never changed before, comes with its specification: its epoch and its
-- attempt are 1, and it has no checkpoint. `claimed` returns what a worker needs to know of the others. The answer has at
-- most 64 KiB of specifications, so that it is sent at once: a worker that does not read it must not hold the gate.
create function claim_tasks(claimer int, wanted int, call bigint)
returns table (task_id uuid, spec json) language plpgsql set plan_cache_mode = force_generic_plan
set enable_bitmapscan = off set enable_memoize = off as $$
#variable_conflict use_column
declare
  left_over  int;
  at_rank    smallint := -32768;
  v          float8;                                              -- the virtual time
  v_before   float8;                                              -- before this call
  served     int[]  := '{}';                                      -- queues that got something
  horizon    bigint;                                              -- no later commit adds a position below it
  kinds      int[];                                               -- kinds that the worker handles and that have room
  storages   int[];                                               -- storages that it has mounted and that have room
  hosts      int[];                                               -- hosts with room, if `few`
  few        boolean;
  counted    int[];                                               -- of former names of kinds: what they count as
  room       int[];                                               -- run_limit - used, by bucket, when first met
  many       boolean;                                             -- there are so many queues that most rest
  turned_on  int[];                                               -- if `many`: the queues that do not, at this rank
  done       int[];                                               -- queues with no more rows at this rank
  picked     tid[];
  dry        int[]  := '{}';                                      -- lanes that seem empty
  began      timestamptz;                                         -- after the tasks' times: the gate is behind
  took       uuid[];          took_sequences int[];
  all_took   uuid[] := '{}';  all_sequences  int[] := '{}';
  -- The queues of a round: the due ones, in the order of their starts.
  n          int;
  ids        int[];           starts  float8[];  tags    float8[];  weights float8[];
  at_hosts   int[];           at_lanes int[];    rooms   int[];     quotas  int[];
  gots       int[];           lasts   boolean[];
  places     int;             rest    int;                        -- of the round; what is left of them
  others     boolean;
  whole      boolean;                                             -- all due queues are listed
  finish     float8;                                              -- if not: where the last one's next task ends
  next_lane  record;          kind    int;       bucket_id int;
  i          int;
  part       record;
  progress   boolean;
  due        int[];           ended   int[];
  bare       int    := 0;                                         -- queues that turned out to have nothing at all
  step       float8;
  -- For another try of a round, which looks at all its queues once more.
  looks      int    := 400;
  sooner     int;             buckets int[];     still_due int[];
  bare_0     int;
  room_0     int[];           kinds_0 int[];     storages_0 int[]; hosts_0 int[];   dry_0   int[];
  at_hosts_0 int[];           at_lanes_0 int[];
begin
  perform pass_gate();

  update worker set claim_call = call
   where id = claimer and not dead and lease_until > now() and claim_call < call;
  if not found then
    return query
      select r.task_id, null::json from worker w join run r on r.worker_id = w.id and r.claim_call = call
       where w.id = claimer and not w.dead and w.lease_until > now();
    return;
  end if;

  horizon := pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 20;
  select array_fill(null::int, array[max(id)]) into room from bucket;
  select least(wanted, run_limit - used) into left_over from bucket where id = 1;
  many := cardinality(room) > 1000 and (select count(*) > 1000 from (select from queue limit 1001) q);
  select max(start) into v from queue;
  v_before := v;
  kinds := '{}';
  for part in
    select * from kinds_of(claimer)
  loop
    counted[part.id] := part.counts_as;
    room[part.kind] := part.places;
    if part.places > 0 then
      kinds := kinds || part.id;
    end if;
  end loop;
  if kinds = '{}' then
    return;
  end if;
  select coalesce(array_agg(b.id), '{}'), array_agg(b.run_limit - b.used) into storages, rooms
    from worker w cross join lateral unnest(w.volume_names || ''::text) s(name)
    join bucket b on b.scope = 'storage' and b.name = s.name and b.used < b.run_limit where w.id = claimer;
  for i in 1..cardinality(storages) loop
    room[storages[i]] := rooms[i];
  end loop;
  storages := storages || 0;
  select coalesce(array_agg(id), '{}'), array_agg(places) into hosts, rooms
    from (select id, run_limit - used places from bucket
           where scope = 'host' and used < run_limit order by id limit 33) open;
  few := cardinality(hosts) <= 32;
  for i in 1..cardinality(hosts) loop
    room[hosts[i]] := rooms[i];
  end loop;

  <<ranks>>
  while left_over > 0 loop
    select rank into at_rank from lane where ready and rank > at_rank order by rank limit 1;
    exit when not found;
    done := '{}';
    if many then
      turned_on := queues_on(at_rank);
    end if;

    loop  -- rounds, while rows are taken or a queue turns out to have none
      select array_agg(d.id), array_agg(d.start), array_agg(d.weight), array_agg(d.cursor_host),
             array_agg(d.cursor_lane), array_agg(d.room)
        into ids, starts, weights, at_hosts, at_lanes, rooms
        from due_queues(at_rank, v, done, dry, kinds, storages, hosts, few, turned_on) d;
      exit when ids is null;
      n := cardinality(ids);
      whole := n < 64;
      others := n > 1 and (few or whole);
      places := left_over;
      if not whole then
        -- A queue that is not listed may come next after a task of each of these.
        select max(s + 1 / w) into finish from unnest(starts, weights) q(s, w);
        select least(places, sum(floor((finish - s) * w + 1 + 1e-6))) into places from unnest(starts, weights) q(s, w);
      end if;
      if n > 1 and few then
        places := greatest(1, least(
          places, (select sum(room[coalesce(counted[k], k)]) from unnest(kinds) k),
          (select sum(room[s]) from unnest(storages) s), (select sum(room[h]) from unnest(hosts) h)));
      end if;
      room_0 := room; kinds_0 := kinds; storages_0 := storages; hosts_0 := hosts; dry_0 := dry;
      at_hosts_0 := at_hosts; at_lanes_0 := at_lanes; bare_0 := bare;

      -- The queues of a round are due until its end. If one of them, or the room of a bucket, ends sooner, the round is
      -- tried again with no more places than that. Nothing is written before.
      loop
        quotas := apportion(v, starts, weights, places);
        rest := places;
        gots := array_fill(0, array[n]); lasts := array_fill(false, array[n]);
        due := '{}'; ended := '{}'; progress := false;
        for next_lane in
          select * from next_lanes(at_rank, ids, quotas, at_hosts, at_lanes, kinds, storages, hosts, few)
        loop
          i := next_lane.i;
          room[ids[i]] := coalesce(room[ids[i]], rooms[i]);
          if next_lane.id is not null then
            kind := coalesce(counted[next_lane.kind_id], next_lane.kind_id);
            room[next_lane.host_id] := coalesce(room[next_lane.host_id], next_lane.host_room);
          end if;
          if cardinality(next_lane.rows) > quotas[i] and room[ids[i]] > quotas[i]
            and (case when others then rest else quotas[i] end) < least(
              room[kind], room[next_lane.host_id], room[next_lane.storage_id], room[next_lane.source_storage_id])
          then
            -- The lane has more than the queue asks for, and no bucket has to be shared.
            picked := picked || next_lane.rows[1:quotas[i]];
            foreach bucket_id in array
              array[ids[i], kind, next_lane.host_id, next_lane.storage_id, next_lane.source_storage_id]
            loop
              room[bucket_id] := room[bucket_id] - quotas[i];
            end loop;
            rest := rest - quotas[i]; gots[i] := quotas[i]; progress := true;
            at_hosts[i] := next_lane.host_id; at_lanes[i] := next_lane.id;
          elsif quotas[i] > 0 and rest > 0 then
            select * into part
              from pick_rows(
                v, at_rank, ids[i], least(quotas[i], rest, room[ids[i]]),
                case when others then starts[i:] end, case when others then weights[i:] end,
                horizon, few, counted, rest, room, kinds, storages, hosts, picked, dry, at_hosts[i], at_lanes[i]);
            rest := part.left_over; room := part.room; kinds := part.kinds; storages := part.storages;
            hosts := part.hosts; picked := part.picked; dry := part.dry;
            at_hosts[i] := part.at_host; at_lanes[i] := part.at_lane; gots[i] := part.got;
            lasts[i] := part.last or part.ended and gots[i] < quotas[i] or room[ids[i]] <= 0;
            if gots[i] < quotas[i] and part.ended then
              ended := ended || ids[i]; progress := true;
            end if;
            progress := progress or gots[i] > 0;
            if part.empty then
              bare := bare + 1;
              continue;
            end if;
          end if;
          due := due || i;
        end loop;
        exit when n = 1 or places = 1;
        sooner := places;
        if not progress then
          sooner := 1;  -- each left its place to another
        elsif whole and looks > 0 then
          buckets := '{}';
          if cardinality(kinds || storages || hosts) < cardinality(kinds_0 || storages_0 || hosts_0) then
            -- A bucket that is full ends only queues that have no other lane.
            select coalesce(array_agg(d.id), '{}') into still_due
              from due_queues(at_rank, v, done || ended, dry, kinds, storages, hosts, few, turned_on) d;
            for i in 1..n loop
              if not lasts[i] and ids[i] <> all(still_due) then
                buckets := kinds_0 || storages_0 || hosts_0;
              end if;
            end loop;
          end if;
          sooner := first_end(places, starts, weights, quotas, gots, lasts, buckets, counted, room_0, room);
        end if;
        exit when sooner >= places;
        looks := looks - n; places := sooner;
        room := room_0; kinds := kinds_0; storages := storages_0; hosts := hosts_0; dry := dry_0; picked := null;
        at_hosts := at_hosts_0; at_lanes := at_lanes_0; bare := bare_0;
      end loop;
      left_over := left_over - places + rest;
      done := done || ended;
      for i in 1..n loop
        if gots[i] > 0 then
          served := served || ids[i];
        end if;
      end loop;

      select p.v, p.step, p.tags into v, step, tags
        from advance(v, starts, weights, quotas, gots, due, whole) p;
      update queue q
         set tag = d.tag, start = case when d.got > 0 then v else start end, cursor_host = d.host,
             cursor_lane = greatest(d.lane, 0)
        from unnest(ids, tags, gots, at_hosts, at_lanes) d(id, tag, got, host, lane)
       where q.id = d.id
         and (q.tag <> d.tag or cursor_host <> d.host or cursor_lane < 0 or cursor_lane <> d.lane);
      if step > 0 then
        update queue set tag = tag + step
         where cursor_lane >= 0 and id <> all(ids) and (whole or tag + 1 / weight < finish);
      end if;

      -- Every round is written before the next one reads.
      if picked is not null then
        began := coalesce(began, clock_timestamp());
        select b.tasks, b.sequences into took, took_sequences
          from begin_runs(claimer, call, began, picked, counted) b;
        all_took := all_took || took; all_sequences := all_sequences || took_sequences;
        picked := null;
      end if;
      -- The tasks of thousands of queues may have been withdrawn. The next calls go on: what this one has found empty, it
      -- must switch off soon, because renewals of this worker's lease and the claims of all others wait for it.
      exit ranks when left_over <= 0 or bare >= 64;
      exit when not progress;
    end loop;
  end loop;

  if dry <> '{}' then
    perform switch_off(dry, v_before, v, served);
  end if;
  if cardinality(all_took) = 0 then
    return;
  end if;
  begin
    lock table task in row exclusive mode nowait;
  exception when lock_not_available then
    -- Somebody changes the table or its indexes. This transaction must not wait for it, because it has locked the row of
    -- the worker, which the renewal of the lease needs.
    insert into outbox (kind, at, task_ids, sequences) values ('started', began, all_took, all_sequences);
    return query select u.id, null::json from unnest(all_took) u(id);
    return;
  end;
  return query
    with begun as materialized (
      select n.id, n.sequence, n.created_at,
             case when sum(pg_column_size(n.spec)) over (rows unbounded preceding) <= 65536 then n.spec end spec
        from (select u.id, u.sequence, t.spec, t.created_at
                from unnest(all_took, all_sequences) u(id, sequence)
                left join task t
                  on t.id = any(case when u.sequence = 2 then array[u.id] end)) n),  -- the first event after submitted
    told as (
      insert into outbox (kind, at, task_ids, sequences, worker, specs, created_ats)
      select 'started', began, array_agg(b.id), array_agg(b.sequence), (select boot from worker where id = claimer),
             array_agg(b.spec), array_agg(b.created_at)
        from begun b)
    select b.id, b.spec from begun b;
end $$;

-- Returns what a worker needs to begin tasks that it claimed. Runs outside the gate.
create function claimed(tasks uuid[])
returns table (
  task_id uuid, epoch int, attempt smallint, priority smallint, spec json,
  checkpoint_version smallint, generation int, bytes_done bigint, bytes_total bigint, stage text, payload json
)
language plpgsql set plan_cache_mode = force_generic_plan as $$
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

-- Whether the task has had a checkpoint, even if that is dropped.
create function had_checkpoint(task uuid) returns boolean
language sql stable set plan_cache_mode = force_generic_plan as $$
  select t.generation is not null from task t where t.id = task
$$;

-- The lanes that a claim may look at: those that are on, of these kinds and storages, that have room.
create function lanes_with_room(kinds int[], storages int[]) returns setof lane language sql stable as $$
  select l.* from lane l
   where l.ready and l.kind_id = any(kinds) and l.storage_id = any(storages) and l.source_storage_id = any(storages)
     and (select h.used < h.run_limit from bucket h where h.id = l.host_id)
     and (select q.used < q.run_limit from bucket q where q.id = l.queue_id)
$$;

-- What a claim of a worker may find: how many tasks are ready that it can run, counted up to `most`; how many run; and how
-- many workers can run whatever this one can, which is one of them. No row if a claim would find nothing. A lane that is on
-- may be empty: only a claim can switch it off. Runs outside the gate, and so what waits for a limit or for other workers
-- costs no claim.
create function demand(asking int, most int) returns table (ready int, running int, workers int)
language plpgsql stable set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
  all_run  int;
  kinds    int[];
  storages int[];
begin
  if not exists (select from lane where ready) then
    return;  -- as mostly
  end if;
  select used into all_run from bucket where id = 1 and used < run_limit;
  select array_agg(id) into kinds from kinds_of(asking) where places > 0;
  select array_agg(b.id) || 0 into storages
    from worker w cross join lateral unnest(w.volume_names || ''::text) s(name)
    join bucket b on b.scope = 'storage' and b.name = s.name and b.used < b.run_limit
   where w.id = asking;
  if all_run is null or not exists (select from lanes_with_room(kinds, storages)) then
    return;
  end if;
  return query
    select (select count(*)::int
              from (select from lanes_with_room(kinds, storages) l
                     cross join lateral first_rows(l.id, l.head, most) f
                     cross join lateral unnest(f.rows) u(tuple) limit most) counted),
           all_run,
           (select count(*)::int
              from worker me
              join worker o on o.kinds @> me.kinds and o.volume_names @> me.volume_names
             where me.id = asking and not o.dead and not o.draining and o.lease_until > now());
end $$;
