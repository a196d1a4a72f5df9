/** Compares a crashed run with the reference run without a crash and lists the forbidden differences. */
import type { CrashEffect, CrashLocation } from "./external-world.ts";
import type { CrashRunResult } from "./run-process.ts";

/** Something that a crash lost, repeated or changed. */
export interface CrashFinding {
  readonly kind: "lost" | "repeated" | "diverged";
  /** Subject of the finding: an effect, an interrupt, a channel, the path or the end. */
  readonly about: string;
  /** Description of the difference, a single sentence. */
  readonly message: string;
  /** Advice for a fix. */
  readonly next: string;
  readonly node?: string | undefined;
  readonly effect?: string | undefined;
}

/** Result and external effects of a run. */
export interface ObservedRun {
  readonly result: CrashRunResult;
  readonly effects: readonly CrashEffect[];
}

/** Run of a program: the crash, if any, and the result. */
export interface CrashRun extends ObservedRun {
  readonly graph: string;
  /** Crash points of the first process, in order. */
  readonly points: readonly string[];
  readonly died: boolean;
}

/** Lists all differences between a crashed run and the reference run. Channels in `varying` are not compared. */
export function findCrashFindings(
  observed: ObservedRun,
  reference: ObservedRun,
  varying: readonly string[],
): readonly CrashFinding[] {
  const { status } = observed.result.end;
  const isFinished = status === "done" || status === "cancelled";
  return [
    ...findExtraEffects(observed, reference),
    ...(isFinished ? findLostEffects(observed, reference) : []),
    ...(status === "in doubt" ? [] : findEndFindings(observed.result, reference.result)),
    ...(isFinished ? findStateFindings(observed.result, reference.result, varying) : []),
  ];
}

/** Finds the effects that happened more often than without a crash. */
function findExtraEffects(observed: ObservedRun, reference: ObservedRun): readonly CrashFinding[] {
  const [actualCounts, expectedCounts] = [countEffects(observed.effects), countEffects(reference.effects)];
  const findings: CrashFinding[] = [];
  for (const [what, count] of actualCounts) {
    const usual = expectedCounts.get(what) ?? 0;
    if (count <= usual) continue;
    const place = observed.effects.findLast((effect) => effect.what === what)?.place ?? {};
    if (usual === 0)
      findings.push({
        kind: "diverged",
        about: what,
        message: `"${what}" happened ${formatLocation(place)}, but does not happen without a crash`,
        next: "Decide from the state or from recorded step results: other values can change after a crash",
        ...pickNames(place),
      });
    else
      findings.push({
        kind: "repeated",
        about: what,
        message:
          place.kind === "interrupt"
            ? `the interrupt ${what} was raised again although its answer was saved: ${formatCount(count)} instead of ${formatCount(usual)}`
            : `"${what}" happened ${formatCount(count)}${usual === 1 ? "" : ` instead of ${formatCount(usual)}`}, ${formatLocation(place)}`,
        next: getAdvice(place),
        ...pickNames(place),
      });
  }
  return findings;
}

/** Finds the effects that happened less often than without a crash. */
function findLostEffects(observed: ObservedRun, reference: ObservedRun): readonly CrashFinding[] {
  const [actualCounts, expectedCounts] = [countEffects(observed.effects), countEffects(reference.effects)];
  const findings: CrashFinding[] = [];
  for (const { what, place } of reference.effects) {
    const [count, usual] = [actualCounts.get(what) ?? 0, expectedCounts.get(what) ?? 0];
    if (count >= usual || findings.some((each) => each.about === what)) continue;
    findings.push({
      kind: "lost",
      about: what,
      message:
        place.kind === "interrupt"
          ? `the interrupt ${what} was answered ${formatCount(count)}, but ${formatCount(usual)} without a crash`
          : `"${what}" happened ${formatCount(count)}, but ${formatCount(usual)} without a crash, ${formatLocation(place)}`,
      next: "Record the effect only after it happened: return from the step or the tool when the effect is done",
      ...pickNames(place),
    });
  }
  return findings;
}

