/** State names of a machine, equal for sequential and parallel graphs: `tools`, `tools.interrupted`, `done`. */
import type { Json } from "@statewright/core";

/** States of a node in the machine. */
export type Leaf = "idle" | "executing" | "committing" | "interrupted" | "failed";

/** State names of a graph in tests: a node, a state of a node, or a state of the whole run. */
export type StateName<Nodes extends string> = Nodes | `${Nodes}.${Leaf}` | "start" | "interrupted" | "failed" | "done";

/** Lists the active states of a machine as `node.leaf`, without the driver of a parallel graph. */
export function listActiveStates(value: Json): readonly string[] {
  if (typeof value === "string") return [value];
  if (value === null) return ["start"];
  const { driver, ...regions } = value as { readonly [region: string]: Json };
  if (driver === "start" || driver === "done") return [driver];
  if (typeof driver !== "string" || Object.keys(regions).length === 0) return listLeaves(value, "");
  return Object.entries(regions).flatMap(([node, leaf]) =>
    leaf === "idle" || leaf === "done" ? [] : [`${node}.${String(leaf)}`],
  );
}

function listLeaves(value: Json, path: string): readonly string[] {
  if (typeof value !== "object" || value === null) return [`${path}${String(value)}`];
  return Object.entries(value).flatMap(([state, inner]) => listLeaves(inner, `${path}${state}.`));
}

/** Returns true when the machine is in the state with this name. */
export function isInState(value: Json, name: string): boolean {
  const activeStates = listActiveStates(value);
  return (
    activeStates.some((state) => isStateNamed(state, name)) ||
    activeStates.some((state) => state.startsWith(`${name}.`)) ||
    isNodeIdle(value, name)
  );
}

/** Returns true when a state such as `tools.interrupted` matches `name` by full name, node or leaf. */
export function isStateNamed(state: string, name: string): boolean {
  const [node, leaf] = splitStateName(state);
  // `start` and `done` of an inner graph are separate states.
  const hasCommonLeaf = leaf !== undefined && leaf !== "start" && leaf !== "done";
  return state === name || node === name || (hasCommonLeaf && leaf === name);
}

/** Returns true for states in which the run is saved and idle until a caller acts. */
export function isRestState(name: string): boolean {
  const leaf = splitStateName(name).at(-1) ?? name;
  return leaf === "interrupted" || leaf === "failed" || leaf === "done";
}

/** Lists the states entered by a transition. */
export function listEnteredStates(from: Json, to: Json): readonly string[] {
  const previous = listActiveStates(from);
  return listActiveStates(to).filter((state) => !previous.includes(state));
}

function splitStateName(state: string): readonly [string, string | undefined] {
  const dot = state.lastIndexOf(".");
  return dot < 0 ? [state, undefined] : [state.slice(0, dot), state.slice(dot + 1)];
}

function isNodeIdle(value: Json, name: string): boolean {
  const [node, leaf] = splitStateName(name);
  return (
    leaf === "idle" &&
    typeof value === "object" &&
    value !== null &&
    node in value &&
    (value as Record<string, Json>)[node] === "idle"
  );
}
