/** `getBranchTree` and `listNamespaces`: the branches and inner graphs of a thread. */
import type { RunStatus } from "../../checkpoint/checkpoint.ts";
import { parseControl } from "../../checkpoint/control.ts";
import type { GraphVersion } from "../../checkpoint/export/thread-export.ts";
import type { Store } from "../../checkpoint/store.ts";
import { findNewestRun } from "../get-state.ts";
import { splitNamespace } from "./superstep-summary.ts";
import { type ReadOptions, readThread } from "./thread-reader.ts";

/** Branch of a thread. */
export interface BranchSummary {
  readonly name: string;
  /** Checkpoint that the branch was forked from; absent for a branch without origin. */
  readonly from?: number;
  /** Branch of {@link from}; absent without origin, and when its checkpoint was deleted. */
  readonly parent?: string;
  /** Newest checkpoint; absent before the first. */
  readonly head?: number;
  /** True for the default branch of runs and reads. */
  readonly isHead: boolean;
  /** Checkpoints of the branch itself, without ancestors and inner graphs. */
  readonly supersteps: number;
  /** Bytes of the changes of these checkpoints. */
  readonly bytes: number;
  /** Status of the newest started run; absent without a run. */
  readonly status?: RunStatus;
}

/**
 * Lists the branches of a thread with their origins, in order of creation.
 *
 * @throws `unknown_thread`, `invalid_option`, and errors of the store.
 * @example
 * const branches = await getBranchTree(store, { thread: "support-7" });
 */
export async function getBranchTree(store: Store, options: ReadOptions): Promise<readonly BranchSummary[]> {
  return await readThread(
    { call: "getBranchTree", store, options, optionNames: [] },
    async ({ reads, thread, threadRow }) => {
      const branches: BranchSummary[] = [];
      for (const { name, from, head, checkpoints, bytes } of await reads.namespaces(thread, "branch")) {
        const origin = from === undefined ? undefined : await reads.checkpoint(thread, from);
        const run = await findNewestRun(reads, thread, name, head);
        const newest = head?.id ?? from;
        branches.push({
          name,
          ...(from === undefined ? {} : { from }),
          ...(origin === undefined ? {} : { parent: splitNamespace(origin.branch).branch }),
          ...(newest === undefined ? {} : { head: newest }),
          isHead: name === threadRow.headBranch,
          supersteps: checkpoints,
          bytes,
          ...(run === undefined ? {} : { status: run.status }),
        });
      }
      return branches;
    },
  );
}

/** Child namespace: the checkpoints of a call of an inner graph, or of a persistent subgraph. */
export interface NamespaceInfo {
  /** Name for `branch` of the readers, such as `main/2:0`. */
  readonly name: string;
  readonly branch: string;
  /** Namespace of the calling graph. */
  readonly parent: string;
  /** Calling task of the parent graph; for a tool call with the index of the call. */
  readonly task?: string;
  /** Path of nodes and tools, such as `outer.research`. */
  readonly within?: string;
  /** Name of the called graph. */
  readonly graph?: string;
  /** Writer of the newest checkpoint: the outermost graph. */
  readonly writtenBy?: GraphVersion;
  /** Checkpoint that the namespace continues from. */
  readonly from?: number;
  /** Newest checkpoint. */
  readonly head?: number;
  readonly supersteps: number;
  readonly bytes: number;
}

/**
 * Lists the child namespaces of a thread with their callers, in order of creation.
 *
 * @throws `unknown_thread`, `invalid_option`, and errors of the store.
 * @example
 * const calls = await listNamespaces(store, { thread: "support-7" });
 */
export async function listNamespaces(store: Store, options: ReadOptions): Promise<readonly NamespaceInfo[]> {
  return await readThread(
    { call: "listNamespaces", store, options, optionNames: [] },
    async ({ reads, thread, codec }) =>
      (await reads.namespaces(thread, "child")).map(({ name, from, head, writtenBy, checkpoints, bytes }) => {
        const caller = head === undefined ? undefined : parseControl(codec, head).caller;
        return {
          name,
          branch: splitNamespace(name).branch,
          parent: name.slice(0, name.lastIndexOf("/")),
          ...(caller === undefined ? {} : { task: caller.task, within: caller.nesting }),
          ...(caller?.graph === undefined ? {} : { graph: caller.graph }),
          ...(writtenBy === undefined ? {} : { writtenBy }),
          ...(from === undefined ? {} : { from }),
          ...(head === undefined ? {} : { head: head.id }),
          supersteps: checkpoints,
          bytes,
        };
      }),
  );
}
