/** The input of a run that stands in the queue, as the graph that begins it has it: another version may have been meant. */
import { describeThrown, isStatewrightError, StatewrightError } from "../../base/errors.ts";
import type { RunRow } from "../../checkpoint/checkpoint.ts";
import { type Migration, nameOf } from "../../compile/migration.ts";
import type { GraphDefinition } from "../../define/graph.ts";
import type { Codec } from "../../state/codec.ts";

/**
 * The input, brought to this version by the migrations that lead here from the one that it was given to; as it was given
 * where none do. Throws `migration_failed`.
 */
export function queuedInput(
  { input = "null", version }: Pick<RunRow, "input" | "version">,
  graph: GraphDefinition,
  migrations: readonly Migration[],
  codec: Codec,
): unknown {
  return chainOf(version, graph, migrations).reduce(migrated, codec.decode(input));
}

function chainOf(
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

function migrated(given: unknown, migration: Migration): unknown {
  if (migration.input === undefined) return given;
  try {
    return migration.input((given ?? {}) as never);
  } catch (cause) {
    if (isStatewrightError(cause)) throw cause;
    throw new StatewrightError("migration_failed", {
      what: `${nameOf(migration)} failed for a queued input: ${describeThrown(cause)}`,
      next: "Mend the migration and queue the input again",
      place: { graph: migration.to.name },
      cause,
    });
  }
}
