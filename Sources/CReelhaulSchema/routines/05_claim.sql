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

-- The tasks that queues have taken, in whole tasks, when the virtual time of all has come to `level`.
create function tasks_until(level float8, starts float8[], weights float8[], quotas int[]) returns int
language plpgsql immutable as $$
declare
  tasks int := 0;
begin
  for i in 1..cardinality(starts) loop
    tasks := tasks + floor(least(greatest((level - starts[i]) * weights[i], 0), quotas[i]) + 1e-6);
  end loop;
  return tasks;
end $$;

-- The functions below that have no settings, and those in the next file, are parts of `claim_tasks`, and are planned
-- under its settings. PostgreSQL inlines those in SQL into the statements that call them.

-- Up to 64 queues that are due, the lowest tag first; among equal tags, the queue that was served longest ago. If there
-- are more, these are the ones whose next task ends first in virtual time, at one task behind the tag. `hosts` has the
-- hosts with room, if `few` is true. `dry`: lanes that this claim has emptied, which are on until it ends. A queue is
-- never owed more than 8 tasks.
--
-- `turned_on`: the queues with lanes that are on at this rank; null if all queues are to be looked at.
create function due_queues(
  at_rank smallint, v float8, done int[], dry int[], kinds int[], storages int[], hosts int[], few boolean,
  turned_on int[])
returns table (id int, start float8, weight float8, cursor_host int, cursor_lane int, room int)
language sql stable as $$
  select d.id, d.s, d.weight, d.cursor_host, d.cursor_lane, d.room
    from (
      select q.*, b.run_limit - b.used room
        from (select id, s, weight, cursor_host, cursor_lane, start
                from (select * from queue where turned_on is null
                       union all
                      select q.* from unnest(turned_on) o(id) join queue q on q.id = any(array[o.id])) listed
               cross join lateral (
                 select case when cursor_lane < 0 then v + tag else greatest(tag, v - 8 / weight) end s) owed
               order by s + 1 / weight, start, id) q
        join bucket b on b.id = q.id and b.used < b.run_limit
       where q.id <> all(done)
         and case
               when not exists (
                 select from lane r where r.ready and r.rank = at_rank and r.queue_id = q.id offset 0) then false
               when few then exists (
                 select from unnest(hosts) o(id)
                  cross join lateral (
                    select from lane r
                     where r.ready and r.rank = at_rank and r.queue_id = q.id and r.host_id = o.id and r.id <> all(dry)
                       and r.kind_id = any(kinds) and r.storage_id = any(storages) and r.source_storage_id = any(storages) limit 1) open_lane)
               else exists (
                 select from lane r
                  where r.ready and r.rank = at_rank and r.queue_id = q.id and r.id <> all(dry)
                    and r.kind_id = any(kinds) and r.storage_id = any(storages) and r.source_storage_id = any(storages)
                    and (select h.used < h.run_limit from bucket h where h.id = r.host_id))
             end
       limit 64) d
   order by d.s, d.start, d.id
$$;

-- The queues with lanes that are on at a rank, or null if there are more than 256: one look at the index for each. There
-- may be many thousands of queues that rest, each with a failed or paused task.
create function queues_on(at_rank smallint) returns int[] language sql stable as $$
  with recursive turned_on (id) as (
    (select queue_id from lane where ready and rank = at_rank order by queue_id limit 1)
    union all
    select (select l.queue_id from lane l
             where l.ready and l.rank = at_rank and l.queue_id > o.id order by l.queue_id limit 1)
      from turned_on o where o.id is not null)
  select case when count(*) <= 256 then coalesce(array_agg(id), '{}') end
    from (select id from turned_on where id is not null limit 257) found
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

-- For each queue of a round that asks for fewer than 50 rows: the lane that comes next, the room of its host, and the
-- lane's first rows, one more than `asked`.
create function next_lanes(
  at_rank smallint, queues int[], asked int[], at_hosts int[], at_lanes int[],
  kinds int[], storages int[], hosts int[], few boolean)
returns table (
  i bigint, id int, kind_id int, host_id int, storage_id int, source_storage_id int, host_room int, rows tid[])
language sql stable as $$
  select q.i, l.id, l.kind_id, l.host_id, l.storage_id, l.source_storage_id,
         (select run_limit - used from bucket where id = l.host_id), w.rows
    from unnest(queues, asked, at_hosts, at_lanes) with ordinality q(id, asked, host, lane, i)
    left join lateral (
      select *
        from (select * from open_lanes(at_rank, q.id, kinds, storages, hosts, few, q.host, q.lane, 1)
              union all
              select * from open_lanes(at_rank, q.id, kinds, storages, hosts, few, 0, 0, 1)) ring
       where q.asked between 1 and 49 limit 1) l on true
    left join lateral first_rows(l.id, l.head, q.asked + 1) w on true
   order by q.i
