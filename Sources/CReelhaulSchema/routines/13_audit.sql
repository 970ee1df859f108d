-- Describes every violation of "each task is in exactly one place, and counters equal rows". It is one statement, so
-- that it uses one snapshot. It reads everything, once: a nested loop would read it for each row.
create function audit() returns setof text language sql set work_mem = '64MB' set enable_nestloop = off as $$
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
     group by scope.bucket_id),
  there as (
    select t.state, coalesce(q.name, t.spec ->> 'queue', 'default') queue, coalesce(k.name, t.spec ->> 'kind', '') kind,
           count(*) tasks
      from task t
      left join lane l on l.id = t.lane_id
      left join bucket q on q.id = l.queue_id
      left join bucket k on k.id = l.kind_id
     group by 1, 2, 3)
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
  select format('%s tasks of queue %s and kind %s are counted as %s instead of %s', state, queue, kind,
                coalesce(c.tasks, 0), coalesce(n.tasks, 0))
    from there n full join resting_count c using (state, queue, kind)
   where coalesce(c.tasks, 0) <> coalesce(n.tasks, 0)
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
  select format('task %s waits for task %s, which has succeeded', d.task_id, d.after_id)
    from task_dependency d join task a on a.id = d.after_id
   where a.state = 'succeeded' and not exists (select from unblocking u where u.after_id = d.after_id)
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
                limit_in_force(b))
    from bucket b where run_limit <> limit_in_force(b)
$$;
