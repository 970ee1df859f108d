-- Stores a token for `lifetime` microseconds (null: for ever). Returns no row if its name is taken by one that holds.
-- The secrets of tokens are random, so expired rows are deleted only to keep the table small, and to free their names.
create function create_token(its_name text, its_scope text, its_queues text[], lifetime bigint, its_hash bytea)
returns setof api_token language plpgsql as $$
begin
  delete from api_token where expires_at <= now();
  return query
    insert into api_token (name, scope, queues, hash, expires_at)
    values (its_name, its_scope, its_queues, its_hash, now() + lifetime * interval '1 us')
        on conflict (name) where parent is null do nothing
    returning *;
end $$;

-- Stores a session of a token, and keeps only the newest `most` of that token. Returns no row if the token does not hold.
create function create_session(its_parent uuid, its_hash bytea, lifetime bigint, most int)
returns setof api_token language plpgsql as $$
begin
  delete from api_token where expires_at <= now();
  -- Locked, so that a revocation sees the session or comes first, and sessions are counted one after the other.
  perform from api_token where id = its_parent and parent is null for update;
  if not found then
    return;
  end if;
  delete from api_token
   where id in (select id from api_token where parent = its_parent order by created_at desc, id offset most - 1);
  return query
    insert into api_token (name, scope, queues, hash, parent, expires_at)
    select name, scope, queues, its_hash, id, least(now() + lifetime * interval '1 us', expires_at)
      from api_token where id = its_parent
    returning *;
end $$;

-- The token with this hash, if it holds. Notes its use once a minute.
create function use_token(its_hash bytea) returns setof api_token language plpgsql as $$
begin
  -- A database that takes no writes refuses also an update of no row.
  if current_setting('transaction_read_only') = 'off' then
    update api_token set last_used_at = now()
     where hash = its_hash and (expires_at is null or expires_at > now())
       and (last_used_at is null or last_used_at < now() - interval '1 minute');
  end if;
  return query
    select * from api_token where hash = its_hash and (expires_at is null or expires_at > now());
end $$;

-- Ends the token with this name or id, with its sessions, and cancels the operations that it began. Older operations with
-- the name are of another token.
create function revoke_token(name_or_id text) returns setof api_token language sql as $$
  with revoked as (
    delete from api_token
     where parent is null and (name = name_or_id or id::text = lower(name_or_id))
       and (expires_at is null or expires_at > now())
    returning *
  ), canceled as (
    update operation o set state = 'canceled'
      from revoked r
     where o.actor = r.name and o.created_at >= r.created_at and o.state = 'running'
  )
  select * from revoked
$$;
