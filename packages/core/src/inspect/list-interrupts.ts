/** `waiting`: what waits for a person, over all threads. */
import { checkOptions, optionNames } from "../base/options.ts";
import { systemWorld, type World } from "../base/world.ts";
import type { QuestionRow } from "../checkpoint/journal.ts";
import type { QuestionFilter, Store } from "../checkpoint/store.ts";
import type { OpenInterrupt } from "../run/events/events.ts";
import { checkCodec, checkStore } from "../run/session/check-run-options.ts";
import { openInterrupt } from "../run/session/run-row.ts";
import { type Codec, guardedCodec, plainCodec } from "../state/codec.ts";

/** An open question, and the run that waits for its answer. */
export interface WaitingQuestion extends OpenInterrupt {
  readonly thread: string;
  readonly branch: string;
  readonly run: string;
  readonly graph: string;
  readonly raisedAt: number;
  /** Its place among all questions of the store. */
  readonly place: number;
}

/** Which questions `waiting` lists. */
export interface WaitingFilter extends Omit<QuestionFilter, "at"> {
  readonly world?: World;
  readonly codec?: Codec;
}

const names = optionNames<WaitingFilter>({
  thread: true,
  graph: true,
  key: true,
  before: true,
  limit: true,
  world: true,
  codec: true,
});

/**
 * The questions that wait for a person now, those that were asked last before the others. One whose time is over waits no
 * more: a resume of its thread closes it. The last of a page, given as `before`, leads to the next.
 */
export async function waiting(store: Store, filter: WaitingFilter = {}): Promise<readonly WaitingQuestion[]> {
  checkStore("waiting", store ?? null);
  checkOptions("waiting", filter, names);
  checkCodec("waiting", filter.codec);
  const { world = systemWorld(), codec: given = plainCodec, ...wanted } = filter;
  const codec = guardedCodec(given);
  const rows = await store.questions({ ...wanted, at: world.clock.now() });
  return rows.map((row) => waitingQuestion(codec, row));
}

function waitingQuestion(codec: Codec, row: QuestionRow): WaitingQuestion {
  const { thread, branch, run, graph, raisedAt, place } = row;
  return { ...openInterrupt({ codec }, row), thread, branch, run, graph, raisedAt, place };
}
