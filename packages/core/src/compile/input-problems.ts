/** What an input schema says of itself, against the channels that a run must be given: a graph that can never start is refused. */
import { isPlainObject } from "../base/json.ts";
import type { Schema } from "../base/schema.ts";
import { START } from "../define/edge.ts";
import type { GraphDefinition } from "../define/graph.ts";
import type { GraphProblem } from "./problem.ts";

/** Channels without a default that no input can bring, and keys of the input that are no channels. */
export function inputProblems({ input, state: { channels } }: GraphDefinition): GraphProblem[] {
  const given = input === undefined ? undefined : givenBy(input);
  if (given === undefined) return [];
  const unset = Object.entries(channels).flatMap(([name, channel]) => (channel.initial() === undefined ? [name] : []));
  return [
    ...unset
      .filter((name) => neverHas(given, name))
      .map(
        (name): GraphProblem => ({
          code: "missing_input",
          node: START,
          message: `the input schema never gives "${name}", which has no default: the graph could not start`,
          hint: "add it to the input schema, or give the channel a default",
        }),
      ),
    ...keysOf(given)
      .filter((name) => !Object.hasOwn(channels, name))
      .map(
        (name): GraphProblem => ({
          code: "unknown_channel",
          node: START,
          message: `the input schema gives "${name}", which is not in the state`,
          hint: `channels are ${Object.keys(channels).join(", ")}`,
        }),
      ),
  ];
}

/** What a schema offers that speaks Standard JSON Schema, as those of zod do. */
interface Describing {
  readonly jsonSchema?: {
    readonly output?: (options: {
      readonly target: "draft-2020-12";
      readonly libraryOptions: { readonly unrepresentable: "any" };
    }) => unknown;
  };
}

/** The JSON Schema of what a schema gives; undefined for a validator that has none, or cannot say it. */
function givenBy(schema: Schema): unknown {
  const { jsonSchema } = schema["~standard"] as Schema["~standard"] & Describing;
  try {
    return jsonSchema?.output?.({ target: "draft-2020-12", libraryOptions: { unrepresentable: "any" } });
  } catch {
    return undefined;
  }
}

/** Whether it is certain that no value of a JSON Schema has the key. */
function neverHas(schema: unknown, key: string): boolean {
  if (!isPlainObject(schema)) return false;
  const { type, properties, additionalProperties, anyOf, oneOf, allOf } = schema;
  for (const branches of [anyOf, oneOf])
    if (Array.isArray(branches) && branches.length > 0 && branches.every((branch) => neverHas(branch, key)))
      return true;
  if (Array.isArray(allOf) && allOf.some((branch) => neverHas(branch, key))) return true;
  return (
    type === "object" && additionalProperties === false && isPlainObject(properties) && !Object.hasOwn(properties, key)
  );
}

/** The keys that every JSON Schema of an object names. */
function keysOf(schema: unknown): readonly string[] {
  return isPlainObject(schema) && isPlainObject(schema["properties"]) ? Object.keys(schema["properties"]) : [];
}
