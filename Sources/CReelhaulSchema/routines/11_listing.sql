-- Lists of tasks: any filter, in the order of (created_at, id), page by page, and a bounded amount of work for a page,
-- however many tasks there are.

-- The host of a specification, as lanes have it: that of the source, or else of the destination; `BUCKET.s3` of an s3 URL.
-- Only for succeeded tasks whose lane is gone.
create function spec_host(spec json) returns text language sql immutable as $$
  select coalesce(max(host) filter (where host <> '' and is_source), max(host), '')
    from (select n = 1 is_source,
                 case when u.url ~* '^s3://' then lower(substring(u.url from '(?i)^s3://([^/]*)')) || '.s3'
                      when u.url ~* '^storage://' then ''
                      else rtrim(btrim(lower(coalesce(
                             substring(u.url from '^[^:/]+://(\[[^]]*\]|[^/:?#]*)'), '')), '[]'), '.') end host
            from unnest(array[spec ->> 'source', spec ->> 'destination']) with ordinality u(url, n)) h
$$;

-- A URL without what documents do not show, because it may be secret: its userinfo, query and fragment.
create function shown_place(url text) returns text language sql immutable as $$
  select regexp_replace(split_part(split_part(url, '#', 1), '?', 1), '^([^:]*://)[^/]*@', '\1')
$$;

-- Finds a page of tasks. Each list that is given must have the task's word: `states` (with `scheduled` and `retrying`, which
-- are queued tasks that wait for a time of theirs, and of which `queued` has all), `queues`, `kinds`, `hosts`, `codes` (of
-- the last error). `labels`:
-- all must be there, with this value if one is given. `needle`: a part of id, source or destination, in any case of
-- ASCII letters; not of what is not shown of URLs.
-- `after` <= created_at < `before`. A cursor is where the page before ended.
--
-- At most `budget` tasks are looked at. `is_last`: there is nothing behind this page. Otherwise the next page goes on behind
-- `last_at` and `last_id`: the last task found, or if the budget ended first, the last one looked at (`is_cut`).
--
-- What waits, runs or halts is found by its own table or index, if few of it fits; everything else by looking at all tasks
-- in their order. The statement is put together of the conditions that are asked for, so that it is planned for them. All
-- values are parameters.
create function find_tasks(
  states text[] default null, queues text[] default null, kinds text[] default null, hosts text[] default null,
  label_names text[] default null, label_values text[] default null, needle text default null,
  after timestamptz default null, before timestamptz default null, ascending boolean default false,
  cursor_at timestamptz default null, cursor_id uuid default null, most int default 100, budget int default 3000,
  codes text[] default null,
  out ids uuid[], out is_last boolean, out is_cut boolean, out last_at timestamptz, out last_id uuid)
language plpgsql stable set plan_cache_mode = force_generic_plan set enable_bitmapscan = off as $$
#variable_conflict use_variable
declare
  few       constant int := 5000;
  halts     constant text[] := '{blocked,paused,canceled,failed}';
  resting   constant text[] := (
    select array_agg(distinct case when s = any(halts) or s = 'succeeded' then s else 'queued' end) from unnest(states) s);
  by_lane   constant boolean := queues is not null or kinds is not null or hosts is not null;
  -- An ended task is in no table that tells where few of them are.
  is_sparse constant boolean := states is not null and not 'succeeded' = any(states);
  queue_ids int[];
  kind_ids  int[];
  host_ids  int[];
  chosen    uuid[] := '{}';  -- tasks that may fit and are no more than `few`
  lanes     int[];
  halted_ids uuid[];
  worth     int;
  walks     boolean := not is_sparse;
  sources   text[] := '{}';
  span      text := '';
  fits      text := 'true';
  direction text := case when ascending then 'asc' else 'desc' end;
  r         record;
