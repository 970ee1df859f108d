-- The queue whose web hook a delivery is for; null if its task names the URL. The task may be gone when the hook changes.
-- Deliveries of tasks that are gone by now stay with their URL.
alter table hook_delivery add column queue text;

update hook_delivery h set queue = coalesce(t.spec ->> 'queue', 'default')
  from task t
 where t.id = h.task_id and t.spec ->> 'notify' is null and h.gave_up_at is null;
