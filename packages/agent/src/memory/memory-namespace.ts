/** Where memories are kept: a namespace of the long-term store, found from the context of a run and never from a model. */
import { fingerprint, type LongTerm, type LongTermItem, type OpenLongTerm, type RunIdentity } from "@statewright/core";
import { checkFunction } from "../agent/check-option.ts";

/** Gives the ids of the namespace, such as `["users", context.user]`. */
export type MemoryNamespace<Context> = (at: {
  readonly context: Context;
  readonly run: RunIdentity;
}) => readonly string[];

/** Something that is remembered. */
export interface Memory {
  readonly key: string;
  readonly text: string;
}

/** Opens the namespace of a run. */
export function memoriesOf<Context>(
  namespace: MemoryNamespace<Context>,
  at: { readonly context: Context; readonly run: RunIdentity },
  open: OpenLongTerm,
): LongTerm {
  return open(...namespace(at));
}

/** Throws `invalid_option` for a namespace that no function gives: a fixed one would be everybody's. */
export function checkNamespace(owner: string, namespace: unknown): void {
  checkFunction(owner, { namespace: namespace ?? null });
}

/** Ids that are none: objects have these names by themselves. */
const reserved: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** The key of what is remembered about a topic: the topic as an id, or a name made of it. */
export function memoryKey(topic: string): string {
  const plain = topic
    .toLowerCase()
    .replaceAll(/[^a-z0-9_.:-]+/g, "-")
    .slice(0, 64);
  return /[a-z0-9]/.test(plain) && !reserved.has(plain) ? plain : fingerprint(topic);
}

/** An item as a memory: its text, or what it holds as JSON. */
export function memoryOf({ key, value }: LongTermItem): Memory {
  if (typeof value === "string") return { key, text: value };
  const text = typeof value === "object" && value !== null && "text" in value ? value.text : undefined;
  return { key, text: typeof text === "string" ? text : (JSON.stringify(value) ?? "") };
}
