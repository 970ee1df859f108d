-- Every worker asks whether any delivery is due. There may be many hosts for which none is.
create index hook_delivery_by_time on hook_delivery (run_at) where gave_up_at is null;
