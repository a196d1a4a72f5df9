/**
 * Channels: named parts of a state, each with a schema, a kind and a reducer of writes. A reducer returns the next
 * value and the smallest delta to save. A long list of messages has an index of its ids.
 */

import { StatewrightError } from "../base/errors.ts";
import { type DeepReadonly, deepFreeze, describeValue, isPlainObject } from "../base/json.ts";
import {
  describeIssues,
  isSchema,
  type ParseResult,
  parseWith,
  type Schema,
  type SchemaInput,
  type SchemaIssue,
  type SchemaOutput,
} from "../base/schema.ts";
import { rememberWellFormed, toWellFormedData } from "../base/well-formed.ts";
import { findMessageIssue, type Message, type MessageWrite } from "../model/message.ts";
import { toSentMessage } from "../model/model.ts";
import type { Delta } from "./delta.ts";

/** Kind of a channel: its rule for writes. */
export type ChannelKind = "last" | "list" | "reduce" | "messages" | "record" | "ephemeral" | "untracked";

/** Kind of a channel whose writes are reduced into its value. A recipe cannot change the value. */
export type ReducedKind = "list" | "reduce" | "messages" | "record";

/** Parse result of a write: the value to reduce, or the issues. */
export type Parsed = ParseResult<unknown>;

/** Result of reducing the writes of a superstep: the next value and the smallest delta. */
export interface ReduceResult {
  readonly value: unknown;
  readonly delta: Delta;
}

/** A channel of a state. `types` exists only for the compiler. */
export interface Channel<Value = unknown, Write = unknown, Input = unknown, Kind extends ChannelKind = ChannelKind> {
  readonly kind: Kind;
  readonly types?: { readonly value: Value; readonly write: Write; readonly input: Input };
  /** Schema of the value; for a list or record, schema of an item. */
  readonly schema?: Schema;
  /** Returns the initial value; undefined when the input must provide the value. */
  readonly initial: () => { readonly value: unknown } | undefined;
  /** Parses a write. */
  readonly parse: (write: unknown) => Parsed;
  /** Parses a complete value: an overwrite, the result of a draft, or a restored or migrated value. */
  readonly parseValue: (value: unknown) => Parsed;
  /** Reduces parsed writes, in order, into the current value. */
  readonly reduce: (current: unknown, writes: readonly unknown[]) => ReduceResult;
}

/** Complete value of a channel for a superstep. Other writes of the superstep are reduced on top. */
export interface Overwrite<Value> {
  readonly overwrite: Value;
}

const overwrites: WeakSet<object> = new WeakSet();

/** Replaces the base value of a channel for this superstep, instead of reducing into the current value (rule E10). */
export function overwrite<Value>(value: Value): Overwrite<Value> {
  const wrapped = Object.freeze({ overwrite: value });
  overwrites.add(wrapped);
  return wrapped;
}

/** Returns true if a write was created by {@link overwrite}. */
export function isOverwrite(write: unknown): write is Overwrite<unknown> {
  return typeof write === "object" && write !== null && overwrites.has(write);
}

type Readable<S extends Schema> = DeepReadonly<SchemaOutput<S>>;
type Writable<S extends Schema> = DeepReadonly<SchemaInput<S>>;

/** Creates a channel with the last written value: the meaning of a bare schema in `defineState`. */
export function last<S extends Schema>(schema: S): Channel<Readable<S>, Writable<S>, Writable<S>> {
  return createValueChannel("last", schema);
}

/** Creates a channel whose value is visible only in the superstep after the write. */
export function ephemeral<S extends Schema>(
  schema: S,
): Channel<Readable<S> | undefined, Writable<S>, Writable<S> | undefined> {
  return createValueChannel("ephemeral", schema);
}

/** Creates an in-memory channel: never saved, undefined after a resume. */
export function untracked<S extends Schema>(
  schema: S,
): Channel<Readable<S> | undefined, Writable<S>, Writable<S> | undefined> {
  // Not frozen: an in-memory value may be a client or a socket, which must stay mutable.
  const parse = (value: unknown): Parsed => parseWith(schema, value);
  return { ...createValueChannel<never, never, never>("untracked", schema), parse, parseValue: parse };
}

/** Creates a list channel: each write appends items. `schema` is the schema of an item. Starts empty. */
export function list<S extends Schema>(
  schema: S,
): Channel<readonly Readable<S>[], readonly Writable<S>[], readonly Writable<S>[] | undefined, "list"> {
  checkSchema("list", schema);
  const parse = (write: unknown): Parsed => parseItems(write, (item) => parseWith(schema, item));
  return { kind: "list", schema, initial: () => ({ value: emptyList }), parse, parseValue: parse, reduce: appendAll };
}

