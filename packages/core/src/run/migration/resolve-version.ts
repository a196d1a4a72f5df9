/**
 * Version resolution for a thread that another graph version has written (rule E50). Applies a migration from that
 * version; without one, pending work must be compatible with the current graph; otherwise an older graph continues
 * the run; otherwise the run is parked, without data loss.
 */
import { type ErrorRecord, StatewrightError, toErrorRecord } from "../../base/errors.ts";
import type { World } from "../../base/world.ts";
import type { CheckpointRow, Control, RunRow } from "../../checkpoint/checkpoint.ts";
import { encodeDelta } from "../../checkpoint/codec/saved-state.ts";
import type { GraphVersion } from "../../checkpoint/export/thread-export.ts";
import { type EffectRow, isOpen } from "../../checkpoint/journal.ts";
import { listNotices } from "../../checkpoint/notification.ts";
import type { Claim, Commit, Store } from "../../checkpoint/store.ts";
import type { TimerChange } from "../../checkpoint/timer.ts";
import type { Graph } from "../../compile/graph.ts";
import { describeMigration, type Migration } from "../../compile/migration.ts";
import { getPlan } from "../../compile/plan.ts";
import { END } from "../../define/edge.ts";
import type { GraphDefinition } from "../../define/graph.ts";
import { type Codec, encodeWrapper } from "../../state/codec.ts";
import type { Delta } from "../../state/delta.ts";
import { describeCheckpoint, type EventStream } from "../events/events.ts";
import type { CommonOptions } from "../session/options/options.ts";
import { awaitDurable } from "../session/parts/persistence.ts";
import { armTimers, disarmTimers } from "../session/timers/interrupt-timers.ts";
import { listTimerChanges } from "../session/timers/timer-rows.ts";
import type { Incompatibility } from "./compatibility.ts";
import { createReplacementRows, migrate } from "./migrate.ts";
import type { Programs } from "./program.ts";
import { isSameWriter, loadThreadSnapshot, type MigratedSnapshot, type ThreadSnapshot } from "./thread-snapshot.ts";

/** Branch of a thread whose newest checkpoint another graph version has written. */
export interface InheritedBranch {
  readonly store: Store;
  readonly codec: Codec;
  readonly thread: string;
  readonly branch: string;
  readonly head: CheckpointRow;
  readonly writtenBy: GraphVersion;
  readonly programs: Programs;
}

/** Graph versions known to a process: the current graph, older graphs, and migrations between them. */
export interface KnownVersions extends Pick<CommonOptions, "older" | "migrations"> {
  readonly graph: Graph;
}

/** Decision on how a thread continues. */
export type VersionDecision =
  | { readonly kind: "continues" }
  | { readonly kind: "migrates"; readonly migrations: readonly Migration[]; readonly to: MigratedSnapshot }
  | { readonly kind: "older"; readonly graph: Graph }
  | {
      readonly kind: "parks";
      readonly incompatibilities: readonly Incompatibility[];
      readonly snapshot: ThreadSnapshot;
      /** Migrations after which the incompatibilities remain; empty when none was found. */
      readonly migrations: readonly Migration[];
    };

type ParkedDecision = Extract<VersionDecision, { readonly kind: "parks" }>;

/** Returns the version identity of a graph for claims. */
export function toGraphVersion(graph: GraphDefinition): GraphVersion {
  return { graph: graph.name, version: graph.version, shape: getPlan(graph).shape };
}

/** Returns true if the current version of the graph is the writer. */
export function isWriter(graph: GraphDefinition, writtenBy: GraphVersion): boolean {
  return isSameWriter(writtenBy, toGraphVersion(graph));
}

/**
 * Decides how a thread continues; changes nothing. Throws `migration_failed`, and `store_corrupt` for unreadable
 * rows.
 */
