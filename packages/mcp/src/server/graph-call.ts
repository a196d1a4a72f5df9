/** Tool call of a graph: its thread, and texts about the thread for the host's model. */
import { createHash } from "node:crypto";
import { isJsonObject } from "@statewright/json-schema";
import type { CallRequest } from "./call-request.ts";
import { continueSuffix } from "./graph-tools.ts";
import type { OfferedGraph } from "./offer-graph.ts";

/** Tool call for a single thread of a graph. */
export interface GraphCall {
  readonly offered: OfferedGraph;
  /** Thread name of the client. */
  readonly thread: string;
  /** Thread id in the store. */
  readonly threadId: string;
  readonly request: CallRequest;
}

/** Names the thread of a call. */
export function describeThread({ thread, offered }: GraphCall): string {
  return `Thread "${thread}" of ${offered.name}`;
}

/** Instructs the host's model to continue the thread. */
export function describeContinuation({ thread, offered }: GraphCall): string {
  return `Call ${offered.name}${continueSuffix} with the thread "${thread}" to continue.`;
}

/** Hashes arguments, independent of the order of their keys. */
export function hashArgs(args: unknown): string {
  const sorted = JSON.stringify(args, (_key, value: unknown) =>
    isJsonObject(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
  );
  return createHash("sha256").update(sorted).digest("hex");
}

/**
 * Finds a key that could pollute a prototype in code that copies the arguments. Recursive: the depth of messages is
 * limited.
 */
export function findUnsafeKey(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  for (const [key, part] of Object.entries(value)) {
    if (key === "__proto__" || key === "constructor" || key === "prototype") return key;
    const found = findUnsafeKey(part);
    if (found !== undefined) return found;
  }
  return undefined;
}
