/** The input of a run, or of a call of an inner graph: parsed, then folded into the first checkpoint. */
import { isStatewrightError, StatewrightError } from "../base/errors.ts";
import { isPlainObject } from "../base/json.ts";
import { issuesText, parseWith, type SchemaIssue } from "../base/schema.ts";
import type { Plan } from "../compile/plan.ts";
import { START } from "../define/edge.ts";
import { overwrite } from "../state/channel.ts";
import { commitInput } from "./commit.ts";
import { readUpdate, type State, type Write } from "./returns.ts";
import type { Session } from "./session.ts";
import { firstTasks, foldInput } from "./superstep.ts";

/** Fold the input into the thread's state. */
export async function inputStep(session: Session, writes: readonly Write[]): Promise<void> {
  const { plan } = session;
  const step = session.step + 1;
  const { state, deltas } = foldInput(plan, session.state, writes);
  checkSet(session, state);
  session.snapshot = session.kernel.initial()[0];
  await commitInput(session, { state, deltas, ...firstTasks(plan, step, state) }, "input");
}

/** Parse the input. For a channel with a reducer it is the whole value, not one write. Throws `invalid_input`. */
export function readInput(plan: Plan, given: unknown): readonly Write[] {
  const { channels } = plan.graph.state;
  const input = parsedInput(plan, given);
  const whole = ([name, value]: readonly [string, unknown]): readonly [string, unknown] =>
    value !== undefined && Object.hasOwn(channels, name) && channels[name]?.kind === "reduce"
      ? [name, overwrite(value)]
      : [name, value];
  try {
    return readUpdate(plan, START, isPlainObject(input) ? Object.fromEntries(Object.entries(input).map(whole)) : input);
  } catch (cause) {
    throw inputError(plan, cause);
  }
}

/** What the input schema makes of an input; private channels are no part of one. */
function parsedInput({ graph: { name, input, ...graph } }: Plan, given: unknown): unknown {
  const parsed = input === undefined ? { ok: true as const, value: given } : parseWith(input, given);
  if (!parsed.ok)
    throw new StatewrightError("invalid_input", {
      what: `the input of graph "${name}" does not fit: ${issuesText(parsed.issues)}`,
      next: "Give what its input schema asks for",
      place: { graph: name },
      details: parsed.issues,
    });
  const hidden = isPlainObject(given) ? Object.keys(given).find((key) => graph.private.has(key)) : undefined;
  if (hidden === undefined) return parsed.value;
  throw new StatewrightError("invalid_input", {
    what: `the input of graph "${name}" has "${hidden}", which is private to its nodes`,
    next: "Leave it out, or take it from the graph's private channels",
    place: { graph: name, channel: hidden },
  });
}

/** What is wrong with an input, in the words of who gives it. */
function inputError(plan: Plan, cause: unknown): unknown {
  const { name, state } = plan.graph;
  if (!isStatewrightError(cause)) return cause;
  const { node: _start, ...place } = cause.place;
  const { channel } = place;
  const known = Object.keys(state.channels).map((each) => `"${each}"`);
  const issues = Array.isArray(cause.details) ? issuesText(cause.details as readonly SchemaIssue[]) : undefined;
  const what =
    cause.code === "unknown_channel"
      ? `the input of graph "${name}" has "${channel}", which is no channel of its state`
      : channel === undefined
        ? `the input of graph "${name}" is not an object of channels`
        : `the input of graph "${name}" does not fit at "${channel}"${issues === undefined ? "" : `: ${issues}`}`;
  return new StatewrightError("invalid_input", {
    what,
    next: `Give the channels that the state declares: ${known.join(", ")}`,
    place,
    details: cause.details,
    cause,
  });
}

function checkSet(session: Session, state: State): void {
  const { channels } = session.plan.graph.state;
  const missing = Object.keys(channels).filter((name) => !Object.hasOwn(state, name));
  if (missing.length === 0) return;
  throw new StatewrightError("invalid_input", {
    what: `the input of graph "${session.plan.graph.name}" lacks ${missing.map((name) => `"${name}"`).join(", ")}`,
    next: "Give them in the input, or give the channels a default",
    place: { graph: session.plan.graph.name },
    details: missing,
  });
}
