/**
 * Schemas at the borders: zod first, any validator that speaks Standard Schema.
 * Types are read from the standard's type slot, so that inference stays cheap.
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

/** What validation gives: the parsed value or a list of issues. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        readonly message: string;
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
      }[];
    };

/** The type that a schema takes. */
export type SchemaInput<S extends Schema> = NonNullable<S["~standard"]["types"]>["input"];

/** The type that a schema gives. */
export type SchemaOutput<S extends Schema> = NonNullable<S["~standard"]["types"]>["output"];

/** One thing that is wrong with a value: where, and what was expected. Never quotes the value. */
export interface SchemaIssue {
  readonly path: string;
  readonly message: string;
}

/** Tell whether a value is a schema: a zod schema, or any that speaks Standard Schema. */
export function isSchema(value: unknown): value is Schema {
  if ((typeof value !== "object" && typeof value !== "function") || value === null || !("~standard" in value))
    return false;
  const standard: unknown = value["~standard"];
  return typeof standard === "object" && standard !== null && "validate" in standard;
}

/**
 * What parsing gives: the output, or the issues and, where the schema or the value threw, what was thrown. `isAsync` says
 * that the schema answered with a promise: nothing is known of the value then.
 */
export type ParseResult<Output> =
  | { readonly ok: true; readonly value: Output }
  | {
      readonly ok: false;
      readonly issues: readonly SchemaIssue[];
      readonly cause?: unknown;
      readonly isAsync?: true;
    };

/** Parse `value`: the output, or the issues. A schema that answers with a promise is refused as an issue, and so is one that throws. */
export function parseWith<Output>(
  schema: Schema<unknown, Output> | Schema<never, Output>,
  value: unknown,
): ParseResult<Output> {
  let result: SchemaResult<Output> | Promise<SchemaResult<Output>>;
  try {
    result = schema["~standard"].validate(value);
  } catch (cause) {
    return threw(cause);
  }
  if (result instanceof Promise) {
    result.catch(ignoreAsyncIssue);
    const thrown = thrownBy(schema, value);
    if (thrown !== undefined) return threw(thrown.cause);
    return {
      ok: false,
      issues: [{ path: "", message: "the schema validates asynchronously; use one that answers at once" }],
      isAsync: true,
    };
  }
  if (result.issues === undefined) return { ok: true, value: result.value };
  return { ok: false, issues: result.issues.map((issue) => ({ path: pathText(issue.path), message: issue.message })) };
}

function threw(cause: unknown): Extract<ParseResult<never>, { ok: false }> {
  return { ok: false, issues: [{ path: "", message: `it cannot be read: ${describeThrown(cause)}` }], cause };
}

/**
 * A zod schema whose own code throws answers with a promise, as if it were asynchronous: asked again, it tells what was
 * thrown. Code that zod makes for an object would stumble over the promise of a part before zod says what it is.
 */
function thrownBy(schema: object, value: unknown): { readonly cause: unknown } | undefined {
  if (!("safeParse" in schema) || typeof schema.safeParse !== "function") return undefined;
  try {
    schema.safeParse(value, { jitless: true });
    return undefined;
  } catch (cause) {
    return isAsynchronous(cause) ? undefined : { cause };
  }
}

/** Those of zod 4, and of zod 3 for a refinement, a transform and a promise. */
const asynchronousWords =
  /^(?:(?:Encountered Promise|Async refinement encountered|Asynchronous transform encountered) during synchronous parse|Synchronous parse encountered promise)/;

/**
 * What zod throws for a schema that cannot answer at once, known by its words: its class would bring the whole of zod into
 * every program. Something hostile that was thrown is none.
 */
function isAsynchronous(thrown: unknown): boolean {
  try {
    return thrown instanceof Error && asynchronousWords.test(thrown.message);
  } catch {
    return false;
  }
}

/** Issues as one sentence part: `cart.0: expected string; total: expected number`, as many as people and models read. */
export function issuesText(issues: readonly SchemaIssue[]): string {
  const told = toldIssues(issues).map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
  const more = issues.length - told.length;
  return [...told, ...(more > 0 ? [`and ${more} more`] : [])].join("; ");
}

/** So many issues of one value are told, and so much of each. */
export function toldIssues(issues: readonly SchemaIssue[]): readonly SchemaIssue[] {
  return issues.slice(0, 20).map(({ path, message }) => ({ path: shortened(path), message: shortened(message) }));
}

function shortened(text: string): string {
  return text.length <= 200 ? text : `${text.slice(0, 200)}…`;
}

function ignoreAsyncIssue(): void {
  // The issue above already refuses the schema; its late verdict has no reader.
}

function pathText(path: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined): string {
  return (path ?? []).map((part) => String(typeof part === "object" ? part.key : part)).join(".");
}

/**
 * A schema of the values that pass a check, where no validator is at hand: `absent` stands for one that is missing, and any
 * other is refused with what was `expected`.
 */
export function schemaWhere<Value>(
  expected: string,
  fits: (value: unknown) => value is Value,
  absent: Value,
): Schema<Value | undefined, Value> {
  return {
    "~standard": {
      version: 1,
      vendor: "statewright",
      validate: (value = absent) => (fits(value) ? { value } : { issues: [{ message: `expected ${expected}` }] }),
    },
  };
}

/** A schema of an object with these parts. Keys that it does not name are dropped. */
export function objectOf(shape: Readonly<Record<string, Schema>>): Schema {
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
          const found = part.issues.map((issue) => ({ message: issue.message, path: [name, ...pathOf(issue.path)] }));
          if (part.isAsync === true) return Promise.resolve({ issues: found });
          issues.push(...found);
        }
        return issues.length > 0 ? { issues } : { value: parsed };
      },
    },
  };
}

function pathOf(text: string): readonly string[] {
  return text === "" ? [] : text.split(".");
}
