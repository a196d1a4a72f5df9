/** Breakpoints: where a run pauses for a person who debugs it, and goes on by a plain resume. */
import { StatewrightError } from "../../base/errors.ts";
import type { Plan } from "../../compile/plan.ts";
import type { BreakpointOption, CommonOptions } from "./options.ts";
import { placeOf, type Session } from "./session.ts";

/** The nodes of the breakpoints. */
export interface Breakpoints {
  readonly before: ReadonlySet<string>;
  readonly after: ReadonlySet<string>;
}

/** Read the option; throws `invalid_option` for a node that the graph does not have, `missing_store` where nothing could be resumed. */
export function breakpointsOf(
  plan: Plan,
  { breakpoints, store }: CommonOptions & BreakpointOption<string>,
): Breakpoints | undefined {
  if (breakpoints === undefined) return undefined;
  const { before = [], after = [] } = breakpoints;
  const unknown = [...before, ...after].find((node) => !plan.nodes.has(node));
  if (unknown !== undefined) {
    throw new StatewrightError("invalid_option", {
      what: `a breakpoint stands at "${unknown}", which is not a node of the graph "${plan.graph.name}"`,
      next: `Nodes are ${[...plan.nodes.keys()].map((node) => `"${node}"`).join(", ")}`,
      place: { graph: plan.graph.name },
    });
  }
  if (store !== undefined) return { before: new Set(before), after: new Set(after) };
  throw new StatewrightError("missing_store", {
    what: `a run of the graph "${plan.graph.name}" has breakpoints and no store, so it could not go on`,
    next: "Give the run a store: memoryStore() or sqliteStore(path)",
    place: { graph: plan.graph.name },
  });
}

/**
 * The breakpoint at which a run stands between two supersteps, as the cause of its pause. `ran` are the nodes of the
 * superstep before; a run that was resumed here has none and goes on.
 */
export function breakpointAt(session: Session, ran: readonly string[] | undefined): StatewrightError | undefined {
  const { breakpoints } = session;
  if (breakpoints === undefined || ran === undefined) return undefined;
  const after = [...new Set(ran)].filter((node) => breakpoints.after.has(node));
  const next = new Set(session.control.tasks.map((task) => task.node));
  const before = [...next].filter((node) => breakpoints.before.has(node));
  if (after.length === 0 && before.length === 0) return undefined;
  const where = [
    ...after.map((node) => `after the node "${node}"`),
    ...before.map((node) => `before the node "${node}"`),
  ];
  return new StatewrightError("breakpoint", {
    what: `the run paused ${where.join(" and ")}`,
    next: "Resume the thread to go on",
    place: placeOf(session),
    details: { after, before },
  });
}
