/** `checkAnswer`: checks an answer by the saved schema of the interrupt, without the graph of the thread. */
import { isStatewrightError, StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { isPlainObject, type Json } from "../base/json.ts";
import { checkOptions, listOptionNames } from "../base/options.ts";
import { describeIssues, type SchemaIssue } from "../base/schema.ts";
import { systemWorld, type World } from "../base/world.ts";
import type { InterruptRow } from "../checkpoint/journal.ts";
import { readStoreTime } from "../checkpoint/read-store-time.ts";
import type { Store } from "../checkpoint/store.ts";
import { createAnsweredError } from "../run/conversation/answered-error.ts";
import { checkCodecOption, checkStoreOption, checkWorldOption } from "../run/session/options/check-run-options.ts";
import { type Codec, createGuardedCodec } from "../state/codec.ts";
import { lenientCodec } from "../state/lenient-codec.ts";
import { jsonSchemaInput } from "../tool/arguments/json-schema.ts";
import { requireThread } from "./get-history.ts";

/** Options of `checkAnswer`. */
export interface CheckAnswerOptions {
  /** Id of the thread. */
  readonly thread: string;
  /** Id of the interrupt, on any branch of the thread. */
  readonly interrupt: string;
  /** Answer to check: plain JSON. */
  readonly value: unknown;
  /** Clock, random source and log. Default: the system world. */
  readonly world?: World;
  /** Codec of values other than plain data. Default: `createLenientCodec()`, which shows unknown classes as foreign. */
  readonly codec?: Codec;
}

/** Result of `checkAnswer`. */
export interface CheckedAnswer {
  /** Branch of the interrupt: pass it to `resume`. */
  readonly branch: string;
  readonly key: string;
  /** Saved JSON Schema of the answer; undefined when the schema of the interrupt has none. */
  readonly schema: Json | undefined;
  /** False when no check was possible: no JSON Schema, or a keyword outside the built-in checker. */
  readonly isChecked: boolean;
}

const optionKeys = listOptionNames<CheckAnswerOptions>({
  thread: true,
  interrupt: true,
  value: true,
  world: true,
  codec: true,
});

/**
 * Checks that an interrupt is open and that a value fits the JSON Schema saved with it. Reads the store only, and needs
 * no graph; a `resume` checks the answer again by the schema of the graph. Throws `unknown_thread`,
 * `unknown_interrupt`, `already_answered` with the first answer, its time and author in `details`,
 * `interrupt_expired`, and `invalid_answer` with the issues and the schema in `details`.
 *
 * @example
 * const { branch } = await checkAnswer(store, { thread: "t1", interrupt: "1:0:approve", value: { approved: true } });
 */
export async function checkAnswer(store: Store, options: CheckAnswerOptions): Promise<CheckedAnswer> {
  checkStoreOption("checkAnswer", store ?? null);
  checkOptions("checkAnswer", options, optionKeys);
  checkCodecOption("checkAnswer", options.codec);
  checkWorldOption("checkAnswer", options.world);
  const { interrupt, value, world = systemWorld(), codec = lenientCodec } = options;
  if (typeof interrupt !== "string")
    throw invalidOption({
      where: "checkAnswer",
      option: "interrupt",
      expected: "the id of an interrupt",
      got: interrupt,
    });
  const thread = checkId("thread", options.thread);
  await requireThread(store, thread);
  const open = await store.openInterrupts({ thread, at: await readStoreTime(store, world) });
  const row = open.find(({ id }) => id === interrupt);
  if (row === undefined) throw await createClosedError(store, createGuardedCodec(codec), thread, interrupt);
  const { branch, key, schema } = row;
  const issues = findIssues(schema, value);
  if (issues !== undefined && issues.length > 0) throw createInvalidAnswerError(row, thread, issues);
  return { branch, key, schema, isChecked: issues !== undefined };
}

/** Returns the issues of a value; undefined when the schema cannot be checked. */
function findIssues(schema: Json | undefined, value: unknown): readonly SchemaIssue[] | undefined {
  if (schema === true) return [];
  if (!isPlainObject(schema)) return undefined;
  try {
    return jsonSchemaInput(schema).validate(value);
  } catch (error) {
    if (isStatewrightError(error, "invalid_tool")) return undefined;
    throw error;
  }
}

function createInvalidAnswerError(
  { key, branch, node, schema }: InterruptRow,
  thread: string,
  issues: readonly SchemaIssue[],
): StatewrightError {
  return new StatewrightError("invalid_answer", {
    what: `the answer to interrupt "${key}" does not match its schema: ${describeIssues(issues)}`,
    next: "Fix the answer to match the interrupt's schema; the interrupt stays open",
    place: { thread, branch, node },
    details: { issues, schema },
  });
}

/** Creates the error for an interrupt that is not open: answered, expired, closed, or unknown. */
async function createClosedError(store: Store, codec: Codec, thread: string, id: string): Promise<StatewrightError> {
  const branches = await store.branches(thread);
  const rows = await Promise.all(branches.map(({ name }) => store.interrupts(thread, name)));
  const row = rows.flat().find((each) => each.id === id);
  if (row === undefined)
    return new StatewrightError("unknown_interrupt", {
      what: `thread "${thread}" has no interrupt "${id}"`,
      next: "Pass the id of an open interrupt, from listInterrupts",
      place: { thread },
    });
  const { branch, node, key, expiresAt, expiredAt, raisedAt } = row;
  const place = { thread, branch, node };
  if (row.answer !== undefined) return createAnsweredError(codec, row, place);
  if (expiresAt === undefined)
    return new StatewrightError("unknown_interrupt", {
      what: `the interrupt "${key}" (${id}) is closed without an answer: its run continued or ended`,
      next: "Pass the id of an open interrupt, from listInterrupts",
      place,
    });
  return new StatewrightError("interrupt_expired", {
    what: `the interrupt "${key}" (${id}) expired without an answer`,
    next: "Resume the thread without answers, which records the expiry",
    place,
    details: { id, key, raisedAt, expiresAt, expiredAt },
  });
}
