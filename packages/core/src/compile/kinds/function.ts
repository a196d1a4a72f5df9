/** Function kind: a body that reads the state and returns changes. The base of every other kind. */
import type { NodeKind } from "../../define/graph.ts";

/** Kind of a node whose body is a function. */
export const functionKind: NodeKind = Object.freeze({
  shownAs: "body",
  savedAs: "body",
  execute: (engine, task) => engine.runBody(task, task.node.body),
  runsToEnd: false,
  endsBeforeRetry: false,
  takesInput: false,
  answersCalls: false,
  raisesDeclared: true,
  listTools: () => none,
  listSubgraphs: () => none,
  getInterruptObstacle: ({ policy }) => (policy.effect === "once" ? 'is declared with effect "once"' : undefined),
  findProblems: () => none,
  outline: () => undefined,
  getInputSchema: () => undefined,
  findInputProblem: (_, name, sent) =>
    sent === undefined ? undefined : `the node "${name}" was sent an input, but takes no input now`,
  canRecord: ({ kind }) => kind !== "tool",
  findCallProblem: () => undefined,
  findInterruptProblem: ({ isAboutCall, isStartInDoubt }) =>
    isAboutCall && !isStartInDoubt ? "is about a tool call, but the node calls no tools now" : undefined,
  getAnswerSchema: () => undefined,
} satisfies NodeKind);

const none: readonly never[] = Object.freeze([]);
