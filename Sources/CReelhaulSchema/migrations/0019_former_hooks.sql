-- The URLs that web hooks of queues had, as long as deliveries for them may wait that shall go to the present one.
create table former_hook (
  queue text not null,
  url   text not null,
  primary key (queue, url)
);
