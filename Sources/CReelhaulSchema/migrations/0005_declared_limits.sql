-- The limit of a kind may be declared by its handler. `run_limit` is what holds: the operator's, or else the declared one.
alter table bucket
  add operator_limit int check (operator_limit >= 0),
  add declared_limit int check (declared_limit >= 0);

update bucket set operator_limit = run_limit where run_limit < unlimited();
