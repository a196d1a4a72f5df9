/**
 * Channels: the named parts of a state, each with a schema, a kind, and a way to fold writes.
 * A fold gives the next value and the delta that is saved: what changed, never the whole value where less will do.
 */
import { StatewrightError } from "../base/errors.ts";
import { type DeepReadonly, deepFreeze, describeValue, isPlainObject } from "../base/json.ts";
import {
  isSchema,
  issuesText,
  type ParseResult,
  parseWith,
  type Schema,
  type SchemaInput,
  type SchemaIssue,
  type SchemaOutput,
} from "../base/schema.ts";
import { type Message, type MessageWrite, messageIssue } from "../model/message.ts";
import type { Delta } from "./delta.ts";
import { appended, hasAnyOf } from "./message-index.ts";

/** How a channel treats writes. */
export type ChannelKind = "last" | "list" | "reduce" | "messages" | "record" | "ephemeral" | "untracked";

/** What parsing a write gives: the value to fold, or what is wrong with it. */
export type Parsed = ParseResult<unknown>;

/** The result of folding the writes of a superstep: the next value and the smallest delta that leads to it. */
export interface Folded {
  readonly value: unknown;
  readonly delta: Delta;
}

/** A channel; `types` exists only for the compiler. */
export interface Channel<Value = unknown, Write = unknown, Input = unknown> {
  readonly kind: ChannelKind;
  readonly types?: { readonly value: Value; readonly write: Write; readonly input: Input };
  /** What its value, or for a list and a record one part of it, is parsed by. */
  readonly schema?: Schema;
  /** The value before anything was written; absent where the input must bring it. */
  readonly initial: () => { readonly value: unknown } | undefined;
  /** Parse one write. */
  readonly parse: (write: unknown) => Parsed;
  /** Parse a whole value: an overwrite, a draft's result, a restored or migrated value. */
  readonly parseValue: (value: unknown) => Parsed;
  /** Fold parsed writes, in order, into the current value. */
  readonly fold: (current: unknown, writes: readonly unknown[]) => Folded;
}

/** The whole value of a channel for this superstep; every other write of the step folds on top of it. */
export interface Overwrite<Value> {
  readonly overwrite: Value;
}

const overwrites: WeakSet<object> = new WeakSet();

/** Set the base of a channel for this superstep, in place of folding into its current value (rule E10). */
export function overwrite<Value>(value: Value): Overwrite<Value> {
  const wrapped = Object.freeze({ overwrite: value });
  overwrites.add(wrapped);
  return wrapped;
}

/** Tell whether a write was made by {@link overwrite}. */
export function isOverwrite(write: unknown): write is Overwrite<unknown> {
  return typeof write === "object" && write !== null && overwrites.has(write);
}

type Readable<S extends Schema> = DeepReadonly<SchemaOutput<S>>;
type Writable<S extends Schema> = DeepReadonly<SchemaInput<S>>;

/** A channel that keeps the last value written: what a bare schema in `defineState` means. */
export function last<S extends Schema>(schema: S): Channel<Readable<S>, Writable<S>, Writable<S>> {
  return valueChannel("last", schema);
}

/** A channel that is visible in the superstep after its write and gone in the next. */
export function ephemeral<S extends Schema>(
  schema: S,
): Channel<Readable<S> | undefined, Writable<S>, Writable<S> | undefined> {
  return valueChannel("ephemeral", schema);
}

/** A channel that lives in this process only: never saved, absent after a resume. */
export function untracked<S extends Schema>(
  schema: S,
): Channel<Readable<S> | undefined, Writable<S>, Writable<S> | undefined> {
  // Not frozen: what lives in the process may be a client or a socket, which would not work any more.
  const parse = (value: unknown): Parsed => parseWith(schema, value);
  return { ...valueChannel<never, never, never>("untracked", schema), parse, parseValue: parse };
}

/** A list to which each write appends items; `schema` is that of one item. Starts empty. */
export function list<S extends Schema>(
  schema: S,
): Channel<readonly Readable<S>[], readonly Writable<S>[], readonly Writable<S>[] | undefined> {
  checkSchema("list", schema);
  const parse = (write: unknown): Parsed => parseItems(write, (item) => parseWith(schema, item));
  return { kind: "list", schema, initial: () => ({ value: emptyList }), parse, parseValue: parse, fold: appendAll };
}

