create function creation_key() returns bigint language sql stable as $$
  select hashtextextended('reelhaul.creation.' || current_schema(), 0)
$$;

-- Only one transaction at a time creates buckets and lanes. So ids stay dense, and transactions cannot wait for each
-- other in a circle.
create function begin_creation() returns void language sql as $$
  select pg_advisory_xact_lock(creation_key())
$$;

-- Creates the missing buckets, and the rows of `queue` that belong to them.
create function ensure_buckets(scopes text[], names text[]) returns void
language plpgsql set plan_cache_mode = force_generic_plan as $$
begin
  perform begin_creation();

  with wanted as (
    select w.scope, w.name, row_number() over (order by w.scope, w.name) n
      from (select distinct scope, name from unnest(scopes, names) u(scope, name)) w
     where not exists (select from bucket b where b.scope = w.scope and b.name = w.name offset 0)),
  free as materialized (
    select array(select id from bucket where scope = 'free' order by id limit (select count(*) from wanted)) ids),
  reused as (
    update bucket b set scope = w.scope, name = w.name
      from free f cross join wanted w where b.id = any(array[f.ids[w.n]]))
  insert into bucket (id, scope, name)
  select (select max(id) from bucket) + row_number() over (order by w.n), w.scope, w.name
    from wanted w where w.n > (select cardinality(ids) from free);

  insert into queue (id, cursor_lane)
  select b.id, -1
    from (select distinct name from unnest(scopes, names) u(scope, name) where scope = 'queue') u
   cross join lateral (select id from bucket where scope = 'queue' and name = u.name offset 0) b
   where not exists (select from queue q where q.id = b.id offset 0);
end $$;

-- The ids of what these keys of lanes name, in their order; nulls for what is not there.
create function lane_keys(
  ranks smallint[], queues text[], kinds text[], hosts text[], storages text[], source_storages text[]
) returns table (ordinal bigint, rank smallint, queue_id int, kind_id int, host_id int, storage_id int, source_storage_id int)
language sql stable as $$
  select u.ordinal, u.rank,
         (select id from bucket where scope = 'queue' and name = u.queue),
         (select id from bucket where scope = 'kind' and name = u.kind),
         (select id from bucket where scope = 'host' and name = u.host),
         (select id from bucket where scope = 'storage' and name = u.storage),
         case u.source_storage when '' then 0
           else (select id from bucket where scope = 'storage' and name = u.source_storage) end
    from unnest(ranks, queues, kinds, hosts, storages, source_storages)
         with ordinality u(rank, queue, kind, host, storage, source_storage, ordinal)
$$;

-- Returns the lanes for these keys, in the order of the keys; creates missing ones.
--
-- This and all functions of the hot paths are planned `by_index`: 99_plans.sql says what that is. Where a vacuum has just
-- found such a table empty, a plan would rather read all of an index, in its order, than look up key by key. So joins by
-- key are written `= any(array[key])`, which serves as the condition of an index and as nothing else, and subqueries with
-- `offset 0` stay lookups per row, by all columns of a key. (Where a plan expects one row, such an array may still become
-- a filter of all of an index: a subquery with `offset 0` never does.) A table that grows before it is analyzed for the
-- first time needs that, too: thousands of hosts may come in the first minute.
create function lane_ids(
  ranks smallint[], queues text[], kinds text[], hosts text[], storages text[], source_storages text[]
) returns int[]
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  ids   int[];
  tries int := 0;
