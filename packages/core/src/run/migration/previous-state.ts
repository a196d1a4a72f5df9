/**
 * The state at a checkpoint before a run, as the graph has it now: another version may have written it, and the run may have
 * been migrated since, which that checkpoint was not.
 */
import { StatewrightError } from "../../base/errors.ts";
import type { CheckpointRow } from "../../checkpoint/checkpoint.ts";
import { restoreState } from "../../checkpoint/codec/saved-state.ts";
import type { WrittenBy } from "../../checkpoint/export/thread-export.ts";
import type { Migration } from "../../compile/migration.ts";
import { planOf } from "../../compile/plan.ts";
import type { State } from "../session/returns.ts";
import { placeOf, type Saved, type Session } from "../session/session.ts";
import { emptyControl } from "../task/open-session.ts";
import { misfitsOf } from "./compatibility.ts";
import { migrate } from "./migrate.ts";
import { chainFrom, sayAll, writerOf, wrote } from "./resolve-version.ts";
import { type Stand, sameWriter } from "./thread-snapshot.ts";

/**
 * What a line, that of the session or of a graph inside, had at a checkpoint. `since` are the migrations that were written
 * between it and now: who does not know them would give values of the old version for those of the new one. Throws
 * `needs_migration`, `migration_failed`; then nothing was changed.
 */
export async function earlierState(
  session: Session,
  { store, codec }: Saved,
  row: CheckpointRow,
  since: readonly CheckpointRow[],
): Promise<State> {
  const { versions, plan, within } = session;
  const { graph, migrations } = versions;
  const { thread } = session.run;
  const rows = await store.state(thread, row.id);
  const writtenBy = await store.writtenBy(thread, row.id);
  const { channels } = plan.graph.state;
  if (writtenBy === undefined || wrote(graph, writtenBy)) return Object.freeze(restoreState(channels, codec, rows));
  const chain = chainFrom(writtenBy, graph, migrations);
  const writers = [writtenBy, ...chain.map(({ to }) => writerOf(to))];
  for (const { id } of writers.some((each) => wrote(graph, each)) ? [] : since) {
    const by = await store.writtenBy(thread, id);
    if (by !== undefined && !writers.some((each) => sameWriter(by, each)))
      throw needsMigration(session, writtenBy, `it was migrated to version ${by.version} since`);
  }
  const leading = within === undefined ? chain : innerChain(chain, within.path);
  const from = leading[0] === undefined ? plan : planOf(leading[0].from);
  const stand: Stand = {
    plan: from,
    line: session.line,
    path: within?.path ?? [],
    head: row,
    control: emptyControl,
    state: Object.freeze(restoreState(from.graph.state.channels, codec, rows)),
    channels: new Set(rows.map(({ channel }) => channel)),
    effects: [],
    questions: [],
    calls: [],
    written: undefined,
  };
  const moved = migrate(stand, leading, plan, codec);
  const misfits = misfitsOf(moved, codec);
  if (misfits.length > 0) throw needsMigration(session, writtenBy, sayAll(misfits), misfits);
  return moved.state;
}

/** The migrations of a graph inside, which stands now in the nodes of the path. */
function innerChain(chain: readonly Migration[], path: readonly string[]): readonly Migration[] {
  return path.reduce((outer, node) => {
    let name = node;
    const inner = outer.toReversed().flatMap((migration) => {
      name = Object.entries(migration.nodes).find(([, after]) => after === name)?.[0] ?? name;
      return migration.inner[name] ?? [];
    });
    return inner.toReversed();
  }, chain);
}

function needsMigration(session: Session, { version }: WrittenBy, why: string, details?: unknown): StatewrightError {
  const { graph } = session.versions;
  return new StatewrightError("needs_migration", {
    what: `the run was to be taken back to a state that version ${version} of the graph "${graph.name}" has written, and version ${graph.version} cannot read: ${why}`,
    next: 'Give the migration from there with migrations, or end the run with onBusy: "interrupt": nothing was changed',
    place: placeOf(session),
    details,
  });
}