function getAdvice({ node, effect, kind, class: effectClass }: CrashLocation): string {
  if (kind === undefined)
    return node === undefined
      ? "Move the effect into a step or a tool: other code is not recorded"
      : `A node body runs again after a crash. Move the effect into a step: step("…", ({ idempotencyKey }) => …, { effect: "once" })`;
  if (kind === "interrupt")
    return "A node body runs again from its first line after a crash, and an interrupt with another payload is a new interrupt: build the payload from the state, the input or a step result";
  if (effectClass === "once")
    return `The ${kind} "${effect}" is once and was started again: its reconcile must detect that the effect happened`;
  const reason = effectClass === undefined ? "" : ` is ${effectClass}, so it`;
  return `The ${kind} "${effect}"${reason} runs again when a crash happens before its outcome is saved. Pass its idempotencyKey to the external service, or mark it { effect: "once" }`;
}

function findEndFindings({ end }: CrashRunResult, reference: CrashRunResult): readonly CrashFinding[] {
  if (end.status === reference.end.status) return [];
  const description =
    end.status === "waits"
      ? `is waiting for ${end.reason}`
      : `is ${end.status}${end.reason === undefined ? "" : `: ${end.reason}`}`;
  const next =
    end.status === "waits"
      ? "Add the answer to `answers`, or raise the same interrupt under the same key again"
      : "Check the inputs of the node: after a crash a node has its state, its context and its recorded step results";
  return [
    {
      kind: "diverged",
      about: "the end",
      message: `the run ${description}, but is ${reference.end.status} without a crash`,
      next,
    },
  ];
}

function findStateFindings(
  result: CrashRunResult,
  reference: CrashRunResult,
  varying: readonly string[],
): readonly CrashFinding[] {
  const findings: CrashFinding[] = [];
  const at = reference.path.findIndex((nodes, index) => nodes !== result.path[index]);
  if (at >= 0 || result.path.length !== reference.path.length) {
    const superstep = at >= 0 ? at : reference.path.length;
    findings.push({
      kind: "diverged",
      about: "the path",
      message: `superstep ${superstep} ran ${result.path[superstep] ?? "nothing"}, but ${reference.path[superstep] ?? "nothing"} without a crash`,
      next: "Routes must decide from the state alone",
    });
  }
  for (const channel of new Set([...Object.keys(reference.state), ...Object.keys(result.state)])) {
    const [actual, expected] = [result.state[channel], reference.state[channel]];
    if (actual !== expected && !varying.includes(channel))
      findings.push(createChannelFinding(channel, actual, expected));
  }
  return findings;
}

function createChannelFinding(channel: string, actual: string | undefined, expected: string | undefined): CrashFinding {
  const message = `the channel "${channel}" is ${formatValue(actual)}, but ${formatValue(expected)} without a crash`;
  const [actualItems, expectedItems] = [parseItems(actual), parseItems(expected)];
  const about = `channel ${channel}`;
  if (
    actual === undefined ||
    (actualItems !== undefined && expectedItems !== undefined && actualItems.length < expectedItems.length)
  )
    return {
      kind: "lost",
      about,
      message,
      next: "Variables of a node and unsaved channels are lost with the process: write the value to a saved channel",
    };
  if (actualItems !== undefined && expectedItems !== undefined && actualItems.length > expectedItems.length)
    return {
      kind: "repeated",
      about,
      message,
      next: "A node writes by its return value: remove other writes to the channel",
    };
  return {
    kind: "diverged",
    about,
    message,
    next: "Create times, ids and counters in a step: step results are recorded",
  };
}

function parseItems(text: string | undefined): readonly unknown[] | undefined {
  if (text === undefined) return undefined;
  const value: unknown = JSON.parse(text);
  return Array.isArray(value) ? value : undefined;
}

function formatValue(text: string | undefined): string {
  if (text === undefined) return "not there";
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

function countEffects(effects: readonly CrashEffect[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { what } of effects) counts.set(what, (counts.get(what) ?? 0) + 1);
  return counts;
}

function formatLocation({ node, effect, kind }: CrashLocation): string {
  if (kind === "tool") return `in tool "${effect}"`;
  if (kind === "step") return `in step "${effect}" of node "${node}"`;
  return node === undefined ? "outside every node" : `in the body of node "${node}", outside any step`;
}

function pickNames({ node, effect }: CrashLocation): Pick<CrashFinding, "node" | "effect"> {
  return { ...(node === undefined ? {} : { node }), ...(effect === undefined ? {} : { effect }) };
}

function formatCount(count: number): string {
  return count === 0 ? "never" : count === 1 ? "once" : count === 2 ? "twice" : `${count} times`;
}
