/** Interrupts: questions to a person that a graph declares by key, with the schema of the answer and of what is shown. */
import type { DeepReadonly } from "../base/json.ts";
import type { Schema, SchemaInput, SchemaOutput } from "../base/schema.ts";

/** An interrupt: the schema of its answer, or both schemas. */
export type InterruptDeclaration = Schema | { readonly answer: Schema; readonly payload?: Schema };

/** The interrupts of a graph, by key. */
export type InterruptShape = { readonly [key: string]: InterruptDeclaration };

type AnswerSchema<Declared> = Declared extends { readonly answer: infer Answer extends Schema }
  ? Answer
  : Declared extends Schema
    ? Declared
    : never;

/** What the asking node gets. */
export type AnswerOf<Declared> = DeepReadonly<SchemaOutput<AnswerSchema<Declared>>>;

/** What a person answers. */
export type AnswerInput<Declared> = DeepReadonly<SchemaInput<AnswerSchema<Declared>>>;

/** What the asking node shows. */
export type PayloadOf<Declared> = Declared extends { readonly payload: infer Payload extends Schema }
  ? DeepReadonly<SchemaInput<Payload>>
  : unknown;

/** The schema of an answer. */
export function answerSchema(declared: InterruptDeclaration): Schema {
  return "answer" in declared ? declared.answer : declared;
}

/** The schema of what is shown, when one is declared. */
export function payloadSchema(declared: InterruptDeclaration): Schema | undefined {
  return "answer" in declared ? declared.payload : undefined;
}
