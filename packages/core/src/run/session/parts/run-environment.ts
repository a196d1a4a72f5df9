/** Fixed environment of a session. */
import type { SecretSource } from "../../../base/injection.ts";
import type { Redactor } from "../../../base/redaction/redactor.ts";
import type { World } from "../../../base/world.ts";
import type { Migration } from "../../../compile/migration.ts";
import type { GraphDefinition } from "../../../define/graph.ts";
import type { Codec } from "../../../state/codec.ts";
import type { Middleware } from "../../../tool/policy/middleware.ts";
import type { Breakpoints, OnPriorEffect } from "../options/options.ts";

/** Fixed environment of a session: the world, the context and the options of the run. */
export interface RunEnvironment {
  readonly world: World;
  readonly context: unknown;
  readonly secrets: SecretSource;
  /** Redacts the requested secrets from stored data and events. */
  readonly redactor: Redactor;
  readonly codec: Codec;
  /** Outermost graph, and the migrations from its older versions. */
  readonly versions: { readonly graph: GraphDefinition; readonly migrations: readonly Migration[] };
  readonly onTaskFailure: "finish" | "abort";
  readonly onPriorEffect: OnPriorEffect;
  readonly breakpoints: Breakpoints | undefined;
  readonly limits: { readonly maxSteps: number; readonly maxConcurrency: number };
  /** True when partial results and progress events are enabled. */
  readonly emitsUpdates: boolean;
  /** Middleware of the graph and of its parent graphs, outermost first. */
  readonly graphMiddleware: readonly Middleware[];
}

/**
 * Merges the middleware of the graphs with the middleware of a node, which comes last. Middleware of both takes the
 * node's position.
 */
export function mergeMiddleware(
  { graphMiddleware }: RunEnvironment,
  nodeMiddleware: readonly Middleware[] = [],
): readonly Middleware[] {
  if (graphMiddleware.length === 0) return nodeMiddleware;
  return [...graphMiddleware.filter((each) => !nodeMiddleware.includes(each)), ...nodeMiddleware];
}
