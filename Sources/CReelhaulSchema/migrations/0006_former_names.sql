-- The former name of a kind counts as the kind: one limit for all its names. Null: a name counts as itself.
alter table bucket add counts_as int;

create index bucket_former_names on bucket (counts_as) where counts_as is not null;

-- A payload may have a handler's own checkpoint, of 64 KiB, and besides those of the transfers that it makes.
alter table checkpoint
  drop constraint checkpoint_payload_is_small,
  add constraint checkpoint_payload_is_bounded check (octet_length(payload::text) <= 262144) not valid;
