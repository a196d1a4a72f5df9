/** JSON Schema checked by ajv: the validator of tools that come from other processes and formats. */
import {
  type JsonObject,
  type JsonSchemaInput,
  type JsonSchemaValidator,
  jsonSchemaInput,
  type SchemaIssue,
  StatewrightError,
} from "@statewright/core";
import { Ajv, type ErrorObject, type Options, type ValidateFunction } from "ajv";
import { Ajv2019 } from "ajv/dist/2019.js";
import { Ajv2020 } from "ajv/dist/2020.js";
import { RE2JS } from "re2js";

/** Foreign patterns run on an engine whose time is linear in the text; what it cannot do, such as look-around, is refused. */
function linear(pattern: string): { readonly test: (text: string) => boolean; readonly toString: () => string } {
  const compiled = RE2JS.compile(pattern);
  // ajv keeps patterns by their text.
  return { test: (text) => compiled.matcher(text).find(), toString: () => pattern };
}
linear.code = "linear";

const options: Options = {
  strict: false,
  allErrors: true,
  // A format is a note for people, as the standard has it, not a check.
  validateFormats: false,
  addUsedSchema: false,
  logger: false,
  code: { regExp: linear },
};

const mostIssues = 20;

/**
 * The check of a JSON Schema by its own dialect: draft 2020-12 unless `$schema` names 2019-09, draft 7 or draft 6. Throws
 * `invalid_tool` for a schema that contradicts itself, refers to what is not in it, is asynchronous, or has a pattern that is
 * not linear.
 */
export const ajvValidator: JsonSchemaValidator = (schema) => {
  const validate = compile(schema);
  return (value) => (validate(value) ? [] : issuesOf(validate.errors ?? []));
};

/** Arguments of a tool by a JSON Schema of any kind, checked by ajv and sent to models unaltered. */
export function jsonSchema<Args = Readonly<Record<string, unknown>>>(schema: object): JsonSchemaInput<Args> {
  return jsonSchemaInput<Args>(schema, { validator: ajvValidator });
}

function compile(schema: JsonObject): ValidateFunction {
  const dialect = typeof schema["$schema"] === "string" ? schema["$schema"] : "2020-12";
  const isShared = dialect === "2020-12" && !JSON.stringify(schema).includes('"$id"');
  if (isShared) shared ??= new Ajv2020(options);
  const engine = isShared ? shared : undefined;
  try {
    const validate = (engine ?? engineFor(dialect)).compile(schema);
    // It would answer with a promise, which looks like a yes.
    if ("$async" in validate) throw new Error('it says "$async", and nothing waits for a schema');
    return validate;
  } catch (cause) {
    throw new StatewrightError("invalid_tool", {
      what: `a JSON Schema cannot be used: ${cause instanceof Error ? cause.message : String(cause)}`,
      next: "Mend the schema: it answers at once, references stay inside it, and patterns have no look-around and no back references",
      cause,
    });
  } finally {
    engine?.removeSchema(schema);
  }
}

/** An engine takes milliseconds to make. It serves schemas that have no name of their own, and keeps none of them. */
let shared: Ajv2020 | undefined;

function engineFor(dialect: string): Ajv {
  if (dialect.includes("2020-12")) return new Ajv2020(options);
  if (dialect.includes("2019-09")) return new Ajv2019(options);
  if (dialect.includes("draft-07") || dialect.includes("draft-06"))
    return new Ajv({ ...options, validateSchema: false });
  throw new Error(`the dialect "${dialect}" is not known`);
}

/** What is wrong, by the path of the part; it never quotes the value. */
function issuesOf(errors: readonly ErrorObject[]): readonly SchemaIssue[] {
  return errors.slice(0, mostIssues).map(({ instancePath, keyword, params, message = "does not fit" }) => {
    const path = instancePath.split("/").slice(1).map(unescaped);
    if (keyword === "required")
      return { path: [...path, nameIn(params, "missingProperty")].join("."), message: "is missing" };
    if (keyword === "additionalProperties")
      return { path: [...path, nameIn(params, "additionalProperty")].join("."), message: "unknown argument" };
    if (keyword === "enum")
      return { path: path.join("."), message: `expected one of ${JSON.stringify(params["allowedValues"])}` };
    return { path: path.join("."), message };
  });
}

function nameIn(params: ErrorObject["params"], key: string): string {
  const name: unknown = params[key];
  return typeof name === "string" ? name : "";
}

function unescaped(part: string): string {
  return part.replaceAll("~1", "/").replaceAll("~0", "~");
}
