/** Artifacts of the store interface. */

import type { Store } from "@statewright/core";
import { storeRules } from "@statewright/core/store";
import { eraseSecurely } from "../file/erase-securely.ts";
import type { StoreParts } from "../store-parts.ts";

export function createArtifactStore({
  db,
  world,
  transactions,
  artifacts,
  readOutside,
}: Pick<StoreParts, "db" | "world" | "artifacts" | "readOutside"> & {
  readonly transactions: Pick<StoreParts["transactions"], "read" | "write">;
}): NonNullable<Store["artifacts"]> {
  return {
    list: (thread, filter = {}) =>
      transactions.read(() => {
        storeRules.checkFilter("artifacts", filter, ["run", "key"]);
        return artifacts.list(thread, filter);
      }, thread),
    read: async (thread, key, range) => {
      const found = await transactions.read(() => {
        if (range !== undefined) storeRules.checkRange(range);
        return artifacts.read(thread, key, range);
      }, thread);
      return found === undefined || found instanceof Uint8Array ? found : await readOutside(found, range);
    },
    delete: (thread, key) =>
      transactions.write(thread, () => eraseSecurely(db, () => artifacts.remove(thread, key, world.clock.now()))),
  };
}
