/**
 * What a superstep takes in from the inbox: its messages are folded after all that its tasks wrote, in the checkpoint that
 * takes them out of the inbox, so that each comes in exactly once. They never come between a call and its answer, and
 * never into the last checkpoint of a run: what nobody would read waits for the next one.
 */
import { isStatewrightError, toErrorRecord } from "../../base/errors.ts";
import type { LetterKind } from "../../checkpoint/inbox-message.ts";
import { START } from "../../define/edge.ts";
import type { Message } from "../../model/message.ts";
import { withNewIds } from "../conversation/input-messages.ts";
import { openCalls } from "../conversation/pending-calls.ts";
import { hearsMessages, type Letter } from "../session/inbox.ts";
import { Stopped } from "../session/preemption.ts";
import { readUpdate, type State, type Write } from "../session/returns.ts";
import { emit, type Session } from "../session/session.ts";
import { admitWrites } from "../session/validate-writes.ts";
import type { StepResult } from "./superstep.ts";

/** A superstep with the letters that it takes in. */
export interface Taking {
  readonly result: StepResult;
  readonly letters: readonly Letter[];
}

/** The letters that a superstep takes in besides what it has come to; `again` folds it with more writes. */
export async function takeLetters(
  session: Session,
  result: StepResult,
  again: (writes: readonly Write[]) => StepResult,
): Promise<Taking> {
  const none = { result, letters: [] };
  if (!mayTake(session, result.state)) return none;
  const waiting = await lookInto(session);
  if (waiting.length === 0) return none;
  const steering = chosen(session, waiting, "steer");
  const ends = result.tasks.length === 0;
  const choices = [steering, ...(ends ? [chosen(session, waiting, "followUp")] : [])];
  for (const choice of choices) {
    if (choice.length === 0) continue;
    const letters = withNewIds(result.state["messages"] as readonly Message[], choice);
    const taking = withLetters(session, letters, again);
    if (taking !== undefined && taking.tasks.length > 0) return { result: taking, letters };
  }
  return none;
}

/** Those letters that steer. */
export function steeringIn(letters: readonly Letter[]): readonly Letter[] {
  return letters.filter(({ kind }) => kind === "steer");
}

/** What steered a thread that no run has taken in: it stands before the input of the next run. */
export async function lettersBefore(session: Session): Promise<readonly Letter[]> {
  if (!mayTake(session, session.state)) return [];
  return withNewIds(session.state["messages"] as readonly Message[], steeringIn(await lookInto(session)));
}

/** What these letters write. */
export function writesOf({ plan, codec }: Session, letters: readonly Letter[]): readonly Write[] {
  if (letters.length === 0) return [];
  const writes = readUpdate(plan, START, { messages: letters.flatMap(({ messages }) => messages) });
  admitWrites(plan, codec, writes, "what was sent to the run for");
  return writes;
}

/** Whether a message waits that a run takes in at this state, so that it does not end here. */
export async function isSpokenTo(session: Session, state: State): Promise<boolean> {
  return mayTake(session, state) && (await lookInto(session)).length > 0;
}

/** A run that is being ended takes nothing in, and no message comes between calls and their answers. */
function mayTake({ inbox, within, abort, drain, plan }: Session, state: State): boolean {
  if (!inbox.mayHold() || within !== undefined || !hearsMessages(plan)) return false;
  if (abort.signal.aborted || drain.reason instanceof Stopped) return false;
  return openCalls(state["messages"] as readonly Message[]).calls.length === 0;
}

/** What waits. That nobody can say is told, and harms nothing: what waits goes on waiting. */
export async function lookInto(session: Session): Promise<readonly Letter[]> {
  try {
    return await session.inbox.waiting();
  } catch (thrown) {
    untaken(session, thrown);
    return [];
  }
}

function untaken(session: Session, thrown: unknown): void {
  const error = toErrorRecord(thrown);
  emit(session, { type: "inbox.failed", error });
  session.world.log("warn", "what was sent to a run could not be taken in", { thread: session.run.thread, error });
}

function chosen({ plan }: Session, waiting: readonly Letter[], kind: LetterKind): readonly Letter[] {
  const letters = waiting.filter((letter) => letter.kind === kind);
  return plan.graph.inbox === "one" ? letters.slice(0, 1) : letters;
}

/** The superstep with these letters; nothing when the graph can make nothing of them. */
function withLetters(
  session: Session,
  letters: readonly Letter[],
  again: (writes: readonly Write[]) => StepResult,
): StepResult | undefined {
  try {
    return again(writesOf(session, letters));
  } catch (thrown) {
    if (!isStatewrightError(thrown)) throw thrown;
    untaken(session, thrown);
    return undefined;
  }
}
