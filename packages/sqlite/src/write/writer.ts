/** Writes of the store, by aggregate, each inside a transaction of the committer. */

import type { StoreCipher } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import type { Owner } from "../file/owner.ts";
import { Outbox } from "../outbox/outbox.ts";
import type { Reader } from "../read/reader.ts";
import { createEffectRows } from "../rows/effect-rows.ts";
import type { ThreadRows } from "../rows/thread-rows.ts";
import { createEraser } from "../rows/thread-tables.ts";
import type { Artifacts } from "./artifacts.ts";
import { Claims } from "./claims.ts";
import { Commits } from "./commits.ts";
import { Fence } from "./fence.ts";
import { Forks } from "./forks.ts";
import { Inbox } from "./inbox.ts";
import type { LongTermTable } from "./long-term.ts";
import { NewThreads } from "./new-threads.ts";
import { PrunedRanges } from "./pruned-ranges.ts";
import { Queue } from "./queue.ts";
import { RemovedThreads } from "./removed-threads.ts";
import { Requests } from "./requests.ts";
import { Retention } from "./retention.ts";
import { ThreadDeletion } from "./thread-deletion.ts";
import { ThreadImport } from "./thread-import.ts";
import { createWriterRows } from "./writer-rows.ts";

/** Writers of a connection; call inside a transaction. */
export interface Writer {
  readonly threads: ThreadRows;
  readonly newThreads: NewThreads;
  readonly claims: Claims;
  readonly commits: Commits;
  readonly queue: Queue;
  readonly inbox: Inbox;
  readonly requests: Requests;
  readonly outbox: Outbox;
  readonly forks: Forks;
  readonly threadImport: ThreadImport;
  readonly retention: Retention;
  readonly deletion: ThreadDeletion;
}

export function createWriter(
  db: Database,
  {
    owner,
    reader,
    storeCipher,
    artifacts,
    longTerm,
  }: {
    readonly owner: Owner;
    readonly reader: Reader;
    readonly storeCipher: StoreCipher | undefined;
    readonly artifacts: Artifacts;
    readonly longTerm: Pick<LongTermTable, "apply">;
  },
): Writer {
  const effects = createEffectRows(db);
  const eraser = createEraser(db);
  const prunedRanges = new PrunedRanges(db);
  const rows = createWriterRows(db, { owner, reader, storeCipher, effects });
  const inbox = new Inbox(rows, reader);
  const queue = new Queue(rows, reader);
  const requests = new Requests(rows, { reader, queue });
  const { threads } = rows;
  const outbox = new Outbox(db, { owner, reader, threads });
  const fence = new Fence(db);
  return {
    threads,
    newThreads: new NewThreads(rows, reader),
    claims: new Claims(db, { rows, owner, reader, fence }),
    commits: new Commits(rows, { owner, reader, fence, inbox, requests, outbox, artifacts, longTerm }),
    queue,
    inbox,
    requests,
    outbox,
    forks: new Forks(rows, reader),
    threadImport: new ThreadImport(rows, { reader, prunedRanges, artifacts }),
    retention: new Retention(db, { reader, prunedRanges, eraser, effects }),
    deletion: new ThreadDeletion({ threads, eraser, artifacts, removed: new RemovedThreads(db) }),
  };
}
