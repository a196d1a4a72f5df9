/**
 * The tables of a file. Rows name each other by small integers; long names stand once. Text columns of values are JSON.
 *
 * What is written in every superstep has no index of its own: the key of a checkpoint is its branch and its id, the key
 * of a delta is its channel (of one branch) and its checkpoint, 24 bits for the latter. So a state, a page of history
 * and the head of a branch are ranges of keys.
 *
 * Child lines stand among the branches, and a thread can have very many. So branches are listed by an index that has no
 * child lines, and a checkpoint of a child line is found by its id in a table of its own, whose key is thread and id.
 *
 * Where retention has removed checkpoints of a branch, an anchor has the key of the last of them, its hash, from which
 * those after it are checked, and the hash of the deltas that are left of what was removed.
 *
 * A migration is a list of statements, each exactly as SQLite keeps it in `sqlite_master`: a file whose schema reads
 * otherwise is not opened.
 */

/** Small pages: a commit writes whole pages, and most of what it changes is a few hundred bytes in each of some tables. */
export const pageBytes = 2048;

/** "SWrt": marks a file as ours. */
export const applicationId = 0x53577274;

/** Forward only: the version of a file is the number of migrations that it has seen. */
export const migrations: readonly (readonly string[])[] = [
  [
    `CREATE TABLE graphs (
  key INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  shape TEXT NOT NULL,
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
  graph INTEGER NOT NULL REFERENCES graphs,
  head TEXT NOT NULL,
  run INTEGER,
  owner INTEGER,
  epoch INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  checkpoint INTEGER NOT NULL,
  queued INTEGER NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  secret BLOB
) STRICT`,
    `CREATE INDEX threads_by_change ON threads (updated)`,
    `CREATE INDEX threads_with_queue ON threads (key) WHERE queued > 0`,
    `CREATE TABLE branches (
  key INTEGER PRIMARY KEY,
  thread INTEGER NOT NULL REFERENCES threads ON DELETE CASCADE,
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
  UNIQUE (thread, id)
) STRICT`,
    // Nearly all runs are done: they are listed in the order of their keys.
    `CREATE INDEX runs_by_status ON runs (status) WHERE status <> 'done'`,
    `CREATE INDEX runs_by_graph ON runs (graph)`,
    `CREATE INDEX runs_by_start ON runs (started)`,
    `CREATE INDEX queued_runs ON runs (thread) WHERE status = 'queued'`,
    // The newest runs of a thread, and those that are not over, are found however many it has had.
    `CREATE INDEX runs_of_thread ON runs (thread)`,
    `CREATE INDEX unfinished_runs ON runs (thread) WHERE status NOT IN ('done', 'cancelled')`,
    `CREATE UNIQUE INDEX runs_by_name ON runs (thread, name) WHERE name IS NOT NULL`,
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
  sum INTEGER NOT NULL,
  text ANY NOT NULL
) STRICT`,
    `CREATE TABLE anchors (
  key INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL,
  hash TEXT NOT NULL,
  kept TEXT NOT NULL
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
    `CREATE INDEX questions ON interrupts (key) WHERE awaited = 1`,
    `CREATE INDEX questions_of_branch ON interrupts (branch) WHERE awaited = 1`,
    `CREATE TABLE timers (
  branch INTEGER NOT NULL REFERENCES branches ON DELETE CASCADE,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  generation INTEGER NOT NULL,
  due INTEGER NOT NULL,
  about TEXT NOT NULL,
  sum INTEGER NOT NULL,
  PRIMARY KEY (branch, id)
) STRICT, WITHOUT ROWID`,
    `CREATE INDEX timers_by_due ON timers (due, id)`,
    `CREATE TABLE letters (
  key INTEGER PRIMARY KEY,
  branch INTEGER NOT NULL REFERENCES branches ON DELETE CASCADE,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  at INTEGER NOT NULL,
  taken TEXT NOT NULL,
  sum INTEGER NOT NULL,
  messages ANY NOT NULL,
  UNIQUE (branch, taken, id)
) STRICT`,
    `CREATE TABLE facts (
  thread INTEGER NOT NULL REFERENCES threads ON DELETE CASCADE,
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
    // Words of what is deleted leave the index at once.
    `INSERT INTO long_term_words (long_term_words, rank) VALUES ('secure-delete', 1)`,
    `CREATE TABLE artifacts (
  key INTEGER PRIMARY KEY,
  thread INTEGER NOT NULL REFERENCES threads ON DELETE CASCADE,
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
    `CREATE VIEW history AS
  SELECT threads.id AS thread, branches.name AS branch, checkpoints.key & 0xffffff AS id, step, checkpoints.parent, source, nodes,
    datetime(at / 1000, 'unixepoch') AS at, duration, checkpoints.seq, bytes,
    (SELECT group_concat(channels.name || ' ' || kind, ', ')
       FROM channels JOIN deltas ON deltas.key = (channels.key << 24) + (checkpoints.key & 0xffffff)
       WHERE channels.branch = branches.key) AS changes
  FROM checkpoints JOIN branches ON branches.key = checkpoints.key >> 24 JOIN threads ON threads.key = branches.thread`,
  ],
];

/** Ids of checkpoints, from 1 up, that a thread can have. */
export const largestCheckpoint: number = 2 ** 24 - 1;

/** The key under which a line (a branch, or a channel of one), or a thread, keeps a checkpoint. */
export function keyAt(line: number, checkpoint: number): number {
  return line * 2 ** 24 + checkpoint;
}
