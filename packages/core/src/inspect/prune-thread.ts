/** Retention: old checkpoints go, the state of those that stay remains what it was. */
import { isStatewrightError, StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { describeValue } from "../base/json.ts";
import { checkOptions, optionNames } from "../base/options.ts";
import { systemWorld, type World } from "../base/world.ts";
import { mergedDeltas } from "../checkpoint/codec/merge-deltas.ts";
import type { Store } from "../checkpoint/store.ts";
import { checkCodec, checkStore } from "../run/session/check-run-options.ts";
import { type Codec, guardedCodec, plainCodec } from "../state/codec.ts";

/** What `prune` keeps: what either option keeps, stays. */
export interface PruneOptions {
  /** One thread; all of the store by default. */
  readonly thread?: string;
  /** The newest so many checkpoints of each line. */
  readonly keepLast?: number;
  /** What is younger than this, in milliseconds. */
  readonly olderThanMs?: number;
  readonly world?: World;
  /** The codec of the store's values, to make one change of several. */
  readonly codec?: Codec;
}

/** What `prune` did. */
export interface PruneReport {
  readonly threads: number;
  /** How many checkpoints went. */
  readonly checkpoints: number;
}

const names = optionNames<PruneOptions>({ thread: true, keepLast: true, olderThanMs: true, world: true, codec: true });

const pageSize = 500;

/**
 * Remove the checkpoints that neither option keeps, except those that something needs: the newest of each line, where a
 * branch starts, where an unfinished run may be taken back to. Safe beside running writers. Throws `unknown_thread`.
 */
export async function prune(store: Store, options: PruneOptions): Promise<PruneReport> {
  checkStore("prune", store ?? null);
  checkOptions("prune", options, names);
  checkCodec("prune", options.codec);
  const { thread, keepLast, olderThanMs, world = systemWorld() } = options;
  checkKept(options);
  const codec = guardedCodec(options.codec ?? plainCodec);
  const since = olderThanMs === undefined ? undefined : world.clock.now() - olderThanMs;
  let [threads, checkpoints] = [0, 0];
  for await (const id of thread === undefined ? idsOf(store) : [checkId("thread", thread)]) {
    const went = await pruneOne(store, id, { keepLast, since }, codec).catch(goneIf(thread === undefined));
    threads += 1;
    checkpoints += went;
  }
  return { threads, checkpoints };
}

async function pruneOne(
  store: Store,
  thread: string,
  kept: { readonly keepLast: number | undefined; readonly since: number | undefined },
  codec: Codec,
): Promise<number> {
  return await store.prune({ thread, ...kept, merge: mergedDeltas.bind(undefined, codec) });
}

/** A thread of a list may be deleted before its turn comes. */
function goneIf(listed: boolean): (error: unknown) => number {
  return (error) => {
    if (listed && isStatewrightError(error, "unknown_thread")) return 0;
    throw error;
  };
}

async function* idsOf(store: Store): AsyncGenerator<string> {
  for (let before: { readonly id: string; readonly updatedAt: number } | undefined; ; ) {
    const page = await store.threads({ limit: pageSize, before });
    for (const { id } of page) yield id;
    before = page.at(-1);
    if (page.length < pageSize) return;
  }
}

function checkKept({ keepLast, olderThanMs }: PruneOptions): void {
  if (keepLast === undefined && olderThanMs === undefined)
    throw invalid("prune got neither keepLast nor olderThanMs", "Say what to keep");
  if (keepLast !== undefined && !(Number.isInteger(keepLast) && keepLast >= 1))
    throw invalid(`keepLast is ${describeValue(keepLast)}`, "Give a whole number from 1");
  if (olderThanMs !== undefined && !(typeof olderThanMs === "number" && olderThanMs >= 0))
    throw invalid(`olderThanMs is ${describeValue(olderThanMs)}`, "Give milliseconds from 0");
}

function invalid(what: string, next: string): StatewrightError {
  return new StatewrightError("invalid_option", { what, next });
}
