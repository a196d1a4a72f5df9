/** Position of an inner graph in the outermost graph. */
import type { Control } from "../../../checkpoint/checkpoint.ts";
import type { Middleware } from "../../../tool/policy/middleware.ts";
import type { ToolOutput } from "../../../tool/result.ts";

/** Position of an inner graph in the outermost graph. */
export interface Nesting {
  /** Nodes and tools on the path to the inner graph, outermost first. */
  readonly path: readonly string[];
  /** Namespace below the branch; distinguishes the calls of a node or tool. */
  readonly id: string;
  /** Prefix of interrupt ids: the tasks and calls on the path, each followed by a slash. */
  readonly idPrefix: string;
  /** Step and task of the outermost graph. */
  readonly step: number;
  readonly task: string;
  /** Caller: the task of the parent graph, and the checkpoint that scheduled the task. */
  readonly caller: NonNullable<Control["caller"]>;
  /** True when the inner graph persists nothing, although the run has a store. */
  readonly unsaved: boolean;
  /** Number of tool calls on the path. */
  readonly depth: number;
  /** Aborts the whole run. */
  readonly abort: AbortController;
  /**
   * Returns the controller aborted by a hook: of the current tool call, or of the whole run for run-level middleware.
   */
  readonly getHookController: (hook: Middleware) => AbortController;
  /** Emits an update of the innermost tool call on the path; undefined without one. */
  readonly updateCall: UpdateCall | undefined;
}

/** Emits a partial result of a tool call. */
export type UpdateCall = (partial: ToolOutput) => void;

/** Returns the path of nodes and tools to an inner graph, such as `research.plan`. */
export function formatNestingPath({ path }: Nesting): string {
  return path.join(".");
}
