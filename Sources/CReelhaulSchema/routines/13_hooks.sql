-- Adds deliveries; those that are there already stay as they are. A delivery waits no shorter than an earlier one of its
-- task, so that a receiver that is away costs no look at the later ones.
create function add_hooks(
  ids uuid[], numbers int[], urls text[], hosts text[], types text[], events json[]
) returns void
language sql set plan_cache_mode = force_generic_plan as $$
  insert into hook_delivery (task_id, sequence, url, host, type, event, run_at)
  select u.id, u.number, u.url, u.host, u.type, u.event,
         coalesce((select max(h.run_at) from hook_delivery h where h.task_id = u.id and h.gave_up_at is null), now())
    from unnest(ids, numbers, urls, hosts, types, events) u(id, number, url, host, type, event)
   order by u.id, u.number
      on conflict do nothing
$$;

-- Takes up to `wanted` deliveries for 60 seconds, for a worker with a current lease: the first of each task, the oldest of
-- each host. `under_way` has a host for each delivery that the worker has begun. A host gets at most `per_host` with those,
-- and hosts with fewer come first. Among equals chance decides: by age, a host with a long backlog would always come first.
create function claim_hooks(claimer int, wanted int, per_host int, under_way text[]) returns setof hook_delivery
language plpgsql set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
  return query
    with recursive pending (host) as (
      -- One look at the index for each host, however many deliveries it has.
      (select h.host from hook_delivery h where h.gave_up_at is null order by h.host limit 1)
      union all
      select (select h.host from hook_delivery h where h.gave_up_at is null and h.host > p.host order by h.host limit 1)
        from pending p where p.host is not null),
    due as materialized (
      select d.task_id, d.sequence, p.busy + row_number() over (partition by p.host order by d.run_at) as place
        from (select host, (select count(*) from unnest(under_way) u(host) where u.host = pending.host) busy
                from pending where host is not null) p
       cross join lateral (
         select h.task_id, h.sequence, h.run_at
           from hook_delivery h
          where h.host = p.host and h.run_at <= now() and h.gave_up_at is null and is_over(h.claimed_until, 60)
            and not exists (
              select from hook_delivery e
               where e.task_id = h.task_id and e.sequence < h.sequence and e.gave_up_at is null)
          order by h.run_at limit greatest(per_host - p.busy, 0)) d
       where exists (select from worker w where w.id = claimer and not w.dead and w.lease_until > now())),
    chosen as (
      select h.task_id, h.sequence
        from due d join hook_delivery h on h.task_id = d.task_id and h.sequence = d.sequence
       where is_over(h.claimed_until, 60) and h.gave_up_at is null
       order by d.place, random() limit wanted for update of h skip locked)
    update hook_delivery h set claimed_until = now() + interval '60 s', attempt = h.attempt + 1
      from chosen c where h.task_id = c.task_id and h.sequence = c.sequence
    returning h.*;
end $$;

-- The next delivery of the task may go.
create function wake_hooks(id uuid) returns void language sql set plan_cache_mode = force_generic_plan as $$
  update hook_delivery set run_at = now() where task_id = id and gave_up_at is null and run_at > now()
$$;

create function finish_hook(id uuid, number int) returns void language plpgsql as $$
begin
  delete from hook_delivery where task_id = id and sequence = number;
  perform wake_hooks(id);
end $$;

-- The later deliveries of the task wait, too.
create function postpone_hook(id uuid, number int, delay_microseconds bigint, reason text) returns void
language plpgsql set plan_cache_mode = force_generic_plan as $$
begin
  update hook_delivery
     set run_at = now() + make_interval(secs => delay_microseconds / 1e6),
         claimed_until = case when sequence = number then '-infinity' else claimed_until end,
         error = case when sequence = number then reason else error end
   where task_id = id and sequence >= number and gave_up_at is null;
end $$;

create function give_up_hook(id uuid, number int, reason text) returns void
language plpgsql set plan_cache_mode = force_generic_plan as $$
begin
  update hook_delivery set gave_up_at = now(), claimed_until = '-infinity', error = reason
   where task_id = id and sequence = number and gave_up_at is null;
  perform wake_hooks(id);
  delete from hook_delivery where gave_up_at < now() - interval '7 days';
end $$;

create function set_queue_hook(named text, target text) returns void language sql as $$
  delete from queue_hook where queue = named and target is null;
  insert into queue_hook (queue, url) select named, target where target is not null
      on conflict (queue) do update set url = excluded.url
$$;
