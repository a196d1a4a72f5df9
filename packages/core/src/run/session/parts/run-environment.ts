/** Fixed environment of a session. */
import type { SecretSource } from "../../../base/injection.ts";
import type { Redactor } from "../../../base/redaction/redactor.ts";
import type { World } from "../../../base/world.ts";
import type { Migration } from "../../../compile/migration.ts";
import type { GraphDefinition } from "../../../define/graph.ts";
import { createModelResolver, type GraphModels, type ModelResolver } from "../../../model/model-source.ts";
import type { Codec } from "../../../state/codec.ts";
import type { Middleware } from "../../../tool/policy/middleware.ts";
import type { Breakpoints, OnPriorEffect } from "../options/options.ts";

/** Sources of models: of the run, and of the graph and its parent graphs, innermost first. */
export interface ModelSources {
  readonly run: GraphModels | undefined;
  readonly graphs: readonly GraphModels[];
}

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
  /** Finds models by the options of the run, of the graph and of its parent graphs. */
  readonly findModel: ModelResolver;
  /** Sources of `findModel` for inner graphs. */
  readonly models: ModelSources;
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

/** Creates the part of an environment that finds models. The option of the run precedes those of the graphs. */
export function createModelFinder(models: ModelSources): Pick<RunEnvironment, "models" | "findModel"> {
  const { run, graphs } = models;
  const fallback = graphs.find((each) => each.default !== undefined)?.default ?? run?.default;
  return { models, findModel: createModelResolver([run?.given, ...graphs.map(({ given }) => given)], fallback) };
}