$$;

-- Picks up to `quota` rows for one queue: its lanes as a ring, from behind its cursor, once round, one lane at first,
-- then 4, 16, 32 at a time. `starts` and `weights` are those of this queue and of the queues that come after it in the
-- round: where a bucket has less room than the round has places, the queue takes its part of that room, and is not
-- `ended` by it. Null: it need not. `empty`: there were lanes with room, and nothing in them. A lane is looked at one
-- row further than asked: one that is emptied is `dry` at once, for a queue without tasks must not earn. `last`: the
-- queue has no other lane than dry ones; it is only asked for a queue of several that got all of its quota. `counted`:
-- by former names of kinds, what they count as; `room` has all kinds that count.
create function pick_rows(
  v float8, at_rank smallint, queue int, quota int, starts float8[], weights float8[], horizon bigint, few boolean,
  counted int[], inout left_over int, inout room int[], inout kinds int[], inout storages int[], inout hosts int[],
  inout picked tid[], inout dry int[], inout at_host int, inout at_lane int,
  out got int, out ended boolean, out empty boolean, out last boolean)
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
        if n < places and e > 0 and cardinality(starts) > 1 then
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
        if e >= 50 and l.first_pos >= 0 and l.head_at not between now() - interval '0.1 s' and now() then
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
  last := quota <= 0 and at_lane = dry[cardinality(dry)] and weights is not null and not exists (
    select from lane r where r.ready and r.rank = at_rank and r.queue_id = queue and r.id <> all(dry));
  if got = 0 and steps < 256 then
    at_host := from_host; at_lane := from_lane;
  end if;
end $$;

-- Returns after how many of a round's `places` the first of its queues or buckets comes to an end, but at least 1; or
-- `places`, if that is not before the last one. All queues of a round earn, so a queue that ends must be in no longer
-- round: it would earn starts that it could not have had. `lasts`: the queues that got all they could. `buckets`: those of
-- the round, with their rooms before (`room_0`) and after (`room`).
--
-- If no queue got all of its quota, no bucket ended any of them, and they got about one task each, there is nothing left
-- to share.
create function first_end(
  places int, starts float8[], weights float8[], quotas int[], gots int[], lasts boolean[], buckets int[],
  counted int[], room_0 int[], room int[]
) returns int language plpgsql immutable as $$
declare
  soonest int := places;
  taken   int := 0;
  short   boolean := true;
  full_up boolean := false;
  k       int;
begin
  foreach k in array buckets loop
    k := coalesce(counted[k], k);
    if room[k] <= 0 and room_0[k] > 0 and room_0[k] < places then
      full_up := true; soonest := least(soonest, room_0[k]);
    end if;
  end loop;
  for i in 1..cardinality(starts) loop
    taken := taken + gots[i];
    short := short and (quotas[i] = 0 or gots[i] < quotas[i]);
  end loop;
  if short and not full_up and taken <= cardinality(starts) then
    return places;
  end if;
  for i in 1..cardinality(starts) loop
    if quotas[i] > 0 and lasts[i] then
      soonest := least(soonest, case when gots[i] = 0 then 1
                   else tasks_until(starts[i] + gots[i] / weights[i], starts, weights, quotas) end);
    end if;
  end loop;
  return greatest(soonest, 1);
end $$;

-- Returns the virtual time after a round, the `step` by which the tags of queues that were not due advance, and the
-- tags of all listed queues. `due` has the indexes of the due ones; the others turned out to have no rows.
--
-- All due queues have earned the tasks that were taken, by weight. A queue that got less than its quota was due until
-- there was no more room: it keeps what it was owed, or one task, and the virtual time follows the queues that went on.
-- If more queues may be due than are listed (not `whole`), the virtual time is the lowest start, which cannot be ahead of
-- any of them.
create function advance(
  inout v float8, starts float8[], out tags float8[], weights float8[], quotas int[], gots int[], due int[],
  whole boolean, out step float8)
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
    lowest := least(lowest, starts[i] - case when whole then 1 / weights[i] else 0 end);
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
  if whole then
    v := v + taken / weight;
    if slowest < 'Infinity' then
      v := greatest(v, slowest);
    end if;
  end if;
  step := v - before;
  for i in 1..n loop
    if i <> all(due) then
      tags[i] := tags[i] + step;
    elsif whole and gots[i] < quotas[i] then
      tags[i] := greatest(tags[i], v - greatest(before - starts[i], 1 / weights[i]));
    end if;
  end loop;
end $$;
