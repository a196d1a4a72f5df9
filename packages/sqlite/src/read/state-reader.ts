/** Reads of states: the deltas of each channel at a checkpoint. */

import { type ChannelRows, type DeltaRow, storeRules } from "@statewright/core/store";
import { type DeltaColumns, readDelta } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import { toRowKey } from "../file/schema.ts";
import type { CheckpointReader } from "./checkpoint-reader.ts";
import type { NamespaceReader, NamespaceRow } from "./namespace-reader.ts";
import type { ThreadCiphers } from "./thread-ciphers.ts";

function prepareStatements(db: Database) {
  return {
    channelsOfNamespace: db.prepare<[number], { key: number; name: string }>(
      "SELECT key, name FROM channels WHERE branch = ? ORDER BY key",
    ),
    deltasFromBase: db.prepare<
      [{ from: number; until: number }],
      Omit<DeltaColumns, "channel"> & { checkpoint: number }
    >(
      "SELECT kind, base, count, sum, text, key & 0xffffff AS checkpoint FROM deltas WHERE key <= @until AND key >= coalesce(" +
        "(SELECT key FROM deltas WHERE key BETWEEN @from AND @until AND base = 1 ORDER BY key DESC LIMIT 1), @from) ORDER BY key",
    ),
    deltasOfNamespace: db.prepare<
      [{ namespace: number; until: number }],
      DeltaColumns & { channelKey: number; checkpoint: number }
    >(
      "SELECT n.key AS channelKey, n.name AS channel, d.kind, d.base, d.count, d.sum, d.text, d.key & 0xffffff AS checkpoint" +
        " FROM channels n CROSS JOIN deltas d ON d.key <= (n.key << 24) + @until AND d.key >= coalesce((SELECT x.key FROM deltas x" +
        " WHERE x.key BETWEEN n.key << 24 AND (n.key << 24) + @until AND x.base = 1 ORDER BY x.key DESC LIMIT 1), n.key << 24)" +
        " WHERE n.branch = @namespace ORDER BY n.key, d.key",
    ),
  };
}

/** State at the newest checkpoint of a namespace. */
export interface HeadState {
  readonly state: readonly ChannelRows[];
  /** Keys of the channels of the namespace that have a delta. */
  readonly channels: ReadonlyMap<string, number>;
  /** Deltas of the newest checkpoint itself, in the order of their channels. */
  readonly deltas: readonly DeltaColumns[];
}

/** Reads the state of a thread at a checkpoint. */
export class StateReader {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #ciphers: ThreadCiphers;
  readonly #namespaces: NamespaceReader;
  readonly #checkpoints: CheckpointReader;

  constructor(
    db: Database,
    {
      ciphers,
      namespaces,
      checkpoints,
    }: {
      readonly ciphers: ThreadCiphers;
      readonly namespaces: NamespaceReader;
      readonly checkpoints: CheckpointReader;
    },
  ) {
    this.#sql = prepareStatements(db);
    this.#ciphers = ciphers;
    this.#namespaces = namespaces;
    this.#checkpoints = checkpoints;
  }

  /** Returns the deltas of each channel at a checkpoint. Throws `unknown_checkpoint`. */
  get(thread: string, checkpoint: number): readonly ChannelRows[] {
    const at = this.#checkpoints.find(thread, checkpoint);
    const start = at === undefined ? undefined : this.#namespaces.findByKey(at.namespace);
    if (start === undefined) throw storeRules.createUnknownCheckpointError(thread, checkpoint);
    return this.#join(thread, this.#namespaces.listAncestors(start, checkpoint), new Map());
  }

  /** Returns the state at the newest checkpoint of a namespace. */
  getHead(thread: string, namespace: NamespaceRow, checkpoint: number): HeadState {
    const cipher = this.#ciphers.get(thread);
    const found = this.#sql.deltasOfNamespace.all({ namespace: namespace.key, until: checkpoint });
    const own = new Map<string, DeltaRow[]>();
    for (const delta of found) {
      const row = readDelta(cipher, { thread, namespace: namespace.name, checkpoint: delta.checkpoint }, delta);
      const rows = own.get(delta.channel);
      if (rows === undefined) own.set(delta.channel, [row]);
      else rows.push(row);
    }
    const ancestors = this.#namespaces.listAncestors(namespace, checkpoint).slice(1);
    return {
      state: this.#join(thread, ancestors, new Map<string, readonly DeltaRow[]>(own)),
      channels: new Map(found.map(({ channel, channelKey }) => [channel, channelKey])),
      deltas: found.filter((delta) => delta.checkpoint === checkpoint),
    };
  }

  /** Joins the deltas of channels with those of ancestors, newest ancestor first. */
  #join(
    thread: string,
    ancestors: ReturnType<NamespaceReader["listAncestors"]>,
    channels: Map<string, readonly DeltaRow[]>,
  ): readonly ChannelRows[] {
    const based = new Set([...channels].flatMap(([name, rows]) => (rows[0]?.base === true ? [name] : [])));
    for (const { namespace, until } of ancestors) {
      for (const [name, rows] of this.#listSegmentDeltas(thread, namespace, until, based)) {
        channels.set(name, [...rows, ...(channels.get(name) ?? [])]);
        if (rows[0]?.base === true) based.add(name);
      }
    }
    return [...channels]
      .filter(([, deltas]) => deltas.length > 0)
      .map(([channel, deltas]) => ({ channel, deltas: deltas.map(({ kind, text }) => ({ kind, text })) }));
  }

  /**
   * Returns the deltas of the channels of a namespace up to a checkpoint, by channel; skips channels in `based`,
   * which already have a base.
   */
  #listSegmentDeltas(
    thread: string,
    namespace: NamespaceRow,
    until: number,
    based: ReadonlySet<string>,
  ): readonly (readonly [string, readonly DeltaRow[]])[] {
    const cipher = this.#ciphers.get(thread);
    return this.#sql.channelsOfNamespace
      .all(namespace.key)
      .filter(({ name }) => !based.has(name))
      .map(({ key, name }) => {
        const rows = this.#sql.deltasFromBase.all({ from: toRowKey(key, 0), until: toRowKey(key, until) });
        return [
          name,
          rows.map(({ checkpoint, kind, base, count, sum, text }) =>
            readDelta(
              cipher,
              { thread, namespace: namespace.name, checkpoint },
              { channel: name, kind, base, count, sum, text },
            ),
          ),
        ];
      });
  }
}
