/** What a crash changed, and must not: compared with the run that nobody killed. */
import type { CrashEffect, CrashPlace } from "./external-world.ts";
import type { CrashTale } from "./run-process.ts";

/** One thing that a crash lost, repeated or changed. */
export interface CrashFinding {
  readonly kind: "lost" | "repeated" | "diverged";
  /** What it is about: an effect, a question, a channel, the path, the end. */
  readonly about: string;
  /** What happened, in a sentence. */
  readonly said: string;
  /** What to do. */
  readonly next: string;
  readonly node?: string | undefined;
  readonly effect?: string | undefined;
}

/** A run, and what it did outside. */
export interface CrashStory {
  readonly tale: CrashTale;
  readonly effects: readonly CrashEffect[];
}

/** One run of a program: where it died, if it did, and what came of it. */
export interface CrashRun extends CrashStory {
  readonly graph: string;
  /** The points of its first life, in order. */
  readonly points: readonly string[];
  readonly died: boolean;
}

/** Everything in which a run that died differs from the whole one. */
export function crashFindings(
  story: CrashStory,
  whole: CrashStory,
  varying: readonly string[],
): readonly CrashFinding[] {
  const { status } = story.tale.end;
  const ended = status === "done" || status === "cancelled";
  return [
    ...effectFindings(story, whole, ended),
    ...(status === "in doubt" ? [] : endFindings(story.tale, whole.tale)),
    ...(ended ? stateFindings(story.tale, whole.tale, varying) : []),
  ];
}

function effectFindings(story: CrashStory, whole: CrashStory, ended: boolean): readonly CrashFinding[] {
  const [now, before] = [counted(story.effects), counted(whole.effects)];
  const found: CrashFinding[] = [];
  for (const [what, count] of now) {
    const usual = before.get(what) ?? 0;
    if (count <= usual) continue;
    const place = story.effects.findLast((effect) => effect.what === what)?.place ?? {};
    if (usual === 0)
      found.push({
        kind: "diverged",
        about: what,
        said: `"${what}" happened ${inPlace(place)}, and does not happen without a crash`,
        next: "Decide from the state, or from what a step has recorded: nothing else is the same after a crash",
        ...named(place),
      });
    else
      found.push({
        kind: "repeated",
        about: what,
        said:
          place.kind === "question"
            ? `the question ${what} was asked again, though its answer was saved: ${times(count)} instead of ${times(usual)}`
            : `"${what}" happened ${times(count)}${usual === 1 ? "" : ` instead of ${times(usual)}`}, ${inPlace(place)}`,
        next: adviceOf(place),
        ...named(place),
      });
  }
  if (!ended) return found;
  for (const { what, place } of whole.effects) {
    const [count, usual] = [now.get(what) ?? 0, before.get(what) ?? 0];
    if (count >= usual || found.some((each) => each.about === what)) continue;
    found.push({
      kind: "lost",
      about: what,
      said:
        place.kind === "question"
          ? `the question ${what} was answered ${times(count)}, and ${times(usual)} without a crash`
          : `"${what}" happened ${times(count)}, and ${times(usual)} without a crash, ${inPlace(place)}`,
      next: "Whatever says that it has happened must not be recorded before it has: return from the step or the tool when it is done",
      ...named(place),
    });
  }
  return found;
}

function adviceOf({ node, effect, kind, class: effectClass }: CrashPlace): string {
  if (kind === undefined)
    return node === undefined
      ? "Do it in a step or in a tool: nothing else is recorded"
      : `A body starts again after a crash. Do it in a step: step("…", ({ idempotencyKey }) => …, { effect: "once" })`;
  if (kind === "question")
    return "After a crash a body asks again from its first line, and a question that shows something else is another one: show what comes from the state, the input or a step";
  if (effectClass === "once")
    return `The ${kind} "${effect}" is once, and was begun again: its reconcile must find what has happened`;
  const why = effectClass === undefined ? "" : ` is ${effectClass}, so it`;
  return `The ${kind} "${effect}"${why} is done again when a crash comes before its outcome is saved. Give the other side its idempotencyKey, or mark it { effect: "once" }`;
}

function endFindings({ end }: CrashTale, whole: CrashTale): readonly CrashFinding[] {
  if (end.status === whole.end.status) return [];
  const how =
    end.status === "waits" ? `waits for ${end.why}` : `is ${end.status}${end.why === undefined ? "" : `: ${end.why}`}`;
  const next =
    end.status === "waits"
      ? "Answer it in `answers`, or let the node ask the same question under the same key again"
      : "Look at what the node reads: after a crash it has its state, its context, and what its steps recorded";
  return [
    { kind: "diverged", about: "the end", said: `the run ${how}, and is ${whole.end.status} without a crash`, next },
  ];
}

function stateFindings(tale: CrashTale, whole: CrashTale, varying: readonly string[]): readonly CrashFinding[] {
  const found: CrashFinding[] = [];
  const at = whole.path.findIndex((nodes, index) => nodes !== tale.path[index]);
  if (at >= 0 || tale.path.length !== whole.path.length) {
    const place = at >= 0 ? at : whole.path.length;
    found.push({
      kind: "diverged",
      about: "the path",
      said: `superstep ${place} ran ${tale.path[place] ?? "nothing"}, and ${whole.path[place] ?? "nothing"} without a crash`,
      next: "Routes must decide from the state alone",
    });
  }
  for (const channel of new Set([...Object.keys(whole.state), ...Object.keys(tale.state)])) {
    const [now, before] = [tale.state[channel], whole.state[channel]];
    if (now !== before && !varying.includes(channel)) found.push(channelFinding(channel, now, before));
  }
  return found;
}

function channelFinding(channel: string, now: string | undefined, before: string | undefined): CrashFinding {
  const said = `the channel "${channel}" is ${shown(now)}, and ${shown(before)} without a crash`;
  const [one, other] = [itemsOf(now), itemsOf(before)];
  const about = `channel ${channel}`;
  if (now === undefined || (one !== undefined && other !== undefined && one.length < other.length))
    return {
      kind: "lost",
      about,
      said,
      next: "What a node keeps in variables, or in a channel that is not saved, is gone with the process: write it to a channel",
    };
  if (one !== undefined && other !== undefined && one.length > other.length)
    return {
      kind: "repeated",
      about,
      said,
      next: "A node writes by what it returns; let nothing else add to the channel",
    };
  return {
    kind: "diverged",
    about,
    said,
    next: "A value that a process makes up, such as a time, an id or a counter, belongs into a step: its result is recorded",
  };
}

function itemsOf(text: string | undefined): readonly unknown[] | undefined {
  if (text === undefined) return undefined;
  const value: unknown = JSON.parse(text);
  return Array.isArray(value) ? value : undefined;
}

function shown(text: string | undefined): string {
  if (text === undefined) return "not there";
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

function counted(effects: readonly CrashEffect[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { what } of effects) counts.set(what, (counts.get(what) ?? 0) + 1);
  return counts;
}

function inPlace({ node, effect, kind }: CrashPlace): string {
  if (kind === "tool") return `in tool "${effect}"`;
  if (kind === "step") return `in step "${effect}" of node "${node}"`;
  return node === undefined ? "outside every node" : `in the body of node "${node}", outside any step`;
}

function named({ node, effect }: CrashPlace): Pick<CrashFinding, "node" | "effect"> {
  return { ...(node === undefined ? {} : { node }), ...(effect === undefined ? {} : { effect }) };
}

function times(count: number): string {
  return count === 0 ? "never" : count === 1 ? "once" : count === 2 ? "twice" : `${count} times`;
}
