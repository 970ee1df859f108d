-- A task may touch two storages: that of its destination, and that of its source where it is another one.
-- 0: there is no second storage.
alter table lane
  add source_storage_id int not null default 0,
  drop constraint lane_rank_queue_id_kind_id_host_id_storage_id_key,
  add unique (rank, queue_id, kind_id, host_id, storage_id, source_storage_id);

alter table run
  add source_storage_id int not null default 0;
