/**
 * Errors of Statewright: a single class, identified by `code`. Each message states the fact, the place and the fix.
 *
 * `kind` names the responsible party: `definition` the author of the graph, `input` the caller, `tool` the model,
 * `run` and `store` the operator.
 */
import { escapeControlChars } from "./escape-control-chars.ts";

/**
 * Party responsible for fixing an error: author (`definition`), caller (`input`), model (`tool`) or operator (`run`,
 * `store`).
 */
export type ErrorKind = "definition" | "input" | "tool" | "run" | "store";

/** Kind of each error code. Each code has an entry in docs/errors.md. */
const kinds = {
  invalid_graph: "definition",
  invalid_state: "definition",
  invalid_tool: "definition",
  invalid_option: "definition",
  async_schema: "definition",
  invalid_id: "input",
  invalid_input: "input",
  invalid_context: "input",
  invalid_answer: "input",
  ambiguous_answer: "input",
  already_answered: "input",
  unknown_interrupt: "input",
  interrupt_expired: "run",
  interrupt_changed: "run",
  unknown_thread: "input",
  unknown_checkpoint: "input",
  unknown_branch: "input",
  unknown_run: "input",
  unknown_schedule: "input",
  thread_busy: "input",
  thread_exists: "input",
  run_exists: "input",
  key_reused: "input",
  engine_stopped: "input",
  invalid_export: "input",
  missing_secret: "input",
  missing_store: "definition",
  graph_changed: "run",
  needs_migration: "run",
  migration_failed: "run",
  invalid_update: "run",
  invalid_output: "run",
  drained: "run",
  timer_pending: "run",
  parked: "run",
  unknown_channel: "run",
  undeclared_write: "run",
  channel_conflict: "run",
  dead_route: "run",
  empty_fan_out: "run",
  repeated_step: "run",
  node_failed: "run",
  step_limit: "run",
  event_refused: "run",
  machine_failed: "run",
  task_timeout: "run",
  effect_in_doubt: "run",
  breakpoint: "run",
  model_failed: "run",
  invalid_transcript: "run",
  tool_failed: "tool",
  plugin_failed: "run",
  untrusted_configuration: "run",
  mcp_failed: "run",
  unencodable_value: "store",
  store_failed: "store",
  store_full: "store",
  store_locked: "store",
  store_unreachable: "store",
  store_corrupt: "store",
  store_newer: "store",
  missing_key: "store",
  store_exists: "store",
  store_missing: "store",
  store_read_only: "store",
  store_mixed: "store",
  store_closed: "store",
  fenced: "store",
} as const;

/** Code of an error; stable across two copies of the package. */
export type ErrorCode = keyof typeof kinds;

/** Codes of errors after which a store may accept the same write later. Such an error pauses a run. */
export const transientStoreCodes: readonly ErrorCode[] = ["store_full", "store_locked", "store_unreachable"];

/** Every error code, in the order of docs/errors.md. */
export const errorCodes: readonly ErrorCode[] = Object.keys(kinds) as ErrorCode[];

/** Location of an error; contains the known parts only. */
export interface ErrorPlace {
  readonly graph?: string;
  /** Path of the nodes that contain the inner graph, as `research.plan`. */
  readonly nesting?: string;
  readonly node?: string;
  readonly task?: string;
  readonly step?: number;
  readonly attempt?: number;
  readonly thread?: string;
  readonly branch?: string;
  readonly channel?: string;
  readonly path?: string;
  readonly tool?: string;
  readonly callId?: string;
}

/** Constructor argument of {@link StatewrightError}. */
export interface ErrorParts {
  /** The fact: a single sentence without its full stop. */
  readonly what: string;
  /** The fix: a single imperative sentence without its full stop. */
  readonly next: string;
  readonly place?: ErrorPlace;
  /** Plain data for programs: list of problems, known names, the previous answer. */
  readonly details?: unknown;
  readonly cause?: unknown;
}

const brand: unique symbol = Symbol.for("statewright.error") as never;

/** Error of Statewright, with a `code` for programs and a message of three parts for people. */
export class StatewrightError extends Error {
  readonly code: ErrorCode;
  readonly kind: ErrorKind;
  readonly place: ErrorPlace;
  readonly details: unknown;
  /** Page of this code in the installed package `statewright`; each package has the page in its folder `docs`. */
  readonly docs: string;

