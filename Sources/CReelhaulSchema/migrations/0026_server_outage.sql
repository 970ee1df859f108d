-- Servers (host:port, or BUCKET.s3) that have served tasks and do so no more. What fails there uses up no attempt, and
-- where the host has no other server that serves, its tasks ask one at a time. `served_at`: since then it serves again.
create table server_outage (
  server         text primary key,
  host           text not null,
  is_whole_host  boolean not null,
  is_unreachable boolean not null,
  since          timestamptz not null,
  failed_at      timestamptz not null,
  served_at      timestamptz,
  error_code     text not null,
  error_message  text not null
);

-- 1 while a task may ask whether the host serves again, else 0; null if it is not out.
alter table bucket add outage_limit int check (outage_limit >= 0);

create index bucket_with_outage_limit on bucket (id) where outage_limit is not null;
