/**
 * Acts on many rows: pages through a list, newest first, and applies an act to each row. A row that was added or
 * changed after the act began comes before the first page, and is never reached.
 */
import { isStatewrightError, transientStoreCodes } from "../../base/errors.ts";
import { invalidOption } from "../../base/invalid-option.ts";
import { checkCount, checkFlag, checkFunction, listOptionNames } from "../../base/options.ts";

/** Options of every act on many runs or threads. */
export interface BulkOptions {
  /** Counts the matching rows and changes nothing. Default false. */
  readonly dryRun?: boolean;
  /** Maximum number of rows in work at the same time. Default 8. */
  readonly concurrency?: number;
  /** Called after each row. An error of the callback stops the act. */
  readonly onProgress?: (progress: ActProgress) => void;
  /** `cursor` of the last progress of an act that was stopped or killed: continues after it, with the same rows. */
  readonly cursor?: string;
  /** Starts no more rows after it has fired. */
  readonly signal?: AbortSignal;
}

/** Names of the options of every act. */
export const actNames: readonly string[] = listOptionNames<BulkOptions>({
  dryRun: true,
  concurrency: true,
  onProgress: true,
  cursor: true,
  signal: true,
});

/** Progress of an act. */
export interface ActProgress {
  /** Number of matching rows when the call began. */
  readonly matched: number;
  /** Number of rows that the act has changed. */
  readonly done: number;
  /** Number of rows that another process ended, changed or deleted before the act reached them. */
  readonly skipped: number;
  /** Number of rows whose act failed. */
  readonly failed: number;
  /** Place before which every row is finished; absent before the first finished row. */
  readonly cursor?: string | undefined;
}

/** Error of a row. */
export interface ActError {
  readonly thread: string;
  /** Absent for an act on a thread. */
  readonly run?: string | undefined;
  readonly error: unknown;
}

/** Result of an act. */
export interface ActReport extends ActProgress {
  /** False for a dry run, and for an act that `signal` stopped. */
  readonly isComplete: boolean;
  /** Errors of the failed rows, in the order of their occurrence. */
  readonly errors: readonly ActError[];
}

/** Outcome of a row. */
export type Outcome = "done" | "skipped" | "stopped";

/** Act on the rows of a list. */
export interface Act<Row extends { readonly thread: string }> {
  readonly count: () => Promise<number>;
  /** Lists rows after a cursor, newest first. */
  readonly list: (cursor: string | undefined, limit: number) => Promise<readonly Row[]>;
  readonly getCursor: (row: Row) => string;
  /** Run of an error; undefined for an act on a thread. */
  readonly getRun: (row: Row) => string | undefined;
  /**
   * Changes a single row; `skipped` for a row that does not match any more, `stopped` for one that `signal` stopped.
   */
  readonly apply: (row: Row) => Promise<Outcome>;
}

/** Throws `invalid_option` for invalid options of an act. */
export function checkBulkOptions(
  where: string,
  { dryRun, concurrency, onProgress, cursor, signal }: BulkOptions,
): void {
  checkFlag(where, { dryRun: dryRun ?? false });
  checkCount(where, { concurrency });
  checkFunction(where, { onProgress });
  if (cursor !== undefined && typeof cursor !== "string")
    throw invalidOption({ where, option: "cursor", expected: "the cursor of a progress", got: cursor });
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw invalidOption({ where, option: "signal", expected: "an AbortSignal", got: signal });
}

/** Rows of a page. */
const pageSize = 100;

/** Performs an act. Rejects with an error of the list, and with an error of the store that ends by itself. */
export async function performAct<Row extends { readonly thread: string }>(
  act: Act<Row>,
  options: BulkOptions,
): Promise<ActReport> {
  const { dryRun = false, signal } = options;
  const isStopped = (): boolean => signal?.aborted === true;
  const report = createReport(await act.count(), options);
  if (dryRun) return report.toReport(false);
  for (let cursor = options.cursor; ; ) {
    if (isStopped()) return report.toReport(false);
    const rows = await act.list(cursor, pageSize);
    await performPage(act, rows, { options, report });
    const last = rows.at(-1);
    if (isStopped()) return report.toReport(false);
    if (last === undefined || rows.length < pageSize) return report.toReport(true);
    cursor = act.getCursor(last);
  }
}

interface Report {
  /** Counts a finished row. */
  readonly add: (outcome: "done" | "skipped" | "failed") => void;
  readonly addError: (error: ActError) => void;
  readonly setCursor: (cursor: string) => void;
  readonly toReport: (isComplete: boolean) => ActReport;
}

function createReport(matched: number, { onProgress, cursor: start }: BulkOptions): Report {
  const counts = { done: 0, skipped: 0, failed: 0 };
  const errors: ActError[] = [];
  let cursor = start;
  const toProgress = (): ActProgress => ({ matched, ...counts, ...(cursor === undefined ? {} : { cursor }) });
  return {
    add: (outcome) => {
      counts[outcome] += 1;
      onProgress?.(toProgress());
    },
    addError: (error) => void errors.push(error),
    setCursor: (next) => {
      cursor = next;
    },
    toReport: (isComplete) => ({ ...toProgress(), isComplete, errors }),
  };
}

/** Applies an act to the rows of a page; the rows of a thread one after the other. */
async function performPage<Row extends { readonly thread: string }>(
  act: Act<Row>,
  rows: readonly Row[],
  { options, report }: { readonly options: BulkOptions; readonly report: Report },
): Promise<void> {
  const { concurrency = 8, signal } = options;
  const finished = new Set<Row>();
  let firstUnfinished = 0;
  let failure: { readonly error: unknown } | undefined;

  const finish = (row: Row, outcome: "done" | "skipped" | "failed"): void => {
    finished.add(row);
    for (let next = rows[firstUnfinished]; next !== undefined && finished.has(next); next = rows[firstUnfinished]) {
      firstUnfinished += 1;
      report.setCursor(act.getCursor(next));
    }
    report.add(outcome);
  };
  const applyTo = async (row: Row): Promise<void> => {
    try {
      const outcome = await catchRowError(act, row, report);
      if (outcome !== "stopped") finish(row, outcome);
    } catch (error) {
      failure ??= { error };
    }
  };
  const queue = groupByThread(rows);
  const work = async (): Promise<void> => {
    for (let group = queue.shift(); group !== undefined; group = queue.shift())
      for (const row of group) if (failure === undefined && signal?.aborted !== true) await applyTo(row);
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, queue.length) }, work));
  if (failure !== undefined) throw failure.error;
}

function groupByThread<Row extends { readonly thread: string }>(rows: readonly Row[]): (readonly Row[])[] {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const group = groups.get(row.thread);
    if (group === undefined) groups.set(row.thread, [row]);
    else group.push(row);
  }
  return [...groups.values()];
}

/** Records the error of a row. Throws an error of the store that all rows would meet. */
async function catchRowError<Row extends { readonly thread: string }>(
  act: Act<Row>,
  row: Row,
  report: Report,
): Promise<Outcome | "failed"> {
  try {
    return await act.apply(row);
  } catch (error) {
    if (isStatewrightError(error) && haltCodes.includes(error.code)) throw error;
    const run = act.getRun(row);
    report.addError({ thread: row.thread, ...(run === undefined ? {} : { run }), error });
    return "failed";
  }
}

const haltCodes: readonly string[] = [...transientStoreCodes, "store_closed"];
