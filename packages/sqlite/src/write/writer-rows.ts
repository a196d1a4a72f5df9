/** Rows of the file, shared by the writers of a connection. */

import type { StoreCipher } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import type { Owner } from "../file/owner.ts";
import type { Reader } from "../read/reader.ts";
import { CheckpointRows } from "../rows/checkpoint-rows.ts";
import type { EffectRows } from "../rows/effect-rows.ts";
import { EventRows } from "../rows/event-rows.ts";
import { GraphRows } from "../rows/graph-rows.ts";
import { InterruptRows } from "../rows/interrupt-rows.ts";
import { NamespaceRows } from "../rows/namespace-rows.ts";
import type { RequestRows } from "../rows/request-rows.ts";
import { RunRows } from "../rows/run-rows.ts";
import { ThreadDetailRows } from "../rows/thread-details.ts";
import { ThreadRows } from "../rows/thread-rows.ts";
import { TimerRows } from "../rows/timer-rows.ts";
import { InboxMessages } from "./inbox-messages.ts";
import { Journal } from "./journal.ts";

/** Row writers by table; call inside a transaction. */
export interface WriterRows {
  readonly threads: ThreadRows;
  readonly details: ThreadDetailRows;
  readonly graphs: GraphRows;
  readonly namespaces: NamespaceRows;
  readonly runs: RunRows;
  readonly checkpoints: CheckpointRows;
  readonly journal: Journal;
  readonly interrupts: InterruptRows;
  readonly timers: TimerRows;
  readonly events: EventRows;
  readonly inboxMessages: InboxMessages;
  readonly requests: RequestRows;
}

export function createWriterRows(
  db: Database,
  {
    owner,
    reader,
    storeCipher,
    effects,
  }: {
    readonly owner: Owner;
    readonly reader: Reader;
    readonly storeCipher: StoreCipher | undefined;
    readonly effects: EffectRows;
  },
): WriterRows {
  const threads = new ThreadRows(db, { owner, storeCipher });
  const namespaces = new NamespaceRows(db, reader);
  const runs = new RunRows(db, { reader, threads });
  return {
    threads,
    details: new ThreadDetailRows(db),
    graphs: new GraphRows(db),
    namespaces,
    runs,
    checkpoints: new CheckpointRows(db, { namespaces, runs }),
    journal: new Journal(db, { reader, effects, namespaces }),
    interrupts: new InterruptRows(db),
    timers: new TimerRows(db),
    events: new EventRows(db),
    inboxMessages: new InboxMessages(db),
    requests: reader.requests,
  };
}
