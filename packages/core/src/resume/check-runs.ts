/** `checkRuns`: checks before a deploy which open runs are compatible with the new code. Read-only. */

import { getErrorFact, isStatewrightError } from "../base/errors.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { checkOptions } from "../base/options.ts";
import type { RunRow, RunStatus } from "../checkpoint/checkpoint.ts";
import type { ListedRunRow, Store } from "../checkpoint/store.ts";
import type { Graph } from "../compile/graph.ts";
import type { Migration } from "../compile/migration.ts";
import { getPlan } from "../compile/plan.ts";
import { checkGraphOption } from "../define/check-graph-option.ts";
import { getProgram, programs } from "../run/begin.ts";
import { migrateQueuedInput } from "../run/loop/migrate-queued-input.ts";
import {
  decideVersion,
  formatIncompatibilities,
  formatMigrations,
  isWriter,
} from "../run/migration/resolve-version.ts";
import { unfinishedStatuses } from "../run/queue.ts";
import { checkCodecOption, checkStoreOption, checkVersions } from "../run/session/options/check-run-options.ts";
import { getCodec } from "../run/task/open-session.ts";
import type { Codec } from "../state/codec.ts";
import { listVersions } from "./serving.ts";

/** Result of the check of an open run. */
export interface RunCheck {
  readonly run: RunRow;
  readonly verdict: "continues" | "migrates" | "parks";
  /** A sentence without its full stop. */
  readonly reason: string;
}

/** Options of `checkRuns`, besides the store and the graphs. */
export interface CheckRunsOptions {
  /** Migrations that a resume would use. Default: none. */
  readonly migrations?: readonly Migration[];
  /** Codec of values other than plain data, as in the run. Default: plain data and built-in types. */
  readonly codec?: Codec;
}

const openStatuses: readonly RunStatus[] = ["queued", ...unfinishedStatuses];

const pageSize = 100;

/**
 * Checks the open runs of a store (queued, running, waiting, paused, parked, failed, crashed) against these graphs.
 * Returns for each run, newest first, whether the run continues, is migrated or is parked, with the reason.
 * Read-only. Throws `invalid_option`, and errors of the store.
 */
export async function checkRuns(
  store: Store,
  graphs: readonly Graph[],
  options: CheckRunsOptions = {},
): Promise<readonly RunCheck[]> {
  checkStoreOption("checkRuns", store ?? null);
  checkOptions("checkRuns", options, ["migrations", "codec"]);
  checkCodecOption("checkRuns", options.codec);
  checkVersions("checkRuns", options);
  if (!Array.isArray(graphs)) throw invalidOption({ where: "checkRuns", expected: "a list of graphs", got: graphs });
  for (const graph of graphs) checkGraphOption("checkRuns", graph);
  const checks: RunCheck[] = [];
  for (let before: ListedRunRow | undefined; ; ) {
    const page: readonly ListedRunRow[] = await store.runs({
      status: openStatuses,
      limit: pageSize,
      ...(before === undefined ? {} : { before }),
    });
    for (const run of page) checks.push({ run, ...(await checkRun(store, graphs, options, run)) });
    before = page[page.length - 1];
    if (page.length < pageSize) return checks;
  }
}

type Verdict = Omit<RunCheck, "run">;

async function checkRun(
  store: Store,
  graphs: readonly Graph[],
  options: CheckRunsOptions,
  run: RunRow,
): Promise<Verdict> {
  const [graph, ...older] = listVersions(graphs, run.graph);
  if (graph === undefined)
    return { verdict: "parks", reason: `graph "${run.graph}" is not in the list: the run would not be resumed` };
  try {
    if (run.status === "queued") return checkQueued(graph, options, run);
    return await checkStarted(store, { graph, older, migrations: options.migrations ?? [] }, options, run);
  } catch (error) {
    if (!isStatewrightError(error)) throw error;
    return { verdict: "parks", reason: getErrorFact(error) };
  }
}

function checkQueued(graph: Graph, options: CheckRunsOptions, run: RunRow): Verdict {
  const codec = getCodec(options);
  const input = migrateQueuedInput(run, graph, options.migrations ?? [], codec);
  const plan = getPlan(graph);
  getProgram(plan).parseInput(plan, codec, input ?? {});
  return { verdict: "continues", reason: "the run has not started, and its input is valid" };
}

async function checkStarted(
  store: Store,
  versions: { readonly graph: Graph; readonly older: readonly Graph[]; readonly migrations: readonly Migration[] },
  options: CheckRunsOptions,
  { thread, branch }: RunRow,
): Promise<Verdict> {
  const { graph } = versions;
  const head = await store.head(thread, branch);
  const writtenBy = head === undefined ? undefined : await store.writtenBy(thread, head.id);
  if (head === undefined || writtenBy === undefined)
    return { verdict: "continues", reason: "no checkpoint is saved yet: run it again with its input" };
  if (isWriter(graph, writtenBy))
    return { verdict: "continues", reason: `the run was written by version ${graph.version}` };
  const inherited = { store, codec: getCodec(options), thread, branch, head, writtenBy, programs };
  const decision = await decideVersion(inherited, versions);
  switch (decision.kind) {
    case "continues":
      return {
        verdict: "continues",
        reason: `the run was written by version ${writtenBy.version} and is compatible with version ${graph.version}`,
      };
    case "older":
      return {
        verdict: "continues",
        reason: `the run continues with version ${decision.graph.version}, which wrote it`,
      };
    case "migrates":
      return { verdict: "migrates", reason: `${formatMigrations(decision.migrations)} is applied` };
    case "parks":
      return { verdict: "parks", reason: formatIncompatibilities(decision.incompatibilities) };
  }
}
