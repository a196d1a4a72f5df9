/** `resume`: go on with a thread after a crash, a failure, or with the answers of people. */
import { StatewrightError } from "../base/errors.ts";
import { checkId, freshId } from "../base/ids.ts";
import { isPlainObject } from "../base/json.ts";
import { issuesText, parseWith, type Schema } from "../base/schema.ts";
import type { InterruptRow } from "../checkpoint/journal.ts";
import type { Graph } from "../compile/define-graph.ts";
import type { Plan } from "../compile/plan.ts";
import type { GraphDefinition, GraphTypes } from "../define/graph.ts";
import { answerSchema } from "../define/interrupt.ts";
import { drive } from "../run/drive.ts";
import { driveDrawn, readBrought } from "../run/drive-drawn.ts";
import { isStartInDoubt } from "../run/once.ts";
import { openSession, release, worldOf } from "../run/open.ts";
import type { ResumeOptions, RunHandle } from "../run/options.ts";
import { launch } from "../run/run.ts";
import { openInterrupt } from "../run/run-facts.ts";
import { placeOf, type Saved, type Session } from "../run/session.ts";
import { approval, inDoubtAnswer, inDoubtKey, nodeInDoubtAnswer } from "../tool/approval.ts";

/**
 * Resume a thread: only what has no recorded result is executed. Answers are matched by interrupt id or key. A thread
 * that has finished is left as it is. Throws `missing_store` without a store, `invalid_id` for a thread that cannot be one.
 * `result` rejects with `unknown_thread`, `thread_busy`, `unknown_interrupt`, `ambiguous_answer`, `already_answered`,
 * `invalid_answer`, or the error that fails the run.
 */
export function resume<Types extends GraphTypes>(
  graph: Graph<Types>,
  options: ResumeOptions<Types>,
): RunHandle<Types["result"], Types["output"]> {
  const world = worldOf(options);
  const thread = checkId("thread", options.thread);
  const runId = freshId("run_", world.random);
  if (options.store === undefined) throw withoutStore(thread);
  return launch(options, thread, runId, async (events, stops) => {
    const session = await openSession({
      graph: graph as Graph,
      options,
      thread,
      runId,
      events,
      ...stops,
      mustExist: true,
    });
    if (session.saved !== undefined && session.saved.claim.head === undefined)
      throw await neverBegan(session, session.saved);
    const { drawing } = session.plan;
    if (drawing !== undefined) {
      const brought = await readBrought(session, drawing, options.answers ?? {});
      return driveDrawn(session, drawing, brought);
    }
    const answered = await answer(session, options.answers ?? {});
    if (session.control.tasks.length > 0) return drive(session, { answered });
    if (session.saved !== undefined) await release(options.store, thread, session.saved.claim, world);
    return drive(session);
  });
}

function withoutStore(thread: string): StatewrightError {
  return new StatewrightError("missing_store", {
    what: `the thread "${thread}" was to be resumed without a store`,
    next: "Give resume the store that holds the thread",
    place: { thread },
  });
}

/** The thread was claimed by a process that died before its input was saved: there is nothing to go on with. */
async function neverBegan(session: Session, saved: Saved): Promise<StatewrightError> {
  await release(saved.store, session.run.thread, saved.claim, session.world);
  return new StatewrightError("unknown_checkpoint", {
    what: `the thread "${session.run.thread}" holds no checkpoint: its process died before the input was saved`,
    next: "Run it again with its input",
    place: placeOf(session),
  });
}

/** Check every answer and put it on its question; a refused answer changes nothing and lets the thread go. */
async function answer(session: Session, answers: Readonly<Record<string, unknown>>): Promise<readonly InterruptRow[]> {
  const { saved } = session;
  if (saved === undefined) return [];
  try {
    if (!isPlainObject(answers)) throw unkeyed(session, saved);
    const given = Object.entries(answers);
    const before = given.length === 0 ? [] : await saved.store.interrupts(session.run.thread, session.run.branch);
    const rows = given.map(([name, value]) => answeredRow(session, saved, before, name, value));
    for (const row of rows) saved.interrupts.set(row.id, row);
    return rows;
  } catch (error) {
    await release(saved.store, session.run.thread, saved.claim, session.world);
    throw error;
  }
}

