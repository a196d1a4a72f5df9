/** Rows of namespaces and of their channels. */

import { type Commit, type EffectRow, storeRules } from "@statewright/core/store";
import { type CheckpointColumns, checkWellFormed } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import type { Reader } from "../read/reader.ts";
import type { ClaimedThread, NamespaceState } from "../write/claimed-thread.ts";
import { prepareInsert } from "./insert-rows.ts";

function prepareStatements(db: Database) {
  return {
    addNamespace: db.prepare<[number, string, number | null, number | null, number | null]>(
      "INSERT INTO branches (thread, name, parent, origin, run) VALUES (?, ?, ?, ?, ?)",
    ),
    channelKey: db.prepare<[number, string], number>("SELECT key FROM channels WHERE branch = ? AND name = ?").pluck(),
    addChannels: prepareInsert(db, "INSERT INTO channels (branch, name) VALUES ", "(?, ?)"),
    lastJournal: db.prepare<[number], number | null>("SELECT max(step) FROM effects WHERE branch = ?").pluck(),
  };
}

/** Location of the parent of the first checkpoint of a namespace. */
interface NamespaceOrigin {
  readonly namespace: number | null;
  readonly id: number | null;
}

/** Newest checkpoint of a namespace, with the keys of its channels and the journal of its step if they are known. */
export interface NamespaceHead {
  readonly head: CheckpointColumns | undefined;
  readonly loaded?:
    | { readonly channels: ReadonlyMap<string, number>; readonly effects: readonly EffectRow[] }
    | undefined;
}

/** Creates namespaces, and reads their state for the next checkpoint. */
export class NamespaceRows {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #reader: Reader;

  constructor(db: Database, reader: Reader) {
    this.#sql = prepareStatements(db);
    this.#reader = reader;
  }

  /**
   * Adds the row of a namespace; `origin` is the location of the parent of its first checkpoint, and `run` the row key of
   * its first run. Returns its row key.
   */
  add(
    thread: number,
    name: string,
    { origin, run }: { readonly origin?: NamespaceOrigin | undefined; readonly run?: number | undefined } = {},
  ): number {
    const added = this.#sql.addNamespace.run(thread, name, origin?.namespace ?? null, origin?.id ?? null, run ?? null);
    return Number(added.lastInsertRowid);
  }

  /** Returns the stored state of a namespace, or of the child namespace created by this commit. */
  readState(claimed: ClaimedThread, commit: Commit): NamespaceState {
    const namespace = this.#reader.namespaces.find(claimed.id, commit.branch);
    if (namespace === undefined) return this.#createChild(claimed, commit);
    return this.createState(commit.branch, namespace.key, {
      head: this.#reader.checkpoints.getNamespaceHead(claimed.id, namespace.key),
    });
  }

  /**
   * Creates the state of a namespace from its newest checkpoint; `loaded` are the channels and the journal of that
   * checkpoint, if known.
   */
  createState(name: string, namespaceKey: number, { head, loaded }: NamespaceHead): NamespaceState {
    return {
      name,
      key: namespaceKey,
      head: head === undefined ? undefined : { id: head.id, hash: head.hash },
      step: head?.step,
      journal: this.#findJournal(namespaceKey, { head, loaded }),
      hasFoldableRows: loaded?.effects.every(({ effect }) => effect === "once") !== true,
      channels: new Map(loaded?.channels),
      hasAllChannels: false,
    };
  }

  /** Finds the last step with journal rows. A namespace has no row of a step after that of its newest checkpoint. */
  #findJournal(namespaceKey: number, { head, loaded }: NamespaceHead): number {
    if (loaded === undefined || head === undefined) return this.#sql.lastJournal.get(namespaceKey) ?? -1;
    return loaded.effects.length === 0 ? -1 : head.step;
  }

  #createChild(claimed: ClaimedThread, commit: Commit): NamespaceState {
    const parent = storeRules.getNewNamespaceParent(commit);
    if (!claimed.namespaces.has(parent) && this.#reader.namespaces.find(claimed.id, parent) === undefined)
      throw storeRules.createUnknownBranchError(claimed.id, parent);
    const from = commit.checkpoint?.row.parent;
    return this.create(
      claimed.key,
      commit.branch,
      from === undefined ? undefined : this.#reader.checkpoints.find(claimed.id, from),
    );
  }

  /** Creates an empty namespace; `origin` is the parent of its first checkpoint. */
  create(thread: number, name: string, origin: CheckpointColumns | undefined): NamespaceState {
    const namespaceKey = this.add(thread, name, { origin });
    const head = origin === undefined ? undefined : { id: origin.id, hash: origin.hash };
    return { ...this.createEmpty(name, namespaceKey), head };
  }

  /** Creates the state of a namespace that was just added. */
  createEmpty(name: string, key: number): NamespaceState {
    const journal = { journal: -1, hasFoldableRows: false };
    return { name, key, head: undefined, step: undefined, ...journal, channels: new Map(), hasAllChannels: true };
  }

  /** Returns the row keys of channels by name; creates missing rows. */
  getChannelKeys(
    { key: namespaceKey, channels, hasAllChannels }: NamespaceState,
    names: readonly string[],
  ): ReadonlyMap<string, number> {
    const missing = names.filter((name) => {
      if (channels.has(name)) return false;
      const known = hasAllChannels ? undefined : this.#sql.channelKey.get(namespaceKey, name);
      if (known !== undefined) channels.set(name, known);
      return known === undefined;
    });
    this.#sql.addChannels(
      missing.map((name) => [namespaceKey, checkWellFormed(name)]),
      (nth, key) => channels.set(missing[nth] as string, key),
    );
    return channels;
  }
}
