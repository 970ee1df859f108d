-- How many tasks of these hosts a worker can make use of at once: more would stand in line for a connection, or the host
-- refuses them.
alter table worker
  add host_names   text[]    not null default '{}',
  add host_limits  int[]     not null default '{}',
  add host_refuses boolean[] not null default '{}';

-- The limit of a host that follows from what the workers tell. `run_limit` is what holds: the operator's, or else this one.
alter table bucket add learned_limit int check (learned_limit > 0);

create index bucket_with_learned_limit on bucket (id) where learned_limit is not null;
