/**
 * State as it is saved: encoded deltas per channel, with a new base when the deltas since the last one outgrow the value,
 * and the way back.
 */
import { StatewrightError } from "../../base/errors.ts";
import { isPlainObject } from "../../base/json.ts";
import { messageIssue } from "../../model/message.ts";
import type { Channel } from "../../state/channel.ts";
import { type Codec, encodeAround, isPlainText } from "../../state/codec.ts";
import { applyDelta, type Delta, type Patch } from "../../state/delta.ts";
import type { DeltaRow } from "../checkpoint.ts";
import type { ChannelRows } from "../store.ts";
import { count, list } from "./row-shapes.ts";

/** Turns the deltas of supersteps into rows; remembers per channel how much was written since the last base. */
export interface StateWriter {
  rows(deltas: Readonly<Record<string, Delta>>, state: Readonly<Record<string, unknown>>): readonly DeltaRow[];
  /** Whether all that was written, now and before, is what JSON says as it is. */
  isPlain(): boolean;
}

/** Small patches are never worth a base: below this many bytes since the last one none is written. */
const smallestWorthBase = 4096;

/** A writer that starts from what is saved already: bytes per channel since its last base. */
export function stateWriter(
  channels: Readonly<Record<string, Channel>>,
  codec: Codec,
  saved: readonly ChannelRows[],
): StateWriter {
  const since = new Map(
    saved.map((rows) => [rows.channel, rows.deltas.slice(1).reduce((sum, delta) => sum + delta.text.length, 0)]),
  );
  let isPlain = saved.every(({ deltas }) => deltas.every(({ text }) => isPlainText(text)));
  const baseSize = new Map(saved.map((rows) => [rows.channel, rows.deltas[0]?.text.length ?? 0]));

  function row(channel: string, delta: Delta, value: unknown): DeltaRow {
    const text = textOf(codec, channel, delta);
    isPlain &&= isPlainText(text);
    if (delta.kind === "replace" || delta.kind === "clear") {
      since.set(channel, 0);
      baseSize.set(channel, text.length);
      return { channel, kind: delta.kind, base: true, text };
    }
    const written = (since.get(channel) ?? 0) + text.length;
    if (delta.kind === "patch" && written > smallestWorthBase && written > 2 * (baseSize.get(channel) ?? 0))
      return row(channel, { kind: "replace", value }, value);
    since.set(channel, written);
    return { channel, kind: delta.kind, base: false, text };
  }

  return {
    rows: (deltas, state) =>
      Object.entries(deltas)
        .filter(([channel]) => channels[channel]?.kind !== "untracked")
        .map(([channel, delta]) => row(channel, delta, state[channel])),
    isPlain: () => isPlain,
  };
}

/** The state that saved rows lead to; channels that were never written have their initial value. */
export function restoreState(
  channels: Readonly<Record<string, Channel>>,
  codec: Codec,
  saved: readonly ChannelRows[],
): Record<string, unknown> {
  const state = initialState(channels);
  for (const { channel, deltas } of saved) {
    if (!Object.hasOwn(channels, channel)) continue;
    const changes = joined(deltas.map((delta) => deltaOf(codec, delta)));
    state[channel] = changes.reduce(applyDelta, beginningOf(changes[0], state[channel]));
    // What a rollback has cleared was never set.
    if (state[channel] === undefined && channels[channel]?.kind !== "ephemeral") delete state[channel];
  }
  return state;
}

/** What the first change was made to, where the channel was of another kind when it was written: its schema refuses what comes of it. */
function beginningOf(first: Delta | undefined, initial: unknown): unknown {
  if (first?.kind === "append") return Array.isArray(initial) ? initial : [];
  if (first?.kind !== "patch") return initial;
  const [key] = first.patches[0]?.path ?? [];
  if (typeof key === "number") return Array.isArray(initial) ? initial : [];
  return typeof key !== "string" || isPlainObject(initial) ? initial : {};
}

/** Refuse a conversation that holds what is no message: its readers look at roles and blocks. Throws `store_corrupt`. */
export function checkMessages(
  channels: Readonly<Record<string, Channel>>,
  state: Readonly<Record<string, unknown>>,
): void {
  for (const [name, { kind }] of Object.entries(channels)) {
    const value = state[name];
    if (kind !== "messages" || value === undefined) continue;
    if (!isConversation(value)) throw noConversation(name);
  }
}

const isConversation = list((value) => messageIssue(value) === undefined && !Object.hasOwn(value as object, "remove"));

function noConversation(channel: string): StatewrightError {
  return new StatewrightError("store_corrupt", {
    what: `what stands there as the conversation of the channel "${channel}" is none`,
    next: "Restore the file from a backup, or fork from the last good checkpoint",
    place: { channel },
  });
}

/** Neighbours of one kind as one delta, so that a value is copied once and not once a superstep. */
export function joined(deltas: readonly Delta[]): readonly Delta[] {
  const groups: Delta[][] = [];
  for (const delta of deltas) {
    const group = groups[groups.length - 1];
    if (group?.[0]?.kind === delta.kind) group.push(delta);
    else groups.push([delta]);
  }
  return groups.flatMap((group): readonly Delta[] => {
    const [first] = group;
    if (group.length === 1) return group;
    if (first?.kind === "append")
      return [{ kind: "append", items: group.flatMap((delta) => (delta.kind === "append" ? delta.items : [])) }];
    if (first?.kind === "patch")
      return [{ kind: "patch", patches: group.flatMap((delta) => (delta.kind === "patch" ? delta.patches : [])) }];
    return group.slice(-1);
  });
}

/** Every channel at its initial value; a channel without one is absent. */
export function initialState(channels: Readonly<Record<string, Channel>>): Record<string, unknown> {
  const state: Record<string, unknown> = {};
  for (const [name, channel] of Object.entries(channels)) {
    const initial = channel.initial();
    if (initial !== undefined) state[name] = initial.value;
  }
  return state;
}

/** A saved delta again. Nothing of it is frozen: `applyDelta` freezes what becomes state, and to walk it twice is dear. */
export function deltaOf(codec: Codec, row: Pick<DeltaRow, "kind" | "text">): Delta {
  const data = codec.decode(row.text);
  switch (row.kind) {
    case "append":
      if (!Array.isArray(data)) throw noDelta();
      return { kind: "append", items: data };
    case "replace":
      return { kind: "replace", value: data };
    case "patch":
      if (!arePatches(data)) throw noDelta();
      return { kind: "patch", patches: data };
    case "clear":
      return { kind: "clear" };
  }
}

const isPath = list((key) => typeof key === "string" || count(key));

const areEach = list((data) => {
  if (!isPlainObject(data)) return false;
  const { op, path } = data;
  return (op === "add" || op === "replace" || op === "remove") && isPath(path);
});

function arePatches(data: unknown): data is readonly Patch[] {
  return areEach(data);
}

function noDelta(): StatewrightError {
  return new StatewrightError("store_corrupt", {
    what: "what stands there as a saved change is none",
    next: "Restore the file from a backup, or fork from the last good checkpoint",
  });
}

/** The text of a delta, as it is saved. */
export function textOf(codec: Codec, channel: string, delta: Delta): string {
  const what = `the channel "${channel}"`;
  switch (delta.kind) {
    case "append":
      return codec.encode(delta.items, what);
    case "replace":
      return codec.encode(delta.value, what);
    case "patch":
      return encodeAround(codec, delta.patches, what);
    case "clear":
      return "null";
  }
}
