/**
 * Previous namespaces of a nested graph. The namespace of a per-thread subgraph contains its node name, and
 * migrations rename nodes.
 */

import type { Migration } from "../../compile/migration.ts";
import type { Position } from "../session/parts/position.ts";
import type { RunEnvironment } from "../session/parts/run-environment.ts";

/** One level of nesting: the node or tool that runs the graph, and its segment of the namespace. */
interface NestingLevel {
  readonly holder: string;
  readonly segment: string;
}

/**
 * Lists the session's namespace below its branch, current name first, then each name before a migration. Each segment
 * has a leading slash.
 */
export function listNamespaceHistory(
  { versions }: RunEnvironment,
  { namespace, run, nesting }: Position,
): readonly string[] {
  const current = namespace.slice(run.branch.length);
  if (nesting === undefined || versions.migrations.length === 0) return [current];
  const segments = current.split("/").slice(1);
  const found = new Map([
    [current, nesting.path.map((holder, index): NestingLevel => ({ holder, segment: segments[index] ?? "" }))],
  ]);
  // The loop also visits namespaces found on the way: several migrations may rename the same node.
  for (const levels of found.values())
    for (const migration of versions.migrations)
      for (const previous of listPreviousLevels(levels, migration))
        found.set(previous.map(({ segment }) => `/${segment}`).join(""), [...previous]);
  return [...found.keys()];
}

function listPreviousLevels(
  levels: readonly NestingLevel[],
  migration: Migration | undefined,
): readonly (readonly NestingLevel[])[] {
  const [level, ...innerLevels] = levels;
  if (level === undefined) return [[]];
  const { holder, segment } = level;
  const renamed = Object.entries(migration?.nodes ?? {}).flatMap(([old, current]) => (current === holder ? [old] : []));
  return [holder, ...renamed].flatMap((old) =>
    listPreviousLevels(innerLevels, migration?.inner[old]).map((rest) => [
      { holder: old, segment: segment === holder ? old : segment },
      ...rest,
    ]),
  );
}
