-- A task in the form that is shown: the row of `task`, overridden by the run that owns it. A task has rows in some
-- tables only in certain states; in other states a null key or a `case` saves the lookup.
create view task_document as
  select t.id, coalesce(r.phase, t.state::text) state, t.priority, t.spec,
         coalesce(r.attempt, t.attempt) attempt, coalesce(r.epoch, t.epoch) epoch,
         greatest(r.sequence, t.sequence) sequence,
         coalesce(case when t.state <> 'succeeded' then
                    (select c.generation from checkpoint c where c.task_id = t.id) end, t.generation, 0) generation,
         coalesce((select w.boot from worker w where w.id = r.worker_id), t.worker) worker,
         coalesce(r.bytes_done, t.bytes_done, 0) bytes_done, coalesce(r.bytes_total, t.bytes_total) bytes_total, r.rate,
         t.created_at, coalesce(r.started_at, t.started_at) started_at, t.finished_at,
         case when t.state = 'queued' and r.task_id is null then
           (select d.run_at from delayed d where d.task_id = t.id) end run_at,
         t.sha256, t.output,
         t.error_code, t.error_message, t.error_class, t.error_retry_after
    from task t
    left join run r on r.task_id = any(case when t.state = 'queued' then array[t.id] end);

-- The tasks with these ids that exist, in the order of the ids.
create function task_documents(ids uuid[]) returns setof task_document
language plpgsql set plan_cache_mode = force_generic_plan as $$
begin
  return query
    select d.* from unnest(ids) with ordinality u(id, ordinal) join task_document d on d.id = any(array[u.id])
     order by u.ordinal;
end $$;

-- Of these ranges of ids, the places (from 1 on) of those in which a task is not over.
create function unfinished(firsts uuid[], lasts uuid[]) returns setof bigint
language sql stable set plan_cache_mode = force_generic_plan as $$
  select u.place from unnest(firsts, lasts) with ordinality u(first, last, place)
   where exists (
     select from task t
      where t.id between u.first and u.last and t.state not in ('succeeded', 'canceled', 'failed') offset 0)
$$;

-- What the tasks need that could run now: each kind with its storages, which are empty where it needs none.
create function waiting_needs() returns table (kind text, storage text, source_storage text)
language plpgsql set plan_cache_mode = force_generic_plan set enable_bitmapscan = off as $$
begin
  return query
    select k.name, s.name, coalesce(o.name, '')
      from (select distinct kind_id, storage_id, source_storage_id from lane where ready) n
      join bucket k on k.id = n.kind_id
      join bucket s on s.id = n.storage_id
      left join bucket o on o.id = nullif(n.source_storage_id, 0)
     where exists (
       select from lane l
        where l.ready
          and (l.kind_id, l.storage_id, l.source_storage_id) = (n.kind_id, n.storage_id, n.source_storage_id)
          and (exists (select from ready r where r.lane_id = l.id and r.pos < 0 offset 0)
               or exists (select from ready r where r.lane_id = l.id and r.pos >= l.head offset 0))
       offset 0);
end $$;

-- For metrics, a few times a minute. What they read has a bound, however many tasks there are: the first 5,000 lanes,
-- and up to `most` rows of each queue and kind, or of each state.

-- The tasks in `ready`: how many a claim would find now (`runnable`), how many of the others wait for room in a limit
-- (`capped`), and how many need a storage or a kind that no live worker has (`unserved`). Limits are used up lane by lane,
-- so that two lanes do not count on the same place. `since` is when the oldest runnable task became ready; that of a task
-- that has run before is not known, and then it is its last start. Of what is capped, `held_by` is the bucket with the
-- least room. Of what is unserved, `lacks` names the kind or the storages that no live worker has; `lacks_kind` tells which.
create function waiting_tasks(most int)
returns table (queue text, kind text, host text, runnable int, capped int, unserved int, since timestamptz, held_by int,
               lacks text, lacks_kind boolean)
