-- The routines that workers of the version before call, so that they continue to work while the fleet is upgraded one
-- worker after the other. Remove this file one release later, when no database is upgraded from the first version any
-- more.

-- The history of migrations in the form that a worker of the version before reads when it registers: one migration,
-- with its own checksum. It would take a longer history as a sign of a newer schema, and refuse it.
create view schema_migration as
  select number, name, 1248641941136920980 checksum, applied_at from schema_history where number = 1;

create function claim(claimer int, wanted int, call bigint) returns setof uuid language sql as $$
  select task_id from claim_tasks(claimer, wanted, call)
$$;

-- In the version before, `claimed` returns the columns of a download's checkpoint. The columns of the envelope come
-- first, for workers of this version.
drop function claimed(uuid[]);

create function claimed(tasks uuid[])
returns table (
  task_id uuid, epoch int, attempt smallint, priority smallint, spec json,
  checkpoint_version smallint, generation int, bytes_done bigint, bytes_total bigint, stage text, payload json,
  identity json, volume uuid, staging_name text, done int8multirange, tail_crc bigint, publishing bytea
)
language plpgsql set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
  -- Members of these names mean something else in the payloads of other kinds.
  download int := (select id from bucket where scope = 'kind' and name = 'download');
begin
  return query
    select t.id, r.epoch, r.attempt, t.priority, t.spec,
           c.version, c.generation, c.bytes_done, c.bytes_total, c.stage, c.payload,
           case when r.kind_id = download then c.payload -> 'identity' end,
           case when r.kind_id = download then (c.payload ->> 'volume')::uuid end,
           case when r.kind_id = download then c.payload ->> 'staging' end,
           -- Most tasks that are claimed have no checkpoint: a call for each would cost a twentieth of a task.
           case when r.kind_id = download and c.payload is not null then download_ranges(c.payload) end,
           case when r.kind_id = download then (c.payload ->> 'tailCRC')::bigint end,
           case when r.kind_id = download then decode(c.payload ->> 'publishing', 'hex') end
      from unnest(tasks) u(id)
      join run r on r.task_id = any(array[u.id])
      join task t on t.id = any(array[u.id])
      left join checkpoint c on c.task_id = any(array[u.id]);
end $$;

-- The recorded ranges in the payload of a download; null if it has none.
create function download_ranges(payload json) returns int8multirange language sql immutable as $$
  select coalesce(range_agg(int8range(bounds[n], bounds[n + 1])), '{}')
    from (select array_agg(b::bigint order by i) bounds
            from json_array_elements_text(payload -> 'done') with ordinality e(b, i)) flat
   cross join lateral generate_series(1, cardinality(bounds), 2) n
  having payload -> 'done' is not null
$$;

create function record_checkpoints(
  tasks uuid[], epochs int[], generations int[], identities json[], volumes uuid[], staging_names text[],
  dones int8multirange[], tail_crcs bigint[], publishings bytea[]
) returns boolean[] language plpgsql as $$
declare
  e record;
begin
  select array_agg(1::smallint) versions, array_agg(kept.bytes order by n) dones,
         array_agg((identity ->> 'size')::bigint order by n) totals,
         array_agg(case when publishing is not null then 'publishing' end order by n) stages,
         array_agg(('{"identity":' || identity || ',"volume":"' || volume || '","staging":' || to_json(staging_name)
                    || ',"done":[' || kept.bounds || ']' || coalesce(',"tailCRC":' || tail_crc, '')
                    || coalesce(',"publishing":"' || encode(publishing, 'hex') || '"', '') || '}')::json order by n) payloads
    into e
    from unnest(identities, volumes, staging_names, dones, tail_crcs, publishings)
         with ordinality u(identity, volume, staging_name, done, tail_crc, publishing, n)
   cross join lateral (
     select coalesce(sum(upper(r) - lower(r)), 0)::bigint bytes,
            coalesce(string_agg(lower(r) || ',' || upper(r), ',' order by r), '') bounds
       from (select r from unnest(u.done) r order by upper(r) - lower(r) desc limit 1000) longest) kept;
  return record_checkpoints(tasks, epochs, e.versions, generations, e.dones, e.totals, e.stages, e.payloads);
end $$;

create function settle(
  ids uuid[], epochs int[], outcomes text[], delay_microseconds bigint[], digests bytea[], sizes bigint[],
  codes text[], messages text[], classes text[], retry_afters int[]
) returns boolean[] language sql as $$
  select settle(ids, epochs, outcomes, delay_microseconds, digests, sizes, array_fill(null::json, array[cardinality(ids)]),
                codes, messages, classes, retry_afters)
$$;

create function submit(
  ranks smallint[], queues text[], kinds text[], hosts text[], storages text[],
  ids uuid[], lane_numbers int[], priorities smallint[], not_befores timestamptz[], pauses boolean[], specs json[],
  dependents uuid[], dependencies uuid[]
) returns uuid[] language sql as $$
  select submit(ranks, queues, kinds, hosts, storages, array_fill(''::text, array[cardinality(ranks)]),
                ids, lane_numbers, priorities, not_befores, pauses, specs, dependents, dependencies)
$$;

create function control(ids uuid[], tasks uuid[], actions text[], priorities smallint[], files boolean[])
returns table (outcome text, worker_boot uuid, code text, reason text) language sql as $$
  select * from control(ids, tasks, actions, priorities, files, array_fill(null::text, array[cardinality(ids)]))
$$;

create function control(ids uuid[], tasks uuid[], actions text[], priorities smallint[])
returns table (outcome text, worker_boot uuid, code text, reason text) language sql as $$
  select * from control(ids, tasks, actions, priorities, array_fill(false, array[cardinality(ids)]))
$$;

create function register_worker(
  its_boot uuid, its_host text, its_pid int, seconds int, its_kinds text[], kind_limits int[], present_names text[],
  its_volume_names text[], its_volume_ids uuid[], its_label_names text[], its_label_values text[]
) returns int language sql as $$
  select register_worker(its_boot, its_host, its_pid, seconds, its_kinds, kind_limits, present_names,
                         its_volume_names, its_volume_ids, its_label_names, its_label_values, null)
$$;

-- Workers of the version before declare no limits. So the limits that newer workers declared for these kinds stay.
create function register_worker(
  its_boot uuid, its_host text, its_pid int, seconds int, its_kinds text[],
  its_volume_names text[], its_volume_ids uuid[], its_label_names text[], its_label_values text[]
) returns int language sql as $$
  select register_worker(its_boot, its_host, its_pid, seconds, its_kinds,
                         array(select (select declared_limit from bucket where scope = 'kind' and name = k)
                                 from unnest(its_kinds) with ordinality u(k, n) order by n),
                         array_fill(null::text, array[cardinality(its_kinds)]),
                         its_volume_names, its_volume_ids, its_label_names, its_label_values)
$$;

-- The newest tasks, of one state and one queue if these are given.
create function list_tasks(of_state text, of_queue text, most int) returns setof task_document language sql as $$
  select d.*
    from find_tasks(case when of_state is not null then array[of_state] end, case when of_queue is not null then array[of_queue] end,
                    most => most, budget => 2000000000) f
   cross join lateral task_documents(f.ids) d
$$;

-- The tasks that are neither in `ready` nor succeeded. `delayed` are queued ones whose time has not come.
create function other_tasks(most int) returns table (state text, queue text, kind text, tasks bigint)
language plpgsql set plan_cache_mode = force_generic_plan set enable_bitmapscan = off as $$
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
