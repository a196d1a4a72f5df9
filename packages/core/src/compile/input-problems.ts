/** Checks the input schema against the channels: rejects a graph that can never start. */
import { isPlainObject } from "../base/json.ts";
import type { Schema } from "../base/schema.ts";
import { START } from "../define/edge.ts";
import type { GraphDefinition } from "../define/graph.ts";
import type { GraphProblem } from "../define/problem.ts";

/** Returns channels without a default that the input schema excludes, and input keys that are not channels. */
export function findInputProblems({ input, state: { channels } }: GraphDefinition): GraphProblem[] {
  const schema = input === undefined ? undefined : toOutputJsonSchema(input);
  if (schema === undefined) return [];
  const unset = Object.entries(channels).flatMap(([name, channel]) => (channel.initial() === undefined ? [name] : []));
  return [
    ...unset
      .filter((name) => isKeyExcluded(schema, name))
      .map(
        (name): GraphProblem => ({
          code: "missing_input",
          node: START,
          message: `the input schema excludes "${name}", which has no default: the graph could not start`,
          hint: "add it to the input schema, or give the channel a default",
        }),
      ),
    ...listPropertyNames(schema)
      .filter((name) => !Object.hasOwn(channels, name))
      .map(
        (name): GraphProblem => ({
          code: "unknown_channel",
          node: START,
          message: `the input schema has "${name}", which is not in the state`,
          hint: `channels are ${Object.keys(channels).join(", ")}`,
        }),
      ),
  ];
}

/** A schema with Standard JSON Schema support, such as a zod schema. */
interface DescribableSchema {
  readonly jsonSchema?: {
    readonly output?: (options: {
      readonly target: "draft-2020-12";
      readonly libraryOptions: { readonly unrepresentable: "any" };
    }) => unknown;
  };
}

/** Returns the output JSON Schema of a schema; undefined for a validator without JSON Schema support. */
function toOutputJsonSchema(schema: Schema): unknown {
  const { jsonSchema } = schema["~standard"] as Schema["~standard"] & DescribableSchema;
  try {
    return jsonSchema?.output?.({ target: "draft-2020-12", libraryOptions: { unrepresentable: "any" } });
  } catch {
    return undefined;
  }
}

/** Returns true if every value of a JSON Schema lacks the key. */
function isKeyExcluded(schema: unknown, key: string): boolean {
  if (!isPlainObject(schema)) return false;
  const { type, properties, additionalProperties, anyOf, oneOf, allOf } = schema;
  for (const branches of [anyOf, oneOf])
    if (Array.isArray(branches) && branches.length > 0 && branches.every((branch) => isKeyExcluded(branch, key)))
      return true;
  if (Array.isArray(allOf) && allOf.some((branch) => isKeyExcluded(branch, key))) return true;
  return (
    type === "object" && additionalProperties === false && isPlainObject(properties) && !Object.hasOwn(properties, key)
  );
}

/** Returns the property names of an object JSON Schema. */
function listPropertyNames(schema: unknown): readonly string[] {
  return isPlainObject(schema) && isPlainObject(schema["properties"]) ? Object.keys(schema["properties"]) : [];
}
