-- Fairness among queues, as exact as it can be when a claim takes several tasks at once. Every task that starts is
-- shared, by weight, among all queues that could have started one instead. These queues are *due*: each has a waiting
-- task with room in every bucket, at the highest waiting priority, of a kind and storage that the worker has. Every due
-- queue earns its share of the start, and the queue whose task starts pays for it. The queue that is owed most comes
-- next.
--
-- In virtual time: `v` advances by 1 / (sum of the weights of the due queues) for each start. The tag of a queue
-- advances by 1 / weight for each start of its own. A queue is owed (v - tag) * weight tasks. A queue may wait without
-- being due: its host is full, the worker does not have its kind, or there is a higher priority. The tag of such a
-- queue advances like v, so it neither gains nor loses. So the starts of one worker or one priority do not change the
-- order among queues that could not run there. A queue without waiting tasks is *idle*: its cursor_lane is -1, and its
-- tag is relative to v and at most one task away from it; so it comes back at about v.

-- Shares `places` at `v` among queues that begin at `starts`: raises all of them to one level of virtual time. The
-- remaining places go, one by one, to the queue that would be owed most.
create function apportion(v float8, starts float8[], weights float8[], places int) returns int[] language plpgsql immutable as $$
declare
  n      int := cardinality(starts);
  base   float8;
  level  float8 := 'Infinity';
  below  int;
  former int := n + 1;
  total  float8;
  area   float8;
  pace   float8;
  parts  int[] := array_fill(0, array[n]);
  rests  float8[] := array_fill(0::float8, array[n]);
  spare  int := places;
  most   int;
begin
  if n = 1 then
    return array[places];
  end if;
  select min(s) into base from unnest(starts) s;
  loop
    below := 0; total := 0; area := places;
    for i in 1..n loop
      if starts[i] - base < level then
        below := below + 1; total := total + weights[i]; area := area + (starts[i] - base) * weights[i];
      end if;
    end loop;
    exit when below >= former;  -- it can only fall, except by a rounding error
    level := area / total;
    former := below;
  end loop;

  select places / sum(w) into pace from unnest(weights) w;
  for i in 1..n loop
    parts[i] := floor(greatest((level - (starts[i] - base)) * weights[i] + 1e-6, 0));
    rests[i] := (v - starts[i] + pace) * weights[i] - parts[i];
    spare := spare - parts[i];
  end loop;
  while spare > 0 loop
    most := 1;
    for i in 2..n loop
      if rests[i] > rests[most] then
        most := i;
      end if;
    end loop;
    parts[most] := parts[most] + 1; rests[most] := rests[most] - 1;
    spare := spare - 1;
  end loop;
  return parts;
end $$;

-- The functions below that have no settings are parts of `claim`, and are planned under its settings. PostgreSQL
-- inlines those in SQL into the statements that call them.

-- Up to 16 queues that are due, the lowest tag first; among equal tags, the queue that was served longest ago. `hosts`
-- has the hosts with room, if `few` is true. A queue is never owed more than 8 tasks.
create function due_queues(at_rank smallint, v float8, done int[], kinds int[], storages int[], hosts int[], few boolean)
returns table (id int, start float8, weight float8, cursor_host int, cursor_lane int, room int)
language sql stable as $$
  select q.id, q.s, q.weight, q.cursor_host, q.cursor_lane, b.run_limit - b.used
    from (select id, case when cursor_lane < 0 then v + tag else greatest(tag, v - 8 / weight) end s,
                 weight, cursor_host, cursor_lane
            from queue order by 2, start, id) q
    join bucket b on b.id = q.id and b.used < b.run_limit
   where q.id <> all(done)
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
   limit 16
$$;

-- Up to `fan` lanes of a queue that have room, behind (after_host, after_lane), in the order of the queue's ring: by
-- host and id.
create function open_lanes(
  at_rank smallint, queue int, kinds int[], storages int[], hosts int[], few boolean,
  after_host int, after_lane int, fan int)
returns table (
  id int, kind_id int, host_id int, storage_id int, source_storage_id int, head bigint, head_at timestamptz)
language sql stable as $$
  select * from (
    select r.*
      from (select o.id from unnest(hosts) o(id) where few and o.id >= after_host order by o.id) o
     cross join lateral (
       select r.id, r.kind_id, r.host_id, r.storage_id, r.source_storage_id, r.head, r.head_at from lane r
        where r.ready and r.rank = at_rank and r.queue_id = queue and r.host_id = o.id
          and (o.id > after_host or r.id > after_lane)
          and r.kind_id = any(kinds) and r.storage_id = any(storages) and r.source_storage_id = any(storages)
        order by r.id) r
     limit fan) of_few
  union all
  select * from (
    select r.id, r.kind_id, r.host_id, r.storage_id, r.source_storage_id, r.head, r.head_at from lane r
     where not few and r.ready and r.rank = at_rank and r.queue_id = queue
       and (r.host_id, r.id) > (after_host, after_lane)
       and r.kind_id = any(kinds) and r.storage_id = any(storages) and r.source_storage_id = any(storages)
       and (select h.used < h.run_limit from bucket h where h.id = r.host_id)
     order by r.host_id, r.id limit fan) of_many
