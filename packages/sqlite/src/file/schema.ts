/**
 * Schema of the file. Rows reference each other by small integers; long names are stored once. Value columns contain
 * JSON.
 *
 * Tables written in every superstep have no index: the key of a checkpoint consists of branch and id, the key of a
 * delta of channel (of a branch) and checkpoint, with 24 bits for the id. So a state, a page of
 * history and the head of a branch are key ranges.
 *
 * Child namespaces are rows of `branches`, and a thread can have very many. So a partial index lists the branches
 * without child namespaces, and a separate table finds a checkpoint of a child namespace by thread and id.
 *
 * Branches, events and artifacts do not reference their thread as a foreign key: the row of a deleted thread is
 * removed first, and the history in pieces afterwards.
 *
 * For a pruned range of a branch, an anchor contains the key and hash of the last checkpoint, the start of the
 * remaining chain, and the hash of the remaining deltas.
 *
 * A migration is a list of statements, each exactly as stored in `sqlite_master`: a file with a different schema is
 * refused.
 */

/**
 * Page size of a new file. Small pages: a commit writes whole pages, but changes only a few hundred bytes in several
 * tables, and a row that is larger than a page continues in pages of its own. A page of 2 KB holds a single row of 1.1
 * KB, such as a message, and stays half empty.
 */
export const pageBytes = 1024;

/** "SWrt": application id of the file. */
export const applicationId = 0x53577274;

/**
 * SHA-256 of the schema of a new file, so that opening a file does not create the tables in memory for comparison. A
 * test compares the hash with the statements below.
 */
export const schemaHash = "fbc3fbc193f480ea780397c0f4b668e7cc0843a5913b2b7e4cea51ccec58ca3f";

