/** Artifacts of the store interface. */

import type { Store } from "@statewright/core";
import { storeRules } from "@statewright/core/store";
import { eraseSecurely } from "../file/erase-securely.ts";
import type { StoreParts } from "../store-parts.ts";

export function createArtifactStore({
  db,
  transactions,
  artifacts,
}: Pick<StoreParts, "db" | "artifacts"> & {
  readonly transactions: Pick<StoreParts["transactions"], "read" | "write">;
}): NonNullable<Store["artifacts"]> {
  return {
    list: (thread, filter = {}) =>
      transactions.read(() => {
        storeRules.checkFilter("artifacts", filter, ["run", "key"]);
        return artifacts.list(thread, filter);
      }, thread),
    read: (thread, key, range) =>
      transactions.read(() => {
        if (range !== undefined) storeRules.checkRange(range);
        return artifacts.read(thread, key, range);
      }, thread),
    delete: (thread, key) => transactions.write(thread, () => eraseSecurely(db, () => artifacts.remove(thread, key))),
  };
}
