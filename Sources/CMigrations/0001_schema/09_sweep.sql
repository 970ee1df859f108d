-- Requeues what workers held whose lease is over, and makes due what was delayed; up to 5,000 tasks each. Never waits
-- for a worker that is alive: it locks the worker's row, and looks at the lease under that lock.
create function sweep() returns table (expired int, due int)
language plpgsql set plan_cache_mode = force_generic_plan
set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off as $$
declare
  gone        int[];
  tuples      tid[];
  lost        uuid[];
  delays_over uuid[];
begin
  perform tend_inbox();
  expired := 0; due := 0;

  with over as (
    select id from worker where not dead and lease_until < now() order by id for update skip locked)
  update worker set dead = true where id in (select id from over);
  select array_agg(id) into gone from (select id from worker where dead order by id for update skip locked) w;

  select array_agg(l.ctid), array_agg(l.task_id) into tuples, lost
    from (select ctid, task_id from run where gone is not null and worker_id = any(gone) order by task_id limit 5000
            for update skip locked) l;
  perform lock_tasks(lost);

  -- The task's row first: a control command that has it may be taking it out of `delayed`.
  select array_agg(id) into delays_over
    from (select t.id
            from (select task_id from delayed where run_at <= now() order by run_at limit 5000) d
            join task t on t.id = d.task_id
             for no key update of t skip locked) l;
  if delays_over is not null then
    with moved as (delete from delayed where task_id = any(delays_over) and run_at <= now() returning task_id, run_at)
    select array_agg(task_id order by run_at) into delays_over from moved;
    perform enqueue(delays_over, false);
    due := coalesce(cardinality(delays_over), 0);
  end if;

  expired := coalesce(cardinality(lost), 0);
  if expired > 0 then
    perform end_runs(
      tuples, lost, array_fill('lost'::text, array[expired]), array_fill(null::interval, array[expired]),
      array_fill(null::bytea, array[expired]), array_fill(null::bigint, array[expired]),
      array_fill(null::text, array[expired]), array_fill(null::text, array[expired]),
      array_fill(null::text, array[expired]), array_fill(null::int, array[expired]));
  else
    perform wake_lanes();
  end if;
  delete from worker w where id = any(gone) and not exists (select from run r where r.worker_id = w.id);
  return next;
end $$;
