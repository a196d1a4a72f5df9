/** Injection of the long-term store. */
import { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import type { Injection } from "../base/injection.ts";
import type { LongTerm, OpenLongTerm } from "../base/long-term.ts";

/**
 * Injects a namespace of the long-term store: `longTerm("users")`; the root without ids. A run without a store fails
 * before the call (`missing_store`). Throws `invalid_id`.
 */
export function longTerm(...ids: readonly string[]): Injection<LongTerm> {
  for (const id of ids) checkId("namespace", id);
  return {
    kind: "store",
    resolve: ({ longTerm: open, run }) => {
      if (open !== undefined) return open(...ids);
      throw new StatewrightError("missing_store", {
        what: `a tool of the node "${run.node}" injects the long-term store, but the run has no store`,
        next: "Pass a store to the run: memoryStore() or sqliteStore(path)",
        place: { graph: run.graph, node: run.node },
      });
    },
  };
}

/**
 * Creates a function that replaces the injected long-term handles for an attempt. Injections are resolved once per
 * call, but writes must belong to a single attempt.
 */
export function createAttemptInjector(inject: {
  readonly [name: string]: Pick<Injection<unknown, never, never>, "kind">;
}): (injected: unknown, open: OpenLongTerm) => unknown {
  const names = Object.entries(inject).flatMap(([name, { kind }]) => (kind === "store" ? [name] : []));
  if (names.length === 0) return (injected) => injected;
  return (injected, open) => {
    const values = injected as Readonly<Record<string, LongTerm>>;
    const handles = names.map((name) => [name, open(...(values[name]?.namespace ?? []))]);
    return Object.freeze({ ...values, ...Object.fromEntries(handles) });
  };
}
