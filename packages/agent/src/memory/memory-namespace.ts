/** Namespace of memories in the long-term store, computed from the context of a run and never chosen by a model. */

import type { LongTerm, LongTermItem, OpenLongTerm, RunIdentity } from "@statewright/core";
import { checkFunction, fingerprint } from "@statewright/core/adapter";

/** Returns the namespace, such as `["users", context.user]`. */
export type MemoryNamespace<Context> = (source: {
  readonly context: Context;
  readonly run: RunIdentity;
}) => readonly string[];

/** Memory: a text under a key. */
export interface Memory {
  readonly key: string;
  readonly text: string;
}

/** Opens the memory namespace of a run. */
export function openMemories<Context>(
  namespace: MemoryNamespace<Context>,
  source: { readonly context: Context; readonly run: RunIdentity },
  open: OpenLongTerm,
): LongTerm {
  return open(...namespace(source));
}

/** Throws `invalid_option` when the namespace is not a function: a constant namespace would be shared by all users. */
export function checkNamespace(owner: string, namespace: unknown): void {
  checkFunction(owner, { namespace: namespace ?? null });
}

/** Built-in property names of objects, which are never used as keys. */
const reserved: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** Converts a topic to a memory key: a slug of the topic, or its fingerprint. */
export function toMemoryKey(topic: string): string {
  const slug = topic
    .toLowerCase()
    .replaceAll(/[^a-z0-9_.:-]+/g, "-")
    .slice(0, 64);
  return /[a-z0-9]/.test(slug) && !reserved.has(slug) ? slug : fingerprint(topic);
}

/** Converts a long-term item to a memory: its text, or its value as JSON. */
export function toMemory({ key, value }: LongTermItem): Memory {
  if (typeof value === "string") return { key, text: value };
  const text = typeof value === "object" && value !== null && "text" in value ? value.text : undefined;
  return { key, text: typeof text === "string" ? text : (JSON.stringify(value) ?? "") };
}
