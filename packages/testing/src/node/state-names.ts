/** Names of a machine's states, the same for sequential and parallel graphs: `tools`, `tools.interrupted`, `done`. */
import type { Json } from "@statewright/core";

/** The states of a node in its machine. */
export type Leaf = "idle" | "executing" | "committing" | "interrupted" | "failed";

/** What a test may call a state of a graph with these nodes: a node, a node's state, or what holds of the whole run. */
export type StateName<Nodes extends string> = Nodes | `${Nodes}.${Leaf}` | "start" | "interrupted" | "failed" | "done";

/** Every state that a machine stands in, as `node.leaf`; the driver of a parallel graph is not one of them. */
export function standingIn(value: Json): readonly string[] {
  if (typeof value === "string") return [value];
  if (value === null) return ["start"];
  const { driver, ...regions } = value as { readonly [region: string]: Json };
  if (driver === "start" || driver === "done") return [driver];
  if (typeof driver !== "string" || Object.keys(regions).length === 0) return leavesOf(value, "");
  return Object.entries(regions).flatMap(([node, leaf]) =>
    leaf === "idle" || leaf === "done" ? [] : [`${node}.${String(leaf)}`],
  );
}

function leavesOf(value: Json, path: string): readonly string[] {
  if (typeof value !== "object" || value === null) return [`${path}${String(value)}`];
  return Object.entries(value).flatMap(([state, inner]) => leavesOf(inner, `${path}${state}.`));
}

/** Tell whether a machine stands in the state with this name. */
export function isIn(value: Json, name: string): boolean {
  const standing = standingIn(value);
  return (
    standing.some((state) => isNamed(state, name)) ||
    standing.some((state) => state.startsWith(`${name}.`)) ||
    isIdle(value, name)
  );
}

/** Tell whether `tools.interrupted` may be called `name`: itself, its node, or its leaf. */
export function isNamed(state: string, name: string): boolean {
  const [node, leaf] = split(state);
  // An inner graph has a start and a done of its own.
  const shared = leaf !== undefined && leaf !== "start" && leaf !== "done";
  return state === name || node === name || (shared && leaf === name);
}

/** States in which a run rests: it is saved, and nothing happens until somebody acts. */
export function isResting(name: string): boolean {
  const leaf = split(name).at(-1) ?? name;
  return leaf === "interrupted" || leaf === "failed" || leaf === "done";
}

/** The states that a transition enters. */
export function entered(from: Json, to: Json): readonly string[] {
  const before = standingIn(from);
  return standingIn(to).filter((state) => !before.includes(state));
}

function split(state: string): readonly [string, string | undefined] {
  const dot = state.lastIndexOf(".");
  return dot < 0 ? [state, undefined] : [state.slice(0, dot), state.slice(dot + 1)];
}

function isIdle(value: Json, name: string): boolean {
  const [node, leaf] = split(name);
  return (
    leaf === "idle" &&
    typeof value === "object" &&
    value !== null &&
    node in value &&
    (value as Record<string, Json>)[node] === "idle"
  );
}
