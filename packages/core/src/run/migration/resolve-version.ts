/**
 * Taking over a thread that another version of its graph has written (rule E50). A migration from that version is applied;
 * else what is pending must fit the graph as it is now; else an older graph goes on with it; else its run is parked, with
 * nothing lost.
 */
import { type ErrorRecord, StatewrightError, toErrorRecord } from "../../base/errors.ts";
import type { World } from "../../base/world.ts";
import type { CheckpointRow, Control, RunRow } from "../../checkpoint/checkpoint.ts";
import { textOf } from "../../checkpoint/codec/saved-state.ts";
import type { WrittenBy } from "../../checkpoint/export/thread-export.ts";
import { type EffectRow, isOpen } from "../../checkpoint/journal.ts";
import type { Claim, Commit, Store } from "../../checkpoint/store.ts";
import type { TimerChange } from "../../checkpoint/timer.ts";
import type { Graph } from "../../compile/define-graph.ts";
import { type Migration, nameOf } from "../../compile/migration.ts";
import { planOf } from "../../compile/plan.ts";
import { END } from "../../define/edge.ts";
import type { GraphDefinition } from "../../define/graph.ts";
import { type Codec, encodeAround } from "../../state/codec.ts";
import type { Delta } from "../../state/delta.ts";
import type { EventStream } from "../events/events.ts";
import { armed, disarmed } from "../session/interrupt-timers.ts";
import type { CommonOptions } from "../session/options.ts";
import { timerChanges } from "../session/timer-rows.ts";
import { type Misfit, misfitsOf } from "./compatibility.ts";
import { type Migrated, migrate, questionRows } from "./migrate.ts";
import { type Stand, sameWriter, standOf } from "./thread-snapshot.ts";

/** A branch of a thread whose newest checkpoint another version of the graph has written. */
export interface Inherited {
  readonly store: Store;
  readonly codec: Codec;
  readonly thread: string;
  readonly branch: string;
  readonly head: CheckpointRow;
  readonly writtenBy: WrittenBy;
}

/** What a process knows of a graph: as it is now, as it was, and how to get from there to here. */
export interface Versions extends Pick<CommonOptions, "older" | "migrations"> {
  readonly graph: Graph;
}

/** How a thread goes on. */
export type Decision =
  | { readonly kind: "goes on" }
  | { readonly kind: "migrates"; readonly migrations: readonly Migration[]; readonly to: Migrated }
  | { readonly kind: "older"; readonly graph: Graph }
  | { readonly kind: "parks"; readonly misfits: readonly Misfit[]; readonly stand: Stand };

/** What a claim of a thread with this graph says of itself. */
export function writerOf(graph: GraphDefinition): WrittenBy {
  return { graph: graph.name, version: graph.version, shape: planOf(graph).shape };
}

/** Whether a graph wrote something as it is now. */
export function wrote(graph: GraphDefinition, writtenBy: WrittenBy): boolean {
  return sameWriter(writtenBy, writerOf(graph));
}

/** Decide how a thread goes on; nothing is changed. Throws `migration_failed`, and `store_corrupt` for what cannot be read. */
export async function decide(
  inherited: Inherited,
  { graph, older = [], migrations = [] }: Versions,
): Promise<Decision> {
  const { codec, writtenBy } = inherited;
  const chain = chainFrom(writtenBy, graph, migrations);
  const [first] = chain;
  if (first !== undefined) {
    const leading = { migrations: chain, plan: planOf(graph), line: inherited.branch, writer: writerOf(graph) };
    const from = await standOf(inherited, planOf(first.from), inherited.branch, inherited.head, leading);
    const to = migrate(from, chain, planOf(graph), codec);
    const misfits = misfitsOf(to, codec);
    if (misfits.length === 0) return { kind: "migrates", migrations: chain, to };
    return { kind: "parks", misfits, stand: from };
  }
  const stand = await standOf(inherited, planOf(graph), inherited.branch, inherited.head);
  const misfits = misfitsOf(stand, codec);
  if (misfits.length === 0) return { kind: "goes on" };
  for (const each of older.filter((one) => isFrom(one, writtenBy, graph))) {
    if (planOf(each).shape === writtenBy.shape) return { kind: "older", graph: each };
    const before = await standOf(inherited, planOf(each), inherited.branch, inherited.head);
    if (misfitsOf(before, codec).length === 0) return { kind: "older", graph: each };
  }
  return { kind: "parks", misfits, stand };
}

/** The migrations from what wrote a thread to the graph, or as far as there are any. */
export function chainFrom(
  writtenBy: WrittenBy,
  graph: GraphDefinition,
  migrations: readonly Migration[],
): readonly Migration[] {
  const chain: Migration[] = [];
  for (let at = writtenBy; !sameWriter(at, writerOf(graph)); ) {
    const next = migrations.find((each) => !chain.includes(each) && isFrom(each.from, at, each.to));
    if (next === undefined) break;
    chain.push(next);
    at = writerOf(next.to);
  }
  return chain;
}