export async function decideVersion(
  inherited: InheritedBranch,
  { graph, older = [], migrations = [] }: KnownVersions,
): Promise<VersionDecision> {
  const { codec, writtenBy } = inherited;
  const plan = getPlan(graph);
  const program = inherited.programs[plan.program.name];
  const chain = findMigrationChain(writtenBy, graph, migrations);
  const [first] = chain;
  if (first !== undefined) {
    const target = {
      migrations: chain,
      plan,
      namespace: inherited.branch,
      writer: toGraphVersion(graph),
    };
    const from = await loadThreadSnapshot(inherited, getPlan(first.from), inherited.branch, {
      head: inherited.head,
      reader: program,
      target,
    });
    const to = migrate(from, chain, plan, { codec, program });
    const incompatibilities = program.findIncompatibilities(to, codec);
    if (incompatibilities.length === 0) return { kind: "migrates", migrations: chain, to };
    return { kind: "parks", incompatibilities, snapshot: from, migrations: chain };
  }
  const newest = { head: inherited.head, reader: program };
  const snapshot = await loadThreadSnapshot(inherited, plan, inherited.branch, newest);
  const incompatibilities = program.findIncompatibilities(snapshot, codec);
  if (incompatibilities.length === 0) return { kind: "continues" };
  for (const each of older.filter((one) => isWriterVersion(one, writtenBy, graph))) {
    if (getPlan(each).shape === writtenBy.shape) return { kind: "older", graph: each };
    const before = await loadThreadSnapshot(inherited, getPlan(each), inherited.branch, newest);
    if (program.findIncompatibilities(before, codec).length === 0) return { kind: "older", graph: each };
  }
  return { kind: "parks", incompatibilities, snapshot, migrations: [] };
}

/** Finds the chain of migrations from the writer's version to the graph, as far as migrations exist. */
export function findMigrationChain(
  writtenBy: GraphVersion,
  graph: GraphDefinition,
  migrations: readonly Migration[],
): readonly Migration[] {
  const chain: Migration[] = [];
  for (let at = writtenBy; !isSameWriter(at, toGraphVersion(graph)); ) {
    const next = migrations.find((each) => !chain.includes(each) && isWriterVersion(each.from, at, each.to));
    if (next === undefined) break;
    chain.push(next);
    at = toGraphVersion(next.to);
  }
  return chain;
}

/** Returns true if the graph is the writer: same version, and same shape when the next graph has the same version. */
function isWriterVersion(
  graph: Migration["from"],
  writer: GraphVersion,
  next: Pick<Migration["to"], "version">,
): boolean {
  if (graph.name !== writer.graph || graph.version !== writer.version) return false;
  return next.version !== writer.version || getPlan(graph).shape === writer.shape;
}

/** Arguments of `resolveVersion`, from opening a session. */
export interface ResolveVersionOptions extends KnownVersions {
  readonly store: Store;
  readonly codec: Codec;
  readonly world: World;
  readonly thread: string;
  readonly claim: Claim;
  readonly events: EventStream;
  /** Handling of a run that cannot continue. */
  readonly onIncompatible: "parks" | "refused";
  readonly programs: Programs;
}

/** Claim after the resolution, or the older graph that continues the thread. */
export type VersionResolution = { readonly claim: Claim; readonly migrated: boolean } | { readonly older: Graph };

/** Decides and applies the decision. Throws `needs_migration` when the run cannot continue. */
export async function resolveVersion(options: ResolveVersionOptions): Promise<VersionResolution> {
  const { claim, store, codec, thread, graph, programs } = options;
  const { head, branch, writtenBy } = claim;
  if (head === undefined) return { claim, migrated: false };
  const decision = await decideVersion({ store, codec, thread, branch, head, writtenBy, programs }, options);
  switch (decision.kind) {
    case "continues":
      return { claim, migrated: false };
    case "older":
      return { older: decision.graph };
    case "migrates":
      return { claim: await writeMigration(options, decision.to), migrated: true };
    case "parks": {
      const error = createNeedsMigrationError(thread, branch, writtenBy, {
        graph,
        decision,
      });
      // Code that is older than the writer leaves the run to newer code.
      if (options.onIncompatible === "parks" && writtenBy.version <= graph.version)
        await parkRun(options, decision.snapshot, error);
      throw error;
    }
  }
}

/** Error of a run that is incompatible with a graph. */
function createNeedsMigrationError(
  thread: string,
  branch: string,
  { version }: GraphVersion,
  { graph, decision }: { readonly graph: Graph; readonly decision: ParkedDecision },
): StatewrightError {
  const { incompatibilities, migrations } = decision;
  const [first] = incompatibilities;
  const { node, channel, path } = incompatibilities.length === 1 && first !== undefined ? first : {};
  return new StatewrightError("needs_migration", {
    what: `the thread "${thread}" was written by version ${version} of the graph "${graph.name}" and is incompatible with version ${graph.version}${migrations.length === 0 ? "" : " after its migration"}: ${formatIncompatibilities(incompatibilities)}`,
    next: `${adviseMigration(decision)}. No data is lost, and answers are refused until then`,
    place: {
      graph: graph.name,
      thread,
      branch,
      ...(node === undefined ? {} : { node }),
      ...(channel === undefined ? {} : { channel }),
      ...(path ? { path } : {}),
    },
    details: incompatibilities,
  });
}

