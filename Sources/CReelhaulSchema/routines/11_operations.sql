-- Gives a driver up to `most` unfinished operations that no other one holds, for some seconds; the oldest first. With
-- `only_one`, just that one.
create function take_operations(its_driver uuid, seconds int, most int, only_one uuid) returns setof operation
language sql as $$
  update operation set driver = its_driver, lease_until = now() + make_interval(secs => seconds)
   where id = any(array(
     select id from operation where finished_at is null and (driver = its_driver or lease_until < now())
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

-- Counts what became of the commands of a batch, and forgets it: once all were applied or refused, or with `anyway` what
-- is known. Returns whether the batch is gone. `commands` are the ids of its commands.
create function count_batch(its_operation uuid, counted bigint, commands uuid[], anyway boolean) returns boolean
language plpgsql set reelhaul.plans = 'by_index' as $$
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

-- The tasks before a position that match, from the newest on, until `most` are found or `examined` were looked at. The last
-- row may be one that does not match: where the look ended. Null arrays and texts match everything; a label matches by
-- its name, and by its value if that is not null.
create function walk_tasks(
  before_at timestamptz, before_id uuid, examined int, most int,
  states text[], queues text[], kinds text[], hosts text[], label_names text[], label_values text[], part text,
  created_after timestamptz, created_before timestamptz
) returns table (id uuid, created_at timestamptz, state text, matches boolean)
language plpgsql set reelhaul.plans = 'by_index' set enable_bitmapscan = off as $$
#variable_conflict use_column
begin
  return query
  with looked_at as materialized (
    select t.* from task t
     where t.created_at <= least(before_at, created_before) and (t.created_at, t.id) < (before_at, before_id)
       and (created_after is null or t.created_at >= created_after)
     order by t.created_at desc, t.id desc limit examined),
  judged as (
    select t.id, t.created_at, coalesce(r.phase, t.state::text) state,
           (states is null or coalesce(r.phase, t.state::text) = any(states)
            or r.task_id is null and t.state = 'queued' and states && array['scheduled', 'retrying']
               and exists (select from delayed d where d.task_id = t.id and d.run_at > now())
               and case when t.error_code is null then 'scheduled' else 'retrying' end = any(states))
           and (queues is null or coalesce(t.spec ->> 'queue', 'default') = any(queues))
           and (kinds is null or coalesce(t.spec ->> 'kind', 'download') = any(kinds))
           and (hosts is null or exists (
                 select from lane l join bucket h on h.id = l.host_id where l.id = t.lane_id and h.name = any(hosts)))
           and (label_names is null or not exists (
                 select from unnest(label_names, label_values) w(name, value)
                  where t.spec -> 'labels' ->> w.name is null
                     or w.value is not null and t.spec -> 'labels' ->> w.name <> w.value))
           and (part is null
                or strpos(lower(concat_ws(' ', t.id, t.spec ->> 'source', t.spec ->> 'destination')), lower(part)) > 0)
             matches
      from looked_at t left join run r on r.task_id = t.id),
  numbered as (
    select j.*, count(*) filter (where j.matches) over (order by j.created_at desc, j.id desc) found,
           row_number() over (order by j.created_at, j.id) = 1 is_last
      from judged j)
  select n.id, n.created_at, n.state, n.matches from numbered n
   where n.matches and n.found <= most
      or n.is_last and n.found <= most
   order by n.created_at desc, n.id desc;
end $$;