/** Whether a graph is the one that wrote it: by its version, and by its shape where the next one has the same version. */
function isFrom(graph: Migration["from"], by: WrittenBy, next: Pick<Migration["to"], "version">): boolean {
  if (graph.name !== by.graph || graph.version !== by.version) return false;
  return next.version !== by.version || planOf(graph).shape === by.shape;
}

/** What opening has in hand when it meets such a thread. */
export interface TakingOver extends Versions {
  readonly store: Store;
  readonly codec: Codec;
  readonly world: World;
  readonly thread: string;
  readonly claim: Claim;
  readonly events: EventStream;
  /** What becomes of a run that cannot go on. */
  readonly unfit: "parks" | "refused";
}

/** How the claim stands after a thread was taken over, or the older graph that is to open it. */
export type TakenOver = { readonly claim: Claim; readonly migrated: boolean } | { readonly older: Graph };

/** Decide, and do what was decided. Throws `needs_migration` when its run cannot go on. */
export async function takeOver(taking: TakingOver): Promise<TakenOver> {
  const { claim, store, codec, thread, graph } = taking;
  const { head, branch, writtenBy } = claim;
  if (head === undefined) return { claim, migrated: false };
  const decision = await decide({ store, codec, thread, branch, head, writtenBy }, taking);
  switch (decision.kind) {
    case "goes on":
      return { claim, migrated: false };
    case "older":
      return { older: decision.graph };
    case "migrates":
      return { claim: await writeMigration(taking, decision.to), migrated: true };
    case "parks": {
      const error = needsMigration(thread, branch, writtenBy, graph, decision.misfits);
      if (taking.unfit === "parks") await park(taking, decision.stand, error);
      throw error;
    }
  }
}

/** Why a run cannot go on under a graph. */
function needsMigration(
  thread: string,
  branch: string,
  { version }: WrittenBy,
  graph: Graph,
  misfits: readonly Misfit[],
): StatewrightError {
  const [first] = misfits;
  const { node, channel, path } = misfits.length === 1 && first !== undefined ? first : {};
  return new StatewrightError("needs_migration", {
    what: `the thread "${thread}" was written by version ${version} of the graph "${graph.name}" and does not fit version ${graph.version}: ${sayAll(misfits)}`,
    next: `Give ${misfits.some(({ kind }) => kind === "tool") ? "it the tool that was called, " : ""}the migration from there with migrations, or the older graph with older; nothing is lost, and answers are not taken before`,
    place: {
      graph: graph.name,
      thread,
      branch,
      ...(node === undefined ? {} : { node }),
      ...(channel === undefined ? {} : { channel }),
      ...(path ? { path } : {}),
    },
    details: misfits,
  });
}

/** The misfits as one sentence part. */
export function sayAll(misfits: readonly Misfit[]): string {
  return misfits.map(({ what }) => what).join("; ");
}

/** Put the run aside: only its row is written, and its timers go until it goes on. */
async function park(
  { store, codec, world, thread, claim, events }: TakingOver,
  { control, questions }: Stand,
  error: StatewrightError,
): Promise<void> {
  const { run, branch, epoch, nextSeq } = claim;
  if (run === undefined || run.status === "done" || run.status === "cancelled") return;
  const cause = toErrorRecord(error);
  if (run.status === "parked" && run.error?.message === cause.message) return;
  const body = { type: "run.paused", cause } as const;
  const at = world.clock.now();
  await committed(store, {
    thread,
    branch,
    epoch,
    seq: nextSeq,
    run: parkedRow(run, cause),
    timers: [...(timerChanges(control, undefined) ?? []), ...disarmed(questions)],
    events: [{ seq: nextSeq, branch, at, text: encodeAround(codec, body, "the event run.paused") }],
  });
  if (events.listening()) events.emit({ ...body, seq: nextSeq, at });
}

function parkedRow({ endedAt: _, ...run }: RunRow, error: ErrorRecord): RunRow {
  return { ...run, status: "parked", error };
}

