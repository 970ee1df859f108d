-- Triggers keep the counters: `used` is the number of rows of `run`, updated in the transaction that changes `run`.
-- They are statement triggers with transition tables: a statement updates each bucket once, at its end, so that the
-- locks are held for the commit only.
create function count_runs() returns trigger language plpgsql as $$
declare
  buckets int[];
  counts  int[];
begin
  select array_agg(bucket_id order by bucket_id), array_agg(n order by bucket_id) into buckets, counts
    from (select bucket_id, sum(n)::int n
            from (select kind_id, queue_id, host_id, storage_id, source_storage_id, count(*) n
                    from changed
                   group by kind_id, queue_id, host_id, storage_id, source_storage_id) c  -- equal runs together
           cross join lateral (values (1), (c.kind_id), (c.queue_id), (c.host_id), (c.storage_id),
                                      (nullif(c.source_storage_id, 0))) scope (bucket_id)
           where bucket_id is not null
           group by bucket_id) counted;
  if buckets is null then
    return null;
  end if;

  perform from bucket where id = any(buckets) order by id for no key update;

  if tg_op = 'INSERT' then
    update bucket b set used = b.used + u.n
      from unnest(buckets, counts) u(id, n) where b.id = u.id;
  else
    update bucket b set used = b.used - u.n, ceiling = greatest(b.run_limit, b.used - u.n)
      from unnest(buckets, counts) u(id, n) where b.id = u.id;
  end if;
  return null;
end $$;

create trigger run_begins after insert on run
  referencing new table as changed for each statement execute function count_runs();

create trigger run_ends after delete on run
  referencing old table as changed for each statement execute function count_runs();

create function refuse_move() returns trigger language plpgsql as $$
begin
  raise exception 'a run cannot change its buckets';
end $$;

create trigger run_stays before update of kind_id, queue_id, host_id, storage_id, source_storage_id, task_id on run
  for each row execute function refuse_move();

-- The gate lets one claim run at a time. So a claim can read first and then write; fairness is exact, claims cannot
-- race for a limit, and nothing deadlocks. The key contains the schema's name, so that fleets in one database do not
-- wait for each other.
create function pass_gate() returns void language sql as $$
  select pg_advisory_xact_lock(hashtextextended('reelhaul.gate.' || current_schema(), 0))
$$;

-- How much may run at once; null: no limit but the declared or learned one. What runs already is never stopped. The former
-- name of a kind means the kind. Needs the gate: a claim has read the old value.
create function set_limit(bucket_scope text, bucket_name text, new_limit int) returns void language plpgsql as $$
declare
  counted text;
begin
  perform pass_gate();
  perform ensure_buckets(array[bucket_scope], array[bucket_name]);
  select c.name into counted
    from bucket b join bucket c on c.id = coalesce(b.counts_as, b.id)
   where b.scope = bucket_scope and b.name = bucket_name;
  update bucket set operator_limit = new_limit where scope = bucket_scope and name = counted;
  perform put_limits_in_force(array[bucket_scope], array[counted]);
end $$;

-- What handlers declare about their kinds. `limits`: null: no limit. `present_names`: of a former name the name that the
-- kind has now; null of others. The last declaration holds; but a worker that knows a kind only by a former name says
-- nothing about the kind.
create function declare_kinds(kinds text[], limits int[], present_names text[]) returns void language plpgsql as $$
declare
  scopes text[] := array_fill('kind'::text, array[cardinality(kinds)]);