/** A channel that folds each write with `fold`; starts from what `schema` gives for an absent value. */
export function reduce<S extends Schema, Write>(
  schema: S,
  fold: (current: Readable<S>, write: Write) => SchemaInput<S>,
): Channel<Readable<S>, Write, Writable<S>> {
  checkSchema("reduce", schema);
  if (typeof fold !== "function") {
    throw new StatewrightError("invalid_state", {
      what: `reduce got ${describeValue(fold)} where its reducer is due`,
      next: "Give reduce(schema, (current, write) => next)",
    });
  }
  const parseValue = (value: unknown): Parsed => parseFrozen(schema, value);
  return {
    kind: "reduce",
    schema,
    initial: () => initialOf(schema),
    parse: (value) => ({ ok: true, value: deepFreeze(value) }),
    parseValue,
    fold: (current, writes) => {
      let value = current;
      for (const write of writes) {
        const parsed = parseValue(fold(value as Readable<S>, write as Write));
        if (!parsed.ok)
          throw new TypeError(`it returned what its schema refuses: ${issuesText(parsed.issues)}`, {
            cause: parsed.cause,
          });
        value = parsed.value;
      }
      return { value, delta: { kind: "replace", value } };
    },
  };
}

/** A record into which each write is merged by key; a key with the value `undefined` is removed. Starts empty. */
export function record<S extends Schema>(
  schema: S,
): Channel<
  Readonly<Record<string, Readable<S>>>,
  Readonly<Record<string, Writable<S> | undefined>>,
  Readonly<Record<string, Writable<S>>> | undefined
> {
  checkSchema("record", schema);
  const parse = (write: unknown): Parsed => parseEntries(write, schema);
  const parseValue = (value: unknown): Parsed => foldedOnto({}, parse(value), mergeAll);
  return { kind: "record", schema, initial: () => ({ value: Object.freeze({}) }), parse, parseValue, fold: mergeAll };
}

/** The conversation: a write adds messages, replaces those with an id that is known, and removes those named by `{ remove: id }`. */
export function messages(): Channel<
  readonly Message[],
  MessageWrite | readonly MessageWrite[],
  readonly Message[] | undefined
> {
  const parse = (write: unknown): Parsed => {
    const issues: SchemaIssue[] = [];
    const writes = Array.isArray(write) ? [...write] : [write];
    writes.forEach((message, index) => {
      const issue = messageIssue(message);
      if (issue !== undefined)
        issues.push({ path: `${index}${issue.path === "" ? "" : `.${issue.path}`}`, message: issue.message });
    });
    return issues.length > 0 ? { ok: false, issues } : { ok: true, value: deepFreeze(writes) };
  };
  const parseValue = (value: unknown): Parsed => foldedOnto(emptyList, parse(value), upsertAll);
  return { kind: "messages", initial: () => ({ value: emptyList }), parse, parseValue, fold: upsertAll };
}

const emptyList: readonly never[] = Object.freeze([]);

function valueChannel<Value, Write, Input>(
  kind: "last" | "ephemeral" | "untracked",
  schema: Schema,
): Channel<Value, Write, Input> {
  checkSchema(kind, schema);
  const parse = (value: unknown): Parsed => parseFrozen(schema, value);
  return {
    kind,
    schema,
    initial: () => (kind === "last" ? initialOf(schema) : { value: undefined }),
    parse,
    parseValue: parse,
    fold: (_current, writes) => {
      const value = writes[writes.length - 1];
      return { value, delta: { kind: "replace", value } };
    },
  };
}

function checkSchema(channel: string, schema: unknown): void {
  if (isSchema(schema)) return;
  throw new StatewrightError("invalid_state", {
    what: `a channel of the kind ${channel} got ${describeValue(schema)} where its schema is due`,
    next: "Give a zod schema, such as z.string()",
  });
}

function initialOf(schema: Schema): { readonly value: unknown } | undefined {
  const parsed = parseWith(schema, undefined);
  return parsed.ok ? { value: deepFreeze(parsed.value) } : undefined;
}

function parseFrozen(schema: Schema, value: unknown): Parsed {
  const parsed = parseWith(schema, value);
  return parsed.ok ? { ok: true, value: deepFreeze(parsed.value) } : parsed;
}

/** A whole value is what its write leads to from nothing. */
function foldedOnto(
  nothing: unknown,
  parsed: Parsed,
  fold: (current: unknown, writes: readonly unknown[]) => Folded,
): Parsed {
  return parsed.ok ? { ok: true, value: fold(nothing, [parsed.value]).value } : parsed;
}

