/** JSON Schema validation by ajv, for tools from other processes and formats. */
import { type JsonObject, type SchemaIssue, StatewrightError } from "@statewright/core";
import {
  type JsonSchemaInput,
  type JsonSchemaValidator,
  jsonSchemaInput,
  measureSchema,
} from "@statewright/core/adapter";
import { Ajv, type ErrorObject, type Options, type ValidateFunction } from "ajv";
import { Ajv2019 } from "ajv/dist/2019.js";
import { Ajv2020 } from "ajv/dist/2020.js";
import { RE2JS } from "re2js";

/** Maximum instructions of all compiled patterns of a schema. */
const maxPatternSize = 200_000;

/** Instructions of the patterns of the schema that is being compiled. */
let patternSize = 0;

/** Maximum steps of the pattern engine in one validation: at most about a second. */
const maxPatternSteps = 10_000_000;

/** Steps of the running validation, which is synchronous: characters times the size of the compiled pattern. */
let patternSteps = 0;

const tooManySteps = new Error("too many steps of the pattern engine");

/**
 * Compiles a foreign pattern on an engine with linear time in the text. Throws for unsupported syntax, such as
 * look-around. The test of a text throws above the maximum of steps: repetitions in a short pattern compile to
 * thousands of instructions, each of which can take a step per character.
 */
function compileLinearPattern(pattern: string): {
  readonly test: (text: string) => boolean;
  readonly toString: () => string;
} {
  const compiled = RE2JS.compile(pattern);
  const size = compiled.programSize();
  patternSize += size;
  if (patternSize > maxPatternSize) throw new Error(`its patterns have more than ${maxPatternSize} instructions`);
  const test = (text: string): boolean => {
    patternSteps += text.length * size;
    if (patternSteps > maxPatternSteps) throw tooManySteps;
    return compiled.matcher(text).find();
  };
  // ajv caches patterns by their text.
  return { test, toString: () => pattern };
}
compileLinearPattern.code = "linear";

const options: Options = {
  strict: false,
  allErrors: true,
  // Per the JSON Schema standard `format` is an annotation, not a check.
  validateFormats: false,
  addUsedSchema: false,
  logger: false,
  // A reference to a larger schema is a call: many references to it would multiply the generated code.
  inlineRefs: 20,
  code: { regExp: compileLinearPattern },
};

const maxIssues = 20;

/**
 * Compiles a JSON Schema by its own dialect: draft 2020-12 unless `$schema` names 2019-09, draft 7 or draft 6. Throws
 * `invalid_tool` for a contradictory or asynchronous schema, for references outside the schema, for a non-linear
 * pattern, and for a schema whose size, depth or combined alternatives exceed a limit.
 */
export const ajvValidator: JsonSchemaValidator = (schema) => {
  const { problem, findCostIssue } = measureSchema(schema);
  if (problem !== undefined)
    throw new StatewrightError("invalid_tool", {
      what: `the JSON Schema ${problem}`,
      next: "Use a smaller schema, or fewer alternatives",
    });
  const validate = compile(schema);
  return (value) => {
    const issue = findCostIssue(value);
    if (issue !== undefined) return [issue];
    patternSteps = 0;
    try {
      return validate(value) ? [] : toSchemaIssues(validate.errors ?? []);
    } catch (error) {
      if (error !== tooManySteps) throw error;
      return [{ path: "", message: `patterns cannot be matched within ${maxPatternSteps} steps` }];
    }
  };
};

/** Arguments of a tool by a JSON Schema of any kind, validated by ajv and sent unaltered to models. */
export function jsonSchema<Args = Readonly<Record<string, unknown>>>(schema: object): JsonSchemaInput<Args> {
  return jsonSchemaInput<Args>(schema, { validator: ajvValidator });
}

function compile(schema: JsonObject): ValidateFunction {
  const dialect = typeof schema["$schema"] === "string" ? schema["$schema"] : "2020-12";
  const isShared = dialect === "2020-12" && !JSON.stringify(schema).includes('"$id"');
  if (isShared) sharedAjv ??= new Ajv2020(options);
  const engine = isShared ? sharedAjv : undefined;
  patternSize = 0;
  try {
    const validate = (engine ?? createAjv(dialect)).compile(schema);
    // An asynchronous validator returns a promise, and a promise would count as valid.
    if ("$async" in validate) throw new Error('"$async" schemas are not supported');
    return validate;
  } catch (cause) {
    throw new StatewrightError("invalid_tool", {
      what: `JSON Schema does not compile: ${cause instanceof Error ? cause.message : String(cause)}`,
      next: "Fix the schema: use no $async, no external references, and no look-around or back references in patterns",
      cause,
    });
  } finally {
    engine?.removeSchema(schema);
  }
}

/**
 * Shared ajv instance: creating an instance takes milliseconds. Used only for schemas without `$id`; keeps no schema.
 */
let sharedAjv: Ajv2020 | undefined;

function createAjv(dialect: string): Ajv {
  if (dialect.includes("2020-12")) return new Ajv2020(options);
  if (dialect.includes("2019-09")) return new Ajv2019(options);
  if (dialect.includes("draft-07") || dialect.includes("draft-06"))
    return new Ajv({ ...options, validateSchema: false });
  throw new Error(`unknown JSON Schema dialect "${dialect}"`);
}

/** Converts ajv errors to issues with the path of the value. Never quotes the value. */
function toSchemaIssues(errors: readonly ErrorObject[]): readonly SchemaIssue[] {
  return errors.slice(0, maxIssues).map(({ instancePath, keyword, params, message = "does not match the schema" }) => {
    const path = instancePath.split("/").slice(1).map(unescapePointer);
    if (keyword === "required")
      return { path: [...path, getName(params, "missingProperty")].join("."), message: "is missing" };
    if (keyword === "additionalProperties")
      return { path: [...path, getName(params, "additionalProperty")].join("."), message: "unknown argument" };
    if (keyword === "enum")
      return { path: path.join("."), message: `expected one of ${JSON.stringify(params["allowedValues"])}` };
    return { path: path.join("."), message };
  });
}

function getName(params: ErrorObject["params"], key: string): string {
  const name: unknown = params[key];
  return typeof name === "string" ? name : "";
}

function unescapePointer(part: string): string {
  return part.replaceAll("~1", "/").replaceAll("~0", "~");
}
