/** Context: typed values that are given to a run, never saved, parsed on start and again on resume. */
import type { Injection } from "../base/injection.ts";
import type { DeepReadonly } from "../base/json.ts";
import type { Schema, SchemaInput, SchemaOutput } from "../base/schema.ts";

/** A declared context. `from` makes a hidden argument out of a part of it. */
export interface ContextDefinition<Context = unknown, Given = unknown> {
  readonly schema: Schema;
  readonly types?: { readonly context: Context; readonly given: Given };
  /** An injection that gives a tool a part of the context, read when the call is made. */
  from<Value>(select: (context: Context) => Value): Injection<Value, Context>;
}

/** Declare the context that runs of a graph are given. */
export function defineContext<S extends Schema>(
  schema: S,
): ContextDefinition<DeepReadonly<SchemaOutput<S>>, SchemaInput<S>> {
  return Object.freeze({
    schema,
    from: <Value>(
      select: (context: DeepReadonly<SchemaOutput<S>>) => Value,
    ): Injection<Value, DeepReadonly<SchemaOutput<S>>> => ({
      kind: "context",
      resolve: (source) => select(source.context as DeepReadonly<SchemaOutput<S>>),
    }),
  });
}
