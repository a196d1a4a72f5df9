/**
 * Write validation: a value that no codec can encode fails its task before any write is applied, with a store and
 * without a store. A graph that runs in memory therefore runs with a store too.
 */

import { addErrorPlace, type ErrorPlace, isStatewrightError } from "../../base/errors.ts";
import { isData } from "../../base/json.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { Plan } from "../../compile/plan.ts";
import type { Codec } from "../../state/codec.ts";
import type { Position } from "./parts/position.ts";
import { reduceWrites } from "./reduce-writes.ts";
import type { State, TaskOutcome, Write } from "./returns.ts";
import type { FinishedTask, StepResult } from "./step-result.ts";

/**
 * Throws `unencodable_value` for a write or a send of a node that cannot be encoded. The error names node, channel
 * and path.
 */
export function validateOutcome({ plan }: Position, codec: Codec, node: string, outcome: TaskOutcome): TaskOutcome {
  validateWrites(plan, codec, outcome.writes, { label: `the write of the node "${node}" to`, node });
  for (const route of outcome.routes) {
    if (route.kind === "send")
      validateEncodable(
        codec,
        route.input,
        `the input that the node "${node}" sent to "${route.target}"`,
        createErrorPlace(plan, node),
      );
  }
  return outcome;
}

/** Throws `unencodable_value` for a write that cannot be encoded. `label` precedes the channel name in the message. */
export function validateWrites(
  plan: Plan,
  codec: Codec,
  writes: readonly Write[],
  { label, node }: { readonly label: string; readonly node?: string | undefined },
): void {
  for (const write of writes) {
    const { channel } = write;
    const kind = plan.graph.state.channels[channel]?.kind;
    if (kind === "untracked") continue;
    // Checks only the new values of a draft.
    if (
      write.kind === "draft"
        ? write.patches.every(({ path, value }) => isData(value, path.length))
        : isData(write.value)
    )
      continue;
    const written = kind === "record" && write.kind === "reduce" ? toRecord(write.value) : write.value;
    validateEncodable(codec, written, `${label} the channel "${channel}"`, {
      ...createErrorPlace(plan, node),
      channel,
    });
  }
}

/** Turns the entries of a record write back into the object of its author. */
function toRecord(write: unknown): unknown {
  return Array.isArray(write) ? Object.fromEntries(write) : write;
}

/** Writes of a task that are not recorded yet. */
interface UnrecordedWrites {
  readonly task: Task;
  readonly writes: readonly Write[];
  readonly getState: () => State;
}

/**
 * Throws `invalid_update` or `unencodable_value` for writes that a reducer of the graph refuses. Called before the
 * writes are recorded: recorded writes that cannot be reduced would fail each resume.
 */
export function checkReducers(plan: Plan, codec: Codec, { task, writes, getState }: UnrecordedWrites): void {
  const { channels } = plan.graph.state;
  if (!writes.some(({ channel }) => channels[channel]?.kind === "reduce")) return;
  const finished = [{ task, outcome: { writes, routes: [] } }];
  validateReduced(plan, codec, finished, reduceWrites(plan, getState(), finished, []));
}

/** Throws `unencodable_value` for a reducer result or an edge's send that no codec can encode. */
export function validateStep(
  { plan }: Position,
  codec: Codec,
  finished: readonly FinishedTask[],
  result: StepResult,
): void {
  validateReduced(plan, codec, finished, result);
  for (const { input, node, from } of result.tasks)
    if (input !== undefined) validateSend(plan, codec, node, { from: from?.[0], input: result.inputs[input] });
  for (const { sent, node, from } of result.deferred ?? [])
    if (sent !== undefined) validateSend(plan, codec, node, { from: from[0], input: sent.input });
}

function validateReduced(
  plan: Plan,
  codec: Codec,
  finished: readonly FinishedTask[],
  { deltas }: Pick<StepResult, "deltas">,
): void {
  for (const [channel, delta] of Object.entries(deltas)) {
    if (plan.graph.state.channels[channel]?.kind !== "reduce" || delta.kind !== "replace") continue;
    const writer = finished.findLast(({ outcome }) => outcome.writes.some((write) => write.channel === channel));
    const node = writer?.task.node;
    const label = `the value that the reducer of the channel "${channel}" returned for the write of "${node}"`;
    validateEncodable(codec, delta.value, label, { ...createErrorPlace(plan, node), channel });
  }
}

function validateSend(
  plan: Plan,
  codec: Codec,
  node: string,
  { from, input }: { readonly from: string | undefined; readonly input: unknown },
): void {
  validateEncodable(
    codec,
    input,
    `the input that the edge after "${from}" sent to "${node}"`,
    createErrorPlace(plan, from),
  );
}

/**
 * Throws `unencodable_value` for a value that cannot be encoded. Plain data needs no encoding to pass; the codec
 * decides about other values.
 */
export function validateEncodable(codec: Codec, value: unknown, label: string, place: ErrorPlace = {}): void {
  if (isData(value)) return;
  try {
    codec.encode(value, label);
  } catch (error) {
    throw isStatewrightError(error) ? addErrorPlace(error, place) : error;
  }
}

function createErrorPlace(plan: Plan, node: string | undefined): ErrorPlace {
  return { graph: plan.graph.name, ...(node === undefined ? {} : { node }) };
}
