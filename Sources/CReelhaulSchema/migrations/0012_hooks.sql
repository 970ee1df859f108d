-- Events that are to be posted to the web hook of their task. The relay adds a row before it discards the event; a worker
-- takes it, posts it, and deletes it.
create table hook_delivery (
  task_id       uuid not null,
  sequence      int  not null,
  url           text not null,
  host          text not null,  -- of the URL: a few deliveries go to one host at a time
  type          text not null,
  event         json not null,  -- as it is in the topic `events`
  attempt       int  not null default 0,
  run_at        timestamptz not null default now(),
  -- Until then a worker works on it.
  claimed_until timestamptz not null default '-infinity',
  error         text,
  created_at    timestamptz not null default now(),
  -- Nobody tries any more. The row stays for a week, for people to see.
  gave_up_at    timestamptz,
  primary key (task_id, sequence),
  constraint hook_given_up_has_error check (gave_up_at is null or error is not null)
) with (fillfactor = 70);

create index hook_delivery_due on hook_delivery (run_at) where gave_up_at is null;
create index hook_delivery_given_up on hook_delivery (gave_up_at) where gave_up_at is not null;

-- The web hooks of the tasks of a queue that have none of their own.
create table queue_hook (
  queue text primary key,
  url   text not null
);
