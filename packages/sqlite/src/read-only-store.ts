/** Store that only reads a file: every write is refused, and the file and its log keep every byte. */

import type { StatewrightError, Store } from "@statewright/core";
import { createStoreCipher, verifyStore } from "@statewright/store-kit";
import { createOutsideReader } from "./bodies/outside-bodies.ts";
import { Reencryption } from "./encryption/reencrypt.ts";
import { backUpDatabase } from "./file/back-up-database.ts";
import { openReadOnly, type ReadOnlyDatabase } from "./file/open-read-only.ts";
import { createOutboxReads, type OutboxReads } from "./outbox/outbox-store.ts";
import { createReadOnlyError, ReadTransactions } from "./read/read-transactions.ts";
import { createReader } from "./read/reader.ts";
import { Snapshots } from "./read/snapshots.ts";
import { createStoreReads } from "./read/store-reads.ts";
import { ThreadWatch } from "./read/thread-watch.ts";
import { createThreadExporter } from "./rows/thread-export.ts";
import { createScheduleReads } from "./schedules/schedule-store.ts";
import { ScheduleTable } from "./schedules/schedule-table.ts";
import type { SqliteStore } from "./sqlite-store.ts";
import type { ResolvedOptions } from "./store-parts.ts";
import { Verifier } from "./verify/verifier.ts";
import { createArtifactStore } from "./write/artifact-store.ts";
import { Artifacts } from "./write/artifacts.ts";
import { LongTermTable } from "./write/long-term.ts";
import { createLongTermStore } from "./write/long-term-store.ts";
import { PrunedRanges } from "./write/pruned-ranges.ts";
import type { StoreWrites } from "./write/store-writes.ts";

type Writes = StoreWrites & Pick<Store, "vacuum">;

/** Opens a file for reading. Throws `store_missing`, `store_corrupt`, `store_newer`, `missing_key`, `store_failed`. */
export function openReadOnlyStore(path: string, options: ResolvedOptions): SqliteStore {
  const { world, encryption, fileSystem, driver } = options;
  const withKeys = encryption !== undefined;
  return createStore(openReadOnly(path, { world, withKeys, allowRemote: fileSystem === "any", driver }), options);
}

function createStore(
  opened: ReadOnlyDatabase,
  { world, encryption, longTerm, artifactBodies }: ResolvedOptions,
): SqliteStore {
  const { db, file } = opened;
  const storeCipher = encryption === undefined ? undefined : createStoreCipher(encryption);
  const onFault = (fault: StatewrightError): void =>
    world.log("error", "a list skipped a damaged row", { ...fault.place, error: fault.message });
  const reader = createReader(db, storeCipher, onFault);
  const transactions = new ReadTransactions(opened, { world, reader });
  const artifacts = new Artifacts(db, { getCipher: (thread) => reader.ciphers.get(thread), putsOutside: false });
  const items = new LongTermTable(db, storeCipher);
  const readOutside = createOutsideReader(artifactBodies);
  const prunedRanges = new PrunedRanges(db);
  const reencryption = new Reencryption(db, { reader, artifacts });
  const schedules = new ScheduleTable(db, storeCipher, onFault);
  const verifier = new Verifier(db, {
    ...{ reader, prunedRanges, reencryption, artifacts, readOutside },
    ...{ longTerm: items, schedules },
  });
  const exportThread = createThreadExporter(db, { reader, prunedRanges, artifacts });
  const refuse = async (): Promise<never> => {
    transactions.refuseClosed();
    throw createReadOnlyError(file);
  };
  const snapshots = new Snapshots({
    db,
    file,
    openConnection: opened.openConnection,
    storeCipher,
    world,
    owner: transactions,
    transactions,
  });
  const watch = new ThreadWatch(db, { world, isClosed: () => transactions.isClosed(), isLocal: false });
  const readers = { db, transactions: { read: transactions.read.bind(transactions), write: refuse } };
  const claims = { hasFailedReleases: () => false, retryReleases: refuse };
  return {
    name: "sqlite",
    local: false,
    ...createRefusedWrites(refuse, (run) => void world.schedule.soon(run)),
    ...createStoreReads({ transactions, snapshots, exportThread, claims, artifacts, readOutside }),
    watch: (listener, watching) => watch.watch(listener, watching),
    schedules: { ...createScheduleReads({ transactions, schedules }), put: refuse, delete: refuse },
    longTerm: createLongTermStore({ ...readers, items, applyLongTerm: () => undefined }, longTerm),
    outbox: { ...createOutboxReads(transactions), ...createRefusedOutbox(refuse) },
    artifacts: createArtifactStore({ ...readers, world, artifacts, readOutside }),
    backup: async (target, backup = {}) => {
      transactions.refuseClosed();
      await backUpDatabase(db, target, backup);
    },
    verify: (thread) => verifyStore(verifier, (operation) => transactions.read(operation, thread), thread),
    rotate: refuse,
    close: async () => {
      snapshots.close();
      watch.close();
      transactions.close();
    },
  };
}

/** Writes of the outbox, each refused. */
function createRefusedOutbox(refuse: () => Promise<never>): Omit<Store["outbox"], keyof OutboxReads> {
  return { subscribe: refuse, add: refuse, claim: refuse, finish: refuse, retry: refuse, sweep: refuse };
}

/** Writes of the store interface, each refused. */
function createRefusedWrites(refuse: () => Promise<never>, schedule: (run: () => void) => void): Writes {
  return {
    createThread: refuse,
    updateThread: refuse,
    claim: refuse,
    commit: (_commit, onCommitted) => schedule(() => void refuse().catch(onCommitted)),
    branch: refuse,
    enqueue: refuse,
    enqueueDue: refuse,
    dequeue: refuse,
    post: refuse,
    request: refuse,
    delete: refuse,
    importThread: refuse,
    prune: refuse,
    vacuum: refuse,
  };
}
