/** Interrupts: questions to a person that a graph declares by key, with the schema of the answer and of what is shown. */

import { checkAnswered, checkAnswersAtOnce } from "../../base/async-schema.ts";
import { StatewrightError } from "../../base/errors.ts";
import { checkId } from "../../base/ids.ts";
import { type DeepReadonly, describeValue, isPlainObject } from "../../base/json.ts";
import { checkOptions } from "../../base/options.ts";
import {
  isSchema,
  issuesText,
  parseWith,
  type Schema,
  type SchemaInput,
  type SchemaOutput,
} from "../../base/schema.ts";

/** An interrupt: the schema of its answer, or more about it. */
export type InterruptDeclaration =
  | Schema
  | {
      readonly answer: Schema;
      readonly payload?: Schema;
      /** How long it waits for an answer, in milliseconds; for ever when absent. */
      readonly expiresMs?: number;
      /** The answer that is taken when nobody gave one in time; without it the asking node gets `interrupt_expired`. */
      readonly onExpire?: unknown;
    };

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

/** An `onExpire` that its question does not take turns the type of the interrupt into a sentence. */
export type SoundExpiry<Interrupts> = {
  readonly [Key in keyof Interrupts]: Interrupts[Key] extends { readonly onExpire: infer Given }
    ? [Given] extends [AnswerInput<Interrupts[Key]>]
      ? unknown
      : "has an onExpire that is no answer to it"
    : unknown;
};

/** The schema of an answer. */
export function answerSchema(declared: InterruptDeclaration): Schema {
  return "answer" in declared ? declared.answer : declared;
}

/** The schema of what is shown, when one is declared. */
export function payloadSchema(declared: InterruptDeclaration): Schema | undefined {
  return "answer" in declared ? declared.payload : undefined;
}

/** How long a question waits, and what is taken for its answer then. */
export interface Expiry {
  readonly ms: number;
  readonly answer: { readonly value: unknown } | undefined;
}

/** What a declaration says of the time of its question, its answer parsed; nothing where it waits for ever. */
export function expiryOf(declared: InterruptDeclaration): Expiry | undefined {
  if (!("answer" in declared) || declared.expiresMs === undefined) return undefined;
  const { answer, expiresMs: ms, onExpire } = declared;
  if (onExpire === undefined) return { ms, answer: undefined };
  const parsed = parseWith(answer, onExpire);
  // Its definition has looked: a schema that has changed its mind since gives no answer.
  return { ms, answer: parsed.ok ? { value: parsed.value } : undefined };
}

/** Throws `invalid_option` for what declares no questions. `owner` is what declares them. */
export function checkInterrupts(owner: string, interrupts: unknown): void {
  if (interrupts === undefined) return;
  if (!isPlainObject(interrupts)) {
    throw new StatewrightError("invalid_option", {
      what: `the interrupts of ${owner} are ${describeValue(interrupts)}`,
      next: "Give interrupts: { key: schema }",
    });
  }
  for (const [key, declared] of Object.entries(interrupts)) {
    checkId(`interrupt of ${owner}`, key);
    const named = `the interrupt "${key}" of ${owner}`;
    checkAnswersAtOnce(declared, named);
    if (isSchema(declared)) continue;
    if (isPlainObject(declared) && isSchema(declared["answer"])) {
      checkAnswersAtOnce(declared["answer"], named);
      checkAnswersAtOnce(declared["payload"], `the payload of ${named}`);
      checkOptions(named, declared, interruptOptions);
      checkExpiry(named, declared as Exclude<InterruptDeclaration, Schema>);
      if (declared["payload"] === undefined || isSchema(declared["payload"])) continue;
    }
    throw new StatewrightError("invalid_option", {
      what: `the interrupt "${key}" of ${owner} is declared by ${describeValue(declared)}, which is not a schema`,
      next: "Give the schema of its answer, or { answer: schema, payload: schema }",
    });
  }
}

const interruptOptions = ["answer", "payload", "expiresMs", "onExpire"] as const;

/** Throws `invalid_option` for a time that is none, or an answer after it that the question does not take. */
export function checkExpiry(owner: string, declared: Exclude<InterruptDeclaration, Schema>): void {
  const { answer, expiresMs, onExpire } = declared;
  checkExpiresMs(owner, expiresMs);
  if (onExpire === undefined) return;
  if (expiresMs === undefined) {
    throw new StatewrightError("invalid_option", {
      what: `${owner} has an onExpire, and no time after which it is taken`,
      next: "Give expiresMs beside it, or leave it out",
    });
  }
  const parsed = parseWith(answer, onExpire);
  if (parsed.ok) return;
  checkAnswered(parsed, owner);
  throw new StatewrightError("invalid_option", {
    what: `the onExpire of ${owner} is no answer to it: ${issuesText(parsed.issues)}`,
    next: "Give an answer as its schema says",
    details: parsed.issues,
    cause: parsed.cause,
  });
}

/** Throws `invalid_option` for a time after which nothing can expire. */
function checkExpiresMs(owner: string, expiresMs: unknown): void {
  if (expiresMs === undefined || (typeof expiresMs === "number" && expiresMs > 0 && Number.isFinite(expiresMs))) return;
  throw new StatewrightError("invalid_option", {
    what: `the expiresMs of ${owner} is ${describeValue(expiresMs)}`,
    next: "Give milliseconds above 0",
  });
}
