-- Returns the lane that differs from this one only in its rank; creates it if it is missing. No transaction can delete
-- it before this one ends.
create function sibling_lane(lane int, other_rank smallint) returns int language plpgsql as $$
declare
  sibling int;
begin
  for attempt in 1..2 loop
    select o.id into sibling
      from lane l
      join lane o on (o.rank, o.queue_id, o.kind_id, o.host_id, o.storage_id, o.source_storage_id)
                   = (other_rank, l.queue_id, l.kind_id, l.host_id, l.storage_id, l.source_storage_id)
     where l.id = lane
       for key share of o;
    exit when sibling is not null;
    perform begin_creation();
    insert into lane (rank, queue_id, kind_id, host_id, storage_id, source_storage_id)
    select other_rank, queue_id, kind_id, host_id, storage_id, source_storage_id from lane l where id = lane
        on conflict do nothing;
  end loop;
  return sibling;
end $$;

-- Takes a queued task out of `ready` or `delayed`. Returns false if a claim was faster, so that the task runs.
create function withdraw(t task) returns boolean language plpgsql as $$
begin
  delete from ready where lane_id = t.lane_id and pos = t.pos and task_id = t.id;
  if found then
    return true;
  end if;
  delete from delayed where task_id = t.id;
  return found;
end $$;

-- Makes resting tasks wait again: for their dependencies, for their time, or for a worker. The caller has locked their
-- rows. `event` is the kind of the event to publish.
create function release_tasks(tasks uuid[], event text, its_actor text default null) returns void
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  numbers int[];
  changed uuid[];
  able    uuid[];
begin
  with moved as (
    update task t
       set state = case when exists (select from task_dependency d where d.task_id = t.id offset 0)
                        then 'blocked' else 'queued' end::task_state,
           sequence = sequence + 1, finished_at = null
     where id = any(tasks)
    returning id, state, sequence, not_before),
  later as (
    insert into delayed (task_id, run_at)
    select id, not_before from moved where state = 'queued' and not_before > now())
  select array_agg(id), array_agg(sequence),
         array_agg(id) filter (where state = 'queued' and (not_before is null or not_before <= now()))
    into changed, numbers, able from moved;
  perform publish_unusual(event, changed, numbers, its_actor);
  perform enqueue(able, false);
end $$;

-- The name of the storage in a URL; empty if it is no storage URL, or one with a name that no storage can have.
create function storage_name(url text) returns text language sql immutable as $$
  select coalesce(substring(url from '(?i)^storage://([A-Za-z0-9_-][A-Za-z0-9._-]{0,62})/'), '')
$$;

-- Moves the checkpoints of these tasks into rows of `cleanup`, so that a handler can remove what they name. With
-- `also_files`, every task gets a row, also without a checkpoint, and the handler deletes the files that the task made.
-- What was sent to a server is ended there without the storage of the source, which may be gone.
create function leave_to_clean_up(tasks uuid[], also_files boolean) returns void
language plpgsql set plan_cache_mode = force_generic_plan as $$
begin
  with gone as (delete from checkpoint where task_id = any(tasks))
  insert into cleanup (task_id, kind, storage, source_storage, spec, version, generation, bytes_done, bytes_total, stage,
                       payload, files)
  select t.id, t.spec ->> 'kind', case when p.destination = '' and t.spec ->> 'kind' in ('upload', 'copy') then ''
              else coalesce(nullif(p.destination, ''), p.source) end,
         case when p.destination <> '' and p.source <> p.destination then p.source else '' end,
         t.spec, g.version, g.generation, g.bytes_done, g.bytes_total, g.stage, g.payload, also_files
    from unnest(tasks) u(id)
   cross join lateral (select id, spec from task where id = u.id offset 0) t
    left join lateral (select * from checkpoint where task_id = u.id offset 0) g on true
   cross join lateral (
     select storage_name(t.spec ->> 'destination') destination, storage_name(t.spec ->> 'source') source) p
   where also_files or g.task_id is not null;
end $$;

create function inbox_partition(day date) returns text language sql stable as $$
  select 'command_inbox_' || to_char(day, 'YYYYMMDD')
$$;

-- Returns false if somebody reads the inbox.
create function drop_inbox_partition(name text) returns boolean language plpgsql set lock_timeout = '100ms' as $$
begin
  execute format('drop table %I', name);
  return true;
exception when lock_not_available then
  return false;
end $$;

