/** `checkRuns`: tells before a deploy which open runs would go on under the new code. Nothing is written. */
import { isStatewrightError, StatewrightError, saidBy } from "../base/errors.ts";
import { describeValue } from "../base/json.ts";
import { checkOptions } from "../base/options.ts";
import type { RunRow, RunStatus } from "../checkpoint/checkpoint.ts";
import type { Store } from "../checkpoint/store.ts";
import type { Graph } from "../compile/define-graph.ts";
import type { Migration } from "../compile/migration.ts";
import { planOf } from "../compile/plan.ts";
import { queuedInput } from "../run/loop/migrate-queued-input.ts";
import { decide, sayAll, sayMigrations, wrote } from "../run/migration/resolve-version.ts";
import { unfinishedStatuses } from "../run/queue.ts";
import { checkCodec, checkGraph, checkStore, checkVersions } from "../run/session/check-run-options.ts";
import { readInput } from "../run/superstep/input.ts";
import { codecOf } from "../run/task/open-session.ts";
import type { Codec } from "../state/codec.ts";
import { versionsOf } from "./serving.ts";

/** What becomes of an open run. */
export interface RunCheck {
  readonly run: RunRow;
  readonly verdict: "goes on" | "migrates" | "parks";
  /** One sentence without its full stop. */
  readonly why: string;
}

/** What `checkRuns` takes besides the store and the graphs. */
export interface CheckRunsOptions {
  readonly migrations?: readonly Migration[];
  readonly codec?: Codec;
}

const open: readonly RunStatus[] = ["queued", ...unfinishedStatuses];

const pageSize = 100;

/**
 * Which open runs of a store (queued, at work, waiting, paused, parked, failed, crashed) would go on under these graphs, which
 * would be migrated, and which would be parked, and why; runs that began last come first. Reads only. Throws
 * `invalid_option`, and what the store throws.
 */
export async function checkRuns(
  store: Store,
  graphs: readonly Graph[],
  options: CheckRunsOptions = {},
): Promise<readonly RunCheck[]> {
  checkStore("checkRuns", store ?? null);
  checkOptions("checkRuns", options, ["migrations", "codec"]);
  checkCodec("checkRuns", options.codec);
  checkVersions("checkRuns", options);
  if (!Array.isArray(graphs))
    throw new StatewrightError("invalid_option", {
      what: `the graphs of checkRuns are ${describeValue(graphs)}`,
      next: "Give a list of graphs",
    });
  for (const graph of graphs) checkGraph("checkRuns", graph);
  const checks: RunCheck[] = [];
  for (let before: RunRow | undefined; ; ) {
    const page: readonly RunRow[] = await store.runs({
      status: open,
      limit: pageSize,
      ...(before === undefined ? {} : { before }),
    });
    for (const run of page) checks.push({ run, ...(await check(store, graphs, options, run)) });
    before = page[page.length - 1];
    if (page.length < pageSize) return checks;
  }
}

type Verdict = Omit<RunCheck, "run">;

async function check(store: Store, graphs: readonly Graph[], options: CheckRunsOptions, run: RunRow): Promise<Verdict> {
  const [graph, ...older] = versionsOf(graphs, run.graph);
  if (graph === undefined)
    return { verdict: "parks", why: `no graph "${run.graph}" was given: it would be left alone` };
  try {
    if (run.status === "queued") return ofQueued(graph, options, run);
    return await ofBegun(store, { graph, older, migrations: options.migrations ?? [] }, options, run);
  } catch (error) {
    if (!isStatewrightError(error)) throw error;
    return { verdict: "parks", why: saidBy(error) };
  }
}

function ofQueued(graph: Graph, options: CheckRunsOptions, run: RunRow): Verdict {
  const codec = codecOf(options);
  const input = queuedInput(run, graph, options.migrations ?? [], codec);
  if (planOf(graph).drawing === undefined) readInput(planOf(graph), codec, input ?? {});
  return { verdict: "goes on", why: "it has not begun, and its input fits" };
}

async function ofBegun(
  store: Store,
  versions: { readonly graph: Graph; readonly older: readonly Graph[]; readonly migrations: readonly Migration[] },
  options: CheckRunsOptions,
  { thread, branch }: RunRow,
): Promise<Verdict> {
  const { graph } = versions;
  const head = await store.head(thread, branch);
  const writtenBy = head === undefined ? undefined : await store.writtenBy(thread, head.id);
  if (head === undefined || writtenBy === undefined)
    return { verdict: "goes on", why: "nothing of it is saved yet: run it again with its input" };
  if (wrote(graph, writtenBy)) return { verdict: "goes on", why: `version ${graph.version} has written it` };
  const inherited = { store, codec: codecOf(options), thread, branch, head, writtenBy };
  const decision = await decide(inherited, versions);
  switch (decision.kind) {
    case "goes on":
      return {
        verdict: "goes on",
        why: `version ${writtenBy.version} has written it, and it fits version ${graph.version}`,
      };
    case "older":
      return { verdict: "goes on", why: `it goes on under version ${decision.graph.version}, which has written it` };
    case "migrates":
      return { verdict: "migrates", why: `${sayMigrations(decision.migrations)} is applied` };
    case "parks":
      return { verdict: "parks", why: sayAll(decision.misfits) };
  }
}