/** One checkpoint on each line that is another now, the branch last: what was cut short is made again from there. */
async function writeMigration(taking: TakingOver, to: Migrated): Promise<Claim> {
  const { store, codec, world, thread, claim, events, graph } = taking;
  let { nextSeq: seq, nextCheckpoint: id } = claim;
  let head = claim.head;
  const at = world.clock.now();
  const lines = linesOf(to);
  const ids = new Map(lines.map(({ stand }, nth) => [stand, id + nth]));
  for (const { stand: each, around } of lines) {
    const caller = around && (ids.get(around) ?? around.written?.id);
    const { row, deltas } = checkpointOf(each, codec, { id, seq, at, caller });
    const isOutermost = each === to;
    await committed(store, {
      thread,
      branch: each.line,
      epoch: claim.epoch,
      seq,
      checkpoint: { row, deltas: deltas.rows },
      effects: rowsToWrite(each),
      ...(isOutermost ? questionsOf(each, codec, at, claim.run) : {}),
    });
    const next = [...new Set(each.control.tasks.map(({ node }) => node))];
    if (events.listening())
      events.emit({
        type: "step.committed",
        step: row.step,
        checkpoint: id,
        nodes: [],
        next: next.length === 0 ? [END] : next,
        changes: deltas.changes,
        bytes: row.bytes,
        durationMs: 0,
        seq,
        at,
        ...(isOutermost ? {} : { within: each.path.join("."), withinId: each.line.slice(each.line.indexOf("/") + 1) }),
      });
    if (isOutermost) head = row;
    id += 1;
    seq += 1;
  }
  world.log("info", `a thread was migrated to version ${graph.version}`, { thread, from: claim.writtenBy.version });
  return { ...claim, nextSeq: seq, nextCheckpoint: id, head };
}

/** A line that is to be written, and the one around it. */
interface LineToWrite {
  readonly stand: Migrated;
  readonly around: Migrated | undefined;
}

/** Outer lines before those inside them, which the store makes only then; the branch, which is there, comes last. */
function linesOf(to: Migrated): readonly LineToWrite[] {
  const inside = (around: Migrated): readonly LineToWrite[] =>
    around.inner.flatMap(({ stand }) => [
      ...(stand.isOther && stand.written === undefined ? [{ stand, around }] : []),
      ...inside(stand),
    ]);
  return [...inside(to), { stand: to, around: undefined }];
}

interface Written {
  readonly rows: readonly NonNullable<Commit["checkpoint"]>["deltas"][number][];
  readonly changes: Readonly<Record<string, Delta>>;
}

/** Where a checkpoint of a migration stands; `caller` is the one of the line around it, from which a fork takes both. */
interface Numbered {
  readonly id: number;
  readonly seq: number;
  readonly at: number;
  readonly caller: number | undefined;
}

function checkpointOf(
  { origin, line, plan, control, state, given }: Migrated,
  codec: Codec,
  { id, seq, at, caller }: Numbered,
): { readonly row: CheckpointRow; readonly deltas: Written } {
  const { head } = origin;
  const { channels } = plan.graph.state;
  const saved = [...given].filter((name) => Object.hasOwn(channels, name) && channels[name]?.kind !== "untracked");
  const changes = Object.fromEntries(saved.map((name) => [name, { kind: "replace", value: state[name] } as const]));
  const rows = Object.entries(changes).map(([channel, delta]) => ({
    channel,
    kind: delta.kind,
    base: true,
    text: textOf(codec, channel, delta),
  }));
  const row: CheckpointRow = {
    ...head,
    id,
    branch: line,
    parent: head.id,
    source: "migration",
    nodes: [],
    control: encodeAround(codec, calledFrom(control, caller), "the control state"),
    at,
    durationMs: 0,
    seq,
    bytes: rows.reduce((sum, { text }) => sum + text.length, 0),
  };
  return { row, deltas: { rows, changes } };
}

function calledFrom(control: Control, checkpoint: number | undefined): Control {
  const { caller } = control;
  return caller === undefined || checkpoint === undefined ? control : { ...control, caller: { ...caller, checkpoint } };
}

/** Journal rows under other names; a line under another name takes all of them along. */
function rowsToWrite({ origin, line, effects }: Migrated): readonly EffectRow[] {
  if (line !== origin.head.branch) return effects;
  return effects.filter((row, index) => row !== origin.effects[index]);
}

function questionsOf(
  { origin, questions }: Migrated,
  codec: Codec,
  now: number,
  run: RunRow | undefined,
): Pick<Commit, "interrupts" | "timers"> {
  const pairs = questions.flatMap((after, index) => {
    const before = origin.questions[index];
    return before === undefined || before === after ? [] : [{ before, after }];
  });
  if (pairs.length === 0) return {};
  const waits = run?.status === "waiting";
  const timers: readonly TimerChange[] = [
    ...disarmed(pairs.flatMap(({ before, after }) => (before.id === after.id ? [] : [before]))),
    ...(waits ? armed(pairs.flatMap(({ after }) => (isOpen(after) ? [after] : []))) : []),
  ];
  return { interrupts: pairs.flatMap(({ before, after }) => questionRows(before, after, codec, now)), timers };
}

function committed(store: Store, commit: Commit): Promise<void> {
  return new Promise((resolve, reject) => {
    store.commit(commit, (failure) => (failure === undefined ? resolve() : reject(failure)));
  });
}

/** What a list says of the way from one version to another. */
export function sayMigrations(migrations: readonly Migration[]): string {
  return migrations.map(nameOf).join(", then ");
}