/** Returns the fix: add a missing migration, or correct a migration that leaves incompatibilities. */
function adviseMigration({ incompatibilities, migrations }: ParkedDecision): string {
  const hasKind = (kind: Incompatibility["kind"]): boolean => incompatibilities.some((each) => each.kind === kind);
  const tool = hasKind("tool") ? "the called tool to the graph, " : "";
  if (migrations.length === 0)
    return `Add ${tool}the migration from that version to migrations, or the older graph to older`;
  const payload = hasKind("interrupt") ? ", or let the schema of the interrupt accept the saved payload" : "";
  const correction = `${migrations.map(describeMigration).join(", ")}${payload}`;
  return tool === "" ? `Correct ${correction}` : `Add ${tool}or correct ${correction}`;
}

/** Joins the incompatibilities into a single clause. */
export function formatIncompatibilities(incompatibilities: readonly Incompatibility[]): string {
  return incompatibilities.map(({ what }) => what).join("; ");
}

/** Parks the run: writes only its row, and cancels its timers until the run continues. */
async function parkRun(
  { store, codec, world, thread, claim, events }: ResolveVersionOptions,
  { control, interrupts }: ThreadSnapshot,
  error: StatewrightError,
): Promise<void> {
  const { run, branch, epoch, nextSeq } = claim;
  if (run === undefined || run.status === "done" || run.status === "cancelled") return;
  const cause = toErrorRecord(error);
  if (run.status === "parked" && run.error?.message === cause.message) return;
  const body = { type: "run.paused", cause } as const;
  const at = world.clock.now();
  const parked = toParkedRow(run, cause);
  const commit = {
    thread,
    branch,
    epoch,
    seq: nextSeq,
    run: parked,
    outbox: listNotices({ run: parked, namespace: branch }, { claim, run: parked, clock: world.clock }),
    timers: [...(listTimerChanges(control, undefined) ?? []), ...disarmTimers(interrupts)],
    events: [{ seq: nextSeq, branch, at, text: encodeWrapper(codec, body, "the event run.paused") }],
  };
  await awaitDurable((onCommitted) => store.commit(commit, onCommitted));
  if (events.hasReaders()) events.emit({ ...body, seq: nextSeq, at, branch }, "durable");
}

function toParkedRow({ endedAt: _, ...run }: RunRow, error: ErrorRecord): RunRow {
  return { ...run, status: "parked", error };
}

/**
 * Writes a single checkpoint for each changed namespace, the branch last, so that an interrupted migration restarts
 * from the branch.
 */
async function writeMigration(options: ResolveVersionOptions, to: MigratedSnapshot): Promise<Claim> {
  const { store, codec, world, thread, claim, events, graph } = options;
  let { nextSeq: seq, nextCheckpoint: id } = claim;
  let head = claim.head;
  const at = world.clock.now();
  const namespaces = listNamespaceWrites(to);
  const ids = new Map(namespaces.map(({ snapshot }, nth) => [snapshot, id + nth]));
  for (const { snapshot: each, parent } of namespaces) {
    const caller = parent && (ids.get(parent) ?? parent.migratedHead?.id);
    const { row, deltas } = toCheckpoint(each, codec, { id, seq, at, caller });
    const isOutermost = each === to;
    const commit = {
      thread,
      branch: each.namespace,
      epoch: claim.epoch,
      seq,
      checkpoint: { row, deltas: deltas.rows },
      effects: listJournalRows(each),
      ...(isOutermost ? toInterruptWrites(each, codec, at, claim.run) : {}),
    };
    await awaitDurable((onCommitted) => store.commit(commit, onCommitted));
    const next = [...new Set(each.control.tasks.map(({ node }) => node))];
    if (events.hasReaders())
      events.emit(
        {
          ...describeCheckpoint(row),
          nodes: [],
          next: next.length === 0 ? [END] : next,
          changes: deltas.changes,
          seq,
          at,
          branch: claim.branch,
          ...(isOutermost
            ? {}
            : { within: each.path.join("."), withinId: each.namespace.slice(each.namespace.indexOf("/") + 1) }),
        },
        "durable",
      );
    if (isOutermost) head = row;
    id += 1;
    seq += 1;
  }
  world.log("info", `a thread was migrated to version ${graph.version}`, { thread, from: claim.writtenBy.version });
  return { ...claim, nextSeq: seq, nextCheckpoint: id, head, loaded: undefined };
}

