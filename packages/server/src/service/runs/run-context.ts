/** Context of a run that a caller starts or continues. */
import type { Graph, Json } from "@statewright/core";
import type { RunRow } from "@statewright/core/store";
import type { CallerScope } from "../caller-scope.ts";

/** Run that needs a context. */
export interface ContextPlace {
  readonly graph: Graph;
  /** Id of the thread as the caller knows it. */
  readonly thread: string;
  /** What the client asks for. */
  readonly asked: Json | undefined;
  /** Row of a run that continues. Absent for a new run. */
  readonly run?: RunRow | undefined;
}

/**
 * Returns the option `context` of a run: of `contextOf`, else of the engine for the row of the run. The row of a new
 * run has no id yet; its tenant and its owner are those of the caller.
 */
export async function createRunContext(
  scope: CallerScope,
  { graph, thread, asked, run }: ContextPlace,
): Promise<{ readonly context?: unknown }> {
  const { caller, engine, options, world } = scope;
  if (options.contextOf !== undefined)
    return { context: await options.contextOf(caller, asked, { graph: graph.name, thread }) };
  if (engine.context === undefined) return {};
  const { name, version } = graph;
  const row: RunRow = run ?? {
    ...{
      id: "",
      thread: scope.toStoredId(thread),
      branch: "main",
      graph: name,
      version,
      status: "running",
      attempt: 1,
    },
    startedAt: world.clock.now(),
    tenant: caller.tenant,
    owner: caller.id,
  };
  return { context: engine.context(row) };
}
