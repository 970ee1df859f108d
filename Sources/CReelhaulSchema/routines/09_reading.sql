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
language plpgsql set reelhaul.plans = 'by_index' as $$
begin
  return query
    select d.* from unnest(ids) with ordinality u(id, ordinal) join task_document d on d.id = any(array[u.id])
     order by u.ordinal;
end $$;

-- The newest tasks, of one state and one queue if these are given. Two more states exist only here: queued tasks that
-- are `scheduled` for a time, and queued tasks that are `retrying` at a time after a failure. No bitmap scans: they read
-- all waiting rows before the first is returned.
create function list_tasks(of_state text, of_queue text, most int) returns setof task_document
language plpgsql set reelhaul.plans = 'by_index' set enable_bitmapscan = off as $$
declare
  few     constant int := 2000;  -- if more wait, a scan of all tasks finds enough of them soon
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
      from (select r.task_id
              from lane l
             cross join lateral (  -- not below the head: there may be many dead rows
               select task_id from ready where lane_id = l.id and pos < 0
               union all
               select task_id from ready where lane_id = l.id and pos >= l.head) r
             where l.ready and (lanes is null or l.id = any(lanes)) and not delays
            union all
            select task_id from delayed where not delays or run_at > clock_timestamp()
            limit few + 1) w;
  end if;

  if cardinality(waiting) <= few then
    select array_agg(id) into ids
      from (select t.id
              from unnest(waiting) w(id)
             cross join lateral (select * from task where id = w.id offset 0) t
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
      from (select t.id
              from run r
             cross join lateral (select * from task where id = r.task_id offset 0) t  -- not all tasks from the newest on
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
               -- Not by the lane, because the lane of a succeeded task may be deleted.
               and (of_queue is null or coalesce(t.spec ->> 'queue', 'default') = of_queue)
               and (of_state is distinct from 'queued' or not exists (select from run r where r.task_id = t.id))
             order by created_at desc, id desc limit most) newest;
  end if;
  return query select d.* from task_documents(ids) d order by d.created_at desc, d.id desc;
end $$;

-- What the tasks need that could run now: each kind with its storages, which are empty where it needs none.
create function waiting_needs() returns table (kind text, storage text, source_storage text)
language plpgsql set reelhaul.plans = 'by_index' set enable_bitmapscan = off as $$
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

-- Describes every violation of "each task is in exactly one place, and counters equal rows". It is one statement, so
-- that it uses one snapshot.
create function audit() returns setof text language sql set work_mem = '64MB' as $$
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
     cross join lateral (values (1), (r.kind_id), (r.queue_id), (r.host_id), (r.storage_id), (r.source_storage_id))
                        scope (bucket_id)
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
  select format('%s %s counts %s runs but has %s', b.scope, b.name, b.used, coalesce(c.n, 0))
    from bucket b left join counts c on c.bucket_id = b.id where b.used <> coalesce(c.n, 0)
  union all
  select format('lane %s is off but has waiting tasks', l.id)
    from lane l where not l.ready and exists (select from ready r where r.lane_id = l.id)
  union all
  select format('task %s is %s in lane %s, which does not exist', t.id, t.state, t.lane_id)
    from task t where t.state <> 'succeeded' and not exists (select from lane l where l.id = t.lane_id)
  union all
  select format('lane %s uses bucket %s, which is not a %s', l.id, k.id, k.scope)
    from lane l
   cross join lateral (values ('queue', l.queue_id), ('kind', l.kind_id), ('host', l.host_id),
                              ('storage', l.storage_id), ('storage', l.source_storage_id)) k (scope, id)
   where k.id <> 0 and not exists (select from bucket b where b.id = k.id and b.scope = k.scope)
  union all
  select format('lane %s has its head at %s but a task at %s', l.id, l.head, r.pos)
    from ready r join lane l on l.id = r.lane_id where r.pos >= 0 and r.pos < l.head
  union all
  select format('lane %s has a task at %s, ahead of all transactions: was the database restored from elsewhere?',
                r.lane_id, r.pos)
    from ready r where r.pos >> 20 > (select pg_snapshot_xmax(pg_current_snapshot())::text::bigint)
  union all
  select format('task %s is blocked but waits for no task', t.id)
    from task t where t.halted = 'blocked' and not exists (select from task_dependency d where d.task_id = t.id)
  union all
  select format('task %s is %s but waits for other tasks', t.id, coalesce(t.state::text, 'missing'))
    from task_dependency d left join task t on t.id = d.task_id
   where t.id is null or t.state not in ('blocked', 'paused', 'canceled')
  union all
  select format('intent to %s task %s, which worker %s does not run', i.what, i.task_id, i.worker_id)
    from intent i where not exists (select from run r where r.task_id = i.task_id and r.worker_id = i.worker_id)
  union all
  select format('task %s is %s but has a checkpoint', c.task_id, coalesce(t.state::text, 'missing'))
    from checkpoint c left join task t on t.id = c.task_id
   where coalesce(t.state in ('succeeded', 'canceled'), true)
  union all
  select format('clean-up %s deletes the files of task %s, which still exists', c.id, c.task_id)
    from cleanup c where c.files and exists (select from task t where t.id = c.task_id)
  union all
  select format('clean-up %s of task %s has the specification of %s', c.id, c.task_id, c.spec ->> 'id')
    from cleanup c where c.spec ->> 'id' is distinct from c.task_id::text
  union all
  select format('%s %s has the limit %s in force instead of %s', scope, name, run_limit,
                coalesce(operator_limit, declared_limit, unlimited()))
    from bucket where run_limit <> coalesce(operator_limit, declared_limit, unlimited())
$$;

-- For metrics, a few times a minute. What they read has a bound, however many tasks there are: the first 5,000 lanes,
-- and up to `most` rows of each queue and kind, or of each state.

-- The tasks in `ready`: how many a claim would find now (`runnable`), how many of the others wait for room in a limit
-- (`capped`), and how many need a storage or a kind that no live worker has (`unserved`). Limits are used up lane by lane,
-- so that two lanes do not count on the same place. `since` is when the oldest runnable task became ready; that of a task
-- that has run before is not known, and then it is its last start.
create function waiting_tasks(most int)
returns table (queue text, kind text, runnable int, capped int, unserved int, since timestamptz)
language plpgsql set reelhaul.plans = 'by_index' set enable_bitmapscan = off as $$
declare
  room   int[];
  part   record;
  group_ text;
  left_  int;
  found_ int;
  n      int;
begin
  for part in
    select l.id, l.head, q.name queue, k.name kind, s.buckets, s.rooms,
           exists (
             select from worker w
              where not w.dead and w.lease_until > now() and k.name = any(w.kinds)
                and st.name = any(w.volume_names || ''::text) and coalesce(o.name, '') = any(w.volume_names || ''::text)
             offset 0) served
      from (select * from lane where ready limit 5000) l
      join bucket q on q.id = any(array[l.queue_id])
      join bucket k on k.id = any(array[l.kind_id])
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
    queue := part.queue; kind := part.kind; runnable := 0; capped := 0; unserved := 0; since := null;
    if not part.served then
      unserved := found_;
      return next;
      continue;
    end if;

    n := found_;
    for i in 1..cardinality(part.buckets) loop
      room[part.buckets[i]] := coalesce(room[part.buckets[i]], part.rooms[i]);
      n := least(n, room[part.buckets[i]]);
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

-- The tasks that are neither in `ready` nor succeeded. `delayed` are queued ones whose time has not come.
create function other_tasks(most int) returns table (state text, queue text, kind text, tasks bigint)
language plpgsql set reelhaul.plans = 'by_index' set enable_bitmapscan = off as $$
begin
  return query
    select n.state, q.name, k.name, sum(n.tasks)::bigint
      from (select r.phase state, r.queue_id, r.kind_id, count(*) tasks
              from (select * from run limit most) r group by 1, 2, 3
            union all
            select w.state, l.queue_id, l.kind_id, w.tasks
              from (select h.state, h.lane_id, count(*) tasks
                      from (select t.halted::text state, t.lane_id
                              from unnest(array['blocked', 'paused', 'canceled', 'failed']::task_state[]) s(state)
                             cross join lateral (
                               select halted, lane_id from task where halted = s.state
                                order by created_at desc, id desc limit most) t
                            union all
                            select 'delayed', t.lane_id
                              from (select task_id from delayed limit most) d
                              join task t on t.id = any(array[d.task_id])) h
                     group by 1, 2) w
              join lane l on l.id = any(array[w.lane_id])) n
      join bucket q on q.id = any(array[n.queue_id])
      join bucket k on k.id = any(array[n.kind_id])
     group by 1, 2, 3;
end $$;

-- How many events wait to be published, of up to `most` rows, and since when the oldest does. An array is 16 bytes for
-- each task beside its head, and its size is known without reading it.
create function waiting_events(most int) returns table (events bigint, since timestamptz) language sql as $$
  select coalesce(sum((pg_column_size(o.task_ids) - 20) / 16), 0), min(o.at)
    from (select task_ids, at from outbox order by id limit most) o
$$;
