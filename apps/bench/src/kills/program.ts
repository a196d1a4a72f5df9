/** The run that is killed, as both frameworks have it: three errands side by side, a question to a person, two errands more. */

/** One framework's way through it, over one SQLite file. */
export interface Program {
  /** Go on with a thread from where it stands to its next stop; what waits for an answer is answered. */
  goOn(thread: string): Promise<Stop>;
  close(): void;
}

/** Where a thread stands: a person is asked, or it has come to its end with these results. */
export type Stop =
  | { readonly kind: "waiting" }
  | { readonly kind: "done"; readonly results: readonly string[]; readonly verdict: string };

/** Who runs it, and how. */
export const contenders = [
  { id: "reconciled", name: "Statewright, `once` with `reconcile`" },
  { id: "asked", name: "Statewright, `once`" },
  { id: "idempotent", name: "Statewright, `idempotent`" },
  { id: "tasks", name: "LangGraph.js, `task`" },
  { id: "tool-node", name: "LangGraph.js, `ToolNode`" },
] as const;

export type ContenderId = (typeof contenders)[number]["id"];
export type OursId = Exclude<ContenderId, PeerId>;
export type PeerId = "tasks" | "tool-node";

export function isPeer(id: ContenderId): id is PeerId {
  return id === "tasks" || id === "tool-node";
}
