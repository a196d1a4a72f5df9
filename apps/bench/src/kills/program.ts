/**
 * The killed run, in the same shape for both frameworks: three parallel actions, an approval by a person, two more
 * actions.
 */

/** Implementation of the run by one framework, over one SQLite file. */
export interface Program {
  /** Starts or resumes a thread and runs to its next stop. Open interrupts are answered. */
  runToStop(thread: string): Promise<Stop>;
  close(): unknown;
}

/** Stop of a thread: an open interrupt, or the end of the run with its results. */
export type Stop =
  | { readonly kind: "waiting" }
  | { readonly kind: "done"; readonly results: readonly string[]; readonly verdict: string };

/** Contenders: framework and effect mode. */
export const contenders = [
  { id: "reconciled", name: "Statewright, `once` with `reconcile`" },
  { id: "asked", name: "Statewright, `once`" },
  { id: "idempotent", name: "Statewright, `idempotent`" },
  { id: "tasks", name: "LangGraph.js, `task`" },
  { id: "tool-node", name: "LangGraph.js, `ToolNode`" },
] as const;

export type ContenderId = (typeof contenders)[number]["id"];
export type OwnId = Exclude<ContenderId, PeerId>;
export type PeerId = "tasks" | "tool-node";

export function isPeer(id: ContenderId): id is PeerId {
  return id === "tasks" || id === "tool-node";
}
