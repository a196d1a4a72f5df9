/** Lists that a damaged row does not keep anybody from. */
import { isStatewrightError, type StatewrightError } from "@statewright/core";

/** What was written is not there any more, or its key is not given: the other threads are not in that state. */
export function isUnreadable(thrown: unknown): thrown is StatewrightError {
  return isStatewrightError(thrown, "store_corrupt") || isStatewrightError(thrown, "missing_key");
}

/**
 * A list: of one thread all of it, or nothing; of many threads without the rows that are not what was written, so that a
 * damaged thread keeps nobody from the others. Those are told of, and do not count for the limit.
 */
export function readableRows<Wanted extends { readonly limit: number }, Columns, Row>(
  thread: string | undefined,
  wanted: Wanted,
  ask: (wider: Wanted) => readonly Columns[],
  read: (columns: Columns) => Row,
  told: (fault: StatewrightError) => void,
): readonly Row[] {
  if (thread !== undefined) return ask(wanted).map(read);
  for (let limit = wanted.limit; ; ) {
    const found = ask({ ...wanted, limit });
    const faults: StatewrightError[] = [];
    const rows = found.flatMap((columns) => {
      try {
        return [read(columns)];
      } catch (thrown) {
        if (!isUnreadable(thrown)) throw thrown;
        faults.push(thrown);
        return [];
      }
    });
    if (limit < 0 || found.length < limit || rows.length >= wanted.limit) {
      for (const fault of faults) told(fault);
      return wanted.limit < 0 ? rows : rows.slice(0, wanted.limit);
    }
    limit = wanted.limit + faults.length;
  }
}