/** Creates a channel with a reducer. Starts with the default of `schema`. */
export function reduce<S extends Schema, Write>(
  schema: S,
  reducer: (current: Readable<S>, write: Write) => SchemaInput<S>,
): Channel<Readable<S>, Write, Writable<S>, "reduce"> {
  checkSchema("reduce", schema);
  if (typeof reducer !== "function") {
    throw new StatewrightError("invalid_state", {
      what: `reduce: expected a reducer, got ${describeValue(reducer)}`,
      next: "Pass reduce(schema, (current, write) => next)",
    });
  }
  const parseValue = (value: unknown): Parsed => parseFrozen(schema, value);
  return {
    kind: "reduce",
    schema,
    initial: () => createInitial(schema),
    parse: (value) => ({ ok: true, value: deepFreeze(value) }),
    parseValue,
    reduce: (current, writes) => {
      let value = current;
      for (const write of writes) {
        const parsed = parseValue(reducer(value as Readable<S>, write as Write));
        if (!parsed.ok)
          throw new TypeError(`the returned value does not match the schema: ${describeIssues(parsed.issues)}`, {
            cause: parsed.cause,
          });
        value = parsed.value;
      }
      return { value, delta: { kind: "replace", value } };
    },
  };
}

/**
 * Creates a record channel: each write is merged by key, and a key with the value `undefined` is removed. Starts
 * empty.
 */
export function record<S extends Schema>(
  schema: S,
): Channel<
  Readonly<Record<string, Readable<S>>>,
  Readonly<Record<string, Writable<S> | undefined>>,
  Readonly<Record<string, Writable<S>>> | undefined,
  "record"
> {
  checkSchema("record", schema);
  const parse = (write: unknown): Parsed => parseEntries(write, schema);
  const parseValue = (value: unknown): Parsed => parseComplete({}, parse(value), mergeAll);
  return { kind: "record", schema, initial: () => ({ value: Object.freeze({}) }), parse, parseValue, reduce: mergeAll };
}

/**
 * Creates a conversation channel: a write adds messages, replaces messages of the same id, and removes messages by `{
 * remove: id }`.
 */
export function messages(): Channel<
  readonly Message[],
  MessageWrite | readonly MessageWrite[],
  readonly Message[] | undefined,
  "messages"
> {
  const parse = (write: unknown): Parsed => {
    const issues: SchemaIssue[] = [];
    const writes = toWellFormedData(Array.isArray(write) ? [...write] : [write]);
    writes.forEach((message, index) => {
      const issue = findMessageIssue(message);
      if (issue !== undefined)
        issues.push({ path: `${index}${issue.path === "" ? "" : `.${issue.path}`}`, message: issue.message });
    });
    if (issues.length > 0) return { ok: false, issues };
    // A request reads each message again: the texts of a frozen message stay well formed.
    for (const message of deepFreeze(writes)) rememberWellFormed(message);
    return { ok: true, value: writes };
  };
  const parseValue = (value: unknown): Parsed => parseComplete(emptyList, parse(value), upsertAll);
  return { kind: "messages", initial: () => ({ value: emptyList }), parse, parseValue, reduce: upsertAll };
}

const emptyList: readonly never[] = Object.freeze([]);

function createValueChannel<Value, Write, Input>(
  kind: "last" | "ephemeral" | "untracked",
  schema: Schema,
): Channel<Value, Write, Input> {
  checkSchema(kind, schema);
  const parse = (value: unknown): Parsed => parseFrozen(schema, value);
  return {
    kind,
    schema,
    initial: () => (kind === "last" ? createInitial(schema) : { value: undefined }),
    parse,
    parseValue: parse,
    reduce: (_current, writes) => {
      const value = writes[writes.length - 1];
      return { value, delta: { kind: "replace", value } };
    },
  };
}

function checkSchema(channel: string, schema: unknown): void {
  if (isSchema(schema)) return;
  throw new StatewrightError("invalid_state", {
    what: `channel of kind ${channel}: expected a schema, got ${describeValue(schema)}`,
    next: "Pass a zod schema, such as z.string()",
  });
}

function createInitial(schema: Schema): { readonly value: unknown } | undefined {
  const parsed = parseWith(schema, undefined);
  return parsed.ok ? { value: deepFreeze(parsed.value) } : undefined;
}

