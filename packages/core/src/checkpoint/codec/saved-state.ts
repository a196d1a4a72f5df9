/**
 * Saved state: encodes deltas per channel, with a new base when the deltas since the last base outgrow the value; and
 * restores the state.
 */
import { StatewrightError } from "../../base/errors.ts";
import { isPlainObject } from "../../base/json.ts";
import { findMessageIssue } from "../../model/message.ts";
import type { Channel } from "../../state/channel.ts";
import { type Codec, encodeWrapper, isPlainText } from "../../state/codec.ts";
import { applyDelta, type Delta, type Patch } from "../../state/delta.ts";
import { defineEntry } from "../../state/value-tags.ts";
import type { ChannelRows } from "../channel-rows.ts";
import type { DeltaRow } from "../checkpoint.ts";
import { checkList, isCount } from "./row-shapes.ts";

/** Converts the deltas of supersteps to rows; tracks per channel the bytes written since the last base. */
export interface StateWriter {
  rows(deltas: Readonly<Record<string, Delta>>, state: Readonly<Record<string, unknown>>): readonly DeltaRow[];
  /** Returns true if every delta so far, including earlier saved rows, is plain JSON. */
  isPlain(): boolean;
}

/** Minimum bytes of patches since the last base before a new base is written. */
const minPatchBytesForBase = 4096;

/** Creates a writer that continues from saved rows: bytes per channel since the last base. */
export function createStateWriter(
  channels: Readonly<Record<string, Channel>>,
  codec: Codec,
  saved: readonly ChannelRows[],
): StateWriter {
  const since = new Map(
    saved.map((rows) => [rows.channel, rows.deltas.slice(1).reduce((sum, delta) => sum + delta.text.length, 0)]),
  );
  let isPlain = saved.every(({ deltas }) => deltas.every(({ text }) => isPlainText(text)));
  const baseSize = new Map(saved.map((rows) => [rows.channel, rows.deltas[0]?.text.length ?? 0]));

  /**
   * Returns true if a first delta depends on the initial value of the channel. Only the graph knows that value, and a
   * file is read without the graph.
   */
  function needsInitialValue(channel: string, { kind }: Delta): boolean {
    if (baseSize.has(channel)) return false;
    const initial = channels[channel]?.initial()?.value;
    if (initial === undefined) return false;
    if (kind === "append") return Array.isArray(initial) && initial.length > 0;
    return kind === "patch" && (!isPlainObject(initial) || Object.keys(initial).length > 0);
  }

  function toRow(channel: string, delta: Delta, value: unknown): DeltaRow {
    if (needsInitialValue(channel, delta)) return toRow(channel, { kind: "replace", value }, value);
    const row = toDeltaRow(codec, channel, delta);
    const { text } = row;
    isPlain &&= isPlainText(text);
    if (row.base) {
      since.set(channel, 0);
      baseSize.set(channel, text.length);
      return row;
    }
    const written = (since.get(channel) ?? 0) + text.length;
    if (delta.kind === "patch" && written > minPatchBytesForBase && written > 2 * (baseSize.get(channel) ?? 0))
      return toRow(channel, { kind: "replace", value }, value);
    since.set(channel, written);
    if (!baseSize.has(channel)) baseSize.set(channel, 0);
    return row;
  }

  return {
    rows: (deltas, state) =>
      Object.entries(deltas)
        .filter(([channel]) => channels[channel]?.kind !== "untracked")
        .map(([channel, delta]) => toRow(channel, delta, state[channel])),
    isPlain: () => isPlain,
  };
}

/** Restores the state from saved rows; channels without rows have their initial value. */
export function restoreState(
  channels: Readonly<Record<string, Channel>>,
  codec: Codec,
  saved: readonly ChannelRows[],
): Record<string, unknown> {
  const state = createInitialState(channels);
  for (const { channel, deltas } of saved) {
    if (!Object.hasOwn(channels, channel)) continue;
    const deltasToApply = joinDeltas(deltas.map((delta) => parseDelta(codec, delta)));
    state[channel] = deltasToApply.reduce(applyDelta, getStartValue(deltasToApply[0], state[channel]));
    // A channel cleared by a rollback was never set.
    if (state[channel] === undefined && channels[channel]?.kind !== "ephemeral") delete state[channel];
  }
  return state;
}

/**
 * Restores the state from saved rows without the channels of the graph: a channel that was never written, or whose
 * value was cleared, is absent.
 */
export function restoreSavedChannels(codec: Codec, saved: readonly ChannelRows[]): Record<string, unknown> {
  const state: Record<string, unknown> = {};
  for (const { channel, deltas } of saved) {
    const value = applySavedDeltas(codec, deltas);
    if (value !== undefined) defineEntry(state, channel, value);
  }
  return state;
}