/** Forward only: the version of a file is its number of applied migrations. */
export const migrations: readonly (readonly string[])[] = [
  [
    `CREATE TABLE graphs (
  key INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  shape TEXT NOT NULL,
  outline TEXT,
  outline_sum INTEGER,
  UNIQUE (name, version, shape)
) STRICT`,
    `CREATE TABLE settings (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID`,
    `CREATE TABLE owners (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  pid INTEGER NOT NULL,
  since INTEGER NOT NULL
) STRICT`,
    `CREATE TABLE threads (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  salt TEXT NOT NULL,
  graph INTEGER REFERENCES graphs,
  head TEXT NOT NULL,
  run INTEGER,
  status TEXT NOT NULL,
  owner INTEGER,
  epoch INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  checkpoint INTEGER NOT NULL,
  queued INTEGER NOT NULL,
  messages INTEGER NOT NULL,
  requests INTEGER NOT NULL,
  input INTEGER NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  secret BLOB,
  tenant TEXT,
  user TEXT,
  displaced TEXT
) STRICT`,
    `CREATE INDEX threads_by_change ON threads (updated)`,
    `CREATE INDEX threads_by_tenant ON threads (tenant, updated) WHERE tenant IS NOT NULL`,
    `CREATE INDEX threads_by_user ON threads (user, tenant, updated) WHERE user IS NOT NULL`,
    // Nearly all threads are done, and a run changes no entry at its start and at its end: those are counted otherwise.
    `CREATE INDEX threads_by_status ON threads (tenant, status) WHERE status NOT IN ('running', 'done')`,
    `CREATE INDEX threads_with_queue ON threads (key) WHERE queued > 0`,
    // Finds the threads with a new input: each input gives its thread the next number of the file.
    `CREATE INDEX threads_by_input ON threads (input) WHERE input > 0`,
    `CREATE INDEX threads_with_requests ON threads (key) WHERE requests > 0`,
    // Keys of deleted threads with rows that remain. No new thread gets such a key.
    `CREATE TABLE removed_threads (
  key INTEGER PRIMARY KEY,
  at INTEGER NOT NULL
) STRICT`,
    `CREATE TABLE thread_details (
  thread INTEGER PRIMARY KEY REFERENCES threads ON DELETE CASCADE,
  title ANY,
  metadata TEXT,
  sum INTEGER NOT NULL
) STRICT`,
    `CREATE TABLE thread_metadata (
  thread INTEGER NOT NULL REFERENCES threads ON DELETE CASCADE,
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  tenant TEXT NOT NULL,
  PRIMARY KEY (thread, name)
) STRICT, WITHOUT ROWID`,
    `CREATE INDEX threads_by_metadata ON thread_metadata (value, name, tenant, thread)`,
    `CREATE TABLE branches (
  key INTEGER PRIMARY KEY,
  thread INTEGER NOT NULL,
  name TEXT NOT NULL,
  parent INTEGER,
  origin INTEGER,
  run INTEGER,
  UNIQUE (thread, name)
) STRICT`,
    `CREATE INDEX branches_of_thread ON branches (thread) WHERE instr(name, '/') = 0`,
    `CREATE INDEX branches_by_origin ON branches (parent, origin) WHERE origin IS NOT NULL`,
    `CREATE TABLE channels (
  key INTEGER PRIMARY KEY,
  branch INTEGER NOT NULL REFERENCES branches ON DELETE CASCADE,
  name TEXT NOT NULL,
  UNIQUE (branch, name)
) STRICT`,
    `CREATE TABLE runs (
  key INTEGER PRIMARY KEY,
  thread INTEGER NOT NULL REFERENCES threads ON DELETE CASCADE,
  branch INTEGER NOT NULL,
  id TEXT NOT NULL,
  graph TEXT NOT NULL,
  version INTEGER NOT NULL,
  status TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  started INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  ended INTEGER,
  error ANY,
  name TEXT,
  metadata TEXT,
  input ANY,
  more ANY,
  sum INTEGER,
  tenant TEXT,
  user TEXT,
  priority INTEGER,
  turn TEXT,
  preempts INTEGER
) STRICT`,
    `CREATE UNIQUE INDEX runs_by_id ON runs (id, thread)`,
    `CREATE INDEX runs_by_tenant ON runs (tenant) WHERE tenant IS NOT NULL`,
    `CREATE INDEX runs_of_tenant_by_status ON runs (tenant, status) WHERE tenant IS NOT NULL AND status <> 'done'`,
    `CREATE INDEX runs_by_user ON runs (user, tenant) WHERE user IS NOT NULL`,
    // Nearly all runs are done: those are listed in key order.
    `CREATE INDEX runs_by_status ON runs (status) WHERE status <> 'done'`,
    `CREATE INDEX runs_by_graph ON runs (graph)`,
    `CREATE INDEX runs_by_start ON runs (started)`,
    `CREATE INDEX queued_runs ON runs (thread) WHERE status = 'queued'`,
    // Queued runs that can start, in the order of claims; `turn` is the tenant, or '' for none.
    `CREATE INDEX startable_runs ON runs (graph, version, priority DESC, turn) WHERE turn IS NOT NULL`,
    `CREATE INDEX preempting_runs ON runs (preempts) WHERE status = 'queued' AND preempts IS NOT NULL`,
    // Finds the newest and the unfinished runs of a thread, independent of its number of runs.
    `CREATE INDEX runs_of_thread ON runs (thread)`,
    `CREATE INDEX unfinished_runs ON runs (thread) WHERE status NOT IN ('done', 'cancelled')`,
    `CREATE UNIQUE INDEX runs_by_name ON runs (thread, name) WHERE name IS NOT NULL`,
    // Tenant served last, by the graphs of the claiming processes and the priority.
    `CREATE TABLE tenant_rotations (
  graphs TEXT NOT NULL,
  priority INTEGER NOT NULL,
  tenant TEXT NOT NULL,
  PRIMARY KEY (graphs, priority)
) STRICT, WITHOUT ROWID`,
    `CREATE TABLE run_metadata (
  run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID`,
    `CREATE INDEX runs_by_metadata ON run_metadata (name, value, run)`,
    `CREATE TABLE checkpoints (
  key INTEGER PRIMARY KEY,
  step INTEGER NOT NULL,
  parent INTEGER,
  source TEXT NOT NULL,
  nodes TEXT NOT NULL,
  run ANY NOT NULL,
  at INTEGER NOT NULL,
  duration REAL NOT NULL,
  seq INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  graph INTEGER NOT NULL,
  hash TEXT NOT NULL,
  effects TEXT,
  effects_sum INTEGER,
  control ANY NOT NULL
) STRICT`,
    `CREATE TABLE child_checkpoints (
  key INTEGER PRIMARY KEY,
  branch INTEGER NOT NULL
) STRICT`,
    `CREATE TABLE deltas (
  key INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  base INTEGER NOT NULL,
  count INTEGER,
  sum INTEGER NOT NULL,
  text ANY NOT NULL
) STRICT`,
    `CREATE TABLE anchors (
  key INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL,
  hash TEXT NOT NULL,
  remaining_hash TEXT NOT NULL
) STRICT`,
    `CREATE TABLE effects (
  key INTEGER PRIMARY KEY,
  branch INTEGER NOT NULL REFERENCES branches ON DELETE CASCADE,
  step INTEGER NOT NULL,
  task TEXT NOT NULL,
  call TEXT NOT NULL,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  effect TEXT NOT NULL,
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  idempotency TEXT NOT NULL,
  started INTEGER NOT NULL,
  ended INTEGER,
  stage TEXT,
  args ANY,
  sum INTEGER,
  processes INTEGER,
  attempt_log TEXT,
  usage TEXT,
  outcome ANY,
  UNIQUE (branch, step, task, call)
) STRICT`,
    `CREATE INDEX once_effects ON effects (branch) WHERE effect = 'once'`,
    `CREATE TABLE interrupts (
  key INTEGER PRIMARY KEY,
  branch INTEGER NOT NULL REFERENCES branches ON DELETE CASCADE,
  id TEXT NOT NULL,
  step INTEGER NOT NULL,
  task TEXT NOT NULL,
  node TEXT NOT NULL,
  name TEXT NOT NULL,
  payload ANY NOT NULL,
  schema TEXT,
  raised INTEGER NOT NULL,
  expires INTEGER,
  answer ANY,
  answered INTEGER,
  more ANY,
  awaited INTEGER NOT NULL,
  sum INTEGER NOT NULL,
  UNIQUE (branch, id)
) STRICT`,
    `CREATE INDEX awaited_interrupts ON interrupts (key) WHERE awaited = 1`,
    `CREATE INDEX awaited_interrupts_of_branch ON interrupts (branch) WHERE awaited = 1`,
    `CREATE TABLE timers (
  branch INTEGER NOT NULL REFERENCES branches ON DELETE CASCADE,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  generation INTEGER NOT NULL,
  due INTEGER NOT NULL,
  about TEXT NOT NULL,
  sum INTEGER NOT NULL,
  owner INTEGER,
  owned_until INTEGER,
  PRIMARY KEY (branch, id)
) STRICT, WITHOUT ROWID`,
    // By kind: an engine reads the due timers of a kind, whatever else is due.
    `CREATE INDEX timers_by_due ON timers (kind, due, id)`,
    `CREATE INDEX debounced_timers ON timers (about) WHERE kind = 'start' AND about <> ''`,
    `CREATE TABLE schedules (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  graph TEXT NOT NULL,
  tenant TEXT,
  user TEXT,
  due INTEGER,
  revision INTEGER NOT NULL,
  sum INTEGER NOT NULL,
  body ANY NOT NULL
) STRICT`,
    `CREATE INDEX schedules_by_due ON schedules (due, id) WHERE due IS NOT NULL`,
    `CREATE INDEX schedules_by_tenant ON schedules (tenant, id) WHERE tenant IS NOT NULL`,
    `CREATE TABLE inbox_messages (
  key INTEGER PRIMARY KEY,
  branch INTEGER NOT NULL REFERENCES branches ON DELETE CASCADE,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  at INTEGER NOT NULL,
  run TEXT NOT NULL,
  sum INTEGER NOT NULL,
  messages ANY NOT NULL,
  UNIQUE (branch, run, id)
) STRICT`,
    `CREATE INDEX undelivered_events ON inbox_messages (branch) WHERE kind = 'event' AND run = ''`,
    `CREATE TABLE requests (
  key INTEGER PRIMARY KEY,
  branch INTEGER NOT NULL REFERENCES branches ON DELETE CASCADE,
  run INTEGER NOT NULL,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  name TEXT,
  at INTEGER NOT NULL,
  handled INTEGER NOT NULL,
  sum INTEGER NOT NULL,
  more ANY NOT NULL,
  UNIQUE (branch, id)
) STRICT`,
    `CREATE TABLE outbox_topics (
  topic TEXT NOT NULL,
  consumer TEXT NOT NULL,
  PRIMARY KEY (topic, consumer)
) STRICT, WITHOUT ROWID`,
    `CREATE TABLE outbox (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  thread INTEGER NOT NULL REFERENCES threads ON DELETE CASCADE,
  branch TEXT NOT NULL,
  consumer TEXT NOT NULL,
  id TEXT NOT NULL,
  topic TEXT NOT NULL,
  at INTEGER NOT NULL,
  interrupt TEXT,
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  due INTEGER NOT NULL,
  finished INTEGER,
  owner INTEGER,
  sum INTEGER NOT NULL,
  error ANY,
  payload ANY NOT NULL,
  UNIQUE (thread, consumer, id)
) STRICT`,
    `CREATE INDEX pending_outbox ON outbox (consumer, due) WHERE state = 'pending'`,
    `CREATE INDEX finished_outbox ON outbox (consumer, finished) WHERE state <> 'pending'`,
    `CREATE TABLE events (
  thread INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  branch INTEGER NOT NULL,
  at INTEGER NOT NULL,
  sum INTEGER NOT NULL,
  text ANY NOT NULL,
  PRIMARY KEY (thread, seq)
) STRICT, WITHOUT ROWID`,
    `CREATE TABLE long_term (
  key INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  id TEXT NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  expires INTEGER,
  refresh INTEGER,
  words TEXT,
  sum INTEGER NOT NULL,
  value ANY NOT NULL,
  vector ANY,
  UNIQUE (namespace, id)
) STRICT`,
    `CREATE INDEX long_term_by_end ON long_term (expires) WHERE expires IS NOT NULL`,
    `CREATE VIRTUAL TABLE long_term_words USING fts5(words, content = '', columnsize = 0, detail = none, tokenize = 'ascii')`,
    // Deleted words are removed from the index immediately.
    `INSERT INTO long_term_words (long_term_words, rank) VALUES ('secure-delete', 1)`,
    `CREATE TABLE artifacts (
  key INTEGER PRIMARY KEY,
  thread INTEGER NOT NULL,
  handle TEXT NOT NULL,
  body INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  sum INTEGER NOT NULL,
  about ANY NOT NULL
) STRICT`,
    `CREATE INDEX artifacts_by_handle ON artifacts (thread, handle)`,
    `CREATE TABLE artifact_pieces (
  key INTEGER PRIMARY KEY,
  sum INTEGER NOT NULL,
  data ANY NOT NULL
) STRICT`,
    `CREATE TABLE artifact_bodies (
  key TEXT PRIMARY KEY,
  uses INTEGER NOT NULL,
  changed INTEGER NOT NULL,
  sweeper INTEGER
) STRICT, WITHOUT ROWID`,
    `CREATE INDEX unused_artifact_bodies ON artifact_bodies (changed) WHERE uses = 0`,
    `CREATE VIEW history AS
  SELECT threads.id AS thread, branches.name AS branch, checkpoints.key & 0xffffff AS id, step, checkpoints.parent, source, nodes,
    datetime(at / 1000, 'unixepoch') AS at, duration, checkpoints.seq, bytes,
    (SELECT group_concat(channels.name || ' ' || kind, ', ')
       FROM channels JOIN deltas ON deltas.key = (channels.key << 24) + (checkpoints.key & 0xffffff)
       WHERE channels.branch = branches.key) AS changes
  FROM checkpoints JOIN branches ON branches.key = checkpoints.key >> 24 JOIN threads ON threads.key = branches.thread`,
  ],
];

/** Largest checkpoint id of a thread; ids start at 1. */
export const maxCheckpointId: number = 2 ** 24 - 1;

/** Returns the row key of a checkpoint within a namespace, a channel or a thread. */
export function toRowKey(namespaceKey: number, checkpoint: number): number {
  return namespaceKey * 2 ** 24 + checkpoint;
}
