/** The input of a run, or of a call of an inner graph: parsed, then folded into the first checkpoint. */

import { checkAnswered } from "../../base/async-schema.ts";
import { describeThrown, isStatewrightError, StatewrightError } from "../../base/errors.ts";
import { disregardPromises } from "../../base/ignore-rejections.ts";
import { isPlainObject } from "../../base/json.ts";
import { issuesText, parseWith, type SchemaIssue } from "../../base/schema.ts";
import type { Plan } from "../../compile/plan.ts";
import { START } from "../../define/edge.ts";
import { overwrite } from "../../state/channel.ts";
import type { Codec } from "../../state/codec.ts";
import { checkGiven } from "../conversation/input-messages.ts";
import { readUpdate, type State, type Write } from "../session/returns.ts";
import type { Session } from "../session/session.ts";
import { admitStep, admitWrites } from "../session/validate-writes.ts";
import { closedFirst, closeLeft } from "./cancel-pending-calls.ts";
import { commitInput } from "./commit.ts";
import { lettersBefore, writesOf } from "./drain-inbox.ts";
import { firstTasks, foldInput } from "./superstep.ts";

/**
 * Fold the input into the thread's state. What was pending there is over: a fork may begin with a new input, and so may a call of
 * a graph that is kept when the one before it was given up. Calls of tools that it leaves open get their answers first.
 */
export async function inputStep(session: Session, writes: readonly Write[]): Promise<void> {
  const { plan, saved, control } = session;
  const step = session.step + 1;
  const letters = session.inbox.mayHold() ? await lettersBefore(session) : [];
  const given = [...writesOf(session, letters), ...writes];
  checkGiven(plan, session.state, writes);
  let folded = foldInput(plan, session.state, given);
  const isOver = control.tasks.some(({ node }) => plan.nodes.get(node)?.tools !== undefined);
  const closing =
    saved === undefined || !isOver
      ? undefined
      : await closeLeft(session, saved, folded.state, "a new input came before it");
  if (closing !== undefined) folded = foldInput(plan, session.state, closedFirst(closing, given));
  const { state, deltas } = folded;
  checkSet(session, state);
  session.snapshot = session.kernel.initial()[0];
  const result = { state, deltas, ...firstTasks(plan, step, state) };
  admitStep(session, [], result);
  await commitInput(session, result, "input", letters, closing?.longTerm);
  if (session.within === undefined) session.inbox.passed(letters);
}

/** Parse the input. For a channel with a reducer it is the whole value, not one write. Throws `invalid_input`. */
export function readInput(plan: Plan, codec: Codec, given: unknown): readonly Write[] {
  const { channels } = plan.graph.state;
  const input = parsedInput(plan, given);
  const whole = ([name, value]: readonly [string, unknown]): readonly [string, unknown] =>
    value !== undefined && Object.hasOwn(channels, name) && channels[name]?.kind === "reduce"
      ? [name, overwrite(value)]
      : [name, value];
  try {
    const channelWise = isPlainObject(input) ? Object.fromEntries(Object.entries(input).map(whole)) : input;
    const writes = readUpdate(plan, START, channelWise);
    admitWrites(plan, codec, writes, `the input of graph "${plan.graph.name}" for`);
    return writes;
  } catch (cause) {
    disregardPromises(given);
    throw inputError(plan, cause);
  }
}

/** What the input schema makes of an input; private channels are no part of one. */
function parsedInput({ graph }: Plan, given: unknown): unknown {
  const { name, input } = graph;
  const parsed = input === undefined ? { ok: true as const, value: given } : parseWith(input, given);
  if (!parsed.ok) {
    checkAnswered(parsed, `the input of graph "${name}"`, { graph: name });
    throw new StatewrightError("invalid_input", {
      what: `the input of graph "${name}" does not fit: ${issuesText(parsed.issues)}`,
      next: "Give what its input schema asks for",
      place: { graph: name },
      details: parsed.issues,
      cause: parsed.cause,
    });
  }
  const hidden = isPlainObject(given) ? Object.keys(given).find((key) => graph.private.has(key)) : undefined;
  if (hidden === undefined) return parsed.value;
  throw new StatewrightError("invalid_input", {
    what: `the input of graph "${name}" has "${hidden}", which is private to its nodes`,
    next: "Leave it out, or take it from the graph's private channels",
    place: { graph: name, channel: hidden },
  });
}

/** What is wrong with an input, in the words of who gives it. */
function inputError(plan: Plan, cause: unknown): StatewrightError {
  if (isStatewrightError(cause, "unencodable_value") || isStatewrightError(cause, "async_schema")) return cause;
  const { name, state } = plan.graph;
  if (!isStatewrightError(cause)) {
    return new StatewrightError("invalid_input", {
      what: `the input of graph "${name}" cannot be read: ${describeThrown(cause)}`,
      next: "Give plain data, without getters and proxies that throw",
      place: { graph: name },
      cause,
    });
  }
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
    cause: cause.cause ?? cause,
  });
}

/** Throws `invalid_input` when a channel without a default has no value. */
export function checkSet({ plan }: Session, state: State): void {
  const missing = Object.keys(plan.graph.state.channels).filter((name) => !Object.hasOwn(state, name));
  if (missing.length > 0) throw inputLacks(plan, missing);
}

/** The channels without a default that these writes leave out: a thread that is to have them must exist already. */
export function unsetBy({ graph }: Plan, writes: readonly Write[]): readonly string[] {
  const { channels } = graph.state;
  const set = new Set(writes.map(({ channel }) => channel));
  return Object.keys(channels).filter((name) => !set.has(name) && channels[name]?.initial() === undefined);
}

export function inputLacks({ graph }: Plan, missing: readonly string[]): StatewrightError {
  return new StatewrightError("invalid_input", {
    what: `the input of graph "${graph.name}" lacks ${missing.map((name) => `"${name}"`).join(", ")}`,
    next: "Give them in the input, or give the channels a default",
    place: { graph: graph.name },
    details: missing,
  });
}
