/** Prompt destinations for tests. */
import { getClientRules } from "../../src/client-rules.ts";
import type { Destination } from "../../src/destination.ts";
import type { Dialect } from "../../src/dialect.ts";

/** Creates a destination of `client` that accepts every URL and collects its warnings in `warnings`. */
export function createDestination<Data, Media, Own>(
  client: string,
  dialect: Dialect<Data, Media, Own>,
  more: Partial<Destination<Data, Media, Own>> = {},
): Destination<Data, Media, Own> & { readonly warnings: string[] } {
  const warnings: string[] = [];
  return {
    client,
    model: "one",
    rules: getClientRules(client),
    dialect,
    takesUrl: () => true,
    warn: (warning) => void warnings.push(warning),
    warnings,
    ...more,
  };
}
