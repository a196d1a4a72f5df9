/** Creates threads before their first run, and changes their title and metadata. */
import { createId } from "../base/ids.ts";
import { checkOptions, listOptionNames } from "../base/options.ts";
import { systemWorld, type World } from "../base/world.ts";
import type { Store, ThreadPatch, ThreadRow, ThreadWrite } from "../checkpoint/store.ts";
import { checkStoreOption, checkWorldOption } from "../run/session/options/check-run-options.ts";

/** Options of `createThread`. */
export interface CreateThreadOptions extends Omit<ThreadWrite, "thread" | "at" | "keySalt"> {
  /** Id of the thread. Default: a random id. */
  readonly thread?: string | undefined;
  /** Clock and random source. Default: the system world. */
  readonly world?: World | undefined;
}

/** Options of `updateThread`. */
export interface UpdateThreadOptions extends Omit<ThreadPatch, "at"> {
  /** Clock. Default: that of the system. */
  readonly world?: World | undefined;
}

const createKeys = listOptionNames<CreateThreadOptions>({
  thread: true,
  title: true,
  metadata: true,
  tenant: true,
  owner: true,
  ifExists: true,
  world: true,
});
const updateKeys = listOptionNames<UpdateThreadOptions>({ title: true, metadata: true, world: true });

/**
 * Creates a thread without a run and returns its row. The first run of the thread decides its graph. The title has 1 to
 * 1,000 characters, the ids of tenant and owner 1 to 256; tenant and owner never change. Throws `thread_exists`; with
 * `ifExists: "keep"` returns the row of an existing thread unchanged, and throws `invalid_option` when that thread has
 * another tenant. Throws `invalid_id` and `invalid_option` for invalid options.
 *
 * @example
 * ```ts
 * const { id } = await createThread(store, { title: "Trip to Oslo", tenant: "acme", metadata: { project: "atlas" } });
 * const handle = run(assistant, { store, thread: id, tenant: "acme", input });
 * ```
 */
export async function createThread(store: Store, options: CreateThreadOptions = {}): Promise<ThreadRow> {
  checkStoreOption("createThread", store ?? null);
  checkOptions("createThread", options, createKeys);
  checkWorldOption("createThread", options.world);
  const { world = systemWorld(), thread = createId("thread_", world.random), ...write } = options;
  const keySalt = createId("", world.random).slice(-12);
  return await store.createThread({ ...write, thread, at: world.clock.now(), keySalt });
}

/**
 * Changes the title and the metadata of a thread, also while a run is active, and returns the new row. A title of null
 * removes the title; a metadata key with the value null is removed, and keys that are not given are kept. Throws
 * `unknown_thread`, `invalid_id`, `invalid_option`.
 *
 * @example
 * ```ts
 * await updateThread(store, "t7", { title: "Trip to Bergen", metadata: { archived: true, draft: null } });
 * ```
 */
export async function updateThread(store: Store, thread: string, options: UpdateThreadOptions): Promise<ThreadRow> {
  checkStoreOption("updateThread", store ?? null);
  checkOptions("updateThread", options, updateKeys);
  checkWorldOption("updateThread", options.world);
  const { world = systemWorld(), ...patch } = options;
  return await store.updateThread(thread, { ...patch, at: world.clock.now() });
}
