/** A value that fits a JSON Schema: the smallest one, for arguments and answers that nobody gave. */
import type { Json } from "@statewright/core";

/** A value for a schema of plain types; what it cannot do is `null`, and whoever parses it says so. */
export function sampleOf(schema: unknown): Json {
  if (!isObject(schema)) return null;
  const { const: constant, enum: values, default: usual, examples } = schema;
  if (constant !== undefined) return constant as Json;
  if (Array.isArray(values)) return (values[0] ?? null) as Json;
  if (Array.isArray(examples) && examples.length > 0) return examples[0] as Json;
  if (usual !== undefined) return usual as Json;
  const [first] = [schema["anyOf"], schema["oneOf"], schema["allOf"]].flatMap((each) =>
    Array.isArray(each) ? each : [],
  );
  if (first !== undefined) return sampleOf(first);
  const type = Array.isArray(schema["type"]) ? schema["type"][0] : schema["type"];
  switch (type) {
    case "object": {
      const properties = isObject(schema["properties"]) ? schema["properties"] : {};
      const required = Array.isArray(schema["required"]) ? schema["required"].map(String) : [];
      return Object.fromEntries(required.map((name) => [name, sampleOf(properties[name])]));
    }
    case "array":
      return Array.from({ length: numberIn(schema["minItems"], 0) }, () => sampleOf(schema["items"]));
    case "string":
      return "sample".padEnd(numberIn(schema["minLength"], 0), "x");
    case "boolean":
      return true;
    case "integer":
    case "number":
      return Math.max(1, numberIn(schema["minimum"], 1), numberIn(schema["exclusiveMinimum"], 0) + 1);
    default:
      return null;
  }
}

function numberIn(value: unknown, otherwise: number): number {
  return typeof value === "number" && Math.abs(value) < 1e9 ? value : otherwise;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