begin
  -- If nothing changes, registering must not wait for claims.
  if not exists (
    select from unnest(kinds, limits, present_names) u(kind, declared, present)
      left join bucket b on b.scope = 'kind' and b.name = u.kind
      left join bucket c on c.id = b.counts_as
     where case when u.present is not null then c.name is distinct from u.present
                when b.counts_as is not null then u.kind = any(present_names)
                else b.declared_limit is distinct from u.declared end)
  then
    return;
  end if;
  perform pass_gate();
  perform ensure_buckets(scopes, kinds);
  perform from bucket where scope = 'kind' order by id for no key update;

  -- A kind that got a former name back is the present one again.
  update bucket set counts_as = null where scope = 'kind' and name = any(present_names) and counts_as is not null;
  -- What an operator has set for a former name is the limit of the kind, unless that has one.
  update bucket c set operator_limit = f.operator_limit
    from (select u.present, min(b.operator_limit) operator_limit
            from unnest(kinds, present_names) u(kind, present) join bucket b on b.scope = 'kind' and b.name = u.kind
           where u.present is not null group by u.present) f
   where c.scope = 'kind' and c.name = f.present and c.operator_limit is null;
  update bucket b set counts_as = c.id, operator_limit = null, declared_limit = null
    from unnest(kinds, present_names) u(kind, present)
    join bucket f on f.scope = 'kind' and f.name = u.kind
    join bucket c on c.scope = 'kind' and c.name = u.present
   where b.id = f.id or b.counts_as = f.id;  -- former names of the former name, too

  update bucket b set declared_limit = u.declared
    from unnest(kinds, limits) u(kind, declared) where b.scope = 'kind' and b.name = u.kind and b.counts_as is null;
  perform put_limits_in_force(scopes, kinds);
end $$;

-- Kinds have declared limits, and hosts have learned ones. Whatever a host may run, if it is out, its tasks only ask.
create function limit_in_force(b bucket) returns int language sql immutable as $$
  select least(coalesce(b.operator_limit, b.declared_limit, b.learned_limit, unlimited()), b.outage_limit)
$$;

create function put_limits_in_force(scopes text[], names text[]) returns void language sql as $$
  update bucket b
     set run_limit = limit_in_force(b), ceiling = greatest(limit_in_force(b), used)
    from unnest(scopes, names) u(scope, name) where b.scope = u.scope and b.name = u.name
$$;

-- How many tasks of these hosts a worker can make use of at once: if it has more, some stand in line, or the host `refuses`
-- them. It tells nothing of other hosts. `put_learned_limits_in_force` must follow, in another transaction.
create function tell_host_limits(teller int, its_hosts text[], its_limits int[], refuses boolean[]) returns void
language sql as $$
  update worker set host_names = its_hosts, host_limits = its_limits, host_refuses = refuses
   where id = teller and not dead
     and (host_names, host_limits, host_refuses) is distinct from (its_hosts, its_limits, refuses)
$$;

-- The limits of hosts that follow: what all workers together can make use of, if those that told nothing, and could run such
-- tasks as run, can make use of as much as those where tasks stand in line. A host has none if none does, or if a worker that
-- told nothing of it has tasks of it: there, the host serves them all.
create function learned_limits() returns table (host_id int, most int) language sql stable as $$
  with live as materialized (
    select id, kinds, volume_names || ''::text storages, draining, host_names, host_limits, host_refuses
      from worker where not dead and lease_until > now()),
  told as (
    select b.id host_id, array_agg(l.id) tellers, sum(h.most) most, avg(h.most) filter (where not h.refuses) most_each
      from live l
     cross join lateral unnest(l.host_names, l.host_limits, l.host_refuses) h(name, most, refuses)
      join bucket b on b.scope = 'host' and b.name = h.name
     group by b.id),
  runs as materialized (
    select r.host_id, array_agg(r.worker_id) workers, array_agg(k.name) kinds, array_agg(s.name) storages
      from (select distinct host_id, worker_id, kind_id, storage_id from run) r
      join bucket k on k.id = r.kind_id join bucket s on s.id = r.storage_id
     group by r.host_id)
  select t.host_id, ceil(t.most + t.most_each * (
           select count(*) from live l
            where l.id <> all(t.tellers) and not l.draining
              and exists (select from unnest(r.kinds, r.storages) n(kind, storage)
                           where n.kind = any(l.kinds) and n.storage = any(l.storages))))::int
    from told t left join runs r on r.host_id = t.host_id
   where t.most_each is not null
     and not exists (select from live l where l.id = any(r.workers) and l.id <> all(t.tellers))
