-- Ends the runs in these rows of `run`. The caller has locked the rows in the order of their tasks. All arrays have one
-- element per run; if all runs are lost, those after `outcomes` may be null. `outcomes` are succeeded, failed (`delays`
-- null: for good), progressed (failed, but attempts are counted from 0 again), released, and lost with its worker. If a
-- task has not succeeded, its intent decides what becomes of it. Released and lost runs do not count as attempts. The
-- buckets are locked last, because no other transaction can claim or settle while they are locked.
--
-- A task may be what kills its workers. So the fifth run in a row that is lost before its first checkpoint fails the
-- task; of a kind that is built in the twentieth, because its first checkpoint may come late, and it runs nobody's code
-- but ours (`RetryPolicy.mostLosses`). Before the last three runs each task waits for a time of its own, up to 32 s, so
-- that tasks which only ran beside the one at fault do not run beside it again.
create function end_runs(
  tuples tid[], tasks uuid[], outcomes text[], delays interval[], digests bytea[], sizes bigint[], outputs json[],
  codes text[], messages text[], classes text[], retry_afters int[]
) returns void
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  to_front  uuid[];
  to_end    uuid[];
  succeeded uuid[];
  canceled  uuid[];
  crowded   uuid[];
  intents   tid[];
begin
  perform lock_tasks(tasks);  -- from now on no control command can add an intent

  with ended as materialized (
    select r.*, u.*, i.*, l.losses, l.most, l.losses >= l.most and i.what is null given_up,
           case when l.losses > l.most - 4
                then make_interval(secs => get_byte(uuid_send(r.task_id), 11 - least(l.losses - l.most, 0)) / 8.0)
                else u.asked end delay
      from unnest(tuples, outcomes, delays, digests, sizes, outputs, codes, messages, classes, retry_afters)
           u(tuple, outcome, asked, digest, size, output, code, message, class, retry_after)
      join run r on r.ctid = u.tuple
      left join lateral (select what, actor, ctid intent from intent where worker_id = r.worker_id and task_id = r.task_id offset 0) i
        on true
     cross join lateral (
       select case when u.outcome = 'lost'
                    and not exists (select from checkpoint c where c.task_id = r.task_id and c.epoch = r.epoch)
                then 1 + (select t.losses from task t where t.id = any(array[r.task_id])) else 0 end losses,
              case when u.outcome = 'lost'
                    and r.kind_id = any(array(
                          select id from bucket
                           where scope = 'kind' and name in ('download', 'upload', 'copy', 'delete')))
                then 20 else 5 end most) l),
  decided as (
    select e.*,
           case when e.outcome = 'succeeded' then 'succeeded'
                when e.what = 'cancel' then 'canceled'
                when e.what = 'pause' then 'paused'
                when e.given_up or (e.outcome = 'failed' and e.delay is null) then 'failed'
                when e.outcome in ('failed', 'progressed') then 'retrying'
                else 'released' end verdict,
           case when e.outcome in ('released', 'lost') and not e.given_up then e.attempt - 1
                when e.outcome = 'progressed' then 0 else e.attempt end counted,
           coalesce(e.delay, interval '0') > interval '0' waits,
           e.outcome = 'lost' and not e.given_up and e.what is null and e.delay > interval '0' waits_after_loss
      from ended e),
  changed as (
    update task t
       set state = case d.verdict when 'retrying' then 'queued' when 'released' then 'queued' else d.verdict end::task_state,
           attempt = d.counted,
           epoch = d.epoch,
           settled_epoch = case d.outcome when 'lost' then t.settled_epoch else d.epoch end,
           losses = case when d.verdict in ('released', 'paused') then d.losses else 0 end,
           sequence = greatest(t.sequence, d.sequence) + 1,
           started_at = d.started_at,
           finished_at = case when d.verdict in ('succeeded', 'failed', 'canceled') then now() end,
           -- The recorded bytes: the run may have lost unrecorded ones, or recorded more than its last sample of
           -- progress.
           bytes_done = case d.verdict when 'succeeded' then d.size
                          else coalesce((select c.bytes_done from checkpoint c where c.task_id = t.id), 0) end,
           bytes_total = case d.verdict when 'succeeded' then d.size else coalesce(d.bytes_total, t.bytes_total) end,
           generation = coalesce((select generation from checkpoint c where c.task_id = t.id), t.generation),
           worker = (select boot from worker w where w.id = d.worker_id),
           sha256 = case d.verdict when 'succeeded' then d.digest end,
           output = case d.verdict when 'succeeded' then d.output end,
           error_code = case when d.given_up then 'lost_repeatedly'
                          when d.waits_after_loss then 'worker_lost'
                          when d.verdict not in ('succeeded', 'canceled') then d.code end,
           error_message = case when d.given_up then d.most || ' workers in a row ended, or lost contact, before the run recorded a checkpoint'
                             when d.waits_after_loss then 'its worker ended, or lost contact, before the run recorded a checkpoint'
                             when d.verdict not in ('succeeded', 'canceled') then d.message end,
           error_class = case when d.given_up then 'fail'
                           when d.waits_after_loss then 'wait'
                           when d.verdict not in ('succeeded', 'canceled') then d.class end,
           error_retry_after = case when d.verdict not in ('succeeded', 'canceled') then d.retry_after end
      from decided d
     where t.id = any(array[d.task_id])
    returning t.id, t.sequence, t.bytes_done, t.sha256, t.output, t.generation, t.epoch, t.started_at, t.worker,
              t.error_code, t.error_message, d.attempt ran_attempt, d.outcome, d.verdict, d.waits, d.delay, d.intent,
              case when d.verdict in ('canceled', 'paused') then d.actor end actor),
  noted as (
    insert into task_history (task_id, sequence, type, attempt, epoch, started_at, worker, actor, error_code,
                              error_message)
    select id, sequence, case when verdict = 'released' and outcome = 'lost' then 'lost' else verdict end, ran_attempt,
           epoch, started_at, worker, actor, error_code, error_message
      from changed where verdict <> 'succeeded'),
  told as (
    insert into outbox (kind, task_ids, sequences, actor, sizes, digests, outputs, generations)
    select verdict, array_agg(id), array_agg(sequence), actor, array_agg(bytes_done) filter (where is_whole),
           array_agg(sha256) filter (where is_whole), array_agg(output) filter (where is_whole),
           array_agg(generation) filter (where is_whole)
      from (select *, verdict = 'succeeded'
                        and coalesce(sum(pg_column_size(output)) over (), 0) <= bytes_in_events() is_whole
              from changed) c
     group by verdict, actor),
  later as (
    insert into delayed (task_id, run_at)
    select id, now() + delay from changed where verdict in ('retrying', 'released') and waits)
  select array_agg(id) filter (where verdict = 'released' and not waits),
         array_agg(id) filter (where verdict = 'retrying' and not waits),
         array_agg(id) filter (where verdict = 'succeeded'),
         array_agg(id) filter (where verdict = 'canceled'),
         array_agg(id) filter (where verdict <> 'succeeded' and sequence > history_limit()),
         array_agg(intent) filter (where intent is not null)
    into to_front, to_end, succeeded, canceled, crowded, intents from changed;

  if intents is not null then
    delete from intent where ctid = any(intents);
  end if;
  if succeeded is not null then
    delete from checkpoint where task_id = any(succeeded);
    perform unblock(succeeded);
  end if;
  if canceled is not null then
    perform leave_to_clean_up(canceled, false);
  end if;
  perform thin_history(crowded);
  perform enqueue(to_front, true);
  perform enqueue(to_end, false);
  perform wake_lanes();
  delete from run where ctid = any(tuples);
