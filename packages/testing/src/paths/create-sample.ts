/** Samples of JSON Schemas: minimal valid values, for arguments and answers that a test does not pass. */
import type { Json } from "@statewright/core";

/**
 * Creates a minimal value for a schema of plain types; `null` for unsupported schemas, rejected later by the parser.
 */
export function createSample(schema: unknown): Json {
  if (!isObject(schema)) return null;
  const { const: constant, enum: values, default: defaultValue, examples } = schema;
  if (constant !== undefined) return constant as Json;
  if (Array.isArray(values)) return (values[0] ?? null) as Json;
  if (Array.isArray(examples) && examples.length > 0) return examples[0] as Json;
  if (defaultValue !== undefined) return defaultValue as Json;
  const [first] = [schema["anyOf"], schema["oneOf"], schema["allOf"]].flatMap((each) =>
    Array.isArray(each) ? each : [],
  );
  if (first !== undefined) return createSample(first);
  const type = Array.isArray(schema["type"]) ? schema["type"][0] : schema["type"];
  switch (type) {
    case "object": {
      const properties = isObject(schema["properties"]) ? schema["properties"] : {};
      const required = Array.isArray(schema["required"]) ? schema["required"].map(String) : [];
      return Object.fromEntries(required.map((name) => [name, createSample(properties[name])]));
    }
    case "array":
      return Array.from({ length: toBoundedNumber(schema["minItems"], 0) }, () => createSample(schema["items"]));
    case "string":
      return "sample".padEnd(toBoundedNumber(schema["minLength"], 0), "x");
    case "boolean":
      return true;
    case "integer":
    case "number":
      return Math.max(1, toBoundedNumber(schema["minimum"], 1), toBoundedNumber(schema["exclusiveMinimum"], 0) + 1);
    default:
      return null;
  }
}

function toBoundedNumber(value: unknown, fallback: number): number {
  return typeof value === "number" && Math.abs(value) < 1e9 ? value : fallback;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
