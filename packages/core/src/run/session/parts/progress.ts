/** Progress of a session. */
import type { Control } from "../../../checkpoint/checkpoint.ts";
import type { Kernel, Snapshot } from "../../kernel/kernel.ts";
import type { State } from "../returns.ts";

/** Progress of a session: the state and the machine after the last durable superstep. */
export interface Progress {
  readonly kernel: Kernel;
  state: State;
  control: Control;
  snapshot: Snapshot;
  /** Nodes whose agents have started in this run; undefined when none started in this superstep. */
  startedAgents: readonly string[] | undefined;
  /** Model requests of agents with a turn limit; undefined when there were none in this superstep. */
  turns: Control["turns"];
}
