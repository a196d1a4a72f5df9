/** Long-term store of the store interface. */

import type { LongTermVectors, Store } from "@statewright/core";
import { eraseSecurely } from "../file/erase-securely.ts";
import type { StoreParts } from "../store-parts.ts";

export function createLongTermStore(
  {
    db,
    transactions,
    items,
    applyLongTerm,
  }: Pick<StoreParts, "db" | "items" | "applyLongTerm"> & {
    readonly transactions: Pick<StoreParts["transactions"], "read" | "write">;
  },
  vectors: LongTermVectors | undefined,
): NonNullable<Store["longTerm"]> {
  return {
    ...(vectors === undefined ? {} : { vectors }),
    get: (location, at) => transactions.read(() => items.get(location, at)),
    page: (query) => transactions.read(() => items.listPage(query)),
    write: (changes, at) => transactions.write(undefined, () => applyLongTerm(changes, at)),
    refresh: (touches) => transactions.write(undefined, () => items.refresh(touches)),
    sweep: (at, limit) => transactions.write(undefined, () => eraseSecurely(db, () => items.sweep(at, limit))),
  };
}
