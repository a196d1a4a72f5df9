/** Retention: deletes old checkpoints without changing the state of the remaining checkpoints. */
import { isStatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { checkCount, checkNumber, checkOptions, listOptionNames, requireAny } from "../base/options.ts";
import { systemWorld, type World } from "../base/world.ts";
import { mergeDeltas } from "../checkpoint/codec/merge-deltas.ts";
import { readStoreTime } from "../checkpoint/read-store-time.ts";
import type { Store } from "../checkpoint/store.ts";
import { checkCodecOption, checkStoreOption } from "../run/session/options/check-run-options.ts";
import { type Codec, createGuardedCodec, plainCodec } from "../state/codec.ts";

/** Options of `pruneThread`: a checkpoint retained by either option stays. */
export interface PruneOptions {
  /** Thread id; default: all threads of the store. */
  readonly thread?: string;
  /** Number of newest checkpoints to retain per namespace. */
  readonly keepLast?: number;
  /** Retains checkpoints younger than this age in milliseconds. */
  readonly olderThanMs?: number;
  /** Clock, random source and log. Default: the system world. */
  readonly world?: World;
  /** Codec of the stored values, to merge deltas. */
  readonly codec?: Codec;
}

/** Result of `pruneThread`. */
export interface PruneReport {
  readonly threads: number;
  /** Number of deleted checkpoints. */
  readonly checkpoints: number;
}

const optionKeys = listOptionNames<PruneOptions>({
  thread: true,
  keepLast: true,
  olderThanMs: true,
  world: true,
  codec: true,
});

const pageSize = 500;

/**
 * Deletes checkpoints that neither option retains, except required checkpoints: the newest of each namespace, branch
 * points, and resume points of unfinished runs. Safe with concurrent writers. Throws `unknown_thread`.
 */
export async function pruneThread(store: Store, options: PruneOptions): Promise<PruneReport> {
  checkStoreOption("pruneThread", store ?? null);
  checkOptions("pruneThread", options, optionKeys);
  checkCodecOption("pruneThread", options.codec);
  const { thread, keepLast, olderThanMs, world = systemWorld() } = options;
  checkRetention(options);
  const codec = createGuardedCodec(options.codec ?? plainCodec);
  const since = olderThanMs === undefined ? undefined : (await readStoreTime(store, world)) - olderThanMs;
  let [threads, checkpoints] = [0, 0];
  for await (const id of thread === undefined ? streamThreadIds(store) : [checkId("thread", thread)]) {
    const removed = await pruneCheckpoints(store, id, { keepLast, since }, codec).catch(
      createDeletedHandler({ isListed: thread === undefined }),
    );
    threads += 1;
    checkpoints += removed;
  }
  return { threads, checkpoints };
}

async function pruneCheckpoints(
  store: Store,
  thread: string,
  retention: { readonly keepLast: number | undefined; readonly since: number | undefined },
  codec: Codec,
): Promise<number> {
  return await store.prune({ thread, ...retention, merge: mergeDeltas.bind(undefined, codec) });
}

/** A listed thread may be deleted before it is pruned. */
function createDeletedHandler({ isListed }: { readonly isListed: boolean }): (error: unknown) => number {
  return (error) => {
    if (isListed && isStatewrightError(error, "unknown_thread")) return 0;
    throw error;
  };
}

async function* streamThreadIds(store: Store): AsyncGenerator<string> {
  for (let before: { readonly id: string; readonly updatedAt: number } | undefined; ; ) {
    const page = await store.threads({ limit: pageSize, before });
    for (const { id } of page) yield id;
    before = page.at(-1);
    if (page.length < pageSize) return;
  }
}

function checkRetention({ keepLast, olderThanMs }: PruneOptions): void {
  requireAny("pruneThread", { keepLast, olderThanMs });
  checkCount("pruneThread", { keepLast });
  checkNumber("pruneThread", { olderThanMs }, 0);
}
