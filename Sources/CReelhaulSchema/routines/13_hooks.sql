-- The host of a URL that the program has checked: in lower case, an IPv6 address without its brackets.
create function hook_host(url text) returns text language sql immutable as $$
  select lower(coalesce(m[1], m[2]) collate "C") from regexp_match(url, '://(?:\[([^]]*)\]|([^/?#:]*))') m
$$;

-- Adds deliveries; those that are there already stay as they are. A delivery waits no shorter than an earlier one of its
-- task, so that a receiver that is away costs no look at the later ones. Those with a queue have the URL of its web hook,
-- which may have changed since the relay read it: what counts is the present one.
create function add_hooks(
  ids uuid[], numbers int[], urls text[], hosts text[], types text[], events json[], queues text[] default null
) returns void
language sql set plan_cache_mode = force_generic_plan as $$
  -- It may not change until these deliveries are there to be found.
  select from queue_hook where queue = any(queues) order by queue for share;
  insert into hook_delivery (task_id, sequence, url, host, type, event, queue, run_at)
  select u.id, u.number, coalesce(q.url, u.url), case when q.url <> u.url then hook_host(q.url) else u.host end, u.type,
         u.event, u.queue,
         coalesce((select max(h.run_at) from hook_delivery h
                    where h.task_id = any(array[u.id]) and num_nulls(h.gave_up_at) = 1), now())
    from unnest(ids, numbers, urls, hosts, types, events, queues) u(id, number, url, host, type, event, queue)
    left join queue_hook q on q.queue = u.queue
   where u.queue is null or q.url is not null
   order by u.id, u.number
      on conflict do nothing
$$;

-- The hosts for which deliveries wait: one look at the index for each, however many deliveries it has.
create function hook_hosts() returns setof text language sql stable as $$
  with recursive pending (host) as (
    (select h.host from hook_delivery h where h.gave_up_at is null order by h.host limit 1)
    union all
    select (select h.host from hook_delivery h where h.gave_up_at is null and h.host > p.host order by h.host limit 1)
      from pending p where p.host is not null)
  select host from pending where host is not null
$$;

-- Takes up to `wanted` deliveries for 60 seconds, for a worker with a current lease: the first of each task, the oldest of
-- each host. `under_way` has a host for each delivery that the worker has begun. A host gets at most `per_host` with those,
-- and hosts with fewer come first. Among equals chance decides: by age, a host with a long backlog would always come first.
-- Of the hosts that are `failing`, which may hang, all together get at most `for_failing`.
--
-- Deliveries come in bursts, for which no statistics are ready. So joins by key are written as in 02_lanes.sql, and
-- `num_nulls` keeps the indexes of open deliveries from being read as a whole.
create function claim_hooks(
  claimer int, wanted int, per_host int, under_way text[], failing text[] default '{}', for_failing int default 0
) returns setof hook_delivery
language plpgsql set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
  if not exists (select from hook_delivery where case when gave_up_at is null then run_at end <= now()) then
    return;  -- as mostly: every worker asks
  end if;
  return query
    with due as materialized (
      select d.task_id, d.sequence, p.busy + row_number() over (partition by p.host order by d.run_at) as place,
             p.fails
        from (select host, host = any(failing) fails,
                     (select count(*) from unnest(under_way) u(host) where u.host = pending.host) busy
                from hook_hosts() pending(host)) p
       cross join lateral (
         select h.task_id, h.sequence, h.run_at
           from hook_delivery h
          where h.host = p.host and h.run_at <= now() and h.gave_up_at is null and is_over(h.claimed_until, 60)
            and not exists (
              select from hook_delivery e
               where e.task_id = any(array[h.task_id]) and e.sequence < h.sequence and num_nulls(e.gave_up_at) = 1
              offset 0)
          order by h.run_at limit greatest(per_host - p.busy, 0)) d
       where exists (select from worker w where w.id = claimer and not w.dead and w.lease_until > now())),
    allowed as materialized (
      select task_id, sequence, place
        from (select *, row_number() over (partition by fails order by place, random()) as turn from due) d
       where not fails or turn <= for_failing),
    chosen as (
      select h.task_id, h.sequence
        from allowed d join hook_delivery h on h.task_id = any(array[d.task_id]) and h.sequence = any(array[d.sequence])
       where is_over(h.claimed_until, 60) and num_nulls(h.gave_up_at) = 1
       order by d.place, random() limit wanted for update of h skip locked)
    update hook_delivery h set claimed_until = now() + interval '60 s', attempt = h.attempt + 1
      from chosen c where h.task_id = any(array[c.task_id]) and h.sequence = any(array[c.sequence])
    returning h.*;