begin
  ids := '{}'; is_last := true; is_cut := false;
  if by_lane or is_sparse then
    -- By the counts: is there any?
    if not exists (
      select from task_count c
       where (resting is null or c.state::text = any(resting)) and (queues is null or c.queue = any(queues))
         and (kinds is null or c.kind = any(kinds)) and c.tasks > 0)
      and not exists (
        select from named_change c
         where (resting is null or c.state::text = any(resting)) and (queues is null or c.queue = any(queues))
           and (kinds is null or c.kind = any(kinds)) and c.tasks > 0)
    then
      return;
    end if;
  end if;
  select case when queues is not null then
           array(select id from bucket where scope = 'queue' and name = any(queues)) end,
         case when kinds is not null then array(select id from bucket where scope = 'kind' and name = any(kinds)) end,
         case when hosts is not null then array(select id from bucket where scope = 'host' and name = any(hosts)) end
    into queue_ids, kind_ids, host_ids;

  -- Where to look.
  if is_sparse and 'queued' = any(resting) then
    select array_agg(w.task_id) into chosen
      from (select x.task_id
              from lane l
             cross join lateral (  -- not below the head: there may be many dead rows
               select task_id from ready where lane_id = l.id and pos < 0
               union all
               select task_id from ready where lane_id = l.id and pos >= l.head) x
             where l.ready and 'queued' = any(states) and (queue_ids is null or l.queue_id = any(queue_ids))
               and (kind_ids is null or l.kind_id = any(kind_ids)) and (host_ids is null or l.host_id = any(host_ids))
            union all
            select task_id from delayed where states && '{queued,scheduled,retrying}'
            union all
            select task_id from run
             where states && '{running,publishing}' and phase = any(states)
               and (queue_ids is null or queue_id = any(queue_ids)) and (host_ids is null or host_id = any(host_ids))
            limit few + 1) w;
    chosen := coalesce(chosen, '{}');
    walks := cardinality(chosen) > few;
  end if;
  if not walks and states && halts then
    if by_lane then
      -- As many as it takes less to sort than to look for them among all that halted.
      select least(few, sqrt(most * sum(tasks) / 4)) into worth from task_count c where c.state::text = any(states) and c.state::text = any(halts);
      select array_agg(id) into lanes
        from (select id from lane
               where (queue_ids is null or queue_id = any(queue_ids)) and (kind_ids is null or kind_id = any(kind_ids))
                 and (host_ids is null or host_id = any(host_ids)) limit 1001) l;
      if coalesce(cardinality(lanes), 0) <= 1000 then
        select coalesce(array_agg(h.id), '{}') into halted_ids
          from (select t.id from unnest(lanes) l(id)
                 cross join lateral (
                   select id from task where lane_id = l.id and halted = any('{blocked,paused,canceled,failed}') offset 0) t
                 limit worth + 1) h;
      end if;
    end if;
    if cardinality(halted_ids) <= worth then
      chosen := chosen || halted_ids;
    else
      select array_agg(format('select * from task t where t.halted = %L%%1$s', s)) into sources
        from unnest(states) s where s = any(halts);
    end if;
  end if;
  if walks then
    sources := array['select * from task t where true%1$s'];
  elsif cardinality(chosen) > 0 then
    sources := sources || 'select t.* from unnest($1) c(id)
                            cross join lateral (select * from task where id = c.id offset 0) t where true%1$s'::text;
  end if;
  if cardinality(sources) = 0 then
    return;
  end if;

  -- Between which times.
  if after is not null then
    span := span || ' and t.created_at >= $2';
  end if;
  if before is not null then
    span := span || ' and t.created_at < $3';
  end if;
  if cursor_at is not null then
    span := span || case when ascending then ' and t.created_at >= $4 and (t.created_at, t.id) > ($4, $5)'
                         else ' and t.created_at <= $4 and (t.created_at, t.id) < ($4, $5)' end;
  end if;

  -- What fits. A lane tells of tasks that may run; that of a succeeded one may be gone.
  if states is not null then
    fits := fits || case when not 'queued' = any(resting) then format(' and t.state = any(%L)', resting) else
      ' and (t.state <> ''queued'' and t.state::text = any($6) or t.state = ''queued'' and '
      || case when states @> '{queued,running,publishing}' then 'true' else
           '(case coalesce((select u.phase from run u where u.task_id = t.id), ''queued'')
               when ''running'' then ''running'' = any($6) when ''publishing'' then ''publishing'' = any($6)
               else ''queued'' = any($6) or case when t.error_code is null then ''scheduled'' else ''retrying'' end = any($6)
                 and exists (select from delayed d where d.task_id = t.id and d.run_at > clock_timestamp()) end)' end || ')' end;
  end if;
  if by_lane then
    fits := fits || ' and coalesce((select true'
      || case when queues is not null then ' and l.queue_id = any($7)' else '' end
      || case when kinds is not null then ' and l.kind_id = any($8)' else '' end
      || case when hosts is not null then ' and l.host_id = any($9)' else '' end
      || ' from lane l where l.id = t.lane_id), true'
      || case when queues is not null then ' and coalesce(t.spec ->> ''queue'', ''default'') = any($10)' else '' end
      || case when kinds is not null then ' and t.spec ->> ''kind'' = any($11)' else '' end
      || case when hosts is not null then ' and exists (
             select from unnest($12) h where position(regexp_replace(h, ''\.s3$'', '''') in lower(t.spec::text)) > 0)
           and spec_host(t.spec) = any($12)' else '' end || ')';  -- most texts have no such host, and are not taken apart
  end if;
  if codes is not null then
    fits := fits || ' and t.error_code = any($16)';
  end if;
  if label_names is not null then
    fits := fits || ' and not exists (
      select from unnest($13, $14) f(name, value)
       where t.spec -> ''labels'' ->> f.name is null or f.value is not null and t.spec -> ''labels'' ->> f.name <> f.value)';
  end if;
  if needle is not null then
    fits := fits || ' and (position(lower($15) in t.id::text) > 0
      or position(lower($15) in lower(shown_place(t.spec ->> ''source''))) > 0
      or position(lower($15) in lower(shown_place(t.spec ->> ''destination''))) > 0)';
  end if;

  for r in execute format(
    'select id, created_at, fits, n
       from (select *, row_number() over () n
               from (select t.id, t.created_at, (%s) fits from (%s) t order by t.created_at %s, t.id %s limit %s) looked_at) numbered
      where fits or n = %s limit %s',
    fits,
    (select string_agg(format('(' || s || case when cardinality(sources) > 1 then ' order by t.created_at %2$s, t.id %2$s)'
                              else ')' end, span, direction), ' union all ') from unnest(sources) s),
    direction, direction, budget, budget, most + 1)
    using chosen, after, before, cursor_at, cursor_id, states, queue_ids, kind_ids, host_ids, queues, kinds, hosts,
          label_names, label_values, needle, codes
  loop
    if cardinality(ids) = most then  -- one more, or the budget has ended
      is_last := false;
      return;
    end if;
    last_at := r.created_at; last_id := r.id;
    if r.fits then
      ids := ids || r.id;
    end if;
    if r.n = budget then
      is_last := false; is_cut := cardinality(ids) < most;
    end if;
  end loop;
end $$;
