/** The input of a run, or of a call of a nested graph: parsed, then applied in the first checkpoint. */

import { checkSyncResult } from "../../base/async-schema.ts";
import { describeThrown, isStatewrightError, StatewrightError } from "../../base/errors.ts";
import { ignoreRejections } from "../../base/ignore-rejections.ts";
import { describeValue, isPlainObject } from "../../base/json.ts";
import { describeIssues, parseWith, type SchemaIssue } from "../../base/schema.ts";
import type { Plan } from "../../compile/plan.ts";
import { START } from "../../define/edge.ts";
import { overwrite } from "../../state/channel.ts";
import type { Codec } from "../../state/codec.ts";
import type { Position } from "../session/parts/position.ts";
import { assignMessageIds } from "../session/reduce-writes.ts";
import { readUpdate, type State, type Write } from "../session/returns.ts";
import type { Session } from "../session/session.ts";
import { validateStep, validateWrites } from "../session/validate-writes.ts";
import { cancelUnansweredCalls, mergeCancelledWrites } from "./cancel-pending-calls.ts";
import { commitInput, hasToolTask } from "./commit.ts";
import { checkInputMessages, listUndeliveredSteering, toInboxWrites } from "./drain-inbox.ts";
import { planFirstTasks, reduceInput } from "./superstep.ts";

/**
 * Applies the input to the state of the thread. Pending work ends here: a fork may start with a new input, and so may
 * a call of a persistent subgraph after an abandoned call. Pending tool calls are answered first.
 */
export async function applyInput(session: Session, parsedWrites: readonly Write[]): Promise<void> {
  const { plan, run, namespace } = session.position;
  const { control } = session.progress;
  const { saved } = session.journal;
  const step = session.position.step + 1;
  const writes = assignMessageIds(plan, parsedWrites, `${run.thread}/${namespace}/input ${step}`);
  const inboxMessages = session.inboxes.inbox.mayHaveMessages() ? await listUndeliveredSteering(session) : [];
  const allWrites = [...toInboxWrites(session.position, session.env.codec, inboxMessages), ...writes];
  checkInputMessages(plan, session.progress.state, writes);
  let reduced = reduceInput(plan, session.progress.state, allWrites);
  const hasOpenCalls = hasToolTask(session.position, control.tasks);
  const closing =
    saved === undefined || !hasOpenCalls
      ? undefined
      : await cancelUnansweredCalls(session.position, session.progress, saved, {
          nextState: reduced.state,
          reason: "cancelled by a new input",
        });
  if (closing !== undefined)
    reduced = reduceInput(plan, session.progress.state, mergeCancelledWrites(closing, allWrites));
  const { state, deltas } = reduced;
  checkRequiredChannels(session.position, state);
  session.progress.snapshot = session.progress.kernel.enter()[0];
  const result = { state, deltas, ...planFirstTasks(plan, step, { state, context: session.env.context }) };
  validateStep(session.position, session.env.codec, [], result);
  await commitInput(session, result, "input", { inboxMessages, longTerm: closing?.longTerm });
  if (session.position.nesting === undefined) session.inboxes.inbox.acknowledge(inboxMessages);
}

/**
 * Parses the input. Throws `invalid_input`. For a channel with a reducer, the input is the whole value and not a
 * single write.
 */
export function parseInputWrites(plan: Plan, codec: Codec, value: unknown): readonly Write[] {
  const { channels } = plan.graph.state;
  const input = parseWithSchema(plan, value);
  const toOverwrite = ([name, value]: readonly [string, unknown]): readonly [string, unknown] =>
    value !== undefined && Object.hasOwn(channels, name) && channels[name]?.kind === "reduce"
      ? [name, overwrite(value)]
      : [name, value];
  try {
    const channelValues = isPlainObject(input) ? Object.fromEntries(Object.entries(input).map(toOverwrite)) : input;
    const writes = readUpdate(plan, START, channelValues);
    validateWrites(plan, codec, writes, { label: `the input of graph "${plan.graph.name}" for` });
    return writes;
  } catch (cause) {
    ignoreRejections(value);
    throw toInputError(plan, cause, value);
  }
}

