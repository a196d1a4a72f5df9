/**
 * Errors of Statewright: one class, recognised by `code`, each saying what happened, where, and what to do next.
 *
 * `kind` names who acts next: `definition` the author of the graph, `input` the caller, `tool` the model,
 * `run` and `store` the operator.
 */
import { printable } from "./escape-control-chars.ts";

/** Who acts next after an error. */
export type ErrorKind = "definition" | "input" | "tool" | "run" | "store";

/** Every code, with who acts next. Each has an entry in docs/errors.md. */
const kinds: Readonly<Record<ErrorCode, ErrorKind>> = {
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
  question_changed: "run",
  unknown_thread: "input",
  unknown_checkpoint: "input",
  unknown_branch: "input",
  thread_busy: "input",
  thread_exists: "input",
  run_exists: "input",
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
  parked: "run",
  unknown_channel: "run",
  undeclared_write: "run",
  channel_conflict: "run",
  dead_route: "run",
  empty_sends: "run",
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
  store_corrupt: "store",
  store_newer: "store",
  missing_key: "store",
  store_exists: "store",
  store_closed: "store",
  fenced: "store",
};

/** The code by which an error is recognised, also across two copies of the package. */
export type ErrorCode =
  | "invalid_graph"
  | "invalid_state"
  | "invalid_tool"
  | "invalid_option"
  | "async_schema"
  | "invalid_id"
  | "invalid_input"
  | "invalid_context"
  | "invalid_answer"
  | "ambiguous_answer"
  | "already_answered"
  | "unknown_interrupt"
  | "interrupt_expired"
  | "question_changed"
  | "unknown_thread"
  | "unknown_checkpoint"
  | "unknown_branch"
  | "thread_busy"
  | "thread_exists"
  | "run_exists"
  | "engine_stopped"
  | "invalid_export"
  | "missing_secret"
  | "missing_store"
  | "graph_changed"
  | "needs_migration"
  | "migration_failed"
  | "invalid_update"
  | "invalid_output"
  | "drained"
  | "parked"
  | "unknown_channel"
  | "undeclared_write"
  | "channel_conflict"
  | "dead_route"
  | "empty_sends"
  | "repeated_step"
  | "node_failed"
  | "step_limit"
  | "event_refused"
  | "machine_failed"
  | "task_timeout"
  | "effect_in_doubt"
  | "breakpoint"
  | "model_failed"
  | "invalid_transcript"
  | "tool_failed"
  | "plugin_failed"
  | "untrusted_configuration"
  | "mcp_failed"
  | "unencodable_value"
  | "store_failed"
  | "store_full"
  | "store_locked"
  | "store_corrupt"
  | "store_newer"
  | "missing_key"
  | "store_exists"
  | "store_closed"
  | "fenced";

/** Every error code, in the order of docs/errors.md. */
export const errorCodes: readonly ErrorCode[] = Object.keys(kinds) as ErrorCode[];

/** Where an error happened; each part is present when it is known. */
export interface ErrorPlace {
  readonly graph?: string;
  /** The nodes that lead to an inner graph, as `research.plan`. */
  readonly within?: string;
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

/** What a {@link StatewrightError} is made of. */
export interface ErrorParts {
  /** What happened, one sentence without its full stop. */
  readonly what: string;
  /** What to do next, one sentence without its full stop. */
  readonly next: string;
  readonly place?: ErrorPlace;
  /** Plain data for programs: lists of problems, known names, the first answer. */
  readonly details?: unknown;
  readonly cause?: unknown;
}

const brand: unique symbol = Symbol.for("statewright.error") as never;

/** An error of Statewright: `code` for programs, a message of three parts for people. */
export class StatewrightError extends Error {
  readonly code: ErrorCode;
  readonly kind: ErrorKind;
  readonly place: ErrorPlace;
  readonly details: unknown;
  /** The page that explains this code. */
  readonly docs: string;

