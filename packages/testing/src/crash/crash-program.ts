/** Program of a crash matrix: a graph with input, answers to interrupts, and a store. */
import type { Graph, GraphTypes, Model, OpenInterrupt, RunOptions, Store } from "@statewright/core";
import type { Codec } from "@statewright/core/store";
import type { CrashExternalWorld } from "./external-world.ts";

/** A graph with run options. */
export interface CrashProgram<Types extends GraphTypes = GraphTypes> {
  readonly graph: Graph<Types>;
  /** Input of the run. For an agent also a text or messages. */
  readonly input?: unknown;
  readonly context?: unknown;
  /** Replaces every model of the graph. */
  readonly model?: Model;
  readonly secrets?: Readonly<Record<string, string>>;
  readonly codec?: Codec;
  /** Answers to interrupts: by interrupt key, or a function of the interrupt. */
  readonly answers?: Readonly<Record<string, unknown>> | ((interrupt: OpenInterrupt) => unknown);
  /**
   * Opens the store of a run in `folder`; the same folder must open the same store. Required for a program that is
   * killed by SIGKILL: `(folder) => sqliteStore(join(folder, "run.db"))`.
   */
  readonly store?: (folder: string) => Store;
}

/** Creates the program anew for each process, because variables of a graph are lost in a crash. */
export type CrashProgramFactory<Types extends GraphTypes = GraphTypes> = (
  outside: CrashExternalWorld,
) => CrashProgram<Types>;

/** Types a program for `crashMatrix`, for example the default export of a module. Returns the function unchanged. */
export function crashProgram<Types extends GraphTypes>(
  program: CrashProgramFactory<Types>,
): CrashProgramFactory<Types> {
  return program;
}

/** Creates the options shared by start and resume of a run. */
export function createRunOptions({ context, secrets, codec }: CrashProgram): Partial<RunOptions<GraphTypes>> {
  return {
    ...(context === undefined ? {} : { context }),
    ...(codec === undefined ? {} : { codec }),
    ...(secrets === undefined ? {} : { secrets: { get: (name: string) => secrets[name] } }),
  };
}

/** Returns the answer to an interrupt, or undefined to leave the interrupt open. */
export function getAnswer({ answers }: CrashProgram, interrupt: OpenInterrupt): unknown {
  if (typeof answers === "function") return answers(interrupt);
  return answers !== undefined && Object.hasOwn(answers, interrupt.key) ? answers[interrupt.key] : undefined;
}
