/** Input of a queued run, migrated to the graph version that runs it. */
import { describeThrown, isStatewrightError, StatewrightError } from "../../base/errors.ts";
import type { RunRow } from "../../checkpoint/checkpoint.ts";
import { describeMigration, type Migration } from "../../compile/migration.ts";
import type { GraphDefinition } from "../../define/graph.ts";
import type { Codec } from "../../state/codec.ts";

/**
 * Returns the input after the migrations from its version to the graph's version; unchanged when there is no such
 * chain. Throws `migration_failed`.
 */
export function migrateQueuedInput(
  { input = "null", version }: Pick<RunRow, "input" | "version">,
  graph: GraphDefinition,
  migrations: readonly Migration[],
  codec: Codec,
): unknown {
  return findMigrationChain(version, graph, migrations).reduce(applyMigration, codec.decode(input));
}

function findMigrationChain(
  version: number,
  { name, version: last }: GraphDefinition,
  migrations: readonly Migration[],
): readonly Migration[] {
  const chain: Migration[] = [];
  for (let at = version; at !== last; ) {
    const next = migrations.find(
      (each) => !chain.includes(each) && each.from.name === name && each.from.version === at && each.to.version !== at,
    );
    if (next === undefined) return [];
    chain.push(next);
    at = next.to.version;
  }
  return chain;
}

function applyMigration(input: unknown, migration: Migration): unknown {
  if (migration.input === undefined) return input;
  try {
    return migration.input((input ?? {}) as never);
  } catch (cause) {
    if (isStatewrightError(cause)) throw cause;
    throw new StatewrightError("migration_failed", {
      what: `${describeMigration(migration)} failed for a queued input: ${describeThrown(cause)}`,
      next: "Fix the migration and queue the input again",
      place: { graph: migration.to.name },
      cause,
    });
  }
}
