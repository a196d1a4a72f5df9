/** Giving room back: the file is written anew without what was removed, and the log is emptied into it. */
import { storeRules, type World } from "@statewright/core";
import type { Database } from "better-sqlite3";
import { asStoreError, isBusy } from "./errors.ts";

/** Waits between attempts on a locked file, in milliseconds, half a minute in all. */
const waitMs = 50;
const attempts = 600;

/** Write the file anew. Holds the event loop as long as that takes. Throws `store_locked`, `store_full`. */
export async function vacuum(db: Database, world: World, isClosed: () => boolean): Promise<void> {
  const insist = async (work: () => boolean): Promise<void> => {
    for (let attempt = 1; !work(); attempt++) {
      if (attempt === attempts) {
        world.log("warn", "the room of what was removed could not be given back: others read the file", { attempts });
        return;
      }
      await new Promise<void>((resolve) => world.schedule.after(waitMs, resolve));
      if (isClosed()) throw storeRules.closed("sqlite");
    }
  };
  if (isClosed()) throw storeRules.closed("sqlite");
  await insist(() => tried(() => db.exec("VACUUM")));
  // What was removed still stands in the log, until all of it is in the file and no reader needs it.
  await insist(() => tried(() => db.pragma("wal_checkpoint(TRUNCATE)"), isDone));
}

function tried<Value>(work: () => Value, done: (value: Value) => boolean = () => true): boolean {
  try {
    return done(work());
  } catch (thrown) {
    if (isBusy(thrown)) return false;
    throw asStoreError(thrown);
  }
}

/** SQLite says in its first column whether somebody was in the way. */
function isDone(rows: unknown): boolean {
  const [row] = rows as readonly { readonly busy: number }[];
  return row?.busy === 0;
}