end $$;

-- Ends runs with success, as `end_runs` does, without what only other outcomes need. All runs are of one worker.
-- Their tasks are updated in the order of `tuples`: none of them waits for another, so that is the order of
-- `lock_tasks`.
create function succeed(
  its_worker int, tuples tid[], tasks uuid[], digests bytea[], sizes bigint[], outputs json[]
) returns void
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  boot     uuid := (select w.boot from worker w where w.id = its_worker);
  recorded bool := exists (
    select from unnest(tasks) u(id) where exists (select from checkpoint c where c.task_id = u.id offset 0));
begin
  with changed as (
    update task t
       set state = 'succeeded', attempt = r.attempt, epoch = r.epoch, settled_epoch = r.epoch,
           sequence = greatest(t.sequence, r.sequence) + 1, started_at = r.started_at, finished_at = now(),
           bytes_done = u.size, bytes_total = u.size,
           generation = coalesce(case when recorded then (select generation from checkpoint c where c.task_id = t.id) end,
                                 t.generation),
           worker = boot, sha256 = u.digest, output = u.output,
           error_code = null, error_message = null, error_class = null, error_retry_after = null
      from unnest(tuples, digests, sizes, outputs) u(tuple, digest, size, output)
      join run r on r.ctid = u.tuple
     where t.id = any(array[r.task_id])
    returning t.id, t.sequence, t.bytes_done, t.sha256, t.output, t.generation)
  insert into outbox (kind, task_ids, sequences, sizes, digests, outputs, generations)
  select 'succeeded', array_agg(id), array_agg(sequence), array_agg(bytes_done), array_agg(sha256),
         array_agg(output), array_agg(generation)
    from changed;

  -- A command that has asked to stop one of these tasks has written its intent under the lock of the task, so before.
  if exists (select from intent where worker_id = its_worker) then
    delete from intent where ctid = any(array(
      select i.tuple from unnest(tasks) u(id)
       cross join lateral (select ctid tuple from intent where worker_id = its_worker and task_id = u.id offset 0) i));
  end if;
  if recorded then
    delete from checkpoint where task_id = any(tasks);
  end if;
  perform unblock(tasks);
  perform wake_lanes();
  delete from run where ctid = any(tuples);
end $$;