-- Drops old partitions of the inbox: the ids of commands are kept for 16 days. A command may be read again from Kafka's log
-- as long as that keeps it: for seven days, and until its segment ends, which by default is another seven. A reader of the
-- inbox, such as a dump, delays nothing: the partition is dropped another time.
--
-- Must be a transaction of its own: it locks the whole inbox, which others lock after tasks.
create function drop_old_inbox() returns void language plpgsql as $$
declare
  name text;
begin
  for name in
    select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'command_inbox'::regclass
       and c.relname < inbox_partition((now() at time zone 'utc')::date - 16)
  loop
    exit when not drop_inbox_partition(name);
  end loop;
end $$;

-- Whether the inbox has the partition of a day. Another schema may have tables of these names.
create function has_inbox_partition(day date) returns boolean language plpgsql stable as $$
begin
  return exists (
    select from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'command_inbox'::regclass and c.relname = inbox_partition(day));
end $$;

-- Creates the missing partitions of the inbox. A reader delays nothing: they are attached beside it.
create function tend_inbox() returns void language plpgsql as $$
declare
  today date := (now() at time zone 'utc')::date;
  day   date;
  name  text;
  owner name;
begin
  if has_inbox_partition(today) and has_inbox_partition(today + 1) then
    return;
  end if;
  perform pg_advisory_xact_lock(hashtextextended('reelhaul.inbox.' || current_schema(), 0));
  for day in select today + n from generate_series(0, 2) n loop
    name := inbox_partition(day);
    continue when has_inbox_partition(day);
    execute format('create table %I (like command_inbox including all)', name);
    -- Whoever is only a member of the owner makes nothing that the owner cannot dump.
    select pg_get_userbyid(relowner) into owner from pg_class where oid = 'command_inbox'::regclass;
    if owner <> current_user then
      begin
        execute format('alter table %I owner to %I', name, owner);
      exception when insufficient_privilege then
        null;
      end;
    end if;
    execute format('alter table command_inbox attach partition %I for values from (%L) to (%L)', name, day, day + 1);
  end loop;
  delete from operation where finished_at < now() - interval '30 days';
  -- The topic of the dead letters keeps them for 90 days, unless an operator has set another time.
  delete from dead_letter_mark where at < now() - interval '400 days';
end $$;

select tend_inbox();

-- Carries out pause, resume, cancel, retry, remove and prioritize, in order. Returns one answer per command: applied,
-- duplicate, intended (with the boot of the worker that runs the task) or refused (with code and reason). Of locked
-- tasks, no other transaction settles, sweeps or controls one, but a claim may still take one. `priorities` belong to
-- prioritize. `files` belongs to remove: true if the task's files are to be deleted too. `actors`
-- are who asked for the commands; null where that is not known.
create function control(
  ids uuid[], tasks uuid[], actions text[], priorities smallint[], files boolean[], actors text[]
) returns table (outcome text, worker_boot uuid, code text, reason text)
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  today   date := (now() at time zone 'utc')::date;
  new     uuid[];
  command record;
  t       task;
  r       run;
  pending text;
  running boolean;
  target  int;
