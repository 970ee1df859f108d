import ReelhaulPostgres

/// The statements of ``PostgresStore``. Each calls a function of the schema, or is a simple read.
enum StoreQueries {
  // MARK: Commands

  /// $1: whether the batch must run alone; $2: the existing tasks that it names.
  static let beginApply = PostgresStatement("select begin_apply($1, $2)", writes: true)

  static let endApply = PostgresStatement("select wake_lanes()", writes: true)

  /// $1–$6: the keys of the lanes; $7–$12: the tasks; $13, $14: pairs of a task and one that it waits for. Returns one
  /// row: the ids of the new tasks.
  static let submit = PostgresStatement(
    "select submit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)", writes: true)

  /// $1: command ids; $2: task ids; $3: actions; $4: priorities; $5: whether files are deleted too; $6: actors. Returns
  /// one row per command, in order.
  static let control = PostgresStatement(
    "select outcome, worker_boot, code, reason from control($1, $2, $3, $4, $5, $6)", writes: true)

  // MARK: Workers

  static let topicPrefix = PostgresStatement("select topic_prefix from fleet")

  static let bind = PostgresStatement("select bind_fleet($1)", writes: true)

  static let register = PostgresStatement(
    "select register_worker($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)", writes: true)

  /// Returns no row if the lease is gone. Otherwise returns a row per intent, or one row of nulls; and a row without a
  /// task if the worker was asked to end.
  static let renew = PostgresStatement("select task_id, what from renew($1)", writes: true)

  static let recordProgress = PostgresStatement("select record_progress($1, $2, $3, $4, $5)", writes: true)

  static let announce = PostgresStatement("select announce($1, $2, $3)", writes: true)

  /// $1: worker; $2–$5: names of storages, their free, promised and total bytes.
  static let measure = PostgresStatement("select measure_storages($1, $2, $3, $4, $5)", writes: true)

  /// $1: worker; $2–$4: hosts, their limits, and whether they refuse.
  static let tellHostLimits = PostgresStatement("select tell_host_limits($1, $2, $3, $4)", writes: true)

  static let putLearnedLimitsInForce = PostgresStatement("select put_learned_limits_in_force()", writes: true)
  static let putOutagesInForce = PostgresStatement("select put_outages_in_force()", writes: true)

  /// $1: servers; $2: their hosts, in any order; $3: how many microseconds ago each has served.
  static let endOutages = PostgresStatement("select end_outages($1, $2, $3)", writes: true)

  /// $1–$5: servers, their hosts, whether the worker knows no other server of the host, whether it is out, and whether it cannot
  /// be reached; $6: for how many microseconds; $7, $8: codes and messages.
  static let noteFailures = PostgresStatement("select note_failures($1, $2, $3, $4, $5, $6, $7, $8)", writes: true)

  static let limitedHosts = PostgresStatement(
    "select name from bucket where scope = 'host' and learned_limit is not null and run_limit <= learned_limit")

  static let leave = PostgresStatement("update worker set draining = true where id = $1 and not dead", writes: true)

  /// $1: microseconds.
  static let renewedWithin = PostgresStatement(
    """
    select id from worker
     where not dead and not draining and lease_until - lease_seconds * interval '1 s' > clock_timestamp() - $1 * interval '1 us'
     order by id
    """)

  static let time = PostgresStatement("select clock_timestamp() now")
  static let retire = PostgresStatement("select retire($1)", writes: true)

  // MARK: Runs

  /// $1: worker; $2: how many tasks; $3: the number of the call. Returns specifications only of tasks that start for the
  /// first time.
  static let claim = PostgresStatement("select task_id, spec from claim_tasks($1, $2, $3)", writes: true)

  /// $1: worker; $2: up to how many ready tasks are counted. No row if a claim would find nothing.
  static let demand = PostgresStatement("select ready, running, workers from demand($1, $2)")

  /// $1: the ids of the other tasks that were just claimed; $2: the worker. No row for one that it has lost since.
  static let claimed = PostgresStatement(
    """
    select task_id, epoch, attempt, priority, spec,
           checkpoint_version, generation, bytes_done, bytes_total, stage, payload,
           checkpoint_version is null and had_checkpoint(task_id) begins_anew
      from claimed($1) c
     where exists (select from run r where r.task_id = c.task_id and r.epoch = c.epoch and r.worker_id = $2 offset 0)
    """)