$$;

-- The first `asked` rows of a lane: first the rows in front, then the rows from its head on.
create function first_rows(lane int, head bigint, asked int) returns table (rows tid[], first_pos bigint)
language sql stable as $$
  select array_agg(z.tuple), min(z.pos) filter (where z.pos >= 0)
    from (select * from (
            select w.ctid tuple, w.pos from ready w where w.lane_id = lane and w.pos < 0 order by w.pos limit asked) in_front
          union all
          select * from (
            select w.ctid, w.pos from ready w where w.lane_id = lane and w.pos >= head order by w.pos limit asked) behind
          limit asked) z
$$;

-- Picks up to `quota` rows for one queue: its lanes as a ring, from behind its cursor, once round, one lane at first,
-- then 4, 16, 32 at a time. `starts` and `weights` are those of this queue and of the queues that come after it in the
-- round: where a bucket has less room than the round has places, the queue takes its part of that room, and is not
-- `ended` by it. Null: it need not. `empty`: there were lanes with room, and nothing in them. A lane is looked at one
-- row further than asked: one that is emptied is `dry` at once, for a queue without tasks must not earn. `counted`: by
-- former names of kinds, what they count as; `room` has all kinds that count.
create function pick_rows(
  v float8, at_rank smallint, queue int, quota int, starts float8[], weights float8[], horizon bigint, few boolean,
  counted int[], inout left_over int, inout room int[], inout kinds int[], inout storages int[], inout hosts int[],
  inout picked tid[], inout dry int[], inout at_host int, inout at_lane int,
  out got int, out ended boolean, out empty boolean)
language plpgsql as $$
#variable_conflict use_column
declare
  places    int     := left_over;
  own       float8  := starts[1];
  from_host int     := at_host;
  from_lane int     := at_lane;
  wrapped   boolean := false;
  steps     int     := 0;
  fan       int     := 1;
  met       boolean;
  l         record;
  kind      int;
  n         int;
  e         int;
begin
  got := 0; ended := true;
  <<ring>>
  while quota > 0 and steps < 256 loop
    met := false;
    for l in
      select x.id, x.kind_id, x.host_id, x.storage_id, x.source_storage_id, x.head_at,
             free.kind, free.host, free.storage, free.source,
             least(quota, free.kind, free.host, free.storage, free.source) asked, waiting.rows, waiting.first_pos
        from open_lanes(at_rank, queue, kinds, storages, hosts, few, at_host, at_lane, fan) x
       cross join lateral (
         select room[coalesce(counted[x.kind_id], x.kind_id)] kind,
                coalesce(room[x.host_id], (select run_limit - used from bucket where id = x.host_id)) host,
                coalesce(room[x.storage_id], (select run_limit - used from bucket where id = x.storage_id)) storage,
                -- Null if there is no second storage: `least` ignores nulls.
                coalesce(room[x.source_storage_id],
                         (select run_limit - used from bucket where id = x.source_storage_id)) source
         offset 0) free
        left join lateral first_rows(x.id, x.head, least(quota, free.kind, free.host, free.storage, free.source) + 1) waiting on true
    loop
      exit ring when wrapped and (l.host_id, l.id) > (from_host, from_lane);
      met := true; steps := steps + 1; at_host := l.host_id; at_lane := l.id;
      kind := coalesce(counted[l.kind_id], l.kind_id);
      room[l.host_id] := coalesce(room[l.host_id], l.host);
      room[l.storage_id] := coalesce(room[l.storage_id], l.storage);
      room[l.source_storage_id] := coalesce(room[l.source_storage_id], l.source);
      n := least(room[kind], room[l.host_id], room[l.storage_id], room[l.source_storage_id]);
      e := least(coalesce(cardinality(l.rows), 0), l.asked);
      if n > 0 then
        empty := coalesce(empty, true) and e = 0;
        if n < places and e > 0 and starts is not null then
          starts[1] := own + got / weights[1];
          n := (apportion(v, starts, weights, n))[1];
          if n < e then
            ended := false;
          end if;
        end if;
        n := least(n, quota);
        if e > n then
          picked := picked || l.rows[1:n]; e := n;
        else
          picked := picked || l.rows[1:e];
        end if;
        if e = coalesce(cardinality(l.rows), 0) then
          dry := dry || l.id;
        end if;
        quota := quota - e; got := got + e; left_over := left_over - e;
        room[queue] := room[queue] - e;
        room[kind] := room[kind] - e;
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
      else
        empty := false;
      end if;
      if room[kind] <= 0 then
        select coalesce(array_agg(k), '{}') into kinds from unnest(kinds) k where coalesce(counted[k], k) <> kind;
      end if;
      if room[l.storage_id] <= 0 then
        storages := array_remove(storages, l.storage_id);
      end if;
      if room[l.source_storage_id] <= 0 then
        storages := array_remove(storages, l.source_storage_id);
      end if;
      exit ring when quota <= 0;
    end loop;
    if not met then
      exit when wrapped;
      wrapped := true; at_host := 0; at_lane := 0;
    end if;
    fan := least(fan * 4, 32);
  end loop;
  empty := coalesce(empty, false);
  if got = 0 and steps < 256 then
    at_host := from_host; at_lane := from_lane;
  end if;
