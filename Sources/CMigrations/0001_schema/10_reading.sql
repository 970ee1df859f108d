-- A task as it is shown: what rests in `task`, overridden by the run that owns it.
create view task_document as
  select t.id, coalesce(r.phase, t.state::text) state, t.priority, t.spec,
         coalesce(r.attempt, t.attempt) attempt, coalesce(r.epoch, t.epoch) epoch,
         greatest(r.sequence, t.sequence) sequence,
         coalesce(c.generation, t.generation, 0) generation,
         coalesce(w.boot, t.worker) worker,
         coalesce(r.bytes_done, t.bytes_done, 0) bytes_done, coalesce(r.bytes_total, t.bytes_total) bytes_total, r.rate,
         t.created_at, coalesce(r.started_at, t.started_at) started_at, t.finished_at,
         d.run_at, t.sha256,
         t.error_code, t.error_message, t.error_class, t.error_retry_after
    from task t
    left join run r on r.task_id = t.id
    left join worker w on w.id = r.worker_id
    left join delayed d on d.task_id = t.id
    left join checkpoint c on c.task_id = t.id;

-- The tasks with these ids that exist.
create function task_documents(ids uuid[]) returns setof task_document
language plpgsql set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off as $$
begin
  return query select d.* from unnest(ids) u(id) join task_document d on d.id = u.id;
end $$;

-- The newest tasks, of one state and one queue where these are given.
create function list_tasks(of_state text, of_queue text, most int) returns setof task_document
language plpgsql set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off as $$
begin
  if of_state in ('running', 'publishing') then  -- few among many
    return query
      select d.* from run r join task_document d on d.id = r.task_id
       where d.state = of_state and (of_queue is null or r.queue_id = (
               select id from bucket where scope = 'queue' and name = of_queue))
       order by d.created_at desc, d.id desc limit most;
    return;
  end if;
  return query
    select d.* from task_document d
     where (of_state is null or d.state = of_state)
       and (of_queue is null or exists (
              select from task t join lane l on l.id = t.lane_id join bucket b on b.id = l.queue_id
               where t.id = d.id and b.name = of_queue))
     order by d.created_at desc, d.id desc limit most;
end $$;

-- Every violation of "each task is in exactly one place, counters equal rows", in words. One statement: one snapshot.
create function audit() returns setof text language sql as $$
  with places as (
    select task_id, 'ready' place from ready
    union all select task_id, 'delayed' from delayed
    union all select task_id, 'run' from run),
  placed as (select task_id, array_agg(place order by place) places from places group by task_id),
  counts as (
    select scope.bucket_id, count(*) n from run r
     cross join lateral (values (1), (r.kind_id), (r.queue_id), (r.host_id), (r.storage_id)) scope (bucket_id)
     group by scope.bucket_id)
  select format('task %s is %s and in {%s}', coalesce(t.id, p.task_id), coalesce(t.state::text, 'missing'),
                array_to_string(p.places, ', '))
    from task t full join placed p on p.task_id = t.id
   where t.id is null or (t.state = 'queued') <> (cardinality(p.places) is not distinct from 1)
  union all
  select format('task %s is in lane %s at %s and thinks it is in lane %s at %s', t.id, r.lane_id, r.pos, t.lane_id, t.pos)
    from ready r join task t on t.id = r.task_id
   where (r.lane_id, r.pos) is distinct from (t.lane_id, t.pos)
  union all
  select format('task %s waits with epoch %s, attempt %s and event %s instead of %s, %s and %s',
                t.id, r.epoch, r.attempt, r.sequence, t.epoch, t.attempt, t.sequence)
    from ready r join task t on t.id = r.task_id
   where (r.epoch, r.attempt, r.sequence) is distinct from (t.epoch, t.attempt, t.sequence)
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
  select format('lane %s looks from %s on and has a task at %s', l.id, l.head, r.pos)
    from ready r join lane l on l.id = r.lane_id where r.pos >= 0 and r.pos < l.head
  union all
  select format('lane %s has a task at %s, ahead of all transactions: was the database restored from elsewhere?',
                r.lane_id, r.pos)
    from ready r where r.pos >> 20 > pg_snapshot_xmax(pg_current_snapshot())::text::bigint
  union all
  select format('task %s is blocked by nothing', t.id)
    from task t where t.state = 'blocked' and not exists (select from task_dependency d where d.task_id = t.id)
  union all
  select format('task %s is %s and waits for others', t.id, coalesce(t.state::text, 'missing'))
    from task_dependency d left join task t on t.id = d.task_id
   where t.id is null or t.state not in ('blocked', 'paused', 'canceled')
  union all
  select format('intent to %s task %s, which worker %s does not run', i.what, i.task_id, i.worker_id)
    from intent i where not exists (select from run r where r.task_id = i.task_id and r.worker_id = i.worker_id)
$$;
