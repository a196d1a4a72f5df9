/** `listInterrupts`: open interrupts of all threads. */
import { checkOptions, listOptionNames } from "../base/options.ts";
import type { Redact } from "../base/redaction/redact-patterns.ts";
import { systemWorld, type World } from "../base/world.ts";
import { parseCursor, toCursor } from "../checkpoint/cursor.ts";
import type { OpenInterruptRow } from "../checkpoint/journal.ts";
import { readStoreTime } from "../checkpoint/read-store-time.ts";
import type { OpenInterruptFilter, Store } from "../checkpoint/store.ts";
import type { OpenInterrupt } from "../run/events/run-event.ts";
import { checkCodecOption, checkStoreOption, checkWorldOption } from "../run/session/options/check-run-options.ts";
import { toOpenInterrupt } from "../run/session/run-row.ts";
import { type Codec, createGuardedCodec } from "../state/codec.ts";
import { lenientCodec } from "../state/lenient-codec.ts";
import type { WithCursor } from "./list-threads.ts";
import { createTextRedactor } from "./read/read-redactor.ts";

/** An open interrupt with its waiting run. */
export interface WaitingInterrupt extends OpenInterrupt, WithCursor {
  readonly thread: string;
  readonly branch: string;
  readonly run: string;
  readonly graph: string;
  readonly raisedAt: number;
  /** Position among all interrupts of the store. */
  readonly position: number;
}

/** Filter of `listInterrupts`. */
export interface ListInterruptsOptions extends Omit<OpenInterruptFilter, "at" | "before"> {
  /** Last row of the previous page, or the `cursor` of that row. */
  readonly before?: string | Pick<OpenInterruptRow, "position"> | undefined;
  /** Clock, random source and log. Default: the system world. */
  readonly world?: World;
  /** Codec of values other than plain data. Default: `createLenientCodec()`, which shows unknown classes as foreign. */
  readonly codec?: Codec;
  /** Texts and patterns to redact in payloads, as in the readers of a thread. Default: payloads are shown as saved. */
  readonly redact?: readonly (string | RegExp)[];
}

const optionKeys = listOptionNames<ListInterruptsOptions>({
  thread: true,
  graph: true,
  key: true,
  tenant: true,
  owner: true,
  metadata: true,
  before: true,
  limit: true,
  world: true,
  codec: true,
  redact: true,
});

/**
 * Returns the open interrupts, newest first, whatever the status of their runs: an interrupt beside a failed task, or
 * of a paused run, is listed too. An interrupt is open until it is answered or expires, or its run is done or
 * cancelled. An expired interrupt is not included: a resume of its thread closes the
 * interrupt. Pass the last interrupt of a page, or the `cursor` of that row, as `before` for the next page.
 */
export async function listInterrupts(
  store: Store,
  filter: ListInterruptsOptions = {},
): Promise<readonly WaitingInterrupt[]> {
  checkStoreOption("listInterrupts", store ?? null);
  checkOptions("listInterrupts", filter, optionKeys);
  checkCodecOption("listInterrupts", filter.codec);
  checkWorldOption("listInterrupts", filter.world);
  const { world = systemWorld(), codec = lenientCodec, redact, before, ...query } = filter;
  const reader = { codec: createGuardedCodec(codec), redact: createTextRedactor("listInterrupts", redact) };
  const rows = await store.openInterrupts({
    ...query,
    before: toPosition(before),
    at: await readStoreTime(store, world),
  });
  return rows.map((row) => toWaitingInterrupt(reader, row));
}

function toPosition(before: ListInterruptsOptions["before"]): OpenInterruptFilter["before"] {
  if (typeof before !== "string") return before;
  const [position] = parseCursor("listInterrupts", before);
  return { position };
}

function toWaitingInterrupt(
  { codec, redact }: { readonly codec: Codec; readonly redact: Redact },
  row: OpenInterruptRow,
): WaitingInterrupt {
  const { thread, branch, run, graph, raisedAt, position } = row;
  const cursor = toCursor("listInterrupts", [position]);
  return { ...redact(toOpenInterrupt({ codec }, row)), thread, branch, run, graph, raisedAt, position, cursor };
}