  constructor(code: ErrorCode, parts: ErrorParts) {
    const place = parts.place ?? {};
    const docs = getDocsLink(code);
    super(
      escapeControlChars(`${code}: ${parts.what}${describePlace(place, parts.what)}. ${parts.next}. See ${docs}.`),
      {
        cause: parts.cause,
      },
    );
    this.name = "StatewrightError";
    this.code = code;
    this.kind = kinds[code];
    this.place = place;
    this.details = parts.details;
    this.docs = docs;
    Object.defineProperty(this, brand, { value: true });
    errorParts.set(this, parts);
  }
}

/** Returns the page of an error code, as a path from the folder of a project with `statewright` installed. */
function getDocsLink(code: string): string {
  return `node_modules/statewright/docs/errors.md#${code}`;
}

/** Constructor arguments of each error, to rebuild the error with more of its location. */
const errorParts: WeakMap<Error, ErrorParts> = new WeakMap();

/** Returns the fact of an error without code, location and fix, for use in the message of another error. */
export function getErrorFact(error: StatewrightError): string {
  return errorParts.get(error)?.what ?? error.message;
}

/**
 * Returns the error with the rest of its location. An error with a thread comes from an inner run and stays
 * unchanged.
 */
export function addErrorPlace(error: StatewrightError, place: ErrorPlace): StatewrightError {
  const parts = errorParts.get(error);
  if (parts === undefined || error.place.thread !== undefined) return error;
  const extended = new StatewrightError(error.code, { ...parts, place: { ...place, ...error.place } });
  if (error.stack !== undefined) extended.stack = error.stack.replace(error.message, () => extended.message);
  return extended;
}

/** Returns the error with an addition to its message and its details. */
export function extendError(
  error: StatewrightError,
  addition: string,
  details: Readonly<Record<string, unknown>>,
): StatewrightError {
  const parts = errorParts.get(error);
  if (parts === undefined) return error;
  const known = typeof parts.details === "object" && parts.details !== null ? parts.details : {};
  const extended = new StatewrightError(error.code, {
    ...parts,
    what: `${parts.what}; ${addition}`,
    next: parts.next,
    details: { ...known, ...details },
  });
  if (error.stack !== undefined) extended.stack = error.stack.replace(error.message, () => extended.message);
  return extended;
}

/**
 * Returns the error with each text of its message, its place and its details replaced, for surfaces with other ids than
 * the store. The cause is unchanged.
 */
export function replaceErrorText(error: StatewrightError, replace: (text: string) => string): StatewrightError {
  const known = errorParts.get(error);
  const { what, next } = known ?? { what: error.message, next: "See the code of the error" };
  const replaced = new StatewrightError(error.code, {
    what: replace(what),
    next: replace(next),
    place: replaceTexts(error.place, replace) as ErrorPlace,
    details: replaceTexts(error.details, replace),
    cause: error.cause,
  });
  if (error.stack !== undefined) replaced.stack = replace(error.stack);
  return replaced;
}

/** Replaces the texts of plain data; other objects are unchanged. */
function replaceTexts(value: unknown, replace: (text: string) => string): unknown {
  if (typeof value === "string") return replace(value);
  if (Array.isArray(value)) return value.map((item) => replaceTexts(item, replace));
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, replaceTexts(item, replace)]));
}

/** Returns true if a value is an Error. A proxy may throw on `instanceof`; such a value is no Error. */
export function isError(value: unknown): value is Error {
  try {
    return value instanceof Error;
  } catch {
    return false;
  }
}

/** Returns true if a value is an error of Statewright (of any copy of the package), and of `code` when given. */
export function isStatewrightError(value: unknown, code?: ErrorCode): value is StatewrightError {
  try {
    if (!(value instanceof Error) || !(brand in value)) return false;
    return code === undefined || ("code" in value && value.code === code);
  } catch {
    return false;
  }
}

/** A thrown value as plain data, as stored. */
export interface ErrorRecord {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  readonly stack?: string;
  readonly cause?: ErrorRecord;
  readonly place?: ErrorPlace;
  readonly details?: unknown;
  /** Errors of an AggregateError. */
  readonly errors?: readonly ErrorRecord[];
  /** The thrown value as text when the value was no Error. */
  readonly thrown?: string;
}

/** Maximum length of a chain of causes: a longer chain is a programming error and would overflow the stack. */
const maxCauses = 100;