begin
  loop
    select array_agg(l.id order by k.ordinal) into ids
      from lane_keys(ranks, queues, kinds, hosts, storages, source_storages) k
      left join lateral (
        select id from lane
         where (rank, queue_id, kind_id, host_id, storage_id, source_storage_id)
             = (k.rank, k.queue_id, k.kind_id, k.host_id, k.storage_id, k.source_storage_id) offset 0) l on true;
    if array_position(ids, null) is null then
      return ids;
    end if;
    -- Another transaction may delete a lane after this one has found it, but not again and again.
    tries := tries + 1;
    if tries > 10 then
      raise exception 'the lanes could not be created in 10 tries';
    end if;

    perform ensure_buckets(
      array_fill('queue'::text, array[cardinality(queues)]) || array_fill('kind'::text, array[cardinality(kinds)])
        || array_fill('host'::text, array[cardinality(hosts)]) || array_fill('storage'::text, array[cardinality(storages)])
        || array_fill('storage'::text, array[cardinality(array_remove(source_storages, ''))]),
      queues || kinds || hosts || storages || array_remove(source_storages, ''));
    insert into lane (rank, queue_id, kind_id, host_id, storage_id, source_storage_id)
    select k.rank, k.queue_id, k.kind_id, k.host_id, k.storage_id, k.source_storage_id
      from lane_keys(ranks, queues, kinds, hosts, storages, source_storages) k
     where not exists (
       select from lane
        where (rank, queue_id, kind_id, host_id, storage_id, source_storage_id)
            = (k.rank, k.queue_id, k.kind_id, k.host_id, k.storage_id, k.source_storage_id) offset 0)
        on conflict do nothing;
  end loop;
end $$;

-- Must be called before tasks are put into these lanes; no lane is listed twice. Until this transaction ends, no claim
-- switches the lanes off, and no transaction deletes them.
create function hold_lanes(lanes int[]) returns void language plpgsql as $$
declare
  there int;
begin
  perform from lane where id = any(lanes) order by id for key share;
  get diagnostics there = row_count;
  if there < cardinality(lanes) then
    -- A lane was deleted after it was looked up. The caller repeats the call, and that creates the lane again.
    raise exception 'a lane was deleted in the meantime' using errcode = 'serialization_failure';
  end if;
end $$;

-- This transaction has put rows of `ready` into these lanes. `wake_lanes` wakes them.
create function note_lanes(lanes int[]) returns void language plpgsql as $$
declare
  noted int[] := coalesce(nullif(current_setting('reelhaul.lanes', true), ''), '{}');
begin
  if not lanes <@ noted then
    perform set_config('reelhaul.lanes', (noted || lanes)::text, true);
  end if;
end $$;

-- Marks the noted lanes, so that claims look at them again. It is called only once in a transaction, after all rows: two
-- transactions that wake the same lanes one by one would wait for each other.
create function wake_lanes() returns void
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  lanes int[] := nullif(current_setting('reelhaul.lanes', true), '')::int[];
begin
  if lanes is not null then
    update lane set ready = true
     where id = any(array(select id from lane where id = any(lanes) and not ready order by id for no key update));
    perform set_config('reelhaul.lanes', '', true);
  end if;
end $$;

-- Returns the first of `count` positions behind all rows of `ready`. The ordinals of a transaction continue from call
-- to call.
create function reserve_positions(count int) returns bigint language plpgsql as $$
declare
  taken bigint := coalesce(nullif(current_setting('reelhaul.positions', true), ''), '0')::bigint;
begin
  perform set_config('reelhaul.positions', (taken + count)::text, true);
  return (pg_current_xact_id()::text::bigint << 20) + taken;
end $$;

-- Puts queued tasks into `ready`, at the end or in front. The caller has locked and updated their rows in `task`, and
-- calls `wake_lanes` later.
create function enqueue(tasks uuid[], in_front boolean) returns void
language plpgsql set plan_cache_mode = force_generic_plan as $$
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
  perform note_lanes(lanes);
  with placed as (
    update task t set pos = base + u.ordinal - 1
      from unnest(tasks) with ordinality u(id, ordinal)
     where t.id = any(array[u.id])
    returning t.lane_id, t.pos, t.id, t.epoch, t.attempt, t.sequence)
  insert into ready (lane_id, pos, task_id, epoch, attempt, sequence)
  select lane_id, pos, id, epoch, attempt, sequence from placed;
end $$;
