/** Breakpoints: a run pauses before or after a node for debugging, and a plain resume continues the run. */

import { StatewrightError } from "../../../base/errors.ts";
import { invalidOption } from "../../../base/invalid-option.ts";
import type { SavedBreakpoints, Task } from "../../../checkpoint/checkpoint.ts";
import type { Plan } from "../../../compile/plan.ts";
import { getErrorPlace, type Position } from "../parts/position.ts";
import type { Session } from "../session.ts";
import type { BreakpointOption, Breakpoints, CommonOptions } from "./options.ts";

/**
 * Parses the option. Throws `invalid_option` for an unknown node, and `missing_store` without a store, since the run
 * could not be resumed.
 */
export function parseBreakpoints(
  plan: Plan,
  { breakpoints, store }: CommonOptions & BreakpointOption<string>,
): Breakpoints | undefined {
  if (breakpoints === undefined) return undefined;
  const { before = [], after = [] } = breakpoints;
  const unknown = [...before, ...after].find((node) => !plan.nodes.has(node));
  if (unknown !== undefined) {
    throw invalidOption({
      where: "breakpoints",
      expected: `nodes of the graph "${plan.graph.name}"`,
      got: unknown,
      fix: `Use one of ${[...plan.nodes.keys()].map((node) => `"${node}"`).join(", ")}`,
      place: { graph: plan.graph.name },
    });
  }
  if (store !== undefined) return { before: new Set(before), after: new Set(after) };
  throw new StatewrightError("missing_store", {
    what: `a run of the graph "${plan.graph.name}" has breakpoints and no store, so it could not be resumed`,
    next: "Pass a store: memoryStore() or sqliteStore(path)",
    place: { graph: plan.graph.name },
  });
}

/** Converts breakpoints for the row of a run; undefined for none. */
export function toSavedBreakpoints(breakpoints: Breakpoints | undefined): SavedBreakpoints | undefined {
  if (breakpoints === undefined || breakpoints.before.size + breakpoints.after.size === 0) return undefined;
  return { before: [...breakpoints.before], after: [...breakpoints.after] };
}

/** Restores the breakpoints of a run. Nodes that the graph no longer has are ignored. */
export function restoreBreakpoints({ nodes }: Plan, saved: SavedBreakpoints | undefined): Breakpoints | undefined {
  if (saved === undefined) return undefined;
  const selectNodes = (names: readonly string[]): ReadonlySet<string> =>
    new Set(names.filter((name) => nodes.has(name)));
  return { before: selectNodes(saved.before), after: selectNodes(saved.after) };
}

/** Creates the cause of a pause at a breakpoint in the body of a node. */
export function createBodyBreakpoint(position: Position, { id, node }: Task, key: string): StatewrightError {
  return new StatewrightError("breakpoint", {
    what: `the run paused at the breakpoint "${key}" of the node "${node}"`,
    next: "Resume the thread to continue",
    place: getErrorPlace(position, { node, task: id }),
    details: { node, key },
  });
}

/**
 * Returns the breakpoint between two supersteps as the cause of a pause. `finishedNodes`: nodes of the superstep
 * before; undefined right after a resume, which continues past the breakpoint.
 */
export function findBreakpoint(
  session: Pick<Session, "env" | "position" | "progress">,
  finishedNodes: readonly string[] | undefined,
): StatewrightError | undefined {
  const { breakpoints } = session.env;
  if (breakpoints === undefined || finishedNodes === undefined) return undefined;
  const after = [...new Set(finishedNodes)].filter((node) => breakpoints.after.has(node));
  const next = new Set(session.progress.control.tasks.map((task) => task.node));
  const before = [...next].filter((node) => breakpoints.before.has(node));
  if (after.length === 0 && before.length === 0) return undefined;
  const locations = [
    ...after.map((node) => `after the node "${node}"`),
    ...before.map((node) => `before the node "${node}"`),
  ];
  return new StatewrightError("breakpoint", {
    what: `the run paused ${locations.join(" and ")}`,
    next: "Resume the thread to continue",
    place: getErrorPlace(session.position),
    details: { after, before },
  });
}
