-- An index of the open deliveries alone would be read as a whole, in its order, where a look-up by key is meant. This one
-- serves a question for the time and nothing else.
drop index hook_delivery_by_time;
create index hook_delivery_open on hook_delivery ((case when gave_up_at is null then run_at end));
