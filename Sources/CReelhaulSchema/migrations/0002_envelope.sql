-- A checkpoint becomes an envelope, whose payload belongs to the kind of the task; a task that succeeded has an output.

-- The schema's first version made its routines itself: from here on, the files of routines do. `unlimited` stays, since
-- tables depend on it.
drop trigger if exists run_begins on run;
drop trigger if exists run_ends on run;
drop trigger if exists run_stays on run;
do $$
declare
  routine regprocedure;
begin
  for routine in
    select oid from pg_proc
     where pronamespace = current_schema()::regnamespace
       and proname in (
         'announce', 'audit', 'begin_apply', 'begin_creation', 'bind_fleet', 'claim', 'claimed', 'control', 'count_runs',
         'creation_key', 'end_runs', 'enqueue', 'ensure_buckets', 'hold_lanes', 'lane_ids', 'lead', 'list_tasks',
         'lock_tasks', 'pass_gate', 'publish', 'record_checkpoints', 'record_progress', 'refuse_move', 'register_worker',
         'release_tasks', 'renew', 'reserve_positions', 'retire', 'set_limit', 'set_weight', 'settle', 'sibling_lane',
         'submit', 'sweep', 'task_documents', 'tend_inbox', 'tidy_buckets', 'tidy_lanes', 'unblock', 'wake_lanes',
         'withdraw')
  loop
    execute 'drop function ' || routine;
  end loop;
end $$;
drop view if exists task_document, unused_lane;

-- What a run has recorded of its work. The payload belongs to the kind of the task; what is queried is a column.
alter table checkpoint
  add version     smallint,  -- of the payload's form
  add bytes_done  bigint,
  add bytes_total bigint,
  add stage       text,      -- the stage `publishing` is a state of the task, too
  add payload     json;

-- All that there is belongs to downloads. A payload has a limit, so only the 1,000 longest ranges are kept: a download
-- that had more of them fetches the rest again.
update checkpoint c
   set version = 1, bytes_done = kept.bytes, bytes_total = (k.identity ->> 'size')::bigint,
       stage = case when k.publishing is not null then 'publishing' end,
       payload = ('{"identity":' || k.identity || ',"volume":"' || k.volume || '","staging":' || to_json(k.staging_name)
                  || ',"done":[' || kept.bounds || ']' || coalesce(',"tailCRC":' || k.tail_crc, '')
                  || coalesce(',"publishing":"' || encode(k.publishing, 'hex') || '"', '') || '}')::json
  from checkpoint k
 cross join lateral (
   select coalesce(sum(upper(r) - lower(r)), 0) bytes,
          coalesce(string_agg(lower(r) || ',' || upper(r), ',' order by r), '') bounds
     from (select r from unnest(k.done) r order by upper(r) - lower(r) desc limit 1000) longest) kept
 where k.task_id = c.task_id;

alter table checkpoint
  alter version set not null,
  alter bytes_done set not null,
  alter payload set not null,
  add constraint checkpoint_payload_is_small check (octet_length(payload::text) <= 65536),
  drop identity,
  drop volume,
  drop staging_name,
  drop done,
  drop tail_crc,
  drop publishing;

-- Not valid: the column is new, so no row needs the look, which would take long.
alter table task
  add output json,
  add constraint task_output_is_of_success check (output is null or state = 'succeeded') not valid;