/** Namespace to write, and its parent namespace. */
interface NamespaceWrite {
  readonly snapshot: MigratedSnapshot;
  readonly parent: MigratedSnapshot | undefined;
}

/**
 * Lists outer namespaces before inner namespaces, in the order in which the store creates them; the existing branch
 * comes last.
 */
function listNamespaceWrites(to: MigratedSnapshot): readonly NamespaceWrite[] {
  const listInner = (parent: MigratedSnapshot): readonly NamespaceWrite[] =>
    parent.inner.flatMap(({ snapshot }) => [
      ...(snapshot.hasChanges && snapshot.migratedHead === undefined ? [{ snapshot, parent }] : []),
      ...listInner(snapshot),
    ]);
  return [...listInner(to), { snapshot: to, parent: undefined }];
}

interface CheckpointDeltas {
  readonly rows: readonly NonNullable<Commit["checkpoint"]>["deltas"][number][];
  readonly changes: Readonly<Record<string, Delta>>;
}

/** Position of a migration checkpoint; `caller` is the parent namespace's checkpoint, so that a fork copies both. */
interface CheckpointPosition {
  readonly id: number;
  readonly seq: number;
  readonly at: number;
  readonly caller: number | undefined;
}

function toCheckpoint(
  { origin, namespace, plan, control, state, newValues }: MigratedSnapshot,
  codec: Codec,
  { id, seq, at, caller }: CheckpointPosition,
): { readonly row: CheckpointRow; readonly deltas: CheckpointDeltas } {
  const { head } = origin;
  const { channels } = plan.graph.state;
  const saved = [...newValues].filter((name) => Object.hasOwn(channels, name) && channels[name]?.kind !== "untracked");
  const changes = Object.fromEntries(saved.map((name) => [name, { kind: "replace", value: state[name] } as const]));
  const rows = Object.entries(changes).map(([channel, delta]) => ({
    channel,
    kind: delta.kind,
    base: true,
    text: encodeDelta(codec, channel, delta),
  }));
  const row: CheckpointRow = {
    ...head,
    id,
    branch: namespace,
    parent: head.id,
    source: "migration",
    nodes: [],
    control: encodeWrapper(codec, withCallerCheckpoint(control, caller), "the control state"),
    at,
    durationMs: 0,
    seq,
    bytes: rows.reduce((sum, { text }) => sum + text.length, 0),
  };
  return { row, deltas: { rows, changes } };
}

function withCallerCheckpoint(control: Control, checkpoint: number | undefined): Control {
  const { caller } = control;
  return caller === undefined || checkpoint === undefined ? control : { ...control, caller: { ...caller, checkpoint } };
}

/** Lists renamed journal rows; all rows when the namespace was renamed. */
function listJournalRows({ origin, namespace, effects }: MigratedSnapshot): readonly EffectRow[] {
  if (namespace !== origin.head.branch) return effects;
  return effects.filter((row, index) => row !== origin.effects[index]);
}

function toInterruptWrites(
  { origin, interrupts }: MigratedSnapshot,
  codec: Codec,
  now: number,
  run: RunRow | undefined,
): Pick<Commit, "interrupts" | "timers"> {
  const pairs = interrupts.flatMap((after, index) => {
    const before = origin.interrupts[index];
    return before === undefined || before === after ? [] : [{ before, after }];
  });
  if (pairs.length === 0) return {};
  const isWaiting = run?.status === "waiting";
  const timers: readonly TimerChange[] = [
    ...disarmTimers(pairs.flatMap(({ before, after }) => (before.id === after.id ? [] : [before]))),
    ...(isWaiting ? armTimers(pairs.flatMap(({ after }) => (isOpen(after) ? [after] : []))) : []),
  ];
  return { interrupts: pairs.flatMap(({ before, after }) => createReplacementRows(before, after, codec, now)), timers };
}

/** Describes a migration chain for lists. */
export function formatMigrations(migrations: readonly Migration[]): string {
  return migrations.map(describeMigration).join(", then ");
}
