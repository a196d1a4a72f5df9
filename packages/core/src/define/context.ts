/** Context: typed values that are given to a run, never saved, parsed on start and again on resume. */

import { checkAnswersAtOnce } from "../base/async-schema.ts";
import { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import type { Injection } from "../base/injection.ts";
import { type DeepReadonly, isPlainObject } from "../base/json.ts";
import { isSchema, objectOf, type Schema, type SchemaInput, type SchemaOutput } from "../base/schema.ts";

/** What `defineContext` takes: a schema for each value. */
export type ContextShape = { readonly [name: string]: Schema };

type Absent<Parts> = { [Name in keyof Parts]: undefined extends Parts[Name] ? Name : never }[keyof Parts];
/** An intersection as one object. A property, so that messages show the parts. */
interface Flat<Parts> {
  readonly object: { readonly [Name in keyof Parts]: Parts[Name] };
}

/** Parts of which those that may be undefined may be left out. */
type WithOptional<Parts> = Flat<
  { readonly [Name in Exclude<keyof Parts, Absent<Parts>>]: Parts[Name] } & {
    readonly [Name in Absent<Parts>]?: Parts[Name];
  }
>["object"];

/** The context as tools, nodes and middleware read it. */
export type ContextOf<Shape extends ContextShape> = WithOptional<{
  [Name in keyof Shape]: DeepReadonly<SchemaOutput<Shape[Name]>>;
}>;

/** What a run is given: values that have no default are required. */
export type GivenContext<Shape extends ContextShape> = WithOptional<{
  [Name in keyof Shape]: SchemaInput<Shape[Name]>;
}>;

/** A declared context. `from` makes a hidden argument out of a part of it. */
export interface ContextDefinition<Context = unknown, Given = unknown> {
  readonly schema: Schema;
  readonly types?: { readonly context: Context; readonly given: Given };
  /** An injection that gives a tool a part of the context, read when the call is made. */
  from<Value>(select: (context: Context) => Value): Injection<Value, Context>;
}

/** Declare the context that runs of a graph are given; throws `invalid_option` for what is not an object of schemas. */
export function defineContext<const Shape extends ContextShape>(
  shape: Shape,
): ContextDefinition<ContextOf<Shape>, GivenContext<Shape>> {
  checkShape(shape);
  return Object.freeze({
    schema: objectOf(shape),
    from: <Value>(select: (context: ContextOf<Shape>) => Value): Injection<Value, ContextOf<Shape>> => ({
      kind: "context",
      resolve: (source) => select(source.context as ContextOf<Shape>),
    }),
  });
}

function checkShape(shape: unknown): void {
  if (!isPlainObject(shape) || "~standard" in shape)
    throw new StatewrightError("invalid_option", {
      what: "defineContext got one schema instead of an object of values",
      next: "Give defineContext({ name: schema, … }), without z.object around it",
    });
  for (const [name, part] of Object.entries(shape)) {
    checkId("context name", name);
    checkAnswersAtOnce(part, `the context value "${name}"`);
    if (isSchema(part)) continue;
    throw new StatewrightError("invalid_option", {
      what: `the context value "${name}" is not a schema`,
      next: "Give a zod schema, such as z.string()",
    });
  }
}
