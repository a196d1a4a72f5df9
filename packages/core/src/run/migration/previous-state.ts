/**
 * State at a checkpoint from before a run, converted to the current graph version. Another version may have written
 * the checkpoint, and a migration of the run since then did not migrate that checkpoint.
 */

import { StatewrightError } from "../../base/errors.ts";
import type { CheckpointRow } from "../../checkpoint/checkpoint.ts";
import { restoreState } from "../../checkpoint/codec/saved-state.ts";
import { emptyControl } from "../../checkpoint/control.ts";
import type { GraphVersion } from "../../checkpoint/export/thread-export.ts";
import type { Migration } from "../../compile/migration.ts";
import { getPlan } from "../../compile/plan.ts";
import type { Persistence } from "../session/parts/persistence.ts";
import { getErrorPlace, type Position } from "../session/parts/position.ts";
import type { RunEnvironment } from "../session/parts/run-environment.ts";
import type { State } from "../session/returns.ts";
import { findGraphIncompatibilities } from "./compatibility.ts";
import { graphMigrator, migrate } from "./migrate.ts";
import { findMigrationChain, formatIncompatibilities, isWriter, toGraphVersion } from "./resolve-version.ts";
import { isSameWriter, type ThreadSnapshot } from "./thread-snapshot.ts";

/**
 * Loads the state of a session's namespace at a checkpoint. `laterMigrations` are the migration checkpoints between
 * that checkpoint and now; an unknown writer among them would mix values of the old version with values of the new
 * version. Throws `needs_migration` or `migration_failed` before any change.
 */
export async function loadPreviousState(
  env: RunEnvironment,
  position: Position,
  { store, codec }: Persistence,
  { row, laterMigrations }: { readonly row: CheckpointRow; readonly laterMigrations: readonly CheckpointRow[] },
): Promise<State> {
  const { versions } = env;
  const { plan, nesting } = position;
  const { graph, migrations } = versions;
  const { thread } = position.run;
  const rows = await store.state(thread, row.id);
  const writtenBy = await store.writtenBy(thread, row.id);
  const { channels } = plan.graph.state;
  if (writtenBy === undefined || isWriter(graph, writtenBy)) return Object.freeze(restoreState(channels, codec, rows));
  const chain = findMigrationChain(writtenBy, graph, migrations);
  const writers = [writtenBy, ...chain.map(({ to }) => toGraphVersion(to))];
  for (const { id } of writers.some((each) => isWriter(graph, each)) ? [] : laterMigrations) {
    const writer = await store.writtenBy(thread, id);
    if (writer !== undefined && !writers.some((each) => isSameWriter(writer, each)))
      throw createMigrationError(env, position, writtenBy, {
        reason: `a later checkpoint was migrated to version ${writer.version}`,
      });
  }
  const namespaceChain = nesting === undefined ? chain : selectInnerMigrations(chain, nesting.path);
  const previousPlan = namespaceChain[0] === undefined ? plan : getPlan(namespaceChain[0].from);
  const snapshot: ThreadSnapshot = {
    plan: previousPlan,
    namespace: position.namespace,
    path: nesting?.path ?? [],
    head: row,
    control: emptyControl,
    state: Object.freeze(restoreState(previousPlan.graph.state.channels, codec, rows)),
    channels: new Set(rows.map(({ channel }) => channel)),
    effects: [],
    interrupts: [],
    calls: [],
    migratedHead: undefined,
  };
  const migrated = migrate(snapshot, namespaceChain, plan, { codec, program: graphMigrator });
  const incompatibilities = findGraphIncompatibilities(migrated, codec);
  if (incompatibilities.length > 0)
    throw createMigrationError(env, position, writtenBy, {
      reason: formatIncompatibilities(incompatibilities),
      details: incompatibilities,
    });
  return migrated.state;
}

/** Selects the migrations of a nested graph by the current node names of its path. */
function selectInnerMigrations(chain: readonly Migration[], path: readonly string[]): readonly Migration[] {
  return path.reduce((outer, node) => {
    let name = node;
    const inner = outer.toReversed().flatMap((migration) => {
      name = Object.entries(migration.nodes).find(([, after]) => after === name)?.[0] ?? name;
      return migration.inner[name] ?? [];
    });
    return inner.toReversed();
  }, chain);
}

function createMigrationError(
  env: RunEnvironment,
  position: Position,
  { version }: GraphVersion,
  { reason, details }: { readonly reason: string; readonly details?: unknown | undefined },
): StatewrightError {
  const { graph } = env.versions;
  return new StatewrightError("needs_migration", {
    what: `the rollback restores a state written by version ${version} of graph "${graph.name}", which version ${graph.version} cannot read: ${reason}`,
    next: 'Add the migration from that version to migrations, or end the run with onBusy: "cancel"; nothing was changed',
    place: getErrorPlace(position),
    details,
  });
}
