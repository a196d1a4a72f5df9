/** The names that the line of an inner graph had before: one that is kept across calls is named by its node, which may have had another name. */
import type { Migration } from "../../compile/migration.ts";
import type { Session } from "../session/session.ts";

/** A graph inside another: the node or tool that holds it, and its part of the name of the line. */
interface Level {
  readonly holder: string;
  readonly segment: string;
}

/** The line below its branch, each part with a slash before it: as it is now, then as the migrations say that it was. */
export function linesSinceEver({ line, run, within, versions }: Session): readonly string[] {
  const own = line.slice(run.branch.length);
  if (within === undefined || versions.migrations.length === 0) return [own];
  const segments = own.split("/").slice(1);
  const found = new Map([[own, within.path.map((holder, nth): Level => ({ holder, segment: segments[nth] ?? "" }))]]);
  // What is found on the way is gone through too: a name may have changed more than once.
  for (const levels of found.values())
    for (const migration of versions.migrations)
      for (const before of earlier(levels, migration))
        found.set(before.map(({ segment }) => `/${segment}`).join(""), [...before]);
  return [...found.keys()];
}

function earlier(levels: readonly Level[], migration: Migration | undefined): readonly (readonly Level[])[] {
  const [level, ...deeper] = levels;
  if (level === undefined) return [[]];
  const { holder, segment } = level;
  const renamed = Object.entries(migration?.nodes ?? {}).flatMap(([old, now]) => (now === holder ? [old] : []));
  return [holder, ...renamed].flatMap((old) =>
    earlier(deeper, migration?.inner[old]).map((rest) => [
      { holder: old, segment: segment === holder ? old : segment },
      ...rest,
    ]),
  );
}
