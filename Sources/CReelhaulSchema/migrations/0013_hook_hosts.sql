-- Deliveries are looked for host by host, so that a host with very many hides no other.
drop index hook_delivery_due;
create index hook_delivery_due on hook_delivery (host, run_at) where gave_up_at is null;
