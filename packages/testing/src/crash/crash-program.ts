/** What dies in a crash matrix: a graph, its input, the people who answer, and the world outside. */
import type { Codec, Graph, GraphTypes, Model, OpenInterrupt, RunOptions, Store } from "@statewright/core";
import type { CrashOutside } from "./external-world.ts";

/** A graph and what a run of it needs. */
export interface CrashProgram<Types extends GraphTypes = GraphTypes> {
  readonly graph: Graph<Types>;
  /** What the run is given; of an agent also the words of a person. */
  readonly input?: unknown;
  readonly context?: unknown;
  /** Answers in place of every model of the graph. */
  readonly model?: Model;
  readonly secrets?: Readonly<Record<string, string>>;
  readonly codec?: Codec;
  /** What people answer: by the key of the question, or decided from it. */
  readonly answers?: Readonly<Record<string, unknown>> | ((question: OpenInterrupt) => unknown);
  /**
   * Opens the store of a run whose place is `folder`; the same folder is the same store. A program that is killed by SIGKILL
   * needs one: `(folder) => sqliteStore(join(folder, "run.db"))`.
   */
  readonly store?: (folder: string) => Store;
}

/** Makes the program anew for each process, as its start would: what a graph keeps in variables is gone after a crash. */
export type CrashProgramOf<Types extends GraphTypes = GraphTypes> = (outside: CrashOutside) => CrashProgram<Types>;

/** A program for `crashMatrix`, also as the default export of a module that is killed. Exists for its types. */
export function crashProgram<Types extends GraphTypes>(program: CrashProgramOf<Types>): CrashProgramOf<Types> {
  return program;
}

/** What a run of a program is started and resumed with. */
export function commonOptions({ context, secrets, codec }: CrashProgram): Partial<RunOptions<GraphTypes>> {
  return {
    ...(context === undefined ? {} : { context }),
    ...(codec === undefined ? {} : { codec }),
    ...(secrets === undefined ? {} : { secrets: { get: (name: string) => secrets[name] } }),
  };
}

/** What a person answers to a question; undefined leaves it open. */
export function answerTo({ answers }: CrashProgram, question: OpenInterrupt): unknown {
  if (typeof answers === "function") return answers(question);
  return answers !== undefined && Object.hasOwn(answers, question.key) ? answers[question.key] : undefined;
}
