/** Progress of a run along its path. */
import { START } from "@statewright/core";
import type { Trace } from "../trace/trace.ts";
import type { NodeOutcome, PathEvent } from "./path-event.ts";

/** Path of a run: the outcomes of each superstep, and the end. */
export interface PathToRun {
  readonly name: string;
  readonly events: readonly PathEvent[];
  readonly startEvent: PathEvent | undefined;
  readonly end: "done" | "failed";
}

/** Position of a run on its path: the outcomes of the current superstep. */
export class PathProgress {
  readonly path: PathToRun;
  /** Trace of the run; undefined before the run. */
  #trace: Trace | undefined;

  constructor(path: PathToRun) {
    this.path = path;
  }

  /** Takes the position from the supersteps of a trace. */
  follow(trace: Trace): void {
    this.#trace = trace;
  }

  /** Returns the outcomes of the current superstep. */
  getOutcomes(): readonly NodeOutcome[] {
    const supersteps = this.#trace === undefined ? 0 : listSuperstepNodes(this.#trace).length;
    return this.path.events[supersteps]?.outcomes ?? [];
  }

  findOutcome(node: string): NodeOutcome | undefined {
    return this.getOutcomes().find((outcome) => outcome.node === node);
  }

  findToolOutcome(name: string): NodeOutcome | undefined {
    return this.getOutcomes().find((outcome) => "tool" in outcome && outcome.tool === name);
  }

  /** Returns the targets that the path chooses after a node or `START`; undefined when the path chooses none. */
  getTargets(source: string): readonly string[] | undefined {
    return source === START ? this.path.startEvent?.outcomes[0]?.to : this.findOutcome(source)?.to;
  }

  /** Returns true if a node makes a tool call anywhere on the path. */
  makesCall(source: string): boolean {
    return this.path.events.some(({ outcomes }) =>
      outcomes.some(({ node, how }) => node === source && how === "calls"),
    );
  }
}

/** Lists the nodes of each saved superstep. */
export function listSuperstepNodes(trace: Trace): readonly (readonly string[])[] {
  return trace.entries.flatMap((entry) =>
    entry.type === "step.committed" && entry.within === undefined && entry.nodes.length > 0 ? [entry.nodes] : [],
  );
}
