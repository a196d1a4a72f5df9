/** The program of a user-written machine: macrostep after macrostep. */
import { notEnteredSnapshot } from "../kernel/kernel.ts";
import type { Program } from "../migration/program.ts";
import { restoreMachine } from "../migration/thread-snapshot.ts";
import { createDeliveredResult, postAnswers } from "./deliver-events.ts";
import { findMachineIncompatibilities } from "./machine-compatibility.ts";
import { runMachineLoop, startMachineRun } from "./machine-loop.ts";
import { migrateMachine } from "./migrate-machine.ts";
import { readResumeInput } from "./resume-input.ts";

/** Program of the machines of `durableMachine`. */
export const machineProgram: Program = Object.freeze({
  // The machine checks its interrupts itself, and runs no inner graphs.
  isAwaited: () => true,
  loadCalls: async () => [],
  // The machine parses its input when it starts.
  parseInput: () => undefined,
  enter: () => notEnteredSnapshot,
  restore: ({ plan, kernel }, { thread, control, state }) =>
    control.machine === null
      ? notEnteredSnapshot
      : restoreMachine(kernel, plan, thread, { control, context: state["context"] }),
  derivesPosition: false,
  readOutput: (_, state) => state["output"],
  begin: (session, input) => startMachineRun(session, input),
  run: (session) => runMachineLoop(session),
  recover: (session) => runMachineLoop(session, { rows: [], postedIds: [], message: undefined }),
  resume: async (session, given) => runMachineLoop(session, await readResumeInput(session, given)),
  delivery: { post: postAnswers, createResult: createDeliveredResult },
  isPreemptible: false,
  isBounded: false,
  findIncompatibilities: findMachineIncompatibilities,
  migrate: migrateMachine,
} satisfies Program);
