/** Context: typed values passed to a run, never saved, parsed on start and again on resume. */

import { checkSyncSchema } from "../base/async-schema.ts";
import { checkId } from "../base/ids.ts";
import type { Injection } from "../base/injection.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { type DeepReadonly, isPlainObject } from "../base/json.ts";
import { createObjectSchema, isSchema, type Schema, type SchemaInput, type SchemaOutput } from "../base/schema.ts";

/** Shape of `defineContext`: a schema per value. */
export type ContextShape = { readonly [name: string]: Schema };

type Absent<Parts> = { [Name in keyof Parts]: undefined extends Parts[Name] ? Name : never }[keyof Parts];
/** Flattens an intersection to one object. A property, so that compiler messages show the parts. */
interface Flat<Parts> {
  readonly object: { readonly [Name in keyof Parts]: Parts[Name] };
}

/** Makes properties optional whose type includes undefined. */
type WithOptional<Parts> = Flat<
  { readonly [Name in Exclude<keyof Parts, Absent<Parts>>]: Parts[Name] } & {
    readonly [Name in Absent<Parts>]?: Parts[Name];
  }
>["object"];

type ReadContext<Shape extends ContextShape> = WithOptional<{
  [Name in keyof Shape]: DeepReadonly<SchemaOutput<Shape[Name]>>;
}>;

/** Context as read by tools, nodes and middleware: `ContextOf<typeof Desk>` for `Desk = defineContext({ … })`. */
export type ContextOf<Declared extends Pick<ContextDefinition, "schema" | "types"> | ContextShape> = Declared extends {
  readonly schema: Schema;
  readonly types?: { readonly context: infer Context; readonly given: unknown };
}
  ? Context
  : Declared extends ContextShape
    ? ReadContext<Declared>
    : never;

/** Context as passed to a run: values without a default are required. */
export type GivenContext<Shape extends ContextShape> = WithOptional<{
  [Name in keyof Shape]: DeepReadonly<SchemaInput<Shape[Name]>>;
}>;

/** Declared context. `from` creates a hidden tool argument from a part of the context. */
export interface ContextDefinition<Context = unknown, Given = unknown> {
  readonly schema: Schema;
  readonly types?: { readonly context: Context; readonly given: Given };
  /** Creates an injection that passes a part of the context to a tool, read at the time of the call. */
  from<Value>(select: (context: Context) => Value): Injection<Value, Context>;
}

/**
 * Declares the context that callers pass to runs of a graph. Throws `invalid_option` unless `shape` is an object of
 * schemas.
 */
export function defineContext<const Shape extends ContextShape>(
  shape: Shape,
): ContextDefinition<ReadContext<Shape>, GivenContext<Shape>> {
  checkShape(shape);
  return Object.freeze({
    schema: createObjectSchema(shape),
    from: <Value>(select: (context: ReadContext<Shape>) => Value): Injection<Value, ReadContext<Shape>> => ({
      kind: "context",
      resolve: (source) => select(source.context as ReadContext<Shape>),
    }),
  });
}

function checkShape(shape: unknown): void {
  if (!isPlainObject(shape) || "~standard" in shape)
    throw invalidOption({
      where: "defineContext",
      expected: "an object of schemas",
      ...(isSchema(shape) ? { found: "one schema" } : { got: shape }),
      fix: "Pass defineContext({ name: schema, … }), without z.object around the values",
    });
  for (const [name, part] of Object.entries(shape)) {
    checkId("context name", name);
    checkSyncSchema(part, `the context value "${name}"`);
    if (isSchema(part)) continue;
    throw invalidOption({
      where: "defineContext",
      option: name,
      expected: "a schema",
      got: part,
      fix: "Use a zod schema, such as z.string()",
    });
  }
}