$$;

-- Must be a transaction of its own, because it may wait for the gate: a claim has read the old limits. The limits are found
-- before the gate, by one worker at a time, because that reads what runs: no claim waits for it.
create function put_learned_limits_in_force() returns void language plpgsql as $$
declare
  changed int[];
  names   text[];
  mosts   int[];
begin
  if not exists (select from worker where not dead and host_names <> '{}')
     and not exists (select from bucket where learned_limit is not null) then
    return;  -- as mostly: all workers ask, and together twice a second
  end if;
  if not pg_try_advisory_xact_lock(hashtextextended('reelhaul.learned.' || current_schema(), 0)) then
    return;
  end if;
  select array_agg(b.id), array_agg(b.name), array_agg(l.most) into changed, names, mosts
    from learned_limits() l
    full join (select id from bucket where learned_limit is not null) before on before.id = l.host_id
    join bucket b on b.id = coalesce(l.host_id, before.id)
   where b.learned_limit is distinct from l.most;
  if changed is null then
    return;
  end if;
  perform pass_gate();
  perform from bucket where id = any(changed) order by id for no key update;
  -- A bucket that nobody needs may have been freed meanwhile.
  update bucket b set learned_limit = u.most
    from unnest(changed, names, mosts) u(id, name, most) where b.id = u.id and b.scope = 'host' and b.name = u.name;
  perform put_limits_in_force(array_fill('host'::text, array[cardinality(names)]), names);
end $$;

-- Tasks have failed at these servers, as they would if the servers were out. Returns for each whether its server is, so that
-- the attempt does not count. `outs`: the worker knows that the server has served tasks, and it has seen none served since
-- `failings` (microseconds) ago. It need not know of an outage that others have found. If another worker has seen it serve since
-- then, it is not the server that is out; but one that nobody has seen serve for half a minute is. A server that is back soon
-- costs an attempt or two, and its tasks need not wait; one that was out minutes ago and goes again would cost them all.
-- `served_at` may be some seconds late.
create function note_failures(
  servers text[], hosts text[], wholes boolean[], outs boolean[], unreachables boolean[], failings bigint[], codes text[],
  messages text[]
) returns boolean[] language plpgsql as $$
declare
  answers boolean[] := array_fill(false, array[cardinality(servers)]);
  f       record;
  began   timestamptz;
  outage  server_outage;
begin
  for f in
    select * from unnest(servers, hosts, wholes, outs, unreachables, failings, codes, messages)
             with ordinality u(server, host, whole, is_out, unreachable, failing, code, message, n)
     order by server, n  -- so that no two calls wait for each other
  loop
    began := now() - make_interval(secs => f.failing / 1e6);
    select * into outage from server_outage where server = f.server;
    if found and outage.served_at is null then
      update server_outage
         set failed_at = now(), is_whole_host = is_whole_host and f.whole, is_unreachable = is_unreachable or f.unreachable,
             error_code = f.code, error_message = f.message
       where server = f.server and failed_at < now() - interval '1 s';  -- of many that fail together, one is enough
      answers[f.n] := is_on(outage);
    elsif f.is_out and coalesce(outage.served_at < greatest(began, now() - interval '30 s'), true)
          and f.failing >= (
            case when outage.failed_at > now() - interval '10 minutes' and outage.served_at < now() - interval '5 s'
                 then 1e6 else 5e6 end) then
      began := greatest(began, outage.served_at + interval '1 us');
      insert into server_outage
      values (f.server, f.host, f.whole, f.unreachable, began, now(), null, f.code, f.message)
          on conflict (server) do update
         set is_whole_host = excluded.is_whole_host, is_unreachable = excluded.is_unreachable, since = excluded.since,
             failed_at = excluded.failed_at, served_at = null, error_code = excluded.error_code,
             error_message = excluded.error_message
       where server_outage.served_at < excluded.since;
      answers[f.n] := true;
    end if;
  end loop;
  return answers;
