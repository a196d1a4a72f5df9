/** Parts of an open store. */

import type { StatewrightError, World } from "@statewright/core";
import type { ByteRange, LongTermChange } from "@statewright/core/store";
import { createStoreCipher, type StoreCipher } from "@statewright/store-kit";
import { createOutsideReader, OutsideBodies, type OutsideBody } from "./bodies/outside-bodies.ts";
import { OutsideBodyRows } from "./bodies/outside-body-rows.ts";
import { RunClaims } from "./claims/run-claims.ts";
import { TimerClaims } from "./claims/timer-claims.ts";
import type { Database } from "./driver/database.ts";
import { Reencryption } from "./encryption/reencrypt.ts";
import { createDiskReserve } from "./file/disk-reserve.ts";
import type { Durability } from "./file/durability.ts";
import { eraseSecurely } from "./file/erase-securely.ts";
import { createFileGuard, type FileGuard } from "./file/file-guard.ts";
import type { OpenedDatabase } from "./file/open-database.ts";
import { createOwner, type Owner } from "./file/owner.ts";
import { createReader, type Reader } from "./read/reader.ts";
import { Snapshots } from "./read/snapshots.ts";
import { ThreadWatch } from "./read/thread-watch.ts";
import { createThreadExporter } from "./rows/thread-export.ts";
import { ScheduleTable } from "./schedules/schedule-table.ts";
import type { SqliteStoreOptions } from "./store-options.ts";
import { Verifier } from "./verify/verifier.ts";
import { Artifacts } from "./write/artifacts.ts";
import { ClaimRegistry } from "./write/claim-registry.ts";
import { LongTermTable } from "./write/long-term.ts";
import { PrunedRanges } from "./write/pruned-ranges.ts";
import { Transactions } from "./write/transactions.ts";
import { createWriter, type Writer } from "./write/writer.ts";

/** Options with their defaults. */
export type ResolvedOptions = SqliteStoreOptions & Required<Pick<SqliteStoreOptions, "durability" | "world">>;

/** Parts of an open store, shared by its operations. */
export interface StoreParts {
  readonly db: Database;
  readonly world: World;
  readonly durability: Durability;
  readonly storeCipher: StoreCipher | undefined;
  readonly owner: Owner;
  readonly guard: FileGuard;
  readonly reader: Reader;
  readonly writer: Writer;
  readonly transactions: Transactions;
  readonly snapshots: Snapshots;
  readonly watch: ThreadWatch;
  readonly claims: ClaimRegistry;
  readonly artifacts: Artifacts;
  /** Bodies outside of the file; undefined without the option `artifactBodies`. */
  readonly outside: OutsideBodies | undefined;
  /** Reads a body outside of the file. Throws `invalid_option` without the option, `store_corrupt`. */
  readonly readOutside: (body: OutsideBody, range?: ByteRange) => Promise<Uint8Array>;
  readonly items: LongTermTable;
  readonly schedules: ScheduleTable;
  /** Applies changes of the long-term store, and overwrites deleted data. */
  readonly applyLongTerm: LongTermTable["apply"];
  readonly exportThread: ReturnType<typeof createThreadExporter>;
  readonly reencryption: Reencryption;
  readonly verifier: Verifier;
}

export function createStoreParts({ db, file }: OpenedDatabase, options: ResolvedOptions): StoreParts {
  const { durability, world, maxBytes, encryption, artifactBodies } = options;
  const storeCipher = encryption === undefined ? undefined : createStoreCipher(encryption);
  const guard = createFileGuard(db, file, world);
  const owner = createOwner(db, file, guard);
  const logFault =
    (text: string) =>
    (fault: StatewrightError): void =>
      world.log("error", text, { ...fault.place, error: fault.message });
  const onFault = logFault("a list skipped a damaged row");
  const reader = createReader(db, storeCipher, onFault);
  const schedules = new ScheduleTable(db, storeCipher, onFault);
  const artifacts = new Artifacts(db, {
    getCipher: (thread) => reader.ciphers.get(thread),
    putsOutside: artifactBodies !== undefined,
  });
  const items = new LongTermTable(db, storeCipher);
  const applyLongTerm = (changes: readonly LongTermChange[], at: number): void =>
    eraseSecurely(db, () => items.apply(changes, at));
  const writer = createWriter(db, { owner, reader, storeCipher, artifacts, longTerm: { apply: applyLongTerm } });
  const prunedRanges = new PrunedRanges(db);
  const reencryption = new Reencryption(db, { reader, artifacts });
  const reserve = createDiskReserve(db, file, maxBytes);
  const transactions = new Transactions(db, { world, owner, reader, reserve, guard });
  const outside =
    artifactBodies === undefined
      ? undefined
      : new OutsideBodies({
          bodies: artifactBodies,
          rows: new OutsideBodyRows(db),
          transactions,
          owner,
          reader,
          world,
          isEncrypted: storeCipher !== undefined,
        });
  const readOutside = createOutsideReader(artifactBodies);
  return {
    db,
    world,
    durability,
    storeCipher,
    owner,
    guard,
    reader,
    writer,
    transactions,
    watch: new ThreadWatch(db, { world, isClosed: () => transactions.isClosed(), isLocal: db.memory }),
    snapshots: new Snapshots({ db, file, storeCipher, world, owner, transactions }),
    claims: new ClaimRegistry({
      ...{ transactions, writer, world, owner, reader, reserve },
      runClaims: new RunClaims(db, {
        claims: writer.claims,
        owner,
        reader,
        onFault: logFault("a damaged run is not claimed"),
      }),
      timerClaims: new TimerClaims(db, owner),
    }),
    artifacts,
    outside,
    readOutside,
    items,
    schedules,
    applyLongTerm,
    exportThread: createThreadExporter(db, { reader, prunedRanges, artifacts }),
    reencryption,
    verifier: new Verifier(db, {
      ...{ reader, prunedRanges, reencryption, artifacts, readOutside },
      ...{ longTerm: items, schedules },
    }),
  };
}
