/** Matches the answers of a resume with the open interrupts of its thread. */
import { checkSyncResult } from "../../base/async-schema.ts";
import { addErrorPlace, describeThrown, isStatewrightError, StatewrightError } from "../../base/errors.ts";
import { ignoreRejections } from "../../base/ignore-rejections.ts";
import { isPlainObject } from "../../base/json.ts";
import { describeIssues } from "../../base/schema.ts";
import type { World } from "../../base/world.ts";
import { type InterruptRow, isOpen } from "../../checkpoint/journal.ts";
import { createAnsweredError } from "../conversation/answered-error.ts";
import { readAnswer } from "../conversation/interrupt-schema.ts";
import type { GivenAnswers } from "../migration/program.ts";
import type { Persistence } from "../session/parts/persistence.ts";
import type { Position } from "../session/parts/position.ts";
import { getErrorPlace } from "../session/parts/position.ts";
import type { Progress } from "../session/parts/progress.ts";
import { toOpenInterrupt } from "../session/run-row.ts";
import type { Session } from "../session/session.ts";
import { createExpiredError, expireOverdue } from "../session/timers/interrupt-timers.ts";
import { release } from "../task/open-session.ts";

/**
 * Checks all answers and records them on their interrupts; on an invalid answer nothing changes and the thread is
 * released.
 */
export async function applyAnswers(
  session: Pick<Session, "env" | "position" | "progress" | "journal">,
  { answers, by, key }: Pick<GivenAnswers, "answers" | "by" | "key">,
): Promise<readonly InterruptRow[]> {
  const { saved } = session.journal;
  if (saved === undefined) return [];
  try {
    const overdue = expireOverdue(session.env.world, saved);
    if (!isPlainObject(answers)) throw createMissingKeyError(session.position, saved);
    const entries = Object.entries(answers);
    const all =
      entries.length === 0
        ? []
        : (saved.claim.loaded?.interrupts ??
          (await saved.store.interrupts(session.position.run.thread, session.position.run.branch)));
    const repeated = key === undefined ? undefined : all.find(({ answerKey }) => answerKey === key);
    if (repeated !== undefined) throw createAnsweredError(saved.codec, repeated, getErrorPlace(session.position));
    const known = { all, awaited: await loadAwaited(session.position, saved, answers) };
    const rows = entries.map(([name, value]) =>
      toAnsweredRow(session.position, session.progress, saved, {
        world: session.env.world,
        known,
        name,
        value,
        by,
        key,
      }),
    );
    for (const row of rows) saved.interrupts.set(row.id, row);
    return [...overdue, ...rows];
  } catch (error) {
    await release(saved.store, session.position.run.thread, saved.claim, { world: session.env.world });
    ignoreRejections(answers);
    throw isStatewrightError(error)
      ? addErrorPlace(error, getErrorPlace(session.position))
      : createUnreadableAnswersError(session.position, error);
  }
}

/** Interrupts of a branch. */
interface BranchInterrupts {
  /** Includes answered interrupts, to distinguish `already_answered` from `unknown_interrupt`. */
  readonly all: readonly InterruptRow[];
  /** Ids of the awaited interrupts. Other interrupts of the superstep may be open and may be raised again. */
  readonly awaited: ReadonlySet<string>;
}

/** Loads the ids of the awaited interrupts, only when a key is ambiguous. */
async function loadAwaited(
  position: Position,
  { store, interrupts }: Persistence,
  answers: object,
): Promise<BranchInterrupts["awaited"]> {
  const { thread, branch } = position.run;
  const keys = [...interrupts.values()].flatMap((row) => (isOpen(row) ? [row.key] : []));
  const isUnclear = keys.some((key, nth) => keys.indexOf(key) !== nth && Object.hasOwn(answers, key));
  if (!isUnclear) return new Set();
  const listed = await store.openInterrupts({ thread });
  return new Set(listed.flatMap((row) => (row.branch === branch ? [row.id] : [])));
}

/** Creates the error for answers that throw when read. */
function createUnreadableAnswersError(position: Position, cause: unknown): StatewrightError {
  return new StatewrightError("invalid_answer", {
    what: `the answers cannot be read: ${describeThrown(cause)}`,
    next: "Pass plain data, without getters and proxies that throw; the interrupts stay open",
    place: getErrorPlace(position),
    cause,
  });
}