end $$;

-- Returns the virtual time after a round, the `step` by which the tags of queues that were not due advance, and the
-- tags of all listed queues. `due` has the indexes of the due ones; the others turned out to have no rows.
--
-- All due queues have earned the tasks that were taken, by weight. A queue that got less than its quota was due until
-- there was no more room: it keeps what it was owed, or one task, and the virtual time follows the queues that went on.
-- If 16 queues are listed, more may be due: then the virtual time is the lowest start, which cannot be ahead of any of
-- them.
create function advance(
  inout v float8, starts float8[], out tags float8[], weights float8[], quotas int[], gots int[], due int[],
  out step float8)
language plpgsql as $$
declare
  n      int    := cardinality(starts);
  i      int;
  weight float8 := 0;
  taken  int    := 0;
  lowest float8 := 'Infinity';  -- one task behind the queue with the lowest start
  slowest float8 := 'Infinity'; -- one task behind the lowest tag of the queues that got their quota
  before float8;
begin
  tags := starts;
  foreach i in array due loop
    weight := weight + weights[i]; taken := taken + gots[i];
    lowest := least(lowest, starts[i] - case when n < 16 then 1 / weights[i] else 0 end);
    tags[i] := starts[i] + gots[i] / weights[i];
    if gots[i] >= quotas[i] then
      slowest := least(slowest, tags[i] - 1 / weights[i]);
    end if;
  end loop;
  step := 0;
  if taken = 0 then
    return;
  end if;

  before := v;
  v := greatest(v, lowest);
  if n < 16 then
    v := v + taken / weight;
    if slowest < 'Infinity' then
      v := greatest(v, slowest);
    end if;
  end if;
  step := v - before;
  for i in 1..n loop
    if i <> all(due) then
      tags[i] := tags[i] + step;
    elsif n < 16 and gots[i] < quotas[i] then
      tags[i] := greatest(tags[i], v - greatest(before - starts[i], 1 / weights[i]));
    end if;
  end loop;
end $$;