function parseFrozen(schema: Schema, value: unknown): Parsed {
  const parsed = parseWith(schema, value);
  return parsed.ok ? { ok: true, value: deepFreeze(parsed.value) } : parsed;
}

/** Parses a complete value by reducing it into an empty value. */
function parseComplete(
  empty: unknown,
  parsed: Parsed,
  reduceWrites: (current: unknown, writes: readonly unknown[]) => ReduceResult,
): Parsed {
  return parsed.ok ? { ok: true, value: reduceWrites(empty, [parsed.value]).value } : parsed;
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

function appendAll(current: unknown, writes: readonly unknown[]): ReduceResult {
  const items = flattenWrites(writes as readonly (readonly unknown[])[]);
  return { value: Object.freeze([...(current as readonly unknown[]), ...items]), delta: { kind: "append", items } };
}

function mergeAll(current: unknown, writes: readonly unknown[]): ReduceResult {
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

function upsertAll(current: unknown, writes: readonly unknown[]): ReduceResult {
  const known = current as readonly Message[];
  const items = flattenWrites(writes as readonly (readonly MessageWrite[])[]);
  if (items.every(isMessage) && !hasKnownId(known, items))
    return { value: appendMessages(known, items), delta: { kind: "append", items } };
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

/** Flattens the items of all writes, in order. */
function flattenWrites<Item>(writes: readonly (readonly Item[])[]): readonly Item[] {
  const [only] = writes;
  return writes.length === 1 && only !== undefined ? only : writes.flat();
}

function hasKnownId(known: readonly Message[], added: readonly Message[]): boolean {
  if (added.length > 1 && new Set(added.map((message) => message.id)).size < added.length) return true;
  return hasAnyId(known, added);
}

/**
 * Lists of messages up to this length are scanned without an index. A request also reads the index, so a chat of a few
 * turns has an index already.
 */
const maxScanLength = 16;

/** Index of a list of messages, shared by the list and its prefixes: a position is valid for each list that is long enough. */
interface MessageIndex {
  readonly positions: Map<string, number>;
  /** Position of the first message that {@link toSentMessage} changes. */
  firstChanged: number;
}

/** Index by list. */
const indexes: WeakMap<readonly Message[], MessageIndex> = new WeakMap();

function getIndex(messages: readonly Message[]): MessageIndex {
  let index = indexes.get(messages);
  if (index === undefined) {
    const firstChanged = messages.findIndex(isChanged);
    index = {
      positions: new Map(messages.map(({ id }, position) => [id, position])),
      firstChanged: firstChanged < 0 ? Number.POSITIVE_INFINITY : firstChanged,
    };
    indexes.set(messages, index);
  }
  return index;
}

function hasId(messages: readonly Message[], { positions }: MessageIndex, id: string): boolean {
  const position = positions.get(id);
  return position !== undefined && messages[position]?.id === id;
}

/** Returns true if the list contains a message with any of these ids. */
export function hasAnyId(messages: readonly Message[], added: readonly Message[]): boolean {
  if (messages.length <= maxScanLength) return added.some(({ id }) => messages.some((message) => message.id === id));
  const index = getIndex(messages);
  return added.some(({ id }) => hasId(messages, index, id));
}

/** Returns the list with messages appended. Precondition: the list contains none of their ids. */
export function appendMessages(messages: readonly Message[], added: readonly Message[]): readonly Message[] {
  const value = Object.freeze([...messages, ...added]);
  const index = indexes.get(messages);
  if (index !== undefined) {
    // Another list with the same prefix has an id at a different position: the new list gets an index of its own on
    // first use.
    if (added.some(({ id }, nth) => (index.positions.get(id) ?? messages.length + nth) !== messages.length + nth))
      return value;
    for (const [nth, message] of added.entries()) {
      index.positions.set(message.id, messages.length + nth);
      if (isChanged(message)) index.firstChanged = Math.min(index.firstChanged, messages.length + nth);
    }
    indexes.set(value, index);
  }
  return value;
}

/**
 * Returns the messages as a request has them; the list itself if no message changes. With an index the cost does not
 * depend on the length of such a list.
 */
export function toSentMessages(messages: readonly Message[]): readonly Message[] {
  const index = indexes.get(messages);
  if (index !== undefined && messages[index.firstChanged] === undefined) return messages;
  return messages.some(isChanged) ? messages.map(toSentMessage) : messages;
}

function isChanged(message: Message): boolean {
  return toSentMessage(message) !== message;
}