/** Parses the input with the input schema. Throws for private channels. */
function parseWithSchema({ graph }: Plan, value: unknown): unknown {
  const { name, input } = graph;
  const parsed = input === undefined ? { ok: true as const, value } : parseWith(input, value);
  if (!parsed.ok) {
    checkSyncResult(parsed, `the input of graph "${name}"`, { graph: name });
    throw new StatewrightError("invalid_input", {
      what: `the input of graph "${name}" does not match its schema: ${describeIssues(parsed.issues)}`,
      next: "Pass an input that matches the input schema",
      place: { graph: name },
      details: parsed.issues,
      cause: parsed.cause,
    });
  }
  const privateKey = isPlainObject(value) ? Object.keys(value).find((key) => graph.private.has(key)) : undefined;
  if (privateKey === undefined) return parsed.value;
  throw new StatewrightError("invalid_input", {
    what: `the input of graph "${name}" has the key "${privateKey}", which is a private channel`,
    next: "Remove it from the input, or from the graph's private channels",
    place: { graph: name, channel: privateKey },
  });
}

/** Converts an error of the write parser to an error about the input. */
function toInputError(plan: Plan, cause: unknown, value: unknown): StatewrightError {
  if (isStatewrightError(cause, "unencodable_value") || isStatewrightError(cause, "async_schema")) return cause;
  const { name, state } = plan.graph;
  if (!isStatewrightError(cause)) {
    return new StatewrightError("invalid_input", {
      what: `the input of graph "${name}" cannot be read: ${describeThrown(cause)}`,
      next: "Pass plain data, without getters and proxies that throw",
      place: { graph: name },
      cause,
    });
  }
  const { node: _start, ...place } = cause.place;
  const { channel } = place;
  const channelNames = Object.keys(state.channels).map((each) => `"${each}"`);
  const issues = Array.isArray(cause.details) ? describeIssues(cause.details as readonly SchemaIssue[]) : undefined;
  const isText = channel === undefined && typeof value === "string";
  const agentHint =
    isText && Object.hasOwn(state.channels, "messages") ? ". For an agent pass agent.toInput(text)" : "";
  const what =
    cause.code === "unknown_channel"
      ? `the input of graph "${name}" has the key "${channel}", which is no channel of its state`
      : channel === undefined
        ? `the input of graph "${name}": expected an object of channels, got ${describeValue(value)}`
        : `the input of graph "${name}" is invalid at "${channel}"${issues === undefined ? "" : `: ${issues}`}`;
  return new StatewrightError("invalid_input", {
    what,
    next: `Pass the channels of the state: ${channelNames.join(", ")}${agentHint}`,
    place,
    details: cause.details,
    cause: cause.cause ?? cause,
  });
}

/** Throws `invalid_input` when a channel without a default has no value. */
export function checkRequiredChannels({ plan }: Position, state: State): void {
  const missing = Object.keys(plan.graph.state.channels).filter((name) => !Object.hasOwn(state, name));
  if (missing.length > 0) throw createMissingInputError(plan, missing);
}

/** Lists the channels without a default that these writes leave unset. Such an update requires an existing thread. */
export function listUnsetChannels({ graph }: Plan, writes: readonly Write[]): readonly string[] {
  const { channels } = graph.state;
  const set = new Set(writes.map(({ channel }) => channel));
  return Object.keys(channels).filter((name) => !set.has(name) && channels[name]?.initial() === undefined);
}

export function createMissingInputError({ graph }: Plan, missing: readonly string[]): StatewrightError {
  return new StatewrightError("invalid_input", {
    what: `the input of graph "${graph.name}" lacks ${missing.map((name) => `"${name}"`).join(", ")}`,
    next: "Pass them in the input, or add a default to the channels",
    place: { graph: graph.name },
    details: missing,
  });
}
