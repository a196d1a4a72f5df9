/** State definitions: an object of named channels, with types for nodes, updates and input. */

import { checkSyncSchema } from "../base/async-schema.ts";
import { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import type { Injection } from "../base/injection.ts";
import { type DeepReadonly, describeValue, isPlainObject } from "../base/json.ts";
import { isSchema, type Schema, type SchemaInput, type SchemaOutput } from "../base/schema.ts";
import { type Channel, type ChannelKind, last, type Overwrite, type ReducedKind } from "./channel.ts";

/** Argument of `defineState`: a schema (last value) or a channel for each name. */
export type StateShape = { readonly [name: string]: Schema | Channel };

type PartValue<Part> =
  Part extends Channel<infer Value, infer _Write, infer _Input>
    ? Value
    : Part extends Schema
      ? DeepReadonly<SchemaOutput<Part>>
      : never;
type PartWrite<Part> =
  Part extends Channel<infer _Value, infer Write, infer _Input>
    ? Write
    : Part extends Schema
      ? DeepReadonly<SchemaInput<Part>>
      : never;
type PartInput<Part> =
  Part extends Channel<infer _Value, infer _Write, infer Input>
    ? Input
    : Part extends Schema
      ? DeepReadonly<SchemaInput<Part>>
      : never;

type PartKind<Part> = Part extends { readonly kind: infer Kind extends ChannelKind } ? Kind : "last";
/** Names of the channels without a reducer. */
type EditableNames<Shape extends StateShape> = {
  [Name in keyof Shape]: Shape[Name] extends { readonly kind: ReducedKind } ? never : Name;
}[keyof Shape] &
  string;

type OptionalNames<Shape extends StateShape> = {
  [Name in keyof Shape]: undefined extends PartInput<Shape[Name]> ? Name : never;
}[keyof Shape];

/** A declared state, or the parts of one. */
type AnyDeclared = Pick<StateDefinition, "channels" | "types"> | StateShape;

type TypesOf<Declared extends AnyDeclared> = Declared extends {
  readonly channels: StateDefinition["channels"];
  readonly types?: infer Types extends StateTypes;
}
  ? Types
  : Declared extends StateShape
    ? TypesOfShape<Declared>
    : never;

/** State as read by nodes, deeply read-only: `StateOf<typeof Article>` for `Article = defineState({ … })`. */
export type StateOf<Declared extends AnyDeclared> = TypesOf<Declared>["state"];

/** Update that a node may return: a subset of the channels; `undefined` means "not written". */
export type UpdateOf<Declared extends AnyDeclared> = TypesOf<Declared>["update"];

/**
 * Flattens an intersection to an object type, so that a value without any of its keys is refused. A property, so that
 * compiler messages show the parts.
 */
interface Flat<Parts> {
  readonly object: { readonly [Name in keyof Parts]: Parts[Name] };
}

/** Input of a run: channels without a default are required. */
export type InputOf<Shape extends StateShape> = Flat<
  {
    readonly [Name in Exclude<keyof Shape, OptionalNames<Shape>>]: PartInput<Shape[Name]>;
  } & {
    readonly [Name in OptionalNames<Shape>]?: PartInput<Shape[Name]> | undefined;
  }
>["object"];

/** Types of a state for reading, for updates and for input. */
export interface StateTypes {
  readonly state: object;
  readonly update: object;
  readonly input: object;
  /** Names of the channels that a recipe may change. */
  readonly editable: string;
}

/** A declared state. */
export interface StateDefinition<Types extends StateTypes = StateTypes> {
  readonly channels: Readonly<Record<string, Channel>>;
  readonly types?: Types;
  /** Creates an injection: a hidden tool argument with a part of the state, read at the time of the call. */
  from<Value>(select: (state: Types["state"]) => Value): Injection<Value, unknown, Types["state"]>;
}

/** Result of `defineState`. Its channels can be reused: `defineState({ ...Orders.channels, note: z.string() })`. */
export interface DefinedState<Shape extends StateShape> extends StateDefinition<TypesOfShape<Shape>> {
  readonly channels: {
    readonly [Name in keyof Shape & string]: Channel<
      PartValue<Shape[Name]>,
      PartWrite<Shape[Name]>,
      PartInput<Shape[Name]>,
      PartKind<Shape[Name]>
    >;
  };
}

/** Types of a state of this shape. */
export interface TypesOfShape<Shape extends StateShape> extends StateTypes {
  // No alias here: compiler messages and editors then show the channels and not the derivation of their types.
  readonly state: { readonly [Name in keyof Shape]: PartValue<Shape[Name]> };
  readonly update: {
    readonly [Name in keyof Shape]?: PartWrite<Shape[Name]> | Overwrite<PartValue<Shape[Name]>> | undefined;
  };
  readonly input: InputOf<Shape>;
  readonly editable: EditableNames<Shape>;
}

/** Declares a state. Throws `invalid_state` for an invalid name or an invalid part. */
export function defineState<const Shape extends StateShape>(shape: Shape): DefinedState<Shape> {
  if (!isPlainObject(shape) || "~standard" in shape)
    throw new StatewrightError("invalid_state", {
      what: `defineState: expected an object of channels, got ${isSchema(shape) ? "one schema" : describeValue(shape)}`,
      next: "Use defineState({ name: schema, … }), without z.object around it",
    });
  const channels: Record<string, Channel> = {};
  for (const [name, part] of Object.entries(shape)) {
    checkId("channel name", name);
    const channel = toChannel(name, part);
    checkSyncSchema(channel.schema, `the channel "${name}"`, { channel: name });
    channels[name] = channel;
  }
  return Object.freeze({
    channels: Object.freeze(channels) as DefinedState<Shape>["channels"],
    from: <Value>(
      select: (state: TypesOfShape<Shape>["state"]) => Value,
    ): Injection<Value, unknown, TypesOfShape<Shape>["state"]> => ({
      kind: "state",
      resolve: (source) => select(source.state as TypesOfShape<Shape>["state"]),
    }),
  });
}

function toChannel(name: string, part: Schema | Channel): Channel {
  if (typeof part === "object" && part !== null && "reduce" in part) return part;
  if (isSchema(part)) return last(part);
  throw new StatewrightError("invalid_state", {
    what: `the channel "${name}": expected a schema or a channel, got ${describeValue(part)}`,
    next: "Pass a zod schema, or one of list, reduce, messages, record, ephemeral, untracked",
    place: { channel: name },
  });
}
