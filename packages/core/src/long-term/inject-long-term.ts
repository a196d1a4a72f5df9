/** The long-term store as a hidden argument. */
import { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import type { Injection } from "../base/injection.ts";
import type { LongTerm, OpenLongTerm } from "../base/long-term.ts";

/**
 * Inject a namespace of the long-term store: `longTerm("users")`. Without ids it is the root. The run fails before the call
 * when it has no store (`missing_store`). Throws `invalid_id`.
 */
export function longTerm(...ids: readonly string[]): Injection<LongTerm> {
  for (const id of ids) checkId("namespace", id);
  return {
    kind: "store",
    resolve: ({ longTerm: open, run }) => {
      if (open !== undefined) return open(...ids);
      throw new StatewrightError("missing_store", {
        what: `a tool of the node "${run.node}" is given the long-term store, in a run without a store`,
        next: "Give the run a store: memoryStore() or sqliteStore(path)",
        place: { graph: run.graph, node: run.node },
      });
    },
  };
}

/**
 * Hidden values as one attempt gets them. They are found once for a call, and what an attempt puts must count for that
 * attempt alone: handles of the long-term store are those of the attempt.
 */
export function ofAttempt(inject: {
  readonly [name: string]: Pick<Injection<unknown, never, never>, "kind">;
}): (injected: unknown, open: OpenLongTerm) => unknown {
  const names = Object.entries(inject).flatMap(([name, { kind }]) => (kind === "store" ? [name] : []));
  if (names.length === 0) return (injected) => injected;
  return (injected, open) => {
    const found = injected as Readonly<Record<string, LongTerm>>;
    const own = names.map((name) => [name, open(...(found[name]?.namespace ?? []))]);
    return Object.freeze({ ...found, ...Object.fromEntries(own) });
  };
}