-- Releases the tasks that now wait for no other task: 5,000 at once, so that a settlement never takes long. Sweeps release
-- the rest. Index-only scans are off, because the planner would consider a scan of the whole primary key as good as a
-- lookup.
create function unblock(succeeded uuid[]) returns void
language plpgsql set plan_cache_mode = force_generic_plan set enable_indexonlyscan = off as $$
declare
  dependents uuid[];
begin
  select array_agg(d.task_id) into dependents
    from (select d.task_id from unnest(succeeded) u(id) join task_dependency d on d.after_id = any(array[u.id])
           limit 5000) d;
  if dependents is null then
    return;
  end if;
  -- If two dependencies end at the same time, the transaction that locks the row last sees that both have ended.
  perform lock_tasks(dependents);
  perform release_dependents(dependents, succeeded);
  if cardinality(dependents) = 5000 then
    insert into unblocking (after_id)
    select u.id from unnest(succeeded) u(id)
     where exists (select from task_dependency d where d.after_id = u.id offset 0)
        on conflict do nothing;
  end if;
end $$;

-- These tasks, which are locked, wait for those that succeeded no more.
create function release_dependents(dependents uuid[], succeeded uuid[]) returns void
language plpgsql set plan_cache_mode = force_generic_plan set enable_indexonlyscan = off as $$
declare
  able uuid[];
begin
  delete from task_dependency d
   using unnest(dependents) u(id)
   -- A plan without statistics would read all dependents of what succeeded for each of these.
   where d.task_id = any(array[u.id]) and array_position(succeeded, d.after_id) is not null;
  select array_agg(id) into able from task t
   where id = any(dependents) and state = 'blocked'
     and not exists (select from task_dependency d where d.task_id = t.id offset 0);
  if able is not null then
    perform release_tasks(able, 'unblocked');
  end if;
end $$;

-- Goes on with what `unblock` has left, and returns how many tasks it looked at. Waits for no lock.
create function unblock_more() returns int
language plpgsql set plan_cache_mode = force_generic_plan set enable_indexonlyscan = off as $$
declare
  ended      uuid[] := array(select after_id from unblocking limit 100 for update skip locked);
  dependents uuid[];
begin
  if cardinality(ended) = 0 then
    return 0;
  end if;
  select array_agg(id) into dependents
    from (select t.id
            from (select d.task_id from unnest(ended) u(id) join task_dependency d on d.after_id = any(array[u.id])
                   limit 5000) d
            join task t on t.id = any(array[d.task_id])
             for no key update of t skip locked) l;
  if dependents is not null then
    perform release_dependents(dependents, ended);
  end if;
  delete from unblocking e
   where after_id = any(ended) and not exists (select from task_dependency d where d.after_id = e.after_id offset 0);
  return coalesce(cardinality(dependents), 0);
end $$;

-- Ends runs. Returns one answer per settlement: whether it took effect, in this call or in an earlier one.
create function settle(
  ids uuid[], epochs int[], outcomes text[], delay_microseconds bigint[], digests bytea[], sizes bigint[],
  outputs json[], codes text[], messages text[], classes text[], retry_afters int[]
) returns boolean[]
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  f record;
begin
  select array_agg(r.tuple) tuples, array_agg(u.id) tasks, array_agg(u.outcome) outcomes,
         array_agg(make_interval(secs => u.delay / 1e6)) delays, array_agg(u.digest) digests, array_agg(u.size) sizes,
         array_agg(u.output) outputs, array_agg(u.code) codes, array_agg(u.message) messages, array_agg(u.class) classes,
         array_agg(u.retry_after) retry_afters,
         case when min(r.worker_id) = max(r.worker_id) and bool_and(u.outcome = 'succeeded')
                   and coalesce(sum(pg_column_size(u.output)), 0) <= bytes_in_events()
              then min(r.worker_id) end plain_worker
    into f
    from (select distinct on (id, epoch) *  -- of two for one run, the first counts
            from unnest(ids, epochs, outcomes, delay_microseconds, digests, sizes, outputs, codes, messages, classes,
                        retry_afters)
                 with ordinality u(id, epoch, outcome, delay, digest, size, output, code, message, class, retry_after, n)
           order by id, epoch, n) u
   cross join lateral (
     select ctid tuple, worker_id from run where task_id = u.id and epoch = u.epoch for update) r;

  if f.tuples is not null then
    if f.plain_worker is not null then
      perform succeed(f.plain_worker, f.tuples, f.tasks, f.digests, f.sizes, f.outputs);
    else
      perform end_runs(f.tuples, f.tasks, f.outcomes, f.delays, f.digests, f.sizes, f.outputs, f.codes, f.messages,
                       f.classes, f.retry_afters);
    end if;
    if cardinality(f.tuples) = cardinality(ids) then
      return array_fill(true, array[cardinality(ids)]);
    end if;
  end if;
  return (select array_agg(exists (select from task t where t.id = u.id and t.settled_epoch = u.epoch offset 0) order by u.n)
            from unnest(ids, epochs) with ordinality u(id, epoch, n));
end $$;