begin
  with added as (
    insert into command_inbox (id, day)
    select distinct u.id, today from unnest(ids) u(id)
     where not exists (select from command_inbox i where i.id = u.id offset 0)
     order by u.id  -- two batches with the same commands wait in one order
        on conflict do nothing
    returning id)
  select array_agg(id) into new from added;

  -- `begin_apply` has locked the tasks, but for those that another batch with the same submits has added since.
  perform lock_tasks(tasks);

  for command in
    select u.*, n.id is not null and row_number() over (partition by u.id order by u.ordinal) = 1 is_new
      from unnest(ids, tasks, actions, priorities, files, actors)
           with ordinality u(id, task_id, action, priority, files, actor, ordinal)
      left join unnest(new) n(id) on n.id = u.id
     order by u.ordinal
  loop
    outcome := 'applied'; worker_boot := null; code := null; reason := null;

    if not command.is_new then
      select case when i.code is null then 'duplicate' else 'refused' end, i.code, i.reason
        into outcome, code, reason from command_inbox i where i.id = command.id;
      return next;
      continue;
    end if;

    select * into t from task where id = command.task_id;
    if not found then
      code := 'unknown_task'; reason := 'there is no task ' || command.task_id;
    else
      select * into r from run where task_id = t.id;
      running := found;
      if command.action = 'prioritize' and command.priority = t.priority and t.finished_at is null then
        return next;  -- it keeps its place in its line
        continue;
      end if;
      if not running and t.state = 'queued'
         and (command.action in ('pause', 'cancel', 'remove')
              or command.action = 'prioritize' and not exists (select from delayed where task_id = t.id))
      then
        if not withdraw(t) then
          select * into strict r from run where task_id = t.id;
          running := true;
        end if;
      end if;

      if running then
        select what into pending from intent where worker_id = r.worker_id and task_id = t.id;
        if command.action = 'cancel' or command.action = 'pause' and pending is distinct from 'cancel' then
          insert into intent (worker_id, task_id, what, actor)
          values (r.worker_id, t.id, command.action, command.actor)
              on conflict (worker_id, task_id) do update set what = excluded.what, actor = excluded.actor;
          select boot into worker_boot from worker where id = r.worker_id;
          outcome := 'intended';
        elsif command.action = 'resume' and pending = 'pause' then
          delete from intent where worker_id = r.worker_id and task_id = t.id;
        elsif command.action = 'prioritize' then
          -- The new priority takes effect when the task returns to its queue.
          update task
             set priority = command.priority, lane_id = sibling_lane(t.lane_id, (-command.priority)::smallint),
                 sequence = greatest(t.sequence, r.sequence) + 1
           where id = t.id returning * into t;
          perform publish_unusual('prioritized', array[t.id], array[t.sequence], command.actor);
        else
          code := 'illegal_transition';
          reason := format('%s is not possible while the task is %s', command.action,
                           case pending when 'cancel' then 'being canceled' else r.phase end);
        end if;
      elsif command.action = 'pause' and t.state in ('blocked', 'queued') then
        update task set state = 'paused', sequence = sequence + 1 where id = t.id;
        perform publish_unusual('paused', array[t.id], array[t.sequence + 1], command.actor);
      elsif command.action = 'resume' and t.state = 'paused' then
        perform release_tasks(array[t.id], 'resumed', command.actor);
      elsif command.action = 'cancel' and t.state in ('blocked', 'queued', 'paused') then
        perform leave_to_clean_up(array[t.id], false);
        update task
           set state = 'canceled', finished_at = now(), sequence = sequence + 1,
               error_code = null, error_message = null, error_class = null, error_retry_after = null
         where id = t.id;
        perform publish_unusual('canceled', array[t.id], array[t.sequence + 1], command.actor);
      elsif command.action = 'retry' and t.state in ('failed', 'canceled') then
        update task
           set attempt = 0, losses = 0, error_code = null, error_message = null, error_class = null,
               error_retry_after = null, state = 'queued', finished_at = null,
               -- A canceled task has lost its bytes together with its checkpoint.
               bytes_done = (select c.bytes_done from checkpoint c where c.task_id = t.id)
         where id = t.id;
        perform release_tasks(array[t.id], 'retrying', command.actor);
      elsif command.action = 'remove' then
        perform leave_to_clean_up(array[t.id], command.files);
        delete from task where id = t.id;
        delete from task_dependency where task_id = t.id;
        delete from task_history where task_id = t.id;
        insert into removed_task (id, succeeded) values (t.id, t.state = 'succeeded') on conflict do nothing;
        -- With the specification if there may be a web hook: the relay can find the task nowhere else.
        insert into outbox (kind, task_ids, sequences, actor, specs)
        values ('removed', array[t.id], array[t.sequence + 1], command.actor,
                case when t.spec ->> 'notify' is not null or exists (select from queue_hook) then array[t.spec] end);
      elsif command.action = 'prioritize' and t.state in ('blocked', 'queued', 'paused') then
        target := sibling_lane(t.lane_id, (-command.priority)::smallint);
        update task set priority = command.priority, lane_id = target, sequence = sequence + 1 where id = t.id;
        perform publish_unusual('prioritized', array[t.id], array[t.sequence + 1], command.actor);
        if t.state = 'queued' and not exists (select from delayed where task_id = t.id) then
          perform enqueue(array[t.id], false);
        end if;
      else
        code := 'illegal_transition';
        reason := format('%s is not possible while the task is %s', command.action, t.state);
      end if;
    end if;

    if code is not null then
      outcome := 'refused';
      update command_inbox i set code = control.code, reason = control.reason where i.id = command.id and i.day = today;
    end if;
    return next;
  end loop;
end $$;
