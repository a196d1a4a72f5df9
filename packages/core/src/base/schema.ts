/**
 * Schema validation: zod first, and any Standard Schema validator. Types are read from the `types` slot of the
 * standard, which keeps inference cheap.
 */
import { describeThrown } from "./errors.ts";
import { isPlainObject } from "./json.ts";

/** The part of a Standard Schema (version 1) that Statewright uses. */
export interface Schema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** Result of a validation: the parsed value or a list of issues. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        readonly message: string;
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
      }[];
    };

/** Input type of a schema. */
export type SchemaInput<S extends Schema> = NonNullable<S["~standard"]["types"]>["input"];

/** Output type of a schema. */
export type SchemaOutput<S extends Schema> = NonNullable<S["~standard"]["types"]>["output"];

/** A validation issue: path and expectation. Never contains the value. */
export interface SchemaIssue {
  readonly path: string;
  readonly message: string;
}

/** Returns true if a value is a zod schema or another Standard Schema. */
export function isSchema(value: unknown): value is Schema {
  if ((typeof value !== "object" && typeof value !== "function") || value === null || !("~standard" in value))
    return false;
  const standard: unknown = value["~standard"];
  return typeof standard === "object" && standard !== null && "validate" in standard;
}

/**
 * Result of parsing: the output or the issues. `cause` is an error thrown by the schema or the value. `isAsync` means
 * that the schema returned a promise, so the value is neither valid nor invalid.
 */
export type ParseResult<Output> =
  | { readonly ok: true; readonly value: Output }
  | {
      readonly ok: false;
      readonly issues: readonly SchemaIssue[];
      readonly cause?: unknown;
      readonly isAsync?: true;
    };

/** Parses `value` and returns the output or the issues. A schema that returns a promise or throws yields an issue. */
export function parseWith<Output>(
  schema: Schema<unknown, Output> | Schema<never, Output>,
  value: unknown,
): ParseResult<Output> {
  let result: SchemaResult<Output> | Promise<SchemaResult<Output>>;
  try {
    result = schema["~standard"].validate(value);
  } catch (cause) {
    return toThrownResult(cause);
  }
  if (result instanceof Promise) {
    result.catch(ignoreAsyncIssue);
    const thrown = findThrown(schema, value);
    if (thrown !== undefined) return toThrownResult(thrown.cause);
    return {
      ok: false,
      issues: [{ path: "", message: "the schema validates asynchronously; use a synchronous schema" }],
      isAsync: true,
    };
  }
  if (result.issues === undefined) return { ok: true, value: result.value };
  return {
    ok: false,
    issues: result.issues.map((issue) => ({ path: toPathText(issue.path), message: issue.message })),
  };
}

function toThrownResult(cause: unknown): Extract<ParseResult<never>, { ok: false }> {
  return { ok: false, issues: [{ path: "", message: `the value cannot be read: ${describeThrown(cause)}` }], cause };
}

/**
 * Returns the error that the code of a zod schema threw. Zod answers such an error with a promise, as for an
 * asynchronous schema; a second, synchronous parse throws the error itself. `jitless`: the generated object code of
 * zod would fail on the promise of a part first.
 */
function findThrown(schema: object, value: unknown): { readonly cause: unknown } | undefined {
  if (!("safeParse" in schema) || typeof schema.safeParse !== "function") return undefined;
  try {
    schema.safeParse(value, { jitless: true });
    return undefined;
  } catch (cause) {
    return isAsyncError(cause) ? undefined : { cause };
  }
}

/** Messages of zod 4, and of zod 3 for refinements, transforms and promises. */
const asyncErrorPattern =
  /^(?:(?:Encountered Promise|Async refinement encountered|Asynchronous transform encountered) during synchronous parse|Synchronous parse encountered promise)/;

/**
 * Returns true for the error that zod throws for an asynchronous schema. Matched by message: an import of the error
 * class would bundle all of zod into every program. False for hostile thrown values.
 */
function isAsyncError(thrown: unknown): boolean {
  try {
    return thrown instanceof Error && asyncErrorPattern.test(thrown.message);
  } catch {
    return false;
  }
}

/** Formats issues as part of a sentence: `cart.0: expected string; total: expected number`, up to 20 issues. */
export function describeIssues(issues: readonly SchemaIssue[]): string {
  const texts = limitIssues(issues).map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
  const remaining = issues.length - texts.length;
  return [...texts, ...(remaining > 0 ? [`and ${remaining} more`] : [])].join("; ");
}

/** Returns the first 20 issues, with paths and messages of at most 200 characters. */
export function limitIssues(issues: readonly SchemaIssue[]): readonly SchemaIssue[] {
  return issues.slice(0, 20).map(({ path, message }) => ({ path: shorten(path), message: shorten(message) }));
}

function shorten(text: string): string {
  return text.length <= 200 ? text : `${text.slice(0, 200)}…`;
}

function ignoreAsyncIssue(): void {
  // The issue above already refuses the schema; ignore the late result.
}

function toPathText(path: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined): string {
  return (path ?? []).map((part) => String(typeof part === "object" ? part.key : part)).join(".");
}

/**
 * Creates a schema from a type guard, without a validator library. `absent` is the default of a missing value;
 * `expected` is the text of the issue.
 */
export function createGuardSchema<Value>(
  expected: string,
  isValid: (value: unknown) => value is Value,
  defaultValue: Value,
): Schema<Value | undefined, Value> {
  return {
    "~standard": {
      version: 1,
      vendor: "statewright",
      validate: (value = defaultValue) =>
        isValid(value) ? { value } : { issues: [{ message: `expected ${expected}` }] },
    },
  };
}

/** Creates a schema of an object with these parts. Unknown keys are dropped. */
export function createObjectSchema(shape: Readonly<Record<string, Schema>>): Schema {
  const parts = Object.entries(shape);
  return {
    "~standard": {
      version: 1,
      vendor: "statewright",
      validate: (value) => {
        if (!isPlainObject(value)) return { issues: [{ message: "expected an object" }] };
        const issues: { message: string; path: string[] }[] = [];
        const parsed: Record<string, unknown> = {};
        for (const [name, schema] of parts) {
          const part = parseWith(schema, Object.hasOwn(value, name) ? value[name] : undefined);
          if (part.ok && part.value !== undefined) parsed[name] = part.value;
          if (part.ok) continue;
          const nested = part.issues.map((issue) => ({
            message: issue.message,
            path: [name, ...parsePath(issue.path)],
          }));
          if (part.isAsync === true) return Promise.resolve({ issues: nested });
          issues.push(...nested);
        }
        return issues.length > 0 ? { issues } : { value: parsed };
      },
    },
  };
}

function parsePath(text: string): readonly string[] {
  return text === "" ? [] : text.split(".");
}