language plpgsql set plan_cache_mode = force_generic_plan set enable_bitmapscan = off as $$
declare
  room   int[];
  part   record;
  group_ text;
  left_  int;
  found_ int;
  n      int;
begin
  for part in
    select l.id, l.head, q.name queue, k.name kind, h.name host, s.buckets, s.rooms,
           concat_ws(', ', nullif(st.name, ''), o.name) storages,
           exists (
             select from worker w where not w.dead and w.lease_until > now() and k.name = any(w.kinds) offset 0) handled,
           exists (
             select from worker w
              where not w.dead and w.lease_until > now() and k.name = any(w.kinds)
                and st.name = any(w.volume_names || ''::text) and coalesce(o.name, '') = any(w.volume_names || ''::text)
             offset 0) served
      from (select * from lane where ready limit 5000) l
      join bucket q on q.id = any(array[l.queue_id])
      join bucket k on k.id = any(array[l.kind_id])
      join bucket h on h.id = any(array[l.host_id])
      join bucket st on st.id = any(array[l.storage_id])
      left join bucket o on o.id = any(array[nullif(l.source_storage_id, 0)])
     cross join lateral (
       select array_agg(c.id) buckets, array_agg(c.run_limit - c.used) rooms
         from unnest(array[1, l.queue_id, coalesce(k.counts_as, k.id), l.host_id, l.storage_id,
                           nullif(l.source_storage_id, 0)]) u(id)
         join bucket c on c.id = any(array[u.id])) s
     order by q.name, k.name, l.rank, l.id
  loop
    if group_ is distinct from part.queue || ' ' || part.kind then
      group_ := part.queue || ' ' || part.kind;
      left_ := most;
    end if;
    select count(*) into found_
      from (select * from (select 1 from ready r where r.lane_id = part.id and r.pos < 0 limit left_) in_front
            union all
            select * from (select 1 from ready r where r.lane_id = part.id and r.pos >= part.head limit left_) behind
            limit left_) z;
    continue when found_ = 0;
    left_ := left_ - found_;
    queue := part.queue; kind := part.kind; host := part.host; runnable := 0; capped := 0; unserved := 0; since := null;
    held_by := null; lacks := null; lacks_kind := null;
    if not part.served then
      unserved := found_;
      lacks_kind := not part.handled;
      lacks := case when part.handled then part.storages else part.kind end;
      return next;
      continue;
    end if;

    n := found_;
    for i in 1..cardinality(part.buckets) loop
      room[part.buckets[i]] := coalesce(room[part.buckets[i]], part.rooms[i]);
      if room[part.buckets[i]] < n then
        n := room[part.buckets[i]];
        held_by := part.buckets[i];
      end if;
    end loop;
    n := greatest(n, 0);
    for i in 1..cardinality(part.buckets) loop
      room[part.buckets[i]] := room[part.buckets[i]] - n;
    end loop;
    runnable := n;
    capped := found_ - n;
    if n > 0 then
      select min(greatest(t.created_at, t.not_before, t.started_at)) into since
        from (select * from (select r.task_id from ready r where r.lane_id = part.id and r.pos < 0
                              order by r.pos limit 1) in_front
              union all
              select * from (select r.task_id from ready r where r.lane_id = part.id and r.pos >= part.head
                              order by r.pos limit 1) behind) z
        join task t on t.id = any(array[z.task_id]);
    end if;
    return next;
  end loop;
end $$;

-- How many events wait to be published, of up to `most` rows, and since when the oldest does. An array is 16 bytes for
-- each task beside its head, and its size is known without reading it.
create function waiting_events(most int) returns table (events bigint, since timestamptz) language sql as $$
  select coalesce(sum((pg_column_size(o.task_ids) - 20) / 16), 0), min(o.at)
    from (select task_ids, at from outbox order by id limit most) o
$$;
