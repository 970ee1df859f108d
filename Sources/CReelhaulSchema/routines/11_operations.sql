-- Gives a driver up to `most` unfinished operations that no other one holds, for some seconds; the oldest first. With
-- `only_one`, just that one.
create function take_operations(its_driver uuid, seconds int, most int, only_one uuid) returns setof operation
language sql as $$
  update operation set driver = its_driver, lease_until = now() + make_interval(secs => seconds)
   where id = any(array(
     select id from operation
      where finished_at is null
        and (driver = its_driver or is_over(lease_until, seconds))
        and (only_one is null or id = only_one)
      order by created_at limit most for update skip locked))
  returning *
$$;

-- Notes what an operation has looked at, and the tasks that get a command. Returns false, and notes nothing, if it was
-- canceled or another driver has it.
create function advance_operation(
  advanced uuid, its_driver uuid, tasks uuid[], more_matched int, more_refusals jsonb, at timestamptz, last uuid,
  more_looked_at int, is_at_end boolean
) returns boolean language plpgsql as $$
begin
  update operation
     set matched = matched + more_matched,
         refused = refused + count_refusals(more_refusals), refusals = add_refusals(refusals, more_refusals),
         after_at = coalesce(at, after_at), after_id = coalesce(last, after_id),
         looked_at = looked_at + more_looked_at, is_walked = is_at_end
   where id = advanced and driver = its_driver and state = 'running';
  if not found then
    return false;
  end if;
  if cardinality(tasks) > 0 then
    insert into operation_batch (operation_id, task_ids) values (advanced, tasks);
  end if;
  return true;
end $$;

create function count_refusals(counts jsonb) returns bigint language sql immutable as $$
  select coalesce(sum(value::bigint), 0)::bigint from jsonb_each_text(counts)
$$;

create function add_refusals(one jsonb, other jsonb) returns jsonb language sql immutable as $$
  select coalesce(jsonb_object_agg(key, n), '{}')
    from (select key, sum(value::bigint) n
            from (select * from jsonb_each_text(one) union all select * from jsonb_each_text(other)) terms
           group by key) added
$$;

-- Kafka has the commands of a batch. Only the first call counts them.
create function sent_batch(its_operation uuid, sent_number bigint) returns void language plpgsql as $$
declare
  tasks int;
begin
  update operation_batch set is_sent = true
   where operation_id = its_operation and number = sent_number and not is_sent
  returning cardinality(task_ids) into tasks;
  update operation set sent = sent + tasks, moved_at = now() where id = its_operation and tasks is not null;
end $$;

-- Counts what became of the commands of a batch, and forgets it: once all were applied or refused and no run has one of them
-- still to follow, or with `anyway` what is known. Returns whether the batch is gone. `commands` are the ids of its commands.
create function count_batch(its_operation uuid, counted bigint, commands uuid[], anyway boolean) returns boolean
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  since         date := (select (created_at at time zone 'utc')::date from operation where id = its_operation);
  known         bigint;
  refused_codes jsonb;
begin
  select coalesce(sum(n), 0), coalesce(jsonb_object_agg(code, n) filter (where code is not null), '{}')
    into known, refused_codes
    from (select i.code, count(*) n
            from unnest(commands) u(id)
           cross join lateral (select code from command_inbox where id = u.id and day >= since limit 1) i
           group by i.code) outcomes;
  if known < cardinality(commands) and not anyway then
    return false;
  end if;
  if not anyway and exists (
       select from operation o
         join operation_batch b on b.operation_id = o.id and b.number = counted
        cross join unnest(b.task_ids) u(id)
        cross join lateral (select worker_id from run where task_id = u.id offset 0) r
        cross join lateral (select from intent where worker_id = r.worker_id and task_id = u.id offset 0) i
        where o.id = its_operation and o.action in ('pause', 'cancel'))
  then
    update operation_batch set is_applied = true
     where operation_id = its_operation and number = counted and not is_applied;
    update operation set moved_at = now() where id = its_operation and found;
    return false;
  end if;
  delete from operation_batch where operation_id = its_operation and number = counted;
  if found then
    update operation
       set applied = applied + known - count_refusals(refused_codes),
           refused = refused + count_refusals(refused_codes), refusals = add_refusals(refusals, refused_codes),
           moved_at = now()
     where id = its_operation;
  end if;
  return true;
end $$;

-- Ends an operation. With an error it has failed, unless it was canceled.
create function finish_operation(finished uuid, its_driver uuid, reason text) returns void language sql as $$
  update operation
     set state = case when state <> 'running' then state when reason is null then 'done' else 'failed' end,
         finished_at = now(), error = reason
   where id = finished and driver = its_driver and finished_at is null;
$$;
