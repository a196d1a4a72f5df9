/** Lists that skip damaged rows. */
import { isStatewrightError, type StatewrightError } from "@statewright/core";

/** Returns true for a damaged row or a missing key: errors that are limited to one thread. */
export function isUnreadable(thrown: unknown): thrown is StatewrightError {
  return isStatewrightError(thrown, "store_corrupt") || isStatewrightError(thrown, "missing_key");
}

/** Query of a list of rows. */
export interface ReadableList<Parameters extends { readonly limit: number }, Columns, Row> {
  /** Thread of the list; undefined for a list over many threads. */
  readonly thread?: string | undefined;
  readonly parameters: Parameters;
  /** Reads the columns of the rows, in order. */
  query(wider: Parameters): readonly Columns[];
  /** Converts the columns to a row. Throws `store_corrupt` for an unreadable row. */
  read(columns: Columns): Row;
  /** Called with the error of each omitted row. */
  onFault(fault: StatewrightError): void;
}

/**
 * Lists rows: for a single thread all rows or an error; for many threads without unreadable rows, so that a damaged
 * thread does not block the others. Skipped rows are reported to `onFault` and do not count for the limit.
 */
export function listReadableRows<Parameters extends { readonly limit: number }, Columns, Row>({
  thread,
  parameters,
  query,
  read,
  onFault,
}: ReadableList<Parameters, Columns, Row>): readonly Row[] {
  if (thread !== undefined) return query(parameters).map((columns) => read(columns));
  for (let limit = parameters.limit; ; ) {
    const found = query({ ...parameters, limit });
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
    if (limit < 0 || found.length < limit || rows.length >= parameters.limit) {
      for (const fault of faults) onFault(fault);
      return parameters.limit < 0 ? rows : rows.slice(0, parameters.limit);
    }
    limit = parameters.limit + faults.length;
  }
}