end $$;

-- The next delivery of the task may go.
create function wake_hooks(id uuid) returns void language sql set plan_cache_mode = force_generic_plan as $$
  update hook_delivery set run_at = now() where task_id = id and num_nulls(gave_up_at) = 1 and run_at > now()
$$;

create function finish_hook(id uuid, number int) returns void language plpgsql set plan_cache_mode = force_generic_plan as $$
begin
  delete from hook_delivery where task_id = id and sequence = number;
  perform wake_hooks(id);
end $$;

-- Whether a failure tells something of the delivery, which is then locked. Not if it is over, and not if it got another
-- URL while a worker tried the former one: then it may be tried at once.
create function is_of_this_try(id uuid, number int) returns boolean
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  tries int;
begin
  -- A claimed delivery has an attempt, unless that began anew.
  select attempt into tries
    from hook_delivery where task_id = id and sequence = number and num_nulls(gave_up_at) = 1 for update;
  if tries = 0 then
    update hook_delivery set claimed_until = '-infinity' where task_id = id and sequence = number;
  end if;
  return coalesce(tries > 0, false);
end $$;

-- The later deliveries of the task wait, too.
create function postpone_hook(id uuid, number int, delay_microseconds bigint, reason text) returns void
language plpgsql set plan_cache_mode = force_generic_plan as $$
begin
  if not is_of_this_try(id, number) then return; end if;
  update hook_delivery
     set run_at = now() + make_interval(secs => delay_microseconds / 1e6),
         claimed_until = case when sequence = number then '-infinity' else claimed_until end,
         error = case when sequence = number then reason else error end
   where task_id = id and sequence >= number and num_nulls(gave_up_at) = 1;
end $$;

-- Returns how many deliveries were given up. After three days, that is not this one alone: a receiver that takes long to
-- fail is tried less often than events come, and those that nobody tries would never end: those for its URL as well, and
-- those for its host after seven days, because each task may have a URL of its own.
create function give_up_hook(id uuid, number int, reason text) returns int
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  given hook_delivery;
  others int = 0;
begin
  if not is_of_this_try(id, number) then return 0; end if;
  update hook_delivery set gave_up_at = now(), claimed_until = '-infinity', error = reason
   where task_id = id and sequence = number returning * into given;
  perform wake_hooks(id);
  if given.created_at < now() - interval '3 days' then
    with longest as materialized (
      select h.task_id, h.sequence from hook_delivery h
       where h.host = given.host and h.gave_up_at is null order by h.run_at limit 1000)
    update hook_delivery h set gave_up_at = now(), error = reason
      from (select h.task_id, h.sequence
              from longest l
              join hook_delivery h on h.task_id = any(array[l.task_id]) and h.sequence = any(array[l.sequence])
             where h.created_at < now() - case h.url when given.url then interval '3 days' else interval '7 days' end
               and num_nulls(h.gave_up_at) = 1 and is_over(h.claimed_until, 60) for update of h skip locked) late
     where h.task_id = any(array[late.task_id]) and h.sequence = any(array[late.sequence]);
    get diagnostics others = row_count;
  end if;
  return 1 + others;
end $$;

