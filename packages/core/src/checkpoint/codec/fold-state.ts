/** Folds the changes of consecutive checkpoints into states. */
import type { Channel } from "../../state/channel.ts";
import type { Codec } from "../../state/codec.ts";
import { applyDelta } from "../../state/delta.ts";
import type { ChannelRows } from "../channel-rows.ts";
import type { DeltaRow } from "../checkpoint.ts";
import { getStartValue, parseDelta, restoreState } from "./saved-state.ts";

/** Folds states; each returned state is an object of its own. */
export interface StateFolder {
  /** Returns the state of these rows. */
  restore(saved: readonly ChannelRows[]): Record<string, unknown>;
  /** Returns the state after the changes of the checkpoint that follows the last one. */
  apply(deltas: readonly DeltaRow[]): Record<string, unknown>;
}

/** Creates a folder without a state. Its states are those of `restoreState`. */
export function createStateFolder(channels: Readonly<Record<string, Channel>>, codec: Codec): StateFolder {
  let state: Record<string, unknown> = {};
  /** Channels with a saved change: the first one starts from the initial value. */
  const written = new Set<string>();
  return {
    restore: (saved) => {
      for (const { channel } of saved) written.add(channel);
      state = restoreState(channels, codec, saved);
      return { ...state };
    },
    apply: (deltas) => {
      for (const row of deltas) {
        const { channel } = row;
        if (!Object.hasOwn(channels, channel)) continue;
        const delta = parseDelta(codec, row);
        const before = written.has(channel) ? state[channel] : getStartValue(delta, state[channel]);
        written.add(channel);
        state[channel] = applyDelta(before, delta);
        if (state[channel] === undefined && channels[channel]?.kind !== "ephemeral") delete state[channel];
      }
      return { ...state };
    },
  };
}
