-- Deliveries are looked for host by host, so that a host with very many hides no other.
drop index hook_delivery_due;
create index hook_delivery_due on hook_delivery (host, run_at) where gave_up_at is null;

-- Removals of tasks that may have a web hook: where events of a removed task come before its removal, they are posted too.
create index outbox_removed on outbox ((task_ids[1])) where kind = 'removed' and specs is not null;