  constructor(code: ErrorCode, parts: ErrorParts) {
    const place = parts.place ?? {};
    const docs = `docs/errors.md#${code}`;
    super(printable(`${code}: ${parts.what}${describePlace(place, parts.what)}. ${parts.next}. See ${docs}.`), {
      cause: parts.cause,
    });
    this.name = "StatewrightError";
    this.code = code;
    this.kind = kinds[code];
    this.place = place;
    this.details = parts.details;
    this.docs = docs;
    Object.defineProperty(this, brand, { value: true });
    made.set(this, parts);
  }
}

/** The parts that errors were made of, to make them again with more of their place. */
const made: WeakMap<Error, ErrorParts> = new WeakMap();

/** What happened, without its code, its place and what to do next: for a sentence of another error. */
export function saidBy(error: StatewrightError): string {
  return made.get(error)?.what ?? error.message;
}

/** The same error, telling the rest of its place too. One that names its thread already comes from inside and stays as it is. */
export function located(error: StatewrightError, place: ErrorPlace): StatewrightError {
  const parts = made.get(error);
  if (parts === undefined || error.place.thread !== undefined) return error;
  const whole = new StatewrightError(error.code, { ...parts, place: { ...place, ...error.place } });
  if (error.stack !== undefined) whole.stack = error.stack.replace(error.message, () => whole.message);
  return whole;
}

/** The same error with more of what happened in its message, and more in its details for programs. */
export function saidWith(
  error: StatewrightError,
  more: string,
  details: Readonly<Record<string, unknown>>,
): StatewrightError {
  const parts = made.get(error);
  if (parts === undefined) return error;
  const known = typeof parts.details === "object" && parts.details !== null ? parts.details : {};
  const whole = new StatewrightError(error.code, {
    ...parts,
    what: `${parts.what}; ${more}`,
    next: parts.next,
    details: { ...known, ...details },
  });
  if (error.stack !== undefined) whole.stack = error.stack.replace(error.message, () => whole.message);
  return whole;
}

/** Tell whether a value is an Error. A proxy may answer every question with an error of its own: that one is none. */
export function isError(value: unknown): value is Error {
  try {
    return value instanceof Error;
  } catch {
    return false;
  }
}

/** Tell whether a value is an error of Statewright (of any copy of the package), and of `code` when one is given. */
export function isStatewrightError(value: unknown, code?: ErrorCode): value is StatewrightError {
  try {
    if (!(value instanceof Error) || !(brand in value)) return false;
    return code === undefined || ("code" in value && value.code === code);
  } catch {
    return false;
  }
}

/** A thrown value as it is saved: plain data that still names the original. */
export interface ErrorRecord {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  readonly stack?: string;
  readonly cause?: ErrorRecord;
  readonly place?: ErrorPlace;
  readonly details?: unknown;
  /** Each failure of an AggregateError. */
  readonly errors?: readonly ErrorRecord[];
  /** The thrown value as text, where it was not an Error. */
  readonly thrown?: string;
}

/** A chain of causes is followed so far: a longer one was made by a mistake, and walking it would run out of stack. */
const longestChain = 100;

/** Turn anything thrown into a record. A circular cause ends the chain; a field that cannot be read is left out. Never throws. */
export function toErrorRecord(thrown: unknown, above: readonly unknown[] = []): ErrorRecord {
  if (!isError(thrown))
    return { name: "NotAnError", message: `${describeThrown(thrown)} was thrown`, thrown: shown(thrown) };
  const inside = [...above, thrown];
  const follow = (next: unknown): ErrorRecord | undefined =>
    next === undefined || inside.includes(next) || inside.length >= longestChain
      ? undefined
      : toErrorRecord(next, inside);
  const code = fieldOf(thrown, "code");
  const stack = textField(thrown, "stack");
  const cause = follow(fieldOf(thrown, "cause"));
  const errors = fieldOf(thrown, "errors");
  const ours = isStatewrightError(thrown) ? thrown : undefined;
  return {
    name: textField(thrown, "name") ?? "Error",
    message: textField(thrown, "message") ?? unreadable,
    ...(typeof code === "string" || typeof code === "number" ? { code: String(code) } : {}),
    ...(stack === undefined ? {} : { stack }),
    ...(cause === undefined ? {} : { cause }),
    ...(Array.isArray(errors) ? { errors: errors.flatMap((each) => follow(each) ?? []) } : {}),
    ...(ours === undefined ? {} : { place: ours.place }),
    ...(ours?.details === undefined ? {} : { details: ours.details }),
  };
}

/** The Error again from its record, with name, message, code, stack, chain of causes, and the failures that it holds. */
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
      docs: `docs/errors.md#${record.code}`,
    });
  }
  return error;
}

/** One line that says what was thrown, for messages; a long text is cut, since the cause has the whole. Never throws itself. */
export function describeThrown(thrown: unknown): string {
  if (isError(thrown)) return cut(textField(thrown, "message") || textField(thrown, "name") || unreadable);
  if (typeof thrown === "string") return JSON.stringify(cut(thrown));
  if (typeof thrown === "function") return "a function";
  if (typeof thrown === "object" && thrown !== null) return "an object that is not an Error";
  return String(thrown);
}

/** What a failure says, after `failed: `. Never throws itself. */
export function failureText(thrown: unknown): string {
  if (isError(thrown)) return describeThrown(thrown);
  return typeof thrown === "string" ? cut(thrown) : `${describeThrown(thrown)} was thrown`;
}

const unreadable = "an error whose message cannot be read";

/** As much of a text as a message takes. */
const longestText = 1_000;

function cut(text: string): string {
  return text.length <= longestText ? text : `${text.slice(0, longestText)}… (${text.length} characters)`;
}

/** What was thrown, as far as text can say it. */
function shown(thrown: unknown): string {
  if (typeof thrown !== "object" || thrown === null)
    return typeof thrown === "string" ? JSON.stringify(thrown) : describeThrown(thrown);
  try {
    return cut(JSON.stringify(thrown));
  } catch {
    return describeThrown(thrown);
  }
}

/** A field of something thrown; one whose getter throws is not there. */
function fieldOf(thrown: object, name: string): unknown {
  try {
    return Reflect.get(thrown, name);
  } catch {
    return undefined;
  }
}

function textField(thrown: object, name: string): string | undefined {
  const value = fieldOf(thrown, name);
  return typeof value === "string" ? value : undefined;
}

function describePlace(place: ErrorPlace, said: string): string {
  const named: string[] = [];
  for (const part of ["channel", "path", "tool", "node", "graph", "step", "attempt", "thread", "branch"] as const) {
    const value = place[part];
    // A program without types may put anything here.
    if (typeof value !== "string" && typeof value !== "number") continue;
    if (said.includes(`${part} "${value}"`) || said.includes(`${part} ${value}`)) continue;
    named.push(typeof value === "number" ? `${part} ${value}` : `${part} "${value}"`);
  }
  return named.length === 0 ? "" : ` (${named.join(", ")})`;
}
