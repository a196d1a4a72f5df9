/** Input of a queued run, migrated to the graph version that runs it. */
import { describeThrown, isStatewrightError, StatewrightError } from "../../base/errors.ts";
import type { RunRow } from "../../checkpoint/checkpoint.ts";
import { describeMigration, type Migration } from "../../compile/migration.ts";
import type { GraphDefinition } from "../../define/graph.ts";
import { type Codec, isMalformedText } from "../../state/codec.ts";

/**
 * Returns the input after the migrations from its version to the graph's version; unchanged when there is no such
 * chain. Throws `migration_failed`, and `invalid_input` for an input that is no JSON.
 */
export function migrateQueuedInput(
  row: Pick<RunRow, "id" | "input" | "version">,
  graph: GraphDefinition,
  migrations: readonly Migration[],
  codec: Codec,
): unknown {
  return findMigrationChain(row.version, graph, migrations).reduce(applyMigration, decodeInput(row, graph, codec));
}

/** Decodes the input. A row of a foreign export may hold any text. */
function decodeInput(
  { id, input = "null" }: Pick<RunRow, "id" | "input">,
  { name }: GraphDefinition,
  codec: Codec,
): unknown {
  try {
    return codec.decode(input);
  } catch (cause) {
    if (!isMalformedText(cause)) throw cause;
    throw new StatewrightError("invalid_input", {
      what: `queued run "${id}": expected an input of graph "${name}", got text that is no JSON`,
      next: "Queue the input again",
      place: { graph: name },
      cause,
    });
  }
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