function unkeyed(session: Session, saved: Saved): StatewrightError {
  const open = [...saved.interrupts.values()].filter((row) => row.answer === undefined);
  return new StatewrightError("ambiguous_answer", {
    what: `an answer without a key was given, and ${open.length} questions are open`,
    next: `Answer by key or id: answers: { ${open[0]?.key ?? "key"}: … }`,
    place: placeOf(session),
    details: open.map((row) => openInterrupt(saved, row)),
  });
}

function answeredRow(
  session: Session,
  saved: Saved,
  asked: readonly InterruptRow[],
  name: string,
  value: unknown,
): InterruptRow {
  const row = findQuestion(session, saved, asked, name);
  const schema = schemaOfAnswer(session, row);
  const parsed = schema === undefined ? { ok: true as const, value } : parseWith(schema, value);
  if (!parsed.ok) {
    throw new StatewrightError("invalid_answer", {
      what: `the answer to "${name}" does not fit: ${issuesText(parsed.issues)}`,
      next: "Answer as the interrupt's schema says; the question stays open",
      place: placeOf(session, { node: row.node }),
      details: { issues: parsed.issues, schema: row.schema },
    });
  }
  return {
    ...row,
    answer: saved.codec.encode(parsed.value, `the answer to "${name}"`),
    answeredAt: session.world.clock.now(),
  };
}

/** A question about a tool call or a start has a schema of its own, whatever the graph declares under the same key. */
function schemaOfAnswer({ plan }: Session, row: InterruptRow): Schema | undefined {
  const asked = innermost(plan, row);
  if (asked === undefined) return undefined;
  const { graph, node, key } = asked;
  if (graph.nodes.get(node)?.tools !== undefined) return key === inDoubtKey ? inDoubtAnswer : approval;
  if (isStartInDoubt(row)) return nodeInDoubtAnswer;
  const declared = Object.hasOwn(graph.interrupts, key) ? graph.interrupts[key] : undefined;
  return declared === undefined ? undefined : answerSchema(declared);
}

/** The graph that asked, through the nodes of subgraphs; undefined when they are not there any more. */
function innermost(
  { graph: outermost }: Plan,
  { node, key }: InterruptRow,
): { readonly graph: GraphDefinition; readonly node: string; readonly key: string } | undefined {
  const path = node.split(".");
  let graph: GraphDefinition | undefined = outermost;
  for (const outer of path.slice(0, -1)) graph = graph?.nodes.get(outer)?.subgraph?.graph;
  const asked = path[path.length - 1] ?? "";
  return graph === undefined ? undefined : { graph, node: asked, key: key.slice(node.length - asked.length) };
}

/** `asked` are all questions of the branch: one that has its answer is told from one that never was. */
function findQuestion(session: Session, saved: Saved, asked: readonly InterruptRow[], name: string): InterruptRow {
  const open = [...saved.interrupts.values()].filter((row) => row.answer === undefined);
  const byId = open.find((row) => row.id === name);
  if (byId !== undefined) return byId;
  const byKey = open.filter((row) => row.key === name);
  const list = open.map((row) => openInterrupt(saved, row));
  const [only] = byKey;
  if (only !== undefined && byKey.length === 1) return only;
  if (byKey.length > 1) {
    throw new StatewrightError("ambiguous_answer", {
      what: `${byKey.length} open questions have the key "${name}"`,
      next: `Answer by id: ${byKey.map((row) => `"${row.id}"`).join(", ")}`,
      place: placeOf(session),
      details: list,
    });
  }
  const before = asked.findLast((row) => row.answer !== undefined && (row.id === name || row.key === name));
  if (before?.answer !== undefined) {
    throw new StatewrightError("already_answered", {
      what: `the question "${name}" has its answer already`,
      next: "The first answer counts; it is in the details",
      place: placeOf(session),
      details: { answer: saved.codec.decode(before.answer), answeredAt: before.answeredAt },
    });
  }
  throw new StatewrightError("unknown_interrupt", {
    what: `the thread "${session.run.thread}" has no open question "${name}"`,
    next:
      open.length === 0
        ? session.control.tasks.length === 0
          ? "The run has finished and accepts none; give the thread a new input with run"
          : "No question is open"
        : `Open questions are ${open.map((row) => `"${row.key}" (${row.id})`).join(", ")}`,
    place: placeOf(session),
    details: list,
  });
}
