/** State: an object of named channels, declared once, typed for nodes, updates and input. */

import { checkAnswersAtOnce } from "../base/async-schema.ts";
import { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import type { Injection } from "../base/injection.ts";
import { type DeepReadonly, describeValue, isPlainObject } from "../base/json.ts";
import { isSchema, type Schema, type SchemaInput, type SchemaOutput } from "../base/schema.ts";
import { type Channel, last, type Overwrite } from "./channel.ts";

/** What `defineState` takes: a schema (keeps the last value) or a channel for each name. */
export type StateShape = { readonly [name: string]: Schema | Channel };

type ValueOf<Part> =
  Part extends Channel<infer Value, infer _Write, infer _Input>
    ? Value
    : Part extends Schema
      ? DeepReadonly<SchemaOutput<Part>>
      : never;
type WriteOf<Part> =
  Part extends Channel<infer _Value, infer Write, infer _Input>
    ? Write
    : Part extends Schema
      ? DeepReadonly<SchemaInput<Part>>
      : never;
type GivenOf<Part> =
  Part extends Channel<infer _Value, infer _Write, infer Input>
    ? Input
    : Part extends Schema
      ? DeepReadonly<SchemaInput<Part>>
      : never;

type OptionalNames<Shape extends StateShape> = {
  [Name in keyof Shape]: undefined extends GivenOf<Shape[Name]> ? Name : never;
}[keyof Shape];

/** The state as nodes read it: deeply read-only. */
export type StateOf<Shape extends StateShape> = TypesOfShape<Shape>["state"];

/** What a node may return for it: a part or all of it, `undefined` meaning "not written". */
export type UpdateOf<Shape extends StateShape> = TypesOfShape<Shape>["update"];

/** An intersection as one object, so that a value with none of its keys is refused. A property, so that messages show the parts. */
interface Flat<Parts> {
  readonly object: { readonly [Name in keyof Parts]: Parts[Name] };
}

/** What a run must be given: channels without a default are required. */
export type InputOf<Shape extends StateShape> = Flat<
  {
    readonly [Name in Exclude<keyof Shape, OptionalNames<Shape>>]: GivenOf<Shape[Name]>;
  } & {
    readonly [Name in OptionalNames<Shape>]?: GivenOf<Shape[Name]> | undefined;
  }
>["object"];

/** The three views of a state that types carry. */
export interface StateTypes {
  readonly state: object;
  readonly update: object;
  readonly input: object;
}

/** A declared state. `from` makes a hidden argument out of a part of it. */
export interface StateDefinition<Types extends StateTypes = StateTypes> {
  readonly channels: Readonly<Record<string, Channel>>;
  readonly types?: Types;
  /** An injection that gives a tool a part of the state, read when the call is made. */
  from<Value>(select: (state: Types["state"]) => Value): Injection<Value, unknown, Types["state"]>;
}

/** A state that `defineState` made: its channels go into another one, `defineState({ ...Orders.channels, note: z.string() })`. */
export interface DefinedState<Shape extends StateShape> extends StateDefinition<TypesOfShape<Shape>> {
  readonly channels: {
    readonly [Name in keyof Shape & string]: Channel<ValueOf<Shape[Name]>, WriteOf<Shape[Name]>, GivenOf<Shape[Name]>>;
  };
}

/** The types of a state with this shape. */
export interface TypesOfShape<Shape extends StateShape> extends StateTypes {
  // Not through an alias: messages and editors then show the channels and not how their types were found.
  readonly state: { readonly [Name in keyof Shape]: ValueOf<Shape[Name]> };
  readonly update: {
    readonly [Name in keyof Shape]?: WriteOf<Shape[Name]> | Overwrite<ValueOf<Shape[Name]>> | undefined;
  };
  readonly input: InputOf<Shape>;
}

/** Declare a state; throws `invalid_state` for a name or a part that cannot be one. */
export function defineState<const Shape extends StateShape>(shape: Shape): DefinedState<Shape> {
  if (!isPlainObject(shape) || "~standard" in shape)
    throw new StatewrightError("invalid_state", {
      what: `defineState got ${isSchema(shape) ? "one schema" : describeValue(shape)} instead of an object of channels`,
      next: "Give defineState({ name: schema, … }), without z.object around it",
    });
  const channels: Record<string, Channel> = {};
  for (const [name, part] of Object.entries(shape)) {
    checkId("channel name", name);
    const channel = toChannel(name, part);
    checkAnswersAtOnce(channel.schema, `the channel "${name}"`, { channel: name });
    channels[name] = channel;
  }
  return Object.freeze({
    channels: Object.freeze(channels) as DefinedState<Shape>["channels"],
    from: <Value>(select: (state: StateOf<Shape>) => Value): Injection<Value, unknown, StateOf<Shape>> => ({
      kind: "state",
      resolve: (source) => select(source.state as StateOf<Shape>),
    }),
  });
}

function toChannel(name: string, part: Schema | Channel): Channel {
  if (typeof part === "object" && part !== null && "fold" in part) return part;
  if (isSchema(part)) return last(part);
  throw new StatewrightError("invalid_state", {
    what: `the channel "${name}" is ${describeValue(part)}, neither a schema nor a channel`,
    next: "Give a zod schema, or one of list, reduce, messages, record, ephemeral, untracked",
    place: { channel: name },
  });
}
