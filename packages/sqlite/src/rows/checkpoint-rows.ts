/** Rows of checkpoints and of their deltas. */

import { StatewrightError } from "@statewright/core";
import { type CheckpointWrite, type EffectRow, storeRules } from "@statewright/core/store";
import {
  type FoldedColumns,
  hashCheckpoint,
  nothingFolded,
  toControlContext,
  toDeltaColumns,
  toFoldedColumns,
} from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import { maxCheckpointId, toRowKey } from "../file/schema.ts";
import type { ClaimedThread, NamespaceState } from "../write/claimed-thread.ts";
import { prepareInsert } from "./insert-rows.ts";
import type { NamespaceRows } from "./namespace-rows.ts";
import type { RunRows } from "./run-rows.ts";

function prepareStatements(db: Database) {
  return {
    addCheckpoint: db.prepare(
      "INSERT INTO checkpoints (key, step, parent, source, nodes, run, at, duration, seq, bytes, graph, hash, effects, effects_sum, control)" +
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    addChildCheckpoint: db.prepare<[number, number]>("INSERT INTO child_checkpoints (key, branch) VALUES (?, ?)"),
    addDeltas: prepareInsert(
      db,
      "INSERT INTO deltas (key, kind, base, count, sum, text) VALUES ",
      "(?, ?, ?, ?, ?, ?)",
    ),
  };
}

/** Writes checkpoints; call inside a transaction. */
export class CheckpointRows {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #namespaces: NamespaceRows;
  readonly #runs: RunRows;

  constructor(db: Database, { namespaces, runs }: { readonly namespaces: NamespaceRows; readonly runs: RunRows }) {
    this.#sql = prepareStatements(db);
    this.#namespaces = namespaces;
    this.#runs = runs;
  }

  /** Writes a checkpoint with its deltas and folded effects; returns the new state of the namespace. */
  write(
    claimed: Pick<ClaimedThread, "id" | "key" | "writer" | "run" | "cipher">,
    state: NamespaceState,
    { row, deltas: newDeltas }: CheckpointWrite,
    effects: readonly EffectRow[] = [],
  ): NamespaceState {
    if (row.id > maxCheckpointId) throw createThreadFullError(claimed.id);
    const deltas = newDeltas.map((delta) => ({ ...delta, base: storeRules.isBase(delta) }));
    const { cipher } = claimed;
    const checkpoint = row.branch === state.name ? row : { ...row, branch: state.name };
    const hash = hashCheckpoint(checkpoint, claimed.writer, deltas, { parentHash: state.head?.hash, cipher });
    const run = claimed.run?.id === row.run ? claimed.run.key : (this.#runs.findKey(claimed.key, row.run) ?? row.run);
    const location = { thread: claimed.id, namespace: state.name, checkpoint: row.id };
    const folded: FoldedColumns =
      state.step === undefined ? nothingFolded : toFoldedColumns(location, state.step, effects);
    this.#sql.addCheckpoint.run(
      toRowKey(state.key, row.id),
      row.step,
      row.parent ?? null,
      row.source,
      JSON.stringify(row.nodes),
      typeof run === "number" ? BigInt(run) : run,
      row.at,
      row.durationMs,
      row.seq,
      row.bytes,
      claimed.writer.key,
      hash,
      folded.effects,
      folded.effects_sum,
      cipher === undefined ? row.control : cipher.encrypt(row.control, toControlContext(state.name, row.id)),
    );
    if (storeRules.isChildNamespace(state.name))
      this.#sql.addChildCheckpoint.run(toRowKey(claimed.key, row.id), state.key);
    const channelKeys = this.#namespaces.getChannelKeys(
      state,
      deltas.map(({ channel }) => channel),
    );
    this.#sql.addDeltas(
      deltas.map((delta) => {
        const { sum, text } = toDeltaColumns(cipher, location, delta);
        const key = toRowKey(channelKeys.get(delta.channel) as number, row.id);
        return [key, delta.kind, delta.base ? 1 : 0, delta.count ?? null, sum, text];
      }),
    );
    return { ...state, head: { id: row.id, hash }, step: row.step };
  }
}

function createThreadFullError(thread: string): StatewrightError {
  return new StatewrightError("store_full", {
    what: `thread "${thread}" has reached the maximum number of checkpoints (${maxCheckpointId})`,
    next: "Continue in a new thread",
    place: { thread },
  });
}
