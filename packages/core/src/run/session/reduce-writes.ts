/** Reduces the writes of tasks into the next state, channel by channel, and assigns ids to written messages. Pure. */

import { describeThrown, StatewrightError } from "../../base/errors.ts";
import { fingerprint } from "../../base/ids.ts";
import { deepFreeze } from "../../base/json.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { Plan } from "../../compile/plan.ts";
import { START } from "../../define/edge.ts";
import type { Message, MessageWrite } from "../../model/message.ts";
import type { Channel } from "../../state/channel.ts";
import type { Delta } from "../../state/delta.ts";
import { holdsSingleValue, type State, type Write } from "./returns.ts";
import type { FinishedTask, StepResult } from "./step-result.ts";

/** Reduces an edit of a checkpoint. Keeps the ephemeral values, which the next tasks still see. */
export function reduceEdit(plan: Plan, state: State, writes: readonly Write[]): Pick<StepResult, "state" | "deltas"> {
  return reduceWrites(plan, state, [toExternalResult(writes)], []);
}

/** Attributes writes from outside of the nodes to a task of START. */
export function toExternalResult(writes: readonly Write[]): FinishedTask {
  return { task: { id: START, node: START }, outcome: { writes, routes: [] } };
}

interface ChannelWrites {
  readonly channel: string;
  readonly by: { readonly task: Task; readonly write: Write }[];
}

/** Reduces the writes of results into a state, in order, after clearing channels. Throws `channel_conflict`. */
export function reduceWrites(
  plan: Plan,
  state: State,
  results: readonly FinishedTask[],
  cleared: readonly string[],
): Pick<StepResult, "state" | "deltas"> {
  const written = new Map<string, ChannelWrites>();
  for (const { task, outcome } of results) {
    for (const write of outcome.writes) {
      const entry = written.get(write.channel) ?? { channel: write.channel, by: [] };
      entry.by.push({ task, write });
      written.set(write.channel, entry);
    }
  }
  const next: Record<string, unknown> = { ...state };
  const deltas: Record<string, Delta> = {};
  for (const name of cleared) {
    if (next[name] === undefined) continue;
    next[name] = undefined;
    deltas[name] = { kind: "clear" };
  }
  for (const entry of written.values()) {
    const channelResult = reduceChannel(plan, state[entry.channel], entry);
    next[entry.channel] = channelResult.value;
    deltas[entry.channel] = channelResult.delta;
  }
  return { state: Object.freeze(next), deltas };
}

function reduceChannel(
  plan: Plan,
  current: unknown,
  { channel: name, by }: ChannelWrites,
): { readonly value: unknown; readonly delta: Delta } {
  const channel = plan.graph.state.channels[name] as Channel;
  const isReducing = !holdsSingleValue(channel);
  const rivals = isReducing ? by.filter(({ write }) => write.kind === "overwrite") : by;
  if (rivals.length > 1 && new Set(rivals.map(({ task }) => task.id)).size > 1)
    throw createConflictError(
      plan,
      name,
      rivals.map(({ task }) => task),
      { isReducing },
    );
  const base = by.findLast(({ write }) => write.kind === "overwrite")?.write;
  const lastWrite = by[by.length - 1]?.write;
  if (base === undefined && by.length === 1 && lastWrite?.kind === "draft")
    return { value: deepFreeze(lastWrite.value), delta: { kind: "patch", patches: lastWrite.patches } };
  if (!isReducing)
    return channel.reduce(
      current,
      by.map(({ write }) => write.value),
    );
  const reducible = by.filter(({ write }) => write.kind !== "overwrite");
  const from = base === undefined ? current : base.value;
  if (channel.kind === "reduce") {
    const value = reducible.reduce(
      (before, each) => applyReducer(plan, name, each, { channel, current: before }),
      from,
    );
    return { value, delta: { kind: "replace", value } };
  }
  const result = channel.reduce(
    from,
    reducible.map(({ write }) => write.value),
  );
  return base === undefined ? result : { value: result.value, delta: { kind: "replace", value: result.value } };
}

/** Applies a single write with the user's reducer. A failure names the node of the write. */
function applyReducer(
  plan: Plan,
  name: string,
  { task: { node }, write }: ChannelWrites["by"][number],
  { channel, current }: { readonly channel: Channel; readonly current: unknown },
): unknown {
  try {
    return channel.reduce(current, [write.value]).value;
  } catch (cause) {
    throw new StatewrightError("invalid_update", {
      what: `the reducer of the channel "${name}" threw for a write of "${node}": ${describeThrown(cause)}`,
      next: "Fix the reducer: it gets the current value and one write and returns the next value",
      place: { graph: plan.graph.name, node, channel: name },
      cause,
    });
  }
}

function createConflictError(
  plan: Plan,
  channel: string,
  tasks: readonly Task[],
  { isReducing }: { readonly isReducing: boolean },
): StatewrightError {
  const nodes = [...new Set(tasks.map((task) => `"${task.node}"`))];
  const names =
    nodes.length > 1 ? nodes.join(" and ") : `${new Set(tasks.map(({ id }) => id)).size} tasks of ${nodes[0]}`;
  return new StatewrightError("channel_conflict", {
    what: `${names} ${isReducing ? "overwrote" : "wrote"} the channel "${channel}" in the same superstep, and nothing of the step was applied`,
    next: isReducing
      ? "Use one task to overwrite the channel"
      : "Write the channel from one task only, or make it a list, a record or a reduce channel",
    place: { graph: plan.graph.name, channel },
  });
}

/** Returns the writes with an id for each message whose id is empty. `place` is unique for the source of the writes. */
export function assignMessageIds(plan: Plan, writes: readonly Write[], place: string): readonly Write[] {
  if (!writes.some((write) => needsIds(plan, write))) return writes;
  let index = 0;
  const assignId = (message: MessageWrite): MessageWrite => {
    if (!hasEmptyId(message)) return message;
    const content = JSON.stringify([message.role, message.content]);
    const id = `msg_${fingerprint(`${place}\n${index++}\n${content}`)}`;
    return deepFreeze({ ...message, id });
  };
  return writes.map((write) => {
    if (!needsIds(plan, write)) return write;
    const value = write.value as MessageWrite | readonly MessageWrite[];
    return { ...write, value: isList(value) ? Object.freeze(value.map(assignId)) : assignId(value) };
  });
}

/** Returns true for a message without an id of its own. */
export function hasEmptyId(message: MessageWrite): message is Message {
  return "id" in message && message.id === "";
}

function needsIds({ graph }: Plan, { channel, value }: Write): boolean {
  if (graph.state.channels[channel]?.kind !== "messages") return false;
  const written = value as MessageWrite | readonly MessageWrite[];
  return isList(written) ? written.some(hasEmptyId) : hasEmptyId(written);
}

function isList(value: MessageWrite | readonly MessageWrite[]): value is readonly MessageWrite[] {
  return Array.isArray(value);
}
