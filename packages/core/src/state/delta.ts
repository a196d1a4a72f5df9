/** Deltas: what one superstep changed in one channel, as it is saved, and how it is applied again. */
import { applyPatches, enablePatches, type Patch as ImmerPatch } from "immer";
import { deepFreeze } from "../base/json.ts";

enablePatches();

/** One change inside a value, in the form of Immer: `path` leads from the value to the place. */
export interface Patch {
  readonly op: "add" | "replace" | "remove";
  readonly path: readonly (string | number)[];
  readonly value?: unknown;
}

/** What a superstep changed in one channel. */
export type Delta =
  | { readonly kind: "append"; readonly items: readonly unknown[] }
  | { readonly kind: "replace"; readonly value: unknown }
  | { readonly kind: "patch"; readonly patches: readonly Patch[] }
  | { readonly kind: "clear" };

/** The value after `delta`: the same that the fold gave when the delta was made. */
export function applyDelta(current: unknown, delta: Delta): unknown {
  switch (delta.kind) {
    case "append":
      return deepFreeze([...((current ?? []) as readonly unknown[]), ...delta.items]);
    case "replace":
      return deepFreeze(delta.value);
    case "patch":
      return deepFreeze(applyPatches((current ?? {}) as object, delta.patches as unknown as readonly ImmerPatch[]));
    case "clear":
      return undefined;
  }
}
