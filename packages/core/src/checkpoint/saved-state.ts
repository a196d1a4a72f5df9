/**
 * State as it is saved: encoded deltas per channel, with a new base when the deltas since the last one outgrow the value,
 * and the way back.
 */
import type { Channel } from "../state/channel.ts";
import { type Codec, encodeAround, isPlainText } from "../state/codec.ts";
import { applyDelta, type Delta } from "../state/delta.ts";
import type { DeltaRow } from "./checkpoint.ts";
import type { ChannelRows } from "./store.ts";

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
    state[channel] = joined(deltas.map((delta) => deltaOf(codec, delta))).reduce(applyDelta, state[channel]);
    // What a rollback has cleared was never set.
    if (state[channel] === undefined && channels[channel]?.kind !== "ephemeral") delete state[channel];
  }
  return state;
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
      return { kind: "append", items: data as readonly unknown[] };
    case "replace":
      return { kind: "replace", value: data };
    case "patch":
      return { kind: "patch", patches: data as Extract<Delta, { kind: "patch" }>["patches"] };
    case "clear":
      return { kind: "clear" };
  }
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