-- Moves rows of `ready` into `run`. `counted`: by former names of kinds, what they count as.
create function begin_runs(claimer int, call bigint, picked tid[], counted int[], out tasks uuid[], out sequences int[])
language plpgsql as $$
begin
  -- Skips locked rows: a command that takes a task out of `ready` may itself wait for this claim.
  with free as materialized (select ctid tuple from ready where ctid = any(picked) for update skip locked),
  taken as (delete from ready r using free where r.ctid = free.tuple returning r.*),
  begun as (
    insert into run (task_id, epoch, worker_id, claim_call, queue_id, kind_id, host_id, storage_id, source_storage_id,
                     attempt, sequence)
    select t.task_id, t.epoch + 1, claimer, call, z.queue_id, coalesce(counted[z.kind_id], z.kind_id), z.host_id,
           z.storage_id, z.source_storage_id, t.attempt + 1, t.sequence + 1
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

-- Takes up to `wanted` tasks for a worker that has a current lease: highest priority first, fair among queues, around
-- the lanes of each queue, within the limit of every bucket. `call` is the number of the worker's call: if a call is
-- repeated because its answer was lost, it returns the tasks that it took the first time. Run it as its own
-- transaction, because the gate is held until the transaction ends.
--
-- A task that starts for the first time, and was never changed before, comes with its specification: its epoch and its
-- attempt are 1, and it has no checkpoint. `claimed` returns what a worker needs to know of the others. The answer has at
-- most 64 KiB of specifications, so that it is sent at once: a worker that does not read it must not hold the gate.
create function claim_tasks(claimer int, wanted int, call bigint)
returns table (task_id uuid, spec json) language plpgsql set reelhaul.plans = 'by_index'
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
  done       int[];                                               -- queues with no more rows at this rank
  picked     tid[];
  dry        int[];                                               -- lanes that seem empty
  took       uuid[];          took_sequences int[];
  all_took   uuid[] := '{}';  all_sequences  int[] := '{}';
  -- The queues of a round: the due ones, in the order of their starts.
  n          int;
  ids        int[];           starts  float8[];  tags    float8[];  weights float8[];
  at_hosts   int[];           at_lanes int[];    rooms   int[];     quotas  int[];
  gots       int[];
  others     boolean;
  part       record;
  progress   boolean;
  due        int[];
  step       float8;
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
  select max(start) into v from queue;
  v_before := v;
  kinds := '{}';
  for part in
    select b.id, b.counts_as, c.id kind,
           -- What began under a former name before it was known to be one counts there.
           c.run_limit - c.used - coalesce((select sum(f.used) from bucket f where f.counts_as = c.id), 0) places
      from worker w cross join lateral unnest(w.kinds) k(name)
      join bucket b on b.scope = 'kind' and b.name = k.name
      join bucket c on c.id = coalesce(b.counts_as, b.id)
     where w.id = claimer
  loop
    counted[part.id] := part.counts_as;
    room[part.kind] := part.places;
    if part.places > 0 then
      kinds := kinds || part.id;
    end if;
  end loop;
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
    done := '{}';

    loop  -- rounds, while rows are taken or a queue turns out to have none
      select array_agg(d.id), array_agg(d.start), array_agg(d.weight), array_agg(d.cursor_host),
             array_agg(d.cursor_lane), array_agg(d.room)
        into ids, starts, weights, at_hosts, at_lanes, rooms
        from due_queues(at_rank, v, done, kinds, storages, hosts, few) d;
      exit when ids is null;
      n := cardinality(ids);
      quotas := apportion(v, starts, weights, left_over);
      gots := array_fill(0, array[n]);
      due := '{}'; progress := false;
      others := n > 1 and (few or n < 16);

      for i in 1..n loop
        room[ids[i]] := coalesce(room[ids[i]], rooms[i]);
        if quotas[i] > 0 and left_over > 0 then
          select * into part
            from pick_rows(
              v, at_rank, ids[i], least(quotas[i], left_over, room[ids[i]]),
              case when others and i < n then starts[i:] end, case when others and i < n then weights[i:] end,
              horizon, few, counted, left_over, room, kinds, storages, hosts, picked, dry, at_hosts[i], at_lanes[i]);
          left_over := part.left_over; room := part.room; kinds := part.kinds; storages := part.storages;
          hosts := part.hosts; picked := part.picked; dry := part.dry;
          at_hosts[i] := part.at_host; at_lanes[i] := part.at_lane; gots[i] := part.got;
          if gots[i] < quotas[i] and part.ended then
            done := done || ids[i]; progress := true;
          end if;
          if gots[i] > 0 then
            progress := true; served := served || ids[i];
          end if;
          continue when part.empty;
        end if;
        due := due || i;
      end loop;

      select p.v, p.step, p.tags into v, step, tags
        from advance(v, starts, weights, quotas, gots, due) p;
      update queue
         set tag = case when array_position(ids, id) is null then tag + step else tags[array_position(ids, id)] end,
             start = case when gots[array_position(ids, id)] > 0 then v else start end,
             cursor_host = coalesce(at_hosts[array_position(ids, id)], cursor_host),
             cursor_lane = coalesce(greatest(at_lanes[array_position(ids, id)], 0), cursor_lane)
       where case
               when array_position(ids, id) is null then step > 0 and cursor_lane >= 0 and (n < 16 or tag < starts[n])
               else tag <> tags[array_position(ids, id)] or cursor_host <> at_hosts[array_position(ids, id)]
                 or cursor_lane < 0 or cursor_lane <> at_lanes[array_position(ids, id)]
             end;

      -- Every round is written before the next one reads.
      if picked is not null then
        select b.tasks, b.sequences into took, took_sequences from begin_runs(claimer, call, picked, counted) b;
        all_took := all_took || took; all_sequences := all_sequences || took_sequences;
        picked := null;
      end if;
      exit ranks when left_over <= 0;
      exit when not progress;
    end loop;
  end loop;

  if dry is not null then
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
    perform publish('started', all_took, all_sequences);
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
      insert into outbox (kind, task_ids, sequences, worker, specs, created_ats)
      select 'started', array_agg(b.id), array_agg(b.sequence), (select boot from worker where id = claimer),
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
language plpgsql set reelhaul.plans = 'by_index' as $$
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
