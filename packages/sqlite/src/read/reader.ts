/** Reads of the store: every row is verified by its checksum, and only the rows needed for the answer are read. */

import type { StatewrightError } from "@statewright/core";
import type { StoreCipher } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import { OutboxReader } from "../outbox/outbox-reader.ts";
import { RequestRows } from "../rows/request-rows.ts";
import { CheckpointReader } from "./checkpoint-reader.ts";
import { EffectReader } from "./effect-reader.ts";
import { EventReader } from "./event-reader.ts";
import { InboxReader } from "./inbox-reader.ts";
import { InputReader } from "./input-reader.ts";
import { InterruptReader } from "./interrupt-reader.ts";
import { ListIndexes } from "./list-indexes.ts";
import { NamespaceReader } from "./namespace-reader.ts";
import { OutlineReader } from "./outline-reader.ts";
import { RunLists } from "./run-lists.ts";
import { StateReader } from "./state-reader.ts";
import { StatusCounts } from "./status-counts.ts";
import { SuperstepReader } from "./superstep-reader.ts";
import { ThreadCiphers } from "./thread-ciphers.ts";
import { ThreadLists } from "./thread-lists.ts";
import { TimerReader } from "./timer-reader.ts";

/** Readers of a connection; call inside a transaction. */
export interface Reader {
  readonly ciphers: ThreadCiphers;
  readonly threads: ThreadLists;
  readonly runs: RunLists;
  readonly counts: StatusCounts;
  readonly namespaces: NamespaceReader;
  readonly checkpoints: CheckpointReader;
  readonly states: StateReader;
  readonly effects: EffectReader;
  readonly interrupts: InterruptReader;
  readonly inbox: InboxReader;
  readonly events: EventReader;
  readonly timers: TimerReader;
  readonly outbox: OutboxReader;
  readonly outlines: OutlineReader;
  readonly supersteps: SuperstepReader;
  readonly requests: RequestRows;
  readonly inputs: InputReader;
  /** Reports a damaged row that a list or a write over many threads skips. */
  readonly onFault: (fault: StatewrightError) => void;
}

/** Creates the readers. `onFault` is called for damaged rows that are skipped by lists over many threads. */
export function createReader(
  db: Database,
  storeCipher?: StoreCipher,
  onFault: (fault: StatewrightError) => void = () => undefined,
): Reader {
  const ciphers = new ThreadCiphers(db, storeCipher);
  const indexes = new ListIndexes(db);
  const getCipher = (thread: string): ReturnType<ThreadCiphers["get"]> => ciphers.get(thread);
  const namespaces = new NamespaceReader(db);
  const checkpoints = new CheckpointReader(db, { ciphers, namespaces });
  return {
    ciphers,
    threads: new ThreadLists(db, { indexes, getCipher, onFault }),
    runs: new RunLists(db, { indexes, getCipher, onFault }),
    counts: new StatusCounts(db),
    namespaces,
    checkpoints,
    states: new StateReader(db, { ciphers, namespaces, checkpoints }),
    effects: new EffectReader(db, { ciphers, namespaces }),
    interrupts: new InterruptReader(db, { ciphers, namespaces, indexes, onFault }),
    inbox: new InboxReader(db, ciphers),
    events: new EventReader(db, { ciphers, checkpoints }),
    timers: new TimerReader(db, onFault),
    outbox: new OutboxReader(db, { ciphers, onFault }),
    outlines: new OutlineReader(db),
    supersteps: new SuperstepReader(db, { ciphers, namespaces }),
    requests: new RequestRows(db),
    inputs: new InputReader(db),
    onFault,
  };
}
