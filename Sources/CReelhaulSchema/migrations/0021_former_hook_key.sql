-- URLs may be longer than an entry of an index.
alter table former_hook drop constraint former_hook_pkey;
create unique index former_hook_key on former_hook (queue, hashtextextended(url, 0));
