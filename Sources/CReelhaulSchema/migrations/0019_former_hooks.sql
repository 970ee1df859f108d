-- The URLs that web hooks of queues had, in their order, as long as deliveries for them may wait that shall go to the present
-- one.
create table former_hook (
  queue text   not null,
  url   text   not null,
  added bigint generated always as identity,
  primary key (queue, url)
);