function parseItems(write: unknown, parseItem: (item: unknown) => Parsed): Parsed {
  if (!Array.isArray(write))
    return { ok: false, issues: [{ path: "", message: "expected a list of items to append" }] };
  const items: unknown[] = [];
  const issues: SchemaIssue[] = [];
  for (const [index, item] of write.entries()) {
    const parsed = parseItem(item);
    if (parsed.ok) {
      items.push(deepFreeze(parsed.value));
      continue;
    }
    if (parsed.isAsync === true) return parsed;
    issues.push(
      ...parsed.issues.map((issue) => ({ ...issue, path: issue.path === "" ? `${index}` : `${index}.${issue.path}` })),
    );
  }
  return issues.length > 0 ? { ok: false, issues } : { ok: true, value: Object.freeze(items) };
}

function parseEntries(write: unknown, schema: Schema): Parsed {
  if (!isPlainObject(write)) return { ok: false, issues: [{ path: "", message: "expected an object" }] };
  const issues: SchemaIssue[] = [];
  const entries: [string, unknown][] = [];
  for (const [key, item] of Object.entries(write)) {
    if (item === undefined) {
      entries.push([key, undefined]);
      continue;
    }
    const parsed = parseWith(schema, item);
    if (parsed.ok) {
      entries.push([key, deepFreeze(parsed.value)]);
      continue;
    }
    if (parsed.isAsync === true) return parsed;
    issues.push(
      ...parsed.issues.map((issue) => ({ ...issue, path: issue.path === "" ? key : `${key}.${issue.path}` })),
    );
  }
  return issues.length > 0 ? { ok: false, issues } : { ok: true, value: entries };
}

function appendAll(current: unknown, writes: readonly unknown[]): Folded {
  const items = joined(writes as readonly (readonly unknown[])[]);
  return { value: Object.freeze([...(current as readonly unknown[]), ...items]), delta: { kind: "append", items } };
}

function mergeAll(current: unknown, writes: readonly unknown[]): Folded {
  const merged: Record<string, unknown> = { ...(current as Record<string, unknown>) };
  const patches: { op: "add" | "remove"; path: readonly [string]; value?: unknown }[] = [];
  for (const [key, item] of (writes as readonly (readonly [string, unknown][])[]).flat()) {
    if (item === undefined) {
      if (!Object.hasOwn(merged, key)) continue;
      delete merged[key];
      patches.push({ op: "remove", path: [key] });
      continue;
    }
    if (key === "__proto__")
      Object.defineProperty(merged, key, { value: item, enumerable: true, configurable: true, writable: true });
    else merged[key] = item;
    patches.push({ op: "add", path: [key], value: item });
  }
  return { value: Object.freeze(merged), delta: { kind: "patch", patches } };
}

function upsertAll(current: unknown, writes: readonly unknown[]): Folded {
  const known = current as readonly Message[];
  const items = joined(writes as readonly (readonly MessageWrite[])[]);
  if (items.every(isMessage) && !touchesKnown(known, items))
    return { value: appended(known, items), delta: { kind: "append", items } };
  const value = [...known];
  const patches: { op: "add" | "replace" | "remove"; path: readonly [number]; value?: unknown }[] = [];
  for (const item of items) {
    const id = "remove" in item ? item.remove : item.id;
    const index = value.findIndex((message) => message.id === id);
    if ("remove" in item) {
      if (index < 0) continue;
      value.splice(index, 1);
      patches.push({ op: "remove", path: [index] });
    } else if (index < 0) {
      patches.push({ op: "add", path: [value.length], value: item });
      value.push(item);
    } else {
      value[index] = item;
      patches.push({ op: "replace", path: [index], value: item });
    }
  }
  return { value: Object.freeze(value), delta: { kind: "patch", patches } };
}

function isMessage(item: MessageWrite): item is Message {
  return !("remove" in item);
}

/** What all writes hold, in order. */
function joined<Item>(writes: readonly (readonly Item[])[]): readonly Item[] {
  const [only] = writes;
  return writes.length === 1 && only !== undefined ? only : writes.flat();
}

function touchesKnown(known: readonly Message[], added: readonly Message[]): boolean {
  if (added.length > 1 && new Set(added.map((message) => message.id)).size < added.length) return true;
  return hasAnyOf(known, added);
}
