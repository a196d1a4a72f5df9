/** Looking at a thread from outside: its state, its journal, its history, and a fork of it. */
import { existsSync } from "node:fs";
import {
  type EffectState,
  fork,
  getState,
  type HistoryEntry,
  history,
  isStatewrightError,
  type OpenInterrupt,
  type RunStatus,
  type Store,
  sqliteStore,
} from "statewright";
import { type AuditGraph, auditGraph } from "./audit-graph.ts";
import type { AuditState } from "./audit-state.ts";
import { bytes, plain, short } from "./format-text.ts";
import { rehearsedModel } from "./rehearsed-model.ts";
import { bold, changesText, say } from "./view.ts";

/** The graph, for its types and channels; nothing is run with it here. */
const graph = auditGraph(rehearsedModel());

async function withStore<Value>(database: string, work: (store: Store) => Promise<Value>): Promise<Value> {
  const store = sqliteStore(database);
  try {
    return await work(store);
  } finally {
    store.close();
  }
}

/** Where a branch of the thread stands; undefined when it has not begun. */
export async function standing(
  database: string,
  thread: string,
  branch?: string,
): Promise<
  | {
      readonly status: RunStatus | undefined;
      readonly interrupts: readonly OpenInterrupt[];
      readonly state: AuditState;
    }
  | undefined
> {
  if (!existsSync(database)) return undefined;
  try {
    return await withStore(database, (store) =>
      getState(graph, { store, thread, ...(branch === undefined ? {} : { branch }) }),
    );
  } catch (error) {
    if (isStatewrightError(error, "unknown_thread") || isStatewrightError(error, "unknown_checkpoint"))
      return undefined;
    throw error;
  }
}

/** The rows of the step at work: which effects have a result, which have only begun. */
export function journalNow(
  database: string,
  thread: string,
): Promise<readonly { readonly name: string; readonly state: EffectState; readonly key: string }[]> {
  return withStore(database, async (store) => {
    const head = await store.head(thread);
    const rows = head === undefined ? [] : await store.effects(thread, head.branch, head.step);
    return rows.map(({ name, state, idempotencyKey: key }) => ({ name, state, key }));
  });
}

/** Print the steps of the thread, oldest first, with what each changed. */
export async function tellHistory(database: string, thread: string): Promise<void> {
  await withStore(database, async (store) => {
    const entries: HistoryEntry<NonNullable<AuditGraph["types"]>>[] = [];
    for await (const entry of history(graph, { store, thread, branch: "main" })) entries.push(entry);
    say(bold(`  ${"step".padEnd(6)}${"node".padEnd(10)}${"saved".padStart(9)}   changed`));
    for (const { step, nodes, source, changes, bytes: size } of entries.reverse())
      say(
        `  ${String(step).padEnd(6)}${(nodes.join(" + ") || source).padEnd(10)}${bytes(size).padStart(9)}   ${changesText(changes)}`,
      );
  });
}

/** Make a branch at the step before the question, unless it is there; gives what was decided on `main`. */
export async function forkBeforeQuestion(
  database: string,
  thread: string,
  name: string,
): Promise<AuditState["decision"]> {
  return withStore(database, async (store) => {
    const { state } = await getState(graph, { store, thread, branch: "main" });
    const known = (await store.branches(thread)).some((branch) => branch.name === name);
    if (!known) {
      for await (const { next, checkpointId } of history(graph, { store, thread, branch: "main" })) {
        if (!next.includes("ask")) continue;
        await fork(graph, { store, thread, at: checkpointId, name });
        break;
      }
    }
    return state.decision;
  });
}

/** Print two branches beside each other. */
export async function sideBySide(database: string, thread: string, other: string): Promise<void> {
  await withStore(database, async (store) => {
    const columns = await Promise.all(["main", other].map((branch) => columnOf(store, thread, branch)));
    const [left = [], right = []] = columns;
    for (const [index, [label, value]] of left.entries()) {
      const row = `  ${label.padEnd(12)}${short(value, 40).padEnd(42)}${short(right[index]?.[1] ?? "", 40)}`;
      say(index === 0 ? bold(row) : row);
    }
  });
}

type Row = readonly [label: string, value: string];

async function columnOf(store: Store, thread: string, branch: string): Promise<readonly Row[]> {
  const { state, status } = await getState(graph, { store, thread, branch });
  const line: string[] = [];
  let own = 0;
  for await (const entry of history(graph, { store, thread, branch })) {
    if (entry.nodes.length > 0) line.unshift(entry.nodes.join(" + "));
    if (entry.branch === branch) own += entry.bytes;
  }
  return [
    ["branch", branch],
    ["answer", state.decision === null ? "none yet" : state.decision.write ? "yes" : "no"],
    ["note", plain(state.decision?.note ?? "–")],
    ["last steps", line.slice(-3).join(" → ")],
    ["report", state.report === null ? "not written" : "written"],
    ["findings", branch === "main" ? String(state.findings.length) : `${state.findings.length}, shared with main`],
    ["run", status ?? "none"],
    ["own bytes", bytes(own)],
  ];
}