end $$;

-- After a day attempts count again, because what has moved for good must not wait for ever; after an hour if the server can be
-- reached: it may be at odds with some files.
create function is_on(o server_outage) returns boolean language sql stable as $$
  select o.served_at is null and o.since >= now() - case when o.is_unreachable then interval '1 day' else interval '1 hour' end
$$;

-- When a task asks again: the longer a server has been out, the less often.
create function probe_at(o server_outage) returns timestamptz language sql immutable as $$
  select o.failed_at + greatest(interval '5 s', least(interval '30 s', o.failed_at - o.since))
$$;

-- These servers, of these hosts, have served a task so many microseconds ago. What was before an outage does not end it.
create function end_outages(servers text[], hosts text[], ages bigint[]) returns void language plpgsql as $$
begin
  perform from server_outage o left join unnest(servers, ages) s(server, age) on s.server = o.server
    where now() - make_interval(secs => s.age / 1e6) > greatest(o.since, o.served_at + interval '2 s')
       or o.host = any(hosts) and s.server is null and o.is_whole_host
    order by o.server for update of o;
  if not found then
    return;  -- as mostly
  end if;
  update server_outage o set served_at = now() - make_interval(secs => s.age / 1e6)
    from unnest(servers, ages) s(server, age)
   where o.server = s.server and now() - make_interval(secs => s.age / 1e6) > greatest(o.since, o.served_at + interval '2 s');
  -- Their hosts have servers that are not out.
  update server_outage set is_whole_host = false where host = any(hosts) and server <> all(servers) and is_whole_host;
end $$;

-- The limits of the hosts that are out: one task at a time asks, when it is time. Where none has asked for minutes, as if those
-- that are left do other things there, there is none.
create function outage_limits() returns table (host text, most int) language sql stable as $$
  select o.host, max(case when o.probe_at <= now() then 1 else 0 end)
    from server_outage o
   where o.is_on and o.probe_at > now() - interval '3 minutes'
   group by o.host
  having bool_and(o.is_whole_host)
$$;

-- Forgets outages of which nobody has heard for an hour, and puts the others in force. Must be a transaction of its own, too.
create function put_outages_in_force() returns void language plpgsql as $$
declare
  names text[];
  mosts int[];
begin
  if not exists (select from server_outage) and not exists (select from bucket where outage_limit is not null) then
    return;  -- as mostly
  end if;
  delete from server_outage
   where server = any(array(select server from server_outage where failed_at < now() - interval '1 hour'
                               for update skip locked));
  select array_agg(b.name), array_agg(o.most) into names, mosts
    from bucket b left join outage_limits() o on o.host = b.name
   where b.scope = 'host' and b.name = any(array(select host from outage_limits())
                                          || array(select name from bucket where outage_limit is not null))
     and b.outage_limit is distinct from o.most;
  if names is null then
    return;
  end if;
  perform pass_gate();
  perform from bucket where scope = 'host' and name = any(names) order by id for no key update;
  update bucket b set outage_limit = u.most
    from unnest(names, mosts) u(name, most) where b.scope = 'host' and b.name = u.name;
  perform put_limits_in_force(array_fill('host'::text, array[cardinality(names)]), names);
end $$;

-- Sets a queue's share among queues whose tasks have equal priority. What it is owed, and what it has had too much, are
-- numbers of tasks, and stay: its tag is as far from the virtual time as they are long with the new weight.
create function set_weight(queue_name text, new_weight float8) returns void language plpgsql as $$
declare
  v float8;
begin
  perform pass_gate();
  perform ensure_buckets(array['queue'], array[queue_name]);
  select max(start) into v from queue;
  update queue
     set weight = new_weight,
         tag = case when cursor_lane < 0 then tag * weight / new_weight else v + (tag - v) * weight / new_weight end
   where id = (select id from bucket where scope = 'queue' and name = queue_name);
end $$;
