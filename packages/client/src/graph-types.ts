/** Types of the graphs that a client calls, read from the types of the server's own graphs. */
import type { JsonObject, UserMessage } from "./server-types.ts";

/** Graphs of a server by name: `{ support: typeof supportAgent }`, with `import type`. */
export type GraphMap = Readonly<Record<string, unknown>>;

/** Types of a graph; unknown for a graph without types. */
type TypesOf<Graph> = Graph extends { readonly types?: infer Types } ? NonNullable<Types> : unknown;

/** Value on the wire: a list of messages takes messages of the user without an id, and with a text as content. */
type OnWire<Value> = Value extends readonly (infer Item)[]
  ? [Item] extends [{ readonly role: string; readonly content: unknown }]
    ? readonly (Item | UserMessage)[]
    : Value
  : Value;

/** Input of a graph. */
export type InputOf<Graph> =
  TypesOf<Graph> extends { readonly input: infer Input }
    ? { readonly [Channel in keyof Input]: OnWire<Input[Channel]> }
    : JsonObject;

/** State of a graph as clients see it. */
export type ValuesOf<Graph> = TypesOf<Graph> extends { readonly result: infer Values } ? Values : JsonObject;

type SchemaInput<Schema> = Schema extends { readonly "~standard": { readonly types?: infer Types } }
  ? NonNullable<Types> extends { readonly input: infer Input }
    ? Input
    : unknown
  : unknown;
type DeclaredAnswers<Interrupts> = string extends keyof Interrupts
  ? { readonly [key: string]: unknown }
  : {
      readonly [Key in keyof Interrupts]?: Interrupts[Key] extends { readonly answer: infer Answer }
        ? SchemaInput<Answer>
        : SchemaInput<Interrupts[Key]>;
    } & { readonly [id: `${string}:${string}`]: unknown; readonly approve?: unknown };

/** Answers to interrupts of a graph, by the key or the id of the interrupt. */
export type AnswersOf<Graph> =
  TypesOf<Graph> extends { readonly interrupts: infer Interrupts }
    ? DeclaredAnswers<Interrupts>
    : { readonly [key: string]: unknown };
