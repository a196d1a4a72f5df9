/** Definitions of tools are pinned by their digests: what a server says of a tool later is compared with what it said first. */
import { createHash } from "node:crypto";
import type { Tool as McpToolDefinition } from "@modelcontextprotocol/client";
import { isObject } from "../protocol.ts";

/** SHA-256 of the definitions that were taken, in hexadecimal, by the server's names of the tools. */
export type McpPins = Readonly<Record<string, string>>;

/** What a server says of its tools now, against what was taken: by the server's names. */
export interface McpChange {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly string[];
}

/** The pins of definitions. */
export function pinsOf(definitions: readonly McpToolDefinition[]): McpPins {
  return Object.freeze(Object.fromEntries(definitions.map((definition) => [definition.name, pinOf(definition)])));
}

/** The pin of one. What a model reads of a tool counts, and what the server says of its safety. */
export function pinOf({ name, title, description, inputSchema, outputSchema, annotations }: McpToolDefinition): string {
  const said = JSON.stringify({ name, title, description, inputSchema, outputSchema, annotations }, sorted);
  return createHash("sha256").update(said).digest("hex");
}

/** What differs; undefined where nothing does. */
export function changeOf(before: McpPins, after: McpPins): McpChange | undefined {
  const added = Object.keys(after).filter((name) => !Object.hasOwn(before, name));
  const removed = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  const changed = Object.keys(after).filter((name) => Object.hasOwn(before, name) && before[name] !== after[name]);
  return added.length + removed.length + changed.length === 0 ? undefined : { added, removed, changed };
}

/** A change in words. */
export function changeText({ added, removed, changed }: McpChange): string {
  return [
    ["new", added],
    ["gone", removed],
    ["changed", changed],
  ]
    .flatMap(([word, names]) => (names?.length === 0 ? [] : [`${word}: ${[names].flat().join(", ")}`]))
    .join("; ");
}

/** Keys in one order, so that the order in which a server writes them says nothing. */
function sorted(_key: string, value: unknown): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