/** Returns the value of a channel from its rows; undefined for a cleared channel, and without rows. */
export function applySavedDeltas(codec: Codec, rows: readonly Pick<DeltaRow, "kind" | "text">[]): unknown {
  const deltas = joinDeltas(rows.map((row) => parseDelta(codec, row)));
  return deltas.reduce(applyDelta, getStartValue(deltas[0], undefined));
}

/** Applies a single saved delta to a value of the channel. */
export function applySavedDelta(codec: Codec, value: unknown, row: Pick<DeltaRow, "kind" | "text">): unknown {
  const delta = parseDelta(codec, row);
  return applyDelta(value ?? getStartValue(delta, undefined), delta);
}

/**
 * Returns a start value that fits the first delta, when the channel had another kind at write time: its schema
 * rejects the result.
 */
export function getStartValue(first: Delta | undefined, initial: unknown): unknown {
  if (first?.kind === "append") return Array.isArray(initial) ? initial : [];
  if (first?.kind !== "patch") return initial;
  const [key] = first.patches[0]?.path ?? [];
  if (typeof key === "number") return Array.isArray(initial) ? initial : [];
  return typeof key !== "string" || isPlainObject(initial) ? initial : {};
}

/** Checks that message channels contain only messages: readers rely on roles and blocks. Throws `store_corrupt`. */
export function checkMessages(
  channels: Readonly<Record<string, Channel>>,
  state: Readonly<Record<string, unknown>>,
): void {
  for (const [name, { kind }] of Object.entries(channels)) {
    const value = state[name];
    if (kind !== "messages" || value === undefined) continue;
    if (!isConversation(value)) throw createInvalidMessagesError(name);
  }
}

const isConversation = checkList(
  (value) => findMessageIssue(value) === undefined && !Object.hasOwn(value as object, "remove"),
);

function createInvalidMessagesError(channel: string): StatewrightError {
  return new StatewrightError("store_corrupt", {
    what: `channel "${channel}" holds an invalid message list`,
    next: "Restore the file from a backup, or fork from the last good checkpoint",
    place: { channel },
  });
}

/** Joins neighbouring deltas of the same kind, so that a value is copied once instead of once per superstep. */
export function joinDeltas(deltas: readonly Delta[]): readonly Delta[] {
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

/** Creates a state with every channel at its initial value; channels without an initial value are absent. */
export function createInitialState(channels: Readonly<Record<string, Channel>>): Record<string, unknown> {
  const state: Record<string, unknown> = {};
  for (const [name, channel] of Object.entries(channels)) {
    const initial = channel.initial();
    if (initial !== undefined) state[name] = initial.value;
  }
  return state;
}

/** Parses a saved delta. The result is not frozen: `applyDelta` freezes new state, and freezing twice is expensive. */
export function parseDelta(codec: Codec, row: Pick<DeltaRow, "kind" | "text">): Delta {
  const data = codec.decode(row.text);
  switch (row.kind) {
    case "append":
      if (!Array.isArray(data)) throw createInvalidDeltaError();
      return { kind: "append", items: data };
    case "replace":
      return { kind: "replace", value: data };
    case "patch":
      if (!isPatchList(data)) throw createInvalidDeltaError();
      return { kind: "patch", patches: data };
    case "clear":
      return { kind: "clear" };
  }
}

const isPath = checkList((key) => typeof key === "string" || isCount(key));

const hasOnlyPatches = checkList((data) => {
  if (!isPlainObject(data)) return false;
  const { op, path } = data;
  return (op === "add" || op === "replace" || op === "remove") && isPath(path);
});

function isPatchList(data: unknown): data is readonly Patch[] {
  return hasOnlyPatches(data);
}

function createInvalidDeltaError(): StatewrightError {
  return new StatewrightError("store_corrupt", {
    what: "a saved delta is invalid",
    next: "Restore the file from a backup, or fork from the last good checkpoint",
  });
}

/** Encodes a delta as a row. A `replace` or `clear` is a base, an `append` or `patch` is none. */
export function toDeltaRow(codec: Codec, channel: string, delta: Delta): DeltaRow {
  const { kind } = delta;
  const text = encodeDelta(codec, channel, delta);
  if (kind === "append") return { channel, kind, base: false, count: delta.items.length, text };
  if (kind === "patch") return { channel, kind, base: false, count: delta.patches.length, text };
  return { channel, kind, base: true, text };
}

/** Encodes a delta for a row. */
export function encodeDelta(codec: Codec, channel: string, delta: Delta): string {
  const what = `channel "${channel}"`;
  switch (delta.kind) {
    case "append":
      return codec.encode(delta.items, what);
    case "replace":
      return codec.encode(delta.value, what);
    case "patch":
      return encodeWrapper(codec, delta.patches, what);
    case "clear":
      return "null";
  }
}