-- Sets the web hook of a queue, or ends it. Returns false if something may wait for the former one; repeated, it moves that:
-- see move_hooks.
create function set_queue_hook(named text, target text) returns boolean
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  former text;
begin
  select url into former from queue_hook where queue = named for update;
  if former is not distinct from target then
    return move_hooks(named);
  end if;
  -- From here on no delivery is added for the former URL.
  insert into former_hook (queue, url) select named, former where former is not null on conflict do nothing;
  delete from former_hook where queue = named and url = target;
  delete from queue_hook where queue = named and target is null;
  insert into queue_hook (queue, url) select named, target where target is not null
      on conflict (queue) do update set url = excluded.url;
  return not exists (select from former_hook where queue = named);
end $$;

-- What waits for a former URL of a queue's web hook goes to the present one, as if nobody had tried it, or is dropped. That
-- may be very much: a call looks at 10,000 at most, and returns false if there may be more.
create function move_hooks(named text) returns boolean
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  most constant int := 10000;
  present text;
  former text;
  ids uuid[];
  numbers int[];
  looked_at int;
begin
  select url into present from queue_hook where queue = named for update;
  select url into former from former_hook where queue = named order by added limit 1 for update;
  if former is null then return true; end if;
  with waiting as materialized (
    select h.task_id, h.sequence
      from hook_delivery h
     where h.host = hook_host(former) and h.gave_up_at is null and h.url = former and h.queue = named
     limit most),
  -- In the order in which others lock the deliveries of a task.
  locked as materialized (
    select h.task_id, h.sequence
      from waiting w join hook_delivery h on h.task_id = any(array[w.task_id]) and h.sequence = any(array[w.sequence])
     order by w.task_id, w.sequence for update of h)
  select array_agg(task_id), array_agg(sequence), (select count(*) from waiting)
    into ids, numbers, looked_at
    from locked;
  if present is null then
    delete from hook_delivery h using unnest(ids, numbers) u(id, number)
     where h.task_id = any(array[u.id]) and h.sequence = any(array[u.number]) and num_nulls(h.gave_up_at) = 1;
  else
    -- A worker that tries one now keeps it until it knows the result.
    update hook_delivery h
       set url = present, host = hook_host(present), attempt = 0, error = null, created_at = now(), run_at = now()
      from unnest(ids, numbers) u(id, number)
     where h.task_id = any(array[u.id]) and h.sequence = any(array[u.number]) and num_nulls(h.gave_up_at) = 1;
  end if;
  if looked_at = most then return false; end if;
  delete from former_hook where queue = named and url = former;
  return not exists (select from former_hook where queue = named);
end $$;

-- What was given up stays to be seen for a week. There may be millions of them.
create function forget_hooks() returns void
language sql set plan_cache_mode = force_generic_plan as $$
  delete from hook_delivery h
   using (select task_id, sequence from hook_delivery where gave_up_at < now() - interval '7 days'
           order by gave_up_at limit 5000 for update skip locked) old
   where h.task_id = any(array[old.task_id]) and h.sequence = any(array[old.sequence])
$$;

-- Goes on with a change of a queue's web hook, unless somebody has that in hand now.
create function go_on_moving_hooks() returns void
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  named text := (select queue from former_hook order by added limit 1);
begin
  if named is null then return; end if;
  -- In the order of move_hooks.
  perform from queue_hook where queue = named for update skip locked;
  if found or not exists (select from queue_hook where queue = named) then
    perform move_hooks(named);
  end if;
end $$;

-- How many events wait for web hooks, of up to `most` of each host, or fewer if there are more than 20; since when, and why
-- the one that was tried least was not delivered: that failed last.
create function waiting_hooks(most int) returns table (host text, events bigint, since timestamptz, error text)
language sql set plan_cache_mode = force_generic_plan as $$
  with pending as materialized (select host from hook_hosts() h(host))
  select p.host, count(*), min(d.created_at),
         (array_agg(d.error order by d.attempt) filter (where d.error is not null))[1]
    from pending p
   cross join lateral (
     select h.created_at, h.error, h.attempt from hook_delivery h
      where h.host = p.host and h.gave_up_at is null order by h.run_at
      limit (select least(most, greatest(100, 20 * most / count(*))) from pending)) d
   group by p.host
$$;