  static let checkpoint = PostgresStatement(
    "select record_checkpoints($1, $2, $3, $4, $5, $6, $7, $8)", writes: true)

  static let settle = PostgresStatement("select settle($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)", writes: true)

  // MARK: Clean-up

  static let claimCleanups = PostgresStatement(
    """
    select id, kind, storage, source_storage, spec, version, generation, bytes_done, bytes_total, stage, payload, files,
           attempt
      from claim_cleanups($1, $2, $3, $4, $5)
    """, writes: true)
  static let finishCleanups = PostgresStatement("select finish_cleanups($1)", writes: true)
  static let returnCleanups = PostgresStatement("select return_cleanups($1)", writes: true)
  static let postponeCleanup = PostgresStatement("select postpone_cleanup($1, $2, $3)", writes: true)

  // MARK: Housekeeping

  static let sweep = PostgresStatement("select expired, due, workers from sweep()", writes: true)

  /// $1: microseconds.
  static let endStalledBatches = PostgresStatement(
    "select end_stalled_batches(make_interval(secs => $1 / 1e6))", writes: true)
  static let restLanes = PostgresStatement("select rest_lanes()", writes: true)

  static let tidyLanes = PostgresStatement("select tidy_lanes()", writes: true)
  static let dropOldInbox = PostgresStatement("select drop_old_inbox()", writes: true)
  static let tidyBuckets = PostgresStatement("select tidy_buckets()", writes: true)

  // MARK: Limits

  static let setLimit = PostgresStatement("select set_limit($1, $2, $3)", writes: true)
  static let setWeight = PostgresStatement("select set_weight($1, $2)", writes: true)
  static let limits = PostgresStatement(
    """
    with former as materialized (
      select counts_as, sum(used)::int used, array_agg(name order by name) names
        from bucket where counts_as is not null group by counts_as)
    select b.scope, b.name, b.used + coalesce(f.used, 0) used, nullif(b.run_limit, unlimited()) run_limit, q.weight,
           b.declared_limit, b.learned_limit, b.outage_limit, o.server outage_server, o.since outage_since, o.probe_at, o.error_code,
           o.error_message, coalesce(f.names, '{}') former_names
      from bucket b
      left join (
        select distinct on (host) s.*, s.probe_at from server_outage s
         where s.is_on and s.probe_at > now() - interval '3 minutes' order by host, since) o
        on b.scope = 'host' and o.host = b.name
      left join former f on f.counts_as = b.id
      left join lateral (select weight from queue where id = b.id offset 0) q on true
     where b.scope = 'total'
        or b.name <> '' and b.counts_as is null
           and (b.used + coalesce(f.used, 0) > 0 or b.run_limit < unlimited() or b.declared_limit is not null
                or q.weight <> 1 or o.host is not null)
    """)

  // MARK: Relay

  static let lead = PostgresStatement("select lead('relay', $1, $2)", writes: true)

  static let pendingRows = PostgresStatement("select min(id) lowest, max(id) highest from outbox")

  /// $1: the largest number of rows; $2: the number of events after which no further row is read; $3: the rows that are
  /// not read; $4: bytes of specifications and outputs after which no further row is read. It never uses `id > last`,
  /// because a lower id may commit later.
  static let pendingEvents = PostgresStatement(
    """
    select id, kind, at, task_ids, sequences, actor, specs, created_ats, worker, sizes, digests, outputs, generations, has_next
      from (select o.*, sum(cardinality(task_ids)) over earlier before, sum(bytes) over earlier bytes_before,
                   lead(id) over (order by id) is not null has_next
              from (select *, coalesce(pg_column_size(specs), 0) + coalesce(pg_column_size(outputs), 0) bytes
                      from outbox where id <> all($3) order by id limit $1) o
            window earlier as (order by id rows between unbounded preceding and 1 preceding)) counted
     where coalesce(before, 0) < $2 and coalesce(bytes_before, 0) < $4
     order by id
    """)

  /// $1: tasks whose removal has not been published.
  static let removedSpecs = PostgresStatement(
    """
    select task_ids[1] id, specs[1] spec from outbox
     where kind = 'removed' and specs is not null and task_ids[1] = any($1)
    """)

