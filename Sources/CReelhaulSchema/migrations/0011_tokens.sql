-- The tokens of the HTTP API, and the sessions of browsers that were signed in with one. A row that is gone is revoked.
create table api_token (
  id           uuid primary key default gen_random_uuid(),
  name         text not null check (char_length(name) between 1 and 100),
  scope        text not null check (scope in ('read', 'write', 'admin')),
  queues       text[] check (cardinality(queues) > 0),              -- null: all
  hash         bytea not null unique check (octet_length(hash) = 32),  -- SHA-256 of the secret, which is not stored
  parent       uuid references api_token on delete cascade,         -- of a session: its token
  created_at   timestamptz not null default now(),
  expires_at   timestamptz,                                         -- null: never
  last_used_at timestamptz,                                         -- to the minute
  check (parent is null or expires_at is not null)
);

create unique index api_token_name on api_token (name) where parent is null;
create index api_token_parent on api_token (parent, created_at) where parent is not null;
