/** Pins: digests of tool definitions, to detect later changes of a definition. */
import { createHash } from "node:crypto";
import type { Tool as McpToolDefinition } from "@modelcontextprotocol/client";
import { isJsonObject } from "@statewright/json-schema";

/** SHA-256 of the accepted definitions in hexadecimal, by tool name of the server. */
export type McpPins = Readonly<Record<string, string>>;

/** Differences between current and accepted definitions, by tool name of the server. */
export interface McpChange {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly string[];
}

/** Creates the pins of definitions. */
export function createPins(definitions: readonly McpToolDefinition[]): McpPins {
  return Object.freeze(Object.fromEntries(definitions.map((definition) => [definition.name, createPin(definition)])));
}

/** Creates the pin of a definition, from all fields visible to a model and from the safety hints. */
export function createPin({
  name,
  title,
  description,
  inputSchema,
  outputSchema,
  annotations,
}: McpToolDefinition): string {
  const canonical = JSON.stringify({ name, title, description, inputSchema, outputSchema, annotations }, sortKeys);
  return createHash("sha256").update(canonical).digest("hex");
}

/** Compares pins; undefined without a difference. */
export function comparePins(before: McpPins, after: McpPins): McpChange | undefined {
  const added = Object.keys(after).filter((name) => !Object.hasOwn(before, name));
  const removed = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  const changed = Object.keys(after).filter((name) => Object.hasOwn(before, name) && before[name] !== after[name]);
  return added.length + removed.length + changed.length === 0 ? undefined : { added, removed, changed };
}

/** Formats a change as text. */
export function formatChange({ added, removed, changed }: McpChange): string {
  return [
    ["new", added],
    ["gone", removed],
    ["changed", changed],
  ]
    .flatMap(([word, names]) => (names?.length === 0 ? [] : [`${word}: ${[names].flat().join(", ")}`]))
    .join("; ");
}

/** JSON replacer with sorted keys, so that the pin is independent of their order. */
function sortKeys(_key: string, value: unknown): unknown {
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
