/** Inspection of a thread from another process: state, journal, history and fork. */
import { existsSync } from "node:fs";
import {
  fork,
  getHistory,
  getState,
  type HistoryEntry,
  isStatewrightError,
  type OpenInterrupt,
  type RunStatus,
  type Store,
  sqliteStore,
} from "statewright";
import type { EffectState } from "statewright/store";
import { type AuditGraph, createAuditGraph } from "./audit-graph.ts";
import { createAuditModel } from "./audit-model.ts";
import type { AuditState } from "./audit-state.ts";
import { formatBytes, toPlainLine, truncate } from "./format-text.ts";
import { bold, formatChanges, print } from "./view.ts";

/** Graph for types and channels only; not run in this process. */
const graph = createAuditGraph(createAuditModel());

async function useStore<Value>(database: string, work: (store: Store) => Promise<Value>): Promise<Value> {
  const store = sqliteStore(database);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** Returns status, interrupts and state of a branch; undefined for a branch without checkpoints. */
export async function loadBranchState(
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
    return await useStore(database, (store) =>
      getState(graph, { store, thread, ...(branch === undefined ? {} : { branch }) }),
    );
  } catch (error) {
    if (isStatewrightError(error, "unknown_thread") || isStatewrightError(error, "unknown_checkpoint"))
      return undefined;
    throw error;
  }
}

/** Lists the journal rows of the current step: finished effects and started effects. */
export function listJournalRows(
  database: string,
  thread: string,
): Promise<readonly { readonly name: string; readonly state: EffectState; readonly key: string }[]> {
  return useStore(database, async (store) => {
    const head = await store.head(thread);
    const rows = head === undefined ? [] : await store.effects(thread, head.branch, head.step);
    return rows.map(({ name, state, idempotencyKey: key }) => ({ name, state, key }));
  });
}

/** Prints the steps of the thread, oldest first, with their changes. */
export async function printHistory(database: string, thread: string): Promise<void> {
  await useStore(database, async (store) => {
    const entries: HistoryEntry<NonNullable<AuditGraph["types"]>>[] = [];
    for await (const entry of getHistory(graph, { store, thread, branch: "main" })) entries.push(entry);
    print(bold(`  ${"step".padEnd(6)}${"node".padEnd(10)}${"saved".padStart(9)}   changed`));
    for (const { step, nodes, source, changes, bytes: size } of entries.reverse())
      print(
        `  ${String(step).padEnd(6)}${(nodes.join(" + ") || source).padEnd(10)}${formatBytes(size).padStart(9)}   ${formatChanges(changes)}`,
      );
  });
}

/** Forks a branch at the step before the interrupt, unless the branch exists. Returns the decision on `main`. */
export async function forkBeforeInterrupt(
  database: string,
  thread: string,
  name: string,
): Promise<AuditState["decision"]> {
  return useStore(database, async (store) => {
    const { state } = await getState(graph, { store, thread, branch: "main" });
    const branchExists = (await store.branches(thread)).some((branch) => branch.name === name);
    if (!branchExists) {
      for await (const { next, checkpointId } of getHistory(graph, { store, thread, branch: "main" })) {
        if (!next.includes("ask")) continue;
        await fork(graph, { store, thread, at: checkpointId, name });
        break;
      }
    }
    return state.decision;
  });
}

/** Prints two branches in two columns. */
export async function printBranchComparison(database: string, thread: string, other: string): Promise<void> {
  await useStore(database, async (store) => {
    const columns = await Promise.all(["main", other].map((branch) => loadColumn(store, thread, branch)));
    const [left = [], right = []] = columns;
    for (const [index, [label, value]] of left.entries()) {
      const row = `  ${label.padEnd(12)}${truncate(value, 40).padEnd(42)}${truncate(right[index]?.[1] ?? "", 40)}`;
      print(index === 0 ? bold(row) : row);
    }
  });
}

type Row = readonly [label: string, value: string];

async function loadColumn(store: Store, thread: string, branch: string): Promise<readonly Row[]> {
  const { state, status } = await getState(graph, { store, thread, branch });
  const stepNames: string[] = [];
  let ownBytes = 0;
  for await (const entry of getHistory(graph, { store, thread, branch })) {
    if (entry.nodes.length > 0) stepNames.unshift(entry.nodes.join(" + "));
    if (entry.branch === branch) ownBytes += entry.bytes;
  }
  return [
    ["branch", branch],
    ["answer", state.decision === null ? "none yet" : state.decision.write ? "yes" : "no"],
    ["note", toPlainLine(state.decision?.note ?? "–")],
    ["last steps", stepNames.slice(-3).join(" → ")],
    ["report", state.report === null ? "not written" : "written"],
    ["findings", branch === "main" ? String(state.findings.length) : `${state.findings.length}, shared with main`],
    ["run", status ?? "none"],
    ["bytes saved", formatBytes(ownBytes)],
  ];
}