  static let discardEvents = PostgresStatement("delete from outbox where id = any($1)", writes: true)
  /// $1: row; $2: how many; $3, $4: task and number of the first event. If the events are already removed, another
  /// event is the first, and the statement does nothing.
  static let discardFirstEvents = PostgresStatement(
    """
    update outbox
       set task_ids = task_ids[$2 + 1:], sequences = sequences[$2 + 1:], specs = specs[$2 + 1:],
           created_ats = created_ats[$2 + 1:], sizes = sizes[$2 + 1:], digests = digests[$2 + 1:],
           outputs = outputs[$2 + 1:], generations = generations[$2 + 1:]
     where id = $1 and task_ids[1] = $3 and sequences[1] = $4
    """, writes: true)

  // MARK: Reading

  /// The columns that ``PostgresStore`` makes a document of.
  private static let documentColumns = """
    id, state, priority, spec, attempt, epoch, sequence, generation, worker, bytes_done, bytes_total, rate,
    created_at, started_at, finished_at, run_at, sha256, error_code, error_message, error_class, error_retry_after,
    output
    """

  static let documents = PostgresStatement("select \(documentColumns) from task_documents($1)")
  /// $1: ids; $2: bytes of specifications and outputs after which no further task is read. `bytes`: how many they come
  /// to so far.
  static let pendingDocuments = PostgresStatement(
    """
    select \(documentColumns), bytes
      from (select s.*, sum(size) over (rows unbounded preceding) bytes
              from (select *, pg_column_size(spec) + coalesce(pg_column_size(output), 0) size
                      from task_documents($1)) s) sized
     where bytes - size < $2
    """)
  /// $1: ids. Returns a row per task that exists. The function finds tasks by their keys, whatever the statistics of
  /// the tables are.
  static let states = PostgresStatement("select id, state from task_documents($1)")
  static let removed = PostgresStatement("select id, succeeded from removed_task where id = any($1)")
  /// $1, $2: ranges of ids. The places of those in which a task is not over.
  static let unfinished = PostgresStatement("select place from unfinished($1, $2) place")
  /// $1: whole bytes that the id ends with; $2: all its last digits; $3: the most rows. Without an index of its own,
  /// which every submit would pay for: comparing bytes first, a million ids take 0.1 to 0.2 s.
  static let idsEnding = PostgresStatement(
    """
    select id from task
     where case when substring(uuid_send(id) from 17 - octet_length($1)) = $1
                then replace(id::text, '-', '') like '%' || $2 end
     order by id desc limit $3
    """)
  private static let page = """
    find_tasks($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
    """
  /// $1…$15: as `find_tasks` has them. A row per task, or one without a task; each has how the page ended.
  static let list = PostgresStatement(
    """
    select \(documentColumns), is_last, is_cut, last_at, last_id
      from \(page) f left join lateral task_documents(f.ids) d on true
    """)
  /// The same, one row with the ids.
  static let find = PostgresStatement("select ids, is_last, is_cut, last_at, last_id from \(page)")

  static let workers = PostgresStatement(
    """
    select w.boot, w.host, w.pid, w.started_at, w.lease_until, not w.dead and w.lease_until > now() is_live,
           w.draining, w.version,
           (extract(epoch from now() - w.lease_until) * 1000000)::bigint + w.lease_seconds * 1000000::bigint lease_age,
           w.volume_names, w.volume_ids, w.label_names, w.label_values, coalesce(r.running, 0) running,
           coalesce(r.rate, 0) rate,
           w.kinds
      from worker w
      left join (select worker_id, count(*) running, sum(rate)::bigint rate from run group by worker_id) r
        on r.worker_id = w.id
     order by w.id
    """)

  /// The sets of storages that live workers can use; no row if there is no live worker.
  static let usableStorage = PostgresStatement(
    "select distinct volume_names from worker where not dead and lease_until > now()")

  /// A row for each kind with its storages, empty where it needs none; at least one row, which may have no kind. Each has
  /// the age of the oldest event in microseconds.
  static let backlog = PostgresStatement(
    """
    select w.kind, w.storage, w.source_storage,
           coalesce((select (extract(epoch from now() - at) * 1000000)::bigint from outbox order by id limit 1), 0) event_age
      from (values (true)) always
      left join waiting_needs() w on true
    """)

  static let audit = PostgresStatement("select violation from audit() violation")
}
