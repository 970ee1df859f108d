-- Requeues what workers held whose lease is over, and makes due what was delayed; up to 5,000 tasks each. Never waits
-- for a worker that is alive: it locks the worker's row, and looks at the lease under that lock.
create function sweep() returns table (expired int, due int)
language plpgsql set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off as $$
declare
  gone    int[];
  tuples  tid[];
  tasks   uuid[];
  n       int;
begin
  perform tend_inbox();
  expired := 0; due := 0;

  with over as (
    select id from worker where not dead and lease_until < now() order by id for update skip locked)
  update worker set dead = true where id in (select id from over);
  select array_agg(id) into gone from (select id from worker where dead order by id for update skip locked) w;

  if gone is not null then
    select array_agg(l.ctid), array_agg(l.task_id) into tuples, tasks
      from (select ctid, task_id from run where worker_id = any(gone) order by task_id limit 5000
              for update skip locked) l;
    n := coalesce(cardinality(tuples), 0);
    if n > 0 then
      perform end_runs(
        tuples, tasks, array_fill('lost'::text, array[n]), array_fill(null::interval, array[n]),
        array_fill(null::bytea, array[n]), array_fill(null::bigint, array[n]), array_fill(null::text, array[n]),
        array_fill(null::text, array[n]), array_fill(null::text, array[n]), array_fill(null::int, array[n]));
      expired := n;
    end if;
    delete from worker w where id = any(gone) and not exists (select from run r where r.worker_id = w.id);
  end if;

  -- The task's row first: a control command that has it may be taking it out of `delayed`.
  select array_agg(id) into tasks
    from (select t.id
            from (select task_id from delayed where run_at <= now() order by run_at limit 5000) d
            join task t on t.id = d.task_id
             for no key update of t skip locked) l;
  if tasks is not null then
    with moved as (delete from delayed where task_id = any(tasks) and run_at <= now() returning task_id, run_at)
    select array_agg(task_id order by run_at) into tasks from moved;
    perform enqueue(tasks, false);
    due := coalesce(cardinality(tasks), 0);
  end if;
  return next;
end $$;
