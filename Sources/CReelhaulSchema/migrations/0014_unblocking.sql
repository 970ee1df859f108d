-- Succeeded tasks for which others may still wait: they had more dependents than one transaction releases.
create table unblocking (
  after_id uuid primary key
);