/** Converts a thrown value into a record. Drops circular causes and unreadable fields. Contract: never throws. */
export function toErrorRecord(thrown: unknown, ancestors: readonly unknown[] = []): ErrorRecord {
  if (!isError(thrown))
    return { name: "NotAnError", message: `${describeThrown(thrown)} was thrown`, thrown: stringifyThrown(thrown) };
  const chain = [...ancestors, thrown];
  const follow = (next: unknown): ErrorRecord | undefined =>
    next === undefined || chain.includes(next) || chain.length >= maxCauses ? undefined : toErrorRecord(next, chain);
  const code = readField(thrown, "code");
  const stack = readTextField(thrown, "stack");
  const cause = follow(readField(thrown, "cause"));
  const errors = readField(thrown, "errors");
  const statewrightError = isStatewrightError(thrown) ? thrown : undefined;
  return {
    name: readTextField(thrown, "name") ?? "Error",
    message: readTextField(thrown, "message") ?? unreadableMessage,
    ...(typeof code === "string" || typeof code === "number" ? { code: String(code) } : {}),
    ...(stack === undefined ? {} : { stack }),
    ...(cause === undefined ? {} : { cause }),
    ...(Array.isArray(errors) ? { errors: errors.flatMap((each) => follow(each) ?? []) } : {}),
    ...(statewrightError === undefined ? {} : { place: statewrightError.place }),
    ...(statewrightError?.details === undefined ? {} : { details: statewrightError.details }),
  };
}

/** Restores an Error from its record: name, message, code, stack, causes and aggregated errors. */
export function fromErrorRecord(record: ErrorRecord): Error {
  const cause = record.cause === undefined ? undefined : fromErrorRecord(record.cause);
  const bare =
    record.errors === undefined
      ? new Error(record.message, { cause })
      : new AggregateError(record.errors.map(fromErrorRecord), record.message, { cause });
  const error = Object.assign(
    bare,
    record.code === undefined ? {} : { code: record.code },
    record.thrown === undefined ? {} : { thrown: record.thrown },
  );
  error.name = record.name;
  if (record.stack !== undefined) error.stack = record.stack;
  if (record.code !== undefined && record.code in kinds) {
    Object.defineProperty(error, brand, { value: true });
    Object.assign(error, {
      kind: kinds[record.code as ErrorCode],
      place: record.place ?? {},
      details: record.details,
      docs: getDocsLink(record.code),
    });
  }
  return error;
}

/**
 * Describes a thrown value in a single line for messages. Truncates long text; the cause has the full text. Contract:
 * never throws.
 */
export function describeThrown(thrown: unknown): string {
  if (isError(thrown))
    return truncateMessage(readTextField(thrown, "message") || readTextField(thrown, "name") || unreadableMessage);
  if (typeof thrown === "string") return JSON.stringify(truncateMessage(thrown));
  if (typeof thrown === "function") return "a function";
  if (typeof thrown === "object" && thrown !== null) return "an object that is not an Error";
  return String(thrown);
}

/** Returns the text after `failed: ` in a message. Contract: never throws. */
export function describeFailure(thrown: unknown): string {
  if (isError(thrown)) return describeThrown(thrown);
  return typeof thrown === "string" ? truncateMessage(thrown) : `${describeThrown(thrown)} was thrown`;
}

const unreadableMessage = "an error with an unreadable message";

/** Maximum characters of a text in an error message. */
const maxTextCharacters = 1_000;

function truncateMessage(text: string): string {
  return text.length <= maxTextCharacters ? text : `${text.slice(0, maxTextCharacters)}… (${text.length} characters)`;
}

/** Converts a thrown value to text, as JSON if possible. */
function stringifyThrown(thrown: unknown): string {
  if (typeof thrown !== "object" || thrown === null)
    return typeof thrown === "string" ? JSON.stringify(thrown) : describeThrown(thrown);
  try {
    return truncateMessage(JSON.stringify(thrown));
  } catch {
    return describeThrown(thrown);
  }
}

/** Reads a field of a thrown value; undefined when the getter throws. */
function readField(thrown: object, name: string): unknown {
  try {
    return Reflect.get(thrown, name);
  } catch {
    return undefined;
  }
}

function readTextField(thrown: object, name: string): string | undefined {
  const value = readField(thrown, name);
  return typeof value === "string" ? value : undefined;
}

function describePlace(place: ErrorPlace, fact: string): string {
  const parts: string[] = [];
  for (const part of ["channel", "path", "tool", "node", "graph", "step", "attempt", "thread", "branch"] as const) {
    const value = place[part];
    // Untyped JavaScript may pass any value.
    if (typeof value !== "string" && typeof value !== "number") continue;
    if (fact.includes(`${part} "${value}"`) || fact.includes(`${part} ${value}`)) continue;
    parts.push(typeof value === "number" ? `${part} ${value}` : `${part} "${value}"`);
  }
  return parts.length === 0 ? "" : ` (${parts.join(", ")})`;
}