function createMissingKeyError(position: Position, saved: Persistence): StatewrightError {
  const open = [...saved.interrupts.values()].filter(isOpen);
  return new StatewrightError("ambiguous_answer", {
    what: `an answer has no key, and ${open.length === 1 ? "1 interrupt is" : `${open.length} interrupts are`} open`,
    next: `Use answers by key or id: answers: { ${open[0]?.key ?? "key"}: … }`,
    place: getErrorPlace(position),
    details: open.map((row) => toOpenInterrupt(saved, row)),
  });
}

/** Options of `toAnsweredRow`. */
interface ToAnsweredRowOptions {
  readonly world: World;
  readonly known: BranchInterrupts;
  readonly name: string;
  readonly value: unknown;
  readonly by: string | undefined;
  readonly key: string | undefined;
}

function toAnsweredRow(
  position: Position,
  progress: Progress,
  saved: Persistence,
  { world, known, name, value, by, key }: ToAnsweredRowOptions,
): InterruptRow {
  const row = findInterrupt(position, progress, known, { saved, name });
  const parsed = readAnswer(position.plan, row, value);
  if (!parsed.ok) {
    checkSyncResult(parsed, `interrupt "${name}"`, getErrorPlace(position, { node: row.node }));
    throw new StatewrightError("invalid_answer", {
      what: `the answer to interrupt "${name}" does not match its schema: ${describeIssues(parsed.issues)}`,
      next: "Fix the answer to match the interrupt's schema; the interrupt stays open",
      place: getErrorPlace(position, { node: row.node }),
      details: { issues: parsed.issues, schema: row.schema },
      cause: parsed.cause,
    });
  }
  return {
    ...row,
    answer: saved.codec.encode(parsed.value, `the answer to "${name}"`),
    answeredAt: world.clock.now(),
    ...(by === undefined ? {} : { answeredBy: by }),
    ...(key === undefined ? {} : { answerKey: key, answeredRun: position.run.id }),
  };
}

function findInterrupt(
  position: Position,
  progress: Progress,
  { all: asked, awaited }: BranchInterrupts,
  { saved, name }: { readonly saved: Persistence; readonly name: string },
): InterruptRow {
  const open = [...saved.interrupts.values()].filter(isOpen);
  const byId = open.find((row) => row.id === name);
  if (byId !== undefined) return byId;
  const withKey = open.filter((row) => row.key === name);
  const awaitedWithKey = withKey.length > 1 ? withKey.filter((row) => awaited.has(row.id)) : withKey;
  const byKey = awaitedWithKey.length === 0 ? withKey : awaitedWithKey;
  const list = open.map((row) => toOpenInterrupt(saved, row));
  const [only] = byKey;
  if (only !== undefined && byKey.length === 1) return only;
  if (byKey.length > 1) {
    throw new StatewrightError("ambiguous_answer", {
      what: `${byKey.length} open interrupts have the key "${name}"`,
      next: `Use an id as key: ${byKey.map((row) => `"${row.id}"`).join(", ")}`,
      place: getErrorPlace(position),
      details: list,
    });
  }
  const closed = asked.map((row) => saved.interrupts.get(row.id) ?? row).filter((row) => !isOpen(row));
  const before = closed.findLast((row) => row.id === name || row.key === name);
  if (before !== undefined && before.answer === undefined) throw createExpiredError(position, before);
  if (before?.answer !== undefined) throw createAnsweredError(saved.codec, before, getErrorPlace(position));
  throw new StatewrightError("unknown_interrupt", {
    what: `thread "${position.run.thread}" has no open interrupt "${name}"`,
    next:
      open.length === 0
        ? progress.control.tasks.length === 0
          ? "Pass the thread a new input with run: the run has finished and accepts no answers"
          : "Resume without answers first, and answer the interrupts raised then: no interrupt is open"
        : `Use an open interrupt: ${open.map((row) => `"${row.key}" (${row.id})`).join(", ")}`,
    place: getErrorPlace(position),
    details: list,
  });
}
