/** Interrupts: requests for input from a person, declared by key, with a schema of the answer and of the payload. */

import { checkSyncResult, checkSyncSchema } from "../../base/async-schema.ts";
import { checkId } from "../../base/ids.ts";
import { invalidOption } from "../../base/invalid-option.ts";
import { type DeepReadonly, describeValue, isPlainObject } from "../../base/json.ts";
import { checkOptions, checkTime } from "../../base/options.ts";
import {
  describeIssues,
  isSchema,
  parseWith,
  type Schema,
  type SchemaInput,
  type SchemaOutput,
} from "../../base/schema.ts";

/** Declaration of an interrupt: the schema of its answer, or an object with the schema and options. */
export type InterruptDeclaration =
  | Schema
  | {
      readonly answer: Schema;
      readonly payload?: Schema;
      /** Time to answer in milliseconds. Default: no expiry. */
      readonly expiresMs?: number;
      /** Answer used after expiry. Without `onExpire` the node gets the error `interrupt_expired`. */
      readonly onExpire?: unknown;
    };

/** Interrupts of a graph, by key. */
export type InterruptShape = { readonly [key: string]: InterruptDeclaration };

type AnswerSchema<Declared> = Declared extends { readonly answer: infer Answer extends Schema }
  ? Answer
  : Declared extends Schema
    ? Declared
    : never;

/** Parsed answer, as received by the node. */
export type AnswerOf<Declared> = DeepReadonly<SchemaOutput<AnswerSchema<Declared>>>;

/** Answer as passed by a caller. */
export type AnswerInput<Declared> = DeepReadonly<SchemaInput<AnswerSchema<Declared>>>;

/** Payload of an interrupt, as shown to a person. */
export type PayloadOf<Declared> = Declared extends { readonly payload: infer Payload extends Schema }
  ? DeepReadonly<SchemaInput<Payload>>
  : unknown;

/** Payload of an open interrupt: the parsed payload of the node. */
export type ShownPayload<Declared> = Declared extends { readonly payload: infer Payload extends Schema }
  ? DeepReadonly<SchemaOutput<Payload>>
  : unknown;

/** Turns the type of an interrupt into an error message if `onExpire` does not match its answer schema. */
export type ValidExpiry<Interrupts> = {
  readonly [Key in keyof Interrupts]: Interrupts[Key] extends { readonly onExpire: infer Given }
    ? [Given] extends [AnswerInput<Interrupts[Key]>]
      ? unknown
      : "has an onExpire that does not match its answer schema"
    : unknown;
};

/** Returns the answer schema of a declaration. */
export function getAnswerSchema(declared: InterruptDeclaration): Schema {
  return "answer" in declared ? declared.answer : declared;
}

/** Returns the payload schema of a declaration; undefined when not declared. */
export function getPayloadSchema(declared: InterruptDeclaration): Schema | undefined {
  return "answer" in declared ? declared.payload : undefined;
}

/** Expiry of an interrupt: the time to answer and the answer used afterwards. */
export interface Expiry {
  readonly ms: number;
  readonly answer: { readonly value: unknown } | undefined;
}

/** Returns the expiry of a declaration with its parsed answer; undefined without expiry. */
export function parseExpiry(declared: InterruptDeclaration): Expiry | undefined {
  if (!("answer" in declared) || declared.expiresMs === undefined) return undefined;
  const { answer, expiresMs: ms, onExpire } = declared;
  if (onExpire === undefined) return { ms, answer: undefined };
  const parsed = parseWith(answer, onExpire);
  // Already validated at definition. If the schema is not deterministic and refuses the answer now, the interrupt
  // expires without an answer.
  return { ms, answer: parsed.ok ? { value: parsed.value } : undefined };
}

/** Throws `invalid_option` for invalid interrupt declarations. `owner` is the declaring graph or middleware. */
export function checkInterrupts(owner: string, interrupts: unknown): void {
  if (interrupts === undefined) return;
  if (!isPlainObject(interrupts)) {
    const fix = "Use interrupts: { key: schema }";
    throw invalidOption({ where: `the interrupts of ${owner}`, expected: "an object", got: interrupts, fix });
  }
  for (const [key, declared] of Object.entries(interrupts)) {
    checkId(`interrupt of ${owner}`, key);
    const where = `the interrupt "${key}" of ${owner}`;
    checkSyncSchema(declared, where);
    if (isSchema(declared)) continue;
    if (isPlainObject(declared) && isSchema(declared["answer"])) {
      checkSyncSchema(declared["answer"], where);
      checkSyncSchema(declared["payload"], `the payload of ${where}`);
      checkOptions(where, declared, interruptOptions);
      checkExpiry(where, declared as Exclude<InterruptDeclaration, Schema>);
      if (declared["payload"] === undefined || isSchema(declared["payload"])) continue;
    }
    throw invalidOption({
      where,
      expected: "a schema",
      got: declared,
      fix: "Pass the schema of its answer, or { answer: schema, payload: schema }",
    });
  }
}

const interruptOptions = ["answer", "payload", "expiresMs", "onExpire"] as const;

/** Throws `invalid_option` for an invalid time, or for an `onExpire` that does not match the answer schema. */
export function checkExpiry(owner: string, declared: Exclude<InterruptDeclaration, Schema>): void {
  const { answer, expiresMs, onExpire } = declared;
  checkTime(owner, { expiresMs });
  if (onExpire === undefined) return;
  if (expiresMs === undefined) {
    throw invalidOption({
      where: owner,
      option: "expiresMs",
      expected: "set, because `onExpire` is set",
      got: expiresMs,
      fix: "Add expiresMs, or remove onExpire",
    });
  }
  const parsed = parseWith(answer, onExpire);
  if (parsed.ok) return;
  checkSyncResult(parsed, owner);
  throw invalidOption({
    where: owner,
    option: "onExpire",
    expected: "an answer that matches the answer schema",
    found: `${describeValue(onExpire)}: ${describeIssues(parsed.issues)}`,
    details: parsed.issues,
    cause: parsed.cause,
  });
}
