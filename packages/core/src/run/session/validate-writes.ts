/**
 * Admission: what no codec can save fails the task that gave it, with a store and without, before anything is applied. A
 * graph that works in memory works with a store too.
 */
import { type ErrorPlace, isStatewrightError, located } from "../../base/errors.ts";
import { isData } from "../../base/json.ts";
import type { Plan } from "../../compile/plan.ts";
import type { Codec } from "../../state/codec.ts";
import type { Finished, StepResult } from "../superstep/superstep.ts";
import type { TaskOutcome, Write } from "./returns.ts";
import type { Session } from "./session.ts";

/** Throws `unencodable_value` for a write or a send of a node that cannot be saved; it names node, channel and path. */
export function admitOutcome({ plan, codec }: Session, node: string, outcome: TaskOutcome): TaskOutcome {
  admitWrites(plan, codec, outcome.writes, `what the node "${node}" wrote to`, node);
  for (const lead of outcome.leads) {
    if (lead.kind === "send")
      admit(codec, lead.input, `the input that the node "${node}" sent to "${lead.target}"`, placeIn(plan, node));
  }
  return outcome;
}

/** Throws `unencodable_value` for a write that cannot be saved. `what` stands before the name of the channel. */
export function admitWrites(plan: Plan, codec: Codec, writes: readonly Write[], what: string, node?: string): void {
  for (const write of writes) {
    const { channel } = write;
    const kind = plan.graph.state.channels[channel]?.kind;
    if (kind === "untracked") continue;
    // Of a draft only what is new is looked at.
    if (
      write.kind === "draft"
        ? write.patches.every(({ path, value }) => isData(value, path.length))
        : isData(write.value)
    )
      continue;
    const given = kind === "record" && write.kind === "fold" ? fromEntries(write.value) : write.value;
    admit(codec, given, `${what} the channel "${channel}"`, { ...placeIn(plan, node), channel });
  }
}

/** A record's write is a list of entries by now; its author knows an object. */
function fromEntries(write: unknown): unknown {
  return Array.isArray(write) ? Object.fromEntries(write) : write;
}

/** Throws `unencodable_value` for what a reducer or the sends of an edge made and no codec can save. */
export function admitStep({ plan, codec }: Session, finished: readonly Finished[], result: StepResult): void {
  for (const [channel, delta] of Object.entries(result.deltas)) {
    if (plan.graph.state.channels[channel]?.kind !== "reduce" || delta.kind !== "replace") continue;
    const writer = finished.findLast(({ outcome }) => outcome.writes.some((write) => write.channel === channel));
    const node = writer?.task.node;
    const what = `what the reducer of the channel "${channel}" made of the write of "${node}"`;
    admit(codec, delta.value, what, { ...placeIn(plan, node), channel });
  }
  for (const { input, node, from } of result.tasks)
    if (input !== undefined) admitSend(plan, codec, node, from?.[0], result.inputs[input]);
  for (const { sent, node, from } of result.held ?? [])
    if (sent !== undefined) admitSend(plan, codec, node, from[0], sent.input);
}

function admitSend(plan: Plan, codec: Codec, node: string, from: string | undefined, input: unknown): void {
  admit(codec, input, `the input that the sends after "${from}" selected for "${node}"`, placeIn(plan, from));
}

/** Throws `unencodable_value` for a value that cannot be saved. Plain data costs a look; anything else is for the codec to say. */
export function admit(codec: Codec, value: unknown, what: string, place: ErrorPlace = {}): void {
  if (isData(value)) return;
  try {
    codec.encode(value, what);
  } catch (error) {
    throw isStatewrightError(error) ? located(error, place) : error;
  }
}

function placeIn(plan: Plan, node: string | undefined): ErrorPlace {
  return { graph: plan.graph.name, ...(node === undefined ? {} : { node }) };
}
